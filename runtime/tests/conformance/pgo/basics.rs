//! What an event and an offer are: where data land, which offers serve which events, and what is refused.

use rma::pgo::{self, COUNT_ANY, Events, GETS_OK, NONE_OK, PUTS_OK, nothing, over};
use rma::{Datatype, ErrorKind, Rank, Strided, Team, strided, strided_mut, typed, typed_mut};

use super::{Family, modes, pends};
use crate::{Case, Outcome, case, kind_of};

pub(crate) const CASES: &[Case] = &[
    case!(no_window_is_needed, [2]).one_copy().under(&[""]),
    case!(a_barrier_serves_nothing, [2]).one_copy().under(&[""]),
    case!(tags_tell_exchanges_apart, [2]).one_copy().under(&[""]),
    case!(masks_say_what_is_served, [2]).one_copy().under(&[""]),
    case!(families_never_match, [2]).one_copy().under(&[""]),
    case!(every_argument_counts, [3]).one_copy().under(&[""]),
    case!(layouts_land_byte_by_byte, [2]).one_copy().under(&[""]),
    case!(random_layouts_match_a_byte_model, [2]).one_copy().under(&[""]),
    case!(gets_read_the_offer_that_serves_them, [2]).one_copy().under(&[""]),
    case!(arguments_of_offers_are_checked, [2]).one_copy().under(&[""]),
    case!(faults_reach_both_ends, [2]).one_copy().under(&[""]),
    case!(offers_and_windows_take_turns, [2]).one_copy().under(&[""]),
];

// covers: PGO-GEN-01
fn no_window_is_needed(team: &Team) -> Outcome {
    for mode in modes() {
        let numbers: Vec<i64> = (0..8).map(|i| -i).collect();
        match team.rank() {
            Rank(0) => pgo::scope(team, mode.tag, |scope| mode.put(scope, &numbers, Rank(1), 0))?,
            _ => assert_eq!(mode.receive::<i64>(team, mode.tag, 8, 1)?, numbers, "{mode:?}"),
        }
    }
    Ok(())
}

// covers: PGO-GEN-02
fn a_barrier_serves_nothing(team: &Team) -> Outcome {
    for mode in modes() {
        let numbers = [7_u16; 4];
        match team.rank() {
            Rank(0) => pgo::scope(team, mode.tag, |scope| {
                mode.put(scope, &numbers, Rank(1), 1)?;
                team.barrier()?;
                team.barrier()
            })?,
            _ => {
                let mut buffer = vec![0_u16; 6];
                team.barrier()?;
                assert_eq!(buffer, [0; 6]);
                team.barrier()?;
                mode.serve(team, mode.tag, &mut buffer, PUTS_OK, 1)?;
                assert_eq!(buffer, [0, 7, 7, 7, 7, 0], "{mode:?}");
            }
        }
        team.barrier()?;
    }
    Ok(())
}

// covers: PGO-GEN-03
fn tags_tell_exchanges_apart(team: &Team) -> Outcome {
    for mode in modes() {
        let (one, two) = (mode.tag + 1, mode.tag + 2);
        match team.rank() {
            Rank(0) => {
                let (first, second) = ([1_u8], [2_u8]);
                pgo::scope(team, one, |outer| {
                    mode.put(outer, &first, Rank(1), 0)?;
                    pgo::scope(team, two, |inner| mode.put(inner, &second, Rank(1), 0))
                })?;
            }
            _ => {
                // The first has waited for longer.
                assert_eq!(mode.receive::<u8>(team, two, 1, 1)?, [2], "{mode:?}");
                assert_eq!(mode.receive::<u8>(team, one, 1, 1)?, [1], "{mode:?}");
            }
        }
    }
    Ok(())
}

