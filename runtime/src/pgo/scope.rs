//! A scope: the events that a rank issues under one team and tag, and the offers that complete them. Never outlives the buffers
//! that its events borrow.
#![forbid(unsafe_code)]

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::event::{Family, Key, Way};
use super::hub::Hub;
use super::offer::{Offerable, Over, Request, Status};
use super::queue::{CHAINS, Issued};
use super::seats::IsOpen;
use super::source::{Destination, Source};
use super::standing::Caller;
use super::{COUNT_ANY, Count, begin_by};
use crate::error::{Error, ErrorKind, Result};
use crate::op::Section;
use crate::rank::Rank;
use crate::team::Team;

/// The events of one team and tag, and the offers that complete them. Made by [`scope`].
///
/// It may be lent to other threads of the rank, whose events have an order of their own.
pub struct Scope<'scope, 'env: 'scope> {
    pub(super) by: Caller<'scope>,
    pub(super) tag: u64,
    issued: Mutex<Issued<'scope>>,
    /// What [`Issued::left`] said when it was let go last.
    left: AtomicU32,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// What a scope has issued, while a thread has it for itself. Notes what is left when it is let go, so that nobody has to lock it to
/// learn that nothing is.
pub(super) struct Holding<'a, 'scope> {
    issued: MutexGuard<'a, Issued<'scope>>,
    left: &'a AtomicU32,
}

impl<'scope> Deref for Holding<'_, 'scope> {
    type Target = Issued<'scope>;

    fn deref(&self) -> &Issued<'scope> {
        &self.issued
    }
}

impl<'scope> DerefMut for Holding<'_, 'scope> {
    fn deref_mut(&mut self) -> &mut Issued<'scope> {
        &mut self.issued
    }
}

impl Drop for Holding<'_, '_> {
    fn drop(&mut self) {
        self.left.store(self.issued.left(), Ordering::Relaxed);
    }
}

/// How the parts of a chain are issued.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Join {
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
    let opened = Opened::new(by, tag, location)?;
    let scope = Scope {
        by,
        tag,
        issued: Mutex::new(Issued::new()),
        left: AtomicU32::new(0),
        scope: PhantomData,
        env: PhantomData,
    };
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
struct Opened<'a> {
    hub: &'a Hub,
    /// Its team and tag.
    mark: (u64, u64),
    /// Where it is noted.
    seat: Option<usize>,
}

impl Opened<'_> {
    fn new<'a>(by: Caller<'a>, tag: u64, location: &'static Location<'static>) -> Result<Opened<'a>> {
        let mark = (by.members.id(), tag);
        match by.hub.scopes.enter(mark) {
            Ok(seat) => Ok(Opened { hub: by.hub, mark, seat }),
            Err(IsOpen) => {
                let note = format!(
                    "a scope of the same team and tag is open, whose calls are to be used; tag {tag}"
                );
                Err(by.error(ErrorKind::EpochStillOpen, "scope").note(note).called_at(location))
            }
        }
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        self.hub.scopes.leave(self.mark, self.seat);
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
pub(super) struct Call {
    pub(super) name: &'static str,
    pub(super) family: Family,
    pub(super) location: &'static Location<'static>,
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// The caller's rank in the team.
    pub fn rank(&self) -> Rank {
        self.by.members.rank()
    }

