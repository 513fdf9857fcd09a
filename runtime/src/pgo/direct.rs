//! Blocking offers that are in no store: their owner serves what comes in its lanes, from the calls in which it waits. Never shares
//! its memory with anybody but by a grant.
//!
//! While such an offer stands, nothing else is open under its key at its rank, and nothing waits in the store; so what it may serve
//! is in the lanes. As soon as there is more (an event that waits in the store, data that stay with their originator while the
//! offered memory is private, another offer), it ends and goes on as an offer in the store, with what it has served so far.
//!
//! A put of a word that meets it is: the first line of a parcel, written by the originator and read here; one exchange of its word,
//! one copy, one store of its word. Nobody takes a lock or memory. A long put is announced so, granted a place, and copied once, by
//! its originator; or finds an invitation, and is not announced.
//!
//! Budget, as the machine code for x86-64 has it: a scope with a put and an offer executes eight locked instructions (the scope's
//! seat; the lock of what it has issued, twice; taking and giving the parcel, and the desk; the claim), one fence per message, and
//! two more locked ones per look at its own events. Lines that travel: the parcel's there and, done, back.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::panic::Location;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::event::{Family, Key};
use super::hub::{CLEANUP_PATIENCE, Hub, noted};
use super::lanes::{Arrived, Spot, fits_parcel, place_in};
use super::offer::{Held, Offerable, Over, Request, Status, Terms};
use super::raw::{Place, offered_place};
use super::scope::Scope;
use super::standing::{Begun, Caller, refuse_terms};
use super::wait::{Own, explain, is_needed, wait};
use super::{COUNT_ANY, Count, PUTS_OK};
use crate::error::{ErrorKind, Result};
use crate::liveness::{Act, NO_BLOCKER, Needs, WaitFor};
use crate::rank::Rank;
use crate::sync::desk::Turn;
use crate::sync::handover::Stage;
use crate::transport::shm::offers::Store;

/// Looks at lanes and parcels in one look of a wait.
pub(super) const LOOKS: u32 = 4;
/// Long puts that an offer lets be copied at one time.
const GRANTS_MAX: usize = 4;
/// How long a sender has to begin what it was granted before another one may be granted it instead.
const GRANT_TIME: Duration = Duration::from_millis(1);

