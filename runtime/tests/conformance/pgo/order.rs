//! Which event an offer gets, in which order, and how many.

use std::thread;

use rma::pgo::{self, GETS_OK, PUTS_OK, over};
use rma::{ErrorKind, Rank, Team};

use super::{Family, Style, modes, pends};
use crate::{Case, Outcome, case, kind_of};

pub(crate) const CASES: &[Case] = &[
    case!(an_event_is_served_once, [2]).one_copy().under(&[""]),
    case!(only_what_fits_is_served, [3]).one_copy().under(&[""]),
    case!(one_offer_serves_many, [8]).one_copy().under(&[""]),
    case!(events_wait_for_their_offer, [2]).one_copy().under(&[""]),
    case!(the_earlier_offer_comes_first, [2]).one_copy().under(&[""]),
    case!(events_keep_their_order, [2]).one_copy().under(&[""]),
    case!(puts_and_gets_keep_their_order, [2]).one_copy().under(&[""]),
    case!(any_interleaving_of_ranks_will_do, [4]).one_copy().under(&[""]),
    case!(parts_are_one_event, [3]).one_copy().under(&[""]),
    case!(chains_belong_to_threads, [2]).one_copy().under(&[""]),
    case!(wrong_chains_are_refused, [2]).one_copy().under(&[""]),
    case!(an_offer_is_complete_when_both_are, [2]).one_copy().under(&[""]),
    case!(exactly_the_count_is_served, [2]).one_copy().under(&[""]),
    case!(all_to_all_ends, [2, 8]).one_copy().under(&[""]),
    case!(large_exchanges_do_not_block, [2]).one_copy().under(&[""]),
    case!(origins_are_chosen_and_counted, [3]).one_copy().under(&[""]),
    case!(loads_and_stores_meet_events, [2]).one_copy().under(&[""]),
];

// covers: PGO-MATCH-01
fn an_event_is_served_once(team: &Team) -> Outcome {
    for mode in modes() {
        if team.rank() == Rank(0) {
            let number = [1_u8];
            pgo::scope(team, mode.tag, |scope| mode.put(scope, &number, Rank(1), 0))?;
        } else {
            assert_eq!(mode.receive::<u8>(team, mode.tag, 1, 1)?, [1]);
            pends(team, || mode.receive::<u8>(team, mode.tag, 1, 1));
        }
        team.barrier()?;
    }
    Ok(())
}

// covers: PGO-MATCH-02
fn only_what_fits_is_served(team: &Team) -> Outcome {
    let duplicate = team.duplicate()?;
    for mode in modes() {
        let number = [6_u8];
        match team.rank() {
            Rank(0) => pgo::scope(team, mode.tag, |scope| {
                mode.put(scope, &number, Rank(1), 0)?;
                team.barrier()?;
                team.barrier()
            })?,
            Rank(1) => {
                team.barrier()?;
                pends(team, || mode.receive::<u8>(team, mode.tag + 1, 1, 1));
                pends(team, || mode.receive::<u8>(&duplicate, mode.tag, 1, 1));
                pends(team, || mode.serve(team, mode.tag, &mut vec![0_u8], GETS_OK, 1));
                assert_eq!(mode.receive::<u8>(team, mode.tag, 1, 1)?, [6], "{mode:?}");
                team.barrier()?;
            }
            _ => {
                team.barrier()?;
                pends(team, || mode.receive::<u8>(team, mode.tag, 1, 1));
                team.barrier()?;
            }
        }
    }
    Ok(())
}

// covers: PGO-MATCH-03
fn one_offer_serves_many(team: &Team) -> Outcome {
    const EACH: usize = 10;
    let (me, others) = (team.rank().0 as usize, team.size() as usize - 1);
    for mode in modes() {
        if me == 0 {
            let got = mode.receive::<u32>(team, mode.tag, others * EACH, (others * EACH) as u64)?;
            assert_eq!(got, (0..(others * EACH) as u32).collect::<Vec<_>>(), "{mode:?}");
        } else {
            let first = (me - 1) * EACH;
            let numbers: Vec<[u32; 1]> = (first..first + EACH).map(|i| [i as u32]).collect();
            pgo::scope(team, mode.tag, |scope| {
                numbers.iter().try_for_each(|number| mode.put(scope, number, Rank(0), number[0] as usize))
            })?;
        }
    }
    Ok(())
}

