//! Who is let in where: fence phases, exposures and locks of one window, and what is left of them after a failure. Never moves
//! a byte.
//!
//! Every way to be admitted at a target ends in [`Access`] of that target, or in `phase_open`; the transfers look at nothing
//! else. Every call that waits ends in success, `Stalled` or `PeerLost`; after an end without success in the middle of an
//! epoch the window is broken: nobody is admitted any more, and the owner's views are refused until everybody who was
//! admitted is done, see [`RawWindow::is_quiet`].
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rma_automaton::{Assertion, Call, Check, Permit};

use super::{Access, RawWindow};
use crate::error::{Error, ErrorKind, Evidence, Result};
use crate::liveness::{self, Act, NO_BLOCKER, Needs, WaitFor};
use crate::sync::exposure::{self, Admits, Closing};
use crate::sync::phases::{Reason, Way};
use crate::sync::state_word::{Refusal, Request, Sharing, Turn};
use crate::team::Rank;

/// What the caller knows about the other side, given to start and lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Info {
    /// Nothing: the call returns when access is granted.
    #[default]
    Strong,
    /// Nothing, but the call may return before access is granted. On mapped memory there is nothing to gain by that, so it
    /// is the same as [`Strong`](Info::Strong), which is always correct (RMA-INFO-07).
    Weak,
    /// That access is granted at once. This saves waiting, never admission: a promise that does not hold is an error
    /// ([`ErrorKind::NotPosted`], [`ErrorKind::NoCheckConflict`]) and nothing moves.
    NoCheck,
}

/// Whether a lock is shared with other shared holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// No other rank holds the lock.
    Exclusive,
    /// Other ranks may hold it shared.
    Shared,
}

/// Whom an exposure admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origins<'a> {
    /// Every rank of the window's team.
    Any,
    /// These ranks, each once; naming one twice makes no difference.
    Group(&'a [Rank]),
}

/// How many origins end an exposure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Every member of the posted group.
    All,
    /// This many different origins.
    Count(usize),
}

impl LockKind {
    fn sharing(self) -> Sharing {
        match self {
            LockKind::Exclusive => Sharing::Exclusive,
            LockKind::Shared => Sharing::Shared,
        }
    }
}

impl From<LockKind> for rma_automaton::LockKind {
    fn from(kind: LockKind) -> rma_automaton::LockKind {
        match kind {
            LockKind::Exclusive => rma_automaton::LockKind::Exclusive,
            LockKind::Shared => rma_automaton::LockKind::Shared,
        }
    }
}

/// How long a fence that was broken by a mismatch looks for the mismatch itself.
const MISMATCH_GRACE: Duration = Duration::from_millis(200);

/// A rank that has ended, and how.
type Lost = (Rank, Evidence);

/// Failure of a wait whose condition sees more than the wait itself.
enum Failure {
    Lost(Lost),
    Poisoned,
}

// Fences.
impl RawWindow {
    /// The fence that opens a phase: afterwards everybody may access everybody.
    #[track_caller]
    pub(crate) fn open_phase(&self, call: &'static str) -> Result<()> {
        self.refuse_poisoned(call)?;
        self.refuse_illegal(call, Call::Fence(Assertion::None))?;
        self.control(self.me).fences.0.phases.begin_writing();
        match self.synchronize(call, Way::In) {
            Ok(()) => {
                self.phase_open.set(true);
                Ok(())
            }
            Err(error) => {
                self.control(self.me).fences.0.phases.end_writing();
                Err(error)
            }
        }
    }

    /// The fence between two phases.
    #[track_caller]
    pub(crate) fn next_phase(&self, call: &'static str) -> Result<()> {
        if !self.phase_open.get() {
            return Err(self.poisoned_again(call));
        }
        let outcome = self.synchronize(call, Way::In);
        if outcome.is_err() {
            self.phase_open.set(false);
            self.control(self.me).fences.0.phases.end_writing();
        }
        outcome
    }

