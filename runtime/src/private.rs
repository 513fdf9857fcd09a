//! What `#[rma_epoch]` and `#[rma_test]` generate calls to. Never to be called by hand, and without any stability.
//!
//! Each opening function takes the window, what the attribute says, and the body as a closure; whatever way the closure
//! ends, the epoch is closed by the runtime's own scope of that style. The functions of [`inner`] leave pending values
//! closed: in a body with several epochs only the outermost opens them, when all are over.
#![forbid(unsafe_code)]

use std::ops::Range;

use crate::element::Element;
use crate::epoch::{AccessEpoch, Closed, Deliver, Exposure, FenceEpoch, LockEpoch, Pending};
use crate::error::{Error, ErrorKind};
use crate::info;
use crate::pgo::{self, Offerable, Over, Scope};
use crate::sync::registers::{after_call, before_call};
use crate::team::Team;
use crate::window::Window;
use crate::window::raw::{Expected, Origins};

pub mod testing;

pub use crate::element::plain::ALIGNMENT_MAX;
pub use crate::element::{And, Max, Min, Or, Prod, Replace, Sum, Xor};
pub use crate::element::{Member, Shape};
pub use crate::op::own;
pub use crate::team::Rank;
pub use crate::window::raw::LockKind;

pub use crate::pgo::{GETS_OK, PUTS_OK, nothing, over};

/// Runs a body that issues events under a tag, and ends it with an offer.
///
/// # Errors
/// As [`Scope::offer`], and what the body returns.
#[track_caller]
pub fn offer<'env, B: Offerable, R, E: From<Error>>(
    team: &Team,
    tag: u64,
    count: u64,
    over: Over<B>,
    body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> Result<R, E>,
) -> Result<R, E> {
    pgo::scope(team, tag, |scope| {
        let value = body(scope)?;
        scope.offer(over, count)?;
        Ok(value)
    })
}

/// What a body returns: its own value, and the error type of the function's result.
pub type Answer<R, F> = Result<R, <F as Fallible>::Error>;

/// The return type of an annotated function.
#[diagnostic::on_unimplemented(
    message = "an annotated function returns a `Result`, and `{Self}` is none",
    label = "not a `Result`",
    note = "an epoch can fail: return `rma::Result<…>`, or a `Result` whose error `rma::Error` converts into"
)]
pub trait Fallible {
    /// What the function returns when all is well.
    type Value;
    /// What it returns otherwise.
    type Error;
}

impl<V, E> Fallible for Result<V, E> {
    type Value = V;
    type Error = E;
}

/// What the opening call may take for granted.
#[derive(Clone, Copy, Debug)]
pub enum Info {
    /// Nothing.
    Strong,
    /// Nothing, but it may return early.
    Weak,
    /// That access is granted at once, for this reason.
    NoCheck(&'static str),
}

impl Info {
    fn plain(self) -> info::Info {
        match self {
            Info::Strong => info::Info::Strong,
            Info::Weak => info::Info::Weak,
            Info::NoCheck(_) => info::Info::NoCheck,
        }
    }

    /// An error under NOCHECK says what the program took for granted.
    fn explain(self, error: Error) -> Error {
        match (self, error.kind()) {
            (Info::NoCheck(because), ErrorKind::NotPosted | ErrorKind::NoCheckConflict) => {
                error.note(format!("the program left this unchecked because \"{because}\""))
            }
            _ => error,
        }
    }
}

/// Whom an exposure lets in, and for whom it waits.
#[derive(Clone, Copy, Debug)]
pub enum Awaited<'a> {
    /// These ranks, all of them.
    Group(&'a [Rank]),
    /// Anybody, and so many.
    Any(usize),
}

impl<'a> Awaited<'a> {
    fn origins(self) -> Origins<'a> {
        match self {
            Awaited::Group(ranks) => Origins::Group(ranks),
            Awaited::Any(_) => Origins::Any,
        }
    }

    fn expected(self) -> Expected {
        match self {
            Awaited::Group(_) => Expected::All,
            Awaited::Any(count) => Expected::Count(count),
        }
    }
}

/// The ranks that an expression lends.
#[inline(always)]
pub fn ranks<L: AsRef<[Rank]> + ?Sized>(list: &L) -> &[Rank] {
    list.as_ref()
}

