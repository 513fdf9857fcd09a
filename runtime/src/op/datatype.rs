//! Datatypes: what a layout is when the program runs. A tree over basic types that says at which bytes its items lie and in
//! which order they travel. Never knows a window or a buffer.
//!
//! Two sides of a transfer may have different trees; their sequences of basic types must agree, and then the items pair off
//! in order. The tree is walked by [`Runs`], which gives stretches of items of one type that lie next to each other.
#![forbid(unsafe_code)]

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::element::{BasicType, Element, Kind, Shape};
use crate::error::{Error, ErrorKind, Result};

/// Where the items of a transfer lie, in which order they come, and of which basic types they are.
///
/// A datatype begins with [`of`](Datatype::of) an element type and grows by repetition: in a row, at a stride, at listed
/// places, as a part of an array of any dimension, as members of a structure. Its *extent* is how far apart two of them in
/// a row begin. Offsets and strides are never negative.
///
/// Origin and target may use different ones, as long as the sequences of basic types are the same:
///
/// ```
/// use rma::{Datatype, Rank, Window, typed};
/// # rma::spawn(1, |team| {
/// let mut window = Window::<f64>::allocate(team, 100)?;
/// let row: Vec<f64> = (0..8).map(f64::from).collect();
/// // A row of 8 numbers becomes a column of a 10 × 10 matrix.
/// let column = Datatype::of::<f64>().vector(8, 1, 10)?;
/// window.fence(|epoch| epoch.put(Rank(0), (3, &column), &row))?;
/// assert_eq!(window.load(73)?, 7.0);
/// // The upper right quarter, into a buffer of 25 numbers.
/// let quarter = Datatype::of::<f64>().subarray(&[10, 10], &[0..5, 5..10])?;
/// let mut block = [0.0; 25];
/// window.fence(|epoch| epoch.get(Rank(0), (0, &quarter), &mut block))?;
/// # Ok::<(), rma::Error>(())
/// # })?.into_iter().collect::<rma::Result<()>>()?;
/// # Ok::<(), rma::Error>(())
/// ```
#[derive(Clone)]
pub struct Datatype {
    pub(crate) node: Node,
    /// Bytes of all items.
    size: usize,
    extent: usize,
    /// Where the first byte of an item begins, and where the last one ends.
    low: usize,
    reach: usize,
    items: usize,
    /// The basic type of all items, if they are of one.
    uniform: Option<BasicType>,
    /// Whether a byte is named twice; found out when it is first asked.
    overlaps: OnceLock<bool>,
}

/// One level of the tree. Offsets and strides are bytes.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Node {
    /// So many items of one type, next to each other.
    Items(BasicType, usize),
    /// So many copies at a stride.
    Repeat { count: usize, stride: usize, inner: Arc<Node> },
    /// At each offset so many copies at a stride.
    Blocks { blocks: Arc<[(usize, usize)]>, stride: usize, inner: Arc<Node> },
    /// Parts of different kinds, each at its offset.
    Parts(Arc<[(usize, Node)]>),
}

/// How deep datatypes may be nested.
pub(super) const DEPTH_MAX: usize = 64;

/// Sizes and offsets stay below what an address can name.
const BYTES_MAX: usize = isize::MAX as usize;

#[track_caller]
#[cold]
pub(super) fn refuse(kind: ErrorKind, note: impl Into<String>) -> Error {
    Error::new(kind, "datatype").note(note)
}

#[track_caller]
fn counted(number: Option<usize>) -> Result<usize> {
    match number {
        Some(number) if number <= BYTES_MAX => Ok(number),
        _ => Err(refuse(ErrorKind::OutOfBounds, "it reaches over more bytes than an address can name")),
    }
}

impl Datatype {
    /// The datatype of an element type.
    pub fn of<T: Element>() -> Datatype {
        let whole = node_of(&T::SHAPE);
        match Datatype::new(whole, size_of::<T>()) {
            Ok(datatype) => datatype,
            Err(error) => unreachable!("a type of the program has a size: {error}"),
        }
    }

