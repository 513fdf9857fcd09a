//! Collective calls of a team. Never keeps a reference into shared memory between two calls.
//!
//! Every call is a sequence of rounds. In a round each member writes what it brings to its own slot, all meet at the
//! barrier, and then read each other's slots. Two sets of slots alternate, so that one barrier per round is enough:
//! whoever writes a slot again has passed the barrier of the round between, which the readers came to after reading.

use std::sync::atomic::{AtomicU64, Ordering};

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Ground, Members, Rank, Team};
use crate::element::{Basic, Operation};
use crate::error::{Error, ErrorKind, Result};
use crate::liveness::WaitFor;
use crate::sync::barrier::{Arrival, Cause, Outcome};
use crate::transport::shm::bytes::{self, load_name};
use crate::transport::shm::layout::{NAME_BYTES, Slot, TeamBlock};
use crate::transport::shm::segment::Segment;

/// Bytes that one member brings per round, in a team of few members; larger teams have smaller chunks.
const CHUNK_MAX_BYTES: usize = 16 << 10;
/// The smallest chunk: below it, rounds cost more than they move.
const CHUNK_MIN_BYTES: usize = 1 << 10;
/// What the data of one set of slots should not exceed.
const CHUNKS_TARGET_BYTES: usize = 128 << 10;
/// Two sets of slots, used in turns.
const SETS: usize = 2;

/// How long a call that others have broken off looks for the different call itself.
const MISMATCH_GRACE: Duration = Duration::from_millis(200);

/// Where the shared parts of a team lie.
#[derive(Clone, Copy)]
pub(super) struct Place {
    offset: u64,
    size: u32,
    chunk_bytes: usize,
}

impl Place {
    pub(super) fn new(offset: u64, size: u32) -> Place {
        let share = CHUNKS_TARGET_BYTES / size as usize;
        Place { offset, size, chunk_bytes: (share & !7).clamp(CHUNK_MIN_BYTES, CHUNK_MAX_BYTES) }
    }

    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes of the block of a team with this many members.
    pub(super) fn bytes(size: u32) -> usize {
        let place = Place::new(0, size);
        size_of::<TeamBlock>() + SETS * size as usize * (size_of::<Slot>() + place.chunk_bytes)
    }

    fn block<'a>(&self, segment: &'a Segment) -> &'a TeamBlock {
        segment.shared(self.offset)
    }

    fn slot<'a>(&self, segment: &'a Segment, set: usize, rank: Rank) -> &'a Slot {
        let index = set * self.size as usize + rank.index();
        segment.shared(self.offset + (size_of::<TeamBlock>() + index * size_of::<Slot>()) as u64)
    }

    fn data<'a>(&self, segment: &'a Segment, set: usize, rank: Rank) -> &'a [AtomicU64] {
        let slots = SETS * self.size as usize * size_of::<Slot>();
        let index = set * self.size as usize + rank.index();
        let start = self.offset + (size_of::<TeamBlock>() + slots + index * self.chunk_bytes) as u64;
        segment.shared_slice(start, self.chunk_bytes / 8)
    }
}

/// Makes the block of the job's team at the creation of the segment.
pub(crate) fn create_root(segment: &Segment) -> Result<()> {
    let bytes = (Place::bytes(segment.size()) as u64).next_multiple_of(4096);
    let offset = segment
        .grow(bytes.next_multiple_of(crate::sys::memory::page_bytes()), "creation of the job's team")?;
    // Release: pairs with the Acquire in `Team::root`.
    segment.header().root_block.store(offset, Ordering::Release);
    Ok(())
}

/// A collective call and what all members must share: its name, an argument, and what the signature adds.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) name: &'static str,
    words: [u64; NAME_BYTES / 8],
    /// The root, or the operation: shown in messages.
    pub(super) argument: u64,
    /// The sum of signatures tells whether all members came for the same call.
    pub(super) signature: u64,
}

