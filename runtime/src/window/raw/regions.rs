//! Windows to which each rank attaches memory when it needs some. Never lets a transfer reach what is not attached.
//!
//! Each rank has a range of addresses of the segment, without memory, and a table of what is attached in it. To attach is to
//! take pages and to enter them in the table; that disturbs nobody, so others may be in the window. To detach is the reverse,
//! under the owner's own lock: whoever finds an entry was let in before it looked, so the entry stays until it is done.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use rma_automaton::{Call, LocalOp};

use super::{RawWindow, Target};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::state_word::Sharing;
use crate::transport::shm::arena::Block;
use crate::transport::shm::segment::{Shared, page_bytes};

/// Regions that one rank may have attached to one window at a time: the table is looked through at every transfer.
pub(super) const REGIONS_MAX: usize = 64;

/// What a rank has attached. Zeroed memory is the table of a rank that has attached nothing.
#[repr(C)]
pub(super) struct Regions {
    /// Where the rank's range begins in the segment, and how long it is. Written before others have the window.
    range: AtomicU64,
    capacity: AtomicU64,
    entries: [Entry; REGIONS_MAX],
}

/// A region, in bytes from the start of the range. Its length is 0 if there is none.
#[repr(C)]
struct Entry {
    start: AtomicU64,
    len: AtomicU64,
}

// SAFETY: - all fields are atomics (or made of atomics) and all-zero bytes are a valid value.
unsafe impl Shared for Regions {}

impl Regions {
    /// Says where the range is, before others have the window.
    pub(super) fn begin(&self, range: &Block, capacity: usize) {
        // Relaxed: published by the exchange at the window's creation.
        self.range.store(range.offset(), Ordering::Relaxed);
        self.capacity.store(capacity as u64, Ordering::Relaxed);
    }

    /// The region that has all of these bytes.
    pub(super) fn region_of(&self, named: &Range<usize>) -> Option<Range<usize>> {
        self.regions().find(|region| region.start <= named.start && named.end <= region.end)
    }

    /// Where the range begins in the segment.
    pub(super) fn range(&self) -> u64 {
        self.range.load(Ordering::Relaxed) // Relaxed: as in `begin`.
    }

    fn regions(&self) -> impl Iterator<Item = Range<usize>> {
        self.entries.iter().filter_map(|entry| {
            // Acquire: pairs with the Release in `attach`: the region begins where the entry says, and has its pages.
            let len = entry.len.load(Ordering::Acquire) as usize;
            let start = entry.start.load(Ordering::Relaxed) as usize;
            (len != 0).then_some(start..start.saturating_add(len))
        })
    }
}

/// How a target's regions are found.
#[derive(Clone, Copy)]
pub(super) struct Attached {
    /// Null for a target that shares no memory with this rank and is asked.
    table: *const Regions,
    /// Where the range begins in the segment, if that is mapped.
    pub(super) range: u64,
    /// The bytes of the range, attached or not.
    pub(super) capacity: usize,
}

impl Attached {
    pub(super) fn new(table: &Regions) -> Attached {
        // Relaxed: as in `begin`.
        let (range, capacity) = (table.range.load(Ordering::Relaxed), table.capacity.load(Ordering::Relaxed));
        Attached { table, range, capacity: capacity as usize }
    }

    /// The regions of a rank that shares no memory with this one.
    pub(super) fn elsewhere(capacity: usize) -> Attached {
        Attached { table: std::ptr::null(), range: 0, capacity }
    }

    fn table(&self) -> &Regions {
        assert!(!self.table.is_null(), "the table of a rank that is asked is not here");
        // SAFETY: - in bounds, aligned and valid: it was a shared reference when the window was made.
        // - alive: as for the control blocks, behind one of which it lies. - aliasing: all fields are atomics.
        unsafe { &*self.table }
    }

    /// Whether one region has all of these bytes.
    pub(super) fn holds(&self, named: &Range<usize>) -> bool {
        self.table().region_of(named).is_some()
    }
}

impl Target {
    /// Whether one attached region has all of these bytes, as far as is known here.
    pub(super) fn holds(&self, attached: &Attached, named: &Range<usize>) -> bool {
        match self.remote {
            false => attached.holds(named),
            true => {
                let (start, end) = self.region.get();
                start <= named.start && named.end <= end
            }
        }
    }

    /// Whether a target has to be asked for a region with these bytes.
    pub(super) fn has_unknown_region(&self, named: &Range<usize>) -> bool {
        let Some(attached) = self.attached.as_ref().filter(|_| self.remote) else { return false };
        !named.is_empty() && named.end <= attached.capacity && !self.holds(attached, named)
    }

    /// The bytes that displacements can name, of which those count that are open.
    #[inline(always)]
    pub(super) fn extent(&self) -> usize {
        match &self.attached {
            None => self.bytes,
            Some(attached) => attached.capacity,
        }
    }
}

/// What the owner keeps of its regions.
pub(super) struct Owned {
    /// The range of addresses.
    pub(super) range: Block,
    /// Where the search for a place for the next region begins, so that places are used again late.
    next: Cell<usize>,
}

impl Owned {
    pub(super) fn new(range: Block) -> Owned {
        Owned { range, next: Cell::new(0) }
    }
}

