//! Fences: what is complete after one, and what a rank that breaks one does to the others.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use rma::{ErrorKind, Evidence, Info, LockKind, Origins, Rank, Sum, Team, Window};

use crate::{Case, Outcome, case, kind_of, stalled};

pub(crate) const CASES: &[Case] = &[
    case!(origin_buffers_are_free_after_the_fence, [2, 3]),
    case!(every_fence_shows_the_last_round, [1, 2, 3, 4]),
    case!(a_fence_completes_for_third_ranks_too, [3, 6]),
    case!(one_fence_ends_a_phase_and_begins_the_next, [1, 2, 5]),
    case!(bodies_deliver_what_they_got, [2]),
    case!(an_early_return_is_no_fence_of_the_body, [2, 3, 5]),
    case!(a_free_is_no_fence, [2, 3, 4]),
    case!(an_early_return_closes_the_fence, [3]),
    case!(a_panic_in_a_phase_reaches_the_others, [2, 3]),
    case!(a_panic_between_phases_reaches_the_others, [3]),
    case!(fences_of_different_windows_do_not_match, [2, 3]),
    case!(one_that_comes_late_to_different_fences_is_told_the_same, [3]),
    case!(threads_fence_their_windows_in_any_order, [2, 3]),
    case!(a_fence_meets_a_leaked_epoch, [2]),
    case!(a_late_rank_finds_the_window_broken, [2]),
    case!(a_dropped_window_ends_the_fences_of_others, [2, 3, 5]),
    case!(a_window_may_be_dropped_after_its_last_fence, [2, 3, 5]),
];

// covers: RMA-BAR-02
fn origin_buffers_are_free_after_the_fence(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 4096)?;
    let next = Rank((team.rank().0 + 1) % team.size());
    let mut buffer = vec![u64::from(team.rank().0) + 1; 4096];
    window.fence(|epoch| epoch.put(next, 0, &buffer))?;
    buffer.fill(u64::MAX);
    let previous = (team.rank().0 + team.size() - 1) % team.size();
    assert!(window.local()?.iter().all(|&value| value == u64::from(previous) + 1));
    Ok(())
}

// covers: RMA-BAR-03
fn every_fence_shows_the_last_round(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, team.size() as usize)?;
    let me = team.rank().index();
    for round in 1..=1000 {
        window.fence(|epoch| {
            for target in team.ranks() {
                epoch.put(target, me, round)?;
            }
            Ok(())
        })?;
        for at in 0..window.len() {
            assert_eq!(window.load(at)?, round);
        }
    }
    Ok(())
}

/// What one rank puts in a phase and another after it arrives in this order, whichever way the ranks hear of the fence: every
/// pair of origins is tried on every target. Small puts wait for company, so they are the last to be sent.
fn a_fence_completes_for_third_ranks_too(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    let me = team.rank();
    let pairs = team.ranks().flat_map(|one| team.ranks().map(move |two| (one, two)));
    let pairs: Vec<(Rank, Rank)> = pairs.filter(|(one, two)| one != two).collect();
    for round in 0..if team.size() == 3 { 20 } else { 3 } {
        for (target, &(first, second)) in
            team.ranks().flat_map(|target| pairs.iter().map(move |p| (target, p)))
        {
            window.fence(|epoch| if me == first { epoch.put(target, 0, 1 + 2 * round) } else { Ok(()) })?;
            if me == second {
                window.lock(target, LockKind::Exclusive, |epoch| epoch.put(target, 0, 2 + 2 * round))?;
            }
            team.barrier()?;
            if me == target {
                let found = window.lock(me, LockKind::Exclusive, |epoch| epoch.load(0))?;
                assert_eq!(found, 2 + 2 * round, "{first} put before {second} did");
            }
        }
    }
    Ok(())
}

fn one_fence_ends_a_phase_and_begins_the_next(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 2)?;
    let next = Rank((team.rank().0 + 1) % team.size());
    window.start_trace();
    window.fence(|epoch| {
        for round in 0..200 {
            // Two cells in turns: one is put to while the other is read.
            epoch.put(next, round as usize % 2, round)?;
            epoch.fence()?;
            assert_eq!(epoch.load(round as usize % 2)?, round);
        }
        Ok(())
    })?;
    let trace = window.take_trace();
    let count = |call| trace.iter().filter(|event| event.call == call).count();
    assert_eq!((count("fence"), count("put")), (202, 200));
    let put = trace.iter().find(|event| event.call == "put").expect("there are 200");
    assert_eq!((put.target, put.range.clone(), put.caller), (Some(next), Some(0..1), team.rank()));
    assert!(put.location.file().ends_with("fences.rs"));
    Ok(())
}

