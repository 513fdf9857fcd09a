//! Locks: exclusion, sharing, order, local views, and the other styles.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use rma::{ErrorKind, Info, LockKind, Origins, Rank, Sum, Team, Window};

use crate::{Case, Outcome, case, grace, has_time, kind_of, stalled, until};

pub(crate) const CASES: &[Case] = &[
    case!(the_next_holder_sees_the_put, [2]),
    case!(no_increment_is_lost, [2, 4]).many_rounds(),
    case!(readers_never_see_half_a_write, [3]).many_rounds(),
    case!(shared_holders_hold_together, [4]),
    case!(a_second_exclusive_holder_waits, [2]),
    case!(owners_lock_their_own_window, [4]),
    case!(a_large_get_is_there_after_unlock, [2]),
    case!(a_lock_is_not_taken_twice, [2]),
    case!(unchecked_locks_nest, [2]).under(&[""]),
    case!(who_waits_elsewhere_is_told, [4]).mixed(),
    case!(styles_do_not_overlap_but_follow_each_other, [2]),
    case!(a_waiting_writer_is_served, [4]),
    case!(locks_need_no_target, [2]).one_copy(),
    case!(several_locks_in_a_global_order, [3]).many_rounds(),
    case!(some_locks_in_a_global_order, [3]).wired(),
    case!(local_views_exclude_locks, [2]),
    case!(a_lock_excludes_local_views, [2]),
    case!(a_leaked_view_is_given_back, [2]),
    case!(a_panic_unlocks, [2]),
    case!(a_waiter_that_gives_up_is_skipped, [3]),
    case!(a_broken_lock_promise_is_refused, [2]).under(&[""]),
];

// covers: RMA-LOCK-01
fn the_next_holder_sees_the_put(team: &Team) -> Outcome {
    let window = Window::<u64>::allocate(team, 2)?;
    if team.rank() == Rank(0) {
        let mut buffer = [41, 42];
        window.lock(Rank(1), LockKind::Exclusive, |epoch| epoch.put(Rank(1), 0, &buffer))?;
        buffer.fill(0);
        team.barrier()?;
        assert_eq!(buffer, [0, 0]);
    } else {
        team.barrier()?;
        let got = window.lock(Rank(1), LockKind::Shared, |epoch| epoch.get_vec(Rank(1), 0..2))?;
        assert_eq!(got, [41, 42]);
    }
    Ok(())
}

// covers: RMA-LOCK-02
fn no_increment_is_lost(team: &Team) -> Outcome {
    const EACH: u64 = 10_000;
    let window = Window::<u64>::allocate(team, 1)?;
    let begun = Instant::now();
    let mut all = [0];
    for _ in (0..EACH).take_while(|_| has_time(begun)) {
        all[0] += 1;
        window.lock(Rank(0), LockKind::Exclusive, |epoch| {
            let value = epoch.flush(epoch.get_value(Rank(0), 0))?;
            epoch.put(Rank(0), 0, value + 1)
        })?;
    }
    team.allreduce(&mut all, Sum)?;
    if team.rank() == Rank(0) {
        assert_eq!(*window.local()?, all);
    }
    Ok(())
}

// covers: RMA-LOCK-03
fn readers_never_see_half_a_write(team: &Team) -> Outcome {
    const TRIES: usize = 100_000;
    let window = Window::<u64>::allocate(team, 2)?;
    let done = crate::flags::<u64>(team, 1)?;
    if team.rank() == Rank(0) {
        let mut round = 0;
        while done.load(0)? < 2 {
            round += 1;
            window.lock(Rank(1), LockKind::Exclusive, |epoch| {
                epoch.put(Rank(1), 0, round)?;
                epoch.put(Rank(1), 1, round)
            })?;
        }
    } else {
        let begun = Instant::now();
        for _ in (0..TRIES).take_while(|_| has_time(begun)) {
            let pair = window.lock(Rank(1), LockKind::Shared, |epoch| epoch.get_vec(Rank(1), 0..2))?;
            assert_eq!(pair[0], pair[1]);
        }
        done.lock(Rank(0), LockKind::Exclusive, |epoch| epoch.fetch_op(Rank(0), 0, Sum, 1))?;
    }
    Ok(())
}

