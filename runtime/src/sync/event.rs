//! An event count: sleep until somebody says that a condition may have changed. Never holds the condition itself.
//!
//! The waiter announces itself, looks at its condition once more and only then sleeps; the notifier changes the
//! condition and only then looks whether anybody is announced. The two fences make it impossible that both miss
//! each other. A sleeper that is killed leaves at most one superfluous wake behind.
#![forbid(unsafe_code)]

use std::time::Duration;

use super::primitive::{AtomicU32, Ordering, fence, fence_after_change, futex_wait, futex_wake_all};

/// An event count in shared memory. All zero is the initial state.
#[repr(C)]
pub(crate) struct Event {
    /// Counts notifications that found a sleeper; the word that sleepers sleep on.
    sequence: AtomicU32,
    /// 1 while somebody may be asleep.
    sleepers: AtomicU32,
}

/// What a waiter must hand to [`Event::sleep`]: the count at the time it announced itself.
#[derive(Clone, Copy)]
pub(crate) struct Ticket(u32);

#[allow(dead_code, reason = "the checker builds events, the segment zeroes them")]
impl Event {
    pub(crate) fn new() -> Event {
        Event { sequence: AtomicU32::new(0), sleepers: AtomicU32::new(0) }
    }
}

impl Event {
    /// Tells sleepers that a condition may have changed. Costs a fence and a load when nobody sleeps.
    #[inline]
    pub(crate) fn notify(&self) {
        // SeqCst: pairs with the fence in `announce`. Either this load sees the announcement, or the waiter's
        // look at its condition sees what was written before this fence.
        fence(Ordering::SeqCst);
        self.wake_sleepers();
    }

    /// As `notify`, for a condition that this thread has changed by an atomic change of a word.
    #[inline]
    pub(crate) fn notify_after_change(&self) {
        // SeqCst: as in `notify`.
        fence_after_change();
        self.wake_sleepers();
    }

    #[inline]
    fn wake_sleepers(&self) {
        match self.sleepers.load(Ordering::Relaxed) {
            0 => {}
            _ => self.wake(),
        }
    }

    /// Wakes everybody, announced or not: for changes that concern every waiter, as a death does.
    #[cold]
    pub(crate) fn wake(&self) {
        // The flag falls before the count rises, so a waiter whose announcement this store removes still holds
        // the old count and will not stay asleep on it.
        self.sleepers.store(0, Ordering::Relaxed);
        // Release: pairs with the Acquire load in `announce`, which orders a later announcement after the store.
        self.sequence.fetch_add(1, Ordering::Release);
        futex_wake_all(&self.sequence);
    }

    /// Wakes whoever sleeps and writes nothing: for those who are told where somebody slept and can't know whether the memory is
    /// an event still. A waiter that is about to sleep misses it and looks by itself after its slice.
    #[cold]
    pub(crate) fn nudge(&self) {
        futex_wake_all(&self.sequence);
    }

    /// Announces a sleeper. The caller then looks at its condition, and sleeps only if it does not hold.
    pub(crate) fn announce(&self) -> Ticket {
        // Acquire: pairs with the Release in `wake`.
        let count = self.sequence.load(Ordering::Acquire);
        self.sleepers.store(1, Ordering::Relaxed);
        // SeqCst: pairs with the fence in `notify`.
        fence(Ordering::SeqCst);
        Ticket(count)
    }

    /// Sleeps until a notification after `announce`, or for `timeout`. May return early.
    pub(crate) fn sleep(&self, ticket: Ticket, timeout: Option<Duration>) {
        futex_wait(&self.sequence, ticket.0, timeout);
    }
}
