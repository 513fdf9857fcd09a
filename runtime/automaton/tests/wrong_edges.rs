//! One test for each wrong edge: the legal steps before it, the wrong call, and the error it earns.

mod walk;

use rma_automaton::Call::{
    self, EndView, Finalize, FinishOffer, Free, IOffer, Load, LockAll, Offer, PeerUpdate, Poison, RmaBarrier,
    Store, UnlockAll, View,
};
use rma_automaton::{
    Assertion, Check, Dialect, ErrorKind, Input, Inputs, LocalAccess, LocalOp, LockKind, Outcome, Outcomes,
    State, Transfer, Tri,
};
use walk::*;

/// The last of the steps is refused with this kind, in the dialect.
#[track_caller]
fn refused_in(dialect: Dialect, kind: ErrorKind, steps: &[Step]) {
    assert_eq!(walk(dialect, State::CREATED, steps), Err((steps.len() - 1, kind)), "in {dialect:?}");
}

/// The last of the steps is refused with this kind, in both dialects.
#[track_caller]
fn refused(kind: ErrorKind, steps: &[Step]) {
    for dialect in Dialect::ALL {
        refused_in(dialect, kind, steps);
    }
}

#[track_caller]
fn refused_in_seed(kind: ErrorKind, steps: &[Step]) {
    refused_in(Dialect::Seed, kind, steps);
}

/// Everything in order but one answer.
fn no(input: Input) -> Inputs {
    Inputs::FINE.with(input, Tri::No)
}

// START and COMPLETE

#[test]
fn start_nested() {
    refused(ErrorKind::StartNested, &steps![START, START]); // RMA-SYNC-07
    refused(ErrorKind::StartNested, &steps![START_GROUP, START]);
}

#[test]
fn start_of_a_second_group_in_mpi() {
    refused_in(Dialect::Mpi, ErrorKind::StartNested, &steps![START, START_OTHER]);
    refused_in(Dialect::Mpi, ErrorKind::StartNested, &steps![START_OTHER, START]);
}

#[test]
fn complete_without_start() {
    refused(ErrorKind::CompleteWithoutStart, &steps![COMPLETE_ALL]); // RMA-SYNC-07
    refused(ErrorKind::CompleteWithoutStart, &steps![LOCK, COMPLETE_ALL]);
    refused_in_seed(ErrorKind::CompleteWithoutStart, &steps![START_OTHER, COMPLETE]);
    refused_in_seed(ErrorKind::CompleteWithoutStart, &steps![START, COMPLETE_OTHER]);
    refused_in_seed(ErrorKind::CompleteWithoutStart, &steps![START, COMPLETE, COMPLETE]);
    refused_in_seed(ErrorKind::CompleteWithoutStart, &steps![START_OTHER, COMPLETE_OTHER, COMPLETE_OTHER]);
}

#[test]
fn transfer_outside_any_epoch() {
    refused(ErrorKind::TransferOutsideEpoch, &steps![PUT]); // RMA-SYNC-25
    refused(ErrorKind::TransferOutsideEpoch, &steps![POST, GET]);
    refused(ErrorKind::TransferOutsideEpoch, &steps![FENCE, PUT, LAST_FENCE, PUT]);
    refused(ErrorKind::TransferOutsideEpoch, &steps![START, PUT, COMPLETE_ALL, PUT]);
    refused(ErrorKind::TransferOutsideEpoch, &steps![LOCK, PUT, UNLOCK, PUT]);
}

#[test]
fn transfer_to_a_target_that_is_not_opened() {
    refused(ErrorKind::TransferOutsideEpoch, &steps![START_OTHER, PUT]); // RMA-SYNC-20
    refused(ErrorKind::TransferOutsideEpoch, &steps![START, PUT_OTHER]);
    refused(ErrorKind::TransferOutsideEpoch, &steps![LOCK_OTHER, PUT]);
    refused(ErrorKind::TransferOutsideEpoch, &steps![LOCK, PUT_OTHER]);
}

#[test]
fn fence_phase_ends_with_another_style() {
    // The unused phase is over once a lock or a START has followed it.
    refused(ErrorKind::TransferOutsideEpoch, &steps![FENCE, LOCK, UNLOCK, PUT]);
    refused(ErrorKind::TransferOutsideEpoch, &steps![FENCE, POST, WAIT_ALL, PUT]);
}

#[test]
fn nocheck_start_toward_a_window_that_is_not_posted() {
    refused(ErrorKind::NotPosted, &steps![(START_NOCHECK, no(Input::Vouched))]); // RMA-INFO-06
    refused(ErrorKind::NotPosted, &steps![START_NOCHECK, (PUT, no(Input::Vouched))]);
    refused(ErrorKind::NotPosted, &steps![START_NOCHECK, (COMPLETE_ALL, no(Input::Vouched))]);
}