// covers: RMA-LOCK-04
fn shared_holders_hold_together(team: &Team) -> Outcome {
    let window = Window::<u64>::allocate(team, 3)?;
    let flags = crate::flags::<u64>(team, 3)?;
    let raise = |at: Rank, flag: usize| {
        flags.lock(at, LockKind::Shared, |epoch| epoch.fetch_op(at, flag, Sum, 1)).expect("flags work")
    };
    if team.rank() != Rank(3) {
        window.lock(Rank(0), LockKind::Shared, |epoch| {
            // All three are inside before one leaves.
            for rank in 0..3 {
                raise(Rank(rank), 0);
            }
            until(|| flags.load(0).unwrap() == 3);
            if team.rank() == Rank(0) {
                raise(Rank(3), 0);
                until(|| flags.load(1).unwrap() == 1);
                grace();
                epoch.put(Rank(0), 2, 1)?;
            }
            Ok(())
        })?;
    } else {
        until(|| flags.load(0).unwrap() == 1);
        raise(Rank(0), 1);
        let seen = window.lock(Rank(0), LockKind::Exclusive, |epoch| epoch.get_value(Rank(0), 2))?;
        assert_eq!(seen, 1, "the writer got the lock before the last reader had released it");
    }
    Ok(())
}

// covers: RMA-LOCK-05
fn a_second_exclusive_holder_waits(team: &Team) -> Outcome {
    let window = Window::<u64>::allocate(team, 1)?;
    let flags = crate::flags::<u64>(team, 2)?;
    if team.rank() == Rank(0) {
        window.lock(Rank(1), LockKind::Exclusive, |epoch| {
            flags.lock(Rank(1), LockKind::Shared, |flag| flag.put(Rank(1), 0, 1))?;
            until(|| flags.load(1).unwrap() == 1);
            grace();
            epoch.put(Rank(1), 0, 9)
        })?;
    } else {
        until(|| flags.load(0).unwrap() == 1);
        flags.lock(Rank(0), LockKind::Shared, |flag| flag.put(Rank(0), 1, 1))?;
        let seen = window.lock(Rank(1), LockKind::Exclusive, |epoch| epoch.get_value(Rank(1), 0))?;
        assert_eq!(seen, 9);
    }
    Ok(())
}

// covers: RMA-LOCK-09
fn owners_lock_their_own_window(team: &Team) -> Outcome {
    const EACH: u64 = 3000;
    let window = Window::<u64>::allocate(team, 1)?;
    for _ in 0..EACH {
        window.lock(Rank(0), LockKind::Exclusive, |epoch| {
            if team.rank() == Rank(0) {
                epoch.store(0, epoch.load(0)? + 1)
            } else {
                let value = epoch.flush(epoch.get_value(Rank(0), 0))?;
                epoch.put(Rank(0), 0, value + 1)
            }
        })?;
    }
    team.barrier()?;
    if team.rank() == Rank(0) {
        assert_eq!(window.local()?[0], EACH * u64::from(team.size()));
    }
    Ok(())
}

// covers: RMA-LOCK-11
fn a_large_get_is_there_after_unlock(team: &Team) -> Outcome {
    const LEN: usize = 1 << 20;
    let mut window = Window::<u64>::allocate(team, LEN)?;
    for (at, value) in window.local_mut()?.iter_mut().enumerate() {
        *value = at as u64 * 3;
    }
    team.barrier()?;
    let other = Rank(1 - team.rank().0);
    let mut got = vec![0; LEN];
    window.lock(other, LockKind::Shared, |epoch| epoch.get(other, 0, &mut got))?;
    assert!(got.iter().enumerate().all(|(at, &value)| value == at as u64 * 3));
    team.barrier()?;
    Ok(())
}

