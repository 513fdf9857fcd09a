//! The events of a scope that wait, in queues by target and thread, and what is done with a queue. Never chooses an offer.
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::thread::{self, ThreadId};

thread_local! {
    /// Asked for once per thread, as the system's answer takes longer than a put.
    static OWN: ThreadId = thread::current().id();
}

use super::event::{Family, Found, Heads, Key, Layout, Way};
use super::hub::{Hub, Locked, Met, Role, noted};
use super::posts::Posts;
use super::raw::{Ends, Place, Side, node_place};
use super::source::Part;
use super::wired::{Far, Sent};
use crate::rank::Rank;
use crate::transport::shm::arena::Block;

pub(super) struct Issued<'scope> {
    /// The first thread that has issued something, and the others.
    first: Option<ThreadId>,
    others: Vec<ThreadId>,
    /// What is on its way in lanes. Whatever waits in queues of the same target and thread comes after it.
    pub(super) posts: Posts<'scope>,
    pub(super) open: Vec<OpenChain<'scope>>,
    pub(super) queues: Vec<Queue<'scope>>,
    pub(super) faults: Vec<(Family, Rank, Found)>,
    /// Bytes of data that wait with their events.
    pub(super) waiting_bytes: usize,
}

/// Parts that will be one event.
pub(super) struct OpenChain<'scope> {
    pub(super) family: Family,
    pub(super) target: Rank,
    pub(super) thread: u32,
    pub(super) is_mixed: bool,
    pub(super) parts: Vec<Part<'scope>>,
    pub(super) mismatched: bool,
}

/// The events of a thread that wait for one target, in their order.
pub(super) struct Queue<'scope> {
    pub(super) family: Family,
    pub(super) target: Rank,
    pub(super) thread: u32,
    pub(super) events: VecDeque<Waiting<'scope>>,
    /// How many offers had opened at the target's store at the last look.
    pub(super) seen: u64,
    pub(super) far: Far,
    pub(super) far_faults: Vec<(Family, Rank, Found)>,
}

/// No count of offers: the next look is a new one in any case.
pub(super) const LOOK_AGAIN: u64 = u64::MAX;

/// An event that waits.
pub(super) struct Waiting<'scope> {
    pub(super) round: u64,
    pub(super) kinds: u32,
    pub(super) heads: Heads,
    pub(super) parts: Vec<Part<'scope>>,
    /// The data wait with it.
    pub(super) is_eager: bool,
    pub(super) at: At,
    pub(super) sent: Sent,
}

/// Where an event waits.
pub(super) enum At {
    /// In the target's store.
    Store { block: Block, bytes: usize },
    /// At a rank that shares no memory, or on its way there.
    Far,
}

impl<'scope> Waiting<'scope> {
    pub(super) fn new(round: u64, heads: Heads, parts: Vec<Part<'scope>>) -> Waiting<'scope> {
        let kinds = heads.events().bits();
        Waiting { round, kinds, heads, parts, is_eager: false, at: At::Far, sent: Sent::default() }
    }

    /// Copies what the puts bring behind the event.
    pub(super) fn fill(&self, hub: &Hub, ends: (Place<'_>, Place<'_>)) {
        let mut at = 0;
        for part in self.parts.iter().filter(|part| part.head.way == Way::Put) {
            let row = Layout::Bytes(part.layout.size());
            Layout::pair((&row, at), (&part.layout, 0), |to, from, len| {
                ends.0.take(hub.engine, to, &part.place, from, len);
            });
            at += part.layout.size();
        }
    }

    /// Copies what the gets have brought from behind the event.
    pub(super) fn empty(&self, hub: &Hub, ends: (Place<'_>, Place<'_>)) {
        let mut at = 0;
        for part in self.parts.iter().filter(|part| part.head.way == Way::Get) {
            let row = Layout::Bytes(part.layout.size());
            Layout::pair((&part.layout, 0), (&row, at), |to, from, len| {
                part.place.take(hub.engine, to, &ends.1, from, len);
            });
            at += part.layout.size();
        }
    }
}

/// What may be left of what a scope has issued: events that wait, faults that nobody was told of, chains that are open.
pub(super) const EVENTS: u32 = 1;
pub(super) const FAULTS: u32 = 2;
pub(super) const CHAINS: u32 = 4;

impl<'scope> Issued<'scope> {
    /// Nothing. Inline, so that a scope is made where it stays.
    #[inline(always)]
    pub(super) const fn new() -> Issued<'scope> {
        Issued {
            first: None,
            others: Vec::new(),
            posts: Posts::new(),
            open: Vec::new(),
            queues: Vec::new(),
            faults: Vec::new(),
            waiting_bytes: 0,
        }
    }