    /// The fence that ends the last phase. If an earlier one has failed, there is nothing to end.
    #[track_caller]
    pub(crate) fn close_phase(&self, call: &'static str) -> Result<()> {
        if !self.phase_open.replace(false) {
            return Err(self.poisoned_again(call));
        }
        self.control(self.me).fences.0.phases.end_writing();
        self.synchronize(call, Way::Out)
    }

    /// Waits for all other ranks, outside any phase.
    #[track_caller]
    pub(crate) fn meet(&self, call: &'static str) -> Result<()> {
        self.refuse_poisoned(call)?;
        self.synchronize(call, Way::Out)
    }

    /// Leaves a phase without its fence, as the program panicked: the others are told.
    #[cold]
    pub(crate) fn abandon_phase(&self) {
        if self.phase_open.replace(false) {
            self.control(self.me).fences.0.phases.end_writing();
            self.break_window(self.me, Reason::Panicked);
        }
    }

    /// Meets all other ranks, everybody's writes before being visible to everybody after, and all going the same way.
    ///
    /// On x86-64 a round is a plain `mov` that raises the own flag, one full fence (`lock or` on the stack) and a load that
    /// sees nobody asleep, and then loads of the other's flag until it is up. With two ranks there is one round; its time
    /// is that of two cache lines that change cores, and the two divisions that find the neighbours and the forty stores
    /// and loads that describe the wait pass while the first of them travels. There is no system call unless a rank sleeps.
    #[track_caller]
    fn synchronize(&self, call: &'static str, way: Way) -> Result<()> {
        self.publish();
        let number = self.fences.get() + 1;
        self.fences.set(number);
        let ranks = self.targets.len();
        let own = &self.control(self.me).fences.0;
        let broken = self.broken();
        // Whoever has raised its last flag has done its part, and may leave.
        let last_round = (ranks.max(2) - 1).ilog2() as usize;
        let is_missing = |rank: Rank| {
            let phases = &self.control(rank.index()).fences.0.phases;
            phases.heard(last_round, number).is_none()
        };
        let mut together = way;
        let mut parted = None;
        let mut mismatched_since = None;
        let mut round = 0;
        let mut distance = 1;
        while distance < ranks {
            own.phases.signal(round, number, together);
            let to = (self.me + distance) % ranks;
            let from = (self.me + ranks - distance) % ranks;
            self.control(to).fences.0.arrivals.notify();
            let phases = &self.control(from).fences.0.phases;
            let what = WaitFor {
                call,
                window: Some(self.id),
                team: &self.members,
                needs: Needs::Those(&is_missing),
                act: Act::Collective,
                detail: Some(("fence", number)),
                blocker: NO_BLOCKER,
            };
            let heard = self.context.wait(&own.arrivals, what, || {
                if let Some(theirs) = phases.heard(round, number) {
                    return Some(Some(theirs));
                }
                match broken.get()? {
                    // The wait itself finds who is where, and says it better than the word does.
                    (_, Reason::Mismatched) => {
                        let since = mismatched_since.get_or_insert_with(Instant::now);
                        (MISMATCH_GRACE < since.elapsed()).then_some(None)
                    }
                    _ => Some(None),
                }
            });
            match heard {
                // Whoever goes another way is told by the rounds that follow, so this rank stays until they are over.
                Ok(Some(theirs)) => {
                    together = together.with(theirs);
                    if together == Way::Apart && parted.is_none() {
                        parted = Some((Rank(from as u32), theirs));
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    self.break_after(&error);
                    return Err(error);
                }
            }
            round += 1;
            distance *= 2;
        }
        if let Some((rank, theirs)) = parted {
            self.break_window(self.me, Reason::Mismatched);
            return Err(self.parted(call, way, rank, theirs));
        }
        // After this rank has said that it may write; see `sync/phases.rs`.
        match broken.get() {
            None => {
                self.import();
                Ok(())
            }
            Some(_) => Err(self.poisoned_now(call)),
        }
    }

    /// The error of a fence in which some ranks go into a phase and others end their last one.
    #[cold]
    #[track_caller]
    fn parted(&self, call: &'static str, way: Way, rank: Rank, theirs: Way) -> Error {
        let other = match theirs {
            Way::In => format!("a fence of rank {rank} that leads into a phase"),
            Way::Out => format!("a fence of rank {rank} that ends its last phase"),
            Way::Apart => {
                "fences of other ranks, of which some lead into a phase and some end the last one".to_owned()
            }
        };
        let note = match way {
            Way::In => "this one leads into a phase",
            Way::Out | Way::Apart => "this one ends the last phase",
        };
        self.error(ErrorKind::CollectiveMismatch, call).other(other).note(note)
    }
}

// Exposures.
impl RawWindow {
    /// Opens the own window to origins. Never waits. Returns the number of the exposure.
    #[track_caller]
    pub(crate) fn post(&self, call: &'static str, origins: Origins<'_>) -> Result<u32> {
        self.refuse_poisoned(call)?;
        self.refuse_illegal(call, Call::Post(Permit::All))?;
        let own = self.control(self.me);
        let number = own.exposure.0.word.next_number();
        let (admits, group) = match origins {
            Origins::Any => (Admits::Anyone, None),
            Origins::Group(ranks) => {
                for &rank in ranks {
                    self.check_rank(call, rank)?;
                }
                let mut members = 0;
                for rank in self.members.ranks() {
                    if ranks.contains(&rank) {
                        members += 1;
                    }
                }
                (Admits::Group, Some(members))
            }
        };
        match own.word.0.post() {
            Ok(()) => {}
            Err(Refusal::Posted) => return Err(self.error(ErrorKind::AlreadyPosted, call)),
            Err(Refusal::Poisoned) => return Err(self.poisoned_again(call)),
            Err(Refusal::Busy | Refusal::Full) => {
                let error = self.error(ErrorKind::MixedSync, call);
                return Err(match self.first_at(self.me) {
                    Some(rank) => error.other(format!("the lock of rank {rank} on this rank's window")),
                    None => error.other("a shared lock on this rank's window"),
                });
            }
        }
        if let Origins::Group(ranks) = origins {
            for &rank in ranks {
                self.peer(self.me, rank.index()).origin.allow(number);
            }
        }
        self.import();
        self.publish();
        self.group.set(group);
        self.posted.set(true);
        match own.exposure.0.word.open(admits) {
            Ok(opened) => debug_assert_eq!(opened, number),
            Err(_) => return Err(self.poisoned_again(call)),
        }
        own.exposure.0.posted.notify();
        Ok(number)
    }