fn a_lock_is_not_taken_twice(team: &Team) -> Outcome {
    let window = Window::<u64>::allocate(team, 1)?;
    window.lock(Rank(0), LockKind::Shared, |_| {
        for kind in [LockKind::Shared, LockKind::Exclusive] {
            let error = window.lock(Rank(0), kind, |_| ()).expect_err("this rank has it");
            assert_eq!((error.kind(), error.context().target), (ErrorKind::LockHeld, Some(Rank(0))));
        }
        // Another target is another lock.
        window.lock(Rank(1), LockKind::Shared, |_| ())
    })?;
    Ok(())
}

// covers: RMA-LOCK-12
fn unchecked_locks_nest(team: &Team) -> Outcome {
    let window = Window::<u64>::allocate(team, 1)?;
    let (exclusive, shared, free) = (LockKind::Exclusive, LockKind::Shared, Info::NoCheck);
    let nests = [(exclusive, exclusive), (shared, exclusive), (shared, shared), (exclusive, shared)];
    for (round, (outer, inner)) in (1..).zip(nests) {
        let nest = |value| {
            window.lock_with(Rank(1), outer, free, |outside| {
                window.lock_with(Rank(1), inner, free, |epoch| epoch.put(Rank(1), 0, value))?;
                assert_eq!(kind_of(window.lock(Rank(1), shared, |_| ())), ErrorKind::LockHeld);
                outside.flush(outside.get_value(Rank(1), 0))
            })
        };
        if team.rank() == Rank(0) {
            assert_eq!(nest(round)?, round, "the outer lock is still there");
        }
        team.barrier()?;
        // A nest is exclusive as soon as one lock of it is, and can't be had beside a shared lock then.
        if team.rank() == Rank(0) {
            team.barrier()?;
            let outcome = nest(round + 100);
            match (outer, inner) {
                (LockKind::Shared, LockKind::Shared) => assert_eq!(outcome?, round + 100),
                _ => assert_eq!(kind_of(outcome), ErrorKind::NoCheckConflict),
            }
            team.barrier()?;
        } else {
            window.lock(Rank(1), shared, |epoch| {
                assert_eq!(epoch.load(0)?, round);
                team.barrier()?;
                team.barrier()
            })?;
            let both_share = (outer, inner) == (shared, shared);
            let seen = window.lock(Rank(1), shared, |epoch| epoch.load(0))?;
            assert_eq!(seen, if both_share { round + 100 } else { round });
        }
        team.barrier()?;
        // Nothing is left of the nest.
        window.lock(Rank(1), exclusive, |_| ())?;
        team.barrier()?;
    }
    Ok(())
}

/// The lock of a rank that two map and two don't: one that waits at the owner's agent is told when one that maps it lets go.
fn who_waits_elsewhere_is_told(team: &Team) -> Outcome {
    const OWNER: Rank = Rank(0);
    let window = Window::<u64>::allocate(team, 2)?;
    let flags = crate::flags::<u64>(team, 1)?;
    let exclusive = LockKind::Exclusive;
    let begun = Instant::now();
    let mut told = 0;
    // The others are in the queue when the lock is let go, sooner or later.
    for round in 1.. {
        match team.rank() {
            Rank(1) => {
                window.lock(OWNER, exclusive, |_| {
                    for rank in [2, 3] {
                        flags.lock(Rank(rank), LockKind::Shared, |epoch| epoch.put(Rank(rank), 0, round))?;
                    }
                    grace();
                    told = team.traffic().frames_sent;
                    Ok(())
                })?;
                told = team.traffic().frames_sent - told;
            }
            Rank(2) | Rank(3) => {
                until(|| flags.load(0).unwrap() == round);
                window.lock(OWNER, exclusive, |epoch| {
                    let count = epoch.flush(epoch.get_value(OWNER, 0))?;
                    epoch.put(OWNER, 0, count + 1)
                })?;
            }
            _ => {}
        }
        let mut outcome = [told, u64::from(team.rank() == Rank(1) && crate::PATIENT / 2 < begun.elapsed())];
        team.broadcast(Rank(1), &mut outcome)?;
        if outcome != [0, 0] {
            let seen = window.lock(OWNER, LockKind::Shared, |epoch| epoch.get_value(OWNER, 0))?;
            assert_eq!(seen, 2 * round, "each has had its turn");
            assert_eq!(outcome[0], 1, "one frame says that the lock is free");
            return Ok(());
        }
    }
    Ok(())
}