// covers: PGO-MATCH-04
fn events_wait_for_their_offer(team: &Team) -> Outcome {
    // Small ones, whose data wait with them, and more than wait with their data.
    for mode in modes() {
        for (count, len) in [(1, 10), (1000, 1), (20, 50_000)] {
            let numbers = vec![3_u8; len];
            if team.rank() == Rank(0) {
                pgo::scope(team, mode.tag, |scope| {
                    (0..count).try_for_each(|i| mode.put(scope, &numbers, Rank(1), i * len))?;
                    team.barrier()
                })?;
            } else {
                team.barrier()?;
                let got = mode.receive::<u8>(team, mode.tag, count * len, count as u64)?;
                assert!(got.iter().all(|&byte| byte == 3), "{mode:?}");
            }
        }
    }
    Ok(())
}

// covers: PGO-MATCH-05
fn the_earlier_offer_comes_first(team: &Team) -> Outcome {
    for mode in modes().filter(|mode| mode.style == Style::Request) {
        let numbers = [[1_u8], [2]];
        if team.rank() == Rank(0) {
            team.barrier()?;
            pgo::scope(team, mode.tag, |scope| {
                numbers.iter().try_for_each(|number| mode.put(scope, number, Rank(1), 0))
            })?;
        } else {
            let open = || match mode.family {
                Family::Plain => pgo::ioffer(team, mode.tag, over(vec![0_u8], PUTS_OK), 1),
                #[cfg(feature = "progressive")]
                Family::Progressive => pgo::iofferp(team, mode.tag, over(vec![0_u8], PUTS_OK), 1),
            };
            let (mut x, mut y) = (open()?, open()?);
            team.barrier()?;
            y.wait()?;
            x.wait()?;
            assert_eq!((x.into_inner(), y.into_inner()), (vec![1], vec![2]));
        }
    }
    Ok(())
}

// covers: PGO-ORD-01
fn events_keep_their_order(team: &Team) -> Outcome {
    const ROUNDS: usize = 1000;
    const LARGE: usize = 2000;
    for mode in modes() {
        // Small and large in turns; the first number of each is its number.
        let rounds = if mode.style == Style::Blocking { ROUNDS } else { ROUNDS / 10 };
        let len = |round: usize| if round.is_multiple_of(3) { LARGE } else { 1 };
        if team.rank() == Rank(0) {
            let events: Vec<Vec<u32>> = (0..rounds).map(|round| vec![round as u32; len(round)]).collect();
            pgo::scope(team, mode.tag, |scope| {
                events.iter().try_for_each(|event| mode.put(scope, event, Rank(1), 0))
            })?;
        } else {
            let mut buffer = vec![0_u32; LARGE];
            for round in 0..rounds {
                mode.serve(team, mode.tag, &mut buffer, PUTS_OK, 1)?;
                assert!(
                    buffer[..len(round)].iter().all(|&number| number == round as u32),
                    "{mode:?}: {round}"
                );
            }
        }
    }
    Ok(())
}

// covers: PGO-ORD-02
fn puts_and_gets_keep_their_order(team: &Team) -> Outcome {
    for mode in modes() {
        if team.rank() == Rank(0) {
            let (x, mut back) = ([5_u32], [0_u32]);
            pgo::scope(team, mode.tag, |scope| {
                mode.put(scope, &x, Rank(1), 0)?;
                mode.get(scope, &mut back, Rank(1), 0)?;
                team.barrier()
            })?;
            assert_eq!(back, [5], "{mode:?}");
        } else {
            let mut buffer = vec![0_u32];
            team.barrier()?;
            // The put comes before the get, and is not allowed.
            let error = pends(team, || mode.serve(team, mode.tag, &mut buffer, GETS_OK, 1));
            assert!(error.to_string().contains("EventNotOffered"), "{error}");
            mode.serve(team, mode.tag, &mut buffer, PUTS_OK + GETS_OK, 1)?;
            mode.serve(team, mode.tag, &mut buffer, PUTS_OK + GETS_OK, 1)?;
        }
    }
    Ok(())
}

