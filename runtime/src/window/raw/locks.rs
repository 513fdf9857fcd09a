//! The lock of each rank's window: taken by whoever is first, without its owner's help. Never grants a lock that a lost holder had.
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering;

use rma_automaton::Check;

use super::deferral::{Opened, Style};
use super::failures::{Failure, Lost};
use super::protocol::Vouched;
use super::rules::check_of;
use super::{Access, LockKind, RawWindow};
use crate::error::{Error, ErrorKind, Result};
use crate::info::{Info, Terms};
use crate::liveness::{Act, Needs, WaitFor};
use crate::sync::phases::Reason;
use crate::sync::state_word::{Refusal, Request, Sharing, Turn};
use crate::team::Rank;

impl RawWindow {
    /// Takes the lock of a target.
    ///
    /// On x86-64 an exclusive lock that is free costs one `lock cmpxchg`, and its unlock one `lock xadd`, whose result says
    /// whether somebody waits: two locked instructions a pair, about half of its time. The rest is some 75 and 40
    /// instructions without a call: tests of what this handle has open, the new word by shifts and masks, and the six
    /// registers that the function saves because it also waits. A shared lock adds one plain store on each side, the record
    /// that tells who holds it.
    #[track_caller]
    #[inline]
    pub(crate) fn lock(&self, call: &'static str, target: Rank, kind: LockKind) -> Result<()> {
        let at = self.check_rank(call, target)?;
        self.refuse_poisoned(call)?;
        self.refuse_lock(call, kind.into(), Check::Checked, at)?;
        self.take_lock(call, at, kind)?;
        self.open.locked.set(self.open.locked.get() + 1);
        Ok(())
    }

    /// As [`lock`](RawWindow::lock), by what the caller knows.
    #[track_caller]
    pub(crate) fn lock_on(
        &self,
        call: &'static str,
        target: Rank,
        kind: LockKind,
        terms: Terms,
    ) -> Result<()> {
        let at = self.check_rank(call, target)?;
        self.refuse_poisoned(call)?;
        self.refuse_lock(call, kind.into(), check_of(terms), at)?;
        match self.targets[at].access.get() {
            Access::None => {}
            // The table lets only NOCHECK pass.
            Access::Promised => {
                self.keep_promise(call, at)?;
                return self.nest(call, at, kind);
            }
            _ => return self.nest(call, at, kind),
        }
        // A lock of the own window protects loads and stores, which wait for nothing.
        if terms.is_late() && at != self.me {
            self.refuse_without_agent(call, at)?;
            self.promise(at, Style::Lock(kind), terms);
            return Ok(());
        }
        match terms.info {
            Info::NoCheck => self.try_lock(call, at, kind)?,
            Info::Strong | Info::Weak => self.take_lock(call, at, kind)?,
        }
        self.open.locked.set(self.open.locked.get() + 1);
        Ok(())
    }

    /// Waits for the lock of a target and has it.
    #[track_caller]
    #[inline(always)]
    pub(super) fn take_lock(&self, call: &'static str, at: usize, kind: LockKind) -> Result<()> {
        let sharing = kind.sharing();
        if self.targets[at].remote {
            return self.ask_for_lock(call, at, kind, true);
        }
        self.announce_share(at, kind);
        let granted = self.control(at).word.0.request(self.me as u32, sharing, self.plan.slots);
        if granted != Ok(Request::Granted) {
            self.wait_for_share(call, at, sharing, granted)?;
        }
        self.hold(at, kind);
        Ok(())
    }

    /// Has the lock of a target if nobody else has it or waits for it. One that shares no memory with this rank is not asked: each
    /// transfer says what the program vouches for.
    #[track_caller]
    fn try_lock(&self, call: &'static str, at: usize, kind: LockKind) -> Result<()> {
        if self.can_vouch(at) {
            self.targets[at].vouched.set(vouched(kind));
            self.hold(at, kind);
            return Ok(());
        }
        if self.targets[at].remote {
            return self.ask_for_lock(call, at, kind, false);
        }
        self.announce_share(at, kind);
        match self.control(at).word.0.try_lock(self.me as u32, kind.sharing()) {
            Ok(()) => {
                self.hold(at, kind);
                Ok(())
            }
            Err(refusal) => {
                self.withdraw_share(at);
                Err(self.lock_error(call, at, refusal).target(Rank(at as u32)))
            }
        }
    }

