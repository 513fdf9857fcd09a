//! Waiting: spin, yield, sleep; end on a death or on the time limit. Never holds a lock while it waits.

use std::panic::Location;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

use super::board::{self, Elsewhere, Shown, Sight};
use crate::error::{Error, ErrorKind, Evidence, Result};
use crate::job::RankContext;
use crate::rank::{Members, Rank};
use crate::sync::event::Event;
use crate::sys;

/// Whom a wait needs: the ranks whose death ends it.
#[derive(Clone, Copy)]
pub(crate) enum Needs<'a> {
    /// Every member of the team.
    All,
    /// One member, by its rank in the team.
    One(Rank),
    /// At least one of these, by their ranks in the team.
    AnyOf(&'a [Rank]),
    /// Every member of which this is true when it is asked, by its rank in the team.
    Those(&'a dyn Fn(Rank) -> bool),
}

/// What a wait is, for the board and for messages.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// A collective call: every member must come to the same one.
    Collective,
    /// A call aimed at one member, by its rank in the team.
    Toward(Rank),
    /// A call that others end.
    Any,
}

/// A wait: what for, whose death ends it, and how messages and the board describe it.
#[derive(Clone, Copy)]
pub(crate) struct WaitFor<'a> {
    pub(crate) call: &'static str,
    pub(crate) window: Option<u64>,
    pub(crate) team: &'a Members,
    pub(crate) needs: Needs<'a>,
    pub(crate) act: Act,
    /// A number that explains the wait, and its name: `("exposure", 7)`.
    pub(crate) detail: Option<(&'static str, u64)>,
    /// Somebody without whom the wait can't end, where `needs` doesn't tell: asked at every look, for reports.
    pub(crate) blocker: &'a dyn Fn() -> Option<Rank>,
}

impl WaitFor<'_> {
    /// Whether a member has to do something before this wait can end.
    fn needs_now(&self, rank: Rank) -> bool {
        match self.needs {
            Needs::All => true,
            Needs::One(needed) => rank == needed,
            Needs::Those(needed) => needed(rank),
            Needs::AnyOf(_) => false,
        }
    }
}

/// For waits whose `needs` tells, or of which nobody knows who ends them.
pub(crate) const NO_BLOCKER: &dyn Fn() -> Option<Rank> = &|| None;

impl<'a> WaitFor<'a> {
    /// A collective call of the team: the meeting with this number, which is the same at all members.
    pub(crate) fn collective(call: &'static str, team: &'a Members, meeting: u64) -> WaitFor<'a> {
        let (act, detail) = (Act::Collective, Some(("meeting", meeting)));
        WaitFor { call, window: None, team, needs: Needs::All, act, detail, blocker: NO_BLOCKER }
    }
}

impl RankContext {
    /// Waits until `ready` gives a value, which may depend on everything that is written before `event` is notified.
    ///
    /// Budget: when `ready` gives a value at once, one call of it.
    ///
    /// # Errors
    /// `PeerLost` if a rank that the wait needs has died, failed or left; `Stalled` on the time limit, with what
    /// every rank waits for; `CollectiveMismatch` if a peer sits in another collective call of the team, so that
    /// neither can end.
    #[track_caller]
    #[inline]
    pub(crate) fn wait<R>(
        &self,
        event: &Event,
        what: WaitFor<'_>,
        mut ready: impl FnMut() -> Option<R>,
    ) -> Result<R> {
        match ready() {
            Some(value) => Ok(value),
            None => self.wait_slowly(event, what, &mut ready, Location::caller()),
        }
    }

    fn wait_slowly<R>(
        &self,
        event: &Event,
        what: WaitFor<'_>,
        ready: &mut dyn FnMut() -> Option<R>,
        location: &'static Location<'static>,
    ) -> Result<R> {
        match self.patience().spin_and_yield(ready) {
            Some(value) => Ok(value),
            None => self.sleep(event, what, ready, location),
        }
    }