    #[inline]
    pub(super) fn left(&self) -> u32 {
        let waits = !self.posts.is_empty() || self.queues.iter().any(|queue| !queue.events.is_empty());
        let kinds = [(waits, EVENTS), (!self.faults.is_empty(), FAULTS), (!self.open.is_empty(), CHAINS)];
        kinds.into_iter().filter(|(is_left, _)| *is_left).fold(0, |all, (_, kind)| all | kind)
    }

    /// The number of the calling thread.
    pub(super) fn thread(&mut self) -> u32 {
        let own = OWN.with(|own| *own);
        match self.first {
            Some(first) if first == own => return 0,
            None => {
                self.first = Some(own);
                return 0;
            }
            Some(_) => {}
        }
        let at = self.others.iter().position(|&known| known == own).unwrap_or_else(|| {
            self.others.push(own);
            self.others.len() - 1
        });
        at as u32 + 1
    }

    pub(super) fn queue(&mut self, family: Family, target: Rank, thread: u32) -> &mut Queue<'scope> {
        let is_same =
            |queue: &Queue<'_>| (queue.family, queue.target, queue.thread) == (family, target, thread);
        let at = self.queues.iter().position(is_same).unwrap_or_else(|| {
            let far = Far::default();
            self.queues.push(Queue {
                family,
                target,
                thread,
                events: VecDeque::new(),
                seen: 0,
                far,
                far_faults: Vec::new(),
            });
            self.queues.len() - 1
        });
        &mut self.queues[at]
    }
}

impl Queue<'_> {
    /// Serves events of the queue whose offers are open.
    pub(super) fn settle(&mut self, hub: &Hub, locked: &Locked<'_>, key: &Key) {
        // Both lists have the same order, but what the target has served is in this one only.
        let waits = |event: &&Waiting<'_>| {
            event.offset().is_some_and(|offset| hub.event(offset).done.load(Ordering::Relaxed) == 0)
        };
        let mut next = self.events.iter().filter(waits).peekable();
        let family = self.family;
        locked.settle(key, Role::Originator, &mut |at, offer| {
            let event = next.next_if(|event| event.offset() == Some(at))?;
            let outcome = match event.is_eager {
                true => {
                    let (row, room) = node_place(&hub.segment, at, hub.event(at));
                    locked.serve(offer, family, event.kinds, &event.heads, Ends::Rows(row, room))
                }
                false => {
                    let sides: Vec<Side<'_>> = event.parts.iter().map(Part::side).collect();
                    locked.serve(offer, family, event.kinds, &event.heads, Ends::Sides(&sides))
                }
            };
            Some(Met::Served(outcome))
        });
    }
}

impl Waiting<'_> {
    pub(super) fn offset(&self) -> Option<u64> {
        match &self.at {
            At::Store { block, .. } => Some(block.offset()),
            At::Far => None,
        }
    }
}

impl Queue<'_> {
    /// Whether all events are done that wait in a store.
    pub(super) fn is_done(&self, hub: &Hub) -> bool {
        // Acquire: pairs with the Release of whoever has served an event.
        let is_done = |offset| hub.event(offset).done.load(Ordering::Acquire) != 0;
        self.events.iter().filter_map(Waiting::offset).all(is_done)
    }

    /// Takes the first events that are done.
    pub(super) fn take_done(
        &mut self,
        hub: &Hub,
        faults: &mut Vec<(Family, Rank, Found)>,
        waiting_bytes: &mut usize,
    ) {
        while let Some(offset) = self.events.front().and_then(Waiting::offset) {
            let node = hub.event(offset);
            // Acquire: pairs with the Release of whoever has served it.
            if node.done.load(Ordering::Acquire) == 0 {
                return;
            }
            let Some(event) = self.events.pop_front() else { return };
            match noted(&node.fault) {
                Some((found, _)) => faults.push((self.family, self.target, found)),
                None if event.is_eager => event.empty(hub, node_place(&hub.segment, offset, node)),
                None => {}
            }
            if event.is_eager {
                let (taken, given) = event.heads.lengths();
                *waiting_bytes -= taken + given;
            }
            if let At::Store { block, bytes } = event.at {
                hub.give_node(bytes, block);
            }
        }
    }
}
