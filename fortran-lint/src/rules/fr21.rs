//! # FR21: epoch-out-of-order
//!
//! A one-sided call that MPI forbids where it stands, whatever way the program took to it: a transfer outside an epoch, a
//! COMPLETE without START, a WAIT without POST, a second LOCK of one rank, styles of synchronization that overlap, a window
//! that is freed while an epoch is open. Never reported where only some of the ways are wrong, for a window that comes from
//! elsewhere, or for one that may be another under a second name.
//!
//! ## What happens
//!
//! ```fortran
//! call MPI_WIN_LOCK(MPI_LOCK_SHARED, 1, 0, win, ierror)
//! call MPI_WIN_UNLOCK(1, win, ierror)
//! call MPI_PUT(buf, 1, MPI_REAL, 1, disp, 1, MPI_REAL, win, ierror)   ! behind the lock
//! ```
//!
//! MPI libraries check this seldom. The transfer may be lost, come later, or end the program. The optimiser has no part in
//! it. The rules are those of one table, which the runtime of this project obeys as well.
//!
//! ## What to do
//!
//! The same in each binding: open the epoch before, close it once, and end one style of synchronization before the next
//! begins.
//!
//! ```fortran
//! call MPI_WIN_LOCK(MPI_LOCK_SHARED, 1, 0, win, ierror)
//! call MPI_PUT(buf, 1, MPI_REAL, 1, disp, 1, MPI_REAL, win, ierror)
//! call MPI_WIN_UNLOCK(1, win, ierror)
//! ```

use rma_automaton::ErrorKind;
use rma_source::FileId;

use super::support::{relate, shown};
use crate::dataflow::{Analysis, Epochs, EventKind, Fault};
use crate::finding::{Finding, Level};
use crate::mpi::Part;

pub(super) fn check(a: &Analysis<'_>, out: &mut Vec<Finding>) {
    if !a.calls.iter().any(|call| call.part(Part::Win).is_some()) {
        return;
    }
    for fault in Epochs::new(a).faults() {
        out.extend(report(a, &fault));
    }
}

fn report(a: &Analysis<'_>, fault: &Fault) -> Option<Finding> {
    let event = &a.events[fault.event as usize];
    let EventKind::Call(call) = event.kind else { return None };
    let window = a.name(a.file.tree.root(fault.window)?);
    let name = shown(a, call);
    let (what, remedy) = told(fault.kind)?;
    let message = format!("{name} on `{window}`: {what}");
    let mut found = Finding {
        rule: "FR21",
        level: Level::Error,
        file: FileId(0),
        span: event.span,
        label: "",
        message,
        variable: window.to_string(),
        because: Vec::new(),
        related: Vec::new(),
        repairs: Vec::new(),
        remedies: vec![remedy.to_string()],
    };
    // The last call on the window in the text before this one is what a reader looks for.
    let before = a.calls.iter().enumerate().filter(|(_, other)| {
        other.event < fault.event
            && other.part(Part::Win).is_some_and(|own| a.file.tree.same(own, fault.window))
    });
    if let Some((other, record)) = before.max_by_key(|(_, other)| other.event) {
        relate(
            &mut found,
            record.span,
            format!("the call on `{window}` before it is {}", shown(a, other as u32)),
        );
    }
    Some(found)
}

/// What is wrong, and what helps.
fn told(kind: ErrorKind) -> Option<(&'static str, &'static str)> {
    Some(match kind {
        ErrorKind::TransferOutsideEpoch => (
            "a transfer outside an epoch that reaches its target",
            "open an epoch before the transfer: a fence, MPI_WIN_START or MPI_WIN_LOCK",
        ),
        ErrorKind::StartNested => {
            ("an access epoch is open already", "end it by MPI_WIN_COMPLETE before the next MPI_WIN_START")
        }
        ErrorKind::CompleteWithoutStart => {
            ("no access epoch is open", "pair each MPI_WIN_COMPLETE with one MPI_WIN_START before it")
        }
        ErrorKind::AlreadyPosted => {
            ("the window is posted already", "end the exposure by MPI_WIN_WAIT before the next MPI_WIN_POST")
        }
        ErrorKind::WaitWithoutPost => {
            ("the window is not posted", "pair each MPI_WIN_WAIT with one MPI_WIN_POST before it")
        }
        ErrorKind::LockHeld => {
            ("the lock is held already", "end it by MPI_WIN_UNLOCK before the next MPI_WIN_LOCK of that rank")
        }
        ErrorKind::NotLocked => {
            ("no lock is held for it", "take the lock by MPI_WIN_LOCK or MPI_WIN_LOCK_ALL before")
        }
        ErrorKind::MixedSync => (
            "an epoch of another style is open",
            "end the one style before the other begins; a fence ends a phase with MPI_MODE_NOSUCCEED",
        ),
        ErrorKind::EpochStillOpen => (
            "an epoch is still open",
            "end every epoch before the window is freed, and every phase that has transfers by a fence without MPI_MODE_NOPRECEDE",
        ),
        ErrorKind::WindowFreed => ("the window has been freed", "free the window behind its last use"),
        _ => return None,
    })
}
