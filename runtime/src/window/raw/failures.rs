//! What is left of a window after a failure: who may still write, and what each later call is told. Never ends a wait by
//! itself.
//!
//! Every call that waits ends in success, `Stalled` or `PeerLost`; after an end without success in the middle of an epoch
//! the window is broken: nobody is admitted any more, and the owner's views are refused until everybody who was admitted
//! is done, see [`RawWindow::is_quiet`].
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering;

use rma_automaton::Call;

use super::{Access, RawWindow};
use crate::error::{Error, ErrorKind, Evidence, Result};
use crate::liveness;
use crate::sync::phases::Reason;
use crate::team::Rank;

/// A rank that has ended, and how.
pub(super) type Lost = (Rank, Evidence);

/// Failure of a wait whose condition sees more than the wait itself.
pub(super) enum Failure {
    Lost(Lost),
    /// The rank has dropped its handle of the window, and so comes to nothing any more.
    Departed(Rank),
    Poisoned,
}

impl RawWindow {
    /// Refuses a call on a window that is out of use.
    #[inline(always)]
    #[track_caller]
    pub(super) fn refuse_poisoned(&self, call: &'static str) -> Result<()> {
        match (self.failed.get(), self.broken().get()) {
            (false, None) => Ok(()),
            (true, _) => Err(self.poisoned_again(call)),
            (false, Some(_)) => Err(self.poisoned_now(call)),
        }
    }

    /// The error of a window that goes with an epoch open. It is given once: by the call, or when the rank leaves the job.
    #[cold]
    #[track_caller]
    pub(crate) fn still_open(&self, call: &'static str) -> Error {
        self.open_is_reported.set(true);
        let open = self.ranks_where(|rank| self.targets[rank].access.get() != Access::None);
        let note = match self.posted.get() {
            true => "the own exposure was not waited for".to_owned(),
            false => format!("the access to ranks {open} was not completed"),
        };
        self.error(ErrorKind::EpochStillOpen, call).note(note)
    }

    /// Whether the window can't be freed now.
    pub(crate) fn has_open_epochs(&self) -> bool {
        !self.has_nothing_open() && (0..self.targets.len()).any(|at| self.verdict(Call::Free, at).is_some())
    }

    /// The error of the call that finds the window broken.
    #[cold]
    #[track_caller]
    pub(super) fn poisoned_now(&self, call: &'static str) -> Error {
        self.retreat();
        self.poisoned(call)
    }

    /// The error of every call after that.
    #[cold]
    #[track_caller]
    pub(super) fn poisoned_again(&self, call: &'static str) -> Error {
        self.retreat();
        let first = self.poisoned(call);
        let why = match (first.kind(), &first.context().note) {
            (ErrorKind::Poisoned, Some(note)) => note.clone(),
            _ => first.to_string(),
        };
        self.error(ErrorKind::Poisoned, call).note(format!("the window is out of use: {why}"))
    }

    /// Stops being admitted by phases, and admits nobody any more.
    #[cold]
    fn retreat(&self) {
        if !self.failed.replace(true) {
            // The exposure is not waited for any more; who is in it is what `is_quiet` looks at.
            self.posted.set(false);
            let own = self.control(self.me);
            own.word.0.poison();
            own.exposure.0.word.poison();
            own.exposure.0.posted.wake();
        }
    }

    #[cold]
    #[track_caller]
    pub(super) fn failure(&self, call: &'static str, failure: Failure) -> Error {
        match failure {
            Failure::Poisoned => self.poisoned_now(call),
            Failure::Departed(rank) => {
                let note = format!("rank {rank} has dropped its handle of the window");
                self.error(ErrorKind::WindowFreed, call).note(note)
            }
            Failure::Lost((rank, evidence)) => {
                self.error(ErrorKind::PeerLost, call).lost(rank).evidence(evidence)
            }
        }
    }

    /// Breaks the window after a wait in the middle of an epoch ended with `error`.
    #[cold]
    pub(super) fn break_after(&self, error: &Error) {
        let me = self.rank();
        let (rank, reason) = match (error.kind(), error.context().lost) {
            (ErrorKind::PeerLost, Some(rank)) => (rank, Reason::Lost),
            (ErrorKind::CollectiveMismatch, _) => (me, Reason::Mismatched),
            _ => (me, Reason::TimedOut),
        };
        self.break_window(rank.index(), reason);
    }

    /// Takes the window out of use for everybody and wakes whoever waits in a fence, for a post or for origins.
    #[cold]
    pub(super) fn break_window(&self, rank: usize, reason: Reason) {
        self.broken().set(rank as u32, reason);
        self.retreat();
        for at in 0..self.targets.len() {
            if self.targets[at].remote {
                self.break_remote(at, rank, reason);
                continue;
            }
            self.control(at).fences.0.arrivals.wake();
            self.control(at).exposure.0.posted.wake();
            self.control(at).ends.0.completed.wake();
        }
        self.ring();
    }

