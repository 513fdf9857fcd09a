//! The examples of the seeds, call by call: legal programs walk through the table without an error.

mod walk;

use rma_automaton::Call::{
    self, Barrier, EndView, FinishOffer, Free, IOffer, Load, LockAll, Offer, PeerUpdate, RmaBarrier, Store,
    Sync, UnlockAll, View,
};
use rma_automaton::{Dialect, ErrorKind, Inputs, LocalAccess, LocalOp, State};
use walk::*;

/// The steps are legal and leave a window that may be freed.
#[track_caller]
fn legal(dialect: Dialect, start: State, steps: &[Step]) {
    let end =
        walk(dialect, start, steps).unwrap_or_else(|(index, kind)| panic!("step {index} earns {kind:?}"));
    assert!(!end.step(dialect, Free, Inputs::FINE).may_err(), "{end:?} is left open");
}

#[track_caller]
fn both(steps: &[Step]) {
    for dialect in Dialect::ALL {
        legal(dialect, State::CREATED, steps);
    }
}

#[track_caller]
fn seed(steps: &[Step]) {
    legal(Dialect::Seed, State::CREATED, steps);
}

#[track_caller]
fn mpi(steps: &[Step]) {
    legal(Dialect::Mpi, State::CREATED, steps);
}

#[test]
fn example_1_5_put_between_start_and_complete() {
    seed(&steps![START, PUT, COMPLETE]);
    mpi(&steps![START, PUT, COMPLETE_ALL]);
    seed(&steps![POST, WAIT, Load]);
    both(&steps![POST, WAIT_ALL, Load]);
}

#[test]
fn example_1_6_put_under_a_lock() {
    both(&steps![LOCK, PUT, UNLOCK]);
    both(&steps![LOCK_SHARED, GET, UNLOCK]);
}

#[test]
fn example_1_7_update_and_put_between_barriers() {
    seed(&steps![
        View(LocalOp::Store),
        Load,
        Store,
        EndView,
        FENCE,
        PUT,
        PUT_OTHER,
        LAST_FENCE,
        View(LocalOp::Store),
        Load,
        Store,
        EndView,
        FENCE,
        PUT,
        PUT_OTHER,
        LAST_FENCE,
    ]);
    both(&steps![FENCE, Load, Store, FENCE, PUT, PUT_OTHER, FENCE, Load, Store, FENCE, PUT, FENCE]);
    both(&steps![FENCE, Load, Store, FENCE, GET, FENCE, Load, Store, FENCE, GET, FENCE, Load]);
    seed(&steps![Store, RmaBarrier, PUT, RmaBarrier, Load, Store, RmaBarrier, PUT, RmaBarrier]);
}

#[test]
fn example_1_7_boundary_in_the_window_is_origin_and_target() {
    // The boundary that is put is loaded in the phase in which the ghosts are put to.
    both(&steps![Store, FENCE, Load, PUT, Load, PUT_OTHER, FENCE]);
}

#[test]
fn example_1_8_gets_overlap_the_core_update() {
    both(&steps![Store, FENCE, GET, Load, Store, GET, Store, LAST_FENCE, Load]);
}

#[test]
fn example_1_9_one_two_and_three_loops() {
    seed(&steps![Store, POST, START, PUT, COMPLETE, START_OTHER, PUT_OTHER, COMPLETE_OTHER, WAIT, Load]);
    seed(&steps![Store, POST, START, PUT, START_OTHER, PUT_OTHER, COMPLETE, COMPLETE_OTHER, WAIT, Load]);
    seed(&steps![Store, POST, START, START_OTHER, PUT, PUT_OTHER, COMPLETE, COMPLETE_OTHER, WAIT, Load]);
}

#[test]
fn example_1_9_group_form() {
    both(&steps![
        Store,
        POST,
        START_GROUP,
        PUT,
        PUT_OTHER,
        COMPLETE_ALL,
        WAIT_ALL,
        Load,
        Store,
        POST,
        WAIT_ALL
    ]);
}

#[test]
fn example_1_10_core_update_between_start_and_complete() {
    seed(&steps![
        Store,
        POST_GETS,
        START,
        GET,
        START_OTHER,
        Load,
        Store,
        COMPLETE_OTHER,
        COMPLETE,
        WAIT,
        Load,
        Store,
    ]);
    mpi(&steps![Store, POST_GETS, START_GROUP, GET, Load, Store, COMPLETE_ALL, WAIT_ALL, Load, Store]);
}

/// The window of array 0, which is posted at the start and closed by a WAIT for nobody at the end.
#[test]
fn example_1_11_window_0() {
    for barrier in [Barrier, RmaBarrier] {
        seed(&steps![
            POST_GETS,
            barrier,
            START_NOCHECK,
            GET,
            Load,
            COMPLETE,
            WAIT,
            Load,
            Store,
            POST_GETS,
            START_NOCHECK,
            GET,
            Load,
            COMPLETE,
            WAIT,
            Load,
            Store,
            POST_GETS,
            WAIT,
        ]);
    }
}

