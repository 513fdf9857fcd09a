//! A scope: the events that a rank issues under one team and tag, and the offers that complete them. Never outlives the buffers
//! that its events borrow.
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use super::event::{Fault, Family, Found, Heads, Key, Way};
use super::hub::{DATA_AWAY, DATA_HERE, Hub, Met, Role, fault_error, noted, write_key};
use super::offer::{Offerable, Over, Request, Status};
use super::raw::{Ends, Side, node_bytes, node_place};
use super::source::{Destination, Part, Source, Wrong};
use super::standing::Caller;
use super::wait::{Own, wait};
use super::wired::Far;
use super::{COUNT_ANY, Count, begin_by};
use crate::error::{Error, ErrorKind, Result};
use crate::op::Section;
use crate::rank::Rank;
use crate::team::Team;
use crate::transport::shm::arena::Block;
use crate::transport::shm::bytes;
use crate::transport::shm::offers::EventNode;

/// Data of an event up to this length wait with it at the target; longer ones stay where they are until the originator is in an
/// offer of its own.
pub(super) const EAGER_MAX_BYTES: usize = 4 << 10;
/// What the waiting data of a scope may come to.
const EAGER_SUM_MAX_BYTES: usize = 1 << 20;

/// The events of one team and tag, and the offers that complete them. Made by [`scope`].
///
/// It may be lent to other threads of the rank, whose events have an order of their own.
pub struct Scope<'scope, 'env: 'scope> {
    by: Caller,
    tag: u64,
    issued: Mutex<Issued<'scope>>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

#[derive(Default)]
struct Issued<'scope> {
    threads: Vec<ThreadId>,
    open: Vec<OpenChain<'scope>>,
    queues: Vec<Queue<'scope>>,
    faults: Vec<(Family, Rank, Found)>,
    /// Bytes of data that wait with their events.
    waiting_bytes: usize,
}

/// Parts that will be one event.
struct OpenChain<'scope> {
    family: Family,
    target: Rank,
    thread: u32,
    is_mixed: bool,
    parts: Vec<Part<'scope>>,
    mismatched: bool,
}

/// The events of a thread that wait for one target, in their order.
pub(super) struct Queue<'scope> {
    pub(super) family: Family,
    pub(super) target: Rank,
    pub(super) thread: u32,
    pub(super) events: VecDeque<Waiting<'scope>>,
    /// How many offers had opened at the target's store at the last look.
    seen: u64,
    pub(super) far: Far,
}

/// An event that waits.
pub(super) struct Waiting<'scope> {
    pub(super) round: u64,
    pub(super) kinds: u32,
    pub(super) heads: Heads,
    pub(super) parts: Vec<Part<'scope>>,
    /// The data wait with it.
    is_eager: bool,
    at: At,
    pub(super) sent: super::wired::Sent,
}

/// Where an event waits.
enum At {
    /// In the target's store.
    Store { block: Block, bytes: usize },
    /// At a rank that shares no memory, or on its way there.
    Far,
}

impl<'scope> Waiting<'scope> {
    pub(super) fn new(round: u64, heads: Heads, parts: Vec<Part<'scope>>) -> Waiting<'scope> {
        let kinds = heads.events().bits();
        Waiting { round, kinds, heads, parts, is_eager: false, at: At::Far, sent: super::wired::Sent::default() }
    }

    /// Copies what the puts bring behind the event.
    fn fill(&self, hub: &Hub, ends: (super::raw::Place<'_>, super::raw::Place<'_>)) {
        let mut at = 0;
        for part in self.parts.iter().filter(|part| part.head.way == Way::Put) {
            let row = super::event::Layout::Bytes(part.layout.size());
            super::event::Layout::pair((&row, at), (&part.layout, 0), |to, from, len| {
                ends.0.take(hub.engine, to, &part.place, from, len);
            });
            at += part.layout.size();
        }
    }

    /// Copies what the gets have brought from behind the event.
    fn empty(&self, hub: &Hub, ends: (super::raw::Place<'_>, super::raw::Place<'_>)) {
        let mut at = 0;
        for part in self.parts.iter().filter(|part| part.head.way == Way::Get) {
            let row = super::event::Layout::Bytes(part.layout.size());
            super::event::Layout::pair((&part.layout, 0), (&row, at), |to, from, len| {
                part.place.take(hub.engine, to, &ends.1, from, len);
            });
            at += part.layout.size();
        }
    }
}

/// How the parts of a chain are issued.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Join {
    /// The event is whole with this part.
    Last,
    /// More parts follow.
    More,
    /// More parts follow, puts and gets.
    MoreMixed,
}

