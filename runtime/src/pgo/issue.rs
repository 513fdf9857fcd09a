//! How a scope issues its events, brings them forward, and ends. Never outlives what its events borrow.
#![forbid(unsafe_code)]

use std::panic::Location;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::event::{Family, Fault, Found, Heads, Key, Way};
use super::hub::{DATA_AWAY, DATA_HERE, Hub, Role, fault_error, write_key};
use super::posts::Post;
use super::queue::{At, CHAINS, EVENTS, FAULTS, Issued, OpenChain, Waiting};
use super::raw::{Ends, Side, node_bytes, node_place};
use super::scope::{Call, Join, Scope};
use super::source::{Bring, Destination, Part, Source, Wrong};
use super::wait::{Own, is_end_in_order, wait};
use crate::error::{Error, ErrorKind, Result};
use crate::liveness;
use crate::op::Section;
use crate::rank::Rank;
use crate::transport::shm::bytes;
use crate::transport::shm::offers::EventNode;

/// Data of an event up to this length wait with it at the target; longer ones stay where they are until the originator is in an
/// offer of its own.
pub(super) const EAGER_MAX_BYTES: usize = 4 << 10;
/// What the waiting data of a scope may come to.
const EAGER_SUM_MAX_BYTES: usize = 1 << 20;

