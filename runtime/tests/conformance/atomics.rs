//! Accumulates: every operation on every type, and atomicity per element.

use std::time::Instant;

use rma::{
    And, Atomicity, Basic, ErrorKind, LockKind, Max, Min, NoOp, Operation, Or, Plain, Prod, Rank, Replace,
    Sum, Team, Window, WindowOptions, Xor,
};

use crate::{Case, Outcome, case, kind_of};

pub(crate) const CASES: &[Case] = &[
    case!(every_operation_on_every_type, [1, 3]),
    case!(concurrent_sums_are_exact, [2, 8]).many_rounds(),
    case!(long_sums_and_single_ones_are_exact, [2, 4]),
    case!(each_element_is_one_or_the_other, [2]),
    case!(integer_results_do_not_depend_on_the_order, [4]),
    case!(tickets_are_distinct, [4]),
    case!(one_compare_swap_wins, [4]),
    case!(words_are_never_torn, [3]),
    case!(elements_at_odd_places_are_atomic, [1, 4]),
    case!(odd_elements_are_replaced_whole, [1, 4]),
    case!(puts_and_gets_take_no_guard, [2]),
    case!(the_way_of_guarding_changes_no_result, [2, 8]),
];

/// The values of three ranks combine, in whatever order, to the fold over them.
fn check<T: Basic, O: Operation<T>>(team: &Team, start: T, operation: O, values: [T; 3]) -> rma::Result<()> {
    let mut window = Window::<T>::allocate(team, 2)?;
    window.local_mut()?.fill(start);
    let mine = values[team.rank().index() % 3];
    window.fence(|epoch| epoch.accumulate(Rank(0), 1, operation, mine))?;
    if team.rank() == Rank(0) {
        let values = &values[..team.size() as usize];
        let expected = values.iter().fold(start, |all, &value| operation.combine(all, value));
        // REPLACE leaves the value of any rank.
        let found = window.load(1)?;
        match O::CODE {
            rma::OpCode::Replace => assert!(values.contains(&found)),
            code => assert_eq!(found, expected, "{code:?} on {}", T::TYPE),
        }
        assert_eq!(window.load(0)?, start);
    }
    Ok(())
}

// covers: RMA-COMM-04 -- bitwise on floats does not compile, see element.rs and tests/ui
fn every_operation_on_every_type(team: &Team) -> Outcome {
    macro_rules! integers {
        ($($type:ty),*) => {$(
            check::<$type, _>(team, 100, Sum, [1, 20, 50])?;
            check::<$type, _>(team, 3, Prod, [2, 5, 7])?;
            check::<$type, _>(team, 10, Min, [3, 20, 5])?;
            check::<$type, _>(team, 10, Max, [3, 20, 5])?;
            check::<$type, _>(team, 0b111_0111, And, [0b110_0110, 0b111_0011, 0b101_0111])?;
            check::<$type, _>(team, 0b1, Or, [0b10, 0b100, 0b1000])?;
            check::<$type, _>(team, 0b1, Xor, [0b11, 0b110, 0b1100])?;
            check::<$type, _>(team, 1, Replace, [2, 3, 4])?;
        )*};
    }
    macro_rules! floats {
        ($($type:ty),*) => {$(
            check::<$type, _>(team, 1.5, Sum, [0.25, 20.0, -50.0])?;
            check::<$type, _>(team, 1.5, Prod, [2.0, -4.0, 0.5])?;
            check::<$type, _>(team, 1.5, Min, [0.25, -20.0, 50.0])?;
            check::<$type, _>(team, 1.5, Max, [0.25, -20.0, 50.0])?;
            check::<$type, _>(team, 1.5, Replace, [0.25, -20.0, 50.0])?;
        )*};
    }
    integers!(i8, i16, i32, i64, u8, u16, u32, u64);
    floats!(f32, f64);
    Ok(())
}

// covers: RMA-ATOM-01
fn concurrent_sums_are_exact(team: &Team) -> Outcome {
    sums_are_exact(team, Atomicity::Native, 100_000)
}

