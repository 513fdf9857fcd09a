//! Windows whose memory is the caller's: a private copy, which only the owner touches, and a mirror of it in the segment,
//! which transfers touch. Never moves a byte outside a call of the owner, nor one that was not written.
//!
//! `publish` and `import` are called where `docs/spec/visibility.md`, section 2, says so; for memory with one copy they do
//! nothing. What has to move is known to the byte: transfers mark what they write in words behind the mirror, and the
//! owner's element accesses mark what they store in words of their own. What was stored through a mutable view is found by
//! comparing the copies, since they are equal when the view begins and nobody else is admitted while it lives.
//!
//! A byte that both sides have written holds what the last one to move brought; the rules call such a program wrong.
//!
//! The window barrier of the team moves bytes too, possibly in another thread than the one that has the handle. So whoever
//! moves holds a lock, a view begins under that lock, and nothing moves while there is a view.

use std::alloc::{Layout, alloc_zeroed};
use std::any::Any;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{RawWindow, Target};
use crate::element::Element;
use crate::error::{Error, ErrorKind, Result};
use crate::job::RankContext;
use crate::sync::marks::{self, Marks};
use crate::team::{Mover, OpenEpochs};
use crate::transport::shm::arena::Block;
use crate::transport::shm::copy::Engine;
use crate::transport::shm::segment::{BLOCK_ALIGNMENT, Locked, Segment};
use crate::window::memory::{CallerMemory, Home};

/// Bytes of the two copies that are compared at a time.
const COMPARED_BYTES: usize = 1024;
/// Bytes of a new private copy that are looked at before they are copied: a page.
const PIECE_BYTES: usize = 4096;
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
    pub(crate) fn over<T: Element, M: CallerMemory<T>>(mut memory: M) -> Private {
        // The elements don't move with their owner, and nobody reaches them through it while it is kept.
        Private { start: memory.elements().as_mut_ptr().cast(), memory: Kept::Caller(Box::new(memory)) }
    }

    /// Fresh memory of `len` elements, zeroed and aligned like the runtime's other memory.
    ///
    /// # Errors
    /// `System` if there is none.
    pub(crate) fn zeroed<T: Element>(len: usize) -> Result<Private> {
        /// Elements need not divide the alignment, so the memory is made of what has it.
        #[derive(Clone, Copy)]
        #[repr(align(64))]
        struct Line(#[expect(dead_code, reason = "it stands for its bytes")] [u8; 64]);
        const { assert!(align_of::<Line>() == BLOCK_ALIGNMENT as usize, "as window memory is") }
        let lines = len.checked_mul(size_of::<T>()).map(|bytes| bytes.div_ceil(size_of::<Line>()));
        let mut memory = Vec::<Line>::new();
        if lines.is_none_or(|lines| memory.try_reserve_exact(lines).is_err()) {
            let note = format!("no memory for {len} elements");
            return Err(Error::new(ErrorKind::System, "window allocation").note(note));
        }
        memory.resize(lines.unwrap_or(0), Line([0; 64]));
        let start = memory.as_mut_ptr().cast();
        Ok(Private { start, memory: Kept::Runtime(Box::new(memory)) })
    }

    pub(super) fn start(&self) -> *mut u8 {
        self.start
    }

    /// The two copies of a window's part.
    pub(super) fn into_copies(
        self,
        mirror: *mut u8,
        marked: Marked,
        stored: Box<[AtomicU64]>,
        window: &RawWindow,
    ) -> Copies {
        let pair = Pair {
            private: self.start,
            mirror,
            bytes: window.targets[window.me].bytes,
            marked,
            // Others may change the mirror by atomics while it is brought home, and no word of theirs may come torn.
            engine: window.engine.mapped(),
            context: Arc::clone(&window.context),
            memory: self.memory,
            moved: Moved::default(),
        };
        let open = Arc::clone(&window.open);
        Copies(Arc::new(Shared {
            pair: Mutex::new(Some(pair)),
            open,
            stored,
            viewed: AtomicBool::new(false),
        }))
    }

    /// The memory that [`over`](Private::over) was given.
    pub(crate) fn into_memory<M: Any>(self) -> Option<M> {
        self.memory.into_memory()
    }
}

impl Kept {
    fn into_memory<M: Any>(self) -> Option<M> {
        match self {
            Kept::Caller(memory) => memory.downcast().ok().map(|memory| *memory),
            Kept::Runtime(_) => None,
        }
    }
}

/// What the owner of two copies keeps.
pub(super) struct Copies(Arc<Shared>);

