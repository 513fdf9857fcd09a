//! Which elements of a window, or of a buffer, a transfer names. Never knows how long the window is.
#![forbid(unsafe_code)]

use std::ops::{Range, RangeInclusive};

use super::Datatype;
use crate::error::{Error, ErrorKind};

/// `count` blocks of `block` elements each, whose beginnings are `stride` elements apart; the first begins at `start`.
///
/// A column of a row-major array of `rows` rows and `cols` columns is
/// `Strided { start: column, count: rows, block: 1, stride: cols }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Strided {
    /// Where the first block begins.
    pub start: usize,
    /// How many blocks there are.
    pub count: usize,
    /// How many elements a block has.
    pub block: usize,
    /// How far apart two blocks begin.
    pub stride: usize,
}

/// The elements of one side of a transfer, in displacements of the side's window or elements of its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Section<'a> {
    /// From here on, as many as the other side has.
    From(usize),
    /// From the first up to, not including, the second.
    Range(usize, usize),
    /// Blocks at a fixed distance.
    Strided(Strided),
    /// What a datatype names, which begins at a displacement.
    Datatype(usize, &'a Datatype),
}

impl<'a> From<(usize, &'a Datatype)> for Section<'a> {
    #[inline(always)]
    fn from((start, datatype): (usize, &'a Datatype)) -> Section<'a> {
        Section::Datatype(start, datatype)
    }
}

impl From<usize> for Section<'_> {
    #[inline(always)]
    fn from(start: usize) -> Self {
        Section::From(start)
    }
}

impl From<Range<usize>> for Section<'_> {
    #[inline(always)]
    fn from(range: Range<usize>) -> Self {
        Section::Range(range.start, range.end)
    }
}

impl From<RangeInclusive<usize>> for Section<'_> {
    #[inline(always)]
    fn from(range: RangeInclusive<usize>) -> Self {
        Section::Range(*range.start(), range.end().saturating_add(1))
    }
}

impl From<Strided> for Section<'_> {
    #[inline(always)]
    fn from(strided: Strided) -> Self {
        Section::Strided(strided)
    }
}

/// A section whose length is settled: where it begins in bytes, and its blocks in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) start: usize,
    pub(crate) count: usize,
    pub(crate) block: usize,
    pub(crate) stride: usize,
}

/// What is wrong with a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It has this many elements, the other side another number.
    Length(usize),
    /// It ends, or one of its numbers lies, outside the memory.
    Bounds,
    /// It names an element twice.
    Overlap,
}

impl Fault {
    /// The kind of error that the fault is.
    pub(crate) fn kind(self) -> ErrorKind {
        match self {
            Fault::Length(_) => ErrorKind::LengthMismatch,
            Fault::Bounds => ErrorKind::OutOfBounds,
            Fault::Overlap => ErrorKind::OverlappingLayout,
        }
    }
}

