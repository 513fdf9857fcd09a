//! # FR15: buffer-touched-while-open
//!
//! A buffer is accessed in the source text while the library may work on it: a read or store between a nonblocking
//! receive and its wait, a store between a nonblocking send and its wait, a store to the origin buffer of a put before
//! the epoch ends, a store to window memory between post and wait, or after a transfer of the same fence phase. This is
//! misuse and no matter of optimisation. Never reported where the request or window may have been finished out of sight,
//! or where the two accesses may concern different elements.
//!
//! ## What happens
//!
//! ```fortran
//! call MPI_IRECV(buf, n, MPI_REAL, 0, 7, comm, request, ierror)
//! x = buf(1)                               ! before or after the message, nobody knows
//! call MPI_WAIT(request, status, ierror)
//! ```
//!
//! ## What to do
//!
//! - Move the access behind the call that finishes the operation, or that call before the access.
//! - Work on a second buffer meanwhile.

use super::support::{finding, relate, shown};
use crate::dataflow::{Analysis, By, Change, Event, EventKind, Operation, PassedTo, Phase, Step, Window};
use crate::finding::{Finding, Level};
use crate::model::Storage;
use crate::mpi::{Class, Part};
use crate::parse::{ExprId, ExprKind, Symbol};
use crate::program::Certainty;

pub(super) fn check(a: &Analysis<'_>, out: &mut Vec<Finding>) {
    for operation in &a.operations {
        if operation.phase != Phase::Call {
            check_operation(a, operation, out);
        }
    }
    for window in &a.windows {
        check_exposure(a, window, out);
    }
}

fn check_operation(a: &Analysis<'_>, operation: &Operation, out: &mut Vec<Finding>) {
    let variable = operation.variable;
    let change = |event: &Event| a.change(operation, event);
    for (i, event) in open_events(a, change) {
        let is_store = matches!(event.kind, EventKind::Write { variable: own, .. } if own == variable);
        let is_load = matches!(event.kind, EventKind::Read { variable: own, .. } if own == variable)
            && operation.direction.writes();
        if !(is_store || is_load) || !is_certain(a, operation, event) {
            continue;
        }
        let name = a.name(variable);
        let verb = if is_store { "assigned" } else { "read" };
        let starter = shown(a, operation.call);
        let message = format!("`{name}` is {verb} while {starter} may still work on it");
        let mut found = finding(a, "FR15", Level::Error, variable, event.span, message);
        relate(
            &mut found,
            a.calls[operation.call as usize].span,
            format!("{starter} is given the buffer here"),
        );
        if let Some(end) = a.calls_behind(i, |call| a.finishes(call, operation)).into_iter().min() {
            relate(&mut found, a.calls[end as usize].span, "only behind this call is it free".to_string());
        }
        found.remedies.push("move the access behind the call that finishes the operation".to_string());
        found.remedies.push("work on a second buffer meanwhile".to_string());
        push_once(out, found);
    }
}

/// One finding per place, whatever number of operations is open there.
fn push_once(out: &mut Vec<Finding>, found: Finding) {
    if !out.iter().any(|other| other.rule == found.rule && other.span == found.span) {
        out.push(found);
    }
}

/// The events that happen while something is open on every way that leads there.
fn open_events<'a>(a: &'a Analysis<'_>, change: impl Fn(&Event) -> Change) -> Vec<(u32, &'a Event)> {
    let track = a.track(&change);
    let events = a.events.iter().zip(&track.before).enumerate();
    let open = events.filter(|(_, (event, state))| state.is_open() && change(event) == Change::None);
    open.map(|(i, (event, _))| (i as u32, event)).collect()
}

/// Whether the access certainly concerns memory that the operation works on.
fn is_certain(a: &Analysis<'_>, operation: &Operation, event: &Event) -> bool {
    let tree = a.file.tree;
    let Some(access) = event.place() else { return false };
    let Some(place) = operation.place else { return true };
    if !a.overlap(place, access) {
        return false;
    }
    let is_scalar = matches!(tree.expr(place).kind, ExprKind::Name(_))
        && !a.resolve(operation.variable).is_array()
        && a.resolve(operation.variable).variable.is_some();
    if is_scalar {
        return true;
    }
    // Several operations share the array: each has its part of it.
    let is_shared = a.operations.iter().any(|other| {
        other.variable == operation.variable
            && other.call != operation.call
            && other.place.is_some_and(|other| !tree.same(other, place))
    });
    let is_fixed = |expr: ExprId| !has_changing_subscripts(a, operation, expr);
    if tree.same(place, access) {
        return is_fixed(place);
    }
    let is_whole_access = matches!(tree.expr(access).kind, ExprKind::Name(_))
        && matches!(tree.expr(place).kind, ExprKind::Reference { .. });
    !is_shared && (a.is_whole(place) || is_whole_access)
}

