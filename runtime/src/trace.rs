//! What calls a window has seen, for tests, tools and the checker. Never on the path of a window that nobody watches: each
//! call tests one flag of its window and passes a cold hook if it is up.
#![forbid(unsafe_code)]

use std::ops::Range;
use std::panic::Location;

use crate::rank::Rank;

/// One call on a traced window.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// The name of the call.
    pub call: &'static str,
    /// The window's number.
    pub window: u64,
    /// The rank that made the call.
    pub caller: Rank,
    /// The rank that the call was aimed at, if any.
    pub target: Option<Rank>,
    /// The displacements at the target that the call names, if any.
    pub range: Option<Range<usize>>,
    /// The source line of the call.
    pub location: &'static Location<'static>,
}

/// The most events that a window keeps; later ones are counted only.
pub(crate) const EVENTS_MAX: usize = 1 << 20;
