//! Windows to which memory is attached when a rank needs it. Never more than a typed face of `raw`.

use std::ops::Range;

use super::Window;
use super::raw::{Atomicity, Begins, LocalView, LocalViewMut, Mirror, RawWindow, Shape};
use crate::element::Element;
use crate::error::Result;
use crate::team::Team;

/// Memory that a rank has attached to its window: which displacements name it. See [`Window::dynamic`].
///
/// It is plain data. Others need [`start`](Region::start) and [`len`](Region::len), which the owner tells them in any way, by
/// a broadcast or through another window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    start: usize,
    len: usize,
}

impl Region {
    /// The displacement of the first element.
    pub fn start(&self) -> usize {
        self.start
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// A region has at least one element.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The displacements of all elements, as a section for transfers.
    pub fn range(&self) -> Range<usize> {
        self.start..self.start + self.len
    }
}

impl<T: Element> Window<T> {
    /// Makes a window without memory, to which this rank can [`attach`](Window::attach) memory later; `capacity` is how many
    /// elements its displacements can name, attached or not. Collective; capacities may differ. They cost addresses, not
    /// memory.
    ///
    /// What is not attached can't be accessed: a transfer or an element access there is an `OutOfBounds` and moves nothing.
    ///
    /// ```
    /// use rma::{LockKind, Rank, Window};
    /// let seen = rma::spawn(2, |team| {
    ///     let mut heap = Window::<u64>::dynamic(team, 1 << 20)?;
    ///     let mut start = [0];
    ///     if team.rank() == Rank(0) {
    ///         start[0] = heap.attach(10)?.start() as u64;
    ///     }
    ///     team.broadcast(Rank(0), &mut start)?;
    ///     let at = start[0] as usize;
    ///     heap.lock(Rank(0), LockKind::Shared, |epoch| epoch.put(Rank(0), at + team.rank().index(), 7))?;
    ///     team.barrier()?;
    ///     heap.lock(Rank(0), LockKind::Shared, |epoch| epoch.get_vec(Rank(0), at..at + 2))
    /// })?;
    /// assert!(seen.into_iter().all(|seen: rma::Result<Vec<u64>>| seen.unwrap() == [7, 7]));
    /// # Ok::<(), rma::Error>(())
    /// ```
    ///
    /// # Errors
    /// `System` on all ranks if one has not so many addresses; otherwise as [`allocate`](Window::allocate).
    #[track_caller]
    pub fn dynamic(team: &Team, capacity: usize) -> Result<Window<T>> {
        let shape = Shape {
            bytes: 0,
            capacity: Some(capacity.saturating_mul(size_of::<T>())),
            unit: size_of::<T>(),
            element: const { &T::SHAPE },
            atomicity: Atomicity::default(),
            begins: Begins::Private,
            mirror: Mirror::default(),
        };
        RawWindow::allocate(team, shape, Ok(None)).map(Window::over).map_err(|refused| refused.error)
    }

    /// Attaches `len` elements of fresh, zeroed memory to this rank's part. Not collective; others may be in the window.
    ///
    /// Displacements of memory that was detached are used again as late as possible, and pages are not shared by regions.
    ///
    /// # Errors
    /// `OutOfBounds` if the window was not made by [`dynamic`](Window::dynamic), if `len` is 0, if no so many displacements in a
    /// row are free, or if 64 regions are attached; `System` if there is no memory.
    #[track_caller]
    pub fn attach(&mut self, len: usize) -> Result<Region> {
        const CALL: &str = "attach";
        let raw = self.exclusive_raw();
        raw.hook(CALL, None, || None);
        let start = raw.attach(CALL, len.saturating_mul(size_of::<T>()))? / size_of::<T>();
        Ok(Region { start, len })
    }

    /// Detaches a region and gives its memory back. Not collective, and never waits: nobody may be in the window.
    ///
    /// # Errors
    /// `OutOfBounds` if the region is not attached to this rank's part; `EpochStillOpen` while the window is posted; `MixedSync`
    /// while somebody has its lock; `Poisoned` while somebody may still write to a window that is out of use. The region is
    /// still attached then.
    #[track_caller]
    pub fn detach(&mut self, region: Region) -> Result<()> {
        const CALL: &str = "detach";
        let raw = self.exclusive_raw();
        raw.hook(CALL, None, || Some(region.range()));
        let size = size_of::<T>();
        raw.detach(CALL, region.start.saturating_mul(size)..region.range().end.saturating_mul(size))
    }

    /// A region of this rank's part as a slice, for reading. See [`local`](Window::local), which shows nothing of such a window.
    ///
    /// # Errors
    /// As [`local`](Window::local), and `OutOfBounds` if the region is not attached.
    #[track_caller]
    pub fn local_region(&self, region: Region) -> Result<LocalView<'_, T>> {
        const CALL: &str = "local_region";
        self.raw.hook(CALL, None, || Some(region.range()));
        self.raw.view_region(CALL, (region.start, region.len))
    }

    /// A region of this rank's part as a mutable slice. See [`local_mut`](Window::local_mut).
    ///
    /// # Errors
    /// As [`local_region`](Window::local_region).
    #[track_caller]
    pub fn local_region_mut(&mut self, region: Region) -> Result<LocalViewMut<'_, T>> {
        const CALL: &str = "local_region_mut";
        self.raw.hook(CALL, None, || Some(region.range()));
        self.raw.view_region_mut(CALL, (region.start, region.len))
    }
}
