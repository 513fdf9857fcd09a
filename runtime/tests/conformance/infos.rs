//! Info values: when an epoch under WEAK waits, what it keeps until then, and what a job makes of all values.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rma::{ErrorKind, Hints, Info, LockKind, Origins, Rank, Sum, Team, Window, own};

use crate::pscw::Flags;
use crate::{Case, Outcome, case, grace, kind_of};

pub(crate) const CASES: &[Case] = &[
    case!(weak_starts_wait_where_they_are_told, [2]).under(&[""]),
    case!(kept_transfers_are_bounded, [2]).under(&[""]),
    case!(everything_that_moves_can_be_kept, [2]).under(&[""]),
    case!(a_weak_epoch_keeps_nothing_else_waiting, [2]).under(&[""]),
    case!(wrong_transfers_are_not_kept, [2]).under(&[""]),
    case!(weak_locks_wait_where_they_are_told, [2]).under(&[""]),
    case!(weak_locks_exclude, [3]),
    case!(weak_shared_locks_are_shared, [4]),
    case!(malformed_hints_open_nothing, [2]),
    case!(a_dropped_weak_access_is_completed, [2]),
    case!(a_panic_drops_what_was_kept, [2]).under(&[""]),
    case!(a_leaked_weak_access_moves_nothing, [2]).under(&[""]),
    case!(a_weak_access_to_a_window_that_goes, [2]).under(&[""]),
    case!(forced_strong_locks_nest_where_they_did, [2]).under(&["", "force_info=strong"]),
];

const WHEN: [&str; 3] = ["start", "transfer", "complete"];

fn weak(when: &str) -> Hints {
    Info::Weak.with("weak", when)
}

// covers: EX-E105-03
// covers: RMA-INFO-03, RMA-SYNC-21 (the last schedule: both calls return before the post)
fn weak_starts_wait_where_they_are_told(team: &Team) -> Outcome {
    const LEN: usize = 1000;
    let mut window = Window::<f64>::allocate(team, LEN)?;
    let flags = Flags::new(team)?;
    for (round, when) in (1..).zip(WHEN) {
        // Flag 0: about to start; 1: started; 2: put; 3: completed.
        if team.rank() == Rank(0) {
            let old = window.local()?.to_vec();
            let (returned, blocked) = match when {
                "start" => (0, 1),
                "transfer" => (1, 2),
                _ => (2, 3),
            };
            flags.wait_for(returned, round);
            grace();
            assert_eq!(flags.count(blocked), round - 1, "{when}: the call that should wait has returned");
            for (at, &value) in old.iter().enumerate() {
                assert_eq!(window.load(at)?, value, "{when}: data have arrived before the post");
            }
            window.post(Origins::Any)?.wait(1)?;
            let expected: Vec<f64> = (0..LEN).map(|at| round as f64 + at as f64).collect();
            assert_eq!(*window.local()?, expected, "{when}");
        } else {
            let mut data: Vec<f64> = (0..LEN).map(|at| round as f64 + at as f64).collect();
            flags.raise(Rank(0), 0);
            let access = window.start(Rank(0), weak(when))?;
            flags.raise(Rank(0), 1);
            access.put(Rank(0), 0, &data)?;
            data.fill(f64::NAN);
            flags.raise(Rank(0), 2);
            access.complete()?;
            flags.raise(Rank(0), 3);
        }
        team.barrier()?;
    }
    Ok(())
}

fn kept_transfers_are_bounded(team: &Team) -> Outcome {
    const PIECE: usize = 1024;
    const PIECES: usize = 12;
    let mut window = Window::<u8>::allocate(team, PIECE * PIECES)?;
    let flags = Flags::new(team)?;
    if team.rank() == Rank(0) {
        // Three fit, with what each costs beside its data; the fourth waits.
        flags.wait_for(0, 3);
        grace();
        assert_eq!(flags.count(0), 3);
        assert!(window.local()?.iter().all(|&byte| byte == 0));
        window.post(Origins::Any)?.wait(1)?;
        assert!(window.local()?.iter().enumerate().all(|(at, &byte)| usize::from(byte) == at / PIECE + 1));
    } else {
        let access = window.start(Rank(0), weak("complete").with("combine_bytes", "4096"))?;
        for piece in 0..PIECES {
            access.put(Rank(0), piece * PIECE, [piece as u8 + 1; PIECE])?;
            flags.raise(Rank(0), 0);
        }
        access.complete()?;
    }
    Ok(())
}

