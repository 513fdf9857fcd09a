//! Waiting: spin, yield, sleep; end on a death or on the time limit. Never holds a lock while it waits.

use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use super::board::{self, Accusation, Elsewhere, Shown, Sight, Told};
use crate::error::{Error, ErrorKind, Evidence, Result};
use crate::job::RankContext;
use crate::rank::{Members, Rank};
use crate::sync::event::Event;
use crate::sys;
use crate::transport::tcp::driving::Driving;
use crate::transport::tcp::frame::Body;
use crate::transport::tcp::link::Cut;

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

/// How long a rank that has seen a connection break waits for somebody who knows why.
const EVIDENCE_GRACE: Duration = Duration::from_secs(1);
const EVIDENCE_SLICE: Duration = Duration::from_millis(5);
/// How long the end of a rank is kept back while the connection from it is still open: what it has sent counts.
const DRAIN_GRACE: Duration = Duration::from_millis(700);

/// How long a rank has to wait in a collective call before it asks others, with which it shares no memory, where they are.
const ASKING_AFTER: Duration = Duration::from_millis(100);

/// How long a rank gets to say what it waits for, and how long all of them.
const ANSWER_PATIENCE: Duration = Duration::from_millis(200);
const REPORT_PATIENCE: Duration = Duration::from_secs(1);

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
        match self.look_eagerly(ready) {
            Some(value) => Ok(value),
            None => self.sleep(event, what, ready, location),
        }
    }

    /// Looks until `ready` gives a value or patience is at its end. Where ranks are reached by connections, serves them meanwhile.
    pub(crate) fn look_eagerly<R>(&self, ready: &mut dyn FnMut() -> Option<R>) -> Option<R> {
        let Some(wire) = self.wire() else { return self.patience().spin_and_yield(ready) };
        if wire.has_mapped_peers()
            && let Some(value) = self.patience().spin(ready)
        {
            return Some(value);
        }
        match wire.driving() {
            Some(driving) => driving.drive(ready),
            None => None,
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
        let mut watch = self.watch(event, what, location);
        loop {
            let ticket = event.announce();
            let looked_ns = sys::time::monotonic_ns();
            if let Some(value) = ready() {
                return Ok(value);
            }
            match watch.look_from(looked_ns) {
                Ok(slice) => match self.polled() {
                    None => event.sleep(ticket, Some(slice)),
                    Some(driving) => driving.sleep(slice),
                },
                Err(error) => {
                    return match (error.kind(), ready()) {
                        // What a lost rank did before it ended counts.
                        (ErrorKind::PeerLost, Some(value)) => Ok(value),
                        _ => Err(error),
                    };
                }
            }
        }
    }

    /// The sockets of this rank, if it has some and no agent.
    pub(crate) fn polled(&self) -> Option<&Driving> {
        self.wire()?.driving().map(Arc::as_ref).filter(|driving| !driving.has_agent())
    }

    /// Does what other ranks have asked for, if no agent does: at the beginning of a call.
    #[inline]
    pub(crate) fn serve(&self) {
        if let Some(driving) = self.polled() {
            driving.serve();
        }
    }

    /// Begins a wait that the caller sleeps in by itself; `event` is what others may nudge to make it look again.
    pub(crate) fn watch<'a>(
        &'a self,
        event: &Event,
        what: WaitFor<'a>,
        location: &'static Location<'static>,
    ) -> Watch<'a> {
        let segment = self.segment();
        let me = self.job_rank().0;
        if thread::current().id() != self.home_thread() {
            segment.record(me).several_threads.store(1, Ordering::Relaxed);
        }
        // A rank that waits again has lived through what it met before.
        board::forget_mismatch(segment, me);
        let shown = segment.offset_of(event).and_then(|offset| Shown::new(segment, me, offset, &what));
        let begun = Instant::now();
        let suspect = Suspect::default();
        if let Some(driving) = self.wire().and_then(|wire| wire.driving()) {
            driving.count_sleeper(1);
        }
        Watch { context: self, what, location, begun, shown, suspect, asked: None, undrained: None }
    }

    /// Who waits for whom, as one phrase per rank of the job. Ranks that share no memory with this one are asked, as long as
    /// they answer soon.
    #[cold]
    pub(crate) fn report(&self, team: &Members) -> String {
        let begun = Instant::now();
        board::report(self.segment(), team, |job_rank| {
            let wire = self.wire().filter(|wire| !wire.shares_memory(job_rank))?;
            // One that does not answer must not keep those from being asked that would.
            let asked = Instant::now();
            let sight = wire.ask_sight(job_rank, &mut || {
                let left = ANSWER_PATIENCE.checked_sub(asked.elapsed()).filter(|left| !left.is_zero());
                match left.filter(|_| begun.elapsed() < REPORT_PATIENCE) {
                    Some(left) => Ok(left),
                    None => Err(Error::new(ErrorKind::Stalled, "asking")),
                }
            });
            let told = sight.and_then(|bytes| Told::decode(Body::new(&bytes)).ok());
            Some(told.unwrap_or_else(|| {
                let phrase = "does not answer: it is stopped, or cut off".to_owned();
                Told { phrase, sight: None, single: false }
            }))
        })
    }

    /// How a rank has ended that somebody has lost already. Where ranks share no memory, that may become known a little later.
    #[cold]
    pub(crate) fn evidence_of(&self, job_rank: Rank) -> Option<Evidence> {
        let begun = Instant::now();
        loop {
            match super::evidence(self.segment(), job_rank.0) {
                None if self.wire().is_none() || self.launcher_is_gone() => return None,
                None if EVIDENCE_GRACE < begun.elapsed() => return None,
                None => match self.polled() {
                    None => thread::sleep(EVIDENCE_SLICE),
                    Some(driving) => driving.sleep(EVIDENCE_SLICE),
                },
                known => return known,
            }
        }
    }

    /// The error of a call whose link to a member has broken: it names how the member has ended, once that is known.
    #[cold]
    pub(crate) fn cut(
        &self,
        cut: Cut,
        what: &WaitFor<'_>,
        rank: Rank,
        location: &'static Location<'static>,
    ) -> Error {
        let why = match cut {
            Cut::Ended(error) => return error,
            Cut::Gone(why) => why,
        };
        let evidence = match self.evidence_of(what.team.job_rank(rank)) {
            Some(evidence) => evidence,
            None if self.launcher_is_gone() => Evidence::LauncherGone,
            None => Evidence::Disconnected,
        };
        // Of several that a collective call has lost, the one that ended first explains the others.
        let (rank, evidence) = match what.act {
            Act::Collective => super::lost_member(self.segment(), what.team).unwrap_or((rank, evidence)),
            Act::Toward(_) | Act::Any => (rank, evidence),
        };
        base(ErrorKind::PeerLost, what, location).lost(rank).evidence(evidence).note(why)
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
        let peer = (rank, sight.call.as_str(), sight.window);
        self.accuse(&Accusation { team: what.team.id(), by: (me, what.call, what.window), peer }, what);
        Some(other_party(what, Rank(rank), &sight.describe()))
    }
}

