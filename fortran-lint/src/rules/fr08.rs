//! # FR08: window-store-left-in-register
//!
//! A window variable is assigned, and the next call that lets others see the window does not name it: fence, post,
//! unlock, barrier. The value may still be in a register, or the store may never happen. Never reported for variables
//! in COMMON or in a module, for VOLATILE and ASYNCHRONOUS variables, or where a call with the variable as its argument
//! stands between the store and the opening call.
//!
//! ## What happens
//!
//! ```fortran
//! buff = i
//! call MPI_WIN_FENCE(0, win, ierror)      ! another rank gets buff
//! call MPI_WIN_FENCE(0, win, ierror)
//! buff = 0
//! ```
//!
//! gfortran 12 removes the first store from -O1 on: nothing that it sees reads it. A store that is only late may
//! destroy what a remote put has written in the meantime. Code that is right by luck of one compiler is not portable.
//!
//! An offer of Put/Get/Offer opens the memory that it names. Where that is what a Cray pointer leads to, it may be a variable
//! that has another name here, and of pointees the compiler assumes that they are nothing else.
//!
//! Of two stores to the same element with one fence between them only the second counts: a transfer in between would
//! be an error of its own. Where every transfer in sight puts into the window and a sync call follows the closing
//! synchronization on every way, the store cannot be lost, and nothing is reported.
//!
//! It is a warning for a dummy argument, whose caller may have protected it, and with SAVE.
//!
//! ## What to do
//!
//! - ASYNCHRONOUS, COMMON, a module variable or VOLATILE, as for FR01.
//! - An opaque call with `buff` as its argument (FR13) between the store and the opening call. After it is too late (FR14).

use std::collections::BTreeMap;

use super::repair::{self, Place};
use super::support::{
    OnDummy, Side, explain, finding, is_store, level, others, propose, relate, relate_declaration, shown,
};
use crate::dataflow::{Analysis, EventKind, Memory, Step, Window};
use crate::finding::{Finding, Level};
use crate::model::{Step as BodyStep, Storage};
use crate::mpi::{Class, Part};
use crate::parse::{ExprId, ExprKind, StatementKind, Symbol};

pub(super) fn check(a: &Analysis<'_>, out: &mut Vec<Finding>) {
    check_offers(a, out);
    for window in &a.windows {
        if !a.is_unsafe(window.variable) {
            continue;
        }
        for found in check_window(a, window) {
            let is_known = out.iter().any(|other| other.rule == found.rule && other.span == found.span);
            if !is_known {
                out.push(found);
            }
        }
    }
}

/// Offers of memory that a variable of this unit is as well.
fn check_offers(a: &Analysis<'_>, out: &mut Vec<Finding>) {
    for operation in &a.operations {
        let offers = operation.is_offer || a.class_of(operation.call) == Some(Class::Offer);
        if !offers || a.resolve(operation.variable).storage != Storage::Pointee {
            continue;
        }
        for variable in under_pointee(a, operation.variable) {
            if !a.is_unsafe(variable) {
                continue;
            }
            let memory = Memory::whole(variable);
            let stores = a.events.iter().enumerate().filter(|(_, event)| is_store(a, event, memory));
            let missed: Vec<u32> = stores
                .map(|(i, _)| i as u32)
                .filter(|&store| reaches(a, store, operation.call, memory))
                .collect();
            if !missed.is_empty() {
                out.push(report(a, variable, operation.call, operation.call, &missed));
            }
        }
    }
}

/// Whether a store may still be in a register when a call is made.
fn reaches(a: &Analysis<'_>, store: u32, call: u32, memory: Memory) -> bool {
    let mut is_reached = false;
    a.walk(store, |i, event| {
        is_reached |= matches!(event.kind, EventKind::Call(own) if own == call);
        match a.shields_store(event, memory) || (i != store && is_store(a, event, memory)) {
            true => Step::Stop,
            false => Step::On,
        }
    });
    is_reached
}

