//! The part of a window that ranks without shared memory reach: the agent of its owner acts for them, by the same words and the
//! same instructions as those that map the memory. Never waits: what has to wait is kept, and looked at again when the agent
//! is told to, or after a while.
//!
//! So there is one queue for a lock and one atomicity rule, whoever asks. What a rank has asked for and been granted is kept
//! here, too; in a broken window the owner shuts the part, and nothing of a rank that comes late is done any more.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::control::{Control, DROPPED, GONE, Peer, Plan, Waiter};
use super::copies::Marked;
use super::protocol::{Answer, Ask, NOT_POSTED, POSTED, POSTED_FOR_OTHERS, read_reason, read_way};
use crate::element::{And, Basic, BasicType, Bool, Max, Min, NoOp, OpCode, Or, Prod, Replace, Sum, Xor};
use crate::error::Evidence;
use crate::job::RankContext;
use crate::liveness;
use crate::sync::exposure::{self, Extent};
use crate::sync::phases::{ROUNDS_MAX, Reason};
use crate::sync::state_word::{Refusal, Request, Sharing, Ticket, Turn};
use crate::team::{Members, Rank};
use crate::transport::shm::atomic;
use crate::transport::shm::copy::Engine;
use crate::transport::shm::segment::Segment;
use crate::transport::tcp::frame::{BODY_MAX_BYTES, Body, Kind, Malformed, Writer};
use crate::transport::tcp::wire::{Service, Wire};

/// How soon what waits is looked at again without anybody telling the agent, where ranks that map the memory can change it.
const SHARED_SLICE: Duration = Duration::from_millis(1);
/// The same where only the owner and the agent can.
const OWN_SLICE: Duration = Duration::from_millis(50);
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
    bytes: usize,
    engine: Engine,
    marked: Option<Marked>,
    slice: Duration,
    state: Mutex<State>,
    /// How many requests wait.
    waiting: AtomicUsize,
}

/// Where a window's blocks lie, and how long its data are.
pub(super) struct Ground {
    pub(super) offset: u64,
    pub(super) broken_offset: u64,
    pub(super) plan: Plan,
    pub(super) bytes: usize,
    pub(super) engine: Engine,
    /// Where writes are marked, if the owner has a private copy too.
    pub(super) marked: Option<Marked>,
}

#[derive(Default)]
struct State {
    /// Ranks of the team that have been granted something.
    origins: HashMap<u32, Origin>,
    parked: Vec<Parked>,
    shut: bool,
}

