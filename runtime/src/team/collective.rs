//! Collective calls of a team. Never keeps a reference into shared memory between two calls.
//!
//! Every call is a sequence of rounds. In a round each member writes what it brings to its own slot, all meet at the
//! barrier, and then read each other's slots. Two sets of slots alternate, so that one barrier per round is enough:
//! whoever writes a slot again has passed the barrier of the round between, which the readers came to after reading.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Rank, Team};
use crate::error::{Error, ErrorKind, Result};
use crate::liveness::WaitFor;
use crate::sync::barrier::{Arrival, Outcome};
use crate::transport::shm::bytes::{load, load_name, store, store_name};
use crate::transport::shm::layout::{Slot, TeamBlock};
use crate::transport::shm::segment::Segment;

/// Bytes that one member brings per round, in a team of few members; larger teams have smaller chunks.
const CHUNK_MAX_BYTES: usize = 16 << 10;
/// The smallest chunk: below it, rounds cost more than they move.
const CHUNK_MIN_BYTES: usize = 1 << 10;
/// What the data of one set of slots should not exceed.
const CHUNKS_TARGET_BYTES: usize = 128 << 10;
/// Two sets of slots, used in turns.
const SETS: usize = 2;

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

/// A collective call and the argument that all members must share.
#[derive(Clone, Copy)]
struct Call {
    name: &'static str,
    argument: u64,
    signature: u64,
}

impl Call {
    const fn new(name: &'static str, argument: u64) -> Call {
        // FNV-1a: names are few and short, and a sum of different signatures must not look like a multiple of one.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let bytes = name.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
            at += 1;
        }
        hash = (hash ^ argument).wrapping_mul(0x0100_0000_01b3);
        Call { name, argument, signature: hash ^ (hash >> 32) }
    }
}

impl Team {
    /// Waits until all members have come. Has no effect on windows.
    ///
    /// # Errors
    /// `PeerLost` if a member has died, failed or left; `Stalled` on the time limit; `CollectiveMismatch` if a member
    /// came to another collective call; `Poisoned` after an earlier error of the team.
    #[track_caller]
    pub fn barrier(&self) -> Result<()> {
        const CALL: Call = Call::new("barrier", 0);
        self.meet(CALL, 0)
    }

    /// One round: the slot says what this member came for, then all meet.
    #[track_caller]
    #[inline]
    fn meet(&self, call: Call, length: u64) -> Result<()> {
        let segment = self.context.segment();
        let set = self.round.get() as usize % SETS;
        let slot = self.place.slot(segment, set, self.rank());
        // Relaxed: published by the arrival.
        store_name(&slot.call, call.name);
        slot.argument.store(call.argument, Ordering::Relaxed);
        slot.length.store(length, Ordering::Relaxed);
        self.round.set(self.round.get() + 1);
        let barrier = &self.place.block(segment).barrier;
        let outcome = match barrier.arrive(self.size(), call.signature) {
            Arrival::Last(outcome) => outcome,
            Arrival::Refused => return Err(self.refused(call)),
            Arrival::Early(generation) => {
                let what = WaitFor::collective(call.name, &self.members);
                match self.context.wait(barrier.event(), what, || barrier.passed(generation)) {
                    Ok(outcome) => outcome,
                    Err(error) => {
                        barrier.break_off(self.context.job_rank().0);
                        return Err(error);
                    }
                }
            }
        };
        match outcome {
            Outcome::Agreed => Ok(()),
            Outcome::Mismatched => Err(self.mismatched(call, set)),
            Outcome::Broken => Err(self.refused(call)),
        }
    }

