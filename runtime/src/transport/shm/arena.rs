//! A rank's own share of the segment. Never shared with another rank, so that a death cannot corrupt it.
//!
//! Small blocks are cut from chunks and kept. Large ones are whole pages: some of those that are freed are kept for the next, as
//! zeroing pages is several times faster than getting new ones; the memory of the others goes back to the machine, while
//! their addresses stay with the rank. The first ones find pages that were set aside when the rank joined its job. Every page has its
//! memory before a block names it.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::segment::{BLOCK_ALIGNMENT, Segment};
use crate::error::{Error, ErrorKind, Result};
use crate::sys::memory;

/// The first chunk of a rank; every further one is twice as large, up to the maximum.
const CHUNK_MIN_BYTES: u64 = 64 << 10;
const CHUNK_MAX_BYTES: u64 = 4 << 20;
/// From this size on, a block has pages of its own.
pub(crate) const LARGE_BLOCK_BYTES: u64 = 256 << 10;
/// What a process takes from the machine when it joins its job: pages cost a quarter of a microsecond each, which the first window
/// would have to wait for. Enough for some 4 MiB of elements, with what a mirror needs beside them.
const ASIDE_BYTES: u64 = 5 << 20;
/// The most memory that a rank keeps for large blocks to come.
const KEPT_MAX_BYTES: u64 = 64 << 20;

/// The memory of the segment that one rank owns.
pub(crate) struct Arena {
    segment: Arc<Segment>,
    ranges: Mutex<Ranges>,
}

struct Ranges {
    /// Zeroed memory that was taken when the rank joined its job, for the first large blocks.
    aside: FreeList,
    /// Free pieces of chunks. Their contents are whatever the last user left.
    small: FreeList,
    /// Freed large blocks with their memory and whatever the last user left in it.
    kept: FreeList,
    /// Addresses of freed large blocks, without memory.
    holes: FreeList,
    next_chunk_bytes: u64,
}

impl Arena {
    pub(crate) fn new(segment: Arc<Segment>) -> Arc<Arena> {
        let ranges = Ranges {
            aside: FreeList::default(),
            small: FreeList::default(),
            kept: FreeList::default(),
            holes: FreeList::default(),
            next_chunk_bytes: CHUNK_MIN_BYTES,
        };
        Arc::new(Arena { segment, ranges: Mutex::new(ranges) })
    }

    /// Takes some memory for the first large blocks now. Where there is none, they have to see for themselves.
    pub(crate) fn set_aside(&self) {
        if let Ok(offset) = self.segment.grow(ASIDE_BYTES, "joining the job") {
            self.ranges().aside.give(offset, ASIDE_BYTES);
        }
    }

    /// Takes `bytes` zeroed bytes.
    ///
    /// # Errors
    /// `System` if the machine or the segment has not that much.
    pub(crate) fn allocate(self: &Arc<Arena>, bytes: usize, call: &'static str) -> Result<Block> {
        // An empty block has an address too, so that every window has one.
        let wanted = (bytes as u64).max(1).checked_next_multiple_of(memory::page_bytes());
        let wanted = match wanted {
            Some(pages) if pages < LARGE_BLOCK_BYTES => {
                (bytes as u64).max(1).next_multiple_of(BLOCK_ALIGNMENT)
            }
            Some(pages) => pages,
            None => {
                let note = format!("{bytes} bytes are more than an address can name");
                return Err(Error::new(ErrorKind::System, call).note(note));
            }
        };
        let offset = match wanted < LARGE_BLOCK_BYTES {
            true => self.take_small(wanted, call)?,
            false => self.take_large(wanted, call)?,
        };
        Ok(Block { arena: Arc::clone(self), offset, taken: wanted, pages: Pages::All })
    }