fn everything_that_moves_can_be_kept(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 8)?;
    let flags = Flags::new(team)?;
    if team.rank() == Rank(0) {
        window.local_mut()?.copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
        flags.wait_for(0, 1);
        window.post(Origins::Any)?.wait(1)?;
        assert_eq!(*window.local()?, [50, 12, 13, 4, 91, 6, 92, 9]);
        flags.wait_for(0, 2);
        window.post(Origins::Any)?.wait(1)?;
    } else {
        window.local_mut()?.copy_from_slice(&[91, 0, 92, 0, 0, 0, 0, 0]);
        window.access(&[Rank(0)], weak("complete"), |epoch| {
            epoch.put(Rank(0), 0, 50)?;
            epoch.accumulate(Rank(0), 1..3, Sum, vec![10, 10])?;
            epoch.accumulate(Rank(0), 7, Sum, 1)?;
            let spread = rma::Strided { start: 4, count: 2, block: 1, stride: 2 };
            epoch.put(Rank(0), spread, own(rma::Strided { start: 0, ..spread }))?;
            epoch.get(Rank(0), 3..4, own(7..8))?;
            flags.raise(Rank(0), 0);
            Ok(())
        })?;
        assert_eq!(window.load(7)?, 4);
        // What brings something back waits for its target, and takes what was kept before along.
        flags.raise(Rank(0), 0);
        let mut got = [0; 2];
        let (one, before) = window.access(&[Rank(0)], weak("complete"), |epoch| {
            epoch.put(Rank(0), 5, 60)?;
            epoch.get(Rank(0), 0..2, &mut got)?;
            Ok((epoch.get_value(Rank(0), 5)?, epoch.fetch_op(Rank(0), 6, Sum, 1)?))
        })?;
        assert_eq!((one, before, got), (60, 92, [50, 12]));
    }
    Ok(())
}

// covers: RMA-SYNC-22
fn a_weak_epoch_keeps_nothing_else_waiting(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    let other = Window::<u64>::allocate(team, 1)?;
    let flags = Flags::new(team)?;
    if team.rank() == Rank(0) {
        flags.wait_for(0, 1);
        let seen = other.lock(Rank(0), LockKind::Shared, |epoch| epoch.get_value(Rank(0), 0))?;
        assert_eq!((seen, window.load(0)?), (5, 0));
        window.post(Origins::Any)?.wait(1)?;
        assert_eq!(window.load(0)?, 3);
    } else {
        let access = window.start(Rank(0), weak("complete"))?;
        access.put(Rank(0), 0, 3)?;
        other.lock(Rank(0), LockKind::Exclusive, |epoch| epoch.put(Rank(0), 0, 5))?;
        let sum: u64 = (0..1000).sum();
        assert_eq!(sum, 499_500);
        flags.raise(Rank(0), 0);
        access.complete()?;
    }
    Ok(())
}

fn wrong_transfers_are_not_kept(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 4)?;
    if team.rank() == Rank(0) {
        team.barrier()?;
        window.post(Origins::Any)?.wait(1)?;
        assert_eq!(*window.local()?, [0, 0, 0, 1]);
    } else {
        let access = window.start(Rank(0), weak("complete"))?;
        assert_eq!(kind_of(access.put(Rank(0), 3, [1, 1])), ErrorKind::OutOfBounds);
        assert_eq!(kind_of(access.put(Rank(0), 0..2, [1, 1, 1])), ErrorKind::LengthMismatch);
        assert_eq!(kind_of(access.accumulate(Rank(0), 4, Sum, 1)), ErrorKind::OutOfBounds);
        assert_eq!(kind_of(access.put(Rank(1), 0, 1)), ErrorKind::TransferOutsideEpoch);
        assert_eq!(kind_of(access.put(Rank(2), 0, 1)), ErrorKind::RankOutOfRange);
        access.put(Rank(0), 3, 1)?;
        team.barrier()?;
        access.complete()?;
    }
    Ok(())
}