fn sums_are_exact(team: &Team, atomicity: Atomicity, each: u64) -> Outcome {
    let words = WindowOptions::new().atomicity(atomicity).allocate::<i64>(team, 1)?;
    let bytes = WindowOptions::new().atomicity(atomicity).allocate::<u8>(team, 8)?;
    let floats = WindowOptions::new().atomicity(atomicity).allocate::<f64>(team, 1)?;
    words.lock(Rank(0), LockKind::Shared, |words| {
        bytes.lock(Rank(0), LockKind::Shared, |bytes| {
            floats.lock(Rank(0), LockKind::Shared, |floats| {
                for _ in 0..each {
                    words.accumulate(Rank(0), 0, Sum, 1)?;
                    bytes.accumulate(Rank(0), 3, Sum, 1)?;
                    floats.accumulate(Rank(0), 0, Sum, 1.0)?;
                }
                Ok(())
            })
        })
    })?;
    team.barrier()?;
    if team.rank() == Rank(0) {
        let all = each * u64::from(team.size());
        assert_eq!(*words.local()?, [all as i64]);
        assert_eq!(*bytes.local()?, [0, 0, 0, all as u8, 0, 0, 0, 0]);
        assert_eq!(*floats.local()?, [all as f64]);
    }
    Ok(())
}

/// Many elements at once and one by one, of the owner and of others, which may be done in different ways.
// covers: RMA-ATOM-01
fn long_sums_and_single_ones_are_exact(team: &Team) -> Outcome {
    const ROUNDS: usize = 200;
    const ELEMENTS: usize = 1000;
    let integers = Window::<i64>::allocate(team, ELEMENTS)?;
    let floats = Window::<f64>::allocate(team, ELEMENTS)?;
    let (ones, halves) = (vec![1; ELEMENTS], vec![0.5; ELEMENTS]);
    integers.lock(Rank(0), LockKind::Shared, |integers| {
        floats.lock(Rank(0), LockKind::Shared, |floats| {
            for at in 0..ROUNDS {
                integers.accumulate(Rank(0), 0, Sum, &ones[..])?;
                floats.accumulate(Rank(0), 0, Sum, &halves[..])?;
                integers.accumulate(Rank(0), at, Sum, 1)?;
                floats.flush(floats.fetch_op(Rank(0), at, Sum, 0.5)?)?;
                // One more, by an exchange that is repeated until nobody has come between.
                let mut expected = integers.flush(integers.fetch_op(Rank(0), at, NoOp, 0)?)?;
                loop {
                    let swapped = integers.compare_swap(Rank(0), at, expected, expected + 1)?;
                    match integers.flush(swapped)? {
                        found if found == expected => break,
                        found => expected = found,
                    }
                }
            }
            Ok(())
        })
    })?;
    team.barrier()?;
    if team.rank() == Rank(0) {
        let ranks = i64::from(team.size());
        let singly = |at: usize| if at < ROUNDS { 1 } else { 0 };
        let sums: Vec<i64> = (0..ELEMENTS).map(|at| ranks * (ROUNDS as i64 + 2 * singly(at))).collect();
        assert_eq!(*integers.local()?, sums);
        let sums = (0..ELEMENTS).map(|at| (ranks * (ROUNDS as i64 + singly(at))) as f64 * 0.5);
        assert_eq!(*floats.local()?, sums.collect::<Vec<f64>>());
    }
    Ok(())
}

// covers: RMA-ATOM-02
fn each_element_is_one_or_the_other(team: &Team) -> Outcome {
    let window = Window::<u32>::allocate(team, 2)?;
    // Every byte tells the rank, so that an element of two ranks' bytes is seen.
    let of_rank = |rank: Rank| 0x1111_1111 * (rank.0 + 1);
    let mine = [of_rank(team.rank()); 2];
    window.lock(Rank(0), LockKind::Shared, |epoch| {
        for _ in 0..10_000 {
            epoch.accumulate(Rank(0), 0, Replace, mine)?;
            // The two elements may come from different ranks.
            for value in epoch.flush(epoch.get_vec(Rank(0), 0..2))? {
                assert!(team.ranks().any(|rank| value == of_rank(rank)), "{value:#x}");
            }
        }
        Ok(())
    })?;
    Ok(())
}