/// One element of one's own part, as origin of a put or destination of a get.
#[inline(always)]
pub fn own_element(index: usize) -> crate::op::Own<'static> {
    own(one(index))
}

/// One element as a range.
#[inline(always)]
pub fn one(index: usize) -> Range<usize> {
    index..index.saturating_add(1)
}

/// How what a body returns becomes what the function returns, once all its epochs are over.
///
/// Plain values become themselves. This is not [`Deliver`], whose output type follows from the body's value alone: here
/// the function's type is known too, so that `Ok(0)` needs no suffix and any type may be returned.
#[diagnostic::on_unimplemented(
    message = "the body gives `{Self}`, and the function returns `{V}`",
    label = "`{Self}` does not become `{V}` when the epoch ends",
    note = "a get gives `Pending<T>`, which becomes `T`; pending values may stand in tuples of up to four, `Option`, `Vec` \
            and arrays",
    note = "where another way out gives a pending value, make a plain one pending by `.into()`"
)]
pub trait Answers<V> {
    /// Opens the value.
    fn open(self, closed: &Closed<'_>) -> V;
}

impl<V> Answers<V> for V {
    #[inline(always)]
    fn open(self, _: &Closed<'_>) -> V {
        self
    }
}

/// Opens what is known to be pending: that cannot fail.
#[inline(always)]
fn opened<T>(pending: Pending<'_, T>, closed: &Closed<'_>) -> T {
    match pending.deliver(closed) {
        Ok(value) => value,
        Err(error) => unreachable!("a pending value holds no error: {error}"),
    }
}

impl<V> Answers<V> for Pending<'_, V> {
    #[inline(always)]
    fn open(self, closed: &Closed<'_>) -> V {
        opened(self, closed)
    }
}

impl<V> Answers<Option<V>> for Option<Pending<'_, V>> {
    fn open(self, closed: &Closed<'_>) -> Option<V> {
        self.map(|pending| opened(pending, closed))
    }
}

impl<V> Answers<Vec<V>> for Vec<Pending<'_, V>> {
    fn open(self, closed: &Closed<'_>) -> Vec<V> {
        self.into_iter().map(|pending| opened(pending, closed)).collect()
    }
}

impl<V, const N: usize> Answers<[V; N]> for [Pending<'_, V>; N] {
    fn open(self, closed: &Closed<'_>) -> [V; N] {
        self.map(|pending| opened(pending, closed))
    }
}

/// Tuples in which something is pending; each row says which members are. A tuple without any is a plain value.
macro_rules! tuples {
    ($(($($name:ident $what:ident),*);)*) => {$(
        impl<'epoch, $($name),*> Answers<($($name,)*)> for ($(tuples!(type $what 'epoch $name),)*) {
            #[inline(always)]
            #[allow(non_snake_case)] // The names of the types serve as names of the values.
            fn open(self, closed: &Closed<'_>) -> ($($name,)*) {
                let ($($name,)*) = self;
                ($(tuples!(value $what $name closed),)*)
            }
        }
    )*};
    (type plain $epoch:lifetime $name:ident) => { $name };
    (type pending $epoch:lifetime $name:ident) => { Pending<$epoch, $name> };
    (value plain $name:ident $closed:ident) => { $name };
    (value pending $name:ident $closed:ident) => { opened($name, $closed) };
}

tuples! {
    (A pending);
    (A pending, B plain);
    (A plain, B pending);
    (A pending, B pending);
    (A pending, B plain, C plain);
    (A plain, B pending, C plain);
    (A plain, B plain, C pending);
    (A pending, B pending, C plain);
    (A pending, B plain, C pending);
    (A plain, B pending, C pending);
    (A pending, B pending, C pending);
    (A pending, B plain, C plain, D plain);
    (A plain, B pending, C plain, D plain);
    (A plain, B plain, C pending, D plain);
    (A plain, B plain, C plain, D pending);
    (A pending, B pending, C plain, D plain);
    (A pending, B plain, C pending, D plain);
    (A pending, B plain, C plain, D pending);
    (A plain, B pending, C pending, D plain);
    (A plain, B pending, C plain, D pending);
    (A plain, B plain, C pending, D pending);
    (A pending, B pending, C pending, D plain);
    (A pending, B pending, C plain, D pending);
    (A pending, B plain, C pending, D pending);
    (A plain, B pending, C pending, D pending);
    (A pending, B pending, C pending, D pending);
}

