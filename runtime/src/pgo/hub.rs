//! A rank's end of the matching: the stores of the ranks that share its memory, what it keeps for those that do not, and the one
//! function that matches what is in a store, [`Locked::settle`]. Never touches private memory but that of the events that a caller
//! hands it.
//!
//! Every rank has a store, made by whoever needs it first. It lists the offers of the rank and the events that wait there, in the
//! order in which they came, and has one lock. Matching and copying happen under it, so what an offer serves is served at once
//! and whole. Who matches: the originator of an event, when it issues it and later in its own offers, by copying between its
//! memory and the offered; the target, when it opens an offer, for events whose data wait with them; and the target's agent, for
//! ranks that share no memory. So nobody is needed at the target for what ranks that share memory issue.
//!
//! Beside the store are lanes (see `lanes`), by which most puts go that meet a blocking offer, without its lock.

use std::collections::HashMap;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::event::{Family, Fault, Found, Heads, Key};
use super::posts::Outlets;
use super::raw::{Ends, carry, check, node_place};
use super::remote::Remote;
use super::rounds::{Nodes, Rounds};
use super::seats::Scopes;
use crate::error::{Error, ErrorKind, Result};
use crate::job::RankContext;
use crate::liveness::{Act, NO_BLOCKER, Needs, WaitFor};
use crate::rank::{Members, Rank};
use crate::transport::shm::arena::Arena;
use crate::transport::shm::bytes;
use crate::transport::shm::copy::Engine;
use crate::transport::shm::offers::{
    Bucket, Chain, EventNode, FaultWords, KeyWords, Neighbours, OfferNode, Store,
};
use crate::transport::shm::segment::Segment;
use crate::transport::tcp::frame::Body;

/// Stands for COUNT_ANY, and for the count of a collective round, which only its counting tells.
pub(super) const UNCOUNTED: u64 = u64::MAX;

/// A message about counts, which is no event for any offer.
pub(super) const COUNTS_KIND: u32 = 1 << 8;

/// Where the data of an event are: behind it, in private memory of its originator, or with the agent of its target, which has
/// them, or has to ask for them.
pub(super) const DATA_HERE: u32 = 0;
pub(super) const DATA_AWAY: u32 = 1;
pub(super) const DATA_WIRED: u32 = 2;

/// How long a call that has failed waits, to clean up, for what somebody else is in the middle of, before it gives that up.
pub(super) const CLEANUP_PATIENCE: Duration = Duration::from_millis(100);

/// How often an agent looks at a lock before it puts the matter off.
const AGENT_LOOKS: u32 = 200;

/// See the module.
pub(crate) struct Hub {
    pub(super) me: u32,
    pub(super) segment: Arc<Segment>,
    pub(super) arena: Arc<Arena>,
    pub(super) engine: Engine,
    /// All ranks of the job, for waits that belong to no team.
    everyone: Members,
    pub(super) remote: Option<Remote>,
    pub(super) rounds: Mutex<HashMap<(u64, u64), Rounds>>,
    nodes: Mutex<Nodes>,
    pub(super) scopes: Scopes,
    /// A wait of this rank has failed, and no other one has begun. A hint for cleaning up, so threads may share it.
    pub(super) has_failed: AtomicBool,
    pub(super) outlets: Outlets,
    /// Every rank has a core, so that one that waits looks many times before it sleeps.
    pub(super) is_roomy: bool,
    /// Events that its direct offers have served.
    pub(super) direct_served: AtomicU64,
    pub(super) counted: Counted,
}

/// What tests ask about.
#[derive(Debug, Default)]
pub(super) struct Counted {
    /// Events that this rank has served as originator, as target, and by its agent.
    pub(super) by_originator: AtomicU64,
    pub(super) by_target: AtomicU64,
    pub(super) by_agent: AtomicU64,
    /// Copies through memory between the two ends.
    pub(super) staged: AtomicU64,
    /// Messages about counts.
    pub(super) messages: AtomicU64,
    /// Frames to ranks that share no memory.
    pub(super) frames: AtomicU64,
    /// Blocks of memory taken.
    pub(super) blocks: AtomicU64,
    /// Locks of stores taken.
    pub(super) locks: AtomicU64,
    /// Parcels whose data stayed with this rank. All others have passed through memory between the two ends.
    pub(super) parcels_away: AtomicU64,
}

impl Counted {
    fn all(&self) -> [u64; 8] {
        let Counted { by_originator, by_target, by_agent, staged, messages, frames, blocks, locks, .. } =
            self;
        [by_originator, by_target, by_agent, staged, messages, frames, blocks, locks]
            .map(|count| count.load(Ordering::Relaxed))
    }
}