    /// Ends the exposure when the expected origins have completed.
    #[track_caller]
    pub(crate) fn wait(&self, call: &'static str, expected: Expected) -> Result<()> {
        let own = self.control(self.me);
        let status = own.exposure.0.word.status();
        if !status.is_open() {
            return Err(match self.failed.get() {
                true => self.poisoned_again(call),
                false => self.error(ErrorKind::WaitWithoutPost, call),
            });
        }
        let count = match (expected, self.group.get()) {
            (Expected::Count(count), _) => count,
            (Expected::All, Some(members)) => members,
            (Expected::All, None) => {
                return Err(self
                    .error(ErrorKind::WaitWithoutPost, call)
                    .note("no group was posted; give a count"));
            }
        };
        let number = status.number();
        let what = WaitFor {
            call,
            window: Some(self.id),
            team: &self.members,
            needs: Needs::AnyOf(&[]),
            act: Act::Any,
            detail: Some(("exposure", u64::from(number))),
            blocker: &|| self.missing_origin(number),
        };
        let closed = self.context.wait(&own.exposure.0.completed, what, || {
            match own.exposure.0.word.try_close(count) {
                Closing::Pending => {}
                closing => return Some(Ok(closing)),
            }
            let failure = match (self.broken().get(), self.lost_origin(number, count)) {
                // Nobody comes into a broken window, and who is inside need not complete before this rank is told.
                (Some(_), _) => Failure::Poisoned,
                (None, Some(lost)) => Failure::Lost(lost),
                (None, None) => return None,
            };
            // A second look, since what a lost origin did before it ended counts.
            Some(match own.exposure.0.word.try_close(count) {
                Closing::Pending => Err(failure),
                closing => Ok(closing),
            })
        });
        let closing = match closed {
            Ok(Ok(closing)) => closing,
            Ok(Err(Failure::Poisoned)) => return Err(self.poisoned_now(call)),
            Ok(Err(failure)) => {
                let error = self.failure(call, failure);
                self.break_after(&error);
                return Err(error);
            }
            Err(error) => {
                self.break_after(&error);
                return Err(error.other(self.missing_origins(number)));
            }
        };
        self.import();
        self.publish();
        own.word.0.unpost();
        self.posted.set(false);
        let group = self.group.take();
        match closing {
            Closing::Exceeded => Err(self.exceeded(call, number, count)),
            _ if group.is_some_and(|members| count < members) => Err(self.exceeded(call, number, count)),
            _ => Ok(()),
        }
    }

