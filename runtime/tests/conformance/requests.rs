//! Start and wait as requests, locks as guards, and the two-call layer.

use rma::{ErrorKind, Info, LockKind, Origins, Rank, Sum, Team, Window};

use crate::pscw::Flags;
use crate::{Case, Outcome, case, kind_of, stalled, until};

pub(crate) const CASES: &[Case] = &[
    case!(requests_are_granted_when_their_time_comes, [2]),
    case!(a_dropped_istart_was_left_open, [2]).failing("istart"),
    case!(a_dropped_iwait_was_left_open, [2]).failing("iwait"),
    case!(a_pending_request_is_no_epoch, [2]).under(&[""]),
    case!(requests_learn_that_the_other_side_goes, [3]),
    case!(a_leaked_exposure_is_found_again, [2]),
    case!(a_window_may_begin_posted, [3]),
    case!(a_window_that_began_posted_has_to_be_waited_for, [2]).failing("own exposure was not waited for"),
    case!(lock_guards_do_what_scopes_do, [2, 4]).under(&[""]),
    case!(a_dropped_lock_guard_unlocks, [2]),
    case!(leaving_with_a_held_lock_is_an_error, [2]).failing("epoch still open: the access to ranks 1"),
    case!(two_calls_take_turns, [2]),
    case!(a_window_with_three_accessors_takes_three_calls, [4]),
    case!(a_missing_call_is_named, [4]),
];

// covers: RMA-SYNC-23 (with the two cases that follow)
fn requests_are_granted_when_their_time_comes(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    let flags = Flags::new(team)?;
    for round in 1..=20 {
        if team.rank() == Rank(0) {
            flags.wait_for(0, round);
            let exposure = window.post(Origins::Any)?;
            let mut request = exposure.iwait(1)?;
            assert!(!request.test()?, "nobody has completed");
            flags.raise(Rank(1), 0);
            if round % 2 == 0 {
                until(|| request.test().expect("rank 1 lives"));
                assert!(request.test()?);
                assert_eq!(request.load(0)?, round);
            }
            request.wait()?;
            assert_eq!(window.load(0)?, round);
        } else {
            let mut request = window.istart(Rank(0), Info::Strong)?;
            assert!(!request.test()?, "rank 0 has not posted");
            flags.raise(Rank(0), 0);
            if round % 3 == 0 {
                until(|| request.test().expect("rank 0 lives"));
                assert!(request.test()?);
            }
            let access = request.wait()?;
            flags.wait_for(0, round);
            access.put(Rank(0), 0, round)?;
            access.complete()?;
        }
    }
    Ok(())
}

fn a_dropped_istart_was_left_open(team: &Team) -> Outcome {
    let window = Window::<u64>::allocate(team, 1)?;
    if team.rank() == Rank(0) {
        drop(window.istart(Rank(1), Info::Strong)?);
    }
    team.barrier()?;
    Ok(())
}

fn a_dropped_iwait_was_left_open(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    if team.rank() == Rank(0) {
        drop(window.post(Origins::Any)?.iwait(1)?);
    }
    team.barrier()?;
    Ok(())
}

fn a_pending_request_is_no_epoch(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    let (me, other) = (team.rank(), Rank(1 - team.rank().0));
    if me == Rank(1) {
        team.barrier()?;
        window.post(Origins::Any)?.wait(1)?;
        assert_eq!(window.load(0)?, 6);
        return Ok(());
    }
    let request = window.istart(other, Info::Strong)?;
    assert_eq!(kind_of(window.start(other, Info::Strong).map(|_| ())), ErrorKind::StartNested);
    assert_eq!(kind_of(window.lock(other, LockKind::Shared, |_| ())), ErrorKind::MixedSync);
    assert_eq!(kind_of(team.rma_barrier()), ErrorKind::MixedSync);
    // An access to another target does not let this one in.
    let outside = window.access(&[], Info::Strong, |epoch| epoch.put(other, 0, 5));
    assert_eq!(kind_of(outside), ErrorKind::TransferOutsideEpoch);
    assert_eq!(kind_of(window.istart(other, Info::NoCheck).map(|_| ())), ErrorKind::StartNested);
    team.barrier()?;
    let access = request.wait()?;
    access.put(other, 0, 6)?;
    access.complete()?;
    let unposted = window.istart(other, Info::NoCheck).and_then(|request| request.wait()?.complete());
    assert_eq!(kind_of(unposted), ErrorKind::NotPosted);
    window.local_mut()?.fill(1);
    Ok(())
}