    /// A tree with its numbers, checked.
    #[track_caller]
    pub(super) fn new(node: Node, extent: usize) -> Result<Datatype> {
        let sums = node.sums()?;
        let Sums { items, size, low, reach, uniform, depth } = sums;
        if DEPTH_MAX < depth {
            let note = format!("it is nested {depth} deep, and {DEPTH_MAX} is the most");
            return Err(refuse(ErrorKind::OutOfBounds, note));
        }
        counted(Some(extent))?;
        let uniform = uniform.flatten();
        // What has no items is walked in no time, however often it is repeated.
        let node = if items == 0 { NOTHING } else { node };
        Ok(Datatype { node, size, extent, low, reach, items, uniform, overlaps: OnceLock::new() })
    }

    /// So many of this one in a row.
    ///
    /// # Errors
    /// `OutOfBounds` if it reaches over more bytes than can be counted; so have all functions that build one.
    #[track_caller]
    pub fn contiguous(&self, count: usize) -> Result<Datatype> {
        self.strided(count, self.extent)
    }

    /// `count` blocks of `block` of this one each, whose beginnings are `stride` of this one's extents apart.
    ///
    /// # Errors
    /// As [`contiguous`](Datatype::contiguous).
    #[track_caller]
    pub fn vector(&self, count: usize, block: usize, stride: usize) -> Result<Datatype> {
        let stride = counted(stride.checked_mul(self.extent))?;
        let mut whole = self.contiguous(block)?.strided(count, stride)?;
        whole.extent = match (count, block) {
            (0, _) | (_, 0) => 0,
            _ => counted(
                (count - 1).checked_mul(stride).and_then(|last| last.checked_add(block * self.extent)),
            )?,
        };
        Ok(whole)
    }

    /// So many of this one, at a stride in bytes.
    #[track_caller]
    fn strided(&self, count: usize, stride: usize) -> Result<Datatype> {
        let extent = counted(count.checked_mul(stride))?;
        Datatype::new(repeat(count, stride, &self.node), extent)
    }

    /// This one at each of the listed ranges, which count in this one's extents. The order of the list is the order of the
    /// items.
    ///
    /// # Errors
    /// As [`contiguous`](Datatype::contiguous); also for a range that ends before it begins.
    #[track_caller]
    pub fn indexed(&self, ranges: &[Range<usize>]) -> Result<Datatype> {
        let mut blocks = Vec::with_capacity(ranges.len());
        let mut extent = 0;
        for range in ranges {
            if range.end < range.start {
                let note = format!("the range {}..{} ends before it begins", range.start, range.end);
                return Err(refuse(ErrorKind::OutOfBounds, note));
            }
            extent = extent.max(counted(range.end.checked_mul(self.extent))?);
            if range.start < range.end {
                blocks.push((range.start * self.extent, range.end - range.start));
            }
        }
        let inner = Arc::new(self.node.clone());
        Datatype::new(Node::Blocks { blocks: blocks.into(), stride: self.extent, inner }, extent)
    }

    /// A part of an array: `sizes` are the array's dimensions, slowest first, and `part` has a range in each.
    ///
    /// The extent is that of the whole array.
    ///
    /// # Errors
    /// `LengthMismatch` if there are not as many ranges as dimensions; `OutOfBounds` if a range leaves its dimension; as
    /// [`contiguous`](Datatype::contiguous).
    #[track_caller]
    pub fn subarray(&self, sizes: &[usize], part: &[Range<usize>]) -> Result<Datatype> {
        if sizes.len() != part.len() {
            let note = format!("the array has {} dimensions, the part {}", sizes.len(), part.len());
            return Err(refuse(ErrorKind::LengthMismatch, note));
        }
        let (mut node, mut step, mut start) = (self.node.clone(), self.extent, 0);
        for (dimension, (&size, range)) in sizes.iter().zip(part).enumerate().rev() {
            if range.end < range.start || size < range.end {
                let note = format!(
                    "the range {}..{} leaves dimension {dimension}, whose size is {size}",
                    range.start, range.end
                );
                return Err(refuse(ErrorKind::OutOfBounds, note));
            }
            let whole = counted(step.checked_mul(size))?;
            node = repeat(range.end - range.start, step, &node);
            start += range.start * step; // Below `whole`.
            step = whole;
        }
        Datatype::new(at(start, node), step)
    }

