//! Exposures of a part, whose owner has the rest.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rma::{ErrorKind, Evidence, Info, LockKind, Origins, Rank, Sum, Team, Window, own};

use crate::pscw::Flags;
use crate::{Case, Outcome, case, is_full, kind_of};

pub(crate) const CASES: &[Case] = &[
    case!(a_fence_of_parts_opens_the_parts, [1, 2, 4]),
    case!(the_rest_is_worked_on_while_halos_travel, [2, 3]),
    case!(bytes_beside_a_part_are_never_written, [2, 3]),
    case!(transfers_stay_inside_the_part, [2]),
    case!(own_accesses_stay_inside_the_part, [1, 2]),
    case!(parts_have_bounds, [2]),
    case!(fences_and_fences_of_parts_do_not_match, [2, 3]),
    case!(a_post_of_a_part_opens_the_part, [2, 3]),
    case!(after_the_epoch_everything_is_as_before, [2]),
    case!(a_panic_gives_the_rest_back, [2]),
    case!(no_view_beside_the_rest_of_a_broken_window, [2]).under(&[""]),
];

fn a_fence_of_parts_opens_the_parts(team: &Team) -> Outcome {
    let ranks = team.size() as usize;
    let me = team.rank().index();
    // Each rank exposes another range, of `ranks` elements from its own number on.
    let mut window = Window::<u64>::allocate(team, 3 * ranks)?;
    for round in 1..=100_u64 {
        window.fence_part(me..me + ranks, |epoch, mine| {
            assert_eq!((mine.before.len(), mine.after.len()), (me, 2 * ranks - me));
            for target in team.ranks() {
                epoch.put(target, target.index() + me, round)?;
            }
            for cell in mine.before.iter_mut().chain(mine.after.iter_mut()) {
                *cell += 1;
            }
            epoch.fence()?;
            for at in me..me + ranks {
                assert_eq!(epoch.load(at)?, round);
            }
            epoch.fence()
        })?;
    }
    let view = window.local()?;
    assert!(view.iter().all(|&value| value == 100), "{view:?}");
    Ok(())
}

fn the_rest_is_worked_on_while_halos_travel(team: &Team) -> Outcome {
    const INNER: usize = 5000;
    let mut window = Window::<u64>::allocate(team, INNER + 4)?;
    let (me, ranks) = (team.rank().0, team.size());
    let (left, right) = (Rank((me + ranks - 1) % ranks), Rank((me + 1) % ranks));
    // Behind the inner cells: the packed rim (left, right) and the halo (from the left, from the right).
    let (rim, halo) = (INNER..INNER + 2, INNER + 2..INNER + 4);
    for step in 1..=300_u64 {
        {
            let mut cells = window.local_mut()?;
            cells[rim.start] = 1000 * step + u64::from(me);
            cells[rim.start + 1] = 2000 * step + u64::from(me);
        }
        window.fence_part(INNER..INNER + 4, |epoch, mine| {
            epoch.put(left, halo.start + 1, own(rim.start..rim.start + 1))?;
            epoch.put(right, halo.start, own(rim.start + 1..rim.end))?;
            mine.before.iter_mut().for_each(|cell| *cell += 1);
            assert!(mine.after.is_empty());
            Ok(())
        })?;
        let view = window.local()?;
        assert_eq!(view[halo.start], 2000 * step + u64::from(left.0));
        assert_eq!(view[halo.start + 1], 1000 * step + u64::from(right.0));
        assert!(view[..INNER].iter().all(|&cell| cell == step));
    }
    Ok(())
}