impl Call {
    pub(super) const fn new(name: &'static str) -> Call {
        // FNV-1a: names are few and short, and a sum of different signatures must not look like a multiple of one.
        let mut signature = 0xcbf2_9ce4_8422_2325_u64;
        let mut words = [0; NAME_BYTES / 8];
        let bytes = name.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            signature = mix(signature, bytes[at] as u64);
            if at < NAME_BYTES {
                words[at / 8] |= (bytes[at] as u64) << (8 * (at % 8));
            }
            at += 1;
        }
        Call { name, words, argument: 0, signature }
    }

    /// The call with an argument that members must share and that messages show.
    const fn argument(self, argument: u64) -> Call {
        Call { argument, signature: mix(self.signature, argument), ..self }
    }

    /// The call with something else that members must share.
    const fn sharing(self, value: u64) -> Call {
        Call { signature: mix(self.signature, value), ..self }
    }
}

const fn mix(hash: u64, value: u64) -> u64 {
    let mixed = (hash ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

impl Team {
    /// Waits until all members have come. Has no effect on windows (RMA-BAR-04); [`rma_barrier`](Team::rma_barrier) has.
    ///
    /// Budget: two read-modify-writes of one cache line for the last member, one for the others.
    ///
    /// # Errors
    /// `PeerLost` if a member has died, failed or left; `Stalled` on the time limit; `CollectiveMismatch` if a member
    /// came to another collective call; `Poisoned` after an earlier error of the team.
    #[track_caller]
    pub fn barrier(&self) -> Result<()> {
        const CALL: Call = Call::new("barrier");
        self.meet(CALL, 0)
    }

    /// Gives the root's elements to all members. The buffers must have the same length at all members.
    ///
    /// # Errors
    /// `RankOutOfRange` for a root that is not in the team; otherwise as [`barrier`](Team::barrier), where buffers of
    /// different lengths or types are a `CollectiveMismatch`.
    #[track_caller]
    pub fn broadcast<T: Basic>(&self, root: Rank, buffer: &mut [T]) -> Result<()> {
        const CALL: Call = Call::new("broadcast");
        self.check_rank(CALL.name, root)?;
        let call = CALL.argument(root.0.into()).sharing(T::TYPE as u64).sharing(buffer.len() as u64);
        let is_root = self.rank() == root;
        // Both closures need the buffer, one after the other: the root only reads it, the others only write it.
        let shared = Cell::from_mut(buffer).as_slice_of_cells();
        self.exchange(
            call,
            (shared.len(), size_of::<T>()),
            |words, items| {
                if is_root {
                    bytes::store_elements(words, shared[items].iter().map(Cell::get));
                }
            },
            |rank, words, items, _| {
                if rank == root && !is_root {
                    bytes::load_elements(words, items.len(), |at, value| shared[items.start + at].set(value));
                }
            },
        )
    }

    /// Combines the members' elements, place by place and in the order of ranks, and gives the result to all.
    ///
    /// The order is fixed, so that the same inputs give the same bits in every run; with another number of ranks a
    /// sum of floats may differ.
    ///
    /// # Errors
    /// As [`barrier`](Team::barrier); buffers of different lengths or types, and different operations, are a
    /// `CollectiveMismatch`.
    #[track_caller]
    pub fn allreduce<T: Basic, O: Operation<T>>(&self, buffer: &mut [T], operation: O) -> Result<()> {
        const CALL: Call = Call::new("allreduce");
        let call = CALL.argument(O::CODE as u64).sharing(T::TYPE as u64).sharing(buffer.len() as u64);
        let shared = Cell::from_mut(buffer).as_slice_of_cells();
        self.exchange(
            call,
            (shared.len(), size_of::<T>()),
            |words, items| bytes::store_elements(words, shared[items].iter().map(Cell::get)),
            |rank, words, items, _| {
                bytes::load_elements(words, items.len(), |at, value| {
                    let place = &shared[items.start + at];
                    match rank {
                        // What this member brought is in its slot already, so its buffer can take the result.
                        Rank(0) => place.set(value),
                        _ => place.set(operation.combine(place.get(), value)),
                    }
                });
            },
        )
    }

    /// Brings the members' elements to the root, one member after the other in the order of ranks. Lengths may differ.
    /// The root gets `Some`, the others `None`.
    ///
    /// # Errors
    /// `RankOutOfRange` for a root that is not in the team; otherwise as [`barrier`](Team::barrier).
    #[track_caller]
    pub fn gather<T: Basic>(&self, root: Rank, elements: &[T]) -> Result<Option<Vec<T>>> {
        const CALL: Call = Call::new("gather");
        self.check_rank(CALL.name, root)?;
        let call = CALL.argument(root.0.into()).sharing(T::TYPE as u64);
        let is_root = self.rank() == root;
        let mut parts: Vec<Vec<T>> = vec![Vec::new(); self.size() as usize];
        self.exchange(
            call,
            (elements.len(), size_of::<T>()),
            |words, items| bytes::store_elements(words, elements[items].iter().copied()),
            |rank, words, items, total| {
                if is_root {
                    let part = &mut parts[rank.index()];
                    part.reserve_exact(total - part.len());
                    bytes::load_elements(words, items.len(), |_, value| part.push(value));
                }
            },
        )?;
        match is_root {
            true => Ok(Some(parts.concat())),
            false => Ok(None),
        }
    }

    /// Makes a team of all members that give the same color, ranked by key and then by rank in this team. A member
    /// that gives no color gets no team.
    ///
    /// # Errors
    /// As [`barrier`](Team::barrier); `System` at all members of a new team whose memory is short.
    #[track_caller]
    pub fn split(&self, color: Option<u32>, key: i64) -> Result<Option<Team>> {
        self.divide("split", color, key)
    }

    /// Makes another team of the same members, whose collective calls are told apart from those of this team: a
    /// library that is handed a team works on a duplicate.
    ///
    /// # Errors
    /// As [`split`](Team::split).
    #[track_caller]
    pub fn duplicate(&self) -> Result<Team> {
        match self.divide("duplicate", Some(0), 0)? {
            Some(team) => Ok(team),
            None => unreachable!("every member of a duplicate has a color"),
        }
    }

    #[track_caller]
    fn divide(&self, name: &'static str, color: Option<u32>, key: i64) -> Result<Option<Team>> {
        let mine = encode(&[color.map_or(0, |color| u64::from(color) + 1), key.cast_unsigned()]);
        let wishes = self.allgather_bytes(name, &mine)?;
        let wishes: Vec<[u64; 2]> = wishes.iter().map(|bytes| decode(bytes)).collect();
        let own_color = wishes[self.rank().index()][0];
        let mut group: Vec<Rank> = self.ranks().filter(|rank| wishes[rank.index()][0] == own_color).collect();
        group.sort_by_key(|rank| (wishes[rank.index()][1].cast_signed(), *rank));
        let group = match color {
            Some(_) => group,
            None => Vec::new(),
        };
        // The first member of each group makes its block, where all share memory, and names it to all.
        let leader = group.first().copied();
        let leads = leader == Some(self.rank());
        let is_mapped = group.iter().all(|&rank| self.context.shares_memory(self.members.job_rank(rank)));
        let block = match leads && is_mapped {
            true => Some(self.context.allocate(name, Place::bytes(group.len() as u32))),
            false => None,
        };
        let offer = match &block {
            Some(Ok(block)) => [self.context.fresh_id(), block.offset()],
            None if leads => [self.context.fresh_id(), 0],
            Some(Err(_)) | None => [0, 0],
        };
        let offers = match self.allgather_bytes(name, &encode(&offer)) {
            Ok(offers) => offers,
            Err(error) => {
                // The exchange may have ended well for others, which then have the team and can reach its memory.
                if let Some(Ok(block)) = block {
                    block.leave_behind();
                }
                return Err(error);
            }
        };
        let block = block.transpose()?;
        let Some(leader) = leader else { return Ok(None) };
        let [id, offset] = decode(&offers[leader.index()]);
        if id == 0 {
            let note = format!("rank {leader} has no memory for the new team");
            return Err(Error::new(ErrorKind::System, name).caller(self.rank()).note(note));
        }
        let me = group.iter().position(|&rank| rank == self.rank()).map_or(0, |at| at as u32);
        let job_ranks = group.iter().map(|&rank| self.members.job_rank(rank)).collect();
        Ok(Some(Team {
            context: Arc::clone(&self.context),
            members: Arc::new(Members::new(id, Rank(me), job_ranks)),
            ground: match is_mapped {
                true => Ground::Mapped(Place::new(offset, group.len() as u32)),
                false => Ground::Wired,
            },
            block,
            round: Cell::new(0),
            windows: RefCell::default(),
        }))
    }

    /// Gives every member's bytes to every member, in the order of ranks. Lengths may differ.
    #[track_caller]
    pub(crate) fn allgather_bytes(&self, call: &'static str, brought: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut all: Vec<Vec<u8>> = vec![Vec::new(); self.size() as usize];
        self.exchange(
            Call::new(call),
            (brought.len(), 1),
            |words, items| bytes::store(words, &brought[items]),
            |rank, words, items, total| {
                let part = &mut all[rank.index()];
                part.reserve_exact(total - part.len());
                part.resize(items.end, 0);
                bytes::load(words, &mut part[items]);
            },
        )?;
        Ok(all)
    }

    /// The rounds of a call in which members bring items, `(how many, of how many bytes)`.
    ///
    /// `bring` writes the given items into this member's words; `take` sees every member's next items in the order of
    /// ranks, round by round, with the number of items that this member brings in all.
    #[track_caller]
    fn exchange(
        &self,
        call: Call,
        (count, item_bytes): (usize, usize),
        bring: impl Fn(&[AtomicU64], Range<usize>),
        mut take: impl FnMut(Rank, &[AtomicU64], Range<usize>, usize),
    ) -> Result<()> {
        let segment = self.context.segment();
        let place = match &self.ground {
            Ground::Mapped(place) => place,
            Ground::Wired => return self.exchange_wired(call, (count, item_bytes), bring, take),
        };
        let per_round = place.chunk_bytes / item_bytes;
        let mut at = 0;
        loop {
            let set = self.round.get() as usize % SETS;
            let part = |total: usize| at.min(total)..total.min(at + per_round);
            bring(place.data(segment, set, self.rank()), part(count));
            self.meet(call, count as u64)?;
            let mut longest = 0;
            for rank in self.ranks() {
                let total = place.slot(segment, set, rank).length.load(Ordering::Relaxed) as usize;
                longest = longest.max(total);
                let items = part(total);
                if !items.is_empty() {
                    take(rank, place.data(segment, set, rank), items, total);
                }
            }
            at += per_round;
            if longest <= at {
                return Ok(());
            }
        }
    }

    /// One round: the slot says what this member came for, then all meet.
    #[track_caller]
    #[inline]
    pub(super) fn meet(&self, call: Call, length: u64) -> Result<()> {
        self.context.serve();
        let place = match &self.ground {
            Ground::Mapped(place) => place,
            Ground::Wired => return self.meet_wired(call, length, &[]).map(|_| ()),
        };
        let segment = self.context.segment();
        let set = self.round.get() as usize % SETS;
        let slot = place.slot(segment, set, self.rank());
        // Relaxed: published by the arrival, all four.
        for (place, word) in slot.call.iter().zip(call.words) {
            place.store(word, Ordering::Relaxed);
        }
        slot.argument.store(call.argument, Ordering::Relaxed);
        slot.length.store(length, Ordering::Relaxed);
        slot.signature.store(call.signature, Ordering::Relaxed);
        self.round.set(self.round.get() + 1);
        let barrier = &place.block(segment).barrier;
        let outcome = match barrier.arrive(self.size(), call.signature) {
            Arrival::Last(outcome) => outcome,
            Arrival::Refused => return Err(self.refused(place, call)),
            Arrival::Early(generation) => {
                let what = WaitFor::collective(call.name, &self.members, self.round.get());
                let mut broken_since = None;
                let passed = || match barrier.passed(generation) {
                    // The wait itself finds who is where, and says it better than the barrier does.
                    Some(Outcome::Broken) if self.is_elsewhere(place) => {
                        let since = broken_since.get_or_insert_with(Instant::now);
                        (MISMATCH_GRACE < since.elapsed()).then_some(Outcome::Broken)
                    }
                    outcome => outcome,
                };
                match self.context.wait(barrier.event(), what, passed) {
                    Ok(outcome) => outcome,
                    // Whoever has found the different call may have left since.
                    Err(error) if error.kind() == ErrorKind::PeerLost && self.is_elsewhere(place) => {
                        return Err(self.refused(place, call));
                    }
                    Err(error) => {
                        let cause = match error.kind() {
                            ErrorKind::Stalled => Cause::Stalled,
                            ErrorKind::CollectiveMismatch => Cause::Elsewhere,
                            _ => Cause::Lost,
                        };
                        barrier.break_off(self.context.job_rank().0, cause);
                        return Err(error);
                    }
                }
            }
        };
        match outcome {
            Outcome::Agreed => Ok(()),
            Outcome::Mismatched => Err(self.mismatched(place, call, length, set)),
            Outcome::Broken => Err(self.broken(place, call)),
        }
    }

    /// Whether a member has found another one in a different call.
    fn is_elsewhere(&self, place: &Place) -> bool {
        let barrier = &place.block(self.context.segment()).barrier;
        barrier.broken_by().is_some_and(|(_, cause)| cause == Cause::Elsewhere)
    }

    /// The error of a call that met different ones: it names the first member that came for something else.
    #[cold]
    #[track_caller]
    fn mismatched(&self, place: &Place, call: Call, length: u64, set: usize) -> Error {
        let segment = self.context.segment();
        let error = Error::new(ErrorKind::CollectiveMismatch, call.name).caller(self.rank());
        // All members have made the same number of rounds, so all have written the same set.
        let other = self
            .ranks()
            .map(|rank| (rank, place.slot(segment, set, rank)))
            .find(|(_, slot)| slot.signature.load(Ordering::Relaxed) != call.signature);
        match other {
            Some((rank, slot)) => {
                let (argument, theirs) =
                    (slot.argument.load(Ordering::Relaxed), slot.length.load(Ordering::Relaxed));
                differs(error, rank, (&load_name(&slot.call), argument, theirs), (call.argument, length))
            }
            None => error.note("the members' calls differ"),
        }
    }

    /// The error of a call that a member gave up while this one was waiting in it.
    #[cold]
    #[track_caller]
    fn broken(&self, place: &Place, call: Call) -> Error {
        let segment = self.context.segment();
        match place.block(segment).barrier.broken_by() {
            // The time limit is the same for all members, and what one could not get is missing for all.
            Some((_, Cause::Stalled)) => {
                let note = format!("a member gave up waiting; {}", self.context.report(&self.members));
                Error::new(ErrorKind::Stalled, call.name).caller(self.rank()).note(note)
            }
            _ => self.refused(place, call),
        }
    }

    /// The error of a call on a team that is out of use.
    #[cold]
    #[track_caller]
    fn refused(&self, place: &Place, call: Call) -> Error {
        let segment = self.context.segment();
        let broken_by = place.block(segment).barrier.broken_by();
        let member = broken_by.and_then(|(job_rank, _)| self.members.rank_of(Rank(job_rank)));
        if let (Some((_, Cause::Elsewhere)), Some(rank)) = (broken_by, member) {
            // That comes before whatever its finder did next: it may have left.
            let note = format!("rank {rank} has found members of this team in different calls");
            return Error::new(ErrorKind::CollectiveMismatch, call.name).caller(self.rank()).note(note);
        }
        let lost = crate::liveness::lost_member(segment, &self.members);
        match lost {
            Some((rank, evidence)) => {
                Error::new(ErrorKind::PeerLost, call.name).caller(self.rank()).lost(rank).evidence(evidence)
            }
            None => {
                let note = match member {
                    Some(rank) => format!("rank {rank} gave up waiting in a collective call of this team"),
                    None => "members met different collective calls on this team".to_owned(),
                };
                Error::new(ErrorKind::Poisoned, call.name).caller(self.rank()).note(note)
            }
        }
    }
}

/// Adds to the error of a call what a member came for instead: its name, argument and length.
pub(super) fn differs(error: Error, rank: Rank, theirs: (&str, u64, u64), own: (u64, u64)) -> Error {
    let describe = |argument: u64, length: u64| format!("argument {argument}, {length} elements");
    let (name, argument, length) = theirs;
    error
        .other(format!("{name} ({}) by rank {rank}", describe(argument, length)))
        .note(format!("this call has {}", describe(own.0, own.1)))
}

fn encode(words: &[u64; 2]) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&words[0].to_ne_bytes());
    bytes[8..].copy_from_slice(&words[1].to_ne_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> [u64; 2] {
    let word = |at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[at..at + 8]);
        u64::from_ne_bytes(word)
    };
    [word(0), word(8)]
}