/// Runs `body`, which issues events under a tag and completes them by offers.
///
/// The buffers of the events are borrowed until the scope ends, so they can't be touched before their events are served: when the
/// body has ended well, the scope waits for whatever is not (an offer of count 0).
///
/// ```
/// use rma::pgo::{self, GETS_OK, over};
/// use rma::Rank;
/// # rma::spawn(2, |team| {
/// let other = Rank(1 - team.rank().0);
/// let mut numbers = [team.rank().0; 4];
/// let mut copy = [0; 2];
/// pgo::scope(team, 1, |scope| {
///     scope.get(&mut copy, other, 1)?;
///     scope.offer(over(&mut numbers, GETS_OK), 1)
/// })?;
/// assert_eq!(copy, [other.0; 2]);
/// # Ok::<(), rma::Error>(())
/// # })?.into_iter().collect::<rma::Result<()>>()?;
/// # Ok::<(), rma::Error>(())
/// ```
///
/// If the body returns an error or panics, what is not served is taken back.
///
/// # Errors
/// What the body returns. `EpochStillOpen` if a scope of the same team and tag is open already, or if collective events are left
/// that no [`offerc`](Scope::offerc) completes; `DanglingCombine` for a chain that was not closed; `OutsideOffer`,
/// `DatatypeMismatch` and the like for events that had a fault; `Stalled`, `PeerLost`.
#[track_caller]
pub fn scope<'env, R, E, F>(team: &Team, tag: u64, body: F) -> Result<R, E>
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> Result<R, E>,
    E: From<Error>,
{
    let location = Location::caller();
    let by = Caller::of(team);
    let opened = Opened::new(by.clone(), tag, location)?;
    let scope =
        Scope { by, tag, issued: Mutex::default(), scope: PhantomData, env: PhantomData };
    // A body that panics leaves here, too; its events are taken back then.
    let result = {
        let guard = TakeBack(&scope);
        let result = body(&scope);
        std::mem::forget(guard);
        result
    };
    let result = match result {
        Ok(value) => match scope.end(location) {
            Ok(()) => Ok(value),
            Err(error) => Err(error.into()),
        },
        Err(error) => Err(error),
    };
    scope.take_back();
    drop(opened);
    result
}

/// Takes the events of a body that panics back.
struct TakeBack<'a, 'scope, 'env>(&'a Scope<'scope, 'env>);

impl Drop for TakeBack<'_, '_, '_> {
    fn drop(&mut self) {
        self.0.take_back();
    }
}

/// The note that a scope is open.
struct Opened {
    by: Caller,
    tag: u64,
}

