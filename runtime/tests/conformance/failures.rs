//! Ranks that die, stop, and wake again. Processes only: threads of a process end together.

use std::fs;
use std::process::Command;
use std::time::Duration;

use rma::private::testing::with_limit;
use rma::{ErrorKind, Evidence, Info, LockKind, Max, Origins, Rank, Sum, Team, Window};

use crate::{Case, Outcome, SURVIVED, case, grace, kind_of, stalled, until};

pub(crate) const CASES: &[Case] = &[
    case!(a_killed_holder_ends_the_wait, [3]).surviving(2),
    case!(a_killed_origin_ends_the_wait, [2]).surviving(1).processes(),
    case!(a_killed_rank_ends_a_fence, [3]).surviving(2),
    case!(a_killed_owner_ends_a_start, [2]).surviving(1),
    case!(memory_of_a_killed_peer_is_the_own_again, [2]).surviving(1).one_copy(),
    case!(a_stopped_peer_wakes_and_writes, [2]).processes(),
    case!(posts_need_nobody, [3]).processes(),
    case!(a_stopped_target_is_written_to, [2]).processes(),
    case!(a_rank_that_finished_is_no_holder, [3]),
    case!(a_deadlock_is_shown_as_a_cycle, [3]).one_copy(),
];

/// Tells every rank the process of every rank.
pub(crate) fn processes(team: &Team) -> rma::Result<Vec<u32>> {
    let mut all = vec![0; team.size() as usize];
    all[team.rank().index()] = std::process::id();
    team.allreduce(&mut all, Sum)?;
    Ok(all)
}

pub(crate) fn signal(name: &str, process: u32) {
    let sent = Command::new("kill").args([format!("-{name}"), process.to_string()]).status();
    assert!(sent.expect("there is a kill command").success());
}

/// Whether a process is stopped by a signal.
pub(crate) fn is_stopped(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    status.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
}

fn die() -> ! {
    signal("KILL", std::process::id());
    loop {
        std::thread::park();
    }
}

fn expect_loss<T: std::fmt::Debug>(result: rma::Result<T>, lost: Rank) {
    let error = result.expect_err("a rank is lost");
    assert_eq!(error.kind(), ErrorKind::PeerLost, "{error}");
    assert_eq!(
        (error.context().lost, error.context().evidence),
        (Some(lost), Some(Evidence::Signalled(9))),
        "{error}"
    );
}

// covers: RMA-LOCK-18
fn a_killed_holder_ends_the_wait(team: &Team) -> Outcome {
    let window = Window::<u64>::allocate(team, 1)?;
    let processes = processes(team)?;
    if team.rank() == Rank(1) {
        return window
            .lock(Rank(0), LockKind::Exclusive, |_| {
                team.barrier().expect("all are alive");
                grace();
                if team.rank() == Rank(1) {
                    die()
                }
            })
            .map_err(Into::into);
    }
    team.barrier()?;
    let _ = processes;
    expect_loss(window.lock(Rank(0), LockKind::Exclusive, |_| ()), Rank(1));
    assert_eq!(kind_of(window.lock(Rank(0), LockKind::Shared, |_| ())), ErrorKind::Poisoned);
    println!("{SURVIVED}");
    Ok(())
}

fn a_killed_origin_ends_the_wait(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    if team.rank() == Rank(1) {
        let access = window.start(Rank(0), Info::Strong)?;
        access.put(Rank(0), 0, 1)?;
        die()
    }
    expect_loss(window.post(Origins::Any)?.wait(1), Rank(1));
    assert_eq!(kind_of(window.fence(|_| ())), ErrorKind::Poisoned);
    // The dead can't write.
    assert_eq!(*window.local()?, [1]);
    println!("{SURVIVED}");
    Ok(())
}

fn a_killed_rank_ends_a_fence(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    let outcome = window.fence(|epoch| match team.rank() {
        Rank(1) => die(),
        _ => epoch.put(Rank(0), 0, 7),
    });
    expect_loss(outcome, Rank(1));
    println!("{SURVIVED}");
    Ok(())
}

fn a_killed_owner_ends_a_start(team: &Team) -> Outcome {
    let window = Window::<u64>::allocate(team, 1)?;
    if team.rank() == Rank(1) {
        grace();
        die()
    }
    expect_loss(window.start(Rank(1), Info::Strong).map(|_| ()), Rank(1));
    println!("{SURVIVED}");
    Ok(())
}

fn memory_of_a_killed_peer_is_the_own_again(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1024)?;
    if team.rank() == Rank(1) {
        return window
            .fence(|epoch| -> rma::Result<()> {
                loop {
                    epoch.put(Rank(0), 0, [1; 1024])?;
                    if epoch.load(0)? != 0 {
                        die()
                    }
                }
            })
            .map_err(Into::into);
    }
    let outcome = window.fence(|epoch| epoch.put(Rank(1), 0, 1));
    expect_loss(outcome, Rank(1));
    window.local_mut()?.fill(2);
    grace();
    assert!(window.local()?.iter().all(|&value| value == 2));
    println!("{SURVIVED}");
    Ok(())
}