    /// Parts at offsets in bytes, as the members of a structure. The order of the list is the order of the items; the extent
    /// ends where the last part does.
    ///
    /// # Errors
    /// As [`contiguous`](Datatype::contiguous).
    #[track_caller]
    pub fn structure(parts: &[(usize, Datatype)]) -> Result<Datatype> {
        let mut extent = 0;
        for (offset, part) in parts {
            extent = extent.max(counted(offset.checked_add(part.extent))?);
        }
        let parts = parts.iter().map(|(offset, part)| (*offset, part.node.clone()));
        Datatype::new(together(parts.collect()), extent)
    }

    /// The same items with another extent, in bytes: how far apart two in a row begin.
    ///
    /// # Errors
    /// As [`contiguous`](Datatype::contiguous).
    #[track_caller]
    pub fn resized(&self, extent: usize) -> Result<Datatype> {
        Datatype::new(self.node.clone(), extent)
    }

    /// The bytes of its items.
    pub fn size(&self) -> usize {
        self.size
    }

    /// How far apart, in bytes, two in a row begin.
    pub fn extent(&self) -> usize {
        self.extent
    }

    /// How many items it has.
    pub fn items(&self) -> usize {
        self.items
    }

    /// The bytes between its first and its last.
    pub(crate) fn span(&self) -> Range<usize> {
        self.low..self.reach
    }

    /// The basic type of all items, if they are of one.
    pub(crate) fn uniform(&self) -> Option<BasicType> {
        self.uniform
    }

    /// Its items, in stretches.
    pub(crate) fn runs(&self) -> Runs<'_> {
        Runs { stack: vec![Frame { node: &self.node, base: 0, block: 0, index: 0 }] }
    }

    /// How the sequence of basic types compares with another's.
    pub(crate) fn agrees(&self, other: &Datatype) -> Agreement {
        let lengths = match self.items == other.items {
            true => Agreement::Same,
            false => Agreement::Lengths(self.items, other.items),
        };
        if let (Some(here), Some(there)) = (self.uniform, other.uniform) {
            return match here == there {
                true => lengths,
                false => Agreement::Types { item: 0, types: (here, there) },
            };
        }
        let (mut these, mut those) = (self.runs(), other.runs());
        let (mut here, mut there) = (these.next(), those.next());
        let mut item = 0;
        while let (Some(a), Some(b)) = (&mut here, &mut there) {
            if a.basic != b.basic {
                return Agreement::Types { item, types: (a.basic, b.basic) };
            }
            let count = a.count.min(b.count);
            item += count;
            if a.advance(count) {
                here = these.next()
            }
            if b.advance(count) {
                there = those.next()
            }
        }
        lengths
    }

    /// Where whole elements of another datatype begin, if this one is made of nothing else.
    pub(crate) fn places(&self, element: &Datatype) -> Option<Vec<usize>> {
        let items = |datatype: &Datatype| {
            let mut items = Vec::with_capacity(datatype.items);
            for run in datatype.runs() {
                items.extend((0..run.count).map(|i| (run.at + i * run.basic.size(), run.basic)));
            }
            items
        };
        let (mine, pattern) = (items(self), items(element));
        let first = pattern.first()?.0;
        let elements = mine.chunks(pattern.len()).map(|chunk| {
            let start = chunk[0].0.checked_sub(first)?;
            let matches = chunk.len() == pattern.len()
                && chunk.iter().zip(&pattern).all(|(item, wanted)| *item == (start + wanted.0, wanted.1));
            matches.then_some(start)
        });
        elements.collect()
    }

    /// Whether a byte is named twice. To be asked when the datatype is known to lie inside some memory, whose size bounds the
    /// cost.
    pub(crate) fn overlaps_itself(&self) -> bool {
        *self
            .overlaps
            .get_or_init(|| !self.node.is_clear() && (self.reach < self.size || self.finds_overlap()))
    }

    fn finds_overlap(&self) -> bool {
        let mut named = Bytes::new(0..self.reach);
        self.runs().any(|run| named.name(run.range()))
    }

    /// Whether two datatypes in one memory, each at its offset, name a common byte.
    pub(crate) fn meets(&self, at: usize, other: &Datatype, other_at: usize) -> bool {
        let (mine, theirs) = (at..at + self.reach, other_at..other_at + other.reach);
        let common = mine.start.max(theirs.start)..mine.end.min(theirs.end);
        if common.is_empty() || self.size == 0 || other.size == 0 {
            return false;
        }
        let mut named = Bytes::new(common);
        for run in self.runs() {
            named.name(run.range_from(at));
        }
        other.runs().any(|run| named.has(run.range_from(other_at)))
    }
}