    /// The error of a call that met different ones: the first member that came for something else.
    #[cold]
    #[track_caller]
    fn mismatched(&self, call: Call, set: usize) -> Error {
        let segment = self.context.segment();
        let mut error = Error::new(ErrorKind::CollectiveMismatch, call.name).caller(self.rank());
        // A member that is one round behind or ahead has used the other set, so both are looked at; what a member
        // wrote last is in one of them, and in a set that agrees there is nothing to report.
        for candidate in [set, 1 - set] {
            for rank in self.ranks() {
                let slot = self.place.slot(segment, candidate, rank);
                let name = load_name(&slot.call);
                let argument = slot.argument.load(Ordering::Relaxed);
                let cut = &call.name[..call.name.len().min(crate::transport::shm::layout::NAME_BYTES)];
                if !name.is_empty() && (name != cut || argument != call.argument) {
                    error = error.other(format!("{name} (argument {argument}) by rank {rank}"));
                    return error.note(format!("this call has argument {}", call.argument));
                }
            }
        }
        error.note("the calls differ in length or order")
    }

    /// The error of a call on a team that is out of use.
    #[cold]
    #[track_caller]
    fn refused(&self, call: Call) -> Error {
        let segment = self.context.segment();
        let lost = self.members.ranks().find_map(|rank| {
            let job_rank = self.members.job_rank(rank);
            match job_rank == self.context.job_rank() {
                true => None,
                false => crate::liveness::evidence(segment, job_rank.0).map(|evidence| (rank, evidence)),
            }
        });
        match lost {
            Some((rank, evidence)) => {
                Error::new(ErrorKind::PeerLost, call.name).caller(self.rank()).lost(rank).evidence(evidence)
            }
            None => {
                let note = match self.place.block(segment).barrier.broken_by() {
                    Some(job_rank) => match self.members.rank_of(Rank(job_rank)) {
                        Some(rank) => {
                            format!("rank {rank} gave up waiting in a collective call of this team")
                        }
                        None => "a member gave up waiting in a collective call of this team".to_owned(),
                    },
                    None => "members met different collective calls on this team".to_owned(),
                };
                Error::new(ErrorKind::Poisoned, call.name).caller(self.rank()).note(note)
            }
        }
    }

    /// Gives every member's bytes to every member, in the order of ranks. Lengths may differ.
    #[allow(dead_code, reason = "windows exchange their descriptions by it")]
    #[track_caller]
    pub(crate) fn allgather_bytes(&self, call: &'static str, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut all: Vec<Vec<u8>> = vec![Vec::new(); self.size() as usize];
        self.exchange(Call::new(call, 0), bytes, |rank, chunk, bytes_total| {
            let part = &mut all[rank.index()];
            part.reserve_exact(bytes_total - part.len());
            chunk.append_to(part);
        })?;
        Ok(all)
    }

    /// The rounds of a call in which every member brings bytes: `take` sees every member's next chunk in the order of
    /// ranks, round by round, with the number of bytes that this member brings in all.
    #[track_caller]
    fn exchange(&self, call: Call, bytes: &[u8], mut take: impl FnMut(Rank, Chunk<'_>, usize)) -> Result<()> {
        let segment = self.context.segment();
        let mut at = 0;
        loop {
            let set = self.round.get() as usize % SETS;
            let mine = &bytes[at.min(bytes.len())..bytes.len().min(at + self.place.chunk_bytes)];
            store(self.place.data(segment, set, self.rank()), mine);
            self.meet(call, bytes.len() as u64)?;
            let mut longest = 0;
            for rank in self.ranks() {
                let total = self.place.slot(segment, set, rank).length.load(Ordering::Relaxed) as usize;
                longest = longest.max(total);
                let len = total.saturating_sub(at).min(self.place.chunk_bytes);
                if 0 < len {
                    take(rank, Chunk { words: self.place.data(segment, set, rank), len }, total);
                }
            }
            at += self.place.chunk_bytes;
            if longest <= at {
                return Ok(());
            }
        }
    }
}

/// What a member brought in one round, still in shared memory.
struct Chunk<'a> {
    words: &'a [AtomicU64],
    len: usize,
}

impl Chunk<'_> {
    fn append_to(&self, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        bytes.resize(start + self.len, 0);
        load(self.words, &mut bytes[start..]);
    }
}
