//! Post, start, complete, wait: whom an owner lets in, and when they are done. Never lets an origin in twice.
#![forbid(unsafe_code)]

use std::ops::Range;

use rma_automaton::{Call, Permit};

use super::deferral::{Opened, Style};
use super::failures::Failure;
use super::parts::{Part, Rest};
use super::protocol::Vouched;
use super::rules::check_of;
use super::{Access, Expected, Origins, RawWindow};
use crate::error::{Error, ErrorKind, Result};
use crate::info::{Info, Terms};
use crate::liveness::{Act, NO_BLOCKER, Needs, WaitFor};
use crate::sync::exposure::{self, Admits, Closing, Crowd, Extent};
use crate::sync::phases::Reason;
use crate::sync::state_word::Refusal;
use crate::team::Rank;

impl RawWindow {
    /// Opens the own window to origins. Never waits.
    #[track_caller]
    pub(crate) fn post(&self, call: &'static str, origins: Origins<'_>) -> Result<()> {
        self.expose(call, origins, None)
    }

    /// Opens a range of elements of the own window to origins. Never waits.
    #[track_caller]
    pub(crate) fn post_part<T>(
        &self,
        call: &'static str,
        exposed: &Range<usize>,
        origins: Origins<'_>,
    ) -> Result<()> {
        let part = self.own_part::<T>(call, exposed)?;
        self.expose(call, origins, Some(part))
    }

    #[track_caller]
    fn expose(&self, call: &'static str, origins: Origins<'_>, part: Option<Part>) -> Result<()> {
        self.refuse_poisoned(call)?;
        self.refuse_illegal(call, Call::Post(Permit::All))?;
        let own = self.control(self.me);
        let number = own.exposure.0.word.next_number();
        if let Origins::Group(ranks) = origins {
            for &rank in ranks {
                self.check_rank(call, rank)?;
            }
        }
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
        let (admits, group) = match origins {
            Origins::Any => (Admits::Anyone, None),
            Origins::Group(ranks) => {
                let (first, members) = self.allow(ranks, number);
                (Admits::Group { first }, Some(members))
            }
        };
        self.import();
        self.publish();
        self.group.set(group);
        self.posted.set(true);
        let extent = match part {
            None => Extent::Whole,
            Some(part) => {
                self.keep_rest(part);
                Extent::Part
            }
        };
        match own.exposure.0.word.open(&own.ends.0.tally, admits, extent) {
            Ok(opened) => debug_assert_eq!(opened, number),
            Err(_) => {
                self.take_rest_back();
                return Err(self.poisoned_again(call));
            }
        }
        own.exposure.0.posted.notify();
        self.ring();
        Ok(())
    }

    /// Puts ranks into the group of the exposure that is opened next: the first stands in its word, the others in their records. How
    /// many members it has.
    fn allow(&self, ranks: &[Rank], number: u32) -> (Option<u32>, usize) {
        let Some((first, others)) = ranks.split_first() else { return (None, 0) };
        let mut members = 1;
        for rank in others.iter().filter(|&rank| rank != first) {
            let origin = &self.peer(self.me, rank.index()).origin;
            // A rank that is named twice has its record already.
            if !origin.is_allowed(number) {
                origin.allow(number);
                members += 1;
            }
        }
        (Some(first.0), members)
    }

    /// Whether a rank is in the group of the last exposure.
    fn is_member(&self, rank: Rank) -> bool {
        let status = self.control(self.me).exposure.0.word.status();
        status.is_for_group() && status.admits(rank.0, &self.peer(self.me, rank.index()).origin)
    }

    /// Ends the exposure if the origins that it waits for have completed.
    fn try_close(&self, count: usize) -> Closing {
        let own = self.control(self.me);
        let has_come = |rank: usize, number| self.peer(self.me, rank).origin.has_used(number);
        let come = |number| (0..self.targets.len()).filter(|&rank| has_come(rank, number)).count() as u64;
        let crowd = match self.group.get() == Some(count) {
            true => Crowd::Counted,
            false => Crowd::Others(&come),
        };
        own.exposure.0.word.try_close(&own.ends.0.tally, count, &crowd)
    }

    /// Ends the exposure when the expected origins have completed.
    #[track_caller]
    pub(crate) fn wait(&self, call: &'static str, expected: Expected) -> Result<()> {
        let (number, count) = self.awaited(call, expected)?;
        let what = WaitFor {
            call,
            window: Some(self.id),
            team: &self.members,
            needs: Needs::AnyOf(&[]),
            act: Act::Any,
            detail: Some(("exposure", u64::from(number))),
            blocker: &|| self.awaited_origin(number),
        };
        let completed = &self.control(self.me).ends.0.completed;
        match self.context.wait(completed, what, || self.look_for_end(number, count)) {
            Ok(end) => self.end_exposure(call, number, count, end),
            Err(error) => {
                self.break_after(&error);
                Err(error.other(self.missing_origins(number)))
            }
        }
    }