impl PartialEq for Datatype {
    fn eq(&self, other: &Datatype) -> bool {
        self.extent == other.extent && self.node == other.node
    }
}

impl Eq for Datatype {}

impl fmt::Debug for Datatype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Datatype { size, extent, items, .. } = self;
        write!(f, "a datatype of {items} items, {size} bytes in an extent of {extent}")
    }
}

/// Which item of two sequences of basic types differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agreement {
    Same,
    /// The shorter is the beginning of the longer.
    Lengths(usize, usize),
    Types {
        item: usize,
        types: (BasicType, BasicType),
    },
}

/// Items of one type that lie next to each other: where they begin, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) at: usize,
    pub(crate) basic: BasicType,
    pub(crate) count: usize,
}

impl Run {
    fn range(&self) -> Range<usize> {
        self.range_from(0)
    }

    /// How many bytes it has.
    pub(crate) fn bytes(&self) -> usize {
        self.count * self.basic.size()
    }

    /// Leaves out the first items, and says whether none is left.
    fn advance(&mut self, count: usize) -> bool {
        self.at += count * self.basic.size();
        self.count -= count;
        self.count == 0
    }

    fn range_from(&self, base: usize) -> Range<usize> {
        base + self.at..base + self.at + self.bytes()
    }
}

/// A walk over a tree.
pub(crate) struct Runs<'a> {
    stack: Vec<Frame<'a>>,
}

struct Frame<'a> {
    node: &'a Node,
    base: usize,
    block: usize,
    index: usize,
}

impl Iterator for Runs<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        loop {
            let frame = self.stack.last_mut()?;
            let (base, index) = (frame.base, frame.index);
            let (node, base) = match frame.node {
                &Node::Items(basic, count) => {
                    self.stack.pop();
                    if count == 0 {
                        continue;
                    }
                    return Some(Run { at: base, basic, count });
                }
                Node::Repeat { count, .. } if index == *count => {
                    self.stack.pop();
                    continue;
                }
                Node::Repeat { stride, inner, .. } => {
                    frame.index += 1;
                    (&**inner, base + index * stride)
                }
                Node::Blocks { blocks, stride, inner } => match (blocks.get(frame.block), &**inner) {
                    (None, _) => {
                        self.stack.pop();
                        continue;
                    }
                    // A block whose copies touch is one stretch.
                    (Some(&(offset, copies)), &Node::Items(basic, count))
                        if *stride == count * basic.size() =>
                    {
                        frame.block += 1;
                        if count * copies == 0 {
                            continue;
                        }
                        return Some(Run { at: base + offset, basic, count: count * copies });
                    }
                    (Some(&(_, copies)), _) if index == copies => {
                        (frame.block, frame.index) = (frame.block + 1, 0);
                        continue;
                    }
                    (Some(&(offset, _)), inner) => {
                        frame.index += 1;
                        (inner, base + offset + index * stride)
                    }
                },
                Node::Parts(parts) => match parts.get(index) {
                    None => {
                        self.stack.pop();
                        continue;
                    }
                    Some((offset, part)) => {
                        frame.index += 1;
                        (part, base + offset)
                    }
                },
            };
            match node {
                Node::Items(_, 0) => {}
                &Node::Items(basic, count) => return Some(Run { at: base, basic, count }),
                node => self.stack.push(Frame { node, base, block: 0, index: 0 }),
            }
        }
    }
}

