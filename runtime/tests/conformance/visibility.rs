//! What each owner call makes visible (`docs/spec/visibility.md`), in every memory model. Never looks at what no rule promises;
//! `copies` does, where there are two copies.

use rma::{ErrorKind, Info, LockKind, Origins, Rank, Team, Window};

use crate::{Case, Outcome, case, kind_of, stalled, until};

pub(crate) const CASES: &[Case] = &[
    case!(stores_are_published, [2]),
    case!(puts_are_imported_at_the_end_of_an_exposure, [2]),
    case!(locked_puts_are_imported_by_the_owners_next_call, [2]),
    case!(others_need_no_call_of_the_owner, [3]),
    case!(switching_between_styles, [2]),
    case!(an_exposure_may_name_its_owner, [2]),
    case!(a_thousand_locations_change_style, [4]),
];

// covers: VIS-R5-02, VIS-R5-03, VIS-R5-04
fn stores_are_published(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    for round in 1..500 {
        let x = 10 * round;
        match team.rank() {
            Rank(0) => {
                window.store(0, x)?;
                window.fence(|_| ())?;
                window.store(0, x + 1)?;
                window.post(Origins::Any)?.wait(1)?;
                window.lock(Rank(0), LockKind::Exclusive, |epoch| epoch.store(0, x + 2))?;
                team.barrier()?;
                team.barrier()?;
            }
            _ => {
                let seen = window.fence(|epoch| epoch.get_value(Rank(0), 0))?;
                assert_eq!(seen, x, "by a fence");
                let seen = window.access(&[Rank(0)], Info::Strong, |epoch| epoch.get_value(Rank(0), 0))?;
                assert_eq!(seen, x + 1, "by a post");
                team.barrier()?;
                let seen = window.lock(Rank(0), LockKind::Shared, |epoch| epoch.get_value(Rank(0), 0))?;
                assert_eq!(seen, x + 2, "by an unlock");
                team.barrier()?;
            }
        }
    }
    Ok(())
}

// covers: VIS-R6-02, VIS-R6-03
fn puts_are_imported_at_the_end_of_an_exposure(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    for round in 1..500 {
        if team.rank() == Rank(0) {
            window.post(Origins::Any)?.wait(1)?;
            assert_eq!(window.load(0)?, 2 * round, "directly after a wait");
            window.fence(|_| ())?;
            assert_eq!(window.load(0)?, 2 * round + 1, "directly after a fence");
        } else {
            window.access(&[Rank(0)], Info::Strong, |epoch| epoch.put(Rank(0), 0, 2 * round))?;
            window.fence(|epoch| epoch.put(Rank(0), 0, 2 * round + 1))?;
        }
    }
    Ok(())
}

// covers: VIS-R7-01, VIS-R7-02, VIS-R7-03, VIS-EX2-03
fn locked_puts_are_imported_by_the_owners_next_call(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    for round in 1..500 {
        for call in 0..4 {
            team.barrier()?;
            let value = 4 * round + call;
            if team.rank() == Rank(1) {
                window.lock(Rank(0), LockKind::Exclusive, |epoch| epoch.put(Rank(0), 0, value))?;
            }
            team.barrier()?;
            if call == 3 {
                window.fence(|_| ())?;
                assert!(team.rank() != Rank(0) || window.load(0)? == value, "by a fence");
            } else if team.rank() == Rank(0) {
                let seen = match call {
                    0 => {
                        let exposure = window.post(Origins::Group(&[]))?;
                        let seen = exposure.load(0)?;
                        exposure.wait_all()?;
                        seen
                    }
                    1 => window.lock(Rank(0), LockKind::Shared, |epoch| epoch.load(0))?,
                    _ => window.lock(Rank(0), LockKind::Exclusive, |epoch| epoch.load(0))?,
                };
                assert_eq!(seen, value, "by call {call}");
            }
        }
    }
    Ok(())
}

// covers: VIS-R7-05
fn others_need_no_call_of_the_owner(team: &Team) -> Outcome {
    let window = Window::<u64>::allocate(team, 1)?;
    if team.rank() != Rank(0) {
        // The two add in turns: odd values are rank 1's.
        for turn in 0..1000 {
            let mine = 2 * turn + u64::from(team.rank().0) - 1;
            let mut done = false;
            while !done {
                done = window.lock(Rank(0), LockKind::Exclusive, |epoch| {
                    let value = epoch.flush(epoch.get_value(Rank(0), 0))?;
                    if value == mine {
                        epoch.put(Rank(0), 0, value + 1)?;
                    }
                    Ok(value == mine)
                })?;
            }
        }
    }
    team.barrier()?;
    assert!(team.rank() != Rank(0) || window.local()?[0] == 2000);
    Ok(())
}