fn bodies_deliver_what_they_got(team: &Team) -> Outcome {
    let mut window = Window::<u32>::allocate(team, 4)?;
    window.local_mut()?.copy_from_slice(&[10, 11, 12, 13]);
    let other = Rank(1 - team.rank().0);
    let (one, many, swapped) = window.fence(|epoch| {
        Ok((epoch.get_value(other, 1)?, epoch.get_vec(other, 2..4)?, epoch.compare_swap(other, 0, 10, 20)?))
    })?;
    assert_eq!((one, many.as_slice(), swapped), (11, &[12, 13][..], 10));
    assert_eq!(window.load(0)?, 20);
    let before = window.fence(|epoch| epoch.get_accumulate(other, 1..3, Sum, &[1, 2]))?;
    assert_eq!(before, [11, 12]);
    assert_eq!(*window.local()?, [20, 12, 14, 13]);
    Ok(())
}

fn an_early_return_closes_the_fence(team: &Team) -> Outcome {
    let mut window = Window::<u32>::allocate(team, 1)?;
    let outcome = window.fence(|epoch| {
        if team.rank() == Rank(1) {
            epoch.put(Rank(0), 99, 1)?;
        }
        epoch.put(Rank(2), 0, 5)
    });
    match team.rank() {
        Rank(1) => assert_eq!(kind_of(outcome), ErrorKind::OutOfBounds),
        _ => outcome?,
    }
    // The fence was closed as if nothing had happened, and the window is in use.
    window.fence(|_| ())?;
    assert_eq!(*window.local()?, [if team.rank() == Rank(2) { 5 } else { 0 }]);
    Ok(())
}

/// A body that fences and ends early at one rank: the fence that closes it must not pass for the one inside the others' bodies,
/// which go on to write.
fn an_early_return_is_no_fence_of_the_body(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 4)?;
    let early = Rank(1);
    let outcome = window.fence(|epoch| {
        if team.rank() == early {
            epoch.put(Rank(0), 99, 1)?;
        }
        epoch.fence()?;
        for target in team.ranks() {
            epoch.put(target, 0, 7)?;
        }
        Ok(())
    });
    match team.rank() == early {
        true => assert_eq!(kind_of(outcome), ErrorKind::OutOfBounds),
        false => assert_eq!(kind_of(outcome), ErrorKind::CollectiveMismatch),
    }
    // Nobody got into the second phase, so the own memory is as it was, and stays so while it is looked at.
    team.barrier()?;
    assert_eq!(*window.local_mut()?, [0; 4]);
    assert_eq!(kind_of(window.fence(|_| ())), ErrorKind::Poisoned);
    team.barrier()?;
    Ok(())
}

fn a_free_is_no_fence(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 4)?;
    let outcome = match team.rank() {
        Rank(0) => window.free(),
        _ => window.fence(|epoch| epoch.put(Rank(0), 0, 7)),
    };
    assert_eq!(kind_of(outcome), ErrorKind::CollectiveMismatch);
    team.barrier()?;
    Ok(())
}

fn a_panic_in_a_phase_reaches_the_others(team: &Team) -> Outcome {
    panics_in_a_phase(team, 0)
}

fn a_panic_between_phases_reaches_the_others(team: &Team) -> Outcome {
    panics_in_a_phase(team, 3)
}

fn panics_in_a_phase(team: &Team, phases: usize) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 8)?;
    window.local_mut()?.fill(7);
    if team.rank() == Rank(1) {
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            window.fence(|epoch| {
                for _ in 0..phases {
                    epoch.fence().expect("all ranks come to this one");
                }
                if epoch.load(0).is_ok() {
                    panic!("on purpose");
                }
            })
        }));
        assert!(panicked.is_err());
    } else {
        let outcome = window.fence(|epoch| {
            for _ in 0..phases {
                epoch.fence()?;
            }
            Ok(())
        });
        let error = outcome.expect_err("rank 1 does not come to the closing fence");
        assert_eq!(error.kind(), ErrorKind::PeerLost, "{error}");
        assert_eq!(
            (error.context().lost, error.context().evidence),
            (Some(Rank(1)), Some(Evidence::Panicked))
        );
    }
    // The window is out of use for epochs, and readable for its owner when everybody is out of the phase.
    assert_eq!(kind_of(window.fence(|_| ())), ErrorKind::Poisoned);
    assert_eq!(kind_of(window.lock(Rank(0), LockKind::Shared, |_| ())), ErrorKind::Poisoned);
    assert_eq!(kind_of(window.start(Rank(0), Info::Strong).map(|_| ())), ErrorKind::Poisoned);
    assert_eq!(kind_of(window.post(Origins::Any).map(|_| ())), ErrorKind::Poisoned);
    team.barrier()?;
    assert_eq!(*window.local()?, [7; 8]);
    window.local_mut()?.fill(8);
    Ok(())
}

// covers: RMA-BAR-06
fn fences_of_different_windows_do_not_match(team: &Team) -> Outcome {
    different_fences(team, None)
}

fn one_that_comes_late_to_different_fences_is_told_the_same(team: &Team) -> Outcome {
    different_fences(team, Some(Rank(2)))
}

