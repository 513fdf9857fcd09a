//! Transfers: the check of bounds and permission, and the copy. On mapped memory a transfer is complete at both sides when
//! the call returns, and visible to others when the epoch's closing call says so. Never waits for anything but the target of
//! an epoch under WEAK, which may also keep the transfer (`deferral`).
//!
//! Budget of a contiguous put or get: two table look-ups, one test of permission, one comparison of bounds, the copy. No
//! allocation, no system call, no atomic.

use std::ops::Range;

use super::guard::Piece;
use super::packing::{packed_bytes, unpack};
use super::parts::Part;
use super::remote::RemotePiece;
use super::{Access, RawWindow, Target};
use crate::element::{Basic, Element, OpCode, Operation, zeroed};
use crate::error::{Error, ErrorKind, Result};
use crate::op::section::{Fault, Layout, Section};
use crate::op::{Destination, Source};
use crate::team::Rank;
use crate::transport::shm::{atomic, copy};

/// What is combined at a target that shares no memory with this rank: where each piece goes, where it is, and how many elements
/// it has.
type Pieces = std::vec::IntoIter<RemotePiece<*const u8>>;

/// One side of a transfer after its checks: a base and a layout that stays inside the memory at the base.
struct Side<P> {
    base: P,
    layout: Layout,
}

impl RawWindow {
    /// Copies into the memory of a target.
    ///
    /// On x86-64 a put of 8 bytes is inlined and calls nothing: some 27 instructions in a loop. Five branches never go the
    /// other way (the hook, the rank, the permission, the overflow of displacement times unit, the bounds); between them
    /// stand the loads of the target's entry, the multiplication, and one `mov` from the origin and one to the target. There
    /// is no fence and no atomic, and the error that is not made costs one byte in a register. Other lengths call the copy
    /// loop.
    #[track_caller]
    #[inline(always)]
    pub(crate) fn put<T: Element>(
        &self,
        target: Rank,
        at: Section<'_>,
        origin: &Source<'_, T>,
    ) -> Result<()> {
        const CALL: &str = "put";
        self.hook(CALL, Some(target), || Some(at.span(origin.len().unwrap_or(0))));
        // The common cases first: a slice, or a range of the own window, to a contiguous place.
        if let Section::From(start) = at
            && const { T::SHAPE.is_dense() }
            && let Some(there) = self.open_target(target)
        {
            let from = match origin {
                Source::Slice(slice) => Some((slice.as_ptr().cast(), size_of_val(*slice))),
                Source::Own(section) => {
                    self.own_place::<T>(target, section).map(|(at, len)| (at.cast_const(), len))
                }
                Source::Strided(..) | Source::Typed(..) => None,
            };
            if let Some((from, bytes)) = from
                && let Some(to) = there.place(start, bytes)
            {
                // SAFETY: - writable and in bounds: `place`. - readable: a slice, or `own_place`, which is elsewhere.
                // - no reference to the target's memory lives: this handle is admitted there, which excludes the owner's
                //   views. - readers and writers at the same time copy by the same routine.
                unsafe { self.engine.copy(to, from, bytes) };
                self.wrote(there, to, bytes);
                return Ok(());
            }
        }
        self.put_any(CALL, target, at, origin)
    }