// Issuing.
impl<'scope> Scope<'scope, '_> {
    pub(super) fn put_part(
        &self,
        call: Call,
        origin: impl Source<'scope>,
        target: Rank,
        section: Section<'_>,
        join: Join,
    ) -> Result<()> {
        let side = origin.bring();
        if let (Ok(row), Section::From(start), Join::Last) = (side.as_ref().map(Bring::row), &section, join)
            && let Some(place) = row
            && self.post(call, target, place, *start as u64)?
        {
            return Ok(());
        }
        self.add(call, target, side.and_then(|side| side.aim(Way::Put, section)), join)
    }

    pub(super) fn get_part(
        &self,
        call: Call,
        origin: impl Destination<'scope>,
        target: Rank,
        section: Section<'_>,
        join: Join,
    ) -> Result<()> {
        let aimed = origin.bring().and_then(|side| side.aim(Way::Get, section));
        self.add(call, target, aimed, join)
    }

    pub(super) fn aim(
        &self,
        call: Call,
        target: Rank,
        aimed: Result<(Part<'scope>, bool), Wrong>,
    ) -> Result<(Part<'scope>, bool)> {
        let size = self.by.members.size();
        let error = |kind, note: String| {
            self.by.error(kind, call.name).target(target).note(note).called_at(call.location)
        };
        if size <= target.0 {
            let note = format!("the team has {size} ranks; tag {}", self.tag);
            return Err(error(ErrorKind::RankOutOfRange, note));
        }
        aimed.map_err(|Wrong(kind, note)| error(kind, format!("{note}; tag {}", self.tag)))
    }

    /// Adds a part to the chain that is open toward the target, and issues the event if it is whole.
    fn add(
        &self,
        call: Call,
        target: Rank,
        aimed: Result<(Part<'scope>, bool), Wrong>,
        join: Join,
    ) -> Result<()> {
        let (part, mismatched) = self.aim(call, target, aimed)?;
        let mut issued = self.issued();
        let thread = issued.thread();
        let is_same = |chain: &OpenChain<'_>| {
            (chain.family, chain.target, chain.thread) == (call.family, target, thread)
        };
        let at = issued.open.iter().position(is_same);
        if let Some(at) = at {
            let chain = &issued.open[at];
            let other = chain.parts.iter().find(|other| other.head.way != part.head.way);
            if other.is_some() && !chain.is_mixed {
                let note = format!("its chain was not opened by combine_mixed; tag {}", self.tag);
                let error = self.by.error(ErrorKind::CombineMismatch, call.name).target(target);
                return Err(error.note(note).called_at(call.location));
            }
        }
        match (at, join) {
            (None, Join::Last) => {
                drop(issued);
                self.issue(call, target, vec![part], mismatched, false)
            }
            (Some(at), Join::Last) => {
                let mut chain = issued.open.swap_remove(at);
                drop(issued);
                chain.parts.push(part);
                self.issue(call, target, chain.parts, chain.mismatched | mismatched, false)
            }
            (Some(at), Join::More | Join::MoreMixed) => {
                issued.open[at].parts.push(part);
                issued.open[at].mismatched |= mismatched;
                Ok(())
            }
            (None, Join::More | Join::MoreMixed) => {
                let is_mixed = join == Join::MoreMixed;
                let (family, parts) = (call.family, vec![part]);
                issued.open.push(OpenChain { family, target, thread, is_mixed, parts, mismatched });
                Ok(())
            }
        }
    }

    /// Issues an event: serves it at once if its offer is open, or lets it wait.
    pub(super) fn issue(
        &self,
        call: Call,
        target: Rank,
        parts: Vec<Part<'scope>>,
        mismatched: bool,
        is_ready: bool,
    ) -> Result<()> {
        self.by.context.serve();
        let heads = Heads { parts: parts.iter().map(|part| part.head.clone()).collect(), mismatched };
        let key = self.key(call.family);
        let job_rank = self.by.members.job_rank(target);
        let is_near = self.by.context.shares_memory(job_rank);
        if !is_near {
            self.refuse_long(&heads, target, (call.name, call.location))?;
        }
        let round = match call.family {
            Family::Collective => {
                let mut all = self.by.hub.rounds();
                let rounds = all.entry((key.team, key.tag)).or_default();
                rounds.count(target, self.by.members.size());
                rounds.now()
            }
            Family::Plain | Family::Progressive => 0,
        };
        let mut event = Waiting::new(round, heads, parts);
        if is_ready && is_near {
            // An event finds offers in the store. One that its caller knows of is there afterwards, or was complete before this look.
            let direct = self.by.hub.store(job_rank.0, call.name)?.desk.stands(key.bucket());
            if let Some(turn) = direct {
                self.by.hub.call_in(self.by, (job_rank.0, turn), &key, call.name, call.location)?;
            }
        }
        let mut issued = self.issued();
        let thread = issued.thread();
        match is_near {
            true => {
                let outcome = self.issue_near(&mut issued, call, &key, (target, thread), event, is_ready);
                if outcome.is_err()
                    && call.family == Family::Collective
                    && let Some(rounds) = self.by.hub.rounds().get_mut(&(key.team, key.tag))
                {
                    rounds.uncount(target, round);
                }
                outcome?;
            }
            false => {
                event.sent.is_ready = is_ready;
                let queue = issued.queue(call.family, target, thread);
                queue.events.push_back(event);
                let mut faults = Vec::new();
                self.advance_far(queue, &key, call.name, call.location, &mut faults)?;
                issued.faults.append(&mut faults);
            }
        }
        match mismatched {
            false => Ok(()),
            true => {
                let note = format!("nothing is moved; tag {}", self.tag);
                let error = self.by.error(ErrorKind::DatatypeMismatch, call.name).target(target);
                Err(error.note(note).called_at(call.location))
            }
        }
    }

    fn issue_near(
        &self,
        issued: &mut Issued<'scope>,
        call: Call,
        key: &Key,
        (target, thread): (Rank, u32),
        mut event: Waiting<'scope>,
        is_ready: bool,
    ) -> Result<()> {
        let (hub, me) = (self.by.hub, self.by.hub.me);
        let job_rank = self.by.members.job_rank(target).0;
        let locked = hub.lock(self.by.context, job_rank, call.name, call.location)?;
        if key.family == Family::Plain && !issued.posts.is_empty() {
            self.settle_posts(issued, &locked, key, target);
        }
        let lane = match key.family {
            Family::Plain => issued.posts.iter().find(|post| (post.target, post.thread) == (target, thread)),
            Family::Progressive | Family::Collective => None,
        };
        let lane = lane.map_or(0, |post| post.spot.lane);
        let offer = match hub.has_parcels(lane, key, thread) || locked.is_behind(key, me, thread) {
            true => None,
            false => locked.find(key, event.round, (event.kinds, me), me == job_rank),
        };
        if let Some(offer) = offer {
            let sides: Vec<Side<'_>> = event.parts.iter().map(Part::side).collect();
            let outcome = locked.serve(offer, key.family, event.kinds, &event.heads, Ends::Sides(&sides));
            hub.counted.by_originator.fetch_add(1, Ordering::Relaxed);
            locked.count(offer, me, self.by.members.rank().0, &outcome);
            if let Err(found) = outcome {
                issued.faults.push((key.family, target, found));
            }
            return Ok(());
        }
        drop(locked);
        if is_ready {
            let note = format!("no offer was open that serves it, so nothing was written; {key}");
            let error = self.by.error(ErrorKind::NotOffered, call.name).target(target);
            return Err(error.note(note).called_at(call.location));
        }
        let (taken, given) = event.heads.lengths();
        let data_bytes = taken.saturating_add(given);
        event.is_eager =
            data_bytes <= EAGER_MAX_BYTES && issued.waiting_bytes + data_bytes <= EAGER_SUM_MAX_BYTES;
        let (taken, given) = if event.is_eager { (taken, given) } else { (0, 0) };
        let parts = event.heads.encode();
        let bytes = node_bytes(parts.len(), taken, given);
        let block = hub.take_node(bytes, call.name)?;
        let offset = block.offset();
        let node = hub.event(offset);
        write_key(&node.key, key, event.round);
        let set = |word: &AtomicU32, value: u32| word.store(value, Ordering::Relaxed);
        let set_long = |word: &AtomicU64, value: usize| word.store(value as u64, Ordering::Relaxed);
        set(&node.done, 0);
        set(&node.kinds, event.kinds);
        set(&node.data, if event.is_eager { DATA_HERE } else { DATA_AWAY });
        set(&node.originator, me);
        set(&node.thread, thread);
        set(&node.member, self.by.members.rank().0);
        set(&node.fault.code, 0);
        node.lane.store(lane, Ordering::Relaxed);
        set_long(&node.parts_bytes, parts.len());
        set_long(&node.in_bytes, taken);
        set_long(&node.out_bytes, given);
        let words = parts.len().div_ceil(8);
        bytes::store(hub.segment.shared_slice(offset + size_of::<EventNode>() as u64, words), &parts);
        if event.is_eager {
            issued.waiting_bytes += data_bytes;
            hub.counted.staged.fetch_add(1, Ordering::Relaxed);
            event.fill(hub, node_place(&hub.segment, offset, node));
        }
        event.at = At::Store { block, bytes };
        let queue = issued.queue(call.family, target, thread);
        let locked = hub.lock(self.by.context, job_rank, call.name, call.location)?;
        let is_behind = locked.is_behind(key, me, thread);
        let bucket = locked.bucket(key);
        hub.append(&bucket.events, offset);
        queue.events.push_back(event);
        // An offer may have opened meanwhile. Behind an own event there is nothing to serve yet, and the list may be long; what has
        // opened is looked at later then.
        if !is_behind {
            queue.seen = bucket.opened.load(Ordering::Relaxed);
            queue.settle(hub, &locked, key);
        }
        drop(locked);
        // A direct offer of the target has to come to the store.
        hub.wake(job_rank);
        Ok(())
    }
}