#[test]
fn nocheck_start_by_a_rank_outside_the_group() {
    refused(ErrorKind::NotInGroup, &steps![(START_NOCHECK, no(Input::InGroup))]); // RMA-SYNC-17
}

#[test]
fn checked_start_waits_instead_of_failing() {
    for input in [Input::Vouched, Input::InGroup] {
        for dialect in Dialect::ALL {
            assert!(walk(dialect, State::CREATED, &steps![(START, no(input)), (PUT, no(input))]).is_ok());
        }
    }
}

#[test]
fn transfer_of_a_kind_that_is_not_exposed() {
    refused(ErrorKind::EventNotOffered, &steps![START, (PUT, no(Input::Permitted))]);
}

#[test]
fn arguments_come_before_the_state() {
    refused(ErrorKind::RankOutOfRange, &steps![(PUT, no(Input::Rank))]); // RMA-WIN-11
    refused(ErrorKind::OutOfBounds, &steps![(PUT, no(Input::Bounds))]); // RMA-COMM-07
    refused(ErrorKind::RankOutOfRange, &steps![START, (START, no(Input::Rank))]);
    refused(ErrorKind::RankOutOfRange, &steps![(LOCK, no(Input::Rank))]);
    refused(ErrorKind::OutOfBounds, &steps![(Load, no(Input::Bounds))]);
}

// POST and WAIT

#[test]
fn post_twice() {
    refused(ErrorKind::AlreadyPosted, &steps![POST, POST]); // RMA-SYNC-15
    refused(ErrorKind::AlreadyPosted, &steps![POST_GETS, POST]);
}

#[test]
fn wait_without_post() {
    refused(ErrorKind::WaitWithoutPost, &steps![WAIT_ALL]); // RMA-SYNC-15
    refused(ErrorKind::WaitWithoutPost, &steps![POST, WAIT_ALL, WAIT_ALL]);
    refused(ErrorKind::WaitWithoutPost, &steps![FENCE, WAIT_ALL]);
    refused_in_seed(ErrorKind::WaitWithoutPost, &steps![WAIT]); // RMA-SYNC-16
}

#[test]
fn wait_for_a_group_that_was_not_posted() {
    refused(ErrorKind::WaitWithoutPost, &steps![POST, (WAIT_ALL, no(Input::Count))]); // RMA-SYNC-18
}

#[test]
fn count_exceeded() {
    refused_in_seed(ErrorKind::CountExceeded, &steps![POST, (WAIT, no(Input::Count))]); // RMA-SYNC-12
}

#[test]
fn test_that_does_not_end_leaves_the_window_posted() {
    let test = Call::Test(rma_automaton::WaitFor::Group);
    refused(ErrorKind::AlreadyPosted, &steps![POST, (test, MORE), POST]); // RMA-SYNC-23
    for dialect in Dialect::ALL {
        assert!(walk(dialect, State::CREATED, &steps![POST, (test, MORE), test, POST]).is_ok());
    }
}

// Fence and barriers

#[test]
fn fence_with_an_open_start_post_or_lock() {
    refused(ErrorKind::MixedSync, &steps![START, FENCE]); // RMA-BAR-08
    refused(ErrorKind::MixedSync, &steps![START_OTHER, FENCE]);
    refused(ErrorKind::MixedSync, &steps![POST, FENCE]);
    refused(ErrorKind::MixedSync, &steps![LOCK, FENCE]);
    refused(ErrorKind::MixedSync, &steps![LOCK_OTHER, LAST_FENCE]);
    refused(ErrorKind::MixedSync, &steps![LockAll, FENCE]);
}

#[test]
fn rma_barrier_with_an_open_start_or_lock() {
    refused_in_seed(ErrorKind::MixedSync, &steps![START, RmaBarrier]); // RMA-BAR-08
    refused_in_seed(ErrorKind::MixedSync, &steps![LOCK, RmaBarrier]);
}

#[test]
fn rma_barrier_leaves_a_posted_window_posted() {
    refused_in_seed(ErrorKind::AlreadyPosted, &steps![POST, RmaBarrier, POST]); // RMA-BAR-08
}

#[test]
fn plain_barrier_changes_nothing() {
    for dialect in Dialect::ALL {
        for state in State::all() {
            let outcome = state.step(dialect, Call::Barrier, Inputs::UNKNOWN).only();
            assert_eq!(outcome, Some(Outcome::Next(state))); // RMA-BAR-04
        }
    }
}

