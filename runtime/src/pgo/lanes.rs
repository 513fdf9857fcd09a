//! Lanes: what a rank hands to another one without a lock, and what the other one finds there. Never waits.
//!
//! An event that is one contiguous put of the non-progressive family, toward a rank that shares memory and has no offer open in its
//! store, goes into a *parcel* of the lane between the two ranks: one store of its word, after its data. What else there is waits in
//! the store of the target, behind the parcels of its thread: a thread uses a lane only while nothing of it waits in the store under
//! the same key, so what lies in the lane is always the earlier. Who serves a parcel claims it by one exchange of its word (see
//! `sync::handover`): a blocking offer of the target that is in no store (`direct`), the target when it opens an offer in its store,
//! or the originator, for such an offer, under the lock of that store.
//!
//! That nothing is overlooked: who posts a parcel looks for offers in the store afterwards, and who opens one looks for parcels
//! afterwards, with a sequentially consistent fence between the two steps on either side.
#![forbid(unsafe_code)]

use std::sync::atomic::{Ordering, fence};

use super::PUTS_OK;
use super::event::{Family, Fault, Found, Head, Heads, Key, Layout, Way};
use super::hub::{Hub, Locked, note};
use super::raw::{Ends, Place, parcel_place};
use crate::error::Result;
use crate::sync::handover::Stage;
use crate::transport::shm::offers::{Invitation, LANE_PARCELS, Lane, PARCEL_BYTES, Parcel, Store};

/// Which parcel of which lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) lane: u64,
    pub(super) which: usize,
    pub(super) number: u64,
}

impl Hub {
    pub(super) fn lane(&self, offset: u64) -> &Lane {
        self.segment.shared(offset)
    }

    pub(super) fn parcel(&self, spot: Spot) -> &Parcel {
        &self.lane(spot.lane).parcels[spot.which]
    }
}

/// A parcel that waits, as its receiver finds it.
pub(super) struct Arrived {
    pub(super) originator: u32,
    pub(super) spot: Spot,
}

// The receiver's end.
impl Hub {
    /// The lanes toward the rank of a store.
    #[inline]
    pub(super) fn lanes_toward<'a>(&'a self, store: &Store) -> impl Iterator<Item = (u64, &'a Lane)> + 'a {
        // Acquire: pairs with the Release in `make_lane`. Those behind the first were seen by whoever added it.
        let mut next = store.lanes.load(Ordering::Acquire);
        std::iter::from_fn(move || {
            let offset = next;
            if offset == 0 {
                return None;
            }
            let lane = self.lane(offset);
            next = lane.next.load(Ordering::Relaxed);
            Some((offset, lane))
        })
    }

    /// The parcel of a key that is the next of its lane to be served, if nothing before it is under way.
    #[inline]
    pub(super) fn next_parcel(&self, offset: u64, lane: &Lane, key: &Key) -> Option<Arrived> {
        let mut first: Option<(u64, usize, Stage)> = None;
        let mut end = LANE_PARCELS;
        loop {
            let before = first;
            for which in 0..end {
                let parcel = &lane.parcels[which];
                let look = parcel.word.look();
                let is_earlier = first.is_none_or(|(number, ..)| look.number() < number);
                if is_waiting(look.stage()) && is_earlier && is_for(parcel, key) {
                    first = Some((look.number(), which, look.stage()));
                }
            }
            let Some((_, which, _)) = first.filter(|_| first != before) else { break };
            // Those in front of it were looked at before it was seen, and may have been posted before it was.
            end = which;
        }
        let (number, which, stage) = first?;
        match stage {
            Stage::Posted => Some(Arrived {
                originator: lane.originator.load(Ordering::Relaxed),
                spot: Spot { lane: offset, which, number },
            }),
            _ => None,
        }
    }

    /// Claims a parcel that waits. It may have been taken back and its place used for another event meanwhile.
    #[inline]
    pub(super) fn claim(&self, arrived: &Arrived, key: &Key) -> bool {
        let parcel = self.parcel(arrived.spot);
        if !parcel.word.claim(arrived.spot.number) {
            return false;
        }
        // What was read before the claim may be of an earlier parcel.
        let is_right = is_for(parcel, key);
        if !is_right {
            self.let_go(arrived);
        }
        is_right
    }

    /// Lets a parcel wait again.
    #[cold]
    pub(super) fn let_go(&self, arrived: &Arrived) {
        self.parcel(arrived.spot).word.let_go(arrived.spot.number);
        self.wake(arrived.originator);
    }

    /// Refuses a parcel that was claimed.
    #[cold]
    pub(super) fn refuse(&self, arrived: &Arrived, found: &Found) {
        let parcel = self.parcel(arrived.spot);
        note(&parcel.fault, arrived.originator, found);
        parcel.word.refuse(arrived.spot.number);
        self.wake(arrived.originator);
    }

    /// Whether events of a thread wait in a lane that come before what waits in the store.
    pub(super) fn has_parcels(&self, lane: u64, key: &Key, thread: u32) -> bool {
        lane != 0
            && self.lane(lane).parcels.iter().any(|parcel| {
                is_waiting(parcel.word.look().stage())
                    && is_for(parcel, key)
                    && parcel.thread.load(Ordering::Relaxed) == thread
            })
    }

    /// The data that lie in a parcel.
    #[inline]
    pub(super) fn parcel_data(&self, spot: Spot, bytes: usize) -> Place<'_> {
        parcel_place(&self.segment, spot.lane, spot.which, bytes)
    }
}

