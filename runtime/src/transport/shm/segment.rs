//! The segment: one memory file per job, mapped once per process over far more address space than it uses. Never
//! hands out addresses to be stored; what is stored in it are offsets.
//!
//! The file grows by a bump of the header's `next` word and a commit of the new range, so growing needs no new
//! mapping. A commit takes the pages at once, so shortage is an error of the rank that asked, never a bus error or the end of
//! whoever touches a page later.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;

use super::layout::{Header, RANKS_MAX, Record};
use crate::error::{Error, ErrorKind, Result};
pub(crate) use crate::sys::memory::page_bytes;
use crate::sys::memory::{self, Mapping};

/// Says "segment of this runtime, this layout". The last byte counts layouts.
const MAGIC: u64 = u64::from_le_bytes(*b"rmaseg\0\x03");

/// Address space of a segment: as much of this as the process may map, halved down to the minimum.
const RESERVATION_MAX_BYTES: u64 = 1 << 40;
const RESERVATION_MIN_BYTES: u64 = 1 << 26;

/// From this size on, a commit first asks whether the machine has the memory: the system itself would rather end a process
/// than refuse. An arena grows by smaller steps a few times only.
const CHECKED_COMMIT_BYTES: u64 = 1 << 20;
/// What a checked commit leaves to everybody else: so many times what it takes, at most so many bytes.
const MARGIN_FACTOR: u64 = 8;
const MARGIN_MAX_BYTES: u64 = 64 << 20;

/// Identities that one segment can give before they meet those of the next one.
const NODE_SHIFT: u32 = 40;

/// Alignment of every block: a cache line, and at least every basic type.
pub(crate) const BLOCK_ALIGNMENT: u64 = 64;

/// Types that may be placed in a segment and referenced by several processes at once.
///
/// # Safety
/// All bytes zero is a valid value, every field is an atomic, and the type has no address in it.
pub(crate) unsafe trait Shared {}

/// The memory that the ranks of a job share: one mapping per process.
pub(crate) struct Segment {
    mapping: Mapping,
    file: OwnedFd,
    /// Kept here, so that a rank that writes wildly before it dies does not mislead the others.
    size: u32,
}

/// Pages of a segment that stay in memory, as this process sees it, while this value lives.
pub(crate) struct Locked {
    segment: Arc<Segment>,
    offset: u64,
    len: u64,
}

impl Drop for Locked {
    fn drop(&mut self) {
        // If the system refuses, the pages stay in memory until the process ends; nothing else depends on it.
        let _ = memory::unlock(&self.segment.mapping, self.offset as usize, self.len as usize);
    }
}

impl Segment {
    /// Makes the segment of a new job of `size` ranks.
    ///
    /// # Errors
    /// `Launch` if `size` is 0 or above [`RANKS_MAX`]; `System` if the machine has no memory or address space.
    pub(crate) fn create(size: u32) -> Result<Arc<Segment>> {
        const CALL: &str = "creation of the job's memory";
        if size == 0 || RANKS_MAX < size {
            let note = format!("a job has 1 to {RANKS_MAX} ranks, not {size}");
            return Err(Error::new(ErrorKind::Launch, CALL).note(note));
        }
        let refused = |errno: Errno| Error::new(ErrorKind::System, CALL).note(errno.to_string());
        let file = memory::memory_file(&format!("rma-job-{}", std::process::id())).map_err(refused)?;
        let records_end = Segment::record_offset(size);
        let first = records_end.next_multiple_of(memory::page_bytes());
        memory::commit(&file, 0, first).map_err(refused)?;
        let mut reservation = RESERVATION_MAX_BYTES;
        let mapping = loop {
            match Mapping::new(&file, reservation as usize) {
                Ok(mapping) => break mapping,
                Err(_) if RESERVATION_MIN_BYTES < reservation => reservation /= 2,
                Err(errno) => return Err(refused(errno)),
            }
        };
        let segment = Segment { mapping, file, size };
        let header = segment.header();
        header.reservation.store(reservation, Ordering::Relaxed);
        header.size.store(size, Ordering::Relaxed);
        header.next.store(first, Ordering::Relaxed);
        // Release: pairs with the Acquire load in `attach`.
        header.magic.store(MAGIC, Ordering::Release);
        Ok(Arc::new(segment))
    }

