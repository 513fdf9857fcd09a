//! Transfers whose other side is the caller's part of another window.

use rma::{Datatype, ErrorKind, Info, LockKind, Origins, Rank, Strided, Sum, Team, Window};

use crate::{Case, Outcome, case, kind_of};

pub(crate) const CASES: &[Case] = &[
    case!(parts_of_another_window_go_and_come, [1, 2, 3]),
    case!(another_window_has_its_own_bounds_and_views, [1, 2]),
    case!(a_window_that_is_named_is_the_own_one, [1, 2]),
    case!(layouts_name_parts_of_another_window, [2]),
    case!(what_is_kept_outlives_the_window_it_came_from, [2]).under(&[""]),
];

/// Element `at` of a rank's part before anything has moved.
fn first(rank: Rank, at: usize) -> u64 {
    u64::from(rank.0) * 100 + at as u64
}

fn filled(team: &Team, len: usize) -> rma::Result<Window<u64>> {
    let mut window = Window::<u64>::allocate(team, len)?;
    let me = team.rank();
    window.local_mut()?.iter_mut().enumerate().for_each(|(at, cell)| *cell = first(me, at));
    Ok(window)
}

fn parts_of_another_window_go_and_come(team: &Team) -> Outcome {
    let (me, ranks) = (team.rank(), team.size());
    let (left, right) = (Rank((me.0 + ranks - 1) % ranks), Rank((me.0 + 1) % ranks));
    let mut rims = filled(team, 12)?;
    let mut halos = Window::<u64>::allocate(team, 20)?;
    let every_third = Strided { start: 0, count: 4, block: 1, stride: 3 };
    let pairs = Strided { start: 10, count: 2, block: 2, stride: 5 };
    halos.fence(|epoch| {
        epoch.put(right, 0, rims.own(2..6))?;
        epoch.put(right, pairs, rims.own(every_third))?;
        epoch.accumulate(right, 8, Sum, rims.own(4..6))?;
        epoch.fence()?;
        // Twice the same rank if there are only two.
        epoch.accumulate(left, 8, Sum, rims.own(4..6))
    })?;
    {
        let cells = halos.local()?;
        assert_eq!(cells[..4], [2, 3, 4, 5].map(|at| first(left, at)));
        let sums = [4, 5].map(|at| first(left, at) + first(right, at));
        assert_eq!(cells[8..10], sums);
        assert_eq!([cells[10], cells[11], cells[15], cells[16]], [0, 3, 6, 9].map(|at| first(left, at)));
        assert_eq!(cells.iter().filter(|&&cell| cell == 0).count(), 10 + usize::from(left == Rank(0)));
    }
    // And back: what the right neighbour has of this rank, and what this rank's own part has.
    halos.fence(|epoch| {
        epoch.get(right, 0..4, rims.own(8..12))?;
        epoch.get(right, pairs, rims.own(Strided { start: 0, count: 4, block: 1, stride: 2 }))
    })?;
    let mut expected = [0, 1, 0, 3, 0, 5, 0, 7, 0, 0, 0, 0].map(|at| first(me, at));
    for (at, from) in [(0, 0), (2, 3), (4, 6), (6, 9), (8, 2), (9, 3), (10, 4), (11, 5)] {
        expected[at] = first(me, from);
    }
    // A get stores: the next fence of that window shows it to others.
    let mut seen = vec![0; 12];
    rims.fence(|epoch| epoch.get(left, 0, &mut seen))?;
    assert_eq!(*rims.local()?, expected);
    let shift = first(left, 0).wrapping_sub(first(me, 0));
    assert_eq!(seen, expected.map(|cell| cell.wrapping_add(shift)));
    Ok(())
}

