//! Windows: memory of every rank that the others can reach. Never more than a typed face of [`raw::RawWindow`].
#![deny(unsafe_code)] // Not `forbid`, which `raw` could not lift.

pub(crate) mod raw;

use std::fmt;
use std::marker::PhantomData;

use crate::element::Element;
use crate::error::Result;
use crate::team::{Rank, Team};
use crate::trace;
use raw::RawWindow;
pub use raw::{Atomicity, LocalView, LocalViewMut};

/// Memory of every rank of a team that the ranks can access in epochs.
///
/// A window is made collectively, over zeroed memory that the runtime allocates; each rank says how much it contributes.
/// Others reach it in a [`fence`](Window::fence), between [`start`](Window::start) and complete, or under a
/// [`lock`](Window::lock). The owner reaches its part as a slice by [`local`](Window::local) and
/// [`local_mut`](Window::local_mut), and element by element at any time by [`load`](Window::load) and
/// [`store`](Window::store).
///
/// A window can move to another thread, but one thread at a time uses it: it is `Send` and neither `Sync` nor `Clone`.
///
/// ```
/// fn moves<T: Send>() {}
/// moves::<rma::Window<u8>>();
/// ```
///
/// ```compile_fail,E0277
/// fn is_shared<T: Sync>() {}
/// is_shared::<rma::Window<u8>>();
/// ```
///
/// ```compile_fail,E0277
/// fn is_copied<T: Clone>() {}
/// is_copied::<rma::Window<u8>>();
/// ```
///
/// A view stays on the thread that made it, with its window:
///
/// ```compile_fail,E0277
/// fn moves<T: Send>() {}
/// moves::<rma::LocalView<'_, u8>>();
/// ```
///
/// Dropping it is not collective; its memory is reused when every rank has dropped it.
pub struct Window<T: Element> {
    raw: RawWindow,
    elements: PhantomData<T>,
}

impl<T: Element> Window<T> {
    /// Makes a window to which this rank contributes `len` elements. Collective; lengths may differ.
    ///
    /// From now on other ranks change this memory behind the compiler's back. Rust code is safe from that; where Fortran
    /// code reaches the same memory, the variable must be COMMON or VOLATILE there: see `docs/registers.md`.
    ///
    /// # Errors
    /// `System` on all ranks if one has not the memory; `CollectiveMismatch` if the element types differ; and the errors of
    /// a collective call.
    #[track_caller]
    pub fn allocate(team: &Team, len: usize) -> Result<Window<T>> {
        Window::allocate_with_unit(team, len, size_of::<T>())
    }

    /// As [`allocate`](Window::allocate), with the displacement unit of this rank's part in bytes: what a displacement
    /// that others give is multiplied with. It may differ per rank, and is the size of an element otherwise.
    ///
    /// # Errors
    /// As [`allocate`](Window::allocate), and `BadDispUnit` on all ranks if one has a unit of 0.
    #[track_caller]
    pub fn allocate_with_unit(team: &Team, len: usize, disp_unit: usize) -> Result<Window<T>> {
        Window::make(team, len, disp_unit, Atomicity::Native)
    }

    /// As [`allocate`](Window::allocate), and says what keeps accumulates to one element apart: the results are the same, the
    /// speed is not.
    ///
    /// # Errors
    /// As [`allocate`](Window::allocate), and `CollectiveMismatch` if the ranks do not agree.
    #[track_caller]
    pub fn allocate_with_atomicity(team: &Team, len: usize, atomicity: Atomicity) -> Result<Window<T>> {
        Window::make(team, len, size_of::<T>(), atomicity)
    }

    #[track_caller]
    fn make(team: &Team, len: usize, disp_unit: usize, atomicity: Atomicity) -> Result<Window<T>> {
        // More than the address space holds is refused as such, not wrapped around.
        let bytes = len.saturating_mul(size_of::<T>());
        let raw = RawWindow::allocate(team, bytes, disp_unit, const { &T::SHAPE }, atomicity)?;
        Ok(Window { raw, elements: PhantomData })
    }

    /// Gives the window up on all ranks. Collective, unlike dropping it.
    ///
    /// # Errors
    /// `EpochStillOpen` if a guard of an epoch was leaked; and the errors of a collective call. The window is gone in any
    /// case.
    #[track_caller]
    pub fn free(mut self) -> Result<()> {
        const CALL: &str = "free";
        let raw = self.exclusive_raw();
        raw.hook(CALL, None, || None);
        match raw.has_open_epochs() {
            true => Err(raw.still_open(CALL)),
            false => raw.meet(CALL),
        }
    }

