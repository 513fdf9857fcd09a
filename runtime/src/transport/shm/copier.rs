//! Who moves the bytes of a transfer in mapped memory: this thread by its own instructions, the system, or another thread. Never
//! asks whether a copy is allowed, nor moves single words, which are one access each wherever they are.
//!
//! Copies by the calling thread are in `copy`. The others stand in for engines that a machine may have beside its processors
//! (RMA-SHM-05): they show that nothing but the interface is relied on. Both have returned when the bytes are where others see
//! them, and both end when the thread that asked for them would.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use super::copy::Loops;
use crate::sys;

/// Shorter copies are made by the calling thread: among them are single elements, which must not be torn.
const HANDED_MIN_BYTES: usize = 17;
/// The most bytes that the thread is given at a time, so that a copy of any length passes in bounded pieces.
const HANDED_MAX_BYTES: usize = 1 << 20;

/// Moves bytes between two places that this process has mapped.
pub(super) trait Copier {
    /// Copies `bytes` bytes from `origin` to `target`.
    ///
    /// # Safety
    ///
    /// As for [`Engine::copy`](super::copy::Engine::copy).
    unsafe fn copy(self, target: *mut u8, origin: *const u8, bytes: usize);
}

/// Who makes copies in mapped memory that are longer than two words. See [`Job::copy_engine`](crate::Job::copy_engine).
///
/// The results are the same with each; the others are slower, and there for tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopyEngine {
    /// The thread that makes the call, by loops or instructions that suit the machine.
    #[default]
    Mapped,
    /// The system, by its calls for the memory of processes (`process_vm_writev`), where it permits them, and a thread where not.
    Calls,
    /// Another thread of the process.
    Thread,
}

impl CopyEngine {
    /// The engine that goes by a name.
    pub(crate) fn named(name: &str) -> Option<CopyEngine> {
        match name {
            "mapped" => Some(CopyEngine::Mapped),
            "calls" => Some(CopyEngine::Calls),
            "thread" => Some(CopyEngine::Thread),
            _ => None,
        }
    }
}

/// A copier that is not the calling thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Other {
    Calls,
    Thread,
}

/// Hands what is long enough to somebody else.
#[derive(Clone, Copy)]
pub(super) struct Handing {
    pub(super) to: Other,
    /// For what is too short, or not taken.
    pub(super) own: Loops,
}

impl Other {
    /// The copier of an engine. The system is asked once whether it permits its calls.
    pub(super) fn of(engine: CopyEngine) -> Option<Other> {
        match engine {
            CopyEngine::Mapped => None,
            CopyEngine::Calls if are_calls_permitted() => Some(Other::Calls),
            CopyEngine::Calls | CopyEngine::Thread => Some(Other::Thread),
        }
    }
}

impl Copier for Handing {
    unsafe fn copy(self, target: *mut u8, origin: *const u8, bytes: usize) {
        let done = match self.to {
            _ if bytes < HANDED_MIN_BYTES => 0,
            // SAFETY: - the caller's promises.
            Other::Calls => unsafe { sys::memory::copy_by_calls(target, origin, bytes) },
            // SAFETY: - the caller's promises.
            Other::Thread => unsafe { copy_by_thread(target, origin, bytes) },
        };
        HANDED.set(HANDED.get() + done as u64);
        if done < bytes {
            // SAFETY: - `done` is less than `bytes`: the caller's promises for the rest.
            unsafe { self.own.copy(target.wrapping_add(done), origin.wrapping_add(done), bytes - done) };
        }
    }
}

thread_local! {
    /// Bytes that this thread has had copied, in pieces that are longer than a word.
    static COPIED: Cell<u64> = const { Cell::new(0) };
    /// Those of them that somebody else has copied.
    static HANDED: Cell<u64> = const { Cell::new(0) };
}

/// Counts bytes that are about to be copied.
#[inline(always)]
pub(super) fn count(bytes: usize) {
    COPIED.set(COPIED.get() + bytes as u64);
}

/// How many bytes the calling thread has had copied in pieces that are longer than a word, and how many of them by somebody else.
pub(crate) fn copied() -> (u64, u64) {
    (COPIED.get(), HANDED.get())
}

/// Whether the system copies within this process when it is asked to.
fn are_calls_permitted() -> bool {
    let (origin, mut target) = ([7_u8; HANDED_MIN_BYTES], [0_u8; HANDED_MIN_BYTES]);
    // SAFETY: - two arrays of this function.
    let done = unsafe { sys::memory::copy_by_calls(target.as_mut_ptr(), origin.as_ptr(), HANDED_MIN_BYTES) };
    done == HANDED_MIN_BYTES && target == origin
}

/// A copy that the thread is asked for.
struct Order {
    target: *mut u8,
    origin: *const u8,
    bytes: usize,
    loops: Loops,
    done: SyncSender<()>,
}

// SAFETY: - whoever sends an order waits for its end, and has the rights to both places until then.
unsafe impl Send for Order {}

/// Copies by another thread, which is started when it is first needed, and says how many bytes it has copied: all but none if there
/// is no thread.
///
/// # Safety
///
/// As for [`Copier::copy`].
unsafe fn copy_by_thread(target: *mut u8, origin: *const u8, bytes: usize) -> usize {
    static ORDERS: OnceLock<Option<Mutex<Sender<Order>>>> = OnceLock::new();
    let orders = ORDERS.get_or_init(|| {
        let (sender, receiver) = channel();
        thread::Builder::new().name("rma-copier".to_owned()).spawn(move || serve(&receiver)).ok()?;
        Some(Mutex::new(sender))
    });
    let Some(orders) = orders else { return 0 };
    let loops = Loops::choose();
    for at in (0..bytes).step_by(HANDED_MAX_BYTES) {
        let (done, ended) = sync_channel(1);
        let piece = HANDED_MAX_BYTES.min(bytes - at);
        let order = Order {
            target: target.wrapping_add(at),
            origin: origin.wrapping_add(at),
            bytes: piece,
            loops,
            done,
        };
        let sent = orders.lock().unwrap_or_else(PoisonError::into_inner).send(order).is_ok();
        // The thread ends with the process, and gives an order up only then.
        if !sent || ended.recv().is_err() {
            return at;
        }
    }
    bytes
}

fn serve(orders: &Receiver<Order>) {
    while let Ok(Order { target, origin, bytes, loops, done }) = orders.recv() {
        // SAFETY: - the promises of whoever has sent the order, who waits for its end.
        unsafe { loops.copy(target, origin, bytes) };
        let _ = done.send(()); // Its sender waits, or is gone with the process.
    }
}
