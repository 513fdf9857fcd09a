//! The one error of the crate: a kind, and the coordinates of the call that earned it. Never decides what is
//! an error; callers do, and add context only.
#![forbid(unsafe_code)]

use std::fmt;
use std::io::{self, Write};
use std::ops::Range;
use std::panic::Location;

pub use rma_automaton::ErrorKind;

use crate::rank::Rank;

/// The result of every call of this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Tells the user something on standard error. One that takes nothing, as on a full disk, ends nobody: what has happened shows in
/// the exit status all the same.
pub(crate) fn say(text: fmt::Arguments<'_>) {
    let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// How a rank was lost.
///
/// The first evidence counts: a rank that returned an error and whose process then exits stays
/// [`ReturnedError`](Evidence::ReturnedError).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Evidence {
    /// Its process ended with this exit status without leaving the job in order.
    ProcessExited(i32),
    /// Its process was killed by this signal.
    Signalled(i32),
    /// Its program panicked.
    Panicked,
    /// Its program returned an error.
    ReturnedError,
    /// Its program returned without error while others still need it.
    Finished,
    /// The launcher of the job is gone.
    LauncherGone,
    /// Its connections have closed or broken, and nobody knows why.
    Disconnected,
}

/// The codes of [`Evidence`]: the low byte is one of these, the rest a status or signal number. Codes below the first one
/// are no evidence.
const FINISHED: u32 = 2;
const RETURNED_ERROR: u32 = 3;
const PANICKED: u32 = 4;
const EXITED: u32 = 5;
const SIGNALLED: u32 = 6;
const LAUNCHER_GONE: u32 = 7;
const DISCONNECTED: u32 = 8;

impl Evidence {
    /// The evidence as a number, for shared memory and frames.
    pub(crate) fn code(self) -> u32 {
        match self {
            Evidence::Finished => FINISHED,
            Evidence::ReturnedError => RETURNED_ERROR,
            Evidence::Panicked => PANICKED,
            Evidence::ProcessExited(code) => EXITED | (code.cast_unsigned() << 8),
            Evidence::Signalled(signal) => SIGNALLED | (signal.cast_unsigned() << 8),
            Evidence::LauncherGone => LAUNCHER_GONE,
            Evidence::Disconnected => DISCONNECTED,
        }
    }

    /// The evidence with this number, if it is one.
    pub(crate) fn from_code(code: u32) -> Option<Evidence> {
        let number = (code >> 8).cast_signed();
        Some(match code & 0xff {
            FINISHED => Evidence::Finished,
            RETURNED_ERROR => Evidence::ReturnedError,
            PANICKED => Evidence::Panicked,
            EXITED => Evidence::ProcessExited(number),
            SIGNALLED => Evidence::Signalled(number),
            LAUNCHER_GONE => Evidence::LauncherGone,
            DISCONNECTED => Evidence::Disconnected,
            _ => return None,
        })
    }

    /// Whether the rank has failed, so that its job has.
    pub(crate) fn is_failure(self) -> bool {
        !matches!(self, Evidence::Finished | Evidence::ProcessExited(0))
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Evidence::ProcessExited(code) => write!(f, "its process exited with status {code}"),
            Evidence::Signalled(signal) => write!(f, "its process was killed by signal {signal}"),
            Evidence::Panicked => f.write_str("its program panicked"),
            Evidence::ReturnedError => f.write_str("its program returned an error"),
            Evidence::Finished => f.write_str("its program has already returned"),
            Evidence::LauncherGone => f.write_str("the launcher of the job is gone"),
            Evidence::Disconnected => f.write_str("its connections have closed"),
        }
    }
}

/// Why a call failed: one [`ErrorKind`], and where it happened.
///
/// `Display` is one sentence with coordinates:
///
/// ```text
/// put of elements 1000..1064 on window 3 at rank 2 by rank 0 reaches outside the window: its length is 1024
/// ```
///
/// The coordinates are those of RMA-ERR-01. `Debug` adds the kind and the source location of the call. The ranks in an error are ranks of the team or
/// window that the call was made on.
#[derive(Clone)]
pub struct Error {
    kind: ErrorKind,
    context: Box<Context>,
}

