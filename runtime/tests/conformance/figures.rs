//! The figures of the requirements and the examples that they refer to only: who does what after whom, and index maps. Never
//! compares with anything but what the program itself has stored, or a serial loop.

use rma::{ErrorKind, Hints, Info, LockKind, Max, Origins, Rank, Replace, Sum, Team, Window};

use crate::pscw::Flags;
use crate::{Case, Outcome, case, flags, is_full, kind_of, until};

pub(crate) const CASES: &[Case] = &[
    case!(index_maps_gather_and_scatter, [1, 2, 3, 4]),
    case!(a_neighbour_on_both_sides_counts_once, [1, 2]),
    case!(an_exclusive_put_is_the_same_under_every_info, [4]),
    case!(owners_and_producers_take_turns_by_get_and_accumulate, [3]).many_rounds(),
    case!(posts_come_before_starts_and_completes_before_waits, [3]).many_rounds(),
    case!(readers_overlap_each_other_and_never_the_writer, [4]).many_rounds(),
    case!(everybody_exchanges_with_everybody, [6]).many_rounds(),
    case!(gets_and_loads_never_disturb_each_other, [4]),
    case!(a_call_on_one_window_completes_nothing_on_another, [2]).over_its_own_memory(),
];

// covers: EX-E102-01
fn index_maps_gather_and_scatter(team: &Team) -> Outcome {
    const N: usize = 1000;
    let ranks = team.size() as usize;
    // Blocks of equal length; the last one may be shorter.
    let each = N.div_ceil(ranks);
    let map = |j: usize| (37 * j + 11) % N;
    let mine = (team.rank().index() * each).min(N)..((team.rank().index() + 1) * each).min(N);
    let place = |i: usize| (Rank((i / each) as u32), i % each);
    let mut a = Window::<i64>::allocate(team, mine.len())?;
    let mut s = Window::<i64>::allocate(team, mine.len())?;
    a.local_mut()?.iter_mut().zip(mine.clone()).for_each(|(cell, i)| *cell = (i * i) as i64);
    let mut b = vec![0; mine.len()];
    a.fence(|epoch| {
        for (j, into) in mine.clone().zip(&mut b) {
            let (owner, at) = place(map(j));
            epoch.get(owner, at, into)?;
        }
        Ok(())
    })?;
    assert!(b.iter().zip(mine.clone()).all(|(&found, j)| found == (map(j) * map(j)) as i64));
    // Two elements of the map go to each place, so that sums meet.
    s.fence(|epoch| {
        for (j, &value) in mine.clone().zip(&b) {
            for to in [map(j), j] {
                let (owner, at) = place(to);
                epoch.accumulate(owner, at, Sum, value)?;
            }
        }
        Ok(())
    })?;
    let mut serial = vec![0; N];
    for j in 0..N {
        let value = (map(j) * map(j)) as i64;
        serial[map(j)] += value;
        serial[j] += value;
    }
    assert_eq!(*s.local()?, serial[mine]);
    Ok(())
}

/// On a ring of one or two ranks one neighbour is on both sides; `the_checkerboard_gives_the_table` runs there with each rank once.
// covers: EX-GEN-02 -- form R
fn a_neighbour_on_both_sides_counts_once(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 2)?;
    let (me, ranks) = (team.rank().0, team.size());
    let (left, right) = (Rank((me + ranks - 1) % ranks), Rank((me + 1) % ranks));
    let exposure = window.post(Origins::Any)?;
    assert_eq!(
        kind_of(exposure.start_group(&[left, right], Info::Strong).map(|_| ())),
        ErrorKind::StartNested
    );
    // The first of the two was started and completed; an origin uses an exposure once, so this round is over.
    exposure.wait(1)?;
    team.barrier()?;
    let exposure = window.post(Origins::Any)?;
    let access = exposure.start_group(&[left], Info::Strong)?;
    access.put(left, 1, 10 + u64::from(me))?;
    access.put(right, 0, 20 + u64::from(me))?;
    access.complete()?;
    exposure.wait(1)?;
    assert_eq!(*window.local()?, [20 + u64::from(left.0), 10 + u64::from(right.0)]);
    Ok(())
}

// covers: EX-E106-02
fn an_exclusive_put_is_the_same_under_every_info(team: &Team) -> Outcome {
    const ROUNDS: u64 = 200;
    let infos: [Hints; 4] = [
        Info::Strong.into(),
        Info::Weak.with("weak", "lock"),
        Info::Weak.with("weak", "transfer"),
        Info::Weak.with("weak", "unlock"),
    ];
    let ranks = team.size() as usize;
    for info in infos {
        // A slot of each rank, then the common slot and the number of puts to it.
        let window = Window::<u64>::allocate(team, if team.rank() == Rank(0) { ranks + 2 } else { 0 })?;
        let me = team.rank().index();
        for round in 1..=ROUNDS {
            window.lock_with(Rank(0), LockKind::Exclusive, info.clone(), |epoch| {
                epoch.put(Rank(0), me, round)?;
                let ticket = epoch.flush(epoch.get_value(Rank(0), ranks + 1)?)?;
                epoch.put(Rank(0), ranks + 1, ticket + 1)?;
                epoch.put(Rank(0), ranks, 1000 * ticket + me as u64)
            })?;
        }
        team.rma_barrier()?;
        if me == 0 {
            let cells = window.local()?;
            assert!(cells[..ranks].iter().all(|&slot| slot == ROUNDS));
            assert_eq!(cells[ranks + 1], ROUNDS * ranks as u64);
            assert_eq!(cells[ranks] / 1000, cells[ranks + 1] - 1, "the common slot is the last locker's");
        }
    }
    Ok(())
}

