//! What is so because ranks share no memory: who waits for whom, how much is kept where, and how many frames travel.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rma::{Datatype, Info, LockKind, Origins, Rank, Strided, Sum, Team, Window, WindowOptions};

use crate::failures::{is_stopped, processes, signal};
use crate::{Case, Outcome, case, flags, grace, is_full, until};

pub(crate) const CASES: &[Case] = &[
    case!(a_put_returns_before_its_data_are_there, [2]).connected(),
    case!(units_and_layouts_are_the_targets, [3]),
    case!(early_puts_take_no_memory_of_the_target, [2]).connected(),
    case!(a_fence_costs_as_many_frames_as_the_size_has_digits, [2, 8]).connected(),
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