impl RawWindow {
    #[track_caller]
    fn own_regions(&self, call: &'static str) -> Result<(&Owned, Attached)> {
        match (&self.regions, self.targets[self.me].attached) {
            (Some(owned), Some(attached)) => Ok((owned, attached)),
            _ => {
                let note = "memory is attached to windows that were made for it, by Window::dynamic";
                Err(self.error(ErrorKind::OutOfBounds, call).note(note))
            }
        }
    }

    /// Attaches fresh, zeroed memory and gives its first displacement in bytes.
    ///
    /// # Errors
    /// `OutOfBounds` if there is no place for it; `System` if there is no memory.
    #[track_caller]
    pub(crate) fn attach(&self, call: &'static str, bytes: usize) -> Result<usize> {
        let (owned, attached) = self.own_regions(call)?;
        let table = attached.table();
        let refused = |note: String| self.error(ErrorKind::OutOfBounds, call).note(note);
        if bytes == 0 {
            return Err(refused("a region has at least one element".to_owned()));
        }
        // Relaxed, here and below: only this handle writes the table.
        let free = table.entries.iter().find(|entry| entry.len.load(Ordering::Relaxed) == 0);
        let Some(entry) = free else {
            return Err(refused(format!("this rank has {REGIONS_MAX} regions attached, which is the most")));
        };
        let page = page_bytes() as usize;
        let place = bytes.checked_next_multiple_of(page).and_then(|pages| {
            find_place(table, pages, owned.next.get(), attached.capacity).map(|start| (start, pages))
        });
        let Some((start, pages)) = place else {
            let capacity = attached.capacity;
            return Err(refused(format!("of the window's {capacity} bytes no {bytes} in a row are free")));
        };
        let offset = owned.range.offset() + start as u64;
        self.context.segment().commit(offset, pages as u64, call)?;
        owned.next.set(start + pages);
        entry.start.store(start as u64, Ordering::Relaxed);
        // Release: pairs with the Acquire in `regions`.
        entry.len.store(bytes as u64, Ordering::Release);
        Ok(start)
    }

    /// Detaches a region. Never waits.
    ///
    /// # Errors
    /// `OutOfBounds` if nothing is attached there; `EpochStillOpen` while the window is posted; `MixedSync` while somebody has
    /// this rank's lock; `Poisoned` while somebody may still write to a window that is out of use.
    #[track_caller]
    pub(crate) fn detach(&self, call: &'static str, region: Range<usize>) -> Result<()> {
        let (owned, attached) = self.own_regions(call)?;
        let entry = attached.table().entries.iter().find(|entry| {
            // Relaxed: only this handle writes the table.
            let (start, len) = (entry.start.load(Ordering::Relaxed), entry.len.load(Ordering::Relaxed));
            start == region.start as u64 && len == region.len() as u64 && len != 0
        });
        let Some(entry) = entry else { return Err(self.not_attached(call, region)) };
        self.refuse_illegal(call, Call::View(LocalOp::Store))?;
        let word = &self.control(self.me).word.0;
        let is_locked = match self.is_broken() {
            // Nobody gets the lock any more, and everybody who may write is known.
            true => match self.is_quiet() {
                Ok(()) => false,
                Err(rank) => {
                    let error = self.poisoned_again(call);
                    return Err(
                        error.other(format!("rank {rank}, which may still write to this rank's window"))
                    );
                }
            },
            false => match word.try_lock(self.me as u32, Sharing::Exclusive) {
                Ok(()) => true,
                Err(_) => {
                    let error = self.error(ErrorKind::MixedSync, call).target(self.rank());
                    return Err(match self.first_at(self.me) {
                        Some(rank) => error.other(format!("the lock of rank {rank}")),
                        None => error.other("shared locks"),
                    });
                }
            },
        };
        // Relaxed: the lock orders it before every later admission.
        entry.len.store(0, Ordering::Relaxed);
        let pages = region.len().next_multiple_of(page_bytes() as usize) as u64;
        self.context.segment().release(owned.range.offset() + region.start as u64, pages);
        if is_locked && word.unlock(self.me as u32, Sharing::Exclusive) {
            self.wake_first(self.me);
        }
        Ok(())
    }

    /// The error of a call that names what is not attached, or not as a whole.
    #[cold]
    #[track_caller]
    pub(super) fn not_attached(&self, call: &'static str, region: Range<usize>) -> Error {
        let note = format!("bytes {}..{} are no attached region of this rank", region.start, region.end);
        self.error(ErrorKind::OutOfBounds, call).target(self.rank()).note(note)
    }
}

/// A place for so many bytes that meets no region: the first at or after `next`, else the first of all.
fn find_place(table: &Regions, bytes: usize, next: usize, capacity: usize) -> Option<usize> {
    let page = page_bytes() as usize;
    let taken: Vec<Range<usize>> =
        table.regions().map(|region| region.start..region.end.next_multiple_of(page)).collect();
    let fits = |&start: &usize| {
        start.checked_add(bytes).is_some_and(|end| {
            end <= capacity && taken.iter().all(|region| region.end <= start || end <= region.start)
        })
    };
    let mut places: Vec<usize> =
        taken.iter().map(|region| region.end).chain([0, next]).filter(fits).collect();
    places.sort_unstable();
    places.iter().copied().find(|&start| next <= start).or_else(|| places.first().copied())
}
