//! What is so because ranks share no memory: who waits for whom, how much is kept where, and how many frames travel.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rma::{
    Atomicity, Datatype, ErrorKind, Hints, Info, LockKind, Origins, Rank, Replace, Strided, Sum, Team,
    Window, WindowOptions, own,
};

use crate::failures::{is_stopped, processes, signal};
use crate::{Case, Outcome, case, flags, grace, is_full, until};

pub(crate) const CASES: &[Case] = &[
    case!(a_put_returns_before_its_data_are_there, [2]).connected(),
    case!(units_and_layouts_are_the_targets, [3]),
    case!(early_puts_take_no_memory_of_the_target, [2]).connected(),
    case!(a_fence_costs_as_many_frames_as_the_size_has_digits, [2, 8]).connected(),
    case!(connections_are_those_of_the_peers_used, [4, 12]).connected(),
    case!(a_window_takes_little_memory, [8]).connected(),
    case!(a_scatter_add_is_one_frame_per_pair, [4]).connected(),
    case!(a_weak_epoch_is_one_frame, [2]).connected(),
    case!(an_unchecked_start_sends_nothing_before_its_data, [2]).connected(),
    case!(unchecked_locks_send_nothing, [2]).connected(),
    case!(what_is_vouched_for_is_looked_at, [3]).connected(),
    case!(an_unchecked_accumulate_is_done_whole, [3]).connected(),
    case!(an_unchecked_epoch_stays_inside_the_part, [2]).connected(),
    case!(whatever_a_weak_epoch_keeps_is_moved, [2]).connected(),
    case!(a_weak_epoch_stays_inside_the_part, [2]).connected(),
];

const TARGET: Rank = Rank(0);
const ORIGIN: Rank = Rank(1);

// covers: RMA-DIST-01, RMA-DIST-02
fn a_put_returns_before_its_data_are_there(team: &Team) -> Outcome {
    // More than sockets hold.
    const LEN: usize = 64 << 20;
    let mut window = Window::<u8>::allocate(team, LEN)?;
    let all = processes(team)?;
    if team.rank() == TARGET {
        window.post(Origins::Any)?.wait(1)?;
        assert!(window.local()?.iter().all(|&byte| byte == 7));
        return Ok(());
    }
    let data = vec![7; LEN];
    let access = window.start(TARGET, Info::Strong)?;
    signal("STOP", all[0]);
    until(|| is_stopped(all[0]));
    let begun = Instant::now();
    access.put(TARGET, 0, &data)?;
    let took = begun.elapsed();
    println!("a put of {LEN} bytes to a stopped target returned after {took:?}");
    // A tenth of a second by requirement, and more for a machine that is busy with other things.
    assert!(is_stopped(all[0]) && took < Duration::from_secs(5), "{took:?}");
    let continued = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            grace();
            continued.store(true, Ordering::SeqCst);
            signal("CONT", all[0]);
        });
        access.complete()?;
        assert!(continued.load(Ordering::SeqCst), "complete waits for the target");
        Ok(())
    })
}

// covers: RMA-DIST-03
fn units_and_layouts_are_the_targets(team: &Team) -> Outcome {
    const LEN: usize = 600;
    // Ranks have different units, and displacements count in those of the target.
    let unit = |rank: Rank| [4, 24, 1][rank.index()];
    let mut window = WindowOptions::new().disp_unit(unit(team.rank())).allocate::<i32>(team, LEN)?;
    let next = Rank((team.rank().0 + 1) % team.size());
    let me = team.rank().0 as i32;
    let column = Datatype::of::<i32>().vector(10, 1, 5)?;
    let at = |start: usize| start / unit(next);
    window.fence(|epoch| {
        epoch.put(next, (at(240), &column), [100 + me; 10])?;
        epoch.put(next, Strided { start: at(720), count: 4, block: 2, stride: 7 }, [200 + me; 8])?;
        epoch.accumulate(next, (at(1200), &column), Sum, (0..10).collect::<Vec<i32>>())?;
        epoch.accumulate(next, (at(1200), &column), Sum, [me; 10])
    })?;
    let previous = (me + 2) % 3;
    let mut expected = vec![0; LEN];
    for i in 0..10 {
        expected[60 + 5 * i] = 100 + previous;
        expected[300 + 5 * i] = i as i32 + previous;
    }
    for i in 0..4 {
        expected[180 + 7 * i..][..2].fill(200 + previous);
    }
    assert_eq!(window.local()?[..], expected);
    let got = window.fence(|epoch| epoch.get_vec(next, (at(1200), &column)))?;
    assert_eq!(got, (0..10).map(|i| i + me).collect::<Vec<_>>());
    Ok(())
}

