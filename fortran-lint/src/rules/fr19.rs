//! # FR19: weak-remedy
//!
//! A reason, carried in `because` by the finding that it explains: the variable has an attribute that does not keep it
//! in memory. Never a finding of its own, and it never lowers the level of one, but for SAVE.
//!
//! ## What happens
//!
//! | attribute | what gfortran 12 did |
//! |---|---|
//! | TARGET | stale values in every shape and with every binding |
//! | ALLOCATABLE | stale values for windows and MPI_BOTTOM |
//! | POINTER | stale values for MPI_BOTTOM; held for windows |
//! | EQUIVALENCE | stale values, unless a member is in COMMON |
//! | SAVE | held, but no standard promises it: the finding becomes a warning |
//! | MPI_GET_ADDRESS with `use mpi` | its argument may be declared INTENT(IN), as in Open MPI: nothing is reloaded |
//!
//! ## What to do
//!
//! - One of the remedies that the finding names, beside or instead of the attribute.
