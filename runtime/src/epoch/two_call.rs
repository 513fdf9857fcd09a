//! The two-call alternative to post, start, complete and wait. Never more than those four: it is a layer for programs whose
//! ranks take turns, and second choice everywhere else.
#![forbid(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Deref;

use super::transfers;
use crate::element::Element;
use crate::error::Result;
use crate::team::Rank;
use crate::window::Window;
use crate::window::raw::{Expected, RawWindow};

/// A window whose ranks let each other in by two calls. See [`Window::two_call`].
pub struct TwoCall<'w, T: Element> {
    window: &'w mut Window<T>,
    /// The ranks that have let this one in, and have not been let in by it since.
    open: Vec<Rank>,
    elements: PhantomData<T>,
}

impl<T: Element> Window<T> {
    /// Synchronizes this window by two calls: [`wait2`](TwoCall::wait2) waits until ranks let this one in,
    /// [`post2`](TwoCall::post2) gives one rank the turn.
    ///
    /// A rank that serves many needs a call for each of them, and has to know them; with
    /// [`post`](Window::post) one call lets in everybody.
    ///
    /// ```
    /// use rma::{Rank, Window};
    /// let last = rma::spawn(2, |team| {
    ///     let mut window = Window::<u32>::allocate(team, 1)?;
    ///     let (me, other) = (team.rank().0, Rank(1 - team.rank().0));
    ///     let mut turns = window.two_call();
    ///     if me == 0 {
    ///         turns.post2(other)?;
    ///     }
    ///     for round in 0..10 {
    ///         turns.wait2(1)?;
    ///         turns.put(other, 0, 2 * round + me)?;
    ///         turns.post2(other)?;
    ///     }
    ///     // The last turn is rank 1's, who does nothing with it.
    ///     turns.wait2(me as usize)?;
    ///     turns.load(0)
    /// })?;
    /// # let last: Vec<u32> = last.into_iter().collect::<rma::Result<_>>()?;
    /// # assert_eq!(last, [19, 18]);
    /// # Ok::<(), rma::Error>(())
    /// ```
    pub fn two_call(&mut self) -> TwoCall<'_, T> {
        self.exclusive_raw();
        TwoCall { window: self, open: Vec::new(), elements: PhantomData }
    }
}

impl<'w, T: Element> TwoCall<'w, T> {
    transfers!('w, <'call>, 'call);

    /// Waits until `count` ranks have let this one in, and until all ranks that this one has let in are done. Afterwards this
    /// rank may access the windows of those `count`, and its own is its own.
    ///
    /// # Errors
    /// `CountExceeded` for more than can let this one in; otherwise as
    /// [`Window::start`](Window::start) and [`Exposure::wait`](crate::Exposure::wait). `Stalled` names those that have not
    /// let this rank in.
    #[track_caller]
    pub fn wait2(&mut self, count: usize) -> Result<()> {
        const CALL: &str = "wait2";
        let window = self.window.raw();
        window.hook(CALL, None, || None);
        window.await_grants(CALL, count, &mut self.open)?;
        match window.has_granted() {
            true => window.wait(CALL, Expected::All),
            false => Ok(()),
        }
    }

    /// Completes the access to a rank, if there is one, and lets the rank access this rank's window.
    ///
    /// # Errors
    /// `AlreadyPosted` if the rank has been let in since the last [`wait2`](TwoCall::wait2); otherwise as
    /// [`Window::post`].
    #[track_caller]
    pub fn post2(&mut self, rank: Rank) -> Result<()> {
        const CALL: &str = "post2";
        let window = self.window.raw();
        window.hook(CALL, Some(rank), || None);
        if let Some(place) = self.open.iter().position(|&open| open == rank) {
            self.open.swap_remove(place);
            window.complete(CALL, rank)?;
        }
        window.grant(CALL, rank)
    }

    #[inline(always)]
    fn raw(&self) -> &RawWindow {
        self.window.raw()
    }
}

impl<T: Element> Drop for TwoCall<'_, T> {
    fn drop(&mut self) {
        let window = self.window.raw();
        for &rank in &self.open {
            window.abandon_epoch(rank, || window.complete("complete", rank));
        }
        window.abandon_exposure();
    }
}

impl<T: Element> Deref for TwoCall<'_, T> {
    type Target = Window<T>;

    fn deref(&self) -> &Window<T> {
        self.window
    }
}
