//! What an epoch's body returns, and how it is opened when the epoch has completed. Never opened earlier: only the closing
//! call makes the [`Closed`] that opening takes, and it says of which window and toward whom transfers are complete. That an epoch
//! of another window, or toward another rank, can't open a result is seen while the program runs, as lifetimes don't tell two windows
//! apart that are borrowed for the same time. Epochs of one window toward one rank are not told apart, and need not be: there is one
//! at a time, so whatever closes later closes when the epoch that gave the result is complete.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ptr;

use crate::error::{Error, ErrorKind, Result};
use crate::team::Rank;
use crate::window::raw::RawWindow;

/// Proof that transfers have completed, and which. Made by this crate only.
pub struct Closed<'c>(Complete<'c>);

/// Which transfers are complete.
#[derive(Clone, Copy)]
enum Complete<'c> {
    /// Those of every epoch that the values can come from: the macros know at compile time.
    All,
    /// Those of a window.
    Window(&'c RawWindow),
    /// Those of a window toward some ranks.
    Toward(&'c RawWindow, &'c [Rank]),
}

impl<'c> Closed<'c> {
    pub(crate) fn all() -> Closed<'c> {
        Closed(Complete::All)
    }

    #[inline(always)]
    pub(crate) fn window(window: &'c RawWindow) -> Closed<'c> {
        Closed(Complete::Window(window))
    }

    #[inline(always)]
    pub(crate) fn toward(window: &'c RawWindow, targets: &'c [Rank]) -> Closed<'c> {
        Closed(Complete::Toward(window, targets))
    }

    /// Whether a transfer is complete.
    #[inline(always)]
    fn includes(&self, transfer: Transfer) -> bool {
        match self.0 {
            Complete::All => true,
            Complete::Window(window) => transfer.is_of(window),
            Complete::Toward(window, targets) => transfer.is_of(window) && targets.contains(&transfer.target),
        }
    }
}

impl fmt::Debug for Closed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Closed")
    }
}

/// Where a result comes from.
#[derive(Clone, Copy)]
struct Transfer {
    /// The address of the window's core, which stays where it is as long as an epoch borrows it.
    window: usize,
    target: Rank,
}

impl Transfer {
    #[inline(always)]
    fn is_of(self, window: &RawWindow) -> bool {
        self.window == ptr::from_ref(window).addr()
    }
}

/// The result of a transfer that is there when the epoch has completed: return it from the epoch's body.
///
/// The lifetime is the epoch's and can't be shortened or stretched. Whoever hands it to an epoch of another window, or to one that
/// has completed transfers toward other ranks only, gets `OriginBufferBusy` (RMA-COMM-09). A result that outlives its epoch, as
/// one of a guard can, may be opened by any later epoch of the window toward the same rank: a window has one epoch toward a rank
/// at a time, whether by start, lock or fence, so the earlier is complete by then, and the result is what its own call
/// has brought.
///
/// ```
/// use rma::{ErrorKind, LockKind, Rank, Window};
/// rma::spawn(1, |team| {
///     let (one, other) = (Window::<u8>::allocate(team, 1)?, Window::<u8>::allocate(team, 1)?);
///     one.lock(Rank(0), LockKind::Shared, |epoch| {
///         let value = epoch.get_value(Rank(0), 0)?;
///         let early = other.lock(Rank(0), LockKind::Shared, |_| value);
///         assert_eq!(early.unwrap_err().kind(), ErrorKind::OriginBufferBusy);
///         Ok::<(), rma::Error>(())
///     })
/// })?.into_iter().collect::<rma::Result<Vec<()>>>()?;
/// # Ok::<(), rma::Error>(())
/// ```
#[must_use = "return it from the epoch's body, which opens it"]
pub struct Pending<'epoch, T> {
    value: T,
    /// `None` for a value that is there already.
    from: Option<Transfer>,
    epoch: PhantomData<Cell<&'epoch ()>>,
}

impl<T> Pending<'_, T> {
    /// The result of a transfer of a window toward a rank.
    #[inline(always)]
    pub(crate) fn new(window: &RawWindow, target: Rank, value: T) -> Self {
        let from = Some(Transfer { window: ptr::from_ref(window).addr(), target });
        Pending { value, from, epoch: PhantomData }
    }

    #[cold]
    #[track_caller]
    fn too_early(from: Transfer, closed: &Closed<'_>) -> Error {
        const CALL: &str = "opening of a result";
        let note = "the result belongs to an epoch of another window or toward another rank; the closing call or a flush of \
                    its own epoch opens it";
        let error = match closed.0 {
            Complete::Window(window) | Complete::Toward(window, _) => {
                window.error(ErrorKind::OriginBufferBusy, CALL)
            }
            Complete::All => Error::new(ErrorKind::OriginBufferBusy, CALL),
        };
        error.target(from.target).note(note)
    }
}

/// A value that is there already, where another way out of the body has a pending one.
impl<T> From<T> for Pending<'_, T> {
    fn from(value: T) -> Self {
        Pending { value, from: None, epoch: PhantomData }
    }
}

