//! The part of a window that ranks without shared memory reach: the agent of its owner acts for them, by the same words and the
//! same instructions as those that map the memory. Never waits: what has to wait is kept, and looked at again when the agent
//! is told to, or after a while.
//!
//! So there is one queue for a lock and one atomicity rule, whoever asks. What a rank has asked for and been granted is kept
//! here, too; in a broken window the owner shuts the part, and nothing of a rank that comes late is done any more.

mod admission;
mod elements;
mod transfers;
mod vouched;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use self::transfers::{Combined, Fetches, Resume};
use self::vouched::Entry;
use super::Atomicity;
use super::control::{Control, Peer, Plan, Waiter};
use super::copies::Marked;
use super::protocol::{Answer, Ask, NOT_POSTED, POSTED, POSTED_FOR_OTHERS, read_reason, read_way};
use crate::element::Shape;
use crate::error::Evidence;
use crate::job::RankContext;
use crate::liveness;
use crate::sync::exposure::{self, Extent};
use crate::sync::phases::{ROUNDS_MAX, Reason};
use crate::sync::state_word::{Refusal, Sharing, Ticket};
use crate::team::{Members, Rank};
use crate::transport::shm::copy::Engine;
use crate::transport::shm::segment::Segment;
use crate::transport::tcp::frame::{Body, Kind, Malformed, Writer, seal};
use crate::transport::tcp::wire::{Progress, Service, Wire};

/// How soon what waits is looked at again without anybody telling the agent: somebody may have ended.
const SLICE: Duration = Duration::from_millis(50);
/// The same for what nobody tells of: that a guard is given back, and that there is room in the queue of the lock.
const UNTOLD_SLICE: Duration = Duration::from_millis(1);
/// A fence number has so many bits.
const FENCE_NUMBER_MAX: u64 = 1 << 59;

/// See the module.
pub(super) struct Served {
    me: u32,
    members: Arc<Members>,
    segment: Arc<Segment>,
    wire: Arc<Wire>,
    /// The own block, and the one that says whether the window is broken.
    offset: u64,
    broken_offset: u64,
    plan: Plan,
    ground: Memory,
    state: Mutex<State>,
    /// Fences that the owner has come to.
    fences: AtomicU64,
    /// How many requests wait.
    waiting: AtomicUsize,
}

/// Where a window's blocks lie, and what its memory is.
pub(super) struct Ground {
    pub(super) offset: u64,
    pub(super) broken_offset: u64,
    pub(super) plan: Plan,
    pub(super) memory: Memory,
}

/// The memory of the owner, and how it is changed.
pub(super) struct Memory {
    pub(super) extent: Extents,
    pub(super) engine: Engine,
    /// Where writes are marked, if the owner has a private copy too.
    pub(super) marked: Option<Marked>,
    /// What the window's elements are, and how accumulates to one of them are kept apart.
    pub(super) element: &'static Shape,
    pub(super) atomicity: Atomicity,
    /// Whether nobody but the owner and its agent reach the elements, which then take one guard for many: see
    /// [`owner_atomicity`](super::guard::owner_atomicity).
    pub(super) is_guarded: bool,
}

/// Which bytes there are.
#[derive(Clone, Copy)]
pub(super) enum Extents {
    /// So many behind the control block.
    Fixed(usize),
    /// Those that the owner has attached, which a table behind the control block lists.
    Attached,
}

#[derive(Default)]
struct State {
    /// Ranks of the team that have been granted something. Boxed, since a table has room for several, and most windows need few.
    origins: HashMap<u32, Box<Origin>>,
    parked: Vec<Parked>,
    shut: bool,
}

/// What a rank has been granted, by which request, and what became of transfers that bring no answer.
#[derive(Clone, Default)]
struct Origin {
    access: Granted,
    request: u64,
    verdict: Verdict,
    /// Whether the rank knows already that nothing of its epoch is done.
    told: bool,
    /// How far a transfer has come that has met an element which somebody else is changing.
    resume: Option<Resume>,
    /// What that transfer keeps until it is done: it was let in, and is not refused with a part of it done.
    kept: Option<Entry>,
    /// The bytes that are exposed, if they are not all and the origin can't know.
    part: Option<(u64, u64)>,
}

/// What the closing call of an epoch is told.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Verdict {
    /// Everything was done.
    #[default]
    Done,
    /// Something was not, as the rank was not admitted.
    Refused,
    /// Something was not, as somebody has ended while changing the same element.
    Lost(u32, Evidence),
    /// Nothing was, as the window is not posted for the rank, which had vouched for that.
    NotStarted(exposure::Refusal),
    /// Something was not, as somebody has a lock that the rank had vouched that nobody has.
    NotLocked(Refusal, Option<u32>),
    /// Something was not, as it reaches outside these bytes, which are exposed.
    Outside(u64, u64),
}

