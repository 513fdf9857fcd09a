//! The barrier over all windows of a team, beside the plain one.

use rma::{ErrorKind, Info, LockKind, Origins, Rank, Sum, Team, Window};

use crate::{Case, Outcome, case, kind_of};

pub(crate) const CASES: &[Case] = &[
    case!(a_window_barrier_completes_all_windows, [1, 2, 4]),
    case!(a_window_barrier_is_a_fence_of_every_open_phase, [2, 3]),
    case!(a_window_barrier_meets_open_epochs, [2, 3]),
    case!(the_plain_barrier_is_not_the_window_barrier, [2, 3]),
    case!(a_barrier_does_not_keep_others_from_the_memory, [2]).many_rounds(),
    case!(only_the_window_barrier_moves_what_was_put, [2, 3]).over_its_own_memory(),
];

// covers: RMA-BAR-01
fn a_window_barrier_completes_all_windows(team: &Team) -> Outcome {
    let ranks = team.size() as usize;
    let windows = [Window::<u64>::allocate(team, ranks)?, Window::<u64>::allocate(team, ranks)?];
    let me = team.rank().index();
    for round in 1..=500 {
        let mut buffer = [round];
        for target in team.ranks() {
            for window in &windows {
                window.lock(target, LockKind::Shared, |epoch| epoch.put(target, me, &buffer))?;
            }
        }
        team.rma_barrier()?;
        buffer.fill(0);
        for window in &windows {
            for at in 0..ranks {
                assert_eq!(window.load(at)?, round, "element {at} of {window:?}");
            }
        }
        team.rma_barrier()?;
    }
    Ok(())
}

fn a_window_barrier_is_a_fence_of_every_open_phase(team: &Team) -> Outcome {
    let mut windows = [Window::<u64>::allocate(team, 2)?, Window::<u64>::allocate(team, 2)?];
    let [first, second] = &mut windows;
    let next = Rank((team.rank().0 + 1) % team.size());
    first.fence(|one| {
        second.fence(|two| {
            for round in 1..=200_u64 {
                // Two cells in turns: one is put to while the other is read.
                let cell = round as usize % 2;
                one.put(next, cell, round)?;
                two.put(next, cell, 2 * round)?;
                team.rma_barrier()?;
                assert_eq!((one.load(cell)?, two.load(cell)?), (round, 2 * round));
            }
            Ok::<(), rma::Error>(())
        })
    })?;
    Ok(())
}

// covers: RMA-BAR-08
fn a_window_barrier_meets_open_epochs(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    let quiet = Window::<u64>::allocate(team, 1)?;
    let (me, ranks) = (team.rank(), team.size());
    let left = Rank((me.0 + ranks - 1) % ranks);
    let right = Rank((me.0 + 1) % ranks);
    // Refused before the caller arrives: a refused call that had arrived would let the others pass too early, and leave
    // the barriers that follow one short.
    let exposure = window.post(Origins::Group(&[left]))?;
    let access = exposure.start(right, Info::Strong)?;
    assert_eq!(kind_of(team.rma_barrier()), ErrorKind::MixedSync);
    team.barrier()?;
    access.put(right, 0, u64::from(me.0))?;
    access.complete()?;
    exposure.wait_all()?;
    assert_eq!(window.load(0)?, u64::from(left.0));
    for kind in [LockKind::Exclusive, LockKind::Shared] {
        quiet.lock(me, kind, |_| assert_eq!(kind_of(team.rma_barrier()), ErrorKind::MixedSync))?;
    }
    let view = window.local()?;
    assert_eq!(kind_of(team.rma_barrier()), ErrorKind::EpochStillOpen);
    drop(view);
    // A posted window stays posted, and everybody knows it after the barrier.
    for _ in 0..100 {
        let exposure = window.post(Origins::Group(&[left]))?;
        team.rma_barrier()?;
        let access = exposure.start(right, Info::NoCheck)?;
        access.accumulate(right, 0, Sum, 1)?;
        access.complete()?;
        exposure.wait_all()?;
    }
    assert_eq!(window.load(0)?, u64::from(left.0) + 100);
    team.rma_barrier()?;
    // The fence of one window is refused while it is posted, started or locked. The guards keep the window borrowed, so
    // that only leaked ones can meet a fence; a lock is a scope, and its body has no window to fence.
    std::mem::forget(window.post(Origins::Group(&[left]))?);
    assert_eq!(kind_of(window.fence(|_| ())), ErrorKind::MixedSync);
    team.rma_barrier()?;
    std::mem::forget(window.start(right, Info::NoCheck)?);
    assert_eq!(kind_of(window.fence(|_| ())), ErrorKind::MixedSync);
    assert_eq!(kind_of(team.rma_barrier()), ErrorKind::MixedSync);
    // Whoever frees first breaks the window, as somebody is in its exposure.
    team.barrier()?;
    assert_eq!(kind_of(window.free()), ErrorKind::EpochStillOpen);
    // A window that is gone has nothing open.
    team.rma_barrier()?;
    Ok(())
}

fn the_plain_barrier_is_not_the_window_barrier(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    // Nothing that is open on a window concerns the plain one.
    let view = window.local()?;
    team.barrier()?;
    drop(view);
    let exposure = window.post(Origins::Any)?;
    team.barrier()?;
    exposure.wait(0)?;
    let other = team.duplicate()?;
    let outcome = match team.rank() {
        Rank(0) => other.rma_barrier(),
        _ => other.barrier(),
    };
    let error = outcome.expect_err("the ranks came to different barriers");
    assert_eq!(error.kind(), ErrorKind::CollectiveMismatch);
    assert!(error.to_string().contains("barrier"), "{error}");
    Ok(())
}

// covers: RMA-BAR-07
fn a_barrier_does_not_keep_others_from_the_memory(team: &Team) -> Outcome {
    const PIECE: usize = 16 << 20;
    const PIECES: u64 = 64;
    let window = Window::<u64>::allocate(team, PIECE / 8)?;
    if team.rank() == Rank(1) {
        for piece in 1..=PIECES {
            let data = vec![piece; PIECE / 8];
            window.lock(Rank(0), LockKind::Exclusive, |epoch| epoch.put(Rank(0), 0, data))?;
        }
    }
    team.rma_barrier()?;
    if team.rank() == Rank(0) {
        assert!(window.local()?.iter().all(|&value| value == PIECES));
    }
    team.rma_barrier()?;
    Ok(())
}

// covers: RMA-BAR-04 -- without the checked mode, whose report the old value stands for
fn only_the_window_barrier_moves_what_was_put(team: &Team) -> Outcome {
    let options = rma::WindowOptions::new().memory_model(rma::MemoryModel::Separate);
    let mut window = options.allocate::<u64>(team, 2)?;
    let next = Rank((team.rank().0 + 1) % team.size());
    team.barrier()?;
    for round in (1..100).step_by(2) {
        window.lock(next, LockKind::Shared, |epoch| epoch.put(next, 0, round))?;
        team.barrier()?;
        assert_eq!(window.load(0)?, round - 1, "the plain barrier has moved something");
        team.rma_barrier()?;
        // Whoever is out of it may put already while others still move what came before.
        team.barrier()?;
        assert_eq!(window.load(0)?, round);
        window.lock(next, LockKind::Shared, |epoch| epoch.put(next, 0, round + 1))?;
        team.barrier()?;
        assert_eq!(window.load(0)?, round, "the plain barrier has moved something");
        window.fence(|_| ())?;
        team.barrier()?;
        assert_eq!(window.load(0)?, round + 1);
    }
    Ok(())
}