    /// Ends the exposure if the expected origins have completed, and says whether it has ended.
    #[track_caller]
    pub(crate) fn poll_wait(&self, call: &'static str, expected: Expected) -> Result<bool> {
        self.context.serve();
        let (number, count) = self.awaited(call, expected)?;
        match self.look_for_end(number, count) {
            None => Ok(false),
            Some(end) => self.end_exposure(call, number, count, end).map(|()| true),
        }
    }

    /// The number of the open exposure, and of origins that end it.
    #[track_caller]
    pub(crate) fn awaited(&self, call: &'static str, expected: Expected) -> Result<(u32, usize)> {
        self.refuse_lent(call)?;
        let status = self.control(self.me).exposure.0.word.status();
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
        Ok((status.number(), count))
    }

    /// One look whether the exposure can be closed, which closes it, or why it never will.
    fn look_for_end(&self, number: u32, count: usize) -> Option<Result<Closing, Failure>> {
        match self.try_close(count) {
            Closing::Pending => {}
            closing => return Some(Ok(closing)),
        }
        let failure = match self.broken().get() {
            // Nobody comes into a broken window, and who is inside need not complete before this rank is told.
            Some(_) => Failure::Poisoned,
            None => self.missing_origin(number, count)?,
        };
        // A second look, since what a lost origin did before it ended counts.
        Some(match self.try_close(count) {
            Closing::Pending => Err(failure),
            closing => Ok(closing),
        })
    }