impl Hub {
    /// What has been counted, with what lanes and the direct offer count by themselves.
    pub(super) fn counts(&self) -> [u64; 8] {
        let mut all = self.counted.all();
        all[1] += self.direct_served.load(Ordering::Relaxed);
        all[3] += self.outlets.parcels() - self.counted.parcels_away.load(Ordering::Relaxed);
        all
    }
}

/// A store whose lock is held.
pub(super) struct Locked<'a> {
    pub(super) store: &'a Store,
    hub: &'a Hub,
    /// The job rank of its owner.
    pub(super) owner: u32,
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.store.lock.give_back();
        self.store.freed.notify();
    }
}

/// What became of an event that met an offer.
pub(super) enum Met {
    /// It was served, and moved so many bytes, or had a fault.
    Served(Result<u64, Found>),
    /// Its data are not here; whoever has them was told.
    Later,
}

/// Who settles.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Originator,
    Target,
    Agent,
}

impl Hub {
    pub(super) fn new(segment: &Arc<Segment>, me: Rank, engine: Engine, remote: Option<Remote>) -> Arc<Hub> {
        let ranks = (0..segment.size()).map(Rank).collect();
        Arc::new(Hub {
            me: me.0,
            arena: Arena::new(Arc::clone(segment)),
            segment: Arc::clone(segment),
            engine,
            everyone: Members::new(0, me, ranks),
            remote,
            rounds: Mutex::default(),
            nodes: Mutex::default(),
            scopes: Scopes::new(),
            has_failed: AtomicBool::new(false),
            outlets: Outlets::new(segment.size()),
            is_roomy: segment.size() as usize <= thread::available_parallelism().map_or(1, usize::from),
            direct_served: AtomicU64::new(0),
            counted: Counted::default(),
        })
    }

    /// The hub of a rank.
    pub(super) fn of(context: &RankContext) -> &Hub {
        context.attached(|| Hub::new(&context.shared_segment(), context.job_rank(), context.engine(), None))
    }

    pub(super) fn rounds(&self) -> MutexGuard<'_, HashMap<(u64, u64), Rounds>> {
        // Nothing panics while the table is inconsistent.
        self.rounds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn nodes(&self) -> MutexGuard<'_, Nodes> {
        // Nothing panics while the lists are inconsistent.
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store of a rank that shares memory, made if nobody has needed it yet.
    pub(super) fn store(&self, job_rank: u32, call: &'static str) -> Result<&Store> {
        let word = &self.segment.record(job_rank).store;
        // Acquire: pairs with the Release below; a store begins with zeros.
        let offset = match word.load(Ordering::Acquire) {
            0 => {
                let block = self.arena.allocate(size_of::<Store>(), call)?;
                match word.compare_exchange(0, block.offset(), Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => {
                        let offset = block.offset();
                        // It belongs to the job from now on.
                        block.leave_behind();
                        offset
                    }
                    Err(theirs) => theirs,
                }
            }
            offset => offset,
        };
        Ok(self.segment.shared(offset))
    }