    #[track_caller]
    #[inline(never)]
    fn put_any<T: Element>(
        &self,
        call: &'static str,
        target: Rank,
        at: Section<'_>,
        origin: &Source<'_, T>,
    ) -> Result<()> {
        if let (Section::From(start), Source::Slice(slice)) = (at, origin)
            && const { T::SHAPE.is_dense() }
            && let Some(there) = self.open_target(target)
            && let Some(offset) = there.remote_offset(start, size_of_val(*slice))
        {
            let piece = std::iter::once((offset, slice.as_ptr().cast(), size_of_val(*slice)));
            // SAFETY: - readable: a slice.
            return unsafe { self.put_remote(call, target.index(), piece) };
        }
        if let Some(at) = at.plain()
            && !origin.is_typed()
            && self.keeps_transfers(target)
        {
            self.settle_put(call, &self.targets[target.index()], target, at, origin)?;
            let put =
                move |window: &RawWindow, origin: &Source<'_, T>| window.put_any(call, target, at, origin);
            if self.keep_with_origin(target, origin, put) {
                return Ok(());
            }
        }
        if at.is_typed() || origin.is_typed() || !const { T::SHAPE.is_dense() } {
            return self.put_typed(call, target, at, origin);
        }
        let there = self.admitted(call, target)?;
        let (to, from, len) = self.settle_put(call, there, target, at, origin)?;
        if there.is_remote() {
            let pieces = pieces::<T>(&to.layout, &from.layout, len).map(|(to_at, from_at, piece)| {
                (to_at, from.base.wrapping_add(from_at), piece * size_of::<T>())
            });
            // SAFETY: - readable: `pieces` stays inside the layout of the origin, see `settle_source`.
            return unsafe { self.put_remote(call, target.index(), pieces) };
        }
        // SAFETY: - both layouts stay inside the memory at their bases, see `settle` and `settle_source`.
        // - the rest as in `put`.
        unsafe { self.copy_layouts::<T>(&to, &from, len) };
        self.wrote_layout::<T>(there, &to.layout);
        Ok(())
    }

    /// The two sides of a put and its length, checked.
    #[track_caller]
    fn settle_put<T: Element>(
        &self,
        call: &'static str,
        there: &Target,
        target: Rank,
        at: Section<'_>,
        origin: &Source<'_, T>,
    ) -> Result<(Side<*mut u8>, Side<*const u8>, usize)> {
        let len = self.agreed_len(call, target, at, origin.len())?;
        let to = self.settle::<T>(call, there, target, at, len)?;
        self.refuse_overlap(call, target, at, len, &to.layout)?;
        let from = self.settle_source(call, target, origin, len)?;
        let own = matches!(origin, Source::Own(_));
        self.refuse_own_overlap::<T>(call, target, &to.layout, own, &from.layout)?;
        Ok((to, from, len))
    }

