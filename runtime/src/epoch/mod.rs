//! Epochs as values and scopes: fence, post/start/complete/wait, lock. Never decides who is let in: `window/raw` does.
//!
//! The body of a scope can do what the epoch allows and nothing else, as calls that are illegal there have no method. A scope
//! closes its epoch on every way out; a panic in a fence phase is passed on to the peers as
//! [`PeerLost`](crate::ErrorKind::PeerLost).
//!
//! Buffers that a body lends to transfers are borrowed for the scope's lifetime, which includes the closing call, so
//! touching one before the epoch has completed does not compile. Guards can be leaked, so they borrow nothing beyond a call:
//! what a put takes is on its way, or staged, when the call returns, and what a get brings is opened by the closing call.
#![forbid(unsafe_code)]

pub(crate) mod deliver;
mod fence;
mod lock;
mod lock_all;
mod owned;
mod pscw;
mod request;
mod two_call;

use std::cell::Cell;
use std::marker::PhantomData;

pub use deliver::{Closed, Deliver, Pending, Plain};
pub use fence::FenceEpoch;
pub use lock::{Lock, LockEpoch};
pub use lock_all::LockAllEpoch;
pub use owned::Request;
pub use pscw::{Access, AccessEpoch, Exposure};
pub use request::{StartRequest, WaitRequest};
pub use two_call::TwoCall;

/// A lifetime that can be neither shortened nor stretched, so that what is borrowed for it stays borrowed.
type Exactly<'scope> = PhantomData<Cell<&'scope ()>>;

