//! Post, start, complete, wait: whom an owner lets in, and when they are done. Never lets an origin in twice.
#![forbid(unsafe_code)]

use rma_automaton::{Call, Check, Permit};

use super::failures::Failure;
use super::{Access, Expected, Info, Origins, RawWindow};
use crate::error::{Error, ErrorKind, Result};
use crate::liveness::{Act, NO_BLOCKER, Needs, WaitFor};
use crate::sync::exposure::{self, Admits, Closing};
use crate::sync::phases::Reason;
use crate::sync::state_word::Refusal;
use crate::team::Rank;

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
        self.ring();
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
        self.refuse_count(call, count)?;
        let number = status.number();
        let what = WaitFor {
            call,
            window: Some(self.id),
            team: &self.members,
            needs: Needs::AnyOf(&[]),
            act: Act::Any,
            detail: Some(("exposure", u64::from(number))),
            blocker: &|| self.awaited_origin(number),
        };
        let closed = self.context.wait(&own.exposure.0.completed, what, || {
            match own.exposure.0.word.try_close(count) {
                Closing::Pending => {}
                closing => return Some(Ok(closing)),
            }
            let failure = match self.broken().get() {
                // Nobody comes into a broken window, and who is inside need not complete before this rank is told.
                Some(_) => Failure::Poisoned,
                None => self.missing_origin(number, count)?,
            };
            // A second look, since what a lost origin did before it ended counts.
            Some(match own.exposure.0.word.try_close(count) {
                Closing::Pending => Err(failure),
                closing => Ok(closing),
            })
        });
        let closing = match closed {
            Ok(Ok(closing)) => closing,
            Ok(Err(failure @ Failure::Lost(_))) => {
                let error = self.failure(call, failure);
                self.break_after(&error);
                return Err(error);
            }
            Ok(Err(failure)) => return Err(self.failure(call, failure)),
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
    fn awaited_origin(&self, number: u32) -> Option<Rank> {
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

    /// Why the wait can't end: an origin has ended inside, or too few are left that could come.
    fn missing_origin(&self, number: u32, count: usize) -> Option<Failure> {
        if !self.somebody_has_ended() && !self.somebody_has_departed() {
            return None;
        }
        if let Some(lost) = self.failed_member() {
            return Some(Failure::Lost(lost));
        }
        let is_for_all = self.group.get().is_none();
        let mut possible = 0;
        let mut missing = None;
        for rank in self.members.ranks() {
            let origin = &self.peer(self.me, rank.index()).origin;
            let evidence = self.evidence(rank);
            match (origin.is_at_work(), origin.has_used(number)) {
                (true, _) if let Some(evidence) = evidence => return Some(Failure::Lost((rank, evidence))),
                (true, _) | (false, true) => possible += 1,
                (false, false) if !is_for_all && !origin.is_allowed(number) => {}
                (false, false) => match evidence {
                    Some(evidence) => missing = missing.or(Some(Failure::Lost((rank, evidence)))),
                    None if self.has_departed(rank.index()) => {
                        missing = missing.or(Some(Failure::Departed(rank)));
                    }
                    None => possible += 1,
                },
            }
        }
        missing.filter(|_| possible < count)
    }

    /// Refuses to wait for more origins than can come.
    #[track_caller]
    fn refuse_count(&self, call: &'static str, count: usize) -> Result<()> {
        let (most, who) = match self.group.get() {
            Some(members) => (members, "posted group"),
            None => (self.targets.len(), "team"),
        };
        match count <= most {
            true => Ok(()),
            false => {
                let note = format!("it counts {count}, and the {who} has {most} ranks");
                Err(self.error(ErrorKind::CountExceeded, call).note(note))
            }
        }
    }

    /// Is admitted at a target that has posted, or will.
    #[track_caller]
    pub(crate) fn start(&self, call: &'static str, target: Rank, info: Info) -> Result<()> {
        let at = self.check_rank(call, target)?;
        self.refuse_poisoned(call)?;
        let check = if info == Info::NoCheck { Check::NoCheck } else { Check::Checked };
        self.refuse_start(call, check, at)?;
        if self.targets[at].remote {
            return match self.start_remote(call, at, info != Info::NoCheck)? {
                Ok(number) => self.started(at, number),
                Err(refusal) => Err(self.start_error(call, at, refusal)),
            };
        }
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
            return Err(self.start_error(call, at, refusal));
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
                    // Its exposures end before it goes, so it will not post any more.
                    (None, None) if self.has_departed(at) => Some(Err(Failure::Departed(target))),
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

    /// The error of a start that was tried once.
    #[cold]
    #[track_caller]
    fn start_error(&self, call: &'static str, at: usize, refusal: exposure::Refusal) -> Error {
        let error = match refusal {
            exposure::Refusal::Poisoned => self.poisoned_now(call),
            exposure::Refusal::NotInGroup => self.error(ErrorKind::NotInGroup, call),
            exposure::Refusal::Used => {
                let last = self.targets[at].exposure.get();
                let note =
                    format!("this rank has used exposure {last} already, and no other was posted since");
                self.error(ErrorKind::NotPosted, call).note(note)
            }
            exposure::Refusal::Closed => self.error(ErrorKind::NotPosted, call),
        };
        error.target(Rank(at as u32))
    }

    /// Whether a rank of the team has an exposure open now. A rank that can't be asked has none.
    pub(crate) fn is_posted(&self, rank: Rank) -> bool {
        if self.targets[rank.index()].remote {
            return self.is_posted_remote("target_posted", rank.index()).unwrap_or(false);
        }
        self.control(rank.index()).exposure.0.word.status().is_open()
    }

    pub(super) fn started(&self, at: usize, number: u32) -> Result<()> {
        self.targets[at].exposure.set(number);
        self.targets[at].access.set(Access::Started);
        self.open.started.set(self.open.started.get() + 1);
        Ok(())
    }

    /// Ends what `start` began. Transfers of mapped memory are complete when they return, so nothing is waited for; those to
    /// other ranks are complete when the target has said so.
    #[track_caller]
    pub(crate) fn complete(&self, call: &'static str, target: Rank) -> Result<()> {
        let at = self.check_rank(call, target)?;
        if self.targets[at].access.get() != Access::Started {
            return Err(self.error(ErrorKind::CompleteWithoutStart, call).target(target));
        }
        self.targets[at].access.set(Access::None);
        self.open.started.set(self.open.started.get() - 1);
        if self.targets[at].remote {
            return self.complete_remote(call, at);
        }
        let exposed = &self.control(at).exposure.0;
        exposed.word.complete(&self.peer(at, self.me).origin, self.targets[at].exposure.get());
        exposed.completed.notify();
        Ok(())
    }
}
