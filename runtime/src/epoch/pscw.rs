//! Post, start, complete, wait: synchronization of those that have to do with each other. Never lets an origin in twice.
//!
//! Both sides come as scopes and as guards. A guard that is dropped closes what it can: an access is completed, an exposure
//! ends if nobody is inside and breaks the window otherwise.
#![forbid(unsafe_code)]

use std::marker::PhantomData;
use std::ops::{Deref, Range};

use super::deliver::{Closed, Deliver};
use super::{Exactly, get_into_buffers, transfers};
use crate::element::Element;
use crate::error::Result;
use crate::info::Hints;
use crate::team::Rank;
use crate::window::Window;
use crate::window::raw::{Expected, Origins, RawWindow, Unexposed};

/// The own window, posted. See [`Window::post`].
///
/// It dereferences to the window, so that a rank can start accesses to others while its own window is posted; the calls
/// that would give a view of the posted memory, or post it again, return errors or need `&mut`.
#[must_use = "the exposure ends with `wait`"]
pub struct Exposure<'w, T: Element> {
    window: &'w mut Window<T>,
}

/// An open access to the windows of some ranks, as a guard. See [`Window::start`].
#[must_use = "the access ends with `complete`"]
pub struct Access<'w, T: Element> {
    targets: Targets<'w, T>,
}

/// An open access to the windows of some ranks, as the scope of a closure. See [`Window::access`].
pub struct AccessEpoch<'scope, T: Element> {
    window: &'scope RawWindow,
    scope: Exactly<'scope>,
    elements: PhantomData<T>,
}

/// Targets that have been started, to be completed.
struct Targets<'w, T> {
    window: &'w RawWindow,
    ranks: Ranks,
    elements: PhantomData<T>,
}

/// One target costs no allocation.
enum Ranks {
    One(Rank),
    Many(Vec<Rank>),
}

impl Ranks {
    fn as_slice(&self) -> &[Rank] {
        match self {
            Ranks::One(rank) => std::slice::from_ref(rank),
            Ranks::Many(ranks) => ranks,
        }
    }
}

impl<T> Targets<'_, T> {
    #[track_caller]
    fn complete(self) -> Result<()> {
        self.complete_all().map(|_| ())
    }

    /// Completes the accesses, and says to whom they were.
    #[track_caller]
    fn complete_all(mut self) -> Result<Ranks> {
        // What is left has nothing to complete when it is dropped.
        let ranks = std::mem::replace(&mut self.ranks, Ranks::Many(Vec::new()));
        let mut outcome = Ok(());
        for &rank in ranks.as_slice() {
            self.window.hook("complete", Some(rank), || None);
            let completed = self.window.complete("complete", rank);
            outcome = outcome.and(completed);
        }
        outcome.map(|()| ranks)
    }
}

impl<T> Drop for Targets<'_, T> {
    fn drop(&mut self) {
        for &rank in self.ranks.as_slice() {
            // Transfers are complete when they return, so completing is right on every way out.
            self.window.abandon_epoch(rank, || self.window.complete("complete", rank));
        }
    }
}

/// Ends an exposure that is still open, on every way out.
struct Exposed<'w>(&'w RawWindow);

impl Drop for Exposed<'_> {
    fn drop(&mut self) {
        self.0.abandon_exposure();
    }
}

impl<T: Element> Window<T> {
    /// Opens the own window to origins until [`wait`](Exposure::wait). Never waits for others.
    ///
    /// # Errors
    /// `AlreadyPosted` after a leaked exposure; `MixedSync` while somebody has or waits for this window's lock;
    /// `RankOutOfRange`, `Poisoned`.
    #[track_caller]
    pub fn post(&mut self, origins: Origins<'_>) -> Result<Exposure<'_, T>> {
        let window = self.exclusive_raw();
        window.hook("post", None, || None);
        window.post("post", origins)?;
        Ok(Exposure { window: self })
    }

    /// The guard of an exposure that is open and has none: that of a window that was created posted, or whose guard was leaked.
    ///
    /// # Errors
    /// `WaitWithoutPost` if the window is not posted; `Poisoned`.
    #[track_caller]
    pub fn posted(&mut self) -> Result<Exposure<'_, T>> {
        self.exclusive_raw().awaited("posted", Expected::Count(0))?;
        Ok(Exposure { window: self })
    }

