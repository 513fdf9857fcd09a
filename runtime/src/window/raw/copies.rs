//! Windows whose memory is the caller's: a private copy, which only the owner touches, and a mirror of it in the segment,
//! which transfers touch. Never moves a byte outside a call of the owner, nor one that was not written.
//!
//! `publish` and `import` are called where `docs/spec/visibility.md`, section 2, says so; for memory with one copy they do
//! nothing. What has to move is known to the byte: transfers mark what they write in words behind the mirror, and the
//! owner's element accesses mark what they store in words of their own. What was stored through a mutable view is found by
//! comparing the copies, since they are equal when the view begins and nobody else is admitted while it lives.
//!
//! A byte that both sides have written holds what the last one to move brought; the rules call such a program wrong.

use std::any::Any;
use std::cell::Cell;
use std::sync::atomic::AtomicU64;

use super::{RawWindow, Target};
use crate::element::Element;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::marks::{self, Marks};
use crate::transport::shm::segment::BLOCK_ALIGNMENT;

/// Bytes of the two copies that are compared at a time.
const COMPARED_BYTES: usize = 1024;
/// What is moved if a byte of it differs.
const LINE_BYTES: usize = 64;

/// How many bytes the calls of one handle have moved between the copies of its own memory. See
/// [`Window::moved`](crate::Window::moved).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// From the private copy to the mirror: what the owner stored.
    pub published: u64,
    /// From the mirror to the private copy: what transfers wrote.
    pub imported: u64,
}

/// Memory that is to be the private copy of a window's part.
pub(crate) struct Private {
    start: *mut u8,
    memory: Kept,
}

/// A vector, and whose it is.
enum Kept {
    Caller(Box<dyn Any + Send>),
    Runtime(#[expect(dead_code, reason = "it is kept for its memory")] Box<dyn Any + Send>),
}

impl Private {
    /// Memory of the caller.
    pub(crate) fn over<T: Element>(mut memory: Vec<T>) -> Private {
        // The elements don't move with the vector, and nobody reaches them through it while it is kept.
        Private { start: memory.as_mut_ptr().cast(), memory: Kept::Caller(Box::new(memory)) }
    }

    /// Fresh memory of `len` elements, zeroed and aligned like the runtime's other memory.
    ///
    /// # Errors
    /// `System` if there is none.
    pub(crate) fn zeroed<T: Element>(len: usize) -> Result<Private> {
        let alignment = BLOCK_ALIGNMENT as usize;
        let mut memory = Vec::<T>::new();
        let padded = len.saturating_add(alignment / size_of::<T>());
        if memory.try_reserve_exact(padded).is_err() {
            let note = format!("no memory for {len} elements");
            return Err(Error::new(ErrorKind::System, "window allocation").note(note));
        }
        memory.resize(padded, T::default());
        let skipped = memory.as_ptr().align_offset(alignment);
        let start = memory.as_mut_ptr().wrapping_add(skipped).cast();
        Ok(Private { start, memory: Kept::Runtime(Box::new(memory)) })
    }

    pub(super) fn start(&self) -> *mut u8 {
        self.start
    }

    pub(super) fn into_copies(self, stored: Box<[AtomicU64]>) -> Copies {
        Copies { memory: self.memory, stored, viewed: Cell::new(false), moved: Cell::new(Moved::default()) }
    }

    /// The memory that [`over`](Private::over) was given.
    pub(crate) fn into_memory<T: Element>(self) -> Option<Vec<T>> {
        self.memory.into_vec()
    }
}

impl Kept {
    fn into_vec<T: Element>(self) -> Option<Vec<T>> {
        match self {
            Kept::Caller(memory) => memory.downcast().ok().map(|memory| *memory),
            Kept::Runtime(_) => None,
        }
    }
}

/// What the owner of two copies keeps.
pub(super) struct Copies {
    /// Keeps the private copy alive, whose address is the window's `private`.
    memory: Kept,
    /// What the owner's element accesses have stored since the last publish.
    stored: Box<[AtomicU64]>,
    /// A mutable view has lived since the last publish.
    viewed: Cell<bool>,
    moved: Cell<Moved>,
}

/// Where the marks of a mirror lie in the segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marked {
    offset: u64,
    words: usize,
}

