//! What FR03, FR04 and FR05 share: accesses to variables that a transfer moves without naming them. Never decides which
//! rule a transfer belongs to.

use std::collections::BTreeMap;

use super::behind::{Access, behind};
use super::repair::{self, Place};
use super::support::{
    OnDummy, Side, explain, finding, is_load, level, others, propose, relate, relate_declaration, shown,
    without_attempts,
};
use crate::dataflow::{Analysis, By, Event, EventKind, Handle, Operation, PassedTo, Phase, Step};
use crate::finding::{Finding, Level};
use crate::mpi::{Class, Part};
use crate::parse::Symbol;

/// How the datatype leads to the variable.
fn way(a: &Analysis<'_>, operation: &Operation) -> String {
    match operation.anchor.and_then(|anchor| a.file.tree.root(anchor)) {
        Some(anchor) => format!("distance from `{}`", a.name(anchor)),
        None => "address".to_string(),
    }
}

/// The read behind a receive that does not name the variable.
pub(super) fn reads(a: &Analysis<'_>, rule: &'static str, operation: &Operation) -> Option<Finding> {
    let variable = operation.variable;
    let call = &a.calls[operation.call as usize];
    let ends = match operation.phase {
        Phase::Call => vec![operation.call],
        Phase::FromCall | Phase::FromStart => a.ends(operation),
    };
    let mut reads: Vec<Access> = Vec::new();
    for end in ends {
        let events = behind(
            a,
            end,
            |event| is_load(a, event, operation.memory()),
            |event| a.shields_load(event, operation.memory()),
        );
        for event in events {
            if reads.iter().all(|read| read.event != event) {
                reads.push(Access { event, operation: *operation, end });
            }
        }
    }
    let reads = without_attempts(a, &reads, |read| read.event);
    let &Access { event: first, end, .. } = reads.first()?;
    let name = a.name(variable);
    let message = format!(
        "`{name}` is read after {} has received into it by its {}: the read may give the value from before{}",
        shown(a, operation.call),
        way(a, operation),
        others(reads.len() - 1),
    );
    let span = a.events[first as usize].span;
    let mut found =
        finding(a, rule, level(a, variable, Level::Error, OnDummy::Keep), variable, span, message);
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
    explain(a, &mut found, variable, Side::Load, hidden_from(a, variable).min(call.event));
    propose(a, &mut found, variable, "between the receive and the read");
    repair::call(a, &mut found, Place::Behind(a.calls[end as usize].span));
    Some(found)
}

/// The event from which on a datatype may hide the variable: what is tried behind it and before the receive, to no avail,
/// is meant for the receive.
fn hidden_from(a: &Analysis<'_>, variable: Symbol) -> u32 {
    let feeds = |event: &Event| match event.kind {
        EventKind::Pass { variable: own, to: PassedTo::Library(call, Part::Location), .. } => {
            own == variable && a.hidden.feeds_datatype(call)
        }
        _ => false,
    };
    a.events.iter().position(feeds).map_or(u32::MAX, |event| event as u32)
}

/// The stores before a send that does not name the variable.
pub(super) fn stores(a: &Analysis<'_>, rule: &'static str, operation: &Operation) -> Vec<Finding> {
    let variable = operation.variable;
    // The stores that each sending call may miss.
    let mut missed: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (i, event) in a.events.iter().enumerate() {
        let EventKind::Write { variable: own, place, by: By::Statement } = event.kind else { continue };
        if own != variable {
            continue;
        }
        a.walk(i as u32, |_, event| {
            if a.shields_store(event, operation.memory()) {
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
    missed.iter().map(|(&call, stores)| report_stores(a, rule, operation, call, stores)).collect()
}

/// Whether the library reads the variable in this call or from it on.
fn sends(a: &Analysis<'_>, call: u32, operation: &Operation) -> bool {
    match (operation.phase, operation.handle) {
        (Phase::FromStart, Handle::Request(request)) => {
            a.class_of(call) == Some(Class::Start) && a.names_request(call, request)
        }
        _ => call == operation.call,
    }
}

fn report_stores(
    a: &Analysis<'_>,
    rule: &'static str,
    operation: &Operation,
    call: u32,
    stores: &[u32],
) -> Finding {
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
    let mut found = finding(a, rule, level(a, variable, base, OnDummy::Keep), variable, span, message);
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
