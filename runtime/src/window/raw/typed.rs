//! Transfers whose sides are described by datatypes, or whose elements have padding: both sides become trees over basic types,
//! whose items pair off in order. Never moves a byte before both trees are known to agree and to stay in bounds.
//!
//! Nothing is staged on the way: each stretch is copied from one side straight to the other (RMA-SHM-01).

use std::borrow::Cow;
use std::ops::Range;

use super::guard::Piece;
use super::{RawWindow, Target};
use crate::element::Element;
use crate::error::{ErrorKind, Result};
use crate::op::datatype::{Agreement, Runs};
use crate::op::section::{Fault, Section};
use crate::op::{Datatype, Destination, Memory, Source};
use crate::team::Rank;

/// One side of a transfer: where it begins, in bytes from a base, and what lies there.
pub(super) struct Form<'a, P> {
    pub(super) base: P,
    pub(super) start: usize,
    pub(super) datatype: Cow<'a, Datatype>,
}

/// The memory that a side lies in.
struct Within<'m, P> {
    base: P,
    open: Open<'m>,
    unit: usize,
}

/// Which bytes of a memory may be named.
enum Open<'m> {
    /// So many from its beginning.
    First(usize),
    /// Those of a rank's part of the window that it opens.
    Of(&'m Target),
}

impl Open<'_> {
    fn holds(&self, named: &Range<usize>) -> bool {
        match self {
            Open::First(bytes) => named.end <= *bytes,
            Open::Of(there) => named.is_empty() || there.opens(named),
        }
    }
}

/// Which side a message speaks of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Target,
    Origin,
}

/// What both sides have in common: the element type's datatype, and how many items they have.
pub(super) struct Common {
    element: Datatype,
    items: usize,
}

impl RawWindow {
    #[track_caller]
    pub(super) fn put_typed<T: Element>(
        &self,
        call: &'static str,
        target: Rank,
        at: Section<'_>,
        origin: &Source<'_, T>,
    ) -> Result<()> {
        let (to, from, _) = self.settle_typed_put(call, target, at, origin)?;
        let there = &self.targets[target.index()];
        if there.remote {
            let pieces = to.runs().zip_stretches(from.runs()).map(|(to_run, from_run)| {
                let origin = from.base.wrapping_add(from.start + from_run.at);
                (to.start + to_run.at, origin, to_run.bytes())
            });
            // SAFETY: - readable: stretches of the datatype, which lies inside the memory at the base.
            return unsafe { self.put_remote(call, target.index(), pieces) };
        }
        // SAFETY: - both sides stay inside the memory at their bases and agree, see above. - the rest as in `put`.
        unsafe { self.copy_forms(&to, &from) };
        for run in to.runs() {
            self.wrote(there, there.data.wrapping_add(to.start + run.at), run.bytes());
        }
        Ok(())
    }

    #[track_caller]
    pub(super) fn get_typed<T: Element>(
        &self,
        call: &'static str,
        target: Rank,
        at: Section<'_>,
        into: &mut Destination<'_, T>,
    ) -> Result<()> {
        let (from, common) = self.settle_typed_target::<T>(call, target, at, |each| into.items(each))?;
        let to = self.form_of_destination(call, target, into, &common)?;
        let own = self.owner_of_destination(into);
        self.refuse_disagreement(call, target, &from.datatype, &to.datatype)?;
        self.refuse_typed_overlap(call, target, End::Origin, &to)?;
        let from = Form { base: from.base.cast_const(), start: from.start, datatype: from.datatype };
        self.refuse_typed_meeting(call, target, own, &to, &from)?;
        if self.targets[target.index()].remote {
            let pieces = to.runs().zip_stretches(from.runs()).map(|(to_run, from_run)| {
                let destination = to.base.wrapping_add(to.start + to_run.at);
                (from.start + from_run.at, destination, to_run.bytes())
            });
            // SAFETY: - writable: stretches of the datatype, which lies inside an exclusive slice or own memory without views.
            unsafe { self.get_remote(call, target.index(), pieces) }?;
        } else {
            // SAFETY: - as in `put_typed`; the destination is an exclusive slice or own memory without views.
            unsafe { self.copy_forms(&to, &from) };
        }
        if let Some(own) = own {
            to.runs().for_each(|run| own.stored(to.start + run.at, run.bytes()));
        }
        Ok(())
    }