impl Hub {
    /// Counts an event that the direct offer has served.
    fn count_direct(&self) {
        // Relaxed, and no exchange: only whoever has the desk writes it.
        self.direct_served.store(self.direct_served.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Lets a direct offer of a rank that shares memory go to its store, and waits until it has gone there, or has ended.
    ///
    /// # Errors
    /// `PeerLost`, `Stalled`.
    pub(super) fn call_in(
        &self,
        by: Caller<'_>,
        (job_rank, turn): (u32, Turn),
        key: &Key,
        call: &'static str,
        location: &'static Location<'static>,
    ) -> Result<()> {
        let store = self.store(job_rank, call)?;
        store.desk.want(turn);
        self.wake(job_rank);
        let what = WaitFor {
            call,
            window: None,
            team: by.members,
            // Another thread of this rank is no rank to wait for.
            needs: Needs::Those(&|rank| job_rank != self.me && by.members.job_rank(rank).0 == job_rank),
            act: Act::Any,
            detail: Some(("tag", key.tag)),
            blocker: NO_BLOCKER,
        };
        let gone = by.context.wait(&store.freed, what, || store.desk.is_over(turn).then_some(()));
        gone.map_err(|error| error.called_at(location))
    }

    /// Lets a direct offer of another thread go to the store first, which was opened earlier.
    pub(super) fn precede(
        &self,
        by: Caller<'_>,
        key: &Key,
        call: &'static str,
        location: &'static Location<'static>,
    ) -> Result<()> {
        match self.store(self.me, call)?.desk.stands(key.bucket()) {
            None => Ok(()),
            Some(turn) => self.call_in(by, (self.me, turn), key, call, location),
        }
    }
}

/// How a direct offer has ended.
enum Outcome {
    /// It has served what it counts.
    Complete,
    /// It goes on in the store.
    Elsewhere,
}

/// A place that the sender of a parcel may copy to.
struct Grant {
    spot: Spot,
    originator: u32,
    bytes: u64,
    since: Instant,
}

/// What a direct offer has come to.
struct Direct<'a, 'b> {
    hub: &'a Hub,
    key: Key,
    terms: Terms,
    count: u64,
    /// The job rank of the only originator.
    only: Option<u32>,
    /// Where the memory lies, if ranks share it.
    shared: (u64, usize),
    held: Held<'b>,
    begun: Begun,
    grants: [Option<Grant>; GRANTS_MAX],
    granted: usize,
    /// Lanes that an invitation was posted in, and its number.
    invitations: [Option<(u64, u64)>; GRANTS_MAX],
    invited: usize,
    /// Whether it was looked who is to be invited.
    has_invited: bool,
}

impl Drop for Direct<'_, '_> {
    fn drop(&mut self) {
        if self.granted + self.invited != 0 {
            self.withdraw();
        }
    }
}

impl Direct<'_, '_> {
    fn is_full(&self) -> bool {
        self.count <= self.begun.served
    }

    /// Whether it may take one more event beside those that are promised to somebody.
    fn has_room(&self) -> bool {
        self.begun.served + ((self.granted + self.invited) as u64) < self.count
    }

    /// Serves what has come. Says that the offer has to go to the store, if it can't go on here.
    #[inline]
    fn serve(&mut self, is_wanted: bool) -> Result<Option<Outcome>> {
        if self.granted + self.invited != 0 {
            self.collect();
        }
        if is_wanted {
            return Ok(self.is_ungranted().then_some(Outcome::Elsewhere));
        }
        if self.is_full() {
            return Ok(Some(Outcome::Complete));
        }
        let hub = self.hub;
        let store = hub.store(hub.me, "offer")?;
        // Relaxed: whoever adds an event wakes this rank afterwards, which orders the two.
        let has_more = store.buckets[self.key.bucket()].events.first.load(Ordering::Relaxed) != 0;
        if has_more {
            return Ok(self.is_ungranted().then_some(Outcome::Elsewhere));
        }
        if self.terms.events & PUTS_OK != PUTS_OK {
            return Ok(None);
        }
        for (offset, lane) in hub.lanes_toward(store) {
            if self.only.is_some_and(|only| only != lane.originator.load(Ordering::Relaxed)) {
                continue;
            }
            while self.has_room() || self.granted + self.invited != 0 {
                let Some(arrived) = hub.next_parcel(offset, lane, &self.key) else { break };
                let is_away = hub.parcel(arrived.spot).is_away.load(Ordering::Relaxed) != 0;
                // What is here comes before what may come.
                if !self.has_room() && !self.uninvite() && !self.regret(is_away) {
                    break;
                }
                if is_away && self.granted == GRANTS_MAX && !self.regret(is_away) {
                    break;
                }
                if !hub.claim(&arrived, &self.key) {
                    continue;
                }
                if self.receive(&arrived) {
                    continue;
                }
                hub.let_go(&arrived);
                // What is in the way is a long put to private memory.
                return Ok(self.is_ungranted().then_some(Outcome::Elsewhere));
            }
        }
        if !self.has_invited {
            self.has_invited = true;
            if self.held.private().is_none() && !fits_parcel(self.shared.1) {
                self.invite(store);
            }
        }
        Ok(self.is_full().then_some(Outcome::Complete))
    }

    /// Takes a parcel that was claimed, or grants it a place. Says whether that could be done.
    #[inline]
    fn receive(&mut self, arrived: &Arrived) -> bool {
        let hub = self.hub;
        let parcel = hub.parcel(arrived.spot);
        let bytes = parcel.bytes.load(Ordering::Relaxed);
        let displacement = parcel.displacement.load(Ordering::Relaxed);
        let is_away = parcel.is_away.load(Ordering::Relaxed) != 0;
        let offered = self.held.private().map_or(self.shared.1, Place::bytes);
        let start = match place_in(offered, self.terms.unit, displacement, bytes) {
            Ok(start) => start,
            Err(found) => {
                hub.refuse(arrived, &found);
                self.begun.fault.get_or_insert((found, arrived.originator));
                self.begun.served += 1;
                hub.count_direct();
                return true;
            }
        };
        if is_away {
            if self.held.private().is_some() || self.granted == GRANTS_MAX {
                return false;
            }
            hub.lane(arrived.spot.lane).invitation.is_usual.store(1, Ordering::Relaxed);
            parcel.short.store(self.shared.0 + start as u64, Ordering::Relaxed);
            if !parcel.word.grant(arrived.spot.number) {
                return true;
            }
            hub.wake(arrived.originator);
            let grant =
                Grant { spot: arrived.spot, originator: arrived.originator, bytes, since: Instant::now() };
            self.grants[self.granted] = Some(grant);
            self.granted += 1;
            return true;
        }
        let len = bytes as usize;
        let data = hub.parcel_data(arrived.spot, len);
        match self.held.private() {
            Some(place) => place.take(hub.engine, start, &data, 0, len),
            None => offered_place(&hub.segment, self.shared.0, self.shared.1)
                .take(hub.engine, start, &data, 0, len),
        }
        parcel.word.done(arrived.spot.number);
        hub.wake(arrived.originator);
        self.begun.served += 1;
        self.begun.moved += bytes;
        hub.count_direct();
        true
    }

    /// Names the offered memory to the originators that have put much the last time, before they ask.
    fn invite(&mut self, store: &Store) {
        let hub = self.hub;
        for (offset, lane) in hub.lanes_toward(store) {
            let invitation = &lane.invitation;
            let originator = lane.originator.load(Ordering::Relaxed);
            let look = invitation.word.look();
            if !self.has_room() || self.invited == GRANTS_MAX {
                return;
            }
            if invitation.is_usual.load(Ordering::Relaxed) == 0
                || self.only.is_some_and(|only| only != originator)
                || !look.stage().is_over()
            {
                continue;
            }
            let number = look.number() + 1;
            invitation.team.store(self.key.team, Ordering::Relaxed);
            invitation.tag.store(self.key.tag, Ordering::Relaxed);
            invitation.base.store(self.shared.0, Ordering::Relaxed);
            invitation.bytes.store(self.shared.1 as u64, Ordering::Relaxed);
            invitation.unit.store(self.terms.unit as u64, Ordering::Relaxed);
            invitation.word.post(number);
            hub.wake(originator);
            self.invitations[self.invited] = Some((offset, number));
            self.invited += 1;
        }
    }

    /// Takes an invitation back that nobody has accepted. Says whether there was one.
    fn uninvite(&mut self) -> bool {
        for at in 0..self.invited {
            let Some((offset, number)) = self.invitations[at] else { continue };
            let invitation = &self.hub.lane(offset).invitation;
            if invitation.word.take_back(number) {
                // Something else came from there, or nothing; it has to ask the next time.
                invitation.is_usual.store(0, Ordering::Relaxed);
                self.forget_invitation(at);
                return true;
            }
        }
        false
    }

    /// Takes a grant back in favour of another parcel: its sender may be anywhere, even where it waits for the sender of the other
    /// one. Where that is away, too, only what was granted long ago, so that each gets its time. Says whether there was one.
    fn regret(&mut self, is_away: bool) -> bool {
        for at in 0..self.granted {
            let Some(grant) = &self.grants[at] else { unreachable!("grants are in a row") };
            if is_away && grant.since.elapsed() < GRANT_TIME {
                continue;
            }
            if self.hub.parcel(grant.spot).word.revoke(grant.spot.number) {
                self.hub.wake(grant.originator);
                self.forget_grant(at);
                return true;
            }
        }
        false
    }

    fn forget_grant(&mut self, at: usize) {
        self.granted -= 1;
        self.grants.swap(at, self.granted);
        self.grants[self.granted] = None;
    }

    fn forget_invitation(&mut self, at: usize) {
        self.invited -= 1;
        self.invitations.swap(at, self.invited);
        self.invitations[self.invited] = None;
    }

    /// Looks at the invitations: counts what was put.
    fn collect_invited(&mut self) {
        let mut at = 0;
        while at < self.invited {
            let Some((offset, _)) = self.invitations[at] else { unreachable!("invitations are in a row") };
            let invitation = &self.hub.lane(offset).invitation;
            match invitation.word.look().stage() {
                Stage::Done => self.begun.moved += invitation.moved.load(Ordering::Relaxed),
                Stage::Refused => {
                    let fault = noted(&invitation.fault);
                    self.begun.fault = self.begun.fault.take().or(fault);
                }
                _ => {
                    at += 1;
                    continue;
                }
            }
            self.begun.served += 1;
            self.forget_invitation(at);
        }
    }

    /// Looks at the grants: counts those that were delivered, and forgets those that were taken back.
    fn collect(&mut self) {
        self.collect_invited();
        let mut at = 0;
        while at < self.granted {
            let Some(grant) = &self.grants[at] else { unreachable!("grants are in a row") };
            let word = &self.hub.parcel(grant.spot).word;
            let look = word.look();
            if look.number() == grant.spot.number {
                match look.stage() {
                    Stage::Granted | Stage::Begun => {
                        at += 1;
                        continue;
                    }
                    Stage::Delivered => {
                        self.begun.served += 1;
                        self.begun.moved += grant.bytes;
                        word.done(grant.spot.number);
                    }
                    _ => {}
                }
            }
            self.forget_grant(at);
        }
    }

    /// Takes all grants back that nobody copies to. Says whether none is left.
    fn is_ungranted(&mut self) -> bool {
        for grant in self.grants.iter().flatten() {
            if self.hub.parcel(grant.spot).word.revoke(grant.spot.number) {
                self.hub.wake(grant.originator);
            }
        }
        while self.uninvite() {}
        self.collect();
        self.granted + self.invited == 0
    }

    /// Takes all grants back. What somebody is in the middle of copying to, and does not leave soon, is given up.
    #[cold]
    fn withdraw(&mut self) {
        let begun = Instant::now();
        while !self.is_ungranted() {
            if CLEANUP_PATIENCE < begun.elapsed() {
                self.held.renounce();
                for grant in self.grants.iter().flatten() {
                    self.hub.parcel(grant.spot).word.forsake(grant.spot.number);
                }
                (self.granted, self.invited) = (0, 0);
                return;
            }
            std::thread::yield_now();
        }
    }
}

/// Gives the desk back.
struct AtDesk<'a>(&'a Store, Turn);

impl AtDesk<'_> {
    fn is_wanted(&self) -> bool {
        self.0.desk.is_wanted(self.1)
    }
}