    /// Takes addresses for `bytes` bytes without memory, to which the caller gives pages as it needs them.
    ///
    /// # Errors
    /// `System` if the segment has not that much.
    pub(crate) fn reserve(self: &Arc<Arena>, bytes: usize, call: &'static str) -> Result<Block> {
        let Some(wanted) = (bytes as u64).max(1).checked_next_multiple_of(memory::page_bytes()) else {
            let note = format!("{bytes} bytes are more than an address can name");
            return Err(Error::new(ErrorKind::System, call).note(note));
        };
        let hole = self.ranges().holes.take(wanted);
        let offset = match hole {
            Some(offset) => offset,
            None => self.segment.reserve(wanted, call)?,
        };
        Ok(Block { arena: Arc::clone(self), offset, taken: wanted, pages: Pages::Some })
    }

    fn take_small(&self, wanted: u64, call: &'static str) -> Result<u64> {
        let mut ranges = self.ranges();
        let offset = match ranges.small.take(wanted) {
            Some(offset) => offset,
            None => {
                let chunk = ranges.next_chunk_bytes.max(wanted.next_multiple_of(memory::page_bytes()));
                let start = self.segment.grow(chunk, call)?;
                ranges.next_chunk_bytes = (ranges.next_chunk_bytes * 2).min(CHUNK_MAX_BYTES);
                ranges.small.give(start + wanted, chunk - wanted);
                start
            }
        };
        drop(ranges);
        // SAFETY: - the range was free: it left the free list (or the segment's end) just now and no block names it.
        unsafe { self.segment.clear(offset, wanted) };
        Ok(offset)
    }

    fn take_large(&self, wanted: u64, call: &'static str) -> Result<u64> {
        let aside = self.ranges().aside.take(wanted);
        if let Some(offset) = aside {
            return Ok(offset);
        }
        let kept = self.ranges().kept.take(wanted);
        if let Some(offset) = kept {
            // SAFETY: - the range was free: it left the free list just now and no block names it.
            unsafe { self.segment.clear(offset, wanted) };
            return Ok(offset);
        }
        let hole = self.ranges().holes.take(wanted);
        let taken = match hole {
            Some(offset) => match self.segment.commit(offset, wanted, call) {
                Ok(()) => Ok(offset),
                Err(error) => {
                    self.ranges().holes.give(offset, wanted);
                    Err(error)
                }
            },
            None => self.segment.grow(wanted, call),
        };
        match taken {
            // What is kept is in too small pieces; as memory of the machine it may serve.
            Err(_) if self.let_go() => self.take_large(wanted, call),
            taken => taken,
        }
    }

    /// Gives the memory that is set aside or kept back to the machine. Says whether there was any.
    fn let_go(&self) -> bool {
        let mut ranges = self.ranges();
        let (aside, kept) = (std::mem::take(&mut ranges.aside), std::mem::take(&mut ranges.kept));
        for (&offset, &len) in aside.ranges.iter().chain(&kept.ranges) {
            self.segment.release(offset, len);
            ranges.holes.give(offset, len);
        }
        !(aside.ranges.is_empty() && kept.ranges.is_empty())
    }

    fn give_back(&self, offset: u64, taken: u64, pages: Pages) {
        let mut ranges = self.ranges();
        let is_kept = ranges.kept.bytes + taken <= KEPT_MAX_BYTES;
        match pages {
            Pages::All if taken < LARGE_BLOCK_BYTES => ranges.small.give(offset, taken),
            Pages::All if is_kept => ranges.kept.give(offset, taken),
            Pages::All | Pages::Some => {
                self.segment.release(offset, taken);
                ranges.holes.give(offset, taken);
            }
        }
    }

    fn ranges(&self) -> MutexGuard<'_, Ranges> {
        // Nothing panics while the lists are inconsistent, so a poisoned lock holds good lists.
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A piece of the segment that this rank owns: zeroed at first, aligned to 64 bytes, freed on drop.
///
/// A block that peers may still write to must not be dropped but retired, see `RankContext::retire`.
pub(crate) struct Block {
    arena: Arc<Arena>,
    offset: u64,
    taken: u64,
    pages: Pages,
}

/// Which pages of a block have memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pages {
    All,
    /// Those that the block's user has committed.
    Some,
}

