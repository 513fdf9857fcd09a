//! Who is let into the epochs of a part that is served, in which order, and what becomes of those that end or give up: locks and
//! starts of ranks without shared memory, by the words of those that map it. Never waits: a request that can't be granted is
//! parked in the state, and looked at again.
#![forbid(unsafe_code)]

use std::sync::atomic::{Ordering, fence};

use super::super::control::{DROPPED, GONE};
use super::super::protocol::{Answer, Ask};
use super::transfers::{Combined, Fetches};
use super::{Granted, Origin, Parked, Served, State, Verdict, Wish};
use crate::error::Evidence;
use crate::liveness;
use crate::sync::exposure::{self, Extent};
use crate::sync::phases::Reason;
use crate::sync::state_word::{Refusal, Request, Sharing, Ticket, Turn};
use crate::transport::tcp::frame::{Body, Malformed};

impl Served {
    pub(super) fn lock(
        &self,
        state: &mut State,
        rank: u32,
        request: u64,
        sharing: Sharing,
        waits: bool,
    ) -> Option<Answer> {
        let word = &self.control().word.0;
        let granted = match waits {
            true => {
                self.announce_share(rank, sharing);
                word.request(rank, sharing, self.plan.slots)
            }
            false => self.take_at_once(rank, sharing).map(|()| Request::Granted),
        };
        match granted {
            Ok(Request::Granted) => Some(self.grant(state, rank, request, Granted::Lock(sharing), 0)),
            Ok(Request::Queued(ticket)) => {
                self.enter_queue(ticket, rank);
                let what = Wish::Lock { sharing, ticket: Some(ticket) };
                let mut parked = Parked { rank, request, what, envelope: None };
                match self.look(&mut parked, &mut Vec::new()) {
                    Some((Answer::Done(_), access)) => Some(self.grant(state, rank, request, access, 0)),
                    Some((refusal, _)) => {
                        self.abandon(&parked);
                        Some(refusal)
                    }
                    None => {
                        state.parked.push(parked);
                        None
                    }
                }
            }
            Err(Refusal::Full) if waits => {
                let what = Wish::Lock { sharing, ticket: None };
                state.parked.push(Parked { rank, request, what, envelope: None });
                None
            }
            Err(refusal) => {
                self.withdraw_share(rank);
                Some(Answer::Lock(refusal, word.state().holder()))
            }
        }
    }

    /// Enters a rank in the queue of the lock. The word is to be looked at afterwards: whoever has let go of the lock before it could
    /// see the entry has told nobody.
    fn enter_queue(&self, ticket: Ticket, rank: u32) {
        self.waiter(ticket).slot.enter(ticket, rank);
        // SeqCst: pairs with the fence in `settle`, between the change of the word and the look at the entry.
        fence(Ordering::SeqCst);
    }

    /// Says that a rank is about to share the lock.
    pub(super) fn announce_share(&self, rank: u32, sharing: Sharing) {
        if sharing == Sharing::Shared {
            // Relaxed: published by the exchange that grants the lock.
            self.peer(rank).shares.store(1, Ordering::Relaxed);
        }
    }

    fn withdraw_share(&self, rank: u32) {
        // Release: pairs with the Acquire in `is_quiet`.
        self.peer(rank).shares.store(0, Ordering::Release);
    }

    fn grant(&self, state: &mut State, rank: u32, request: u64, access: Granted, number: u64) -> Answer {
        **state.origins.entry(rank).or_default() = Origin { access, request, ..Origin::default() };
        Answer::Done(number)
    }

    pub(super) fn upgrade(&self, state: &mut State, rank: u32) -> Answer {
        let word = &self.control().word.0;
        let Some(Origin { access: access @ Granted::Lock(Sharing::Shared), .. }) =
            state.origins.get_mut(&rank).map(Box::as_mut)
        else {
            return Answer::NotAdmitted;
        };
        match word.try_upgrade(rank) {
            Ok(()) => {
                *access = Granted::Lock(Sharing::Exclusive);
                self.withdraw_share(rank);
                Answer::Done(0)
            }
            Err(refusal) => Answer::Lock(refusal, word.state().holder()),
        }
    }