// covers: RMA-LOCK-06 (with the two cases that follow)
fn weak_locks_wait_where_they_are_told(team: &Team) -> Outcome {
    let window = Window::<u64>::allocate(team, 1)?;
    let flags = Flags::new(team)?;
    for (round, when) in (1..).zip(["lock", "transfer", "unlock"]) {
        // Flag 0 at rank 0: about to lock; 1: locked; 2: put; 3: unlocked.
        if team.rank() == Rank(0) {
            let (returned, blocked) = match when {
                "lock" => (0, 1),
                "transfer" => (1, 2),
                _ => (2, 3),
            };
            window.lock(Rank(0), LockKind::Exclusive, |epoch| {
                flags.raise(Rank(1), 0);
                flags.wait_for(returned, round);
                grace();
                assert_eq!(flags.count(blocked), round - 1, "{when}: the call that should wait has returned");
                assert_eq!(epoch.load(0)?, round - 1, "{when}: data have arrived under another's lock");
                Ok(())
            })?;
            flags.wait_for(3, round);
            assert_eq!(window.lock(Rank(0), LockKind::Shared, |epoch| epoch.get_value(Rank(0), 0))?, round);
        } else {
            flags.wait_for(0, round);
            flags.raise(Rank(0), 0);
            window.lock_with(Rank(0), LockKind::Exclusive, weak(when), |epoch| {
                flags.raise(Rank(0), 1);
                epoch.put(Rank(0), 0, round)?;
                flags.raise(Rank(0), 2);
                Ok(())
            })?;
            flags.raise(Rank(0), 3);
        }
        team.barrier()?;
    }
    Ok(())
}

fn weak_locks_exclude(team: &Team) -> Outcome {
    const EACH: u64 = 1000;
    let window = Window::<u64>::allocate(team, 3)?;
    for when in ["lock", "transfer", "unlock"] {
        for _ in 0..EACH {
            // A counter that only the lock protects, and two words that are never unequal.
            window.lock_with(Rank(0), LockKind::Exclusive, weak(when), |epoch| {
                let value = epoch.flush(epoch.get_value(Rank(0), 0))?;
                epoch.put(Rank(0), 0, value + 1)
            })?;
            window.lock_with(Rank(0), LockKind::Exclusive, weak(when), |epoch| {
                epoch.accumulate(Rank(0), 1, Sum, 1)?;
                epoch.accumulate(Rank(0), 2, Sum, 1)
            })?;
            let shared = LockKind::Shared;
            let pair = window.lock_with(Rank(0), shared, weak(when), |epoch| epoch.get_vec(Rank(0), 1..3))?;
            assert_eq!(pair[0], pair[1], "{when}");
        }
        team.barrier()?;
    }
    let all = 3 * EACH * u64::from(team.size());
    assert_eq!(
        window.lock(Rank(0), LockKind::Shared, |epoch| epoch.get_vec(Rank(0), 0..3))?,
        [all, all, all]
    );
    Ok(())
}

fn weak_shared_locks_are_shared(team: &Team) -> Outcome {
    let window = Window::<u64>::allocate(team, 1)?;
    let flags = Flags::new(team)?;
    let me = team.rank();
    for (round, when) in (1..).zip(["lock", "transfer", "unlock"]) {
        if me == Rank(3) {
            flags.wait_for(0, 3 * round);
            // The readers hold the lock together, and leave when the writer waits.
            for rank in 0..3 {
                flags.raise(Rank(rank), 1);
            }
            window
                .lock_with(Rank(0), LockKind::Exclusive, weak(when), |epoch| epoch.put(Rank(0), 0, round))?;
        } else {
            window.lock_with(Rank(0), LockKind::Shared, weak(when), |epoch| {
                // The transfer that brings something back is made under the lock, under each schedule.
                let seen = epoch.flush(epoch.get_value(Rank(0), 0))?;
                assert_eq!(seen, round - 1, "{when}");
                flags.raise(Rank(3), 0);
                flags.wait_for(1, round);
                let seen = epoch.flush(epoch.get_value(Rank(0), 0))?;
                assert_eq!(seen, round - 1, "{when}: the writer came while readers were there");
                Ok(())
            })?;
        }
        team.barrier()?;
    }
    Ok(())
}

fn malformed_hints_open_nothing(team: &Team) -> Outcome {
    let window = Window::<u64>::allocate(team, 1)?;
    let other = Rank(1 - team.rank().0);
    for hints in [Info::Weak.with("combine_bytes", "some"), Info::Strong.with("weak", "never")] {
        let error = window.start(other, hints.clone()).map(|_| ()).expect_err("the hint is malformed");
        assert_eq!(error.kind(), ErrorKind::BadInfo);
        assert!(error.to_string().contains("has to be"), "{error}");
        assert_eq!(kind_of(window.lock_with(other, LockKind::Shared, hints, |_| ())), ErrorKind::BadInfo);
    }
    // Unknown keys change nothing, and nothing is left open.
    window.lock_with(other, LockKind::Shared, Info::NoCheck.with("tide", "high"), |_| ())?;
    window.free()?;
    Ok(())
}

