//! # FR05: store-hidden-from-send
//!
//! A variable is assigned and then sent by a call that does not name it: by MPI_BOTTOM and a datatype that holds its
//! address, or by the start of a persistent send. The value may still be in a register when the library reads memory.
//! Never reported for variables in COMMON or in a module, for VOLATILE and ASYNCHRONOUS variables, or where a call with
//! the variable as its argument stands between the store and the send.
//!
//! ## What happens
//!
//! ```fortran
//! buf = 42
//! call MPI_SEND(MPI_BOTTOM, 1, type, 1, 7, comm, ierror)   ! the type holds the address of buf
//! ```
//!
//! gfortran 12 leaves out such a store altogether when nothing else reads it. For the start of a persistent send no
//! compiler tried did so: a warning there. Code that is right by luck of one compiler is not portable.
//!
//! ## What to do
//!
//! - ASYNCHRONOUS, COMMON, a module variable or VOLATILE, as for FR01.
//! - MPI_GET_ADDRESS(buf, …) or another opaque call (FR13) between the store and the send, inside the loop for a persistent one.

use super::hidden::stores;
use crate::dataflow::{Analysis, Phase};
use crate::finding::Finding;

pub(super) fn check(a: &Analysis<'_>, out: &mut Vec<Finding>) {
    for operation in &a.operations {
        let is_hidden = operation.place.is_none() && operation.anchor.is_none();
        let is_persistent = operation.place.is_some() && operation.phase == Phase::FromStart;
        if !operation.direction.reads() || !(is_hidden || is_persistent) || !a.is_unsafe(operation.variable) {
            continue;
        }
        for found in stores(a, "FR05", operation) {
            let is_known = out.iter().any(|other| other.rule == found.rule && other.span == found.span);
            if !is_known {
                out.push(found);
            }
        }
    }
}
