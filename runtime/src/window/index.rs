//! `window[i]` outside any epoch, which does not compile: these implementations exist for what the compiler says about it. Never
//! reads a window, as their condition is never met.
#![forbid(unsafe_code)]

use std::ops::{Index, IndexMut};

use super::Window;
use crate::element::Element;

/// What no window is. Its name can't be reached from outside, so it stays so.
#[diagnostic::on_unimplemented(
    message = "a window is indexed outside any epoch",
    label = "what other ranks have put may be missing here, and they may be writing",
    note = "bring it into sight first, by a lock of the own rank, a post or a fence: index the window in a function under \
            `#[rma_epoch(local(w, read))]`, `lock`, `exposure` or `fence`, or take a view by `window.local()?`",
    note = "`window.load(i)?` and `window.store(i, x)?` move one element and bring nothing into sight"
)]
pub trait IndexedInAnEpoch<T> {
    /// Never called.
    fn never(&self) -> &T;
    /// Never called.
    fn never_mut(&mut self) -> &mut T;
}

#[doc(hidden)]
impl<T: Element, I> Index<I> for Window<T>
where
    Window<T>: IndexedInAnEpoch<T>,
{
    type Output = T;

    fn index(&self, _: I) -> &T {
        self.never()
    }
}

#[doc(hidden)]
impl<T: Element, I> IndexMut<I> for Window<T>
where
    Window<T>: IndexedInAnEpoch<T>,
{
    fn index_mut(&mut self, _: I) -> &mut T {
        self.never_mut()
    }
}
