//! The word of a place that is taken by one at a time, and which anybody can ask to be left soon. Never waits, and never tells: who
//! asks tells the holder, and who leaves tells those that wait.
//!
//! Every turn at the place has a number, and so has a wish: one that comes late is for a turn that is over, and not for the next.
#![forbid(unsafe_code)]

use super::primitive::{AtomicU64, Ordering, fence_after_change};

/// Bits for what the holder takes the place for; the number of the turn is above them.
const MARK_BITS: u32 = 8;

/// A turn at the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn(u64);

/// See the module. Zeroed memory is a free place.
#[repr(C, align(64))]
pub(crate) struct Desk {
    /// The number of the latest turn, and its mark plus one while it lasts.
    now: AtomicU64,
    /// The latest turn that somebody wants to be over.
    wanted: AtomicU64,
}

impl Desk {
    #[allow(dead_code, reason = "the checker builds it, the segment zeroes it")]
    pub(crate) fn new() -> Desk {
        Desk { now: AtomicU64::new(0), wanted: AtomicU64::new(0) }
    }

    /// Takes the place if it is free.
    #[inline]
    pub(crate) fn take(&self, mark: usize) -> Option<Turn> {
        debug_assert!(mark + 1 < 1 << MARK_BITS, "the mark {mark} has no room");
        let now = self.now.load(Ordering::Relaxed);
        if mark_of(now) != 0 {
            return None;
        }
        let turn = ((now >> MARK_BITS) + 1) << MARK_BITS | (mark as u64 + 1);
        // Acquire: pairs with the Release in `give`.
        let taken = self.now.compare_exchange(now, turn, Ordering::Acquire, Ordering::Relaxed);
        // SeqCst: what is looked at next is looked at after this. Whoever changes that, fences and looks here is seen, or sees this.
        fence_after_change();
        taken.ok().map(|_| Turn(turn))
    }

    /// Leaves the place.
    #[inline]
    pub(crate) fn give(&self, turn: Turn) {
        // Release: pairs with the Acquire in `stands`: what the holder did before is seen by whoever finds it gone. An exchange, as
        // a look for sleepers follows.
        self.now.swap(turn.0 >> MARK_BITS << MARK_BITS, Ordering::AcqRel);
    }

    /// Whether somebody wants this turn to be over.
    #[inline]
    pub(crate) fn is_wanted(&self, turn: Turn) -> bool {
        self.wanted.load(Ordering::Relaxed) == turn.0 // Relaxed: only a hint to go.
    }

    /// The turn of this mark that lasts now.
    pub(crate) fn stands(&self, mark: usize) -> Option<Turn> {
        let now = self.now.load(Ordering::Acquire); // Acquire: pairs with the Release in `give`.
        (mark_of(now) == mark as u64 + 1).then_some(Turn(now))
    }

    /// Whether a turn is over.
    pub(crate) fn is_over(&self, turn: Turn) -> bool {
        self.now.load(Ordering::Acquire) != turn.0 // Acquire: as in `stands`.
    }

    /// Wants a turn to be over. Its holder is to be told.
    pub(crate) fn want(&self, turn: Turn) {
        // The highest number: a wish for a turn that is over must not hide the one for the next. Relaxed: the holder is told.
        self.wanted.fetch_max(turn.0, Ordering::Relaxed);
    }
}

fn mark_of(now: u64) -> u64 {
    now & ((1 << MARK_BITS) - 1)
}