impl Marked {
    /// The words behind `bytes` bytes that begin at `start`. `None` if that is more than an address can name.
    pub(super) fn behind(start: usize, bytes: usize) -> Option<Marked> {
        let offset = start.checked_add(bytes)?.checked_next_multiple_of(size_of::<AtomicU64>())?;
        Some(Marked { offset: offset as u64, words: marks::words_for(bytes) })
    }

    /// Where the words end.
    pub(super) fn end(self) -> Option<usize> {
        (self.offset as usize).checked_add(self.words.checked_mul(size_of::<AtomicU64>())?)
    }
}

/// As many words, without marks.
///
/// # Errors
/// A sentence for an error, if there is no memory.
pub(super) fn words(marked: Marked) -> Result<Box<[AtomicU64]>, String> {
    let mut words = Vec::new();
    match words.try_reserve_exact(marked.words) {
        Ok(()) => {
            words.resize_with(marked.words, AtomicU64::default);
            Ok(words.into_boxed_slice())
        }
        Err(_) => Err(format!("no memory for {} words of marks", marked.words)),
    }
}

impl Target {
    /// Whether the rank has a private copy beside the one that transfers reach.
    pub(super) fn has_mirror(&self) -> bool {
        self.marked.is_some()
    }
}

impl RawWindow {
    /// Brings what the owner stored to where others look.
    #[inline(always)]
    pub(super) fn publish(&self) {
        if let Some(copies) = &self.copies {
            self.publish_stored(copies);
        }
    }

    /// Brings what others have put to where the owner looks.
    #[inline(always)]
    pub(super) fn import(&self) {
        if let Some(copies) = &self.copies {
            self.import_marked(copies);
        }
    }

    #[inline(never)]
    fn publish_stored(&self, copies: &Copies) {
        let own = &self.targets[self.me];
        let mut published = 0;
        let publish = |start: usize, len: usize| {
            // SAFETY: - in bounds: the marks are of the window's bytes, and comparison stays inside them.
            let from = unsafe { self.private.add(start) };
            // SAFETY: - in bounds: the mirror is as long.
            let to = unsafe { own.data.add(start) };
            // SAFETY: - readable: the private copy is this handle's. - writable: the mirror, to which there are no references.
            unsafe { self.engine.copy(to, from, len) };
            published += len as u64;
        };
        let stored = Marks::new(&copies.stored, own.bytes);
        match copies.viewed.replace(false) {
            false => stored.take(publish),
            // The comparison finds the marked bytes, too.
            true => {
                stored.take(|_, _| ());
                self.compare(publish);
            }
        }
        let moved = copies.moved.get();
        copies.moved.set(Moved { published: moved.published + published, ..moved });
    }

    #[inline(never)]
    fn import_marked(&self, copies: &Copies) {
        // A view is a reference to the private copy. No call that imports is legal while one lives.
        debug_assert_eq!(self.views.get(), 0, "a view lives");
        if self.views.get() != 0 {
            return;
        }
        let own = &self.targets[self.me];
        let Some(marked) = own.marked else { return };
        let mut imported = 0;
        self.marks(marked, own).take(|start, len| {
            // SAFETY: - in bounds: the marks are of the window's bytes.
            let from = unsafe { own.data.add(start) };
            // SAFETY: - in bounds: the private copy is as long.
            let to = unsafe { self.private.add(start) };
            // SAFETY: - readable: the mirror; peers may write it at the same time, by the same routine only. - writable: the
            //   private copy is this handle's, and no view of it lives, see above.
            unsafe { self.engine.copy(to, from, len) };
            imported += len as u64;
        });
        let moved = copies.moved.get();
        copies.moved.set(Moved { imported: moved.imported + imported, ..moved });
    }