#[test]
fn example_1_11_window_1() {
    seed(&steps![
        Barrier,
        Load,
        Store,
        POST_GETS,
        START_NOCHECK,
        GET,
        Load,
        COMPLETE,
        WAIT,
        Load,
        Store,
        POST_GETS,
        START_NOCHECK,
        GET,
        Load,
        COMPLETE,
        WAIT,
    ]);
}

#[test]
fn example_1_12_nested_nocheck_locks_at_one_rank() {
    seed(&steps![
        LOCK_NOCHECK,
        GET,
        LOCK_NOCHECK,
        GET,
        PUT,
        (UNLOCK, MORE),
        PUT,
        UNLOCK,
        LOCK_SHARED_NOCHECK,
        GET,
        LOCK_NOCHECK,
        PUT,
        (UNLOCK, MORE),
        UNLOCK,
    ]);
}

#[test]
fn figure_1_1_begins_with_a_wait_on_a_window_created_posted() {
    legal(Dialect::Seed, State::CREATED_POSTED, &steps![WAIT, Load, POST, WAIT, Load, POST, WAIT]);
}

#[test]
fn figure_1_3_two_ranks_toward_each_other() {
    seed(&steps![POST, START, PUT, COMPLETE, WAIT, Load]);
    mpi(&steps![POST, START, PUT, COMPLETE_ALL, WAIT_ALL, Load]);
}

#[test]
fn put_get_offer() {
    seed(&steps![Store, Offer, Load, Store]);
    seed(&steps![Store, IOffer, Load, (FinishOffer, MORE), FinishOffer, Load, Store, IOffer, FinishOffer]);
}

#[test]
fn passive_mpi_program_with_sync() {
    mpi(&steps![LockAll, Store, Sync, PUT, Call::Flush(This), PeerUpdate, Sync, Load, UnlockAll]);
}

#[test]
fn styles_follow_each_other() {
    // VIS-MIX-03: nothing beyond the fence is needed; the last phase has no transfer, so a lock ends it.
    both(&steps![FENCE, PUT, FENCE, LOCK, GET, PUT, UNLOCK, FENCE, Load]);
    both(&steps![FENCE, PUT, FENCE, POST, WAIT_ALL, LOCK, PUT, UNLOCK, POST, WAIT_ALL]);
    both(&steps![FENCE, START, PUT, COMPLETE_ALL, FENCE, PUT, LAST_FENCE]);
    both(&steps![FENCE, LockAll, PUT, UnlockAll]);
    both(&steps![LOCK, LOCK_OTHER, PUT_OTHER, PUT, UNLOCK, Call::Unlock(Another)]);
}

#[test]
fn mpi_exposure_may_overlap_a_lock_toward_another_rank() {
    mpi(&steps![POST, LOCK, PUT, UNLOCK, WAIT_ALL]);
    mpi(&steps![LOCK, POST, PUT, WAIT_ALL, UNLOCK]);
}

#[test]
fn fence_assertions() {
    use rma_automaton::Assertion::{Both, NoPrecede, NoSucceed};
    mpi(&steps![
        Call::Fence(NoPrecede),
        PUT,
        Call::Fence(NoSucceed),
        Load,
        Store,
        Call::Fence(NoPrecede),
        GET,
        Call::Fence(NoSucceed),
        Call::Fence(Both),
        LOCK,
        PUT,
        UNLOCK,
    ]);
}

/// `visibility.md` section 3, seen by the owner A, who is its own origin; all variants.
#[test]
fn visibility_example_1_owner() {
    for update_x in [PUT, Store] {
        seed(&steps![
            POST, START, update_x, COMPLETE, WAIT_ALL, Load, Barrier, PeerUpdate, Barrier, POST, Load, WAIT,
        ]);
        seed(&steps![
            POST,
            START,
            update_x,
            COMPLETE,
            WAIT_ALL,
            Load,
            Barrier,
            PeerUpdate,
            Barrier,
            (LOCK, OWN),
            Load,
            UNLOCK,
        ]);
        mpi(&steps![
            POST,
            START,
            update_x,
            COMPLETE_ALL,
            WAIT_ALL,
            Load,
            Barrier,
            PeerUpdate,
            Barrier,
            (LOCK_SHARED, OWN),
            Load,
            UNLOCK,
        ]);
    }
}

#[test]
fn visibility_example_1_store_is_reported_at_level_strict() {
    // At level `strict` B's put concerns A's store, since both go to one exposed range.
    let steps = steps![POST, START, (Store, UNORDERED), COMPLETE, WAIT_ALL];
    assert_eq!(walk(Dialect::Seed, State::CREATED, &steps), Err((2, ErrorKind::StoreDuringUpdate)));
}

#[test]
fn visibility_example_1_origin() {
    seed(&steps![START, PUT, COMPLETE, Barrier, LOCK, GET, PUT, UNLOCK, Barrier]);
    mpi(&steps![START, PUT, COMPLETE_ALL, Barrier, LOCK, GET, PUT, UNLOCK, Barrier]);
}

