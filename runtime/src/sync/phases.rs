//! The fence of one window: a rank's signals, whether it may be writing, and whether the window is broken. Never waits:
//! callers sleep on the event beside it and look again.
//!
//! # Dissemination
//!
//! In round `r` rank `i` raises its own flag `r` to the number of the fence and waits until rank `i - 2^r` (modulo the size)
//! has raised its flag `r` as high. After `ceil(log2 size)` rounds everybody has heard of everybody. A flag is written
//! by one rank and never falls, so nothing is reset.
//!
//! # Agreement
//!
//! A fence that leads into a phase at one rank and out of the last one at another would leave the second with views of memory
//! that the first still writes to: after a `?` in the middle of a body that fences, for one. So a flag also says which
//! [`Way`] the ranks that its rank has heard of are going, and whoever has heard of everybody knows whether all agree.
//! A rank raises its flags for the next fence but one only after it has heard of everybody in the next, and so of every reader
//! of the present ones: a reader finds its own fence in the flag, or the one before.
//!
//! # Breaking
//!
//! A rank that gives a fence up (time limit, panic in the phase, lost peer) can't take its signals back, so others may still
//! get into the phase that its signals opened, and write. Two words settle who may: a rank says that it is `writing` before
//! it signals that it comes into a phase, and looks at `Broken` after it got there; the rank that breaks the window does it
//! the other way round. With a sequentially consistent fence on both sides at least one sees the other: either the late one
//! leaves without writing, or the breaking one knows that it may write and hands out no view until it has stopped.

use super::primitive::{AtomicU32, AtomicU64, Ordering, fence};

/// Rounds for as many ranks as a state word can count.
pub(crate) const ROUNDS_MAX: usize = 12;

/// Where a fence leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Into a phase, in which everybody may write to the part of everybody's memory that its owner has named.
    Part = 0,
    /// Into a phase, in which everybody may write to everybody.
    In = 1,
    /// Out of the last phase, or past it: everybody's memory is its own.
    Out = 2,
    /// Some ranks go in and some go out.
    Apart = 3,
}

impl Way {
    /// What two parties go together.
    pub(crate) fn with(self, other: Way) -> Way {
        if self == other { self } else { Way::Apart }
    }

    #[inline]
    fn decode(bits: u64) -> Way {
        match bits & WAY {
            0 => Way::Part,
            1 => Way::In,
            2 => Way::Out,
            _ => Way::Apart,
        }
    }
}

/// The way of the fence that a flag numbers; beside it is the way of the fence before.
const WAY: u64 = 0b11;
const WAY_BITS: u32 = 2;
const NUMBER_SHIFT: u32 = 2 * WAY_BITS;

/// One rank's part of the fences of one window. Zeroed memory is the initial state.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Phases {
    flags: [AtomicU64; ROUNDS_MAX],
    writing: AtomicU32,
}

impl Phases {
    /// The initial state.
    #[allow(dead_code, reason = "the checker builds it, the segment zeroes it")]
    pub(crate) fn new() -> Phases {
        Phases { flags: std::array::from_fn(|_| AtomicU64::new(0)), writing: AtomicU32::new(0) }
    }

    /// Raises the flag of a round, with the way of this rank and of those that it has heard of. Whoever waits for it is to
    /// be notified.
    #[inline]
    pub(crate) fn signal(&self, round: usize, number: u64, way: Way) {
        let before = self.flags[round].load(Ordering::Relaxed) & WAY; // Relaxed: this rank wrote it.
        let flag = number << NUMBER_SHIFT | before << WAY_BITS | way as u64;
        // Release: pairs with the Acquire in `heard`: what this rank, and those it has heard of, wrote is seen.
        self.flags[round].store(flag, Ordering::Release);
    }

    /// The way of the rank, and of those that it had heard of, in a round of this fence, once its flag is as high.
    #[inline]
    pub(crate) fn heard(&self, round: usize, number: u64) -> Option<Way> {
        // Acquire: pairs with the Release in `signal`.
        let flag = self.flags[round].load(Ordering::Acquire);
        match flag >> NUMBER_SHIFT {
            raised if raised < number => None,
            raised if raised == number => Some(Way::decode(flag)),
            _ => Some(Way::decode(flag >> WAY_BITS)),
        }
    }

    /// Says that this rank may write to the others' memory, before it signals the fence that lets it.
    pub(crate) fn begin_writing(&self) {
        self.writing.store(1, Ordering::Relaxed); // Relaxed: the fence follows.
        // SeqCst: pairs with the fence in `Broken::set`; the caller looks at the `Broken` word after its fence.
        fence(Ordering::SeqCst);
    }

    /// Says that this rank writes no more in this phase, before it signals the fence that ends it.
    pub(crate) fn end_writing(&self) {
        // Release: pairs with the Acquire in `is_writing`, so that the rank's last write comes before.
        self.writing.store(0, Ordering::Release);
    }

    /// Whether this rank may still write.
    pub(crate) fn is_writing(&self) -> bool {
        // Acquire: pairs with the Release in `end_writing`.
        self.writing.load(Ordering::Acquire) != 0
    }
}

/// Why a window went out of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Reason {
    /// The program of a rank panicked inside a phase or exposure.
    Panicked = 1,
    /// A rank passed the time limit of a call and went away.
    TimedOut = 2,
    /// A rank found that the named rank is lost.
    Lost = 3,
    /// A rank dropped the guard of an exposure that others had come into.
    Dropped = 4,
    /// The ranks came to different collective calls.
    Mismatched = 5,
    /// The named rank has dropped its handle of the window while others were in a fence.
    Departed = 6,
}

/// One word per window, at a place that all ranks agree on: who broke it and why. Zeroed memory is an unbroken one.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Broken(AtomicU32);

impl Broken {
    /// Unbroken.
    #[allow(dead_code, reason = "the checker builds it, the segment zeroes it")]
    pub(crate) fn new() -> Broken {
        Broken(AtomicU32::new(0))
    }

    /// Breaks the window, on account of `rank`. The first reason stays.
    #[cold]
    pub(crate) fn set(&self, rank: u32, reason: Reason) {
        // Release: pairs with the Acquire in `get`.
        let _ =
            self.0.compare_exchange(0, (rank + 1) << 8 | reason as u32, Ordering::Release, Ordering::Relaxed);
        // SeqCst: pairs with the fence in `Phases::begin_writing`; the caller looks at the others' `writing` after this.
        fence(Ordering::SeqCst);
    }

    /// On whose account the window is broken.
    #[inline]
    pub(crate) fn get(&self) -> Option<(u32, Reason)> {
        // Acquire: pairs with the Release in `set`.
        match self.0.load(Ordering::Acquire) {
            0 => None,
            word => Some(decode(word)),
        }
    }
}

#[cold]
fn decode(word: u32) -> (u32, Reason) {
    let reason = match word & 0xff {
        1 => Reason::Panicked,
        2 => Reason::TimedOut,
        3 => Reason::Lost,
        4 => Reason::Dropped,
        6 => Reason::Departed,
        _ => Reason::Mismatched,
    };
    ((word >> 8) - 1, reason)
}