// covers: RMA-ATOM-03
fn integer_results_do_not_depend_on_the_order(team: &Team) -> Outcome {
    let mut integers = Window::<i64>::allocate(team, 1)?;
    let mut floats = Window::<f64>::allocate(team, 2)?;
    let mut first = None;
    for _ in 0..100 {
        integers.local_mut()?.fill(0);
        floats.local_mut()?.fill(0.0);
        let me = team.rank().0 + 1;
        integers.fence(|epoch| {
            for at in 1..=50 {
                epoch.accumulate(Rank(0), 0, Sum, i64::from(me).pow(7).wrapping_mul(i64::MAX / at))?;
            }
            Ok(())
        })?;
        floats.fence(|epoch| {
            for at in 1..=50 {
                epoch.accumulate(Rank(0), 0, Sum, f64::from(me * at) * 0.5)?;
                epoch.accumulate(Rank(0), 1, Sum, 1.0 / f64::from(me * at))?;
            }
            Ok(())
        })?;
        if team.rank() == Rank(0) {
            let found = (integers.load(0)?, floats.load(0)?);
            assert_eq!(*first.get_or_insert(found), found);
            // Sums of values that are not exact may differ by reordering, by no more than its error bound.
            let sum: f64 = (1..=4).flat_map(|me| (1..=50).map(move |at| 1.0 / f64::from(me * at))).sum();
            let terms = 200.0;
            assert!((floats.load(1)? - sum).abs() <= terms * f64::EPSILON * sum);
        }
    }
    Ok(())
}

fn tickets_are_distinct(team: &Team) -> Outcome {
    const EACH: usize = 1000;
    let window = Window::<u32>::allocate(team, 1)?;
    let mut mine = Vec::new();
    for _ in 0..EACH {
        mine.push(window.lock(Rank(0), LockKind::Shared, |epoch| epoch.fetch_op(Rank(0), 0, Sum, 1))?);
    }
    assert!(mine.is_sorted());
    if let Some(all) = team.gather(Rank(0), &mine)? {
        let mut all: Vec<u32> = all.into_iter().collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..EACH as u32 * team.size()));
    }
    Ok(())
}

fn one_compare_swap_wins(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 2)?;
    let me = u64::from(team.rank().0) + 1;
    for round in 0..500 {
        window.local_mut()?.fill(0);
        let before = window.fence(|epoch| epoch.compare_swap(Rank(0), 1, 0, me + round * 100))?;
        let won = u64::from(before == 0);
        window.fence(|epoch| epoch.accumulate(Rank(0), 0, Sum, won))?;
        if team.rank() == Rank(0) {
            assert_eq!(window.load(0)?, 1);
        }
    }
    // Floats compare bit by bit.
    let mut floats = Window::<f64>::allocate(team, 1)?;
    floats.fence(|epoch| match team.rank() {
        Rank(0) => epoch.compare_swap(Rank(1), 0, -0.0, 1.0).map(|_| ()),
        _ => Ok(()),
    })?;
    assert_eq!(floats.load(0)?.to_bits(), 0);
    Ok(())
}