/// Whether a name in the subscripts may change while the operation is open.
fn has_changing_subscripts(a: &Analysis<'_>, operation: &Operation, place: ExprId) -> bool {
    let mut names = Vec::new();
    collect_names(a, place, &mut names);
    if names.is_empty() {
        return false;
    }
    let mut changes = false;
    a.walk(a.calls[operation.call as usize].event, |_, event| {
        match event.kind {
            EventKind::Write { variable, .. } | EventKind::Pass { variable, .. } => {
                changes |= names.contains(&variable)
            }
            EventKind::Call(call) if a.finishes(&a.calls[call as usize], operation) => return Step::Stop,
            _ => {}
        }
        Step::On
    });
    changes
}

fn collect_names(a: &Analysis<'_>, id: ExprId, names: &mut Vec<Symbol>) {
    let tree = a.file.tree;
    match tree.expr(id).kind {
        ExprKind::Reference { base, args } => {
            for &arg in tree.list(args) {
                collect_names(a, arg, names);
                if let ExprKind::Name(name) = tree.expr(arg).kind {
                    names.push(name);
                }
            }
            collect_names(a, base, names);
        }
        ExprKind::Component { base, .. } | ExprKind::Paren(base) => collect_names(a, base, names),
        ExprKind::Operation { operands, .. } => {
            for &operand in tree.list(operands) {
                if let ExprKind::Name(name) = tree.expr(operand).kind {
                    names.push(name);
                }
                collect_names(a, operand, names);
            }
        }
        ExprKind::Section { low, high, stride } => {
            for part in [low, high, stride].into_iter().flatten() {
                if let ExprKind::Name(name) = tree.expr(part).kind {
                    names.push(name);
                }
                collect_names(a, part, names);
            }
        }
        _ => {}
    }
}

/// Stores to window memory while others may transfer: between post and wait, and in a fence phase behind a transfer.
fn check_exposure(a: &Analysis<'_>, window: &Window, out: &mut Vec<Finding>) {
    let names_window = |call: u32| {
        a.calls[call as usize].part(Part::Win).is_some_and(|own| a.may_be_same(own, window.handle))
    };
    let has = |class: Class| {
        (0..a.calls.len() as u32).any(|call| a.class_of(call) == Some(class) && names_window(call))
    };
    let is_fenced = has(Class::Fence) && !has(Class::Lock) && !has(Class::Access);
    let storage = a.file.tree.root(window.handle).map(|root| a.resolve(root).storage);
    let change = |event: &Event| {
        let root = a.file.tree.root(window.handle);
        match event.kind {
            EventKind::Pass { variable, to: PassedTo::User(call), .. }
                if Some(variable) == root && a.usage(call, event).is_given_away =>
            {
                Change::MayClose
            }
            EventKind::Call(call) => match a.class_of(call) {
                None => match storage {
                    Some(Storage::Local | Storage::Dummy) => Change::None,
                    _ if a.reaches_known_only(call) => Change::None,
                    _ => Change::MayClose,
                },
                Some(_) if a.certainty(call) == Certainty::Perhaps && names_window(call) => Change::MayClose,
                Some(_) if a.closes(call, window) => Change::Closes,
                Some(Class::Post) if names_window(call) => Change::Opens,
                Some(Class::Transfer) if names_window(call) && is_fenced => Change::Opens,
                Some(Class::Wait | Class::Fence) if names_window(call) => Change::Closes,
                Some(Class::WaitTest) if names_window(call) => Change::MayClose,
                _ => Change::None,
            },
            _ => Change::None,
        }
    };
    for (_, event) in open_events(a, change) {
        let EventKind::Write { variable, by: By::Statement, .. } = event.kind else { continue };
        if variable != window.variable {
            continue;
        }
        let name = a.name(variable);
        let message = format!("`{name}` is assigned while the window over it is open to others");
        let mut found = finding(a, "FR15", Level::Error, variable, event.span, message);
        relate(
            &mut found,
            a.calls[window.call as usize].span,
            format!("{} opens `{name}` to others", shown(a, window.call)),
        );
        found.remedies.push("move the store behind the call that closes the exposure".to_string());
        push_once(out, found);
    }
}
