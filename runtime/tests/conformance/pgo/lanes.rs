//! Puts that meet a blocking offer without a lock, and everything that may come between them: other kinds of events, events that
//! stay with their originator, offers in the store, threads, errors. Never counts nanoseconds; what is counted is locks and copies.

use std::thread;
use std::time::{Duration, Instant};

use rma::pgo::{self, GETS_OK, PUTS_OK, malloc, nothing, over};
use rma::private::testing::{holding_offers, pgo_counters, with_limit};
use rma::{ErrorKind, Rank, Team};

use super::pends;
use crate::list::next;
use crate::{Case, Outcome, case, kind_of};

pub(crate) const CASES: &[Case] = &[
    case!(a_put_meets_an_offer_without_a_lock, [2, 3]).one_copy().under(&[""]).mapped(),
    case!(short_and_long_ways_do_what_the_model_does, [2, 3, 4]).one_copy().under(&[""]),
    case!(puts_in_lanes_keep_their_order, [2]).one_copy().under(&[""]),
    case!(an_offer_gives_way_to_what_waits_in_the_store, [2]).one_copy().under(&[""]),
    case!(a_granted_put_is_taken_back, [2]).one_copy().under(&[""]).mapped(),
    case!(a_grant_keeps_nobody_out, [3]).one_copy().under(&[""]).mapped(),
    case!(ready_events_meet_a_blocking_offer, [2]).one_copy().under(&[""]),
    case!(a_held_lock_is_waited_for_once, [2]).one_copy().under(&[""]).mapped(),
    case!(a_later_request_comes_after_a_blocking_offer, [2]).one_copy().under(&[""]),
];

/// Locks of stores, copies through memory between the two ends, and blocks of memory.
fn costs(team: &Team) -> [u64; 3] {
    let all = pgo_counters(team);
    [all[7], all[3], all[6]]
}

// covers: PGO-MEM-01 -- a long put to such memory is one copy
fn a_put_meets_an_offer_without_a_lock(team: &Team) -> Outcome {
    let (me, size) = (team.rank().0, team.size());
    let right = Rank((me + 1) % size);
    for (len, copies) in [(1, 1), (100, 1), (10_000, 0)] {
        let numbers = vec![u64::from(me); len];
        let mut memory = malloc::<u64>(team, len)?;
        let mut before = costs(team);
        for round in 0..50 {
            pgo::scope(team, round % 2, |scope| {
                scope.put(&numbers[..], right, 0)?;
                scope.offer(over(&mut memory, PUTS_OK), 1)
            })?;
            assert!(memory.iter().all(|&word| word == u64::from((me + size - 1) % size)));
            if round == 0 {
                // The first put makes the lane.
                before = costs(team);
            }
        }
        let after = costs(team);
        let spent: Vec<u64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
        assert_eq!(spent, [0, 49 * copies, 0], "locks, copies and blocks of 49 puts of {len} words");
    }
    // Short ones need no memory that ranks share.
    let mut private = [0_u64; 3];
    let before = costs(team);
    pgo::scope(team, 7, |scope| {
        scope.put(&[5_u64, 6], right, 1)?;
        scope.offer(over(&mut private, PUTS_OK), 1)
    })?;
    assert_eq!(private, [0, 5, 6]);
    assert_eq!(costs(team)[0], before[0]);
    Ok(())
}

fn below(state: &mut u64, limit: usize) -> usize {
    (next(state) >> 16) as usize % limit
}

/// A put or a get of some words of the originator's part of an offer.
#[derive(Clone, Debug)]
struct Step {
    is_put: bool,
    at: usize,
    len: usize,
    /// It is one event with the next step.
    is_joined: bool,
}

/// The words of an offer that one originator has for itself.
const PART: usize = 1500;

fn steps(state: &mut u64) -> Vec<Step> {
    // Most rounds have nothing but puts, which is what lanes are for.
    let kinds = if below(state, 3) == 0 { 5 } else { 1000 };
    let count = below(state, 7);
    let mut steps: Vec<Step> = Vec::new();
    for which in 0..count {
        // Data of a word, data that lie in a parcel, and data that stay.
        let len = [1, 1 + below(state, 500), 600 + below(state, 800)][below(state, 3)];
        let at = below(state, PART - len + 1);
        let is_put = below(state, kinds) != 0;
        let is_joined = which + 1 < count && below(state, kinds + 1) == 0;
        steps.push(Step { is_put, at, len, is_joined });
    }
    steps
}

fn word(round: usize, from: usize, step: usize) -> u64 {
    ((round * 64 + from) * 64 + step) as u64 + 1
}