impl Opened {
    fn new(by: Caller, tag: u64, location: &'static Location<'static>) -> Result<Opened> {
        let is_new = by.hub.scopes().insert((by.members.id(), tag));
        match is_new {
            true => Ok(Opened { by, tag }),
            false => {
                let note = format!("a scope of the same team and tag is open, whose calls are to be used; tag {tag}");
                Err(by.error(ErrorKind::EpochStillOpen, "scope").note(note).called_at(location))
            }
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.by.hub.scopes().remove(&(self.by.members.id(), self.tag));
    }
}

impl Hub {
    fn scopes(&self) -> MutexGuard<'_, std::collections::HashSet<(u64, u64)>> {
        // Nothing panics while the set is inconsistent.
        self.scopes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn has_scope(&self, key: &Key) -> bool {
        self.scopes().contains(&(key.team, key.tag))
    }
}

macro_rules! events {
    ($($(#[$attribute:meta])* $put:ident $get:ident $family:ident $like:literal;)*) => {
        impl<'scope> Scope<'scope, '_> {$(
            $(#[$attribute])*
            #[doc = concat!("Issues a put", $like)]
            ///
            /// The call returns at once. When an offer of the target serves the event, the data land at the offered base plus the
            /// section's displacement in units of the offer. The section may also be a range, strided, or a displacement with a
            /// [`Datatype`](crate::Datatype).
            ///
            /// # Errors
            /// `RankOutOfRange`; `LengthMismatch`, `OutOfBounds`, `OverlappingLayout` for sides that don't fit each other, when
            /// nothing is issued; `DatatypeMismatch` if they differ in basic types: the event is issued, moves nothing, and is an
            /// error at the target, too. `CombineMismatch` for a put in a chain of gets. `System`, `Stalled`, `PeerLost`.
            #[track_caller]
            pub fn $put<'d>(
                &self,
                origin: impl Source<'scope>,
                target: Rank,
                section: impl Into<Section<'d>>,
            ) -> Result<()> {
                let call = Call { name: stringify!($put), family: Family::$family, location: Location::caller() };
                self.put_part(call, origin, target, section.into(), Join::Last)
            }

            $(#[$attribute])*
            #[doc = concat!("Issues a get", $like)]
            ///
            /// The call returns at once. The buffer has the data when an offer of this scope completes, and is borrowed until the
            /// scope ends.
            ///
            /// # Errors
            /// As the put.
            #[track_caller]
            pub fn $get<'d>(
                &self,
                origin: impl Destination<'scope>,
                target: Rank,
                section: impl Into<Section<'d>>,
            ) -> Result<()> {
                let call = Call { name: stringify!($get), family: Family::$family, location: Location::caller() };
                self.get_part(call, origin, target, section.into(), Join::Last)
            }
        )*}
    };
}

events! {
    put get Plain ": PUT and GET, non-progressive. The data move in the calls of the two ranks.";
    #[cfg(feature = "progressive")]
    putp getp Progressive " of the progressive family, which is served although the target makes no call. Prefer the
non-progressive form where it does: these events are served one after the other, whoever issues them, and ranks without shared
memory need an agent.";
    putc getc Collective " of the collective family, which the next [`offerc`](Scope::offerc) completes, at all ranks.";
}

macro_rules! combined {
    ($($(#[$attribute:meta])* $put:ident $get:ident $family:ident;)*) => {
        impl<'scope> Combined<'_, 'scope, '_> {$(
            $(#[$attribute])*
            /// As the scope's, but the event goes on with the next one.
            ///
            /// # Errors
            /// As the scope's.
            #[track_caller]
            pub fn $put<'d>(
                &self,
                origin: impl Source<'scope>,
                target: Rank,
                section: impl Into<Section<'d>>,
            ) -> Result<()> {
                let call = Call { name: stringify!($put), family: Family::$family, location: Location::caller() };
                self.scope.put_part(call, origin, target, section.into(), self.join)
            }

            $(#[$attribute])*
            /// As the scope's, but the event goes on with the next one.
            ///
            /// # Errors
            /// As the scope's.
            #[track_caller]
            pub fn $get<'d>(
                &self,
                origin: impl Destination<'scope>,
                target: Rank,
                section: impl Into<Section<'d>>,
            ) -> Result<()> {
                let call = Call { name: stringify!($get), family: Family::$family, location: Location::caller() };
                self.scope.get_part(call, origin, target, section.into(), self.join)
            }
        )*}
    };
}

combined! {
    put get Plain;
    #[cfg(feature = "progressive")]
    putp getp Progressive;
}

/// The events of a scope with the combine flag set. Made by [`Scope::combine`] and [`Scope::combine_mixed`].
pub struct Combined<'s, 'scope, 'env: 'scope> {
    scope: &'s Scope<'scope, 'env>,
    join: Join,
}

/// A call that issues an event.
#[derive(Clone, Copy)]
struct Call {
    name: &'static str,
    family: Family,
    location: &'static Location<'static>,
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// The next put or get goes on with the one after it, by the same thread to the same target, as one event: it counts as one and
    /// is served as one. The chain ends with the first event that is issued by the scope itself.
    ///
    /// ```
    /// # use rma::pgo::{self, PUTS_OK, over};
    /// # use rma::Rank;
    /// # rma::spawn(1, |team| {
    /// let (a, b) = ([1, 2], [3]);
    /// let mut buffer = [0; 4];
    /// pgo::scope(team, 0, |scope| {
    ///     scope.combine().put(&a, Rank(0), 0)?;
    ///     scope.put(&b, Rank(0), 3)?;
    ///     scope.offer(over(&mut buffer, PUTS_OK), 1)
    /// })?;
    /// assert_eq!(buffer, [1, 2, 0, 3]);
    /// # Ok::<(), rma::Error>(())
    /// # })?.into_iter().collect::<rma::Result<()>>()?;
    /// # Ok::<(), rma::Error>(())
    /// ```
    pub fn combine(&self) -> Combined<'_, 'scope, 'env> {
        Combined { scope: self, join: Join::More }
    }

    /// As [`combine`](Scope::combine), and the chain may have puts and gets. It is served in its order, by an offer that allows both.
    pub fn combine_mixed(&self) -> Combined<'_, 'scope, 'env> {
        Combined { scope: self, join: Join::MoreMixed }
    }

    /// Issues a put that promises that an offer for it is open: RPUT. Nothing is queued.
    ///
    /// # Errors
    /// `NotOffered` if there is no offer that serves it now, at once or, where the ranks share no memory, at the next offer of
    /// this scope; nothing is written then. Otherwise as [`put`](Scope::put).
    #[track_caller]
    pub fn rput<'d>(&self, origin: impl Source<'scope>, target: Rank, section: impl Into<Section<'d>>) -> Result<()> {
        let call = Call { name: "rput", family: Family::Plain, location: Location::caller() };
        let (part, mismatched) = self.aim(call, target, origin.bring().and_then(|side| side.aim(Way::Put, section.into())))?;
        self.issue(call, target, vec![part], mismatched, true)
    }