    /// The number of members of the team.
    pub fn size(&self) -> u32 {
        self.by.members.size()
    }

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
    pub fn rput<'d>(
        &self,
        origin: impl Source<'scope>,
        target: Rank,
        section: impl Into<Section<'d>>,
    ) -> Result<()> {
        let call = Call { name: "rput", family: Family::Plain, location: Location::caller() };
        let (part, mismatched) =
            self.aim(call, target, origin.bring().and_then(|side| side.aim(Way::Put, section.into())))?;
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
        let (part, mismatched) =
            self.aim(call, target, origin.bring().and_then(|side| side.aim(Way::Get, section.into())))?;
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
    /// It pays where targets can't easily know how many events come to them, as in codes that are ported from barriers. Where the
    /// program knows the counts, [`offer`](Scope::offer) is cheaper.
    ///
    /// # Errors
    /// As [`offer`](Scope::offer); `EventNotOffered` if an event of the round is of a kind that its target does not offer.
    #[track_caller]
    pub fn offerc<B: Offerable>(&self, over: Over<B>) -> Result<Status> {
        self.collective(over, Location::caller())
    }

    /// As [`ioffer`](super::ioffer), under this scope's team and tag.
    ///
    /// # Errors
    /// As [`ioffer`](super::ioffer).
    #[track_caller]
    pub fn ioffer<B: Offerable>(&self, over: Over<B>, count: impl Into<Count>) -> Result<Request<B>> {
        begin_by(self.by, self.tag, ("ioffer", Family::Plain), over, count.into(), Location::caller())
    }

    /// As [`iofferp`](super::iofferp), under this scope's team and tag: prefer [`ioffer`](Scope::ioffer), for the reasons said there.
    ///
    /// # Errors
    /// As [`ioffer`](super::ioffer).
    #[cfg(feature = "progressive")]
    #[track_caller]
    pub fn iofferp<B: Offerable>(&self, over: Over<B>, count: impl Into<Count>) -> Result<Request<B>> {
        begin_by(self.by, self.tag, ("iofferp", Family::Progressive), over, count.into(), Location::caller())
    }

    /// As [`iofferc`](super::iofferc), under this scope's team and tag.
    ///
    /// # Errors
    /// As [`ioffer`](super::ioffer).
    #[track_caller]
    pub fn iofferc<B: Offerable>(&self, over: Over<B>) -> Result<Request<B>> {
        begin_by(self.by, self.tag, ("iofferc", Family::Collective), over, COUNT_ANY, Location::caller())
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

    pub(super) fn collective<B: Offerable>(
        &self,
        over: Over<B>,
        location: &'static Location<'static>,
    ) -> Result<Status> {
        let mut request =
            begin_by(self.by, self.tag, ("offerc", Family::Collective), over, COUNT_ANY, location)?;
        request.finish(Some(self), location)
    }

    fn refuse_foreign<B: Offerable>(
        &self,
        request: &Request<B>,
        location: &'static Location<'static>,
    ) -> Result<()> {
        let key = request.standing.key;
        match key == self.key(key.family) {
            true => Ok(()),
            false => {
                let note = format!(
                    "the request has another team or tag than the scope, whose tag is {}; {key}",
                    self.tag
                );
                Err(self.by.error(ErrorKind::MixedSync, request.standing.call).note(note).called_at(location))
            }
        }
    }

    pub(super) fn key(&self, family: Family) -> Key {
        Key { family, team: self.by.members.id(), tag: self.tag }
    }

    pub(super) fn issued(&self) -> Holding<'_, 'scope> {
        // Nothing panics while the lists are inconsistent.
        let issued = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
        Holding { issued, left: &self.left }
    }

    /// Whether something of these kinds is left of what the calling thread has issued.
    #[inline]
    pub(super) fn has(&self, kinds: u32) -> bool {
        // Relaxed: what other threads issue meanwhile is as if it came a little later.
        self.left.load(Ordering::Relaxed) & kinds != 0
    }

    pub(super) fn refuse_dangling(
        &self,
        family: Family,
        call: &'static str,
        location: &'static Location<'static>,
    ) -> Result<()> {
        if !self.has(CHAINS) {
            return Ok(());
        }
        let issued = self.issued();
        match issued.open.iter().find(|chain| chain.family == family) {
            None => Ok(()),
            Some(chain) => {
                let note = format!(
                    "its last part was said to be combined, so the event was never issued; tag {}",
                    self.tag
                );
                let error = self.by.error(ErrorKind::DanglingCombine, call).target(chain.target);
                Err(error.note(note).called_at(location))
            }
        }
    }
}