    /// Takes the lock of a rank's store.
    ///
    /// # Errors
    /// `PeerLost` if its holder has died; `Stalled` on the time limit.
    pub(super) fn lock(
        &self,
        context: &RankContext,
        job_rank: u32,
        call: &'static str,
        location: &'static Location<'static>,
    ) -> Result<Locked<'_>> {
        let store = self.store(job_rank, call)?;
        if !store.lock.try_take(self.me) {
            let holder = || store.lock.holder().map(Rank);
            let what = WaitFor {
                call,
                window: None,
                team: &self.everyone,
                needs: Needs::Those(&|rank| holder() == Some(rank)),
                act: Act::Any,
                detail: None,
                blocker: NO_BLOCKER,
            };
            let taken = context.wait(&store.freed, what, || store.lock.try_take(self.me).then_some(()));
            if let Err(error) = taken {
                self.has_failed.store(true, Ordering::Relaxed);
                return Err(error.called_at(location));
            }
        }
        self.counted.locks.fetch_add(1, Ordering::Relaxed);
        Ok(Locked { store, hub: self, owner: job_rank })
    }

    /// Takes the lock of a rank's store for a call that cleans up. If the call has just failed, whoever kept it waiting may hold the
    /// lock: it is not waited for as long again.
    ///
    /// # Errors
    /// As [`Hub::lock`].
    pub(super) fn lock_to_clean(
        &self,
        context: &RankContext,
        job_rank: u32,
        call: &'static str,
        location: &'static Location<'static>,
    ) -> Result<Locked<'_>> {
        if !self.has_failed.load(Ordering::Relaxed) {
            return self.lock(context, job_rank, call, location);
        }
        let store = self.store(job_rank, call)?;
        let begun = Instant::now();
        while !store.lock.try_take(self.me) {
            if CLEANUP_PATIENCE < begun.elapsed() {
                let note =
                    format!("what belongs to it is given up; the lock was not free for {CLEANUP_PATIENCE:?}");
                return Err(Error::new(ErrorKind::Stalled, call).note(note).called_at(location));
            }
            thread::yield_now();
        }
        self.counted.locks.fetch_add(1, Ordering::Relaxed);
        Ok(Locked { store, hub: self, owner: job_rank })
    }

    /// Takes the lock of the own store if that takes no time worth mentioning.
    pub(super) fn lock_soon(&self) -> Option<Locked<'_>> {
        let store = self.store(self.me, "agent").ok()?;
        for look in 0..AGENT_LOOKS {
            if store.lock.try_take(self.me) {
                self.counted.locks.fetch_add(1, Ordering::Relaxed);
                return Some(Locked { store, hub: self, owner: self.me });
            }
            match look < AGENT_LOOKS / 2 {
                true => std::hint::spin_loop(),
                false => thread::yield_now(),
            }
        }
        None
    }

    /// Tells a rank that something has changed that it may wait for.
    pub(super) fn wake(&self, job_rank: u32) {
        // Acquire: as in `store`.
        let offset = self.segment.record(job_rank).store.load(Ordering::Acquire);
        if offset != 0 {
            self.segment.shared::<Store>(offset).changed.notify();
        }
        if job_rank == self.me
            && let Some(remote) = &self.remote
        {
            remote.nudge();
        }
    }

    pub(super) fn event(&self, offset: u64) -> &EventNode {
        self.segment.shared(offset)
    }

    pub(super) fn offer(&self, offset: u64) -> &OfferNode {
        self.segment.shared(offset)
    }

    /// What an event is made of, from behind it.
    pub(super) fn heads(&self, offset: u64, node: &EventNode) -> Heads {
        let bytes = self.behind(offset, node);
        // What ranks that share memory have written is of this program.
        Heads::decode(&mut Body::new(&bytes)).unwrap_or(Heads { parts: Vec::new(), mismatched: true })
    }

    /// The bytes behind an event that describe it.
    pub(super) fn behind(&self, offset: u64, node: &EventNode) -> Vec<u8> {
        let mut parts = vec![0; node.parts_bytes.load(Ordering::Relaxed) as usize];
        let start = offset + size_of::<EventNode>() as u64;
        bytes::load(self.segment.shared_slice::<AtomicU64>(start, parts.len().div_ceil(8)), &mut parts);
        parts
    }
}

// Lists.
impl Hub {
    fn neighbours(&self, offset: u64) -> &Neighbours {
        // Both kinds of nodes begin with them.
        &self.event(offset).neighbours
    }

    /// Puts a node at the end of a list.
    pub(super) fn append(&self, chain: &Chain, offset: u64) {
        // Relaxed, here and below: under the lock of the store.
        let last = chain.last.load(Ordering::Relaxed);
        let own = self.neighbours(offset);
        own.before.store(last, Ordering::Relaxed);
        own.after.store(0, Ordering::Relaxed);
        match last {
            0 => chain.first.store(offset, Ordering::Relaxed),
            last => self.neighbours(last).after.store(offset, Ordering::Relaxed),
        }
        chain.last.store(offset, Ordering::Relaxed);
    }

    /// Takes a node out of its list.
    pub(super) fn unlink(&self, chain: &Chain, offset: u64) {
        let own = self.neighbours(offset);
        let (before, after) = (own.before.load(Ordering::Relaxed), own.after.load(Ordering::Relaxed));
        match before {
            0 => chain.first.store(after, Ordering::Relaxed),
            before => self.neighbours(before).after.store(after, Ordering::Relaxed),
        }
        match after {
            0 => chain.last.store(before, Ordering::Relaxed),
            after => self.neighbours(after).before.store(before, Ordering::Relaxed),
        }
    }

    /// The nodes of a list. A node may be unlinked while it is looked at.
    pub(super) fn walk<'a>(&'a self, chain: &'a Chain) -> impl Iterator<Item = u64> + 'a {
        let mut next = chain.first.load(Ordering::Relaxed);
        std::iter::from_fn(move || {
            let at = next;
            if at == 0 {
                return None;
            }
            next = self.neighbours(at).after.load(Ordering::Relaxed);
            Some(at)
        })
    }
}

