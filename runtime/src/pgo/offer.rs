//! What is offered, on which terms, and the requests that offers give. Never matches.
#![forbid(unsafe_code)]

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;

use super::event::{Family, Key};
use super::raw::{Malloc, Place};
use super::standing::{Caller, Ended, Standing};
use super::{COUNT_ANY, Count, Events};
use crate::element::Element;
use crate::error::{Error, ErrorKind, Result};
use crate::rank::Rank;

/// Memory to offer, and on which terms. Made by [`over`] and [`nothing`].
#[must_use = "it is offered by an offer"]
pub struct Over<B> {
    pub(super) buffer: B,
    pub(super) terms: Terms,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) events: Events,
    /// In bytes.
    pub(super) unit: usize,
    pub(super) only: Option<Rank>,
    pub(super) late: bool,
    pub(super) by_origin: bool,
}

/// Offers a buffer to puts, to gets, or to both. A displacement of 1 is an element of the buffer, unless [`Over::unit`] says
/// otherwise.
///
/// A slice, array, vector or [`Malloc`] is lent to a blocking offer by `&mut`; requests own theirs. A [`Malloc`] is served in
/// place; anything else has a mirror in memory that ranks share while it is offered, unless it is offered by a call that blocks
/// and nothing comes but contiguous puts of up to 4 KiB.
pub fn over<B: Offerable>(buffer: B, events: Events) -> Over<B> {
    let unit = B::UNIT;
    Over { buffer, terms: Terms { events, unit, only: None, late: false, by_origin: false } }
}

/// Offers no memory: for an offer of count 0, which only waits for the caller's own events.
pub fn nothing() -> Over<Nothing> {
    over(Nothing(()), super::NONE_OK)
}

/// No memory. Made by [`nothing`].
#[derive(Debug)]
pub struct Nothing(());

impl<B> Over<B> {
    /// Sets what a displacement of 1 is, in bytes.
    pub fn unit(mut self, bytes: usize) -> Over<B> {
        self.terms.unit = bytes;
        self
    }

    /// Serves events of one rank only; those of others stay pending.
    pub fn from(mut self, originator: Rank) -> Over<B> {
        self.terms.only = Some(originator);
        self
    }

    /// Serves nothing before the request is waited for or tested, as a runtime may that has nobody to do it. For tests of programs
    /// that must not rely on more; it makes no difference to blocking offers.
    pub fn late(mut self) -> Over<B> {
        self.terms.late = true;
        self
    }

    /// Counts events and bytes of each originator, for [`Status::by_origin`].
    pub fn counting_origins(mut self) -> Over<B> {
        self.terms.by_origin = true;
        self
    }
}

/// What offers lend or own. Only this crate can implement it.
pub trait Offerable {
    /// The default unit of displacements, in bytes.
    #[doc(hidden)]
    const UNIT: usize;

    #[doc(hidden)]
    fn held(&mut self) -> Held<'_>;
}

/// Hides where offered memory lies.
#[doc(hidden)]
pub struct Held<'a>(Where<'a>);

enum Where<'a> {
    Private(Place<'a>),
    Shared(u64, usize, &'a mut dyn Renounce),
    Nowhere,
}

trait Renounce {
    fn renounce(&mut self);
}

impl<T: Element> Renounce for Malloc<T> {
    fn renounce(&mut self) {
        Malloc::renounce(self);
    }
}

impl<'a> Held<'a> {
    fn private_elements<T: Element>(elements: &'a mut [T]) -> Held<'a> {
        const {
            assert!(
                T::SHAPE.is_dense(),
                "what is offered is bytes to others, so its elements have no padding"
            );
        }
        Held(Where::Private(Place::of_mut(elements)))
    }

    fn shared_elements<T: Element>(memory: &'a mut Malloc<T>) -> Held<'a> {
        let (offset, bytes) = memory.extent();
        Held(Where::Shared(offset, bytes, memory))
    }

    pub(super) fn nothing() -> Held<'a> {
        Held(Where::Nowhere)
    }

    pub(super) fn private(&self) -> Option<&Place<'a>> {
        match &self.0 {
            Where::Private(place) => Some(place),
            Where::Shared(..) | Where::Nowhere => None,
        }
    }

    /// Offset and length.
    pub(super) fn shared(&self) -> (u64, usize) {
        match self.0 {
            Where::Shared(offset, bytes, _) => (offset, bytes),
            Where::Private(_) | Where::Nowhere => (0, 0),
        }
    }

    pub(super) fn renounce(&mut self) {
        if let Where::Shared(_, _, memory) = &mut self.0 {
            memory.renounce();
        }
    }
}

macro_rules! offerables {
    ($([$($generics:tt)*] $type:ty, $element:ty, |$this:ident| $held:expr;)*) => {$(
        impl<$($generics)*> Offerable for $type {
            const UNIT: usize = size_of::<$element>();

            fn held(&mut self) -> Held<'_> {
                let $this = self;
                $held
            }
        }
    )*};
}

