//! The table of legal calls. Never looks at an argument: those checks are in `step.rs`, after the cell is found.
//!
//! Two halves, because a window has two sides at every rank. [`origin`] has a row for each call and a column for each
//! thing the caller can have open as origin; [`owner`] has the same rows and a column for each exposure of the caller's
//! own memory. A call is legal if no cell of its two rows refuses it. The text at the end of a row names the
//! requirements that the row transcribes; a row whose cells nothing in the requirements fixes says `silent`, and the
//! crate's documentation holds the decision.
//!
//! Cells of both halves:
//!
//! | cell | meaning |
//! |---|---|
//! | `____` | nothing changes and nothing stands against the call |
//! | `MIXED` | `MixedSync`: another style is open |
//! | `STILL` | `EpochStillOpen` |
//!
//! Cells of the origin half:
//!
//! | cell | meaning |
//! |---|---|
//! | `BEGIN` | what the call opens is open now |
//! | `CLOSE` | what the call closes is closed now |
//! | `LEVEL` | one level of several is closed; the last one closes it (input `ends`) |
//! | `INNER` | an inner lock: refused with `LockHeld` unless it is NOCHECK |
//! | `HERE_` | what the call needs is open here |
//! | `MISS_` | what the call needs is not open here; if it is nowhere, the call earns the error at the head of its row |
//! | `OWN_M`, `OWN_S` | `MIXED` or `STILL` if the lock that is held is one of the caller's own window |
//! | `NESTD`, `HELD_` | `StartNested`, `LockHeld` |
//!
//! Cells of the owner half:
//!
//! | cell | meaning |
//! |---|---|
//! | `PRIV_`, `POST_`, `POSTG`, `VREAD`, `VWRIT`, `VPOST`, `FNEW_`, `FGET_`, `FPUT_`, `OFFER`, `GONE_`, `BROKE` | the exposure is now `Private`, `Posted`, `PostedGets`, `ViewRead`, `ViewWrite`, `ViewPosted`, `FenceUnused`, `FenceReading`, `FenceUpdating`, `Offered`, `Freed`, `Poisoned` |
//! | `STALE` | the exposure is now `Stale`, unless the caller's own checked exclusive lock keeps peers out |
//! | `LPRIV`, `LPOSG` | as `PRIV_` and `POSTG`, if the call ends the last of several (input `ends`) |
//! | `IMPOR` | `PRIV_` if the call names the caller's own window (input `own`), since it imports then |
//! | `OWN_M`, `OWN_S` | `MIXED` or `STILL` if the call names the caller's own window (input `own`) |
//! | `S_OR_` | `STILL` if the call names the caller's own window (input `own`), `MIXED` if not |
//! | `TWICE`, `UNPOS`, `UNOFF`, `UNVIE`, `CONFL`, `LOCAL`, `DEAD_`, `OUT__` | `AlreadyPosted`, `WaitWithoutPost`, `NotOffered`, `NotLocked`, `ConflictingAccess`, `LocalAccessDuringOffer`, `WindowFreed`, `Poisoned` |

use crate::Assertion::{Both as NoBoth, NoPrecede, NoSucceed, None as NoAssertion};
use crate::Dialect::{Mpi, Seed};
use crate::Toward::{Another, Both, This};
use crate::{Call, Dialect, ErrorKind, ExposureState, LocalAccess, LocalOp, Permit, Transfer};

/// One row of the origin half.
pub(crate) struct OriginRow {
    /// The error of a call that needs something open and finds `MISS_` and no `HERE_`, `CLOSE` or `LEVEL`.
    pub(crate) missing: ErrorKind,
    /// By what is open toward the tracked target: nothing, START, LOCK, LOCK_ALL.
    pub(crate) access: [OriginCell; 4],
    /// By what is open toward other targets: nothing, START, LOCK.
    pub(crate) elsewhere: [OriginCell; 3],
    /// The requirements behind the row.
    pub(crate) requirements: &'static str,
}