// Matching.
impl<'a> Locked<'a> {
    pub(super) fn hub(&self) -> &'a Hub {
        self.hub
    }

    pub(super) fn bucket(&self, key: &Key) -> &Bucket {
        &self.store.buckets[key.bucket()]
    }

    /// The offer that an event is for, if one is open: the earliest that allows it and has not served all that it counts.
    pub(super) fn find(
        &self,
        key: &Key,
        round: u64,
        (kinds, originator): (u32, u32),
        late: bool,
    ) -> Option<u64> {
        let bucket = self.bucket(key);
        let found = self.hub.walk(&bucket.offers).find(|&offset| {
            let offer = self.hub.offer(offset);
            if !matches(&offer.key, key) {
                return false;
            }
            let word = |word: &AtomicU64| word.load(Ordering::Relaxed);
            if key.family == Family::Collective {
                return word(&offer.key.round) == round;
            }
            let (allowed, only) = (offer.kinds.load(Ordering::Relaxed), offer.only.load(Ordering::Relaxed));
            kinds & !allowed == 0
                && (only == 0 || only == originator + 1)
                && word(&offer.served) < word(&offer.count)
        });
        // An offer that serves nothing yet keeps what is for it: a later one has no right to it.
        let is_held_back = |offset| {
            key.family != Family::Collective
                && !late
                && self.hub.offer(offset).late.load(Ordering::Relaxed) != 0
        };
        found.filter(|&offset| !is_held_back(offset))
    }

    /// Whether an earlier event of the same thread of an originator waits.
    pub(super) fn is_behind(&self, key: &Key, originator: u32, thread: u32) -> bool {
        let bucket = self.bucket(key);
        self.hub.walk(&bucket.events).any(|offset| {
            let event = self.hub.event(offset);
            matches(&event.key, key) && is_of(event, originator, thread)
        })
    }

    /// Serves an event at an offer, unless the event has a fault.
    pub(super) fn serve(
        &self,
        offer: u64,
        family: Family,
        kinds: u32,
        heads: &Heads,
        ends: Ends<'_>,
    ) -> Result<u64, Found> {
        match self.fault(offer, family, kinds, heads) {
            Some(found) => Err(found),
            None => Ok(carry(&self.hub.segment, self.hub.engine, self.hub.offer(offer), heads, ends)),
        }
    }

    /// What is wrong with an event for an offer.
    pub(super) fn fault(&self, offer: u64, family: Family, kinds: u32, heads: &Heads) -> Option<Found> {
        let offer = self.hub.offer(offer);
        // Only a collective round meets an event that it does not allow.
        let allowed = offer.kinds.load(Ordering::Relaxed);
        let bytes = offer.bytes.load(Ordering::Relaxed);
        let refused = family == Family::Collective && kinds & !allowed != 0;
        match refused {
            true => Some(Found { fault: Fault::Kind, start: 0, end: 0, bytes }),
            false => check(offer, heads),
        }
    }

    /// Counts an event that an offer has served.
    pub(super) fn count(&self, offer: u64, originator: u32, member: u32, outcome: &Result<u64, Found>) {
        let offer = self.hub.offer(offer);
        let moved = match outcome {
            Ok(moved) => *moved,
            Err(found) => {
                if offer.fault.code.load(Ordering::Relaxed) == 0 {
                    note(&offer.fault, originator, found);
                }
                0
            }
        };
        offer.moved.fetch_add(moved, Ordering::Relaxed);
        let ledger = offer.ledger.load(Ordering::Relaxed);
        if ledger != 0 {
            let words = self.hub.segment.shared_slice::<AtomicU64>(ledger + 16 * u64::from(member), 2);
            words[0].fetch_add(1, Ordering::Relaxed);
            words[1].fetch_add(moved, Ordering::Relaxed);
        }
        // Release: pairs with the Acquire of the owner's look without the lock.
        offer.served.fetch_add(1, Ordering::Release);
        self.hub.wake(self.owner);
    }

    /// Matches the waiting events of a key with its offers, as far as the caller can serve them.
    ///
    /// `own` serves the events whose data the caller has, by the offsets of event and offer, or gives `None` for all others.
    pub(super) fn settle(&self, key: &Key, role: Role, own: &mut dyn FnMut(u64, u64) -> Option<Met>) {
        let (hub, bucket) = (self.hub, self.bucket(key));
        // Originators with an event that waits: their later ones wait, too.
        let mut waiting: Vec<(u32, u32)> = Vec::new();
        for at in hub.walk(&bucket.events) {
            let event = hub.event(at);
            let word = |word: &std::sync::atomic::AtomicU32| word.load(Ordering::Relaxed);
            let kinds = word(&event.kinds);
            if kinds == COUNTS_KIND || !matches(&event.key, key) {
                continue;
            }
            let originator = (word(&event.originator), word(&event.thread));
            if waiting.contains(&originator) {
                continue;
            }
            if hub.has_parcels(event.lane.load(Ordering::Relaxed), key, originator.1) {
                waiting.push(originator);
                continue;
            }
            let late = role != Role::Agent && originator.0 == self.owner;
            let round = event.key.round.load(Ordering::Relaxed);
            let met = match self.find(key, round, (kinds, originator.0), late) {
                None => None,
                Some(offer) => own(at, offer).map(|met| (offer, met)).or_else(|| {
                    let is_here = role != Role::Originator && word(&event.data) == DATA_HERE;
                    match is_here {
                        true => {
                            let heads = hub.heads(at, event);
                            let (row, room) = node_place(&hub.segment, at, event);
                            let outcome = self.serve(offer, key.family, kinds, &heads, Ends::Rows(row, room));
                            Some((offer, Met::Served(outcome)))
                        }
                        false => {
                            // Its originator has to do it, and may not know of the offer yet.
                            if role == Role::Target && word(&event.data) == DATA_AWAY {
                                hub.wake(originator.0);
                            }
                            None
                        }
                    }
                }),
            };
            match met {
                Some((offer, Met::Served(outcome))) => {
                    hub.unlink(&bucket.events, at);
                    let counter = match role {
                        Role::Originator => &hub.counted.by_originator,
                        Role::Target => &hub.counted.by_target,
                        Role::Agent => &hub.counted.by_agent,
                    };
                    counter.fetch_add(1, Ordering::Relaxed);
                    self.count(offer, originator.0, word(&event.member), &outcome);
                    if let Err(found) = &outcome {
                        note(&event.fault, originator.0, found);
                    }
                    // Release: pairs with the Acquire in the originator's look. The event is the originator's again.
                    event.done.store(1, Ordering::Release);
                    if originator.0 != hub.me {
                        hub.wake(originator.0);
                    }
                }
                Some((_, Met::Later)) | None => waiting.push(originator),
            }
        }
    }
}