/// What the owner's handle and its team share.
struct Shared {
    /// The copies, until the window goes.
    pair: Mutex<Option<Pair>>,
    /// What the window has open, views among it.
    open: Arc<OpenEpochs>,
    /// What the owner's element accesses have stored since the last publish.
    stored: Box<[AtomicU64]>,
    /// A mutable view has lived since the last publish.
    viewed: AtomicBool,
}

/// The two copies themselves, and what moving between them takes.
struct Pair {
    private: *mut u8,
    mirror: *mut u8,
    /// The length of both.
    bytes: usize,
    marked: Marked,
    engine: Engine,
    /// Keeps the mirror's mapping alive.
    context: Arc<RankContext>,
    /// Keeps the private copy alive.
    memory: Kept,
    moved: Moved,
}

// SAFETY: - the pointers lead into memory that the pair owns or keeps mapped, the same for all threads of the process;
//   whoever has the pair has the lock around it.
unsafe impl Send for Pair {}

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

    /// The marks of `bytes` bytes.
    #[inline(always)]
    fn of(self, context: &RankContext, bytes: usize) -> Marks<'_> {
        Marks::new(context.segment().shared_slice(self.offset, self.words), bytes)
    }

    /// Marks bytes of the window of this length.
    pub(super) fn note(self, segment: &Segment, bytes: usize, start: usize, len: usize) {
        Marks::new(segment.shared_slice(self.offset, self.words), bytes).add(start, len);
    }

    /// Where the words end.
    pub(super) fn end(self) -> Option<usize> {
        (self.offset as usize).checked_add(self.words.checked_mul(size_of::<AtomicU64>())?)
    }
}

/// As many words, without marks. The system gives them their pages when they are first written.
///
/// # Errors
/// A sentence for an error, if there is no memory.
pub(super) fn words(marked: Marked) -> Result<Box<[AtomicU64]>, String> {
    let refused = || format!("no memory for {} words of marks", marked.words);
    let layout = Layout::array::<AtomicU64>(marked.words).map_err(|_| refused())?;
    if layout.size() == 0 {
        return Ok(Box::default());
    }
    // SAFETY: - the layout has a size.
    let words = unsafe { alloc_zeroed(layout) }.cast::<AtomicU64>();
    if words.is_null() {
        return Err(refused());
    }
    let words = ptr::slice_from_raw_parts_mut(words, marked.words);
    // SAFETY: - allocated just now with the layout of such a slice, by the allocator of boxes. - valid: zeroed words are words.
    Ok(unsafe { Box::from_raw(words) })
}

/// Brings what the private copy of a new window holds into its mirror, which is zeroed. Pages that hold nothing else are left
/// alone, so that they need no place in this process before somebody writes to them.
///
/// # Safety
///
/// `private` is readable for `bytes` bytes, which nobody changes; `mirror` is writable for as many, and nobody else's yet.
pub(super) unsafe fn fill(engine: Engine, mirror: *mut u8, private: *const u8, bytes: usize) {
    let mut piece = [0_u64; PIECE_BYTES / size_of::<u64>()];
    for start in (0..bytes).step_by(PIECE_BYTES) {
        let len = PIECE_BYTES.min(bytes - start);
        if len < PIECE_BYTES {
            piece.fill(0);
        }
        // SAFETY: - in bounds: `start` is below `bytes`.
        let from = unsafe { private.add(start) };
        // SAFETY: - in bounds: `start` is below `bytes`.
        let to = unsafe { mirror.add(start) };
        // SAFETY: - readable: the caller's promise. - writable: a buffer of its own. Padding that nobody has written is some byte
        //   or other for this routine.
        unsafe { engine.copy(piece.as_mut_ptr().cast(), from, len) };
        if piece.iter().fold(0, |all, word| all | word) != 0 {
            // SAFETY: - readable and writable: the caller's promises.
            unsafe { engine.copy(to, from, len) };
        }
    }
}

/// Keeps a block with a mirror in memory.
///
/// # Errors
/// A sentence for an error, if the system refuses.
pub(super) fn lock(context: &RankContext, block: &Block, bytes: usize) -> Result<Locked, String> {
    context.shared_segment().lock(block.offset(), bytes as u64).map_err(|errno| {
        format!("the {bytes} bytes of a mirror can't be locked ({errno}): raise the limit (`ulimit -l`), or do not ask for it")
    })
}

