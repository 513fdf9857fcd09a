//! What lies where in a rank's store of offers and events (`pgo`): the words of the store, of an offer and of an event. Never
//! says what matches what.
//!
//! Everything but the lock, the events that are slept on and the words that say so is read and written under the store's lock. So
//! it is in the store; beside it are lanes, of which a rank has one toward each other one that it has put to. What lies in a lane
//! belongs to whom the words of its parcels say, without the lock.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU32, AtomicU64};

use super::segment::Shared;
use crate::sync::desk::Desk;
use crate::sync::event::Event;
use crate::sync::guard::Guard;
use crate::sync::handover::Handover;

/// Lists that a store spreads its keys over.
pub(crate) const BUCKETS: usize = 64;

/// What a rank has been asked for, and what it offers: one per rank, at the offset that its record names.
#[repr(C, align(64))]
pub(crate) struct Store {
    /// Who changes the store now.
    pub(crate) lock: Guard,
    /// Told when the lock is free, or the desk.
    pub(crate) freed: Event,
    /// Told when something has changed that the rank of the store may wait for, here or in the store of another.
    pub(crate) changed: Event,
    /// Offset of the first lane toward the rank of the store, 0 if there is none. Lanes are added in front and stay.
    pub(crate) lanes: AtomicU64,
    pub(crate) buckets: [Bucket; BUCKETS],
    /// Taken for the rank's offer that is in no list, by its bucket. It has one at a time, so that their order is known without a list.
    pub(crate) desk: Desk,
}

/// The offers and the waiting events of some keys.
#[repr(C, align(64))]
pub(crate) struct Bucket {
    pub(crate) events: Chain,
    pub(crate) offers: Chain,
    /// Counts offers that have opened. Read without the lock.
    pub(crate) opened: AtomicU64,
    /// Counts messages about counts. Read without the lock.
    pub(crate) mail: AtomicU64,
}

/// A list of nodes in the order of their arrival, by offsets; 0 is none.
#[repr(C)]
pub(crate) struct Chain {
    pub(crate) first: AtomicU64,
    pub(crate) last: AtomicU64,
}

/// A node's neighbours.
#[repr(C)]
pub(crate) struct Neighbours {
    pub(crate) before: AtomicU64,
    pub(crate) after: AtomicU64,
}

/// What offers and events are matched by: family, team and tag, and the round of the collective family.
#[repr(C)]
pub(crate) struct KeyWords {
    pub(crate) family: AtomicU64,
    pub(crate) team: AtomicU64,
    pub(crate) tag: AtomicU64,
    pub(crate) round: AtomicU64,
}

/// What was wrong with an event; code 0 is nothing.
#[repr(C)]
pub(crate) struct FaultWords {
    /// Read without the lock, by the originator of an event that is done.
    pub(crate) code: AtomicU32,
    /// Job rank of the originator.
    pub(crate) originator: AtomicU32,
    /// The bytes of the offer that the event names, and how many the offer has.
    pub(crate) start: AtomicU64,
    pub(crate) end: AtomicU64,
    pub(crate) bytes: AtomicU64,
}

/// An offer, in memory of the rank that offers.
#[repr(C, align(64))]
pub(crate) struct OfferNode {
    pub(crate) neighbours: Neighbours,
    pub(crate) key: KeyWords,
    /// Which kinds of events it serves.
    pub(crate) kinds: AtomicU32,
    /// Job rank of the only originator that it serves, plus one; 0 for any.
    pub(crate) only: AtomicU32,
    /// 1 while nothing but its owner's completing calls may serve it.
    pub(crate) late: AtomicU32,
    /// 1 once an event has written to it.
    pub(crate) written: AtomicU32,
    /// Offset and length of the offered memory, and the displacement unit.
    pub(crate) base: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) unit: AtomicU64,
    /// Offset of the marks of the bytes that events have written, where nothing else of the offered memory is of any use; 0 if all is.
    pub(crate) marks: AtomicU64,
    /// How many events it serves, and has served. The latter is read without the lock.
    pub(crate) count: AtomicU64,
    pub(crate) served: AtomicU64,
    /// Bytes that its events have moved.
    pub(crate) moved: AtomicU64,
    /// Offset of a pair of words per member, in the order of ranks: events and bytes; 0 if nobody has asked for them.
    pub(crate) ledger: AtomicU64,
    pub(crate) fault: FaultWords,
}