    /// Ends an exposure whose guard is dropped: cleanly if nobody is inside, else by breaking the window.
    #[cold]
    pub(crate) fn abandon_exposure(&self) {
        let own = self.control(self.me);
        if !own.exposure.0.word.status().is_open() || self.failed.get() {
            return;
        }
        match own.exposure.0.word.try_close(0) {
            Closing::Closed | Closing::Exceeded => {
                self.group.set(None);
                self.posted.set(false);
                own.word.0.unpost();
            }
            Closing::Pending => {
                let reason = if std::thread::panicking() { Reason::Panicked } else { Reason::Dropped };
                self.break_window(self.me, reason);
            }
        }
    }

    #[cold]
    #[track_caller]
    fn exceeded(&self, call: &'static str, number: u32, count: usize) -> Error {
        let came = self.ranks_where(|rank| self.peer(self.me, rank).origin.has_used(number));
        let note = format!("it counts {count}");
        self.error(ErrorKind::CountExceeded, call)
            .other(format!("ranks {came} on exposure {number}"))
            .note(note)
    }

    /// An origin that an exposure waits for, if it is known who will come: one that is inside, or a member of the group.
    fn missing_origin(&self, number: u32) -> Option<Rank> {
        let origin = |rank: &Rank| &self.peer(self.me, rank.index()).origin;
        let is_absent = |rank: &Rank| origin(rank).is_allowed(number) && !origin(rank).has_used(number);
        let inside = self.members.ranks().find(|rank| origin(rank).is_at_work());
        inside.or_else(|| self.group.get().and_then(|_| self.members.ranks().find(is_absent)))
    }

    fn missing_origins(&self, number: u32) -> String {
        let inside = self.ranks_where(|rank| self.peer(self.me, rank).origin.is_at_work());
        let came = |rank: usize| self.peer(self.me, rank).origin.has_used(number);
        let done = self.ranks_where(|rank| came(rank) && !self.peer(self.me, rank).origin.is_at_work());
        let text = format!(
            "exposure {number}: completed by ranks {done}; started and not completed by ranks {inside}"
        );
        match self.group.get() {
            None => text,
            Some(_) => {
                let absent = self
                    .ranks_where(|rank| !came(rank) && self.peer(self.me, rank).origin.is_allowed(number));
                format!("{text}; not started by ranks {absent} of the group")
            }
        }
    }

    pub(super) fn ranks_where(&self, is_meant: impl Fn(usize) -> bool) -> String {
        let ranks: Vec<String> =
            (0..self.targets.len()).filter(|&rank| is_meant(rank)).map(|rank| rank.to_string()).collect();
        if ranks.is_empty() { "(none)".to_owned() } else { ranks.join(", ") }
    }