impl Copies {
    /// Takes the private copy if it is the caller's. The window must not be used afterwards.
    fn take_callers_memory<M: Any>(&self) -> Option<M> {
        let mut pair = self.0.pair();
        match pair.take() {
            Some(Pair { memory: Kept::Caller(memory), .. }) if memory.is::<M>() => {
                memory.downcast().ok().map(|memory| *memory)
            }
            other => {
                *pair = other;
                None
            }
        }
    }

    /// Gives the copies up. Nobody moves anything between them any more.
    pub(super) fn end(&self) {
        drop(self.0.pair().take());
    }
}

impl Target {
    /// Whether the rank has a private copy beside the one that transfers reach.
    pub(super) fn has_mirror(&self) -> bool {
        self.marked.is_some()
    }
}

impl Shared {
    fn pair(&self) -> MutexGuard<'_, Option<Pair>> {
        // Nothing panics while a pair is half moved, and one that was half moved would only move again.
        self.pair.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mover for Shared {
    fn publish(&self) {
        if let Some(pair) = &mut *self.pair() {
            pair.publish(self);
        }
    }

    fn import(&self) {
        if let Some(pair) = &mut *self.pair() {
            pair.import(self);
        }
    }
}

impl Pair {
    fn publish(&mut self, shared: &Shared) {
        // A view may be storing; its end publishes.
        if shared.open.views.get() != 0 {
            return;
        }
        let mut published = 0;
        let publish = |start: usize, len: usize| {
            // SAFETY: - in bounds: the marks are of the window's bytes, and comparison stays inside them.
            let from = unsafe { self.private.add(start) };
            // SAFETY: - in bounds: the mirror is as long.
            let to = unsafe { self.mirror.add(start) };
            // SAFETY: - readable: the private copy, of which no mutable view lives, see above. - writable: the mirror, to
            //   which there are no references.
            unsafe { self.engine.copy(to, from, len) };
            published += len as u64;
        };
        let stored = Marks::new(&shared.stored, self.bytes);
        // Relaxed: the lock orders it.
        match shared.viewed.swap(false, Ordering::Relaxed) {
            false => stored.take(publish),
            // The comparison finds the marked bytes, too.
            true => {
                stored.take(|_, _| ());
                self.compare(0..self.bytes, publish);
            }
        }
        self.moved.published += published;
    }

    fn import(&mut self, shared: &Shared) {
        // A view is a reference to the private copy. No call of the handle that imports is legal while one lives; the team's
        // barrier may have looked before another thread took one.
        if shared.open.views.get() != 0 {
            return;
        }
        let mut imported = 0;
        self.marked.of(&self.context, self.bytes).take(|start, len| {
            // SAFETY: - in bounds: the marks are of the window's bytes.
            let from = unsafe { self.mirror.add(start) };
            // SAFETY: - in bounds: the private copy is as long.
            let to = unsafe { self.private.add(start) };
            // SAFETY: - readable: the mirror; peers may write it at the same time, by the same routine only. - writable: the
            //   private copy, of which no view lives, see above; none begins, as that takes the lock that this call holds.
            unsafe { self.engine.copy(to, from, len) };
            imported += len as u64;
        });
        self.moved.imported += imported;
    }

    /// Brings what the owner stored outside of a part to where others look, who are admitted to the part only.
    fn publish_around(&mut self, part: Range<usize>) {
        let mut published = 0;
        let publish = |start: usize, len: usize| {
            // SAFETY: - in bounds: comparison stays inside the window's bytes.
            let from = unsafe { self.private.add(start) };
            // SAFETY: - in bounds: the mirror is as long.
            let to = unsafe { self.mirror.add(start) };
            // SAFETY: - readable: the private copy, whose slices are gone. - writable: the mirror, to which there are no
            //   references.
            unsafe { self.engine.copy(to, from, len) };
            published += len as u64;
        };
        let mut publish = publish;
        self.compare(0..part.start, &mut publish);
        self.compare(part.end..self.bytes, &mut publish);
        self.moved.published += published;
    }

