//! What users of other libraries report as trouble, tried on this one. Never repeats a case that another file has.
//!
//! | trouble elsewhere | here |
//! |---|---|
//! | an out-of-range put crashes the target | `nothing_moves_out_of_bounds` |
//! | compare_swap of 64 bits crashes | `one_compare_swap_wins` |
//! | a window larger than /dev/shm ends in SIGBUS | `a_window_may_be_larger_than_the_shared_memory_file_system` |
//! | segments are left after kill -9 | `assert_nothing_left` in the tests `deaths` and `launcher` |
//! | another job or user has the same names | `jobs_beside_each_other_do_not_meet` (test `launcher`) |
//! | no more than 2046 windows | `four_thousand_windows_at_once`, `hundreds_of_windows_at_once`, `windows_by_the_thousand_come_and_go` |
//! | zero-length windows | `lengths_may_differ_and_be_zero`, `a_window_without_memory_has_a_lock` |
//! | several locks at once | `several_locks_in_a_global_order`, `some_locks_in_a_global_order` |
//! | one rank flushes while another is in a barrier | `flushes_need_nobody` |
//! | a flag is seen before the data | `a_flag_put_after_a_flush_is_not_seen_before_the_data`, and over connections |
//! | a strided origin with a lower bound | `strided_origins_may_begin_anywhere` |
//! | memory grows with epochs | `memory_stays_the_same_over_many_epochs`, `memory_stays_the_same_over_many_frames` |
//! | two threads with a window each | `two_threads_use_a_window_each` |
//! | a second lock of the same target | `a_lock_is_not_taken_twice`, `unchecked_locks_nest` |
//! | kill -9 of a lock holder | `a_killed_holder_ends_the_wait` |
//! | the launcher is killed | `a_killed_launcher_leaves_no_rank` (test `deaths`) |
//! | a stopped target | `a_stopped_target_is_written_to` |
//! | more ranks than cores | `more_ranks_than_cores_do_not_collapse` (test `launcher`) |
//! | a large put to a target that computes | `large_transfers_need_no_target` |
//! | atomics on one word from a peer that maps it and one that does not | `tickets_are_distinct`, over `mixed` |
//! | a wrong secret, garbage, half-open connections on the job's port | `a_rank_joins_by_its_environment`, `strangers_are_dropped_and_disturb_nobody` (test `tcp`) |
//! | a peer that knows the secret and keeps to no protocol | `senseless_requests_harm_nobody` |
//! | a link is cut | `a_cut_link_is_noticed_by_both_sides` (test `namespaces`) |

use std::process::Command;

use rma::{LockKind, Rank, Replace, Strided, Sum, Team, Window, strided};

use crate::{Case, Outcome, case, is_full};

pub(crate) const CASES: &[Case] = &[
    case!(a_window_may_be_larger_than_the_shared_memory_file_system, [2]).one_copy(),
    case!(four_thousand_windows_at_once, [2]).many_rounds().one_copy(),
    case!(windows_by_the_thousand_come_and_go, [2]).many_rounds().one_copy(),
    case!(flushes_need_nobody, [3]),
    case!(strided_origins_may_begin_anywhere, [2]),
    case!(memory_stays_the_same_over_many_epochs, [2]).processes(),
    case!(memory_stays_the_same_over_many_frames, [2]).connected(),
    case!(hundreds_of_windows_at_once, [3]).wired(),
    case!(two_threads_use_a_window_each, [2, 3]),
];

fn a_window_may_be_larger_than_the_shared_memory_file_system(team: &Team) -> Outcome {
    const TOO_LARGE_TO_TRY: usize = 512 << 20;
    let mut bytes = [0_u64];
    if team.rank() == Rank(0) {
        let output = Command::new("df").args(["--output=size", "--block-size=1", "/dev/shm"]).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        bytes[0] = text.lines().nth(1).and_then(|line| line.trim().parse().ok()).unwrap_or(0);
    }
    team.broadcast(Rank(0), &mut bytes)?;
    let bytes = bytes[0] as usize + 4096;
    if TOO_LARGE_TO_TRY < bytes {
        println!("skipped: /dev/shm has {bytes} bytes here, and a window that is larger would take too long");
        return Ok(());
    }
    let mut window = Window::<u8>::allocate(team, if team.rank() == Rank(0) { bytes } else { 0 })?;
    let ones = vec![1; 1 << 20];
    window.fence(|epoch| match team.rank() {
        Rank(0) => Ok(()),
        _ => {
            // Every page, so that a shortage would be met here.
            (0..bytes / ones.len()).try_for_each(|at| epoch.put(Rank(0), at * ones.len(), &ones[..]))?;
            epoch.put(Rank(0), bytes - 1, 7)
        }
    })?;
    assert!(team.rank() != Rank(0) || (window.load(0)?, window.load(bytes - 1)?) == (1, 7));
    Ok(())
}

fn four_thousand_windows_at_once(team: &Team) -> Outcome {
    windows_at_once(team, 4000)
}

fn hundreds_of_windows_at_once(team: &Team) -> Outcome {
    windows_at_once(team, if is_full() { 4000 } else { 400 })
}