/// Rounds of events of all kinds; each rank offers once a round, to all of them. No order is promised between ranks, so each has a
/// part of the offer for itself, where its events come in their order.
fn short_and_long_ways_do_what_the_model_does(team: &Team) -> Outcome {
    let (me, size) = (team.rank().index(), team.size() as usize);
    let mut state = 0x5eed_1234_u64;
    for round in 0..if crate::is_full() { 4000 } else { 150 } {
        // All ranks draw the same numbers.
        let all: Vec<Vec<Vec<Step>>> =
            (0..size).map(|_| (0..size).map(|_| steps(&mut state)).collect()).collect();
        let kinds: Vec<usize> = (0..size).map(|_| below(&mut state, 4)).collect();
        let events = |steps: &[Step]| steps.iter().filter(|step| !step.is_joined).count() as u64;
        let count: u64 = all.iter().map(|of| events(&of[me])).sum();
        let sources: Vec<Vec<Vec<u64>>> = (0..size)
            .map(|to| {
                let own = all[me][to].iter().enumerate();
                own.map(|(which, step)| vec![word(round, me, which); step.len]).collect()
            })
            .collect();
        let mut taken: Vec<Vec<Vec<u64>>> =
            (0..size).map(|to| all[me][to].iter().map(|step| vec![0; step.len]).collect()).collect();
        let mut private = vec![0_u64; size * PART];
        let mut shared = malloc::<u64>(team, size * PART)?;
        let tag = round as u64 % 3;
        pgo::scope(team, tag, |scope| {
            for (to, taken) in taken.iter_mut().enumerate() {
                let target = Rank(to as u32);
                for (which, (step, taken)) in all[me][to].iter().zip(taken).enumerate() {
                    let at = me * PART + step.at;
                    let source = &sources[to][which][..];
                    match (step.is_put, step.is_joined) {
                        (true, false) => scope.put(source, target, at)?,
                        (true, true) => scope.combine_mixed().put(source, target, at)?,
                        (false, false) => scope.get(&mut taken[..], target, at)?,
                        (false, true) => scope.combine_mixed().get(&mut taken[..], target, at)?,
                    }
                }
            }
            let both = PUTS_OK + GETS_OK;
            match kinds[me] {
                0 => scope.offer(over(private.as_mut_slice(), both), count),
                1 | 2 => scope.offer(over(&mut shared, both), count),
                _ => {
                    let mut request = scope.ioffer(over(std::mem::take(&mut private), both), count)?;
                    let status = scope.wait(&mut request)?;
                    private = request.into_inner();
                    Ok(status)
                }
            }
        })?;
        let offered = if matches!(kinds[me], 1 | 2) { &shared[..] } else { &private[..] };
        for (from, of) in all.iter().enumerate() {
            let mut expected = vec![0_u64; PART];
            for (which, step) in of[me].iter().enumerate().filter(|(_, step)| step.is_put) {
                expected[step.at..step.at + step.len].fill(word(round, from, which));
            }
            assert!(offered[from * PART..][..PART] == expected[..], "round {round}: what {from} has put");
        }
        for (to, taken) in taken.iter().enumerate() {
            let mut theirs = vec![0_u64; PART];
            for (which, step) in all[me][to].iter().enumerate() {
                match step.is_put {
                    true => theirs[step.at..step.at + step.len].fill(word(round, me, which)),
                    false => assert!(
                        taken[which] == theirs[step.at..step.at + step.len],
                        "round {round}: get {which} from {to}"
                    ),
                }
            }
        }
    }
    Ok(())
}

// covers: PGO-ORD-01 -- within one offer and over many, also when long and short ones take turns
fn puts_in_lanes_keep_their_order(team: &Team) -> Outcome {
    const ROUNDS: u64 = 300;
    let long = 2000;
    let sources: Vec<Vec<u64>> =
        (0..ROUNDS).map(|number| vec![number; if number % 3 == 0 { long } else { 1 }]).collect();
    match team.rank() {
        Rank(0) => pgo::scope(team, 1, |scope| {
            sources.iter().try_for_each(|source| scope.put(&source[..], Rank(1), 0))
        })?,
        _ => {
            let mut memory = malloc::<u64>(team, long)?;
            let mut served = 0;
            for count in (1..).map(|number| 1 + number % 4) {
                let count = count.min(ROUNDS - served);
                pgo::offer(team, 1, over(&mut memory, PUTS_OK), count)?;
                served += count;
                assert_eq!(memory[0], served - 1);
                if served == ROUNDS {
                    break;
                }
            }
        }
    }
    Ok(())
}