    pub(super) fn unlock(&self, state: &mut State, rank: u32) -> Answer {
        let Some(Origin { access: Granted::Lock(sharing), verdict, .. }) =
            state.origins.remove(&rank).map(|origin| *origin)
        else {
            return Answer::NotAdmitted;
        };
        self.give_back(rank, sharing);
        verdict.answer(0)
    }

    /// Takes the lock for a rank if it is free.
    pub(super) fn take_at_once(&self, rank: u32, sharing: Sharing) -> Result<(), Refusal> {
        self.announce_share(rank, sharing);
        let taken = self.control().word.0.try_lock(rank, sharing);
        if taken.is_err() && sharing == Sharing::Shared {
            self.withdraw_share(rank);
        }
        taken
    }

    /// Gives a lock back that a rank has.
    pub(super) fn give_back(&self, rank: u32, sharing: Sharing) {
        if sharing == Sharing::Shared {
            self.withdraw_share(rank);
        }
        if self.control().word.0.unlock(rank, sharing) {
            self.wake_first();
        }
    }

    pub(super) fn start(
        &self,
        state: &mut State,
        (rank, request): (u32, u64),
        waits: bool,
        data: &mut Vec<u8>,
    ) -> Option<Answer> {
        match self.try_start(rank) {
            Ok((number, extent)) => {
                self.describe(extent, data);
                Some(self.grant(state, rank, request, Granted::Start(number), number.into()))
            }
            Err(refusal @ exposure::Refusal::Poisoned) => Some(Answer::Start(refusal)),
            Err(_) if waits => {
                state.parked.push(Parked { rank, request, what: Wish::Start, envelope: None });
                None
            }
            Err(refusal) => Some(Answer::Start(refusal)),
        }
    }

    /// Lets a rank into the exposure that is open, if it is for the rank.
    pub(super) fn try_start(&self, rank: u32) -> Result<(u32, Extent), exposure::Refusal> {
        let (own, record) = (self.control(), &self.peer(rank).origin);
        let withdrawn = || own.ends.0.completed.notify();
        // What the rank says it has used last is not asked for: that an origin comes once is what closes an exposure.
        own.exposure.0.word.start(rank, record, record.last(), withdrawn)
    }

    /// Says what an exposure opens, if it does not open all.
    pub(super) fn describe(&self, extent: Extent, data: &mut Vec<u8>) {
        match extent {
            Extent::Whole => {}
            Extent::Part => {
                let (start, end) = self.control().exposure.0.part.get();
                data.extend_from_slice(&start.to_le_bytes());
                data.extend_from_slice(&end.to_le_bytes());
            }
        }
    }

    pub(super) fn complete(&self, state: &mut State, rank: u32) -> Answer {
        match state.origins.remove(&rank).map(|origin| *origin) {
            Some(Origin { access: Granted::Start(number), verdict, .. }) => {
                let ends = &self.control().ends.0;
                ends.tally.complete(&self.peer(rank).origin, number);
                ends.completed.notify_after_change();
                verdict.answer(number)
            }
            Some(Origin { access: Granted::Refused, told: true, .. }) => Answer::Done(0),
            Some(Origin { access: Granted::Refused, verdict, .. }) => verdict.answer(0),
            _ => Answer::NotAdmitted,
        }
    }

    /// What a rank is told whose request was not admitted.
    pub(super) fn refusal(&self, state: &mut State, rank: u32) -> Answer {
        match state.origins.get_mut(&rank).map(Box::as_mut) {
            Some(Origin { access: Granted::Refused, verdict, told, .. }) => {
                *told = true;
                verdict.answer(0)
            }
            _ => Answer::NotAdmitted,
        }
    }