    #[cold]
    fn sleep<R>(
        &self,
        event: &Event,
        what: WaitFor<'_>,
        ready: &mut dyn FnMut() -> Option<R>,
        location: &'static Location<'static>,
    ) -> Result<R> {
        let segment = self.segment();
        let me = self.job_rank().0;
        if thread::current().id() != self.home_thread() {
            segment.record(me).several_threads.store(1, Ordering::Relaxed);
        }
        // A rank that waits again has lived through what it met before.
        board::forget_mismatch(segment, me);
        let begun = Instant::now();
        let offset = segment.offset_of(event);
        let shown = offset.and_then(|offset| Shown::new(segment, me, offset, &what));
        let mut suspect = Suspect::default();
        loop {
            let ticket = event.announce();
            let looked_ns = sys::time::monotonic_ns();
            if let Some(value) = ready() {
                return Ok(value);
            }
            if let Some(shown) = &shown {
                shown.blocked_by(self.blocker_of(&what, shown));
                shown.looked(looked_ns)
            }
            let lost = self.lost_of(&what);
            // After the look at the living: a peer that has found a mismatch says so before it ends, and what a lost
            // rank did before it ended counts.
            let mismatch = shown.as_ref().and_then(|shown| self.mismatch_of(&what, shown, &mut suspect));
            let mismatch = mismatch.or_else(|| lost.and_then(|_| self.mismatch_before(&what)));
            if let Some(other) = mismatch {
                board::note_mismatch(segment, me, &what);
                return Err(base(ErrorKind::CollectiveMismatch, &what, location).other(other));
            }
            if let Some((rank, evidence)) = lost {
                return match ready() {
                    Some(value) => Ok(value),
                    None => Err(base(ErrorKind::PeerLost, &what, location).lost(rank).evidence(evidence)),
                };
            }
            let longest = match shown {
                Some(_) => self.patience().slice(),
                None => self.patience().unseen_slice(),
            };
            let slice = match self.limit() {
                Some(limit) => match limit.checked_sub(begun.elapsed()) {
                    Some(left) if !left.is_zero() => left.min(longest),
                    _ => {
                        let detail =
                            what.detail.map_or(String::new(), |(name, value)| format!("{name} {value}; "));
                        let note =
                            format!("{limit:?} have passed; {detail}{}", board::report(segment, what.team));
                        return Err(base(ErrorKind::Stalled, &what, location).note(note));
                    }
                },
                None => longest,
            };
            event.sleep(ticket, Some(slice));
        }
    }

    /// Somebody without whom the wait can't end, by its rank in the job.
    fn blocker_of(&self, what: &WaitFor<'_>, shown: &Shown<'_>) -> Option<u32> {
        let segment = self.segment();
        let job_rank = |rank: Rank| what.team.job_rank(rank).0;
        let needed = || what.team.ranks().filter(|&rank| rank != what.team.rank() && what.needs_now(rank));
        let blocker = match (what.act, what.needs) {
            (_, Needs::AnyOf(_)) => (what.blocker)(),
            (_, Needs::One(rank)) => Some(rank),
            // Somebody who waits in a different call comes first: it is what a mismatch is found by.
            (Act::Collective, _) => needed()
                .find(|&rank| shown.elsewhere(segment, job_rank(rank), what).is_some())
                .or_else(|| needed().find(|&rank| !shown.meets(segment, job_rank(rank))))
                .or_else(|| needed().next()),
            (Act::Toward(_) | Act::Any, _) => needed().next(),
        };
        blocker.map(job_rank)
    }

    /// A rank that the wait needs and that has ended.
    fn lost_of(&self, what: &WaitFor<'_>) -> Option<(Rank, Evidence)> {
        let segment = self.segment();
        let ended = |rank: Rank| {
            let job_rank = what.team.job_rank(rank);
            match job_rank == self.job_rank() {
                true => None,
                false => super::evidence(segment, job_rank.0).map(|evidence| (rank, evidence)),
            }
        };
        if super::ended(segment) != 0 {
            let lost = match what.needs {
                Needs::All => super::lost_member(segment, what.team),
                Needs::One(rank) => ended(rank),
                Needs::AnyOf(ranks) => match ranks.iter().all(|&rank| ended(rank).is_some()) {
                    true => ranks.first().and_then(|&rank| ended(rank)),
                    false => None,
                },
                Needs::Those(needed) => what.team.ranks().filter(|&rank| needed(rank)).find_map(ended),
            };
            if lost.is_some() {
                return lost;
            }
        }
        match self.launcher_is_gone() {
            true => Some((what.team.rank(), Evidence::LauncherGone)),
            false => None,
        }
    }

    /// What members did that met different collective calls and have left before this rank waited.
    fn mismatch_before(&self, what: &WaitFor<'_>) -> Option<String> {
        match what.act {
            Act::Collective => {}
            Act::Toward(_) | Act::Any => return None,
        }
        let own = board::describe(what.call, what.window);
        let peers = what.team.job_ranks().iter().filter(|&&rank| rank != self.job_rank());
        let met = peers.filter_map(|&rank| {
            board::mismatch_noted(self.segment(), rank.0, what.team.id()).map(|call| (rank, call))
        });
        // One that came to the same call as this rank has met a third one, which may not have noted anything yet.
        let (rank, call) = met.max_by_key(|(_, call)| *call != own)?;
        Some(other_party(what, rank, &call))
    }