    /// An origin without which the wait can't end: it has ended inside, or too few are left that could come.
    fn lost_origin(&self, number: u32, count: usize) -> Option<Lost> {
        if !self.somebody_has_ended() {
            return None;
        }
        if let Some(lost) = self.failed_member() {
            return Some(lost);
        }
        let mut possible = 0;
        let mut lost = None;
        for rank in self.members.ranks() {
            let origin = &self.peer(self.me, rank.index()).origin;
            match (origin.is_at_work(), self.evidence(rank)) {
                (true, Some(evidence)) => return Some((rank, evidence)),
                (false, Some(evidence)) if !origin.has_used(number) => lost = lost.or(Some((rank, evidence))),
                _ => possible += 1,
            }
        }
        lost.filter(|_| possible < count)
    }

    /// Is admitted at a target that has posted, or will.
    #[track_caller]
    pub(crate) fn start(&self, call: &'static str, target: Rank, info: Info) -> Result<()> {
        let at = self.check_rank(call, target)?;
        self.refuse_poisoned(call)?;
        let check = if info == Info::NoCheck { Check::NoCheck } else { Check::Checked };
        self.refuse_start(call, check, at)?;
        let exposed = &self.control(at).exposure.0;
        let record = &self.peer(at, self.me).origin;
        let last = self.targets[at].exposure.get();
        let mut refusal = match exposed.word.start(record, last) {
            Ok(number) => return self.started(at, number),
            Err(refusal) => refusal,
        };
        if refusal == exposure::Refusal::Poisoned {
            return Err(self.poisoned_now(call));
        }
        if info == Info::NoCheck {
            return Err(match refusal {
                exposure::Refusal::NotInGroup => self.error(ErrorKind::NotInGroup, call).target(target),
                exposure::Refusal::Used => {
                    let note =
                        format!("this rank has used exposure {last} already, and no other was posted since");
                    self.error(ErrorKind::NotPosted, call).target(target).note(note)
                }
                _ => self.error(ErrorKind::NotPosted, call).target(target),
            });
        }
        let what = WaitFor {
            call,
            window: Some(self.id),
            team: &self.members,
            needs: Needs::One(target),
            act: Act::Toward(target),
            detail: Some(("last used exposure", u64::from(last))),
            blocker: NO_BLOCKER,
        };
        let admitted = self.context.wait(&exposed.posted, what, || match exposed.word.start(record, last) {
            Ok(number) => Some(Ok(number)),
            Err(exposure::Refusal::Poisoned) => Some(Err(Failure::Poisoned)),
            Err(other) => {
                refusal = other;
                match (self.broken().get(), self.failed_member()) {
                    (Some(_), _) => Some(Err(Failure::Poisoned)),
                    (None, Some(lost)) => Some(Err(Failure::Lost(lost))),
                    (None, None) => None,
                }
            }
        });
        match admitted {
            Ok(Ok(number)) => self.started(at, number),
            Ok(Err(failure)) => Err(self.failure(call, failure).target(target)),
            Err(error) if refusal == exposure::Refusal::NotInGroup => {
                Err(error.other("an exposure whose group this rank is not in"))
            }
            Err(error) => Err(error),
        }
    }

    /// Whether a rank of the team has an exposure open now.
    pub(crate) fn is_posted(&self, rank: Rank) -> bool {
        self.control(rank.index()).exposure.0.word.status().is_open()
    }

    fn started(&self, at: usize, number: u32) -> Result<()> {
        self.targets[at].exposure.set(number);
        self.targets[at].access.set(Access::Started);
        self.started.set(self.started.get() + 1);
        Ok(())
    }

