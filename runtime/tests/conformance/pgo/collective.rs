//! The collective family: rounds, and how many events of a round come to each rank.

use std::time::{Duration, Instant};

use rma::pgo::{self, GETS_OK, PUTS_OK, nothing, over};
use rma::private::testing::pgo_counters;
use rma::{Datatype, ErrorKind, Rank, Team, typed, typed_mut};

use super::pends;
use crate::{Case, Outcome, case, kind_of};

pub(crate) const CASES: &[Case] = &[
    case!(rounds_bring_all_events, [1, 5]).one_copy().under(&[""]),
    case!(rounds_as_requests, [4]).one_copy().under(&[""]),
    case!(a_late_rank_is_waited_for, [3]).one_copy().under(&[""]),
    case!(both_forms_count_together, [2]).one_copy().under(&[""]),
    case!(events_after_a_request_are_of_the_next_round, [2]).one_copy().under(&[""]),
    case!(totals_are_column_sums, [8]).one_copy().under(&[""]),
    case!(data_need_no_counts, [2]).one_copy().under(&[""]).mapped(),
    case!(a_test_sends_nothing, [2]).one_copy().under(&[""]),
    case!(nothing_is_enough, [3]).one_copy().under(&[""]),
    case!(a_round_refuses_the_other_kind, [2]).one_copy().under(&[""]),
    case!(rounds_keep_the_rules, [3]).one_copy().under(&[""]),
    case!(uncounted_events_are_an_error, [2]).one_copy().under(&[""]),
];

/// A number that every rank can compute: how many events `from` issues to `to` in a round.
fn events(from: usize, to: usize, round: usize) -> usize {
    (from * 7 + to * 5 + round * 3) % 4
}

// covers: PGO-COLL-01, PGO-COLL-03
fn rounds_bring_all_events(team: &Team) -> Outcome {
    let rounds = if crate::is_full() { 100 } else { 25 };
    run_rounds(team, 1, rounds, |team, scope_tag, data, buffer| {
        pgo::scope(team, scope_tag, |scope| {
            for (to, at, numbers) in data {
                scope.putc(numbers, Rank(*to as u32), *at)?;
            }
            scope.offerc(over(buffer.as_mut_slice(), PUTS_OK)).map(|status| status.events())
        })
    })
}

// covers: PGO-COLL-04
fn rounds_as_requests(team: &Team) -> Outcome {
    run_rounds(team, 2, 20, |team, scope_tag, data, buffer| {
        pgo::scope(team, scope_tag, |scope| {
            for (to, at, numbers) in data {
                scope.putc(numbers, Rank(*to as u32), *at)?;
            }
            let mut request = scope.iofferc(over(std::mem::take(buffer), PUTS_OK))?;
            let status = scope.wait(&mut request)?;
            *buffer = request.into_inner();
            Ok(status.events())
        })
    })
}

/// Where a put goes, and what it brings.
type Puts = Vec<(usize, usize, Vec<u32>)>;

/// Random all-to-all exchanges whose outcome every rank can compute.
fn run_rounds(
    team: &Team,
    tag: u64,
    rounds: usize,
    exchange: impl Fn(&Team, u64, &Puts, &mut Vec<u32>) -> rma::Result<u64>,
) -> Outcome {
    const MOST: usize = 4;
    const LEN: usize = 3;
    let (me, size) = (team.rank().index(), team.size() as usize);
    let number =
        |from: usize, to: usize, round: usize, i: usize| (from * 1000 + to * 100 + round * 10 + i) as u32;
    for round in 0..rounds {
        let data: Puts = (0..size)
            .flat_map(|to| (0..events(me, to, round)).map(move |i| (to, i)))
            .map(|(to, i)| (to, (me * MOST + i) * LEN, vec![number(me, to, round, i); LEN]))
            .collect();
        let mut buffer = vec![0_u32; size * MOST * LEN];
        let served = exchange(team, tag, &data, &mut buffer)?;
        let mut expected = vec![0_u32; buffer.len()];
        let mut total = 0;
        for from in 0..size {
            for i in 0..events(from, me, round) {
                expected[(from * MOST + i) * LEN..][..LEN].fill(number(from, me, round, i));
                total += 1;
            }
        }
        assert_eq!((served, buffer), (total, expected), "round {round}");
    }
    Ok(())
}

// covers: PGO-COLL-05
fn a_late_rank_is_waited_for(team: &Team) -> Outcome {
    let number = [team.rank().0 + 1];
    let mut buffer = [0_u32; 2];
    let begun = Instant::now();
    let late = team.rank() == Rank(2);
    team.barrier()?;
    if late {
        // The others can't be through before this rank has said what it has issued.
        std::thread::sleep(Duration::from_secs(1));
    }
    pgo::scope(team, 1, |scope| {
        if team.rank() != Rank(0) {
            scope.putc(&number, Rank(0), team.rank().index() - 1)?;
        }
        scope.offerc(over(&mut buffer, PUTS_OK))
    })?;
    assert!(Duration::from_secs(1) <= begun.elapsed());
    if team.rank() == Rank(0) {
        assert_eq!(buffer, [2, 3]);
    }
    Ok(())
}