impl Section<'_> {
    /// The number of elements, where the section itself says so. `None` if it depends on the other side.
    pub(crate) fn len(&self) -> Option<usize> {
        match *self {
            Section::From(_) => None,
            Section::Range(start, end) => Some(end.saturating_sub(start)),
            Section::Strided(strided) => Some(strided.count.saturating_mul(strided.block)),
            Section::Datatype(..) => None,
        }
    }

    /// The displacements that the section reaches over, for messages.
    pub(crate) fn span(&self, len: usize) -> Range<usize> {
        match *self {
            Section::From(start) => start..start.saturating_add(len),
            Section::Range(start, end) => start..end,
            Section::Strided(s) if s.count == 0 => s.start..s.start,
            Section::Strided(s) => {
                let last = (s.count - 1).saturating_mul(s.stride).saturating_add(s.block);
                s.start..s.start.saturating_add(last)
            }
            Section::Datatype(start, datatype) => start..start.saturating_add(datatype.items()),
        }
    }

    /// An error of a transfer that names this section of its target, with the displacements, as far as somebody says how many
    /// elements there are.
    #[cold]
    pub(crate) fn located(&self, error: Error, other_side: Option<usize>) -> Error {
        let len = match self {
            Section::Datatype(_, datatype) => Some(datatype.items()),
            _ => self.len().or(other_side),
        };
        match len {
            Some(len) => error.in_range(self.span(len)),
            None => error,
        }
    }

    /// The number of items of basic types, where the section itself says so; `each` are in an element.
    pub(crate) fn items(&self, each: usize) -> Option<usize> {
        match self {
            Section::Datatype(_, datatype) => Some(datatype.items()),
            _ => self.len().map(|len| len.saturating_mul(each)),
        }
    }

    /// The section, if it borrows no datatype.
    pub(crate) fn plain(&self) -> Option<Section<'static>> {
        match *self {
            Section::From(start) => Some(Section::From(start)),
            Section::Range(start, end) => Some(Section::Range(start, end)),
            Section::Strided(strided) => Some(Section::Strided(strided)),
            Section::Datatype(..) => None,
        }
    }

    /// Whether it counts in items of a datatype, not in elements.
    #[inline(always)]
    pub(crate) fn is_typed(&self) -> bool {
        matches!(self, Section::Datatype(..))
    }

    /// Settles the section, which counts in elements, for `len` elements of `size` bytes in `bytes` bytes of memory with this displacement unit.
    pub(crate) fn settle(&self, len: usize, size: usize, unit: usize, bytes: usize) -> Result<Layout, Fault> {
        let own = self.len().unwrap_or(len);
        if own != len {
            return Err(Fault::Length(own));
        }
        let (start, count, block, stride) = match *self {
            Section::From(start) => (start, 1, len, len),
            // A reversed range is a mistake, not an empty section.
            Section::Range(start, end) if end < start => return Err(Fault::Bounds),
            Section::Range(start, _) => (start, 1, len, len),
            // More elements than can be counted: a small stride would let them pass as few bytes.
            Section::Strided(s) if s.count.checked_mul(s.block).is_none() => return Err(Fault::Bounds),
            Section::Strided(s) => (s.start, s.count, s.block, s.stride),
            Section::Datatype(..) => unreachable!("what counts in items is settled elsewhere"),
        };
        let reach = match (count, block) {
            (0, _) | (_, 0) => Some(0),
            _ => (count - 1).checked_mul(stride).and_then(|last| last.checked_add(block)),
        };
        let start = start.checked_mul(unit).ok_or(Fault::Bounds)?;
        let reach = reach.and_then(|reach| reach.checked_mul(size)).ok_or(Fault::Bounds)?;
        if bytes < start || bytes - start < reach {
            return Err(Fault::Bounds);
        }
        Ok(Layout { start, count, block, stride })
    }
}

impl Layout {
    /// Whether an element is named twice.
    pub(crate) fn overlaps_itself(&self) -> bool {
        1 < self.count && 0 < self.block && self.stride < self.block
    }

    /// The bytes between the first and the last element.
    pub(crate) fn span(&self, size: usize) -> Range<usize> {
        match (self.count, self.block) {
            (0, _) | (_, 0) => self.start..self.start,
            _ => self.start..self.start + ((self.count - 1) * self.stride + self.block) * size,
        }
    }

    /// Whether two layouts in one memory name a common byte.
    pub(crate) fn meets(&self, other: &Layout, size: usize) -> bool {
        let (mine, theirs) = (self.span(size), other.span(size));
        if mine.is_empty() || theirs.is_empty() || mine.end <= theirs.start || theirs.end <= mine.start {
            return false;
        }
        // Both sides ascend, so whichever range ends first meets nothing that comes later on the other side.
        let (mut mine, mut theirs) = (self.ranges(size), other.ranges(size));
        let (mut a, mut b) = (mine.next(), theirs.next());
        while let (Some(here), Some(there)) = (&a, &b) {
            if here.start < there.end && there.start < here.end {
                return true;
            }
            match here.end <= there.end {
                true => a = mine.next(),
                false => b = theirs.next(),
            }
        }
        false
    }

