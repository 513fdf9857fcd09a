//! The progressive family: events that are served although the target makes no call, each as a whole.

use std::thread;
use std::time::Instant;

use rma::pgo::{self, COUNT_ANY, GETS_OK, PUTS_OK, malloc, nothing, over};
use rma::private::testing::pgo_counters;
use rma::{Rank, Team};

use crate::{Case, Outcome, case, flags, has_time, until};

pub(crate) const CASES: &[Case] = &[
    case!(a_target_in_a_loop_is_served, [2]).one_copy().under(&[""]),
    case!(two_ranks_meet_in_a_third, [3]).one_copy().under(&[""]),
    case!(two_ranks_meet_in_a_server, [4]).one_copy().under(&[""]),
    case!(many_events_may_name_one_place, [3]).one_copy().under(&[""]),
    case!(combined_events_are_atomic, [4]).one_copy().under(&[""]),
    case!(completing_and_offering_is_lock_and_unlock, [3]).one_copy().under(&[""]),
    case!(the_total_grows, [8]).one_copy().under(&[""]),
    case!(a_stopped_target_is_served, [2]).one_copy().under(&[""]).processes(),
    case!(the_owner_reaches_its_memory_by_events, [2]).one_copy().under(&[""]),
];

// covers: PGO-PROG-04
fn a_target_in_a_loop_is_served(team: &Team) -> Outcome {
    let done = flags::<u32>(team, 1)?;
    if team.rank() == Rank(0) {
        let (numbers, mut back) = ([4_u64; 100], [0_u64; 100]);
        team.barrier()?;
        pgo::scope(team, 1, |scope| {
            scope.putp(&numbers, Rank(1), 0)?;
            scope.getp(&mut back, Rank(1), 0)?;
            scope.offerp(nothing(), 0)
        })?;
        assert_eq!(back, numbers);
        done.lock(Rank(1), rma::LockKind::Shared, |epoch| epoch.put(Rank(1), 0, 1))?;
    } else {
        let mut request = pgo::iofferp(team, 1, over(vec![0_u64; 100], PUTS_OK + GETS_OK), COUNT_ANY)?;
        team.barrier()?;
        // No call until the other rank is through.
        until(|| done.load(0).is_ok_and(|done| done == 1));
        assert_eq!(request.wait()?.events(), 2);
        assert_eq!(request.into_inner(), [4; 100]);
    }
    team.barrier()?;
    Ok(())
}

const VALUES: u64 = 1000;

// covers: PGO-PROG-05
fn two_ranks_meet_in_a_third(team: &Team) -> Outcome {
    const EXCHANGE: u64 = 1;
    const SIDE: u64 = 2;
    let rounds = if crate::is_full() { VALUES } else { 200 };
    let mut idle = match team.rank() {
        Rank(2) => Some(pgo::iofferp(team, EXCHANGE, over(vec![0_u64], PUTS_OK + GETS_OK), COUNT_ANY)?),
        _ => None,
    };
    team.barrier()?;
    for round in 1..=rounds {
        match team.rank() {
            Rank(0) => {
                let value = [round * round];
                pgo::scope(team, EXCHANGE, |scope| scope.putp(&value, Rank(2), 0))?;
                // The side message: the value is there. And the answer: it was read.
                pgo::scope(team, SIDE, |scope| {
                    scope.put(&value, Rank(1), 0)?;
                    scope.offer(over(&mut [0_u64], PUTS_OK), 1)
                })?;
            }
            Rank(1) => {
                pgo::offer(team, SIDE, over(&mut [0_u64], PUTS_OK), 1)?;
                let mut value = [0_u64];
                pgo::scope(team, EXCHANGE, |scope| scope.getp(&mut value, Rank(2), 0))?;
                assert_eq!(value, [round * round]);
                pgo::scope(team, SIDE, |scope| scope.put(&value, Rank(0), 0))?;
            }
            _ => {}
        }
    }
    team.barrier()?;
    if let Some(request) = &mut idle {
        assert_eq!(request.wait()?.events(), 2 * rounds);
    }
    Ok(())
}

