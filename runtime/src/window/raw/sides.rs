//! What a transfer names on both sides, and the checks that let it: the target's admission, equal lengths, bounds, overlap.
//! Never moves a byte.

use std::ops::Range;
use std::ptr;

use super::parts::Part;
use super::{Access, RawWindow, Target};
use crate::element::Element;
use crate::error::{Error, ErrorKind, Result};
use crate::op::section::{Fault, Layout, Section};
use crate::op::{Destination, Handle, Source};
use crate::team::Rank;

/// One side of a transfer after its checks: a base and a layout that stays inside the memory at the base.
pub(super) struct Side<P> {
    pub(super) base: P,
    pub(super) layout: Layout,
}

impl RawWindow {
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
    pub(super) fn open_target(&self, target: Rank) -> Option<&Target> {
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
    pub(super) fn own_place<T: Element>(
        &self,
        target: Rank,
        section: &Section<'_>,
    ) -> Option<(*mut u8, usize)> {
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
        let there = match self.open_target(target) {
            Some(there) => there,
            None => self.let_in_to_one(call, target, at)?,
        };
        match there.place(at, size_of::<T>()) {
            Some(place) => Ok(Some(place.cast())),
            None => self.element_of_part(call, target, at),
        }
    }

    #[cold]
    #[track_caller]
    fn let_in_to_one(&self, call: &'static str, target: Rank, at: usize) -> Result<&Target> {
        self.let_in(call, target).map_err(|error| error.in_range(at..at.saturating_add(1)))
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
        if there.remote {
            return Ok(None);
        }
        // SAFETY: - in bounds: `settle`.
        Ok(Some(unsafe { base.add(layout.start) }.cast()))
    }

    /// The two sides of a put and its length, checked.
    #[track_caller]
    pub(super) fn settle_put<T: Element>(
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
        let own = self.owner_of_source(origin);
        self.refuse_own_overlap::<T>(call, target, &to.layout, own, &from.layout)?;
        Ok((to, from, len))
    }

    /// The number of elements that both sides agree on.
    #[track_caller]
    pub(super) fn agreed_len(
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
    pub(super) fn settle<T: Element>(
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
                (self.private.cast_const(), self.settle_own(section, len, size), section.span(len))
            }
            Source::Of(handle, section) => {
                let window = handle.window();
                (window.private.cast_const(), window.settle_own(section, len, size), section.span(len))
            }
        };
        match settled {
            Ok(layout) => Ok(Side { base, layout }),
            Err(fault) => Err(self.faulty_origin(call, target, span, fault)),
        }
    }

    #[track_caller]
    pub(super) fn settle_destination<T: Element>(
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
                (self.private, self.settle_own(section, len, size), section.span(len))
            }
            Destination::Of(handle, section) => {
                let window = handle.window();
                window.refuse_views(call)?;
                (window.private, window.settle_own(section, len, size), section.span(len))
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

    /// A section of the own memory, of which only a part may be open to this handle.
    fn settle_own(&self, section: &Section<'_>, len: usize, size: usize) -> Result<Layout, Fault> {
        let own = &self.targets[self.me];
        own.open(section.settle(len, size, own.unit, own.extent()), size)
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

    /// The window whose own part an origin is.
    pub(super) fn owner_of_source<'w, T>(&'w self, origin: &Source<'w, T>) -> Option<&'w RawWindow> {
        match origin {
            Source::Own(_) => Some(self),
            Source::Of(handle, _) => Some(handle.window()),
            Source::Slice(_) | Source::Strided(..) | Source::Typed(..) => None,
        }
    }

    /// The window whose own part a destination is.
    pub(super) fn owner_of_destination<'w, T>(&'w self, into: &Destination<'w, T>) -> Option<&'w RawWindow> {
        match into {
            Destination::Own(_) => Some(self),
            Destination::Of(handle, _) => Some(handle.window()),
            Destination::Slice(_) | Destination::Strided(..) | Destination::Typed(..) => None,
        }
    }

    /// Refuses a transfer within the own window that reads a byte that it writes.
    #[track_caller]
    pub(super) fn refuse_own_overlap<T: Element>(
        &self,
        call: &'static str,
        target: Rank,
        there: &Layout,
        own: Option<&RawWindow>,
        here: &Layout,
    ) -> Result<()> {
        match self.is_within(target, own) && there.meets(here, size_of::<T>()) {
            false => Ok(()),
            true => {
                let size = size_of::<T>();
                Err(self.own_parts_meet(call, target, &there.span(size), &here.span(size)))
            }
        }
    }

    /// Whether both sides of a transfer lie in one memory: the target is the own part, and so is the other side.
    pub(super) fn is_within(&self, target: Rank, own: Option<&RawWindow>) -> bool {
        target.index() == self.me && own.is_some_and(|own| ptr::eq(self, own))
    }

    #[cold]
    #[track_caller]
    pub(super) fn own_parts_meet(
        &self,
        call: &'static str,
        target: Rank,
        there: &Range<usize>,
        here: &Range<usize>,
    ) -> Error {
        let note = format!(
            "bytes {}..{} of the own window, which it names at the target, and bytes {}..{}, at the origin, are not apart",
            there.start, there.end, here.start, here.end
        );
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
}

impl<'w> Handle<'w> {
    pub(super) fn window(self) -> &'w RawWindow {
        match self.0.downcast_ref() {
            Some(window) => window,
            None => unreachable!("only windows make handles"),
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
        self.offset_within(self.reach.get(), at, bytes)
    }

    #[inline(always)]
    fn offset_within(&self, reach: usize, at: usize, bytes: usize) -> Option<usize> {
        let start = at.checked_mul(self.unit)?;
        match start <= reach && bytes <= reach - start {
            true => Some(start),
            false => None,
        }
    }

    /// As `offset`, for a rank that shares no memory with this one and exposes all that it has.
    #[inline]
    pub(super) fn remote_offset(&self, at: usize, bytes: usize) -> Option<usize> {
        let start = at.checked_mul(self.unit)?;
        let whole = self.remote && self.attached.is_none() && self.part.get().is_none();
        (whole && start <= self.bytes && bytes <= self.bytes - start).then_some(start)
    }

    /// The address of these bytes.
    #[inline(always)]
    pub(super) fn place(&self, at: usize, bytes: usize) -> Option<*mut u8> {
        let start = self.offset(at, bytes)?;
        // SAFETY: - in bounds: `offset`.
        Some(unsafe { self.data.add(start) })
    }

    /// The address of these bytes, if writing them needs no mark.
    #[inline(always)]
    pub(super) fn place_unmarked(&self, at: usize, bytes: usize) -> Option<*mut u8> {
        let start = self.offset_within(self.unmarked_reach.get(), at, bytes)?;
        // SAFETY: - in bounds: `offset_within`; the reach is never longer than the memory.
        Some(unsafe { self.data.add(start) })
    }
}

/// The pieces of two layouts of `len` elements that are contiguous on both sides: their byte offsets at either side and
/// their length in elements.
pub(super) fn pieces<T>(
    to: &Layout,
    from: &Layout,
    len: usize,
) -> impl Iterator<Item = (usize, usize, usize)> + use<T> {
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