// covers: RMA-LOCK-14, RMA-SYNC-01
fn styles_do_not_overlap_but_follow_each_other(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 2)?;
    let me = team.rank();
    let other = Rank(1 - me.0);
    for round in 1..=50 {
        // Post and wait.
        if me == Rank(0) {
            let exposure = window.post(Origins::Any)?;
            team.barrier()?;
            assert_eq!(kind_of(exposure.lock(me, LockKind::Shared, |_| ())), ErrorKind::MixedSync);
            exposure.wait(1)?;
            assert_eq!(window.load(0)?, round);
        } else {
            team.barrier()?;
            assert_eq!(kind_of(window.lock(Rank(0), LockKind::Exclusive, |_| ())), ErrorKind::MixedSync);
            let access = window.start(Rank(0), Info::Strong)?;
            assert_eq!(kind_of(window.lock(Rank(0), LockKind::Exclusive, |_| ())), ErrorKind::MixedSync);
            access.put(Rank(0), 0, round)?;
            access.complete()?;
        }
        team.barrier()?;
        // Lock.
        if me == Rank(1) {
            let seen = window.lock(Rank(0), LockKind::Exclusive, |epoch| {
                epoch.put(Rank(0), 1, round)?;
                assert_eq!(kind_of(window.start(Rank(0), Info::Strong).map(|_| ())), ErrorKind::MixedSync);
                epoch.get_value(Rank(0), 0)
            })?;
            assert_eq!(seen, round);
        }
        team.barrier()?;
        // Fence, post again, and a lock of the owner that a post meets.
        window.fence(|epoch| epoch.put(other, 0, round + 100))?;
        assert_eq!(window.load(0)?, round + 100);
        if me == Rank(1) {
            window.lock(Rank(0), LockKind::Exclusive, |_| {
                team.barrier()?;
                team.barrier()
            })?;
        } else {
            team.barrier()?;
            let error = window.post(Origins::Any).map(|_| ()).expect_err("rank 1 has the lock");
            assert_eq!(error.kind(), ErrorKind::MixedSync);
            assert!(error.to_string().contains("rank 1"), "{error}");
            team.barrier()?;
        }
        team.barrier()?;
    }
    Ok(())
}

// covers: RMA-LOCK-16
fn a_waiting_writer_is_served(team: &Team) -> Outcome {
    let window = Window::<u64>::allocate(team, 1)?;
    team.barrier()?;
    if team.rank() == Rank(3) {
        grace();
        let begun = Instant::now();
        window.lock(Rank(0), LockKind::Exclusive, |epoch| epoch.put(Rank(0), 0, 1))?;
        // Five seconds by requirement, and four times as much for a busy machine.
        assert!(begun.elapsed() < Duration::from_secs(20));
    } else {
        let mut done = 0;
        while done == 0 {
            done = window.lock(Rank(0), LockKind::Shared, |epoch| epoch.get_value(Rank(0), 0))?;
        }
    }
    Ok(())
}

// covers: RMA-PROG-02, RMA-PROG-06
fn locks_need_no_target(team: &Team) -> Outcome {
    const BYTES: usize = 1 << 20;
    let window = Window::<u8>::allocate(team, BYTES)?;
    if team.rank() == Rank(0) {
        // No call but loads.
        until(|| window.load(BYTES - 1).unwrap() == 100);
    } else {
        let mut took = Vec::new();
        for round in 0..=100 {
            let data = vec![round; BYTES];
            let begun = Instant::now();
            window.lock(Rank(0), LockKind::Exclusive, |epoch| epoch.put(Rank(0), 0, &data))?;
            took.push(begun.elapsed());
        }
        for _ in 0..1000 {
            window.lock(Rank(0), LockKind::Exclusive, |epoch| epoch.put(Rank(0), 0, 1))?;
        }
        took.sort_unstable();
        let (median, slowest) = (took[took.len() / 2], took[took.len() - 1]);
        println!("puts of 1 MiB to a target that makes no call: median {median:?}, slowest {slowest:?}");
        // The slowest one says what else the machine does.
        assert!(median < Duration::from_secs(1));
    }
    Ok(())
}