// covers: PGO-PROG-13
fn two_ranks_meet_in_a_server(team: &Team) -> Outcome {
    // As above, but the third rank computes and a fourth one serves, by non-progressive calls only.
    const EXCHANGE: u64 = 1;
    const SIDE: u64 = 2;
    let rounds = if crate::is_full() { VALUES } else { 200 };
    for round in 1..=rounds {
        match team.rank() {
            Rank(0) => {
                let value = [round * round];
                pgo::scope(team, EXCHANGE, |scope| scope.put(&value, Rank(3), 0))?;
                pgo::scope(team, SIDE, |scope| {
                    scope.put(&value, Rank(1), 0)?;
                    scope.offer(over(&mut [0_u64], PUTS_OK), 1)
                })?;
            }
            Rank(1) => {
                pgo::offer(team, SIDE, over(&mut [0_u64], PUTS_OK), 1)?;
                let mut value = [0_u64];
                pgo::scope(team, EXCHANGE, |scope| scope.get(&mut value, Rank(3), 0))?;
                assert_eq!(value, [round * round]);
                pgo::scope(team, SIDE, |scope| scope.put(&value, Rank(0), 0))?;
            }
            _ => {}
        }
    }
    if team.rank() == Rank(3) {
        let mut memory = vec![0_u64];
        for _ in 0..2 * rounds {
            pgo::offer(team, EXCHANGE, over(&mut memory, PUTS_OK + GETS_OK), 1)?;
        }
        assert_eq!(memory, [rounds * rounds]);
    }
    Ok(())
}

// covers: PGO-PROG-06
fn many_events_may_name_one_place(team: &Team) -> Outcome {
    let me = team.rank();
    let mut request = match me {
        Rank(0) => Some(pgo::iofferp(team, 1, over(vec![0_u32; 2], PUTS_OK + GETS_OK), 30)?),
        _ => None,
    };
    if let Some(request) = &mut request {
        request.wait()?;
    } else {
        let numbers: Vec<[u32; 2]> = (1..=10).map(|i| [me.0 * 100 + i; 2]).collect();
        let mut got = [[0_u32; 2]; 5];
        pgo::scope(team, 1, |scope| {
            numbers.iter().try_for_each(|number| scope.putp(number, Rank(0), 0))?;
            got.iter_mut().try_for_each(|got| scope.getp(got, Rank(0), 0))
        })?;
        assert!(got.iter().all(|got| got[0] == got[1]));
    }
    if let Some(request) = request {
        let last = request.into_inner();
        assert!(last == [110, 110] || last == [210, 210], "{last:?}");
    }
    Ok(())
}

// covers: PGO-PROG-07
fn combined_events_are_atomic(team: &Team) -> Outcome {
    let tries = if crate::is_full() { 100_000 } else { 5000 };
    const FAR: usize = 5000;
    let me = team.rank();
    let request = match me {
        Rank(3) => Some(pgo::iofferp(team, 1, over(vec![0_u64; FAR + 1], PUTS_OK + GETS_OK), COUNT_ANY)?),
        _ => None,
    };
    team.barrier()?;
    let begun = Instant::now();
    for round in 0..tries {
        if !has_time(begun) {
            break;
        }
        if me == Rank(2) {
            let (mut a, mut b) = ([0_u64], [0_u64]);
            pgo::scope(team, 1, |scope| {
                scope.combine().getp(&mut a, Rank(3), 0)?;
                scope.getp(&mut b, Rank(3), FAR)
            })?;
            assert_eq!(a, b, "try {round}");
        } else if me != Rank(3) {
            let number = [round * 2 + u64::from(me.0)];
            pgo::scope(team, 1, |scope| {
                scope.combine().putp(&number, Rank(3), 0)?;
                scope.putp(&number, Rank(3), FAR)
            })?;
        }
    }
    team.barrier()?;
    if let Some(mut request) = request {
        request.wait()?;
        let memory = request.into_inner();
        assert_eq!(memory[0], memory[FAR]);
    }
    Ok(())
}