/// The variables whose addresses the Cray pointer of a pointee is given.
fn under_pointee(a: &Analysis<'_>, pointee: Symbol) -> Vec<Symbol> {
    let tree = a.file.tree;
    let statements = || {
        a.unit.body.iter().filter_map(|step| match step {
            BodyStep::Statement(i) => Some(&tree.statements[*i as usize].kind),
            BodyStep::Mark(_) => None,
        })
    };
    let is_pointer = |name: Symbol| {
        statements().any(|kind| match kind {
            StatementKind::CrayPointer(pairs) => {
                pairs.iter().any(|(pointer, entity)| pointer.symbol == name && entity.name.symbol == pointee)
            }
            _ => false,
        })
    };
    let mut found: Vec<Symbol> = statements()
        .filter_map(|kind| {
            let StatementKind::Assignment { target, value } = kind else { return None };
            let ExprKind::Name(pointer) = tree.expr(*target).kind else { return None };
            let ExprKind::Reference { base, args } = tree.expr(*value).kind else { return None };
            let is_address = matches!(tree.expr(base).kind, ExprKind::Name(name) if a.name(name) == "loc");
            let place = tree.list(args).first().copied()?;
            (is_address && is_pointer(pointer)).then(|| tree.root(place))?
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn check_window(a: &Analysis<'_>, window: &Window) -> Vec<Finding> {
    let (variable, memory) = (window.variable, window.memory());
    let created = a.calls[window.call as usize].event;
    let mut stores: Vec<(u32, ExprId)> = Vec::new();
    a.walk(created, |i, event| {
        if let EventKind::Write { place, .. } = event.kind
            && is_store(a, event, memory)
        {
            stores.push((i, place));
        }
        match event.kind {
            EventKind::Call(call) if a.closes(call, window) => Step::Stop,
            _ => Step::On,
        }
    });
    // The stores that each opening call may miss.
    let mut missed: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for &(store, place) in &stores {
        a.walk(store, |i, event| {
            if a.shields_store(event, memory) {
                return Step::Stop;
            }
            match event.kind {
                EventKind::Write { variable: own, place: other, .. }
                    if own == variable && i != store && a.file.tree.same(place, other) =>
                {
                    Step::Stop
                }
                EventKind::Call(call) if a.closes(call, window) => Step::Stop,
                EventKind::Call(call) if a.opens(&a.calls[call as usize], window) => {
                    if !cannot_be_missed(a, window, store, place, call) {
                        missed.entry(call).or_default().push(store);
                    }
                    Step::Stop
                }
                _ => Step::On,
            }
        });
    }
    missed.iter().map(|(&call, stores)| report(a, variable, window.call, call, stores)).collect()
}

fn moves(a: &Analysis<'_>, call: u32, window: &Window) -> bool {
    a.class_of(call) == Some(Class::Transfer)
        && a.calls[call as usize].part(Part::Win).is_some_and(|own| a.may_be_same(own, window.handle))
}

/// Whether a late or lost store does no harm in a correct program.
fn cannot_be_missed(a: &Analysis<'_>, window: &Window, store: u32, place: ExprId, opening: u32) -> bool {
    let (variable, memory) = (window.variable, window.memory());
    let opened = a.calls[opening as usize].event;
    if a.class_of(opening) == Some(Class::Fence) {
        // Overwritten before anything else concerns the window: no transfer can have looked in between.
        let mut is_overwritten = false;
        let mut is_used = false;
        a.walk(opened, |i, event| match event.kind {
            EventKind::Write { variable: own, place: other, .. }
                if own == variable && i != store && a.file.tree.same(place, other) =>
            {
                is_overwritten = true;
                Step::Stop
            }
            EventKind::Call(call)
                if moves(a, call, window) || a.synchronizes(&a.calls[call as usize], window) =>
            {
                is_used = true;
                Step::Stop
            }
            _ => Step::On,
        });
        if is_overwritten && !is_used {
            return true;
        }
    }
    let transfers: Vec<u32> = (0..a.calls.len() as u32).filter(|&call| moves(a, call, window)).collect();
    let only_puts = !transfers.is_empty()
        && transfers.iter().all(|&call| {
            let name = a.calls[call as usize].procedure.map(|procedure| procedure.name);
            matches!(name, Some("mpi_put" | "mpi_rput" | "mpi_accumulate" | "mpi_raccumulate"))
        });
    if !only_puts {
        return false;
    }
    let mut is_repeated = false;
    let reaches_end = a.walk(opened, |_, event| {
        // From here on the store has happened.
        if a.shields_store(event, memory) {
            return Step::Stop;
        }
        is_repeated |= matches!(event.kind, EventKind::Write { .. }) && a.concerns(event, memory);
        Step::On
    });
    !reaches_end && !is_repeated
}

fn report(a: &Analysis<'_>, variable: Symbol, given: u32, opening: u32, stores: &[u32]) -> Finding {
    let name = a.name(variable);
    let last = stores.iter().copied().max().unwrap_or_default();
    let span = a.events[last as usize].span;
    let message = format!(
        "`{name}` is window memory and assigned before {}, which does not name it: others may not see the value{}",
        shown(a, opening),
        others(stores.len() - 1),
    );
    let mut found =
        finding(a, "FR08", level(a, variable, Level::Error, OnDummy::Warn), variable, span, message);
    if given != opening {
        let message = format!("{} opens `{name}` to others", shown(a, given));
        relate(&mut found, a.calls[given as usize].span, message);
    }
    relate(
        &mut found,
        a.calls[opening as usize].span,
        format!("{} lets others look at memory", shown(a, opening)),
    );
    relate_declaration(a, &mut found, variable);
    explain(a, &mut found, variable, Side::Store, last);
    propose(a, &mut found, variable, "between the store and the call that opens the window");
    repair::call(a, &mut found, Place::Before(a.calls[opening as usize].span));
    found
}
