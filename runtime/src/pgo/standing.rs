//! An offer that stands: its words, and the memory that stands for private memory while that is offered. Never waits for events.
//!
//! Whatever is offered lies in memory that ranks share. Private memory has a mirror there for as long as it is offered: what it
//! holds is copied there when the offer opens, if it serves gets, and what events have put comes back when it closes. So private
//! memory is touched by its own rank only, in its own calls.
#![forbid(unsafe_code)]

use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::Events;
use super::event::{Family, Found, Key};
use super::hub::{DATA_HERE, Hub, Role, fault_error, matches, note, noted, write_key};
use super::lanes::waits_in_lane;
use super::offer::{Held, Status, Terms};
use super::raw::{marks, mirror_place};
use crate::error::{Error, ErrorKind, Result};
use crate::job::RankContext;
use crate::rank::{Members, Rank};
use crate::sync::marks::words_for;
use crate::transport::shm::arena::Block;
use crate::transport::shm::offers::{OfferNode, Parcel};

/// Who makes a call, on which team.
#[derive(Clone, Copy)]
pub(super) struct Caller<'t> {
    pub(super) context: &'t Arc<RankContext>,
    pub(super) members: &'t Arc<Members>,
    pub(super) hub: &'t Hub,
}

/// Who has made an offer, for as long as that lives.
#[derive(Clone)]
pub(super) struct Owner {
    context: Arc<RankContext>,
    members: Arc<Members>,
}

impl Owner {
    fn of(by: Caller<'_>) -> Owner {
        Owner { context: Arc::clone(by.context), members: Arc::clone(by.members) }
    }

    pub(super) fn caller(&self) -> Caller<'_> {
        Caller::new(&self.context, &self.members)
    }
}

impl<'t> Caller<'t> {
    pub(super) fn new(context: &'t Arc<RankContext>, members: &'t Arc<Members>) -> Caller<'t> {
        Caller { context, members, hub: Hub::of(context) }
    }

    #[track_caller]
    pub(super) fn error(&self, kind: ErrorKind, call: &'static str) -> Error {
        Error::new(kind, call).caller(self.members.rank())
    }

    /// What an offer says of an event that had a fault.
    #[cold]
    pub(super) fn fault_of(
        &self,
        call: &'static str,
        key: &Key,
        found: &Found,
        originator: u32,
        location: &'static Location<'static>,
    ) -> Error {
        let by = match self.members.rank_of(Rank(originator)) {
            Some(rank) => format!("an event of rank {rank}"),
            None => format!("an event of rank {originator} of the job"),
        };
        fault_error(|kind| self.error(kind, call).other(by.clone()).called_at(location), found, key)
    }
}

/// What an offer has served before it came into a store.
#[derive(Default)]
pub(super) struct Begun {
    pub(super) served: u64,
    pub(super) moved: u64,
    /// What was wrong with the first event that had a fault, and the job rank of its originator.
    pub(super) fault: Option<(Found, u32)>,
}

/// See the module.
pub(super) struct Standing {
    pub(super) owner: Owner,
    pub(super) call: &'static str,
    pub(super) key: Key,
    terms: Terms,
    count: u64,
    /// The offer's words. `None` once they were given up.
    node: Option<Block>,
    mirror: Option<Block>,
    ledger: Option<Block>,
    is_open: bool,
    pub(super) begun: Begun,
    /// It goes on where the rank's direct offer has ended, and does not wait for that.
    pub(super) follows: bool,
}

/// What an offer has come to.
pub(super) struct Ended {
    pub(super) status: Status,
    /// What was wrong with the first event that had a fault.
    pub(super) fault: Option<Error>,
}

/// Refuses an offer whose terms make no sense.
///
/// # Errors
/// `BadEvents`, `BadDispUnit`, `RankOutOfRange`.
pub(super) fn refuse_terms(
    by: Caller<'_>,
    call: &'static str,
    key: &Key,
    (terms, count): (&Terms, u64),
    location: &'static Location<'static>,
) -> Result<()> {
    let refuse =
        |kind, note: String| Err(by.error(kind, call).note(format!("{note}; {key}")).called_at(location));
    if terms.events == super::NONE_OK && count != 0 && key.family != Family::Collective {
        return refuse(
            ErrorKind::BadEvents,
            "it serves neither puts nor gets, but counts events: say PUTS_OK, GETS_OK or both".to_owned(),
        );
    }
    if terms.unit == 0 {
        return refuse(ErrorKind::BadDispUnit, "an offer's unit is at least 1".to_owned());
    }
    if let Some(only) = terms.only
        && by.members.size() <= only.0
    {
        let note =
            format!("its events are to come from rank {only}, and the team has {} ranks", by.members.size());
        return refuse(ErrorKind::RankOutOfRange, note);
    }
    Ok(())
}

