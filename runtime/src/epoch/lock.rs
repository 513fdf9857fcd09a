//! Lock epochs: access to one rank's window without the rank taking part. Never keeps a lock past its scope.
#![forbid(unsafe_code)]

use std::marker::PhantomData;

use super::deliver::{Closed, Deliver};
use super::{Exactly, get_into_buffers, transfers};
use crate::element::Element;
use crate::error::Result;
use crate::info::Hints;
use crate::op::{Origin, Section};
use crate::team::Rank;
use crate::window::Window;
use crate::window::raw::{LockKind, RawWindow};

/// A held lock. See [`Window::lock`].
pub struct LockEpoch<'scope, T: Element> {
    window: &'scope RawWindow,
    target: Rank,
    scope: Exactly<'scope>,
    elements: PhantomData<T>,
}

/// A held lock, as a guard. See [`Window::acquire`].
#[must_use = "the lock is given back with `unlock`"]
pub struct Lock<'w, T: Element> {
    window: &'w RawWindow,
    target: Rank,
    elements: PhantomData<T>,
}

/// Unlocks when the body panics. The body's normal end forgets it.
struct Unwinding<'scope>(&'scope RawWindow, Rank);

impl Drop for Unwinding<'_> {
    fn drop(&mut self) {
        // The transfers of the body are complete, so the next holder finds the window as the panic left it.
        self.0.abandon_epoch(self.1, || self.0.unlock("unlock", self.1));
    }
}

impl<T: Element> Window<T> {
    /// Takes the lock of a target's window, runs the body, and gives the lock back.
    ///
    /// Elsewhere it is called LOCK, RMA_LOCK, WINDOWLOCK or WIN_LOCK; the names of the kinds are those of [`LockKind`].
    ///
    /// Waiters are served in the order in which they came; shared ones that follow each other hold the lock together.
    ///
    /// ```
    /// use rma::{LockKind, Rank, Sum};
    /// let tickets = rma::spawn(4, |team| {
    ///     let counter = rma::Window::<u64>::allocate(team, if team.rank() == Rank(0) { 1 } else { 0 })?;
    ///     counter.lock(Rank(0), LockKind::Shared, |epoch| epoch.fetch_op(Rank(0), 0, Sum, 1))
    /// })?;
    /// let mut tickets: Vec<u64> = tickets.into_iter().collect::<rma::Result<_>>()?;
    /// tickets.sort_unstable();
    /// assert_eq!(tickets, [0, 1, 2, 3]);
    /// # Ok::<(), rma::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error that the body returns, after the unlock; `LockHeld` if this rank has the lock already, also by a local view
    /// of its own window; `MixedSync` if the target has posted its window; `PeerLost`, `Stalled`, `Poisoned`.
    #[track_caller]
    #[doc(alias("LOCK", "RMA_LOCK", "WINDOWLOCK", "WIN_LOCK"))]
    pub fn lock<'scope, R: Deliver>(
        &'scope self,
        target: Rank,
        kind: LockKind,
        body: impl FnOnce(&LockEpoch<'scope, T>) -> R,
    ) -> Result<R::Output> {
        let window = self.raw();
        window.hook("lock", Some(target), || None);
        window.lock("lock", target, kind)?;
        self.under_lock(target, body)
    }

    /// As [`lock`](Window::lock), with what the caller knows. Under [`Info::NoCheck`](crate::Info::NoCheck) the lock is tried
    /// once, by each transfer for itself if the target shares no memory with this rank, and may nest in another of the same rank;
    /// under [`Info::Weak`](crate::Info::Weak) it may be taken later, in a
    /// transfer or in the unlock.
    ///
    /// # Errors
    /// As [`lock`](Window::lock); `NoCheckConflict` if the promise did not hold; `BadInfo` for a malformed hint.
    #[track_caller]
    pub fn lock_with<'scope, R: Deliver>(
        &'scope self,
        target: Rank,
        kind: LockKind,
        info: impl Into<Hints>,
        body: impl FnOnce(&LockEpoch<'scope, T>) -> R,
    ) -> Result<R::Output> {
        let window = self.raw();
        window.hook("lock", Some(target), || None);
        let terms = window.terms("lock", &info.into())?;
        window.lock_on("lock", target, kind, terms)?;
        self.under_lock(target, body)
    }

