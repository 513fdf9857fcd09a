//! How elements are combined: by an instruction, by many at once where nobody else can come, or under a guard. Never lets two
//! ranks come to one element in different ways.
//!
//! The way depends on the element's place and type and on the window, which are the same for every rank: elements of basic
//! types at aligned places are changed by the machine's atomic instructions, all others (structures, odd places) under a guard
//! in the target's control block. A plain put or get takes no guard (RMA-ATOM-05).

use std::mem::MaybeUninit;

use super::control::{STRIPES, Stripe};
use super::{Access, RawWindow, Target};
use crate::element::{Basic, Element, Operation};
use crate::error::Result;
use crate::liveness::{Act, Needs, WaitFor};
use crate::team::Rank;
use crate::transport::shm::{atomic, copy};

/// What keeps accumulates to one element apart. It changes no result, only speed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Atomicity {
    /// Atomic instructions for aligned basic types, a guard of its place for any other element.
    #[default]
    Native,
    /// A guard of its place for each element.
    Stripes,
    /// One guard for all elements of a rank.
    Window,
}

/// How the owner keeps its own accumulates to its own elements apart from those of others, in a window of this atomicity. Where
/// nobody maps its memory, the others' are all done by its process, many elements at once: with `is_guarded` it takes the one
/// guard that these take, too, in place of an instruction that is apart from others only.
pub(super) fn owner_atomicity(atomicity: Atomicity, is_guarded: bool) -> Atomicity {
    match (atomicity, is_guarded) {
        (_, true) => Atomicity::Window,
        (atomicity, false) => atomicity,
    }
}

/// Elements of an accumulate that lie next to each other on both sides.
#[derive(Clone, Copy)]
pub(super) struct Piece<T> {
    pub(super) to: *mut T,
    pub(super) from: *const T,
    pub(super) count: usize,
}

/// Which guard the element at an offset has.
pub(super) fn stripe_of(atomicity: Atomicity, offset: usize) -> usize {
    match atomicity {
        Atomicity::Window => 0,
        // Elements of one type are a multiple of its size apart; any spread of their places will do.
        Atomicity::Native | Atomicity::Stripes => (offset.wrapping_mul(0x9e37_79b9) >> 16) % STRIPES,
    }
}

impl RawWindow {
    /// Whether elements of `T` at this place are changed by instructions.
    #[inline(always)]
    pub(super) fn is_native<T: Element>(&self, at: *mut T) -> bool {
        at.is_aligned() && self.atomicity == Atomicity::Native && const { T::SHAPE.as_basic().is_some() }
    }

    /// Combines `count` elements from `to` on with those from `from` on, each atomically, and gives what was there.
    ///
    /// # Safety
    ///
    /// - `to` is in the memory of the target, to which this handle is admitted, and readable and writable for `count` elements.
    /// - `from` is readable for as many, which no reference names that others may write through.
    #[track_caller]
    pub(super) unsafe fn combine<T: Element, O: Operation<T>>(
        &self,
        call: &'static str,
        target: Rank,
        Piece { to, from, count }: Piece<T>,
        operation: O,
        mut fetched: impl FnMut(T),
    ) -> Result<()> {
        if self.is_native(to) && from.is_aligned() {
            // SAFETY: - the caller's promises; both sides are aligned.
            unsafe { atomic::fetch_op_each(self.engine, to, from, count, operation, fetched) };
            self.changed(&self.targets[target.index()], to.cast(), count * size_of::<T>());
            return Ok(());
        }
        for i in 0..count {
            // SAFETY: - in bounds: the caller's promise.
            let to = unsafe { to.add(i) };
            // SAFETY: - in bounds: the caller's promise.
            let from = unsafe { from.add(i) };
            // SAFETY: - readable: the caller's promise.
            let value = unsafe { self.read_anywhere(from) };
            fetched(match self.is_native(to) {
                true => {
                    // SAFETY: - the caller's promises; the place is aligned.
                    let before = unsafe { atomic::fetch_op(to, operation, value) };
                    self.changed(&self.targets[target.index()], to.cast(), size_of::<T>());
                    before
                }
                // SAFETY: - the caller's promises.
                false => unsafe { self.change(call, target, to, |old| operation.combine(old, value)) }?,
            });
        }
        Ok(())
    }

