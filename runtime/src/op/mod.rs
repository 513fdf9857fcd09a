//! What a transfer is made of, apart from its target: sections, origins, destinations, results. Never moves a byte.
#![forbid(unsafe_code)]

mod buffer;
pub(crate) mod datatype;
mod encoding;
pub(crate) mod section;

use std::any::Any;
use std::marker::PhantomData;

pub use buffer::Buffer;
pub use datatype::Datatype;
pub use section::{Section, Strided};

use crate::element::{Element, Shape};

/// What a put or accumulate takes its data from.
///
/// - a borrowed slice, array or vector, which must outlive the scope of the epoch;
/// - an owned array or vector, or a single element;
/// - [`strided`] elements of a slice, or what a [datatype](typed) names of it;
/// - a section of the caller's part of the same window, see [`own`], or of another one, see [`Window::own`](crate::Window::own).
///
/// The lifetime is the epoch's: a buffer can't be changed before the epoch has ended. Only this crate can implement the
/// trait, as nothing else can make a `SourceOf`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the origin of a transfer into a window of `{T}`",
    label = "neither `{T}` nor a buffer of `{T}`",
    note = "an origin is a value, an array, a slice or a vector of the window's element type, or a part of the own window"
)]
pub trait Origin<'scope, T: Element> {
    #[doc(hidden)]
    fn source(&self) -> SourceOf<'_, T>;
}

/// What a get puts its data into: as for [`Origin`], but exclusively borrowed.
///
/// The lifetime is the epoch's: a buffer can't be touched before the epoch has ended. Only this crate can implement the
/// trait, as nothing else can make a `DestinationOf`.
pub trait OriginMut<'scope, T: Element> {
    #[doc(hidden)]
    fn destination(&mut self) -> DestinationOf<'_, T>;
}

/// Hides the crate's own description of an origin.
#[doc(hidden)]
pub struct SourceOf<'a, T>(pub(crate) Source<'a, T>);

/// Hides the crate's own description of a destination.
#[doc(hidden)]
pub struct DestinationOf<'a, T>(pub(crate) Destination<'a, T>);

/// Where a transfer's data come from.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a, T> {
    /// Private memory.
    Slice(&'a [T]),
    /// A section of private memory.
    Strided(&'a [T], Section<'a>),
    /// What a datatype names of private memory.
    Typed(Memory<'a>, &'a Datatype),
    /// A section of the caller's own window.
    Own(Section<'a>),
    /// A section of the caller's part of a window that is named.
    Of(Handle<'a>, Section<'a>),
}

/// Where a transfer's data go to.
pub(crate) enum Destination<'a, T> {
    /// Private memory.
    Slice(&'a mut [T]),
    /// A section of private memory.
    Strided(&'a mut [T], Section<'a>),
    /// What a datatype names of private memory.
    Typed(MemoryMut<'a>, &'a Datatype),
    /// A section of the caller's own window.
    Own(Section<'a>),
    /// A section of the caller's part of a window that is named.
    Of(Handle<'a>, Section<'a>),
}

/// The handle of a window, which only `window` can look into: that module is above this one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handle<'w>(pub(crate) &'w dyn Any);

/// Borrowed elements of any type, as bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory<'a> {
    pub(crate) start: *const u8,
    pub(crate) bytes: usize,
    /// What is in it, over and over.
    pub(crate) shape: &'static Shape,
    borrowed: PhantomData<&'a [u8]>,
}

/// Exclusively borrowed elements of any type, as bytes.
#[derive(Debug)]
pub(crate) struct MemoryMut<'a> {
    pub(crate) start: *mut u8,
    pub(crate) bytes: usize,
    borrowed: PhantomData<&'a mut [u8]>,
}

impl<T> Source<'_, T> {
    /// The number of elements, unless the other side says it.
    #[inline(always)]
    pub(crate) fn len(&self) -> Option<usize> {
        match self {
            Source::Slice(slice) => Some(slice.len()),
            Source::Strided(slice, section) => Some(section.len().unwrap_or(slice.len())),
            Source::Typed(..) => None,
            Source::Own(section) | Source::Of(_, section) => section.len(),
        }
    }

    /// The number of items of basic types, unless the other side says it; `each` are in an element.
    pub(crate) fn items(&self, each: usize) -> Option<usize> {
        match self {
            Source::Typed(_, datatype) => Some(datatype.items()),
            Source::Own(section) | Source::Of(_, section) => section.items(each),
            Source::Strided(_, section) if section.is_typed() => section.items(each),
            Source::Slice(_) | Source::Strided(..) => self.len().map(|len| len.saturating_mul(each)),
        }
    }

    /// Whether it counts in items of a datatype, not in elements.
    pub(crate) fn is_typed(&self) -> bool {
        match self {
            Source::Slice(_) => false,
            Source::Typed(..) => true,
            Source::Strided(_, section) | Source::Own(section) | Source::Of(_, section) => section.is_typed(),
        }
    }
}