// covers: RMA-DIST-04
fn early_puts_take_no_memory_of_the_target(team: &Team) -> Outcome {
    const EACH: usize = 64 << 10;
    // The limit of what an epoch keeps, and what the runtime's own tables may take.
    const LIMIT_BYTES: usize = (1 << 20) + (2 << 20);
    let puts = if is_full() { 10_000 } else { 256 };
    let mut window = Window::<u8>::allocate(team, puts * EACH)?;
    let flags = flags::<u64>(team, 1)?;
    let resident = || -> usize {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        text.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
    };
    team.barrier()?;
    if team.rank() == ORIGIN {
        let access = window.start(TARGET, Info::Weak.with("weak", "complete"))?;
        flags.lock(TARGET, LockKind::Shared, |epoch| epoch.put(TARGET, 0, 1))?;
        for at in 0..puts {
            access.put(TARGET, at * EACH, vec![at as u8 | 1; EACH])?;
        }
        return Ok(access.complete()?);
    }
    let before = resident();
    until(|| flags.load(0).unwrap() == 1);
    grace();
    let after = resident();
    println!("resident memory of the target: {before} bytes, then {after}");
    assert!(after <= before + LIMIT_BYTES, "{before} bytes have become {after}");
    window.post(Origins::Any)?.wait(1)?;
    let local = window.local()?;
    assert!(local.chunks(EACH).zip(0..puts).all(|(put, at)| put.iter().all(|&byte| byte == at as u8 | 1)));
    Ok(())
}

fn a_fence_costs_as_many_frames_as_the_size_has_digits(team: &Team) -> Outcome {
    const FENCES: u64 = 20;
    let mut window = Window::<u64>::allocate(team, 1)?;
    window.fence(|_| ())?;
    let before = team.traffic().frames_sent;
    window.fence(|epoch| (2..FENCES).try_for_each(|_| epoch.fence()))?;
    let each = (team.traffic().frames_sent - before) / FENCES;
    let digits = u64::from(team.size().next_power_of_two().ilog2());
    println!("{each} frames per fence of {} ranks", team.size());
    assert_eq!(team.traffic().frames_sent - before, FENCES * digits);
    Ok(())
}

/// Who puts to its two neighbours has connections to them and from them, however many ranks there are.
fn connections_are_those_of_the_peers_used(team: &Team) -> Outcome {
    let sockets = || {
        let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
        let links = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        links.filter(|link| link.to_string_lossy().starts_with("socket:")).count()
    };
    let (me, ranks) = (team.rank().0, team.size());
    let window = Window::<u64>::allocate(team, 2)?;
    team.barrier()?;
    let before = sockets();
    // Collective calls go to ranks at distances of powers of two, in both directions.
    let digits = ranks.next_power_of_two().ilog2() as usize;
    let neighbours = [(me + 1) % ranks, (me + ranks - 1) % ranks].map(Rank);
    for round in 0..10 {
        for (at, &rank) in neighbours.iter().enumerate() {
            window.lock(rank, LockKind::Exclusive, |epoch| epoch.put(rank, at, round))?;
        }
    }
    team.barrier()?;
    let after = sockets();
    // Nobody goes before all have looked: who drops a window tells everybody.
    team.barrier()?;
    println!("{ranks} ranks: {before} sockets, and {after} when each has put to its neighbours");
    assert!(after <= before + 4, "{before} sockets have become {after}");
    // The own door, the launcher, and what a rank has of its output.
    const OTHERS: usize = 8;
    assert!(before <= OTHERS + 4 * digits, "{before} sockets of a rank of {ranks}");
    assert_eq!(*window.local()?, [9, 9]);
    Ok(())
}

