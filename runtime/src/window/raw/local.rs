//! The owner's views of its own memory: the only place where references into a window are made. Never gives one while
//! somebody else may write there.
//!
//! A view holds the owner's own lock exclusively: remote locks of both kinds wait, since shared holders may put. Fences and
//! posts take the window by `&mut`, so a view can't live across one. A view that is leaked keeps the lock; the next call
//! that takes the window by `&mut` proves that no view is left and gives it back.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::{fmt, slice};

use rma_automaton::{Call, LocalOp};

use super::RawWindow;
use super::parts::{Part, Rest};
use crate::element::Element;
use crate::error::{ErrorKind, Result};
use crate::sync::state_word::{Request, Sharing};
use crate::team::Rank;
use crate::transport::shm::copy;

/// The own part of a window as a slice: a private epoch for reading.
///
/// While it lives, remote locks on this rank's window wait. Leaving it behind with [`std::mem::forget`] is safe: they wait
/// until the next call that takes the window by `&mut`.
pub struct LocalView<'w, T: Element> {
    window: &'w RawWindow,
    start: *mut T,
    len: usize,
    elements: PhantomData<&'w [T]>,
}

/// The own part of a window as a mutable slice: a private epoch. See [`LocalView`].
pub struct LocalViewMut<'w, T: Element> {
    window: &'w RawWindow,
    start: *mut T,
    len: usize,
    elements: PhantomData<&'w mut [T]>,
}

/// The own part of a window but for the range that is exposed, as slices. See
/// [`Window::fence_part`](crate::Window::fence_part).
#[derive(Debug)]
pub struct Unexposed<'r, T> {
    /// The elements before the exposed range.
    pub before: &'r mut [T],
    /// The elements after it.
    pub after: &'r mut [T],
}

/// Takes back what was lent, on every way out.
struct Lent<'w>(&'w RawWindow);

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.0.publish_rest();
        self.0.rest.set(Rest::Kept);
    }
}

impl RawWindow {
    /// Lends the body what is not exposed of the own memory. A post of a part or a fence of parts comes before, else there is
    /// nothing to lend.
    #[track_caller]
    pub(crate) fn lend<T: Element, R>(
        &self,
        call: &'static str,
        body: impl FnOnce(Unexposed<'_, T>) -> R,
    ) -> Result<R> {
        self.refuse_lent(call)?;
        self.refuse_views(call)?;
        let (Rest::Kept, Some(Part { start, end })) = (self.rest.get(), self.targets[self.me].part.get())
        else {
            return Err(self
                .error(ErrorKind::WaitWithoutPost, call)
                .note("no part of the window is exposed"));
        };
        self.rest.set(Rest::Lent);
        let lent = Lent(self);
        let len = self.own_len::<T>();
        let (before, after) = (start / size_of::<T>(), end.div_ceil(size_of::<T>()));
        // SAFETY: - in bounds: `own_part` has checked it.
        let behind = unsafe { self.private.cast::<T>().add(after) };
        // SAFETY: - in bounds, aligned, valid and alive: as for `LocalView`. - unaliased: what lies before the part is
        //   exposed to nobody, locks are excluded by the post or by the phase of all ranks, and no view lives; this handle
        //   reaches only the part until the body has ended, after which the slices are gone.
        let before = unsafe { slice::from_raw_parts_mut(self.private.cast::<T>(), before) };
        // SAFETY: - as above; it begins behind the part, and so behind `before`.
        let after = unsafe { slice::from_raw_parts_mut(behind, len - after) };
        let result = body(Unexposed { before, after });
        drop(lent);
        Ok(result)
    }

    /// Elements of the own part.
    fn own_len<T: Element>(&self) -> usize {
        debug_assert_eq!(self.element.code(), T::SHAPE.code());
        self.targets[self.me].bytes / size_of::<T>()
    }

    /// A view for reading. Several may live at once.
    #[track_caller]
    #[inline]
    pub(crate) fn view<T: Element>(&self, call: &'static str) -> Result<LocalView<'_, T>> {
        self.take_view(call, LocalOp::Load)?;
        Ok(LocalView {
            window: self,
            start: self.own_element(0),
            len: self.own_len::<T>(),
            elements: PhantomData,
        })
    }

    fn own_element<T: Element>(&self, index: usize) -> *mut T {
        self.private.cast::<T>().wrapping_add(index)
    }

    /// As `view`, of an attached region, which begins at an element and has so many.
    #[track_caller]
    pub(crate) fn view_region<T: Element>(
        &self,
        call: &'static str,
        (first, len): (usize, usize),
    ) -> Result<LocalView<'_, T>> {
        self.refuse_unattached::<T>(call, first, len)?;
        self.take_view(call, LocalOp::Load)?;
        Ok(LocalView { window: self, start: self.own_element(first), len, elements: PhantomData })
    }

    /// As [`view_mut`](RawWindow::view_mut), of an attached region.
    #[track_caller]
    pub(crate) fn view_region_mut<T: Element>(
        &mut self,
        call: &'static str,
        (first, len): (usize, usize),
    ) -> Result<LocalViewMut<'_, T>> {
        self.reclaim_leaked_views();
        self.refuse_unattached::<T>(call, first, len)?;
        self.take_view(call, LocalOp::Store)?;
        Ok(LocalViewMut { start: self.own_element(first), window: self, len, elements: PhantomData })
    }

