//! A shared lock at every rank at once, and what completes transfers while it is held. Never takes a lock that nobody needs: each
//! is taken by the first transfer to its target, so opening and closing cost the same for any number of ranks.
#![forbid(unsafe_code)]

use std::sync::atomic::{Ordering, compiler_fence, fence};

use rma_automaton::Call;

use super::{Access, LockKind, RawWindow, Target};
use crate::error::Result;
use crate::sync::primitive::CHANGES_ARE_FENCES;
use crate::team::Rank;

impl RawWindow {
    /// Opens an epoch toward all ranks.
    #[track_caller]
    pub(crate) fn lock_all(&self, call: &'static str) -> Result<()> {
        self.refuse_poisoned(call)?;
        self.refuse_illegal(call, Call::LockAll)?;
        self.open.locked.set(self.open.locked.get() + 1);
        self.all_locked.set(true);
        self.import();
        Ok(())
    }

    /// Ends it: gives back what it has taken.
    pub(crate) fn unlock_all(&self) {
        for at in self.taken_by_all.take() {
            match self.unlock("unlock_all", Rank(at as u32)) {
                Ok(()) => {}
                // Its lock was held, so this is a target that can't be reached any more.
                Err(error) => self.context.leave_open(error),
            }
        }
        if self.all_locked.replace(false) {
            self.publish();
            self.open.locked.set(self.open.locked.get() - 1);
        }
    }

    /// Whether an epoch toward all ranks is open.
    pub(super) fn has_all_locked(&self) -> bool {
        self.all_locked.get()
    }

    /// Takes the lock of a target that the epoch toward all ranks comes to for the first time.
    #[cold]
    #[track_caller]
    pub(super) fn take_for_all(&self, call: &'static str, at: usize) -> Result<&Target> {
        if self.targets[at].access.get() == Access::None {
            self.refuse_poisoned(call)?;
            self.take_lock(call, at, LockKind::Shared)?;
            self.open.locked.set(self.open.locked.get() + 1);
            self.taken_by_all.borrow_mut().push(at);
        }
        Ok(&self.targets[at])
    }

    /// Completes the transfers to a target at both sides.
    #[track_caller]
    #[inline]
    pub(crate) fn flush(&self, call: &'static str, target: Rank) -> Result<()> {
        self.flush_local(call, target)?;
        match self.targets[target.index()].remote {
            false => self.drain(),
            true => self.flush_remote(call, std::iter::once(target.index()))?,
        }
        Ok(())
    }

    /// Completes the transfers to all targets at both sides.
    #[track_caller]
    #[inline]
    pub(crate) fn flush_all(&self, call: &'static str) -> Result<()> {
        // An epoch toward all ranks is never kept for later.
        self.drain();
        match self.served.is_some() {
            false => Ok(()),
            true => {
                let others = (0..self.targets.len()).filter(|&at| self.targets[at].remote);
                self.flush_remote(call, others)
            }
        }
    }

    /// Completes the transfers to a target at this side: what they took is free again, what they brought is there.
    #[track_caller]
    #[inline]
    pub(crate) fn flush_local(&self, call: &'static str, target: Rank) -> Result<()> {
        let at = self.check_rank(call, target)?;
        match self.targets[at].access.get() {
            Access::Promised => self.keep_promise(call, at),
            // Transfers of mapped memory have taken and brought everything when they return.
            _ => Ok(()),
        }
    }

    /// Waits until what this rank has written to mapped memory is where all others see it.
    ///
    /// Two ranks that each put, flush and get what the other has put must not both miss it, so a Release is not enough. Where
    /// an atomic change of an element is a full fence itself, a flush after such changes alone has nothing to wait for, which
    /// halves the time of a fetch_op that is flushed. The note of plain stores stands until such a change, so that puts that are
    /// flushed one by one write none.
    #[inline(always)]
    fn drain(&self) {
        match !CHANGES_ARE_FENCES || self.undrained.get() {
            // SeqCst: pairs with the same fence of every other rank's flush.
            true => fence(Ordering::SeqCst),
            // SeqCst: as above, for the compiler.
            false => compiler_fence(Ordering::SeqCst),
        }
    }

    /// Notes that this handle writes by plain stores.
    #[inline(always)]
    pub(super) fn begin_writing(&self) {
        if !self.undrained.get() {
            self.undrained.set(true);
        }
    }

    /// Notes that an atomic change has followed all that this handle has written.
    #[inline(always)]
    pub(super) fn end_writing(&self) {
        self.undrained.set(false);
    }

    /// Brings stores to where others look and puts to where the owner looks, in the midst of an epoch.
    #[track_caller]
    pub(crate) fn sync(&self, call: &'static str) -> Result<()> {
        self.refuse_views(call)?;
        // SeqCst: as in `drain`, for the own loads and stores; pairs with the fence of a flush, too.
        fence(Ordering::SeqCst);
        self.publish();
        self.import();
        fence(Ordering::SeqCst);
        Ok(())
    }
}