fn a_window_takes_little_memory(team: &Team) -> Outcome {
    const WINDOWS: usize = 400;
    const EACH_MAX_BYTES: usize = 4096;
    let resident = || -> usize {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        text.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
    };
    let window = || Window::<u64>::allocate(team, 1);
    let use_all = |windows: &[Window<u64>]| -> rma::Result<()> {
        let next = Rank((team.rank().0 + 1) % team.size());
        windows
            .iter()
            .try_for_each(|window| window.lock(next, LockKind::Exclusive, |epoch| epoch.put(next, 0, 1)))
    };
    // What the first ones take into use is there for the others.
    let mut windows = (0..WINDOWS).map(|_| window()).collect::<rma::Result<Vec<_>>>()?;
    use_all(&windows)?;
    team.barrier()?;
    let before = resident();
    for _ in 0..WINDOWS {
        windows.push(window()?);
    }
    use_all(&windows)?;
    team.barrier()?;
    let each = resident().saturating_sub(before) / WINDOWS;
    println!("a window takes {each} bytes of a rank of {}", team.size());
    assert!(each < EACH_MAX_BYTES, "a window takes {each} bytes");
    Ok(())
}

/// The frames that a call of this rank sends.
fn frames_of<T>(team: &Team, call: impl FnOnce() -> rma::Result<T>) -> rma::Result<u64> {
    let before = team.traffic().frames_sent;
    call()?;
    Ok(team.traffic().frames_sent - before)
}

// covers: RMA-COMM-16, EX-E102-02
fn a_scatter_add_is_one_frame_per_pair(team: &Team) -> Outcome {
    const N: usize = 1000;
    let (me, ranks) = (team.rank().index(), team.size() as usize);
    let each = N / ranks;
    let map = |j: usize| (37 * j + 11) % N;
    let mut window = Window::<i64>::allocate(team, each)?;
    let mine = me * each..(me + 1) * each;
    let amount = |j: usize| (j * j) as i64;
    window.fence(|epoch| {
        for target in team.ranks() {
            let sent: Vec<usize> = mine.clone().filter(|&j| map(j) / each == target.index()).collect();
            let ranges: Vec<_> = sent.iter().map(|&j| map(j) % each..map(j) % each + 1).collect();
            let layout = Datatype::of::<i64>().indexed(&ranges)?;
            let amounts: Vec<i64> = sent.iter().map(|&j| amount(j)).collect();
            let frames = frames_of(team, || epoch.accumulate(target, (0, &layout), Sum, amounts))?;
            assert_eq!(frames, u64::from(target != team.rank()), "{} elements", sent.len());
        }
        Ok(())
    })?;
    let mut serial = vec![0_i64; N];
    (0..N).for_each(|j| serial[map(j)] += amount(j));
    assert_eq!(*window.local()?, serial[mine]);
    Ok(())
}

fn weak() -> Hints {
    Info::Weak.with("weak", "complete")
}

