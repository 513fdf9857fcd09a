//! Put, get and offer: one-sided exchanges on a plain team, without windows. Never needs a window, a post or a lock.
//!
//! The **originator** of a transfer issues an *event* by [`put`](Scope::put) or [`get`](Scope::get) and names both ends of it: a
//! buffer of its own, a rank, and a displacement there. The **target** decides when memory may be accessed, which, and how: it
//! *offers* a buffer to so many events. Both name a *tag*, which keeps independent exchanges apart. The synchronization rides on
//! the data: an event that meets its offer is one copy, or one message.
//!
//! ```
//! use rma::pgo::{self, PUTS_OK, over};
//! use rma::Rank;
//! let sums = rma::spawn(4, |team| {
//!     let (me, n) = (team.rank().0, team.size());
//!     let (left, right) = (Rank((me + n - 1) % n), Rank((me + 1) % n));
//!     let mine = [me; 3];
//!     let mut halo = [0; 6];
//!     // Everybody puts its numbers to both neighbours and takes those of both: two events.
//!     pgo::scope(team, 7, |scope| {
//!         scope.put(&mine, left, 3)?;
//!         scope.put(&mine, right, 0)?;
//!         scope.offer(over(&mut halo, PUTS_OK), 2)
//!     })?;
//!     assert_eq!(halo, [left.0, left.0, left.0, right.0, right.0, right.0]);
//!     Ok(halo.iter().sum::<u32>())
//! })?;
//! assert_eq!(sums.into_iter().collect::<rma::Result<Vec<_>>>()?, [12, 6, 12, 6]);
//! # Ok::<(), rma::Error>(())
//! ```
//!
//! # Three families
//!
//! Each has its own space of matching: an event of one is never served by an offer of another.
//!
//! | family | events | offers | when |
//! |---|---|---|---|
//! | non-progressive | [`put`](Scope::put), [`get`](Scope::get) | [`offer`](Scope::offer), [`ioffer`](Scope::ioffer) | **first choice.** Moves data in the calls of the two ranks only, and costs nothing else |
//! | progressive | [`putp`](Scope::putp), [`getp`](Scope::getp) | [`offerp`](Scope::offerp), [`iofferp`](Scope::iofferp) | the target can't come to a call while others reach it. Events are atomic, which makes those to one rank wait for each other, and ranks without shared memory need an agent that interrupts the target |
//! | collective | [`putc`](Scope::putc), [`getc`](Scope::getc) | [`offerc`](Scope::offerc), [`iofferc`](Scope::iofferc) | targets can't easily know how many events come, as in codes that were written for barriers. Where the counts are known, giving them is cheaper: counting takes messages along a tree of all ranks in each round |
//!
//! # What it costs
//!
//! Between ranks that share memory, a contiguous put that meets a blocking [`offer`] takes no lock and no memory. Up to 4 KiB its data
//! go through a parcel between the two ranks: one copy in, one copy out, whatever the memory is. A longer one is **copied once**, by
//! its originator, into offered memory that is a [`Malloc`]; into any other memory it is copied by way of a mirror, which takes a
//! lock and costs a second copy. So offer a [`Malloc`] where rows are long: a pair of put and offer then costs about what post, start, put,
//! complete and wait cost on a window. Events of other kinds, requests and the other families take the lock of the target's store.
//!
//! # Rules
//!
//! - A buffer of an event is borrowed until its scope ends; a buffer of a blocking offer for the call; a request owns its buffer.
//!   So touching one too early does not compile.
//! - Events of one thread with equal family, team, tag and target are served in the order in which they were issued, puts and gets
//!   alike. There is **no order** between threads, ranks, tags or teams.
//! - An offer serves exactly as many events as it counts; the rest waits for the next one. Of two that allow an event, the earlier
//!   one gets it.
//! - Counts don't tell rounds apart: a rank that is ahead may issue events of its next round while an offer still waits for those of
//!   a slower one, and the offer takes them. Programs with rounds take turns between two tags, as `examples/pgo_halo.rs` does,
//!   or use the collective family, whose events belong to their rounds.
//! - An offer completes when it has served its count and all events that its scope has issued in the family are served.
//! - An event that reaches outside the offer moves nothing, counts as served, and is an error at both ends.
//! - Events of the progressive family are atomic against each other, also when they are combined from many parts. They are **not
//!   atomic against loads and stores** of the target; safe code has none, as an offered buffer can't be touched.
//! - Events of one non-progressive offer should name no byte twice; which one comes last is not said.
#![deny(unsafe_code)]

mod direct;
mod event;
mod hub;
mod issue;
mod lanes;
mod offer;
mod posts;
mod queue;
mod raw;
mod remote;
mod rounds;
mod scope;
mod seats;
mod source;
mod standing;
mod wait;
mod wired;