// covers: RMA-READ-04
fn words_are_never_torn(team: &Team) -> Outcome {
    const TRIES: usize = 1_000_000;
    // More than what short copies are made of.
    const LONG: usize = 2500;
    let mut window = Window::<u64>::allocate(team, 40 + LONG)?;
    let done = crate::flags::<u64>(team, 1)?;
    let words = [0x1111_1111_1111_1111 * u64::from(team.rank().0); 33];
    let many = vec![words[0]; LONG];
    window.fence(|epoch| {
        if team.rank() == Rank(0) {
            for at in 0..TRIES {
                // The first is put alone, the next in one put of an odd number of words, the last in a long one.
                let word = epoch.load([0, 3 + at % 33, 40 + at % LONG][at % 3])?;
                assert!([0, 0x1111_1111_1111_1111, 0x2222_2222_2222_2222].contains(&word), "{word:x}");
            }
            for rank in [Rank(1), Rank(2)] {
                done.lock(rank, LockKind::Shared, |flag| flag.put(rank, 0, 1))?;
            }
            return Ok(());
        }
        while done.load(0)? == 0 {
            for _ in 0..100 {
                epoch.put(Rank(0), 0, words[0])?;
                epoch.put(Rank(0), 3, &words)?;
            }
            epoch.put(Rank(0), 40, &many)?;
        }
        Ok(())
    })?;
    Ok(())
}

// A displacement that is no multiple of the element is as good as any, only slower.
fn elements_at_odd_places_are_atomic(team: &Team) -> Outcome {
    const EACH: u64 = 2_000;
    let words = WindowOptions::new().disp_unit(3).allocate::<i64>(team, 3)?;
    let floats = WindowOptions::new().disp_unit(1).allocate::<f32>(team, 2)?;
    let (tickets, swapped) = words.lock(Rank(0), LockKind::Shared, |words| {
        floats.lock(Rank(0), LockKind::Shared, |floats| {
            let (mut tickets, mut swapped) = (Vec::new(), 0_u64);
            for _ in 0..EACH {
                tickets.push(words.flush(words.fetch_op(Rank(0), 1, Sum, 1)?)?);
                floats.accumulate(Rank(0), 3, Sum, [1.0])?;
                let now = words.flush(words.get_accumulate(Rank(0), 4, NoOp, [0])?)?[0];
                swapped += u64::from(words.flush(words.compare_swap(Rank(0), 4, now, now + 1)?)? == now);
            }
            Ok((Plain(tickets), swapped))
        })
    })?;
    let totals = &mut [swapped];
    team.allreduce(totals, Sum)?;
    let all = EACH * u64::from(team.size());
    assert!(tickets.is_sorted_by(|a, b| a < b) && tickets.last().is_some_and(|&last| last < all as i64));
    // No locks are left, so that the values can be got at their places.
    team.barrier()?;
    let found = words.lock(Rank(0), LockKind::Shared, |epoch| {
        Ok((epoch.get_value(Rank(0), 1)?, epoch.get_value(Rank(0), 4)?))
    })?;
    assert_eq!(found, (all as i64, totals[0] as i64));
    assert_eq!(floats.lock(Rank(0), LockKind::Shared, |epoch| epoch.get_value(Rank(0), 3))?, all as f32);
    Ok(())
}

/// Every rank replaces one element by tokens of its own; each token is given back exactly once.
fn exchange_tokens<const N: usize>(team: &Team, atomicity: Atomicity) -> rma::Result<()> {
    const EACH: usize = 60;
    let window = WindowOptions::new().atomicity(atomicity).allocate::<[u8; N]>(team, 3)?;
    let mut seen = [0_u64; 256];
    window.lock(Rank(0), LockKind::Shared, |epoch| {
        for i in 0..EACH {
            // Ranks have different bytes, so that a torn element is seen.
            let token = 1 + ((team.rank().index() * EACH + i) % 240) as u8;
            let old = epoch.flush(epoch.fetch_op(Rank(0), 1, Replace, [token; N])?)?;
            assert!(old.iter().all(|&byte| byte == old[0]), "torn: {old:?}");
            seen[usize::from(old[0])] += 1;
            let now = epoch.flush(epoch.get_accumulate(Rank(0), 0..3, NoOp, [[0; N]; 3])?)?;
            assert!(now[1].iter().all(|&byte| byte == now[1][0]), "torn: {now:?}");
            assert_eq!((now[0], now[2]), ([0; N], [0; N]), "neighbours");
        }
        Ok(())
    })?;
    team.barrier()?;
    if team.rank() == Rank(0) {
        seen[usize::from(window.local()?[1][0])] += 1;
    }
    team.allreduce(&mut seen, Sum)?;
    let mut given = [0_u64; 256];
    given[0] = 1; // What was there at the beginning.
    for token in 0..team.size() as usize * EACH {
        given[1 + token % 240] += 1;
    }
    assert_eq!(seen, given);
    Ok(())
}