#[test]
fn other_styles_in_a_fence_phase_in_use() {
    for transfer in [PUT, GET, PUT_OTHER] {
        refused(ErrorKind::MixedSync, &steps![FENCE, transfer, START]); // RMA-LOCK-14
        refused(ErrorKind::MixedSync, &steps![FENCE, transfer, LOCK]);
        refused(ErrorKind::MixedSync, &steps![FENCE, transfer, LockAll]);
        refused(ErrorKind::MixedSync, &steps![FENCE, transfer, POST]);
    }
}

#[test]
fn asserted_noprecede_after_a_transfer() {
    let fence = Call::Fence(Assertion::NoPrecede);
    refused_in(Dialect::Mpi, ErrorKind::EpochStillOpen, &steps![FENCE, GET, fence]);
}

#[test]
fn store_in_a_phase_that_updates() {
    refused(ErrorKind::StoreDuringUpdate, &steps![FENCE, PUT, (Store, UNORDERED)]); // RMA-CORR-01
    refused(ErrorKind::StoreDuringUpdate, &steps![POST, (Store, UNORDERED)]);
    refused(ErrorKind::UnsafeLocalRead, &steps![POST, (Load, UNORDERED)]); // RMA-SYNC-06
}

// Locks

#[test]
fn lock_inside_a_lock() {
    refused(ErrorKind::LockHeld, &steps![LOCK, LOCK]); // RMA-LOCK-12
    refused(ErrorKind::LockHeld, &steps![LOCK_NOCHECK, LOCK]);
    refused(ErrorKind::LockHeld, &steps![LOCK_SHARED, LOCK_SHARED]);
    refused_in(Dialect::Mpi, ErrorKind::LockHeld, &steps![LOCK_NOCHECK, LOCK_NOCHECK]);
}

#[test]
fn lock_all_and_single_locks_do_not_nest() {
    refused(ErrorKind::LockHeld, &steps![LockAll, LOCK]);
    refused(ErrorKind::LockHeld, &steps![LockAll, LockAll]);
    refused(ErrorKind::LockHeld, &steps![LOCK, LockAll]);
    refused(ErrorKind::LockHeld, &steps![LOCK_OTHER, LockAll]);
}

#[test]
fn nest_is_over_after_its_last_level() {
    refused_in_seed(ErrorKind::NotLocked, &steps![LOCK, LOCK_NOCHECK, (UNLOCK, MORE), UNLOCK, UNLOCK]);
}

#[test]
fn nest_with_an_exclusive_inner_lock_counts_as_exclusive() {
    let nest = walk(Dialect::Seed, State::CREATED, &steps![LOCK_SHARED_NOCHECK, LOCK_NOCHECK]).unwrap();
    let alone = walk(Dialect::Seed, State::CREATED, &steps![LOCK_NOCHECK]).unwrap();
    assert_eq!(nest, alone); // RMA-LOCK-12
}

#[test]
fn unlock_without_lock() {
    refused(ErrorKind::NotLocked, &steps![UNLOCK]); // RMA-LOCK-13
    refused(ErrorKind::NotLocked, &steps![LOCK_OTHER, UNLOCK]);
    refused(ErrorKind::NotLocked, &steps![LOCK, Call::Unlock(Another)]);
    refused(ErrorKind::NotLocked, &steps![UnlockAll]);
    refused(ErrorKind::NotLocked, &steps![LOCK, UnlockAll]);
    refused(ErrorKind::NotLocked, &steps![LockAll, UNLOCK]);
}

#[test]
fn flush_without_lock() {
    refused(ErrorKind::NotLocked, &steps![Call::Flush(This)]);
    refused(ErrorKind::NotLocked, &steps![START, Call::Flush(This)]);
}

#[test]
fn nocheck_lock_that_meets_a_conflicting_one() {
    refused(ErrorKind::NoCheckConflict, &steps![(LOCK_NOCHECK, no(Input::Vouched))]); // RMA-LOCK-07
    refused(ErrorKind::NoCheckConflict, &steps![(LOCK, no(Input::Vouched))]);
    refused(ErrorKind::NoCheckConflict, &steps![LOCK_NOCHECK, (PUT, no(Input::Vouched))]);
    refused(ErrorKind::NoCheckConflict, &steps![LOCK_NOCHECK, (UNLOCK, no(Input::Vouched))]);
}