impl Drop for AtDesk<'_> {
    fn drop(&mut self) {
        self.0.desk.give(self.1);
        self.0.freed.notify_after_change();
    }
}

impl Scope<'_, '_> {
    /// Offers, and waits until the offer has served so many events and the scope's own are served.
    pub(super) fn blocking<B: Offerable>(
        &self,
        call: &'static str,
        family: Family,
        mut over: Over<B>,
        count: Count,
        location: &'static Location<'static>,
    ) -> Result<Status> {
        let key = self.key(family);
        if count == COUNT_ANY {
            let note = format!("a blocking offer would not know when to end; {key}");
            return Err(self.by.error(ErrorKind::CountAnyNotAllowed, call).note(note).called_at(location));
        }
        self.refuse_dangling(family, call, location)?;
        let mut begun = Begun::default();
        let mut desk = None;
        if family == Family::Plain && self.by.hub.remote.is_none() && !over.terms.by_origin {
            refuse_terms(self.by, call, &key, (&over.terms, count.0), location)?;
            let store = self.by.hub.store(self.by.hub.me, call)?;
            let bucket = &store.buckets[key.bucket()];
            // Relaxed: the desk orders it after the turn. Whoever adds an event wakes this rank afterwards.
            let is_clear = || {
                bucket.offers.first.load(Ordering::Relaxed) == 0
                    && bucket.events.first.load(Ordering::Relaxed) == 0
            };
            // An offer of nothing is in nobody's way.
            let serves_none = count == Count(0);
            if !serves_none && is_clear() {
                // An offer may have opened between the look and the turn.
                let turn = store.desk.take(key.bucket()).map(|turn| AtDesk(store, turn));
                desk = turn.filter(|_| is_clear());
            }
            if serves_none || desk.is_some() {
                let held = over.buffer.held();
                match self.direct(call, key, (over.terms, count.0), held, desk.as_ref(), location)? {
                    (Outcome::Complete, done) => {
                        drop(desk);
                        return self.end_direct(call, &key, done, location);
                    }
                    (Outcome::Elsewhere, so_far) => begun = so_far,
                }
            }
        }
        let mut request = Request::new(self.by, call, key, (over, count), false, location)?;
        request.standing.begun = begun;
        request.standing.follows = desk.is_some();
        request.open(0, location)?;
        drop(desk);
        request.finish(Some(self), location)
    }