use std::fmt;
use std::ops::{Add, BitAnd, BitOr};
use std::panic::Location;

use crate::element::Element;
use crate::error::Result;
use crate::team::Team;

use event::{Family, Key};
use standing::Caller;

pub(crate) use hub::Hub;
pub use offer::{Held, Nothing, Offerable, Over, Persistent, Request, Status, nothing, over};
pub use raw::Malloc;
pub(crate) use remote::join;
pub use scope::{Combined, Scope, scope};
pub use source::{Bring, Destination, Source, Wrong};

/// Which events an offer serves: [`PUTS_OK`], [`GETS_OK`] or their sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Events(u32);

/// The offer serves puts.
pub const PUTS_OK: Events = Events(1);
/// The offer serves gets.
pub const GETS_OK: Events = Events(2);
/// The offer serves nothing: for a count of 0.
pub const NONE_OK: Events = Events(0);

impl Events {
    fn bits(self) -> u32 {
        self.0
    }

    fn from_bits(bits: u32) -> Events {
        Events(bits & 3)
    }
}

impl BitOr for Events {
    type Output = Events;

    fn bitor(self, other: Events) -> Events {
        Events(self.0 | other.0)
    }
}

#[allow(clippy::suspicious_arithmetic_impl, reason = "the sum of masks is their union, as in the proposal")]
impl Add for Events {
    type Output = Events;

    fn add(self, other: Events) -> Events {
        self | other
    }
}

impl BitAnd for Events {
    type Output = Events;

    fn bitand(self, other: Events) -> Events {
        Events(self.0 & other.0)
    }
}

impl fmt::Display for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            PUTS_OK => "puts",
            GETS_OK => "gets",
            NONE_OK => "nothing",
            _ => "puts and gets",
        })
    }
}

/// How many events an offer serves: a number, or [`COUNT_ANY`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Count(u64);

/// The offer serves whatever comes until it is waited for. Legal for [`ioffer`](Scope::ioffer) and [`iofferp`](Scope::iofferp) only.
pub const COUNT_ANY: Count = Count(hub::UNCOUNTED);

impl From<u64> for Count {
    fn from(count: u64) -> Count {
        Count(count)
    }
}

