//! A stretch of memory that transfers touch. Never makes a reference of it.
#![allow(unsafe_code)]

use std::marker::PhantomData;

use crate::element::Element;
use crate::op::{Memory, MemoryMut};
use crate::transport::shm::copy::Engine;
use crate::transport::shm::segment::Segment;

/// Some bytes, private or of the segment, for as long as they are borrowed.
#[derive(Clone, Copy, Debug)]
pub(in crate::pgo) struct Place<'a> {
    start: *mut u8,
    bytes: usize,
    writable: bool,
    borrowed: PhantomData<&'a mut [u8]>,
}

// SAFETY: - a place is a borrow of elements, which are Send and Sync, or of memory that ranks share; what it is written by is
//   the copy of `Engine`, which is defined whoever touches the bytes meanwhile.
unsafe impl Send for Place<'_> {}
// SAFETY: - as for Send.
unsafe impl Sync for Place<'_> {}

impl<'a> Place<'a> {
    /// Elements that are read.
    pub(in crate::pgo) fn of<T: Element>(elements: &'a [T]) -> Place<'a> {
        let start = elements.as_ptr().cast_mut().cast();
        Place { start, bytes: size_of_val(elements), writable: false, borrowed: PhantomData }
    }

    /// Elements that are written or read.
    pub(in crate::pgo) fn of_mut<T: Element>(elements: &'a mut [T]) -> Place<'a> {
        let bytes = size_of_val(elements);
        Place { start: elements.as_mut_ptr().cast(), bytes, writable: true, borrowed: PhantomData }
    }

    /// What a datatype is laid over, to be read.
    pub(in crate::pgo) fn under(memory: Memory<'a>) -> Place<'a> {
        let Memory { start, bytes, .. } = memory;
        Place { start: start.cast_mut(), bytes, writable: false, borrowed: PhantomData }
    }

    /// What a datatype is laid over, to be written.
    pub(in crate::pgo) fn under_mut(memory: MemoryMut<'a>) -> Place<'a> {
        let MemoryMut { start, bytes, .. } = memory;
        Place { start, bytes, writable: true, borrowed: PhantomData }
    }

    /// Bytes of the segment.
    ///
    /// # Panics
    /// If they lie outside of it.
    ///
    /// # Safety
    /// No Rust reference to a type that is not atomic lives into these bytes while the place is used.
    pub(super) unsafe fn in_segment(segment: &'a Segment, offset: u64, bytes: usize) -> Place<'a> {
        assert!(segment.contains(offset, bytes), "{bytes} bytes at {offset} are outside the segment");
        Place { start: segment.at(offset), bytes, writable: true, borrowed: PhantomData }
    }

    pub(in crate::pgo) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies `len` bytes from a place in `origin` to a place in this one.
    ///
    /// # Panics
    /// If one of the two ends earlier, or this one is only read.
    pub(in crate::pgo) fn take(
        &self,
        engine: Engine,
        at: usize,
        origin: &Place<'_>,
        origin_at: usize,
        len: usize,
    ) {
        let fits = |place: &Place<'_>, at: usize| at <= place.bytes && len <= place.bytes - at;
        assert!(self.writable && fits(self, at) && fits(origin, origin_at), "a copy leaves its places");
        let (target, origin) = (self.start.wrapping_add(at), origin.start.wrapping_add(origin_at));
        // SAFETY: - in bounds: checked above; both places are valid while they are borrowed.
        //         - unaliased: the target is exclusively borrowed, or memory of the segment without references; what others may
        //           write of the origin is memory of the segment, too.
        //         - overlap: private memory and the segment are apart, and so are blocks of the segment.
        unsafe { engine.copy(target, origin, len) }
    }
}