    /// Only a call that needs `&mut` detaches a region, so one that is attached stays so while a view of it lives.
    #[track_caller]
    fn refuse_unattached<T: Element>(&self, call: &'static str, first: usize, len: usize) -> Result<()> {
        match self.is_in_own_part::<T>(first, len) {
            true => Ok(()),
            false => {
                let start = first.saturating_mul(size_of::<T>());
                Err(self.not_attached(call, start..start.saturating_add(len.saturating_mul(size_of::<T>()))))
            }
        }
    }

    /// A view for writing: `&mut` proves that there is no other.
    #[track_caller]
    #[inline]
    pub(crate) fn view_mut<T: Element>(&mut self, call: &'static str) -> Result<LocalViewMut<'_, T>> {
        self.reclaim_leaked_views();
        self.take_view(call, LocalOp::Store)?;
        self.may_store();
        Ok(LocalViewMut {
            start: self.own_element(0),
            len: self.own_len::<T>(),
            window: self,
            elements: PhantomData,
        })
    }

    #[track_caller]
    #[inline]
    fn take_view(&self, call: &'static str, op: LocalOp) -> Result<()> {
        if self.open.views.get() == 0 {
            self.refuse_lent(call)?;
            self.refuse_illegal(call, Call::View(op))?;
            self.take_own_lock(call)?;
        }
        self.begin_view();
        Ok(())
    }

    #[track_caller]
    #[inline]
    fn take_own_lock(&self, call: &'static str) -> Result<()> {
        if self.is_broken() {
            return self.take_broken(call);
        }
        let word = &self.control(self.me).word.0;
        match word.request(self.me as u32, Sharing::Exclusive, self.plan.slots) {
            Ok(Request::Granted) => {}
            other => self.wait_for_lock(call, self.me, Sharing::Exclusive, other)?,
        }
        self.views_locked.set(true);
        Ok(())
    }

    /// A view of a broken window needs no lock, which nobody gets any more, but it needs everybody to be done.
    #[cold]
    #[track_caller]
    fn take_broken(&self, call: &'static str) -> Result<()> {
        match self.is_quiet() {
            Ok(()) => {
                self.views_locked.set(false);
                Ok(())
            }
            Err(rank) => {
                let error = self.poisoned_again(call);
                Err(error.other(format!("rank {rank}, which may still write to this rank's window")))
            }
        }
    }

    #[inline]
    fn drop_view(&self) {
        let left = self.open.views.get() - 1;
        self.open.views.set(left);
        if left == 0 {
            self.release_own_lock();
        }
    }

    #[inline]
    fn release_own_lock(&self) {
        self.publish();
        if self.views_locked.replace(false)
            && self.control(self.me).word.0.unlock(self.me as u32, Sharing::Exclusive)
        {
            self.wake_first(self.me);
        }
    }

    /// Gives back the lock of views that were leaked: `&mut` proves that none of them can be used.
    #[inline(always)]
    pub(crate) fn reclaim_leaked_views(&mut self) {
        if self.open.views.get() != 0 {
            self.reclaim_views();
        }
    }

    /// As above, where the caller has other proof.
    #[cold]
    pub(super) fn reclaim_views(&self) {
        if self.open.views.replace(0) != 0 {
            self.release_own_lock();
        }
    }

    /// Loads an element of the own part, whatever others do to it.
    #[track_caller]
    #[inline(always)]
    pub(crate) fn load<T: Element>(&self, call: &'static str, index: usize) -> Result<T> {
        if !self.is_own::<T>(index, 1) {
            return Err(self.local_bounds::<T>(call, index, 1));
        }
        // SAFETY: - in bounds: checked above.
        let at = unsafe { self.private.cast::<T>().add(index) };
        // SAFETY: - readable and alive: in the private copy. - aligned: it holds elements of this type.
        Ok(unsafe { copy::load(at) })
    }

    /// Stores an element of the own part, whatever others do to it.
    #[track_caller]
    #[inline(always)]
    pub(crate) fn store<T: Element>(&self, call: &'static str, index: usize, value: T) -> Result<()> {
        if !self.is_own::<T>(index, 1) {
            return Err(self.local_bounds::<T>(call, index, 1));
        }
        self.refuse_views_of(call, index, 1)?;
        // SAFETY: - in bounds: checked above.
        let at = unsafe { self.private.cast::<T>().add(index) };
        // SAFETY: - writable and alive: in the private copy. - aligned: as in `load`. - no reference: no view lives, checked.
        unsafe { copy::store(at, value) };
        self.stored(index * size_of::<T>(), size_of::<T>());
        Ok(())
    }

    /// Copies from the own part into a buffer.
    #[track_caller]
    pub(crate) fn read<T: Element>(&self, call: &'static str, index: usize, into: &mut [T]) -> Result<()> {
        if !self.is_own::<T>(index, into.len()) {
            return Err(self.local_bounds::<T>(call, index, into.len()));
        }
        // SAFETY: - in bounds: checked above.
        let from = unsafe { self.private.cast::<T>().add(index) };
        let bytes = size_of_val(into);
        // SAFETY: - readable: in bounds of the private copy. - writable: an exclusive slice, which is no window memory.
        unsafe { self.engine.copy(into.as_mut_ptr().cast(), from.cast(), bytes) };
        Ok(())
    }

    /// Copies from a buffer into the own part.
    #[track_caller]
    pub(crate) fn write<T: Element>(&self, call: &'static str, index: usize, from: &[T]) -> Result<()> {
        if !self.is_own::<T>(index, from.len()) {
            return Err(self.local_bounds::<T>(call, index, from.len()));
        }
        self.refuse_views_of(call, index, from.len())?;
        // SAFETY: - in bounds: checked above.
        let to = unsafe { self.private.cast::<T>().add(index) };
        // SAFETY: - writable: in bounds of the private copy, in which no view lives. - readable: a slice.
        unsafe { self.engine.copy(to.cast(), from.as_ptr().cast(), size_of_val(from)) };
        self.stored(index * size_of::<T>(), size_of_val(from));
        Ok(())
    }

    /// Refuses to write to the own memory under a view: a lock epoch elsewhere leaves room for one.
    #[inline(always)]
    #[track_caller]
    pub(super) fn refuse_views(&self, call: &'static str) -> Result<()> {
        match self.open.views.get() {
            0 => Ok(()),
            _ => Err(self.under_a_view(call)),
        }
    }

    /// As [`refuse_views`](RawWindow::refuse_views), to write these elements.
    #[inline(always)]
    #[track_caller]
    fn refuse_views_of(&self, call: &'static str, index: usize, count: usize) -> Result<()> {
        match self.open.views.get() {
            0 => Ok(()),
            _ => Err(self.under_a_view(call).range(index..index.saturating_add(count))),
        }
    }

    #[cold]
    #[track_caller]
    fn under_a_view(&self, call: &'static str) -> crate::error::Error {
        let note = "a local view of the own window is alive";
        self.error(ErrorKind::StoreDuringUpdate, call).target(Rank(self.me as u32)).note(note)
    }

    /// Whether these elements lie in the own memory, and in what the program has not got as slices.
    #[inline(always)]
    fn is_own<T: Element>(&self, index: usize, count: usize) -> bool {
        let len = self.targets[self.me].reach.get() / size_of::<T>();
        match index <= len && count <= len - index {
            true => true,
            false => self.is_in_own_part::<T>(index, count),
        }
    }

    #[cold]
    fn is_in_own_part<T: Element>(&self, index: usize, count: usize) -> bool {
        let size = size_of::<T>();
        let start = index.checked_mul(size);
        let end = count.checked_mul(size).and_then(|bytes| start?.checked_add(bytes));
        start.zip(end).is_some_and(|(start, end)| self.targets[self.me].opens(&(start..end)))
    }

    #[cold]
    #[track_caller]
    fn local_bounds<T: Element>(
        &self,
        call: &'static str,
        index: usize,
        count: usize,
    ) -> crate::error::Error {
        let range = index..index.saturating_add(count);
        let len = self.own_len::<T>();
        let note = match self.rest.get() {
            Rest::Own => format!("its length is {len}"),
            Rest::Kept | Rest::Lent => {
                let open = self.targets[self.me].open_bytes();
                let (start, end) = (open.start / size_of::<T>(), open.end / size_of::<T>());
                format!("its length is {len}, of which the epoch has {start}..{end}")
            }
        };
        self.error(ErrorKind::OutOfBounds, call).target(Rank(self.me as u32)).range(range).note(note)
    }
}

impl<T: Element> Deref for LocalView<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: - in bounds, aligned, valid: the own part of the window or an attached region, whose bytes are all initialised,
        //   and every
        //   pattern of bits is an element. - alive: the view borrows the window, which owns or maps the private copy.
        // - unaliased: the own lock is held, or the window is out of use and nobody writes any more, so no peer writes;
        //   this rank can't, as every call that writes here, `import` among them, needs `&mut` of the window or looks at
        //   `views`. Two copies: peers write to the mirror only, which is other memory.
        unsafe { slice::from_raw_parts(self.start, self.len) }
    }
}

impl<T: Element> Deref for LocalViewMut<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: - as for LocalView.
        unsafe { slice::from_raw_parts(self.start, self.len) }
    }
}

impl<T: Element> DerefMut for LocalViewMut<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: - as for LocalView; moreover nobody reads: the own lock excludes all others, and the view was made from
        //   `&mut` of the window, which it keeps borrowed.
        unsafe { slice::from_raw_parts_mut(self.start, self.len) }
    }
}

impl<T: Element> Drop for LocalView<'_, T> {
    fn drop(&mut self) {
        self.window.drop_view();
    }
}

impl<T: Element> Drop for LocalViewMut<'_, T> {
    fn drop(&mut self) {
        self.window.drop_view();
    }
}

impl<T: Element + fmt::Debug> fmt::Debug for LocalView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: Element + fmt::Debug> fmt::Debug for LocalViewMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
