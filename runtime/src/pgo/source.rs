//! The originator's side of an event: which memory, in which layout, and where it goes at the target. Never knows the target's
//! memory.
#![forbid(unsafe_code)]

use super::event::{Head, Layout, Way};
use super::raw::{Place, Side};
use crate::element::Element;
use crate::error::ErrorKind;
use crate::op::datatype::Agreement;
use crate::op::{Datatype, Section, Strided, StridedSlice, StridedSliceMut, TypedSlice, TypedSliceMut};

/// What a put takes its data from: a slice, array or vector that is borrowed until the scope's end, or a part of it that
/// [`strided`](crate::strided) or [`typed`](crate::typed) name.
///
/// Only this crate can implement it.
pub trait Source<'scope> {
    #[doc(hidden)]
    fn bring(self) -> Result<Bring<'scope>, Wrong>;
}

/// What a get puts its data into: as [`Source`], but exclusively borrowed.
pub trait Destination<'scope> {
    #[doc(hidden)]
    fn bring(self) -> Result<Bring<'scope>, Wrong>;
}

/// Hides the crate's own description of an origin.
#[doc(hidden)]
pub struct Bring<'scope> {
    pub(super) place: Place<'scope>,
    layout: Layout,
    /// The element; `None` where a datatype names items of memory of any type.
    element: Option<Each>,
    /// How many elements there are.
    count: usize,
}

/// An element type: its datatype and its size.
#[derive(Clone, Copy)]
struct Each {
    datatype: fn() -> Datatype,
    bytes: usize,
}

impl Each {
    fn of<T: Element>() -> Option<Each> {
        Some(Each { datatype: Datatype::of::<T>, bytes: size_of::<T>() })
    }
}

/// What is wrong with a description: the kind and the note.
#[doc(hidden)]
#[derive(Debug)]
pub struct Wrong(pub(super) ErrorKind, pub(super) String);

/// A part of an event at its originator.
pub(super) struct Part<'scope> {
    pub(super) place: Place<'scope>,
    pub(super) layout: Layout,
    pub(super) head: Head,
}

impl<'scope> Part<'scope> {
    pub(super) fn side(&self) -> Side<'_> {
        Side { place: self.place, start: 0, layout: &self.layout }
    }
}

fn elements<T: Element>(place: Place<'_>, count: usize) -> Bring<'_> {
    Bring { place, layout: in_a_row::<T>(count), element: Each::of::<T>(), count }
}

/// The layout of elements in a row, whose padding is left out.
fn in_a_row<T: Element>(count: usize) -> Layout {
    match T::SHAPE.is_dense() {
        true => Layout::Bytes(count * size_of::<T>()),
        // A slice of so many elements exists.
        false => Datatype::of::<T>().contiguous(count).map_or(Layout::Bytes(0), Layout::Typed),
    }
}

fn strided_elements<'a, T: Element>(
    place: Place<'a>,
    len: usize,
    section: Section<'_>,
) -> Result<Bring<'a>, Wrong> {
    if let Section::Datatype(start, datatype) = section {
        let moved = Datatype::structure(&[(start.saturating_mul(size_of::<T>()), datatype.clone())]);
        let moved =
            moved.map_err(|_| Wrong(ErrorKind::OutOfBounds, "the datatype leaves the buffer".to_owned()))?;
        return typed_elements(place, moved);
    }
    let count = match section {
        Section::From(start) => len.saturating_sub(start),
        other => other.len().unwrap_or(0),
    };
    let settled = section.settle(count, size_of::<T>(), size_of::<T>(), len * size_of::<T>());
    let settled = settled.map_err(|fault| Wrong(fault.kind(), format!("the origin has {len} elements")))?;
    let blocks = Datatype::of::<T>()
        .vector(settled.count, settled.block, settled.stride)
        .and_then(|blocks| Datatype::structure(&[(settled.start, blocks)]));
    let blocks =
        blocks.map_err(|_| Wrong(ErrorKind::OutOfBounds, format!("the origin has {len} elements")))?;
    Ok(Bring { place, layout: Layout::Typed(blocks), element: Each::of::<T>(), count })
}

fn typed_elements(place: Place<'_>, datatype: Datatype) -> Result<Bring<'_>, Wrong> {
    if place.bytes() < datatype.span().end {
        let note = format!(
            "the origin has {} bytes, the datatype reaches over {}",
            place.bytes(),
            datatype.span().end
        );
        return Err(Wrong(ErrorKind::OutOfBounds, note));
    }
    let count = datatype.items();
    Ok(Bring { place, layout: Layout::Typed(datatype), element: None, count })
}

macro_rules! sources {
    ($trait:ident: $([$($generics:tt)*] $type:ty, |$this:ident| $bring:expr;)*) => {$(
        impl<$($generics)*> $trait<'scope> for $type {
            fn bring(self) -> Result<Bring<'scope>, Wrong> {
                let $this = self;
                $bring
            }
        }
    )*};
}