impl<'a> Runs<'a> {
    /// The stretches that lie next to each other on both sides, of two walks that agree: equal counts of equal types.
    pub(crate) fn zip_stretches<'b>(
        mut self,
        mut other: Runs<'b>,
    ) -> impl Iterator<Item = (Run, Run)> + use<'a, 'b> {
        let (mut mine, mut theirs) = (self.next(), other.next());
        std::iter::from_fn(move || {
            let (Some(here), Some(there)) = (&mut mine, &mut theirs) else { return None };
            let count = here.count.min(there.count);
            let pair = (Run { count, ..*here }, Run { count, ..*there });
            if here.advance(count) {
                mine = self.next()
            }
            if there.advance(count) {
                theirs = other.next()
            }
            Some(pair)
        })
    }
}

struct Sums {
    items: usize,
    size: usize,
    /// Where the first item begins, if there is one; else 0.
    low: usize,
    reach: usize,
    /// `None` without items, `Some(None)` with items of several types.
    uniform: Option<Option<BasicType>>,
    depth: usize,
}

/// A node without items.
pub(super) const NOTHING: Node = Node::Items(BasicType::U8, 0);

impl Node {
    fn sums(&self) -> Result<Sums> {
        let times = |sums: Sums, copies: Option<usize>, first: usize, last: Option<usize>| {
            let copies = counted(copies)?;
            let none = copies == 0 || sums.items == 0;
            Ok(Sums {
                items: counted(sums.items.checked_mul(copies))?,
                size: counted(sums.size.checked_mul(copies))?,
                low: if none { 0 } else { counted(sums.low.checked_add(first))? },
                reach: if none { 0 } else { counted(last.and_then(|last| last.checked_add(sums.reach)))? },
                uniform: sums.uniform.filter(|_| !none),
                depth: sums.depth + 1,
            })
        };
        match self {
            &Node::Items(basic, count) => {
                let size = counted(count.checked_mul(basic.size()))?;
                let uniform = (0 < count).then_some(Some(basic));
                Ok(Sums { items: count, size, low: 0, reach: size, uniform, depth: 1 })
            }
            Node::Repeat { count, stride, inner } => {
                let last = count.saturating_sub(1).checked_mul(*stride);
                times(inner.sums()?, Some(*count), 0, last)
            }
            Node::Blocks { blocks, stride, inner } => {
                let (mut copies, mut last) = (Some(0_usize), Some(0_usize));
                for &(offset, count) in blocks.iter().filter(|&&(_, count)| 0 < count) {
                    copies = copies.and_then(|copies| copies.checked_add(count));
                    let here = (count - 1).checked_mul(*stride).and_then(|reach| reach.checked_add(offset));
                    last = last.zip(here).map(|(last, here)| last.max(here));
                }
                let named = blocks.iter().filter(|&&(_, count)| 0 < count);
                let first = named.map(|&(offset, _)| offset).min().unwrap_or(0);
                times(inner.sums()?, copies, first, last)
            }
            Node::Parts(parts) => {
                let mut all = Sums { items: 0, size: 0, low: 0, reach: 0, uniform: None, depth: 0 };
                for (offset, part) in parts.iter() {
                    let sums = part.sums()?;
                    if 0 < sums.items {
                        let low = counted(offset.checked_add(sums.low))?;
                        all.low = if all.items == 0 { low } else { all.low.min(low) };
                        all.reach = all.reach.max(counted(offset.checked_add(sums.reach))?);
                    }
                    all.items = counted(all.items.checked_add(sums.items))?;
                    all.size = counted(all.size.checked_add(sums.size))?;
                    all.uniform = match (all.uniform, sums.uniform) {
                        (Some(here), Some(there)) => Some(here.filter(|_| here == there)),
                        (here, there) => here.or(there),
                    };
                    all.depth = all.depth.max(sums.depth);
                }
                Ok(Sums { depth: all.depth + 1, ..all })
            }
        }
    }

    /// Whether there is an item.
    pub(super) fn has_items(&self) -> Result<bool> {
        Ok(0 < self.sums()?.items)
    }

    /// Whether it is plain to see that no byte is named twice. `false` says nothing.
    fn is_clear(&self) -> bool {
        self.clear_reach().is_some()
    }