    /// Calls `combine` with each piece of an accumulate that is contiguous on both sides, after all checks.
    #[track_caller]
    pub(super) fn each_typed_piece<T: Element>(
        &self,
        call: &'static str,
        target: Rank,
        at: Section<'_>,
        origin: &Source<'_, T>,
        mut combine: impl FnMut(Piece<T>) -> Result<()>,
    ) -> Result<()> {
        let base = self.admitted(call, target)?.data;
        self.each_typed_place(call, target, at, origin, |to_at, from, count| {
            // SAFETY: - in bounds: elements of the datatype, which lies inside the memory at the base.
            let to = unsafe { base.add(to_at) }.cast();
            combine(Piece { to, from: from.cast(), count })
        })
    }

    /// Calls `combine` with where each such piece lies: its byte offset at the target, its address at the origin, where it is
    /// readable, and how many elements it has.
    #[track_caller]
    pub(super) fn each_typed_place<T: Element>(
        &self,
        call: &'static str,
        target: Rank,
        at: Section<'_>,
        origin: &Source<'_, T>,
        mut combine: impl FnMut(usize, *const u8, usize) -> Result<()>,
    ) -> Result<()> {
        let (to, from, common) = self.settle_typed_put(call, target, at, origin)?;
        let mut at = |to_at: usize, from_at: usize, count: usize| {
            combine(to.start + to_at, from.base.wrapping_add(from.start + from_at), count)
        };
        match (T::SHAPE.as_basic(), to.datatype.uniform()) {
            (Some(wanted), Some(found)) if wanted == found => {
                for (to_run, from_run) in to.runs().zip_stretches(from.runs()) {
                    at(to_run.at, from_run.at, to_run.count)?;
                }
            }
            _ => {
                let (there, here) =
                    (to.datatype.places(&common.element), from.datatype.places(&common.element));
                let (Some(there), Some(here)) = (there, here) else {
                    let note = format!("the layouts are not made of whole elements of {}", T::SHAPE);
                    return Err(self.error(ErrorKind::DatatypeMismatch, call).target(target).note(note));
                };
                for (to_at, from_at) in there.into_iter().zip(here) {
                    at(to_at, from_at, 1)?;
                }
            }
        }
        Ok(())
    }