/// The exposed range begins and ends inside of words, whose other bytes the owner changes all the time.
// covers: RMA-GRAN-04
fn bytes_beside_a_part_are_never_written(team: &Team) -> Outcome {
    const PUTS: u8 = 200;
    let mut window = Window::<u8>::allocate(team, 16)?;
    let owner = Rank(0);
    let others = team.size() - 1;
    for round in 0..if is_full() { 200 } else { 20_u8 } {
        window.fence_part(3..13, |epoch, rest| {
            if team.rank() == owner {
                for turn in 0..2000_u32 {
                    let value = (turn % 251) as u8;
                    rest.before.iter_mut().chain(rest.after.iter_mut()).for_each(|byte| *byte = value);
                    // The bytes are read again, not remembered.
                    let seen = std::hint::black_box(&*rest.before).iter().chain(&*rest.after);
                    assert!(seen.copied().eq([value; 6]), "the owner's bytes in turn {turn}");
                }
                return Ok(());
            }
            for put in 1..=PUTS {
                match team.rank() {
                    Rank(1) => epoch.put(owner, 3, [put.wrapping_add(round); 5])?,
                    _ => epoch.put(owner, 12, put.wrapping_add(round))?,
                }
                epoch.accumulate(owner, 8, Sum, [1; 4])?;
            }
            Ok(())
        })?;
        let view = window.local()?;
        if team.rank() == owner {
            let last = PUTS.wrapping_add(round);
            let outside = ((2000_u32 - 1) % 251) as u8;
            assert_eq!(view[..3], [outside; 3]);
            assert_eq!(view[13..], [outside; 3]);
            assert_eq!(view[3..8], [last; 5]);
            assert_eq!(view[12], if others == 2 { last } else { 0 });
            let sum = PUTS.wrapping_mul(others as u8).wrapping_mul(round.wrapping_add(1));
            assert_eq!(view[8..12], [sum; 4]);
        }
    }
    Ok(())
}

fn transfers_stay_inside_the_part(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 16)?;
    let other = Rank(1 - team.rank().0);
    window.local_mut()?.fill(9);
    let (mut got, mut nothing) = ([0; 2], [0; 2]);
    let out = ErrorKind::OutOfBounds;
    window
        .fence_part(4..8, |epoch, _| {
            assert_eq!(kind_of(epoch.put(other, 3, 1)), out);
            assert_eq!(kind_of(epoch.put(other, 7, [1, 1])), out);
            assert_eq!(kind_of(epoch.put(other, 0..16, vec![1; 16])), out);
            let spread = rma::Strided { start: 4, count: 2, block: 1, stride: 4 };
            assert_eq!(kind_of(epoch.put(other, spread, [1, 1])), out);
            assert_eq!(kind_of(epoch.accumulate(other, 8, Sum, 1)), out);
            assert_eq!(kind_of(epoch.accumulate(other, 3..5, Sum, [1, 1])), out);
            assert_eq!(kind_of(epoch.get_value(other, 3)), out);
            assert_eq!(kind_of(epoch.get_vec(other, 7..9)), out);
            assert_eq!(kind_of(epoch.fetch_op(other, 8, Sum, 1)), out);
            assert_eq!(kind_of(epoch.compare_swap(other, 0, 9, 1)), out);
            assert_eq!(kind_of(epoch.get_accumulate(other, 0, Sum, [1])), out);
            // The range counts for transfers of a rank to itself, too.
            assert_eq!(kind_of(epoch.put(epoch.rank(), 3, 1)), out);
            let error = epoch.put(other, usize::MAX, 1).expect_err("it is far outside");
            assert!(error.to_string().contains("bytes 32..64 are exposed"), "{error}");
            assert_eq!(kind_of(epoch.get(other, 3, &mut nothing)), out);
            // Nothing of this has moved a byte; what follows is right.
            epoch.put(other, 4, 4)?;
            epoch.put(other, 5..6, [5])?;
            epoch.accumulate(other, 6, Sum, 1)?;
            let before = epoch.fetch_op(other, 7, Sum, 2)?;
            epoch.get(other, 6, &mut got)?;
            Ok((before, epoch.get_value(other, 4)?))
        })
        .map(|(before, four)| assert_eq!((before, four), (9, 4)))?;
    let mut expected = [9; 16];
    expected[4..8].copy_from_slice(&[4, 5, 10, 11]);
    assert_eq!(*window.local()?, expected);
    Ok(())
}