impl<T> fmt::Debug for Pending<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pending") // The value is not to be seen yet.
    }
}

/// A value that the body of an epoch can return. It is opened after the epoch's closing call.
///
/// [`Pending`] results give their value, collections and tuples of them are opened item by item, a `Result` ends the epoch
/// and then gives its error or its opened value. Plain values give themselves; types that have no implementation are
/// returned by [`Plain`].
pub trait Deliver {
    /// What the caller of the epoch gets.
    type Output;

    /// Opens the value.
    ///
    /// # Errors
    /// The error that the body returned; `OriginBufferBusy` for a result of an epoch that has not completed.
    #[track_caller]
    fn deliver(self, closed: &Closed<'_>) -> Result<Self::Output>;

    /// The error that the body returned, for the case that closing fails too.
    #[doc(hidden)]
    fn into_failure(self) -> Option<Error>
    where
        Self: Sized,
    {
        None
    }
}

impl<T> Deliver for Pending<'_, T> {
    type Output = T;

    #[inline(always)]
    fn deliver(self, closed: &Closed<'_>) -> Result<T> {
        match self.from {
            Some(from) if !closed.includes(from) => Err(Self::too_early(from, closed)),
            _ => Ok(self.value),
        }
    }
}

impl<R: Deliver> Deliver for Result<R> {
    type Output = R::Output;

    fn deliver(self, closed: &Closed<'_>) -> Result<R::Output> {
        self?.deliver(closed)
    }

    fn into_failure(self) -> Option<Error> {
        match self {
            Ok(value) => value.into_failure(),
            Err(error) => Some(error),
        }
    }
}

impl<R: Deliver> Deliver for Option<R> {
    type Output = Option<R::Output>;

    fn deliver(self, closed: &Closed<'_>) -> Result<Self::Output> {
        match self {
            Some(value) => value.deliver(closed).map(Some),
            None => Ok(None),
        }
    }
}

impl<R: Deliver> Deliver for Vec<R> {
    type Output = Vec<R::Output>;

    fn deliver(self, closed: &Closed<'_>) -> Result<Self::Output> {
        self.into_iter().map(|value| value.deliver(closed)).collect()
    }
}

impl<R: Deliver, const N: usize> Deliver for [R; N] {
    type Output = [R::Output; N];

    fn deliver(self, closed: &Closed<'_>) -> Result<Self::Output> {
        let opened: Vec<R::Output> =
            self.into_iter().map(|value| value.deliver(closed)).collect::<Result<_>>()?;
        match opened.try_into() {
            Ok(opened) => Ok(opened),
            Err(_) => unreachable!("as many values come out as went in"),
        }
    }
}

/// Any value, to be returned from an epoch's body as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain<T>(pub T);

impl<T> Deliver for Plain<T> {
    type Output = T;

    fn deliver(self, _: &Closed<'_>) -> Result<T> {
        Ok(self.0)
    }
}

macro_rules! plain {
    ($($type:ty),* $(,)?) => {$(
        impl Deliver for $type {
            type Output = $type;

            fn deliver(self, _: &Closed<'_>) -> Result<$type> {
                Ok(self)
            }
        }
    )*};
}

plain!(
    (),
    bool,
    char,
    u8,
    u16,
    u32,
    u64,
    u128,
    usize,
    i8,
    i16,
    i32,
    i64,
    i128,
    isize,
    f32,
    f64,
    String,
    &'static str,
    crate::team::Rank,
    std::time::Duration,
);

macro_rules! tuples {
    ($(($($name:ident),*);)*) => {$(
        impl<$($name: Deliver),*> Deliver for ($($name,)*) {
            type Output = ($($name::Output,)*);

            #[allow(non_snake_case)] // The names of the types serve as names of the values.
            fn deliver(self, closed: &Closed<'_>) -> Result<Self::Output> {
                let ($($name,)*) = self;
                Ok(($($name.deliver(closed)?,)*))
            }
        }
    )*};
}

tuples! {
    (A);
    (A, B);
    (A, B, C);
    (A, B, C, D);
    (A, B, C, D, E);
    (A, B, C, D, E, F);
    (A, B, C, D, E, F, G);
    (A, B, C, D, E, F, G, H);
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn values_open_item_by_item() {
        let body: Result<_> = Ok((Pending::from(3), vec![Pending::from(1.5), Pending::from(2.5)], "done"));
        assert_eq!(body.deliver(&Closed::all()).unwrap(), (3, vec![1.5, 2.5], "done"));
        assert_eq!([Some(Pending::from(1)), None].deliver(&Closed::all()).unwrap(), [Some(1), None]);
    }

    #[test]
    fn an_error_of_the_body_is_the_outcome() {
        let body: Result<Pending<'_, u8>> = Err(Error::new(ErrorKind::OutOfBounds, "put"));
        assert_eq!(body.deliver(&Closed::all()).unwrap_err().kind(), ErrorKind::OutOfBounds);
    }
}