impl Own for Scope<'_, '_> {
    fn advance(
        &self,
        key: &Key,
        before: u64,
        call: &'static str,
        location: &'static Location<'static>,
    ) -> Result<bool> {
        let hub = self.by.hub;
        if !self.has(EVENTS) {
            return Ok(true);
        }
        let mut issued = self.issued();
        let mut is_done = true;
        if key.family == Family::Plain && !issued.posts.is_empty() {
            self.advance_posts(&mut issued, key, call, location)?;
            is_done = issued.posts.is_empty();
        }
        let Issued { queues, faults, waiting_bytes, .. } = &mut *issued;
        for queue in queues.iter_mut().filter(|queue| queue.family == key.family) {
            let job_rank = self.by.members.job_rank(queue.target);
            if !self.by.context.shares_memory(job_rank) {
                self.advance_far(queue, key, call, location, faults)?;
                is_done &= queue.events.front().is_none_or(|event| before <= event.round);
                continue;
            }
            queue.take_done(hub, faults, waiting_bytes);
            let Some(first) = queue.events.front() else { continue };
            if before <= first.round {
                continue;
            }
            // Acquire: pairs with the Release of whoever opens an offer.
            let opened = hub.store(job_rank.0, call)?.buckets[key.bucket()].opened.load(Ordering::Acquire);
            if opened != queue.seen {
                let locked = hub.lock(self.by.context, job_rank.0, call, location)?;
                queue.seen = locked.bucket(key).opened.load(Ordering::Relaxed);
                queue.settle(hub, &locked, key);
                drop(locked);
                queue.take_done(hub, faults, waiting_bytes);
            }
            is_done &= queue.events.front().is_none_or(|event| before <= event.round);
        }
        Ok(is_done)
    }