/// One row of the owner half: a cell for each exposure, in the order of `ExposureState::ALL`.
pub(crate) struct OwnerRow {
    pub(crate) exposure: [OwnerCell; 13],
    /// The requirements behind the row.
    pub(crate) requirements: &'static str,
}

/// One cell of the origin half. The module's documentation explains each.
#[derive(Clone, Copy)]
pub(crate) enum OriginCell {
    Keep,
    Open,
    Close,
    CloseLast,
    Nest,
    Present,
    Absent,
    ErrorIfOwn(ErrorKind),
    Error(ErrorKind),
}

/// One cell of the owner half. The module's documentation explains each.
#[derive(Clone, Copy)]
pub(crate) enum OwnerCell {
    Keep,
    Become(ExposureState),
    BecomeIfLast(ExposureState),
    BecomeStale,
    ImportIfOwn,
    ErrorIfOwn(ErrorKind),
    ErrorBySide { own: ErrorKind, peer: ErrorKind },
    Error(ErrorKind),
}

/// The origin half's row for a call that exists in the dialect.
#[rustfmt::skip]
pub(crate) const fn origin(dialect: Dialect, call: Call) -> OriginRow {
    use ErrorKind::{CompleteWithoutStart as UNSTARTED, NotLocked as UNLOCKED, TransferOutsideEpoch as OUTSIDE};
    use OriginCell::{Absent, Close, CloseLast, Error, ErrorIfOwn, Keep, Nest, Open, Present};
    const ____ : OriginCell = Keep;
    const BEGIN: OriginCell = Open;
    const CLOSE: OriginCell = Close;
    const LEVEL: OriginCell = CloseLast;
    const INNER: OriginCell = Nest;
    const HERE_: OriginCell = Present;
    const MISS_: OriginCell = Absent;
    const MIXED: OriginCell = Error(ErrorKind::MixedSync);
    const STILL: OriginCell = Error(ErrorKind::EpochStillOpen);
    const NESTD: OriginCell = Error(ErrorKind::StartNested);
    const HELD_: OriginCell = Error(ErrorKind::LockHeld);
    const OWN_M: OriginCell = ErrorIfOwn(ErrorKind::MixedSync);
    const OWN_S: OriginCell = ErrorIfOwn(ErrorKind::EpochStillOpen);

    const fn row(access: [OriginCell; 4], elsewhere: [OriginCell; 3], requirements: &'static str) -> OriginRow {
        need(ErrorKind::Protocol, access, elsewhere, requirements) // Rows without MISS_ never show the kind.
    }
    const fn need(
        missing: ErrorKind, access: [OriginCell; 4], elsewhere: [OriginCell; 3], requirements: &'static str,
    ) -> OriginRow {
        OriginRow { missing, access, elsewhere, requirements }
    }

    match (dialect, call) {
        //                                                        toward the tracked target      toward others
        // call                                                   none   start  lock   all       none   start  lock
        (_,    Call::Fence(_))               => row(            [____ , MIXED, MIXED, MIXED], [____ , MIXED, MIXED], "RMA-BAR-08"),
        (_,    Call::RmaBarrier)             => row(            [____ , MIXED, MIXED, MIXED], [____ , MIXED, MIXED], "RMA-BAR-08"),
        (_,    Call::Barrier)                => row(            [____ , ____ , ____ , ____ ], [____ , ____ , ____ ], "RMA-BAR-04"),
        (Seed, Call::Start(This, _))         => row(            [BEGIN, NESTD, MIXED, MIXED], [____ , ____ , MIXED], "RMA-SYNC-07 RMA-SYNC-08 RMA-LOCK-14"),
        (Seed, Call::Start(Another, _))      => row(            [____ , ____ , MIXED, MIXED], [BEGIN, ____ , MIXED], "RMA-SYNC-08 RMA-LOCK-14"),
        (Seed, Call::Start(Both, _))         => row(            [BEGIN, NESTD, MIXED, MIXED], [BEGIN, ____ , MIXED], "RMA-SYNC-07 RMA-SYNC-20 RMA-LOCK-14"),
        (Mpi,  Call::Start(This, _))         => row(            [BEGIN, NESTD, MIXED, MIXED], [____ , NESTD, MIXED], "RMA-SYNC-07 RMA-LOCK-14 MPI"),
        (Mpi,  Call::Start(Another, _))      => row(            [____ , NESTD, MIXED, MIXED], [BEGIN, NESTD, MIXED], "RMA-SYNC-07 RMA-LOCK-14 MPI"),
        (Mpi,  Call::Start(Both, _))         => row(            [BEGIN, NESTD, MIXED, MIXED], [BEGIN, NESTD, MIXED], "RMA-SYNC-07 RMA-LOCK-14 MPI"),
        (_,    Call::Complete(This))         => need(UNSTARTED, [MISS_, CLOSE, MISS_, MISS_], [____ , ____ , ____ ], "RMA-SYNC-05 RMA-SYNC-07"),
        (_,    Call::Complete(Another))      => need(UNSTARTED, [____ , ____ , ____ , ____ ], [MISS_, LEVEL, MISS_], "RMA-SYNC-05 RMA-SYNC-08"),
        (_,    Call::Complete(Both))         => need(UNSTARTED, [MISS_, CLOSE, MISS_, MISS_], [MISS_, CLOSE, MISS_], "RMA-SYNC-07 RMA-SYNC-20"),
        (Seed, Call::Post(_))                => row(            [____ , ____ , MIXED, MIXED], [____ , ____ , MIXED], "RMA-SYNC-14 RMA-LOCK-14"),
        (Mpi,  Call::Post(_))                => row(            [____ , ____ , OWN_M, MIXED], [____ , ____ , ____ ], "RMA-LOCK-14 MPI"),
        (_,    Call::Wait(_) | Call::Test(_)) => row(            [____ , ____ , ____ , ____ ], [____ , ____ , ____ ], "RMA-SYNC-09 RMA-SYNC-10"),
        (Seed, Call::Lock(This, ..))         => row(            [BEGIN, MIXED, INNER, HELD_], [____ , MIXED, ____ ], "RMA-LOCK-01 RMA-LOCK-12 RMA-LOCK-14"),
        (Mpi,  Call::Lock(This, ..))         => row(            [BEGIN, MIXED, HELD_, HELD_], [____ , MIXED, ____ ], "RMA-LOCK-12 RMA-LOCK-14 MPI"),
        (_,    Call::Lock(..))               => row(            [____ , MIXED, ____ , HELD_], [BEGIN, MIXED, ____ ], "RMA-LOCK-01 RMA-LOCK-14"),
        (Seed, Call::Unlock(This))           => need(UNLOCKED,  [MISS_, MISS_, LEVEL, MISS_], [____ , ____ , ____ ], "RMA-LOCK-12 RMA-LOCK-13"),
        (Mpi,  Call::Unlock(This))           => need(UNLOCKED,  [MISS_, MISS_, CLOSE, MISS_], [____ , ____ , ____ ], "RMA-LOCK-13 MPI"),
        (_,    Call::Unlock(_))              => need(UNLOCKED,  [____ , ____ , ____ , ____ ], [MISS_, MISS_, LEVEL], "RMA-LOCK-13"),
        (_,    Call::LockAll)                => row(            [BEGIN, MIXED, HELD_, HELD_], [____ , MIXED, HELD_], "RMA-LOCK-14 silent"),
        (_,    Call::UnlockAll)              => need(UNLOCKED,  [MISS_, MISS_, MISS_, CLOSE], [____ , ____ , ____ ], "RMA-LOCK-13 silent"),
        (_,    Call::Flush(This))            => need(UNLOCKED,  [MISS_, MISS_, HERE_, HERE_], [____ , ____ , ____ ], "silent"),
        (_,    Call::Flush(_))               => need(UNLOCKED,  [____ , ____ , ____ , HERE_], [MISS_, MISS_, HERE_], "silent"),
        (_,    Call::Sync)                   => row(            [____ , ____ , ____ , ____ ], [____ , ____ , ____ ], "silent"),
        (_,    Call::Transfer(This, _))      => need(OUTSIDE,   [MISS_, HERE_, HERE_, HERE_], [____ , ____ , ____ ], "RMA-SYNC-25 RMA-COMM-14"),
        (_,    Call::Transfer(..))           => need(OUTSIDE,   [____ , ____ , ____ , HERE_], [MISS_, HERE_, HERE_], "RMA-SYNC-20 RMA-SYNC-25"),
        (_,    Call::Load | Call::Store)     => row(            [____ , ____ , ____ , ____ ], [____ , ____ , ____ ], "RMA-LOCK-09 RMA-SYNC-22"),
        (_,    Call::View(_))                => row(            [____ , ____ , OWN_S, STILL], [____ , ____ , ____ ], "silent"),
        (_,    Call::EndView)                => row(            [____ , ____ , ____ , ____ ], [____ , ____ , ____ ], "silent"),
        (_,    Call::Offer | Call::IOffer)   => row(            [____ , MIXED, MIXED, MIXED], [____ , MIXED, MIXED], "PGO-GEN-10"),
        (_,    Call::FinishOffer)            => row(            [____ , ____ , ____ , ____ ], [____ , ____ , ____ ], "PGO-IOFFER-01"),
        (_,    Call::PeerUpdate)             => row(            [____ , ____ , ____ , ____ ], [____ , ____ , ____ ], "VIS-R7-04"),
        (_,    Call::Free | Call::Finalize)  => row(            [____ , STILL, STILL, STILL], [____ , STILL, STILL], "RMA-WIN-09 RMA-SYNC-07 RMA-LOCK-13"),
        (_,    Call::Poison)                 => row(            [____ , CLOSE, CLOSE, CLOSE], [____ , CLOSE, CLOSE], "RMA-LOCK-18"),
    }
}