fn own_accesses_stay_inside_the_part(team: &Team) -> Outcome {
    let mut window = Window::<u32>::allocate(team, 12)?;
    let next = Rank((team.rank().0 + 1) % team.size());
    let out = ErrorKind::OutOfBounds;
    window.fence_part(4..8, |epoch, mine| {
        let mut buffer = [0; 2];
        assert_eq!(kind_of(epoch.load(3)), out);
        assert_eq!(kind_of(epoch.store(8, 1)), out);
        assert_eq!(kind_of(epoch.read(7, &mut buffer)), out);
        assert_eq!(kind_of(epoch.write(3, &buffer)), out);
        assert_eq!(kind_of(epoch.put(next, 4, own(0..1))), out);
        assert_eq!(kind_of(epoch.get(next, 4, own(11..12))), out);
        assert_eq!(kind_of(epoch.accumulate(next, 4, Sum, own(8..9))), out);
        assert_eq!(kind_of(epoch.put(next, 4..6, own(7..9))), out);
        mine.before.fill(1);
        mine.after.fill(2);
        epoch.store(4, 3)?;
        epoch.write(5, &[3, 3])?;
        epoch.read(5, &mut buffer)?;
        assert_eq!((buffer, epoch.load(4)?, epoch.len()), ([3, 3], 3, 12));
        epoch.put(next, 7, own(4..5))?;
        Ok(())
    })?;
    assert_eq!(*window.local()?, [1, 1, 1, 1, 3, 3, 3, 3, 2, 2, 2, 2]);
    // Everything is the own again, element by element as well.
    window.store(0, 7)?;
    assert_eq!((window.load(0)?, window.load(11)?), (7, 2));
    Ok(())
}

fn parts_have_bounds(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 4)?;
    let out = ErrorKind::OutOfBounds;
    #[allow(clippy::reversed_empty_ranges, reason = "it is what is to be refused")]
    for range in [0..5, 5..5, 3..2, 0..usize::MAX] {
        assert_eq!(kind_of(window.fence_part(range.clone(), |_, _| ())), out);
        assert_eq!(kind_of(window.exposure_part(range, Origins::Any, 0, |_, _| ())), out);
    }
    let me = team.rank();
    // Nothing and everything are parts.
    let range = if me == Rank(0) { 2..2 } else { 0..4 };
    window.fence_part(range, |epoch, mine| {
        assert_eq!(mine.before.len() + mine.after.len(), if me == Rank(0) { 4 } else { 0 });
        epoch.put(Rank(1), me.index(), 1)?;
        assert_eq!(kind_of(epoch.put(Rank(0), 2, 1)), out);
        // Nothing fits into nothing.
        epoch.put(Rank(0), 2..2, [0; 0])
    })?;
    if me == Rank(1) {
        assert_eq!(*window.local()?, [1, 1, 0, 0]);
    }
    Ok(())
}

fn fences_and_fences_of_parts_do_not_match(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 4)?;
    let outcome = match team.rank() {
        Rank(0) => window.fence(|_| ()),
        _ => window.fence_part(0..1, |_, _| ()),
    };
    let error = outcome.expect_err("the ranks come to different calls");
    assert!(matches!(error.kind(), ErrorKind::CollectiveMismatch | ErrorKind::Poisoned), "{error}");
    team.barrier()?;
    // Nobody got in, so the memory is the own.
    window.local_mut()?.fill(1);
    window.store(3, 1).map_err(|error| error.to_string())?;
    Ok(())
}

fn a_post_of_a_part_opens_the_part(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 8)?;
    let (me, ranks) = (team.rank(), team.size());
    let (left, right) = (Rank((me.0 + ranks - 1) % ranks), Rank((me.0 + 1) % ranks));
    let out = ErrorKind::OutOfBounds;
    for round in 1..=200_u64 {
        let info = if round % 2 == 0 { Info::Strong } else { Info::Weak };
        let hints = info.with("weak", ["start", "transfer", "complete"][round as usize % 3]);
        window.exposure_part(2..4, Origins::Group(&[left, me]), rma::Expected::All, |exposure, mine| {
            let access = exposure.start(right, hints)?;
            access.put(right, 2, round)?;
            mine.before.fill(round);
            access.complete()?;
            // An epoch that knows the part refuses what leaves it.
            let own_access = exposure.start(me, Info::Strong)?;
            own_access.put(me, 3, round)?;
            assert_eq!(kind_of(own_access.put(me, 4, round)), out);
            own_access.complete()?;
            assert_eq!(kind_of(exposure.load(4)), out);
            assert_eq!(kind_of(exposure.local().map(|_| ())), ErrorKind::EpochStillOpen);
            assert_eq!(kind_of(exposure.lock(right, LockKind::Shared, |_| ())), ErrorKind::MixedSync);
            mine.after.fill(round);
            Ok(())
        })?;
        assert_eq!(*window.local()?, [round; 8]);
    }
    Ok(())
}

