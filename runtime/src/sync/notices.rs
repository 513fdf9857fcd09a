//! A count of puts that have arrived, which their target waits for. Never says who has put.
#![forbid(unsafe_code)]

use super::primitive::{AtomicU64, Ordering};

/// Counts arrivals. All zero is the initial state: none.
#[repr(C)]
pub(crate) struct Notices {
    count: AtomicU64,
}

#[allow(dead_code, reason = "the checker builds counts, the segment zeroes them")]
impl Notices {
    pub(crate) fn new() -> Notices {
        Notices { count: AtomicU64::new(0) }
    }
}

impl Notices {
    /// Counts one arrival. The caller then notifies whoever waits.
    #[inline]
    pub(crate) fn add(&self) {
        // Release: pairs with the Acquire in `take`. Every addition goes on with the one before, so a count that is seen shows
        // what each of those that it counts has written before.
        self.count.fetch_add(1, Ordering::Release);
    }

    /// Takes so many arrivals, if there are as many. The target only does so, one call at a time.
    #[inline]
    pub(crate) fn take(&self, arrivals: u64) -> bool {
        // Acquire: pairs with the Release in `add`.
        let there = arrivals <= self.count.load(Ordering::Acquire);
        if there {
            // Relaxed: what was taken has been seen above; additions go on with the result.
            self.count.fetch_sub(arrivals, Ordering::Relaxed);
        }
        there
    }

    /// The arrivals that nobody has taken.
    pub(crate) fn untaken(&self) -> u64 {
        // Relaxed: for messages.
        self.count.load(Ordering::Relaxed)
    }
}