impl Locked<'_> {
    /// Serves what waits in the lanes and has an offer in the store. Asks the originators of what has its data with them.
    pub(super) fn take_parcels(&self, key: &Key) {
        if key.family != Family::Plain {
            return;
        }
        // SeqCst: pairs with the fence of whoever posts. Either the parcel is seen here, or the offer there.
        fence(Ordering::SeqCst);
        let hub = self.hub();
        for (offset, lane) in hub.lanes_toward(self.store) {
            while let Some(arrived) = hub.next_parcel(offset, lane, key) {
                let from = (PUTS_OK.bits(), arrived.originator);
                let Some(offer) = self.find(key, 0, from, false) else { break };
                let parcel = hub.parcel(arrived.spot);
                if parcel.is_away.load(Ordering::Relaxed) != 0 {
                    hub.wake(arrived.originator);
                    break;
                }
                if !hub.claim(&arrived, key) {
                    continue;
                }
                let bytes = parcel.bytes.load(Ordering::Relaxed) as usize;
                let heads = one_put(parcel.displacement.load(Ordering::Relaxed), bytes);
                let rows = Ends::Rows(hub.parcel_data(arrived.spot, bytes), Place::of::<u8>(&[]));
                let outcome = self.serve(offer, key.family, PUTS_OK.bits(), &heads, rows);
                hub.counted.by_target.fetch_add(1, Ordering::Relaxed);
                let member = parcel.member.load(Ordering::Relaxed);
                self.count(offer, arrived.originator, member, &outcome);
                match outcome {
                    Ok(_) => {
                        parcel.word.done(arrived.spot.number);
                        hub.wake(arrived.originator);
                    }
                    Err(found) => hub.refuse(&arrived, &found),
                }
            }
        }
    }
}

/// What an event of a lane is made of, for the store.
pub(super) fn one_put(displacement: u64, bytes: usize) -> Heads {
    let layout = Layout::Bytes(bytes);
    Heads { parts: vec![Head { way: Way::Put, displacement, layout }], mismatched: false }
}

/// Whether a parcel has not reached its end at the receiver.
#[inline]
fn is_waiting(stage: Stage) -> bool {
    matches!(stage, Stage::Posted | Stage::Claimed | Stage::Granted | Stage::Begun | Stage::Forsaken)
}

#[inline]
fn is_for(parcel: &Parcel, key: &Key) -> bool {
    // The tag first: it differs where the team does not.
    parcel.tag.load(Ordering::Relaxed) == key.tag && parcel.team.load(Ordering::Relaxed) == key.team
}

/// Whether a parcel of a key waits or is under way.
pub(super) fn waits_in_lane(parcel: &Parcel, key: &Key) -> bool {
    is_waiting(parcel.word.look().stage()) && is_for(parcel, key)
}

/// Whether an invitation is for events of a key.
#[inline]
pub(super) fn invites(invitation: &Invitation, key: &Key) -> bool {
    invitation.tag.load(Ordering::Relaxed) == key.tag && invitation.team.load(Ordering::Relaxed) == key.team
}

/// Whether data of this length lie in their parcel.
#[inline]
pub(super) fn fits_parcel(bytes: usize) -> bool {
    bytes <= PARCEL_BYTES
}

/// Where an event of so many bytes at a displacement begins in an offer, or what is wrong with it.
#[inline]
pub(super) fn place_in(offered: usize, unit: usize, displacement: u64, bytes: u64) -> Result<usize, Found> {
    let start = displacement.saturating_mul(unit as u64);
    let end = start.saturating_add(bytes);
    match end <= offered as u64 {
        true => Ok(start as usize),
        false => Err(Found { fault: Fault::Outside, start, end, bytes: offered as u64 }),
    }
}
