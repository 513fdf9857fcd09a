//! # FR09: callback-state-in-register
//!
//! A variable is given to a call that registers callbacks, or a callback reaches it by host association, and this unit
//! reads it after calls that do not name it. The callback runs inside those calls and changes memory. Never reported for
//! variables in COMMON or in a module, for VOLATILE and ASYNCHRONOUS variables, or where an opaque call with the
//! variable as its argument stands before the read.
//!
//! ## What happens
//!
//! ```fortran
//! call MPI_GREQUEST_START(query, free, cancel, state, request, ierror)
//! state = 1
//! call MPI_WAIT(request, status, ierror)   ! runs free, which changes state
//! x = state                                ! 1 from a register
//! ```
//!
//! gfortran 12 gives the old value from -O1 on. The same holds for signal handlers and for anything else that runs
//! beside the program on its variables. Code that is right by luck of one compiler is not portable.
//!
//! ## What to do
//!
//! - VOLATILE: this is what it was made for.
//! - COMMON or a module variable.
//! - An opaque call with the variable as its argument before each read.

use super::repair::{self, Place};
use super::support::{
    OnDummy, Side, explain, finding, level, others, propose, relate, relate_declaration, shown,
};
use crate::dataflow::{Analysis, Event, EventKind, Memory, PassedTo, Step};
use crate::finding::{Finding, Level};
use crate::model::Step as BodyStep;
use crate::mpi::{Class, Part};
use crate::parse::{ExprId, ExprKind, StatementKind, Symbol, UnitKind};

pub(super) fn check(a: &Analysis<'_>, out: &mut Vec<Finding>) {
    let mut done: Vec<Symbol> = Vec::new();
    for (id, call) in a.calls.iter().enumerate() {
        let registers = a.class_of(id as u32) == Some(Class::Callback) || a.name(call.name) == "signal";
        if !registers {
            continue;
        }
        let mut shared: Vec<Symbol> =
            call.part(Part::State).and_then(|arg| a.file.tree.root(arg)).into_iter().collect();
        for &arg in call.args.iter().flatten() {
            shared.extend(shared_with(a, arg));
        }
        for variable in shared {
            if done.contains(&variable) || !a.is_unsafe(variable) {
                continue;
            }
            if let Some(found) = check_variable(a, id as u32, variable) {
                done.push(variable);
                out.push(found);
            }
        }
    }
}

/// The variables of this unit that an internal procedure reaches, when the argument names one.
fn shared_with(a: &Analysis<'_>, arg: ExprId) -> Vec<Symbol> {
    let tree = a.file.tree;
    let ExprKind::Name(name) = tree.expr(arg).kind else { return Vec::new() };
    let handler = a.file.model.iter().find(|(_, unit)| {
        unit.parent == Some(a.id)
            && matches!(unit.kind, UnitKind::Subroutine | UnitKind::Function)
            && unit.name.is_some_and(|own| own.symbol == name)
    });
    let Some((_, handler)) = handler else { return Vec::new() };
    let mut written = Vec::new();
    for step in &handler.body {
        let BodyStep::Statement(i) = step else { continue };
        let StatementKind::Assignment { target, .. } = tree.statements[*i as usize].kind else { continue };
        let Some(root) = tree.root(target) else { continue };
        let is_own =
            handler.variables.get(&root).is_some_and(|variable| variable.is_owned || variable.is_dummy);
        if !is_own && !written.contains(&root) {
            written.push(root);
        }
    }
    written
}

fn check_variable(a: &Analysis<'_>, registration: u32, variable: Symbol) -> Option<Finding> {
    let registered = a.calls[registration as usize].event;
    let memory = Memory::whole(variable);
    let callers = a.calls_behind(registered, |call| call.event != registered);
    let mut reads: Vec<(u32, u32)> = Vec::new();
    let mut pairs: Vec<(u32, u32)> = Vec::new();
    for call in callers {
        // Behind a call with the variable as its argument it is loaded again, whatever ran in there.
        if a.events.iter().any(|event| is_argument_of(event, call) && a.shields_load(event, memory)) {
            continue;
        }
        a.walk(a.calls[call as usize].event, |i, event| {
            if a.shields_load(event, memory) {
                return Step::Stop;
            }
            if matches!(event.kind, EventKind::Read { variable: own, .. } if own == variable) {
                pairs.push((i, call));
                if !reads.iter().any(|(read, _)| *read == i) {
                    reads.push((i, call));
                }
            }
            Step::On
        });
    }
    let &(first, call) = reads.iter().min()?;
    let name = a.name(variable);
    let message = format!(
        "`{name}` is read after {}, in which a callback may change it: the read may give the value from before{}",
        shown(a, call),
        others(reads.len() - 1),
    );
    let span = a.events[first as usize].span;
    let mut found =
        finding(a, "FR09", level(a, variable, Level::Error, OnDummy::Keep), variable, span, message);
    relate(
        &mut found,
        a.calls[registration as usize].span,
        format!("{} makes `{name}` known to the callback", shown(a, registration)),
    );
    relate(&mut found, a.calls[call as usize].span, "the callback may run in here".to_string());
    relate_declaration(a, &mut found, variable);
    explain(a, &mut found, variable, Side::Load, registered);
    propose(a, &mut found, variable, "before each read");
    // Behind the last of the calls that lead to the read, so that one edit is enough.
    let leading = pairs.iter().filter(|(read, _)| *read == first).map(|(_, call)| *call);
    let before_read = |call: &u32| a.calls[*call as usize].event < first;
    let last = leading.max_by_key(|call| (before_read(call), a.calls[*call as usize].event)).unwrap_or(call);
    repair::call(a, &mut found, Place::Behind(a.calls[last as usize].span));
    Some(found)
}

fn is_argument_of(event: &Event, call: u32) -> bool {
    match event.kind {
        EventKind::Pass { to: PassedTo::User(own) | PassedTo::Library(own, _), .. } => own == call,
        _ => false,
    }
}
