//! What a window keeps in shared memory at each rank, before its data. Never interprets a word: `sync` does.
#![allow(unsafe_code)]

use std::sync::atomic::AtomicU32;

use crate::sync::event::Event;
use crate::sync::exposure::{self, Exposure, Origin, Part, Tally};
use crate::sync::guard::Guard;
use crate::sync::notices::Notices;
use crate::sync::phases::{Broken, Phases};
use crate::sync::state_word::{Slot, StateWord};
use crate::transport::shm::layout::RANKS_MAX;
use crate::transport::shm::segment::Shared;

/// A value with cache lines of its own.
#[repr(C, align(64))]
pub(super) struct Lines<T>(pub(super) T);

/// The control block of one window at one rank. Zeroed memory is its initial state.
#[repr(C)]
pub(super) struct Control {
    /// Who may touch the rank's memory.
    pub(super) word: Lines<StateWord>,
    /// Whom its owner lets in. Origins look at it, and the owner writes.
    pub(super) exposure: Lines<Exposed>,
    /// Who is done. Origins write, and the owner looks at it.
    pub(super) ends: Lines<Ends>,
    /// The rank's part of the fences, and what it sleeps on in them.
    pub(super) fences: Lines<Fences>,
    /// Whether the window goes on.
    pub(super) fate: Lines<Fate>,
    /// Who is changing elements of the rank's memory that no instruction changes at once.
    pub(super) guards: Lines<[Stripe; STRIPES]>,
    /// Puts that have arrived and were to be counted.
    pub(super) notices: Lines<[Notice; NOTICES]>,
}

/// Counters that a window has at each rank.
pub(super) const NOTICES: usize = 8;

/// A counter of puts.
#[repr(C)]
pub(super) struct Notice {
    pub(super) count: Notices,
    /// Notified when a put has been counted.
    pub(super) told: Event,
}

#[repr(C)]
pub(super) struct Fate {
    /// On whose account the window is broken. The one of rank 0 counts.
    pub(super) broken: Broken,
    /// How many ranks have dropped their handles; [`Peer::departed`] says which.
    pub(super) departures: AtomicU32,
}

/// Guards of one rank's memory: places that differ mostly have different ones.
pub(super) const STRIPES: usize = 16;

/// The guard of some places.
#[repr(C)]
pub(super) struct Stripe {
    pub(super) guard: Guard,
    /// Notified when the guard is given back.
    pub(super) released: Event,
}

#[repr(C)]
pub(super) struct Exposed {
    pub(super) word: Exposure,
    /// Notified when the owner posts.
    pub(super) posted: Event,
    /// What the owner exposes by posts and fences of a part.
    pub(super) part: Part,
}

#[repr(C)]
pub(super) struct Ends {
    pub(super) tally: Tally,
    /// Notified when an origin completes, and for those that wait for several owners to post.
    pub(super) completed: Event,
}

#[repr(C)]
pub(super) struct Fences {
    pub(super) phases: Phases,
    /// The flags that ranks without shared memory have raised for this one: one rank in each round.
    pub(super) inbox: Phases,
    /// Notified when a rank has signalled this one.
    pub(super) arrivals: Event,
}

/// What the owner's block knows about one rank of the team.
#[repr(C)]
pub(super) struct Peer {
    pub(super) origin: Origin,
    /// 1 while the rank asks for, or has, a shared lock. An exclusive holder is named by the word.
    pub(super) shares: AtomicU32,
    /// Whether the rank has dropped its handle of the window: 0, [`DROPPED`] or [`GONE`].
    pub(super) departed: AtomicU32,
}

/// The rank comes to no call on the window any more, and writes nothing, but may still wake those that wait for it.
pub(super) const DROPPED: u32 = 1;
/// The rank touches the block no more.
pub(super) const GONE: u32 = 2;

/// A place in the queue for the lock.
#[repr(C)]
pub(super) struct Waiter {
    pub(super) slot: Slot,
    pub(super) event: Event,
}

// SAFETY: - all fields are atomics (or made of atomics) and all-zero bytes are a valid value.
unsafe impl Shared for Control {}
// SAFETY: - as for Control.
unsafe impl Shared for Peer {}
// SAFETY: - as for Control.
unsafe impl Shared for Waiter {}

/// Where the parts of a block lie, in bytes from its start. The same at every rank of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) peers: usize,
    pub(super) waiters: usize,
    /// Length of the ring of waiters: a power of two, at least one per rank.
    pub(super) slots: usize,
    pub(super) data: usize,
}

impl Plan {
    pub(super) const fn new(ranks: usize) -> Plan {
        let slots = ranks.next_power_of_two();
        let peers = size_of::<Control>();
        let waiters = peers + ranks * size_of::<Peer>();
        let data = (waiters + slots * size_of::<Waiter>()).next_multiple_of(64);
        Plan { peers, waiters, slots, data }
    }
}

const _: () = assert!(RANKS_MAX as usize <= crate::sync::state_word::RANKS_MAX, "the word counts every rank");
const _: () = assert!(RANKS_MAX as usize <= exposure::RANKS_MAX, "the door names and counts every rank");
const _: () = assert!(RANKS_MAX as usize <= 1 << crate::sync::phases::ROUNDS_MAX, "fences reach every rank");
const _: () =
    assert!(Plan::new(64).data <= 4096, "a window of 64 ranks costs less than a page beside its data");