impl<T> Destination<'_, T> {
    /// The number of elements, unless the other side says it.
    #[inline(always)]
    pub(crate) fn len(&self) -> Option<usize> {
        match self {
            Destination::Slice(slice) => Some(slice.len()),
            Destination::Strided(slice, section) => Some(section.len().unwrap_or(slice.len())),
            Destination::Typed(..) => None,
            Destination::Own(section) | Destination::Of(_, section) => section.len(),
        }
    }

    /// The number of items of basic types, unless the other side says it; `each` are in an element.
    pub(crate) fn items(&self, each: usize) -> Option<usize> {
        match self {
            Destination::Typed(_, datatype) => Some(datatype.items()),
            Destination::Own(section) | Destination::Of(_, section) => section.items(each),
            Destination::Strided(_, section) if section.is_typed() => section.items(each),
            Destination::Slice(_) | Destination::Strided(..) => {
                self.len().map(|len| len.saturating_mul(each))
            }
        }
    }

    /// Whether it counts in items of a datatype, not in elements.
    pub(crate) fn is_typed(&self) -> bool {
        match self {
            Destination::Slice(_) => false,
            Destination::Typed(..) => true,
            Destination::Strided(_, section) | Destination::Own(section) | Destination::Of(_, section) => {
                section.is_typed()
            }
        }
    }
}

/// A section of the caller's own window as origin or destination. See [`own`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own<'a>(Section<'a>);

/// A section of the caller's own window as origin of a put or accumulate, or destination of a get.
#[inline(always)]
pub fn own<'a>(section: impl Into<Section<'a>>) -> Own<'a> {
    Own(section.into())
}

/// A section of the caller's part of a window, as origin or destination of transfers of any window with such elements. See
/// [`Window::own`](crate::Window::own).
#[derive(Debug)]
pub struct OwnOf<'w, 'd, T> {
    window: Handle<'w>,
    section: Section<'d>,
    elements: PhantomData<T>,
}

impl<'w, 'd, T> OwnOf<'w, 'd, T> {
    /// What a window of these elements has there.
    #[inline(always)]
    pub(crate) fn new(window: Handle<'w>, section: Section<'d>) -> OwnOf<'w, 'd, T> {
        OwnOf { window, section, elements: PhantomData }
    }
}

/// Some elements of a slice. See [`strided`].
#[derive(Clone, Copy, Debug)]
pub struct StridedSlice<'a, 'd, T> {
    elements: &'a [T],
    section: Section<'d>,
}

/// Some elements of a mutable slice. See [`strided_mut`].
#[derive(Debug)]
pub struct StridedSliceMut<'a, 'd, T> {
    elements: &'a mut [T],
    section: Section<'d>,
}

/// The elements of a slice that a section names, as origin.
pub fn strided<'a, 'd, T>(elements: &'a [T], section: impl Into<Section<'d>>) -> StridedSlice<'a, 'd, T> {
    StridedSlice { elements, section: section.into() }
}

/// The elements of a mutable slice that a section names, as destination.
pub fn strided_mut<'a, 'd, T>(
    elements: &'a mut [T],
    section: impl Into<Section<'d>>,
) -> StridedSliceMut<'a, 'd, T> {
    StridedSliceMut { elements, section: section.into() }
}

/// What a datatype names of a slice, whose elements need not be those of the window. See [`typed`].
#[derive(Clone, Copy, Debug)]
pub struct TypedSlice<'a, 'd> {
    memory: Memory<'a>,
    datatype: &'d Datatype,
}

/// What a datatype names of a mutable slice. See [`typed_mut`].
#[derive(Debug)]
pub struct TypedSliceMut<'a, 'd> {
    memory: MemoryMut<'a>,
    datatype: &'d Datatype,
}