    /// Whether nobody is left that may still write to the own memory of a broken window; else the first that may.
    ///
    /// Nobody new is admitted: the own words are poisoned, and whoever comes late into a phase sees that the window is broken
    /// before it writes, as it says `is_writing` before it looks.
    #[cold]
    pub(super) fn is_quiet(&self) -> Result<(), Rank> {
        self.retreat();
        let segment = self.context.segment();
        let holder = self.control(self.me).word.0.state().holder();
        for rank in self.members.ranks() {
            let at = rank.index();
            if at == self.me {
                // An own access to the own memory is this handle's, whatever became of the exposure that let it in.
                match self.phase_open.get() || Access::Promised < self.targets[at].access.get() {
                    true => return Err(rank),
                    false => continue,
                }
            }
            let peer = self.peer(self.me, at);
            if self.has_departed(at) || liveness::cannot_act(segment, self.members.job_rank(rank)) {
                continue;
            }
            // Acquire: pairs with the Release in `unlock`.
            let shares = peer.shares.load(Ordering::Acquire) != 0;
            // What comes late from a phase of a rank without shared memory is refused below.
            let writing = !self.targets[at].remote && self.control(at).fences.0.phases.is_writing();
            if holder == Some(rank.0) || shares || writing || peer.origin.is_at_work() {
                return Err(rank);
            }
        }
        if let Some(served) = &self.served {
            served.shut();
        }
        Ok(())
    }

    #[inline]
    pub(super) fn is_broken(&self) -> bool {
        self.failed.get() || self.broken().get().is_some()
    }

    #[inline]
    pub(super) fn somebody_has_ended(&self) -> bool {
        liveness::ended(self.context.segment()) != 0
    }

    pub(super) fn evidence(&self, rank: Rank) -> Option<Evidence> {
        let job_rank = self.members.job_rank(rank);
        match rank == self.rank() {
            true => None,
            false => liveness::evidence(self.context.segment(), job_rank.0)
                .filter(|_| self.context.is_drained(job_rank)),
        }
    }

    /// Whether a rank has dropped its handle of the window.
    pub(super) fn has_departed(&self, rank: usize) -> bool {
        // Acquire: pairs with the Release in `drop`.
        self.peer(self.me, rank).departed.load(Ordering::Acquire) != 0
    }

    /// Whether any rank has dropped its handle.
    #[inline]
    pub(super) fn somebody_has_departed(&self) -> bool {
        // Acquire: pairs with the Release in `drop`.
        self.control(self.me).fate.0.departures.load(Ordering::Acquire) != 0
    }

    /// A member that has ended otherwise than in order.
    pub(super) fn failed_member(&self) -> Option<Lost> {
        if !self.somebody_has_ended() {
            return None;
        }
        self.members.ranks().find_map(|rank| match self.evidence(rank)? {
            Evidence::Finished => None,
            evidence => Some((rank, evidence)),
        })
    }

    /// Gives back what leaked guards hold: the handle goes, so nobody can use it any more.
    #[cold]
    pub(super) fn close_leaked(&self) {
        self.reclaim_views();
        if self.has_open_epochs()
            && !self.failed.get()
            && !self.open_is_reported.get()
            && !std::thread::panicking()
        {
            self.context.leave_open(self.still_open("drop of a window"));
        }
        if self.phase_open.replace(false) {
            self.control(self.me).fences.0.phases.end_writing();
            self.break_window(self.me, Reason::Dropped);
        }
        for at in 0..self.targets.len() {
            let target = Rank(at as u32);
            self.targets[at].nested.set(0);
            let closed = match self.targets[at].access.get() {
                Access::None => Ok(()),
                Access::Asked | Access::Promised => {
                    self.break_promise(at);
                    Ok(())
                }
                Access::Started => self.complete("drop", target),
                Access::Exclusive | Access::Shared => self.unlock("drop", target),
            };
            // A target that can't be reached is lost, which whoever needs it finds out.
            debug_assert!(closed.is_ok() || self.targets[at].remote, "{closed:?}");
        }
        self.abandon_exposure();
    }
}

/// Why the window is out of use, as an error of `call`.
impl RawWindow {
    #[cold]
    #[track_caller]
    fn poisoned(&self, call: &'static str) -> Error {
        let Some((rank, reason)) = self.broken().get() else {
            return self.error(ErrorKind::Poisoned, call);
        };
        let rank = Rank(rank);
        let evidence = match reason {
            Reason::Lost => self.context.evidence_of(self.members.job_rank(rank)),
            _ => None,
        };
        match (reason, evidence) {
            (Reason::Panicked, _) => {
                self.error(ErrorKind::PeerLost, call).lost(rank).evidence(Evidence::Panicked)
            }
            (Reason::Lost, Some(evidence)) => {
                self.error(ErrorKind::PeerLost, call).lost(rank).evidence(evidence)
            }
            (Reason::Lost, None) => {
                self.error(ErrorKind::Poisoned, call).note(format!("rank {rank} was lost"))
            }
            (Reason::TimedOut, _) => {
                let note =
                    format!("rank {rank} passed its time limit in a call on this window and went away");
                self.error(ErrorKind::Poisoned, call).note(note)
            }
            (Reason::Dropped, _) => {
                let note = format!("rank {rank} dropped an exposure while others were in it");
                self.error(ErrorKind::Poisoned, call).note(note)
            }
            (Reason::Departed, _) => {
                let other =
                    format!("the drop of its handle by rank {rank}, which comes to no fence any more");
                self.error(ErrorKind::CollectiveMismatch, call).other(other)
            }
            (Reason::Mismatched, _) => {
                self.error(ErrorKind::Poisoned, call).note("the ranks came to different collective calls")
            }
        }
    }
}
