//! The rounds of the collective family: how many events of a round come to each rank. Never moves their data.
//!
//! Each member knows how many events it has issued to each other one. These vectors are summed along a tree of all members (the
//! parent of a rank is the rank without its lowest one bit), and the sums are told back along it. So a round costs a rank at most
//! two messages per level, and nobody waits for the tree but in a completing call. The cut between two rounds is the call that
//! begins one, which sends what the rank can say at that time.
#![forbid(unsafe_code)]

use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};

use super::event::Key;
use super::hub::{COUNTS_KIND, Hub, matches, write_key};
use super::standing::Caller;
use crate::error::Result;
use crate::rank::Rank;
use crate::transport::shm::arena::Block;
use crate::transport::shm::bytes;
use crate::transport::shm::offers::EventNode;
use crate::transport::tcp::frame::{Body, Malformed};

/// The rounds of one team and tag at this rank.
#[derive(Default)]
pub(super) struct Rounds {
    /// The round that events belong to which are issued now.
    next: u64,
    /// How many of those there are, by target.
    issued: Vec<u64>,
    active: Vec<Round>,
    mail: Vec<Tally>,
    /// How much of the store's mail was taken.
    seen: u64,
}

struct Round {
    number: u64,
    sums: Vec<u64>,
    /// Children that have not said their sums.
    missing: Vec<u32>,
    is_sent: bool,
    total: Option<u64>,
}

/// A message about counts: sums on their way up, or down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tally {
    round: u64,
    from: u32,
    way: Way,
    sums: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

impl Tally {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16 + 8 * self.sums.len());
        out.extend_from_slice(&self.round.to_le_bytes());
        out.extend_from_slice(&self.from.to_le_bytes());
        out.extend_from_slice(&u32::from(self.way == Way::Down).to_le_bytes());
        self.sums.iter().for_each(|sum| out.extend_from_slice(&sum.to_le_bytes()));
        out
    }

    pub(super) fn decode(body: &mut Body<'_>) -> Result<Tally, Malformed> {
        let (round, from) = (body.u64()?, body.u32()?);
        let way = if body.u32()? == 0 { Way::Up } else { Way::Down };
        let mut sums = Vec::new();
        while !body.is_empty() {
            sums.push(body.u64()?);
        }
        Ok(Tally { round, from, way, sums })
    }
}

fn parent(rank: u32) -> u32 {
    rank & rank.wrapping_sub(1)
}

fn children(rank: u32, size: u32) -> impl Iterator<Item = u32> {
    let below = if rank == 0 { u32::BITS } else { rank.trailing_zeros() };
    (0..below.min(31)).map(move |bit| rank | 1 << bit).take_while(move |&child| child < size)
}

impl Rounds {
    /// The round that events belong to which are issued now.
    pub(super) fn now(&self) -> u64 {
        self.next
    }

    pub(super) fn count(&mut self, target: Rank, size: u32) {
        self.issued.resize(size as usize, 0);
        self.issued[target.index()] += 1;
    }

    /// Takes back that an event was counted, if its round has not begun, which would have told of it.
    pub(super) fn uncount(&mut self, target: Rank, round: u64) {
        if round == self.next
            && let Some(count) = self.issued.get_mut(target.index())
        {
            *count -= 1;
        }
    }

    pub(super) fn deliver(&mut self, tally: Tally) {
        self.mail.push(tally);
    }

    /// Does what the arrived messages make possible, and gives those that are to be sent.
    fn advance(&mut self, me: u32, size: u32) -> Vec<(u32, Tally)> {
        let mut send = Vec::new();
        for round in &mut self.active {
            let mut told = None;
            self.mail.retain(|tally| {
                if tally.round != round.number || tally.sums.len() != size as usize {
                    return tally.round != round.number;
                }
                match tally.way {
                    Way::Up => {
                        if let Some(at) = round.missing.iter().position(|&child| child == tally.from) {
                            round.missing.swap_remove(at);
                            round.sums.iter_mut().zip(&tally.sums).for_each(|(sum, more)| *sum += more);
                        }
                    }
                    Way::Down => told = Some(tally.sums.clone()),
                }
                false
            });
            if round.missing.is_empty() && !round.is_sent {
                round.is_sent = true;
                match me {
                    0 => told = Some(round.sums.clone()),
                    _ => {
                        let sums = std::mem::take(&mut round.sums);
                        send.push((parent(me), Tally { round: round.number, from: me, way: Way::Up, sums }));
                    }
                }
            }
            if let Some(sums) = told
                && round.total.is_none()
            {
                round.total = Some(sums[me as usize]);
                for child in children(me, size) {
                    let tally = Tally { round: round.number, from: me, way: Way::Down, sums: sums.clone() };
                    send.push((child, tally));
                }
            }
        }
        send
    }
}

