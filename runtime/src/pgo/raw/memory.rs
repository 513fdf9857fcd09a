//! Memory that a program may allocate for its transfers: its own while nothing of it is offered, and within reach of ranks that
//! share memory while it is. Never given back to the machine while somebody may still write to it.
#![allow(unsafe_code)]

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::Place;
use crate::element::Element;
use crate::error::Result;
use crate::job::RankContext;
use crate::transport::shm::arena::Block;
use crate::transport::shm::segment::Segment;
use crate::window::memory::{CallerMemory, Home, sealed};

/// Elements in memory that ranks on one machine share (RMA_MALLOC of the seeds). Made by [`malloc`](crate::pgo::malloc), freed by
/// dropping it.
///
/// It is used like a slice. Offered, it needs no copy of its own: a put that meets the offer is one copy. Using it is never
/// required.
pub struct Malloc<T: Element> {
    /// `None` once the memory was given up.
    block: Option<Block>,
    len: usize,
    context: Arc<RankContext>,
    elements: PhantomData<T>,
}

impl<T: Element> Malloc<T> {
    pub(in crate::pgo) fn new(
        context: &Arc<RankContext>,
        len: usize,
        call: &'static str,
    ) -> Result<Malloc<T>> {
        let block = context.allocate(call, len.saturating_mul(size_of::<T>()))?;
        Ok(Malloc { block: Some(block), len, context: Arc::clone(context), elements: PhantomData })
    }

    /// Where the memory lies, and its length in bytes. To be asked by an offer of it, which borrows or owns it.
    pub(in crate::pgo) fn extent(&mut self) -> (u64, usize) {
        match &self.block {
            Some(block) => (block.offset(), self.len * size_of::<T>()),
            None => (0, 0),
        }
    }

    /// Gives the memory up, as somebody may write to it for ever: what is left has no elements.
    pub(in crate::pgo) fn renounce(&mut self) {
        if let Some(block) = self.block.take() {
            block.leave_behind();
        }
        self.len = 0;
    }

    fn segment(&self) -> &Segment {
        self.context.segment()
    }

    fn start(&self) -> *mut T {
        match &self.block {
            Some(block) => self.segment().at(block.offset()).cast(),
            None => std::ptr::NonNull::dangling().as_ptr(),
        }
    }
}

impl<T: Element> Deref for Malloc<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: - in bounds and aligned: a block of this length, aligned to 64 bytes, which elements need at most; or none.
        //         - valid: every pattern of bits is an element.
        //         - unaliased: others write only while it is offered, when it is in a request or exclusively borrowed.
        unsafe { std::slice::from_raw_parts(self.start(), self.len) }
    }
}

impl<T: Element> DerefMut for Malloc<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: - as in `deref`; exclusive through `&mut self`.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.len) }
    }
}

// A window has it for itself, as it has a vector; what others reach is the window's mirror.
impl<T: Element> sealed::Sealed for Malloc<T> {}

impl<T: Element> CallerMemory<T> for Malloc<T> {
    fn elements(&mut self) -> &mut [T] {
        self
    }

    fn fresh(Home(context): Home<'_>, len: usize, call: &'static str) -> Result<Malloc<T>> {
        Malloc::new(context, len, call)
    }

    fn none(Home(context): Home<'_>) -> Malloc<T> {
        Malloc { block: None, len: 0, context: Arc::clone(context), elements: PhantomData }
    }
}

impl<T: Element> fmt::Debug for Malloc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} shared elements", self.len)
    }
}

/// A block that stands for private memory while that is offered.
pub(in crate::pgo) fn mirror_place<'a>(segment: &'a Segment, block: &'a Block, bytes: usize) -> Place<'a> {
    // SAFETY: - no references: nobody makes any to the memory of a mirror.
    unsafe { Place::in_segment(segment, block.offset(), bytes) }
}