// covers: EX-F11-03
fn owners_and_producers_take_turns_by_get_and_accumulate(team: &Team) -> Outcome {
    let rounds = if is_full() { 10_000 } else { 1000 };
    let owner = Rank(0);
    let me = u64::from(team.rank().0);
    let mut window = Window::<u64>::allocate(team, 4)?;
    for round in 1..=rounds {
        if team.rank() == owner {
            assert!(round == 1 || window.load(2)? == 3 * (round - 1), "the sum of the round before");
            window.store(0, round)?;
            window.store(1, 2 * round)?;
            window.store(2, 0)?;
            window.post(Origins::Any)?.wait(2)?;
            assert_eq!((window.load(2)?, window.load(3)?), (3 * round, 3 * round));
        } else {
            let access = window.start(owner, Info::Strong)?;
            let first = access.get_value(owner, 0)?;
            let second = access.get_value(owner, 1)?;
            access.accumulate(owner, 2, Sum, me * round)?;
            access.accumulate(owner, 3, Sum, me)?;
            assert_eq!(access.complete_with((first, second))?, (round, 2 * round));
        }
    }
    Ok(())
}

/// Each rank has a clock of rounds at the others, which it moves before the call that they wait for.
// covers: EX-F11-02
fn posts_come_before_starts_and_completes_before_waits(team: &Team) -> Outcome {
    let rounds = if is_full() { 10_000 } else { 1000 };
    let owner = Rank(0);
    let mut window = Window::<u64>::allocate(team, 2)?;
    // At a producer: the round that the owner is about to post. At the owner: that which each producer is about to complete.
    let clocks = flags::<u64>(team, 3)?;
    let tell = |rank: Rank, round: u64| {
        let me = team.rank().index();
        clocks.lock(rank, LockKind::Shared, |epoch| epoch.accumulate(rank, me, Replace, round))
    };
    for round in 1..=rounds {
        if team.rank() == owner {
            [Rank(1), Rank(2)].into_iter().try_for_each(|producer| tell(producer, round))?;
            let exposure = window.post(Origins::Any)?;
            exposure.wait(2)?;
            for producer in 1..3 {
                assert!(round <= clocks.load(producer)?, "round {round}: rank {producer} has not completed");
            }
            assert_eq!(*window.local()?, [round; 2]);
        } else {
            let access = window.start(owner, Info::Strong)?;
            assert!(round <= clocks.load(0)?, "round {round}: the owner has not posted");
            access.put(owner, team.rank().index() - 1, round)?;
            tell(owner, round)?;
            access.complete()?;
        }
    }
    Ok(())
}

// covers: EX-F12-01 -- form R
// covers: EX-F12-02
fn readers_overlap_each_other_and_never_the_writer(team: &Team) -> Outcome {
    const PASSIVE: Rank = Rank(3);
    let rounds = if is_full() { 5000 } else { 2000 };
    // The pair, and beside it who is inside: readers, writers, the most readers seen together.
    let pair = Window::<u64>::allocate(team, 2)?;
    let inside = flags::<u64>(team, 3)?;
    let done = Flags::new(team)?;
    let count = |cell: usize, change: i64| {
        inside.lock(PASSIVE, LockKind::Shared, |epoch| {
            epoch.fetch_op(PASSIVE, cell, Sum, change.cast_unsigned())
        })
    };
    match team.rank() {
        Rank(0) => {
            // Behind a writer that waits, the second reader would wait, too.
            done.wait_for(1, 2);
            for round in 1..=rounds {
                pair.lock(PASSIVE, LockKind::Exclusive, |epoch| {
                    assert_eq!((count(1, 1)?, count(0, 0)?), (0, 0), "somebody else is inside");
                    epoch.put(PASSIVE, 0, round)?;
                    epoch.put(PASSIVE, 1, round)?;
                    count(1, -1).map(|_| ())
                })?;
            }
        }
        PASSIVE => {
            done.wait_for(0, 3);
        }
        _ => {
            let mut last = 0;
            let mut reads = 0;
            // The first time until both are inside.
            while reads < rounds {
                let (first, second) = pair.lock(PASSIVE, LockKind::Shared, |epoch| {
                    let readers = count(0, 1)? + 1;
                    assert_eq!(count(1, 0)?, 0, "the writer is inside");
                    inside.lock(PASSIVE, LockKind::Shared, |epoch| {
                        epoch.accumulate(PASSIVE, 2, Max, readers)
                    })?;
                    let values = (epoch.get_value(PASSIVE, 0)?, epoch.get_value(PASSIVE, 1)?);
                    if reads == 0 {
                        // The lock is shared, so both readers come to this.
                        until(|| {
                            inside
                                .lock(PASSIVE, LockKind::Shared, |epoch| epoch.get_value(PASSIVE, 2))
                                .unwrap()
                                == 2
                        });
                    }
                    count(0, -1)?;
                    Ok(values)
                })?;
                assert_eq!(first, second);
                assert!(last <= first, "{first} comes after {last}");
                if reads == 0 {
                    done.raise(Rank(0), 1);
                }
                (last, reads) = (first, reads + 1);
            }
        }
    }
    if team.rank() != PASSIVE {
        done.raise(PASSIVE, 0);
    }
    team.rma_barrier()?;
    if team.rank() == PASSIVE {
        assert_eq!(*pair.local()?, [rounds; 2]);
        assert_eq!(*inside.local()?, [0, 0, 2]);
    }
    Ok(())
}

