//! # FR02: receive-buffer-used-after-wait
//!
//! The buffer of a nonblocking or persistent receive is read or written after the call that finishes the receive, and
//! that call does not name the buffer. Never reported for variables in COMMON or in a module, for VOLATILE and
//! ASYNCHRONOUS variables, or where an opaque call with the buffer as its argument stands between the two.
//!
//! ## What happens
//!
//! ```fortran
//! call MPI_IRECV(buf, 1, MPI_REAL, 0, 7, comm, request, ierror)
//! call MPI_WAIT(request, status, ierror)   ! names the request, not buf
//! x = buf                                  ! may be moved before the wait, or use a register from before it
//! ```
//!
//! Compilers may move the access before the wait, or load the buffer into a register in between. For a plain receive
//! and wait no compiler tried did so: a warning. For a persistent receive, whose buffer is named once and filled many
//! times, gfortran 12 gives stale values from -O1 on: an error. Code that is right by luck of one compiler is not
//! portable.
//!
//! There is one finding per buffer and program unit, at the first access, with the number of places.
//!
//! ## What to do
//!
//! - ASYNCHRONOUS (with `use mpi` or `use mpi_f08`), on the dummy argument and in the caller where it is one.
//! - COMMON or a module variable.
//! - VOLATILE, at the price of every access.
//! - An opaque call with `buf` as its argument after the finishing call, inside the loop for a persistent receive (FR13).

use super::finished;
use crate::dataflow::Analysis;
use crate::finding::Finding;

pub(super) fn check(a: &Analysis<'_>, out: &mut Vec<Finding>) {
    finished::accesses(a, "FR02", |operation| !operation.is_offer, out);
}