/// The transfers of an epoch, the same for every style.
///
/// `$life` is the lifetime of results, `$origin` and `$into` bound the buffers: those of a scope are borrowed for the scope's
/// lifetime, those of a guard for the call.
macro_rules! transfers {
    ($life:lifetime, <$($buffer:lifetime)?>, $borrow:lifetime) => {
        /// Copies elements into a target's window.
        ///
        /// # Errors
        /// `TransferOutsideEpoch`, `RankOutOfRange`, `OutOfBounds`, `LengthMismatch`, `OverlappingLayout`,
        /// `ConflictingAccess`: before a byte moves.
        #[track_caller]
        #[inline(always)]
        pub fn put<'at $(, $buffer)?>(
            &self,
            target: crate::team::Rank,
            at: impl Into<crate::op::Section<'at>>,
            origin: impl crate::op::Origin<$borrow, T>,
        ) -> crate::error::Result<()> {
            self.raw().put(target, at.into(), origin.source().0)
        }

        /// Combines each of a target's elements with one of the origin's. Each element is combined at once, whoever else
        /// accumulates; the call as a whole is not, so two calls may come to their elements in different orders.
        ///
        /// # Errors
        /// As for `put`; `System` for elements that are not combined between ranks without shared memory: structures, odd places,
        /// and all in a window with guards.
        #[track_caller]
        #[inline(always)]
        pub fn accumulate<'at $(, $buffer)?>(
            &self,
            target: crate::team::Rank,
            at: impl Into<crate::op::Section<'at>>,
            operation: impl crate::element::Operation<T>,
            origin: impl crate::op::Origin<$borrow, T>,
        ) -> crate::error::Result<()> {
            self.raw().accumulate(target, at.into(), operation, origin.source().0)
        }

        /// As `accumulate`, and gives what the target's elements were before.
        ///
        /// # Errors
        /// As for `accumulate`.
        #[track_caller]
        pub fn get_accumulate<'at $(, $buffer)?>(
            &self,
            target: crate::team::Rank,
            at: impl Into<crate::op::Section<'at>>,
            operation: impl crate::element::Operation<T>,
            origin: impl crate::op::Origin<$borrow, T>,
        ) -> crate::error::Result<crate::epoch::Pending<$life, Vec<T>>> {
            let before = self.raw().get_accumulate(target, at.into(), operation, &origin.source().0)?;
            Ok(crate::epoch::Pending::new(self.raw(), target, before))
        }

        /// Gives one element of a target.
        ///
        /// # Errors
        /// As for `accumulate`.
        #[track_caller]
        #[inline(always)]
        pub fn get_value(
            &self,
            target: crate::team::Rank,
            at: usize,
        ) -> crate::error::Result<crate::epoch::Pending<$life, T>> {
            self.raw().get_one(target, at).map(|value| crate::epoch::Pending::new(self.raw(), target, value))
        }

        /// Gives the elements of a target that a section names.
        ///
        /// # Errors
        /// As for `put`; a section that begins somewhere and does not say where it ends is a `LengthMismatch`.
        #[track_caller]
        pub fn get_vec<'at>(
            &self,
            target: crate::team::Rank,
            at: impl Into<crate::op::Section<'at>>,
        ) -> crate::error::Result<crate::epoch::Pending<$life, Vec<T>>> {
            self.raw().get_vec(target, at.into()).map(|value| crate::epoch::Pending::new(self.raw(), target, value))
        }

        /// Combines one element of a target with a value, atomically, and gives what was there before.
        ///
        /// # Errors
        /// As for `accumulate`.
        #[track_caller]
        #[inline(always)]
        pub fn fetch_op(
            &self,
            target: crate::team::Rank,
            at: usize,
            operation: impl crate::element::Operation<T>,
            value: T,
        ) -> crate::error::Result<crate::epoch::Pending<$life, T>> {
            self.raw().fetch_op("fetch_op", target, at, operation, value).map(|value| crate::epoch::Pending::new(self.raw(), target, value))
        }

        /// Stores `new` in an element of a target if `expected` is there, bit for bit, and gives what was there before.
        ///
        /// # Errors
        /// As for `accumulate`.
        #[track_caller]
        #[inline(always)]
        pub fn compare_swap(
            &self,
            target: crate::team::Rank,
            at: usize,
            expected: T,
            new: T,
        ) -> crate::error::Result<crate::epoch::Pending<$life, T>>
        where
            T: crate::element::Basic,
        {
            self.raw().compare_swap(target, at, expected, new).map(|value| crate::epoch::Pending::new(self.raw(), target, value))
        }

        /// As `put`, and counts the put at the target when its data are there: whoever waits there with
        /// [`wait_notified`](crate::Window::wait_notified) sees the data of all puts that the wait has counted.
        ///
        /// # Errors
        /// As for `put`; `OutOfBounds` if there is no such counter. Nothing is counted then.
        #[track_caller]
        #[inline(always)]
        pub fn put_notify<'at $(, $buffer)?>(
            &self,
            target: crate::team::Rank,
            at: impl Into<crate::op::Section<'at>>,
            origin: impl crate::op::Origin<$borrow, T>,
            counter: usize,
        ) -> crate::error::Result<()> {
            self.raw().put_notify(target, at.into(), origin.source().0, counter)
        }

        /// Waits for counted puts to this rank; see [`Window::wait_notified`](crate::Window::wait_notified).
        ///
        /// # Errors
        /// As there.
        #[track_caller]
        pub fn wait_notified(&self, counter: usize, arrivals: usize) -> crate::error::Result<()> {
            self.raw().hook("wait_notified", None, || None);
            self.raw().wait_notified(counter, arrivals)
        }

        /// As `put`, with a buffer that the request owns until [`wait`](crate::Request::wait) gives it back (RPUT).
        ///
        /// # Errors
        /// As for `put`, with the buffer.
        #[track_caller]
        pub fn rput<'at, B: crate::op::Buffer<T>>(
            &self,
            target: crate::team::Rank,
            at: impl Into<crate::op::Section<'at>>,
            origin: B,
        ) -> crate::error::Result<crate::epoch::Request<'_, B>, crate::window::Returned<B>> {
            let put = self.raw().put(target, at.into(), crate::op::Source::Slice(origin.elements()));
            crate::epoch::Request::new(self.raw(), target, put, origin)
        }

        /// As `get`, into a buffer that the request owns until [`wait`](crate::Request::wait) gives it back (RGET). If Fortran
        /// code reaches the buffer, too, `docs/registers.md` says how to declare it there.
        ///
        /// # Errors
        /// As for `put`, with the buffer.
        #[track_caller]
        pub fn rget<'at, B: crate::op::Buffer<T>>(
            &self,
            target: crate::team::Rank,
            at: impl Into<crate::op::Section<'at>>,
            mut into: B,
        ) -> crate::error::Result<crate::epoch::Request<'_, B>, crate::window::Returned<B>> {
            let destination = crate::op::Destination::Slice(into.elements_mut());
            let get = self.raw().get(target, at.into(), destination);
            crate::epoch::Request::new(self.raw(), target, get, into)
        }

        /// As `accumulate`, with a buffer that the request owns until [`wait`](crate::Request::wait) gives it back
        /// (RACCUMULATE).
        ///
        /// # Errors
        /// As for `accumulate`, with the buffer.
        #[track_caller]
        pub fn raccumulate<'at, B: crate::op::Buffer<T>>(
            &self,
            target: crate::team::Rank,
            at: impl Into<crate::op::Section<'at>>,
            operation: impl crate::element::Operation<T>,
            origin: B,
        ) -> crate::error::Result<crate::epoch::Request<'_, B>, crate::window::Returned<B>> {
            let source = crate::op::Source::Slice(origin.elements());
            let combined = self.raw().accumulate(target, at.into(), operation, source);
            crate::epoch::Request::new(self.raw(), target, combined, origin)
        }

        /// As `get_accumulate`; what the target's elements were before takes the place of the buffer's elements, which
        /// [`wait`](crate::Request::wait) gives back (RGET_ACCUMULATE).
        ///
        /// # Errors
        /// As for `accumulate`, with the buffer.
        #[track_caller]
        pub fn rget_accumulate<'at, B: crate::op::Buffer<T>>(
            &self,
            target: crate::team::Rank,
            at: impl Into<crate::op::Section<'at>>,
            operation: impl crate::element::Operation<T>,
            mut origin: B,
        ) -> crate::error::Result<crate::epoch::Request<'_, B>, crate::window::Returned<B>> {
            let source = crate::op::Source::Slice(origin.elements());
            let combined = self.raw().get_accumulate(target, at.into(), operation, &source);
            let fetched = combined.map(|before| origin.elements_mut().copy_from_slice(&before));
            crate::epoch::Request::new(self.raw(), target, fetched, origin)
        }

        /// The caller's rank in the window's team.
        pub fn rank(&self) -> crate::team::Rank {
            self.raw().rank()
        }

        /// The number of ranks.
        pub fn size(&self) -> u32 {
            self.raw().size()
        }

        /// The number of elements that this rank contributes.
        pub fn len(&self) -> usize {
            self.raw().bytes_at(self.rank()).map_or(0, |bytes| bytes / size_of::<T>())
        }

        /// Whether this rank contributes nothing.
        pub fn is_empty(&self) -> bool {
            self.len() == 0
        }

        /// The number of elements that a rank contributes.
        ///
        /// # Errors
        /// `RankOutOfRange`.
        #[track_caller]
        pub fn len_at(&self, rank: crate::team::Rank) -> crate::error::Result<usize> {
            self.raw().check_rank("len_at", rank)?;
            Ok(self.raw().bytes_at(rank).map_or(0, |bytes| bytes / size_of::<T>()))
        }

        /// A section of this rank's part of the window, for transfers of another window; see
        /// [`Window::own`](crate::Window::own).
        #[inline]
        pub fn own<'at>(&self, section: impl Into<crate::op::Section<'at>>) -> crate::op::OwnOf<'_, 'at, T> {
            crate::op::OwnOf::new(self.raw().handle(), section.into())
        }

        /// Loads an element of the own window, whatever others do to it meanwhile.
        ///
        /// # Errors
        /// `OutOfBounds`.
        #[track_caller]
        #[inline(always)]
        pub fn load(&self, index: usize) -> crate::error::Result<T> {
            self.raw().load("load", index)
        }

        /// Stores an element of the own window, whatever others do to it meanwhile.
        ///
        /// # Errors
        /// `OutOfBounds`; `StoreDuringUpdate` while a local view of the window lives.
        #[track_caller]
        #[inline(always)]
        pub fn store(&self, index: usize, value: T) -> crate::error::Result<()> {
            self.raw().store("store", index, value)
        }

        /// Copies elements of the own window, from an index on, into a buffer.
        ///
        /// # Errors
        /// `OutOfBounds`.
        #[track_caller]
        pub fn read(&self, index: usize, into: &mut [T]) -> crate::error::Result<()> {
            self.raw().read("read", index, into)
        }

        /// Copies a buffer into the own window, from an index on.
        ///
        /// # Errors
        /// `OutOfBounds`; `StoreDuringUpdate` while a local view of the window lives.
        #[track_caller]
        pub fn write(&self, index: usize, from: &[T]) -> crate::error::Result<()> {
            self.raw().write("write", index, from)
        }
    };
}

/// The get into a lent buffer, which only scopes have: a guard could be leaked with the buffer still lent.
macro_rules! get_into_buffers {
    ($scope:lifetime) => {
        /// Copies elements from a target's window into a buffer, which can't be touched before the epoch has ended. If Fortran
        /// code reaches the buffer, too, `docs/registers.md` says how to declare it there.
        ///
        /// # Errors
        /// As for `put`.
        #[track_caller]
        #[inline(always)]
        pub fn get<'at>(
            &self,
            target: crate::team::Rank,
            at: impl Into<crate::op::Section<'at>>,
            mut into: impl crate::op::OriginMut<$scope, T>,
        ) -> crate::error::Result<()> {
            self.raw().get(target, at.into(), into.destination().0)
        }
    };
}

use {get_into_buffers, transfers};