sources! { Source:
    ['scope, T: Element] &'scope [T], |this| Ok(elements::<T>(Place::of(this), this.len()));
    ['scope, T: Element, const N: usize] &'scope [T; N], |this| Ok(elements::<T>(Place::of(this.as_slice()), N));
    ['scope, T: Element] &'scope Vec<T>, |this| Ok(elements::<T>(Place::of(this.as_slice()), this.len()));
    ['scope, T: Element] StridedSlice<'scope, '_, T>, |this| {
        let (slice, section) = this.parts();
        strided_elements::<T>(Place::of(slice), slice.len(), section)
    };
    ['scope] TypedSlice<'scope, '_>, |this| {
        let (memory, datatype) = this.parts();
        typed_elements(Place::under(memory), datatype.clone())
    };
}

sources! { Destination:
    ['scope, T: Element] &'scope mut [T], |this| {
        let len = this.len();
        Ok(elements::<T>(Place::of_mut(this), len))
    };
    ['scope, T: Element, const N: usize] &'scope mut [T; N], |this| Ok(elements::<T>(Place::of_mut(this.as_mut_slice()), N));
    ['scope, T: Element] &'scope mut Vec<T>, |this| {
        let len = this.len();
        Ok(elements::<T>(Place::of_mut(this), len))
    };
    ['scope, T: Element] StridedSliceMut<'scope, '_, T>, |this| {
        let (slice, section) = this.parts();
        let len = slice.len();
        strided_elements::<T>(Place::of_mut(slice), len, section)
    };
    ['scope] TypedSliceMut<'scope, '_>, |this| {
        let (memory, datatype) = this.parts();
        typed_elements(Place::under_mut(memory), datatype.clone())
    };
}

impl<'scope> Bring<'scope> {
    /// The place, if all of it is meant, byte after byte.
    #[inline]
    pub(super) fn row(&self) -> Option<Place<'scope>> {
        match self.layout {
            Layout::Bytes(bytes) if bytes == self.place.bytes() => Some(self.place),
            Layout::Bytes(_) | Layout::Typed(_) => None,
        }
    }

    /// Settles where the data lie at the target. Also says whether the two sides differ in basic types.
    pub(super) fn aim(self, way: Way, section: Section<'_>) -> Result<(Part<'scope>, bool), Wrong> {
        let Bring { place, layout, element, count } = self;
        let wrong = |kind, note: &str| Wrong(kind, note.to_owned());
        let too_far = |_| {
            wrong(
                ErrorKind::OutOfBounds,
                "the target section reaches over more bytes than an address can name",
            )
        };
        let counted = |len: usize| match element {
            None => Err(wrong(
                ErrorKind::LengthMismatch,
                "the origin counts in items; give a datatype at the target, too",
            )),
            Some(each) if len == count => Ok(each),
            Some(_) => Err(Wrong(
                ErrorKind::LengthMismatch,
                format!("the target section has {len} elements, the origin {count}"),
            )),
        };
        let (displacement, there) = match section {
            Section::From(start) => (start, Layout::Bytes(layout.size())),
            Section::Range(start, end) if end < start => {
                return Err(wrong(ErrorKind::OutOfBounds, "the target range ends before it begins"));
            }
            Section::Range(start, end) => {
                counted(end - start)?;
                (start, Layout::Bytes(layout.size()))
            }
            Section::Strided(Strided { start, count: blocks, block, stride }) => {
                let each = counted(blocks.saturating_mul(block))?;
                if 1 < blocks && stride < block {
                    return Err(wrong(ErrorKind::OverlappingLayout, "its target blocks overlap"));
                }
                (start, Layout::Typed((each.datatype)().vector(blocks, block, stride).map_err(too_far)?))
            }
            Section::Datatype(start, datatype) => (start, Layout::Typed(datatype.clone())),
        };
        let mismatched = match section {
            Section::Datatype(_, target) => {
                let here = match (&layout, element) {
                    (Layout::Typed(datatype), _) => datatype.clone(),
                    (Layout::Bytes(bytes), Some(each)) => {
                        (each.datatype)().contiguous(bytes / each.bytes).map_err(too_far)?
                    }
                    (Layout::Bytes(_), None) => unreachable!("what has no element has a datatype"),
                };
                match here.agrees(target) {
                    Agreement::Same => false,
                    Agreement::Types { .. } => true,
                    Agreement::Lengths(here, there) => {
                        let note = format!("the target layout has {there} items, the origin {here}");
                        return Err(Wrong(ErrorKind::LengthMismatch, note));
                    }
                }
            }
            _ => false,
        };
        let head = Head { way, displacement: displacement as u64, layout: there };
        Ok((Part { place, layout, head }, mismatched))
    }
}