    /// Gives the elements of a target that a section names, under a lock that this call takes as [`lock_with`](Window::lock_with)
    /// does, and gives back: LOCK, GET and UNLOCK in one.
    ///
    /// ```
    /// use rma::{Info, LockKind, Rank, Window};
    /// let values = rma::spawn(2, |team| {
    ///     let window = Window::<u64>::allocate(team, 4)?;
    ///     if team.rank() == Rank(1) {
    ///         window.put_locked(Rank(0), LockKind::Exclusive, Info::Strong, 1, [5, 6])?;
    ///     }
    ///     team.barrier()?;
    ///     window.get_locked(Rank(0), LockKind::Shared, Info::Strong, 0..3)
    /// })?;
    /// assert_eq!(values.into_iter().collect::<rma::Result<Vec<_>>>()?, [[0, 5, 6], [0, 5, 6]]);
    /// # Ok::<(), rma::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`lock_with`](Window::lock_with), and those of the epoch's `get_vec`.
    #[track_caller]
    pub fn get_locked<'at>(
        &self,
        target: Rank,
        kind: LockKind,
        info: impl Into<Hints>,
        at: impl Into<Section<'at>>,
    ) -> Result<Vec<T>> {
        let lock = self.acquire(target, kind, info)?;
        let elements = lock.get_vec(target, at);
        lock.release()?;
        elements?.deliver(&Closed::toward(self.raw(), &[target]))
    }

    /// Copies elements into a target's window, under a lock that this call takes as [`lock_with`](Window::lock_with) does, and
    /// gives back: LOCK, PUT and UNLOCK in one.
    ///
    /// # Errors
    /// As [`lock_with`](Window::lock_with), and those of the epoch's `put`.
    #[track_caller]
    pub fn put_locked<'at, 'call>(
        &self,
        target: Rank,
        kind: LockKind,
        info: impl Into<Hints>,
        at: impl Into<Section<'at>>,
        origin: impl Origin<'call, T>,
    ) -> Result<()> {
        let lock = self.acquire(target, kind, info)?;
        let put = lock.put(target, at, origin);
        lock.release()?;
        put
    }

    /// Takes the lock of a target's window until [`unlock`](Lock::unlock), as [`lock_with`](Window::lock_with) does for a body.
    ///
    /// ```
    /// use rma::{Info, LockKind, Rank, Window};
    /// let sums = rma::spawn(3, |team| {
    ///     let counter = Window::<u64>::allocate(team, 1)?;
    ///     let lock = counter.acquire(Rank(0), LockKind::Exclusive, Info::Strong)?;
    ///     let before = lock.flush(lock.get_value(Rank(0), 0)?)?;
    ///     lock.put(Rank(0), 0, before + 1)?;
    ///     lock.unlock()?;
    ///     team.rma_barrier()?;
    ///     counter.load(0)
    /// })?;
    /// assert_eq!(sums.into_iter().collect::<rma::Result<Vec<u64>>>()?, [3, 0, 0]);
    /// # Ok::<(), rma::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`lock_with`](Window::lock_with).
    #[track_caller]
    pub fn acquire(&self, target: Rank, kind: LockKind, info: impl Into<Hints>) -> Result<Lock<'_, T>> {
        let window = self.raw();
        window.hook("lock", Some(target), || None);
        let terms = window.terms("lock", &info.into())?;
        window.lock_on("lock", target, kind, terms)?;
        Ok(Lock { window, target, elements: PhantomData })
    }

    /// Runs the body with the lock held, and gives the lock back.
    #[track_caller]
    #[inline(always)]
    fn under_lock<'scope, R: Deliver>(
        &'scope self,
        target: Rank,
        body: impl FnOnce(&LockEpoch<'scope, T>) -> R,
    ) -> Result<R::Output> {
        let window = self.raw();
        let unwinding = Unwinding(window, target);
        let result = body(&LockEpoch { window, target, scope: PhantomData, elements: PhantomData });
        std::mem::forget(unwinding);
        window.hook("unlock", Some(target), || None);
        match window.unlock("unlock", target) {
            Ok(()) => result.deliver(&Closed::toward(window, &[target])),
            Err(error) => Err(result.into_failure().unwrap_or(error)),
        }
    }
}

