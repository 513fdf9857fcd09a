//! # FR22: update-not-made-visible
//!
//! Another process has updated window memory under a lock, the processes have met at a barrier, and this one reads its own
//! memory without a call on the window that makes the update visible to it. Never reported where a fence, MPI_WIN_POST,
//! MPI_WIN_LOCK or MPI_WIN_SYNC of this process may stand between, or for updates that cannot concern what is read.
//!
//! ## What happens
//!
//! ```fortran
//! if (rank == 1) then
//!   call MPI_WIN_LOCK(MPI_LOCK_EXCLUSIVE, 0, 0, win, ierror)
//!   call MPI_PUT(five, 1, MPI_REAL, 0, disp, 1, MPI_REAL, win, ierror)   ! into y of rank 0
//!   call MPI_WIN_UNLOCK(0, win, ierror)
//! end if
//! call MPI_BARRIER(comm, ierror)
//! if (rank == 0) x = y                     ! may be the value from before
//! ```
//!
//! A window has two copies, and the unlock of another process, even with a barrier behind it, brings the update into the
//! public one only. Where the hardware keeps both the same the program is right by luck. The optimiser has no part in it;
//! what it may do besides is FR01.
//!
//! ## What to do
//!
//! The same in each binding: a call of one's own on the window between the barrier and the read.
//!
//! ```fortran
//! call MPI_BARRIER(comm, ierror)
//! call MPI_WIN_LOCK(MPI_LOCK_SHARED, 0, 0, win, ierror)   ! or MPI_WIN_SYNC within an epoch that is open
//! if (rank == 0) x = y
//! call MPI_WIN_UNLOCK(0, win, ierror)
//! ```

use super::support::{finding, relate, shown};
use crate::dataflow::{Analysis, Call, Epochs, EventKind, Step, Window};
use crate::finding::{Finding, Level};
use crate::mpi::{Class, Direction, Part};
use crate::parse::{ExprId, ExprKind};

pub(super) fn check(a: &Analysis<'_>, out: &mut Vec<Finding>) {
    for window in &a.windows {
        check_window(a, window, out);
    }
}

/// An update under a lock, and a barrier at which the processes meet behind it.
#[derive(Clone, Copy)]
struct Update {
    transfer: u32,
    barrier: u32,
}

fn check_window(a: &Analysis<'_>, window: &Window, out: &mut Vec<Finding>) {
    let updates = updates(a, window);
    if updates.is_empty() {
        return;
    }
    let mut points: Vec<u32> = updates.iter().map(|update| a.calls[update.barrier as usize].event).collect();
    points.sort_unstable();
    points.dedup();
    for load in Epochs::new(a).stale_loads(window.handle, window.variable, &points) {
        let event = &a.events[load as usize];
        let concerns = |update: &&Update| {
            let place = event.place();
            !place.is_some_and(|place| is_apart(a, &a.calls[update.transfer as usize], place))
        };
        let Some(update) = updates.iter().find(concerns) else { continue };
        let name = a.name(window.variable);
        let message = format!(
            "`{name}` is read after others may have updated it by {} under a lock, and no call of this process makes the update visible",
            shown(a, update.transfer)
        );
        let mut found = finding(a, "FR22", Level::Error, window.variable, event.span, message);
        relate(
            &mut found,
            a.calls[window.call as usize].span,
            format!("{} opens `{name}` to others", shown(a, window.call)),
        );
        relate(
            &mut found,
            a.calls[update.transfer as usize].span,
            "another process may run this".to_string(),
        );
        relate(
            &mut found,
            a.calls[update.barrier as usize].span,
            "here the processes meet, and no memory is synchronized".to_string(),
        );
        found.remedies.push("lock the own window around the read".to_string());
        found.remedies.push("call MPI_WIN_SYNC before the read, in an epoch that is open".to_string());
        found.remedies.push("call MPI_WIN_FENCE in place of the barrier".to_string());
        if !out.iter().any(|other| other.rule == found.rule && other.span == found.span) {
            out.push(found);
        }
    }
}

fn updates(a: &Analysis<'_>, window: &Window) -> Vec<Update> {
    let names_window =
        |call: &Call| call.part(Part::Win).is_some_and(|own| a.may_be_same(own, window.handle));
    let is = |call: &Call, classes: &[Class]| {
        call.procedure.is_some_and(|procedure| classes.contains(&procedure.class))
    };
    let mut updates = Vec::new();
    for lock in a.calls.iter().filter(|call| is(call, &[Class::Lock]) && names_window(call)) {
        // Behind its unlock a transfer belongs to something else.
        let mut transfers = Vec::new();
        a.walk(lock.event, |_, event| {
            let EventKind::Call(call) = event.kind else { return Step::On };
            let record = &a.calls[call as usize];
            if !names_window(record) {
                return Step::On;
            }
            if is(record, &[Class::Transfer]) && writes_target(record) {
                transfers.push(call);
            }
            if is(record, &[Class::Unlock]) { Step::Stop } else { Step::On }
        });
        for transfer in transfers {
            let ends = a.calls_behind(a.calls[transfer as usize].event, |call| {
                is(call, &[Class::Unlock, Class::Flush]) && names_window(call)
            });
            for end in ends {
                for barrier in a.calls_behind(a.calls[end as usize].event, |call| is(call, &[Class::Barrier]))
                {
                    updates.push(Update { transfer, barrier });
                }
            }
        }
    }
    updates
}

/// Whether a transfer changes memory at its target: all but a plain get do.
fn writes_target(call: &Call) -> bool {
    let Some(procedure) = call.procedure else { return false };
    procedure.arguments.iter().any(|argument| argument.part == Part::Buffer(Direction::In))
}

/// Whether the update certainly goes to other elements than the one that is read: all numbers are written down.
fn is_apart(a: &Analysis<'_>, transfer: &Call, place: ExprId) -> bool {
    let tree = a.file.tree;
    let ExprKind::Reference { args, .. } = tree.expr(place).kind else { return false };
    let &[index] = tree.list(args) else { return false };
    let number = |keyword: &str| transfer.named(keyword).and_then(|arg| a.file.tree.int(plain(a, arg)));
    let (Some(index), Some(first), Some(count)) =
        (tree.int(index), number("target_disp"), number("target_count").or(Some(1)))
    else {
        return false;
    };
    let element = index.saturating_sub(1);
    element < first || first + count <= element
}

/// `0_kind` and `int(0, kind)` are numbers as well.
fn plain(a: &Analysis<'_>, arg: ExprId) -> ExprId {
    let tree = a.file.tree;
    match tree.expr(arg).kind {
        ExprKind::Reference { base, args } if matches!(tree.expr(base).kind, ExprKind::Name(name) if a.name(name) == "int") => {
            tree.list(args).first().copied().unwrap_or(arg)
        }
        _ => arg,
    }
}