/// What a rank has been granted, by which request, and whether something of it was not done.
#[derive(Clone, Copy, Default)]
struct Origin {
    access: Granted,
    request: u64,
    refused: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Granted {
    /// Nothing; in a fence phase that is enough.
    #[default]
    Nothing,
    Start(u32),
    Lock(Sharing),
}

/// A request that has to wait.
struct Parked {
    rank: u32,
    request: u64,
    what: Wish,
}

#[derive(Clone, Copy)]
enum Wish {
    Start {
        last: u32,
    },
    /// A lock, and the place in its queue once there was one.
    Lock {
        sharing: Sharing,
        ticket: Option<Ticket>,
    },
}

impl Served {
    pub(super) fn new(
        context: &RankContext,
        wire: &Arc<Wire>,
        members: &Arc<Members>,
        ground: Ground,
    ) -> Served {
        let Ground { offset, broken_offset, plan, bytes, engine, marked } = ground;
        let mapped = members.job_ranks().iter().filter(|&&rank| context.shares_memory(rank)).count();
        Served {
            me: members.rank().0,
            members: Arc::clone(members),
            segment: context.shared_segment(),
            wire: Arc::clone(wire),
            offset,
            broken_offset,
            plan,
            bytes,
            engine,
            marked,
            slice: if mapped == 1 { OWN_SLICE } else { SHARED_SLICE },
            state: Mutex::default(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Does nothing for anybody any more: the owner of a broken window is alone with its memory afterwards.
    pub(super) fn shut(&self) {
        self.state().shut = true;
    }

    /// Tells the agent that the own words have changed, if somebody waits for that.
    #[inline]
    pub(super) fn ring(&self) {
        // Relaxed: who comes to wait afterwards looks at the words itself; who is missed is looked at after a slice.
        if self.waiting.load(Ordering::Relaxed) != 0 {
            self.wire.ring();
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
        own.exposure.0.completed.wake();
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

// Admission.
impl Served {
    fn lock(
        &self,
        state: &mut State,
        rank: u32,
        request: u64,
        sharing: Sharing,
        waits: bool,
    ) -> Option<Answer> {
        if sharing == Sharing::Shared {
            // Relaxed: published by the exchange that grants the lock.
            self.peer(rank).shares.store(1, Ordering::Relaxed);
        }
        let word = &self.control().word.0;
        let granted = match waits {
            true => word.request(rank, sharing, self.plan.slots),
            false => word.try_lock(rank, sharing).map(|()| Request::Granted),
        };
        match granted {
            Ok(Request::Granted) => Some(self.grant(state, rank, request, Granted::Lock(sharing), 0)),
            Ok(Request::Queued(ticket)) => {
                self.waiter(ticket).slot.enter(ticket, rank);
                state.parked.push(Parked {
                    rank,
                    request,
                    what: Wish::Lock { sharing, ticket: Some(ticket) },
                });
                None
            }
            Err(Refusal::Full) if waits => {
                state.parked.push(Parked { rank, request, what: Wish::Lock { sharing, ticket: None } });
                None
            }
            Err(refusal) => {
                self.withdraw_share(rank);
                Some(Answer::Lock(refusal, word.state().holder()))
            }
        }
    }

    fn withdraw_share(&self, rank: u32) {
        // Release: pairs with the Acquire in `is_quiet`.
        self.peer(rank).shares.store(0, Ordering::Release);
    }

    fn grant(&self, state: &mut State, rank: u32, request: u64, access: Granted, number: u64) -> Answer {
        *state.origins.entry(rank).or_default() = Origin { access, request, refused: false };
        Answer::Done(number)
    }

    fn upgrade(&self, state: &mut State, rank: u32) -> Answer {
        let word = &self.control().word.0;
        match word.try_upgrade(rank) {
            Ok(()) => {
                state.origins.entry(rank).or_default().access = Granted::Lock(Sharing::Exclusive);
                self.withdraw_share(rank);
                Answer::Done(0)
            }
            Err(refusal) => Answer::Lock(refusal, word.state().holder()),
        }
    }

    fn unlock(&self, state: &mut State, rank: u32) -> Answer {
        let Some(Origin { access: Granted::Lock(sharing), refused, .. }) = state.origins.remove(&rank) else {
            return Answer::NotAdmitted;
        };
        if sharing == Sharing::Shared {
            self.withdraw_share(rank);
        }
        if self.control().word.0.unlock(rank, sharing) {
            self.wake_first();
        }
        verdict(refused)
    }

    fn start(
        &self,
        state: &mut State,
        (rank, request): (u32, u64),
        (last, waits): (u32, bool),
        data: &mut Vec<u8>,
    ) -> Option<Answer> {
        match self.control().exposure.0.word.start(&self.peer(rank).origin, last) {
            Ok((number, extent)) => {
                self.describe(extent, data);
                Some(self.grant(state, rank, request, Granted::Start(number), number.into()))
            }
            Err(refusal @ exposure::Refusal::Poisoned) => Some(Answer::Start(refusal)),
            Err(_) if waits => {
                state.parked.push(Parked { rank, request, what: Wish::Start { last } });
                None
            }
            Err(refusal) => Some(Answer::Start(refusal)),
        }
    }

    /// Says what an exposure opens, if it does not open all.
    fn describe(&self, extent: Extent, data: &mut Vec<u8>) {
        match extent {
            Extent::Whole => {}
            Extent::Part => {
                let (start, end) = self.control().exposure.0.part.get();
                data.extend_from_slice(&start.to_le_bytes());
                data.extend_from_slice(&end.to_le_bytes());
            }
        }
    }

    fn complete(&self, state: &mut State, rank: u32) -> Answer {
        let Some(Origin { access: Granted::Start(number), refused, .. }) = state.origins.remove(&rank) else {
            return Answer::NotAdmitted;
        };
        let exposed = &self.control().exposure.0;
        exposed.word.complete(&self.peer(rank).origin, number);
        exposed.completed.notify();
        verdict(refused)
    }

    /// Takes back a request that nobody waits for any more, whether it still waits or has been granted meanwhile.
    fn cancel(&self, state: &mut State, rank: u32, request: u64) {
        let position =
            state.parked.iter().position(|parked| parked.rank == rank && parked.request == request);
        if let Some(at) = position {
            let parked = state.parked.swap_remove(at);
            self.abandon(&parked);
            return;
        }
        match state.origins.get(&rank) {
            Some(origin) if origin.request == request => match origin.access {
                Granted::Lock(_) => drop(self.unlock(state, rank)),
                Granted::Start(_) => drop(self.complete(state, rank)),
                Granted::Nothing => {}
            },
            _ => {}
        }
    }

    /// Gives up the place of a request in a queue.
    fn abandon(&self, parked: &Parked) {
        if let Wish::Lock { sharing, ticket } = parked.what {
            if let Some(ticket) = ticket {
                self.waiter(ticket).slot.abandon(ticket);
                self.wake_first();
            }
            if sharing == Sharing::Shared {
                self.withdraw_share(parked.rank);
            }
        }
    }

    /// The handle of a rank is gone.
    fn depart(&self, state: &mut State, rank: u32) {
        state.origins.remove(&rank);
        let own = self.control();
        let peer = self.peer(rank);
        // Release: pairs with the Acquire in `has_departed`: what the rank wrote, and its flags, come before.
        peer.departed.store(DROPPED, Ordering::Release);
        // Release: pairs with the Acquire in `somebody_has_departed`.
        own.fate.0.departures.fetch_add(1, Ordering::Release);
        own.fences.0.arrivals.notify();
        own.exposure.0.completed.notify();
        // Release: pairs with the Acquire of whoever asks whether the block is free: the touches above come before.
        peer.departed.store(GONE, Ordering::Release);
    }

    /// What has become of a request that waits.
    fn look(&self, parked: &mut Parked, data: &mut Vec<u8>) -> Option<(Answer, Granted)> {
        let done = |granted, number| Some((Answer::Done(number), granted));
        match &mut parked.what {
            Wish::Start { last } => {
                let exposed = &self.control().exposure.0;
                match exposed.word.start(&self.peer(parked.rank).origin, *last) {
                    Ok((number, extent)) => {
                        self.describe(extent, data);
                        return done(Granted::Start(number), number.into());
                    }
                    Err(refusal @ exposure::Refusal::Poisoned) => {
                        return Some((Answer::Start(refusal), Granted::Nothing));
                    }
                    Err(_) => {}
                }
                let answer = match (self.is_broken(), self.failed_member()) {
                    (true, _) => Answer::Broken,
                    (false, Some((rank, evidence))) => Answer::Lost(rank, evidence),
                    // Acquire: pairs with the Release of the owner's own departure.
                    (false, None) if self.peer(self.me).departed.load(Ordering::Acquire) != 0 => {
                        Answer::Departed(self.me)
                    }
                    (false, None) => return None,
                };
                Some((answer, Granted::Nothing))
            }
            Wish::Lock { sharing, ticket } => {
                let word = &self.control().word.0;
                let place = match *ticket {
                    Some(place) => place,
                    None => match word.request(parked.rank, *sharing, self.plan.slots) {
                        Ok(Request::Granted) => return done(Granted::Lock(*sharing), 0),
                        Ok(Request::Queued(place)) => {
                            self.waiter(place).slot.enter(place, parked.rank);
                            *ticket = Some(place);
                            place
                        }
                        Err(Refusal::Full) => return None,
                        Err(refusal) => {
                            return Some((Answer::Lock(refusal, word.state().holder()), Granted::Nothing));
                        }
                    },
                };
                let (sharing, rank) = (*sharing, parked.rank);
                match word.poll(place, rank, sharing) {
                    Turn::Mine => {
                        if sharing == Sharing::Shared {
                            self.wake_first(); // The next one may be a shared one, too.
                        }
                        done(Granted::Lock(sharing), 0)
                    }
                    Turn::Poisoned => Some((Answer::Lock(Refusal::Poisoned, None), Granted::Nothing)),
                    Turn::Waiting => {
                        let (lost, evidence) = self.lost_holder()?;
                        // This lock will never be granted again.
                        word.poison();
                        self.break_window(lost, Reason::Lost);
                        Some((Answer::Lost(lost, evidence), Granted::Nothing))
                    }
                }
            }
        }
    }

    /// A rank without which the lock can't be granted: one that has failed, or has ended with the lock.
    fn lost_holder(&self) -> Option<(u32, Evidence)> {
        if let Some(lost) = self.failed_member() {
            return Some(lost);
        }
        if liveness::ended(&self.segment) == 0 {
            return None;
        }
        let holder = self.control().word.0.state().holder();
        self.members.ranks().find_map(|rank| {
            let evidence = self.evidence(rank)?;
            // Acquire: pairs with the Release in `withdraw_share`.
            let shares = self.peer(rank.0).shares.load(Ordering::Acquire) != 0;
            (holder == Some(rank.0) || shares).then_some((rank.0, evidence))
        })
    }
}

fn verdict(refused: bool) -> Answer {
    if refused { Answer::NotAdmitted } else { Answer::Done(0) }
}

// Transfers.
impl Served {
    /// Whether a rank may move data now; a refusal is remembered for its closing call.
    fn admits(&self, state: &mut State, rank: u32) -> bool {
        let shut = state.shut;
        let origin = state.origins.get(&rank).copied().unwrap_or_default();
        // Without a start or a lock it has to be a fence phase, in which the owner has no view.
        let admitted = match origin.access {
            Granted::Nothing => self.control().word.0.state().holder() != Some(self.me),
            Granted::Start(_) | Granted::Lock(_) => true,
        };
        if !shut && admitted {
            return true;
        }
        state.origins.entry(rank).or_default().refused = true;
        false
    }

    /// The address of a range of the data.
    fn place(&self, at: usize, len: usize) -> Result<*mut u8, Malformed> {
        match at <= self.bytes && len <= self.bytes - at {
            true => Ok(self.segment.at(self.offset + (self.plan.data + at) as u64)),
            false => Err(Malformed("a transfer reaches outside the window")),
        }
    }

    /// Notes what a transfer has written, for an owner that has a private copy.
    fn wrote(&self, at: usize, len: usize) {
        if let Some(marked) = self.marked {
            marked.note(&self.segment, self.bytes, at, len);
        }
    }

    fn put(&self, admitted: bool, mut body: Body<'_>) -> Result<(), Malformed> {
        while !body.is_empty() {
            let (at, len) = (body.len()?, body.u32()? as usize);
            let from = body.bytes(len)?;
            let to = self.place(at, len)?;
            if admitted {
                // SAFETY: - writable and in bounds: `place`. - readable: a slice. - no reference to the memory lives: the
                //   origin is admitted, which excludes the owner's views. - readers and writers at the same time copy by
                //   the same routine.
                unsafe { self.engine.copy(to, from.as_ptr(), len) };
                self.wrote(at, len);
            }
        }
        Ok(())
    }

    fn get(&self, mut body: Body<'_>, reply: &mut Vec<u8>) -> Result<(), Malformed> {
        while !body.is_empty() {
            let (at, len) = (body.len()?, body.u32()? as usize);
            let from = self.place(at, len)?;
            let start = reply.len();
            if BODY_MAX_BYTES / 2 < start + len {
                return Err(Malformed("more is asked for than one reply holds"));
            }
            reply.resize(start + len, 0);
            // SAFETY: - readable and in bounds: `place`. - writable: just made so long. - writers at the same time copy by the
            //   same routine.
            unsafe { self.engine.copy(reply[start..].as_mut_ptr(), from, len) };
        }
        Ok(())
    }

    /// Combines elements, and gives the bits that were there.
    fn combine(
        &self,
        admitted: bool,
        mut body: Body<'_>,
        mut fetched: impl FnMut(u64),
    ) -> Result<(), Malformed> {
        let basic = basic(&mut body)?;
        let operation = body.u32()?;
        while !body.is_empty() {
            let (at, count) = (body.len()?, body.u32()? as usize);
            let size = basic.size();
            let len = count.checked_mul(size).ok_or(Malformed("more elements than can be counted"))?;
            let from = body.bytes(len)?;
            let to = self.place(at, len)?;
            if !at.is_multiple_of(size) {
                return Err(Malformed("an element is not aligned"));
            }
            if !admitted {
                continue;
            }
            for (i, element) in from.chunks_exact(size).enumerate() {
                let mut bits = [0; 8];
                bits[..size].copy_from_slice(element);
                // SAFETY: - in bounds: `place`.
                let to = unsafe { to.add(i * size) };
                // SAFETY: - in bounds: as above. - aligned: checked above, and the data are. - no reference: see `put`.
                let old = unsafe { fetch(basic, operation, to, u64::from_le_bytes(bits)) };
                fetched(old.ok_or(Malformed("an operation that the type does not have"))?);
            }
            self.wrote(at, len);
        }
        Ok(())
    }

    fn compare_swap(&self, mut body: Body<'_>) -> Result<u64, Malformed> {
        let basic = basic(&mut body)?;
        let at = body.len()?;
        let (expected, new) = (body.u64()?, body.u64()?);
        body.end()?;
        let to = self.place(at, basic.size())?;
        if !at.is_multiple_of(basic.size()) {
            return Err(Malformed("an element is not aligned"));
        }
        macro_rules! on {
            ($($name:ident: $type:ty),*) => {
                match basic {
                    // SAFETY: - in bounds and aligned: checked above. - no reference: see `put`.
                    $(BasicType::$name => unsafe {
                        atomic::compare_swap(to.cast::<$type>(), <$type>::from_bits_of(expected), <$type>::from_bits_of(new))
                    }.bits_of(),)*
                }
            };
        }
        let before = on!(I8: i8, I16: i16, I32: i32, I64: i64, U8: u8, U16: u16, U32: u32, U64: u64, F32: f32, F64: f64, Bool: Bool);
        if before == expected {
            self.wrote(at, basic.size());
        }
        Ok(before)
    }
}

/// The bits of elements, under names that floats do not have themselves.
trait Bits: Basic {
    fn from_bits_of(bits: u64) -> Self {
        <Self as Basic>::from_bits(bits)
    }

    fn bits_of(self) -> u64 {
        <Self as Basic>::to_bits(self)
    }
}

impl<T: Basic> Bits for T {}

fn basic(body: &mut Body<'_>) -> Result<BasicType, Malformed> {
    let code = body.u32()?;
    u8::try_from(code)
        .ok()
        .and_then(BasicType::from_code)
        .ok_or(Malformed("an element of no type that exists"))
}

/// Combines one element and gives what was there; `None` for an operation that the type does not have.
///
/// # Safety
///
/// As for [`atomic::fetch_op`].
unsafe fn fetch(basic: BasicType, operation: u32, at: *mut u8, bits: u64) -> Option<u64> {
    macro_rules! apply {
        ($type:ty: $($name:ident),*) => {{
            let value = <$type>::from_bits_of(bits);
            let at = at.cast::<$type>();
            match operation {
                // SAFETY: - the caller's promise.
                $(code if code == OpCode::$name as u32 => Some(unsafe { atomic::fetch_op(at, $name, value) }.bits_of()),)*
                _ => None,
            }
        }};
    }
    macro_rules! integer {
        ($type:ty) => {
            apply!($type: Sum, Prod, Min, Max, And, Or, Xor, Replace, NoOp)
        };
    }
    match basic {
        BasicType::I8 => integer!(i8),
        BasicType::I16 => integer!(i16),
        BasicType::I32 => integer!(i32),
        BasicType::I64 => integer!(i64),
        BasicType::U8 => integer!(u8),
        BasicType::U16 => integer!(u16),
        BasicType::U32 => integer!(u32),
        BasicType::U64 => integer!(u64),
        BasicType::F32 => apply!(f32: Sum, Prod, Min, Max, Replace, NoOp),
        BasicType::F64 => apply!(f64: Sum, Prod, Min, Max, Replace, NoOp),
        BasicType::Bool => apply!(Bool: And, Or, Xor, Replace, NoOp),
    }
}

impl Service for Served {
    fn serve(
        &self,
        from: u32,
        request: u64,
        mut body: Body<'_>,
        replies: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        let Some(Rank(rank)) = self.members.rank_of(Rank(from)) else {
            return Err(Malformed("a rank asks for a window whose team it is not in"));
        };
        let ask = Ask::read(&mut body)?;
        let mut state = self.state();
        let mut data = Vec::new();
        let answer = match ask {
            Ask::Put => {
                let admitted = self.admits(&mut state, rank);
                return self.put(admitted, body);
            }
            Ask::Accumulate => {
                let admitted = self.admits(&mut state, rank);
                return self.combine(admitted, body, |_| ());
            }
            Ask::Get => match self.admits(&mut state, rank) {
                true => {
                    self.get(body, &mut data)?;
                    Some(Answer::Done(0))
                }
                false => Some(Answer::NotAdmitted),
            },
            Ask::Fetch => match self.admits(&mut state, rank) {
                true => {
                    self.combine(true, body, |old| data.extend_from_slice(&old.to_le_bytes()))?;
                    Some(Answer::Done(0))
                }
                false => Some(Answer::NotAdmitted),
            },
            Ask::CompareSwap => match self.admits(&mut state, rank) {
                true => Some(Answer::Done(self.compare_swap(body)?)),
                false => Some(Answer::NotAdmitted),
            },
            Ask::Lock => {
                let (sharing, waits) = (read_sharing(body.u32()?)?, body.u32()? != 0);
                body.end()?;
                self.lock(&mut state, rank, request, sharing, waits)
            }
            Ask::Upgrade => Some(self.upgrade(&mut state, rank)),
            Ask::Unlock => Some(self.unlock(&mut state, rank)),
            Ask::Start => {
                let (last, waits) = (body.u32()?, body.u32()? != 0);
                body.end()?;
                self.start(&mut state, (rank, request), (last, waits), &mut data)
            }
            Ask::Complete => Some(self.complete(&mut state, rank)),
            Ask::Flush => {
                let refused = state.origins.get_mut(&rank).map(|origin| std::mem::take(&mut origin.refused));
                Some(verdict(refused.unwrap_or(false)))
            }
            Ask::Part => {
                self.describe(Extent::Part, &mut data);
                Some(Answer::Done(0))
            }
            Ask::Posted => {
                let status = self.control().exposure.0.word.status();
                let admits = !status.is_for_group() || self.peer(rank).origin.is_allowed(status.number());
                Some(Answer::Done(match (status.is_open(), admits) {
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
                return Ok(());
            }
            Ask::Break => {
                let (rank, reason) = (body.u32()?, read_reason(body.u32()?)?);
                body.end()?;
                if self.members.size() <= rank {
                    return Err(Malformed("a window is broken by a rank that is not in its team"));
                }
                self.break_window(rank, reason);
                return Ok(());
            }
            Ask::Depart => {
                self.depart(&mut state, rank);
                return Ok(());
            }
            Ask::Cancel => {
                let cancelled = body.u64()?;
                body.end()?;
                self.cancel(&mut state, rank, cancelled);
                self.waiting.store(state.parked.len(), Ordering::Relaxed);
                return Ok(());
            }
        };
        self.waiting.store(state.parked.len(), Ordering::Relaxed); // Relaxed: see `ring`.
        if let Some(answer) = answer {
            Writer::new(replies, Kind::Reply, request).bytes(&answer.encode()).bytes(&data);
        }
        Ok(())
    }

    fn look_again(&self, answer: &mut dyn FnMut(u32, u64, &[u8])) {
        let mut state = self.state();
        let mut parked = std::mem::take(&mut state.parked);
        parked.retain_mut(|parked| {
            let job_rank = self.members.job_rank(Rank(parked.rank));
            if self.evidence(Rank(parked.rank)).is_some() {
                self.abandon(parked);
                return false;
            }
            let mut data = Vec::new();
            let Some((reply, granted)) = self.look(parked, &mut data) else { return true };
            match granted {
                Granted::Nothing => self.abandon(parked),
                access => {
                    let origin = Origin { access, request: parked.request, refused: false };
                    state.origins.insert(parked.rank, origin);
                }
            }
            answer(job_rank.0, parked.request, &[reply.encode(), data].concat());
            false
        });
        state.parked = parked;
        self.waiting.store(state.parked.len(), Ordering::Relaxed); // Relaxed: see `ring`.
    }

    fn look_again_after(&self) -> Option<Duration> {
        (self.waiting.load(Ordering::Relaxed) != 0).then_some(self.slice) // Relaxed: the agent wrote it.
    }
}

fn read_sharing(code: u32) -> Result<Sharing, Malformed> {
    match code {
        0 => Ok(Sharing::Exclusive),
        1 => Ok(Sharing::Shared),
        _ => Err(Malformed("a lock of a kind that does not exist")),
    }
}
