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

use super::repair::{self, Place};
use super::support::{
    OnDummy, Side, explain, finding, is_load, level, others, propose, relate, relate_declaration, shown,
    without_attempts,
};
use crate::dataflow::{Analysis, Operation, Phase, Step};
use crate::finding::{Finding, Level};

pub(super) fn check(a: &Analysis<'_>, out: &mut Vec<Finding>) {
    for operation in &a.operations {
        if operation.place.is_some() || !operation.direction.writes() || !a.is_unsafe(operation.variable) {
            continue;
        }
        if let Some(found) = check_operation(a, operation)
            && !out.iter().any(|other| other.rule == found.rule && other.span == found.span)
        {
            out.push(found);
        }
    }
}

fn check_operation(a: &Analysis<'_>, operation: &Operation) -> Option<Finding> {
    let variable = operation.variable;
    let call = &a.calls[operation.call as usize];
    let ends = match operation.phase {
        Phase::Call => vec![operation.call],
        Phase::FromCall | Phase::FromStart => {
            a.calls_behind(call.event, |other| a.finishes(other, operation))
        }
    };
    let mut reads: Vec<(u32, u32)> = Vec::new();
    for end in ends {
        a.walk(a.calls[end as usize].event, |i, event| {
            if a.shields_load(event, variable) {
                return Step::Stop;
            }
            if is_load(a, event, variable) && !reads.iter().any(|(read, _)| *read == i) {
                reads.push((i, end));
            }
            Step::On
        });
    }
    let reads = without_attempts(a, &reads);
    let &(first, end) = reads.first()?;
    let name = a.name(variable);
    let message = format!(
        "`{name}` is read after {} has received into it by its address: the read may give the value from before{}",
        shown(a, operation.call),
        others(reads.len() - 1),
    );
    let span = a.events[first as usize].span;
    let mut found =
        finding(a, "FR03", level(a, variable, Level::Error, OnDummy::Keep), variable, span, message);
    relate(
        &mut found,
        call.span,
        format!("the datatype of this {} hides `{name}`", shown(a, operation.call)),
    );
    if end != operation.call {
        relate(
            &mut found,
            a.calls[end as usize].span,
            "the receive has finished when this returns".to_string(),
        );
    }
    relate_declaration(a, &mut found, variable);
    explain(a, &mut found, variable, Side::Load, call.event);
    propose(a, &mut found, variable, "between the receive and the read");
    repair::call(a, &mut found, Place::Behind(a.calls[end as usize].span));
    Some(found)
}
