//! # FR04: anchored-neighbour-in-register
//!
//! A datatype reaches several variables by their distances from one of them. A transfer names that one, the anchor, and
//! moves the others as well: they are read behind a receive, or assigned before a send, and no call names them. Never
//! reported for the anchor itself, for variables in COMMON or in a module, for VOLATILE and ASYNCHRONOUS variables, or
//! where an opaque call with the variable stands between.
//!
//! ## What happens
//!
//! ```fortran
//! call MPI_GET_ADDRESS(a, at(1), ierror)
//! call MPI_GET_ADDRESS(b, at(2), ierror)
//! distance(2) = at(2) - at(1)
//! call MPI_TYPE_CREATE_STRUCT(2, lengths, distance, types, type, ierror)
//! call MPI_RECV(a, 1, type, 0, 7, comm, status, ierror)   ! receives into b, too
//! x = b                                                   ! may be a register from before
//! ```
//!
//! Fortran lets a compiler assume that a call which is given `a` does nothing to `b`. For `b` this is FR03 and FR05, which
//! gfortran 12 breaks from -O1 on. Code that is right by luck of one compiler is not portable.
//!
//! ## What to do
//!
//! - With `mpif.h`: put all the variables into one COMMON block.
//! - With `use mpi`: ASYNCHRONOUS for all of them, or module variables:
//!
//!   ```fortran
//!   real, asynchronous :: a, b
//!   ```
//!
//! - With `use mpi_f08`: the same; the interface protects the anchor only.
//! - One derived type that holds them, with the whole object as the buffer.
//! - MPI_GET_ADDRESS(b, …) or another opaque call (FR13) behind a receive and before a send.

use super::hidden::{reads, stores};
use crate::dataflow::Analysis;
use crate::finding::Finding;

pub(super) fn check(a: &Analysis<'_>, out: &mut Vec<Finding>) {
    for operation in &a.operations {
        if operation.anchor.is_none() || !a.is_unsafe(operation.variable) {
            continue;
        }
        let mut found = Vec::new();
        if operation.direction.writes() {
            found.extend(reads(a, "FR04", operation));
        }
        if operation.direction.reads() {
            found.extend(stores(a, "FR04", operation));
        }
        for found in found {
            if !out.iter().any(|other| other.rule == found.rule && other.span == found.span) {
                out.push(found);
            }
        }
    }
}