    /// Has the lock of a target that shares no memory with this rank, or finds out that it can't be had.
    #[cold]
    #[track_caller]
    pub(super) fn ask_for_lock(
        &self,
        call: &'static str,
        at: usize,
        kind: LockKind,
        waits: bool,
    ) -> Result<()> {
        self.refuse_without_agent(call, at)?;
        match self.lock_remote(call, at, kind.sharing(), waits)? {
            Ok(()) => {
                self.hold(at, kind);
                Ok(())
            }
            Err((refusal, holder)) => Err(self.lock_refused(call, refusal, holder).target(Rank(at as u32))),
        }
    }

    /// Refuses the lock of a rank that would grant it and give it on only when it calls the runtime: others would wait for somebody
    /// who has nothing to do with them.
    #[track_caller]
    fn refuse_without_agent(&self, call: &'static str, at: usize) -> Result<()> {
        match self.targets[at].remote && self.context.polled().is_some() {
            false => Ok(()),
            true => {
                let note = "RMA_AGENT is polling, and has to be auto for locks of ranks that share no memory";
                Err(self.error(ErrorKind::NeedsAgent, call).target(Rank(at as u32)).note(note))
            }
        }
    }

    /// Says that this rank is about to share a lock.
    #[inline(always)]
    fn announce_share(&self, at: usize, kind: LockKind) {
        if kind == LockKind::Shared {
            // Relaxed: published by the exchange that grants the lock.
            self.peer(at, self.me).shares.store(1, Ordering::Relaxed);
        }
    }

    fn withdraw_share(&self, at: usize) {
        // Release: pairs with the Acquire in `is_quiet`.
        self.peer(at, self.me).shares.store(0, Ordering::Release);
    }

    #[cold]
    #[track_caller]
    fn wait_for_share(
        &self,
        call: &'static str,
        at: usize,
        sharing: Sharing,
        request: Result<Request, Refusal>,
    ) -> Result<()> {
        match self.wait_for_lock(call, at, sharing, request) {
            Ok(()) => Ok(()),
            Err(error) => {
                self.withdraw_share(at);
                Err(error.target(Rank(at as u32)))
            }
        }
    }

    #[inline(always)]
    fn hold(&self, at: usize, kind: LockKind) {
        if at == self.me {
            self.import();
        }
        self.targets[at].access.set(match kind {
            LockKind::Exclusive => Access::Exclusive,
            LockKind::Shared => Access::Shared,
        });
    }

    /// Takes the lock of a target once more, which the table allows under NOCHECK (RMA-LOCK-12). The nest is exclusive as
    /// soon as one lock of it is.
    #[cold]
    #[track_caller]
    fn nest(&self, call: &'static str, at: usize, kind: LockKind) -> Result<()> {
        let here = &self.targets[at];
        if (here.access.get(), kind) == (Access::Shared, LockKind::Exclusive) {
            match here.remote {
                true if here.vouched.get() != Vouched::Nothing => here.vouched.set(vouched(kind)),
                true => self.upgrade_remote(call, at)?.map_err(|(refusal, holder)| {
                    self.lock_refused(call, refusal, holder).target(Rank(at as u32))
                })?,
                false => {
                    if let Err(refusal) = self.control(at).word.0.try_upgrade(self.me as u32) {
                        return Err(self.lock_error(call, at, refusal).target(Rank(at as u32)));
                    }
                    // Release: pairs with the Acquire in `is_quiet`, which finds the holder in the word now.
                    self.peer(at, self.me).shares.store(0, Ordering::Release);
                }
            }
            here.access.set(Access::Exclusive);
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
            Access::Exclusive | Access::Shared if here.remote => {
                here.access.set(Access::None);
                self.open.locked.set(self.open.locked.get() - 1);
                return self.unlock_remote(call, at);
            }
            Access::Exclusive => Sharing::Exclusive,
            Access::Shared => {
                // Release: pairs with the Acquire in `is_quiet`: the holder's last write comes before.
                self.peer(at, self.me).shares.store(0, Ordering::Release);
                Sharing::Shared
            }
            // All others together: a test for each would make a table of jumps of this.
            _ => return self.unlock_unheld(call, at),
        };
        if at == self.me {
            self.publish();
        }
        here.access.set(Access::None);
        self.open.locked.set(self.open.locked.get() - 1);
        if self.control(at).word.0.unlock(self.me as u32, sharing) {
            self.wake_first(at);
        }
        Ok(())
    }