/// The owner half's row for a call that exists in the dialect.
#[rustfmt::skip]
pub(crate) const fn owner(dialect: Dialect, call: Call) -> OwnerRow {
    use OwnerCell::{Become, BecomeIfLast, BecomeStale, Error, ErrorBySide, ErrorIfOwn, ImportIfOwn, Keep};
    const ____ : OwnerCell = Keep;
    const PRIV_: OwnerCell = Become(ExposureState::Private);
    const STALE: OwnerCell = BecomeStale;
    const POST_: OwnerCell = Become(ExposureState::Posted);
    const POSTG: OwnerCell = Become(ExposureState::PostedGets);
    const VREAD: OwnerCell = Become(ExposureState::ViewRead);
    const VWRIT: OwnerCell = Become(ExposureState::ViewWrite);
    const VPOST: OwnerCell = Become(ExposureState::ViewPosted);
    const FNEW_: OwnerCell = Become(ExposureState::FenceUnused);
    const FGET_: OwnerCell = Become(ExposureState::FenceReading);
    const FPUT_: OwnerCell = Become(ExposureState::FenceUpdating);
    const OFFER: OwnerCell = Become(ExposureState::Offered);
    const GONE_: OwnerCell = Become(ExposureState::Freed);
    const BROKE: OwnerCell = Become(ExposureState::Poisoned);
    const LPRIV: OwnerCell = BecomeIfLast(ExposureState::Private);
    const LPOSG: OwnerCell = BecomeIfLast(ExposureState::PostedGets);
    const IMPOR: OwnerCell = ImportIfOwn;
    const OWN_M: OwnerCell = ErrorIfOwn(ErrorKind::MixedSync);
    const OWN_S: OwnerCell = ErrorIfOwn(ErrorKind::EpochStillOpen);
    const S_OR_: OwnerCell = ErrorBySide { own: ErrorKind::EpochStillOpen, peer: ErrorKind::MixedSync };
    const MIXED: OwnerCell = Error(ErrorKind::MixedSync);
    const STILL: OwnerCell = Error(ErrorKind::EpochStillOpen);
    const TWICE: OwnerCell = Error(ErrorKind::AlreadyPosted);
    const UNPOS: OwnerCell = Error(ErrorKind::WaitWithoutPost);
    const UNOFF: OwnerCell = Error(ErrorKind::NotOffered);
    const UNVIE: OwnerCell = Error(ErrorKind::NotLocked);
    const CONFL: OwnerCell = Error(ErrorKind::ConflictingAccess);
    const LOCAL: OwnerCell = Error(ErrorKind::LocalAccessDuringOffer);
    const DEAD_: OwnerCell = Error(ErrorKind::WindowFreed);
    const OUT__: OwnerCell = Error(ErrorKind::Poisoned);

    const fn row(exposure: [OwnerCell; 13], requirements: &'static str) -> OwnerRow {
        OwnerRow { exposure, requirements }
    }

    match (dialect, call) {
        //                                                         posted               guard                fence phase                  offered
        // call                                      priv   stale  all    gets   read   write  posted unused gets   puts          freed  poisoned
        (_,    Call::Fence(NoAssertion))    => row([FNEW_, FNEW_, MIXED, MIXED, STILL, STILL, STILL, FNEW_, FNEW_, FNEW_, MIXED, DEAD_, OUT__], "RMA-BAR-05 RMA-BAR-08 VIS-R6-02 VIS-R7-02"),
        (_,    Call::Fence(NoPrecede))      => row([FNEW_, FNEW_, MIXED, MIXED, STILL, STILL, STILL, FNEW_, STILL, STILL, MIXED, DEAD_, OUT__], "RMA-BAR-08 MPI"),
        (_,    Call::Fence(NoSucceed))      => row([PRIV_, PRIV_, MIXED, MIXED, STILL, STILL, STILL, PRIV_, PRIV_, PRIV_, MIXED, DEAD_, OUT__], "RMA-BAR-05 RMA-BAR-08 VIS-R6-02 VIS-R7-02"),
        (_,    Call::Fence(NoBoth))         => row([PRIV_, PRIV_, MIXED, MIXED, STILL, STILL, STILL, PRIV_, STILL, STILL, MIXED, DEAD_, OUT__], "RMA-BAR-08 MPI"),
        (_,    Call::RmaBarrier)            => row([FNEW_, FNEW_, ____ , ____ , STILL, STILL, STILL, FNEW_, FNEW_, FNEW_, MIXED, DEAD_, OUT__], "RMA-BAR-01 RMA-BAR-08"),
        (_,    Call::Barrier)               => row([____ , ____ , ____ , ____ , ____ , ____ , ____ , ____ , ____ , ____ , ____ , ____ , ____ ], "RMA-BAR-04 VIS-R7-04"),
        (_,    Call::Start(..))             => row([____ , ____ , ____ , ____ , ____ , ____ , ____ , PRIV_, MIXED, MIXED, MIXED, DEAD_, OUT__], "RMA-LOCK-14 PGO-GEN-10"),
        (_,    Call::Complete(_))           => row([____ , ____ , ____ , ____ , ____ , ____ , ____ , ____ , ____ , ____ , ____ , DEAD_, OUT__], "RMA-SYNC-05"),
        (_,    Call::Post(Permit::All))     => row([POST_, POST_, TWICE, TWICE, STILL, STILL, STILL, POST_, MIXED, MIXED, MIXED, DEAD_, OUT__], "RMA-SYNC-14 RMA-SYNC-15 RMA-LOCK-14 VIS-R7-01"),
        (_,    Call::Post(Permit::Gets))    => row([POSTG, POSTG, TWICE, TWICE, STILL, STILL, STILL, POSTG, MIXED, MIXED, MIXED, DEAD_, OUT__], "RMA-SYNC-14 RMA-SYNC-15 RMA-LOCK-14 VIS-R7-01"),
        (_,    Call::Wait(_))               => row([UNPOS, UNPOS, PRIV_, PRIV_, UNPOS, UNPOS, STILL, UNPOS, UNPOS, UNPOS, UNPOS, DEAD_, OUT__], "RMA-SYNC-09 RMA-SYNC-15 VIS-R6-01"),
        (_,    Call::Test(_))               => row([UNPOS, UNPOS, LPRIV, LPRIV, UNPOS, UNPOS, STILL, UNPOS, UNPOS, UNPOS, UNPOS, DEAD_, OUT__], "RMA-SYNC-15 RMA-SYNC-23"),
        (Seed, Call::Lock(..))              => row([____ , IMPOR, MIXED, MIXED, OWN_S, OWN_S, S_OR_, PRIV_, MIXED, MIXED, MIXED, DEAD_, OUT__], "RMA-LOCK-14 VIS-R7-03 PGO-GEN-10"),
        (Mpi,  Call::Lock(..))              => row([____ , IMPOR, OWN_M, OWN_M, OWN_S, OWN_S, OWN_S, PRIV_, MIXED, MIXED, MIXED, DEAD_, OUT__], "RMA-LOCK-14 VIS-R7-03 MPI"),
        (_,    Call::Unlock(_))             => row([____ , ____ , ____ , ____ , ____ , ____ , ____ , ____ , ____ , ____ , ____ , DEAD_, OUT__], "RMA-LOCK-13"),
        (_,    Call::LockAll)               => row([____ , PRIV_, MIXED, MIXED, STILL, STILL, STILL, PRIV_, MIXED, MIXED, MIXED, DEAD_, OUT__], "RMA-LOCK-14 VIS-R7-03"),
        (_,    Call::UnlockAll)             => row([____ , ____ , ____ , ____ , ____ , ____ , ____ , ____ , ____ , ____ , ____ , DEAD_, OUT__], "RMA-LOCK-13"),
        (_,    Call::Flush(_))              => row([____ , ____ , ____ , ____ , ____ , ____ , ____ , ____ , ____ , ____ , ____ , DEAD_, OUT__], "silent"),
        (_,    Call::Sync)                  => row([____ , PRIV_, ____ , ____ , ____ , ____ , ____ , ____ , ____ , ____ , ____ , DEAD_, OUT__], "silent"),
        (_,    Call::Transfer(_, Transfer::Get))
                                            => row([____ , ____ , ____ , ____ , ____ , ____ , ____ , FGET_, FGET_, FPUT_, ____ , DEAD_, OUT__], "RMA-BAR-05"),
        (_,    Call::Transfer(..))          => row([____ , ____ , ____ , ____ , ____ , ____ , ____ , FPUT_, FPUT_, FPUT_, ____ , DEAD_, OUT__], "RMA-BAR-05"),
        (_,    Call::Load)                  => row([____ , ____ , ____ , ____ , ____ , ____ , ____ , ____ , ____ , ____ , ____ , DEAD_, OUT__], "VIS-R6-03 EX-E111-08"),
        (_,    Call::Store)                 => row([____ , ____ , ____ , ____ , CONFL, ____ , CONFL, ____ , ____ , ____ , ____ , DEAD_, OUT__], "EX-E110-04 silent"),
        (_,    Call::View(LocalOp::Load))   => row([VREAD, VREAD, STILL, VPOST, ____ , STILL, ____ , STILL, STILL, STILL, LOCAL, DEAD_, OUT__], "RMA-WIN-10 PGO-OFFER-07 silent"),
        (_,    Call::View(LocalOp::Store))  => row([VWRIT, VWRIT, STILL, STILL, STILL, STILL, STILL, STILL, STILL, STILL, LOCAL, DEAD_, OUT__], "RMA-WIN-10 PGO-OFFER-07 silent"),
        (_,    Call::EndView)               => row([UNVIE, UNVIE, UNVIE, UNVIE, LPRIV, PRIV_, LPOSG, UNVIE, UNVIE, UNVIE, UNVIE, DEAD_, OUT__], "silent"),
        (_,    Call::Offer)                 => row([____ , PRIV_, MIXED, MIXED, STILL, STILL, STILL, PRIV_, MIXED, MIXED, ____ , DEAD_, OUT__], "PGO-GEN-10 PGO-OFFER-03 PGO-OFFER-12"),
        (_,    Call::IOffer)                => row([OFFER, OFFER, MIXED, MIXED, STILL, STILL, STILL, OFFER, MIXED, MIXED, ____ , DEAD_, OUT__], "PGO-GEN-10 PGO-IOFFER-01"),
        (_,    Call::FinishOffer)           => row([UNOFF, UNOFF, UNOFF, UNOFF, UNOFF, UNOFF, UNOFF, UNOFF, UNOFF, UNOFF, LPRIV, DEAD_, OUT__], "PGO-IOFFER-02 PGO-IOFFER-05"),
        (_,    Call::PeerUpdate)            => row([STALE, ____ , ____ , ____ , ____ , ____ , ____ , ____ , ____ , ____ , ____ , DEAD_, OUT__], "VIS-R7-04"),
        (_,    Call::Free)                  => row([GONE_, GONE_, STILL, STILL, STILL, STILL, STILL, GONE_, STILL, STILL, STILL, DEAD_, GONE_], "RMA-WIN-09 EX-E111-07 PGO-MEM-03"),
        (_,    Call::Finalize)              => row([GONE_, GONE_, STILL, STILL, STILL, STILL, STILL, GONE_, STILL, STILL, STILL, ____ , GONE_], "RMA-SYNC-07 RMA-LOCK-13 PGO-IOFFER-06"),
        (_,    Call::Poison)                => row([BROKE, BROKE, BROKE, BROKE, BROKE, BROKE, BROKE, BROKE, BROKE, BROKE, BROKE, DEAD_, ____ ], "RMA-LOCK-18"),
    }
}

