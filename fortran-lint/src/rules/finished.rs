//! What FR02 and FR10 share: accesses to a buffer behind the call that finishes an operation on it and does not name it.
//! Never decides which rule an operation belongs to.

use std::collections::BTreeMap;

use super::repair::{self, Place};
use super::support::{
    OnDummy, Side, explain, finding, is_load, level, others, propose, relate, relate_declaration, shown,
    without_attempts,
};
use crate::dataflow::{Analysis, By, EventKind, Handle, Operation, Phase, Step};
use crate::finding::{Finding, Level};
use crate::mpi::{Class, Part};
use crate::parse::Symbol;

/// An access behind a finishing call.
#[derive(Clone, Copy)]
struct Access {
    operation: Operation,
    finish: u32,
}

/// The accesses to one buffer, by event.
#[derive(Default)]
struct Accesses {
    first: BTreeMap<u32, Access>,
    is_persistent_read: bool,
}

/// Reports the accesses to the buffers of the wanted operations, one finding for each buffer.
pub(super) fn accesses(
    a: &Analysis<'_>,
    rule: &'static str,
    is_wanted: impl Fn(&Operation) -> bool,
    out: &mut Vec<Finding>,
) {
    let mut buffers: Vec<(Symbol, Accesses)> = Vec::new();
    for operation in &a.operations {
        let concerns = operation.direction.writes()
            && operation.place.is_some()
            && operation.phase != Phase::Call
            && !operation.is_transfer
            && is_wanted(operation)
            && a.is_unsafe(operation.variable);
        if !concerns {
            continue;
        }
        let at = match buffers.iter().position(|(variable, _)| *variable == operation.variable) {
            Some(at) => at,
            None => {
                buffers.push((operation.variable, Accesses::default()));
                buffers.len() - 1
            }
        };
        collect(a, operation, &mut buffers[at].1);
    }
    for (variable, accesses) in buffers {
        out.extend(report(a, rule, variable, &accesses));
    }
}

fn collect(a: &Analysis<'_>, operation: &Operation, accesses: &mut Accesses) {
    let started = a.calls[operation.call as usize].event;
    for finish in a.calls_behind(started, |call| a.finishes(call, operation)) {
        a.walk(a.calls[finish as usize].event, |i, event| {
            if a.shields_load(event, operation.variable) || restarts(a, event.kind, operation) {
                return Step::Stop;
            }
            let is_load = is_load(a, event, operation.variable);
            let is_store = matches!(event.kind, EventKind::Write { variable, by: By::Statement, .. } if variable == operation.variable);
            if is_load || is_store {
                accesses.first.entry(i).or_insert(Access { operation: *operation, finish });
                accesses.is_persistent_read |= is_load && operation.phase == Phase::FromStart;
            }
            Step::On
        });
    }
}

/// Behind the next start of a persistent request an access is another matter.
fn restarts(a: &Analysis<'_>, kind: EventKind, operation: &Operation) -> bool {
    let (EventKind::Call(call), Handle::Request(request)) = (kind, operation.handle) else { return false };
    a.class_of(call) == Some(Class::Start)
        && a.calls[call as usize]
            .parts()
            .any(|(part, own)| matches!(part, Part::Request | Part::Requests) && a.may_be_same(own, request))
}

fn report(a: &Analysis<'_>, rule: &'static str, variable: Symbol, accesses: &Accesses) -> Option<Finding> {
    let all: Vec<(u32, Access)> = accesses.first.iter().map(|(&i, &access)| (i, access)).collect();
    let kept = without_attempts(a, &all);
    let &(first, access) = kept.first()?;
    let event = &a.events[first as usize];
    let base = if accesses.is_persistent_read { Level::Error } else { Level::Warning };
    let verb = match event.kind {
        EventKind::Write { .. } => "written",
        _ => "read",
    };
    let message = format!(
        "`{}` is {verb} after {}, which does not name it: the access may be moved before the wait{}",
        a.name(variable),
        shown(a, access.finish),
        others(kept.len() - 1),
    );
    let mut found = finding(a, rule, level(a, variable, base, OnDummy::Keep), variable, event.span, message);
    let started = &a.calls[access.operation.call as usize];
    relate(
        &mut found,
        started.span,
        format!("{} names the buffer for the last time", shown(a, access.operation.call)),
    );
    relate(
        &mut found,
        a.calls[access.finish as usize].span,
        match access.operation.is_offer {
            true => "the offer has been answered when this returns".to_string(),
            false => "the receive has finished when this returns".to_string(),
        },
    );
    relate_declaration(a, &mut found, variable);
    explain(a, &mut found, variable, Side::Load, started.event);
    let place = match access.operation.phase {
        Phase::FromStart => "inside the loop, after the finishing call",
        _ => "between the finishing call and the access",
    };
    propose(a, &mut found, variable, place);
    repair::call(a, &mut found, Place::Behind(a.calls[access.finish as usize].span));
    Some(found)
}
