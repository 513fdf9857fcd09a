//! The sender's end of lanes: how a scope posts contiguous puts, and brings them forward. Never waits, but for the lock of a store.
//!
//! A put whose data stay with their originator is brought forward in the originator's calls only, so it need not be announced to a
//! target that invites such puts: the scope looks for the invitation a few times, and announces the put only if none comes. Where
//! the last long puts went by invitation, this spares the target's answer, and such a put is the same two messages as a start and a
//! complete: the place, and that the data are there.
#![forbid(unsafe_code)]

use std::panic::Location;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::PUTS_OK;
use super::direct::LOOKS;
use super::event::{Family, Found, Key, Layout};
use super::hub::{Hub, Locked, note, noted};
use super::lanes::{Spot, fits_parcel, invites, one_put, place_in};
use super::queue::{Issued, LOOK_AGAIN, Queue};
use super::raw::{Ends, Place, Side, offered_place};
use super::scope::{Call, Scope};
use crate::error::Result;
use crate::rank::Rank;
use crate::sync::handover::Stage;
use crate::transport::shm::offers::{LANE_PARCELS, Lane, Store};

/// How often a scope looks for an invitation before it announces a put. Fewer than the looks of a wait before its first sleep, as
/// sleep must find everything announced.
const INVITATION_LOOKS: u32 = 8 * LOOKS;
/// So many puts that found no invitation in a row, and the scope looks for none any more.
const MISSES_MAX: u32 = 4;

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
    /// 1 while long puts to the receiver are expected to find an invitation, and how often they did not.
    is_invited: AtomicU32,
    misses: AtomicU32,
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
    seen: u64,
    /// How often the scope looks for an invitation before it announces the put; 0 once that is done.
    looks: u32,
}

impl Post<'_> {
    /// Whether it has come to its end.
    pub(super) fn is_served(&self, hub: &Hub) -> bool {
        self.looks == 0 && hub.parcel(self.spot).word.look().stage().is_over()
    }
}

/// The parcels that a scope has on their way, in the order of their issue.
pub(super) struct Posts<'scope> {
    posts: [Option<Post<'scope>>; POSTS_MAX],
    count: usize,
}

impl<'scope> Posts<'scope> {
    /// None. Inline, so that a scope is made where it stays.
    #[inline(always)]
    pub(super) const fn new() -> Posts<'scope> {
        Posts { posts: [const { None }; POSTS_MAX], count: 0 }
    }

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

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut Post<'scope>> {
        self.posts[..self.count].iter_mut().flatten()
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

impl Outlet {
    /// A long put was granted a place: the next one may find it named.
    fn expect(&self) {
        // Relaxed, here and below: a guess that nothing depends on.
        if self.misses.load(Ordering::Relaxed) < MISSES_MAX {
            self.is_invited.store(1, Ordering::Relaxed);
        }
    }