fn a_stopped_peer_wakes_and_writes(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    let done = crate::flags::<u64>(team, 1)?;
    let all = processes(team)?;
    if team.rank() == Rank(1) {
        let access = window.start(Rank(0), Info::Strong)?;
        signal("STOP", std::process::id());
        // Awake again: admitted is admitted.
        access.put(Rank(0), 0, 66)?;
        access.complete()?;
        done.lock(Rank(0), LockKind::Exclusive, |epoch| epoch.put(Rank(0), 0, 1))?;
        return Ok(());
    }
    let exposure = window.post(Origins::Any)?;
    until(|| is_stopped(all[1]));
    stalled(team, || exposure.wait(1));
    // The stopped rank may wake and write, so there is no view.
    assert_eq!(kind_of(window.local_mut().map(|_| ())), ErrorKind::Poisoned);
    signal("CONT", all[1]);
    until(|| done.load(0).unwrap() == 1);
    assert_eq!(*window.local_mut()?, [66]);
    Ok(())
}

// covers: RMA-SYNC-14
fn posts_need_nobody(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    let all = processes(team)?;
    if team.rank() != Rank(0) {
        signal("STOP", std::process::id());
        window.start(Rank(0), Info::Strong)?.complete()?;
        return Ok(());
    }
    until(|| all[1..].iter().all(|&process| is_stopped(process)));
    // A post that needs the others would stall, as they go on only after it.
    let exposure = window.post(Origins::Any)?;
    all[1..].iter().for_each(|&process| signal("CONT", process));
    exposure.wait(2)?;
    Ok(())
}

// covers: RMA-PROG-09
fn a_stopped_target_is_written_to(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    let all = processes(team)?;
    if team.rank() == Rank(0) {
        let exposure = window.post(Origins::Any)?;
        signal("STOP", std::process::id());
        exposure.wait(1)?;
        assert_eq!(window.load(0)?, 5);
    } else {
        until(|| is_stopped(all[0]));
        let access = window.start(Rank(0), Info::Strong)?;
        access.put(Rank(0), 0, 5)?;
        access.complete()?;
        assert!(is_stopped(all[0]));
        signal("CONT", all[0]);
    }
    Ok(())
}

fn a_rank_that_finished_is_no_holder(team: &Team) -> Outcome {
    let window = Window::<u64>::allocate(team, 1)?;
    if team.rank() == Rank(2) {
        // Leaves at once; nobody needs it.
        return Ok(());
    }
    for _ in 0..2 {
        window.lock(Rank(0), LockKind::Exclusive, |epoch| {
            grace();
            let value = epoch.flush(epoch.get_value(Rank(0), 0))?;
            epoch.put(Rank(0), 0, value + 1)
        })?;
    }
    Ok(())
}

/// Ranks that wait for each other in a circle: the report of whoever gives up first shows it.
// covers: RMA-PROG-11
fn a_deadlock_is_shown_as_a_cycle(team: &Team) -> Outcome {
    const LIMIT: Duration = Duration::from_secs(1);
    let me = team.rank();
    let next = Rank((me.0 + 1) % team.size());
    let window = Window::<u64>::allocate(team, 1)?;
    // Accesses to ranks that post only afterwards.
    let crossed = with_limit(team, LIMIT, || window.start(next, Info::Strong).map(|_| ()));
    shows_a_cycle(team, crossed.expect_err("nobody posts").to_string(), "start on window")?;
    // Locks that each rank holds while it waits for another's. The end of the first wait lets another one go on.
    let window = Window::<u64>::allocate(team, 1)?;
    let text = window.lock(me, LockKind::Exclusive, |_| {
        team.barrier()?;
        let crossed = with_limit(team, LIMIT, || window.lock(next, LockKind::Exclusive, |_| ()));
        Ok(crossed.map_or_else(|error| error.to_string(), |()| String::new()))
    })?;
    shows_a_cycle(team, text, "lock on window")
}

/// Whoever gives up first has seen all others wait, who may see it gone.
fn shows_a_cycle(team: &Team, text: String, call: &str) -> Outcome {
    let size = team.size();
    let shown = (0..size).any(|first| {
        let place = |rank: u32| format!("rank {} in {call} ", (first + rank) % size);
        text.split_once("wait-for cycle: ").is_some_and(|(_, cycle)| {
            let (cycle, _) = cycle.split_once(';').unwrap_or((cycle, ""));
            (0..size).all(|rank| cycle.contains(&place(rank))) && cycle.ends_with(&format!("rank {first}"))
        })
    });
    let mut seen = [u32::from(shown)];
    team.allreduce(&mut seen, Max)?;
    assert_eq!(seen, [1], "no report shows the cycle: {text}");
    Ok(())
}