fn several_locks_in_a_global_order(team: &Team) -> Outcome {
    locks_in_a_global_order(team, 10_000)
}

fn some_locks_in_a_global_order(team: &Team) -> Outcome {
    locks_in_a_global_order(team, if crate::is_full() { 10_000 } else { 200 })
}

fn locks_in_a_global_order(team: &Team, rounds: u64) -> Outcome {
    let window = Window::<u64>::allocate(team, 1)?;
    for round in 0..rounds {
        let first = Rank((round % 2) as u32);
        let second = Rank(first.0 + 1);
        window.lock(first, LockKind::Exclusive, |one| {
            window.lock(second, LockKind::Exclusive, |two| {
                let a = one.flush(one.get_value(first, 0))?;
                let b = two.flush(two.get_value(second, 0))?;
                one.put(first, 0, a + 1)?;
                two.put(second, 0, b + 1)
            })
        })?;
    }
    team.barrier()?;
    let all = rounds / 2 * u64::from(team.size());
    assert_eq!(window.local()?[0], if team.rank() == Rank(1) { 2 * all } else { all });
    Ok(())
}

fn local_views_exclude_locks(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 2)?;
    let flags = crate::flags::<u64>(team, 2)?;
    if team.rank() == Rank(0) {
        for mutable in [true, false] {
            let view = |view: &[u64]| {
                flags.lock(Rank(1), LockKind::Shared, |flag| flag.fetch_op(Rank(1), 0, Sum, 1)).unwrap();
                let before = view[0];
                grace();
                assert_eq!(view[0], before, "somebody wrote under the view");
            };
            if mutable {
                view(&window.local_mut()?);
            } else {
                let one = window.local()?;
                let two = window.local()?;
                drop(one);
                assert_eq!(
                    kind_of(window.lock(Rank(0), LockKind::Shared, |_| ())),
                    ErrorKind::EpochStillOpen
                );
                // Another rank's window is not concerned.
                window.lock(Rank(1), LockKind::Shared, |epoch| {
                    assert_eq!(kind_of(epoch.store(0, 1)), ErrorKind::StoreDuringUpdate);
                    assert_eq!(kind_of(epoch.get(Rank(1), 0..1, rma::own(0))), ErrorKind::StoreDuringUpdate);
                })?;
                view(&two);
            }
            until(|| flags.load(1).unwrap() == if mutable { 1 } else { 2 });
        }
    } else {
        for round in 1..=2 {
            until(|| flags.load(0).unwrap() == round);
            window.lock(Rank(0), LockKind::Shared, |epoch| epoch.put(Rank(0), 0, round))?;
            flags.lock(Rank(0), LockKind::Shared, |flag| flag.put(Rank(0), 1, round))?;
        }
    }
    Ok(())
}

fn a_lock_excludes_local_views(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    let flags = crate::flags::<u64>(team, 1)?;
    if team.rank() == Rank(1) {
        for kind in [LockKind::Shared, LockKind::Exclusive] {
            window.lock(Rank(0), kind, |epoch| {
                team.barrier()?;
                until(|| flags.load(0).unwrap() == 1);
                epoch.put(Rank(0), 0, 1)
            })?;
            flags.lock(Rank(1), LockKind::Shared, |flag| flag.put(Rank(1), 0, 0))?;
            team.barrier()?;
            team.barrier()?;
        }
    } else {
        for _ in 0..2 {
            team.barrier()?;
            stalled(team, || window.local().map(|_| ()));
            stalled(team, || window.local_mut().map(|_| ()));
            flags.lock(Rank(1), LockKind::Shared, |flag| flag.put(Rank(1), 0, 1))?;
            team.barrier()?;
            // What was abandoned in the queue is skipped.
            window.local_mut()?.fill(0);
            team.barrier()?;
        }
    }
    Ok(())
}