impl<'t> Caller<'t> {
    fn of(team: &'t Team) -> Caller<'t> {
        team.context().serve();
        Caller::new(team.context(), team.members())
    }
}

/// Offers a buffer to events of the non-progressive family and waits until it has served `count` of them: a
/// [`scope`] that issues nothing and ends with [`Scope::offer`].
///
/// # Errors
/// As [`Scope::offer`].
#[track_caller]
pub fn offer<B: Offerable>(team: &Team, tag: u64, over: Over<B>, count: impl Into<Count>) -> Result<Status> {
    let location = Location::caller();
    scope(team, tag, |scope| scope.blocking("offer", Family::Plain, over, count.into(), location))
}

/// As [`offer`], for the progressive family. Prefer the non-progressive one where the target comes to a call: this one serves
/// events one after the other, whoever they are from.
///
/// # Errors
/// As [`Scope::offerp`].
#[cfg(feature = "progressive")]
#[track_caller]
pub fn offerp<B: Offerable>(team: &Team, tag: u64, over: Over<B>, count: impl Into<Count>) -> Result<Status> {
    let location = Location::caller();
    scope(team, tag, |scope| scope.blocking("offerp", Family::Progressive, over, count.into(), location))
}

/// As [`offer`], for the collective family: all members call it. See [`Scope::offerc`].
///
/// # Errors
/// As [`Scope::offerc`].
#[track_caller]
pub fn offerc<B: Offerable>(team: &Team, tag: u64, over: Over<B>) -> Result<Status> {
    let location = Location::caller();
    scope(team, tag, |scope| scope.collective(over, location))
}

/// Offers a buffer and returns at once with a request that owns the buffer: IOFFER. If Fortran code reaches the buffer, too,
/// `docs/registers.md` says how to declare it there.
///
/// # Errors
/// `BadEvents`, `BadDispUnit`, `RankOutOfRange`; `System` if memory is short; `Stalled`, `PeerLost`.
#[track_caller]
pub fn ioffer<B: Offerable>(
    team: &Team,
    tag: u64,
    over: Over<B>,
    count: impl Into<Count>,
) -> Result<Request<B>> {
    begin(team, tag, ("ioffer", Family::Plain), over, count.into(), Location::caller())
}

/// As [`ioffer`], for the progressive family: events are served although the target makes no call. Prefer the non-progressive
/// one where it does: this one serves events one after the other, and ranks without shared memory need an agent. For Fortran
/// code that reaches the buffer see `docs/registers.md`.
///
/// # Errors
/// As [`ioffer`].
#[cfg(feature = "progressive")]
#[track_caller]
pub fn iofferp<B: Offerable>(
    team: &Team,
    tag: u64,
    over: Over<B>,
    count: impl Into<Count>,
) -> Result<Request<B>> {
    begin(team, tag, ("iofferp", Family::Progressive), over, count.into(), Location::caller())
}

/// The next round of the collective family, without waiting for it: IOFFERC. Events that are issued afterwards belong to the round
/// after it. For Fortran code that reaches the buffer see `docs/registers.md`.
///
/// # Errors
/// As [`ioffer`].
#[track_caller]
pub fn iofferc<B: Offerable>(team: &Team, tag: u64, over: Over<B>) -> Result<Request<B>> {
    begin(team, tag, ("iofferc", Family::Collective), over, COUNT_ANY, Location::caller())
}

fn begin<B: Offerable>(
    team: &Team,
    tag: u64,
    (call, family): (&'static str, Family),
    over: Over<B>,
    count: Count,
    location: &'static Location<'static>,
) -> Result<Request<B>> {
    begin_by(Caller::of(team), tag, (call, family), over, count, location)
}

fn begin_by<B: Offerable>(
    by: Caller<'_>,
    tag: u64,
    (call, family): (&'static str, Family),
    over: Over<B>,
    count: Count,
    location: &'static Location<'static>,
) -> Result<Request<B>> {
    let key = Key { family, team: by.members.id(), tag };
    let mut request = Request::new(by, call, key, (over, count), false, location)?;
    let round = match family {
        Family::Collective => by.hub.begin_round(&by, &key, call, location)?,
        Family::Plain | Family::Progressive => 0,
    };
    request.open(round, location)?;
    Ok(request)
}

fn prepare<B: Offerable>(
    team: &Team,
    tag: u64,
    (call, family): (&'static str, Family),
    over: Over<B>,
    count: Count,
    location: &'static Location<'static>,
) -> Result<Persistent<B>> {
    let by = Caller::of(team);
    let key = Key { family, team: by.members.id(), tag };
    Ok(Persistent { request: Request::new(by, call, key, (over, count), true, location)? })
}

/// Sets an offer up that is then started and completed many times.
///
/// # Errors
/// As [`ioffer`].
#[track_caller]
pub fn offer_init<B: Offerable>(
    team: &Team,
    tag: u64,
    over: Over<B>,
    count: impl Into<Count>,
) -> Result<Persistent<B>> {
    prepare(team, tag, ("persistent offer", Family::Plain), over, count.into(), Location::caller())
}

/// As [`offer_init`], for the progressive family, whose cost [`iofferp`] tells: prefer the non-progressive one.
///
/// # Errors
/// As [`ioffer`].
#[cfg(feature = "progressive")]
#[track_caller]
pub fn offerp_init<B: Offerable>(
    team: &Team,
    tag: u64,
    over: Over<B>,
    count: impl Into<Count>,
) -> Result<Persistent<B>> {
    prepare(team, tag, ("persistent offerp", Family::Progressive), over, count.into(), Location::caller())
}

/// As [`offer_init`], for the collective family: each start is a round, which all members start.
///
/// # Errors
/// As [`ioffer`].
#[track_caller]
pub fn offerc_init<B: Offerable>(team: &Team, tag: u64, over: Over<B>) -> Result<Persistent<B>> {
    prepare(team, tag, ("persistent offerc", Family::Collective), over, COUNT_ANY, Location::caller())
}

/// Takes memory that ranks on one machine share, zeroed: RMA_MALLOC. A local call; the team says only whose rank takes it.
///
/// # Errors
/// `System` if there is not that much.
#[track_caller]
pub fn malloc<T: Element>(team: &Team, len: usize) -> Result<Malloc<T>> {
    let location = Location::caller();
    Malloc::new(team.context(), len, "rma_malloc")
        .map_err(|error| error.caller(team.rank()).called_at(location))
}

/// Runs `body` while this rank has the lock of its store, for tests: see `private::testing`.
#[track_caller]
pub(crate) fn holding<R>(team: &Team, body: impl FnOnce() -> R) -> Result<R> {
    let Caller { context, hub, .. } = Caller::of(team);
    let _locked = hub.lock(context, hub.me, "holding a store", Location::caller())?;
    Ok(body())
}

/// What the calls have done at a rank, for tests: see `private::testing`.
pub(crate) fn counters(team: &Team) -> [u64; 8] {
    Hub::of(team.context()).counts()
}
