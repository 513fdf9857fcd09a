//! Serving an event: the check that it fits the offer, and the copies. Never waits; whoever calls holds the lock of the store.
#![allow(unsafe_code)]

use std::sync::atomic::Ordering;

use super::Place;
use crate::pgo::event::{Fault, Found, Heads, Layout, Way};
use crate::sync::marks::{Marks, words_for};
use crate::transport::shm::copy::Engine;
use crate::transport::shm::offers::{EventNode, Lane, OfferNode, Parcel};
use crate::transport::shm::segment::Segment;

/// The originator's side of one part.
#[derive(Clone, Copy)]
pub(in crate::pgo) struct Side<'a> {
    pub(in crate::pgo) place: Place<'a>,
    pub(in crate::pgo) start: usize,
    pub(in crate::pgo) layout: &'a Layout,
}

/// Where the data of an event are.
#[derive(Clone, Copy)]
pub(in crate::pgo) enum Ends<'a> {
    /// In the originator's memory, as it laid them out: one side per part.
    Sides(&'a [Side<'a>]),
    /// All data of the puts in a row, and room for those of the gets.
    Rows(Place<'a>, Place<'a>),
}

/// Says what is wrong with an event for an offer.
pub(in crate::pgo) fn check(offer: &OfferNode, heads: &Heads) -> Option<Found> {
    // Relaxed, here and below: under the lock of the store.
    let bytes = offer.bytes.load(Ordering::Relaxed);
    let unit = offer.unit.load(Ordering::Relaxed);
    let found = |fault, start, end| Some(Found { fault, start, end, bytes });
    if heads.mismatched {
        return found(Fault::Types, 0, 0);
    }
    for part in &heads.parts {
        let start = part.displacement.saturating_mul(unit);
        let end = start.saturating_add(part.layout.reach() as u64);
        if bytes < end {
            return found(Fault::Outside, start, end);
        }
        if part.way == Way::Put && part.layout.overlaps_itself() {
            return found(Fault::Twice, start, end);
        }
    }
    None
}

/// Moves the data of an event that has passed [`check`], part after part. Gives the number of bytes.
pub(in crate::pgo) fn carry(
    segment: &Segment,
    engine: Engine,
    offer: &OfferNode,
    heads: &Heads,
    ends: Ends<'_>,
) -> u64 {
    let (base, bytes) = (offer.base.load(Ordering::Relaxed), offer.bytes.load(Ordering::Relaxed));
    let unit = offer.unit.load(Ordering::Relaxed);
    // SAFETY: - no references: memory is offered from the opening of an offer to its closing, and while it is, its owner has no
    //   reference to it: it lies in a request, is exclusively borrowed by a call, or is a mirror.
    let offered = unsafe { Place::in_segment(segment, base, bytes as usize) };
    let marks = match offer.marks.load(Ordering::Relaxed) {
        0 => None,
        offset => Some(marks(segment, offset, bytes as usize)),
    };
    let (mut taken, mut given, mut moved) = (0, 0, 0);
    for (index, part) in heads.parts.iter().enumerate() {
        let size = part.layout.size();
        let target = (&part.layout, (part.displacement * unit) as usize);
        let packed = Layout::Bytes(size);
        let side = match (ends, part.way) {
            (Ends::Sides(sides), _) => sides[index],
            (Ends::Rows(row, _), Way::Put) => Side { place: row, start: taken, layout: &packed },
            (Ends::Rows(_, row), Way::Get) => Side { place: row, start: given, layout: &packed },
        };
        let origin = (side.layout, side.start);
        match part.way {
            Way::Put => {
                taken += size;
                offer.written.store(1, Ordering::Relaxed);
                Layout::pair(target, origin, |at, origin_at, len| {
                    offered.take(engine, at, &side.place, origin_at, len);
                    if let Some(marks) = &marks {
                        marks.add(at, len);
                    }
                });
            }
            Way::Get => {
                given += size;
                Layout::pair(target, origin, |at, origin_at, len| {
                    side.place.take(engine, origin_at, &offered, at, len);
                });
            }
        }
        moved += size as u64;
    }
    moved
}

/// The marks of so many bytes, which begin at an offset.
pub(in crate::pgo) fn marks(segment: &Segment, offset: u64, bytes: usize) -> Marks<'_> {
    Marks::new(segment.shared_slice(offset, words_for(bytes)), bytes)
}

/// How many bytes an event takes with so many bytes of parts, of puts and of gets behind it.
pub(in crate::pgo) fn node_bytes(parts: usize, taken: usize, given: usize) -> usize {
    size_of::<EventNode>() + parts.next_multiple_of(8) + taken.next_multiple_of(8) + given.next_multiple_of(8)
}

/// What lies behind an event: the data of its puts, and the room for its gets. `offset` is the event's.
pub(in crate::pgo) fn node_place<'a>(
    segment: &'a Segment,
    offset: u64,
    node: &EventNode,
) -> (Place<'a>, Place<'a>) {
    let lengths = [&node.parts_bytes, &node.in_bytes, &node.out_bytes];
    let [parts, taken, given] = lengths.map(|length| length.load(Ordering::Relaxed) as usize);
    let row = offset + (size_of::<EventNode>() + parts.next_multiple_of(8)) as u64;
    // SAFETY: - no references: nobody makes any to what lies behind an event.
    let puts = unsafe { Place::in_segment(segment, row, taken) };
    // SAFETY: - as above.
    let gets = unsafe { Place::in_segment(segment, row + taken.next_multiple_of(8) as u64, given) };
    (puts, gets)
}

/// The data of a parcel, which lie in its first line if they are one word at most.
#[inline]
pub(in crate::pgo) fn parcel_place(segment: &Segment, lane: u64, which: usize, bytes: usize) -> Place<'_> {
    const FIRST: usize = std::mem::offset_of!(Lane, parcels);
    let within = match bytes <= size_of::<u64>() {
        true => std::mem::offset_of!(Parcel, short),
        false => std::mem::offset_of!(Parcel, data),
    };
    let offset = lane + (FIRST + which * size_of::<Parcel>() + within) as u64;
    // SAFETY: - no references: these words are reached by places only.
    unsafe { Place::in_segment(segment, offset, bytes) }
}

/// Memory that is offered, for its owner, who has lent it to the offer exclusively; or what its owner has granted of it, for the
/// sender of a parcel that has begun to copy.
#[inline]
pub(in crate::pgo) fn offered_place(segment: &Segment, offset: u64, bytes: usize) -> Place<'_> {
    // SAFETY: - no references: while memory is offered, its owner has none to it, and a grant that has begun keeps the offer from
    //   giving the memory back.
    unsafe { Place::in_segment(segment, offset, bytes) }
}