/// `visibility.md` section 4: the program is wrong at its last step, and only there.
#[test]
fn visibility_example_2_is_wrong_at_the_load() {
    for dialect in Dialect::ALL {
        let steps = steps![Barrier, PeerUpdate, Barrier, (Load, UNORDERED)];
        assert_eq!(walk(dialect, State::CREATED, &steps), Err((3, ErrorKind::UnsafeLocalRead)));
    }
    both(&steps![Barrier, LOCK, PUT, UNLOCK, Barrier]);
}

#[test]
fn visibility_example_2_remedies_make_the_load_free_of_the_update() {
    let remedies: [(Call, Inputs); 4] =
        [(LOCK_SHARED, OWN), (POST, Inputs::FINE), (FENCE, Inputs::FINE), (RmaBarrier, Inputs::FINE)];
    for remedy in remedies {
        let before = walk(Dialect::Seed, State::CREATED, &steps![Barrier, PeerUpdate, Barrier]).unwrap();
        assert_eq!(
            before.local_access(LocalOp::Load),
            LocalAccess::VolatileUnless(ErrorKind::UnsafeLocalRead)
        );
        let after = walk(Dialect::Seed, before, &steps![remedy, Load]).unwrap();
        assert_ne!(after.exposure(), before.exposure(), "{remedy:?} imports");
    }
}

#[test]
fn guards_and_the_own_exclusive_lock_are_private_epochs() {
    let local =
        |steps: &[Step]| walk(Dialect::Seed, State::CREATED, steps).unwrap().local_access(LocalOp::Load);
    assert_eq!(local(&steps![View(LocalOp::Load), View(LocalOp::Load), (EndView, MORE)]), LocalAccess::Plain);
    assert_eq!(local(&steps![View(LocalOp::Store)]), LocalAccess::Plain);
    assert_eq!(local(&steps![POST_GETS, View(LocalOp::Load)]), LocalAccess::Plain);
    assert_eq!(local(&steps![(LOCK, OWN)]), LocalAccess::Plain);
    assert_eq!(local(&steps![(LOCK_SHARED, OWN)]), LocalAccess::Volatile);
    assert_eq!(local(&steps![(LOCK_NOCHECK, OWN)]), LocalAccess::Volatile);
    assert_eq!(local(&steps![LOCK]), LocalAccess::Volatile);
    assert_eq!(local(&steps![]), LocalAccess::Volatile);
    seed(&steps![View(LocalOp::Load), View(LocalOp::Load), (EndView, MORE), START, PUT, EndView, COMPLETE]);
    seed(&steps![POST_GETS, View(LocalOp::Load), EndView, Store, WAIT]);
    seed(&steps![PeerUpdate, View(LocalOp::Store), (Load, UNORDERED), (Store, UNORDERED), EndView]);
}

#[test]
fn local_access_in_each_exposure() {
    use ErrorKind::{ConflictingAccess, LocalAccessDuringOffer, StoreDuringUpdate, UnsafeLocalRead};
    use LocalAccess::{Forbidden, Plain, Volatile, VolatileUnless};
    let check = |steps: &[Step], load: LocalAccess, store: LocalAccess| {
        let state = walk(Dialect::Seed, State::CREATED, steps).unwrap();
        assert_eq!(
            [LocalOp::Load, LocalOp::Store].map(|op| state.local_access(op)),
            [load, store],
            "{state:?}"
        );
    };
    let updated = [VolatileUnless(UnsafeLocalRead), VolatileUnless(StoreDuringUpdate)];
    check(&steps![], Volatile, Volatile);
    check(&steps![PeerUpdate], updated[0], updated[1]);
    check(&steps![POST], updated[0], updated[1]);
    check(&steps![POST_GETS], Volatile, VolatileUnless(ConflictingAccess));
    check(&steps![View(LocalOp::Load)], Plain, Forbidden(ConflictingAccess));
    check(&steps![View(LocalOp::Store)], Plain, Plain);
    check(&steps![POST_GETS, View(LocalOp::Load)], Plain, Forbidden(ConflictingAccess));
    check(&steps![FENCE], Volatile, Volatile);
    check(&steps![FENCE, GET], Volatile, Volatile);
    check(&steps![FENCE, PUT], updated[0], updated[1]);
    check(&steps![FENCE, PUT_OTHER, GET], updated[0], updated[1]);
    check(&steps![FENCE, PUT, LAST_FENCE], Volatile, Volatile);
    check(&steps![IOffer], VolatileUnless(LocalAccessDuringOffer), VolatileUnless(LocalAccessDuringOffer));
    check(&steps![(LOCK, OWN)], Plain, Plain);
    check(&steps![(LOCK_SHARED, OWN)], Volatile, VolatileUnless(StoreDuringUpdate));
    check(&steps![LockAll], Volatile, VolatileUnless(StoreDuringUpdate));
    check(&steps![LOCK], Volatile, Volatile);
}
