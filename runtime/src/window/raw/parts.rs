//! Exposures of a part of a window, whose owner keeps the rest. Never lets a transfer, or an access of the owner through the
//! handle, reach outside the part while the owner has the rest as slices.
//!
//! A part is one range of bytes per rank. Whoever is let in by a post of a part, or by a fence of parts, reads the owner's
//! range and keeps it beside the target until its epoch ends; the owner does so at its own entry.
#![forbid(unsafe_code)]

use std::ops::Range;

use super::{Access, RawWindow, Target};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::exposure::Extent;
use crate::team::Rank;

/// A range of bytes of one rank's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Who has what is outside the exposed part of the own memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// Everything is the owner's, or everything is exposed.
    Own,
    /// A part is exposed, and the rest can be lent.
    Kept,
    /// The program has the rest as slices.
    Lent,
}

impl Target {
    /// Whether transfers may name these bytes, of which there are some.
    pub(super) fn opens(&self, named: &Range<usize>) -> bool {
        match (&self.attached, self.part.get()) {
            (Some(attached), None) => self.holds(attached, named),
            _ => {
                let open = self.open_bytes();
                open.start <= named.start && named.end <= open.end
            }
        }
    }

    /// Where the bytes that transfers may name begin and end, in memory that is not attached.
    pub(super) fn open_bytes(&self) -> Range<usize> {
        match self.part.get() {
            None => 0..self.bytes,
            Some(part) => part.start..part.end,
        }
    }

    fn narrow(&self, part: Part) {
        self.part.set(Some(part));
        self.reach.set(0);
        self.unmarked_reach.set(0);
    }

    /// Transfers may name everything.
    pub(super) fn widen(&self) {
        self.part.set(None);
        self.reach.set(if self.remote { 0 } else { self.bytes });
        let needs_more = self.has_mirror() || self.watched.get();
        self.unmarked_reach.set(if needs_more { 0 } else { self.reach.get() });
    }

    /// Transfers pass the hook from now on.
    pub(super) fn watch(&self) {
        self.watched.set(true);
        self.unmarked_reach.set(0);
    }
}

impl RawWindow {
    /// The bytes of a range of elements of the own memory that is to be exposed.
    #[track_caller]
    pub(super) fn own_part<T>(&self, call: &'static str, exposed: &Range<usize>) -> Result<Part> {
        let bytes = self.targets[self.me].bytes;
        let size = size_of::<T>();
        match exposed.start <= exposed.end && exposed.end <= bytes / size {
            true => Ok(Part { start: exposed.start * size, end: exposed.end * size }),
            false => {
                let note = format!("its length is {}", bytes / size);
                let error = self.error(ErrorKind::OutOfBounds, call).target(self.rank());
                Err(error.range(exposed.clone()).note(note))
            }
        }
    }

    /// Says which part of the own memory is exposed next, before anybody is let in.
    pub(super) fn keep_rest(&self, part: Part) {
        self.control(self.me).exposure.0.part.set(part.start as u64, part.end as u64);
        self.targets[self.me].narrow(part);
        self.rest.set(Rest::Kept);
    }

    /// Everything of the own memory is the owner's again.
    pub(super) fn take_rest_back(&self) {
        if self.rest.replace(Rest::Own) != Rest::Own {
            self.forget_part(self.me);
        }
    }

    /// Takes note of the part of a target's memory that is open to this handle, which the target itself has told.
    pub(super) fn learn_remote_part(&self, at: usize, part: Part) {
        let there = &self.targets[at];
        // The owner has checked it; a range that is none would open nothing.
        there.narrow(Part { start: part.start, end: part.end.min(there.bytes) });
    }

    /// Reads what part of a target's memory is open to this handle, which has just been let in.
    pub(super) fn learn_part(&self, at: usize, extent: Extent) {
        match extent {
            Extent::Whole => {}
            Extent::Part => {
                let there = &self.targets[at];
                let (start, end) = self.control(at).exposure.0.part.get();
                // The owner has checked it; a range that is none would open nothing.
                let end = usize::try_from(end).unwrap_or(0).min(there.bytes);
                there.narrow(Part { start: usize::try_from(start).unwrap_or(usize::MAX), end });
            }
        }
    }

    /// Forgets the part at the end of an epoch.
    #[inline]
    pub(super) fn forget_part(&self, at: usize) {
        let there = &self.targets[at];
        if there.part.get().is_some() {
            let is_kept = at == self.me && self.rest.get() != Rest::Own;
            if !is_kept && !self.phase_open.get() && there.access.get() <= Access::Promised {
                there.widen();
            }
        }
    }

    /// Refuses what would give the rest of the own memory to somebody else while the program has it.
    #[inline]
    #[track_caller]
    pub(super) fn refuse_lent(&self, call: &'static str) -> Result<()> {
        match self.rest.get() {
            Rest::Own | Rest::Kept => Ok(()),
            Rest::Lent => Err(self.lent(call)),
        }
    }

    #[cold]
    #[track_caller]
    fn lent(&self, call: &'static str) -> Error {
        let note = "the program has the part of the own window that is not exposed";
        self.error(ErrorKind::EpochStillOpen, call).target(Rank(self.me as u32)).note(note)
    }
}