impl Verdict {
    /// The answer to whoever closes an epoch, to which this number belongs.
    fn answer(self, number: u32) -> Answer {
        match self {
            Verdict::Done => Answer::Done(number.into()),
            Verdict::Refused => Answer::NotAdmitted,
            Verdict::Lost(rank, evidence) => Answer::Lost(rank, evidence),
            Verdict::NotStarted(refusal) => Answer::Start(refusal),
            Verdict::NotLocked(refusal, holder) => Answer::Lock(refusal, holder),
            Verdict::Outside(start, end) => Answer::Outside(start, end),
        }
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Granted {
    /// Nothing; in a fence phase that is enough.
    #[default]
    Nothing,
    /// Nothing, not even in a fence phase: what it had vouched for was not true.
    Refused,
    Start(u32),
    Lock(Sharing),
}

/// A request that has to wait.
struct Parked {
    rank: u32,
    request: u64,
    what: Wish,
    /// The transfers of an epoch that is opened, filled and closed by one request.
    envelope: Option<Vec<u8>>,
}

#[derive(Clone, Copy)]
enum Wish {
    Start,
    /// A lock, and the place in its queue once there was one.
    Lock {
        sharing: Sharing,
        ticket: Option<Ticket>,
    },
    /// The rest of an epoch that has been opened, with this number: its transfers from this byte on.
    Rest {
        number: u64,
        done: usize,
    },
}

impl Served {
    pub(super) fn new(
        context: &RankContext,
        wire: &Arc<Wire>,
        members: &Arc<Members>,
        ground: Ground,
    ) -> Served {
        let Ground { offset, broken_offset, plan, memory } = ground;
        Served {
            me: members.rank().0,
            members: Arc::clone(members),
            segment: context.shared_segment(),
            wire: Arc::clone(wire),
            offset,
            broken_offset,
            plan,
            ground: memory,
            state: Mutex::default(),
            fences: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Does nothing for anybody any more: the owner of a broken window is alone with its memory afterwards.
    pub(super) fn shut(&self) {
        self.state().shut = true;
    }

    /// Says that the owner comes to the fence of this number.
    pub(super) fn comes_to_fence(&self, number: u64) {
        self.fences.store(number, Ordering::Relaxed); // Relaxed: read for a hint, by whoever can't go on in any case.
    }

    /// Tells the agent that the own words have changed, if somebody waits for that.
    #[inline]
    pub(super) fn ring(&self) {
        // Relaxed: who comes to wait afterwards looks at the words itself; who is missed is looked at after a slice.
        if self.waiting.load(Ordering::Relaxed) != 0 {
            self.wire.attend();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while the tables are inconsistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn control(&self) -> &Control {
        self.segment.shared(self.offset)
    }

    fn peer(&self, rank: u32) -> &Peer {
        let peers =
            self.segment.shared_slice(self.offset + self.plan.peers as u64, self.members.size() as usize);
        &peers[rank as usize]
    }

    fn waiter(&self, ticket: Ticket) -> &Waiter {
        let waiters = self.segment.shared_slice(self.offset + self.plan.waiters as u64, self.plan.slots);
        &waiters[ticket.slot(self.plan.slots)]
    }

    /// Wakes whoever's turn has come, if it sleeps; those that are kept here are looked at soon.
    fn wake_first(&self) {
        if let Some(ticket) = self.control().word.0.settle(|ticket| &self.waiter(ticket).slot) {
            self.waiter(ticket).event.notify();
        }
    }

    /// Wakes the owner, wherever it waits.
    fn wake_owner(&self) {
        let own = self.control();
        own.fences.0.arrivals.wake();
        own.exposure.0.posted.wake();
        own.ends.0.completed.wake();
    }

    /// A member that has ended otherwise than in order, once all that it has sent has been read.
    fn failed_member(&self) -> Option<(u32, Evidence)> {
        if liveness::ended(&self.segment) == 0 {
            return None;
        }
        self.members.ranks().find_map(|rank| match self.evidence(rank)? {
            Evidence::Finished => None,
            evidence => Some((rank.0, evidence)),
        })
    }

    fn evidence(&self, rank: Rank) -> Option<Evidence> {
        let job_rank = self.members.job_rank(rank).0;
        liveness::evidence(&self.segment, job_rank).filter(|_| self.wire.is_drained(job_rank))
    }

    fn is_broken(&self) -> bool {
        self.segment.shared::<Control>(self.broken_offset).fate.0.broken.get().is_some()
    }

    fn break_window(&self, rank: u32, reason: Reason) {
        self.segment.shared::<Control>(self.broken_offset).fate.0.broken.set(rank, reason);
        self.wake_owner();
    }
}

// What is asked.
impl Served {
    fn act(
        &self,
        state: &mut State,
        (rank, request): (u32, u64),
        (ask, mut body): (Ask, Body<'_>),
        replies: &mut Vec<u8>,
    ) -> Result<Progress, Malformed> {
        let mut data = Vec::new();
        let answer = match ask {
            Ask::Put => {
                let admitted = self.admits(state, rank);
                return self.put(admitted, body).map(|()| Progress::Done);
            }
            Ask::Accumulate => {
                let admitted = self.admits(state, rank);
                return Ok(match self.combine(state, (rank, admitted), body, Fetches::No)? {
                    Combined::All(_) => Progress::Done,
                    Combined::Held => Progress::Later,
                    Combined::Lost(lost, evidence) => {
                        state.origins.entry(rank).or_default().verdict = Verdict::Lost(lost, evidence);
                        Progress::Done
                    }
                });
            }
            Ask::Notify => {
                let counter = body.u32()? as usize;
                body.end()?;
                let notices = &self.control().notices.0;
                let notice = notices.get(counter).ok_or(Malformed("there is no counter of that number"))?;
                if self.admits(state, rank) {
                    notice.count.add();
                    notice.told.notify();
                }
                return Ok(Progress::Done);
            }
            Ask::Region => {
                let named = body.len()?..body.len()?;
                body.end()?;
                match self.region(&named) {
                    None => Some(Answer::Done(0)),
                    Some(region) => {
                        data.extend_from_slice(&(region.start as u64).to_le_bytes());
                        data.extend_from_slice(&(region.end as u64).to_le_bytes());
                        Some(Answer::Done(1))
                    }
                }
            }
            Ask::Get => match self.admits(state, rank) {
                true => {
                    let start = replies.len();
                    drop(Writer::new(replies, Kind::Reply, request).bytes(&Answer::Done(0).encode()));
                    self.get(body, replies)?;
                    seal(replies, start);
                    None
                }
                false => Some(self.refusal(state, rank)),
            },
            Ask::Fetch => match self.admits(state, rank) {
                true => match self.combine(state, (rank, true), body, Fetches::Yes)? {
                    Combined::All(before) => {
                        data = before;
                        Some(Answer::Done(0))
                    }
                    Combined::Held => return Ok(Progress::Later),
                    Combined::Lost(lost, evidence) => Some(Answer::Lost(lost, evidence)),
                },
                false => Some(self.refusal(state, rank)),
            },
            Ask::CompareSwap => match self.admits(state, rank) {
                true => match self.compare_swap(state, rank, body)? {
                    Some(answer) => Some(answer),
                    None => return Ok(Progress::Later),
                },
                false => Some(self.refusal(state, rank)),
            },
            Ask::Lock => {
                let (sharing, waits) = (read_sharing(body.u32()?)?, body.u32()? != 0);
                body.end()?;
                match has_epoch(state, rank) {
                    true => Some(Answer::NotAdmitted),
                    false => self.lock(state, rank, request, sharing, waits),
                }
            }
            Ask::Upgrade => Some(self.upgrade(state, rank)),
            Ask::Unlock => Some(self.unlock(state, rank)),
            Ask::Start => {
                let waits = body.u32()? != 0;
                body.end()?;
                match has_epoch(state, rank) {
                    true => Some(Answer::NotAdmitted),
                    false => self.start(state, (rank, request), waits, &mut data),
                }
            }
            Ask::Epoch => {
                let what = match body.u32()? {
                    0 => Wish::Start,
                    code => Wish::Lock { sharing: read_sharing(code - 1)?, ticket: None },
                };
                let envelope = Some(body.rest().to_vec());
                match has_epoch(state, rank) {
                    true => Some(Answer::NotAdmitted),
                    false => {
                        if let Wish::Lock { sharing, .. } = what {
                            self.announce_share(rank, sharing);
                        }
                        let settled = self.settle(state, Parked { rank, request, what, envelope })?;
                        settled.map(|(answer, told)| {
                            data = told;
                            answer
                        })
                    }
                }
            }
            Ask::Complete => Some(self.complete(state, rank)),
            Ask::Flush => Some(self.flush(state, rank)),
            Ask::Part => {
                self.describe(Extent::Part, &mut data);
                Some(Answer::Done(0))
            }
            Ask::Posted => {
                let status = self.control().exposure.0.word.status();
                Some(Answer::Done(match (status.is_open(), status.admits(rank, &self.peer(rank).origin)) {
                    (false, _) => NOT_POSTED,
                    (true, false) => POSTED_FOR_OTHERS,
                    (true, true) => POSTED,
                }))
            }
            Ask::Signal => {
                let (round, number, way) = (body.u32()? as usize, body.u64()?, read_way(body.u32()?)?);
                body.end()?;
                if ROUNDS_MAX <= round || FENCE_NUMBER_MAX <= number {
                    return Err(Malformed("a fence of a number that none has"));
                }
                let fences = &self.control().fences.0;
                fences.inbox.signal(round, number, way);
                fences.arrivals.notify();
                return Ok(Progress::Done);
            }
            Ask::Break => {
                let (rank, reason) = (body.u32()?, read_reason(body.u32()?)?);
                body.end()?;
                if self.members.size() <= rank {
                    return Err(Malformed("a window is broken by a rank that is not in its team"));
                }
                self.break_window(rank, reason);
                return Ok(Progress::Done);
            }
            Ask::Depart => {
                self.depart(state, rank);
                return Ok(Progress::Done);
            }
            // The agent looks again whenever it has been woken.
            Ask::Look => return Ok(Progress::Done),
            Ask::Cancel => {
                let cancelled = body.u64()?;
                body.end()?;
                self.cancel(state, rank, cancelled);
                return Ok(Progress::Done);
            }
        };
        if let Some(answer) = answer {
            Writer::new(replies, Kind::Reply, request).bytes(&answer.encode()).bytes(&data);
        }
        Ok(Progress::Done)
    }

    /// What has become of the transfers of a rank since it has asked that last.
    fn flush(&self, state: &mut State, rank: u32) -> Answer {
        let Some(origin) = state.origins.get_mut(&rank) else { return Verdict::Done.answer(0) };
        let answer = if origin.told { Answer::Done(0) } else { origin.verdict.answer(0) };
        match (origin.access, origin.verdict) {
            // It stays so until its complete.
            (Granted::Refused, Verdict::NotStarted(_)) => origin.told = true,
            (Granted::Refused, _) => **origin = Origin::default(),
            _ => origin.verdict = Verdict::Done,
        }
        answer
    }
}

impl Service for Served {
    fn serve(
        &self,
        from: u32,
        request: u64,
        mut body: Body<'_>,
        replies: &mut Vec<u8>,
    ) -> Result<Progress, Malformed> {
        let Some(Rank(rank)) = self.members.rank_of(Rank(from)) else {
            return Err(Malformed("a rank asks for a window whose team it is not in"));
        };
        let (ask, vouched) = Ask::read_vouched(&mut body)?;
        let mut state = self.state();
        let entry = self.enter(&mut state, rank, vouched, (ask, body))?;
        let progress = self.act(&mut state, (rank, request), (ask, body), replies);
        self.leave(&mut state, rank, entry);
        self.waiting.store(state.parked.len(), Ordering::Relaxed); // Relaxed: see `ring`.
        progress
    }

    fn look_again(&self, answer: &mut dyn FnMut(u32, u64, &[u8])) {
        let mut state = self.state();
        // Who is let in may be followed by somebody who was looked at before.
        let mut is_settled = false;
        while !is_settled {
            is_settled = true;
            // Those that wait on are put back, in their order.
            for parked in std::mem::take(&mut state.parked) {
                let (rank, request) = (parked.rank, parked.request);
                let job_rank = self.members.job_rank(Rank(rank));
                if self.evidence(Rank(rank)).is_some() {
                    self.abandon(&parked);
                    continue;
                }
                let settled = match self.settle(&mut state, parked) {
                    Ok(None) => continue,
                    Ok(Some((reply, data))) => [reply.encode(), data].concat(),
                    // It was sent by a rank of the job that does not keep to the protocol.
                    Err(Malformed(_)) => Answer::NotAdmitted.encode(),
                };
                answer(job_rank.0, request, &settled);
                is_settled = false;
            }
        }
        self.waiting.store(state.parked.len(), Ordering::Relaxed); // Relaxed: see `ring`.
    }

    fn meetings(&self) -> Option<u64> {
        Some(self.fences.load(Ordering::Relaxed))
    }

    fn look_again_after(&self) -> Option<Duration> {
        // Relaxed: the agent wrote it.
        if self.waiting.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let is_untold =
            |parked: &Parked| matches!(parked.what, Wish::Rest { .. } | Wish::Lock { ticket: None, .. });
        Some(if self.state().parked.iter().any(is_untold) { UNTOLD_SLICE } else { SLICE })
    }
}

/// Whether a rank has an epoch, or waits for one, beside which it can have no other.
fn has_epoch(state: &State, rank: u32) -> bool {
    let access = state.origins.get(&rank).map(|origin| origin.access);
    matches!(access, Some(Granted::Start(_) | Granted::Lock(_)))
        || state.parked.iter().any(|parked| parked.rank == rank)
}

fn read_sharing(code: u32) -> Result<Sharing, Malformed> {
    match code {
        0 => Ok(Sharing::Exclusive),
        1 => Ok(Sharing::Shared),
        _ => Err(Malformed("a lock of a kind that does not exist")),
    }
}
