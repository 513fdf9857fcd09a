//! Elements of ranks that share no memory with this one: what of them is asked for, and in which form it travels. Never asks by
//! itself: `remote` does.

use super::RawWindow;
use super::sides::pieces;
use crate::element::{Basic, BasicType, Element, OpCode, zeroed};
use crate::error::{Error, ErrorKind, Result};
use crate::op::Source;
use crate::op::section::Section;
use crate::team::Rank;

/// What is combined at a target that shares no memory with this rank: where each piece goes, and its bytes.
type Pieces = std::vec::IntoIter<(usize, Vec<u8>)>;

impl RawWindow {
    /// The basic type of elements that a target is to combine without sharing memory with this rank. The target combines by
    /// instructions, so there is none for other elements, other places and other guards.
    #[track_caller]
    pub(super) fn remote_basic<T: Element>(
        &self,
        call: &'static str,
        target: Rank,
        start: usize,
    ) -> Result<BasicType> {
        match T::SHAPE.as_basic() {
            Some(basic) if self.is_native_kind() && start.is_multiple_of(size_of::<T>()) => Ok(basic),
            _ => {
                let what =
                    "only aligned elements of basic types in a window without guards are combined over TCP";
                Err(self.unserved(call, target, what))
            }
        }
    }

    #[track_caller]
    fn remote_basic_of_one<T: Element>(
        &self,
        call: &'static str,
        target: Rank,
        at: usize,
    ) -> Result<BasicType> {
        let basic = self.remote_basic::<T>(call, target, at * self.targets[target.index()].unit);
        basic.map_err(|error| error.in_range(at..at.saturating_add(1)))
    }

    /// The error of what is not done over connections.
    #[cold]
    #[track_caller]
    pub(super) fn unserved(&self, call: &'static str, target: Rank, what: &str) -> Error {
        let note = format!("{what}, and rank {target} shares no memory with this one");
        self.error(ErrorKind::System, call).target(target).note(note)
    }

    /// The element whose bits a target has sent.
    pub(super) fn element_of_bits<T: Element>(&self, bits: u64) -> T {
        let bytes = bits.to_le_bytes();
        debug_assert!(size_of::<T>() <= bytes.len());
        // SAFETY: - readable: an element of a basic type has no more bytes than a word, see `remote_basic`.
        unsafe { self.read_anywhere(bytes.as_ptr().cast()) }
    }

    /// The bytes of an element, for a target.
    fn bytes_of<T: Element>(&self, from: *const u8, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count * size_of::<T>()];
        let len = bytes.len();
        // SAFETY: - readable: callers stay inside a checked layout, or give a value of their own. - writable: just made so long.
        unsafe { self.engine.copy(bytes.as_mut_ptr(), from, len) };
        bytes
    }

    /// Loads one element of a target that shares no memory with this rank.
    #[cold]
    #[track_caller]
    pub(super) fn get_one_remote<T: Element>(
        &self,
        call: &'static str,
        target: Rank,
        at: usize,
    ) -> Result<T> {
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
    pub(super) fn fetch_one<T: Element>(
        &self,
        call: &'static str,
        target: Rank,
        at: usize,
        operation: OpCode,
        origin: T,
    ) -> Result<T> {
        let offset = at * self.targets[target.index()].unit;
        let basic = self.remote_basic_of_one::<T>(call, target, at)?;
        let bytes = self.bytes_of::<T>((&raw const origin).cast(), 1);
        let pieces = std::iter::once((offset, bytes));
        let before = self.fetch_remote(call, target.index(), (basic, operation), pieces)?;
        match before.first() {
            Some(&before) => Ok(self.element_of_bits(before)),
            None => unreachable!("a reply has as many elements as were asked for"),
        }
    }

    /// Stores `new` in one element of a target that shares no memory with this rank, where `expected` is found.
    #[cold]
    #[track_caller]
    pub(super) fn compare_swap_one<T: Basic>(
        &self,
        call: &'static str,
        target: Rank,
        at: usize,
        expected: T,
        new: T,
    ) -> Result<T> {
        let basic = self.remote_basic_of_one::<T>(call, target, at)?;
        let offset = at * self.targets[target.index()].unit;
        let (expected, new) = (expected.to_bits(), new.to_bits());
        let before = self.compare_swap_remote(call, target.index(), (basic, offset), expected, new)?;
        Ok(T::from_bits(before))
    }

    /// The pieces of an accumulate to a target that shares no memory with this rank, after all checks: where each goes, and its
    /// bytes.
    #[track_caller]
    pub(super) fn settle_remote<T: Element>(
        &self,
        call: &'static str,
        target: Rank,
        at: Section<'_>,
        origin: &Source<'_, T>,
    ) -> Result<(BasicType, Pieces)> {
        if at.is_typed() || origin.is_typed() {
            return Err(self.unserved(call, target, "layouts of run-time datatypes are not moved over TCP"));
        }
        let there = self.admitted(call, target)?;
        let (to, from, len) = self.settle_put(call, there, target, at, origin)?;
        let basic = self.remote_basic::<T>(call, target, to.layout.start)?;
        let pieces: Vec<(usize, Vec<u8>)> = pieces::<T>(&to.layout, &from.layout, len)
            .map(|(to_at, from_at, piece)| {
                (to_at, self.bytes_of::<T>(from.base.wrapping_add(from_at), piece))
            })
            .collect();
        Ok((basic, pieces.into_iter()))
    }
}