    /// Takes a lock that was promised, for what it keeps, and gives it back; refuses to give back any other that is not held.
    #[cold]
    #[track_caller]
    fn unlock_unheld(&self, call: &'static str, at: usize) -> Result<()> {
        let target = Rank(at as u32);
        if !matches!(self.opened(at), Some(Opened::Locked(_))) {
            return Err(self.error(ErrorKind::NotLocked, call).target(target));
        }
        if self.can_enclose(at)
            && let Some(promise) = self.take_promise(at)
        {
            return self.close_enclosed(call, at, promise);
        }
        let kept = self.keep_promise(call, at);
        match self.targets[at].access.get() {
            Access::Promised => {
                self.break_promise(at);
                kept
            }
            _ => kept.and(self.unlock(call, target)),
        }
    }

    #[cold]
    #[track_caller]
    fn lock_error(&self, call: &'static str, at: usize, refusal: Refusal) -> Error {
        self.lock_refused(call, refusal, self.first_at(at))
    }

    /// The error of a lock that is not granted; `holder` is who has it, or waits for it first.
    #[cold]
    #[track_caller]
    pub(super) fn lock_refused(&self, call: &'static str, refusal: Refusal, holder: Option<Rank>) -> Error {
        match refusal {
            Refusal::Poisoned => self.poisoned_now(call),
            Refusal::Posted => self.error(ErrorKind::MixedSync, call).other("its owner's post"),
            Refusal::Busy | Refusal::Full => {
                let error = self.error(ErrorKind::NoCheckConflict, call);
                match holder {
                    Some(rank) => error.other(format!("the lock of rank {rank}")),
                    None => error.other("shared locks"),
                }
            }
        }
    }

    /// The rank that has the lock of `owner` exclusively, or is the first to wait for it.
    pub(super) fn first_at(&self, owner: usize) -> Option<Rank> {
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
        let ticket = match request {
            Ok(Request::Granted) => return Ok(()),
            Ok(Request::Queued(ticket)) => ticket,
            Err(refusal) => return Err(self.lock_error(call, at, refusal)),
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
            let waiter = self.waiter(owner, ticket.slot(slots));
            waiter.event.notify();
            if owner == self.me {
                self.ring();
            } else if self.served.is_some()
                && let Some(rank) = waiter.slot.waiter(ticket)
                && self.targets[rank as usize].remote
            {
                self.ring_at(owner);
            }
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

/// What is said of a lock that is not asked for.
fn vouched(kind: LockKind) -> Vouched {
    match kind {
        LockKind::Exclusive => Vouched::Alone,
        LockKind::Shared => Vouched::Unlocked,
    }
}

#[cfg(test)]
mod tests {
    use crate::error::{ErrorKind, Result};
    use crate::team::Rank;
    use crate::window::Window;
    use crate::window::raw::LockKind;

    /// The typed interface has no unlock without a lock; the core has, for other languages.
    #[test]
    fn an_unlock_without_a_lock_is_refused() {
        let kinds = crate::run::spawn(1, |team| {
            let window = Window::<u64>::allocate(team, 1)?;
            let window = window.raw();
            let before = window.unlock("unlock", Rank(0)).expect_err("nothing is held").kind();
            window.lock("lock", Rank(0), LockKind::Shared)?;
            window.unlock("unlock", Rank(0))?;
            let after = window.unlock("unlock", Rank(0)).expect_err("nothing is held any more").kind();
            Ok([before, after])
        });
        let kinds: Vec<_> = kinds.expect("the rank ends well").into_iter().collect::<Result<_>>().unwrap();
        assert_eq!(kinds, [[ErrorKind::NotLocked; 2]]);
    }
}
