//! The kinds of error that the calls of this project can earn. Never formats a message: the caller knows the context.

/// What went wrong, after the table "Error kinds" of `docs/spec/README.md`.
///
/// One list for every program of the project: the runtime returns these kinds, the macros refuse programs with
/// them at compile time, and a linter can name them in its findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A rank is not in the team.
    RankOutOfRange,
    /// A transfer or a local access reaches outside the window.
    OutOfBounds,
    /// The window has been freed.
    WindowFreed,
    /// A displacement unit is zero.
    BadDispUnit,
    /// The basic types of origin and target disagree.
    DatatypeMismatch,
    /// The numbers of elements at origin and target disagree.
    LengthMismatch,
    /// A target layout names a byte twice.
    OverlappingLayout,
    /// A transfer without access epoch or lock for its target.
    TransferOutsideEpoch,
    /// START toward a target whose access epoch is already open.
    StartNested,
    /// COMPLETE without an open access epoch.
    CompleteWithoutStart,
    /// An epoch is still open where none may be: at free, finalize or another epoch's opening.
    EpochStillOpen,
    /// POST on a window that is posted.
    AlreadyPosted,
    /// WAIT on a window that is not posted.
    WaitWithoutPost,
    /// The origin is not in the posted group.
    NotInGroup,
    /// More origins came than the WAIT counts.
    CountExceeded,
    /// A NOCHECK epoch met a window that was not posted.
    NotPosted,
    /// A lock is already held by the caller.
    LockHeld,
    /// UNLOCK without a lock.
    NotLocked,
    /// A NOCHECK lock met a conflicting lock.
    NoCheckConflict,
    /// Two synchronization styles overlap on one window.
    MixedSync,
    /// An origin buffer was touched before its operation was complete.
    OriginBufferBusy,
    /// A store and an RMA update of one window are not ordered.
    StoreDuringUpdate,
    /// Two accesses, at least one an update, are concurrent on one location.
    ConflictingAccess,
    /// Concurrent accumulates differ in operation or basic type.
    AccumulateMismatch,
    /// No unique last write precedes the read.
    UndefinedRead,
    /// A local read before the call that makes a remote update visible.
    UnsafeLocalRead,
    /// The ranks disagree in a collective call.
    CollectiveMismatch,
    /// The time limit of a blocking call passed.
    Stalled,
    /// A rank that the call needs has died, failed or left.
    PeerLost,
    /// The window is out of use after `Stalled`, `PeerLost` or a broken collective.
    Poisoned,
    /// The operating system refused a request.
    System,
    /// The job could not start.
    Launch,
    /// A malformed, foreign or unauthenticated message.
    Protocol,
    /// An offer's events mask does not fit its count.
    BadEvents,
    /// COUNT_ANY where it is not legal.
    CountAnyNotAllowed,
    /// An event of a kind that no offer allows.
    EventNotOffered,
    /// An event reaches outside the offered range.
    OutsideOffer,
    /// Two events of one offer name one byte.
    OverlappingReference,
    /// The offered range was touched locally during the offer.
    LocalAccessDuringOffer,
    /// A chain of combined events was left open.
    DanglingCombine,
    /// A chain mixes puts and gets.
    CombineMismatch,
    /// A ready event met no waiting offer.
    NotOffered,
    /// A linked-list node has been deleted meanwhile.
    StaleNode,
    /// A linked-list search found nothing.
    NotFound,
    /// The linked list's heap has no free node.
    HeapFull,
    /// A hint of an info value is malformed.
    BadInfo,
    /// The call needs somebody who serves its target, and the job has nobody.
    NeedsAgent,
}

impl ErrorKind {
    /// Every kind, in the order of the list.
    pub const ALL: [ErrorKind; 47] = [
        ErrorKind::RankOutOfRange,
        ErrorKind::OutOfBounds,
        ErrorKind::WindowFreed,
        ErrorKind::BadDispUnit,
        ErrorKind::DatatypeMismatch,
        ErrorKind::LengthMismatch,
        ErrorKind::OverlappingLayout,
        ErrorKind::TransferOutsideEpoch,
        ErrorKind::StartNested,
        ErrorKind::CompleteWithoutStart,
        ErrorKind::EpochStillOpen,
        ErrorKind::AlreadyPosted,
        ErrorKind::WaitWithoutPost,
        ErrorKind::NotInGroup,
        ErrorKind::CountExceeded,
        ErrorKind::NotPosted,
        ErrorKind::LockHeld,
        ErrorKind::NotLocked,
        ErrorKind::NoCheckConflict,
        ErrorKind::MixedSync,
        ErrorKind::OriginBufferBusy,
        ErrorKind::StoreDuringUpdate,
        ErrorKind::ConflictingAccess,
        ErrorKind::AccumulateMismatch,
        ErrorKind::UndefinedRead,
        ErrorKind::UnsafeLocalRead,
        ErrorKind::CollectiveMismatch,
        ErrorKind::Stalled,
        ErrorKind::PeerLost,
        ErrorKind::Poisoned,
        ErrorKind::System,
        ErrorKind::Launch,
        ErrorKind::Protocol,
        ErrorKind::BadEvents,
        ErrorKind::CountAnyNotAllowed,
        ErrorKind::EventNotOffered,
        ErrorKind::OutsideOffer,
        ErrorKind::OverlappingReference,
        ErrorKind::LocalAccessDuringOffer,
        ErrorKind::DanglingCombine,
        ErrorKind::CombineMismatch,
        ErrorKind::NotOffered,
        ErrorKind::StaleNode,
        ErrorKind::NotFound,
        ErrorKind::HeapFull,
        ErrorKind::BadInfo,
        ErrorKind::NeedsAgent,
    ];
}

// `ErrorSet` keeps one bit for each kind.
const _: () = assert!(ErrorKind::ALL.len() <= u64::BITS as usize);
