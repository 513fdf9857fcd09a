//! Transfers that combine: accumulate and its kin, element by element, each atomically. Never decides how one element is
//! combined: `guard` does.

use super::guard::Piece;
use super::packing::packed_bytes;
use super::sides::pieces;
use super::{Access, RawWindow};
use crate::element::{Basic, Element, Operation};
use crate::error::Result;
use crate::op::Source;
use crate::op::section::Section;
use crate::team::Rank;
use crate::transport::shm::atomic;

impl RawWindow {
    /// Combines elements of a target with those of the origin, each atomically.
    #[track_caller]
    #[inline(always)]
    pub(crate) fn accumulate<T: Element, O: Operation<T>>(
        &self,
        target: Rank,
        at: Section<'_>,
        operation: O,
        origin: Source<'_, T>,
    ) -> Result<()> {
        const CALL: &str = "accumulate";
        self.hook(CALL, Some(target), || Some(at.span(origin.len().unwrap_or(0))));
        // The common case first: one element.
        if let (Source::Slice([value]), Section::From(start)) = (origin, at)
            && self.open_target(target).is_some()
            && let Some(to) = self.element::<T>(CALL, target, start)?
            && self.is_native(to)
        {
            // SAFETY: - in bounds: `element`. - aligned: `is_native`. - no reference lives there: see `put`.
            unsafe { atomic::fetch_op(to, operation, *value) };
            if const { O::CODE.changes() } {
                self.end_writing();
            }
            self.changed(&self.targets[target.index()], to.cast(), size_of::<T>());
            return Ok(());
        }
        self.accumulate_any(CALL, target, at, operation, &{ origin })
    }

    #[track_caller]
    #[inline(never)]
    fn accumulate_any<T: Element, O: Operation<T>>(
        &self,
        call: &'static str,
        target: Rank,
        at: Section<'_>,
        operation: O,
        origin: &Source<'_, T>,
    ) -> Result<()> {
        let combined = self.accumulate_checked(call, target, at, operation, origin);
        combined.map_err(|error| at.located(error, origin.len()))
    }

