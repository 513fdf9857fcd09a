//! # FR03: hidden-receive-read-from-register
//!
//! A variable whose address was put into a datatype is received into by way of MPI_BOTTOM and read afterwards. No call
//! names it, so the compiler sees no reason to load it again. Never reported for variables in COMMON or in a module,
//! for VOLATILE and ASYNCHRONOUS variables, or where an opaque call with the variable stands before the read.
//!
//! ## What happens
//!
//! ```fortran
//! call MPI_GET_ADDRESS(buf, address, ierror)
//! call MPI_TYPE_CREATE_STRUCT(1, length, address, MPI_REAL, type, ierror)
//! old = buf
//! call MPI_RECV(MPI_BOTTOM, 1, type, 0, 7, comm, status, ierror)
//! new = buf                                ! may be the same register as old
//! ```
//!
//! gfortran 12 gives the old value from -O1 on, with each of the three bindings. It is not portable even where a good
//! compiler or library gets it right.
//!
//! ## What to do
//!
//! - ASYNCHRONOUS, COMMON, a module variable or VOLATILE, as for FR01.
//! - MPI_GET_ADDRESS(buf, …) or another opaque call (FR13) between the receive and the read. With `use mpi` the address
//!   routine may be declared INTENT(IN) and then does not help.

use super::hidden::reads;
use crate::dataflow::Analysis;
use crate::finding::Finding;

pub(super) fn check(a: &Analysis<'_>, out: &mut Vec<Finding>) {
    for operation in &a.operations {
        let is_hidden = operation.place.is_none() && operation.anchor.is_none();
        if !is_hidden || !operation.direction.writes() || !a.is_unsafe(operation.variable) {
            continue;
        }
        if let Some(found) = reads(a, "FR03", operation)
            && !out.iter().any(|other| other.rule == found.rule && other.span == found.span)
        {
            out.push(found);
        }
    }
}
