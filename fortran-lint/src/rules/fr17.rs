//! # FR17: poll-from-register
//!
//! A loop waits for a variable that others change by one-sided communication, by a receive or by a callback, and nothing
//! in the loop makes the compiler load it again. Never reported for VOLATILE variables, or when a call in the loop has
//! the variable as its argument.
//!
//! ## What happens
//!
//! ```fortran
//! do while (flag == 0)
//!   call MPI_WIN_SYNC(win, ierror)
//! end do
//! ```
//!
//! MPI_WIN_SYNC does not name `flag`, so the load leaves the loop and the loop never ends. For a pointer to shared
//! memory and an empty loop gfortran 12 writes a jump to itself. MPI_WIN_SYNC is needed, and not enough.
//!
//! ## What to do
//!
//! - VOLATILE: a polled variable is what it was made for.
//! - An opaque call with `flag` as its argument in the loop.

use super::repair;
use super::support::{OnDummy, Side, explain, finding, level, relate, relate_declaration};
use crate::dataflow::{Analysis, Event, EventKind, Memory, PassedTo};
use crate::finding::{Finding, Level};
use crate::model::{Loop, Storage};
use crate::mpi::{Class, Part};
use crate::parse::{Attributes, ExprId, ExprKind, StatementKind, Symbol};

pub(super) fn check(a: &Analysis<'_>, out: &mut Vec<Finding>) {
    if a.flow.loops.is_empty() {
        return;
    }
    let watched = watched(a);
    if watched.is_empty() {
        return;
    }
    for &here in &a.flow.loops {
        for node in here.first..=here.last {
            if !leaves(a, here, node) {
                continue;
            }
            for event in a.events_of(node) {
                let EventKind::Read { .. } = event.kind else { continue };
                let Some(watch) = watched.iter().find(|watch| a.concerns(event, watch.memory)) else {
                    continue;
                };
                if !moves_on(a, here, event)
                    && polls(a, here, watch)
                    && !out.iter().any(|other| other.rule == "FR17" && other.span == event.span)
                {
                    out.push(report(a, event, watch));
                }
            }
        }
    }
}

/// A variable that changes without a statement of this unit.
struct Watch {
    memory: Memory,
    /// The call that lets it change.
    by: u32,
    /// Any call may be taken to change it.
    is_pointer: bool,
}

fn watched(a: &Analysis<'_>) -> Vec<Watch> {
    let mut watched = Vec::new();
    for window in &a.windows {
        if a.is_unsafe(window.variable) {
            watched.push(Watch { memory: window.memory(), by: window.call, is_pointer: false });
        }
    }
    for operation in &a.operations {
        let is_open = operation.phase != crate::dataflow::Phase::Call;
        if operation.direction.writes()
            && is_open
            && !operation.is_transfer
            && a.is_unsafe(operation.variable)
        {
            watched.push(Watch { memory: operation.memory(), by: operation.call, is_pointer: false });
        }
    }
    for (id, call) in a.calls.iter().enumerate() {
        if a.class_of(id as u32) == Some(Class::Callback)
            && let Some(state) = call.part(Part::State).and_then(|arg| a.file.tree.root(arg))
            && a.is_unsafe(state)
        {
            watched.push(Watch { memory: Memory::whole(state), by: id as u32, is_pointer: false });
        }
        let is_c_pointer = a.name(call.name) == "c_f_pointer";
        if is_c_pointer
            && let Some(pointer) = call.args.get(1).copied().flatten().and_then(|arg| a.file.tree.root(arg))
            && !a.resolve(pointer).attributes.has(Attributes::VOLATILE)
            && a.resolve(pointer).storage != Storage::Imported
        {
            watched.push(Watch { memory: Memory::whole(pointer), by: id as u32, is_pointer: true });
        }
    }
    watched
}

/// Whether the node decides about leaving the loop, and this is the innermost loop around it.
fn leaves(a: &Analysis<'_>, here: Loop, node: u32) -> bool {
    let inside = |node: u32| here.first <= node && node <= here.last;
    let is_innermost = !a.flow.loops.iter().any(|other| {
        *other != here
            && here.first <= other.first
            && other.last <= here.last
            && other.first <= node
            && node <= other.last
    });
    if !is_innermost {
        return false;
    }
    let here_node = &a.flow.nodes[node as usize];
    let Some(statement) = here_node.statement else { return false };
    let decides = match a.file.tree.statements[statement as usize].kind {
        StatementKind::IfStatement(_)
        | StatementKind::IfThen(_)
        | StatementKind::ElseIf(_)
        | StatementKind::ArithmeticIf { .. } => true,
        StatementKind::Do { .. } => node == here.first,
        _ => false,
    };
    // The branch taken may be a jump that stands on its own, as EXIT and GO TO do.
    let goes_out = |next: u32| !inside(next) || is_jump_out(a, next, here);
    decides && here_node.next.iter().any(|&next| goes_out(next))
}