// covers: PGO-GEN-06
fn masks_say_what_is_served(team: &Team) -> Outcome {
    let puts_and_gets = PUTS_OK + GETS_OK;
    for mode in modes() {
        for (at, (mask, event)) in [PUTS_OK, GETS_OK, puts_and_gets]
            .into_iter()
            .flat_map(|mask| [PUTS_OK, GETS_OK].map(|event| (mask, event)))
            .enumerate()
        {
            let tag = mode.tag + at as u64;
            let allowed = mask & event != NONE_OK;
            if team.rank() == Rank(0) {
                let (ours, mut theirs) = ([5_u32], [0_u32]);
                pgo::scope(team, tag, |scope| match event {
                    PUTS_OK => mode.put(scope, &ours, Rank(1), 0).and_then(|()| team.barrier()),
                    _ => mode.get(scope, &mut theirs, Rank(1), 0).and_then(|()| team.barrier()),
                })?;
                assert_eq!(theirs[0], if event == GETS_OK { 9 } else { 0 });
            } else {
                team.barrier()?;
                let mut buffer = vec![9_u32];
                if !allowed {
                    let error = pends(team, || mode.serve(team, tag, &mut buffer, mask, 1));
                    assert!(error.to_string().contains("EventNotOffered"), "{error}");
                    assert_eq!(buffer, [9], "{mode:?}");
                }
                mode.serve(team, tag, &mut buffer, mask | event, 1)?;
                assert_eq!(buffer[0], if event == PUTS_OK { 5 } else { 9 }, "{mode:?}, {mask}");
            }
            team.barrier()?;
        }
    }
    Ok(())
}

// covers: PGO-GEN-08, PGO-COLL-15
fn families_never_match(team: &Team) -> Outcome {
    const TAG: u64 = 7;
    let (plain, collective) = ([1_u8], [3_u8]);
    if team.rank() == Rank(0) {
        pgo::scope(team, TAG, |scope| {
            scope.put(&plain, Rank(1), 0)?;
            scope.putc(&collective, Rank(1), 1)?;
            team.barrier()?;
            team.barrier()?;
            scope.offerc(nothing()).map(drop)
        })?;
    } else {
        team.barrier()?;
        let mut buffer = vec![0_u8; 2];
        #[cfg(feature = "progressive")]
        {
            let error = pends(team, || pgo::offerp(team, TAG, over(&mut buffer, PUTS_OK), 1));
            assert!(error.to_string().contains("an event of the non-progressive family waits"), "{error}");
        }
        // Of the two that wait under this tag one is of this family.
        pgo::offer(team, TAG, over(&mut buffer, PUTS_OK), 1)?;
        assert_eq!(buffer, [1, 0]);
        let error = pends(team, || pgo::offer(team, TAG, over(&mut buffer, PUTS_OK), 1));
        assert!(error.to_string().contains("an event of the collective family waits"), "{error}");
        team.barrier()?;
        assert_eq!(pgo::offerc(team, TAG, over(&mut buffer, PUTS_OK))?.events(), 1);
        assert_eq!(buffer, [1, 3]);
    }
    #[cfg(feature = "progressive")]
    {
        let number = [4_u8];
        match team.rank() {
            Rank(0) => pgo::scope(team, TAG, |scope| {
                scope.putp(&number, Rank(1), 0)?;
                team.barrier()
            })?,
            _ => {
                team.barrier()?;
                let mut buffer = [0_u8];
                let error = pends(team, || pgo::offer(team, TAG, over(&mut buffer, PUTS_OK), 1));
                assert!(error.to_string().contains("an event of the progressive family waits"), "{error}");
                pgo::offerp(team, TAG, over(&mut buffer, PUTS_OK), 1)?;
                assert_eq!(buffer, [4]);
            }
        }
    }
    Ok(())
}

