//! What programs do wrong, or at the edges of what is allowed: scopes that fail, nothing of everything, displacements beyond all
//! memory, tags and teams that are alike, chains with a fault, and threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use rma::pgo::{self, COUNT_ANY, GETS_OK, PUTS_OK, Scope, malloc, nothing, over};
use rma::{Datatype, ErrorKind, Rank, Strided, Team, typed};

use super::{modes, pends};
use crate::{Case, Outcome, case, kind_of};

pub(crate) const CASES: &[Case] = &[
    case!(a_scope_that_fails_leaves_its_round_whole, [3]).one_copy().under(&[""]),
    case!(nothing_of_everything, [2]).one_copy().under(&[""]),
    case!(displacements_beyond_all_memory, [2]).one_copy().under(&[""]),
    case!(tags_and_teams_that_are_alike, [4]).one_copy().under(&[""]),
    case!(a_chain_with_a_fault_moves_nothing, [2]).one_copy().under(&[""]),
    case!(threads_of_a_rank_share_a_scope, [3]).one_copy().under(&[""]),
    case!(events_to_self_of_all_families, [1]).one_copy().under(&[""]),
];

/// A put that is counted has to come, or nobody's round ends.
fn a_scope_that_fails_leaves_its_round_whole(team: &Team) -> Outcome {
    let me = team.rank();
    let (short, long) = (vec![7_u32; 4], vec![8_u32; 10_000]);
    let failing = |fails: &dyn Fn() -> rma::Result<()>| {
        pgo::scope(team, 1, |scope| {
            scope.putc(&short, Rank(1), 0)?;
            scope.putc(&long, Rank(2), 0)?;
            scope.putc(&short, Rank(0), 0)?;
            fails()
        })
    };
    for round in 0..4 {
        if me == Rank(0) && round != 3 {
            match round {
                0 => {
                    let error =
                        || Err(pgo::offer(team, 9, over(&mut [0_u8], PUTS_OK), COUNT_ANY).unwrap_err());
                    assert_eq!(kind_of(failing(&error)), ErrorKind::CountAnyNotAllowed);
                }
                1 => assert!(catch_unwind(AssertUnwindSafe(|| failing(&|| panic!("on purpose")))).is_err()),
                // Nothing is wrong but that no offerc completes them.
                _ => assert_eq!(kind_of(failing(&|| Ok(()))), ErrorKind::EpochStillOpen),
            }
        }
        if round == 1 {
            // The targets may be in the round before it fails, or come later.
            team.barrier()?;
        }
        let numbers = [me.0, round];
        let mut buffer = vec![0_u32; 10_002];
        let right = Rank((me.0 + 1) % 3);
        pgo::scope(team, 1, |scope| {
            scope.putc(&numbers, right, 10_000)?;
            scope.offerc(over(&mut buffer, PUTS_OK))
        })?;
        // What a failed scope has put may have arrived, or not; what was put well has.
        assert_eq!(buffer[10_000..], [(me.0 + 2) % 3, round]);
        team.barrier()?;
    }
    Ok(())
}

fn nothing_of_everything(team: &Team) -> Outcome {
    let other = Rank(1 - team.rank().0);
    for mode in modes() {
        let (none, mut got) = ([0_u64; 0], [0_u64; 0]);
        let mut buffer: Vec<u64> = Vec::new();
        pgo::scope(team, mode.tag, |scope| {
            mode.put(scope, &none, other, 0)?;
            mode.get(scope, &mut got, other, 0)?;
            mode.put(scope, &none, other, 0..0)?;
            mode.put(scope, &none, other, Strided { start: 0, count: 0, block: 3, stride: 7 })?;
            mode.put_more(scope, &none, other, 0)?;
            mode.put(scope, &none, other, 0)?;
            mode.serve_in(team, scope, &mut buffer, PUTS_OK + GETS_OK, 5)
        })?;
        // At the end of what is offered there is room for nothing; behind it there is not.
        let mut buffer = vec![3_u64; 2];
        let outcome = pgo::scope(team, mode.tag + 1, |scope| {
            mode.put(scope, &none, other, 2)?;
            mode.put(scope, &none, other, 3)?;
            mode.serve_in(team, scope, &mut buffer, PUTS_OK, 2)
        });
        assert_eq!(kind_of(outcome), ErrorKind::OutsideOffer, "{mode:?}");
        assert_eq!(buffer, [3, 3]);
    }
    let status = pgo::scope(team, 5, |scope| {
        scope.putc(&[0_u64; 0], other, 0)?;
        scope.offerc(over(&mut [0_u64; 0], PUTS_OK))
    })?;
    assert_eq!((status.events(), status.bytes()), (1, 0));
    let memory = malloc::<u32>(team, 0)?;
    let mut request = pgo::ioffer(team, 6, over(memory, PUTS_OK), 0)?;
    assert_eq!(request.wait()?.events(), 0);
    assert_eq!(request.into_inner().len(), 0);
    pgo::scope(team, 6, |_| Ok::<(), rma::Error>(()))?;
    assert_eq!(pgo::offerc(team, 6, nothing())?.events(), 0);
    team.barrier()?;
    Ok(())
}

