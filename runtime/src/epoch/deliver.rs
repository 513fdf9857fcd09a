//! What an epoch's body returns, and how it is opened when the epoch has completed. Never opened earlier: only the closing
//! call makes the [`Closed`] that opening takes.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use crate::error::{Error, Result};

/// Proof that an epoch has completed. Made by this crate only.
#[derive(Debug)]
pub struct Closed(());

impl Closed {
    pub(crate) fn new() -> Closed {
        Closed(())
    }
}

/// The result of a transfer that is there when the epoch has completed: return it from the epoch's body.
///
/// The lifetime is the epoch's and can't be shortened or stretched.
#[must_use = "return it from the epoch's body, which opens it"]
pub struct Pending<'epoch, T> {
    value: T,
    epoch: PhantomData<Cell<&'epoch ()>>,
}

impl<T> Pending<'_, T> {
    pub(crate) fn new(value: T) -> Self {
        Pending { value, epoch: PhantomData }
    }
}

/// A value that is there already, where another way out of the body has a pending one.
impl<T> From<T> for Pending<'_, T> {
    fn from(value: T) -> Self {
        Pending::new(value)
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
    /// The error that the body returned.
    fn deliver(self, closed: &Closed) -> Result<Self::Output>;

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

    fn deliver(self, _: &Closed) -> Result<T> {
        Ok(self.value)
    }
}

impl<R: Deliver> Deliver for Result<R> {
    type Output = R::Output;

    fn deliver(self, closed: &Closed) -> Result<R::Output> {
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

    fn deliver(self, closed: &Closed) -> Result<Self::Output> {
        self.map(|value| value.deliver(closed)).transpose()
    }
}

impl<R: Deliver> Deliver for Vec<R> {
    type Output = Vec<R::Output>;

    fn deliver(self, closed: &Closed) -> Result<Self::Output> {
        self.into_iter().map(|value| value.deliver(closed)).collect()
    }
}

impl<R: Deliver, const N: usize> Deliver for [R; N] {
    type Output = [R::Output; N];

    fn deliver(self, closed: &Closed) -> Result<Self::Output> {
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

    fn deliver(self, _: &Closed) -> Result<T> {
        Ok(self.0)
    }
}

macro_rules! plain {
    ($($type:ty),* $(,)?) => {$(
        impl Deliver for $type {
            type Output = $type;

            fn deliver(self, _: &Closed) -> Result<$type> {
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
            fn deliver(self, closed: &Closed) -> Result<Self::Output> {
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
        let body: Result<_> = Ok((Pending::new(3), vec![Pending::new(1.5), Pending::new(2.5)], "done"));
        assert_eq!(body.deliver(&Closed::new()).unwrap(), (3, vec![1.5, 2.5], "done"));
        assert_eq!([Some(Pending::new(1)), None].deliver(&Closed::new()).unwrap(), [Some(1), None]);
    }

    #[test]
    fn an_error_of_the_body_is_the_outcome() {
        let body: Result<Pending<'_, u8>> = Err(Error::new(ErrorKind::OutOfBounds, "put"));
        assert_eq!(body.deliver(&Closed::new()).unwrap_err().kind(), ErrorKind::OutOfBounds);
    }
}
