//! # FR20: buffer-ends-before-operation
//!
//! A buffer is deallocated, or leaves its scope, while an operation or a window still works on it. Never reported for
//! variables with SAVE, of a module, of COMMON or of the main program, or where the operation may have been finished.
//!
//! ## What happens
//!
//! ```fortran
//! subroutine begin(request)
//!   real :: buf(100)
//!   call MPI_IRECV(buf, 100, MPI_REAL, 0, 7, comm, request, ierror)
//! end subroutine                           ! buf is gone, and the message still comes
//! ```
//!
//! The library writes into memory that belongs to somebody else by then. This is wrong at -O0 too. It is an error where the
//! operation is open on every way, and a note where it is open on some way.
//!
//! ## What to do
//!
//! The same in each binding: finish the operation first, or let the buffer live longer.
//!
//! ```fortran
//! subroutine begin(buf, request)
//!   real, asynchronous :: buf(100)         ! of the caller, who waits for the request
//! ```
//!
//! - SAVE, a module variable or COMMON, if there is one operation at a time.
//! - DEALLOCATE behind the call that finishes the operation, or behind MPI_WIN_FREE.
//! - MPI_WIN_DETACH before memory of a dynamic window ends, MPI_BUFFER_DETACH before an attached buffer does.

use rma_source::Span;

use super::support::{finding, relate, shown};
use crate::dataflow::{Analysis, Change, Event, EventKind, Handle, Memory, Phase, States, Track, Window};
use crate::finding::{Finding, Level};
use crate::model::Storage;
use crate::mpi::{Class, Part};
use crate::parse::{Attributes, ExprId, Symbol, UnitKind};
use crate::program::Certainty;

pub(super) fn check(a: &Analysis<'_>, out: &mut Vec<Finding>) {
    for operation in &a.operations {
        if operation.phase == Phase::Call {
            continue;
        }
        let life = match operation.handle {
            Handle::Request(handle) | Handle::Window(handle) => Life::Handle(handle),
            Handle::None => Life::Unknown,
        };
        let track = a.track(|event| a.change(operation, event));
        judge(a, &track, operation.memory(), operation.call, life, out);
    }
    for window in &a.windows {
        let track = a.track(|event| window_change(a, window, event));
        judge(a, &track, window.memory(), window.call, Life::Handle(window.handle), out);
    }
    for call in 0..a.calls.len() as u32 {
        if a.class_of(call) == Some(Class::Attach) {
            check_attached(a, call, out);
        }
    }
}

/// A window is open from its creation to its end.
fn window_change(a: &Analysis<'_>, window: &Window, event: &Event) -> Change {
    let EventKind::Call(call) = event.kind else {
        let is_handle = a.concerns_handle(event, Handle::Window(window.handle));
        return match event.kind {
            EventKind::Write { .. } if is_handle => Change::MayClose,
            EventKind::Pass { to: crate::dataflow::PassedTo::User(call), .. }
                if is_handle && a.usage(call, event).is_given_away =>
            {
                Change::MayClose
            }
            _ => Change::None,
        };
    };
    let ends = a.closes(call, window);
    match a.certainty(call) {
        Certainty::Always if call == window.call => Change::Opens,
        Certainty::Perhaps if call == window.call => Change::MayOpen,
        Certainty::Always if ends => Change::Closes,
        _ if ends => Change::MayClose,
        _ => Change::None,
    }
}

/// Memory that the library works in until any call takes it back.
fn check_attached(a: &Analysis<'_>, attach: u32, out: &mut Vec<Finding>) {
    let Some(place) = a.calls[attach as usize].part(Part::Attached) else { return };
    let Some(variable) = a.file.tree.root(place) else { return };
    let track = a.track(|event| match event.kind {
        EventKind::Call(call) if call == attach => match a.certainty(call) {
            Certainty::Always => Change::Opens,
            Certainty::Perhaps => Change::MayOpen,
        },
        EventKind::Call(call) if a.class_of(call) == Some(Class::Detach) => Change::Closes,
        // It may detach the memory; nothing is known about it.
        EventKind::Call(call) if a.class_of(call).is_none() && !a.reaches_known_only(call) => {
            Change::MayClose
        }
        _ => Change::None,
    });
    judge(a, &track, Memory { variable, place: Some(place) }, attach, Life::Unlimited, out);
}

/// How long something lives that works on memory.
#[derive(Clone, Copy)]
enum Life {
    /// As long as this handle.
    Handle(ExprId),
    /// It is forgotten.
    Unknown,
    /// Until a call ends it.
    Unlimited,
}

fn judge(a: &Analysis<'_>, track: &Track, memory: Memory, call: u32, life: Life, out: &mut Vec<Finding>) {
    let variable = memory.variable;
    let name = a.name(variable);
    for (event, state) in a.events.iter().zip(&track.before) {
        let is_release = matches!(event.kind, EventKind::Release { .. }) && a.concerns(event, memory);
        if is_release && state.is_open() {
            let message = format!("`{name}` is deallocated while {} still works on it", shown(a, call));
            push(a, variable, call, Level::Error, event.span, message, out);
            return;
        }
    }
    let resolved = a.resolve(variable);
    let is_short_lived = resolved.storage == Storage::Local
        && !matches!(a.unit.kind, UnitKind::Program | UnitKind::Module | UnitKind::Submodule)
        && a.unit.variables.contains_key(&variable)
        && !resolved.attributes.has(Attributes::SAVE)
        && !resolved.attributes.has(Attributes::POINTER)
        && !resolved.is_equivalenced;
    // A handle that ends with the unit as well is forgotten, which is another matter.
    let outlives = match life {
        Life::Handle(handle) => a.file.tree.root(handle).is_some_and(|root| {
            matches!(a.resolve(root).storage, Storage::Dummy | Storage::Module | Storage::Common)
        }),
        Life::Unknown => false,
        Life::Unlimited => true,
    };
    if !is_short_lived || !outlives {
        return;
    }
    let ends = |wanted: fn(States) -> bool| track.ends.iter().find(|(_, state)| wanted(*state));
    let (level, end) = match (ends(States::is_open), ends(States::may_be_open)) {
        (Some(end), _) => (Level::Error, end),
        (None, Some(end)) => (Level::Note, end),
        (None, None) => return,
    };
    let Some(statement) = a.flow.nodes[end.0 as usize].statement else { return };
    let until = match life {
        Life::Unlimited => "until it is detached",
        _ => "for a handle that lives on",
    };
    let message = format!("`{name}` ends here while {} still works on it, {until}", shown(a, call));
    push(a, variable, call, level, a.file.tree.statements[statement as usize].span, message, out);
}

fn push(
    a: &Analysis<'_>,
    variable: Symbol,
    call: u32,
    level: Level,
    span: Span,
    message: String,
    out: &mut Vec<Finding>,
) {
    let mut found = finding(a, "FR20", level, variable, span, message);
    relate(&mut found, a.calls[call as usize].span, format!("{} is given the buffer here", shown(a, call)));
    if let Some(declared) = a.resolve(variable).declared {
        relate(&mut found, declared, "declared here".to_string());
    }
    found.remedies.push("finish the operation, or free the window, first".to_string());
    found.remedies.push(format!(
        "let `{}` live longer: an argument of the caller, a module variable, SAVE",
        a.name(variable)
    ));
    let is_known =
        |other: &Finding| other.rule == "FR20" && other.span == span && other.variable == found.variable;
    if !out.iter().any(is_known) {
        out.push(found);
    }
}