fn windows_at_once(team: &Team, number: usize) -> Outcome {
    let other = Rank((team.rank().0 + 1) % team.size());
    let windows: Vec<Window<u64>> =
        (0..number).map(|_| Window::allocate(team, 2)).collect::<rma::Result<_>>()?;
    for (value, window) in (0..).zip(&windows) {
        window.lock(other, LockKind::Exclusive, |epoch| epoch.put(other, 1, value))?;
    }
    team.barrier()?;
    for (value, window) in (0..).zip(&windows) {
        assert_eq!(*window.local()?, [0, value]);
    }
    team.barrier()?;
    Ok(())
}

fn windows_by_the_thousand_come_and_go(team: &Team) -> Outcome {
    let other = Rank(1 - team.rank().0);
    for value in 0..if is_full() { 100_000 } else { 5_000 } {
        let mut window = Window::<u64>::allocate(team, 64)?;
        window.fence(|epoch| epoch.put(other, 63, value))?;
        assert_eq!((window.load(0)?, window.load(63)?), (0, value));
        window.free()?;
    }
    Ok(())
}

fn flushes_need_nobody(team: &Team) -> Outcome {
    let window = Window::<u64>::allocate(team, 3)?;
    if team.rank() == Rank(0) {
        // The others are in the barrier until this is over, and it does not need them.
        for target in [Rank(1), Rank(2)] {
            window.lock(target, LockKind::Shared, |epoch| {
                for round in 1..=1000 {
                    epoch.put(target, 0, round)?;
                    assert_eq!(epoch.flush(epoch.get_value(target, 0))?, round);
                }
                Ok(())
            })?;
        }
    }
    team.barrier()?;
    assert!(team.rank() == Rank(0) || window.local()?[0] == 1000);
    Ok(())
}

fn strided_origins_may_begin_anywhere(team: &Team) -> Outcome {
    let matrix: Vec<i64> = (0..60).collect();
    let other = Rank(1 - team.rank().0);
    for start in 0..7 {
        // Three blocks of two, ten apart, of a matrix that begins before them.
        let here = Strided { start, count: 3, block: 2, stride: 10 };
        let block = |at: i64| [start as i64 + 10 * at, start as i64 + 10 * at + 1];
        let expected: Vec<i64> = (0..3).flat_map(block).collect();
        let mut window = Window::<i64>::allocate(team, 8)?;
        window.local_mut()?.fill(1000);
        window.fence(|epoch| epoch.accumulate(other, 1..7, Replace, strided(&matrix, here)))?;
        assert_eq!(window.local()?[..], [&[1000][..], &expected, &[1000]].concat());
        window.fence(|epoch| epoch.accumulate(other, 1..7, Sum, strided(&matrix, here)))?;
        let twice: Vec<i64> = expected.iter().map(|value| 2 * value).collect();
        assert_eq!(window.local()?[..], [&[1000][..], &twice, &[1000]].concat());
        window.fence(|epoch| epoch.put(other, 1..7, strided(&matrix, here)))?;
        assert_eq!(window.local()?[..], [&[1000][..], &expected, &[1000]].concat());
    }
    Ok(())
}

fn memory_stays_the_same_over_many_epochs(team: &Team) -> Outcome {
    epochs_of_many_gets(team, [100, if is_full() { 100_000 } else { 2_000 }])
}

fn memory_stays_the_same_over_many_frames(team: &Team) -> Outcome {
    epochs_of_many_gets(team, [10, if is_full() { 2_000 } else { 30 }])
}

/// Some epochs, after which the memory is settled, and many more, in which it stays so.
fn epochs_of_many_gets(team: &Team, [few, many]: [usize; 2]) -> Outcome {
    const GETS: usize = 600;
    // What pages the allocator and the system may still take into use.
    const SLACK_PAGES: u64 = 256;
    let window = Window::<u64>::allocate(team, GETS)?;
    let other = Rank(1 - team.rank().0);
    let epoch = || {
        window.lock(other, LockKind::Shared, |epoch| {
            (0..GETS).map(|at| epoch.get_value(other, at)).collect::<rma::Result<Vec<_>>>()
        })
    };
    let resident = || -> u64 {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        text.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0)
    };
    for _ in 0..few {
        epoch()?;
    }
    let before = resident();
    for _ in 0..many {
        assert_eq!(epoch()?.len(), GETS);
    }
    let after = resident();
    assert!(after <= before + SLACK_PAGES, "{before} pages have become {after}");
    team.barrier()?;
    Ok(())
}

fn two_threads_use_a_window_each(team: &Team) -> Outcome {
    let windows = [Window::<u64>::allocate(team, 2)?, Window::<u64>::allocate(team, 2)?];
    let next = Rank((team.rank().0 + 1) % team.size());
    std::thread::scope(|scope| {
        let threads = windows.map(|mut window| {
            scope.spawn(move || -> rma::Result<()> {
                for round in 1..=300 {
                    window.fence(|epoch| epoch.put(next, 0, round))?;
                    assert_eq!(window.load(0)?, round);
                    window.lock(next, LockKind::Exclusive, |epoch| epoch.accumulate(next, 1, Sum, 1))?;
                }
                // Everybody has counted on.
                window.fence(|_| ())?;
                assert_eq!(window.load(1)?, 300);
                Ok(())
            })
        });
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    Ok(())
}