    /// Ends what `start` began. Transfers of mapped memory are complete when they return, so nothing is waited for.
    #[track_caller]
    pub(crate) fn complete(&self, call: &'static str, target: Rank) -> Result<()> {
        let at = self.check_rank(call, target)?;
        if self.targets[at].access.get() != Access::Started {
            return Err(self.error(ErrorKind::CompleteWithoutStart, call).target(target));
        }
        self.targets[at].access.set(Access::None);
        self.started.set(self.started.get() - 1);
        let exposed = &self.control(at).exposure.0;
        exposed.word.complete(&self.peer(at, self.me).origin, self.targets[at].exposure.get());
        exposed.completed.notify();
        Ok(())
    }
}

// Locks.
impl RawWindow {
    /// Takes the lock of a target.
    ///
    /// On x86-64 an exclusive lock that is free costs one `lock cmpxchg`, and its unlock one `lock xadd`, whose result says
    /// whether somebody waits: two locked instructions a pair, about half of its time. The rest is some 75 and 40
    /// instructions without a call: tests of what this handle has open, the new word by shifts and masks, and the six
    /// registers that the function saves because waiting and NOCHECK share it. A shared lock adds one plain store on each
    /// side, the record that tells who holds it.
    #[track_caller]
    #[inline]
    pub(crate) fn lock(&self, call: &'static str, target: Rank, kind: LockKind, info: Info) -> Result<()> {
        let at = self.check_rank(call, target)?;
        let here = &self.targets[at];
        self.refuse_poisoned(call)?;
        let check = if info == Info::NoCheck { Check::NoCheck } else { Check::Checked };
        self.refuse_lock(call, kind.into(), check, at)?;
        if here.access.get() != Access::None {
            return self.nest(call, at, kind);
        }
        let sharing = kind.sharing();
        if kind == LockKind::Shared {
            // Relaxed: published by the exchange that grants the lock.
            self.peer(at, self.me).shares.store(1, Ordering::Relaxed);
        }
        let granted = match info {
            Info::NoCheck => {
                self.control(at).word.0.try_lock(self.me as u32, sharing).map(|()| Request::Granted)
            }
            Info::Strong | Info::Weak => {
                self.control(at).word.0.request(self.me as u32, sharing, self.plan.slots)
            }
        };
        if granted != Ok(Request::Granted) {
            let outcome = match info {
                Info::NoCheck => granted.map(|_| ()).map_err(|refusal| self.lock_error(call, at, refusal)),
                Info::Strong | Info::Weak => self.wait_for_lock(call, at, sharing, granted),
            };
            if let Err(error) = outcome {
                // Release: pairs with the Acquire in `is_quiet`.
                self.peer(at, self.me).shares.store(0, Ordering::Release);
                return Err(error.target(target));
            }
        }
        if at == self.me {
            self.import();
        }
        here.access.set(match kind {
            LockKind::Exclusive => Access::Exclusive,
            LockKind::Shared => Access::Shared,
        });
        self.locked.set(self.locked.get() + 1);
        Ok(())
    }

    /// Takes the lock of a target once more, which the table allows under NOCHECK (RMA-LOCK-12). The nest is exclusive as
    /// soon as one lock of it is.
    #[cold]
    #[track_caller]
    fn nest(&self, call: &'static str, at: usize, kind: LockKind) -> Result<()> {
        let here = &self.targets[at];
        if (here.access.get(), kind) == (Access::Shared, LockKind::Exclusive) {
            if let Err(refusal) = self.control(at).word.0.try_upgrade(self.me as u32) {
                return Err(self.lock_error(call, at, refusal).target(Rank(at as u32)));
            }
            here.access.set(Access::Exclusive);
            // Release: pairs with the Acquire in `is_quiet`, which finds the holder in the word now.
            self.peer(at, self.me).shares.store(0, Ordering::Release);
        }
        here.nested.set(here.nested.get() + 1);
        Ok(())
    }

    /// Gives the lock of a target back.
    #[track_caller]
    #[inline]
    pub(crate) fn unlock(&self, call: &'static str, target: Rank) -> Result<()> {
        let at = self.check_rank(call, target)?;
        let here = &self.targets[at];
        if here.nested.get() != 0 {
            here.nested.set(here.nested.get() - 1);
            return Ok(());
        }
        let sharing = match here.access.get() {
            Access::Exclusive => Sharing::Exclusive,
            Access::Shared => {
                // Release: pairs with the Acquire in `is_quiet`: the holder's last write comes before.
                self.peer(at, self.me).shares.store(0, Ordering::Release);
                Sharing::Shared
            }
            Access::None | Access::Started => {
                return Err(self.error(ErrorKind::NotLocked, call).target(target));
            }
        };
        if at == self.me {
            self.publish();
        }
        here.access.set(Access::None);
        self.locked.set(self.locked.get() - 1);
        if self.control(at).word.0.unlock(self.me as u32, sharing) {
            self.wake_first(at);
        }
        Ok(())
    }

