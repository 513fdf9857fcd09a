//! What a transfer is made of, apart from its target: sections, origins, destinations, results. Never moves a byte.
#![forbid(unsafe_code)]

pub(crate) mod section;

pub use section::{Section, Strided};

use crate::element::Element;

/// What a put or accumulate takes its data from.
///
/// - a borrowed slice, array or vector, which must outlive the scope of the epoch;
/// - an owned array or vector, or a single element;
/// - [`strided`] elements of a slice;
/// - a section of the caller's own window, see [`own`].
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
    /// Strided private memory.
    Strided(&'a [T], Section),
    /// A section of the caller's own window.
    Own(Section),
}

/// Where a transfer's data go to.
pub(crate) enum Destination<'a, T> {
    /// Private memory.
    Slice(&'a mut [T]),
    /// Strided private memory.
    Strided(&'a mut [T], Section),
    /// A section of the caller's own window.
    Own(Section),
}

impl<T> Source<'_, T> {
    /// The number of elements, unless the other side says it.
    #[inline(always)]
    pub(crate) fn len(&self) -> Option<usize> {
        match self {
            Source::Slice(slice) => Some(slice.len()),
            Source::Strided(slice, section) => Some(section.len().unwrap_or(slice.len())),
            Source::Own(section) => section.len(),
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
            Destination::Own(section) => section.len(),
        }
    }
}

/// A section of the caller's own window as origin or destination. See [`own`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own(Section);

/// A section of the caller's own window as origin of a put or accumulate, or destination of a get.
#[inline(always)]
pub fn own(section: impl Into<Section>) -> Own {
    Own(section.into())
}

/// Some elements of a slice. See [`strided`].
#[derive(Clone, Copy, Debug)]
pub struct StridedSlice<'a, T> {
    elements: &'a [T],
    section: Section,
}

/// Some elements of a mutable slice. See [`strided_mut`].
#[derive(Debug)]
pub struct StridedSliceMut<'a, T> {
    elements: &'a mut [T],
    section: Section,
}

/// The elements of a slice that a section names, as origin.
pub fn strided<T>(elements: &[T], section: impl Into<Section>) -> StridedSlice<'_, T> {
    StridedSlice { elements, section: section.into() }
}

/// The elements of a mutable slice that a section names, as destination.
pub fn strided_mut<T>(elements: &mut [T], section: impl Into<Section>) -> StridedSliceMut<'_, T> {
    StridedSliceMut { elements, section: section.into() }
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
    ['scope, T: Element] StridedSlice<'scope, T>, |this| Source::Strided(this.elements, this.section);
    ['scope, T: Element] Own, |this| Source::Own(this.0);
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
    ['scope, T: Element] StridedSliceMut<'scope, T>, |this| Destination::Strided(this.elements, this.section);
    ['scope, T: Element] Own, |this| Destination::Own(this.0);
}