fn different_fences(team: &Team, late: Option<Rank>) -> Outcome {
    let mut first = Window::<u8>::allocate(team, 1)?;
    let mut second = Window::<u8>::allocate(team, 1)?;
    let done = crate::flags::<u8>(team, 1)?;
    let (first_id, second_id) = (first.id(), second.id());
    let window = if team.rank() == Rank(0) { &mut first } else { &mut second };
    if late == Some(team.rank()) {
        // The others have found it out.
        crate::until(|| u32::from(done.load(0).unwrap()) == team.size() - 1);
    }
    let error = window.fence(|_| ()).expect_err("the others fence another window");
    match late == Some(team.rank()) {
        true => {
            assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
            assert!(error.to_string().contains("the ranks came to different collective calls"), "{error}");
        }
        false => {
            assert_eq!(error.kind(), ErrorKind::CollectiveMismatch, "{error}");
            for id in [first_id, second_id] {
                assert!(error.to_string().contains(&format!("window {id}")), "{error}");
            }
        }
    }
    // A rank that leaves at once would be lost to those that have not looked yet.
    for rank in team.ranks() {
        done.lock(rank, LockKind::Shared, |epoch| epoch.accumulate(rank, 0, Sum, 1))?;
    }
    crate::until(|| u32::from(done.load(0).unwrap()) == team.size());
    Ok(())
}

/// Two windows in two threads per rank. Where the second thread comes late, the ranks' first threads sit in different fences for a
/// while, which is no mistake.
fn threads_fence_their_windows_in_any_order(team: &Team) -> Outcome {
    let mut first = Window::<u8>::allocate(team, 1)?;
    let mut second = Window::<u8>::allocate(team, 1)?;
    let (early, late) = match team.rank().0 % 2 {
        0 => (&mut first, &mut second),
        _ => (&mut second, &mut first),
    };
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(400));
            late.fence(|_| ())
        });
        early.fence(|_| ())?;
        thread.join().expect("a fence does not panic")
    })?;
    Ok(())
}

fn a_fence_meets_a_leaked_epoch(team: &Team) -> Outcome {
    let mut window = Window::<u8>::allocate(team, 1)?;
    let mut other = Window::<u8>::allocate(team, 1)?;
    // A guard that lives keeps the window borrowed, so only leaked ones can meet a fence.
    if team.rank() == Rank(0) {
        std::mem::forget(window.post(Origins::Any)?);
        assert_eq!(kind_of(window.fence(|_| ())), ErrorKind::MixedSync);
        assert_eq!(kind_of(window.free()), ErrorKind::EpochStillOpen);
        other.post(Origins::Any)?.wait(1)?;
    } else {
        std::mem::forget(other.start(Rank(0), Info::Strong)?);
        assert_eq!(kind_of(other.fence(|_| ())), ErrorKind::MixedSync);
        // The leaked access is still open at rank 0; the handle's end completes it.
        assert_eq!(kind_of(other.free()), ErrorKind::EpochStillOpen);
    }
    Ok(())
}

fn a_late_rank_finds_the_window_broken(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    let side = crate::flags::<u64>(team, 1)?;
    if team.rank() == Rank(0) {
        stalled(team, || window.fence(|_| ()));
        // Rank 1 has not said that it writes, and won't get in any more: the own memory is the own again.
        window.local_mut()?.fill(3);
        side.lock(Rank(1), LockKind::Exclusive, |epoch| epoch.put(Rank(1), 0, 1))?;
    } else {
        crate::until(|| side.load(0).unwrap() == 1);
        let outcome = window.fence(|epoch| epoch.put(Rank(0), 0, 9));
        assert_eq!(kind_of(outcome), ErrorKind::Poisoned);
        side.lock(Rank(0), LockKind::Exclusive, |epoch| epoch.put(Rank(0), 0, 1))?;
    }
    if team.rank() == Rank(0) {
        crate::until(|| side.load(0).unwrap() == 1);
        assert_eq!(*window.local()?, [3]);
    }
    Ok(())
}

fn a_dropped_window_ends_the_fences_of_others(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    if team.rank() == Rank(1) {
        drop(window);
        team.barrier()?;
    } else {
        // Whether the drop comes before the fence or in the middle of its wait.
        if team.rank() == Rank(0) {
            crate::grace();
        }
        let error = window.fence(|_| ()).expect_err("rank 1 comes to no fence");
        assert_eq!(error.kind(), ErrorKind::CollectiveMismatch);
        assert!(error.to_string().contains("rank 1"), "{error}");
        assert_eq!(kind_of(window.fence(|_| ())), ErrorKind::Poisoned);
        // Nobody got into the phase, and once all know that nobody will, the memory is the own.
        team.barrier()?;
        window.local_mut()?.fill(1);
    }
    team.barrier()?;
    Ok(())
}

fn a_window_may_be_dropped_after_its_last_fence(team: &Team) -> Outcome {
    let next = Rank((team.rank().0 + 1) % team.size());
    for round in 0..200 {
        let mut window = Window::<u64>::allocate(team, 1)?;
        window.fence(|epoch| epoch.put(next, 0, round))?;
        assert_eq!(window.load(0)?, round);
        // Some ranks drop it while others are still on their way out of the fence.
    }
    Ok(())
}