    /// Posts the own window, runs the body, and waits for the origins.
    ///
    /// # Errors
    /// The error that the body returns; as [`post`](Window::post) and [`wait`](Exposure::wait).
    #[track_caller]
    pub fn exposure<R: Deliver>(
        &mut self,
        origins: Origins<'_>,
        expected: impl Into<Expected>,
        body: impl FnOnce(&Exposure<'_, T>) -> R,
    ) -> Result<R::Output> {
        let exposure = self.post(origins)?;
        let result = body(&exposure);
        match exposure.wait(expected) {
            // The accesses of the body have ended in it.
            Ok(()) => result.deliver(&Closed::window(self.raw())),
            Err(error) => Err(result.into_failure().unwrap_or(error)),
        }
    }

    /// As [`exposure`](Window::exposure), but only a range of this rank's part is open; the body has the rest as slices meanwhile.
    ///
    /// It is to post and wait what [`fence_part`](Window::fence_part) is to fences.
    ///
    /// ```
    /// use rma::{Info, Origins, Rank, Window};
    /// let sums = rma::spawn(2, |team| {
    ///     let mut window = Window::<u64>::allocate(team, 100)?;
    ///     let (me, other) = (team.rank(), Rank(1 - team.rank().0));
    ///     window.exposure_part(0..2, Origins::Group(&[other]), 1, |exposure, mine| {
    ///         let access = exposure.start(other, Info::Weak)?;
    ///         access.put(other, 0, [u64::from(me.0); 2])?;
    ///         mine.after.fill(7);
    ///         access.complete()
    ///     })?;
    ///     Ok(window.local()?.iter().sum::<u64>())
    /// })?;
    /// assert_eq!(sums.into_iter().collect::<rma::Result<Vec<u64>>>()?, [98 * 7 + 2, 98 * 7]);
    /// # Ok::<(), rma::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`exposure`](Window::exposure), and `OutOfBounds` for a range outside of this rank's part.
    #[track_caller]
    pub fn exposure_part<R: Deliver>(
        &mut self,
        exposed: Range<usize>,
        origins: Origins<'_>,
        expected: impl Into<Expected>,
        body: impl FnOnce(&Exposure<'_, T>, Unexposed<'_, T>) -> R,
    ) -> Result<R::Output> {
        const CALL: &str = "post";
        let window = self.exclusive_raw();
        window.hook(CALL, None, || None);
        window.post_part::<T>(CALL, &exposed, origins)?;
        let exposure = Exposure { window: self };
        let result = exposure.raw().lend(CALL, |rest| body(&exposure, rest))?;
        match exposure.wait(expected) {
            Ok(()) => result.deliver(&Closed::window(self.raw())),
            Err(error) => Err(result.into_failure().unwrap_or(error)),
        }
    }

    /// Starts an access to a target that has posted its window, or will: waits for that.
    ///
    /// It orders accesses to this window and nothing else, so it is no rendezvous: under [`Info::Weak`](crate::Info::Weak) it
    /// may return before the target has posted, and what the program does beside the transfers of the epoch waits for
    /// neither start nor complete.
    ///
    /// Under [`Info::NoCheck`](crate::Info::NoCheck) there is no wait, and one test that the target is posted, here or, without
    /// shared memory, at the target when a transfer or the complete arrives; under [`Info::Weak`](crate::Info::Weak)
    /// the wait may come later, in a transfer or in the closing call.
    ///
    /// # Errors
    /// `StartNested` if an access to the target is open; `MixedSync` inside a fence phase or with the target's lock held;
    /// under `NoCheck` `NotPosted` and `NotInGroup`, which may come from a later call of the epoch; `RankOutOfRange`, `PeerLost`, `Stalled`, `Poisoned`; `WindowFreed` if the
    /// target has dropped the window; `BadInfo` for a malformed hint.
    #[track_caller]
    pub fn start(&self, target: Rank, info: impl Into<Hints>) -> Result<Access<'_, T>> {
        let window = self.raw();
        window.hook("start", Some(target), || None);
        let terms = window.terms("start", &info.into())?;
        window.start("start", target, terms)?;
        Ok(Access::started(window, target))
    }

