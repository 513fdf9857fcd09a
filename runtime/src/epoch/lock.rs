//! Lock epochs: access to one rank's window without the rank taking part. Never keeps a lock past its scope.
#![forbid(unsafe_code)]

use std::marker::PhantomData;

use super::deliver::{Closed, Deliver};
use super::{Exactly, get_into_buffers, transfers};
use crate::element::Element;
use crate::error::Result;
use crate::team::Rank;
use crate::window::Window;
use crate::window::raw::{Info, LockKind, RawWindow};

/// A held lock. See [`Window::lock`].
pub struct LockEpoch<'scope, T: Element> {
    window: &'scope RawWindow,
    target: Rank,
    scope: Exactly<'scope>,
    elements: PhantomData<T>,
}

/// Unlocks when the body panics. The body's normal end forgets it.
struct Unwinding<'scope>(&'scope RawWindow, Rank);

impl Drop for Unwinding<'_> {
    fn drop(&mut self) {
        // The transfers of the body are complete, so the next holder finds the window as the panic left it. There is no
        // one to give an error to; a lock that is not held has nothing to give back.
        let _ = self.0.unlock("unlock", self.1);
    }
}

impl<T: Element> Window<T> {
    /// Takes the lock of a target's window, runs the body, and gives the lock back (other spellings: LOCK and UNLOCK, RMA_LOCK,
    /// WINDOWLOCK, WIN_LOCK; EXCLUSIVE, LOCK_EXCLUSIVE).
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
    #[doc(alias = "WIN_LOCK")]
    #[doc(alias = "LOCK_EXCLUSIVE")]
    pub fn lock<'scope, R: Deliver>(
        &'scope self,
        target: Rank,
        kind: LockKind,
        body: impl FnOnce(&LockEpoch<'scope, T>) -> R,
    ) -> Result<R::Output> {
        self.lock_with(target, kind, Info::Strong, body)
    }

    /// As [`lock`](Window::lock), with what the caller knows. Under [`Info::NoCheck`] the lock is tried once.
    ///
    /// # Errors
    /// As [`lock`](Window::lock), and `NoCheckConflict` if the promise did not hold.
    #[track_caller]
    pub fn lock_with<'scope, R: Deliver>(
        &'scope self,
        target: Rank,
        kind: LockKind,
        info: Info,
        body: impl FnOnce(&LockEpoch<'scope, T>) -> R,
    ) -> Result<R::Output> {
        let window = self.raw();
        window.hook("lock", Some(target), || None);
        window.lock("lock", target, kind, info)?;
        let unwinding = Unwinding(window, target);
        let result = body(&LockEpoch { window, target, scope: PhantomData, elements: PhantomData });
        std::mem::forget(unwinding);
        window.hook("unlock", Some(target), || None);
        match window.unlock("unlock", target) {
            Ok(()) => result.deliver(&Closed::new()),
            Err(error) => Err(result.into_failure().unwrap_or(error)),
        }
    }
}

impl<'scope, T: Element> LockEpoch<'scope, T> {
    transfers!('scope, <>, 'scope);
    get_into_buffers!('scope);

    /// Completes the transfers so far without giving the lock back, and opens what they brought.
    ///
    /// # Errors
    /// The error that `pending` holds; `PeerLost`, if a transfer could not be finished.
    #[track_caller]
    pub fn flush<R: Deliver>(&self, pending: R) -> Result<R::Output> {
        self.window.hook("flush", Some(self.target), || None);
        self.window.flush("flush", self.target)?;
        pending.deliver(&Closed::new())
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