    /// Gives the runs of lines in which the two copies differ. Whole lines, as nobody else is admitted after a view.
    fn compare(&self, mut differs: impl FnMut(usize, usize)) {
        let own = &self.targets[self.me];
        let (mut mine, mut theirs) = ([0; COMPARED_BYTES], [0; COMPARED_BYTES]);
        let mut run = 0..0;
        for start in (0..own.bytes).step_by(COMPARED_BYTES) {
            let len = COMPARED_BYTES.min(own.bytes - start);
            // SAFETY: - in bounds: `start` is below the window's length.
            let private = unsafe { self.private.add(start) };
            // SAFETY: - in bounds: the mirror is as long.
            let mirror = unsafe { own.data.add(start) };
            // SAFETY: - readable: the private copy is this handle's. - writable: a buffer of its own.
            unsafe { self.engine.copy(mine.as_mut_ptr(), private, len) };
            // SAFETY: - readable: the mirror. - writable: a buffer of its own.
            unsafe { self.engine.copy(theirs.as_mut_ptr(), mirror, len) };
            if mine[..len] == theirs[..len] {
                continue;
            }
            let mut at = start;
            for (mine, theirs) in mine[..len].chunks(LINE_BYTES).zip(theirs[..len].chunks(LINE_BYTES)) {
                if mine != theirs {
                    if run.end != at {
                        differs(run.start, run.len());
                        run = at..at;
                    }
                    run.end += mine.len();
                }
                at += mine.len();
            }
        }
        differs(run.start, run.len());
    }

    /// Notes that a transfer of this handle has written to a target.
    #[inline(always)]
    pub(super) fn wrote(&self, there: &Target, at: *const u8, bytes: usize) {
        if let Some(marked) = there.marked {
            self.mark(marked, there, at.addr() - there.data.addr(), bytes);
        }
    }

    #[inline(never)]
    fn mark(&self, marked: Marked, there: &Target, start: usize, bytes: usize) {
        self.marks(marked, there).add(start, bytes);
    }

    #[inline(always)]
    fn marks(&self, marked: Marked, there: &Target) -> Marks<'_> {
        Marks::new(self.context.segment().shared_slice(marked.offset, marked.words), there.bytes)
    }

    /// Notes that the owner has stored to its own memory, other than through a view.
    #[inline(always)]
    pub(super) fn stored(&self, start: usize, bytes: usize) {
        if let Some(copies) = &self.copies {
            Marks::new(&copies.stored, self.targets[self.me].bytes).add_alone(start, bytes);
        }
    }

    /// Notes that the owner may store to its own memory through a view.
    #[inline(always)]
    pub(super) fn may_store(&self) {
        if let Some(copies) = &self.copies {
            copies.viewed.set(true);
        }
    }

    /// The bytes that this handle's calls have moved between the copies.
    pub(crate) fn moved(&self) -> Moved {
        self.copies.as_ref().map(|copies| copies.moved.get()).unwrap_or_default()
    }

    /// Whether the own memory has two copies.
    pub(crate) fn has_two_copies(&self) -> bool {
        self.copies.is_some()
    }

    /// Gives the handle up for the own memory, or a copy of it if it is the runtime's.
    ///
    /// # Errors
    /// `System` if there is no memory for a copy.
    #[track_caller]
    pub(crate) fn into_memory<T: Element>(mut self, call: &'static str) -> Result<Vec<T>> {
        // What is open is closed before the private copy goes, as closing publishes.
        self.close_leaked();
        match self.copies.take() {
            Some(Copies { memory: memory @ Kept::Caller(_), .. }) => {
                Ok(memory.into_vec().unwrap_or_default())
            }
            other => {
                self.copies = other;
                let len = self.targets[self.me].bytes / size_of::<T>();
                let mut copy = Vec::new();
                if copy.try_reserve_exact(len).is_err() {
                    let note = format!("no memory for {len} elements");
                    return Err(self.error(ErrorKind::System, call).note(note));
                }
                copy.resize(len, T::default());
                self.read(call, 0, &mut copy)?;
                Ok(copy)
            }
        }
    }
}