// covers: RMA-INFO-04
fn a_weak_epoch_is_one_frame(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 2)?;
    let (mut starts, mut locks) = (Vec::new(), Vec::new());
    for info in [Hints::from(Info::Strong), weak()] {
        if team.rank() == TARGET {
            let exposure = window.post(Origins::Any)?;
            team.barrier()?;
            exposure.wait(1)?;
            assert_eq!(window.load(0)?, 8);
        } else {
            team.barrier()?;
            let epoch = || window.access(&[TARGET], info.clone(), |epoch| epoch.put(TARGET, 0, 8));
            starts.push(frames_of(team, epoch)?);
        }
        team.barrier()?;
        if team.rank() == ORIGIN {
            let exclusive = LockKind::Exclusive;
            let epoch = || window.lock_with(TARGET, exclusive, info, |epoch| epoch.put(TARGET, 1, 9));
            locks.push(frames_of(team, epoch)?);
        }
        team.barrier()?;
        assert!(team.rank() != TARGET || window.load(1)? == 9);
    }
    if team.rank() == ORIGIN {
        println!("frames of an epoch with one put, strong and weak: {starts:?} by start, {locks:?} by lock");
        assert_eq!((starts, locks), (vec![3, 1], vec![3, 1]));
    }
    Ok(())
}

// covers: RMA-INFO-05
fn an_unchecked_start_sends_nothing_before_its_data(team: &Team) -> Outcome {
    const LEN: usize = 100;
    let mut window = Window::<u64>::allocate(team, LEN)?;
    for round in 0..20 {
        if team.rank() == TARGET {
            let exposure = window.post(Origins::Any)?;
            // The message from which the origin knows it.
            team.barrier()?;
            exposure.wait(1)?;
            assert!(window.local()?.iter().all(|&value| value == round));
        } else {
            team.barrier()?;
            let start = || window.start(TARGET, Info::NoCheck);
            let before = team.traffic();
            let access = start()?;
            assert_eq!(team.traffic(), before, "nothing is sent, and nobody is waited for");
            assert_eq!(frames_of(team, || access.put(TARGET, 0, vec![round; LEN]))?, 1);
            assert_eq!(frames_of(team, || access.complete())?, 1);
            let traffic = team.traffic();
            let replies = traffic.replies_received - before.replies_received;
            assert_eq!((replies, window.load(0)?), (1, 0));
        }
        team.barrier()?;
    }
    // An epoch that moves nothing is counted, too, and one of gets needs as many frames as it has gets, and one to close it.
    for gets in 0..3 {
        if team.rank() == TARGET {
            let exposure = window.post(Origins::Group(&[ORIGIN]))?;
            team.barrier()?;
            exposure.wait_all()?;
        } else {
            team.barrier()?;
            let mut got = Vec::new();
            let frames = frames_of(team, || {
                got = window.access(&[TARGET], Info::NoCheck, |epoch| {
                    (0..gets).map(|at| epoch.get_value(TARGET, at)).collect::<rma::Result<Vec<_>>>()
                })?;
                Ok(())
            })?;
            assert_eq!(got, vec![19; gets]);
            assert_eq!(frames, gets as u64 + 1);
        }
        team.barrier()?;
    }
    Ok(())
}

/// The first half of RMA-LOCK-07; the second is for checked mode.
fn unchecked_locks_send_nothing(team: &Team) -> Outcome {
    const ROUNDS: u64 = 1000;
    let master = Window::<u8>::allocate(team, 0)?;
    let heap = Window::<u64>::allocate(team, 4)?;
    let (exclusive, shared, free) = (LockKind::Exclusive, LockKind::Shared, Info::NoCheck);
    heap.lock(team.rank(), exclusive, |epoch| epoch.store(0, 7))?;
    team.barrier()?;
    if team.rank() == ORIGIN {
        master.lock(TARGET, exclusive, |_| {
            let all = frames_of(team, || {
                for _ in 0..ROUNDS {
                    let got = heap.lock_with(TARGET, shared, free, |epoch| epoch.get_value(TARGET, 0))?;
                    assert_eq!(got, 7);
                }
                Ok(())
            })?;
            assert_eq!(all, ROUNDS, "a get is a frame, and a lock and an unlock are none");
            let nested = frames_of(team, || {
                heap.lock_with(TARGET, shared, free, |_| {
                    heap.lock_with(TARGET, exclusive, free, |_| heap.lock_with(TARGET, shared, free, |_| ()))
                })
            })?;
            // What is put has to be there after the unlock, which asks for that.
            let puts = frames_of(team, || {
                heap.lock_with(TARGET, exclusive, free, |epoch| {
                    epoch.put(TARGET, 1, 8)?;
                    epoch.put(TARGET, 2, 9)
                })
            })?;
            println!(
                "frames of {ROUNDS} unchecked gets: {all}; of nested locks: {nested}; of two puts: {puts}"
            );
            assert_eq!((nested, puts), (0, 2));
            Ok(())
        })?;
    }
    team.barrier()?;
    if team.rank() == TARGET {
        assert_eq!(*heap.local()?, [7, 8, 9, 0]);
    }
    Ok(())
}

