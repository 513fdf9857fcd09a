//! A job and what each of its ranks has: memory, identity, patience. Never keeps anything in a global: several
//! jobs live in one process.
#![forbid(unsafe_code)]

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::patience::Patience;
use crate::rank::Rank;
use crate::transport::shm::arena::{Arena, Block};
use crate::transport::shm::segment::Segment;
use crate::transport::tcp::wire::Wire;

/// What one rank of a job has. Teams and windows share it.
pub(crate) struct RankContext {
    segment: Arc<Segment>,
    arena: Arc<Arena>,
    rank: Rank,
    limit: Option<Duration>,
    patience: Patience,
    home_thread: ThreadId,
    /// The process that must stay the parent, where the launcher is to be watched.
    parent: Option<u32>,
    /// How ranks are reached that share no memory with this one, if the job has such.
    wire: Option<Arc<Wire>>,
    retired: Mutex<Vec<Retired>>,
    /// What was left open by values that were dropped, where dropping could return no error.
    left_open: Mutex<Vec<Error>>,
}

/// A block that peers may still touch, and the question whether they are done.
struct Retired {
    block: Block,
    may_reuse: Box<dyn Fn(&Segment) -> bool + Send>,
}

impl Drop for RankContext {
    fn drop(&mut self) {
        let retired = self.retired.get_mut().unwrap_or_else(PoisonError::into_inner);
        for entry in retired.drain(..) {
            // Ranks that are threads end one by one. What a peer may still touch stays until the segment goes.
            if !(entry.may_reuse)(&self.segment) {
                entry.block.leave_behind();
            }
        }
    }
}

/// Allocations of a rank between two looks at its retired blocks, when there are many.
const RETIRED_UNCHECKED_MAX: usize = 64;

impl RankContext {
    /// The context of a rank that has joined the job, made on the thread that runs the rank.
    pub(crate) fn new(
        segment: Arc<Segment>,
        rank: Rank,
        limit: Option<Duration>,
        parent: Option<u32>,
        wire: Option<Arc<Wire>>,
    ) -> RankContext {
        RankContext {
            arena: Arena::new(Arc::clone(&segment)),
            rank,
            limit,
            patience: Patience::of(segment.size()),
            home_thread: thread::current().id(),
            parent,
            wire,
            retired: Mutex::new(Vec::new()),
            left_open: Mutex::new(Vec::new()),
            segment,
        }
    }

    /// Zeroed memory of the segment that belongs to this rank.
    ///
    /// # Errors
    /// `System` if the machine or the segment has not that much.
    pub(crate) fn allocate(&self, call: &'static str, bytes: usize) -> Result<Block> {
        self.reclaim();
        self.arena.allocate(bytes, call)
    }

    /// Frees a block as soon as `may_reuse` says that no peer touches it any more.
    ///
    /// The question is asked at later allocations of this rank, never by a peer.
    pub(crate) fn retire(&self, block: Block, may_reuse: impl Fn(&Segment) -> bool + Send + 'static) {
        let retired = Retired { block, may_reuse: Box::new(may_reuse) };
        self.retired.lock().unwrap_or_else(PoisonError::into_inner).push(retired);
    }

    /// Frees the retired blocks that nobody touches any more.
    fn reclaim(&self) {
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        // The oldest ones are the likeliest to be free; a long list is not walked at every allocation.
        let mut looked = 0;
        retired.retain(|entry| {
            looked += 1;
            RETIRED_UNCHECKED_MAX < looked || !(entry.may_reuse)(&self.segment)
        });
    }

    /// Notes an error that nobody could be given, such as that of a dropped request; the rank fails with it when it
    /// leaves the job, unless it fails before.
    pub(crate) fn leave_open(&self, error: Error) {
        self.left_open.lock().unwrap_or_else(PoisonError::into_inner).push(error);
    }

    /// Takes the first error that was left open.
    pub(crate) fn take_left_open(&self) -> Option<Error> {
        std::mem::take(&mut *self.left_open.lock().unwrap_or_else(PoisonError::into_inner)).into_iter().next()
    }

    /// The segment, for those that live longer than a call.
    pub(crate) fn shared_segment(&self) -> Arc<Segment> {
        Arc::clone(&self.segment)
    }

    pub(crate) fn segment(&self) -> &Segment {
        &self.segment
    }

    /// The address of an offset, whichever rank the memory belongs to.
    #[inline]
    pub(crate) fn at(&self, offset: u64) -> *mut u8 {
        self.segment.at(offset)
    }

    /// The rank in the job.
    #[inline]
    pub(crate) fn job_rank(&self) -> Rank {
        self.rank
    }

    /// A fresh identity for a team or window, unique in the job.
    pub(crate) fn fresh_id(&self) -> u64 {
        self.segment.fresh_id()
    }

    /// How ranks are reached that share no memory with this one.
    pub(crate) fn wire(&self) -> Option<&Arc<Wire>> {
        self.wire.as_ref()
    }

    /// Whether the memory of a rank of the job is mapped here.
    #[inline]
    pub(crate) fn shares_memory(&self, job_rank: Rank) -> bool {
        self.wire.as_ref().is_none_or(|wire| wire.shares_memory(job_rank.0))
    }

    /// Whether what a rank has done before it ended has all been seen here.
    pub(crate) fn is_drained(&self, job_rank: Rank) -> bool {
        self.wire.as_ref().is_none_or(|wire| wire.is_drained(job_rank.0))
    }

    /// The time limit of each blocking call.
    pub(crate) fn limit(&self) -> Option<Duration> {
        self.limit
    }

    pub(crate) fn patience(&self) -> &Patience {
        &self.patience
    }

    pub(crate) fn home_thread(&self) -> ThreadId {
        self.home_thread
    }

    /// Whether the process that started this one, and watches it, is no more.
    pub(crate) fn launcher_is_gone(&self) -> bool {
        let orphaned = self.parent.is_some_and(|parent| std::os::unix::process::parent_id() != parent);
        orphaned || self.wire.as_ref().is_some_and(|wire| wire.rendezvous_is_gone())
    }
}