    /// What follows when an exposure was closed, or can't be.
    #[track_caller]
    fn end_exposure(
        &self,
        call: &'static str,
        number: u32,
        count: usize,
        end: Result<Closing, Failure>,
    ) -> Result<()> {
        let closing = match end {
            Ok(closing) => closing,
            Err(failure @ Failure::Lost(_)) => {
                let error = self.failure(call, failure);
                self.break_after(&error);
                return Err(error);
            }
            Err(failure) => return Err(self.failure(call, failure)),
        };
        self.import();
        self.publish();
        self.take_rest_back();
        self.control(self.me).word.0.unpost();
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
        if self.rest.get() == Rest::Lent {
            return; // The slices are gone before the guard of the exposure is.
        }
        self.take_rest_back();
        if !own.exposure.0.word.status().is_open() || self.failed.get() {
            return;
        }
        match self.try_close(0) {
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
        let is_absent = |rank: &Rank| self.is_member(*rank) && !origin(rank).has_used(number);
        let inside = self.members.ranks().find(|rank| origin(rank).is_at_work_on(number));
        inside.or_else(|| self.group.get().and_then(|_| self.members.ranks().find(is_absent)))
    }

    fn missing_origins(&self, number: u32) -> String {
        let is_inside = |rank: usize| self.peer(self.me, rank).origin.is_at_work_on(number);
        let inside = self.ranks_where(is_inside);
        let came = |rank: usize| self.peer(self.me, rank).origin.has_used(number);
        let done = self.ranks_where(|rank| came(rank) && !is_inside(rank));
        let text = format!(
            "exposure {number}: completed by ranks {done}; started and not completed by ranks {inside}"
        );
        match self.group.get() {
            None => text,
            Some(_) => {
                let absent = self.ranks_where(|rank| !came(rank) && self.is_member(Rank(rank as u32)));
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
            match (origin.is_at_work_on(number), origin.has_used(number)) {
                (true, _) if let Some(evidence) = evidence => return Some(Failure::Lost((rank, evidence))),
                (true, _) | (false, true) => possible += 1,
                (false, false) if !is_for_all && !self.is_member(rank) => {}
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

    /// Opens an access to a target that has posted, or will.
    #[track_caller]
    pub(crate) fn start(&self, call: &'static str, target: Rank, terms: Terms) -> Result<()> {
        let at = self.check_rank(call, target)?;
        self.refuse_poisoned(call)?;
        self.refuse_start(call, check_of(terms), at)?;
        if terms.is_late() {
            self.promise(at, Style::Start, terms);
            return Ok(());
        }
        if terms.info == Info::NoCheck && self.can_vouch(at) {
            self.vouch_for_post(at);
        } else if self.targets[at].remote {
            self.ask_to_start(call, at, terms.info != Info::NoCheck)?;
        } else {
            match (self.try_start(at), terms.info) {
                (Ok(()), _) => {}
                (Err(refusal), Info::NoCheck) => return Err(self.broken_start_promise(call, at, refusal)),
                (Err(_), _) => self.await_start(call, at)?,
            }
        }
        self.open.started.set(self.open.started.get() + 1);
        Ok(())
    }

    /// Asks to be admitted, and is or will be; [`poll_start`](RawWindow::poll_start) says which.
    #[track_caller]
    pub(crate) fn request_start(&self, call: &'static str, target: Rank, terms: Terms) -> Result<()> {
        let at = self.check_rank(call, target)?;
        self.refuse_poisoned(call)?;
        self.refuse_start(call, check_of(terms), at)?;
        if terms.info == Info::NoCheck && self.can_vouch(at) {
            self.vouch_for_post(at);
        } else {
            match (self.try_start(at), terms.info) {
                (Ok(()), _) => {}
                (Err(refusal), Info::NoCheck) => return Err(self.broken_start_promise(call, at, refusal)),
                (Err(_), _) => self.targets[at].access.set(Access::Asked),
            }
        }
        self.open.started.set(self.open.started.get() + 1);
        Ok(())
    }

    /// Whether a requested access has been admitted.
    #[track_caller]
    pub(crate) fn poll_start(&self, call: &'static str, target: Rank) -> Result<bool> {
        self.context.serve();
        let at = self.check_rank(call, target)?;
        if self.targets[at].access.get() != Access::Asked || self.try_start(at).is_ok() {
            return Ok(true);
        }
        let ended = || Some(Failure::Lost((target, self.evidence(target)?)));
        match self.hopeless_start(at).or_else(ended) {
            None => Ok(false),
            // A second look, since what the target did before it ended counts.
            Some(_) if self.try_start(at).is_ok() => Ok(true),
            Some(failure) => Err(self.failure(call, failure).target(target)),
        }
    }

    /// Waits until a requested access has been admitted.
    #[track_caller]
    pub(crate) fn finish_start(&self, call: &'static str, target: Rank) -> Result<()> {
        let at = self.check_rank(call, target)?;
        match self.targets[at].access.get() {
            Access::Asked => self.await_start(call, at),
            _ => Ok(()),
        }
    }

    /// Gives a request up that was not granted, and closes one that was and is not used.
    #[cold]
    pub(crate) fn cancel_start(&self, target: Rank) {
        match self.targets[target.index()].access.get() {
            Access::Asked => self.break_promise(target.index()),
            _ => self.abandon_epoch(target, || self.complete("drop of an istart", target)),
        }
    }

    /// As [`cancel_start`](RawWindow::cancel_start), where nobody was told that the request is not granted: the rank is when it
    /// leaves the job.
    #[cold]
    pub(crate) fn withdraw_start(&self, target: Rank) {
        if self.targets[target.index()].access.get() == Access::Asked {
            let note = "the request was dropped before it was granted";
            self.context
                .leave_open(self.error(ErrorKind::EpochStillOpen, "istart").target(target).note(note));
        }
        self.cancel_start(target);
    }

    /// Notes for the end of the job that a request for the end of the exposure was dropped.
    #[cold]
    pub(crate) fn note_open_wait(&self) {
        let note = "the request was dropped before the exposure had ended";
        self.context.leave_open(self.error(ErrorKind::EpochStillOpen, "iwait").note(note));
    }

    /// Opens an access of which the program says that its target is posted; the target looks when the first transfer arrives.
    fn vouch_for_post(&self, at: usize) {
        self.targets[at].vouched.set(Vouched::Posted);
        self.targets[at].access.set(Access::Started);
    }

    /// Asks a target that shares no memory with this rank to be admitted.
    #[track_caller]
    pub(super) fn ask_to_start(&self, call: &'static str, at: usize, waits: bool) -> Result<()> {
        match self.start_remote(call, at, waits)? {
            Ok((number, part)) => {
                self.started_remote(at, number, part);
                Ok(())
            }
            Err(refusal) => Err(self.broken_start_promise(call, at, refusal)),
        }
    }

    pub(super) fn started_remote(&self, at: usize, number: u32, part: Option<Part>) {
        self.targets[at].exposure.set(number);
        self.targets[at].access.set(Access::Started);
        if let Some(part) = part {
            self.learn_remote_part(at, part);
        }
    }

    /// Is admitted if the target is posted for this rank.
    pub(super) fn try_start(&self, at: usize) -> Result<(), exposure::Refusal> {
        let here = &self.targets[at];
        if here.remote {
            // Whatever keeps the target from being asked is found by the wait that follows.
            let (number, part) =
                self.start_remote("start", at, false).unwrap_or(Err(exposure::Refusal::Closed))?;
            self.started_remote(at, number, part);
            return Ok(());
        }
        let there = self.control(at);
        let origin = &self.peer(at, self.me).origin;
        let withdrawn = || there.ends.0.completed.notify();
        let (number, extent) =
            there.exposure.0.word.start(self.me as u32, origin, here.exposure.get(), withdrawn)?;
        self.learn_part(at, extent);
        here.exposure.set(number);
        here.access.set(Access::Started);
        Ok(())
    }

    /// Waits to be admitted.
    #[track_caller]
    pub(super) fn await_start(&self, call: &'static str, at: usize) -> Result<()> {
        if self.targets[at].remote {
            return self.ask_to_start(call, at, true);
        }
        let target = Rank(at as u32);
        let last = self.targets[at].exposure.get();
        let what = WaitFor {
            call,
            window: Some(self.id),
            team: &self.members,
            needs: Needs::One(target),
            act: Act::Toward(target),
            detail: Some(("last used exposure", u64::from(last))),
            blocker: NO_BLOCKER,
        };
        let mut refusal = exposure::Refusal::Closed;
        let admitted =
            self.context.wait(&self.control(at).exposure.0.posted, what, || match self.try_start(at) {
                Ok(()) => Some(Ok(())),
                Err(exposure::Refusal::Poisoned) => Some(Err(Failure::Poisoned)),
                Err(other) => {
                    refusal = other;
                    self.hopeless_start(at).map(Err)
                }
            });
        match admitted {
            Ok(Ok(())) => Ok(()),
            Ok(Err(failure)) => Err(self.failure(call, failure).target(target)),
            Err(error) if refusal == exposure::Refusal::NotInGroup => {
                Err(error.other("an exposure whose group this rank is not in"))
            }
            Err(error) => Err(error),
        }
    }

    /// Why a target will not post any more.
    fn hopeless_start(&self, at: usize) -> Option<Failure> {
        match (self.broken().get(), self.failed_member()) {
            (Some(_), _) => Some(Failure::Poisoned),
            (None, Some(lost)) => Some(Failure::Lost(lost)),
            // Its exposures end before it goes.
            (None, None) if self.has_departed(at) => Some(Failure::Departed(Rank(at as u32))),
            (None, None) => None,
        }
    }

    /// The error of a start under NOCHECK whose target is not posted for this rank.
    #[cold]
    #[track_caller]
    pub(super) fn broken_start_promise(
        &self,
        call: &'static str,
        at: usize,
        refusal: exposure::Refusal,
    ) -> Error {
        let target = Rank(at as u32);
        match refusal {
            exposure::Refusal::Poisoned => self.poisoned_now(call),
            exposure::Refusal::NotInGroup => self.error(ErrorKind::NotInGroup, call).target(target),
            exposure::Refusal::Used => {
                let last = self.targets[at].exposure.get();
                let note =
                    format!("this rank has used exposure {last} already, and no other was posted since");
                self.error(ErrorKind::NotPosted, call).target(target).note(note)
            }
            exposure::Refusal::Closed => self.error(ErrorKind::NotPosted, call).target(target),
        }
    }

    /// Whether a rank of the team has an exposure open now. A rank that can't be asked has none.
    pub(crate) fn is_posted(&self, rank: Rank) -> bool {
        if self.targets[rank.index()].remote {
            return self.is_posted_remote("target_posted", rank.index()).unwrap_or(false);
        }
        self.control(rank.index()).exposure.0.word.status().is_open()
    }

    /// Ends what `start` began. Transfers of mapped memory are complete when they return, so nothing is waited for but the
    /// target of an epoch under WEAK, and one that shares no memory with this rank.
    #[track_caller]
    pub(crate) fn complete(&self, call: &'static str, target: Rank) -> Result<()> {
        let at = self.check_rank(call, target)?;
        if self.opened(at) == Some(Opened::Started)
            && self.targets[at].access.get() == Access::Promised
            && self.can_enclose(at)
            && let Some(promise) = self.take_promise(at)
        {
            return self.close_enclosed(call, at, promise);
        }
        let kept = match self.targets[at].access.get() {
            Access::Started => Ok(()),
            Access::Promised if self.opened(at) == Some(Opened::Started) => self.keep_promise(call, at),
            _ => return Err(self.error(ErrorKind::CompleteWithoutStart, call).target(target)),
        };
        if self.targets[at].access.get() != Access::Started {
            self.break_promise(at);
            return kept;
        }
        self.targets[at].access.set(Access::None);
        self.forget_part(at);
        self.open.started.set(self.open.started.get() - 1);
        if self.targets[at].remote {
            return kept.and(self.complete_remote(call, at));
        }
        let ends = &self.control(at).ends.0;
        ends.tally.complete(&self.peer(at, self.me).origin, self.targets[at].exposure.get());
        ends.completed.notify_after_change();
        kept
    }
}