fn a_dropped_weak_access_is_completed(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    if team.rank() == Rank(0) {
        window.post(Origins::Any)?.wait(1)?;
        assert_eq!(window.load(0)?, 4);
    } else {
        let access = window.start(Rank(0), weak("complete"))?;
        access.put(Rank(0), 0, 4)?;
        drop(access);
    }
    Ok(())
}

fn a_panic_drops_what_was_kept(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    if team.rank() == Rank(1) {
        // The target never posts for this, so the unwinding must not wait for it.
        let body = || {
            window.access(&[Rank(0)], weak("complete"), |epoch| {
                epoch.put(Rank(0), 0, 4).expect("it is kept");
                match epoch.len() {
                    1 => panic!("on purpose"),
                    _ => Ok(()),
                }
            })
        };
        let outcome = catch_unwind(AssertUnwindSafe(body));
        outcome.expect_err("it panics");
    }
    team.barrier()?;
    if team.rank() == Rank(0) {
        assert_eq!(window.load(0)?, 0);
        window.post(Origins::Any)?.wait(1)?;
        assert_eq!(window.load(0)?, 5);
    } else {
        window.access(&[Rank(0)], Info::Strong, |epoch| epoch.put(Rank(0), 0, 5))?;
    }
    Ok(())
}

fn a_leaked_weak_access_moves_nothing(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    let keep = Window::<u64>::allocate(team, 1)?;
    if team.rank() == Rank(1) {
        let data = vec![7];
        let access = window.start(Rank(0), weak("complete"))?;
        access.put(Rank(0), 0, &data)?;
        std::mem::forget(access);
        drop(data);
        let lock = keep.acquire(Rank(0), LockKind::Exclusive, weak("unlock"))?;
        lock.put(Rank(0), 0, 7)?;
        std::mem::forget(lock);
        assert_eq!(kind_of(window.fence(|_| ())), ErrorKind::MixedSync);
        assert_eq!(kind_of(window.free()), ErrorKind::EpochStillOpen);
        assert_eq!(kind_of(keep.free()), ErrorKind::EpochStillOpen);
        team.barrier()?;
    } else {
        team.barrier()?;
        assert_eq!((window.load(0)?, keep.load(0)?), (0, 0));
        assert_eq!(kind_of(window.post(Origins::Group(&[Rank(1)]))?.wait_all()), ErrorKind::WindowFreed);
    }
    team.barrier()?;
    Ok(())
}

fn a_weak_access_to_a_window_that_goes(team: &Team) -> Outcome {
    let window = Window::<u64>::allocate(team, 1)?;
    if team.rank() == Rank(0) {
        drop(window);
        team.barrier()?;
    } else {
        let access = window.start(Rank(0), weak("complete"))?;
        access.put(Rank(0), 0, 4)?;
        team.barrier()?;
        assert_eq!(kind_of(access.complete()), ErrorKind::WindowFreed);
        let access = window.start(Rank(0), weak("transfer"))?;
        assert_eq!(kind_of(access.put(Rank(0), 0, 4)), ErrorKind::WindowFreed);
        assert_eq!(kind_of(access.complete()), ErrorKind::WindowFreed);
        window.lock_with(Rank(1), LockKind::Shared, weak("unlock"), |_| ())?;
    }
    Ok(())
}

/// The delete of a linked list over two ranks: under a master lock, the locks of the two nodes' ranks promise that they are
/// free, and nest if both nodes lie at one rank.
// covers: RMA-LOCK-08
fn forced_strong_locks_nest_where_they_did(team: &Team) -> Outcome {
    const NODES: usize = 4;
    let master = Window::<u64>::allocate(team, 0)?;
    let heap = Window::<u64>::allocate(team, NODES)?;
    let (exclusive, shared) = (LockKind::Exclusive, LockKind::Shared);
    for _ in 0..200 {
        for (previous, node) in
            [(Rank(0), Rank(1)), (Rank(1), Rank(0)), (Rank(0), Rank(0)), (Rank(1), Rank(1))]
        {
            master.lock(Rank(0), exclusive, |_| {
                heap.lock_with(previous, shared, Info::NoCheck, |outer| {
                    heap.lock_with(node, exclusive, Info::NoCheck, |inner| {
                        let next = inner.flush(inner.get_value(node, 1))?;
                        inner.put(node, 1, next + 1)
                    })?;
                    outer.flush(outer.get_value(previous, 1))
                })
            })?;
        }
    }
    team.rma_barrier()?;
    assert_eq!(heap.load(1)?, 2 * 200 * u64::from(team.size()));
    Ok(())
}