offerables! {
    [T: Element] &mut [T], T, |this| Held::private_elements(this);
    [T: Element, const N: usize] &mut [T; N], T, |this| Held::private_elements(*this);
    [T: Element] &mut Vec<T>, T, |this| Held::private_elements(this);
    [T: Element] &mut Malloc<T>, T, |this| Held::shared_elements(this);
    [T: Element] Vec<T>, T, |this| Held::private_elements(this);
    [T: Element] Box<[T]>, T, |this| Held::private_elements(this);
    [T: Element] Malloc<T>, T, |this| Held::shared_elements(this);
    [] Nothing, u8, |_this| Held::nothing();
}

/// What an offer has served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    pub(super) events: u64,
    pub(super) bytes: u64,
    pub(super) by_origin: Vec<(Rank, u64, u64)>,
}

impl Status {
    /// How many events.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// How many bytes they moved.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Events and bytes of each originator that had some, in the order of ranks; empty unless
    /// [`Over::counting_origins`] was asked for.
    pub fn by_origin(&self) -> &[(Rank, u64, u64)] {
        &self.by_origin
    }
}

/// An offer that has not been waited for. It owns the offered buffer, so nobody can touch it meanwhile.
///
/// One that is dropped before it is complete is withdrawn, and an error of the rank (`EpochStillOpen`), which surfaces at its end
/// at the latest.
#[must_use = "an offer is completed by `wait`"]
pub struct Request<B: Offerable> {
    /// `None` once the buffer was taken out.
    buffer: Option<B>,
    pub(super) standing: Standing,
    pub(super) round: u64,
    is_persistent: bool,
    owned: PhantomData<B>,
}

impl<B: Offerable> Request<B> {
    pub(super) fn new(
        by: Caller<'_>,
        call: &'static str,
        key: Key,
        (over, count): (Over<B>, Count),
        is_persistent: bool,
        location: &'static Location<'static>,
    ) -> Result<Request<B>> {
        let Over { mut buffer, terms } = over;
        let standing = Standing::new(by, call, key, (terms, count.0), &buffer.held(), location)?;
        Ok(Request { buffer: Some(buffer), standing, round: 0, is_persistent, owned: PhantomData })
    }

