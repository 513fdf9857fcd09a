//! A job and what each of its ranks has: memory, identity, patience. Never keeps anything in a global: several
//! jobs live in one process.
#![forbid(unsafe_code)]

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::info::Policy;
use crate::patience::Patience;
use crate::rank::Rank;
use crate::traffic::Traffic;
use crate::transport::shm::arena::{Arena, Block};
use crate::transport::shm::copier::CopyEngine;
use crate::transport::shm::copy::Engine;
use crate::transport::shm::segment::Segment;
use crate::transport::tcp::frame::{Body, Frame, Kind, Malformed};
use crate::transport::tcp::tally::{Count, Tally};
use crate::transport::tcp::wire::Wire;

/// How many copies there are of the memory that the runtime allocates for windows.
///
/// A program that keeps the rules gives the same results in both. One that omits a call shows it under `Separate`: the
/// owner's loads find old values, always. The default is a job's: [`Job::memory_model`](crate::Job::memory_model), or
/// `RMA_MEMORY_MODEL=separate` in the environment; a window's own is set by
/// [`WindowOptions`](crate::WindowOptions::memory_model).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryModel {
    /// One, which the owner and all others use.
    #[default]
    Unified,
    /// Two: the owner uses a private one, the others a public one, and what has changed moves in the owner's calls, as late
    /// as the rules allow. See [`Window::create`](crate::Window::create).
    Separate,
}

impl MemoryModel {
    /// The model that goes by a name.
    pub(crate) fn named(name: &str) -> Option<MemoryModel> {
        match name {
            "unified" => Some(MemoryModel::Unified),
            "separate" => Some(MemoryModel::Separate),
            _ => None,
        }
    }
}

/// What one rank of a job has. Teams and windows share it.
pub(crate) struct RankContext {
    segment: Arc<Segment>,
    arena: Arc<Arena>,
    rank: Rank,
    info_policy: Policy,
    /// The time limit of each blocking call in nanoseconds, or [`NO_LIMIT`].
    limit_ns: AtomicU64,
    memory_model: MemoryModel,
    copy_engine: CopyEngine,
    patience: Patience,
    home_thread: ThreadId,
    /// The threads that the process had when the job began, where ranks are threads of one process.
    threads_before: Arc<[u32]>,
    /// The process that must stay the parent, where the launcher is to be watched.
    parent: Option<u32>,
    /// How ranks are reached that share no memory with this one, if the job has such.
    wire: Option<Arc<Wire>>,
    /// Calls that have slept, and for how many nanoseconds.
    waits: AtomicU64,
    waited_ns: AtomicU64,
    retired: Mutex<Vec<Retired>>,
    /// What was left open by values that were dropped, where dropping could return no error.
    left_open: Mutex<Vec<Error>>,
    /// What a layer above keeps for the rank, made when it is first needed.
    attached: OnceLock<Arc<dyn Any + Send + Sync>>,
}

/// Blocks that peers may still touch, and the question whether they are done.
struct Retired {
    blocks: Vec<Block>,
    may_reuse: Box<dyn Fn(&Segment) -> bool + Send>,
}

impl Drop for RankContext {
    fn drop(&mut self) {
        let retired = self.retired.get_mut().unwrap_or_else(PoisonError::into_inner);
        for entry in retired.drain(..) {
            // Ranks that are threads end one by one. What a peer may still touch stays until the segment goes.
            if !(entry.may_reuse)(&self.segment) {
                entry.blocks.into_iter().for_each(Block::leave_behind);
            }
        }
    }
}

/// Stands for no time limit.
const NO_LIMIT: u64 = u64::MAX;