// covers: EX-F13-02
fn everybody_exchanges_with_everybody(team: &Team) -> Outcome {
    let (bytes, rounds) = if is_full() { (1 << 20, 100) } else { (1 << 16, 20) };
    let ranks = team.size() as usize;
    let me = team.rank();
    let others: Vec<Rank> = team.ranks().filter(|&rank| rank != me).collect();
    let mut window = Window::<u8>::allocate(team, bytes * ranks)?;
    let mut data = vec![0_u8; bytes];
    for round in 0..rounds {
        let value = |rank: Rank| (31 * round + rank.index()) as u8;
        data.fill(value(me));
        let info = if round % 2 == 0 { Info::Strong } else { Info::Weak };
        let exposure = window.post(Origins::Any)?;
        let access = exposure.start_group(&others, info)?;
        for &other in &others {
            access.put(other, bytes * me.index(), &data)?;
        }
        access.complete()?;
        exposure.wait(others.len())?;
        let cells = window.local()?;
        for &other in &others {
            let part = &cells[bytes * other.index()..][..bytes];
            assert!(part.iter().all(|&byte| byte == value(other)), "round {round}, from rank {other}");
        }
    }
    Ok(())
}

// covers: RMA-CORR-05
fn gets_and_loads_never_disturb_each_other(team: &Team) -> Outcome {
    const LEN: usize = 64;
    let expected: Vec<u64> = (0..LEN as u64).map(|at| at * at).collect();
    let mut window = Window::<u64>::allocate(team, LEN)?;
    window.local_mut()?.copy_from_slice(&expected);
    let owner = Rank(0);
    let loads = |load: &dyn Fn(usize) -> rma::Result<u64>| {
        (0..LEN).try_for_each(|at| load(at).map(|found| assert_eq!(found, expected[at])))
    };
    for _ in 0..50 {
        let got = window.fence(|epoch| {
            let got = epoch.get_vec(owner, 0..LEN)?;
            loads(&|at| epoch.load(at))?;
            Ok(got)
        })?;
        assert_eq!(got, expected);
        let exposure = window.post(Origins::Any)?;
        let access = exposure.start(owner, Info::Strong)?;
        let got = access.get_vec(owner, 0..LEN)?;
        loads(&|at| exposure.load(at))?;
        assert_eq!(access.complete_with(got)?, expected);
        exposure.wait(if team.rank() == owner { team.size() as usize } else { 0 })?;
        // The owner's next lock waits for no post of others, nor they for its own.
        team.barrier()?;
        let got = window.lock(owner, LockKind::Shared, |epoch| {
            let got = epoch.get_vec(owner, 0..LEN)?;
            loads(&|at| epoch.load(at))?;
            Ok(got)
        })?;
        assert_eq!(got, expected);
        team.barrier()?;
    }
    Ok(())
}

/// With two copies what a call completes is seen by a load, and what it does not complete by the old value.
// covers: RMA-WIN-08
fn a_call_on_one_window_completes_nothing_on_another(team: &Team) -> Outcome {
    let make = |first: u64| Window::create(team, vec![first]).map_err(|returned| returned.error);
    let (mut fenced, mut other) = (make(1)?, make(2)?);
    type Call = fn(&mut Window<u64>) -> rma::Result<()>;
    let calls: [Call; 4] = [
        |window| window.fence(|_| ()),
        |window| window.post(Origins::Group(&[]))?.wait_all(),
        |window| window.lock(window.rank(), LockKind::Exclusive, |_| ()),
        |window| window.local().map(drop),
    ];
    for (call, number) in calls.into_iter().zip(10..) {
        let before = other.load(0)?;
        for window in [&fenced, &other] {
            if team.rank() == Rank(1) {
                window.lock(Rank(0), LockKind::Exclusive, |epoch| epoch.put(Rank(0), 0, number))?;
            }
        }
        team.barrier()?;
        call(&mut fenced)?;
        if team.rank() == Rank(0) {
            assert_eq!((fenced.load(0)?, other.load(0)?), (number, before), "call {number}");
        }
        call(&mut other)?;
        assert!(team.rank() != Rank(0) || other.load(0)? == number, "call {number}");
        team.barrier()?;
    }
    Ok(())
}