    #[cold]
    #[track_caller]
    fn lock_error(&self, call: &'static str, at: usize, refusal: Refusal) -> Error {
        match refusal {
            Refusal::Poisoned => self.poisoned_now(call),
            Refusal::Posted => self.error(ErrorKind::MixedSync, call).other("its owner's post"),
            Refusal::Busy | Refusal::Full => {
                let error = self.error(ErrorKind::NoCheckConflict, call);
                match self.first_at(at) {
                    Some(rank) => error.other(format!("the lock of rank {rank}")),
                    None => error.other("shared locks"),
                }
            }
        }
    }

    /// The rank that has the lock of `owner` exclusively, or is the first to wait for it.
    fn first_at(&self, owner: usize) -> Option<Rank> {
        let state = self.control(owner).word.0.state();
        let waiting = || {
            let first = state.first()?;
            self.waiter(owner, first.slot(self.plan.slots)).slot.waiter(first)
        };
        state.holder().or_else(waiting).map(Rank)
    }

    /// A rank that has the lock of `owner`, or waits before the caller.
    fn holder_before(&self, owner: usize) -> Option<Rank> {
        let shares = |rank: &Rank| {
            // Relaxed: a hint for reports.
            *rank != self.rank() && self.peer(owner, rank.index()).shares.load(Ordering::Relaxed) != 0
        };
        let holder = self.control(owner).word.0.state().holder().map(Rank);
        let first = || self.first_at(owner).filter(|&rank| rank != self.rank());
        holder.or_else(|| self.members.ranks().find(shares)).or_else(first)
    }

    /// Waits in the queue that the request has joined, or until it can join.
    #[cold]
    #[track_caller]
    pub(super) fn wait_for_lock(
        &self,
        call: &'static str,
        at: usize,
        sharing: Sharing,
        mut request: Result<Request, Refusal>,
    ) -> Result<()> {
        let me = self.me as u32;
        let word = &self.control(at).word.0;
        let what = WaitFor {
            call,
            window: Some(self.id),
            team: &self.members,
            needs: Needs::AnyOf(&[]),
            act: Act::Toward(Rank(at as u32)),
            detail: None,
            blocker: &|| self.holder_before(at),
        };
        if request == Err(Refusal::Full) {
            // Abandoned tickets of earlier time-outs fill the queue until the holder lets go; nobody has a slot for this
            // rank's bell then, so it rings at the first one and looks again every slice.
            request = self.context.wait(&self.waiter(at, 0).event, what, || {
                match word.request(me, sharing, self.plan.slots) {
                    Err(Refusal::Full) => None,
                    other => Some(other),
                }
            })?;
        }
        let ticket = match request.map_err(|refusal| self.lock_error(call, at, refusal))? {
            Request::Granted => return Ok(()),
            Request::Queued(ticket) => ticket,
        };
        let waiter = self.waiter(at, ticket.slot(self.plan.slots));
        waiter.slot.enter(ticket, me);
        let turn = self.context.wait(&waiter.event, what, || match word.poll(ticket, me, sharing) {
            Turn::Mine => Some(Ok(())),
            Turn::Poisoned => Some(Err(Failure::Poisoned)),
            Turn::Waiting if !self.somebody_has_ended() => None,
            Turn::Waiting => {
                let lost = self.lost_holder(at)?;
                // A second look, since what a lost holder did before it ended counts.
                Some(match word.poll(ticket, me, sharing) {
                    Turn::Mine => Ok(()),
                    _ => Err(Failure::Lost(lost)),
                })
            }
        });
        let error = match turn {
            Ok(Ok(())) => {
                if sharing == Sharing::Shared {
                    self.wake_first(at); // The next one may be a shared one, too.
                }
                return Ok(());
            }
            Ok(Err(failure)) => {
                if let Failure::Lost((rank, _)) = failure {
                    // This lock will never be granted again.
                    word.poison();
                    self.break_window(rank.index(), Reason::Lost);
                }
                self.failure(call, failure)
            }
            Err(error) => error,
        };
        waiter.slot.abandon(ticket);
        self.wake_first(at);
        Err(error)
    }