    /// The number that tells this window from all others of the job. It is the same at all ranks.
    pub fn id(&self) -> u64 {
        self.raw.id()
    }

    /// The caller's rank in the window's team.
    pub fn rank(&self) -> Rank {
        self.raw.rank()
    }

    /// The number of ranks.
    pub fn size(&self) -> u32 {
        self.raw.size()
    }

    /// The ranks, in order.
    pub fn ranks(&self) -> impl Iterator<Item = Rank> + use<T> {
        (0..self.size()).map(Rank)
    }

    /// The number of elements that this rank contributes.
    pub fn len(&self) -> usize {
        self.len_of(self.rank()).unwrap_or(0)
    }

    /// Whether this rank contributes nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of elements that a rank contributes.
    ///
    /// # Errors
    /// `RankOutOfRange`.
    #[track_caller]
    pub fn len_at(&self, rank: Rank) -> Result<usize> {
        self.raw.check_rank("len_at", rank)?;
        Ok(self.len_of(rank).unwrap_or(0))
    }

    fn len_of(&self, rank: Rank) -> Option<usize> {
        self.raw.bytes_at(rank).map(|bytes| bytes / size_of::<T>())
    }

    /// Whether a target has posted its window now. The answer may be out of date when it arrives.
    ///
    /// # Errors
    /// `RankOutOfRange`.
    #[track_caller]
    pub fn target_posted(&self, rank: Rank) -> Result<bool> {
        self.raw.check_rank("target_posted", rank)?;
        Ok(self.raw.is_posted(rank))
    }

    /// Loads an element of this rank's part, whatever others do to it meanwhile.
    ///
    /// What others have put is sure to be seen after the call that makes it so: a fence, wait, or lock of the own window.
    ///
    /// # Errors
    /// `OutOfBounds`.
    #[track_caller]
    #[inline]
    pub fn load(&self, index: usize) -> Result<T> {
        self.raw.load("load", index)
    }

    /// Stores an element of this rank's part, whatever others do to it meanwhile.
    ///
    /// # Errors
    /// `OutOfBounds`.
    #[track_caller]
    #[inline]
    pub fn store(&mut self, index: usize, value: T) -> Result<()> {
        self.raw.reclaim_leaked_views();
        self.raw.store("store", index, value)
    }

    /// This rank's part as a slice, for reading. Locks of other ranks wait while the view lives, and this call for theirs.
    ///
    /// # Errors
    /// `LockHeld` under the own lock, where the epoch's `load` and `read` do it; `EpochStillOpen` while the window is posted;
    /// `Poisoned` while somebody may still write to a window that is out of use; `PeerLost`, `Stalled`.
    #[track_caller]
    #[inline]
    pub fn local(&self) -> Result<LocalView<'_, T>> {
        const CALL: &str = "local";
        self.raw.hook(CALL, None, || None);
        self.raw.view(CALL)
    }

    /// This rank's part as a mutable slice. Locks of other ranks wait while the view lives, and this call for theirs.
    ///
    /// A view can't live across a call that lets others in:
    ///
    /// ```compile_fail,E0499
    /// # fn f(window: &mut rma::Window<u64>) -> rma::Result<()> {
    /// let mut cells = window.local_mut()?;
    /// window.fence(|_| ())?;
    /// cells[0] = 1;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`local`](Window::local).
    #[track_caller]
    #[inline]
    pub fn local_mut(&mut self) -> Result<LocalViewMut<'_, T>> {
        const CALL: &str = "local_mut";
        self.raw.hook(CALL, None, || None);
        self.raw.view_mut(CALL)
    }

    /// Records the calls on this handle from now on.
    pub fn start_trace(&self) {
        self.raw.start_trace();
    }

    /// The calls that were recorded since the last time.
    pub fn take_trace(&self) -> Vec<trace::Event> {
        self.raw.take_trace()
    }

    #[inline(always)]
    pub(crate) fn raw(&self) -> &RawWindow {
        &self.raw
    }

    /// The window, when `&mut` proves that no view of it lives.
    #[inline(always)]
    pub(crate) fn exclusive_raw(&mut self) -> &RawWindow {
        self.raw.reclaim_leaked_views();
        &self.raw
    }
}

impl<T: Element> fmt::Debug for Window<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (id, len, rank, size) = (self.id(), self.len(), self.rank(), self.size());
        write!(f, "window {id} ({len} elements of {}, rank {rank} of {size})", T::SHAPE)
    }
}