    /// What a peer does instead of coming to this collective call, once that is certain.
    ///
    /// Certain means: each of the two needs the other, the peer has looked at its own wait and found it unmet after this rank had
    /// begun to wait, and both ranks have one thread only. A peer that needs only others may be held up by a slow one, as in a
    /// fence that this rank is through with. About threads see [`may_have_more_threads`](RankContext::may_have_more_threads). Then neither can come to the other's call. A peer that is stopped or
    /// slow does not look, and is not accused.
    fn mismatch_of(&self, what: &WaitFor<'_>, shown: &Shown<'_>, suspect: &mut Suspect) -> Option<String> {
        match what.act {
            Act::Collective => {}
            Act::Toward(_) | Act::Any => return None,
        }
        let segment = self.segment();
        let me = self.job_rank().0;
        if let Some((rank, call)) = board::accused(segment, me, shown.sequence()) {
            return Some(other_party(what, rank, &call));
        }
        let single = |job_rank: u32| segment.record(job_rank).several_threads.load(Ordering::Relaxed) == 0;
        if !single(me) {
            return None;
        }
        let peers = what.team.job_ranks().iter().map(|rank| rank.0).filter(|&rank| rank != me);
        let needed = |&rank: &u32| what.team.rank_of(Rank(rank)).is_some_and(|rank| what.needs_now(rank));
        let elsewhere = peers
            .filter(|&rank| single(rank))
            .filter(needed)
            .filter_map(|rank| shown.elsewhere(segment, rank, what))
            .find(|peer| peer.blocker == Some(me.into()));
        let Some(Elsewhere { rank, sequence, looks, .. }) = elsewhere else {
            *suspect = Suspect::default();
            return None;
        };
        if suspect.rank != Some(rank) || suspect.sequence != sequence {
            *suspect = Suspect { rank: Some(rank), sequence, looks };
            return None;
        }
        // Two looks, as the first may have begun before this rank's own wait did.
        if looks < suspect.looks + 2 {
            return None;
        }
        if self.may_have_more_threads(me, rank) {
            return None;
        }
        let sight = Sight::take(segment, rank).filter(|sight| sight.sequence == sequence)?;
        board::note_mismatch(segment, me, what);
        board::accuse_all(segment, what.team.id(), me, (what.call, what.window), rank, &sight);
        Some(other_party(what, Rank(rank), &sight.describe()))
    }
}

impl RankContext {
    /// Whether one of two ranks has threads that have not waited yet: one of them may be on its way to the call that the other
    /// rank sits in. Ranks that are threads of one process can't tell their threads from those of others, so for them
    /// every thread counts that runs no rank and was made after the job began.
    fn may_have_more_threads(&self, me: u32, peer: u32) -> bool {
        let process = |rank: u32| self.segment().record(rank).process.load(Ordering::Relaxed);
        let (mine, theirs) = (process(me), process(peer));
        if mine != theirs {
            return [mine, theirs].iter().any(|&process| sys::process::threads(process) != Some(1));
        }
        let segment = self.segment();
        let runs_a_rank = |thread: u32| {
            (0..segment.size()).any(|rank| segment.record(rank).home_thread.load(Ordering::Relaxed) == thread)
        };
        match sys::process::own_threads() {
            Some(threads) => threads
                .into_iter()
                .any(|thread| !self.threads_before().contains(&thread) && !runs_a_rank(thread)),
            None => true,
        }
    }
}

/// A peer that was seen in another collective call.
#[derive(Default)]
struct Suspect {
    rank: Option<u32>,
    sequence: u64,
    looks: u64,
}

fn other_party(what: &WaitFor<'_>, job_rank: Rank, call: &str) -> String {
    match what.team.rank_of(job_rank) {
        Some(rank) => format!("{call} by rank {rank}"),
        None => format!("{call} by rank {job_rank} of the job"),
    }
}

fn base(kind: ErrorKind, what: &WaitFor<'_>, location: &'static Location<'static>) -> Error {
    let error = Error::new(kind, what.call).caller(what.team.rank()).called_at(location);
    let error = match what.window {
        Some(id) => error.window(id),
        None => error,
    };
    match what.act {
        Act::Toward(rank) => error.target(rank),
        Act::Collective | Act::Any => error,
    }
}