    /// Replaces one element under its guard, and gives what was there.
    ///
    /// # Safety
    ///
    /// As for [`combine`](RawWindow::combine), for one element.
    #[track_caller]
    pub(super) unsafe fn change<T: Element>(
        &self,
        call: &'static str,
        target: Rank,
        at: *mut T,
        new: impl FnOnce(T) -> T,
    ) -> Result<T> {
        let there = &self.targets[target.index()];
        // The exclusive lock proves that nobody else accumulates here, as everybody would need the lock.
        let stripe = match there.access.get() {
            Access::Exclusive => None,
            _ => Some(self.take_guard(call, target, there, at.addr())?),
        };
        // SAFETY: - readable: the caller's promise.
        let old = unsafe { self.read_anywhere(at) };
        // SAFETY: - writable, and no reference to it lives: the caller's promise.
        unsafe { self.write_anywhere(at, new(old)) };
        self.wrote(there, at.cast(), size_of::<T>());
        if let Some(stripe) = stripe {
            stripe.guard.give_back();
            stripe.released.notify();
        }
        Ok(old)
    }

    /// Takes the guard of a place of a target; whoever has it has it for the time of two copies.
    #[track_caller]
    fn take_guard(&self, call: &'static str, target: Rank, there: &Target, at: usize) -> Result<&Stripe> {
        let index = stripe_of(self.atomicity, at - there.data.addr());
        let stripe = &self.control(target.index()).guards.0[index];
        let me = self.me as u32;
        let holds = |rank: Rank| stripe.guard.holder() == Some(rank.0);
        let what = WaitFor {
            call,
            window: Some(self.id),
            team: &self.members,
            needs: Needs::Those(&holds),
            act: Act::Toward(target),
            detail: None,
            blocker: &|| stripe.guard.holder().map(Rank),
        };
        self.context.wait(&stripe.released, what, || stripe.guard.try_take(me).then_some(()))?;
        Ok(stripe)
    }

    /// Runs `body` while an element is guarded as if it were being changed: for tests of who waits for that.
    #[track_caller]
    pub(crate) fn holding_guard<T: Element, R>(
        &self,
        target: Rank,
        at: usize,
        body: impl FnOnce() -> R,
    ) -> Result<R> {
        const CALL: &str = "guard";
        let Some(place) = self.element::<T>(CALL, target, at)? else {
            return Err(self.unserved(CALL, target, "guards are taken in mapped memory only"));
        };
        let stripe = self.take_guard(CALL, target, &self.targets[target.index()], place.addr())?;
        let result = body();
        stripe.guard.give_back();
        stripe.released.notify();
        Ok(result)
    }

    /// Stores `new` under the guard of a place where `expected` is found bit for bit, and gives what was there.
    ///
    /// # Safety
    ///
    /// As for [`combine`](RawWindow::combine), for one element.
    #[track_caller]
    pub(super) unsafe fn change_if<T: Basic>(
        &self,
        call: &'static str,
        target: Rank,
        at: *mut T,
        expected: T,
        new: T,
    ) -> Result<T> {
        let choose = |old: T| if old.to_bits() == expected.to_bits() { new } else { old };
        // SAFETY: - the caller's promises.
        unsafe { self.change(call, target, at, choose) }
    }

    /// Reads an element at any place.
    ///
    /// # Safety
    ///
    /// `at` is readable for one element.
    #[inline]
    pub(super) unsafe fn read_anywhere<T: Element>(&self, at: *const T) -> T {
        let mut value = MaybeUninit::<T>::uninit();
        // SAFETY: - readable: the caller's promise. - writable: a place of this function.
        unsafe { self.engine.copy(value.as_mut_ptr().cast(), at.cast(), size_of::<T>()) };
        // SAFETY: - all bytes are written, and every pattern of bits is a value.
        unsafe { value.assume_init() }
    }

    /// Writes an element at any place, and leaves its padding alone.
    ///
    /// # Safety
    ///
    /// `at` is writable for one element, and no Rust reference to it lives.
    #[inline]
    unsafe fn write_anywhere<T: Element>(&self, at: *mut T, value: T) {
        match T::SHAPE.as_basic() {
            // SAFETY: - writable: the caller's promise. - readable: the value, which has no padding.
            Some(_) => unsafe { self.engine.copy(at.cast(), (&raw const value).cast(), size_of::<T>()) },
            // SAFETY: - the caller's promise; structures are stored at any alignment.
            None => unsafe { copy::store(at, value) },
        }
    }
}