impl Standing {
    /// Takes the memory that an offer needs.
    ///
    /// # Errors
    /// `BadEvents`, `CountAnyNotAllowed`, `BadDispUnit`, `RankOutOfRange`; `System` if memory is short.
    pub(super) fn new(
        by: Caller<'_>,
        call: &'static str,
        key: Key,
        (terms, count): (Terms, u64),
        held: &Held<'_>,
        location: &'static Location<'static>,
    ) -> Result<Standing> {
        refuse_terms(by, call, &key, (&terms, count), location)?;
        let take = |bytes: usize| {
            by.hub.counted.blocks.fetch_add(1, Ordering::Relaxed);
            by.context.allocate(call, bytes).map_err(|error| error.called_at(location))
        };
        let node = take(size_of::<OfferNode>())?;
        let mirror = match held.private() {
            Some(place) if 0 < place.bytes() => {
                let marks = words_for(place.bytes()) * size_of::<u64>();
                Some(take(place.bytes().next_multiple_of(size_of::<u64>()) + marks)?)
            }
            _ => None,
        };
        let ledger = match terms.by_origin {
            true => Some(take(16 * by.members.size() as usize)?),
            false => None,
        };
        Ok(Standing {
            owner: Owner::of(by),
            call,
            key,
            terms,
            count,
            node: Some(node),
            mirror,
            ledger,
            is_open: false,
            begun: Begun::default(),
            follows: false,
        })
    }