    fn direct(
        &self,
        call: &'static str,
        key: Key,
        (terms, count): (Terms, u64),
        held: Held<'_>,
        desk: Option<&AtDesk<'_>>,
        location: &'static Location<'static>,
    ) -> Result<(Outcome, Begun)> {
        let by = &self.by;
        let direct = RefCell::new(Direct {
            hub: by.hub,
            key,
            terms,
            count,
            only: terms.only.map(|rank| by.members.job_rank(rank).0),
            shared: held.shared(),
            held,
            begun: Begun::default(),
            grants: [const { None }; GRANTS_MAX],
            granted: 0,
            invitations: [None; GRANTS_MAX],
            invited: 0,
            has_invited: false,
        });
        let needed = |rank: Rank| {
            let is_full = direct.borrow().is_full();
            is_needed(by, &key, Some(self), (terms.only, is_full, 0), rank)
        };
        let mut ready = || {
            // The pause between two looks of a wait is as long as a message takes, so some go without.
            for _ in 0..LOOKS {
                // First what others wait for.
                let outcome = direct.borrow_mut().serve(desk.is_some_and(AtDesk::is_wanted))?;
                let is_own_done = self.advance(&key, u64::MAX, call, location)?;
                match outcome {
                    Some(Outcome::Complete) if !is_own_done => {}
                    None => {}
                    outcome => return Ok(outcome),
                }
            }
            Ok(None)
        };
        let outcome = wait(by, call, &key, (&needed, &Vec::new), location, &mut ready);
        let mut direct = direct.borrow_mut();
        match outcome {
            Ok(outcome) => Ok((outcome, std::mem::take(&mut direct.begun))),
            Err(error) => {
                let hint = by.hub.hint(*by, &key, terms.events);
                Err(explain(error, (count, direct.begun.served), hint))
            }
        }
    }

    fn end_direct(
        &self,
        call: &'static str,
        key: &Key,
        done: Begun,
        location: &'static Location<'static>,
    ) -> Result<Status> {
        let Begun { served, moved, fault } = done;
        if let Some(own) = self.take_fault(key, call, location) {
            return Err(own);
        }
        match fault {
            Some((found, originator)) => Err(self.by.fault_of(call, key, &found, originator, location)),
            None => Ok(Status { events: served, bytes: moved, by_origin: Vec::new() }),
        }
    }
}