impl RankContext {
    /// Tells everybody in a team that two of its members sit in different collective calls.
    fn accuse(&self, accusation: &Accusation<'_>, what: &WaitFor<'_>) {
        board::accuse_all(self.segment(), accusation);
        let Some(wire) = self.wire() else { return };
        let encoded = accusation.encode();
        for rank in what.team.job_ranks().iter().filter(|&&rank| !self.shares_memory(rank)) {
            wire.accuse(rank.0, &encoded);
        }
    }

    /// As [`mismatch_of`](RankContext::mismatch_of), in a window that some ranks reach by connections; a peer that shares no memory
    /// with this rank is asked.
    ///
    /// Certain means: the peer sits in a fence that this rank has not come to and that nobody leaves without it, this rank needs
    /// the peer in its own fence, and each has one thread only.
    fn mismatch_elsewhere(&self, what: &WaitFor<'_>, asked: &mut Option<Asked>) -> Option<String> {
        let (Act::Collective, Some(_), Some(wire)) = (what.act, what.window, self.wire()) else {
            return None;
        };
        let me = self.job_rank().0;
        let (rank, told) = match asked.take() {
            Some(Asked { rank, request }) => match wire.sight_told(rank, request) {
                Some(answer) => (rank, Told::decode(Body::new(&answer)).ok()?),
                None => {
                    *asked = Some(Asked { rank, request });
                    return None;
                }
            },
            None => {
                let needed = |rank: &Rank| *rank != what.team.rank() && what.needs_now(*rank);
                let peer = what.team.job_rank(what.team.ranks().find(needed)?);
                match self.shares_memory(peer) {
                    true => (peer.0, board::tell(self.segment(), peer.0)),
                    false => {
                        let request = wire.begin_ask_sight(peer.0)?;
                        *asked = Some(Asked { rank: peer.0, request });
                        return None;
                    }
                }
            }
        };
        let sight = told.sight.filter(|sight| told.single && sight.is_collective())?;
        let elsewhere =
            sight.window.filter(|_| sight.team == what.team.id() && sight.window != what.window)?;
        if sight.detail <= wire.meetings(elsewhere)? || !board::tell(self.segment(), me).single {
            return None;
        }
        let peer = (rank, sight.call.as_str(), sight.window);
        self.accuse(&Accusation { team: what.team.id(), by: (me, what.call, what.window), peer }, what);
        Some(other_party(what, Rank(rank), &sight.describe()))
    }