    fn far(&self, key: &Key) -> Vec<u32> {
        let issued = self.issued();
        let queues =
            issued.queues.iter().filter(|queue| queue.family == key.family && !queue.events.is_empty());
        self.by.hub.far_ranks(&self.by, queues.map(|queue| queue.target))
    }

    fn waits_for(&self, family: Family, rank: Rank, is_over: bool) -> bool {
        let hub = &self.by.hub;
        let is_near = self.by.context.shares_memory(self.by.members.job_rank(rank));
        let issued = self.issued();
        if family == Family::Plain {
            let is_served = |post: &Post<'_>| post.is_served(hub);
            let mut posts = issued.posts.iter().filter(|post| post.target == rank);
            if posts.any(|post| !is_over || !is_served(post)) {
                return true;
            }
        }
        let mut queues = issued
            .queues
            .iter()
            .filter(|queue| queue.family == family && queue.target == rank && !queue.events.is_empty());
        match (is_over, is_near) {
            (false, _) => queues.next().is_some(),
            (true, true) => queues.any(|queue| !queue.is_done(hub)),
            (true, false) => queues.any(|queue| queue.far.is_over),
        }
    }

    fn take_fault(
        &self,
        key: &Key,
        call: &'static str,
        location: &'static Location<'static>,
    ) -> Option<Error> {
        if !self.has(FAULTS) {
            return None;
        }
        let mut issued = self.issued();
        let at = issued.faults.iter().position(|(family, ..)| *family == key.family)?;
        let (_, target, found) = issued.faults.remove(at);
        issued.faults.retain(|(family, ..)| *family != key.family);
        let error = |kind| self.by.error(kind, call).target(target).other("an own event").called_at(location);
        Some(fault_error(error, &found, key))
    }
}