    /// Keeps a transfer, with a copy of what it takes from private memory, for the closing call of its epoch.
    fn keep_with_origin<T: Element>(
        &self,
        target: Rank,
        origin: &Source<'_, T>,
        transfer: impl FnOnce(&RawWindow, &Source<'_, T>) -> Result<()> + Send + 'static,
    ) -> bool {
        match *origin {
            Source::Slice(slice) | Source::Strided(slice, _)
                if !self.has_room(target, size_of_val(slice)) =>
            {
                false
            }
            Source::Slice(slice) => {
                let copy = slice.to_vec();
                self.keep(target, size_of_val(slice), move |window| transfer(window, &Source::Slice(&copy)))
            }
            // What borrows a datatype waits for the target.
            Source::Typed(..) => false,
            Source::Strided(slice, section) => {
                let Some(section) = section.plain() else { return false };
                let copy = slice.to_vec();
                self.keep(target, size_of_val(slice), move |window| {
                    transfer(window, &Source::Strided(&copy, section))
                })
            }
            Source::Own(section) => {
                let Some(section) = section.plain() else { return false };
                self.keep(target, 0, move |window| transfer(window, &Source::Own(section)))
            }
        }
    }

    /// Copies from the memory of a target.
    #[track_caller]
    #[inline(always)]
    pub(crate) fn get<T: Element>(
        &self,
        target: Rank,
        at: Section<'_>,
        into: &mut Destination<'_, T>,
    ) -> Result<()> {
        const CALL: &str = "get";
        self.hook(CALL, Some(target), || Some(at.span(into.len().unwrap_or(0))));
        if let Section::From(start) = at
            && const { T::SHAPE.is_dense() }
            && let Some(there) = self.open_target(target)
        {
            let to = match into {
                Destination::Slice(slice) => Some((slice.as_mut_ptr().cast(), size_of_val(*slice))),
                Destination::Own(section) if self.open.views.get() == 0 => {
                    self.own_place::<T>(target, section)
                }
                Destination::Own(_) | Destination::Strided(..) | Destination::Typed(..) => None,
            };
            if let Some((to, bytes)) = to
                && let Some(from) = there.place(start, bytes)
            {
                // SAFETY: - readable and in bounds: `place`. - writable: an exclusive slice, or `own_place` without views,
                //   which is elsewhere.
                // - the target's memory may be written at the same time, by the same routine only: see `put`.
                unsafe { self.engine.copy(to, from, bytes) };
                if let Destination::Own(_) = into {
                    self.stored(to.addr() - self.private.addr(), bytes);
                }
                return Ok(());
            }
        }
        self.get_any(CALL, target, at, into)
    }

    #[track_caller]
    #[inline(never)]
    fn get_any<T: Element>(
        &self,
        call: &'static str,
        target: Rank,
        at: Section<'_>,
        into: &mut Destination<'_, T>,
    ) -> Result<()> {
        // What goes to other memory than the own window is waited for: an epoch that keeps it could be leaked.
        if let Destination::Own(section) = *into
            && let (Some(at), Some(section)) = (at.plain(), section.plain())
            && self.keeps_transfers(target)
        {
            let len = self.agreed_len(call, target, at, section.len())?;
            self.settle::<T>(call, &self.targets[target.index()], target, at, len)?;
            self.settle_destination::<T>(call, target, into, len)?;
            let get = move |window: &RawWindow| {
                window.get_any::<T>(call, target, at, &mut Destination::Own(section))
            };
            if self.keep(target, 0, get) {
                return Ok(());
            }
        }
        if at.is_typed() || into.is_typed() || !const { T::SHAPE.is_dense() } {
            return self.get_typed(call, target, at, into);
        }
        let there = self.admitted(call, target)?;
        let len = self.agreed_len(call, target, at, into.len())?;
        let Side { base, layout } = self.settle::<T>(call, there, target, at, len)?;
        let from = Side { base: base.cast_const(), layout };
        let own = matches!(into, Destination::Own(_));
        let to = self.settle_destination(call, target, into, len)?;
        self.refuse_own_overlap::<T>(call, target, &from.layout, own, &to.layout)?;
        if there.is_remote() {
            let pieces = pieces::<T>(&to.layout, &from.layout, len).map(|(to_at, from_at, piece)| {
                (from_at, to.base.wrapping_add(to_at), piece * size_of::<T>())
            });
            // SAFETY: - writable: `pieces` stays inside the layout of the destination, see `settle_destination`.
            unsafe { self.get_remote(call, target.index(), pieces) }?;
        } else {
            // SAFETY: - both layouts stay inside the memory at their bases. - writable: an exclusive slice, or the own window
            //   without views, see `settle_destination`. - the rest as in `get`.
            unsafe { self.copy_layouts::<T>(&to, &from, len) };
        }
        if own {
            to.layout.ranges(size_of::<T>()).for_each(|range| self.stored(range.start, range.len()));
        }
        Ok(())
    }

    /// Notes that a transfer has written the elements of a layout.
    fn wrote_layout<T: Element>(&self, there: &Target, layout: &Layout) {
        if there.has_mirror() {
            for range in layout.ranges(size_of::<T>()) {
                self.wrote(there, there.data.wrapping_add(range.start), range.len());
            }
        }
    }

    /// Loads one element of a target.
    #[track_caller]
    #[inline(always)]
    pub(crate) fn get_one<T: Element>(&self, target: Rank, at: usize) -> Result<T> {
        const CALL: &str = "get";
        self.hook(CALL, Some(target), || Some(at..at.saturating_add(1)));
        let Some(from) = self.element::<T>(CALL, target, at)? else {
            return self.get_one_remote(CALL, target, at);
        };
        match from.is_aligned() {
            // SAFETY: - readable, in bounds: `element`. - aligned.
            true => Ok(unsafe { copy::load(from) }),
            // SAFETY: - readable, in bounds: `element`.
            false => Ok(unsafe { self.read_anywhere(from) }),
        }
    }

    /// Gives the elements of a section of a target.
    #[track_caller]
    pub(crate) fn get_vec<T: Element>(&self, target: Rank, at: Section<'_>) -> Result<Vec<T>> {
        const CALL: &str = "get";
        // The section is checked before memory for its elements is asked for.
        let len = self.elements_in::<T>(CALL, target, at)?;
        let mut elements = Vec::<T>::new();
        // A section can name an element often, so its length says nothing about memory.
        if elements.try_reserve_exact(len).is_err() {
            let note = format!("no memory for {len} elements");
            return Err(self.error(ErrorKind::System, CALL).target(target).range(at.span(len)).note(note));
        }
        elements.resize(len, zeroed());
        self.get(target, at, &mut Destination::Slice(&mut elements))?;
        Ok(elements)
    }

    /// Combines elements of a target with those of the origin, each atomically.
    #[track_caller]
    #[inline(always)]
    pub(crate) fn accumulate<T: Element, O: Operation<T>>(
        &self,
        target: Rank,
        at: Section<'_>,
        operation: O,
        origin: &Source<'_, T>,
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
            self.wrote(&self.targets[target.index()], to.cast(), size_of::<T>());
            return Ok(());
        }
        self.accumulate_any(CALL, target, at, operation, origin)
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
        if let Some(at) = at.plain()
            && !origin.is_typed()
            && self.keeps_transfers(target)
        {
            self.settle_put(call, &self.targets[target.index()], target, at, origin)?;
            let accumulate = move |window: &RawWindow, origin: &Source<'_, T>| {
                window.accumulate_any(call, target, at, operation, origin)
            };
            if self.keep_with_origin(target, origin, accumulate) {
                return Ok(());
            }
        }
        if self.targets.get(target.index()).is_some_and(Target::is_remote) {
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
        if self.targets.get(target.index()).is_some_and(Target::is_remote) {
            let pieces = self.settle_remote(CALL, target, at, origin)?;
            // SAFETY: - readable: `settle_remote`.
            let before = unsafe { self.fetch_remote(CALL, target.index(), O::CODE, pieces) }?;
            return Ok(before.chunks_exact(packed_bytes(&T::SHAPE)).map(|one| self.unpacked(one)).collect());
        }
        let mut before = Vec::with_capacity(origin.len().unwrap_or(0));
        self.each_piece(CALL, target, at, origin, |piece| {
            // SAFETY: - in bounds, readable and writable: `each_piece`. - no reference lives there: see `put`.
            unsafe { self.combine(CALL, target, piece, operation, |old| before.push(old)) }
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
        let len = self.agreed_len(call, target, at, origin.len())?;
        let to = self.settle::<T>(call, there, target, at, len)?;
        self.refuse_overlap(call, target, at, len, &to.layout)?;
        let from = self.settle_source(call, target, origin, len)?;
        let own = matches!(origin, Source::Own(_));
        self.refuse_own_overlap::<T>(call, target, &to.layout, own, &from.layout)?;
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
                self.wrote(&self.targets[target.index()], to.cast(), size_of::<T>());
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
            let (to, offset) = (target.index(), at * self.targets[target.index()].unit);
            let before = self.compare_swap_remote(CALL, to, offset, expected.to_bits(), new.to_bits())?;
            return Ok(T::from_bits(before));
        };
        match self.is_native(to) {
            true => {
                // SAFETY: - in bounds: `element`. - aligned: `is_native`. - no reference lives there: see `put`.
                let before = unsafe { atomic::compare_swap(to, expected, new) };
                if before.to_bits() == expected.to_bits() {
                    self.wrote(&self.targets[target.index()], to.cast(), size_of::<T>());
                }
                Ok(before)
            }
            // SAFETY: - in bounds: `element`. - no reference lives there: see `put`.
            false => unsafe { self.change_if(CALL, target, to, expected, new) },
        }
    }

    /// The error of what is not done over connections.
    #[cold]
    #[track_caller]
    pub(super) fn unserved(&self, call: &'static str, target: Rank, what: &str) -> Error {
        let note = format!("{what}, and rank {target} shares no memory with this one");
        self.error(ErrorKind::System, call).target(target).note(note)
    }

    /// The element that a target has sent.
    fn unpacked<T: Element>(&self, packed: &[u8]) -> T {
        let mut value = zeroed::<T>();
        // SAFETY: - writable: a value of this function.
        unsafe { unpack(self.engine, &T::SHAPE, packed, (&raw mut value).cast()) };
        value
    }

    /// Loads one element of a target that shares no memory with this rank.
    #[cold]
    #[track_caller]
    fn get_one_remote<T: Element>(&self, call: &'static str, target: Rank, at: usize) -> Result<T> {
        let offset = at * self.targets[target.index()].unit;
        let mut value = zeroed::<T>();
        let piece = std::iter::once((offset, (&raw mut value).cast::<u8>(), size_of::<T>()));
        // SAFETY: - writable: a value of this function.
        unsafe { self.get_remote(call, target.index(), piece) }?;
        Ok(value)
    }

    /// Combines one element of a target that shares no memory with this rank, and gives what was there.
    #[cold]
    #[track_caller]
    fn fetch_one<T: Element>(
        &self,
        call: &'static str,
        target: Rank,
        at: usize,
        operation: OpCode,
        origin: T,
    ) -> Result<T> {
        let offset = at * self.targets[target.index()].unit;
        let pieces = std::iter::once((offset, (&raw const origin).cast::<u8>(), 1));
        // SAFETY: - readable: a value of this function.
        let before = unsafe { self.fetch_remote(call, target.index(), operation, pieces) }?;
        Ok(self.unpacked(&before))
    }

    /// The pieces of an accumulate to a target that shares no memory with this rank, after all checks. They are readable.
    #[track_caller]
    fn settle_remote<T: Element>(
        &self,
        call: &'static str,
        target: Rank,
        at: Section<'_>,
        origin: &Source<'_, T>,
    ) -> Result<Pieces> {
        let mut found = Vec::new();
        if at.is_typed() || origin.is_typed() {
            self.each_typed_place(call, target, at, origin, |to_at, from, count| {
                found.push((to_at, from, count));
                Ok(())
            })?;
            return Ok(found.into_iter());
        }
        let there = self.admitted(call, target)?;
        let (to, from, len) = self.settle_put(call, there, target, at, origin)?;
        found.extend(
            pieces::<T>(&to.layout, &from.layout, len)
                .map(|(to_at, from_at, count)| (to_at, from.base.wrapping_add(from_at), count)),
        );
        Ok(found.into_iter())
    }

    /// The target, if this handle has been admitted there; an epoch under WEAK is let in for that.
    #[track_caller]
    #[inline(always)]
    pub(super) fn admitted(&self, call: &'static str, target: Rank) -> Result<&Target> {
        match self.open_target(target) {
            Some(there) => Ok(there),
            None => self.let_in(call, target),
        }
    }

    /// The target, if this handle is admitted there now.
    #[inline(always)]
    fn open_target(&self, target: Rank) -> Option<&Target> {
        let there = self.targets.get(target.index())?;
        (self.phase_open.get() || Access::Promised < there.access.get()).then_some(there)
    }

    /// Waits for a target whose epoch under WEAK was not let in yet, or refuses the transfer.
    #[cold]
    #[track_caller]
    fn let_in(&self, call: &'static str, target: Rank) -> Result<&Target> {
        let at = self.check_rank(call, target)?;
        if self.targets[at].access.get() == Access::Promised {
            self.keep_promise(call, at)?;
            return Ok(&self.targets[at]);
        }
        if self.has_all_locked() {
            return self.take_for_all(call, at);
        }
        if self.is_broken() {
            return Err(self.poisoned_again(call).target(target));
        }
        let note = "open one by a fence, by start, or by a lock of the target";
        Err(self.error(ErrorKind::TransferOutsideEpoch, call).target(target).note(note))
    }

    /// The address and the bytes of a range of the own window, for a transfer to or from somebody else's.
    #[inline(always)]
    fn own_place<T: Element>(&self, target: Rank, section: &Section<'_>) -> Option<(*mut u8, usize)> {
        let &Section::Range(start, end) = section else { return None };
        if target.index() == self.me {
            return None; // The two sides may overlap.
        }
        let bytes = end.checked_sub(start)?.checked_mul(size_of::<T>())?;
        let offset = self.targets[self.me].offset(start, bytes)?;
        // SAFETY: - in bounds: `offset`; the private copy is as long as the public one.
        Some((unsafe { self.private.add(offset) }, bytes))
    }

    /// One element of a target this handle has been admitted to; `None` if the target shares no memory with this rank.
    #[track_caller]
    #[inline(always)]
    pub(super) fn element<T: Element>(
        &self,
        call: &'static str,
        target: Rank,
        at: usize,
    ) -> Result<Option<*mut T>> {
        let there = self.admitted(call, target)?;
        match there.place(at, size_of::<T>()) {
            Some(place) => Ok(Some(place.cast())),
            None => self.element_of_part(call, target, at),
        }
    }

    /// One aligned element of a target of which a part is exposed to this handle, or that shares no memory with this rank.
    #[cold]
    #[track_caller]
    fn element_of_part<T: Element>(
        &self,
        call: &'static str,
        target: Rank,
        at: usize,
    ) -> Result<Option<*mut T>> {
        let there = &self.targets[target.index()];
        let Side { base, layout } = self.settle::<T>(call, there, target, Section::From(at), 1)?;
        if there.is_remote() {
            return Ok(None);
        }
        // SAFETY: - in bounds: `settle`.
        Ok(Some(unsafe { base.add(layout.start) }.cast()))
    }

    /// The number of elements that both sides agree on.
    #[track_caller]
    fn agreed_len(
        &self,
        call: &'static str,
        target: Rank,
        at: Section<'_>,
        origin: Option<usize>,
    ) -> Result<usize> {
        match (at.len(), origin) {
            (Some(there), Some(here)) if there != here => {
                let note = format!("the target section has {there} elements, the origin {here}");
                Err(self
                    .error(ErrorKind::LengthMismatch, call)
                    .target(target)
                    .range(at.span(here))
                    .note(note))
            }
            (Some(len), _) | (None, Some(len)) => Ok(len),
            (None, None) => {
                let note = "neither side says how many elements; give a range";
                Err(self.error(ErrorKind::LengthMismatch, call).target(target).note(note))
            }
        }
    }

    /// Settles a section of a target.
    #[track_caller]
    fn settle<T: Element>(
        &self,
        call: &'static str,
        there: &Target,
        target: Rank,
        at: Section<'_>,
        len: usize,
    ) -> Result<Side<*mut u8>> {
        let settled = at.settle(len, size_of::<T>(), there.unit, there.extent());
        if let Ok(layout) = &settled {
            self.learn_region(call, target.index(), &layout.span(size_of::<T>()))?;
        }
        match there.open(settled, size_of::<T>()) {
            Ok(layout) => Ok(Side { base: there.data, layout }),
            Err(fault) => Err(self.faulty(call, target, at.span(len), fault)),
        }
    }

    #[track_caller]
    fn settle_source<T: Element>(
        &self,
        call: &'static str,
        target: Rank,
        origin: &Source<'_, T>,
        len: usize,
    ) -> Result<Side<*const u8>> {
        let size = size_of::<T>();
        let (base, settled, span) = match origin {
            Source::Slice(slice) => {
                let whole = Section::from(0);
                (slice.as_ptr().cast(), whole.settle(len, size, size, size_of_val(*slice)), whole.span(len))
            }
            Source::Typed(..) => unreachable!("what counts in items is settled elsewhere"),
            Source::Strided(slice, section) => (
                slice.as_ptr().cast(),
                section.settle(len, size, size, size_of_val(*slice)),
                section.span(len),
            ),
            Source::Own(section) => {
                let own = &self.targets[self.me];
                let settled = own.open(section.settle(len, size, own.unit, own.extent()), size);
                (self.private.cast_const(), settled, section.span(len))
            }
        };
        match settled {
            Ok(layout) => Ok(Side { base, layout }),
            Err(fault) => Err(self.faulty_origin(call, target, span, fault)),
        }
    }

    #[track_caller]
    fn settle_destination<T: Element>(
        &self,
        call: &'static str,
        target: Rank,
        into: &mut Destination<'_, T>,
        len: usize,
    ) -> Result<Side<*mut u8>> {
        let size = size_of::<T>();
        let (base, settled, span) = match into {
            Destination::Slice(slice) => {
                let whole = Section::from(0);
                let bytes = size_of_val(*slice);
                (slice.as_mut_ptr().cast(), whole.settle(len, size, size, bytes), whole.span(len))
            }
            Destination::Strided(slice, section) => {
                let bytes = size_of_val(*slice);
                (slice.as_mut_ptr().cast(), section.settle(len, size, size, bytes), section.span(len))
            }
            Destination::Typed(..) => unreachable!("what counts in items is settled elsewhere"),
            Destination::Own(section) => {
                self.refuse_views(call)?;
                let own = &self.targets[self.me];
                let settled = own.open(section.settle(len, size, own.unit, own.extent()), size);
                (self.private, settled, section.span(len))
            }
        };
        match settled {
            Ok(layout) if layout.overlaps_itself() => {
                Err(self.faulty_origin(call, target, span, Fault::Overlap))
            }
            Ok(layout) => Ok(Side { base, layout }),
            Err(fault) => Err(self.faulty_origin(call, target, span, fault)),
        }
    }

    #[track_caller]
    fn refuse_overlap(
        &self,
        call: &'static str,
        target: Rank,
        at: Section<'_>,
        len: usize,
        layout: &Layout,
    ) -> Result<()> {
        match layout.overlaps_itself() {
            false => Ok(()),
            true => Err(self.faulty(call, target, at.span(len), Fault::Overlap)),
        }
    }

    /// Refuses a transfer within the own window that reads a byte that it writes.
    #[track_caller]
    fn refuse_own_overlap<T: Element>(
        &self,
        call: &'static str,
        target: Rank,
        there: &Layout,
        own: bool,
        here: &Layout,
    ) -> Result<()> {
        match own && target.index() == self.me && there.meets(here, size_of::<T>()) {
            false => Ok(()),
            true => Err(self.own_parts_meet(call, target)),
        }
    }

    #[cold]
    #[track_caller]
    pub(super) fn own_parts_meet(&self, call: &'static str, target: Rank) -> Error {
        let note = "origin and target are parts of the own window and have bytes in common";
        self.error(ErrorKind::ConflictingAccess, call).target(target).note(note)
    }

    #[cold]
    #[track_caller]
    pub(super) fn faulty(
        &self,
        call: &'static str,
        target: Rank,
        range: Range<usize>,
        fault: Fault,
    ) -> Error {
        let there = &self.targets[target.index()];
        // Not by a closure, which would be the call's location.
        let error = self.error(fault.kind(), call).target(target).range(range);
        match fault {
            Fault::Bounds => {
                let length = there.bytes / there.unit;
                error.note(match there.part.get() {
                    None if there.attached.is_some() => "no region that is attached has all of it".to_owned(),
                    None => format!("its length is {length}"),
                    Some(Part { start, end }) => {
                        format!("its length is {length}, of which bytes {start}..{end} are exposed")
                    }
                })
            }
            Fault::Overlap => error,
            Fault::Length(len) => error.note(format!("the target section has {len}")),
        }
    }

    #[cold]
    #[track_caller]
    pub(super) fn faulty_origin(
        &self,
        call: &'static str,
        target: Rank,
        range: Range<usize>,
        fault: Fault,
    ) -> Error {
        let (start, end) = (range.start, range.end);
        let what = match fault {
            Fault::Bounds => "reaches outside its own buffer or window".to_owned(),
            Fault::Overlap => "names an element twice".to_owned(),
            Fault::Length(len) => format!("has {len} elements"),
        };
        let note = format!("the origin section {start}..{end} {what}");
        self.error(fault.kind(), call).target(target).note(note)
    }

    /// Copies `len` elements from one layout to another, in the longest pieces that are contiguous on both sides.
    ///
    /// # Safety
    ///
    /// As for [`Engine::copy`](copy::Engine::copy), for every element of the layouts.
    unsafe fn copy_layouts<T: Element>(&self, to: &Side<*mut u8>, from: &Side<*const u8>, len: usize) {
        for (to_at, from_at, piece) in pieces::<T>(&to.layout, &from.layout, len) {
            // SAFETY: - in bounds: `pieces` stays inside the layout.
            let to = unsafe { to.base.add(to_at) };
            // SAFETY: - in bounds: `pieces` stays inside the layout.
            let from = unsafe { from.base.add(from_at) };
            // SAFETY: - the caller's promises.
            unsafe { self.engine.copy(to, from, piece * size_of::<T>()) };
        }
    }
}

impl Target {
    /// A layout, if all that it names is exposed.
    fn open(&self, settled: Result<Layout, Fault>, size: usize) -> Result<Layout, Fault> {
        let layout = settled?;
        let named = layout.span(size);
        match named.is_empty() || self.opens(&named) {
            true => Ok(layout),
            false => Err(Fault::Bounds),
        }
    }

