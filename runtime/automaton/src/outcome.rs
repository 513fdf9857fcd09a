//! What a call can do: lead to a state or earn an error. Never names a state or a call of its own.

use crate::{ErrorKind, State, StateSet};

/// One result of one call in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// The call is legal and leads to this state (which may be the one it started from).
    Next(State),
    /// The call is refused with this kind; the state stays as it was.
    Error(ErrorKind),
}

/// The possible results of a call: exactly one when all inputs that matter are known, more when not.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Outcomes {
    next: StateSet,
    errors: ErrorSet,
}

/// A set of error kinds, as bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ErrorSet {
    bits: u64,
}

impl Outcomes {
    /// No result: the call does not exist in the dialect, or there was no state to start from.
    pub const NONE: Outcomes = Outcomes { next: StateSet::EMPTY, errors: ErrorSet::EMPTY };

    /// The states that the call can lead to.
    pub const fn next(self) -> StateSet {
        self.next
    }

    /// The errors that the call can earn.
    pub const fn errors(self) -> ErrorSet {
        self.errors
    }

    /// Whether no outcome is legal and at least one is an error: then the call is wrong whatever is unknown.
    pub const fn must_err(self) -> bool {
        self.next.is_empty() && !self.errors.is_empty()
    }

    /// Whether some outcome is an error.
    pub const fn may_err(self) -> bool {
        !self.errors.is_empty()
    }

    /// The outcome, if there is exactly one.
    pub fn only(self) -> Option<Outcome> {
        let mut outcomes = self.iter();
        match (outcomes.next(), outcomes.next()) {
            (only, None) => only,
            _ => None,
        }
    }

    /// The outcomes that are in either set.
    #[must_use]
    pub const fn union(self, other: Outcomes) -> Outcomes {
        Outcomes { next: self.next.union(other.next), errors: self.errors.union(other.errors) }
    }

    /// Whether the outcome is in the set.
    pub const fn contains(self, outcome: Outcome) -> bool {
        match outcome {
            Outcome::Next(state) => self.next.contains(state),
            Outcome::Error(kind) => self.errors.contains(kind),
        }
    }

    /// This set and one outcome more.
    #[must_use]
    pub const fn with(self, outcome: Outcome) -> Outcomes {
        match outcome {
            Outcome::Next(state) => Outcomes { next: self.next.with(state), errors: self.errors },
            Outcome::Error(kind) => Outcomes { next: self.next, errors: self.errors.with(kind) },
        }
    }

    /// The outcomes: states in a fixed order, then errors.
    pub fn iter(self) -> impl Iterator<Item = Outcome> {
        self.next.iter().map(Outcome::Next).chain(self.errors.iter().map(Outcome::Error))
    }
}

impl FromIterator<Outcome> for Outcomes {
    fn from_iter<I: IntoIterator<Item = Outcome>>(outcomes: I) -> Outcomes {
        outcomes.into_iter().fold(Outcomes::NONE, Outcomes::with)
    }
}

impl core::fmt::Debug for Outcomes {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl ErrorSet {
    /// No error.
    pub const EMPTY: ErrorSet = ErrorSet { bits: 0 };

    /// The set of one kind.
    pub const fn of(kind: ErrorKind) -> ErrorSet {
        ErrorSet::EMPTY.with(kind)
    }

    /// This set and one kind more.
    #[must_use]
    pub const fn with(self, kind: ErrorKind) -> ErrorSet {
        ErrorSet { bits: self.bits | 1 << kind as u64 }
    }

    /// The kinds that are in either set.
    #[must_use]
    pub const fn union(self, other: ErrorSet) -> ErrorSet {
        ErrorSet { bits: self.bits | other.bits }
    }

    /// Whether the kind is in the set.
    pub const fn contains(self, kind: ErrorKind) -> bool {
        self.bits >> kind as u64 & 1 == 1
    }

    /// Whether there is no kind in the set.
    pub const fn is_empty(self) -> bool {
        self.bits == 0
    }

    /// The kinds of the set, in the order of the list.
    pub fn iter(self) -> impl Iterator<Item = ErrorKind> {
        ErrorKind::ALL.into_iter().filter(move |&kind| self.contains(kind))
    }
}

impl core::fmt::Debug for ErrorSet {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// How code may touch the caller's own window memory.
///
/// Ordered from the freest to the strictest, so that the rule for several possible states is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LocalAccess {
    /// Ordinary loads and stores: no peer can touch the bytes.
    Plain,
    /// Volatile accesses: a peer may touch the window.
    Volatile,
    /// Volatile, and right only for bytes that no unordered update concerns (see
    /// [`Inputs::unordered`](crate::Inputs::unordered)); otherwise this error.
    VolatileUnless(ErrorKind),
    /// Refused with this error.
    Forbidden(ErrorKind),
}