// covers: PGO-PUT-01, PGO-GET-01, PGO-GEN-04, PGO-OFFER-01
fn every_argument_counts(team: &Team) -> Outcome {
    let me = team.rank();
    // Team: a duplicate has offers of its own. Tag, target, displacement, lengths and layouts of both sides.
    let other = team.duplicate()?;
    for mode in modes() {
        let numbers: Vec<u16> = (10..20).collect();
        let column = Datatype::of::<u16>().vector(3, 1, 2)?;
        let tag = mode.tag;
        if me == Rank(0) {
            pgo::scope(team, tag, |scope| {
                mode.put(scope, &numbers[..1], Rank(1), 0)?;
                mode.put(scope, &numbers[..1], Rank(1), 4)?;
                mode.put(scope, &numbers[2..5], Rank(2), 1)?;
                mode.put(scope, typed(&numbers, &column), Rank(2), (5, &column))?;
                mode.put(
                    scope,
                    strided(&numbers, Strided { start: 1, count: 2, block: 1, stride: 3 }),
                    Rank(2),
                    11..13,
                )
            })?;
            pgo::scope(team, tag + 1, |scope| mode.put(scope, &numbers[5..6], Rank(1), 0))?;
            pgo::scope(&other, tag, |scope| mode.put(scope, &numbers[6..7], Rank(1), 0))?;
            let (mut far, mut near, mut spread) = ([0_u16; 2], [0_u16; 6], [0_u16; 5]);
            pgo::scope(team, tag + 2, |scope| {
                mode.get(scope, &mut far, Rank(2), 3)?;
                mode.get(scope, typed_mut(&mut near, &column), Rank(1), (1, &column))?;
                let apart = Strided { start: 0, count: 2, block: 1, stride: 4 };
                mode.get(scope, strided_mut(&mut spread, apart), Rank(1), 4..6)
            })?;
            assert_eq!(
                (far, near, spread),
                ([3, 4], [101, 0, 103, 0, 105, 0], [104, 0, 0, 0, 105]),
                "{mode:?}"
            );
        } else if me == Rank(1) {
            let mut buffer = vec![0_u16; 5];
            mode.serve(team, tag, &mut buffer, PUTS_OK, 2)?;
            assert_eq!(buffer, [10, 0, 0, 0, 10], "{mode:?}");
            assert_eq!(mode.receive::<u16>(team, tag + 1, 1, 1)?, [15]);
            assert_eq!(mode.receive::<u16>(&other, tag, 1, 1)?, [16]);
            mode.serve(team, tag + 2, &mut (100..108).collect::<Vec<u16>>(), GETS_OK, 2)?;
        } else {
            let mut buffer = vec![0_u16; 13];
            mode.serve(team, tag, &mut buffer, PUTS_OK, 3)?;
            assert_eq!(buffer, [0, 12, 13, 14, 0, 10, 0, 12, 0, 14, 0, 11, 14], "{mode:?}");
            mode.serve(team, tag + 2, &mut (0..5).collect::<Vec<u16>>(), GETS_OK, 1)?;
        }
    }
    // Unit, size and mask of an offer.
    if me == Rank(0) {
        let number = [1_u8];
        pgo::scope(team, 1, |scope| scope.put(&number, Rank(1), 2))?;
    } else if me == Rank(1) {
        let mut buffer = [0_u8; 7];
        pgo::offer(team, 1, over(&mut buffer, PUTS_OK).unit(3), 1)?;
        assert_eq!(buffer, [0, 0, 0, 0, 0, 0, 1]);
    }
    Ok(())
}

// covers: PGO-PUT-04, PGO-COMB-02
fn layouts_land_byte_by_byte(team: &Team) -> Outcome {
    const CANARY: u8 = 0xa5;
    for mode in modes() {
        let vector = Datatype::of::<u32>().vector(3, 1, 2)?;
        let values = [0x0101_0101_u32, 0x0202_0202, 0x0303_0303];
        let mut buffer = vec![CANARY; 16 * 6];
        if team.rank() == Rank(0) {
            let (halves, bytes) = ([0x0404_u16; 2], [5_u8]);
            pgo::scope(team, mode.tag, |scope| {
                mode.put(scope, &values, Rank(1), (3, &vector))?;
                mode.put_more(scope, &values[..1], Rank(1), 0)?;
                mode.put_more(scope, &halves, Rank(1), 1)?;
                mode.put(scope, &bytes, Rank(1), 2)
            })?;
            continue;
        }
        pgo::scope(team, mode.tag, |scope| match mode.family {
            Family::Plain => scope.offer(over(&mut buffer, PUTS_OK).unit(16), 2),
            #[cfg(feature = "progressive")]
            Family::Progressive => scope.offerp(over(&mut buffer, PUTS_OK).unit(16), 2),
        })?;
        let mut expected = vec![CANARY; 16 * 6];
        for (i, byte) in [(48, 1), (56, 2), (64, 3), (0, 1)] {
            expected[i..i + 4].fill(byte);
        }
        expected[16..20].fill(4);
        expected[32] = 5;
        assert_eq!(buffer, expected, "{mode:?}");
    }
    Ok(())
}