/// What a datatype names of a slice, from its beginning on, as origin. The datatype is used by the call only. The basic types are compared with the target's when the
/// transfer is made.
pub fn typed<'a, 'd, U: Element>(elements: &'a [U], datatype: &'d Datatype) -> TypedSlice<'a, 'd> {
    let (start, bytes) = (elements.as_ptr().cast(), size_of_val(elements));
    TypedSlice {
        memory: Memory { start, bytes, shape: const { &U::SHAPE }, borrowed: PhantomData },
        datatype,
    }
}

/// What a datatype names of a mutable slice, from its beginning on, as destination.
pub fn typed_mut<'a, 'd, U: Element>(elements: &'a mut [U], datatype: &'d Datatype) -> TypedSliceMut<'a, 'd> {
    let (start, bytes) = (elements.as_mut_ptr().cast(), size_of_val(elements));
    TypedSliceMut { memory: MemoryMut { start, bytes, borrowed: PhantomData }, datatype }
}

impl<'a, 'd> TypedSlice<'a, 'd> {
    pub(crate) fn parts(self) -> (Memory<'a>, &'d Datatype) {
        (self.memory, self.datatype)
    }
}

impl<'a, 'd> TypedSliceMut<'a, 'd> {
    pub(crate) fn parts(self) -> (MemoryMut<'a>, &'d Datatype) {
        (self.memory, self.datatype)
    }
}

impl<'a, 'd, T> StridedSlice<'a, 'd, T> {
    pub(crate) fn parts(self) -> (&'a [T], Section<'d>) {
        (self.elements, self.section)
    }
}

impl<'a, 'd, T> StridedSliceMut<'a, 'd, T> {
    pub(crate) fn parts(self) -> (&'a mut [T], Section<'d>) {
        (self.elements, self.section)
    }
}

macro_rules! origins {
    ($([$($generics:tt)*] $type:ty, |$this:ident| $source:expr;)*) => {$(
        impl<$($generics)*> Origin<'scope, T> for $type {
            #[inline(always)]
            fn source(&self) -> SourceOf<'_, T> {
                let $this = self;
                SourceOf($source)
            }
        }
    )*};
}

origins! {
    ['scope, T: Element] &'scope [T], |this| Source::Slice(this);
    ['scope, T: Element] &'scope mut [T], |this| Source::Slice(this);
    ['scope, T: Element, const N: usize] &'scope [T; N], |this| Source::Slice(this.as_slice());
    ['scope, T: Element] &'scope Vec<T>, |this| Source::Slice(this.as_slice());
    ['scope, T: Element] Vec<T>, |this| Source::Slice(this.as_slice());
    ['scope, T: Element, const N: usize] [T; N], |this| Source::Slice(this.as_slice());
    ['scope, T: Element] T, |this| Source::Slice(std::slice::from_ref(this));
    ['scope, T: Element] StridedSlice<'scope, '_, T>, |this| Source::Strided(this.elements, this.section);
    ['scope, T: Element] TypedSlice<'scope, '_>, |this| Source::Typed(this.memory, this.datatype);
    ['scope, T: Element] Own<'_>, |this| Source::Own(this.0);
    ['scope, T: Element] OwnOf<'_, '_, T>, |this| Source::Of(this.window, this.section);
}

macro_rules! destinations {
    ($([$($generics:tt)*] $type:ty, |$this:ident| $destination:expr;)*) => {$(
        impl<$($generics)*> OriginMut<'scope, T> for $type {
            #[inline(always)]
            fn destination(&mut self) -> DestinationOf<'_, T> {
                let $this = self;
                DestinationOf($destination)
            }
        }
    )*};
}

destinations! {
    ['scope, T: Element] &'scope mut [T], |this| Destination::Slice(this);
    ['scope, T: Element, const N: usize] &'scope mut [T; N], |this| Destination::Slice(this.as_mut_slice());
    ['scope, T: Element] &'scope mut Vec<T>, |this| Destination::Slice(this);
    ['scope, T: Element] &'scope mut T, |this| Destination::Slice(std::slice::from_mut(this));
    ['scope, T: Element] StridedSliceMut<'scope, '_, T>, |this| Destination::Strided(this.elements, this.section);
    ['scope, T: Element] TypedSliceMut<'scope, '_>, |this| Destination::Typed(
        MemoryMut { borrowed: PhantomData, ..this.memory },
        this.datatype,
    );
    ['scope, T: Element] Own<'_>, |this| Destination::Own(this.0);
    ['scope, T: Element] OwnOf<'_, '_, T>, |this| Destination::Of(this.window, this.section);
}