/// An event that waits, in memory of the rank that issued it, or of its target if they share none.
///
/// Behind it lie what it is made of, then the data of its puts and room for what its gets bring, unless those stay with the
/// originator.
#[repr(C, align(64))]
pub(crate) struct EventNode {
    pub(crate) neighbours: Neighbours,
    pub(crate) key: KeyWords,
    /// 0 while it waits, 1 when it is done. Read without the lock.
    pub(crate) done: AtomicU32,
    /// Whether it has puts, gets, or both; or is a message about counts.
    pub(crate) kinds: AtomicU32,
    /// Where its data are.
    pub(crate) data: AtomicU32,
    /// Job rank of the originator, and which of its threads it was.
    pub(crate) originator: AtomicU32,
    pub(crate) thread: AtomicU32,
    /// The originator's rank in the team.
    pub(crate) member: AtomicU32,
    /// Offset of the lane in which earlier events of the thread may wait, 0 if none did when this one was issued.
    pub(crate) lane: AtomicU64,
    /// Lengths of what lies behind the node.
    pub(crate) parts_bytes: AtomicU64,
    pub(crate) in_bytes: AtomicU64,
    pub(crate) out_bytes: AtomicU64,
    pub(crate) fault: FaultWords,
}

/// Parcels that a rank may have on their way to another one; what is more waits in the store.
pub(crate) const LANE_PARCELS: usize = 4;
/// The longest data that lie in a parcel.
pub(crate) const PARCEL_BYTES: usize = 4 << 10;

/// What a rank hands to another one without the lock of its store, in memory of the originator.
#[repr(C, align(64))]
pub(crate) struct Lane {
    /// Offset of the next lane toward the same rank.
    pub(crate) next: AtomicU64,
    /// Job rank of the originator.
    pub(crate) originator: AtomicU32,
    /// Keeps the first lines of the parcels at multiples of two lines, as lines are fetched in pairs.
    pad: [AtomicU64; 14],
    pub(crate) invitation: Invitation,
    pub(crate) parcels: [Parcel; LANE_PARCELS],
}

/// An event of one contiguous put of the non-progressive family, as it travels in a lane: its first 64 bytes are all that a short
/// one needs.
#[repr(C, align(64))]
pub(crate) struct Parcel {
    /// Where it is, and whose it is therefore.
    pub(crate) word: Handover,
    pub(crate) team: AtomicU64,
    pub(crate) tag: AtomicU64,
    /// Which of the originator's threads has issued it, and its rank in the team.
    pub(crate) thread: AtomicU32,
    pub(crate) member: AtomicU32,
    /// In units of the offer.
    pub(crate) displacement: AtomicU64,
    pub(crate) bytes: AtomicU64,
    /// 1 if its data stay with the originator.
    pub(crate) is_away: AtomicU32,
    /// The data, if they are one word; longer ones lie in `data`. Where the sender may copy to, if they stay with it: an offset in the
    /// segment, while the parcel is granted.
    pub(crate) short: AtomicU64,
    pub(crate) fault: FaultWords,
    pub(crate) data: ParcelData,
}

/// A place that the receiver of a lane names before it is asked, for a long put of the lane's sender.
#[repr(C, align(64))]
pub(crate) struct Invitation {
    /// Posted by the receiver, claimed and done by the sender.
    pub(crate) word: Handover,
    pub(crate) team: AtomicU64,
    pub(crate) tag: AtomicU64,
    /// Offset and length of the offered memory, and its unit.
    pub(crate) base: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) unit: AtomicU64,
    /// How many bytes the sender has put there.
    pub(crate) moved: AtomicU64,
    /// 1 while the receiver expects long puts from the lane. Its own note.
    pub(crate) is_usual: AtomicU32,
    pub(crate) fault: FaultWords,
}

/// Data of a parcel, which are copied like any transfer's.
#[repr(C, align(64))]
pub(crate) struct ParcelData(pub(crate) [AtomicU64; PARCEL_BYTES / size_of::<u64>()]);

const _: () = assert!(std::mem::offset_of!(Parcel, fault) == 64 && std::mem::offset_of!(Parcel, data) == 128);
const _: () = assert!(std::mem::offset_of!(Lane, parcels) == 256 && size_of::<Parcel>().is_multiple_of(128));

// SAFETY: - all fields are atomics (or made of atomics) and all-zero bytes are a valid value of each of these types.
unsafe impl Shared for Store {}
// SAFETY: - as for Store.
unsafe impl Shared for OfferNode {}
// SAFETY: - as for Store.
unsafe impl Shared for EventNode {}
// SAFETY: - as for Store.
unsafe impl Shared for Lane {}
