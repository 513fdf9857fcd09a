//! # FR01: window-read-from-register
//!
//! A variable is given to others as window memory, and this unit reads it after a synchronization call that does not
//! name it. Never reported for variables in COMMON or in a module, for VOLATILE and ASYNCHRONOUS variables, or where an
//! opaque call with the variable as its argument stands on every way to the read.
//!
//! ## What happens
//!
//! ```fortran
//! call MPI_WIN_CREATE(buff, size, 8, MPI_INFO_NULL, comm, win, ierror)
//! buff = 999
//! call MPI_WIN_FENCE(0, win, ierror)      ! another rank puts 777 into buff
//! call MPI_WIN_FENCE(0, win, ierror)
//! x = buff                                ! 999 from a register, or 777 from memory
//! ```
//!
//! MPI_WIN_FENCE has no argument `buff`, so the compiler may assume that `buff` is still what it was. gfortran 12 does
//! that from -O1 on. Code that is right by luck of one compiler is not portable: neither the MPI nor the Fortran
//! standard promises it.
//!
//! The finding stands at the declaration, once per variable. It is a warning when the unit never reads the variable
//! afterwards, when the variable is a dummy argument, whose caller may have protected it, or when it has SAVE.
//!
//! ## What to do
//!
//! - ASYNCHRONOUS (with `use mpi` or `use mpi_f08`): cheap, made for this.
//! - COMMON or a module variable: any external procedure may change it, and the compiler knows.
//! - VOLATILE: always right, slows down every access; not part of Fortran 77 and 90.
//! - An opaque call with `buff` as its argument after the closing synchronization, and before the opening one: FR08, FR13.

use super::repair::{self, Place};
use super::support::{
    OnDummy, Side, explain, finding, is_load, level, propose, relate, relate_declaration, shown,
    without_attempts,
};
use crate::dataflow::{Analysis, Event, EventKind, Step, Window};
use crate::finding::{Finding, Level};
use crate::model::Storage;
use crate::parse::Symbol;

pub(super) fn check(a: &Analysis<'_>, out: &mut Vec<Finding>) {
    let mut done = Vec::new();
    for window in &a.windows {
        if done.contains(&window.variable) || !a.is_unsafe(window.variable) {
            continue;
        }
        done.push(window.variable);
        out.extend(check_window(a, window));
    }
}

fn check_window(a: &Analysis<'_>, window: &Window) -> Option<Finding> {
    let variable = window.variable;
    let name = a.name(variable);
    let created = &a.calls[window.call as usize];
    let (first, has_shield) = first_read(a, window);
    let declared = a.resolve(variable).declared;
    let span = declared.unwrap_or(created.span);
    let mut found = match first {
        Some((read, sync)) => {
            let message = format!(
                "`{name}` is window memory and may stay in a register over {}, which does not name it",
                shown(a, sync)
            );
            let mut found =
                finding(a, "FR01", level(a, variable, Level::Error, OnDummy::Warn), variable, span, message);
            relate(&mut found, created.span, format!("{} opens `{name}` to others", shown(a, window.call)));
            relate(
                &mut found,
                a.calls[sync as usize].span,
                "others may have changed it when this returns".to_string(),
            );
            relate(
                &mut found,
                a.events[read as usize].span,
                "this read may give the value from before".to_string(),
            );
            found
        }
        None if has_shield || is_handed_on(a, window) => return None,
        None => {
            let message = format!("`{name}` is window memory that the compiler may keep in a register");
            let mut found = finding(a, "FR01", Level::Warning, variable, span, message);
            relate(&mut found, created.span, format!("{} opens `{name}` to others", shown(a, window.call)));
            found
        }
    };
    if declared.is_some() {
        found.label = "declared here";
    }
    relate_declaration(a, &mut found, variable);
    explain(a, &mut found, variable, Side::Load, created.event);
    propose(
        a,
        &mut found,
        variable,
        "after the synchronization that closes the exposure and before the access",
    );
    if let Some((_, sync)) = first {
        repair::call(a, &mut found, Place::Behind(a.calls[sync as usize].span));
    }
    Some(found)
}

/// Whether the window is made for the caller over the caller's memory, which nothing in here touches: the finding
/// belongs there.
fn is_handed_on(a: &Analysis<'_>, window: &Window) -> bool {
    let is_dummy = |name: Symbol| a.resolve(name).storage == Storage::Dummy;
    let touches = |event: &Event| {
        matches!(event.kind, EventKind::Read { .. } | EventKind::Write { .. })
            && a.concerns(event, window.memory())
    };
    is_dummy(window.variable)
        && a.file.tree.root(window.handle).is_some_and(is_dummy)
        && !a.events.iter().any(touches)
}

/// The first read that a synchronization of the window leads to without an opaque call in between, and whether there
/// is such an opaque call at all.
fn first_read(a: &Analysis<'_>, window: &Window) -> (Option<(u32, u32)>, bool) {
    let created = a.calls[window.call as usize].event;
    let mut syncs = Vec::new();
    let mut has_shield = false;
    a.walk(created, |_, event| match event.kind {
        EventKind::Call(call) => {
            let call_record = &a.calls[call as usize];
            if a.synchronizes(call_record, window) {
                syncs.push(call);
            }
            if a.closes(call, window) { Step::Stop } else { Step::On }
        }
        _ => {
            has_shield |= a.shields_store(event, window.memory());
            Step::On
        }
    });
    let mut reads: Vec<(u32, u32)> = Vec::new();
    for sync in syncs {
        a.walk(a.calls[sync as usize].event, |i, event| {
            if a.shields_load(event, window.memory()) {
                return Step::Stop;
            }
            if is_load(a, event, window.memory()) && !reads.iter().any(|(read, _)| *read == i) {
                reads.push((i, sync));
            }
            Step::On
        });
    }
    (without_attempts(a, &reads, |(event, _)| *event).first().copied(), has_shield)
}
