//! How long a waiter looks at its condition before it sleeps, and how long it sleeps. Never sleeps itself.
#![forbid(unsafe_code)]

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The longest sleep before a waiter looks at its condition, the living and the clock by itself. Whoever notes an end
/// wakes the waiters on the board, so these looks serve those that it shows not.
const SLICE: Duration = Duration::from_millis(50);
/// Every so many ranks make the slice longer by its length, so that the looks of all cost the same in large jobs.
const SLICE_RANKS: u32 = 16;
/// The longest slice of large jobs.
const SLICE_MAX: Duration = Duration::from_secs(1);

/// Looks at the condition with a pause between them, when every rank has a core: some microseconds at most.
const SPINS_MAX: u32 = 256;
/// The least, so that a rank notices when spinning has become worth its while again.
const SPINS_MIN: u32 = 8;
/// Looks at the condition with the core given away between them, before the waiter sleeps.
const YIELDS: u32 = 128;
/// With more ranks per core than this, a waiter does not yield but sleeps.
const YIELDING_RANKS_PER_CORE: usize = 8;
/// What the looks with yields may take in all: on a loaded machine a single yield can last a scheduler's slice.
const YIELDING: Duration = Duration::from_millis(1);

/// How eager a waiter is before it sleeps.
///
/// Spinning pays only while the rank waited for runs on another core. Whether it does depends on what else the
/// machine runs, so the number of looks doubles when spinning was enough and halves when it was not.
#[derive(Debug)]
pub(crate) struct Patience {
    spins: AtomicU32,
    spins_max: u32,
    yields: u32,
    slice: Duration,
}

impl Patience {
    /// With more ranks than cores a spinning waiter would only keep the core from the rank that it waits for.
    pub(crate) fn of(ranks: u32) -> Patience {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let spins_max = match ranks as usize <= cores {
            true => SPINS_MAX,
            false => 0,
        };
        // With many ranks per core, those that yield only take turns at finding nothing.
        let yields = match ranks as usize <= cores * YIELDING_RANKS_PER_CORE {
            true => YIELDS,
            false => 0,
        };
        let slice = (SLICE * (ranks / SLICE_RANKS).max(1)).min(SLICE_MAX);
        Patience { spins: AtomicU32::new(spins_max), spins_max, yields, slice }
    }

    /// The longest sleep of a waiter whom nobody wakes.
    pub(crate) fn slice(&self) -> Duration {
        self.slice
    }

    /// The longest sleep of a waiter that is not on the board, so that whoever notes an end can't wake it.
    pub(crate) fn unseen_slice(&self) -> Duration {
        SLICE
    }

    /// Looks until `ready` gives a value or patience is at its end.
    pub(crate) fn spin_and_yield<R>(&self, ready: &mut dyn FnMut() -> Option<R>) -> Option<R> {
        if let Some(value) = self.spin(ready) {
            return Some(value);
        }
        let begun = Instant::now();
        for _ in 0..self.yields {
            match ready() {
                Some(value) => return Some(value),
                None => thread::yield_now(),
            }
            if YIELDING < begun.elapsed() {
                break;
            }
        }
        None
    }

    /// The first part of it, for those that do something else before they sleep.
    pub(crate) fn spin<R>(&self, ready: &mut dyn FnMut() -> Option<R>) -> Option<R> {
        // Relaxed, here and below: a guess that no other word depends on.
        let spins = self.spins.load(Ordering::Relaxed);
        for _ in 0..spins {
            match ready() {
                Some(value) => {
                    if spins < self.spins_max {
                        self.spins.store(spins * 2, Ordering::Relaxed);
                    }
                    return Some(value);
                }
                None => spin_loop(),
            }
        }
        if SPINS_MIN < spins {
            self.spins.store(spins / 2, Ordering::Relaxed);
        }
        None
    }
}
