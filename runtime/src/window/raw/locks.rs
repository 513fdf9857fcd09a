//! The lock of each rank's window: taken by whoever is first, without its owner's help. Never grants a lock that a lost holder had.
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering;

use rma_automaton::Check;

use super::failures::{Failure, Lost};
use super::{Access, Info, LockKind, RawWindow};
use crate::error::{Error, ErrorKind, Result};
use crate::liveness::{Act, Needs, WaitFor};
use crate::sync::phases::Reason;
use crate::sync::registers::arrived;
use crate::sync::state_word::{Refusal, Request, Sharing, Turn};
use crate::team::Rank;

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
        if here.remote {
            match self.lock_remote(call, at, sharing, info != Info::NoCheck)? {
                Ok(()) => return self.hold(at, kind),
                Err((refusal, holder)) => {
                    return Err(self.lock_refused(call, refusal, holder).target(target));
                }
            }
        }
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
                // No closure: the error names the line of this call's caller.
                Info::NoCheck => match granted {
                    Ok(_) => Ok(()),
                    Err(refusal) => Err(self.lock_error(call, at, refusal)),
                },
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
        self.hold(at, kind)
    }

    #[inline(always)]
    fn hold(&self, at: usize, kind: LockKind) -> Result<()> {
        self.targets[at].access.set(match kind {
            LockKind::Exclusive => Access::Exclusive,
            LockKind::Shared => Access::Shared,
        });
        self.open.locked.set(self.open.locked.get() + 1);
        Ok(())
    }

    /// Takes the lock of a target once more, which the table allows under NOCHECK (RMA-LOCK-12). The nest is exclusive as
    /// soon as one lock of it is.
    #[cold]
    #[track_caller]
    fn nest(&self, call: &'static str, at: usize, kind: LockKind) -> Result<()> {
        let here = &self.targets[at];
        if (here.access.get(), kind) == (Access::Shared, LockKind::Exclusive) {
            match here.remote {
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
            Access::None | Access::Started => {
                return Err(self.error(ErrorKind::NotLocked, call).target(target));
            }
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

    #[cold]
    #[track_caller]
    fn lock_error(&self, call: &'static str, at: usize, refusal: Refusal) -> Error {
        self.lock_refused(call, refusal, self.first_at(at))
    }

    /// The error of a lock that is not granted; `holder` is who has it, or waits for it first.
    #[cold]
    #[track_caller]
    fn lock_refused(&self, call: &'static str, refusal: Refusal, holder: Option<Rank>) -> Error {
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

    /// Returns when what this rank has put is where others look.
    #[inline(always)]
    pub(crate) fn let_arrive(&self) {
        arrived();
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
            self.waiter(owner, ticket.slot(slots)).event.notify();
            if owner == self.me {
                self.ring();
            }
        }
    }

    /// Completes the transfers to a target without giving its lock back.
    #[track_caller]
    #[inline]
    pub(crate) fn flush(&self, call: &'static str, target: Rank) -> Result<()> {
        let at = self.check_rank(call, target)?;
        match self.targets[at].remote {
            false => {
                // Transfers of mapped memory are complete at the origin when they return, and at the target after this.
                self.let_arrive();
                Ok(())
            }
            true => self.flush_remote(call, std::iter::once(at)),
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
