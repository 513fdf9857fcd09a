//! What epochs are opened with: what the caller knows, whom it lets in, how many it waits for. Never decides anything.
#![forbid(unsafe_code)]

use crate::sync::state_word::Sharing;
use crate::team::Rank;

/// Whether a lock is shared with other shared holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// No other rank holds the lock (EXCLUSIVE, LOCK_EXCLUSIVE).
    #[doc(alias("EXCLUSIVE", "LOCK_EXCLUSIVE"))]
    Exclusive,
    /// Other ranks may hold it shared (SHARED, LOCK_SHARED).
    #[doc(alias("SHARED", "LOCK_SHARED"))]
    Shared,
}

/// Whom an exposure admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origins<'a> {
    /// Every rank of the window's team.
    Any,
    /// These ranks, each once; naming one twice makes no difference.
    Group(&'a [Rank]),
}

/// How many origins end an exposure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Every member of the posted group.
    All,
    /// This many different origins.
    Count(usize),
}

impl LockKind {
    pub(super) fn sharing(self) -> Sharing {
        match self {
            LockKind::Exclusive => Sharing::Exclusive,
            LockKind::Shared => Sharing::Shared,
        }
    }
}

impl From<LockKind> for rma_automaton::LockKind {
    fn from(kind: LockKind) -> rma_automaton::LockKind {
        match kind {
            LockKind::Exclusive => rma_automaton::LockKind::Exclusive,
            LockKind::Shared => rma_automaton::LockKind::Shared,
        }
    }
}