/// How code may touch the caller's own memory, by exposure; the caller's own locks are judged before.
#[rustfmt::skip]
pub(crate) const fn local(exposure: ExposureState, op: LocalOp) -> LocalAccess {
    use ErrorKind::{ConflictingAccess, LocalAccessDuringOffer, StoreDuringUpdate, UnsafeLocalRead, WindowFreed};
    use ExposureState as X;
    use LocalAccess::{Forbidden, Plain, Volatile, VolatileUnless};
    let (load, store) = match exposure {
        //                    load                                     store
        X::Private       => (Volatile,                                Volatile),                                // RMA-LOCK-09, REG-MAC-01
        X::Stale         => (VolatileUnless(UnsafeLocalRead),         VolatileUnless(StoreDuringUpdate)),       // VIS-R7-04, RMA-LOCK-10
        X::Posted        => (VolatileUnless(UnsafeLocalRead),         VolatileUnless(StoreDuringUpdate)),       // RMA-SYNC-06, RMA-CORR-01
        X::PostedGets    => (Volatile,                                VolatileUnless(ConflictingAccess)),       // EX-E111-08, EX-E110-02, EX-E110-04
        X::ViewRead      => (Plain,                                   Forbidden(ConflictingAccess)),            // RMA-WIN-10
        X::ViewWrite     => (Plain,                                   Plain),                                   // RMA-WIN-10
        X::ViewPosted    => (Plain,                                   Forbidden(ConflictingAccess)),            // RMA-CORR-05
        X::FenceUnused   => (Volatile,                                Volatile),                                // RMA-BAR-05, REG-LINT-35
        X::FenceReading  => (Volatile,                                Volatile),                                // EX-E108-02
        X::FenceUpdating => (VolatileUnless(UnsafeLocalRead),         VolatileUnless(StoreDuringUpdate)),       // RMA-BAR-05, RMA-MAC-04
        X::Offered       => (VolatileUnless(LocalAccessDuringOffer),  VolatileUnless(LocalAccessDuringOffer)),  // PGO-OFFER-07, PGO-PROG-08
        X::Freed         => (Forbidden(WindowFreed),                  Forbidden(WindowFreed)),                  // RMA-WIN-09
        X::Poisoned      => (Forbidden(ErrorKind::Poisoned),          Forbidden(ErrorKind::Poisoned)),
    };
    match op {
        LocalOp::Load => load,
        LocalOp::Store => store,
    }
}