fn displacements_beyond_all_memory(team: &Team) -> Outcome {
    let other = Rank(1 - team.rank().0);
    let numbers = [1_u32, 2];
    let far = [
        2,
        usize::MAX,
        usize::MAX / 2,
        usize::MAX / 4,
        usize::MAX / 8,
        usize::MAX / 4 + 1,
        usize::MAX / 8 + 1,
    ];
    for mode in modes() {
        for (at, number) in far.into_iter().zip(0..) {
            for unit in [1, 4, 8, 1 << 20, usize::MAX] {
                let mut buffer = [9_u32; 3];
                let tag = mode.tag + number;
                let outcome = pgo::scope(team, tag, |scope| {
                    mode.put(scope, &numbers, other, at)?;
                    // Both styles of serving know the unit by the same words; one is enough here.
                    let over = over(&mut buffer, PUTS_OK).unit(unit);
                    match mode.family {
                        super::Family::Plain => scope.offer(over, 1),
                        #[cfg(feature = "progressive")]
                        super::Family::Progressive => scope.offerp(over, 1),
                    }
                });
                match (at, unit) {
                    (2, 1) => assert_eq!(outcome.map(|status| status.events())?, 1),
                    _ => {
                        assert_eq!(kind_of(outcome), ErrorKind::OutsideOffer, "{mode:?}: {at} of {unit}");
                        assert_eq!(buffer, [9; 3]);
                    }
                }
            }
        }
        team.barrier()?;
    }
    // What no address can name is refused where it is issued.
    let mut buffer = [9_u32; 3];
    let wide = Datatype::of::<u32>().vector(2, 1, usize::MAX / 64)?;
    pgo::scope(team, 77, |scope| {
        let stride = Strided { start: 0, count: 2, block: 1, stride: usize::MAX };
        assert_eq!(kind_of(scope.put(&numbers, other, stride)), ErrorKind::OutOfBounds);
        let reversed = std::ops::Range { start: 5, end: 3 };
        assert_eq!(kind_of(scope.put(&numbers, other, reversed)), ErrorKind::OutOfBounds);
        let outcome = scope.put(&numbers, other, usize::MAX - 1..usize::MAX);
        assert_eq!(kind_of(outcome), ErrorKind::LengthMismatch);
        assert_eq!(kind_of(scope.put(&numbers, Rank(u32::MAX), 0)), ErrorKind::RankOutOfRange);
        scope.put(typed(&numbers, &Datatype::of::<u32>().contiguous(2)?), other, (usize::MAX, &wide))?;
        let outcome = scope.offer(over(&mut buffer, PUTS_OK), 1);
        assert_eq!(kind_of(outcome), ErrorKind::OutsideOffer);
        Ok::<(), rma::Error>(())
    })?;
    assert_eq!(buffer, [9; 3]);
    Ok(())
}

fn tags_and_teams_that_are_alike(team: &Team) -> Outcome {
    let me = team.rank().0;
    let half = team.split(Some(me % 2), 0)?.expect("everybody is in a half");
    let again = team.split(Some(0), 0)?.expect("everybody is in it");
    let teams = [team, &half, &again];
    for tag in [0, u64::MAX, 1 << 63] {
        // All at once under one tag: each team serves its own, the last issued first.
        let numbers: Vec<[u32; 2]> = (0..3).map(|which| [me, which]).collect();
        let mut requests = Vec::new();
        for team in teams {
            requests.push(pgo::ioffer(team, tag, over(vec![99_u32; 2], PUTS_OK), 1)?);
        }
        for (which, by) in teams.into_iter().enumerate().rev() {
            let right = Rank((by.rank().0 + 1) % by.size());
            pgo::scope(by, tag, |scope| {
                scope.put(&numbers[which], right, 0)?;
                scope.wait(&mut requests[which])
            })?;
        }
        let left_in_half = Rank((half.rank().0 + 1) % 2);
        let lefts = [(me + 3) % 4, left_in_half.0 * 2 + me % 2, (me + 3) % 4];
        for (which, (request, left)) in requests.into_iter().zip(lefts).enumerate() {
            assert_eq!(request.into_inner(), [left, which as u32], "tag {tag}");
        }
        // Rounds of the halves go on side by side, and beside those of all.
        let mut sums = [0_u32; 4];
        for by in [&half, team, &half] {
            pgo::scope(by, tag, |scope| {
                for rank in by.ranks() {
                    scope.putc(std::slice::from_ref(&numbers[0][0]), rank, by.rank().index())?;
                }
                scope.offerc(over(&mut sums, PUTS_OK))
            })?;
        }
        assert_eq!(sums, [me % 2, me % 2 + 2, 2, 3]);
    }
    Ok(())
}