    /// A long put has found no invitation.
    fn miss(&self) {
        self.is_invited.store(0, Ordering::Relaxed);
        self.misses.store(self.misses.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

impl Outlets {
    pub(super) fn new(ranks: u32) -> Outlets {
        Outlets((0..ranks).map(|_| Outlet::default()).collect())
    }

    /// How many parcels were sent.
    pub(super) fn parcels(&self) -> u64 {
        self.0.iter().map(|outlet| outlet.used.load(Ordering::Relaxed) >> LANE_PARCELS).sum()
    }
}

/// Lines are fetched in pairs.
const LANE_ALIGNMENT: usize = 128;
const PARCEL_MASK: u64 = (1 << LANE_PARCELS) - 1;

// The sender's end.
impl Hub {
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

    /// Whether a long put to a rank looks for an invitation before it is announced. Not where waiting ranks have to sleep at once.
    fn is_invited(&self, target: u32) -> bool {
        self.is_roomy && self.outlets.0[target as usize].is_invited.load(Ordering::Relaxed) != 0
    }

    /// Takes a parcel that nobody uses of the lane toward a rank.
    #[inline]
    pub(super) fn take_parcel(&self, target: u32, store: &Store, call: &'static str) -> Result<Option<Spot>> {
        let offset = self.lane_to(target, store, call)?;
        let lane = self.lane(offset);
        let used = &self.outlets.0[target as usize].used;
        let mut now = used.load(Ordering::Relaxed);
        loop {
            let is_free =
                |which: &usize| now & 1 << which == 0 && lane.parcels[*which].word.look().stage().is_over();
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

// Posting.
impl<'scope> Scope<'scope, '_> {
    /// Posts a contiguous put of a whole place in the lane to its target. Says whether that could be done; else it has to go to the
    /// store.
    pub(super) fn post(
        &self,
        call: Call,
        target: Rank,
        place: Place<'scope>,
        displacement: u64,
    ) -> Result<bool> {
        let hub = self.by.hub;
        let bytes = place.bytes();
        if call.family != Family::Plain || hub.remote.is_some() || self.by.members.size() <= target.0 {
            return Ok(false);
        }
        let job_rank = self.by.members.job_rank(target).0;
        if job_rank == hub.me {
            return Ok(false);
        }
        let key = self.key(call.family);
        let store = hub.store(job_rank, call.name)?;
        let bucket = &store.buckets[key.bucket()];
        // Acquire: pairs with the Release of whoever opens an offer.
        let seen = bucket.opened.load(Ordering::Acquire);
        // Relaxed: looked at again below.
        if bucket.offers.first.load(Ordering::Relaxed) != 0 {
            return Ok(false);
        }
        let mut issued = self.issued();
        if issued.posts.is_full() {
            return Ok(false);
        }
        let thread = issued.thread();
        let is_same = |other: (Family, Rank, u32)| other == (call.family, target, thread);
        let has_chain = issued.open.iter().any(|chain| is_same((chain.family, chain.target, chain.thread)));
        let has_queue = || {
            issued
                .queues
                .iter()
                .any(|queue| is_same((queue.family, queue.target, queue.thread)) && !queue.events.is_empty())
        };
        if has_chain || has_queue() {
            return Ok(false);
        }
        let Some(spot) = hub.take_parcel(job_rank, store, call.name)? else { return Ok(false) };
        let is_here = fits_parcel(bytes);
        let is_first = !issued.posts.iter().any(|post| (post.target, post.thread) == (target, thread));
        let looks = match !is_here && is_first && hub.is_invited(job_rank) {
            true => INVITATION_LOOKS,
            false => 0,
        };
        if !is_here {
            hub.counted.parcels_away.fetch_add(1, Ordering::Relaxed);
        }
        let post = Post { target, thread, spot, place, displacement, bytes, seen, looks };
        if looks != 0 {
            // Nothing is written to the parcel, which its receiver looks at all the time.
            issued.posts.push(post);
            // Another thread may sleep that brings it forward, and that has more to wait for than the put has time.
            hub.wake(hub.me);
            return Ok(true);
        }
        if !is_first {
            self.announce(&mut issued, &key, target);
        }
        if is_here {
            hub.parcel_data(spot, bytes).take(hub.engine, 0, &place, 0, bytes);
        }
        self.send(&key, &post);
        issued.posts.push(post);
        store.changed.notify();
        // The fence in `notify` stands between the word and this look, as one stands between the opening of an offer and its look
        // at lanes: one of the two sees the other.
        if bucket.offers.first.load(Ordering::Relaxed) != 0 {
            let locked = hub.lock(self.by.context, job_rank, call.name, call.location)?;
            self.settle_posts(&mut issued, &locked, &key, target);
        }
        Ok(true)
    }

    /// Says in its parcel what a post is, and posts that.
    fn send(&self, key: &Key, post: &Post<'scope>) {
        let parcel = self.by.hub.parcel(post.spot);
        // Relaxed: the word that is posted below orders them.
        parcel.team.store(key.team, Ordering::Relaxed);
        parcel.tag.store(key.tag, Ordering::Relaxed);
        parcel.thread.store(post.thread, Ordering::Relaxed);
        parcel.member.store(self.by.members.rank().0, Ordering::Relaxed);
        parcel.displacement.store(post.displacement, Ordering::Relaxed);
        parcel.bytes.store(post.bytes as u64, Ordering::Relaxed);
        parcel.is_away.store(u32::from(!fits_parcel(post.bytes)), Ordering::Relaxed);
        parcel.word.post(post.spot.number);
    }

    /// Announces the puts to a target that still look for an invitation.
    fn announce(&self, issued: &mut Issued<'scope>, key: &Key, target: Rank) {
        let hub = self.by.hub;
        let mut is_any = false;
        for post in issued.posts.iter_mut().filter(|post| post.target == target && post.looks != 0) {
            post.looks = 0;
            self.send(key, post);
            is_any = true;
        }
        if is_any {
            hub.wake(self.by.members.job_rank(target).0);
        }
    }

    /// Puts what a post brings where an invitation says, if there is one; or learns that it does not fit there.
    fn accept(&self, post: &Post<'scope>, key: &Key) -> Option<Result<(), Found>> {
        let hub = self.by.hub;
        let invitation = &hub.lane(post.spot.lane).invitation;
        let look = invitation.word.look();
        if look.stage() != Stage::Posted {
            return None;
        }
        let number = look.number();
        if !invites(invitation, key) || !invitation.word.claim(number) {
            return None;
        }
        let job_rank = self.by.members.job_rank(post.target).0;
        if !invites(invitation, key) {
            // It was of an earlier one.
            invitation.word.let_go(number);
            hub.wake(job_rank);
            return None;
        }
        // Relaxed: ordered by the word.
        let [base, offered, unit] =
            [&invitation.base, &invitation.bytes, &invitation.unit].map(|word| word.load(Ordering::Relaxed));
        let bytes = post.bytes as u64;
        let outcome = place_in(offered as usize, unit as usize, post.displacement, bytes);
        hub.counted.by_originator.fetch_add(1, Ordering::Relaxed);
        match outcome {
            Ok(start) => {
                let place = offered_place(&hub.segment, base + start as u64, post.bytes);
                place.take(hub.engine, 0, &post.place, 0, post.bytes);
                invitation.moved.store(bytes, Ordering::Relaxed);
                invitation.word.done(number);
            }
            Err(found) => {
                note(&invitation.fault, hub.me, &found);
                invitation.word.refuse(number);
            }
        }
        hub.wake(job_rank);
        Some(outcome.map(drop))
    }

    /// Serves what this scope has in the lane to a target and has an offer in the target's store.
    pub(super) fn settle_posts(
        &self,
        issued: &mut Issued<'scope>,
        locked: &Locked<'_>,
        key: &Key,
        target: Rank,
    ) {
        self.announce(issued, key, target);
        let hub = self.by.hub;
        let (me, job_rank) = (hub.me, self.by.members.job_rank(target).0);
        let kinds = PUTS_OK.bits();
        let opened = locked.bucket(key).opened.load(Ordering::Relaxed);
        // Threads with an event that waits: their later ones wait, too.
        let mut waiting: Vec<u32> = Vec::new();
        let Issued { posts, faults, queues, .. } = issued;
        posts.retain(|post| {
            if post.target != target {
                return true;
            }
            post.seen = opened;
            let word = &hub.parcel(post.spot).word;
            if word.look().stage().is_over() {
                return true;
            }
            let offer = match waiting.contains(&post.thread) {
                true => None,
                false => locked.find(key, 0, (kinds, me), false).filter(|_| word.claim(post.spot.number)),
            };
            let Some(offer) = offer else {
                waiting.push(post.thread);
                return true;
            };
            let layout = Layout::Bytes(post.bytes);
            let sides = [Side { place: post.place, start: 0, layout: &layout }];
            let heads = one_put(post.displacement, post.bytes);
            let outcome = locked.serve(offer, key.family, kinds, &heads, Ends::Sides(&sides));
            hub.counted.by_originator.fetch_add(1, Ordering::Relaxed);
            locked.count(offer, me, self.by.members.rank().0, &outcome);
            if let Err(found) = outcome {
                faults.push((key.family, target, found));
            }
            word.done(post.spot.number);
            hub.give_parcel(job_rank, post.spot);
            look_behind(queues, post);
            false
        });
    }

    /// Brings forward what this scope has in lanes: takes what is done, and copies where it was granted a place.
    pub(super) fn advance_posts(
        &self,
        issued: &mut Issued<'scope>,
        key: &Key,
        call: &'static str,
        location: &'static Location<'static>,
    ) -> Result<()> {
        let hub = self.by.hub;
        let looks = issued.posts.iter().any(|post| post.looks != 0);
        let thread = if looks { issued.thread() } else { 0 };
        let Issued { posts, faults, queues, .. } = issued;
        let mut opened_at = None;
        // What has ended while offers were open that those behind it have not been shown to.
        let mut ended: Vec<(Rank, u32)> = Vec::new();
        posts.retain(|post| {
            if ended.contains(&(post.target, post.thread)) {
                post.seen = LOOK_AGAIN;
            }
            let job_rank = self.by.members.job_rank(post.target).0;
            let parcel = hub.parcel(post.spot);
            let number = post.spot.number;
            let outlet = &hub.outlets.0[job_rank as usize];
            let bucket = || hub.store(job_rank, call).map(|store| &store.buckets[key.bucket()]);
            // Acquire: pairs with the Release of whoever opens an offer.
            let look = |seen| bucket().map_or(seen, |bucket| bucket.opened.load(Ordering::Acquire));
            if post.looks != 0 {
                match self.accept(post, key) {
                    None => {
                        // A thread that only brings it forward may sleep between its looks.
                        post.looks = if post.thread == thread { post.looks - 1 } else { 0 };
                        if post.looks == 0 {
                            outlet.miss();
                            self.send(key, post);
                            hub.wake(job_rank);
                            // As in `post`.
                            if bucket().is_ok_and(|bucket| bucket.offers.first.load(Ordering::Relaxed) != 0) {
                                opened_at = Some(post.target);
                            }
                        } else if look(post.seen) != post.seen {
                            opened_at = Some(post.target);
                        }
                        return true;
                    }
                    Some(outcome) => {
                        faults.extend(outcome.err().map(|found| (key.family, post.target, found)));
                        outlet.misses.store(0, Ordering::Relaxed);
                    }
                }
            } else {
                match parcel.word.look().stage() {
                    Stage::Done => {}
                    Stage::Refused => {
                        faults.extend(hub.refusal(post.spot).map(|found| (key.family, post.target, found)))
                    }
                    Stage::Granted if parcel.word.begin(number) => {
                        let place = parcel.short.load(Ordering::Relaxed);
                        let target = offered_place(&hub.segment, place, post.bytes);
                        target.take(hub.engine, 0, &post.place, 0, post.bytes);
                        parcel.word.delivered(number);
                        hub.wake(job_rank);
                        hub.counted.by_originator.fetch_add(1, Ordering::Relaxed);
                        outlet.expect();
                    }
                    Stage::Posted => {
                        if look(post.seen) != post.seen {
                            opened_at = Some(post.target);
                        }
                        return true;
                    }
                    _ => return true,
                }
            }
            hub.give_parcel(job_rank, post.spot);
            look_behind(queues, post);
            // Relaxed: one that opens later is counted later.
            if bucket().is_ok_and(|bucket| bucket.offers.first.load(Ordering::Relaxed) != 0) {
                ended.push((post.target, post.thread));
            }
            false
        });
        if let Some(target) = opened_at {
            let job_rank = self.by.members.job_rank(target).0;
            let locked = hub.lock(self.by.context, job_rank, call, location)?;
            self.settle_posts(issued, &locked, key, target);
        }
        Ok(())
    }

    /// Takes back what is not served.
    pub(super) fn take_posts_back(&self, issued: &mut Issued<'scope>) {
        let hub = self.by.hub;
        issued.posts.retain(|post| {
            let job_rank = self.by.members.job_rank(post.target).0;
            // What is being served is served from the data in the parcel, or not at all.
            if post.looks == 0 && hub.parcel(post.spot).word.withdraw(post.spot.number) {
                hub.wake(job_rank);
            }
            hub.give_parcel(job_rank, post.spot);
            false
        });
    }
}

/// Lets what has waited in the store behind a post be looked at again: it may be served now, by an offer that has opened before.
fn look_behind(queues: &mut [Queue<'_>], post: &Post<'_>) {
    let is_behind = |queue: &&mut Queue<'_>| (queue.target, queue.thread) == (post.target, post.thread);
    queues.iter_mut().filter(is_behind).for_each(|queue| queue.seen = LOOK_AGAIN);
}