    /// Maps the segment of an existing job.
    ///
    /// # Errors
    /// `Launch` if the file is no segment of this runtime; `System` if it cannot be mapped.
    pub(crate) fn attach(file: OwnedFd) -> Result<Arc<Segment>> {
        const CALL: &str = "joining the job's memory";
        let refused = |errno: Errno| Error::new(ErrorKind::System, CALL).note(errno.to_string());
        let foreign = || {
            let note = "the descriptor named by RMA_RENDEZVOUS is no segment of this runtime; start ranks by rma-run";
            Error::new(ErrorKind::Launch, CALL).note(note)
        };
        let bytes = rustix::fs::fstat(&file).map_err(refused)?.st_size;
        if bytes < Segment::record_offset(1).cast_signed() {
            return Err(foreign());
        }
        let mapping = Mapping::new(&file, size_of::<Header>()).map_err(refused)?;
        let probe = Segment { mapping, file, size: 0 };
        let header = probe.header();
        // Acquire: pairs with the Release store in `create`.
        if header.magic.load(Ordering::Acquire) != MAGIC {
            return Err(foreign());
        }
        let reservation = header.reservation.load(Ordering::Relaxed);
        let size = header.size.load(Ordering::Relaxed);
        let Segment { mapping: _, file, size: _ } = probe;
        let mapping = Mapping::new(&file, reservation as usize).map_err(refused)?;
        Ok(Arc::new(Segment { mapping, file, size }))
    }