/// An accumulate under NOCHECK that is stopped in its middle keeps the lock, so that it is not refused when it goes on.
fn an_unchecked_accumulate_is_done_whole(team: &Team) -> Outcome {
    let flags = flags(team, 2)?;
    let (tried, got) = (0, 1);
    // One guard per element.
    let window = WindowOptions::new().atomicity(Atomicity::Stripes).allocate::<[u8; 12]>(team, 2)?;
    match team.rank() {
        TARGET => {
            // Needed to take the guard, and in the way of the others' locks afterwards.
            let own_lock = window.acquire(TARGET, LockKind::Shared, Info::Strong)?;
            rma::private::testing::holding_guard(&window, TARGET, 1, || {
                own_lock.unlock()?;
                team.barrier()?;
                until(|| flags.load(tried).unwrap() == 1);
                Ok::<(), rma::Error>(())
            })??;
        }
        ORIGIN => {
            team.barrier()?;
            window.lock_with(TARGET, LockKind::Shared, Info::NoCheck, |epoch| {
                epoch.accumulate(TARGET, 0, Replace, [[1; 12], [2; 12]])
            })?;
        }
        _ => {
            team.barrier()?;
            let first =
                || window.lock(TARGET, LockKind::Shared, |epoch| epoch.flush(epoch.get_value(TARGET, 0)?));
            until(|| first().unwrap() == [1; 12]);
            let outcome = window.lock_with(TARGET, LockKind::Exclusive, Info::NoCheck, |epoch| {
                epoch.flush(epoch.get_value(TARGET, 0)?).map(drop)
            });
            // The target goes on before anything can fail here.
            flags.lock(TARGET, LockKind::Shared, |epoch| {
                epoch.put(TARGET, got, u64::from(outcome.is_ok()))?;
                epoch.put(TARGET, tried, 1)
            })?;
            let kind = outcome.expect_err("the accumulate has the lock").kind();
            assert_eq!(kind, ErrorKind::NoCheckConflict);
        }
    }
    team.barrier()?;
    if team.rank() == TARGET {
        assert_eq!(flags.load(got)?, 0, "a lock was granted in the middle");
        assert_eq!(*window.local()?, [[1; 12], [2; 12]]);
    }
    Ok(())
}