    /// Takes back a request that nobody waits for any more, whether it still waits or has been granted meanwhile.
    pub(super) fn cancel(&self, state: &mut State, rank: u32, request: u64) {
        let position =
            state.parked.iter().position(|parked| parked.rank == rank && parked.request == request);
        if let Some(at) = position {
            let parked = state.parked.swap_remove(at);
            if !matches!(parked.what, Wish::Rest { .. }) {
                self.abandon(&parked);
                return;
            }
        }
        match state.origins.get(&rank).map(Box::as_ref) {
            Some(origin) if origin.request == request => match origin.access {
                Granted::Lock(_) => drop(self.unlock(state, rank)),
                Granted::Start(_) => drop(self.complete(state, rank)),
                Granted::Nothing | Granted::Refused => {}
            },
            _ => {}
        }
    }

    /// Gives up the place of a request in a queue.
    pub(super) fn abandon(&self, parked: &Parked) {
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
    pub(super) fn depart(&self, state: &mut State, rank: u32) {
        state.origins.remove(&rank);
        let own = self.control();
        let peer = self.peer(rank);
        // Release: pairs with the Acquire in `has_departed`: what the rank wrote, and its flags, come before.
        peer.departed.store(DROPPED, Ordering::Release);
        // Release: pairs with the Acquire in `somebody_has_departed`.
        own.fate.0.departures.fetch_add(1, Ordering::Release);
        own.fences.0.arrivals.notify();
        own.ends.0.completed.notify();
        // Release: pairs with the Acquire of whoever asks whether the block is free: the touches above come before.
        peer.departed.store(GONE, Ordering::Release);
    }

    /// Does what can be done of a request: the answer, or `None` if it waits on.
    pub(super) fn settle(
        &self,
        state: &mut State,
        mut parked: Parked,
    ) -> Result<Option<(Answer, Vec<u8>)>, Malformed> {
        let mut data = Vec::new();
        if !matches!(parked.what, Wish::Rest { .. }) {
            let Some((answer, access)) = self.look(&mut parked, &mut data) else {
                state.parked.push(parked);
                return Ok(None);
            };
            if access == Granted::Nothing {
                self.abandon(&parked);
                return Ok(Some((answer, data)));
            }
            let origin = Origin { access, request: parked.request, ..Origin::default() };
            state.origins.insert(parked.rank, Box::new(origin));
            match answer {
                // Where a part is exposed the origin has to look at its transfers first.
                Answer::Done(number) if parked.envelope.is_some() && data.is_empty() => {
                    parked.what = Wish::Rest { number, done: 0 };
                }
                _ => return Ok(Some((answer, data))),
            }
        }
        let (rank, bytes) = (parked.rank, parked.envelope.take().unwrap_or_default());
        let Wish::Rest { number, done } = &mut parked.what else { return Ok(None) };
        while *done < bytes.len() {
            let mut body = Body::new(&bytes[*done..]);
            let entry = body.u32()? as usize;
            let mut entry = Body::new(body.bytes(entry)?);
            let after = bytes.len() - body.left();
            let admitted = self.admits(state, rank);
            match Ask::read(&mut entry)? {
                Ask::Put => self.put(admitted, entry)?,
                Ask::Accumulate => match self.combine(state, (rank, admitted), entry, Fetches::No)? {
                    Combined::All(_) => {}
                    Combined::Held => {
                        parked.envelope = Some(bytes);
                        state.parked.push(parked);
                        return Ok(None);
                    }
                    Combined::Lost(lost, evidence) => {
                        state.origins.entry(rank).or_default().verdict = Verdict::Lost(lost, evidence);
                    }
                },
                _ => return Err(Malformed("an epoch has what can't be part of it")),
            }
            *done = after;
        }
        let closed = match state.origins.get(&rank).map(|origin| origin.access) {
            Some(Granted::Start(_)) => self.complete(state, rank),
            _ => self.unlock(state, rank),
        };
        Ok(Some(match closed {
            Answer::Done(_) => (Answer::Done(*number), data),
            failed => (failed, data),
        }))
    }

    /// What has become of a request that waits.
    fn look(&self, parked: &mut Parked, data: &mut Vec<u8>) -> Option<(Answer, Granted)> {
        let done = |granted, number| Some((Answer::Done(number), granted));
        match &mut parked.what {
            Wish::Rest { .. } => None,
            Wish::Start => {
                match self.try_start(parked.rank) {
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
                            self.enter_queue(place, parked.rank);
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