fn after_the_epoch_everything_is_as_before(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 8)?;
    let (me, other) = (team.rank(), Rank(1 - team.rank().0));
    for round in 1..=50_u64 {
        window.fence_part(0..1, |epoch, _| epoch.put(other, 0, round))?;
        window.fence(|epoch| epoch.put(other, 7, round))?;
        assert_eq!((window.load(0)?, window.load(7)?), (round, round));
        team.barrier()?;
        window.lock(other, LockKind::Exclusive, |epoch| epoch.put(other, 5, round))?;
        team.rma_barrier()?;
        assert_eq!(window.load(5)?, round);
        if me == Rank(0) {
            window.exposure_part(6..8, Origins::Any, 1, |_, mine| mine.before.fill(round))?;
            window.post(Origins::Any)?.wait(1)?;
            assert_eq!(*window.local()?, [round, round, round, round, round, round, round + 1, round]);
        } else {
            window.access(&[other], Info::Strong, |epoch| epoch.put(other, 6, round + 1))?;
            window.access(&[other], Info::Strong, |epoch| epoch.put(other, 0, round))?;
        }
        team.barrier()?;
    }
    Ok(())
}

fn a_panic_gives_the_rest_back(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 4)?;
    let flags = Flags::new(team)?;
    if team.rank() == Rank(0) {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            window.fence_part(0..1, |epoch, mine| {
                mine.after.fill(3);
                // Both are in, so rank 1 learns of the panic at the end of the phase.
                flags.wait_for(0, 1);
                match epoch.len() {
                    4 => panic!("on purpose"),
                    _ => Ok(()),
                }
            })
        }));
        outcome.expect_err("it panics");
    } else {
        let body = |mine: &mut [u64]| {
            mine.fill(3);
            flags.raise(Rank(0), 0);
        };
        let error = window.fence_part(0..1, |_, mine| body(mine.after)).expect_err("rank 0 panics");
        assert_eq!((error.kind(), error.context().evidence), (ErrorKind::PeerLost, Some(Evidence::Panicked)));
    }
    team.barrier()?;
    assert_eq!(*window.local()?, [0, 3, 3, 3]);
    window.store(3, 4)?;
    assert_eq!(window.load(3)?, 4);
    Ok(())
}

fn no_view_beside_the_rest_of_a_broken_window(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 4)?;
    let flags = Flags::new(team)?;
    if team.rank() == Rank(0) {
        let outcome = window.exposure_part(0..1, Origins::Any, 1, |exposure, mine| {
            flags.raise(Rank(1), 0);
            flags.wait_for(0, 1);
            // Rank 1 has broken the window, and nobody is in; the slices are still there.
            let error = exposure.start(Rank(1), Info::Strong).map(|_| ()).expect_err("the window is broken");
            assert_eq!(error.kind(), ErrorKind::PeerLost, "{error}");
            assert_eq!(kind_of(exposure.local().map(|_| ())), ErrorKind::EpochStillOpen);
            mine.before.fill(1);
            mine.after.fill(2);
        });
        assert_eq!(kind_of(outcome), ErrorKind::PeerLost);
        assert_eq!(*window.local()?, [0, 2, 2, 2]);
    } else {
        flags.wait_for(0, 1);
        let body = || {
            let exposure = window.post(Origins::Any).expect("it is not posted");
            window_start_itself(&exposure);
            panic!("on purpose");
        };
        let outcome: Result<(), _> = catch_unwind(AssertUnwindSafe(body));
        outcome.expect_err("it panics");
        flags.raise(Rank(0), 0);
    }
    team.barrier()?;
    Ok(())
}

/// An access that is leaked, so that the exposure is in use when its guard goes.
fn window_start_itself(exposure: &rma::Exposure<'_, u64>) {
    std::mem::forget(exposure.start(exposure.rank(), Info::Strong).expect("it is posted"));
}