fn is_jump_out(a: &Analysis<'_>, node: u32, here: Loop) -> bool {
    let node = &a.flow.nodes[node as usize];
    let Some(statement) = node.statement else { return false };
    let is_jump = matches!(
        a.file.tree.statements[statement as usize].kind,
        StatementKind::Exit(_) | StatementKind::Goto { .. } | StatementKind::Return | StatementKind::Stop
    );
    // In the last position a jump back is the loop itself, and its IF leaves by falling through.
    is_jump && (node.next.is_empty() || node.next.iter().any(|&next| next < here.first || next > here.last))
}

/// Whether the loop looks at another element each time, as one over the characters of a string does: then it waits for none.
fn moves_on(a: &Analysis<'_>, here: Loop, event: &Event) -> bool {
    let Some(place) = event.place() else { return false };
    let is_changed = |name: Symbol| {
        (here.first..=here.last).flat_map(|node| a.events_of(node)).any(|event| {
            matches!(event.kind, EventKind::Write { .. } | EventKind::Pass { .. })
                && event.variable() == Some(name)
        })
    };
    let mut open = vec![(place, false)];
    while let Some((id, is_subscript)) = open.pop() {
        let mut then = |id: ExprId, is_subscript: bool| open.push((id, is_subscript));
        match a.file.tree.expr(id).kind {
            ExprKind::Name(name) if is_subscript && is_changed(name) => return true,
            ExprKind::Reference { base, args } => {
                then(base, is_subscript);
                a.file.tree.list(args).iter().for_each(|&arg| then(arg, true));
            }
            ExprKind::Component { base, .. } => then(base, is_subscript),
            ExprKind::Operation { operands, .. } => {
                a.file.tree.list(operands).iter().for_each(|&operand| then(operand, is_subscript));
            }
            ExprKind::Paren(inner) => then(inner, is_subscript),
            ExprKind::Section { low, high, stride } => {
                [low, high, stride].into_iter().flatten().for_each(|bound| then(bound, true));
            }
            _ => {}
        }
    }
    false
}

/// Whether nothing in the loop writes the variable or makes the compiler load it.
fn polls(a: &Analysis<'_>, here: Loop, watch: &Watch) -> bool {
    let changes = |event: &Event| match event.kind {
        // A procedure that the compiler can look into, and that lets nobody else have the variable, changes nothing.
        EventKind::Pass { to: PassedTo::User(call), .. } if !a.is_opaque(&a.calls[call as usize]) => {
            let usage = a.usage(call, event);
            let may_load = usage.is_written || usage.is_shielded || usage.is_given_away;
            may_load && a.concerns(event, watch.memory)
        }
        EventKind::Write { .. } | EventKind::Pass { .. } => a.concerns(event, watch.memory),
        EventKind::Call(_) => watch.is_pointer,
        EventKind::Read { .. } | EventKind::Release { .. } => false,
    };
    (here.first..=here.last).all(|node| !a.events_of(node).iter().any(changes))
}

fn report(a: &Analysis<'_>, event: &Event, watch: &Watch) -> Finding {
    let variable = watch.memory.variable;
    let name = a.name(variable);
    let message = format!(
        "the loop waits for `{name}`, which others change, and nothing in it makes the compiler load `{name}` again"
    );
    let mut found =
        finding(a, "FR17", level(a, variable, Level::Error, OnDummy::Keep), variable, event.span, message);
    relate(
        &mut found,
        a.calls[watch.by as usize].span,
        format!("through this call others can change `{name}`"),
    );
    relate_declaration(a, &mut found, variable);
    explain(a, &mut found, variable, Side::Load, 0);
    repair::declare_volatile(a, &mut found, variable);
    if repair::has_attributes(a) {
        found.remedies.push(format!("declare `{name}` VOLATILE"));
    }
    found.remedies.push(format!(
        "call an empty external routine, compiled apart, with `{name}` as its argument in the loop"
    ));
    found
}