/// The outermost epoch of a body: as in [`inner`], and what is pending is opened.
macro_rules! outermost {
    ($($name:ident<$($scope:lifetime)?>($($argument:ident: $type:ty),*), $handle:ty;)*) => {$(
        /// See the function of the same name in [`inner`].
        ///
        /// # Errors
        /// The error that the body returns, or one of the opening or closing call.
        #[track_caller]
        #[inline(always)]
        pub fn $name<$($scope,)? T: Element, R: Answers<V>, V, E: From<Error>>(
            $($argument: $type,)*
            body: impl FnOnce($handle) -> Result<R, E>,
        ) -> Result<V, E> {
            match inner::$name($($argument,)* body) {
                Ok(answer) => Ok(answer.open(&Closed::all())),
                Err(error) => Err(error),
            }
        }
    )*};
}

outermost! {
    fence<'scope>(window: &'scope mut Window<T>), &FenceEpoch<'scope, T>;
    access<'scope>(window: &'scope Window<T>, targets: &[Rank], info: Info), &AccessEpoch<'scope, T>;
    exposure<>(window: &mut Window<T>, origins: Awaited<'_>), &Exposure<'_, T>;
    exchange<'scope>(window: &'scope mut Window<T>, targets: &[Rank], origins: Awaited<'_>, info: Info),
        &AccessEpoch<'scope, T>;
    lock<'scope>(window: &'scope Window<T>, target: Rank, kind: LockKind, info: Info), &LockEpoch<'scope, T>;
    local<>(window: &Window<T>), &[T];
    local_mut<>(window: &mut Window<T>), &mut [T];
}

/// Epochs whose pending values stay closed, since epochs around them are still open.
pub mod inner {
    use super::*;

    /// The body's answer, or the error of the call that opened or closed the epoch.
    ///
    /// An error of the body comes first: a closing call that failed too did so because of it.
    #[inline(always)]
    fn settle<R, E: From<Error>>(answer: Option<Result<R, E>>, closed: Result<(), Error>) -> Result<R, E> {
        after_call();
        match (answer, closed) {
            (Some(Err(error)), _) => Err(error),
            (Some(Ok(answer)), Ok(())) => Ok(answer),
            (_, Err(error)) => Err(E::from(error)),
            (None, Ok(())) => unreachable!("an epoch that was opened has run its body"),
        }
    }

    /// Runs a body between the opening call and the closing one.
    #[inline(always)]
    fn between<R>(body: impl FnOnce() -> R) -> R {
        after_call();
        let answer = body();
        before_call();
        answer
    }

    /// fence … fence.
    ///
    /// # Errors
    /// The error that the body returns, or one of the two fences.
    #[track_caller]
    #[inline(always)]
    pub fn fence<'scope, T: Element, R, E: From<Error>>(
        window: &'scope mut Window<T>,
        body: impl FnOnce(&FenceEpoch<'scope, T>) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut answer = None;
        before_call();
        let closed = window.fence(|epoch| answer = Some(between(|| body(epoch))));
        settle(answer, closed)
    }

    /// start … complete.
    ///
    /// # Errors
    /// The error that the body returns, or one of start and complete.
    #[track_caller]
    #[inline(always)]
    pub fn access<'scope, T: Element, R, E: From<Error>>(
        window: &'scope Window<T>,
        targets: &[Rank],
        info: Info,
        body: impl FnOnce(&AccessEpoch<'scope, T>) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut answer = None;
        before_call();
        let closed = window.access(targets, info.plain(), |epoch| answer = Some(between(|| body(epoch))));
        settle(answer, closed.map_err(|error| info.explain(error)))
    }