    /// Wakes whoever's turn has come in the queue of `owner`.
    #[cold]
    pub(super) fn wake_first(&self, owner: usize) {
        let slots = self.plan.slots;
        let first = self.control(owner).word.0.settle(|ticket| &self.waiter(owner, ticket.slot(slots)).slot);
        if let Some(ticket) = first {
            self.waiter(owner, ticket.slot(slots)).event.notify();
        }
    }

    /// A rank without which the lock of `owner` can't be granted: it has ended with the lock, or in the queue.
    fn lost_holder(&self, owner: usize) -> Option<Lost> {
        if let Some(lost) = self.failed_member() {
            return Some(lost);
        }
        let holder = self.control(owner).word.0.state().holder();
        self.members.ranks().find_map(|rank| {
            let evidence = self.evidence(rank)?;
            // Acquire: pairs with the Release in `unlock`.
            let shares = self.peer(owner, rank.index()).shares.load(Ordering::Acquire) != 0;
            (holder == Some(rank.0) || shares || self.first_at(owner) == Some(rank))
                .then_some((rank, evidence))
        })
    }
}

// Failures.
impl RawWindow {
    /// Refuses a call on a window that is out of use.
    #[inline(always)]
    #[track_caller]
    fn refuse_poisoned(&self, call: &'static str) -> Result<()> {
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
        self.error(ErrorKind::Poisoned, call).note(format!("the window is out of use: {first}"))
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
    fn failure(&self, call: &'static str, failure: Failure) -> Error {
        match failure {
            Failure::Poisoned => self.poisoned_now(call),
            Failure::Lost((rank, evidence)) => {
                self.error(ErrorKind::PeerLost, call).lost(rank).evidence(evidence)
            }
        }
    }

    /// Breaks the window after a wait in the middle of an epoch ended with `error`.
    #[cold]
    fn break_after(&self, error: &Error) {
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
        for rank in 0..self.targets.len() {
            self.control(rank).fences.0.arrivals.wake();
            self.control(rank).exposure.0.posted.wake();
            self.control(rank).exposure.0.completed.wake();
        }
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
                match self.phase_open.get() || self.targets[at].access.get() != Access::None {
                    true => return Err(rank),
                    false => continue,
                }
            }
            let peer = self.peer(self.me, at);
            // Acquire: pairs with the Release in `drop`.
            let departed = peer.departed.load(Ordering::Acquire) != 0;
            if departed || liveness::cannot_act(segment, self.members.job_rank(rank)) {
                continue;
            }
            // Acquire: pairs with the Release in `unlock`.
            let shares = peer.shares.load(Ordering::Acquire) != 0;
            let writing = self.control(at).fences.0.phases.is_writing();
            if holder == Some(rank.0) || shares || writing || peer.origin.is_at_work() {
                return Err(rank);
            }
        }
        Ok(())
    }

    #[inline]
    pub(super) fn is_broken(&self) -> bool {
        self.failed.get() || self.broken().get().is_some()
    }

    #[inline]
    fn somebody_has_ended(&self) -> bool {
        liveness::ended(self.context.segment()) != 0
    }

    fn evidence(&self, rank: Rank) -> Option<Evidence> {
        let job_rank = self.members.job_rank(rank);
        match rank == self.rank() {
            true => None,
            false => liveness::evidence(self.context.segment(), job_rank.0),
        }
    }

    /// A member that has ended otherwise than in order.
    fn failed_member(&self) -> Option<Lost> {
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
                Access::Started => self.complete("drop", target),
                Access::Exclusive | Access::Shared => self.unlock("drop", target),
            };
            debug_assert!(closed.is_ok(), "{closed:?}");
        }
        self.abandon_exposure();
    }
}
