//! Windows: memory of every rank that the others can reach. Never more than a typed face of [`raw::RawWindow`].
#![deny(unsafe_code)] // Not `forbid`, which `raw` could not lift.

mod index;
pub(crate) mod memory;
mod options;
pub(crate) mod raw;
mod regions;

use std::fmt;
use std::marker::PhantomData;

use crate::element::Element;
use crate::error::Result;
use crate::job::MemoryModel;
use crate::op::{OwnOf, Section};
use crate::team::{Rank, Team};
use crate::trace;
pub use memory::CallerMemory;
use memory::Home;
pub use options::{Returned, WindowOptions};
use raw::RawWindow;
pub use raw::{Atomicity, COUNTERS, LocalView, LocalViewMut, Moved, Unexposed};
pub use regions::Region;

/// Memory of every rank of a team that the ranks can access in epochs.
///
/// A window is made collectively, over zeroed memory that the runtime allocates ([`allocate`](Window::allocate)) or over
/// memory of the caller ([`create`](Window::create)); each rank says how much it contributes.
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
    /// [`WindowOptions`] has what can be chosen beside the length.
    ///
    /// # Errors
    /// `System` on all ranks if one has not the memory; `CollectiveMismatch` if the element types differ; and the errors of
    /// a collective call.
    #[track_caller]
    pub fn allocate(team: &Team, len: usize) -> Result<Window<T>> {
        WindowOptions::new().allocate(team, len)
    }

    /// Makes a window over memory of the caller, who gets it back by [`into_inner`](Window::into_inner). Collective; lengths
    /// may differ. The memory is a vector or [`pgo::malloc`](crate::pgo::malloc)'s. A boxed slice becomes a vector by `into_vec`, and
    /// a vector one by `into_boxed_slice`, at no cost.
    ///
    /// Others can't reach this memory, so the runtime keeps a mirror of it that they can: loads, stores and views of the owner
    /// use the memory itself, transfers the mirror. What has changed moves between the two in the owner's calls only, and
    /// only what has changed:
    ///
    /// | the owner's call | its stores go to the mirror | what others put comes from the mirror |
    /// |---|---|---|
    /// | [`fence`](Window::fence) | yes | yes |
    /// | [`post`](Window::post), [`wait`](crate::Exposure::wait) | yes | yes |
    /// | [`lock`](Window::lock) of the own window, taking a view | no | yes |
    /// | the unlock of the own window, dropping a view | yes | no |
    ///
    /// A program that is right on memory of the runtime by the rules, and not by luck, is right here. What a mutable view
    /// has changed is found by comparing all of it with the mirror.
    ///
    /// ```
    /// let sums = rma::spawn(2, |team| {
    ///     let other = rma::Rank(1 - team.rank().0);
    ///     let mut window = rma::Window::create(team, vec![1.5; 8])?;
    ///     window.fence(|epoch| epoch.accumulate(other, 0, rma::Sum, [1.0; 8]))?;
    ///     let memory: Vec<f64> = window.into_inner()?;
    ///     Ok(memory.iter().sum::<f64>())
    /// })?;
    /// assert_eq!(sums.into_iter().collect::<rma::Result<Vec<f64>>>()?, [20.0, 20.0]);
    /// # Ok::<(), rma::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`allocate`](Window::allocate), with the memory.
    #[track_caller]
    pub fn create<M: CallerMemory<T>>(team: &Team, memory: M) -> Result<Window<T>, Returned<M>> {
        WindowOptions::new().create(team, memory)
    }

    fn over(raw: RawWindow) -> Window<T> {
        Window { raw, elements: PhantomData }
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

    /// Gives the window up on all ranks, and the memory of this rank's part back: the memory of a window over memory of the
    /// caller, a copy of it if it is the runtime's or of another kind. Collective, like [`free`](Window::free).
    ///
    /// What others have put is in it, as after a fence.
    ///
    /// # Errors
    /// As [`free`](Window::free), with the memory as it is.
    #[track_caller]
    pub fn into_inner<M: CallerMemory<T>>(mut self) -> Result<M, Returned<M>> {
        const CALL: &str = "into_inner";
        let context = self.raw.context();
        let raw = self.exclusive_raw();
        raw.hook(CALL, None, || None);
        let met = match raw.has_open_epochs() {
            true => Err(raw.still_open(CALL)),
            false => raw.meet(CALL),
        };
        match (met, self.raw.into_memory(CALL)) {
            (Ok(()), Ok(memory)) => Ok(memory),
            (Ok(()), Err(error)) => Err(Returned { error, memory: M::none(Home(&context)) }),
            (Err(error), memory) => {
                Err(Returned { error, memory: memory.unwrap_or_else(|_| M::none(Home(&context))) })
            }
        }
    }

    /// Whether this rank's part has one copy or two.
    pub fn memory_model(&self) -> MemoryModel {
        match self.raw.has_two_copies() {
            false => MemoryModel::Unified,
            true => MemoryModel::Separate,
        }
    }

    /// The bytes that this rank's calls have moved between the two copies of its part so far: none where there is one copy.
    pub fn moved(&self) -> Moved {
        self.raw.moved()
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

    /// Waits until so many puts have been counted by a counter of this rank, and takes them from it: what these puts have
    /// brought is there (`load`, and a view as soon as its origins' locks are given back).
    ///
    /// A counter counts what [`put_notify`](crate::LockAllEpoch::put_notify) of any rank names it for. Each window has
    /// [`COUNTERS`](crate::COUNTERS) of them at each rank, all zero at first. In an epoch the same call is the epoch's.
    ///
    /// ```
    /// use rma::{Rank, Window};
    /// rma::spawn(3, |team| {
    ///     let window = Window::<u64>::allocate(team, 3)?;
    ///     let me = team.rank();
    ///     window.lock_all(|epoch| {
    ///         for target in team.ranks() {
    ///             epoch.put_notify(target, me.index(), u64::from(me.0) + 1, 0)?;
    ///         }
    ///         // No barrier: three puts have come, whoever they are from.
    ///         epoch.wait_notified(0, 3)?;
    ///         assert_eq!((epoch.load(0)?, epoch.load(1)?, epoch.load(2)?), (1, 2, 3));
    ///         Ok(())
    ///     })
    /// })?.into_iter().collect::<rma::Result<()>>()?;
    /// # Ok::<(), rma::Error>(())
    /// ```
    ///
    /// # Errors
    /// `OutOfBounds` if there is no such counter; `StoreDuringUpdate` while a local view of the window lives; `PeerLost` when no
    /// other rank is left to put, `Stalled`.
    #[track_caller]
    pub fn wait_notified(&self, counter: usize, arrivals: usize) -> Result<()> {
        self.raw.hook("wait_notified", None, || None);
        self.raw.wait_notified(counter, arrivals)
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

    /// A section of this rank's part, as origin of a put or accumulate, or destination of a get, of this window or another one with
    /// such elements: [`own`](crate::own) for a window that is not the transfer's.
    ///
    /// ```
    /// use rma::{Rank, Window};
    /// let sums = rma::spawn(2, |team| {
    ///     let other = Rank(1 - team.rank().0);
    ///     let mut rims = Window::<u64>::allocate(team, 2)?;
    ///     let mut halos = Window::<u64>::allocate(team, 2)?;
    ///     rims.local_mut()?.copy_from_slice(&[3, 4]);
    ///     halos.fence(|epoch| epoch.put(other, 0, rims.own(0..2)))?;
    ///     let sum = halos.local()?.iter().sum::<u64>();
    ///     Ok(sum)
    /// })?;
    /// assert_eq!(sums.into_iter().collect::<rma::Result<Vec<u64>>>()?, [7, 7]);
    /// # Ok::<(), rma::Error>(())
    /// ```
    ///
    /// What the section names is looked at by the transfer: it has to lie in this rank's part, in what of it the program has not got
    /// as slices, and a get is refused as `StoreDuringUpdate` while a local view of this window lives. A get stores, as
    /// [`store`](Window::store) does: others see it after the call of this window that publishes stores.
    #[inline]
    pub fn own<'d>(&self, section: impl Into<Section<'d>>) -> OwnOf<'_, 'd, T> {
        OwnOf::new(self.raw.handle(), section.into())
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
