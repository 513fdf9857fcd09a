//! What memory of the caller a window can lie over. Never another kind: its elements must stay where they are while the window has
//! it.
#![forbid(unsafe_code)]

use std::sync::Arc;

use crate::element::{Element, zeroed};
use crate::error::{Error, ErrorKind, Result};
use crate::job::RankContext;

/// Memory that a caller gives to [`Window::create`](crate::Window::create) and gets back by
/// [`into_inner`](crate::Window::into_inner): a vector, or memory of [`pgo::malloc`](crate::pgo::malloc). Only this crate can
/// implement it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no memory that a window can own",
    label = "the window owns its memory until it gives it back",
    note = "give it a vector of elements or memory of `rma::pgo::malloc`, by value"
)]
pub trait CallerMemory<T: Element>: sealed::Sealed + Sized + Send + 'static {
    /// Its elements, which stay where they are when their owner moves.
    #[doc(hidden)]
    fn elements(&mut self) -> &mut [T];

    /// Zeroed elements of the same kind of memory.
    #[doc(hidden)]
    fn fresh(home: Home<'_>, len: usize, call: &'static str) -> Result<Self>;

    /// No elements, in place of what is lost.
    #[doc(hidden)]
    fn none(home: Home<'_>) -> Self;
}

/// Hides whose memory it is.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Home<'a>(pub(crate) &'a Arc<RankContext>);

pub(crate) mod sealed {
    pub trait Sealed {}
}

impl<T: Element> sealed::Sealed for Vec<T> {}

impl<T: Element> CallerMemory<T> for Vec<T> {
    fn elements(&mut self) -> &mut [T] {
        self
    }

    fn fresh(_: Home<'_>, len: usize, call: &'static str) -> Result<Vec<T>> {
        let mut memory = Vec::new();
        if memory.try_reserve_exact(len).is_err() {
            return Err(Error::new(ErrorKind::System, call).note(format!("no memory for {len} elements")));
        }
        memory.resize(len, zeroed());
        Ok(memory)
    }

    fn none(_: Home<'_>) -> Vec<T> {
        Vec::new()
    }
}