    /// The byte ranges that the layout names, ascending and apart from each other.
    pub(crate) fn ranges(&self, size: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let Layout { start, count, block, stride } = *self;
        // Blocks that touch or overlap are one range.
        let (count, len) = match stride <= block {
            true => (count.min(1), self.span(size).len()),
            false => (count, block * size),
        };
        (0..count).map(move |i| {
            let start = start + i * stride * size;
            start..start + len
        })
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn sections_settle_or_say_why_not() {
        let settle = |section: Section<'_>, len| section.settle(len, 8, 8, 80);
        assert!(settle(3.into(), 7).is_ok());
        assert_eq!(settle(4.into(), 7), Err(Fault::Bounds));
        assert_eq!(settle((2..5).into(), 4), Err(Fault::Length(3)));
        assert_eq!(settle(Section::Range(5, 2), 0), Err(Fault::Bounds));
        assert_eq!(settle((usize::MAX / 4).into(), 1), Err(Fault::Bounds));
        assert_eq!(settle(10.into(), 0).map(|layout| layout.start), Ok(80));
        assert_eq!(settle(11.into(), 0), Err(Fault::Bounds));
        let column = Strided { start: 1, count: 3, block: 1, stride: 4 };
        assert!(settle(column.into(), 3).is_ok());
        assert_eq!(settle(Strided { count: 4, ..column }.into(), 4), Err(Fault::Bounds));
        assert_eq!(settle(Strided { stride: usize::MAX, ..column }.into(), 3), Err(Fault::Bounds));
        let endless = Strided { start: 0, count: usize::MAX, block: 2, stride: 0 };
        assert_eq!(settle(endless.into(), usize::MAX), Err(Fault::Bounds));
    }

    #[test]
    fn the_unit_scales_the_displacement_only() {
        let layout = Section::from(2).settle(1, 8, 24, 72).unwrap();
        assert_eq!((layout.start, layout.block), (48, 1));
    }

    #[test]
    fn common_bytes_are_those_of_a_table() {
        const SIZE: usize = 2;
        let bytes = |layout: &Layout| {
            let mut named = [false; 64];
            for block in 0..layout.count {
                let start = layout.start + block * layout.stride * SIZE;
                named[start..start + layout.block * SIZE].fill(true);
            }
            named
        };
        let numbers = |most: usize| 0..=most;
        let layouts: Vec<Layout> = numbers(4)
            .flat_map(|start| numbers(3).map(move |count| (start, count)))
            .flat_map(|(start, count)| numbers(2).map(move |block| (start, count, block)))
            .flat_map(|(start, count, block)| {
                numbers(3).map(move |stride| Layout { start, count, block, stride })
            })
            .collect();
        for a in &layouts {
            let named = bytes(a);
            for b in &layouts {
                let common = named.iter().zip(bytes(b)).any(|(&a, b)| a && b);
                assert_eq!(a.meets(b, SIZE), common, "{a:?} and {b:?}");
            }
        }
    }

    #[test]
    fn common_bytes_are_found() {
        let even = Layout { start: 0, count: 4, block: 1, stride: 2 };
        let odd = Layout { start: 8, ..even };
        assert!(!even.meets(&odd, 8));
        assert!(even.meets(&Layout { start: 16, count: 1, block: 2, stride: 2 }, 8));
        assert!(!even.meets(&Layout { start: 8, count: 1, block: 1, stride: 1 }, 8));
        // As many blocks as to take minutes pair by pair.
        let many = Layout { start: 0, count: 1 << 20, block: 1, stride: 2 };
        assert!(!many.meets(&Layout { start: 8, ..many }, 8));
        assert!(Layout { stride: 0, ..even }.overlaps_itself());
        assert!(!Layout { stride: 0, count: 1, ..even }.overlaps_itself());
    }
}
