//! # FR10: offered-memory-used-after-wait
//!
//! Memory is offered to others by PGO_IOFFER, PGO_IOFFERP or PGO_IOFFERC and read or written after the wait for the offer's
//! request, which does not name it. Never reported for variables in COMMON or in a module, for VOLATILE and ASYNCHRONOUS
//! variables, where an opaque call with the variable stands between, or for the blocking PGO_OFFER, whose argument the
//! memory is.
//!
//! ## What happens
//!
//! ```fortran
//! call PGO_IOFFER(buf, size, 8, events, 1, tag, comm, request, ierror)
//! call PGO_WAIT(request, ierror)           ! names the request, not buf
//! x = buf(1)                               ! may be moved before the wait, or use a register from before it
//! ```
//!
//! It is the hazard of a nonblocking receive (FR02) with the data coming from whoever answers the offer. No compiler tried
//! broke the plain shape: a warning. Code that is right by luck of one compiler is not portable.
//!
//! There is one finding per buffer and program unit, at the first access, with the number of places.
//!
//! ## What to do
//!
//! - With `mpif.h`: COMMON, a module variable, or an opaque call with `buf` after the wait (FR13):
//!
//!   ```fortran
//!   call PGO_WAIT(request, ierror)
//!   call sync(buf)
//!   x = buf(1)
//!   ```
//!
//! - With `use mpi` and `use mpi_f08`: ASYNCHRONOUS, on the dummy argument and in the caller where it is one.
//! - VOLATILE, at the price of every access.

use super::finished;
use crate::dataflow::Analysis;
use crate::finding::Finding;

pub(super) fn check(a: &Analysis<'_>, out: &mut Vec<Finding>) {
    finished::accesses(a, "FR10", |operation| operation.is_offer, out);
}
