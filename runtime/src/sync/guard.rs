//! A short lock for elements that no instruction of the machine changes at once. Never held while its holder waits for anything.
#![forbid(unsafe_code)]

use super::primitive::{AtomicU32, Ordering};

/// Says who is changing something now. All zero is the initial state: nobody.
#[repr(C)]
pub(crate) struct Guard {
    /// The holder's rank plus one.
    holder: AtomicU32,
}

#[allow(dead_code, reason = "the checker builds guards, the segment zeroes them")]
impl Guard {
    pub(crate) fn new() -> Guard {
        Guard { holder: AtomicU32::new(0) }
    }
}

impl Guard {
    /// Takes the guard, if nobody has it.
    #[inline]
    pub(crate) fn try_take(&self, rank: u32) -> bool {
        // Acquire: pairs with the Release in `give_back`, so that what the last holder wrote is seen.
        self.holder.compare_exchange(0, rank + 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Gives the guard back. The caller then notifies whoever waits for it.
    #[inline]
    pub(crate) fn give_back(&self) {
        // Release: pairs with the Acquire in `try_take`.
        self.holder.store(0, Ordering::Release);
    }

    /// Who has the guard now.
    pub(crate) fn holder(&self) -> Option<u32> {
        // Relaxed: a hint for messages and for the question whether the holder is alive.
        self.holder.load(Ordering::Relaxed).checked_sub(1)
    }
}