    fn node(&self) -> Option<&OfferNode> {
        self.node.as_ref().map(|block| self.owner.caller().hub.offer(block.offset()))
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// How many events it serves.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// How many it has served.
    pub(super) fn served(&self) -> u64 {
        // Acquire: pairs with the Release of whoever has served, so that what it wrote is seen.
        self.node().map_or(0, |node| node.served.load(Ordering::Acquire))
    }

    /// The rank whose events alone it serves.
    pub(super) fn only(&self) -> Option<Rank> {
        self.terms.only
    }

    /// Opens the offer and serves what waits for it.
    ///
    /// # Errors
    /// As [`Hub::lock`].
    pub(super) fn open(
        &mut self,
        held: &Held<'_>,
        round: u64,
        location: &'static Location<'static>,
    ) -> Result<()> {
        let by = self.owner.caller();
        let (hub, Some(node)) = (by.hub, &self.node) else { return Ok(()) };
        let offset = node.offset();
        let follows = std::mem::take(&mut self.follows);
        if self.key.family == Family::Plain && !follows {
            hub.precede(by, &self.key, self.call, location)?;
        }
        let (base, bytes) = match (held.private(), &self.mirror) {
            (Some(place), Some(mirror)) => {
                let bytes = place.bytes();
                // What nobody gets need not be there; it is told apart by marks from what was put.
                if self.serves_gets() {
                    hub.counted.staged.fetch_add(1, Ordering::Relaxed);
                    mirror_place(&hub.segment, mirror, bytes).take(hub.engine, 0, place, 0, bytes);
                }
                (mirror.offset(), bytes)
            }
            (Some(_), None) => (0, 0),
            (None, _) => held.shared(),
        };
        let marks = match &self.mirror {
            Some(mirror) if !self.serves_gets() => marks_of(mirror, bytes),
            _ => 0,
        };
        let words = hub.offer(offset);
        write_key(&words.key, &self.key, round);
        let only = self.terms.only.map_or(0, |rank| by.members.job_rank(rank).0 + 1);
        words.kinds.store(self.terms.events.bits(), Ordering::Relaxed);
        words.only.store(only, Ordering::Relaxed);
        words.late.store(u32::from(self.terms.late), Ordering::Relaxed);
        words.written.store(0, Ordering::Relaxed);
        words.base.store(base, Ordering::Relaxed);
        words.bytes.store(bytes as u64, Ordering::Relaxed);
        words.marks.store(marks, Ordering::Relaxed);
        words.unit.store(self.terms.unit as u64, Ordering::Relaxed);
        words.count.store(self.count, Ordering::Relaxed);
        let Begun { served, moved, fault } = std::mem::take(&mut self.begun);
        words.served.store(served, Ordering::Relaxed);
        words.moved.store(moved, Ordering::Relaxed);
        words.fault.code.store(0, Ordering::Relaxed);
        if let Some((found, originator)) = fault {
            note(&words.fault, originator, &found);
        }
        words.ledger.store(self.ledger.as_ref().map_or(0, Block::offset), Ordering::Relaxed);
        if let Some(ledger) = &self.ledger {
            let counts =
                hub.segment.shared_slice::<AtomicU64>(ledger.offset(), 2 * by.members.size() as usize);
            counts.iter().for_each(|count| count.store(0, Ordering::Relaxed));
        }
        let locked = hub.lock(by.context, hub.me, self.call, location)?;
        let bucket = locked.bucket(&self.key);
        hub.append(&bucket.offers, offset);
        bucket.opened.fetch_add(1, Ordering::Release); // Release: pairs with the Acquire in a scope's look.
        self.is_open = true;
        locked.take_parcels(&self.key);
        locked.settle(&self.key, Role::Target, &mut hub.keeper(&locked, &self.key));
        if self.key.family == Family::Plain && !follows {
            // SeqCst: pairs with the fence of whoever takes the desk and looks at the offers again: one of the two sees the other.
            fence(Ordering::SeqCst);
            if let Some(turn) = locked.store.desk.stands(self.key.bucket()) {
                locked.store.desk.want(turn);
                hub.wake(hub.me);
            }
        }
        Ok(())
    }

    /// Lets others serve what came while only the owner could, and serves what waits.
    pub(super) fn attend(&self, location: &'static Location<'static>) -> Result<()> {
        let by = self.owner.caller();
        let (hub, Some(node)) = (by.hub, self.node()) else { return Ok(()) };
        if !self.is_open || node.late.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        let locked = hub.lock(by.context, hub.me, self.call, location)?;
        node.late.store(0, Ordering::Relaxed);
        locked.bucket(&self.key).opened.fetch_add(1, Ordering::Release); // Release: as in `open`.
        locked.take_parcels(&self.key);
        locked.settle(&self.key, Role::Target, &mut hub.keeper(&locked, &self.key));
        Ok(())
    }

    /// Keeps others from serving again, until the owner attends. Not while an event waits whose data only its originator has, which
    /// may take longer to come than the owner's look.
    pub(super) fn turn_away(&self, location: &'static Location<'static>) -> Result<()> {
        let by = self.owner.caller();
        let (hub, Some(node)) = (by.hub, self.node()) else { return Ok(()) };
        if self.terms.late {
            let locked = hub.lock(by.context, hub.me, self.call, location)?;
            let waits = |offset| {
                let event = hub.event(offset);
                matches(&event.key, &self.key) && event.data.load(Ordering::Relaxed) != DATA_HERE
            };
            let has_away = || {
                let mut lanes = hub.lanes_toward(locked.store);
                let is_away = |parcel: &Parcel| parcel.is_away.load(Ordering::Relaxed) != 0;
                lanes.any(|(_, lane)| {
                    lane.parcels.iter().any(|parcel| waits_in_lane(parcel, &self.key) && is_away(parcel))
                })
            };
            if !hub.walk(&locked.bucket(&self.key).events).any(waits) && !has_away() {
                node.late.store(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Closes the offer and brings what was put back to private memory.
    ///
    /// # Errors
    /// As [`Hub::lock`]: others may still write to the offered memory, which is given up.
    pub(super) fn close(
        &mut self,
        held: &mut Held<'_>,
        location: &'static Location<'static>,
    ) -> Result<Ended> {
        let owner = self.owner.clone();
        let by = owner.caller();
        let hub = by.hub;
        let Some(offset) = self.node.as_ref().filter(|_| self.is_open).map(Block::offset) else {
            return Ok(Ended { status: Status::default(), fault: None });
        };
        let locked = match hub.lock_to_clean(by.context, hub.me, self.call, location) {
            Ok(locked) => locked,
            Err(error) => {
                self.give_up();
                held.renounce();
                return Err(error);
            }
        };
        let words = hub.offer(offset);
        hub.unlink(&locked.bucket(&self.key).offers, offset);
        drop(locked);
        self.is_open = false;
        if let (Some(place), Some(mirror)) = (held.private(), &self.mirror)
            && words.written.load(Ordering::Relaxed) != 0
        {
            hub.counted.staged.fetch_add(1, Ordering::Relaxed);
            let bytes = place.bytes();
            let mirrored = mirror_place(&hub.segment, mirror, bytes);
            match self.serves_gets() {
                true => place.take(hub.engine, 0, &mirrored, 0, bytes),
                false => marks(&hub.segment, marks_of(mirror, bytes), bytes)
                    .take(|start, len| place.take(hub.engine, start, &mirrored, start, len)),
            }
        }
        let by_origin = match &self.ledger {
            None => Vec::new(),
            Some(ledger) => {
                let counts =
                    hub.segment.shared_slice::<AtomicU64>(ledger.offset(), 2 * by.members.size() as usize);
                let of =
                    |rank: Rank| [0, 1].map(|which| counts[2 * rank.index() + which].load(Ordering::Relaxed));
                let ranks = by.members.ranks().map(|rank| (rank, of(rank)));
                ranks
                    .filter(|(_, [events, _])| *events != 0)
                    .map(|(rank, [events, bytes])| (rank, events, bytes))
                    .collect()
            }
        };
        let status = Status {
            events: words.served.load(Ordering::Relaxed),
            bytes: words.moved.load(Ordering::Relaxed),
            by_origin,
        };
        let fault = noted(&words.fault)
            .map(|(found, originator)| by.fault_of(self.call, &self.key, &found, originator, location));
        Ok(Ended { status, fault })
    }

    fn serves_gets(&self) -> bool {
        self.terms.events & super::GETS_OK == super::GETS_OK
    }

    /// Leaves everything behind that others may still touch.
    fn give_up(&mut self) {
        self.is_open = false;
        [&mut self.node, &mut self.mirror, &mut self.ledger]
            .into_iter()
            .filter_map(Option::take)
            .for_each(Block::leave_behind);
    }

    /// What may explain why nothing matches.
    pub(super) fn hint(&self) -> Option<String> {
        let by = self.owner.caller();
        by.hub.hint(by, &self.key, self.terms.events)
    }
}

impl Hub {
    /// What may explain why nothing matches an offer: what waits in the own store under the same team and tag, or in a lane.
    #[cold]
    pub(super) fn hint(&self, by: Caller<'_>, key: &Key, allowed: Events) -> Option<String> {
        let locked = self.lock_soon()?;
        let bucket = locked.bucket(key);
        let word = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let waiting = self.walk(&bucket.events).map(|at| self.event(at)).filter_map(|event| {
            let is_alike = word(&event.key.team) == key.team && word(&event.key.tag) == key.tag;
            let family = Family::from_code(word(&event.key.family)).filter(|_| is_alike)?;
            let kinds = Events::from_bits(event.kinds.load(Ordering::Relaxed));
            Some((event.originator.load(Ordering::Relaxed), family, kinds))
        });
        let in_lanes = self.lanes_toward(locked.store).filter_map(|(_, lane)| {
            let waits = lane.parcels.iter().any(|parcel| waits_in_lane(parcel, key));
            waits.then(|| (lane.originator.load(Ordering::Relaxed), Family::Plain, super::PUTS_OK))
        });
        in_lanes.chain(waiting).find_map(|(originator, family, kinds)| {
            let from = by.members.rank_of(Rank(originator)).unwrap_or_default();
            if family != key.family {
                let (theirs, own) = (family.name(), key.family.name());
                return Some(format!(
                    "an event of the {theirs} family waits from rank {from}, this is the {own} one"
                ));
            }
            (kinds & allowed != kinds).then(|| {
                format!(
                    "EventNotOffered: an event of rank {from} waits that needs an offer of {kinds}, and this one allows {allowed}"
                )
            })
        })
    }
}

/// Where the marks of a mirror of so many bytes begin.
fn marks_of(mirror: &Block, bytes: usize) -> u64 {
    mirror.offset() + bytes.next_multiple_of(size_of::<u64>()) as u64
}

impl Drop for Standing {
    fn drop(&mut self) {
        if !self.is_open {
            return;
        }
        // Whoever drops it has no place for what was put.
        let mut nowhere = Held::nothing();
        if self.close(&mut nowhere, Location::caller()).is_err() {
            self.give_up();
        }
    }
}