    /// Where `bytes` bytes at a displacement begin, if they lie inside the rank's memory and all of it is exposed.
    #[inline(always)]
    fn offset(&self, at: usize, bytes: usize) -> Option<usize> {
        let start = at.checked_mul(self.unit)?;
        let reach = self.reach.get();
        match start <= reach && bytes <= reach - start {
            true => Some(start),
            false => None,
        }
    }

    /// As `offset`, for a rank that shares no memory with this one and exposes all that it has.
    #[inline]
    fn remote_offset(&self, at: usize, bytes: usize) -> Option<usize> {
        let start = at.checked_mul(self.unit)?;
        let whole = self.remote && self.attached.is_none() && self.part.get().is_none();
        (whole && start <= self.bytes && bytes <= self.bytes - start).then_some(start)
    }

    /// The address of these bytes.
    #[inline(always)]
    fn place(&self, at: usize, bytes: usize) -> Option<*mut u8> {
        let start = self.offset(at, bytes)?;
        // SAFETY: - in bounds: `offset`.
        Some(unsafe { self.data.add(start) })
    }
}

/// The pieces of two layouts of `len` elements that are contiguous on both sides: their byte offsets at either side and
/// their length in elements.
fn pieces<T>(to: &Layout, from: &Layout, len: usize) -> impl Iterator<Item = (usize, usize, usize)> + use<T> {
    let (to, from) = (*to, *from);
    let size = size_of::<T>();
    let mut left = len;
    let (mut to_block, mut to_in) = (0, 0);
    let (mut from_block, mut from_in) = (0, 0);
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let piece = left.min(to.block - to_in).min(from.block - from_in);
        let at = (
            to.start + (to_block * to.stride + to_in) * size,
            from.start + (from_block * from.stride + from_in) * size,
            piece,
        );
        left -= piece;
        to_in += piece;
        if to_in == to.block {
            (to_block, to_in) = (to_block + 1, 0);
        }
        from_in += piece;
        if from_in == from.block {
            (from_block, from_in) = (from_block + 1, 0);
        }
        Some(at)
    })
}