#[test]
fn lock_and_start_overlap() {
    refused(ErrorKind::MixedSync, &steps![START, LOCK]); // RMA-LOCK-14
    refused(ErrorKind::MixedSync, &steps![START_OTHER, LOCK]);
    refused(ErrorKind::MixedSync, &steps![START, LOCK_OTHER]);
    refused(ErrorKind::MixedSync, &steps![START, LockAll]);
    refused(ErrorKind::MixedSync, &steps![LOCK, START]);
    refused(ErrorKind::MixedSync, &steps![LOCK_OTHER, START]);
    refused(ErrorKind::MixedSync, &steps![LOCK, START_OTHER]);
    refused(ErrorKind::MixedSync, &steps![LockAll, START]);
}

#[test]
fn lock_and_post_overlap() {
    refused(ErrorKind::MixedSync, &steps![POST, (LOCK, OWN)]); // RMA-LOCK-14
    refused(ErrorKind::MixedSync, &steps![POST, LockAll]);
    refused(ErrorKind::MixedSync, &steps![(LOCK, OWN), POST]);
    refused(ErrorKind::MixedSync, &steps![LockAll, POST]);
    refused_in_seed(ErrorKind::MixedSync, &steps![POST, LOCK]);
    refused_in_seed(ErrorKind::MixedSync, &steps![LOCK, POST]);
    refused_in_seed(ErrorKind::MixedSync, &steps![LOCK_OTHER, POST]);
}

// Local access and guards

#[test]
fn load_and_store_of_what_a_peer_has_updated() {
    refused(ErrorKind::UnsafeLocalRead, &steps![PeerUpdate, (Load, UNORDERED)]); // VIS-R7-04
    refused(ErrorKind::StoreDuringUpdate, &steps![PeerUpdate, (Store, UNORDERED)]);
    refused(ErrorKind::UnsafeLocalRead, &steps![LOCK, UNLOCK, PeerUpdate, (Load, UNORDERED)]);
    refused(ErrorKind::UnsafeLocalRead, &steps![PeerUpdate, LOCK, (Load, UNORDERED)]); // A peer's lock imports nothing.
}

#[test]
fn peer_update_cannot_happen_under_the_own_exclusive_lock() {
    let steps = steps![(LOCK, OWN), PeerUpdate, (Load, UNORDERED), (Store, UNORDERED), UNLOCK];
    for dialect in Dialect::ALL {
        assert!(walk(dialect, State::CREATED, &steps).is_ok());
    }
}

#[test]
fn guard_of_an_exposed_window() {
    for view in [View(LocalOp::Load), View(LocalOp::Store)] {
        refused_in_seed(ErrorKind::EpochStillOpen, &steps![POST, view]);
        refused_in_seed(ErrorKind::EpochStillOpen, &steps![FENCE, view]);
        refused_in_seed(ErrorKind::EpochStillOpen, &steps![FENCE, PUT, view]);
        refused_in_seed(ErrorKind::EpochStillOpen, &steps![(LOCK, OWN), view]);
        refused_in_seed(ErrorKind::EpochStillOpen, &steps![LockAll, view]);
        refused_in_seed(ErrorKind::EpochStillOpen, &steps![View(LocalOp::Store), view]);
        refused_in_seed(ErrorKind::LocalAccessDuringOffer, &steps![IOffer, view]);
    }
    refused_in_seed(ErrorKind::EpochStillOpen, &steps![POST_GETS, View(LocalOp::Store)]);
    refused_in_seed(ErrorKind::EpochStillOpen, &steps![View(LocalOp::Load), View(LocalOp::Store)]);
}

#[test]
fn exposing_calls_under_a_guard() {
    for view in [View(LocalOp::Load), View(LocalOp::Store)] {
        for call in [POST, POST_GETS, FENCE, LAST_FENCE, RmaBarrier, LockAll, Offer, IOffer, Free, Finalize] {
            refused_in_seed(ErrorKind::EpochStillOpen, &steps![view, call]);
        }
        refused_in_seed(ErrorKind::EpochStillOpen, &steps![view, (LOCK, OWN)]);
    }
    refused_in_seed(ErrorKind::EpochStillOpen, &steps![POST_GETS, View(LocalOp::Load), WAIT]);
    refused_in_seed(ErrorKind::MixedSync, &steps![POST_GETS, View(LocalOp::Load), LOCK]);
}

#[test]
fn store_under_a_guard_for_reading() {
    refused_in_seed(ErrorKind::ConflictingAccess, &steps![View(LocalOp::Load), Store]);
}

#[test]
fn guard_that_does_not_exist() {
    refused_in_seed(ErrorKind::NotLocked, &steps![EndView]);
    refused_in_seed(ErrorKind::NotLocked, &steps![View(LocalOp::Store), EndView, EndView]);
}

// Offers