impl Hub {
    /// Begins the next round of a key, and says what this rank can say of its counts.
    pub(super) fn begin_round(
        &self,
        by: &Caller<'_>,
        key: &Key,
        call: &'static str,
        location: &'static Location<'static>,
    ) -> Result<u64> {
        let (me, size) = (by.members.rank().0, by.members.size());
        let number = {
            let mut all = self.rounds();
            let rounds = all.entry((key.team, key.tag)).or_default();
            rounds.issued.resize(size as usize, 0);
            let sums = std::mem::replace(&mut rounds.issued, vec![0; size as usize]);
            let number = rounds.next;
            rounds.next += 1;
            let missing = children(me, size).collect();
            rounds.active.push(Round { number, sums, missing, is_sent: false, total: None });
            number
        };
        self.advance_rounds(by, key, call, location)?;
        Ok(number)
    }

    /// How many events of a round come to this rank, once that is known.
    pub(super) fn total(&self, key: &Key, number: u64) -> Option<u64> {
        let all = self.rounds();
        let rounds = all.get(&(key.team, key.tag))?;
        rounds.active.iter().find(|round| round.number == number)?.total
    }

    /// Whether a member that has ended has not said what this rank needs of it for a round.
    pub(super) fn lacks(&self, by: &Caller<'_>, key: &Key, number: u64, member: Rank) -> bool {
        let all = self.rounds();
        let Some(rounds) = all.get(&(key.team, key.tag)) else { return false };
        // Acquire: pairs with the Release of the sender.
        let arrived = self
            .store(self.me, "offerc")
            .map(|store| store.buckets[key.bucket()].mail.load(Ordering::Acquire));
        let is_unread = arrived.is_ok_and(|arrived| arrived != rounds.seen);
        let is_unheard = rounds.mail.iter().any(|tally| tally.round == number);
        if is_unread || is_unheard {
            return false;
        }
        rounds.active.iter().any(|round| {
            let is_parent = by.members.rank() != Rank(0) && member.0 == parent(by.members.rank().0);
            round.number == number
                && round.total.is_none()
                && (round.missing.contains(&member.0) || (is_parent && round.is_sent))
        })
    }

    /// Forgets a round that is complete.
    pub(super) fn end_round(&self, key: &Key, number: u64) {
        if let Some(rounds) = self.rounds().get_mut(&(key.team, key.tag)) {
            // Until its total is known it has to be told on.
            rounds.active.retain(|round| round.number != number || round.total.is_none());
        }
    }

    /// Takes the messages that have arrived, and sends those that follow from them.
    pub(super) fn advance_rounds(
        &self,
        by: &Caller<'_>,
        key: &Key,
        call: &'static str,
        location: &'static Location<'static>,
    ) -> Result<()> {
        self.take_mail(by, key, call, location)?;
        let send = match self.rounds().get_mut(&(key.team, key.tag)) {
            Some(rounds) => rounds.advance(by.members.rank().0, by.members.size()),
            None => Vec::new(),
        };
        for (to, tally) in send {
            self.counted.messages.fetch_add(1, Ordering::Relaxed);
            self.send_tally(by, key, Rank(to), &tally, call, location)?;
        }
        Ok(())
    }

    /// Takes the messages out of the own store, without a look at the lock if none has come.
    fn take_mail(
        &self,
        by: &Caller<'_>,
        key: &Key,
        call: &'static str,
        location: &'static Location<'static>,
    ) -> Result<()> {
        let store = self.store(self.me, call)?;
        // Acquire: pairs with the Release of the sender.
        let arrived = store.buckets[key.bucket()].mail.load(Ordering::Acquire);
        let is_seen = |rounds: &Rounds| rounds.seen == arrived;
        if self.rounds().get(&(key.team, key.tag)).is_some_and(is_seen) {
            return Ok(());
        }
        let locked = self.lock(by.context, self.me, call, location)?;
        let bucket = locked.bucket(key);
        let mut all = self.rounds();
        let rounds = all.entry((key.team, key.tag)).or_default();
        rounds.seen = bucket.mail.load(Ordering::Relaxed);
        for at in self.walk(&bucket.events) {
            let node = self.event(at);
            if node.kinds.load(Ordering::Relaxed) != COUNTS_KIND || !matches(&node.key, key) {
                continue;
            }
            if let Ok(tally) = Tally::decode(&mut Body::new(&self.behind(at, node))) {
                rounds.deliver(tally);
            }
            self.unlink(&bucket.events, at);
            node.done.store(1, Ordering::Release); // Release: pairs with the Acquire in `take_node`; it is the sender's again.
        }
        Ok(())
    }