    /// As [`rput`](Scope::rput), for a get: RGET.
    ///
    /// # Errors
    /// As [`rput`](Scope::rput).
    #[track_caller]
    pub fn rget<'d>(
        &self,
        origin: impl Destination<'scope>,
        target: Rank,
        section: impl Into<Section<'d>>,
    ) -> Result<()> {
        let call = Call { name: "rget", family: Family::Plain, location: Location::caller() };
        let (part, mismatched) = self.aim(call, target, origin.bring().and_then(|side| side.aim(Way::Get, section.into())))?;
        self.issue(call, target, vec![part], mismatched, true)
    }

    /// Offers a buffer, and waits until the offer has served `count` events and all events of the family that this scope has issued
    /// are served: OFFER. Both go on at the same time.
    ///
    /// # Errors
    /// `BadEvents` for a count with a mask of nothing; `CountAnyNotAllowed`; `BadDispUnit`; `DanglingCombine` if a chain is still
    /// open. `OutsideOffer`, `DatatypeMismatch` and `OverlappingLayout` if an own event, or one that was served, had that fault:
    /// all else was served. `Stalled`, `PeerLost`; `System` if memory is short.
    #[track_caller]
    pub fn offer<B: Offerable>(&self, over: Over<B>, count: impl Into<Count>) -> Result<Status> {
        self.blocking("offer", Family::Plain, over, count.into(), Location::caller())
    }

    /// As [`offer`](Scope::offer), for the progressive family: OFFERP. Prefer the non-progressive one: a rank that comes to an
    /// offer needs nobody to act for it, and this one serves events one after the other.
    ///
    /// # Errors
    /// As [`offer`](Scope::offer).
    #[cfg(feature = "progressive")]
    #[track_caller]
    pub fn offerp<B: Offerable>(&self, over: Over<B>, count: impl Into<Count>) -> Result<Status> {
        self.blocking("offerp", Family::Progressive, over, count.into(), Location::caller())
    }

    /// Offers a buffer to the current round of the collective family and waits for its end: OFFERC. All members of the team must
    /// call it, in the same order per tag, with whatever buffers; how many events come is counted.
    ///
    /// It pays where targets can't easily know how many events come to them, as in codes that were written for barriers. Where the
    /// program knows the counts, [`offer`](Scope::offer) is cheaper.
    ///
    /// # Errors
    /// As [`offer`](Scope::offer); `EventNotOffered` if an event of the round is of a kind that its target does not offer.
    #[track_caller]
    pub fn offerc<B: Offerable>(&self, over: Over<B>) -> Result<Status> {
        let location = Location::caller();
        let mut request = begin_by(&self.by, self.tag, ("offerc", Family::Collective), over, COUNT_ANY, location)?;
        request.finish(Some(self), location)
    }

    /// As [`ioffer`](super::ioffer), under this scope's team and tag.
    ///
    /// # Errors
    /// As [`ioffer`](super::ioffer).
    #[track_caller]
    pub fn ioffer<B: Offerable>(&self, over: Over<B>, count: impl Into<Count>) -> Result<Request<B>> {
        begin_by(&self.by, self.tag, ("ioffer", Family::Plain), over, count.into(), Location::caller())
    }

    /// As [`iofferp`](super::iofferp), under this scope's team and tag: prefer [`ioffer`](Scope::ioffer), for the reasons said there.
    ///
    /// # Errors
    /// As [`ioffer`](super::ioffer).
    #[cfg(feature = "progressive")]
    #[track_caller]
    pub fn iofferp<B: Offerable>(&self, over: Over<B>, count: impl Into<Count>) -> Result<Request<B>> {
        begin_by(&self.by, self.tag, ("iofferp", Family::Progressive), over, count.into(), Location::caller())
    }

    /// As [`iofferc`](super::iofferc), under this scope's team and tag.
    ///
    /// # Errors
    /// As [`ioffer`](super::ioffer).
    #[track_caller]
    pub fn iofferc<B: Offerable>(&self, over: Over<B>) -> Result<Request<B>> {
        begin_by(&self.by, self.tag, ("iofferc", Family::Collective), over, COUNT_ANY, Location::caller())
    }

    /// Waits for a request under this scope's team and tag, and for the events that this scope has issued in its family.
    ///
    /// # Errors
    /// As [`offer`](Scope::offer); `MixedSync` for a request of another team or tag.
    #[track_caller]
    pub fn wait<B: Offerable>(&self, request: &mut Request<B>) -> Result<Status> {
        let location = Location::caller();
        self.refuse_foreign(request, location)?;
        self.refuse_dangling(request.standing.key.family, request.standing.call, location)?;
        request.finish(Some(self), location)
    }

    /// As [`Request::test`], with the events of this scope.
    ///
    /// # Errors
    /// As [`wait`](Scope::wait).
    #[track_caller]
    pub fn test<B: Offerable>(&self, request: &mut Request<B>) -> Result<Option<Status>> {
        let location = Location::caller();
        self.refuse_foreign(request, location)?;
        request.try_finish(Some(self), location)
    }

    /// Waits for a started persistent offer under this scope's team and tag, and for the events of this scope.
    ///
    /// # Errors
    /// As [`wait`](Scope::wait).
    #[track_caller]
    pub fn wait_started<B: Offerable>(&self, offer: &mut super::Persistent<B>) -> Result<Status> {
        let location = Location::caller();
        self.refuse_foreign(&offer.request, location)?;
        self.refuse_dangling(offer.request.standing.key.family, offer.request.standing.call, location)?;
        offer.request.finish(Some(self), location)
    }

    fn refuse_foreign<B: Offerable>(&self, request: &Request<B>, location: &'static Location<'static>) -> Result<()> {
        let key = request.standing.key;
        match key == self.key(key.family) {
            true => Ok(()),
            false => {
                let note = format!("the request has another team or tag than the scope, whose tag is {}; {key}", self.tag);
                Err(self.by.error(ErrorKind::MixedSync, request.standing.call).note(note).called_at(location))
            }
        }
    }

    fn blocking<B: Offerable>(
        &self,
        call: &'static str,
        family: Family,
        over: Over<B>,
        count: Count,
        location: &'static Location<'static>,
    ) -> Result<Status> {
        let key = self.key(family);
        if count == COUNT_ANY {
            let note = format!("a blocking offer would not know when to end; {key}");
            return Err(self.by.error(ErrorKind::CountAnyNotAllowed, call).note(note).called_at(location));
        }
        self.refuse_dangling(family, call, location)?;
        let mut request = Request::new(&self.by, call, key, (over, count), false, location)?;
        request.open(0, location)?;
        request.finish(Some(self), location)
    }

    pub(super) fn key(&self, family: Family) -> Key {
        Key { family, team: self.by.members.id(), tag: self.tag }
    }

    fn issued(&self) -> MutexGuard<'_, Issued<'scope>> {
        // Nothing panics while the lists are inconsistent.
        self.issued.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refuse_dangling(&self, family: Family, call: &'static str, location: &'static Location<'static>) -> Result<()> {
        let issued = self.issued();
        match issued.open.iter().find(|chain| chain.family == family) {
            None => Ok(()),
            Some(chain) => {
                let note = format!("its last part was said to be combined, so the event was never issued; tag {}", self.tag);
                let error = self.by.error(ErrorKind::DanglingCombine, call).target(chain.target);
                Err(error.note(note).called_at(location))
            }
        }
    }
}