/// What completes transfers under a lock of one rank.
macro_rules! flushes {
    () => {
        /// Completes the transfers so far at both sides without giving the lock back, and opens what they brought: whoever is
        /// told of it afterwards sees what they did.
        ///
        /// # Errors
        /// The error that `pending` holds; `PeerLost`, if a transfer could not be finished.
        #[track_caller]
        #[inline]
        pub fn flush<R: Deliver>(&self, pending: R) -> Result<R::Output> {
            self.window.hook("flush", Some(self.target), || None);
            self.window.flush("flush", self.target)?;
            pending.deliver(&Closed::toward(self.window, &[self.target]))
        }

        /// Completes the transfers so far at this side, and opens what they brought. The target may not have everything yet.
        ///
        /// # Errors
        /// As `flush`.
        #[track_caller]
        #[inline]
        pub fn flush_local<R: Deliver>(&self, pending: R) -> Result<R::Output> {
            self.window.hook("flush_local", Some(self.target), || None);
            self.window.flush_local("flush_local", self.target)?;
            pending.deliver(&Closed::toward(self.window, &[self.target]))
        }

        /// Makes this rank's stores gettable, and what others have put loadable, without giving the lock back (WIN_SYNC).
        ///
        /// # Errors
        /// `StoreDuringUpdate` while a local view of the window lives.
        #[track_caller]
        pub fn sync(&self) -> Result<()> {
            self.window.hook("sync", None, || None);
            self.window.sync("sync")
        }
    };
}

impl<'scope, T: Element> LockEpoch<'scope, T> {
    transfers!('scope, <>, 'scope);
    get_into_buffers!('scope);

    flushes!();

    /// The rank whose window is locked.
    pub fn target(&self) -> Rank {
        self.target
    }

    #[inline(always)]
    fn raw(&self) -> &RawWindow {
        self.window
    }
}

impl<'w, T: Element> Lock<'w, T> {
    transfers!('w, <'call>, 'call);

    flushes!();

    /// Gives the lock back (UNLOCK, RMA_UNLOCK, WINDOWUNLOCK, WIN_UNLOCK). What the transfers took is the caller's again.
    ///
    /// # Errors
    /// `PeerLost`, if a transfer could not be finished; for a lock under [`Info::Weak`](crate::Info::Weak) as
    /// [`Window::lock`].
    #[track_caller]
    #[doc(alias("UNLOCK", "RMA_UNLOCK", "WINDOWUNLOCK", "WIN_UNLOCK"))]
    pub fn unlock(self) -> Result<()> {
        self.release()
    }

    /// Gives the lock back and opens what the transfers brought.
    ///
    /// # Errors
    /// As [`unlock`](Lock::unlock).
    #[track_caller]
    pub fn unlock_with<R: Deliver>(self, pending: R) -> Result<R::Output> {
        let (window, target) = (self.window, self.target);
        self.release()?;
        pending.deliver(&Closed::toward(window, &[target]))
    }

    #[track_caller]
    fn release(self) -> Result<()> {
        self.window.hook("unlock", Some(self.target), || None);
        let outcome = self.window.unlock("unlock", self.target);
        std::mem::forget(self);
        outcome
    }

    /// The rank whose window is locked.
    pub fn target(&self) -> Rank {
        self.target
    }

    #[inline(always)]
    fn raw(&self) -> &RawWindow {
        self.window
    }
}

impl<T: Element> Drop for Lock<'_, T> {
    fn drop(&mut self) {
        self.window.abandon_epoch(self.target, || self.window.unlock("unlock", self.target));
    }
}