/// A generator of numbers that both ranks have.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

// covers: PGO-SERV-01
fn random_layouts_match_a_byte_model(team: &Team) -> Outcome {
    const LEN: usize = 512;
    let mut numbers = Numbers(11);
    for round in 0..60 {
        for mode in modes() {
            // The same for both ranks: a vector of one of three types on either side.
            let of = [Datatype::of::<u8>(), Datatype::of::<u16>(), Datatype::of::<u64>()];
            let which = numbers.below(3);
            let (size, element) = ([1, 2, 8][which], &of[which]);
            let (count, block) = (1 + numbers.below(4), 1 + numbers.below(3));
            let (here, there) = (block + numbers.below(3), block + numbers.below(3));
            let (origin, target) =
                (element.vector(count, block, here)?, element.vector(count, block, there)?);
            let (unit, displacement) = (1 + numbers.below(9), numbers.below(9));
            let is_put = numbers.below(2) == 0;
            let private: Vec<u8> = (0..LEN).map(|_| numbers.below(256) as u8).collect();
            let offered: Vec<u8> = (0..LEN).map(|_| numbers.below(256) as u8).collect();
            // The model: byte by byte.
            let (mut private_after, mut offered_after) = (private.clone(), offered.clone());
            for item in 0..count * block {
                let at = |stride: usize| (item / block * stride + item % block) * size;
                for byte in 0..size {
                    let (i, j) = (at(here) + byte, unit * displacement + at(there) + byte);
                    match is_put {
                        true => offered_after[j] = private[i],
                        false => private_after[i] = offered[j],
                    }
                }
            }
            if team.rank() == Rank(0) {
                let mut buffer = private.clone();
                pgo::scope(team, mode.tag, |scope| match is_put {
                    true => mode.put(scope, typed(&private, &origin), Rank(1), (displacement, &target)),
                    false => {
                        mode.get(scope, typed_mut(&mut buffer, &origin), Rank(1), (displacement, &target))
                    }
                })?;
                assert_eq!(buffer, private_after, "{mode:?}, round {round}");
            } else {
                let mut buffer = offered;
                let events = if is_put { PUTS_OK } else { GETS_OK };
                pgo::scope(team, mode.tag, |scope| match mode.family {
                    Family::Plain => scope.offer(over(&mut buffer, events).unit(unit), 1),
                    #[cfg(feature = "progressive")]
                    Family::Progressive => scope.offerp(over(&mut buffer, events).unit(unit), 1),
                })?;
                assert_eq!(buffer, offered_after, "{mode:?}, round {round}");
            }
        }
    }
    Ok(())
}

// covers: PGO-GET-02, PGO-GET-04
fn gets_read_the_offer_that_serves_them(team: &Team) -> Outcome {
    // Short ones, whose room waits with them, and long ones, which their originator has to fetch.
    for len in [4, 100_000] {
        for mode in modes() {
            if team.rank() == Rank(0) {
                let (mut first, mut second) = (vec![0_u64; len], vec![0_u64; len]);
                pgo::scope(team, mode.tag, |scope| {
                    mode.get(scope, &mut first, Rank(1), 0)?;
                    mode.get(scope, &mut second, Rank(1), 0)?;
                    mode.flush(scope)
                })?;
                assert!(first == vec![1; len] && second == vec![2; len], "{mode:?}");
            } else {
                mode.serve(team, mode.tag, &mut vec![1_u64; len], GETS_OK, 1)?;
                mode.serve(team, mode.tag, &mut vec![2_u64; len], GETS_OK, 1)?;
            }
        }
    }
    Ok(())
}

