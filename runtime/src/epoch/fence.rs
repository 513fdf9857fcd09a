//! Fence phases: between two fences every rank may access every rank's window. Never leaves a phase without telling the others.
#![forbid(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Range;

use super::deliver::{Closed, Deliver};
use super::{Exactly, get_into_buffers, transfers};
use crate::element::Element;
use crate::error::Result;
use crate::window::Window;
use crate::window::raw::{RawWindow, Unexposed};

/// An open fence phase. See [`Window::fence`].
pub struct FenceEpoch<'scope, T: Element> {
    window: &'scope RawWindow,
    scope: Exactly<'scope>,
    elements: PhantomData<T>,
}

/// Ends the phase when the body panics. The body's normal end forgets it.
struct Unwinding<'scope>(&'scope RawWindow);

impl Drop for Unwinding<'_> {
    fn drop(&mut self) {
        self.0.abandon_phase();
    }
}

impl<T: Element> Window<T> {
    /// Opens a phase in which every rank may access every rank's window, runs the body, and closes it. Collective.
    ///
    /// There is a fence before the body and one after it; [`FenceEpoch::fence`] inside is one fence that ends a phase and
    /// begins the next. After a fence everybody sees what everybody did before it.
    ///
    /// ```
    /// let sums = rma::spawn(3, |team| {
    ///     let mut window = rma::Window::<u64>::allocate(team, 3)?;
    ///     let me = team.rank();
    ///     window.fence(|epoch| {
    ///         for target in team.ranks() {
    ///             epoch.put(target, me.index(), u64::from(me.0) + 1)?;
    ///         }
    ///         Ok(())
    ///     })?;
    ///     Ok(window.local()?.iter().sum::<u64>())
    /// })?;
    /// assert!(sums.into_iter().all(|sum: rma::Result<u64>| sum.unwrap() == 6));
    /// # Ok::<(), rma::Error>(())
    /// ```
    ///
    /// A buffer that is lent to a transfer can't be touched before the closing fence:
    ///
    /// ```compile_fail,E0502
    /// # fn f(window: &mut rma::Window<u64>, left: rma::Rank) -> rma::Result<()> {
    /// let mut halo = [0; 4];
    /// window.fence(|epoch| {
    ///     epoch.get(left, 0, &mut halo)?;
    ///     println!("{halo:?}");
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// The error that the body returns, after the closing fence; `MixedSync` with an own start, post or lock open;
    /// `PeerLost`, `Stalled`, `CollectiveMismatch`, after which the window is out of use (`Poisoned`).
    #[track_caller]
    pub fn fence<'scope, R: Deliver>(
        &'scope mut self,
        body: impl FnOnce(&FenceEpoch<'scope, T>) -> R,
    ) -> Result<R::Output> {
        const CALL: &str = "fence";
        let window = self.exclusive_raw();
        window.hook(CALL, None, || None);
        window.open_phase(CALL)?;
        let unwinding = Unwinding(window);
        let result = body(&FenceEpoch { window, scope: PhantomData, elements: PhantomData });
        std::mem::forget(unwinding);
        close(window, CALL, result)
    }

    /// As [`fence`](Window::fence), but of this rank's part only a range is open to the others; the body has the rest as slices
    /// meanwhile. All ranks must come to this call, each with its own range, which may be empty or everything.
    ///
    /// That is how work on the inside overlaps with the transfer of rims: halos and packed rims lie in the range, and everything
    /// else stays the rank's own. What a transfer or the epoch's own `load`, `store`, `read`, `write` and
    /// [`own`](crate::own) name has to lie in the range.
    ///
    /// ```
    /// use rma::{Rank, Window};
    /// let inner = rma::spawn(3, |team| {
    ///     let mut window = Window::<u32>::allocate(team, 10)?;
    ///     let next = Rank((team.rank().0 + 1) % team.size());
    ///     window.fence_part(8..10, |epoch, mine| {
    ///         epoch.put(next, 8, [team.rank().0; 2])?;
    ///         mine.before.iter_mut().for_each(|cell| *cell += 1);
    ///         Ok(())
    ///     })?;
    ///     Ok((window.load(0)?, window.load(9)?))
    /// })?;
    /// # let inner: Vec<(u32, u32)> = inner.into_iter().collect::<rma::Result<_>>()?;
    /// assert_eq!(inner, [(1, 2), (1, 0), (1, 1)]);
    /// # Ok::<(), rma::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`fence`](Window::fence), and `OutOfBounds` for a range outside of this rank's part. A transfer that leaves its
    /// target's range is `OutOfBounds`, too, before a byte moves.
    #[track_caller]
    pub fn fence_part<'scope, R: Deliver>(
        &'scope mut self,
        exposed: Range<usize>,
        body: impl FnOnce(&FenceEpoch<'scope, T>, Unexposed<'_, T>) -> R,
    ) -> Result<R::Output> {
        const CALL: &str = "fence_part";
        let window = self.exclusive_raw();
        window.hook(CALL, None, || None);
        window.open_part_phase::<T>(CALL, &exposed)?;
        let unwinding = Unwinding(window);
        let epoch = FenceEpoch { window, scope: PhantomData, elements: PhantomData };
        let result = window.lend(CALL, |rest| body(&epoch, rest))?;
        std::mem::forget(unwinding);
        close(window, CALL, result)
    }
}

/// The fence that ends the last phase, and the result of the body after it.
#[track_caller]
fn close<R: Deliver>(window: &RawWindow, call: &'static str, result: R) -> Result<R::Output> {
    window.hook(call, None, || None);
    match window.close_phase(call) {
        Ok(()) => result.deliver(&Closed::window(window)),
        // A fence in the body that failed is the cause of this failure.
        Err(error) => Err(result.into_failure().unwrap_or(error)),
    }
}

impl<'scope, T: Element> FenceEpoch<'scope, T> {
    transfers!('scope, <>, 'scope);
    get_into_buffers!('scope);

    /// One fence that ends this phase and begins the next.
    ///
    /// # Errors
    /// As [`Window::fence`]. After an error no transfer is possible, and the window is out of use.
    #[track_caller]
    pub fn fence(&self) -> Result<()> {
        const CALL: &str = "fence";
        self.window.hook(CALL, None, || None);
        self.window.next_phase(CALL)
    }

    #[inline(always)]
    fn raw(&self) -> &RawWindow {
        self.window
    }
}