/// What an epoch under NOCHECK takes for granted is not true: whatever it tries, nothing moves, and it is told so.
fn what_is_vouched_for_is_looked_at(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 4)?;
    let me = team.rank();
    let kinds = |epoch: &dyn Fn(usize) -> rma::Result<()>| -> Vec<ErrorKind> {
        (0..6).map(|which| epoch(which).expect_err("the promise does not hold").kind()).collect()
    };
    // Each transfer alone, and one behind another.
    let locked = |info: Info, which: usize| {
        window.lock_with(TARGET, LockKind::Exclusive, info, |epoch| {
            match which {
                0 => epoch.put(TARGET, 0, 1)?,
                1 => epoch.accumulate(TARGET, 0, Sum, 1)?,
                2 => drop(epoch.flush(epoch.get_value(TARGET, 0))?),
                3 => drop(epoch.flush(epoch.fetch_op(TARGET, 0, Sum, 1))?),
                4 => drop(epoch.flush(epoch.compare_swap(TARGET, 0, 0, 1))?),
                _ => {
                    epoch.put(TARGET, 0, 1)?;
                    epoch.put(TARGET, 1, own(1..2))?;
                }
            }
            Ok(())
        })
    };
    // The lock is held: by its owner, and by somebody else.
    for holder in [TARGET, Rank(2)] {
        if me == holder {
            window.lock(TARGET, LockKind::Shared, |_| {
                team.barrier()?;
                team.barrier()
            })?;
        } else {
            team.barrier()?;
            if me == ORIGIN {
                assert_eq!(kinds(&|which| locked(Info::NoCheck, which)), [ErrorKind::NoCheckConflict; 6]);
            }
            team.barrier()?;
        }
        team.barrier()?;
        // Nothing is left of it.
        if me == ORIGIN {
            locked(Info::NoCheck, 2)?;
            locked(Info::Strong, 2)?;
        }
        team.barrier()?;
    }
    // The owner has a view, which nobody changes under it.
    if me == TARGET {
        let view = window.local()?;
        team.barrier()?;
        team.barrier()?;
        assert_eq!(*view, [0; 4]);
    } else {
        team.barrier()?;
        if me == ORIGIN {
            assert_eq!(kinds(&|which| locked(Info::NoCheck, which)), [ErrorKind::NoCheckConflict; 6]);
        }
        team.barrier()?;
    }
    // The window is posted, so nobody can lock it; it is posted for somebody else, so this rank can't start.
    let started = |which: usize| {
        let access = window.start(TARGET, Info::NoCheck)?;
        match which {
            0 => access.put(TARGET, 0, 1)?,
            1 => access.accumulate(TARGET, 0, Sum, 1)?,
            2 => drop(access.get_value(TARGET, 0)?),
            3 => drop(access.fetch_op(TARGET, 0, Sum, 1)?),
            4 => drop(access.compare_swap(TARGET, 0, 0, 1)?),
            _ => {}
        }
        access.complete()
    };
    if me == ORIGIN {
        assert_eq!(kinds(&started), [ErrorKind::NotPosted; 6]);
    }
    team.barrier()?;
    if me == TARGET {
        let exposure = window.post(Origins::Group(&[Rank(2)]))?;
        team.barrier()?;
        team.barrier()?;
        exposure.wait_all()?;
        assert_eq!(*window.local()?, [0, 0, 5, 0]);
    } else {
        team.barrier()?;
        if me == ORIGIN {
            assert_eq!(kinds(&|which| locked(Info::NoCheck, which)), [ErrorKind::MixedSync; 6]);
            assert_eq!(kinds(&started), [ErrorKind::NotInGroup; 6]);
        } else {
            window.access(&[TARGET], Info::NoCheck, |epoch| epoch.put(TARGET, 2, 5))?;
            assert_eq!(kinds(&started), [ErrorKind::NotPosted; 6], "this exposure is used up");
        }
        team.barrier()?;
    }
    team.barrier()?;
    Ok(())
}

fn an_unchecked_epoch_stays_inside_the_part(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 100)?;
    for (at, fits) in [(40, true), (38, false), (47, true), (48, false)] {
        for which in 0..4 {
            if team.rank() == TARGET {
                window.local_mut()?.fill(0);
                window.exposure_part(40..50, Origins::Any, 1, |_, _| team.barrier())?;
                let moved = window.local()?.iter().filter(|&&value| value != 0).count();
                assert_eq!(moved, if fits { [3, 3, 0, 1][which] } else { 0 }, "{which} at {at}");
            } else {
                team.barrier()?;
                let access = window.start(TARGET, Info::NoCheck)?;
                let moved = match which {
                    0 => access.put(TARGET, at, [1; 3]),
                    1 => access.accumulate(TARGET, at, Sum, [1; 3]),
                    2 => access.get_vec(TARGET, at..at + 3).map(drop),
                    _ => access.compare_swap(TARGET, if at == 48 { 50 } else { at }, 0, 1).map(drop),
                };
                match (moved.and(access.complete()), fits) {
                    (Ok(()), true) => {}
                    (Err(error), false) => {
                        assert_eq!(error.kind(), ErrorKind::OutOfBounds, "{error}");
                        assert!(error.to_string().contains("bytes 320..400 are exposed"), "{error}");
                    }
                    (outcome, _) => panic!("{which} at {at}: {outcome:?}"),
                }
            }
            team.barrier()?;
        }
    }
    Ok(())
}