    /// The descriptor of the memory file, for the launcher that hands it on.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    pub(crate) fn base(&self) -> *mut u8 {
        self.mapping.base()
    }

    /// Number of ranks of the job.
    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    pub(crate) fn header(&self) -> &Header {
        self.shared(0)
    }

    /// The record of a job rank.
    pub(crate) fn record(&self, job_rank: u32) -> &Record {
        debug_assert!(job_rank < self.size(), "rank {job_rank} has no record");
        self.shared(Segment::record_offset(job_rank))
    }

    fn record_offset(job_rank: u32) -> u64 {
        (size_of::<Header>() + job_rank as usize * size_of::<Record>()) as u64
    }

    /// The address of an offset.
    #[inline]
    pub(crate) fn at(&self, offset: u64) -> *mut u8 {
        self.base().wrapping_add(offset as usize)
    }

    /// Whether so many bytes from an offset on are the segment's.
    pub(crate) fn contains(&self, offset: u64, bytes: usize) -> bool {
        offset.checked_add(bytes as u64).is_some_and(|end| end <= self.mapping.len() as u64)
    }

    /// The shared structure at an offset that another rank wrote, unless that is no place for one: a rank that dies of
    /// wild writes may have written anything.
    pub(crate) fn shared_if_valid<T: Shared>(&self, offset: u64) -> Option<&T> {
        let end = offset.checked_add(size_of::<T>() as u64)?;
        let committed = rustix::fs::fstat(&self.file).ok()?.st_size.cast_unsigned();
        match offset.is_multiple_of(align_of::<T>() as u64) && end <= committed {
            true => Some(self.shared(offset)),
            false => None,
        }
    }

    /// The offset of a shared structure that lies in this segment.
    pub(crate) fn offset_of<T: Shared>(&self, shared: &T) -> Option<u64> {
        let offset = (std::ptr::from_ref(shared) as usize).checked_sub(self.base() as usize)?;
        match offset < self.mapping.len() {
            true => Some(offset as u64),
            false => None,
        }
    }

    /// The shared structure at an offset.
    ///
    /// # Panics
    /// If the offset is not aligned or lies outside the segment: a broken structure, not a user's mistake.
    #[inline]
    pub(crate) fn shared<T: Shared>(&self, offset: u64) -> &T {
        &self.shared_slice(offset, 1)[0]
    }

    /// `count` shared structures from an offset on.
    ///
    /// # Panics
    /// As [`Segment::shared`].
    #[inline]
    pub(crate) fn shared_slice<T: Shared>(&self, offset: u64, count: usize) -> &[T] {
        let bytes = count.saturating_mul(size_of::<T>()) as u64;
        assert!(
            offset.is_multiple_of(align_of::<T>() as u64)
                && offset.saturating_add(bytes) <= self.mapping.len() as u64,
            "offset {offset} is no place for {count} shared structures"
        );
        let first = self.at(offset).cast_const().cast::<T>();
        // SAFETY: - in bounds and aligned: checked above; the base is aligned to a page.
        //         - valid: Shared types accept every value that atomics of this runtime wrote, and zero.
        //         - alive: the mapping lives as long as self.
        //         - aliasing: Shared types are atomics, so shared references may coexist in all processes.
        unsafe { std::slice::from_raw_parts(first, count) }
    }

    /// Zeroes a range.
    ///
    /// # Safety
    /// The range belongs to the caller alone: no peer reads or writes it and no reference into it exists.
    pub(crate) unsafe fn clear(&self, offset: u64, len: u64) {
        assert!(offset.saturating_add(len) <= self.mapping.len() as u64, "range outside the segment");
        // SAFETY: - in bounds: checked above. - unaliased: the caller's promise.
        unsafe { self.at(offset).write_bytes(0, len as usize) }
    }

    /// Takes `len` bytes (whole pages) of fresh, zeroed memory from the end of the segment.
    pub(crate) fn grow(&self, len: u64, call: &'static str) -> Result<u64> {
        let offset = self.reserve(len, call)?;
        match self.commit(offset, len, call) {
            Ok(()) => Ok(offset),
            Err(error) => {
                // Give the address space back if nobody has taken any behind it; otherwise it stays unused.
                let next = &self.header().next;
                let _ = next.compare_exchange(offset + len, offset, Ordering::Relaxed, Ordering::Relaxed);
                Err(error)
            }
        }
    }

    /// Takes `len` bytes (whole pages) of address space without memory from the end of the segment.
    pub(crate) fn reserve(&self, len: u64, call: &'static str) -> Result<u64> {
        let header = self.header();
        let reservation = self.mapping.len() as u64;
        let mut offset = header.next.load(Ordering::Relaxed);
        loop {
            if reservation.saturating_sub(offset) < len {
                let note = format!(
                    "{len} bytes do not fit the segment's {reservation} bytes of address space, of which {offset} are taken"
                );
                return Err(Error::new(ErrorKind::System, call).note(note));
            }
            // Relaxed: the range is the winner's alone; others learn of it through their own synchronization.
            match header.next.compare_exchange_weak(
                offset,
                offset + len,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(offset),
                Err(now) => offset = now,
            }
        }
    }

    /// Gives a range (whole pages) real memory, for the first time or again after [`Segment::release`].
    pub(crate) fn commit(&self, offset: u64, len: u64, call: &'static str) -> Result<()> {
        let header = self.header();
        let pending = header.committing.fetch_add(len, Ordering::Relaxed) + len;
        let shortage = match len < CHECKED_COMMIT_BYTES {
            true => None,
            false => {
                let margin = (len * MARGIN_FACTOR).min(MARGIN_MAX_BYTES);
                memory::available_bytes().filter(|&free| free < pending.saturating_add(margin))
            }
        };
        let result = match shortage {
            Some(free) => {
                let note = format!("{len} bytes were asked for and the machine has {free} bytes left");
                Err(Error::new(ErrorKind::System, call).note(note))
            }
            None => memory::commit(&self.file, offset, len).map_err(|errno| {
                Error::new(ErrorKind::System, call).note(format!("no memory for {len} bytes: {errno}"))
            }),
        };
        header.committing.fetch_sub(len, Ordering::Relaxed);
        if result.is_err() {
            self.release(offset, len);
        }
        result
    }

    /// Gives the memory of a range (whole pages) back to the machine.
    pub(crate) fn release(&self, offset: u64, len: u64) {
        // If the system refuses, the memory stays in use until the job ends; nothing else depends on it.
        let _ = memory::release(&self.file, offset, len);
    }

    /// Keeps the pages of a range in memory. The range has pages of its own, as others' are let go with it.
    pub(crate) fn lock(self: &Arc<Segment>, offset: u64, len: u64) -> Result<Locked, Errno> {
        memory::lock(&self.mapping, offset as usize, len as usize)?;
        Ok(Locked { segment: Arc::clone(self), offset, len })
    }

    /// Numbers teams and windows from here on, so that the identities of two segments of one job differ.
    pub(crate) fn number_from(&self, node: u32) {
        // Relaxed: nobody else has the segment yet.
        self.header().ids.store(u64::from(node) << NODE_SHIFT, Ordering::Relaxed);
    }

    /// A fresh identity for a team or window, unique in the job.
    pub(crate) fn fresh_id(&self) -> u64 {
        // Relaxed: only uniqueness matters.
        self.header().ids.fetch_add(1, Ordering::Relaxed) + 1
    }
}