// Issuing.
impl<'scope> Scope<'scope, '_> {
    fn put_part(
        &self,
        call: Call,
        origin: impl Source<'scope>,
        target: Rank,
        section: Section<'_>,
        join: Join,
    ) -> Result<()> {
        let aimed = origin.bring().and_then(|side| side.aim(Way::Put, section));
        self.add(call, target, aimed, join)
    }

    fn get_part(
        &self,
        call: Call,
        origin: impl Destination<'scope>,
        target: Rank,
        section: Section<'_>,
        join: Join,
    ) -> Result<()> {
        let aimed = origin.bring().and_then(|side| side.aim(Way::Get, section));
        self.add(call, target, aimed, join)
    }

    fn aim(
        &self,
        call: Call,
        target: Rank,
        aimed: Result<(Part<'scope>, bool), Wrong>,
    ) -> Result<(Part<'scope>, bool)> {
        let size = self.by.members.size();
        let error = |kind, note: String| {
            self.by.error(kind, call.name).target(target).note(note).called_at(call.location)
        };
        if size <= target.0 {
            let note = format!("the team has {size} ranks; tag {}", self.tag);
            return Err(error(ErrorKind::RankOutOfRange, note));
        }
        aimed.map_err(|Wrong(kind, note)| error(kind, format!("{note}; tag {}", self.tag)))
    }

    /// Adds a part to the chain that is open toward the target, and issues the event if it is whole.
    fn add(&self, call: Call, target: Rank, aimed: Result<(Part<'scope>, bool), Wrong>, join: Join) -> Result<()> {
        let (part, mismatched) = self.aim(call, target, aimed)?;
        let mut issued = self.issued();
        let thread = issued.thread();
        let is_same = |chain: &OpenChain<'_>| {
            (chain.family, chain.target, chain.thread) == (call.family, target, thread)
        };
        let at = issued.open.iter().position(is_same);
        if let Some(at) = at {
            let chain = &issued.open[at];
            let other = chain.parts.iter().find(|other| other.head.way != part.head.way);
            if other.is_some() && !chain.is_mixed {
                let note = format!("its chain was not opened by combine_mixed; tag {}", self.tag);
                let error = self.by.error(ErrorKind::CombineMismatch, call.name).target(target);
                return Err(error.note(note).called_at(call.location));
            }
        }
        match (at, join) {
            (None, Join::Last) => {
                drop(issued);
                self.issue(call, target, vec![part], mismatched, false)
            }
            (Some(at), Join::Last) => {
                let mut chain = issued.open.swap_remove(at);
                drop(issued);
                chain.parts.push(part);
                self.issue(call, target, chain.parts, chain.mismatched | mismatched, false)
            }
            (Some(at), Join::More | Join::MoreMixed) => {
                issued.open[at].parts.push(part);
                issued.open[at].mismatched |= mismatched;
                Ok(())
            }
            (None, Join::More | Join::MoreMixed) => {
                let is_mixed = join == Join::MoreMixed;
                let (family, parts) = (call.family, vec![part]);
                issued.open.push(OpenChain { family, target, thread, is_mixed, parts, mismatched });
                Ok(())
            }
        }
    }

    /// Issues an event: serves it at once if its offer is open, or lets it wait.
    fn issue(
        &self,
        call: Call,
        target: Rank,
        parts: Vec<Part<'scope>>,
        mismatched: bool,
        is_ready: bool,
    ) -> Result<()> {
        let heads = Heads { parts: parts.iter().map(|part| part.head.clone()).collect(), mismatched };
        let key = self.key(call.family);
        let round = match call.family {
            Family::Collective => {
                let mut all = self.by.hub.rounds();
                let rounds = all.entry((key.team, key.tag)).or_default();
                rounds.count(target, self.by.members.size());
                rounds.now()
            }
            Family::Plain | Family::Progressive => 0,
        };
        let event = Waiting::new(round, heads, parts);
        let mut issued = self.issued();
        let thread = issued.thread();
        let job_rank = self.by.members.job_rank(target);
        match self.by.context.shares_memory(job_rank) {
            true => self.issue_near(&mut issued, call, &key, (target, thread), event, is_ready)?,
            false => {
                let queue = issued.queue(call.family, target, thread);
                queue.events.push_back(event);
                self.push_far(queue, &self.by, &key, call.name, is_ready, call.location)?;
            }
        }
        match mismatched {
            false => Ok(()),
            true => {
                let note = format!("nothing is moved; tag {}", self.tag);
                let error = self.by.error(ErrorKind::DatatypeMismatch, call.name).target(target);
                Err(error.note(note).called_at(call.location))
            }
        }
    }

    fn issue_near(
        &self,
        issued: &mut Issued<'scope>,
        call: Call,
        key: &Key,
        (target, thread): (Rank, u32),
        mut event: Waiting<'scope>,
        is_ready: bool,
    ) -> Result<()> {
        let (hub, me) = (&*self.by.hub, self.by.hub.me);
        let job_rank = self.by.members.job_rank(target).0;
        let locked = hub.lock(&self.by.context, job_rank, call.name, call.location)?;
        let offer = match locked.is_behind(key, me, thread) {
            true => None,
            false => locked.find(key, event.round, (event.kinds, me), me == job_rank),
        };
        if let Some(offer) = offer {
            let sides: Vec<Side<'_>> = event.parts.iter().map(Part::side).collect();
            let outcome = locked.serve(offer, key.family, event.kinds, &event.heads, Ends::Sides(&sides));
            hub.counted.by_originator.fetch_add(1, Ordering::Relaxed);
            locked.count(offer, me, self.by.members.rank().0, &outcome);
            if let Err(found) = outcome {
                issued.faults.push((key.family, target, found));
            }
            return Ok(());
        }
        drop(locked);
        if is_ready {
            let note = format!("no offer was open that serves it, so nothing was written; {key}");
            let error = self.by.error(ErrorKind::NotOffered, call.name).target(target);
            return Err(error.note(note).called_at(call.location));
        }
        let (taken, given) = event.heads.lengths();
        let data_bytes = taken.saturating_add(given);
        event.is_eager = data_bytes <= EAGER_MAX_BYTES && issued.waiting_bytes + data_bytes <= EAGER_SUM_MAX_BYTES;
        let (taken, given) = if event.is_eager { (taken, given) } else { (0, 0) };
        let parts = event.heads.encode();
        let bytes = node_bytes(parts.len(), taken, given);
        let block = hub.take_node(bytes, call.name)?;
        let offset = block.offset();
        let node = hub.event(offset);
        write_key(&node.key, key, event.round);
        let set = |word: &AtomicU32, value: u32| word.store(value, Ordering::Relaxed);
        let set_long = |word: &AtomicU64, value: usize| word.store(value as u64, Ordering::Relaxed);
        set(&node.done, 0);
        set(&node.kinds, event.kinds);
        set(&node.data, if event.is_eager { DATA_HERE } else { DATA_AWAY });
        set(&node.originator, me);
        set(&node.thread, thread);
        set(&node.member, self.by.members.rank().0);
        set(&node.fault.code, 0);
        set_long(&node.parts_bytes, parts.len());
        set_long(&node.in_bytes, taken);
        set_long(&node.out_bytes, given);
        let words = parts.len().div_ceil(8);
        bytes::store(hub.segment.shared_slice(offset + size_of::<EventNode>() as u64, words), &parts);
        if event.is_eager {
            issued.waiting_bytes += data_bytes;
            hub.counted.staged.fetch_add(1, Ordering::Relaxed);
            event.fill(hub, node_place(&hub.segment, offset, node));
        }
        event.at = At::Store { block, bytes };
        let queue = issued.queue(call.family, target, thread);
        let locked = hub.lock(&self.by.context, job_rank, call.name, call.location)?;
        let bucket = locked.bucket(key);
        hub.append(&bucket.events, offset);
        queue.seen = bucket.opened.load(Ordering::Relaxed);
        queue.events.push_back(event);
        // An offer may have opened meanwhile.
        queue.settle(hub, &locked, key);
        Ok(())
    }
}