    /// Gives the runs of lines of a range in which the two copies differ. Whole lines of it, as nobody else is admitted there.
    fn compare(&self, range: Range<usize>, mut differs: impl FnMut(usize, usize)) {
        let (mut mine, mut theirs) = ([0; COMPARED_BYTES], [0; COMPARED_BYTES]);
        let mut run = 0..0;
        for start in range.clone().step_by(COMPARED_BYTES) {
            let len = COMPARED_BYTES.min(range.end - start);
            // SAFETY: - in bounds: `start` is below the window's length.
            let private = unsafe { self.private.add(start) };
            // SAFETY: - in bounds: the mirror is as long.
            let mirror = unsafe { self.mirror.add(start) };
            // SAFETY: - readable: the private copy, of which no mutable view lives. - writable: a buffer of its own.
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
}

impl RawWindow {
    /// Brings what the owner stored to where others look.
    #[inline(always)]
    pub(super) fn publish(&self) {
        if let Some(copies) = &self.copies {
            copies.0.publish();
        }
    }

    /// Brings what others have put to where the owner looks.
    #[inline(always)]
    pub(super) fn import(&self) {
        if let Some(copies) = &self.copies {
            debug_assert_eq!(self.open.views.get(), 0, "a view lives");
            copies.0.import();
        }
    }

    /// Counts a view that begins. The first one imports.
    #[inline(always)]
    pub(super) fn begin_view(&self) {
        let views = self.open.views.get();
        match &self.copies {
            Some(copies) if views == 0 => {
                let mut pair = copies.0.pair();
                if let Some(pair) = &mut *pair {
                    pair.import(&copies.0);
                }
                // Under the lock, so that whoever moves sees it.
                self.open.views.set(1);
            }
            _ => self.open.views.set(views + 1),
        }
    }

    /// Lets the team's barrier move what this window has to move.
    pub(super) fn join_barriers(&self) {
        if let Some(copies) = &self.copies {
            self.open.moves_by(Arc::clone(&copies.0) as Arc<dyn Mover>);
        }
    }

    /// Notes that a transfer of this handle has written to a target, by plain stores.
    #[inline(always)]
    pub(super) fn wrote(&self, there: &Target, at: *const u8, bytes: usize) {
        self.begin_writing();
        self.changed(there, at, bytes);
    }

    /// Notes that a transfer of this handle has changed a target by instructions that read and write at once.
    #[inline(always)]
    pub(super) fn changed(&self, there: &Target, at: *const u8, bytes: usize) {
        if let Some(marked) = there.marked {
            self.mark(marked, there, at.addr() - there.data.addr(), bytes);
        }
    }

    #[inline(never)]
    fn mark(&self, marked: Marked, there: &Target, start: usize, bytes: usize) {
        marked.of(&self.context, there.bytes).add(start, bytes);
    }

    /// Notes that the owner has stored to its own memory, other than through a view.
    #[inline(always)]
    pub(super) fn stored(&self, start: usize, bytes: usize) {
        self.begin_writing();
        if let Some(copies) = &self.copies {
            Marks::new(&copies.0.stored, self.targets[self.me].bytes).add(start, bytes);
        }
    }

    /// Notes that the owner may store to its own memory through a view.
    #[inline(always)]
    pub(super) fn may_store(&self) {
        if let Some(copies) = &self.copies {
            copies.0.viewed.store(true, Ordering::Relaxed); // Relaxed: the lock of the copies orders it.
        }
    }

    /// Brings what the program stored outside of the exposed part to where others look, when it has the slices no more.
    pub(super) fn publish_rest(&self) {
        if let (Some(copies), Some(part)) = (&self.copies, self.targets[self.me].part.get())
            && let Some(pair) = &mut *copies.0.pair()
        {
            pair.publish_around(part.start..part.end);
        }
    }

    /// The bytes that this handle's calls have moved between the copies.
    pub(crate) fn moved(&self) -> Moved {
        let moved = |copies: &Copies| copies.0.pair().as_ref().map(|pair| pair.moved);
        self.copies.as_ref().and_then(moved).unwrap_or_default()
    }

    /// Whether the own memory has two copies.
    pub(crate) fn has_two_copies(&self) -> bool {
        self.copies.is_some()
    }

    /// Gives the handle up for the own memory, or a copy of it if it is the runtime's, or of another kind.
    ///
    /// # Errors
    /// `System` if there is no memory for a copy.
    #[track_caller]
    pub(crate) fn into_memory<T: Element, M: CallerMemory<T>>(self, call: &'static str) -> Result<M> {
        // What is open is closed before the private copy goes, as closing publishes.
        self.close_leaked();
        if let Some(memory) = self.copies.as_ref().and_then(Copies::take_callers_memory) {
            return Ok(memory);
        }
        let len = self.targets[self.me].bytes / size_of::<T>();
        let mut copy = M::fresh(Home(&self.context), len, call)
            .map_err(|error| error.window(self.id).caller(self.rank()))?;
        self.read(call, 0, copy.elements())?;
        Ok(copy)
    }
}
