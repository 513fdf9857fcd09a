//! Ranks whose requests are served in one way or another while they compute. Never starts a job: the tests do.

use std::time::{Duration, Instant, SystemTime};

use rma::{Expected, Info, LockKind, Origins, Rank, Team, Window};

use crate::{Outcome, say};

/// Figure 1.3: each of two ranks posts, starts, puts so many bytes, completes and waits, toward the other.
pub(crate) fn exchange(team: &Team, bytes: usize) -> Outcome {
    let other = Rank(1 - team.rank().0);
    let mut window = Window::<u8>::allocate(team, bytes)?;
    for (round, info) in (1..).zip([Info::Strong, Info::Weak]) {
        let fill = |rank: Rank| 10 * round + rank.0 as u8;
        let data = vec![fill(team.rank()); bytes];
        let exposure = window.post(Origins::Any)?;
        let access = exposure.start(other, info)?;
        access.put(other, 0, &data)?;
        access.complete()?;
        exposure.wait(1)?;
        if window.local()?[..] != vec![fill(other); bytes][..] {
            return Err("another value than the other rank has put".into());
        }
    }
    say("exchanged");
    Ok(())
}

/// Nanoseconds of the clock that both ranks have.
fn now() -> u128 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a clock of this century").as_nanos()
}

fn compute(time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Rank 0 posts, computes, and makes a call that has nothing to do with it: a barrier of another team, or the test of a request.
pub(crate) fn unrelated(team: &Team, call: &str, milliseconds: u64) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    let mut second = Window::<u64>::allocate(team, 1)?;
    let third = team.duplicate()?;
    if team.rank() == Rank(0) {
        let exposure = window.post(Origins::Any)?;
        let mut request = second.post(Origins::Any)?.iwait(Expected::from(1))?;
        team.barrier()?;
        compute(Duration::from_millis(milliseconds));
        say(&format!("computed until {}", now()));
        match call {
            "barrier" => third.barrier()?,
            _ => while !request.test()? {},
        }
        if call == "barrier" {
            while !request.test()? {}
        }
        exposure.wait(1)?;
    } else {
        team.barrier()?;
        let access = window.start(Rank(0), Info::Strong)?;
        access.put(Rank(0), 0, 7)?;
        access.complete()?;
        say(&format!("completed at {}", now()));
        if call == "barrier" {
            third.barrier()?;
        }
        second.start(Rank(0), Info::Strong)?.complete()?;
    }
    Ok(())
}

/// Rank 1 locks the window of rank 0, in every way that leads there.
pub(crate) fn locks(team: &Team) -> Outcome {
    let window = Window::<u64>::allocate(team, 1)?;
    if team.rank() == Rank(1) {
        let late = Info::Weak.with("weak", "unlock");
        let outcomes = [
            window.lock(Rank(0), LockKind::Exclusive, |epoch| epoch.put(Rank(0), 0, 1)),
            window.lock_with(Rank(0), LockKind::Shared, late, |epoch| epoch.put(Rank(0), 0, 2)),
            window.lock_all(|epoch| epoch.put(Rank(0), 0, 3)),
        ];
        for outcome in outcomes {
            match outcome {
                Ok(()) => say("locked"),
                Err(error) => say(&format!("refused: {error}")),
            }
        }
    }
    team.barrier()?;
    Ok(())
}

/// Rank 1 puts and flushes while rank 0 makes no call.
pub(crate) fn ticks(team: &Team) -> Outcome {
    const COMPUTING: Duration = Duration::from_millis(600);
    const PUTTING: Duration = Duration::from_millis(500);
    let window = Window::<u64>::allocate(team, 1)?;
    // The link is there before it counts.
    window.lock(Rank(0), LockKind::Shared, |_| Ok::<(), rma::Error>(()))?;
    team.barrier()?;
    if team.rank() == Rank(0) {
        compute(COMPUTING);
    } else {
        let mut took = Vec::new();
        window.lock(Rank(0), LockKind::Shared, |epoch| {
            let begun = Instant::now();
            while begun.elapsed() < PUTTING {
                let begun = Instant::now();
                epoch.put(Rank(0), 0, 1)?;
                epoch.flush(())?;
                took.push(begun.elapsed());
            }
            Ok::<(), rma::Error>(())
        })?;
        took.sort();
        say(&format!("{} puts, median {} us", took.len(), took[took.len() / 2].as_micros()));
    }
    team.barrier()?;
    Ok(())
}