// covers: PGO-OFFER-02, PGO-OFFER-09, PGO-PROG-15
fn arguments_of_offers_are_checked(team: &Team) -> Outcome {
    for mode in modes() {
        let mut buffer = vec![0_u8; 4];
        let refused = kind_of(mode.serve(team, mode.tag, &mut buffer, NONE_OK, 1));
        assert_eq!(refused, ErrorKind::BadEvents);
        assert_eq!(mode.serve(team, mode.tag, &mut vec![0_u8; 4], NONE_OK, 0)?.events(), 0);
    }
    let mut buffer = [0_u8; 4];
    assert_eq!(
        kind_of(pgo::offer(team, 1, over(&mut buffer, PUTS_OK), COUNT_ANY)),
        ErrorKind::CountAnyNotAllowed
    );
    #[cfg(feature = "progressive")]
    assert_eq!(
        kind_of(pgo::offerp(team, 1, over(&mut buffer, PUTS_OK), COUNT_ANY)),
        ErrorKind::CountAnyNotAllowed
    );
    assert_eq!(kind_of(pgo::offer(team, 1, over(&mut buffer, PUTS_OK).unit(0), 1)), ErrorKind::BadDispUnit);
    assert_eq!(
        kind_of(pgo::offer(team, 1, over(&mut buffer, PUTS_OK).from(Rank(9)), 1)),
        ErrorKind::RankOutOfRange
    );
    let numbers = [1_u8, 2, 3];
    pgo::scope(team, 1, |scope| {
        assert_eq!(kind_of(scope.put(&numbers, Rank(2), 0)), ErrorKind::RankOutOfRange);
        assert_eq!(kind_of(scope.put(&numbers, Rank(0), 0..2)), ErrorKind::LengthMismatch);
        let twice = Strided { start: 0, count: 3, block: 1, stride: 0 };
        assert_eq!(kind_of(scope.put(&numbers, Rank(0), twice)), ErrorKind::OverlappingLayout);
        let _: Events = PUTS_OK;
        Ok::<(), rma::Error>(())
    })?;
    Ok(())
}

// covers: PGO-SERV-02, PGO-SERV-03
fn faults_reach_both_ends(team: &Team) -> Outcome {
    let wrong = Datatype::of::<f32>().contiguous(2)?;
    for mode in modes() {
        let numbers = [1_u32, 2];
        // One that reaches outside, between two that don't; then one whose types differ.
        if team.rank() == Rank(0) {
            let outcome = pgo::scope(team, mode.tag, |scope| {
                mode.put(scope, &numbers[..1], Rank(1), 0)?;
                mode.put(scope, &numbers, Rank(1), 3)?;
                mode.put(scope, &numbers[1..], Rank(1), 1)?;
                assert_eq!(kind_of(mode.flush(scope)), ErrorKind::OutsideOffer);
                // It is told once.
                mode.flush(scope)?;
                let error = mode.put(scope, &numbers, Rank(1), (0, &wrong));
                assert_eq!(kind_of(error), ErrorKind::DatatypeMismatch);
                mode.flush(scope)
            });
            assert_eq!(kind_of(outcome), ErrorKind::DatatypeMismatch);
        } else {
            let mut buffer = vec![9_u32; 4];
            let error = mode.serve(team, mode.tag, &mut buffer, PUTS_OK, 3).expect_err("one reaches outside");
            assert_eq!(error.kind(), ErrorKind::OutsideOffer, "{error}");
            assert_eq!(buffer, [1, 2, 9, 9], "{mode:?}");
            let mut buffer = vec![9_u32; 4];
            let error = kind_of(mode.serve(team, mode.tag, &mut buffer, PUTS_OK, 1));
            assert_eq!((error, buffer.as_slice()), (ErrorKind::DatatypeMismatch, &[9_u32; 4][..]));
        }
    }
    Ok(())
}

// covers: PGO-GEN-10 -- at different times; at one time a buffer has one owner, which `ui` holds
fn offers_and_windows_take_turns(team: &Team) -> Outcome {
    let other = Rank(1 - team.rank().0);
    let mut window = rma::Window::create(team, vec![team.rank().0; 4])?;
    window.fence(|epoch| epoch.put(other, 0, [7; 2]))?;
    let mut memory: Vec<u32> = window.into_inner()?;
    assert_eq!(memory[..2], [7, 7]);
    let numbers = [8, 8];
    pgo::scope(team, 1, |scope| {
        scope.put(&numbers, other, 1)?;
        scope.offer(over(&mut memory, PUTS_OK), 1)
    })?;
    assert_eq!(memory, [7, 8, 8, team.rank().0]);
    let mut window = rma::Window::create(team, memory)?;
    window.fence(|epoch| epoch.put(other, 3, [9]))?;
    assert_eq!(window.load(3)?, 9);
    Ok(())
}