    /// The target's side of a transfer, which `items` of the other side belong to, and what both sides have in common.
    #[track_caller]
    fn settle_typed_target<'a, T: Element>(
        &self,
        call: &'static str,
        target: Rank,
        at: Section<'a>,
        items: impl FnOnce(usize) -> Option<usize>,
    ) -> Result<(Form<'a, *mut u8>, Common)> {
        let there = self.admitted(call, target)?;
        let common = self.common::<T>(call, target, at, items)?;
        Ok((self.form_of_target(call, there, target, at, &common)?, common))
    }

    /// The two sides of a put or accumulate, after all checks.
    #[track_caller]
    fn settle_typed_put<'a, T: Element>(
        &self,
        call: &'static str,
        target: Rank,
        at: Section<'a>,
        origin: &Source<'a, T>,
    ) -> Result<(Form<'a, *mut u8>, Form<'a, *const u8>, Common)> {
        let (to, common) = self.settle_typed_target::<T>(call, target, at, |each| origin.items(each))?;
        let from = self.form_of_source(call, target, origin, &common)?;
        self.refuse_disagreement(call, target, &to.datatype, &from.datatype)?;
        self.refuse_typed_overlap(call, target, End::Target, &to)?;
        self.refuse_typed_meeting(call, target, self.owner_of_source(origin), &to, &from)?;
        Ok((to, from, common))
    }

    /// How many elements a section of a target has, where the other side does not say it.
    #[track_caller]
    pub(super) fn elements_in<T: Element>(
        &self,
        call: &'static str,
        target: Rank,
        at: Section<'_>,
    ) -> Result<usize> {
        let common = self.common::<T>(call, target, at, |_| None)?;
        self.form_of_target(call, self.admitted(call, target)?, target, at, &common)?;
        self.whole_elements(call, target, &common)
    }

    /// What both sides have in common.
    #[track_caller]
    pub(super) fn common<T: Element>(
        &self,
        call: &'static str,
        target: Rank,
        at: Section<'_>,
        origin: impl FnOnce(usize) -> Option<usize>,
    ) -> Result<Common> {
        let element = Datatype::of::<T>();
        match at.items(element.items()).or_else(|| origin(element.items())) {
            Some(items) => Ok(Common { element, items }),
            None => {
                let note = "neither side says how many elements; give a range";
                Err(self.error(ErrorKind::LengthMismatch, call).target(target).note(note))
            }
        }
    }

    #[track_caller]
    fn whole_elements(&self, call: &'static str, target: Rank, common: &Common) -> Result<usize> {
        let each = common.element.items();
        match common.items.is_multiple_of(each) {
            true => Ok(common.items / each),
            false => {
                let note = format!("{} items make no whole number of elements of {each}", common.items);
                Err(self.error(ErrorKind::LengthMismatch, call).target(target).note(note))
            }
        }
    }

    #[track_caller]
    pub(super) fn form_of_target<'a>(
        &self,
        call: &'static str,
        there: &Target,
        target: Rank,
        at: Section<'a>,
        common: &Common,
    ) -> Result<Form<'a, *mut u8>> {
        let within = Within { base: there.data, open: Open::Of(there), unit: there.unit };
        self.form(call, target, End::Target, within, at, common)
    }

    #[track_caller]
    pub(super) fn form_of_source<'a, T: Element>(
        &self,
        call: &'static str,
        target: Rank,
        origin: &Source<'a, T>,
        common: &Common,
    ) -> Result<Form<'a, *const u8>> {
        let unit = size_of::<T>();
        let (within, section) = match *origin {
            Source::Slice(slice) => {
                let base = slice.as_ptr().cast::<u8>();
                (Within { base, open: Open::First(size_of_val(slice)), unit }, Section::from(0..slice.len()))
            }
            Source::Strided(slice, section) => {
                (Within { base: slice.as_ptr().cast(), open: Open::First(size_of_val(slice)), unit }, section)
            }
            Source::Typed(memory, datatype) => {
                self.refuse_padding(call, target, &memory, datatype)?;
                let within = Within { base: memory.start, open: Open::First(memory.bytes), unit: 1 };
                (within, Section::from((0, datatype)))
            }
            Source::Own(section) => (self.own_memory(), section),
            Source::Of(handle, section) => (handle.window().own_memory(), section),
        };
        self.form(call, target, End::Origin, within, section, common)
    }

    #[track_caller]
    fn form_of_destination<'a, T: Element>(
        &self,
        call: &'static str,
        target: Rank,
        into: &mut Destination<'a, T>,
        common: &Common,
    ) -> Result<Form<'a, *mut u8>> {
        let unit = size_of::<T>();
        let (within, section) = match into {
            Destination::Slice(slice) => {
                let (base, bytes) = (slice.as_mut_ptr().cast::<u8>(), size_of_val(*slice));
                (Within { base, open: Open::First(bytes), unit }, Section::from(0..slice.len()))
            }
            Destination::Strided(slice, section) => {
                let (base, bytes) = (slice.as_mut_ptr().cast(), size_of_val(*slice));
                (Within { base, open: Open::First(bytes), unit }, *section)
            }
            Destination::Typed(memory, datatype) => {
                let within = Within { base: memory.start, open: Open::First(memory.bytes), unit: 1 };
                (within, Section::from((0, *datatype)))
            }
            Destination::Own(section) => (self.own_memory_mut(call)?, *section),
            Destination::Of(handle, section) => (handle.window().own_memory_mut(call)?, *section),
        };
        self.form(call, target, End::Origin, within, section, common)
    }

    fn own_memory(&self) -> Within<'_, *const u8> {
        let own = &self.targets[self.me];
        Within { base: self.private.cast_const(), open: Open::Of(own), unit: own.unit }
    }

    #[track_caller]
    fn own_memory_mut(&self, call: &'static str) -> Result<Within<'_, *mut u8>> {
        self.refuse_views(call)?;
        let own = &self.targets[self.me];
        Ok(Within { base: self.private, open: Open::Of(own), unit: own.unit })
    }

    /// A section as a tree, inside its memory.
    #[track_caller]
    fn form<'a, P>(
        &self,
        call: &'static str,
        target: Rank,
        end_of: End,
        within: Within<'_, P>,
        section: Section<'a>,
        common: &Common,
    ) -> Result<Form<'a, P>> {
        let element = &common.element;
        let (start, datatype) = match section {
            Section::From(start) => {
                let len = self.whole_elements(call, target, common)?;
                (start, element.contiguous(len).ok().map(Cow::Owned))
            }
            Section::Range(start, stop) => {
                let len = stop.checked_sub(start);
                (start, len.and_then(|len| element.contiguous(len).ok()).map(Cow::Owned))
            }
            Section::Strided(s) => (s.start, element.vector(s.count, s.block, s.stride).ok().map(Cow::Owned)),
            Section::Datatype(start, datatype) => (start, Some(Cow::Borrowed(datatype))),
        };
        let start = start.checked_mul(within.unit);
        if let (Some(start), Some(datatype)) = (start, datatype) {
            let named = datatype.span();
            let end = start.checked_add(named.end);
            if let (End::Target, Some(end)) = (end_of, end) {
                self.learn_region(call, target.index(), &(start.saturating_add(named.start)..end))?;
            }
            if end.is_some_and(|end| within.open.holds(&(start.saturating_add(named.start)..end))) {
                return Ok(Form { base: within.base, start, datatype });
            }
        }
        let span = section.span(common.items / element.items());
        Err(match end_of {
            End::Target => self.faulty(call, target, span, Fault::Bounds),
            End::Origin => self.faulty_origin(call, target, span, Fault::Bounds),
        })
    }

    /// Refuses two sides whose sequences of basic types differ.
    #[track_caller]
    pub(super) fn refuse_disagreement(
        &self,
        call: &'static str,
        target: Rank,
        there: &Datatype,
        here: &Datatype,
    ) -> Result<()> {
        let (kind, note) = match there.agrees(here) {
            Agreement::Same => return Ok(()),
            Agreement::Lengths(there, here) => (
                ErrorKind::LengthMismatch,
                format!("the target section has {there} items of basic types, the origin {here}"),
            ),
            Agreement::Types { item, types: (there, here) } => (
                ErrorKind::DatatypeMismatch,
                format!("item {item} is {there} at the target and {here} at the origin"),
            ),
        };
        Err(self.error(kind, call).target(target).note(note))
    }

    #[track_caller]
    fn refuse_typed_overlap<P>(
        &self,
        call: &'static str,
        target: Rank,
        end: End,
        to: &Form<'_, P>,
    ) -> Result<()> {
        if !to.datatype.overlaps_itself() {
            return Ok(());
        }
        let span = 0..to.datatype.items();
        Err(match end {
            End::Target => self.faulty(call, target, span, Fault::Overlap),
            End::Origin => self.faulty_origin(call, target, span, Fault::Overlap),
        })
    }

    /// Refuses a transfer within the own window that reads a byte that it writes.
    #[track_caller]
    fn refuse_typed_meeting(
        &self,
        call: &'static str,
        target: Rank,
        own: Option<&RawWindow>,
        to: &Form<'_, *mut u8>,
        from: &Form<'_, *const u8>,
    ) -> Result<()> {
        match self.is_within(target, own) && to.datatype.meets(to.start, &from.datatype, from.start) {
            true => {
                let span = |start: usize, named: Range<usize>| start + named.start..start + named.end;
                let (there, here) =
                    (span(to.start, to.datatype.span()), span(from.start, from.datatype.span()));
                Err(self.own_parts_meet(call, target, &there, &here))
            }
            false => Ok(()),
        }
    }

    /// Refuses to send padding: its bytes may never have been written.
    #[track_caller]
    fn refuse_padding(
        &self,
        call: &'static str,
        target: Rank,
        memory: &Memory<'_>,
        datatype: &Datatype,
    ) -> Result<()> {
        if memory.shape.is_dense() {
            return Ok(());
        }
        let mut carries = vec![false; memory.shape.size];
        memory.shape.for_each_item(0, &mut |at, basic| carries[at..at + basic.size()].fill(true));
        let mut bytes = datatype.runs().flat_map(|run| run.at..run.at + run.bytes());
        match bytes.find(|at| !carries[at % carries.len()]) {
            None => Ok(()),
            Some(at) => {
                let note = format!("byte {at} of the origin is padding of {}", memory.shape);
                Err(self.error(ErrorKind::DatatypeMismatch, call).target(target).note(note))
            }
        }
    }

    /// Copies the items of one side to the other.
    ///
    /// # Safety
    ///
    /// As for [`Engine::copy`](crate::transport::shm::copy::Engine::copy), for every item; the sides agree.
    unsafe fn copy_forms(&self, to: &Form<'_, *mut u8>, from: &Form<'_, *const u8>) {
        for (to_run, from_run) in to.runs().zip_stretches(from.runs()) {
            // SAFETY: - in bounds: a stretch of the datatype, which lies inside the memory at the base.
            let target = unsafe { to.base.add(to.start + to_run.at) };
            // SAFETY: - in bounds: as above.
            let origin = unsafe { from.base.add(from.start + from_run.at) };
            // SAFETY: - the caller's promises.
            unsafe { self.engine.copy(target, origin, to_run.bytes()) };
        }
    }
}

impl<P> Form<'_, P> {
    pub(super) fn runs(&self) -> Runs<'_> {
        self.datatype.runs()
    }
}
