//! Puts and gets: the check of permission and bounds, and the copy. On mapped memory a transfer is complete at both sides when
//! the call returns, and visible to others when the epoch's closing call says so. Never waits for anything but the target of
//! an epoch under WEAK, which may also keep the transfer (`deferral`).
//!
//! Budget of a contiguous put or get: two table look-ups, one test of permission, one comparison of bounds, the copy. No
//! allocation, no system call, no atomic.

use super::sides::{Side, pieces};
use super::{RawWindow, Target};
use crate::element::{Element, zeroed};
use crate::error::{ErrorKind, Result};
use crate::op::section::{Layout, Section};
use crate::op::{Destination, Source};
use crate::team::Rank;
use crate::transport::shm::copy;

impl RawWindow {
    /// Copies into the memory of a target.
    ///
    /// On x86-64 a put of 8 bytes is inlined and calls nothing: see the comment in the body.
    #[track_caller]
    #[inline(always)]
    pub(crate) fn put<T: Element>(&self, target: Rank, at: Section<'_>, origin: Source<'_, T>) -> Result<()> {
        const CALL: &str = "put";
        // The common cases first: a slice, or a range of the own window, to a contiguous place that needs no marks and no hook.
        // On x86-64 a put of one element of 8 bytes takes 31 instructions a turn of `rma-bench`'s loop of puts, with the loop's own,
        // and calls nothing. Seven branches go the same way each time: the rank, a phase, a lock or access, the overflow of
        // displacement times unit, two for the bounds, and whether stores are noted for the next flush. Between them stand the
        // loads of the target's entry, the multiplication, and the `mov` that stores. There is no fence and no atomic; the error
        // that is not made costs one byte in a register, and what only `put_any` needs, the hook among it, is put together behind
        // the branches. Other lengths call the copy loop.
        if let Section::From(start) = at
            && const { T::SHAPE.is_dense() }
            && let Some(there) = self.open_target(target)
            && let Some((from, bytes)) = self.contiguous_source(target, &origin)
            && let Some(to) = there.place_unmarked(start, bytes)
        {
            self.begin_writing();
            match origin {
                // SAFETY: - writable and in bounds: `place_unmarked`. - the element has 8 bytes. - no reference to the target's
                //   memory lives: this handle is admitted there, which excludes the owner's views. - readers and writers at
                //   the same time access it by the routines of that module only.
                Source::Slice(&[value]) if size_of::<T>() == 8 => unsafe { copy::put_word(to, value) },
                // SAFETY: - as above. - readable: a slice, or a place of the own window, which is elsewhere.
                _ => unsafe { self.engine.copy(to, from, bytes) },
            }
            return Ok(());
        }
        self.hook(CALL, Some(target), || Some(at.span(origin.len().unwrap_or(0))));
        // The copy of the origin is made here, so that the way above keeps it in registers.
        self.put_any(CALL, target, at, &{ origin })
    }

    /// The address and the bytes of an origin that lies in one piece.
    #[inline(always)]
    fn contiguous_source<T: Element>(
        &self,
        target: Rank,
        origin: &Source<'_, T>,
    ) -> Option<(*const u8, usize)> {
        match origin {
            Source::Slice(slice) => Some((slice.as_ptr().cast(), size_of_val(*slice))),
            Source::Own(section) => {
                self.own_place::<T>(target, section).map(|(at, len)| (at.cast_const(), len))
            }
            Source::Strided(..) | Source::Typed(..) | Source::Of(..) => None,
        }
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
        // As in `put`, to memory with a mirror.
        if let Section::From(start) = at
            && const { T::SHAPE.is_dense() }
            && let Some(there) = self.open_target(target)
            && let Some((from, bytes)) = self.contiguous_source(target, origin)
            && let Some(to) = there.place(start, bytes)
        {
            // SAFETY: - as in `put`.
            unsafe { self.engine.copy(to, from, bytes) };
            self.wrote(there, to, bytes);
            return Ok(());
        }
        let put = self.put_checked(call, target, at, origin);
        put.map_err(|error| at.located(error, origin.len()))
    }