/// The coordinates of a failed call. Fields that do not apply to the call are `None`.
#[derive(Clone)]
#[non_exhaustive]
pub struct Context {
    /// The name of the call.
    pub call: &'static str,
    /// The window that the call was made on.
    pub window: Option<u64>,
    /// The rank that made the call.
    pub caller: Option<Rank>,
    /// The rank that the call was aimed at.
    pub target: Option<Rank>,
    /// The range of the target that the call named, in the units of the call: elements for a typed window.
    pub range: Option<Range<usize>>,
    /// What is known about the other party: its rank, call and range.
    pub other: Option<String>,
    /// The rank that was lost, for [`ErrorKind::PeerLost`].
    pub lost: Option<Rank>,
    /// How the rank was lost, for [`ErrorKind::PeerLost`].
    pub evidence: Option<Evidence>,
    /// The rest of the sentence: limits, lengths, what to do.
    pub note: Option<String>,
    /// The source line that made the call.
    pub location: &'static Location<'static>,
}

impl Error {
    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Where it went wrong.
    pub fn context(&self) -> &Context {
        &self.context
    }
}

// Built inside the crate only. Every step takes and returns the error, so that a call site reads as one expression.
impl Error {
    #[cold]
    #[track_caller]
    pub(crate) fn new(kind: ErrorKind, call: &'static str) -> Error {
        let context = Context {
            call,
            window: None,
            caller: None,
            target: None,
            range: None,
            other: None,
            lost: None,
            evidence: None,
            note: None,
            location: Location::caller(),
        };
        Error { kind, context: Box::new(context) }
    }

    pub(crate) fn window(self, id: u64) -> Error {
        self.with(|context| context.window = Some(id))
    }

    pub(crate) fn caller(self, caller: Rank) -> Error {
        self.with(|context| context.caller = Some(caller))
    }

    pub(crate) fn target(self, target: Rank) -> Error {
        self.with(|context| context.target = Some(target))
    }

    pub(crate) fn range(self, range: Range<usize>) -> Error {
        self.with(|context| context.range = Some(range))
    }

    /// As [`range`](Error::range), for an error that does not say it yet.
    pub(crate) fn in_range(self, range: Range<usize>) -> Error {
        self.with(|context| {
            context.range.get_or_insert(range);
        })
    }

    pub(crate) fn other(self, other: impl Into<String>) -> Error {
        let other = other.into();
        self.with(|context| context.other = Some(other))
    }

    pub(crate) fn lost(self, rank: Rank) -> Error {
        self.with(|context| context.lost = Some(rank))
    }

    pub(crate) fn evidence(self, evidence: Evidence) -> Error {
        self.with(|context| context.evidence = Some(evidence))
    }

    pub(crate) fn note(self, note: impl Into<String>) -> Error {
        let note = note.into();
        self.with(|context| context.note = Some(note))
    }

    /// The source line of the call, where the error is built away from it.
    pub(crate) fn called_at(self, location: &'static Location<'static>) -> Error {
        self.with(|context| context.location = location)
    }

