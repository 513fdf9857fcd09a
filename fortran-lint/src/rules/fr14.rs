//! # FR14: misplaced-dummy-routine
//!
//! A reason, carried in `because` by the finding that it explains: a sync call stands where it does not help. Never a
//! finding of its own.
//!
//! ## What happens
//!
//! A sync call makes the compiler store a variable before it and load it anew after it. So for incoming data it belongs
//! between the call that completes the transfer and the access, on every way that leads there, in a loop in every round.
//! For outgoing data it belongs between the store and the call that lets the library read memory:
//!
//! ```fortran
//! buff = 42
//! call MPI_F_SYNC_REG(buff)                ! here: the store must have happened
//! call MPI_WIN_FENCE(0, win, ierror)
//! call MPI_F_SYNC_REG(buff)                ! not here: too late for the store
//! ```
//!
//! ## What to do
//!
//! - Move the call, or add a second one: a window that is both read and written by others needs one on each side.