fn odd_elements_are_replaced_whole(team: &Team) -> Outcome {
    for atomicity in [Atomicity::Native, Atomicity::Stripes, Atomicity::Window] {
        exchange_tokens::<3>(team, atomicity)?;
        exchange_tokens::<12>(team, atomicity)?;
        exchange_tokens::<24>(team, atomicity)?;
    }
    Ok(())
}

// covers: RMA-ATOM-05
fn puts_and_gets_take_no_guard(team: &Team) -> Outcome {
    let flags = crate::flags(team, 2)?;
    let (put_and_got, accumulated) = (0, 1);
    let raise = |flag| flags.lock(Rank(0), LockKind::Shared, |epoch| epoch.put(Rank(0), flag, 1));
    let words = WindowOptions::new().atomicity(Atomicity::Window).allocate::<u64>(team, 4)?;
    let odd = Window::<[u8; 12]>::allocate(team, 4)?;
    words.lock(Rank(0), LockKind::Shared, |words_there| {
        odd.lock(Rank(0), LockKind::Shared, |odd_there| match team.rank() {
            Rank(0) => {
                team.barrier()?;
                rma::private::testing::holding_guard(&words, Rank(0), 1, || {
                    rma::private::testing::holding_guard(&odd, Rank(0), 1, || {
                        team.barrier()?;
                        crate::until(|| flags.load(put_and_got).unwrap() == 1);
                        crate::grace();
                        assert_eq!(flags.load(accumulated)?, 0, "the accumulates wait");
                        Ok::<(), rma::Error>(())
                    })
                })??
            }
            _ => {
                team.barrier()?;
                team.barrier()?;
                // While somebody has the guards.
                words_there.put(Rank(0), 1, 7)?;
                odd_there.put(Rank(0), 1, [8; 12])?;
                let got = (
                    words_there.flush(words_there.get_value(Rank(0), 1)?)?,
                    odd_there.flush(odd_there.get_value(Rank(0), 1)?)?,
                );
                assert_eq!(got, (7, [8; 12]));
                raise(put_and_got)?;
                words_there.accumulate(Rank(0), 1, Sum, [10])?;
                odd_there.accumulate(Rank(0), 1, Replace, [[9; 12]])?;
                raise(accumulated)
            }
        })
    })?;
    team.barrier()?;
    if team.rank() == Rank(0) {
        assert_eq!((words.local()?[1], odd.local()?[1], flags.load(accumulated)?), (17, [9; 12], 1));
    }
    Ok(())
}

// covers: RMA-ATOM-06
fn the_way_of_guarding_changes_no_result(team: &Team) -> Outcome {
    // Under a guard that eight ranks on few cores want at once, an accumulate may take the time of a sleep.
    let each = if std::env::var_os("RMA_FULL").is_some() { 100_000 } else { 10_000 };
    for atomicity in [Atomicity::Window, Atomicity::Stripes, Atomicity::Native] {
        let begun = Instant::now();
        sums_are_exact(team, atomicity, each)?;
        if team.rank() == Rank(0) {
            let rate = 3.0 * (each * u64::from(team.size())) as f64 / begun.elapsed().as_secs_f64();
            println!("{atomicity:?}: {rate:.0} accumulates/s by {} ranks", team.size());
        }
    }
    let mine = if team.rank() == Rank(0) { Atomicity::Window } else { Atomicity::Native };
    let both = WindowOptions::new().atomicity(mine).allocate::<u8>(team, 1);
    assert_eq!(kind_of(both.map(drop)), ErrorKind::CollectiveMismatch);
    Ok(())
}