fn nanoseconds(limit: Duration) -> u64 {
    u64::try_from(limit.as_nanos()).unwrap_or(NO_LIMIT)
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
            info_policy: Policy::default(),
            limit_ns: AtomicU64::new(limit.map_or(NO_LIMIT, nanoseconds)),
            memory_model: MemoryModel::default(),
            copy_engine: CopyEngine::default(),
            patience: Patience::of(segment.size()),
            home_thread: thread::current().id(),
            parent,
            wire,
            threads_before: Arc::default(),
            waits: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
            retired: Mutex::new(Vec::new()),
            left_open: Mutex::new(Vec::new()),
            attached: OnceLock::new(),
            segment,
        }
    }

    /// Takes some memory for the first windows now.
    pub(crate) fn with_memory_aside(self) -> RankContext {
        self.arena.set_aside();
        self
    }

    /// Gives what a layer above keeps for the rank; `make` makes it, once.
    pub(crate) fn attached<T: Any + Send + Sync>(&self, make: impl FnOnce() -> Arc<T>) -> &T {
        let attached = self.attached.get_or_init(|| make());
        match attached.downcast_ref::<T>() {
            Some(attached) => attached,
            None => unreachable!("one layer attaches one thing"),
        }
    }

    /// Sets what becomes of info values.
    pub(crate) fn with_info_policy(mut self, policy: Policy) -> RankContext {
        self.info_policy = policy;
        self
    }

    /// What becomes of info values.
    pub(crate) fn info_policy(&self) -> Policy {
        self.info_policy
    }

    /// The context of a rank that shares its process with others, and with threads that were there before.
    pub(crate) fn beside(self, threads_before: Arc<[u32]>) -> RankContext {
        let mut context = self;
        context.threads_before = threads_before;
        context
    }

    /// Threads of the process that no rank of this job has made.
    pub(crate) fn threads_before(&self) -> &[u32] {
        &self.threads_before
    }

    /// Sets the memory model of windows that say nothing else.
    pub(crate) fn with_memory_model(mut self, memory_model: MemoryModel) -> RankContext {
        self.memory_model = memory_model;
        self
    }

    /// Sets who makes longer copies in mapped memory.
    pub(crate) fn with_copy_engine(mut self, copy_engine: CopyEngine) -> RankContext {
        self.copy_engine = copy_engine;
        self
    }

    /// How windows and offers move bytes in mapped memory.
    pub(crate) fn engine(&self) -> Engine {
        Engine::choose(self.copy_engine)
    }

    /// The memory model of windows that say nothing else.
    pub(crate) fn memory_model(&self) -> MemoryModel {
        self.memory_model
    }

    /// Zeroed memory of the segment that belongs to this rank.
    ///
    /// # Errors
    /// `System` if the machine or the segment has not that much.
    pub(crate) fn allocate(&self, call: &'static str, bytes: usize) -> Result<Block> {
        self.reclaim();
        self.arena.allocate(bytes, call)
    }

    /// Addresses of the segment that belong to this rank, without memory.
    ///
    /// # Errors
    /// `System` if the segment has not that much.
    pub(crate) fn reserve(&self, call: &'static str, bytes: usize) -> Result<Block> {
        self.reclaim();
        self.arena.reserve(bytes, call)
    }

    /// Frees blocks as soon as `may_reuse` says that no peer touches them any more.
    ///
    /// The question is asked at later allocations of this rank, never by a peer.
    pub(crate) fn retire(&self, blocks: Vec<Block>, may_reuse: impl Fn(&Segment) -> bool + Send + 'static) {
        let retired = Retired { blocks, may_reuse: Box::new(may_reuse) };
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

    /// Does what a frame asks of a service of this rank, as if another one had sent it, for tests: gives the number of bytes of the
    /// answer, or what is wrong with the frame.
    pub(crate) fn receive(&self, from: Rank, request: u64, body: &[u8]) -> Result<usize, &'static str> {
        let Some(wire) = &self.wire else { return Err("there are no connections") };
        let frame = Frame { kind: Kind::Service, request, body: Body::new(body) };
        let mut replies = Vec::new();
        match wire.receive(from.0, frame, &mut replies) {
            Ok(_) => Ok(replies.len()),
            Err(Malformed(why)) => Err(why),
        }
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

    /// Counts a call that has slept.
    pub(crate) fn slept(&self, time: Duration) {
        // Relaxed, both: nothing is published by them.
        self.waits.fetch_add(1, Ordering::Relaxed);
        self.waited_ns.fetch_add(nanoseconds(time), Ordering::Relaxed);
    }

    /// What the rank has sent and received, and how often it has slept.
    pub(crate) fn traffic(&self) -> Traffic {
        let tally = self.wire.as_ref().map(|wire| wire.tally());
        let count = |of: fn(&Tally) -> &Count| tally.map_or(0, |tally| of(tally).get());
        Traffic {
            frames_sent: count(|tally| &tally.frames_sent),
            replies_sent: count(|tally| &tally.replies_sent),
            frames_received: count(|tally| &tally.frames_received),
            replies_received: count(|tally| &tally.replies_received),
            bytes_sent: count(|tally| &tally.bytes_sent),
            bytes_received: count(|tally| &tally.bytes_received),
            writes: count(|tally| &tally.writes),
            // Relaxed: as in `slept`.
            waits: self.waits.load(Ordering::Relaxed),
            waited: Duration::from_nanos(self.waited_ns.load(Ordering::Relaxed)),
        }
    }

    /// The time limit of each blocking call.
    #[inline]
    pub(crate) fn limit(&self) -> Option<Duration> {
        // Relaxed: nothing is published by it.
        match self.limit_ns.load(Ordering::Relaxed) {
            NO_LIMIT => None,
            limit => Some(Duration::from_nanos(limit)),
        }
    }

    /// Changes the time limit, and gives the one before.
    pub(crate) fn set_limit(&self, limit: Option<Duration>) -> Option<Duration> {
        let before = self.limit();
        self.limit_ns.store(limit.map_or(NO_LIMIT, nanoseconds), Ordering::Relaxed);
        before
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