// covers: PGO-PROG-10
fn completing_and_offering_is_lock_and_unlock(team: &Team) -> Outcome {
    let rounds = if crate::is_full() { 2000 } else { 200 };
    const MEMORY: u64 = 1;
    let stop = flags::<u32>(team, 1)?;
    let begun = Instant::now();
    if team.rank() == Rank(0) {
        let mut memory = vec![0_u64; 3];
        for round in 1..=rounds {
            let mut request = pgo::iofferp(team, MEMORY, over(memory, PUTS_OK + GETS_OK), COUNT_ANY)?;
            thread::yield_now();
            request.wait()?;
            memory = request.into_inner();
            // Nobody else is there now.
            memory[0] = round;
            thread::yield_now();
            memory[1] = round;
            if !has_time(begun) {
                break;
            }
        }
        for rank in team.ranks() {
            stop.lock(rank, rma::LockKind::Shared, |epoch| epoch.put(rank, 0, 1))?;
        }
        // What the others still wait for.
        let mut request = pgo::iofferp(team, MEMORY, over(memory, PUTS_OK + GETS_OK), COUNT_ANY)?;
        team.barrier()?;
        request.wait()?;
        let memory = request.into_inner();
        assert_eq!(memory[0], memory[1]);
    } else {
        let mut tries = 0;
        while stop.load(0)? == 0 {
            let (mut both, mark) = ([0_u64; 2], [tries]);
            pgo::scope(team, MEMORY, |scope| {
                scope.combine().getp(&mut both[..1], Rank(0), 0)?;
                Ok::<(), rma::Error>(())
            })
            .expect_err("the chain is open");
            pgo::scope(team, MEMORY, |scope| {
                let (first, second) = both.split_at_mut(1);
                scope.combine().getp(first, Rank(0), 0)?;
                scope.getp(second, Rank(0), 1)?;
                scope.putp(&mark, Rank(0), 2)
            })?;
            assert_eq!(both[0], both[1]);
            tries += 1;
        }
        team.barrier()?;
    }
    Ok(())
}

// covers: PGO-PROG-03
fn the_total_grows(team: &Team) -> Outcome {
    let me = team.rank();
    let events = if crate::is_full() { 20_000 } else { 300 };
    if me == Rank(0) {
        // Events of 7 originators through offers of 7 each: each comes to its end.
        let mut memory = vec![0_u64; 8];
        for _ in 0..events {
            pgo::offerp(team, 1, over(&mut memory, PUTS_OK), 7)?;
        }
        assert_eq!(memory.iter().sum::<u64>(), 7 * events);
    } else {
        for round in 1..=events {
            let number = [round];
            pgo::scope(team, 1, |scope| scope.putp(&number, Rank(0), me.index()))?;
        }
    }
    Ok(())
}

// covers: PGO-PROG-12
fn a_stopped_target_is_served(team: &Team) -> Outcome {
    if team.rank() == Rank(0) {
        let (numbers, mut back) = (vec![5_u64; 3000], vec![0_u64; 3000]);
        let target = {
            let mut process = [0_u32];
            pgo::offer(team, 1, over(&mut process, PUTS_OK), 1)?;
            process[0]
        };
        team.barrier()?;
        let signal = |name: &str| {
            let status = std::process::Command::new("kill").args([name, &target.to_string()]).status();
            assert!(status.is_ok_and(|status| status.success()));
        };
        signal("-STOP");
        pgo::scope(team, 2, |scope| {
            scope.putp(&numbers, Rank(1), 0)?;
            scope.getp(&mut back, Rank(1), 0)?;
            scope.offerp(nothing(), 0)
        })?;
        signal("-CONT");
        assert_eq!(back, numbers);
        let [by_originator, by_target, by_agent, ..] = pgo_counters(team);
        assert_eq!((by_originator, by_agent), (2, 0), "and {by_target} as target");
    } else {
        let process = [std::process::id()];
        let mut request = pgo::iofferp(team, 2, over(malloc::<u64>(team, 3000)?, PUTS_OK + GETS_OK), 2)?;
        pgo::scope(team, 1, |scope| scope.put(&process, Rank(0), 0))?;
        team.barrier()?;
        request.wait()?;
        assert_eq!(request.into_inner()[..], [5; 3000]);
        let [_, _, by_agent, ..] = pgo_counters(team);
        assert_eq!(by_agent, 0);
    }
    team.barrier()?;
    Ok(())
}

// covers: PGO-PROG-09
fn the_owner_reaches_its_memory_by_events(team: &Team) -> Outcome {
    let (me, other) = (team.rank(), Rank(1 - team.rank().0));
    let mut request = pgo::iofferp(team, 1, over(vec![1_u32; 2], PUTS_OK + GETS_OK), COUNT_ANY)?;
    team.barrier()?;
    let (theirs, own, mut seen) = ([me.0 + 10], [me.0 + 20], [0_u32; 2]);
    pgo::scope(team, 1, |scope| scope.putp(&theirs, other, 0))?;
    team.barrier()?;
    pgo::scope(team, 1, |scope| {
        scope.putp(&own, me, 1)?;
        scope.getp(&mut seen, me, 0)
    })?;
    assert_eq!(seen, [other.0 + 10, me.0 + 20]);
    team.barrier()?;
    request.wait()?;
    assert_eq!(request.into_inner(), seen);
    Ok(())
}