fn an_offer_gives_way_to_what_waits_in_the_store(team: &Team) -> Outcome {
    let numbers = [1_u64, 2];
    let mut back = [0_u64; 2];
    let long = vec![7_u64; 2000];
    match team.rank() {
        // A put of a lane, then what has to wait in the store behind it.
        Rank(0) => pgo::scope(team, 1, |scope| {
            scope.put(&numbers, Rank(1), 0)?;
            scope.get(&mut back, Rank(1), 0)?;
            scope.put(&long[..], Rank(1), 2)
        })?,
        _ => {
            let mut private = vec![0_u64; 2002];
            let status = pgo::offer(team, 1, over(&mut private, PUTS_OK + GETS_OK), 3)?;
            assert_eq!((status.events(), status.bytes()), (3, 2 * 16 + 16_000));
            assert_eq!((&private[..2], &private[2..]), (&numbers[..], &long[..]));
        }
    }
    if team.rank() == Rank(0) {
        assert_eq!(back, numbers, "the get comes after the put");
    }
    // Puts are not for an offer of gets, wherever they wait, and keep their thread's gets waiting.
    match team.rank() {
        Rank(0) => {
            let mut got = [0_u64];
            pgo::scope(team, 2, |scope| {
                scope.put(&[3_u64], Rank(1), 0)?;
                scope.get(&mut got, Rank(1), 0)?;
                team.barrier()?;
                team.barrier()
            })?;
            assert_eq!(got, [3]);
        }
        _ => {
            let mut private = [9_u64];
            team.barrier()?;
            let error = pends(team, || pgo::offer(team, 2, over(&mut private, GETS_OK), 1));
            assert!(error.to_string().contains("EventNotOffered"), "{error}");
            team.barrier()?;
            pgo::offer(team, 2, over(&mut private, PUTS_OK), 1)?;
            pgo::offer(team, 2, over(&mut private, GETS_OK), 1)?;
            assert_eq!(private, [3]);
        }
    }
    Ok(())
}

/// A long put that was granted a place goes back, by its own scope or by the offer; the other one of the two goes on.
fn a_granted_put_is_taken_back(team: &Team) -> Outcome {
    let long = vec![4_u64; 2000];
    let mut memory = malloc::<u64>(team, 2000)?;
    for round in 0..2 {
        match team.rank() {
            Rank(0) => {
                let outcome = pgo::scope(team, 1, |scope| {
                    scope.put(&long[..], Rank(1), 0)?;
                    team.barrier()?;
                    team.barrier()?;
                    match round {
                        // The scope fails while its put may have a place.
                        0 => Err(pgo::offer(team, 9, nothing(), 1).expect_err("nothing serves nothing")),
                        _ => Ok(()),
                    }
                });
                assert_eq!(outcome.map_err(|error| error.kind()), [Err(ErrorKind::BadEvents), Ok(())][round]);
                team.barrier()?;
            }
            _ => {
                team.barrier()?;
                // Its originator makes no call that could copy.
                pends(team, || pgo::offer(team, 1, over(&mut memory, PUTS_OK), 1));
                assert!(memory.iter().all(|&word| word == 0) && memory.len() == 2000, "it is the own again");
                team.barrier()?;
                match round {
                    0 => drop(pends(team, || pgo::offer(team, 1, over(&mut memory, PUTS_OK), 1))),
                    _ => drop(pgo::offer(team, 1, over(&mut memory, PUTS_OK), 1)?),
                }
                assert!(memory.iter().all(|&word| word == 4 * round as u64));
                team.barrier()?;
            }
        }
    }
    Ok(())
}

/// A long put may have been granted a place, and its originator is in no call that could copy it before a put of another rank is
/// served. Each of the two has each place in the list of lanes once.
fn a_grant_keeps_nobody_out(team: &Team) -> Outcome {
    let long = vec![1_u64; 2000];
    for (len, granted) in [(1, 0), (1, 1), (2000, 0), (2000, 1)] {
        let other = vec![2_u64; len];
        match team.rank() {
            Rank(2) => {
                let mut memory = malloc::<u64>(team, 2000)?;
                team.barrier()?;
                pgo::offer(team, 1, over(&mut memory, PUTS_OK), 1)?;
                assert_eq!(memory[..len], other[..]);
                pgo::offer(team, 1, over(&mut memory, PUTS_OK), 1)?;
                assert_eq!(memory[..], long[..]);
            }
            me if me == Rank(granted) => pgo::scope(team, 1, |scope| {
                scope.put(&long[..], Rank(2), 0)?;
                team.barrier()?;
                let mut token = [0_u64];
                pgo::offer(team, 2, over(&mut token, PUTS_OK), 1).map(drop)
            })?,
            _ => {
                pgo::scope(team, 1, |scope| {
                    scope.put(&other[..], Rank(2), 0)?;
                    team.barrier()
                })?;
                pgo::scope(team, 2, |scope| scope.put(&[0_u64], Rank(granted), 0))?;
            }
        }
        team.barrier()?;
    }
    Ok(())
}