impl<'scope> Issued<'scope> {
    /// The number of the calling thread.
    fn thread(&mut self) -> u32 {
        let own = thread::current().id();
        let at = self.threads.iter().position(|&known| known == own).unwrap_or_else(|| {
            self.threads.push(own);
            self.threads.len() - 1
        });
        at as u32
    }

    fn queue(&mut self, family: Family, target: Rank, thread: u32) -> &mut Queue<'scope> {
        let is_same = |queue: &Queue<'_>| (queue.family, queue.target, queue.thread) == (family, target, thread);
        let at = self.queues.iter().position(is_same).unwrap_or_else(|| {
            let far = Far::default();
            self.queues.push(Queue { family, target, thread, events: VecDeque::new(), seen: 0, far });
            self.queues.len() - 1
        });
        &mut self.queues[at]
    }
}

impl Queue<'_> {
    /// Serves events of the queue whose offers are open.
    fn settle(&mut self, hub: &Hub, locked: &super::hub::Locked<'_>, key: &Key) {
        // Both lists have the same order, but what the target has served is in this one only.
        let waits = |event: &&Waiting<'_>| {
            event.offset().is_some_and(|offset| hub.event(offset).done.load(Ordering::Relaxed) == 0)
        };
        let mut next = self.events.iter().filter(waits).peekable();
        let family = self.family;
        locked.settle(key, Role::Originator, &mut |at, offer| {
            let event = next.next_if(|event| event.offset() == Some(at))?;
            let outcome = match event.is_eager {
                true => {
                    let (row, room) = node_place(&hub.segment, at, hub.event(at));
                    locked.serve(offer, family, event.kinds, &event.heads, Ends::Rows(row, room))
                }
                false => {
                    let sides: Vec<Side<'_>> = event.parts.iter().map(Part::side).collect();
                    locked.serve(offer, family, event.kinds, &event.heads, Ends::Sides(&sides))
                }
            };
            Some(Met::Served(outcome))
        });
    }
}

