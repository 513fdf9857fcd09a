//! Start and wait as requests, which a program can ask about while it does something else. Never grants anything by itself:
//! each test is one look.
#![forbid(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Deref;

use super::pscw::{Access, Exposure};
use crate::element::Element;
use crate::error::Result;
use crate::info::Hints;
use crate::team::Rank;
use crate::window::Window;
use crate::window::raw::{Expected, RawWindow};

/// Whether a request still has something to ask for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Pending,
    /// It has been granted.
    Settled,
    /// Its caller has been told that it is not granted, and is told so again when it asks again.
    Refused,
}

/// A start that need not have been granted yet. See [`Window::istart`].
#[must_use = "the access begins with `wait`"]
pub struct StartRequest<'w, T: Element> {
    window: &'w RawWindow,
    target: Rank,
    state: State,
    elements: PhantomData<T>,
}

/// A wait that need not have ended yet. See [`Exposure::iwait`].
///
/// It dereferences to the window, as the exposure did.
#[must_use = "the exposure ends with `wait`, or when `test` says so"]
pub struct WaitRequest<'w, T: Element> {
    exposure: Exposure<'w, T>,
    expected: Expected,
    state: State,
}

impl<T: Element> Window<T> {
    /// Asks for an access to a target and does not wait for it (ISTART in the seeds' alternatives).
    ///
    /// Under [`Info::NoCheck`](crate::Info::NoCheck) it does not wait, as [`start`](Window::start) under it; the other values are the same here.
    ///
    /// Rust code may use its own part of the window meanwhile, by the calls that the window allows; what Fortran code has to
    /// declare that reaches the same memory is in `docs/registers.md`.
    ///
    /// ```
    /// use rma::{Info, Origins, Rank, Window};
    /// let seen = rma::spawn(2, |team| {
    ///     let mut window = Window::<u8>::allocate(team, 1)?;
    ///     let other = Rank(1 - team.rank().0);
    ///     let mut request = window.istart(other, Info::Strong)?;
    ///     assert!(!request.test()?);
    ///     # drop(request);
    ///     Ok::<(), rma::Error>(())
    /// });
    /// // A request that is dropped before it is granted is an epoch that was left open.
    /// assert_eq!(seen.unwrap_err().kind(), rma::ErrorKind::EpochStillOpen);
    /// ```
    ///
    /// # Errors
    /// As [`start`](Window::start).
    #[track_caller]
    pub fn istart(&self, target: Rank, info: impl Into<Hints>) -> Result<StartRequest<'_, T>> {
        const CALL: &str = "istart";
        let window = self.raw();
        window.hook(CALL, Some(target), || None);
        let terms = window.terms(CALL, &info.into())?;
        window.request_start(CALL, target, terms)?;
        Ok(StartRequest { window, target, state: State::Pending, elements: PhantomData })
    }
}

impl<'w, T: Element> StartRequest<'w, T> {
    /// Whether the access has been granted. If so, [`wait`](StartRequest::wait) returns at once.
    ///
    /// # Errors
    /// `PeerLost`, `WindowFreed`, `Poisoned`: it will not be granted.
    #[track_caller]
    pub fn test(&mut self) -> Result<bool> {
        let outcome = self.window.poll_start("test of an istart", self.target);
        if outcome.is_err() {
            self.state = State::Refused;
        }
        outcome
    }

    /// Waits until the access is granted.
    ///
    /// # Errors
    /// As [`Window::start`].
    #[track_caller]
    pub fn wait(mut self) -> Result<Access<'w, T>> {
        self.state = State::Refused; // What is returned says so, unless there is an access.
        self.window.finish_start("wait for an istart", self.target)?;
        let access = Access::started(self.window, self.target);
        std::mem::forget(self);
        Ok(access)
    }
}

impl<T: Element> Drop for StartRequest<'_, T> {
    fn drop(&mut self) {
        match self.state {
            State::Pending => self.window.withdraw_start(self.target),
            State::Settled | State::Refused => self.window.cancel_start(self.target),
        }
    }
}

impl<'w, T: Element> Exposure<'w, T> {
    /// Asks for the end of the exposure and does not wait for it. Until it has come others may write to the own part: what
    /// Fortran code has to declare that reaches the same memory is in `docs/registers.md`.
    ///
    /// # Errors
    /// `WaitWithoutPost` for [`Expected::All`] without a group; `CountExceeded` for more than can come.
    #[track_caller]
    pub fn iwait(self, expected: impl Into<Expected>) -> Result<WaitRequest<'w, T>> {
        const CALL: &str = "iwait";
        let expected = expected.into();
        self.raw().hook(CALL, None, || None);
        self.raw().awaited(CALL, expected)?;
        Ok(WaitRequest { exposure: self, expected, state: State::Pending })
    }
}

impl<T: Element> WaitRequest<'_, T> {
    /// Whether the exposure has ended: the call that finds all origins done ends it, and those that follow say so again.
    ///
    /// # Errors
    /// As [`Exposure::wait`]; a request that has failed once does not end any more.
    #[track_caller]
    pub fn test(&mut self) -> Result<bool> {
        if self.state == State::Settled {
            return Ok(true);
        }
        let outcome = self.exposure.raw().poll_wait("test of an iwait", self.expected);
        match outcome {
            Ok(false) => {}
            Ok(true) => self.state = State::Settled,
            Err(_) => self.state = State::Refused,
        }
        outcome
    }

    /// Waits for the end of the exposure.
    ///
    /// # Errors
    /// As [`Exposure::wait`].
    #[track_caller]
    pub fn wait(mut self) -> Result<()> {
        match std::mem::replace(&mut self.state, State::Settled) {
            State::Pending | State::Refused => self.exposure.raw().wait("wait for an iwait", self.expected),
            State::Settled => Ok(()),
        }
    }
}

impl<T: Element> Drop for WaitRequest<'_, T> {
    fn drop(&mut self) {
        if self.state == State::Pending {
            self.exposure.raw().note_open_wait();
        }
    }
}

impl<T: Element> Deref for WaitRequest<'_, T> {
    type Target = Window<T>;

    fn deref(&self) -> &Window<T> {
        &self.exposure
    }
}
