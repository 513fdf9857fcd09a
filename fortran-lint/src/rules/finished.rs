//! What FR02 and FR10 share: accesses to a buffer behind the call that finishes an operation on it and does not name it.
//! Never decides which rule an operation belongs to.

use super::behind::{self, Access};
use super::repair::{self, Place};
use super::support::{
    OnDummy, Side, explain, finding, is_load, is_store, level, others, propose, relate, relate_declaration,
    shown, without_attempts,
};
use crate::dataflow::{Analysis, EventKind, Handle, Operation, Phase};
use crate::finding::{Finding, Level};
use crate::mpi::Class;
use crate::parse::Symbol;

/// Reports the accesses to the buffers of the wanted operations, one finding for each buffer.
pub(super) fn accesses(
    a: &Analysis<'_>,
    rule: &'static str,
    is_wanted: impl Fn(&Operation) -> bool,
    out: &mut Vec<Finding>,
) {
    let buffers = behind::by_buffer(
        a,
        |operation| {
            operation.direction.writes()
                && operation.place.is_some()
                && operation.phase != Phase::Call
                && !operation.is_transfer
                && is_wanted(operation)
                && a.is_unsafe(operation.variable)
        },
        |operation, event| is_load(a, event, operation.memory()) || is_store(a, event, operation.memory()),
        |operation, event| a.shields_load(event, operation.memory()) || restarts(a, event.kind, operation),
    );
    for (variable, accesses) in buffers {
        out.extend(report(a, rule, variable, &accesses));
    }
}

/// Behind the next start of a persistent request an access is another matter.
fn restarts(a: &Analysis<'_>, kind: EventKind, operation: &Operation) -> bool {
    let (EventKind::Call(call), Handle::Request(request)) = (kind, operation.handle) else { return false };
    a.class_of(call) == Some(Class::Start) && a.names_request(call, request)
}

fn report(a: &Analysis<'_>, rule: &'static str, variable: Symbol, accesses: &[Access]) -> Option<Finding> {
    let is_persistent_read = accesses.iter().any(|access| {
        access.operation.phase == Phase::FromStart
            && is_load(a, &a.events[access.event as usize], access.operation.memory())
    });
    let kept = without_attempts(a, accesses, |access| access.event);
    let &access = kept.first()?;
    let event = &a.events[access.event as usize];
    let base = if is_persistent_read { Level::Error } else { Level::Warning };
    let verb = match event.kind {
        EventKind::Write { .. } => "written",
        _ => "read",
    };
    let message = format!(
        "`{}` is {verb} after {}, which does not name it: the access may be moved before the wait{}",
        a.name(variable),
        shown(a, access.end),
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
        a.calls[access.end as usize].span,
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
    repair::call(a, &mut found, Place::Behind(a.calls[access.end as usize].span));
    Some(found)
}