    /// post … wait.
    ///
    /// # Errors
    /// The error that the body returns, or one of post and wait.
    #[track_caller]
    #[inline(always)]
    pub fn exposure<T: Element, R, E: From<Error>>(
        window: &mut Window<T>,
        origins: Awaited<'_>,
        body: impl FnOnce(&Exposure<'_, T>) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut answer = None;
        before_call();
        let closed = window.exposure(origins.origins(), origins.expected(), |exposure| {
            answer = Some(between(|| body(exposure)));
        });
        settle(answer, closed)
    }

    /// post, start … complete, wait.
    ///
    /// # Errors
    /// The error that the body returns, or one of the four calls.
    #[track_caller]
    #[inline(always)]
    pub fn exchange<'scope, T: Element, R, E: From<Error>>(
        window: &'scope mut Window<T>,
        targets: &[Rank],
        origins: Awaited<'_>,
        info: Info,
        body: impl FnOnce(&AccessEpoch<'scope, T>) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut answer = None;
        before_call();
        let closed = window.exchange(targets, origins.origins(), origins.expected(), info.plain(), |epoch| {
            answer = Some(between(|| body(epoch)));
        });
        settle(answer, closed.map_err(|error| info.explain(error)))
    }

    /// lock … unlock.
    ///
    /// # Errors
    /// The error that the body returns, or one of lock and unlock.
    #[track_caller]
    #[inline(always)]
    pub fn lock<'scope, T: Element, R, E: From<Error>>(
        window: &'scope Window<T>,
        target: Rank,
        kind: LockKind,
        info: Info,
        body: impl FnOnce(&LockEpoch<'scope, T>) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut answer = None;
        before_call();
        let run = |epoch: &LockEpoch<'scope, T>| answer = Some(between(|| body(epoch)));
        // One call for all values of info: a body that two calls share is compiled apart from the function that it is in.
        let closed = window.lock_with(target, kind, info.plain(), run);
        settle(answer, closed.map_err(|error| info.explain(error)))
    }

    /// A private epoch for reading.
    ///
    /// # Errors
    /// The error that the body returns, or that no view can be had.
    #[track_caller]
    #[inline(always)]
    pub fn local<T: Element, R, E: From<Error>>(
        window: &Window<T>,
        body: impl FnOnce(&[T]) -> Result<R, E>,
    ) -> Result<R, E> {
        before_call();
        let view = window.local()?;
        let answer = between(|| body(&view));
        drop(view);
        after_call();
        answer
    }

    /// A private epoch for reading and writing.
    ///
    /// # Errors
    /// The error that the body returns, or that no view can be had.
    #[track_caller]
    #[inline(always)]
    pub fn local_mut<T: Element, R, E: From<Error>>(
        window: &mut Window<T>,
        body: impl FnOnce(&mut [T]) -> Result<R, E>,
    ) -> Result<R, E> {
        before_call();
        let mut view = window.local_mut()?;
        let answer = between(|| body(&mut view));
        drop(view);
        after_call();
        answer
    }
}

/// A fence inside a body: ends a phase and opens the next.
///
/// # Errors
/// As [`FenceEpoch::fence`].
#[track_caller]
#[inline(always)]
pub fn next_phase<T: Element>(epoch: &FenceEpoch<'_, T>) -> Result<(), Error> {
    before_call();
    let outcome = epoch.fence();
    after_call();
    outcome
}

/// One's own memory in a window, seen from inside an epoch in which others may touch it.
pub trait OwnMemory<T: Element> {
    /// One element.
    ///
    /// # Errors
    /// `OutOfBounds`.
    fn element(&self, index: usize) -> Result<T, Error>;

    /// Elements from an index on.
    ///
    /// # Errors
    /// `OutOfBounds`.
    fn elements(&self, index: usize, into: &mut [T]) -> Result<(), Error>;
}

/// One's own memory that the epoch allows to write.
pub trait OwnMemoryMut<T: Element>: OwnMemory<T> {
    /// Writes one element.
    ///
    /// # Errors
    /// `OutOfBounds`.
    fn set_element(&self, index: usize, value: T) -> Result<(), Error>;