fn another_window_has_its_own_bounds_and_views(team: &Team) -> Outcome {
    let me = team.rank();
    let mut near = filled(team, 4)?;
    let mut far = Window::<u64>::allocate(team, 64)?;
    far.fence(|epoch| {
        assert_eq!(kind_of(epoch.put(me, 0, near.own(2..5))), ErrorKind::OutOfBounds);
        assert_eq!(kind_of(epoch.get(me, 0..3, near.own(2..5))), ErrorKind::OutOfBounds);
        assert_eq!(kind_of(epoch.get(me, 0..3, near.own(usize::MAX))), ErrorKind::OutOfBounds);
        assert_eq!(kind_of(epoch.accumulate(me, 0, Sum, near.own(4..5))), ErrorKind::OutOfBounds);
        assert_eq!(kind_of(epoch.put(me, 0..3, near.own(0..2))), ErrorKind::LengthMismatch);
        let twice = Strided { start: 0, count: 2, block: 2, stride: 1 };
        assert_eq!(kind_of(epoch.get(me, 0, near.own(twice))), ErrorKind::OverlappingLayout);
        // A view of the other window may be read beside, and nothing may be got into its memory.
        let view = near.local()?;
        assert_eq!(kind_of(epoch.get(me, 0..1, near.own(0..1))), ErrorKind::StoreDuringUpdate);
        assert_eq!(kind_of(epoch.get(me, 0, near.own(0..4))), ErrorKind::StoreDuringUpdate);
        epoch.put(me, 0, near.own(0..4))?;
        assert_eq!(*view, [0, 1, 2, 3].map(|at| first(me, at)));
        rma::Result::Ok(())
    })?;
    assert_eq!(far.local()?[..4], near.local()?[..]);
    // While a part of the other window is exposed, its epoch has the part.
    near.fence_part(1..3, |part, rest| {
        far.lock(me, LockKind::Exclusive, |epoch| {
            for outside in [0..1, 0..2, 2..4, 3..4] {
                let len = outside.len();
                assert_eq!(kind_of(epoch.put(me, 0, part.own(outside.clone()))), ErrorKind::OutOfBounds);
                assert_eq!(kind_of(epoch.get(me, 0..len, part.own(outside))), ErrorKind::OutOfBounds);
            }
            epoch.get(me, 3..4, part.own(2..3))
        })?;
        assert_eq!((&*rest.before, &*rest.after), (&[first(me, 0)][..], &[first(me, 3)][..]));
        rma::Result::Ok(())
    })?;
    assert_eq!(*near.local()?, [0, 1, 3, 3].map(|at| first(me, at)));
    Ok(())
}

fn a_window_that_is_named_is_the_own_one(team: &Team) -> Outcome {
    let me = team.rank();
    let mut window = filled(team, 8)?;
    window.fence(|epoch| {
        assert_eq!(kind_of(epoch.put(me, 2, epoch.own(0..4))), ErrorKind::ConflictingAccess);
        assert_eq!(kind_of(epoch.get(me, 2..6, epoch.own(0..4))), ErrorKind::ConflictingAccess);
        epoch.put(me, 4, epoch.own(0..4))
    })?;
    assert_eq!(*window.local()?, [0, 1, 2, 3, 0, 1, 2, 3].map(|at| first(me, at)));
    Ok(())
}

fn layouts_name_parts_of_another_window(team: &Team) -> Outcome {
    let (me, other) = (team.rank(), Rank(1 - team.rank().0));
    let near = filled(team, 6)?;
    let mut far = Window::<u64>::allocate(team, 6)?;
    let ends = Datatype::of::<u64>().vector(2, 1, 5)?;
    far.fence(|epoch| {
        epoch.put(other, 2..4, near.own((0, &ends)))?;
        epoch.accumulate(other, (0, &ends), Sum, near.own(2..4))?;
        epoch.fence()?;
        epoch.get(other, (0, &ends), near.own(3..5))?;
        assert_eq!(kind_of(epoch.get(other, 0..2, near.own((1, &ends)))), ErrorKind::OutOfBounds);
        Ok(())
    })?;
    let [a, b, c, d] = [0, 5, 2, 3].map(|at| first(other, at));
    assert_eq!(*far.local()?, [c, 0, a, b, 0, d]);
    let back = [first(me, 2), first(me, 3)];
    assert_eq!(near.local()?[3..5], back);
    Ok(())
}

fn what_is_kept_outlives_the_window_it_came_from(team: &Team) -> Outcome {
    let source = filled(team, 4)?;
    let mut window = Window::<u64>::allocate(team, 4)?;
    if team.rank() == Rank(0) {
        let access = window.start(Rank(1), Info::Weak.with("weak", "complete"))?;
        access.put(Rank(1), 0, source.own(1..3))?;
        access.accumulate(Rank(1), 2, Sum, source.own(2..4))?;
        // The target posts when it hears that the window is gone.
        drop(source);
        team.barrier()?;
        access.complete()?;
    } else {
        drop(source);
        team.barrier()?;
        window.post(Origins::Any)?.wait(1)?;
        assert_eq!(*window.local()?, [1, 2, 2, 3].map(|at| first(Rank(0), at)));
    }
    Ok(())
}