impl Waiting<'_> {
    fn offset(&self) -> Option<u64> {
        match &self.at {
            At::Store { block, .. } => Some(block.offset()),
            At::Far => None,
        }
    }
}

impl Own for Scope<'_, '_> {
    fn advance(
        &self,
        key: &Key,
        before: u64,
        call: &'static str,
        location: &'static Location<'static>,
    ) -> Result<bool> {
        let hub = &*self.by.hub;
        let mut issued = self.issued();
        let Issued { queues, faults, waiting_bytes, .. } = &mut *issued;
        let mut is_done = true;
        for queue in queues.iter_mut().filter(|queue| queue.family == key.family) {
            let job_rank = self.by.members.job_rank(queue.target);
            if !self.by.context.shares_memory(job_rank) {
                self.push_far(queue, &self.by, key, call, false, location)?;
                queue.take_far(faults);
                is_done &= queue.events.front().is_none_or(|event| before <= event.round);
                continue;
            }
            queue.take_done(hub, faults, waiting_bytes);
            let Some(first) = queue.events.front() else { continue };
            if before <= first.round {
                continue;
            }
            // Acquire: pairs with the Release of whoever opens an offer.
            let opened = hub.store(job_rank.0, call)?.buckets[key.bucket()].opened.load(Ordering::Acquire);
            if opened != queue.seen {
                let locked = hub.lock(&self.by.context, job_rank.0, call, location)?;
                queue.seen = locked.bucket(key).opened.load(Ordering::Relaxed);
                queue.settle(hub, &locked, key);
                drop(locked);
                queue.take_done(hub, faults, waiting_bytes);
            }
            is_done &= queue.events.front().is_none_or(|event| before <= event.round);
        }
        Ok(is_done)
    }