// covers: PGO-COLL-06
fn both_forms_count_together(team: &Team) -> Outcome {
    let me = team.rank();
    let other = Rank(1 - me.0);
    let (first, second) = ([1_u8], [2_u8]);
    let (one, two) = pgo::scope(team, 1, |scope| {
        scope.putc(&first, other, 0)?;
        if me == Rank(0) {
            let mut one = vec![0_u8];
            scope.offerc(over(&mut one, PUTS_OK))?;
            scope.putc(&second, other, 0)?;
            let mut request = scope.iofferc(over(vec![0_u8], PUTS_OK))?;
            scope.wait(&mut request)?;
            Ok::<_, rma::Error>((one, request.into_inner()))
        } else {
            let mut request = scope.iofferc(over(vec![0_u8], PUTS_OK))?;
            scope.putc(&second, other, 0)?;
            let mut two = vec![0_u8];
            scope.offerc(over(&mut two, PUTS_OK))?;
            scope.wait(&mut request)?;
            Ok((request.into_inner(), two))
        }
    })?;
    assert_eq!((one, two), (vec![1], vec![2]));
    Ok(())
}

// covers: PGO-COLL-07
fn events_after_a_request_are_of_the_next_round(team: &Team) -> Outcome {
    let other = Rank(1 - team.rank().0);
    let number = [5_u8];
    pgo::scope(team, 1, |scope| {
        let mut request = scope.iofferc(over(vec![0_u8], PUTS_OK))?;
        scope.putc(&number, other, 0)?;
        team.barrier()?;
        assert_eq!(scope.wait(&mut request)?.events(), 0);
        assert_eq!(request.into_inner(), [0]);
        let mut buffer = [0_u8];
        assert_eq!(scope.offerc(over(&mut buffer, PUTS_OK))?.events(), 1);
        assert_eq!(buffer, [5]);
        Ok::<(), rma::Error>(())
    })?;
    Ok(())
}

// covers: PGO-COLL-08
fn totals_are_column_sums(team: &Team) -> Outcome {
    let (me, size) = (team.rank().index(), team.size() as usize);
    let number = [1_u8];
    const ROUNDS: u64 = 10;
    let before = pgo_counters(team)[4];
    for round in 0..ROUNDS as usize {
        let mut buffer = vec![0_u8; 4];
        let status = pgo::scope(team, 1, |scope| {
            for to in 0..size {
                for i in 0..events(me, to, round) {
                    scope.putc(&number, Rank(to as u32), i)?;
                }
            }
            scope.offerc(over(&mut buffer, PUTS_OK).counting_origins())
        })?;
        let column = |from: usize| events(from, me, round) as u64;
        assert_eq!(status.events(), (0..size).map(column).sum::<u64>());
        let by_origin: Vec<(Rank, u64, u64)> = (0..size)
            .filter(|&from| column(from) != 0)
            .map(|from| (Rank(from as u32), column(from), column(from)))
            .collect();
        assert_eq!(status.by_origin(), by_origin);
    }
    // Up and down the tree: at most one message to each neighbour in it per round, of which there are log2 of the size.
    let messages = pgo_counters(team)[4] - before;
    assert!(messages <= ROUNDS * 3, "{messages} messages of one rank of 8 in {ROUNDS} rounds");
    Ok(())
}

// covers: PGO-COLL-09
fn data_need_no_counts(team: &Team) -> Outcome {
    for (tag, is_late) in [(1, false), (2, true)] {
        let numbers = [3_u16; 5];
        let mut buffer = vec![0_u16; 5];
        if team.rank() == Rank(0) {
            pgo::scope(team, tag, |scope| {
                team.barrier()?;
                let before = rma::private::testing::served(team);
                scope.putc(&numbers, Rank(1), 0)?;
                if !is_late {
                    // It has moved although this rank has not come to its offer.
                    assert_eq!(rma::private::testing::served(team), before + 1);
                }
                team.barrier()?;
                scope.offerc(nothing()).map(drop)
            })?;
        } else if is_late {
            team.barrier()?;
            team.barrier()?;
            pgo::offerc(team, tag, over(&mut buffer, PUTS_OK))?;
            assert_eq!(buffer, numbers);
        } else {
            let mut request = pgo::iofferc(team, tag, over(buffer, PUTS_OK))?;
            team.barrier()?;
            team.barrier()?;
            request.wait()?;
            assert_eq!(request.into_inner(), numbers);
        }
    }
    Ok(())
}