fn is_of(event: &EventNode, originator: u32, thread: u32) -> bool {
    event.kinds.load(Ordering::Relaxed) != COUNTS_KIND
        && event.originator.load(Ordering::Relaxed) == originator
        && event.thread.load(Ordering::Relaxed) == thread
}

pub(super) fn matches(words: &KeyWords, key: &Key) -> bool {
    let word = |word: &AtomicU64| word.load(Ordering::Relaxed);
    word(&words.team) == key.team && word(&words.tag) == key.tag && word(&words.family) == key.family as u64
}

pub(super) fn write_key(words: &KeyWords, key: &Key, round: u64) {
    words.family.store(key.family as u64, Ordering::Relaxed);
    words.team.store(key.team, Ordering::Relaxed);
    words.tag.store(key.tag, Ordering::Relaxed);
    words.round.store(round, Ordering::Relaxed);
}

pub(super) fn note(words: &FaultWords, originator: u32, found: &Found) {
    words.originator.store(originator, Ordering::Relaxed);
    words.start.store(found.start, Ordering::Relaxed);
    words.end.store(found.end, Ordering::Relaxed);
    words.bytes.store(found.bytes, Ordering::Relaxed);
    words.code.store(found.fault as u32, Ordering::Relaxed);
}

/// The fault that an event or an offer has come to, and the job rank of the originator.
pub(super) fn noted(words: &FaultWords) -> Option<(Found, u32)> {
    let fault = Fault::from_code(words.code.load(Ordering::Relaxed))?;
    let word = |word: &AtomicU64| word.load(Ordering::Relaxed);
    let found = Found { fault, start: word(&words.start), end: word(&words.end), bytes: word(&words.bytes) };
    Some((found, words.originator.load(Ordering::Relaxed)))
}

/// The sentence of a fault, at one of its two ends.
#[cold]
pub(super) fn fault_error(error: impl Fn(ErrorKind) -> Error, found: &Found, key: &Key) -> Error {
    let Found { fault, start, end, bytes } = *found;
    let error = error(fault.kind());
    match fault {
        Fault::Outside => {
            error.note(format!("bytes {start}..{end} of an offer of {bytes} bytes were named; {key}"))
        }
        Fault::Twice => error.note(format!("its target layout was not used; {key}")),
        Fault::Types => error.note(format!("nothing was moved; {key}")),
        Fault::Kind => error.note(format!("the round offers the other kind only; {key}")),
        Fault::NotOffered => error.note(format!("nothing was written; {key}")),
    }
}