    /// Whether one of two ranks has threads that have not waited yet: one of them may be on its way to the call that the other
    /// rank sits in. Ranks that are threads of one process can't tell their threads from those of others, so for them
    /// every thread counts that runs no rank and was made after the job began.
    fn may_have_more_threads(&self, me: u32, peer: u32) -> bool {
        let process = |rank: u32| self.segment().record(rank).process.load(Ordering::Relaxed);
        let (mine, theirs) = (process(me), process(peer));
        if mine != theirs {
            // The agent is a thread that comes to no call.
            let threads = 1 + u32::from(self.wire().is_some() && self.polled().is_none());
            return [mine, theirs].iter().any(|&process| sys::process::threads(process) != Some(threads));
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

/// A wait that has begun to sleep: what it shows to others, and what it has seen of them.
pub(crate) struct Watch<'a> {
    context: &'a RankContext,
    what: WaitFor<'a>,
    location: &'static Location<'static>,
    begun: Instant,
    shown: Option<Shown<'a>>,
    suspect: Suspect,
    asked: Option<Asked>,
    /// Since when a rank that the wait needs is known to have ended, while what it has sent is still being read.
    undrained: Option<Instant>,
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.context.slept(self.begun.elapsed());
        if let Some(driving) = self.context.wire().and_then(|wire| wire.driving()) {
            driving.count_sleeper(-1);
        }
        if let (Some(Asked { rank, request }), Some(wire)) = (self.asked.take(), self.context.wire()) {
            wire.forget_sight(rank, request);
        }
    }
}

impl Watch<'_> {
    /// Looks at the living and the clock; gives how long the caller may sleep before it looks again.
    ///
    /// # Errors
    /// Those of [`RankContext::wait`].
    pub(crate) fn look(&mut self) -> Result<Duration> {
        self.look_from(sys::time::monotonic_ns())
    }

    /// As `look`, for a caller that has looked at its condition at that time.
    fn look_from(&mut self, looked_ns: u64) -> Result<Duration> {
        let (context, what) = (self.context, &self.what);
        let segment = context.segment();
        if let Some(shown) = &self.shown {
            shown.blocked_by(context.blocker_of(what, shown));
            shown.looked(looked_ns)
        }
        let lost = context.lost_of(what);
        // After the look at the living: a peer that has found a mismatch says so before it ends, and what a lost
        // rank did before it ended counts.
        let mismatch =
            self.shown.as_ref().and_then(|shown| context.mismatch_of(what, shown, &mut self.suspect));
        let mismatch = match mismatch {
            None if lost.is_none() && ASKING_AFTER < self.begun.elapsed() => {
                context.mismatch_elsewhere(what, &mut self.asked)
            }
            known => known,
        };
        let mismatch = mismatch.or_else(|| lost.and_then(|_| context.mismatch_before(what)));
        if let Some(other) = mismatch {
            board::note_mismatch(segment, context.job_rank().0, what);
            return Err(base(ErrorKind::CollectiveMismatch, what, self.location).other(other));
        }
        if let Some((rank, evidence)) = lost {
            let drained = context.is_drained(what.team.job_rank(rank));
            let since = *self.undrained.get_or_insert_with(Instant::now);
            // What it has done may have come after it was asked about: then it is not what is missing any more.
            if drained && context.lost_of(what) != lost {
                return Ok(EVIDENCE_SLICE);
            }
            if drained || DRAIN_GRACE < since.elapsed() {
                return Err(base(ErrorKind::PeerLost, what, self.location).lost(rank).evidence(evidence));
            }
            return Ok(EVIDENCE_SLICE);
        }
        let longest = match self.shown {
            Some(_) => context.patience().slice(),
            None => context.patience().unseen_slice(),
        };
        match context.limit() {
            Some(limit) => match limit.checked_sub(self.begun.elapsed()) {
                Some(left) if !left.is_zero() => Ok(left.min(longest)),
                _ => {
                    let detail =
                        what.detail.map_or(String::new(), |(name, value)| format!("{name} {value}; "));
                    let note = format!("{limit:?} have passed; {detail}{}", context.report(what.team));
                    Err(base(ErrorKind::Stalled, what, self.location).note(note))
                }
            },
            None => Ok(longest),
        }
    }
}

/// A peer that was asked what it waits for, and has not answered yet.
struct Asked {
    rank: u32,
    request: u64,
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