    #[track_caller]
    #[inline]
    fn put_checked<T: Element>(
        &self,
        call: &'static str,
        target: Rank,
        at: Section<'_>,
        origin: &Source<'_, T>,
    ) -> Result<()> {
        // The common case of a rank that shares no memory with this one: a slice to a contiguous place.
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
            let (_, from, len) = self.settle_put(call, &self.targets[target.index()], target, at, origin)?;
            let put =
                move |window: &RawWindow, origin: &Source<'_, T>| window.put_any(call, target, at, origin);
            if self.keep_with_origin(target, origin, (from, len), put) {
                return Ok(());
            }
        }
        if at.is_typed() || origin.is_typed() || !const { T::SHAPE.is_dense() } {
            return self.put_typed(call, target, at, origin);
        }
        let there = self.admitted(call, target)?;
        let (to, from, len) = self.settle_put(call, there, target, at, origin)?;
        if there.remote {
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

    /// Keeps a transfer, with a copy of what it takes from private memory, for the closing call of its epoch.
    pub(super) fn keep_with_origin<T: Element>(
        &self,
        target: Rank,
        origin: &Source<'_, T>,
        (from, len): (Side<*const u8>, usize),
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
            // Another window may be gone by then.
            Source::Of(..) => {
                let bytes = len.saturating_mul(size_of::<T>());
                if !self.has_room(target, bytes) {
                    return false;
                }
                let mut copy = vec![zeroed::<T>(); len];
                let layout = Layout { start: 0, count: 1, block: len, stride: len };
                let to = Side { base: copy.as_mut_ptr().cast(), layout };
                // SAFETY: - readable: the layout stays inside the memory at its base, see `settle_source`. - writable: a vector
                //   of so many elements, which nobody else knows.
                unsafe { self.copy_layouts::<T>(&to, &from, len) };
                self.keep(target, bytes, move |window| transfer(window, &Source::Slice(&copy)))
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
        mut into: Destination<'_, T>,
    ) -> Result<()> {
        const CALL: &str = "get";
        self.hook(CALL, Some(target), || Some(at.span(into.len().unwrap_or(0))));
        if let Section::From(start) = at
            && const { T::SHAPE.is_dense() }
            && let Some(there) = self.open_target(target)
        {
            let to = match &mut into {
                Destination::Slice(slice) => Some((slice.as_mut_ptr().cast(), size_of_val(*slice))),
                Destination::Own(section) if self.open.views.get() == 0 => {
                    self.own_place::<T>(target, section)
                }
                Destination::Own(_)
                | Destination::Of(..)
                | Destination::Strided(..)
                | Destination::Typed(..) => None,
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
        self.get_any(CALL, target, at, &mut { into })
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
        let get = self.get_checked(call, target, at, into);
        get.map_err(|error| at.located(error, into.len()))
    }

    #[track_caller]
    #[inline]
    fn get_checked<T: Element>(
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
        let to = self.settle_destination(call, target, into, len)?;
        let own = self.owner_of_destination(into);
        self.refuse_own_overlap::<T>(call, target, &from.layout, own, &to.layout)?;
        if there.remote {
            let pieces = pieces::<T>(&to.layout, &from.layout, len).map(|(to_at, from_at, piece)| {
                (from_at, to.base.wrapping_add(to_at), piece * size_of::<T>())
            });
            // SAFETY: - writable: `pieces` stays inside the layout of the destination, see `settle_destination`.
            unsafe { self.get_remote(call, target.index(), pieces) }?;
        } else {
            // SAFETY: - both layouts stay inside the memory at their bases. - writable: an exclusive slice, or own memory
            //   without views, see `settle_destination`. - the rest as in `get`.
            unsafe { self.copy_layouts::<T>(&to, &from, len) };
        }
        if let Some(own) = own {
            to.layout.ranges(size_of::<T>()).for_each(|range| own.stored(range.start, range.len()));
        }
        Ok(())
    }

    /// Notes that a transfer has written the elements of a layout.
    fn wrote_layout<T: Element>(&self, there: &Target, layout: &Layout) {
        self.begin_writing();
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
        let len = self.elements_in::<T>(CALL, target, at).map_err(|error| at.located(error, None))?;
        let mut elements = Vec::<T>::new();
        // A section can name an element often, so its length says nothing about memory.
        if elements.try_reserve_exact(len).is_err() {
            let note = format!("no memory for {len} elements");
            return Err(self.error(ErrorKind::System, CALL).target(target).range(at.span(len)).note(note));
        }
        elements.resize(len, zeroed());
        self.get(target, at, Destination::Slice(&mut elements))?;
        Ok(elements)
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