#[test]
fn offer_of_memory_with_an_open_epoch() {
    for offer in [Offer, IOffer] {
        refused_in_seed(ErrorKind::MixedSync, &steps![POST, offer]); // PGO-GEN-10
        refused_in_seed(ErrorKind::MixedSync, &steps![FENCE, PUT, offer]);
        refused_in_seed(ErrorKind::MixedSync, &steps![START, offer]);
        refused_in_seed(ErrorKind::MixedSync, &steps![(LOCK, OWN), offer]);
    }
}

#[test]
fn epoch_on_offered_memory() {
    for call in [POST, FENCE, START, LOCK, LockAll, RmaBarrier] {
        refused_in_seed(ErrorKind::MixedSync, &steps![IOffer, call]); // PGO-GEN-10
    }
}

#[test]
fn local_access_during_an_offer() {
    refused_in_seed(ErrorKind::LocalAccessDuringOffer, &steps![IOffer, (Load, UNORDERED)]); // PGO-OFFER-07
    refused_in_seed(ErrorKind::LocalAccessDuringOffer, &steps![IOffer, (Store, UNORDERED)]);
}

#[test]
fn finish_without_offer() {
    refused_in_seed(ErrorKind::NotOffered, &steps![FinishOffer]);
    refused_in_seed(ErrorKind::NotOffered, &steps![IOffer, FinishOffer, FinishOffer]);
}

// Ends

#[test]
fn free_and_finalize_with_something_open() {
    for end in [Free, Finalize] {
        for open in [START, START_OTHER, LOCK, LOCK_OTHER, LockAll, POST, POST_GETS] {
            refused(ErrorKind::EpochStillOpen, &steps![open, end]); // RMA-WIN-09, RMA-SYNC-07, RMA-LOCK-13
        }
        refused(ErrorKind::EpochStillOpen, &steps![FENCE, GET, end]);
        refused_in_seed(ErrorKind::EpochStillOpen, &steps![IOffer, end]); // PGO-IOFFER-06
    }
}

#[test]
fn freed_window() {
    let freed = walk(Dialect::Seed, State::CREATED, &steps![Free]).unwrap();
    for dialect in Dialect::ALL {
        for call in Call::ALL {
            let expected = match (dialect.has(call), call) {
                (false, _) => Outcomes::NONE,
                (true, Call::Barrier | Finalize) => Outcomes::NONE.with(Outcome::Next(freed)),
                (true, _) => Outcomes::NONE.with(Outcome::Error(ErrorKind::WindowFreed)), // RMA-WIN-09
            };
            assert_eq!(freed.step(dialect, call, Inputs::UNKNOWN), expected, "{call:?}");
        }
    }
    assert_eq!(freed.local_access(LocalOp::Load), LocalAccess::Forbidden(ErrorKind::WindowFreed));
}

#[test]
fn poisoned_window() {
    let live = State::all().filter(|&state| !state.step(Dialect::Seed, Poison, Inputs::UNKNOWN).may_err());
    for state in live {
        let Some(Outcome::Next(poisoned)) = state.step(Dialect::Seed, Poison, Inputs::UNKNOWN).only() else {
            panic!("{state:?} cannot be poisoned");
        };
        for call in [POST, WAIT, FENCE, START, LOCK, UNLOCK, COMPLETE, PUT, Load, View(LocalOp::Load)] {
            let outcome = poisoned.step(Dialect::Seed, call, Inputs::UNKNOWN).only();
            assert_eq!(outcome, Some(Outcome::Error(ErrorKind::Poisoned)), "{call:?}");
        }
        assert_eq!(poisoned.local_access(LocalOp::Store), LocalAccess::Forbidden(ErrorKind::Poisoned));
    }
}

#[test]
fn calls_of_the_other_dialect_have_no_outcome() {
    let only_seed = [RmaBarrier, COMPLETE, WAIT, View(LocalOp::Load), EndView, Offer, IOffer, FinishOffer];
    for call in only_seed {
        assert_eq!(State::CREATED.step(Dialect::Mpi, call, Inputs::FINE), Outcomes::NONE);
    }
    for call in [Call::Sync, Call::Fence(Assertion::NoPrecede), Call::Fence(Assertion::Both)] {
        assert_eq!(State::CREATED.step(Dialect::Seed, call, Inputs::FINE), Outcomes::NONE);
    }
    for call in [Call::Lock(Both, LockKind::Shared, Check::Checked), Call::Transfer(Both, Transfer::Put)] {
        assert_eq!(State::CREATED.step(Dialect::Seed, call, Inputs::FINE), Outcomes::NONE);
    }
}