fn whatever_a_weak_epoch_keeps_is_moved(team: &Team) -> Outcome {
    const LEN: usize = 40_000;
    let mut window = Window::<u32>::allocate(team, LEN)?;
    // Little, which travels in one frame; much, which does not; and what brings something back after little and after much.
    for (small, large, gets) in [(3, 0, false), (3, 36_000, false), (3, 0, true), (0, 36_000, true)] {
        window.local_mut()?.fill(if team.rank() == TARGET { 4 } else { 5 });
        team.barrier()?;
        if team.rank() == TARGET {
            // Whatever moved too early would be seen here, or bring the old value back.
            grace();
            assert!(window.local()?.iter().all(|&value| value == 4));
            window.local_mut()?.fill(5);
            let exposure = window.post(Origins::Any)?;
            exposure.wait(1)?;
            let local = window.local()?;
            assert!(local[..small].iter().all(|&value| value == 7));
            assert_eq!(local[10..13], [6, 5 + 2 * small as u32, 5]);
            assert!(local[100..100 + large].iter().all(|&value| value == 9));
            assert!(local[100 + large..].iter().all(|&value| value == 5));
        } else {
            window.access(&[TARGET], weak(), |epoch| {
                epoch.put(TARGET, 0, vec![7; small])?;
                epoch.accumulate(TARGET, 10, Sum, [1, small as u32])?;
                epoch.put(TARGET, 100, vec![9; large])?;
                if gets {
                    epoch.get(TARGET, 39_990..40_000, own(0..10))?;
                }
                epoch.accumulate(TARGET, 11, Sum, [small as u32])
            })?;
            assert_eq!(window.local()?[..10], [5; 10]);
        }
        team.barrier()?;
        // The lock is held for all of it, and by nobody afterwards.
        if team.rank() == ORIGIN {
            window.lock_with(TARGET, LockKind::Exclusive, Info::Weak.with("weak", "unlock"), |epoch| {
                epoch.put(TARGET, 20, vec![1; small])?;
                epoch.put(TARGET, 200, vec![2; large])
            })?;
            let seen = window.lock(TARGET, LockKind::Exclusive, |epoch| epoch.get_vec(TARGET, 20..23))?;
            assert_eq!(seen[..small], vec![1; small]);
        }
        team.barrier()?;
    }
    Ok(())
}

fn a_weak_epoch_stays_inside_the_part(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 100)?;
    for (at, fits) in [(40, true), (38, false), (47, true), (48, false)] {
        if team.rank() == TARGET {
            window.local_mut()?.fill(0);
            team.barrier()?;
            window.exposure_part(40..50, Origins::Any, 1, |_, _| ())?;
            let moved = window.local()?.iter().filter(|&&value| value == 1).count();
            assert_eq!(moved, if fits { 3 } else { 0 });
        } else {
            team.barrier()?;
            let access = window.start(TARGET, weak())?;
            access.put(TARGET, at, [1; 3])?;
            match (access.complete(), fits) {
                (Ok(()), true) => {}
                (Err(error), false) => assert_eq!(error.kind(), ErrorKind::OutOfBounds, "{error}"),
                (outcome, _) => panic!("at {at}: {outcome:?}"),
            }
        }
        team.barrier()?;
    }
    Ok(())
}