impl Block {
    /// Where the block lies in the segment: what other ranks are told.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Gives the block up without anybody using its memory again: for one that a peer may still touch when nobody is left that
    /// could ask whether it is done.
    pub(crate) fn leave_behind(mut self) {
        // The arena takes an empty range back, so that nothing but the memory is kept.
        self.taken = 0;
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.arena.give_back(self.offset, self.taken, self.pages);
    }
}

/// Free ranges by offset; neighbours are merged.
#[derive(Default)]
struct FreeList {
    ranges: BTreeMap<u64, u64>,
    /// Of all ranges together.
    bytes: u64,
}

impl FreeList {
    /// Takes the first range that is large enough, and keeps the rest of it.
    fn take(&mut self, wanted: u64) -> Option<u64> {
        let (&offset, &len) = self.ranges.iter().find(|&(_, &len)| wanted <= len)?;
        self.ranges.remove(&offset);
        self.bytes -= wanted;
        if wanted < len {
            self.ranges.insert(offset + wanted, len - wanted);
        }
        Some(offset)
    }

    fn give(&mut self, offset: u64, len: u64) {
        if len == 0 {
            return;
        }
        self.bytes += len;
        let (mut start, mut end) = (offset, offset + len);
        match self.ranges.range(..offset).next_back() {
            Some((&before, &before_len)) if before + before_len == start => {
                self.ranges.remove(&before);
                start = before;
            }
            _ => {}
        }
        if let Some(after_len) = self.ranges.remove(&end) {
            end += after_len
        }
        self.ranges.insert(start, end - start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_zeroed_and_reused() {
        let segment = Segment::create(1).unwrap();
        let arena = Arena::new(Arc::clone(&segment));
        for bytes in [0, 1, 64, 100, 70_000, 300_000, 5_000_000] {
            let block = arena.allocate(bytes, "test").unwrap();
            assert_eq!(block.offset() % 64, 0);
            assert!(bytes as u64 <= block.taken);
            let words = segment.shared_slice::<std::sync::atomic::AtomicU64>(block.offset(), bytes / 8);
            assert!(words.iter().all(|word| word.load(std::sync::atomic::Ordering::Relaxed) == 0));
            words.iter().for_each(|word| word.store(!0, std::sync::atomic::Ordering::Relaxed));
            drop(block);
            let again = arena.allocate(bytes, "test").unwrap();
            let words = segment.shared_slice::<std::sync::atomic::AtomicU64>(again.offset(), bytes / 8);
            assert!(words.iter().all(|word| word.load(std::sync::atomic::Ordering::Relaxed) == 0));
        }
    }

    #[test]
    fn freed_memory_is_used_again() {
        let segment = Segment::create(1).unwrap();
        let arena = Arena::new(Arc::clone(&segment));
        let end = || segment.header().next.load(std::sync::atomic::Ordering::Relaxed);
        for bytes in [100, 70_000, 300_000] {
            drop(arena.allocate(bytes, "test").unwrap());
            let before = end();
            (0..100).for_each(|_| drop(arena.allocate(bytes, "test").unwrap()));
            assert_eq!(
                end(),
                before,
                "the segment does not grow for blocks of {bytes} bytes that come and go"
            );
        }
    }

    /// What would be a bus error, or the end of the process, if a page were not there when it is touched.
    #[test]
    fn every_page_is_there_before_it_is_touched() {
        let segment = Segment::create(1).unwrap();
        let arena = Arena::new(Arc::clone(&segment));
        let missing = || {
            let file = rustix::fs::fstat(segment.file()).unwrap();
            let taken = segment.header().next.load(std::sync::atomic::Ordering::Relaxed);
            taken.saturating_sub(file.st_blocks.cast_unsigned() * 512)
        };
        let mut blocks = Vec::new();
        for bytes in [1, 5000, 100_000, 300_000, 4 << 20, 9 << 20, 70 << 20] {
            blocks.push(arena.allocate(bytes, "test").unwrap());
            assert_eq!(missing(), 0, "after a block of {bytes} bytes");
        }
        blocks.clear();
        // More than is kept went back, and comes again.
        assert!(9 << 20 <= missing());
        let _again = arena.allocate(70 << 20, "test").unwrap();
        let _more = arena.allocate(9 << 20, "test").unwrap();
        assert_eq!(missing(), 0);
    }

    #[test]
    fn addresses_without_memory_come_back_as_such() {
        let segment = Segment::create(1).unwrap();
        let arena = Arena::new(Arc::clone(&segment));
        let reserved = arena.reserve(1 << 30, "test").unwrap();
        let offset = reserved.offset();
        segment.commit(offset + (1 << 20), 1 << 16, "test").unwrap();
        drop(reserved);
        let ranges = arena.ranges();
        assert_eq!((ranges.kept.bytes, ranges.holes.bytes), (0, 1 << 30));
        drop(ranges);
        assert_eq!(arena.reserve(1 << 30, "test").unwrap().offset(), offset);
        assert!(arena.reserve(usize::MAX, "test").is_err());
    }

    #[test]
    fn what_is_set_aside_comes_first_and_is_zeroed() {
        let segment = Segment::create(1).unwrap();
        let arena = Arena::new(Arc::clone(&segment));
        arena.set_aside();
        let end = || segment.header().next.load(std::sync::atomic::Ordering::Relaxed);
        let before = end();
        let block = arena.allocate(4 << 20, "test").unwrap();
        assert_eq!(end(), before, "the segment does not grow for the first block");
        let words = segment.shared_slice::<std::sync::atomic::AtomicU64>(block.offset(), (4 << 20) / 8);
        assert!(words.iter().all(|word| word.load(std::sync::atomic::Ordering::Relaxed) == 0));
        let _second = arena.allocate(4 << 20, "test").unwrap();
        assert!(before < end());
        // What is left of it is given up for a block that is too large.
        assert!(arena.allocate(1 << 39, "test").is_err(), "nobody has that much");
        assert!(arena.ranges().aside.ranges.is_empty());
    }

    #[test]
    fn kept_memory_is_given_up_for_a_larger_block() {
        let segment = Segment::create(1).unwrap();
        let arena = Arena::new(Arc::clone(&segment));
        drop(arena.allocate(1 << 20, "test").unwrap());
        assert_eq!(arena.ranges().kept.bytes, 1 << 20);
        assert!(arena.allocate(1 << 39, "test").is_err(), "nobody has that much");
        let ranges = arena.ranges();
        assert_eq!((ranges.kept.bytes, ranges.holes.bytes), (0, 1 << 20));
    }

    #[test]
    fn absurd_sizes_are_errors() {
        let segment = Segment::create(1).unwrap();
        let arena = Arena::new(segment);
        for bytes in [usize::MAX, usize::MAX / 2, 1 << 45, 1 << 39] {
            let error = arena.allocate(bytes, "allocation").err().expect("nobody has that much");
            assert_eq!(error.kind(), ErrorKind::System, "{error}");
        }
        assert!(arena.allocate(4096, "allocation").is_ok(), "a refused request leaves the arena usable");
    }

    #[test]
    fn free_ranges_merge() {
        let mut list = FreeList::default();
        list.give(0, 64);
        list.give(128, 64);
        list.give(64, 64);
        assert_eq!((list.ranges.iter().collect::<Vec<_>>(), list.bytes), (vec![(&0, &192)], 192));
        assert_eq!(list.take(192), Some(0));
        assert_eq!(list.take(1), None);
    }
}
