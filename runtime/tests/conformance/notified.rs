//! Puts that are counted at their target.

use rma::{COUNTERS, ErrorKind, LockKind, Rank, Strided, Team, Window};

use crate::{Case, Outcome, case, grace, kind_of, stalled, until};

pub(crate) const CASES: &[Case] = &[
    case!(counted_puts_bring_their_data, [1, 2, 6]),
    case!(a_count_takes_puts_of_anybody, [4]),
    case!(a_wait_for_counted_puts_waits, [2]),
    case!(counters_are_apart_and_counted, [2]),
    case!(a_wait_for_a_put_that_never_comes_stalls, [2]),
];

/// Around a ring without any other synchronization: each round's data are there when the round is counted.
fn counted_puts_bring_their_data(team: &Team) -> Outcome {
    const LEN: usize = 100;
    const ROUNDS: u64 = 300;
    let window = Window::<u64>::allocate(team, 2 * LEN)?;
    let (me, next) = (team.rank(), Rank((team.rank().0 + 1) % team.size()));
    let previous = Rank((me.0 + team.size() - 1) % team.size());
    window.lock_all(|epoch| {
        for round in 1..=ROUNDS {
            // Two halves in turn, and a put that says that a half is free again.
            let half = (round % 2) as usize;
            if 2 < round {
                epoch.wait_notified(2 + half, 1)?;
            }
            epoch.put_notify(next, half * LEN, [round * 1000 + u64::from(me.0); LEN], half)?;
            epoch.wait_notified(half, 1)?;
            let mut data = [0; LEN];
            epoch.read(half * LEN, &mut data)?;
            assert_eq!(data, [round * 1000 + u64::from(previous.0); LEN]);
            epoch.put_notify(previous, 0, [], 2 + half)?;
        }
        Ok(())
    })?;
    Ok(())
}

fn a_count_takes_puts_of_anybody(team: &Team) -> Outcome {
    let window = Window::<u32>::allocate(team, 64)?;
    let (me, ranks) = (team.rank(), team.size());
    if me != Rank(0) {
        window.lock(Rank(0), LockKind::Shared, |epoch| {
            // Strided, as any put: the rank's column.
            let column = Strided { start: me.index(), count: 8, block: 1, stride: 8 };
            epoch.put_notify(Rank(0), column, [me.0; 8], 5)
        })?;
    } else {
        window.wait_notified(5, ranks as usize - 1)?;
        for row in 0..8 {
            for column in 1..ranks as usize {
                assert_eq!(window.load(8 * row + column)?, column as u32);
            }
        }
    }
    Ok(())
}

fn a_wait_for_counted_puts_waits(team: &Team) -> Outcome {
    let (window, flags) = (Window::<u64>::allocate(team, 1)?, crate::flags::<u64>(team, 1)?);
    match team.rank() {
        Rank(0) => {
            window.wait_notified(0, 2)?;
            assert_eq!(window.load(0)?, 2);
            flags.lock(Rank(1), LockKind::Shared, |epoch| epoch.put(Rank(1), 0, 1))?;
        }
        _ => {
            let put = |value| {
                window.lock(Rank(0), LockKind::Shared, |epoch| epoch.put_notify(Rank(0), 0, value, 0))
            };
            put(1)?;
            grace();
            assert_eq!(flags.load(0)?, 0, "one put is not two");
            put(2)?;
            until(|| flags.load(0).unwrap() == 1);
        }
    }
    Ok(())
}

fn counters_are_apart_and_counted(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, COUNTERS)?;
    let other = Rank(1 - team.rank().0);
    window.fence(|epoch| {
        for counter in 0..COUNTERS {
            epoch.put_notify(other, counter, counter as u64 + 1, counter)?;
        }
        // What is refused is not counted.
        assert_eq!(kind_of(epoch.put_notify(other, COUNTERS, 1, 0)), ErrorKind::OutOfBounds);
        assert_eq!(kind_of(epoch.put_notify(other, 0, 1, COUNTERS)), ErrorKind::OutOfBounds);
        assert_eq!(kind_of(epoch.wait_notified(COUNTERS, 1)), ErrorKind::OutOfBounds);
        for counter in (0..COUNTERS).rev() {
            epoch.wait_notified(counter, 1)?;
            assert_eq!(epoch.load(counter)?, counter as u64 + 1);
        }
        epoch.wait_notified(0, 0)
    })?;
    let view = window.local()?;
    assert_eq!(kind_of(window.wait_notified(0, 0)), ErrorKind::StoreDuringUpdate);
    drop(view);
    Ok(())
}

fn a_wait_for_a_put_that_never_comes_stalls(team: &Team) -> Outcome {
    let window = Window::<u64>::allocate(team, 1)?;
    if team.rank() == Rank(0) {
        let error = stalled(team, || window.wait_notified(3, 1));
        assert!(error.to_string().contains("wait_notified"), "{error}");
    }
    team.barrier()?;
    Ok(())
}