fn requests_learn_that_the_other_side_goes(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    match team.rank() {
        Rank(0) => {
            let mut request = window.istart(Rank(2), Info::Strong)?;
            team.barrier()?;
            team.barrier()?;
            assert_eq!(kind_of(request.test()), ErrorKind::WindowFreed);
        }
        Rank(1) => {
            let mut request = window.post(Origins::Group(&[Rank(2)]))?.iwait(1)?;
            team.barrier()?;
            team.barrier()?;
            assert_eq!(kind_of(request.test()), ErrorKind::WindowFreed);
            drop(request);
            window.local_mut()?.fill(1);
        }
        _ => {
            team.barrier()?;
            drop(window);
            team.barrier()?;
        }
    }
    team.barrier()?;
    Ok(())
}

fn a_leaked_exposure_is_found_again(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    assert_eq!(kind_of(window.posted().map(|_| ())), ErrorKind::WaitWithoutPost);
    if team.rank() == Rank(0) {
        std::mem::forget(window.post(Origins::Any)?);
        window.posted()?.wait(1)?;
        assert_eq!(*window.local()?, [3]);
        assert_eq!(kind_of(window.posted().map(|_| ())), ErrorKind::WaitWithoutPost);
    } else {
        window.access(&[Rank(0)], Info::Strong, |epoch| epoch.put(Rank(0), 0, 3))?;
    }
    Ok(())
}

// covers: RMA-SYNC-16
fn a_window_may_begin_posted(team: &Team) -> Outcome {
    const ROUNDS: u64 = 100;
    let me = team.rank();
    // Wait, load, post, round by round, and both producers begin at once.
    let run = |mut window: Window<u64>| -> rma::Result<()> {
        for round in 1..=ROUNDS {
            if me == Rank(0) {
                window.posted()?.wait(2)?;
                assert_eq!(*window.local()?, [0, round, 2 * round]);
                if round < ROUNDS {
                    std::mem::forget(window.post(Origins::Any)?);
                }
            } else {
                window.access(&[Rank(0)], Info::Strong, |epoch| {
                    epoch.put(Rank(0), me.index(), u64::from(me.0) * round)
                })?;
            }
        }
        Ok(())
    };
    let begins = |window: rma::WindowOptions| match me {
        Rank(0) => window.created_posted(),
        _ => window,
    };
    let window = begins(rma::WindowOptions::new()).allocate::<u64>(team, 3)?;
    assert!(window.target_posted(Rank(0))?);
    run(window)?;
    // Without the option it begins private, and the first call is wrong.
    let mut window = Window::<u64>::allocate(team, 3)?;
    assert!(!window.target_posted(Rank(0))?);
    assert_eq!(kind_of(window.posted().map(|_| ())), ErrorKind::WaitWithoutPost);
    team.barrier()?;
    Ok(())
}

fn a_window_that_began_posted_has_to_be_waited_for(team: &Team) -> Outcome {
    let window = rma::WindowOptions::new().created_posted().allocate::<u64>(team, 1)?;
    assert_eq!(kind_of(window.local().map(|_| ())), ErrorKind::EpochStillOpen);
    assert_eq!(kind_of(window.lock(Rank(0), LockKind::Shared, |_| ())), ErrorKind::MixedSync);
    drop(window);
    team.barrier()?;
    Ok(())
}

fn lock_guards_do_what_scopes_do(team: &Team) -> Outcome {
    const EACH: u64 = 1000;
    let window = Window::<u64>::allocate(team, 2)?;
    for _ in 0..EACH {
        let lock = window.acquire(Rank(0), LockKind::Exclusive, Info::Strong)?;
        assert_eq!(lock.target(), Rank(0));
        let before = lock.flush(lock.get_value(Rank(0), 0)?)?;
        lock.put(Rank(0), 0, before + 1)?;
        let pending = lock.fetch_op(Rank(0), 1, Sum, 2)?;
        assert_eq!(lock.unlock_with(pending)?, 2 * before);
    }
    team.barrier()?;
    let shared = window.acquire(Rank(0), LockKind::Shared, Info::Strong)?;
    let all = EACH * u64::from(team.size());
    assert_eq!(shared.flush(shared.get_vec(Rank(0), 0..2)?)?, [all, 2 * all]);
    // Guards of several ranks end in any order.
    let next = Rank(1 % team.size());
    let other = window.acquire(next, LockKind::Shared, Info::Strong)?;
    shared.unlock()?;
    other.unlock()?;
    // NOCHECK nests, and the lock is given back by the last guard.
    let outer = window.acquire(team.rank(), LockKind::Exclusive, Info::Strong)?;
    let inner = window.acquire(team.rank(), LockKind::Exclusive, Info::NoCheck)?;
    outer.unlock()?;
    assert_eq!(kind_of(window.local().map(|_| ())), ErrorKind::EpochStillOpen);
    inner.unlock()?;
    drop(window.local()?);
    Ok(())
}