    /// Writes elements from an index on.
    ///
    /// # Errors
    /// `OutOfBounds`.
    fn set_elements(&self, index: usize, from: &[T]) -> Result<(), Error>;
}

macro_rules! own_memory {
    ($($epoch:ident)*) => {$(
        impl<T: Element> OwnMemory<T> for $epoch<'_, T> {
            #[track_caller]
            #[inline(always)]
            fn element(&self, index: usize) -> Result<T, Error> {
                self.load(index)
            }

            #[track_caller]
            fn elements(&self, index: usize, into: &mut [T]) -> Result<(), Error> {
                self.read(index, into)
            }
        }

        impl<T: Element> OwnMemoryMut<T> for $epoch<'_, T> {
            #[track_caller]
            #[inline(always)]
            fn set_element(&self, index: usize, value: T) -> Result<(), Error> {
                self.store(index, value)
            }

            #[track_caller]
            fn set_elements(&self, index: usize, from: &[T]) -> Result<(), Error> {
                self.write(index, from)
            }
        }
    )*};
}

own_memory!(FenceEpoch AccessEpoch LockEpoch);

impl<T: Element> OwnMemory<T> for Exposure<'_, T> {
    #[track_caller]
    #[inline(always)]
    fn element(&self, index: usize) -> Result<T, Error> {
        self.load(index)
    }

    #[track_caller]
    fn elements(&self, index: usize, into: &mut [T]) -> Result<(), Error> {
        for (at, element) in (index..).zip(into) {
            *element = self.load(at)?;
        }
        Ok(())
    }
}

/// `u[i]` where a peer may touch the bytes: one of the two accessors that all generated code shares.
///
/// The pair is volatile: the load happens here, every time, and is never answered from a register that was filled before
/// another rank put (REG-HAZ-01). It is also defined when that rank is a thread of this process and writes at the same
/// time, which a plain volatile access of Rust is not; `transport/shm/copy.rs` says how. In a private epoch nothing of this
/// is needed, so there the window is a slice and its accesses are plain.
///
/// # Panics
/// If the index is out of range, as for a slice.
#[track_caller]
#[inline(always)]
pub fn load<T: Element>(epoch: &impl OwnMemory<T>, index: usize) -> T {
    match epoch.element(index) {
        Ok(value) => value,
        Err(error) => refuse(error),
    }
}

/// `u[i] = value` where a peer may touch the bytes: the other accessor. See [`load`].
///
/// The store happens here: it is neither kept in a register beyond the next synchronization (REG-HAZ-02) nor written again
/// after it (REG-HAZ-03).
///
/// # Panics
/// If the index is out of range, as for a slice, or if a local view of the window lives.
#[track_caller]
#[inline(always)]
pub fn store<T: Element>(epoch: &impl OwnMemoryMut<T>, index: usize, value: T) {
    match epoch.set_element(index, value) {
        Ok(()) => {}
        Err(error) => refuse(error),
    }
}

/// `u[i] += value` and kin: one load and one store.
///
/// # Panics
/// As [`store`].
#[track_caller]
#[inline(always)]
pub fn update<T: Element>(epoch: &impl OwnMemoryMut<T>, index: usize, change: impl FnOnce(T) -> T) {
    store(epoch, index, change(load(epoch, index)));
}

/// `buffer.copy_from_slice(&u[a..b])`.
///
/// # Panics
/// If the range is out of range or its length is not the buffer's, as for slices.
#[track_caller]
pub fn read<T: Element>(epoch: &impl OwnMemory<T>, range: Range<usize>, buffer: &mut [T]) {
    same_length(&range, buffer.len());
    match epoch.elements(range.start, buffer) {
        Ok(()) => {}
        Err(error) => refuse(error),
    }
}

/// `u[a..b].copy_from_slice(&buffer)`.
///
/// # Panics
/// If the range is out of range or its length is not the buffer's, as for slices.
#[track_caller]
pub fn write<T: Element>(epoch: &impl OwnMemoryMut<T>, range: Range<usize>, buffer: &[T]) {
    same_length(&range, buffer.len());
    match epoch.set_elements(range.start, buffer) {
        Ok(()) => {}
        Err(error) => refuse(error),
    }
}

#[track_caller]
fn same_length(range: &Range<usize>, len: usize) {
    assert!(range.len() == len, "a copy of {} elements from or to the range {range:?}", len);
}

#[cold]
#[track_caller]
fn refuse(error: Error) -> ! {
    panic!("{error}")
}