// covers: PGO-COLL-10
fn a_test_sends_nothing(team: &Team) -> Outcome {
    let mut request = pgo::iofferc(team, 1, over(vec![0_u8], PUTS_OK))?;
    team.barrier()?;
    // All but how often locks are taken: a test that says yes closes the offer, under the lock of the own store.
    let sent = || pgo_counters(team)[..7].to_vec();
    let before = sent();
    for _ in 0..1000 {
        // It may say no for ever.
        if request.test()?.is_some() {
            assert_eq!(sent(), before);
            return Ok(());
        }
    }
    assert_eq!(sent(), before);
    assert_eq!(request.wait()?.events(), 0);
    Ok(())
}

// covers: PGO-COLL-11
fn nothing_is_enough(team: &Team) -> Outcome {
    let me = team.rank();
    let number = [1_u32];
    // Nobody issues anything; then rank 2 offers nothing and gets nothing; then it gets something.
    assert_eq!(pgo::offerc(team, 1, over(&mut vec![0_u32; me.index()], PUTS_OK))?.events(), 0);
    for to_nobody in [true, false] {
        let mut buffer = vec![0_u32; if me == Rank(2) { 0 } else { 1 + me.index() }];
        let outcome = pgo::scope(team, 1, |scope| {
            if me == Rank(0) {
                scope.putc(&number, if to_nobody { Rank(1) } else { Rank(2) }, 0)?;
            }
            scope.offerc(over(&mut buffer, PUTS_OK))
        });
        match (to_nobody, me) {
            (false, Rank(0) | Rank(2)) => assert_eq!(kind_of(outcome), ErrorKind::OutsideOffer),
            _ => assert_eq!(outcome?.events(), u64::from(to_nobody && me == Rank(1))),
        }
    }
    Ok(())
}

// covers: PGO-COLL-12
fn a_round_refuses_the_other_kind(team: &Team) -> Outcome {
    let number = [1_u32];
    let mut buffer = [7_u32];
    let outcome = pgo::scope(team, 1, |scope| {
        if team.rank() == Rank(0) {
            scope.putc(&number, Rank(1), 0)?;
        }
        scope.offerc(over(&mut buffer, GETS_OK))
    });
    assert_eq!((kind_of(outcome), buffer), (ErrorKind::EventNotOffered, [7]));
    Ok(())
}

// covers: PGO-COLL-02, PGO-COLL-13
fn rounds_keep_the_rules(team: &Team) -> Outcome {
    let (me, size) = (team.rank(), team.size());
    let right = Rank((me.0 + 1) % size);
    // Order and layouts, short and long ones.
    for len in [4_usize, 20_000] {
        let numbers: Vec<u32> = (0..len as u32).collect();
        let reversed: Vec<u32> = numbers.iter().rev().copied().collect();
        let (mut got, mut spread) = (vec![0_u32; len], vec![0_u32; 8]);
        let every_other = Datatype::of::<u32>().vector(4, 1, 2)?;
        let mut buffer = vec![me.0; len];
        pgo::scope(team, 1, |scope| {
            scope.putc(&numbers, right, 0)?;
            scope.putc(&reversed, right, 0)?;
            scope.putc(typed(&numbers[..1], &Datatype::of::<u32>()), right, (0, &Datatype::of::<u32>()))?;
            scope.getc(&mut got, right, 0)?;
            scope.getc(typed_mut(&mut spread, &every_other), right, 0)?;
            scope.offerc(over(&mut buffer, PUTS_OK + GETS_OK))
        })?;
        let mut last = reversed.clone();
        last[0] = 0;
        assert!(buffer == last && got == last, "the later put wins, and gets come after puts");
        assert_eq!(spread, [last[0], 0, last[1], 0, last[2], 0, last[3], 0]);
    }
    // A get of this family is not served by an offer of another.
    let mut got = [0_u8];
    if me == Rank(0) {
        pgo::scope(team, 2, |scope| {
            scope.getc(&mut got, Rank(1), 0)?;
            team.barrier()?;
            team.barrier()?;
            scope.offerc(nothing()).map(drop)
        })?;
        assert_eq!(got, [8]);
    } else {
        team.barrier()?;
        if me == Rank(1) {
            pends(team, || pgo::offer(team, 2, over(&mut [8_u8], GETS_OK), 1));
        }
        team.barrier()?;
        pgo::offerc(team, 2, over(&mut [8_u8], GETS_OK))?;
    }
    Ok(())
}

fn uncounted_events_are_an_error(team: &Team) -> Outcome {
    let number = [1_u32];
    let outcome = pgo::scope(team, 1, |scope| scope.putc(&number, Rank(1), 0));
    assert_eq!(kind_of(outcome), ErrorKind::EpochStillOpen);
    // A rank that left at once would be lost to the other one's put.
    team.barrier()?;
    Ok(())
}
