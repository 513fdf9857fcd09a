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

use std::collections::BTreeMap;

use super::repair::{self, Place};
use super::support::{
    OnDummy, Side, explain, finding, level, others, propose, relate, relate_declaration, shown,
};
use crate::dataflow::{Analysis, By, EventKind, Handle, Operation, Phase, Step};
use crate::finding::{Finding, Level};
use crate::mpi::{Class, Part};

pub(super) fn check(a: &Analysis<'_>, out: &mut Vec<Finding>) {
    for operation in &a.operations {
        let is_hidden = operation.place.is_none();
        let is_persistent = operation.phase == Phase::FromStart;
        if !operation.direction.reads() || !(is_hidden || is_persistent) || !a.is_unsafe(operation.variable) {
            continue;
        }
        for found in check_operation(a, operation) {
            let is_known = out.iter().any(|other| other.rule == found.rule && other.span == found.span);
            if !is_known {
                out.push(found);
            }
        }
    }
}

fn check_operation(a: &Analysis<'_>, operation: &Operation) -> Vec<Finding> {
    let variable = operation.variable;
    // The stores that each sending call may miss.
    let mut missed: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (i, event) in a.events.iter().enumerate() {
        let EventKind::Write { variable: own, place, by: By::Statement } = event.kind else { continue };
        if own != variable {
            continue;
        }
        a.walk(i as u32, |_, event| {
            if a.shields_store(event, variable) {
                return Step::Stop;
            }
            match event.kind {
                EventKind::Write { variable: own, place: other, .. }
                    if own == variable && a.file.tree.same(place, other) =>
                {
                    Step::Stop
                }
                EventKind::Call(call) if sends(a, call, operation) => {
                    missed.entry(call).or_default().push(i as u32);
                    Step::Stop
                }
                _ => Step::On,
            }
        });
    }
    missed.iter().map(|(&call, stores)| report(a, operation, call, stores)).collect()
}

/// Whether the library reads the variable in this call or from it on.
fn sends(a: &Analysis<'_>, call: u32, operation: &Operation) -> bool {
    match (operation.phase, operation.handle) {
        (Phase::FromStart, Handle::Request(request)) => {
            a.class_of(call) == Some(Class::Start)
                && a.calls[call as usize].parts().any(|(part, own)| {
                    matches!(part, Part::Request | Part::Requests) && a.may_be_same(own, request)
                })
        }
        _ => call == operation.call,
    }
}

fn report(a: &Analysis<'_>, operation: &Operation, call: u32, stores: &[u32]) -> Finding {
    let variable = operation.variable;
    let name = a.name(variable);
    let last = stores.iter().copied().max().unwrap_or_default();
    let base = if operation.phase == Phase::FromStart { Level::Warning } else { Level::Error };
    let message = format!(
        "`{name}` is assigned before {}, which sends it without naming it: the value may still be in a register{}",
        shown(a, call),
        others(stores.len() - 1),
    );
    let span = a.events[last as usize].span;
    let mut found = finding(a, "FR05", level(a, variable, base, OnDummy::Keep), variable, span, message);
    relate(&mut found, a.calls[call as usize].span, format!("{} reads `{name}` in memory", shown(a, call)));
    if call != operation.call {
        relate(
            &mut found,
            a.calls[operation.call as usize].span,
            format!("{} names the buffer for the last time", shown(a, operation.call)),
        );
    }
    relate_declaration(a, &mut found, variable);
    explain(a, &mut found, variable, Side::Store, last);
    propose(a, &mut found, variable, "between the store and the send");
    repair::call(a, &mut found, Place::Before(a.calls[call as usize].span));
    found
}