    /// Starts an access to several targets, as by one [`start`](Window::start) for each.
    ///
    /// # Errors
    /// As [`start`](Window::start); those that were started before are completed.
    #[track_caller]
    pub fn start_group(&self, targets: &[Rank], info: impl Into<Hints>) -> Result<Access<'_, T>> {
        Ok(Access { targets: self.start_all(targets, info)? })
    }

    /// Starts an access to some targets, runs the body, and completes it.
    ///
    /// # Errors
    /// The error that the body returns; as [`start`](Window::start).
    #[track_caller]
    pub fn access<'scope, R: Deliver>(
        &'scope self,
        targets: &[Rank],
        info: impl Into<Hints>,
        body: impl FnOnce(&AccessEpoch<'scope, T>) -> R,
    ) -> Result<R::Output> {
        let started = self.start_all(targets, info)?;
        let result = body(&AccessEpoch { window: self.raw(), scope: PhantomData, elements: PhantomData });
        match started.complete() {
            Ok(()) => result.deliver(&Closed::toward(self.raw(), targets)),
            Err(error) => Err(result.into_failure().unwrap_or(error)),
        }
    }

    /// Both at once: posts the own window, starts an access, runs the body, completes, and waits for the origins.
    ///
    /// Posting comes first, so that neighbours that do the same let each other in.
    ///
    /// # Errors
    /// As [`access`](Window::access) and [`exposure`](Window::exposure).
    #[doc(hidden)]
    #[track_caller]
    pub fn exchange<'scope, R: Deliver>(
        &'scope mut self,
        targets: &[Rank],
        origins: Origins<'_>,
        expected: Expected,
        info: impl Into<Hints>,
        body: impl FnOnce(&AccessEpoch<'scope, T>) -> R,
    ) -> Result<R::Output> {
        self.exclusive_raw();
        let window: &'scope Window<T> = self;
        let raw = window.raw();
        raw.hook("post", None, || None);
        raw.post("post", origins)?;
        let exposed = Exposed(raw);
        let started = window.start_all(targets, info)?;
        let result = body(&AccessEpoch { window: raw, scope: PhantomData, elements: PhantomData });
        let completed = started.complete();
        raw.hook("wait", None, || None);
        // Dropping the guard afterwards closes an exposure that the wait has left open.
        let waited = raw.wait("wait", expected);
        drop(exposed);
        match completed.and(waited) {
            Ok(()) => result.deliver(&Closed::toward(raw, targets)),
            Err(error) => Err(result.into_failure().unwrap_or(error)),
        }
    }

    #[track_caller]
    fn start_all(&self, targets: &[Rank], info: impl Into<Hints>) -> Result<Targets<'_, T>> {
        let window = self.raw();
        let terms = window.terms("start", &info.into())?;
        let ranks = Ranks::Many(Vec::with_capacity(targets.len()));
        let mut started = Targets { window, ranks, elements: PhantomData };
        for &target in targets {
            window.hook("start", Some(target), || None);
            window.start("start", target, terms)?;
            match &mut started.ranks {
                Ranks::One(_) => {}
                Ranks::Many(ranks) => ranks.push(target),
            }
        }
        Ok(started)
    }
}

impl<T: Element> Exposure<'_, T> {
    /// Ends the exposure when the expected number of different origins, or the whole group, has completed.
    ///
    /// # Errors
    /// `CountExceeded` if more have come, or fewer are counted than the group has (the exposure has ended all the same);
    /// `WaitWithoutPost` for [`Expected::All`] without a group; `PeerLost` and `Stalled`, after which the window is out of
    /// use.
    #[track_caller]
    pub fn wait(self, expected: impl Into<Expected>) -> Result<()> {
        let window = self.window.raw();
        window.hook("wait", None, || None);
        // Dropping the guard afterwards closes an exposure that the wait has left open.
        window.wait("wait", expected.into())
    }

    /// Ends the exposure when every member of the posted group has completed.
    ///
    /// # Errors
    /// As [`wait`](Exposure::wait).
    #[track_caller]
    pub fn wait_all(self) -> Result<()> {
        self.wait(Expected::All)
    }
}

impl<T: Element> Drop for Exposure<'_, T> {
    fn drop(&mut self) {
        self.window.raw().abandon_exposure();
    }
}

impl<T: Element> Deref for Exposure<'_, T> {
    type Target = Window<T>;

    fn deref(&self) -> &Window<T> {
        self.window
    }
}

impl From<usize> for Expected {
    fn from(count: usize) -> Expected {
        Expected::Count(count)
    }
}

impl<'w, T: Element> Access<'w, T> {
    transfers!('w, <'call>, 'call);

    /// The guard of an access that was started.
    pub(super) fn started(window: &'w RawWindow, target: Rank) -> Access<'w, T> {
        Access { targets: Targets { window, ranks: Ranks::One(target), elements: PhantomData } }
    }

    /// Ends the access. What the transfers took is the caller's again.
    ///
    /// # Errors
    /// `PeerLost`, if a transfer could not be finished.
    #[track_caller]
    pub fn complete(self) -> Result<()> {
        self.targets.complete()
    }

    /// Ends the access and opens what its transfers brought.
    ///
    /// # Errors
    /// As [`complete`](Access::complete).
    #[track_caller]
    pub fn complete_with<R: Deliver>(self, pending: R) -> Result<R::Output> {
        let window = self.targets.window;
        let targets = self.targets.complete_all()?;
        pending.deliver(&Closed::toward(window, targets.as_slice()))
    }

    /// The ranks that may be accessed.
    pub fn targets(&self) -> &[Rank] {
        self.targets.ranks.as_slice()
    }

    #[inline(always)]
    fn raw(&self) -> &RawWindow {
        self.targets.window
    }
}

impl<'scope, T: Element> AccessEpoch<'scope, T> {
    transfers!('scope, <>, 'scope);
    get_into_buffers!('scope);

    #[inline(always)]
    fn raw(&self) -> &RawWindow {
        self.window
    }
}