fn a_chain_with_a_fault_moves_nothing(team: &Team) -> Outcome {
    for mode in modes() {
        let (first, second) = ([1_u32, 2], vec![3_u32; 3000]);
        if team.rank() == Rank(0) {
            let outcome = pgo::scope(team, mode.tag, |scope| {
                mode.put_more(scope, &first, Rank(1), 0)?;
                mode.put_more(scope, &second, Rank(1), 0)?;
                mode.put(scope, &first, Rank(1), 3)?;
                mode.put(scope, &first[..1], Rank(1), 3)?;
                mode.flush(scope)
            });
            assert_eq!(kind_of(outcome), ErrorKind::OutsideOffer, "{mode:?}");
        } else {
            let mut buffer = vec![9_u32; 4];
            let outcome = mode.serve(team, mode.tag, &mut buffer, PUTS_OK, 2);
            let error = outcome.expect_err("one event was wrong");
            assert_eq!(error.kind(), ErrorKind::OutsideOffer, "{mode:?}");
            assert_eq!(buffer, [9, 9, 9, 1], "{mode:?}");
            // It is over: nothing of the chain is left.
            let mut buffer = vec![9_u32; 4];
            pends(team, || mode.serve(team, mode.tag, &mut buffer, PUTS_OK, 1));
        }
        team.barrier()?;
    }
    Ok(())
}

fn threads_of_a_rank_share_a_scope(team: &Team) -> Outcome {
    const THREADS: usize = 4;
    const EACH: usize = 25;
    let (me, size) = (team.rank().0, team.size());
    let right = Rank((me + 1) % size);
    let left = (me + size - 1) % size;
    for mode in modes() {
        // What waits with its event, and what does not.
        for len in [1, 1500] {
            let value =
                |rank: u32, thread: usize, round: usize| rank * 10_000 + thread as u32 * 100 + round as u32;
            let data: Vec<Vec<Vec<u32>>> = (0..THREADS)
                .map(|thread| (0..EACH).map(|round| vec![value(me, thread, round); len]).collect())
                .collect();
            let mut buffer = vec![0_u32; THREADS * EACH * len];
            let tag = mode.tag + len as u64;
            pgo::scope(team, tag, |scope| {
                thread::scope(|threads| {
                    for (thread, data) in data.iter().enumerate() {
                        threads.spawn(move || {
                            for (round, numbers) in data.iter().enumerate() {
                                let at = (thread * EACH + round) * len;
                                mode.put(scope, numbers, right, at).expect("it is issued");
                            }
                        });
                    }
                });
                mode.serve_in(team, scope, &mut buffer, PUTS_OK, (THREADS * EACH) as u64)
            })?;
            for (at, part) in buffer.chunks(len).enumerate() {
                assert!(part.iter().all(|&found| found == value(left, at / EACH, at % EACH)), "{mode:?}");
            }
        }
    }
    // Threads with scopes of their own, each of which waits in its offers.
    let mine: Vec<[u32; 2]> = (0..EACH as u32).map(|round| [me, round]).collect();
    pgo::scope(team, 50, |one| {
        pgo::scope(team, 51, |other| {
            thread::scope(|threads| {
                threads.spawn(|| exchanges(one, &mine, right, left));
                threads.spawn(|| exchanges(other, &mine, right, left));
            });
            Ok::<(), rma::Error>(())
        })
    })?;
    Ok(())
}

/// Puts to the right and takes what the left one puts, which comes in its order.
fn exchanges<'s>(scope: &Scope<'s, '_>, mine: &'s [[u32; 2]], right: Rank, left: u32) {
    for (numbers, round) in mine.iter().zip(0..) {
        let mut halo = [0_u32; 2];
        scope.put(numbers, right, 0).expect("it is issued");
        scope.offer(over(&mut halo, PUTS_OK), 1).expect("it is served");
        assert_eq!(halo, [left, round]);
    }
}

fn events_to_self_of_all_families(team: &Team) -> Outcome {
    let own = Rank(0);
    for len in [1, 5000] {
        for mode in modes() {
            let (numbers, mut back) = (vec![5_u64; len], vec![0_u64; len]);
            let mut buffer = vec![0_u64; 2 * len];
            pgo::scope(team, mode.tag, |scope| {
                mode.put(scope, &numbers, own, len)?;
                mode.get(scope, &mut back, own, len)?;
                mode.serve_in(team, scope, &mut buffer, PUTS_OK + GETS_OK, 2)
            })?;
            assert_eq!(back, numbers, "{mode:?}");
            assert_eq!(buffer[len..], numbers, "{mode:?}");
        }
        let (numbers, mut back) = (vec![5_u64; len], vec![0_u64; len]);
        let mut buffer = vec![6_u64; 2 * len];
        let status = pgo::scope(team, 1, |scope| {
            scope.putc(&numbers, own, len)?;
            scope.getc(&mut back, own, 0)?;
            scope.offerc(over(&mut buffer, PUTS_OK + GETS_OK))
        })?;
        assert_eq!((status.events(), status.bytes()), (2, 16 * len as u64));
        assert_eq!(back, vec![6; len]);
        assert_eq!(buffer[len..], numbers);
    }
    Ok(())
}