// The end.
impl Scope<'_, '_> {
    /// Waits for all events that are not served.
    pub(super) fn end(&self, location: &'static Location<'static>) -> Result<()> {
        const CALL: &str = "end of scope";
        if !self.has(EVENTS | FAULTS | CHAINS) {
            return Ok(());
        }
        for family in Family::ALL {
            self.refuse_dangling(family, CALL, location)?;
            let key = self.key(family);
            // What no round has counted never will be served.
            let before = match family {
                Family::Collective => {
                    self.by.hub.rounds().get(&(key.team, key.tag)).map_or(0, |rounds| rounds.now())
                }
                Family::Plain | Family::Progressive => u64::MAX,
            };
            let has_any = {
                let issued = self.issued();
                (family == Family::Plain && !issued.posts.is_empty())
                    || issued.queues.iter().any(|queue| queue.family == family && !queue.events.is_empty())
            };
            if has_any {
                let segment = self.by.context.segment();
                let needed = |rank: Rank| {
                    let end = liveness::evidence(segment, self.by.members.job_rank(rank).0);
                    self.waits_for(family, rank, is_end_in_order(end))
                };
                wait(&self.by, CALL, &key, (&needed, &|| self.far(&key)), location, &mut || {
                    Ok(self.advance(&key, before, CALL, location)?.then_some(()))
                })?;
            }
            if let Some(fault) = self.take_fault(&key, CALL, location) {
                return Err(fault);
            }
            let issued = self.issued();
            let left = issued.queues.iter().find(|queue| queue.family == family && !queue.events.is_empty());
            if let Some(queue) = left {
                let note = format!(
                    "{} events of the collective family were issued that no offerc completes; {key}",
                    queue.events.len()
                );
                let error = self.by.error(ErrorKind::EpochStillOpen, CALL).target(queue.target);
                return Err(error.note(note).called_at(location));
            }
        }
        Ok(())
    }

    /// Takes all events back that are not served.
    pub(super) fn take_back(&self) {
        const CALL: &str = "taking events back";
        let hub = self.by.hub;
        if !self.has(EVENTS | CHAINS) {
            return;
        }
        let mut issued = self.issued();
        issued.open.clear();
        // The last ones first: none may be served that an earlier one was taken from.
        for mut queue in std::mem::take(&mut issued.queues) {
            if queue.events.is_empty() {
                continue;
            }
            let key = self.key(queue.family);
            let job_rank = self.by.members.job_rank(queue.target);
            if !self.by.context.shares_memory(job_rank) {
                self.take_far_back(&mut queue);
                continue;
            }
            let locked = hub.lock_to_clean(self.by.context, job_rank.0, CALL, Location::caller());
            for event in queue.events.drain(..) {
                let At::Store { block, .. } = event.at else { continue };
                match &locked {
                    Ok(locked) => {
                        let node = hub.event(block.offset());
                        match (node.done.load(Ordering::Relaxed), queue.family) {
                            (0, Family::Collective) => {
                                blank(hub, node, block.offset());
                                hub.keep_until_taken(block);
                            }
                            (0, _) => hub.unlink(&locked.bucket(&key).events, block.offset()),
                            _ => {}
                        }
                    }
                    // Whoever holds the lock may still serve it.
                    Err(_) => block.leave_behind(),
                }
            }
            // The round may be open already, and nobody but its originator could serve what is blank now.
            if let (Ok(locked), Family::Collective) = (&locked, queue.family) {
                locked.settle(&key, Role::Target, &mut |_, _| None);
            }
        }
        self.take_posts_back(&mut issued);
    }
}

/// Makes a waiting event move nothing. Its round counts it, so it has to be served.
fn blank(hub: &Hub, node: &EventNode, offset: u64) {
    let parts = Heads::BLANK.encode();
    let words = parts.len().div_ceil(8);
    bytes::store(hub.segment.shared_slice(offset + size_of::<EventNode>() as u64, words), &parts);
    node.parts_bytes.store(parts.len() as u64, Ordering::Relaxed);
    node.in_bytes.store(0, Ordering::Relaxed);
    node.out_bytes.store(0, Ordering::Relaxed);
    node.kinds.store(0, Ordering::Relaxed);
    node.data.store(DATA_HERE, Ordering::Relaxed);
}

/// What is wrong where an event has promised an offer.
pub(super) const NOT_OFFERED: Found = Found { fault: Fault::NotOffered, start: 0, end: 0, bytes: 0 };