    #[track_caller]
    #[inline]
    fn accumulate_checked<T: Element, O: Operation<T>>(
        &self,
        call: &'static str,
        target: Rank,
        at: Section<'_>,
        operation: O,
        origin: &Source<'_, T>,
    ) -> Result<()> {
        if let Some(at) = at.plain()
            && !origin.is_typed()
            && self.keeps_transfers(target)
        {
            let (_, from, len) = self.settle_put(call, &self.targets[target.index()], target, at, origin)?;
            let accumulate = move |window: &RawWindow, origin: &Source<'_, T>| {
                window.accumulate_any(call, target, at, operation, origin)
            };
            if self.keep_with_origin(target, origin, (from, len), accumulate) {
                return Ok(());
            }
        }
        if self.targets.get(target.index()).is_some_and(|there| there.remote) {
            let pieces = self.settle_remote(call, target, at, origin)?;
            // SAFETY: - readable: `settle_remote`.
            return unsafe { self.accumulate_remote(call, target.index(), O::CODE, pieces) };
        }
        // The exclusive lock proves that nobody else accumulates here, as everybody would need the lock.
        let alone = self.admitted(call, target)?.access.get() == Access::Exclusive;
        self.each_piece(call, target, at, origin, |piece| {
            let Piece { to, from, count } = piece;
            let aligned = to.is_aligned() && from.is_aligned() && const { T::SHAPE.as_basic().is_some() };
            if alone && aligned && atomic::COMBINE_ALONE_MIN <= count {
                // SAFETY: - in bounds, readable and writable: `each_piece`. - aligned. - no reference lives there: see `put`.
                //   - no peer changes the elements: the exclusive lock.
                unsafe { atomic::combine_alone(self.engine, to, from, count, operation) };
                self.wrote(&self.targets[target.index()], to.cast(), count * size_of::<T>());
                return Ok(());
            }
            // SAFETY: - in bounds, readable and writable: `each_piece`. - no reference lives there: see `put`.
            unsafe { self.combine(call, target, piece, operation, |_| ()) }
        })
    }

    /// As [`accumulate`](RawWindow::accumulate), and gives what was there before.
    #[track_caller]
    pub(crate) fn get_accumulate<T: Element, O: Operation<T>>(
        &self,
        target: Rank,
        at: Section<'_>,
        operation: O,
        origin: &Source<'_, T>,
    ) -> Result<Vec<T>> {
        const CALL: &str = "get_accumulate";
        self.hook(CALL, Some(target), || Some(at.span(origin.len().unwrap_or(0))));
        let before = self.get_accumulate_checked(CALL, target, at, operation, origin);
        before.map_err(|error| at.located(error, origin.len()))
    }

    #[track_caller]
    #[inline]
    fn get_accumulate_checked<T: Element, O: Operation<T>>(
        &self,
        call: &'static str,
        target: Rank,
        at: Section<'_>,
        operation: O,
        origin: &Source<'_, T>,
    ) -> Result<Vec<T>> {
        if self.targets.get(target.index()).is_some_and(|there| there.remote) {
            let pieces = self.settle_remote(call, target, at, origin)?;
            // SAFETY: - readable: `settle_remote`.
            let before = unsafe { self.fetch_remote(call, target.index(), O::CODE, pieces) }?;
            return Ok(before.chunks_exact(packed_bytes(&T::SHAPE)).map(|one| self.unpacked(one)).collect());
        }
        let mut before = Vec::with_capacity(origin.len().unwrap_or(0));
        self.each_piece(call, target, at, origin, |piece| {
            // SAFETY: - in bounds, readable and writable: `each_piece`. - no reference lives there: see `put`.
            unsafe { self.combine(call, target, piece, operation, |old| before.push(old)) }
        })?;
        Ok(before)
    }

    /// Calls `combine` with each piece of an accumulate that is contiguous on both sides, after all checks. Pieces are in
    /// bounds, readable, and writable at the target.
    #[track_caller]
    fn each_piece<T: Element>(
        &self,
        call: &'static str,
        target: Rank,
        at: Section<'_>,
        origin: &Source<'_, T>,
        mut combine: impl FnMut(Piece<T>) -> Result<()>,
    ) -> Result<()> {
        if at.is_typed() || origin.is_typed() {
            return self.each_typed_piece(call, target, at, origin, combine);
        }
        let there = self.admitted(call, target)?;
        let (to, from, len) = self.settle_put(call, there, target, at, origin)?;
        for (to_at, from_at, piece) in pieces::<T>(&to.layout, &from.layout, len) {
            // SAFETY: - in bounds: `pieces` stays inside the layouts.
            let from = unsafe { from.base.add(from_at) }.cast::<T>();
            // SAFETY: - in bounds: `pieces` stays inside the layouts.
            let to = unsafe { to.base.add(to_at) }.cast::<T>();
            combine(Piece { to, from, count: piece })?;
        }
        Ok(())
    }

    /// Combines one element of a target with a value and returns what was there.
    #[track_caller]
    #[inline(always)]
    pub(crate) fn fetch_op<T: Element, O: Operation<T>>(
        &self,
        call: &'static str,
        target: Rank,
        at: usize,
        operation: O,
        origin: T,
    ) -> Result<T> {
        self.hook(call, Some(target), || Some(at..at.saturating_add(1)));
        let Some(to) = self.element::<T>(call, target, at)? else {
            return self.fetch_one(call, target, at, O::CODE, origin);
        };
        match self.is_native(to) {
            true => {
                // SAFETY: - in bounds: `element`. - aligned: `is_native`. - no reference lives there: see `put`.
                let before = unsafe { atomic::fetch_op(to, operation, origin) };
                if const { O::CODE.changes() } {
                    self.end_writing();
                }
                self.changed(&self.targets[target.index()], to.cast(), size_of::<T>());
                Ok(before)
            }
            // SAFETY: - in bounds: `element`. - no reference lives there: see `put`.
            false => unsafe { self.change(call, target, to, |old| operation.combine(old, origin)) },
        }
    }

    /// Stores `new` where `expected` is found, and returns what was there.
    #[track_caller]
    #[inline(always)]
    pub(crate) fn compare_swap<T: Basic>(&self, target: Rank, at: usize, expected: T, new: T) -> Result<T> {
        const CALL: &str = "compare_swap";
        self.hook(CALL, Some(target), || Some(at..at.saturating_add(1)));
        let Some(to) = self.element::<T>(CALL, target, at)? else {
            return self.compare_swap_one(CALL, target, at, expected, new);
        };
        match self.is_native(to) {
            true => {
                // SAFETY: - in bounds: `element`. - aligned: `is_native`. - no reference lives there: see `put`.
                let before = unsafe { atomic::compare_swap(to, expected, new) };
                self.end_writing();
                if before.to_bits() == expected.to_bits() {
                    self.changed(&self.targets[target.index()], to.cast(), size_of::<T>());
                }
                Ok(before)
            }
            // SAFETY: - in bounds: `element`. - no reference lives there: see `put`.
            false => unsafe { self.change_if(CALL, target, to, expected, new) },
        }
    }
}