// covers: PGO-EXT-01 -- the offer that the promise is about may be a blocking one
fn ready_events_meet_a_blocking_offer(team: &Team) -> Outcome {
    let mut shared = malloc::<u64>(team, 3)?;
    for is_shared in [false, true] {
        match team.rank() {
            Rank(0) => {
                let mut got = [0_u64];
                pgo::scope(team, 1, |scope| {
                    scope.put(&[5_u64], Rank(1), 0)?;
                    scope.offer(nothing(), 0)?;
                    // What is served says that the offer is open, and two more are to come.
                    scope.rput(&[6_u64], Rank(1), 1)?;
                    scope.offer(nothing(), 0)
                })?;
                pgo::scope(team, 1, |scope| {
                    scope.rget(&mut got, Rank(1), 1)?;
                    scope.offer(nothing(), 0)
                })?;
                assert_eq!(got, [6]);
                // And the same for a get that comes first.
                pgo::scope(team, 2, |scope| {
                    scope.put(&[7_u64], Rank(1), 0)?;
                    scope.offer(nothing(), 0)?;
                    scope.rget(&mut got, Rank(1), 0)?;
                    scope.offer(nothing(), 0)
                })?;
                assert_eq!(got, [7]);
            }
            _ => {
                let mut private = [0_u64; 3];
                let kinds = PUTS_OK + GETS_OK;
                for (tag, count, expected) in [(1, 3_u64, [5, 6, 0]), (2, 2, [7, 6, 0])] {
                    match is_shared {
                        true => drop(pgo::offer(team, tag, over(&mut shared, kinds), count)?),
                        false => drop(pgo::offer(team, tag, over(&mut private, kinds), count)?),
                    }
                    assert_eq!(if is_shared { &shared[..] } else { &private[..] }, expected);
                }
            }
        }
    }
    Ok(())
}

/// An event waits in the store of a rank that keeps the lock. The call that waits for it ends at its limit, and taking the event back
/// does not take as long again.
fn a_held_lock_is_waited_for_once(team: &Team) -> Outcome {
    const LIMIT: Duration = Duration::from_secs(2);
    if team.rank() == Rank(0) {
        let mut got = [0_u8];
        let begun = Instant::now();
        let outcome = with_limit(team, LIMIT, || {
            pgo::scope(team, 1, |scope| {
                scope.get(&mut got, Rank(1), 0)?;
                team.barrier()?;
                team.barrier()?;
                scope.offer(nothing(), 0)
            })
        });
        assert_eq!(kind_of(outcome), ErrorKind::Stalled);
        let took = begun.elapsed();
        assert!(LIMIT <= took && took < 2 * LIMIT, "{took:?}");
        team.barrier()?;
    } else {
        team.barrier()?;
        holding_offers(team, || team.barrier().and_then(|()| team.barrier()))??;
    }
    Ok(())
}

/// Two threads of a rank offer under one key: a blocking offer, then a request. The earlier one gets the first event.
fn a_later_request_comes_after_a_blocking_offer(team: &Team) -> Outcome {
    for round in 0..20 {
        match team.rank() {
            Rank(0) => {
                team.barrier()?;
                pgo::scope(team, 1, |scope| {
                    scope.put(&[1_u64], Rank(1), 0)?;
                    scope.put(&[2_u64], Rank(1), 0)
                })?;
                team.barrier()?;
            }
            _ => {
                let mut first = [0_u64];
                let second = pgo::scope(team, 1, |scope| {
                    thread::scope(|threads| {
                        let blocking = threads.spawn(|| scope.offer(over(&mut first, PUTS_OK), 1));
                        let request = scope.ioffer(over(vec![0_u64], PUTS_OK), 1);
                        let arrived = team.barrier();
                        let blocked = blocking.join().expect("it does not panic");
                        let mut request = request?;
                        arrived?;
                        blocked?;
                        scope.wait(&mut request)?;
                        Ok::<_, rma::Error>(request.into_inner())
                    })
                })?;
                // Which of the two was there first is not said, but each has one of them, whole.
                let mut both = [first[0], second[0]];
                both.sort_unstable();
                assert_eq!(both, [1, 2], "round {round}");
                team.barrier()?;
            }
        }
    }
    assert_eq!(kind_of(pgo::offer(team, 1, nothing(), 1)), ErrorKind::BadEvents);
    Ok(())
}