// covers: PGO-ORD-03
fn any_interleaving_of_ranks_will_do(team: &Team) -> Outcome {
    const EACH: u64 = 20;
    for mode in modes() {
        let others = u64::from(team.size()) - 1;
        if team.rank() == Rank(0) {
            let mut last = vec![0_u64; team.size() as usize];
            for _ in 0..others * EACH {
                let got = mode.receive::<u64>(team, mode.tag, 2, 1)?;
                // Each rank's numbers ascend, whatever comes between.
                assert_eq!(got[1], last[got[0] as usize] + 1, "{mode:?}");
                last[got[0] as usize] = got[1];
            }
        } else {
            let pairs: Vec<[u64; 2]> = (1..=EACH).map(|i| [team.rank().0.into(), i]).collect();
            pgo::scope(team, mode.tag, |scope| {
                pairs.iter().try_for_each(|pair| mode.put(scope, pair, Rank(0), 0))
            })?;
        }
    }
    Ok(())
}

// covers: PGO-COMB-01, PGO-COMB-03, PGO-COMB-05
fn parts_are_one_event(team: &Team) -> Outcome {
    for mode in modes() {
        let numbers = [1_u8, 2, 3];
        match team.rank() {
            Rank(0) => pgo::scope(team, mode.tag, |scope| {
                mode.put_more(scope, &numbers[..1], Rank(1), 0)?;
                mode.put_more(scope, &numbers[..1], Rank(1), 1)?;
                mode.put(scope, &numbers[..1], Rank(2), 0)?;
                mode.put(scope, &numbers[..1], Rank(1), 2)?;
                for start in [3, 8] {
                    (0..4).try_for_each(|i| mode.put_more(scope, &numbers[1..2], Rank(1), start + i))?;
                    mode.put(scope, &numbers[2..], Rank(1), start + 4)?;
                }
                team.barrier()
            })?,
            Rank(1) => {
                team.barrier()?;
                let mut buffer = vec![0_u8; 13];
                mode.serve(team, mode.tag, &mut buffer, PUTS_OK, 1)?;
                assert_eq!(buffer, [1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "{mode:?}");
                assert_eq!(mode.serve(team, mode.tag, &mut buffer, PUTS_OK, 2)?.bytes(), 10);
                assert_eq!(buffer, [1, 1, 1, 2, 2, 2, 2, 3, 2, 2, 2, 2, 3], "{mode:?}");
                pends(team, || mode.serve(team, mode.tag, &mut buffer, PUTS_OK, 1));
            }
            _ => {
                team.barrier()?;
                assert_eq!(mode.receive::<u8>(team, mode.tag, 1, 1)?, [1]);
            }
        }
        team.barrier()?;
    }
    Ok(())
}

// covers: PGO-COMB-04
fn chains_belong_to_threads(team: &Team) -> Outcome {
    for mode in modes() {
        let numbers = [[1_u8], [2_u8]];
        if team.rank() == Rank(0) {
            pgo::scope(team, mode.tag, |scope| {
                // Each thread puts its number to both places as one event; the turns interleave the parts.
                let turns = std::sync::Barrier::new(2);
                thread::scope(|threads| {
                    for number in &numbers {
                        let turns = &turns;
                        threads.spawn(move || {
                            mode.put_more(scope, number, Rank(1), 0).expect("a part");
                            turns.wait();
                            mode.put(scope, number, Rank(1), 1).expect("the last part");
                        });
                    }
                });
                Ok::<(), rma::Error>(())
            })?;
        } else {
            let first = mode.receive::<u8>(team, mode.tag, 2, 1)?;
            let second = mode.receive::<u8>(team, mode.tag, 2, 1)?;
            assert!(
                first[0] == first[1] && second[0] == second[1] && first != second,
                "{first:?}, {second:?}"
            );
        }
    }
    Ok(())
}

// covers: PGO-COMB-06, PGO-COMB-07
fn wrong_chains_are_refused(team: &Team) -> Outcome {
    for mode in modes() {
        let (number, mut got) = ([1_u32], [0_u32]);
        let (me, other) = (team.rank(), Rank(1 - team.rank().0));
        let outcome = pgo::scope(team, mode.tag, |scope| {
            mode.put_more(scope, &number, other, 0)?;
            assert_eq!(kind_of(mode.get(scope, &mut got, other, 0)), ErrorKind::CombineMismatch);
            let error = mode.flush(scope).expect_err("the chain is open");
            assert_eq!((error.kind(), error.context().target), (ErrorKind::DanglingCombine, Some(other)));
            Ok::<(), rma::Error>(())
        });
        // Leaving with it is no better.
        assert_eq!(kind_of(outcome), ErrorKind::DanglingCombine);
        // A mixed chain swaps, in its order, and needs an offer of both.
        let (mine, mut theirs) = ([me.0 + 1], [99_u32]);
        let mut memory = vec![me.0 + 10];
        if me == Rank(0) {
            pgo::scope(team, mode.tag + 1, |scope| {
                match mode.family {
                    Family::Plain => scope.combine_mixed().get(&mut theirs, other, 0)?,
                    #[cfg(feature = "progressive")]
                    Family::Progressive => scope.combine_mixed().getp(&mut theirs, other, 0)?,
                }
                mode.put(scope, &mine, other, 0)?;
                team.barrier()
            })?;
            assert_eq!(theirs, [11], "{mode:?}");
        } else {
            team.barrier()?;
            pends(team, || mode.serve(team, mode.tag + 1, &mut memory, PUTS_OK, 1));
            pends(team, || mode.serve(team, mode.tag + 1, &mut memory, GETS_OK, 1));
            mode.serve(team, mode.tag + 1, &mut memory, PUTS_OK + GETS_OK, 1)?;
            assert_eq!(memory, [1], "{mode:?}");
        }
        team.barrier()?;
    }
    Ok(())
}

// covers: PGO-OFFER-03
fn an_offer_is_complete_when_both_are(team: &Team) -> Outcome {
    for mode in modes() {
        let number = [1_u8];
        if team.rank() == Rank(0) {
            let tag = mode.tag;
            // Neither own events nor a count.
            pgo::scope(team, tag, |scope| mode.flush(scope))?;
            team.barrier()?;
            // Own events served, count not reached.
            pends(team, || mode.receive::<u8>(team, tag + 1, 1, 1));
            // Own events not served, count reached, and count 0.
            let outcome = pgo::scope(team, tag + 2, |scope| {
                mode.put(scope, &number, Rank(1), 0)?;
                team.barrier()?;
                pends(team, || mode.flush(scope));
                let mut buffer = vec![0_u8];
                pends(team, || mode.serve_in(team, scope, &mut buffer, PUTS_OK, 1));
                team.barrier()?;
                // Both.
                let mut buffer = vec![0_u8];
                mode.serve_in(team, scope, &mut buffer, PUTS_OK, 1)?;
                Ok::<Vec<u8>, rma::Error>(buffer)
            })?;
            assert_eq!(outcome, [1]);
        } else {
            team.barrier()?;
            team.barrier()?;
            pgo::scope(team, mode.tag + 2, |scope| {
                // The first is served by an offer that stalls afterwards, as its caller's event is not.
                mode.put(scope, &number, Rank(0), 0)?;
                mode.put(scope, &number, Rank(0), 0)?;
                team.barrier()?;
                let mut buffer = vec![0_u8];
                mode.serve_in(team, scope, &mut buffer, PUTS_OK, 1).map(drop)
            })?;
        }
        team.barrier()?;
    }
    Ok(())
}

// covers: PGO-OFFER-04
fn exactly_the_count_is_served(team: &Team) -> Outcome {
    for mode in modes() {
        let number = [1_u8];
        if team.rank() == Rank(0) {
            pgo::scope(team, mode.tag, |scope| {
                (0..3).try_for_each(|i| mode.put(scope, &number, Rank(1), i))?;
                team.barrier()
            })?;
        } else {
            team.barrier()?;
            let mut buffer = vec![0_u8; 3];
            assert_eq!(mode.serve(team, mode.tag, &mut buffer, PUTS_OK, 2)?.events(), 2);
            assert_eq!(buffer, [1, 1, 0], "{mode:?}");
            mode.serve(team, mode.tag, &mut buffer, PUTS_OK, 1)?;
            assert_eq!(buffer, [1, 1, 1], "{mode:?}");
        }
    }
    Ok(())
}

// covers: PGO-OFFER-05
fn all_to_all_ends(team: &Team) -> Outcome {
    let (me, size) = (team.rank().0 as usize, team.size() as usize);
    let rounds = if crate::is_full() { 1000 } else { 40 };
    const LARGEST: usize = 3000;
    for mode in modes() {
        for round in 0..rounds {
            // What everybody sends to everybody is known to all.
            let len = |from: usize, to: usize| (from * 31 + to * 17 + round * 13) % LARGEST;
            let data: Vec<Vec<u16>> = (0..size).map(|to| vec![(me * 100 + to) as u16; len(me, to)]).collect();
            let mut buffer = vec![0_u16; size * LARGEST];
            // A rank can be ahead of another one by one round.
            pgo::scope(team, mode.tag + round as u64 % 2, |scope| {
                for (to, data) in data.iter().enumerate() {
                    mode.put(scope, data, Rank(to as u32), me * LARGEST)?;
                }
                mode.serve_in(team, scope, &mut buffer, PUTS_OK, size as u64)
            })?;
            for from in 0..size {
                let got = &buffer[from * LARGEST..][..LARGEST];
                let (data, rest) = got.split_at(len(from, me));
                assert!(
                    data.iter().all(|&number| number == (from * 100 + me) as u16),
                    "{mode:?}, from {from}"
                );
                assert!(rest.iter().all(|&number| number == 0), "{mode:?}, from {from}");
            }
        }
    }
    Ok(())
}

// covers: PGO-OFFER-06
fn large_exchanges_do_not_block(team: &Team) -> Outcome {
    let len = if crate::is_full() { 256 << 20 } else { 8 << 20 };
    let other = Rank(1 - team.rank().0);
    for mode in modes() {
        let mine = vec![team.rank().0 as u8 + 1; len];
        let mut theirs = vec![0_u8; len];
        pgo::scope(team, mode.tag, |scope| {
            mode.put(scope, &mine, other, 0)?;
            mode.serve_in(team, scope, &mut theirs, PUTS_OK, 1)
        })?;
        assert!(theirs.iter().all(|&byte| byte == other.0 as u8 + 1), "{mode:?}");
    }
    Ok(())
}

// covers: PGO-OFFER-10
fn origins_are_chosen_and_counted(team: &Team) -> Outcome {
    const TAG: u64 = 1;
    let number = [7_u64];
    match team.rank() {
        Rank(0) => {
            team.barrier()?;
            let mut buffer = [0_u64; 4];
            let only = pgo::offer(team, TAG, over(&mut buffer, PUTS_OK).from(Rank(2)).counting_origins(), 3)?;
            assert_eq!((only.by_origin(), buffer), (&[(Rank(2), 3, 24)][..], [0, 7, 7, 7]));
            let rest = pgo::offer(team, TAG, over(&mut buffer, PUTS_OK).counting_origins(), 2)?;
            assert_eq!(rest.by_origin(), [(Rank(1), 1, 8), (Rank(2), 1, 8)]);
            assert_eq!((rest.events(), rest.bytes(), buffer), (2, 16, [7; 4]));
        }
        Rank(1) => pgo::scope(team, TAG, |scope| {
            scope.put(&number, Rank(0), 0)?;
            team.barrier()
        })?,
        _ => pgo::scope(team, TAG, |scope| {
            [1, 2, 3, 1].into_iter().try_for_each(|at| scope.put(&number, Rank(0), at))?;
            team.barrier()
        })?,
    }
    Ok(())
}

// covers: PGO-OFFER-12
fn loads_and_stores_meet_events(team: &Team) -> Outcome {
    let rounds = if crate::is_full() { 100_000 } else { 3000 };
    for mode in modes() {
        let rounds = if mode.style == Style::Blocking { rounds } else { rounds / 10 };
        let mut memory = vec![0_u64; 8];
        for round in 0..rounds {
            if team.rank() == Rank(0) {
                let (ours, mut theirs) = ([round; 4], [0_u64; 4]);
                pgo::scope(team, mode.tag, |scope| {
                    mode.put(scope, &ours, Rank(1), 0)?;
                    mode.get(scope, &mut theirs, Rank(1), 4)?;
                    mode.flush(scope)
                })?;
                assert_eq!(theirs, [round + 1; 4], "{mode:?}");
            } else {
                memory[4..].fill(round + 1);
                mode.serve(team, mode.tag, &mut memory, PUTS_OK + GETS_OK, 2)?;
                assert_eq!(memory[..4], [round; 4], "{mode:?}");
            }
        }
    }
    Ok(())
}
