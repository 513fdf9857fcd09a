//! What lies where at the start of a segment: the header, then one record per rank. Never interprets the words;
//! `liveness` and `team` do.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU32, AtomicU64};

use super::segment::Shared;
use crate::sync::barrier::Barrier;
use crate::sync::event::Event;

/// Ranks that one job can have. The words of a window's state hold a rank in twelve bits.
pub(crate) const RANKS_MAX: u32 = 1024;

/// Bytes of a call's name that the wait board shows.
pub(crate) const NAME_BYTES: usize = 24;

/// A short text in shared memory, cut at [`NAME_BYTES`], padded with zero bytes.
pub(crate) type Name = [AtomicU64; NAME_BYTES / 8];

/// The first bytes of every segment.
#[repr(C, align(64))]
pub(crate) struct Header {
    /// Says that this is a segment of this runtime, once everything else is written.
    pub(crate) magic: AtomicU64,
    /// Bytes of address space that every process maps.
    pub(crate) reservation: AtomicU64,
    /// Number of ranks.
    pub(crate) size: AtomicU32,
    /// Numbers the ends of ranks.
    pub(crate) end_order: AtomicU32,
    /// Offset of the collective block of the job's team.
    pub(crate) root_block: AtomicU64,
    /// First byte that nobody has taken yet.
    pub(crate) next: AtomicU64,
    /// Bytes that ranks are committing right now.
    pub(crate) committing: AtomicU64,
    /// Last identity given to a team or window.
    pub(crate) ids: AtomicU64,
    /// The rank that failed first, plus one.
    pub(crate) first_failure: AtomicU32,
    /// How many ranks have ended, in whatever way.
    pub(crate) ended: AtomicU32,
    /// Told whenever a rank ends.
    pub(crate) departures: Event,
}

/// What a segment knows about one rank.
#[repr(C, align(64))]
pub(crate) struct Record {
    /// Alive, or how it ended; see `liveness`.
    pub(crate) status: AtomicU32,
    /// Process id, 0 while the rank has not joined.
    pub(crate) process: AtomicU32,
    /// 1 once a second thread of the rank has waited.
    pub(crate) several_threads: AtomicU32,
    /// The thread that runs the rank, 0 while the rank has not joined.
    pub(crate) home_thread: AtomicU32,
    /// The number of the rank's end: the earliest end explains the later ones.
    pub(crate) end_order: AtomicU32,
    /// Told when something has come from a rank that shares no memory with this one.
    pub(crate) mail: Event,
    /// Offset of the rank's store of offers and events, 0 while nobody has needed it.
    pub(crate) store: AtomicU64,
    /// What the rank waits for.
    pub(crate) board: Board,
    /// What another rank has found out about the wait of this one.
    pub(crate) accusation: Accusation,
    /// The collective call in which the rank met a different one.
    pub(crate) met: Met,
}

/// One wait, written by the rank that waits.
#[repr(C, align(64))]
pub(crate) struct Board {
    /// 1 while a thread of the rank uses the board.
    pub(crate) taken: AtomicU32,
    /// What the wait is: collective, toward a target, any.
    pub(crate) act: AtomicU32,
    /// Odd while a wait is shown; the fields below change only while it is even.
    pub(crate) sequence: AtomicU64,
    /// How often the waiter has looked and found its condition unmet.
    pub(crate) looks: AtomicU64,
    /// When the waiter last found its condition unmet, on the machine's monotonic clock.
    pub(crate) looked_ns: AtomicU64,
    /// Offset of the event that the waiter sleeps on.
    pub(crate) event: AtomicU64,
    pub(crate) team: AtomicU64,
    /// Window id plus one, 0 without a window.
    pub(crate) window: AtomicU64,
    /// Job rank of the target plus one, 0 without a target.
    pub(crate) target: AtomicU64,
    /// Job rank of somebody without whom the wait can't end plus one, as of the waiter's last look; 0 if nobody is known.
    pub(crate) blocker: AtomicU64,
    /// When the wait began, on the machine's monotonic clock.
    pub(crate) since_ns: AtomicU64,
    pub(crate) call: Name,
    /// A number that belongs to the wait, and what it is: `exposure 7`.
    pub(crate) detail: AtomicU64,
    pub(crate) detail_name: Name,
}

/// A finding of another rank about a wait of this one: it cannot end, since a peer sits in another collective call.
#[repr(C, align(64))]
pub(crate) struct Accusation {
    /// 0 free, 1 being written, 2 valid.
    pub(crate) claim: AtomicU32,
    /// Job rank of the peer that sits in another call.
    pub(crate) peer: AtomicU32,
    /// The wait that is meant: its number on the board.
    pub(crate) sequence: AtomicU64,
    /// The call and window of the peer.
    pub(crate) call: Name,
    pub(crate) window: AtomicU64,
}

/// A collective call that ended because a peer came to a different one, kept for those that come later.
#[repr(C, align(64))]
pub(crate) struct Met {
    /// Id of the team plus one, 0 if nothing was met; written last.
    pub(crate) team: AtomicU64,
    pub(crate) window: AtomicU64,
    pub(crate) call: Name,
}

/// The start of a team's collective block; its slots and their data follow.
#[repr(C, align(64))]
pub(crate) struct TeamBlock {
    pub(crate) barrier: Barrier,
    /// Members that have dropped the team.
    pub(crate) left: AtomicU32,
}

/// What one member brings to one round of a collective call.
#[repr(C, align(64))]
pub(crate) struct Slot {
    pub(crate) call: Name,
    /// The argument that must agree: a root, a length.
    pub(crate) argument: AtomicU64,
    /// Items that the member brings in all rounds.
    pub(crate) length: AtomicU64,
    /// What the member came for, as one number.
    pub(crate) signature: AtomicU64,
}

// SAFETY: - all fields are atomics (or made of atomics) and all-zero bytes are a valid value of each of these types.
unsafe impl Shared for Header {}
// SAFETY: - as for Header.
unsafe impl Shared for Record {}
// SAFETY: - as for Header.
unsafe impl Shared for TeamBlock {}
// SAFETY: - as for Header.
unsafe impl Shared for Slot {}
// SAFETY: - as for Header.
unsafe impl Shared for Barrier {}
// SAFETY: - as for Header.
unsafe impl Shared for Event {}
// SAFETY: - an atomic itself.
unsafe impl Shared for AtomicU64 {}
// SAFETY: - an atomic itself.
unsafe impl Shared for AtomicU32 {}