    /// Where the last byte ends, if it is plain to see that none is named twice.
    fn clear_reach(&self) -> Option<usize> {
        match self {
            &Node::Items(basic, count) => Some(count * basic.size()),
            Node::Repeat { .. } => {
                // Nested repetitions name a byte once if each one's stride steps over all that repeat at shorter ones.
                let (mut loops, mut leaf) = (Vec::new(), self);
                while let Node::Repeat { count, stride, inner } = leaf {
                    loops.push((*stride, *count));
                    leaf = inner;
                }
                loops.sort_unstable();
                let mut reach = leaf.clear_reach()?;
                for (stride, count) in loops {
                    match count {
                        0 => return Some(0),
                        1 => {}
                        _ if stride < reach => return None,
                        _ => reach += (count - 1) * stride,
                    }
                }
                Some(reach)
            }
            Node::Blocks { blocks, stride, inner } => {
                let inner = inner.clear_reach()?;
                let mut reach = 0;
                for &(offset, count) in blocks.iter().filter(|&&(_, count)| 0 < count) {
                    if offset < reach || (1 < count && *stride < inner) {
                        return None;
                    }
                    reach = offset + (count - 1) * stride + inner;
                }
                Some(reach)
            }
            Node::Parts(parts) => {
                let mut reach = 0;
                for (offset, part) in parts.iter() {
                    let inner = part.clear_reach()?;
                    if 0 < inner {
                        if *offset < reach {
                            return None;
                        }
                        reach = offset + inner;
                    }
                }
                Some(reach)
            }
        }
    }
}

/// So many copies of a node, as one stretch where they touch.
fn repeat(count: usize, stride: usize, node: &Node) -> Node {
    match *node {
        _ if count == 0 => NOTHING,
        Node::Items(basic, items) if stride == items * basic.size() && items.checked_mul(count).is_some() => {
            Node::Items(basic, items * count)
        }
        _ if count == 1 => node.clone(),
        _ => Node::Repeat { count, stride, inner: Arc::new(node.clone()) },
    }
}

/// A node at an offset.
fn at(offset: usize, node: Node) -> Node {
    match offset {
        0 => node,
        _ => Node::Parts([(offset, node)].into()),
    }
}

/// Parts as one node, those that touch and are of one type as one stretch.
fn together(parts: Vec<(usize, Node)>) -> Node {
    let mut merged: Vec<(usize, Node)> = Vec::with_capacity(parts.len());
    for (offset, node) in parts {
        if let (Some((before, Node::Items(first, count))), &Node::Items(basic, more)) =
            (merged.last_mut(), &node)
            && *first == basic
            && *before + *count * basic.size() == offset
        {
            *count += more;
            continue;
        }
        merged.push((offset, node));
    }
    match merged.as_slice() {
        [(0, node)] => node.clone(),
        _ => Node::Parts(merged.into()),
    }
}

fn node_of(shape: &Shape) -> Node {
    match shape.kind {
        Kind::Basic(basic) => Node::Items(basic, 1),
        Kind::Array(of, count) => repeat(count, of.size, &node_of(of)),
        Kind::Members(members) => {
            together(members.iter().map(|member| (member.offset, node_of(&member.shape))).collect())
        }
    }
}

/// A set of bytes of a range, for the layouts of which it is not plain to see what they name.
struct Bytes {
    within: Range<usize>,
    words: Vec<u64>,
}

impl Bytes {
    fn new(within: Range<usize>) -> Bytes {
        let words = vec![0; within.len().div_ceil(64)];
        Bytes { within, words }
    }

    fn places(&self, range: Range<usize>) -> impl Iterator<Item = (usize, u64)> + use<> {
        let start = self.within.start;
        let range = range.start.max(start)..range.end.min(self.within.end);
        range.map(move |byte| ((byte - start) / 64, 1 << ((byte - start) % 64)))
    }

    /// Adds bytes, and says whether one of them was there.
    fn name(&mut self, range: Range<usize>) -> bool {
        let mut twice = false;
        for (word, bit) in self.places(range) {
            twice |= self.words[word] & bit != 0;
            self.words[word] |= bit;
        }
        twice
    }

    /// Whether one of these bytes is there.
    fn has(&self, range: Range<usize>) -> bool {
        self.places(range).any(|(word, bit)| self.words[word] & bit != 0)
    }
}