fn a_dropped_lock_guard_unlocks(team: &Team) -> Outcome {
    let window = Window::<u64>::allocate(team, 1)?;
    let fail = |window: &Window<u64>| {
        let lock = window.acquire(Rank(0), LockKind::Exclusive, Info::Strong)?;
        lock.put(Rank(0), 0, 1)?;
        lock.put(Rank(0), 9, 1)
    };
    assert_eq!(kind_of(fail(&window)), ErrorKind::OutOfBounds);
    team.barrier()?;
    let seen = window.lock(Rank(0), LockKind::Exclusive, |epoch| epoch.get_value(Rank(0), 0))?;
    assert_eq!(seen, 1);
    Ok(())
}

// covers: RMA-LOCK-13 (with the unit test of the lock that is not held)
fn leaving_with_a_held_lock_is_an_error(team: &Team) -> Outcome {
    let window = Window::<u64>::allocate(team, 1)?;
    if team.rank() == Rank(0) {
        std::mem::forget(window.acquire(Rank(1), LockKind::Exclusive, Info::Strong)?);
        drop(window);
        return Ok(());
    }
    // The end of the handle gives the lock back.
    window.lock(Rank(1), LockKind::Exclusive, |_| ())?;
    Ok(())
}

// covers: RMA-SYNC-24 (with the two cases that follow)
fn two_calls_take_turns(team: &Team) -> Outcome {
    const ROUNDS: u64 = 1000;
    let mut window = Window::<u64>::allocate(team, 1)?;
    let (me, other) = (u64::from(team.rank().0), Rank(1 - team.rank().0));
    let mut turns = window.two_call();
    assert_eq!(kind_of(turns.put(other, 0, 1)), ErrorKind::TransferOutsideEpoch);
    if me == 0 {
        turns.post2(other)?;
    }
    for round in 0..ROUNDS {
        turns.wait2(1)?;
        // What the other has put in its turn.
        let before = 2 * round + 1 - me;
        if before != 0 {
            assert_eq!(turns.load(0)?, before);
        }
        turns.put(other, 0, before + 1)?;
        turns.post2(other)?;
        assert_eq!(kind_of(turns.put(other, 0, 1)), ErrorKind::TransferOutsideEpoch);
    }
    // The last turn is rank 1's, who does nothing with it.
    turns.wait2(me as usize)?;
    assert_eq!(turns.load(0)?, 2 * ROUNDS - 1 + me);
    Ok(())
}

fn a_window_with_three_accessors_takes_three_calls(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 4)?;
    let me = team.rank();
    let mut turns = window.two_call();
    for round in 1..=200 {
        if me == Rank(0) {
            for rank in 1..4 {
                turns.post2(Rank(rank))?;
            }
            assert_eq!(kind_of(turns.post2(Rank(2))), ErrorKind::AlreadyPosted);
            assert_eq!(kind_of(turns.wait2(5)), ErrorKind::CountExceeded);
            turns.wait2(3)?;
            for rank in 1..4 {
                assert_eq!(turns.load(rank)?, round);
                // Its turn at the others, which ends with the next round's call.
                turns.put(Rank(rank as u32), 0, round)?;
            }
        } else {
            turns.wait2(1)?;
            if 1 < round {
                assert_eq!(turns.load(0)?, round - 1);
            }
            turns.put(Rank(0), me.index(), round)?;
            turns.post2(Rank(0))?;
        }
    }
    if me != Rank(0) {
        // Rank 0 is done when it drops its turns.
        turns.wait2(0)?;
        assert_eq!(turns.load(0)?, 200);
    }
    Ok(())
}

fn a_missing_call_is_named(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 4)?;
    let flags = Flags::new(team)?;
    let me = team.rank();
    let mut turns = window.two_call();
    if me == Rank(0) {
        turns.post2(Rank(1))?;
        turns.post2(Rank(2))?;
        // Rank 3 has not got its turn, so it gives none.
        let error = stalled(team, || turns.wait2(3));
        assert!(error.to_string().contains("ranks 0, 3, which have not let this rank in"), "{error}");
    } else if me == Rank(3) {
        let error = stalled(team, || turns.wait2(1));
        assert!(error.to_string().contains("which have not let this rank in"), "{error}");
    } else {
        turns.wait2(1)?;
        turns.post2(Rank(0))?;
    }
    // Nobody's window goes before the two have stalled: that would be another error.
    for rank in 0..4 {
        flags.raise(Rank(rank), 0);
    }
    flags.wait_for(0, 4);
    Ok(())
}
