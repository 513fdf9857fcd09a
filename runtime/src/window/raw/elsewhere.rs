//! Elements of ranks that share no memory with this one: what of them is asked for, and in which form it travels. Never asks by
//! itself: `remote` does.

use super::RawWindow;
use super::packing::unpack;
use super::remote::RemotePiece;
use super::sides::pieces;
use crate::element::{Basic, Element, OpCode, zeroed};
use crate::error::{Error, ErrorKind, Result};
use crate::op::Source;
use crate::op::section::Section;
use crate::team::Rank;

/// What is combined at a target that shares no memory with this rank: where each piece goes, where it is, and how many elements
/// it has.
type Pieces = std::vec::IntoIter<RemotePiece<*const u8>>;

impl RawWindow {
    /// The error of what is not done over connections.
    #[cold]
    #[track_caller]
    pub(super) fn unserved(&self, call: &'static str, target: Rank, what: &str) -> Error {
        let note = format!("{what}, and rank {target} shares no memory with this one");
        self.error(ErrorKind::System, call).target(target).note(note)
    }

    /// The element that a target has sent.
    pub(super) fn unpacked<T: Element>(&self, packed: &[u8]) -> T {
        let mut value = zeroed::<T>();
        // SAFETY: - writable: a value of this function.
        unsafe { unpack(self.engine, &T::SHAPE, packed, (&raw mut value).cast()) };
        value
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
        let pieces = std::iter::once((offset, (&raw const origin).cast::<u8>(), 1));
        // SAFETY: - readable: a value of this function.
        let before = unsafe { self.fetch_remote(call, target.index(), operation, pieces) }?;
        Ok(self.unpacked(&before))
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
        let offset = at * self.targets[target.index()].unit;
        let (expected, new) = (expected.to_bits(), new.to_bits());
        let before = self.compare_swap_remote(call, target.index(), offset, expected, new)?;
        Ok(T::from_bits(before))
    }

    /// The pieces of an accumulate to a target that shares no memory with this rank, after all checks. They are readable.
    #[track_caller]
    pub(super) fn settle_remote<T: Element>(
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
}