    fn held(buffer: &mut Option<B>) -> Held<'_> {
        match buffer {
            Some(buffer) => buffer.held(),
            None => Held::nothing(),
        }
    }

    pub(super) fn open(&mut self, round: u64, location: &'static Location<'static>) -> Result<()> {
        self.round = round;
        self.standing.open(&Self::held(&mut self.buffer), round, location)
    }

    pub(super) fn close(&mut self, location: &'static Location<'static>) -> Result<Ended> {
        self.standing.close(&mut Self::held(&mut self.buffer), location)
    }

    /// Waits until the offer is complete: it has served as many events as it counts, or, with [`COUNT_ANY`], at once. Gives what
    /// it has served; the buffer comes from [`into_inner`](Request::into_inner).
    ///
    /// While a scope of the same team and tag is open, its own events have to be served, too: say
    /// [`Scope::wait`](super::Scope::wait) there.
    ///
    /// # Errors
    /// `EpochStillOpen` while a scope of the same team and tag is open; `OutsideOffer`, `DatatypeMismatch`, `OverlappingLayout`,
    /// `EventNotOffered` if an event had that fault, which counts as served; `Stalled`, `PeerLost`.
    #[track_caller]
    pub fn wait(&mut self) -> Result<Status> {
        let location = Location::caller();
        self.standing.refuse_inside_scope(location)?;
        self.finish(None, location)
    }

    /// Serves what can be served now, and says whether the offer is complete. Once it has given a status, the request is at its end.
    ///
    /// On a collective request it looks only at what has arrived, sends nothing, and may say "not complete" for ever: a program
    /// completes it by `wait`.
    ///
    /// # Errors
    /// As [`wait`](Request::wait).
    #[track_caller]
    pub fn test(&mut self) -> Result<Option<Status>> {
        let location = Location::caller();
        self.standing.refuse_inside_scope(location)?;
        self.try_finish(None, location)
    }

    /// The offered buffer, when the offer is complete. A request that is not complete is withdrawn, as if it were dropped.
    ///
    /// After a `wait` that ended in `Stalled` or `PeerLost` the buffer may lack what was put; a [`Malloc`] that others may still
    /// write to comes back without elements.
    pub fn into_inner(mut self) -> B {
        self.withdraw();
        match self.buffer.take() {
            Some(buffer) => buffer,
            None => unreachable!("the buffer leaves with the request"),
        }
    }

    /// The offered buffer, of a persistent offer that is not started.
    pub(super) fn idle_buffer(&mut self) -> Option<&mut B> {
        match self.standing.is_open() {
            true => None,
            false => self.buffer.as_mut(),
        }
    }

    fn withdraw(&mut self) {
        if !self.standing.is_open() {
            return;
        }
        let left = match self.standing.count() {
            any if Count(any) == COUNT_ANY => "it was not waited for".to_owned(),
            count => format!("{} of {count} events were missing", count - self.standing.served().min(count)),
        };
        let standing = &self.standing;
        let what = if self.is_persistent { "a started offer was dropped" } else { "its request was dropped" };
        let note = format!("{what}, and {left}; {}", standing.key);
        standing
            .owner
            .caller()
            .context
            .leave_open(standing.owner.caller().error(ErrorKind::EpochStillOpen, standing.call).note(note));
        // What closing may give is less than what is reported already.
        let _ = self.close(Location::caller());
    }
}

impl<B: Offerable> Drop for Request<B> {
    fn drop(&mut self) {
        self.withdraw();
    }
}

impl<B: Offerable> fmt::Debug for Request<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} with {}, {} events served",
            self.standing.call,
            self.standing.key,
            self.standing.served()
        )
    }
}

/// An offer that is set up once and then started and completed many times, without taking memory again. Made by
/// [`offer_init`](super::offer_init) and its kin.
pub struct Persistent<B: Offerable> {
    pub(super) request: Request<B>,
}

impl<B: Offerable> Persistent<B> {
    /// Opens the offer. A collective one must be started by all members.
    ///
    /// # Errors
    /// `EpochStillOpen` if it is started already; `Stalled`, `PeerLost`.
    #[track_caller]
    pub fn start(&mut self) -> Result<()> {
        let location = Location::caller();
        let standing = &self.request.standing;
        if standing.is_open() {
            let note = format!("the offer is started already; {}", standing.key);
            return Err(standing
                .owner
                .caller()
                .error(ErrorKind::EpochStillOpen, standing.call)
                .note(note)
                .called_at(location));
        }
        let round = match standing.key.family {
            Family::Collective => standing.owner.caller().hub.begin_round(
                &standing.owner.caller(),
                &standing.key,
                standing.call,
                location,
            )?,
            Family::Plain | Family::Progressive => 0,
        };
        self.request.open(round, location)
    }

    /// Waits until the started offer is complete, and closes it. See [`Request::wait`].
    ///
    /// # Errors
    /// As [`Request::wait`].
    #[track_caller]
    pub fn wait(&mut self) -> Result<Status> {
        let location = Location::caller();
        self.request.standing.refuse_inside_scope(location)?;
        self.request.finish(None, location)
    }

    /// The offered buffer, between two starts.
    ///
    /// # Errors
    /// `LocalAccessDuringOffer` while the offer is started.
    #[track_caller]
    pub fn buffer(&mut self) -> Result<&mut B> {
        let refused: Error = {
            let standing = &self.request.standing;
            let note = format!("wait for the offer first; {}", standing.key);
            standing.owner.caller().error(ErrorKind::LocalAccessDuringOffer, "persistent offer").note(note)
        };
        self.request.idle_buffer().ok_or(refused)
    }

    /// The buffer, and the end of the offer. One that is started is withdrawn, which is an error of the rank: see [`Request`].
    pub fn into_inner(self) -> B {
        self.request.into_inner()
    }
}

impl<B: Offerable> fmt::Debug for Persistent<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "persistent {:?}", self.request)
    }
}