    fn send_tally(
        &self,
        by: &Caller<'_>,
        key: &Key,
        to: Rank,
        tally: &Tally,
        call: &'static str,
        location: &'static Location<'static>,
    ) -> Result<()> {
        let job_rank = by.members.job_rank(to);
        if !by.context.shares_memory(job_rank) {
            return self.send_tally_far(by, key, to, tally, call, location);
        }
        let message = tally.encode();
        let block = self.take_node(size_of::<EventNode>() + message.len().next_multiple_of(8), call)?;
        let offset = block.offset();
        let node = self.event(offset);
        write_key(&node.key, key, tally.round);
        node.done.store(0, Ordering::Relaxed);
        node.kinds.store(COUNTS_KIND, Ordering::Relaxed);
        node.parts_bytes.store(message.len() as u64, Ordering::Relaxed);
        let words = message.len().div_ceil(8);
        bytes::store(
            self.segment.shared_slice::<AtomicU64>(offset + size_of::<EventNode>() as u64, words),
            &message,
        );
        let locked = self.lock(by.context, job_rank.0, call, location)?;
        let bucket = locked.bucket(key);
        self.append(&bucket.events, offset);
        bucket.mail.fetch_add(1, Ordering::Release); // Release: pairs with the Acquire in `take_mail`.
        drop(locked);
        self.keep_until_taken(block);
        self.wake(job_rank.0);
        Ok(())
    }
}

/// Blocks for nodes: those that nobody uses, by size, and those of messages on their way.
#[derive(Default)]
pub(super) struct Nodes {
    spare: Vec<(usize, Block)>,
    sent: Vec<Block>,
}

/// Blocks that are kept for nodes to come.
const SPARE_MAX: usize = 256;
/// Nodes are of sizes that are multiples of this.
const NODE_GRAIN_BYTES: usize = 128;

fn grained(bytes: usize) -> usize {
    bytes.next_multiple_of(NODE_GRAIN_BYTES)
}

impl Hub {
    /// Takes memory for a node. What is in it is whatever the last user left.
    pub(super) fn take_node(&self, bytes: usize, call: &'static str) -> Result<Block> {
        let bytes = grained(bytes);
        let mut nodes = self.nodes();
        let Nodes { spare, sent } = &mut *nodes;
        let mut at = 0;
        while at < sent.len() {
            // Acquire: pairs with the Release of whoever has taken the message.
            match self.event(sent[at].offset()).done.load(Ordering::Acquire) {
                0 => at += 1,
                _ => {
                    let block = sent.swap_remove(at);
                    let parts = self.event(block.offset()).parts_bytes.load(Ordering::Relaxed) as usize;
                    spare.push((grained(size_of::<EventNode>() + parts.next_multiple_of(8)), block));
                }
            }
        }
        if let Some(at) = spare.iter().rposition(|&(size, _)| size == bytes) {
            return Ok(spare.swap_remove(at).1);
        }
        drop(nodes);
        self.counted.blocks.fetch_add(1, Ordering::Relaxed);
        self.arena.allocate(bytes, call)
    }

    /// Takes a node back that is in no list.
    pub(super) fn give_node(&self, bytes: usize, block: Block) {
        let mut nodes = self.nodes();
        if nodes.spare.len() < SPARE_MAX {
            nodes.spare.push((grained(bytes), block));
        }
    }

    /// Keeps a node that is in the list of another rank until that is done with it.
    pub(super) fn keep_until_taken(&self, block: Block) {
        self.nodes().sent.push(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_one_parent_that_knows_it() {
        for size in 1..40 {
            for rank in 1..size {
                assert!(children(parent(rank), size).any(|child| child == rank), "{rank} of {size}");
            }
            let all: usize = (0..size).map(|rank| children(rank, size).count()).sum();
            assert_eq!(all as u32, size - 1);
        }
    }

    #[test]
    fn sums_come_to_everybody() {
        const SIZE: u32 = 7;
        let count = |from: u32, to: usize| u64::from(from) * 10 + to as u64;
        let mut all: Vec<Rounds> = (0..SIZE)
            .map(|me| {
                let sums = (0..SIZE as usize).map(|to| count(me, to)).collect();
                let missing = children(me, SIZE).collect();
                let round = Round { number: 0, sums, missing, is_sent: false, total: None };
                Rounds { active: vec![round], ..Rounds::default() }
            })
            .collect();
        for _ in 0..10 {
            for me in 0..SIZE {
                for (to, tally) in all[me as usize].advance(me, SIZE) {
                    let back = Tally::decode(&mut Body::new(&tally.encode()));
                    all[to as usize].deliver(back.expect("well formed"));
                }
            }
        }
        for (me, rounds) in all.iter().enumerate() {
            let expected: u64 = (0..SIZE).map(|from| count(from, me)).sum();
            assert_eq!(rounds.active[0].total, Some(expected));
        }
    }

    #[test]
    fn levels_are_few() {
        for size in [2, 8, 100, 1024] {
            let most = (0..size).map(|rank| children(rank, size).count()).max().unwrap_or(0);
            assert!(most <= size.next_power_of_two().trailing_zeros() as usize);
        }
    }
}