    fn waits_for(&self, family: Family, rank: Rank) -> bool {
        let issued = self.issued();
        issued.queues.iter().any(|queue| queue.family == family && queue.target == rank && !queue.events.is_empty())
    }

    fn take_fault(&self, key: &Key, call: &'static str, location: &'static Location<'static>) -> Option<Error> {
        let mut issued = self.issued();
        let at = issued.faults.iter().position(|(family, ..)| *family == key.family)?;
        let (_, target, found) = issued.faults.remove(at);
        issued.faults.retain(|(family, ..)| *family != key.family);
        let error = |kind| self.by.error(kind, call).target(target).other("an own event").called_at(location);
        Some(fault_error(error, &found, key))
    }
}

impl Queue<'_> {
    /// Takes the first events that are done.
    fn take_done(&mut self, hub: &Hub, faults: &mut Vec<(Family, Rank, Found)>, waiting_bytes: &mut usize) {
        while let Some(offset) = self.events.front().and_then(Waiting::offset) {
            let node = hub.event(offset);
            // Acquire: pairs with the Release of whoever has served it.
            if node.done.load(Ordering::Acquire) == 0 {
                return;
            }
            let Some(event) = self.events.pop_front() else { return };
            match noted(&node.fault) {
                Some((found, _)) => faults.push((self.family, self.target, found)),
                None if event.is_eager => event.empty(hub, node_place(&hub.segment, offset, node)),
                None => {}
            }
            if event.is_eager {
                let (taken, given) = event.heads.lengths();
                *waiting_bytes -= taken + given;
            }
            if let At::Store { block, bytes } = event.at {
                hub.give_node(bytes, block);
            }
        }
    }
}

// The end.
impl Scope<'_, '_> {
    /// Waits for all events that are not served.
    fn end(&self, location: &'static Location<'static>) -> Result<()> {
        const CALL: &str = "end of scope";
        for family in Family::ALL {
            self.refuse_dangling(family, CALL, location)?;
            let key = self.key(family);
            // What no round has counted never will be served.
            let before = match family {
                Family::Collective => self.by.hub.rounds().get(&(key.team, key.tag)).map_or(0, |rounds| rounds.now()),
                Family::Plain | Family::Progressive => u64::MAX,
            };
            let has_any = self.issued().queues.iter().any(|queue| queue.family == family && !queue.events.is_empty());
            if has_any {
                let needed = |rank: Rank| self.waits_for(family, rank);
                wait(&self.by, CALL, &key, &needed, location, &mut || {
                    Ok(self.advance(&key, before, CALL, location)?.then_some(()))
                })?;
            }
            if let Some(fault) = self.take_fault(&key, CALL, location) {
                return Err(fault);
            }
            let issued = self.issued();
            let left = issued.queues.iter().find(|queue| queue.family == family && !queue.events.is_empty());
            if let Some(queue) = left {
                let note = format!(
                    "{} events of the collective family were issued that no offerc completes; {key}",
                    queue.events.len()
                );
                let error = self.by.error(ErrorKind::EpochStillOpen, CALL).target(queue.target);
                return Err(error.note(note).called_at(location));
            }
        }
        Ok(())
    }

    /// Takes all events back that are not served.
    fn take_back(&self) {
        const CALL: &str = "taking events back";
        let hub = &*self.by.hub;
        let mut issued = self.issued();
        issued.open.clear();
        for mut queue in std::mem::take(&mut issued.queues) {
            if queue.events.is_empty() {
                continue;
            }
            let key = self.key(queue.family);
            let job_rank = self.by.members.job_rank(queue.target);
            if !self.by.context.shares_memory(job_rank) {
                self.take_far_back(&mut queue, &self.by, &key);
                continue;
            }
            let locked = hub.lock(&self.by.context, job_rank.0, CALL, Location::caller());
            for event in queue.events.drain(..) {
                let At::Store { block, .. } = event.at else { continue };
                match &locked {
                    Ok(locked) => {
                        let node = hub.event(block.offset());
                        if node.done.load(Ordering::Relaxed) == 0 {
                            hub.unlink(&locked.bucket(&key).events, block.offset());
                        }
                    }
                    // Whoever holds the lock may still serve it.
                    Err(_) => block.leave_behind(),
                }
            }
        }
    }
}

/// What is wrong where an event has promised an offer.
pub(super) const NOT_OFFERED: Found = Found { fault: Fault::NotOffered, start: 0, end: 0, bytes: 0 };