fn a_leaked_view_is_given_back(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    std::mem::forget(window.local()?);
    std::mem::forget(window.local()?);
    assert_eq!(kind_of(window.lock(team.rank(), LockKind::Shared, |_| ())), ErrorKind::EpochStillOpen);
    window.store(0, 1)?;
    window.lock(team.rank(), LockKind::Shared, |_| ())?;
    std::mem::forget(window.local_mut()?);
    assert_eq!(*window.local_mut()?, [1]);
    std::mem::forget(window.local_mut()?);
    window.fence(|epoch| epoch.put(Rank(0), 0, 2))?;
    let other = Rank(1 - team.rank().0);
    window.lock(other, LockKind::Exclusive, |_| ())?;
    Ok(())
}

fn a_panic_unlocks(team: &Team) -> Outcome {
    let window = Window::<u64>::allocate(team, 1)?;
    if team.rank() == Rank(0) {
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            window.lock(Rank(1), LockKind::Exclusive, |epoch| {
                epoch.put(Rank(1), 0, 5).expect("the lock is held");
                if team.rank() == Rank(0) {
                    panic!("on purpose");
                }
            })
        }));
        assert!(panicked.is_err());
    }
    team.barrier()?;
    let seen = window.lock(Rank(1), LockKind::Exclusive, |epoch| epoch.get_value(Rank(1), 0))?;
    assert_eq!(seen, 5);
    Ok(())
}

fn a_waiter_that_gives_up_is_skipped(team: &Team) -> Outcome {
    let window = Window::<u64>::allocate(team, 1)?;
    let flags = crate::flags::<u64>(team, 3)?;
    let raise = |at: Rank, flag: usize| {
        flags.lock(at, LockKind::Shared, |epoch| epoch.fetch_op(at, flag, Sum, 1)).expect("flags work")
    };
    match team.rank() {
        Rank(0) => {
            window.lock(Rank(0), LockKind::Exclusive, |_| {
                raise(Rank(1), 0);
                until(|| flags.load(0).unwrap() == 1);
            })?;
            raise(Rank(2), 1);
            // After the one that gave up three times.
            window.lock(Rank(0), LockKind::Exclusive, |_| ())?;
        }
        Rank(1) => {
            until(|| flags.load(0).unwrap() == 1);
            for kind in [LockKind::Exclusive, LockKind::Shared, LockKind::Exclusive] {
                stalled(team, || window.lock(Rank(0), kind, |_| ()));
            }
            raise(Rank(0), 0);
            window.lock(Rank(0), LockKind::Shared, |_| ())?;
        }
        _ => {
            until(|| flags.load(1).unwrap() == 1);
            window.lock(Rank(0), LockKind::Exclusive, |_| ())?;
        }
    }
    Ok(())
}

fn a_broken_lock_promise_is_refused(team: &Team) -> Outcome {
    let window = Window::<u64>::allocate(team, 1)?;
    if team.rank() == Rank(0) {
        window.lock(Rank(0), LockKind::Shared, |_| {
            team.barrier()?;
            team.barrier()
        })?;
    } else {
        team.barrier()?;
        let free = Info::NoCheck;
        window.lock_with(Rank(0), LockKind::Shared, free, |_| ())?;
        let outcome = window.lock_with(Rank(0), LockKind::Exclusive, free, |epoch| epoch.put(Rank(0), 0, 1));
        assert_eq!(kind_of(outcome), ErrorKind::NoCheckConflict);
        team.barrier()?;
    }
    team.barrier()?;
    if team.rank() == Rank(0) {
        assert_eq!(*window.local()?, [0]);
    }
    Ok(())
}
