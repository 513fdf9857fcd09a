//! Epochs toward all ranks under shared locks: random access without naming targets before. Never keeps a lock past its scope.
#![forbid(unsafe_code)]

use std::marker::PhantomData;

use super::deliver::{Closed, Deliver};
use super::{Exactly, get_into_buffers, transfers};
use crate::element::Element;
use crate::error::Result;
use crate::team::Rank;
use crate::window::Window;
use crate::window::raw::RawWindow;

/// Shared access to every rank's window. See [`Window::lock_all`].
pub struct LockAllEpoch<'scope, T: Element> {
    window: &'scope RawWindow,
    scope: Exactly<'scope>,
    elements: PhantomData<T>,
}

/// Gives the locks back on every way out.
struct Closing<'scope>(&'scope RawWindow);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        // The transfers of the body are complete, so the next holder finds the window as the body left it.
        self.0.unlock_all();
    }
}

impl<T: Element> Window<T> {
    /// Runs the body with a shared lock at every rank, the own one included (WIN_LOCK_ALL and WIN_UNLOCK_ALL).
    ///
    /// The lock of a rank is taken by the first transfer to it, which waits for an exclusive holder and can fail as
    /// [`lock`](Window::lock) can. So the cost does not grow with the number of ranks, and a rank that nothing is transferred
    /// to is not kept from its own views.
    ///
    /// ```
    /// use rma::{Rank, Sum, Window};
    /// let counts = rma::spawn(3, |team| {
    ///     let window = Window::<u64>::allocate(team, 1)?;
    ///     window.lock_all(|epoch| {
    ///         for rank in team.ranks() {
    ///             epoch.accumulate(rank, 0, Sum, 1)?;
    ///         }
    ///         Ok(())
    ///     })?;
    ///     team.barrier()?;
    ///     window.load(0)
    /// })?;
    /// assert!(counts.into_iter().all(|count| count.unwrap() == 3));
    /// # Ok::<(), rma::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error that the body returns; `LockHeld` with a lock of this window held, `MixedSync` within another epoch,
    /// `Poisoned`.
    #[track_caller]
    #[doc(alias = "WIN_LOCK_ALL")]
    pub fn lock_all<'scope, R: Deliver>(
        &'scope self,
        body: impl FnOnce(&LockAllEpoch<'scope, T>) -> R,
    ) -> Result<R::Output> {
        let window = self.raw();
        window.hook("lock_all", None, || None);
        window.lock_all("lock_all")?;
        let closing = Closing(window);
        let result = body(&LockAllEpoch { window, scope: PhantomData, elements: PhantomData });
        window.hook("unlock_all", None, || None);
        drop(closing);
        result.deliver(&Closed::window(window))
    }
}

impl<'scope, T: Element> LockAllEpoch<'scope, T> {
    transfers!('scope, <>, 'scope);
    get_into_buffers!('scope);

    /// Completes the transfers to a target at both sides, and opens what they brought: whoever is told of it afterwards sees what
    /// they did.
    ///
    /// # Errors
    /// The error that `pending` holds; `RankOutOfRange`.
    #[track_caller]
    pub fn flush<R: Deliver>(&self, target: Rank, pending: R) -> Result<R::Output> {
        self.window.hook("flush", Some(target), || None);
        self.window.flush("flush", target)?;
        pending.deliver(&Closed::toward(self.window, &[target]))
    }

    /// As [`flush`](LockAllEpoch::flush), for all targets.
    ///
    /// # Errors
    /// The error that `pending` holds.
    #[track_caller]
    pub fn flush_all<R: Deliver>(&self, pending: R) -> Result<R::Output> {
        self.window.hook("flush_all", None, || None);
        self.window.flush_all("flush_all")?;
        pending.deliver(&Closed::window(self.window))
    }

    /// Completes the transfers to a target at this side, and opens what they brought. The target may not have everything yet.
    ///
    /// # Errors
    /// As [`flush`](LockAllEpoch::flush).
    #[track_caller]
    pub fn flush_local<R: Deliver>(&self, target: Rank, pending: R) -> Result<R::Output> {
        self.window.hook("flush_local", Some(target), || None);
        self.window.flush_local("flush_local", target)?;
        pending.deliver(&Closed::toward(self.window, &[target]))
    }

    /// As [`flush_local`](LockAllEpoch::flush_local), for all targets.
    ///
    /// # Errors
    /// The error that `pending` holds.
    #[track_caller]
    pub fn flush_local_all<R: Deliver>(&self, pending: R) -> Result<R::Output> {
        self.window.hook("flush_local_all", None, || None);
        pending.deliver(&Closed::window(self.window))
    }

    /// Makes this rank's stores gettable, and what others have put loadable, without ending the epoch (WIN_SYNC).
    ///
    /// # Errors
    /// `StoreDuringUpdate` while a local view of the window lives.
    #[track_caller]
    pub fn sync(&self) -> Result<()> {
        self.window.hook("sync", None, || None);
        self.window.sync("sync")
    }

    #[inline(always)]
    fn raw(&self) -> &RawWindow {
        self.window
    }
}