// covers: VIS-EX1-01, VIS-EX1-05, VIS-MIX-03
fn switching_between_styles(team: &Team) -> Outcome {
    const X: usize = 0;
    const Y: usize = 1;
    let (a, b) = (Rank(0), Rank(1));
    for ending_by_lock in [false, true] {
        let mut window = Window::<u64>::allocate(team, 2)?;
        if team.rank() == a {
            let exposure = window.post(Origins::Group(&[a, b]))?;
            let access = exposure.start(a, Info::Strong)?;
            access.put(a, X, 11)?;
            access.complete()?;
            exposure.wait_all()?;
            assert_eq!(window.load(Y)?, 22);
            team.barrier()?;
            team.barrier()?;
            if ending_by_lock {
                window.lock(a, LockKind::Shared, |epoch| {
                    assert_eq!(epoch.load(Y)?, 33);
                    Ok(())
                })?;
            } else {
                let exposure = window.post(Origins::Any)?;
                assert_eq!(exposure.load(Y)?, 33);
                exposure.wait(0)?;
                window.post(Origins::Group(&[]))?.wait_all()?;
            }
        } else {
            window.access(&[a], Info::Strong, |epoch| epoch.put(a, Y, 22))?;
            team.barrier()?;
            let x = window.lock(a, LockKind::Exclusive, |epoch| {
                let x = epoch.get_value(a, X)?;
                epoch.put(a, Y, 33)?;
                Ok(x)
            })?;
            assert_eq!(x, 11);
            team.barrier()?;
        }
        // Fence, lock, fence: nothing beyond the fence is needed.
        for round in 0..200 {
            window.fence(|epoch| if team.rank() == b { epoch.put(a, X, round) } else { Ok(()) })?;
            if team.rank() == b {
                let seen = window.lock(a, LockKind::Exclusive, |epoch| {
                    let seen = epoch.get_value(a, X)?;
                    epoch.put(a, Y, round + 1)?;
                    Ok(seen)
                })?;
                assert_eq!(seen, round);
            }
            window.fence(|_| ())?;
            assert!(team.rank() != a || (window.load(X)?, window.load(Y)?) == (round, round + 1));
        }
    }
    Ok(())
}

// covers: VIS-EX1-04
fn an_exposure_may_name_its_owner(team: &Team) -> Outcome {
    let (a, b) = (Rank(0), Rank(1));
    let mut window = Window::<u64>::allocate(team, 2)?;
    let done = crate::flags::<u64>(team, 1)?;
    if team.rank() == b {
        window.access(&[a], Info::Strong, |epoch| epoch.put(a, 1, 22))?;
        done.lock(a, LockKind::Shared, |epoch| epoch.put(a, 0, 1))?;
        until(|| done.load(0).unwrap() == 1);
        return Ok(());
    }
    let exposure = window.post(Origins::Group(&[a, b]))?;
    until(|| done.load(0).unwrap() == 1);
    let error = stalled(team, || exposure.wait_all());
    assert!(error.to_string().contains("not started by ranks 0 of the group"), "{error}");
    assert_eq!(kind_of(window.fence(|_| ())), ErrorKind::Poisoned);
    done.lock(b, LockKind::Shared, |epoch| epoch.put(b, 0, 1))?;
    Ok(())
}

// covers: VIS-MIX-01, VIS-MIX-02, VIS-EX1-08
fn a_thousand_locations_change_style(team: &Team) -> Outcome {
    const PART: usize = 1000;
    let owner = Rank(0);
    let me = team.rank();
    for locks_first in [true, false] {
        let mut window = Window::<u64>::allocate(team, 3 * PART)?;
        for round in [1, 2] {
            let value = |at: usize| 10_000 * round + at as u64;
            let by_locks = (round == 1) == locks_first;
            if by_locks {
                if me != owner {
                    let from = (me.index() - 1) * PART;
                    let part: Vec<u64> = (from..from + PART).map(value).collect();
                    window.lock(owner, LockKind::Exclusive, |epoch| epoch.put(owner, from, &part))?;
                }
                team.barrier()?;
                if me == owner {
                    let exposure = window.post(Origins::Group(&[]))?;
                    for at in 0..3 * PART {
                        assert_eq!(exposure.load(at)?, value(at));
                    }
                    exposure.wait_all()?;
                }
                team.barrier()?;
            } else {
                if me == owner {
                    for at in 0..3 * PART {
                        window.store(at, value(at))?;
                    }
                    window.post(Origins::Any)?.wait(3)?;
                } else {
                    window.start(owner, Info::Strong)?.complete()?;
                }
                team.barrier()?;
                let seen = window.lock(owner, LockKind::Shared, |epoch| epoch.get_vec(owner, 0..3 * PART))?;
                assert!(seen.iter().enumerate().all(|(at, &found)| found == value(at)));
                team.barrier()?;
            }
        }
    }
    Ok(())
}