    fn with(mut self, change: impl FnOnce(&mut Context)) -> Error {
        change(&mut self.context);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let context = &*self.context;
        f.write_str(context.call)?;
        if let Some(range) = &context.range {
            write!(f, " of elements {}..{}", range.start, range.end)?
        }
        if let Some(id) = context.window {
            write!(f, " on window {id}")?
        }
        if let Some(rank) = context.target {
            write!(f, " at rank {rank}")?
        }
        if let Some(rank) = context.caller {
            write!(f, " by rank {rank}")?
        }
        match (context.lost, context.evidence) {
            (Some(rank), Some(evidence)) => write!(f, " lost rank {rank}: {evidence}")?,
            (None, Some(evidence)) => write!(f, " {}: {evidence}", phrase(self.kind))?,
            _ => write!(f, " {}", phrase(self.kind))?,
        }
        if let Some(other) = &context.other {
            write!(f, ", against {other}")?
        }
        match &context.note {
            Some(note) => write!(f, ": {note}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self} (called at {})", self.kind, self.context.location)
    }
}

impl std::error::Error for Error {}

/// The predicate of the sentence whose subject is the call.
fn phrase(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::RankOutOfRange => "names a rank that is not in the team",
        ErrorKind::OutOfBounds => "reaches outside the window",
        ErrorKind::WindowFreed => "uses a window that has been freed",
        ErrorKind::BadDispUnit => "has a displacement unit of zero",
        ErrorKind::DatatypeMismatch => "differs in basic types between origin and target",
        ErrorKind::LengthMismatch => "differs in length between origin and target",
        ErrorKind::OverlappingLayout => "has a target layout that names a byte twice",
        ErrorKind::TransferOutsideEpoch => "has no access epoch or lock for its target",
        ErrorKind::StartNested => "finds the access epoch toward its target already open",
        ErrorKind::CompleteWithoutStart => "finds no open access epoch",
        ErrorKind::EpochStillOpen => "finds an epoch still open",
        ErrorKind::AlreadyPosted => "finds the window already posted",
        ErrorKind::WaitWithoutPost => "finds the window not posted",
        ErrorKind::NotInGroup => "comes from a rank that is not in the posted group",
        ErrorKind::CountExceeded => "counts another number of origins than come",
        ErrorKind::NotPosted => "promised a posted window, but the window is not posted",
        ErrorKind::LockHeld => "finds the lock already held by its caller",
        ErrorKind::NotLocked => "finds no lock held by its caller",
        ErrorKind::NoCheckConflict => "promised that no lock conflicts, but one does",
        ErrorKind::MixedSync => "overlaps with another synchronization style on the window",
        ErrorKind::OriginBufferBusy => "touches an origin buffer whose operation is not complete",
        ErrorKind::StoreDuringUpdate => "is a store that no synchronization orders with a remote update",
        ErrorKind::ConflictingAccess => "conflicts with a concurrent access to the same location",
        ErrorKind::AccumulateMismatch => "differs in operation or type from a concurrent accumulate",
        ErrorKind::UndefinedRead => "reads a location without a unique last write",
        ErrorKind::UnsafeLocalRead => "reads before the call that makes a remote update visible",
        ErrorKind::CollectiveMismatch => "met a different collective call",
        ErrorKind::Stalled => "passed its time limit",
        ErrorKind::PeerLost => "lost a rank that it needs",
        ErrorKind::Poisoned => "is refused after an earlier failure",
        ErrorKind::System => "was refused by the operating system",
        ErrorKind::Launch => "could not start the job",
        ErrorKind::Protocol => "met a malformed or foreign message",
        ErrorKind::BadEvents => "has an events mask that does not fit its count",
        ErrorKind::CountAnyNotAllowed => "uses COUNT_ANY where it is not legal",
        ErrorKind::EventNotOffered => "is an event of a kind that no offer allows",
        ErrorKind::OutsideOffer => "reaches outside the offered range",
        ErrorKind::OverlappingReference => "names a byte that another event of the offer names",
        ErrorKind::LocalAccessDuringOffer => "touches an offered range locally",
        ErrorKind::DanglingCombine => "leaves a chain of combined events open",
        ErrorKind::CombineMismatch => "mixes puts and gets in a chain",
        ErrorKind::NotOffered => "promised a waiting offer, but there is none",
        ErrorKind::StaleNode => "names a node that has been deleted",
        ErrorKind::NotFound => "found nothing",
        ErrorKind::BadInfo => "was given a hint that it cannot read",
        ErrorKind::NeedsAgent => "needs an agent that serves its target, and the job has none",
        ErrorKind::HeapFull => "found no free node",
        _ => "failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_a_sentence_with_coordinates() {
        let error = Error::new(ErrorKind::OutOfBounds, "put")
            .window(3)
            .target(Rank(2))
            .caller(Rank(0))
            .range(1000..1064)
            .note("its length is 1024");
        assert_eq!(
            error.to_string(),
            "put of elements 1000..1064 on window 3 at rank 2 by rank 0 reaches outside the window: its length is 1024"
        );
        assert!(format!("{error:?}").starts_with("OutOfBounds: put of elements"));
        assert!(error.context().location.file().ends_with("error.rs"));
    }

    #[test]
    fn evidence_survives_as_a_number() {
        for evidence in [
            Evidence::Finished,
            Evidence::ReturnedError,
            Evidence::Panicked,
            Evidence::ProcessExited(0),
            Evidence::ProcessExited(255),
            Evidence::Signalled(9),
            Evidence::LauncherGone,
            Evidence::Disconnected,
        ] {
            assert_eq!(Evidence::from_code(evidence.code()), Some(evidence));
        }
        assert_eq!([0, 1, 9, 255].map(Evidence::from_code), [None; 4]);
    }

    #[test]
    fn a_lost_peer_is_named_with_its_evidence() {
        let error = Error::new(ErrorKind::PeerLost, "barrier")
            .caller(Rank(0))
            .lost(Rank(2))
            .evidence(Evidence::Signalled(9));
        assert_eq!(error.to_string(), "barrier by rank 0 lost rank 2: its process was killed by signal 9");
        assert_eq!(error.context().evidence, Some(Evidence::Signalled(9)));
        assert_eq!(error.context().lost, Some(Rank(2)));
    }
}
