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

use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::PUTS_OK;
use super::event::{Family, Fault, Found, Head, Heads, Key, Layout, Way};
use super::hub::{Hub, Locked, note, noted};
use super::raw::{Ends, Place, parcel_place};
use crate::error::Result;
use crate::rank::Rank;
use crate::sync::handover::Stage;
use crate::transport::shm::offers::{LANE_PARCELS, Lane, PARCEL_BYTES, Parcel, Store};

/// Parcels that a scope may have on their way at one time.
const POSTS_MAX: usize = 8;

/// The sender's end of its lanes, by the job ranks of their receivers.
pub(super) struct Outlets(Box<[Outlet]>);

#[derive(Default)]
struct Outlet {
    /// Offset of the lane, 0 while there is none.
    lane: AtomicU64,
    /// One bit per parcel that a scope of this rank has in use; above them the number of the next one.
    used: AtomicU64,
}

/// Which parcel of which lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) lane: u64,
    pub(super) which: usize,
    pub(super) number: u64,
}

/// A parcel that its scope has on its way.
pub(super) struct Post<'scope> {
    pub(super) target: Rank,
    pub(super) thread: u32,
    pub(super) spot: Spot,
    pub(super) place: Place<'scope>,
    /// In units of the offer.
    pub(super) displacement: u64,
    pub(super) bytes: usize,
    /// How many offers had opened at the target's store at the last look.
    pub(super) seen: u64,
}

/// The parcels that a scope has on their way, in the order of their issue.
#[derive(Default)]
pub(super) struct Posts<'scope> {
    posts: [Option<Post<'scope>>; POSTS_MAX],
    count: usize,
}

impl<'scope> Posts<'scope> {
    pub(super) fn is_full(&self) -> bool {
        self.count == POSTS_MAX
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn push(&mut self, post: Post<'scope>) {
        self.posts[self.count] = Some(post);
        self.count += 1;
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Post<'scope>> {
        self.posts[..self.count].iter().flatten()
    }

    /// Leaves those of which `keep` is true.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&mut Post<'scope>) -> bool) {
        let mut kept = 0;
        for at in 0..self.count {
            if self.posts[at].as_mut().is_some_and(&mut keep) {
                self.posts.swap(kept, at);
                kept += 1;
            } else {
                self.posts[at] = None;
            }
        }
        self.count = kept;
    }
}

impl Outlets {
    pub(super) fn new(ranks: u32) -> Outlets {
        Outlets((0..ranks).map(|_| Outlet::default()).collect())
    }
}

/// Lines are fetched in pairs.
const LANE_ALIGNMENT: usize = 128;
const PARCEL_MASK: u64 = (1 << LANE_PARCELS) - 1;

// The sender's end.
impl Hub {
    pub(super) fn lane(&self, offset: u64) -> &Lane {
        self.segment.shared(offset)
    }

    pub(super) fn parcel(&self, spot: Spot) -> &Parcel {
        &self.lane(spot.lane).parcels[spot.which]
    }

    /// The lane toward a rank, made when it is needed first.
    fn lane_to(&self, target: u32, store: &Store, call: &'static str) -> Result<u64> {
        let outlet = &self.outlets.0[target as usize];
        match outlet.lane.load(Ordering::Relaxed) {
            // Relaxed, here and below: threads of one rank; what lies in the lane is ordered by its words.
            0 => self.make_lane(outlet, store, call),
            offset => Ok(offset),
        }
    }

    #[cold]
    fn make_lane(&self, outlet: &Outlet, store: &Store, call: &'static str) -> Result<u64> {
        let block = self.arena.allocate(size_of::<Lane>() + LANE_ALIGNMENT, call)?;
        let offset = block.offset().next_multiple_of(LANE_ALIGNMENT as u64);
        match outlet.lane.compare_exchange(0, offset, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => {}
            Err(theirs) => return Ok(theirs),
        }
        // The receiver may look at it for as long as the job lives.
        block.leave_behind();
        let lane = self.lane(offset);
        lane.originator.store(self.me, Ordering::Relaxed);
        let mut first = store.lanes.load(Ordering::Relaxed);
        loop {
            lane.next.store(first, Ordering::Relaxed);
            // Release: pairs with the Acquire in `lanes_toward`.
            match store.lanes.compare_exchange(first, offset, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return Ok(offset),
                Err(now) => first = now,
            }
        }
    }

    /// Takes a parcel that nobody uses of the lane toward a rank.
    #[inline]
    pub(super) fn take_parcel(
        &self,
        target: u32,
        store: &Store,
        call: &'static str,
    ) -> Result<Option<Spot>> {
        let offset = self.lane_to(target, store, call)?;
        let lane = self.lane(offset);
        let used = &self.outlets.0[target as usize].used;
        let mut now = used.load(Ordering::Relaxed);
        loop {
            let is_free = |which: &usize| {
                now & 1 << which == 0 && lane.parcels[*which].word.look().stage().is_over()
            };
            let Some(which) = (0..LANE_PARCELS).find(is_free) else { return Ok(None) };
            let new = (now | 1 << which) + (PARCEL_MASK + 1);
            // Acquire: pairs with the Release in `give_parcel`, where another thread has used the parcel.
            match used.compare_exchange_weak(now, new, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => {
                    // The first number is 1, so that no parcel is like one that was never used.
                    let number = new >> LANE_PARCELS;
                    return Ok(Some(Spot { lane: offset, which, number }));
                }
                Err(changed) => now = changed,
            }
        }
    }

    /// Says that a scope has no more to do with a parcel. It is used again when its receiver is through with it, too.
    #[inline]
    pub(super) fn give_parcel(&self, target: u32, spot: Spot) {
        // Release: pairs with the Acquire in `take_parcel`.
        self.outlets.0[target as usize].used.fetch_and(!(1 << spot.which), Ordering::Release);
    }

    /// What a parcel says was wrong with it.
    #[cold]
    pub(super) fn refusal(&self, spot: Spot) -> Option<Found> {
        noted(&self.parcel(spot).fault).map(|(found, _)| found)
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
                let heads = one_put(parcel.place.load(Ordering::Relaxed), bytes);
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
    matches!(stage, Stage::Posted | Stage::Claimed | Stage::Granted | Stage::Begun)
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

/// Whether data of this length lie in their parcel.
#[inline]
pub(super) fn fits_parcel(bytes: usize) -> bool {
    bytes <= PARCEL_BYTES
}

/// Where an event of so many bytes at a displacement begins in an offer, or what is wrong with it.
#[inline]
pub(super) fn place_in(
    offered: usize,
    unit: usize,
    displacement: u64,
    bytes: u64,
) -> Result<usize, Found> {
    let start = displacement.saturating_mul(unit as u64);
    let end = start.saturating_add(bytes);
    match end <= offered as u64 {
        true => Ok(start as usize),
        false => Err(Found { fault: Fault::Outside, start, end, bytes: offered as u64 }),
    }
}
