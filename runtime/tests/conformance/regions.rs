//! Memory that ranks attach to a window when they need it, and detach again.

use rma::{ErrorKind, Info, LockKind, Origins, Rank, Region, Sum, Team, Window, own};

use crate::{Case, Outcome, case, flags, kind_of, until};

pub(crate) const CASES: &[Case] = &[
    case!(attached_memory_is_reached_by_every_style, [2, 3]),
    case!(what_is_not_attached_is_refused, [2]),
    case!(detach_waits_for_nobody_and_refuses, [2]),
    case!(regions_come_and_go, [2]),
    case!(attaching_has_limits, [1]),
    case!(shortage_when_attaching_is_an_error_there, [2]).processes(),
];

const OWNER: Rank = Rank(0);
const OTHER: Rank = Rank(1);

/// Tells everybody which displacements a region of the owner has.
fn tell(team: &Team, region: Option<Region>) -> rma::Result<std::ops::Range<usize>> {
    let mut range = region.map_or([0, 0], |region| [region.range().start as u64, region.range().end as u64]);
    team.broadcast(OWNER, &mut range)?;
    Ok(range[0] as usize..range[1] as usize)
}

fn attached_memory_is_reached_by_every_style(team: &Team) -> Outcome {
    const LEN: usize = 1000;
    let me = team.rank();
    let mut window = Window::<u64>::dynamic(team, 1 << 20)?;
    assert_eq!((window.len(), window.local()?.len()), (0, 0));
    let right = Rank((me.0 + 1) % team.size());
    let left = u64::from((me.0 + team.size() - 1) % team.size());
    // All ranks attach the same, so everybody knows the others' displacements.
    let (first, second) = (window.attach(LEN)?, window.attach(3)?);
    team.barrier()?;
    let (at, other_at) = (first.start(), second.start());
    window.fence(|epoch| {
        epoch.put(right, at..at + 10, vec![u64::from(me.0); 10])?;
        epoch.accumulate(right, other_at, Sum, 5)?;
        epoch.store(at + 20, 9)
    })?;
    assert_eq!(window.local_region(first)?[..10], [left; 10]);
    assert_eq!((window.load(at + 20)?, window.load(other_at)?), (9, 5));
    window.local_region_mut(second)?.copy_from_slice(&[1, 2, 3]);
    let exposure = window.post(Origins::Any)?;
    let got = exposure.access(&[right], Info::Strong, |epoch| {
        epoch.put(right, at + 30, own(other_at..other_at + 3))?;
        epoch.get_vec(right, other_at..other_at + 3)
    })?;
    exposure.wait(1)?;
    assert_eq!((got, &window.local_region(first)?[30..33]), (vec![1, 2, 3], &[1, 2, 3][..]));
    team.barrier()?;
    let before = window.lock(right, LockKind::Exclusive, |epoch| epoch.fetch_op(right, at + 40, Sum, 4))?;
    assert_eq!(before, 0);
    team.barrier()?;
    assert_eq!(window.load(at + 40)?, 4);
    Ok(())
}

fn what_is_not_attached_is_refused(team: &Team) -> Outcome {
    const OUT: ErrorKind = ErrorKind::OutOfBounds;
    let mut window = Window::<u32>::dynamic(team, 1 << 20)?;
    let regions = match team.rank() {
        OWNER => Some((window.attach(100)?, window.attach(100)?)),
        _ => None,
    };
    let (one, two) = (tell(team, regions.map(|both| both.0))?, tell(team, regions.map(|both| both.1))?);
    if team.rank() == OTHER {
        window.lock(OWNER, LockKind::Exclusive, |epoch| {
            epoch.put(OWNER, one.clone(), vec![1; 100])?;
            epoch.put(OWNER, two.clone(), vec![2; 100])?;
            // Beyond one region, between the two, over both, in a part that was never attached, outside of the window.
            for at in [one.end, one.end - 1, two.start - 1, two.end, 1 << 19, 1 << 20, usize::MAX / 2] {
                assert_eq!(kind_of(epoch.put(OWNER, at, vec![7; 2])), OUT, "at {at}");
                assert_eq!(
                    kind_of(epoch.get_vec(OWNER, at..at.saturating_add(2)).map(|_| ())),
                    OUT,
                    "at {at}"
                );
                assert_eq!(kind_of(epoch.accumulate(OWNER, at, Sum, vec![7; 2])), OUT, "at {at}");
            }
            let over_both = vec![7; two.end - one.start];
            assert_eq!(kind_of(epoch.put(OWNER, one.start, over_both)), OUT);
            assert_eq!(kind_of(epoch.fetch_op(OWNER, one.end, Sum, 1).map(|_| ())), OUT);
            assert_eq!(kind_of(epoch.compare_swap(OWNER, two.end, 0, 1).map(|_| ())), OUT);
            assert_eq!(kind_of(epoch.get_value(OWNER, 1 << 19).map(|_| ())), OUT);
            Ok(())
        })?;
    }
    team.barrier()?;
    if let Some((first, second)) = regions {
        assert!(window.local_region(first)?.iter().all(|&value| value == 1));
        assert!(window.local_region(second)?.iter().all(|&value| value == 2));
        assert_eq!(kind_of(window.load(first.range().end)), OUT);
        assert_eq!(kind_of(window.store(1 << 19, 1)), OUT);
        window.detach(first)?;
        assert_eq!(kind_of(window.load(first.start())), OUT);
        assert_eq!(kind_of(window.local_region(first).map(|_| ())), OUT);
        assert_eq!(kind_of(window.local_region_mut(first).map(|_| ())), OUT);
        assert_eq!(kind_of(window.detach(first)), OUT);
    }
    team.barrier()?;
    if team.rank() == OTHER {
        let error = window.lock(OWNER, LockKind::Shared, |epoch| epoch.put(OWNER, one.start, 1)).unwrap_err();
        assert_eq!(error.kind(), OUT);
        assert!(error.to_string().contains("no region that is attached has all of it"), "{error}");
        window.lock(OWNER, LockKind::Shared, |epoch| epoch.put(OWNER, two.start, 3))?;
    }
    team.barrier()?;
    assert!(regions.is_none_or(|both| window.local_region(both.1).is_ok_and(|region| region[0] == 3)));
    // Memory is attached to windows that were made for it.
    let mut fixed = Window::<u32>::allocate(team, 10)?;
    assert_eq!(kind_of(fixed.attach(1)), OUT);
    Ok(())
}

fn detach_waits_for_nobody_and_refuses(team: &Team) -> Outcome {
    let mut window = Window::<u64>::dynamic(team, 1 << 16)?;
    let signals = flags::<u64>(team, 2)?;
    if team.rank() == OWNER {
        let region = window.attach(10)?;
        tell(team, Some(region))?;
        for kind in [LockKind::Exclusive, LockKind::Shared] {
            team.barrier()?;
            let error = window.detach(region).expect_err("the other rank is in the window");
            assert_eq!(error.kind(), ErrorKind::MixedSync, "{kind:?}: {error}");
            // Attaching disturbs nobody.
            let more = window.attach(5)?;
            signals.lock(OTHER, LockKind::Shared, |epoch| epoch.accumulate(OTHER, 0, Sum, 1))?;
            team.barrier()?;
            // Nobody comes back before the next round.
            window.detach(more)?;
            team.barrier()?;
        }
        // Only a leaked guard leaves the window for a call that needs all of it.
        std::mem::forget(window.post(Origins::Group(&[]))?);
        assert_eq!(kind_of(window.detach(region)), ErrorKind::EpochStillOpen);
    } else {
        let range = tell(team, None)?;
        for (round, kind) in [LockKind::Exclusive, LockKind::Shared].into_iter().enumerate() {
            window.lock(OWNER, kind, |epoch| {
                team.barrier()?;
                until(|| signals.load(0).unwrap() == round as u64 + 1);
                // What was attached before the lock is still there.
                epoch.put(OWNER, range.clone(), vec![1; 10])
            })?;
            team.barrier()?;
            team.barrier()?;
        }
    }
    team.barrier()?;
    let _ = window.free(); // The leaked exposure is its error.
    Ok(())
}

fn regions_come_and_go(team: &Team) -> Outcome {
    let mut window = Window::<u64>::dynamic(team, 1 << 22)?;
    let mut last = None;
    for round in 0..300_u64 {
        let region = match team.rank() {
            OWNER => Some(window.attach(600 + round as usize % 5 * 512)?),
            _ => None,
        };
        if let Some(region) = region {
            assert!(window.local_region(region)?.iter().all(|&value| value == 0), "round {round}");
            assert_ne!(Some(region.start()), last, "a place is used again at once");
            last = Some(region.start());
        }
        let range = tell(team, region)?;
        if team.rank() == OTHER {
            let values = vec![round + 1; range.len()];
            window.lock(OWNER, LockKind::Exclusive, |epoch| epoch.put(OWNER, range, values))?;
        }
        team.barrier()?;
        if let Some(region) = region {
            assert!(window.local_region(region)?.iter().all(|&value| value == round + 1));
            window.detach(region)?;
        }
    }
    Ok(())
}

fn attaching_has_limits(team: &Team) -> Outcome {
    const OUT: ErrorKind = ErrorKind::OutOfBounds;
    let mut window = Window::<u8>::dynamic(team, 1 << 20)?;
    assert_eq!(kind_of(window.attach(0)), OUT);
    assert_eq!(kind_of(window.attach((1 << 20) + 1)), OUT);
    assert_eq!(kind_of(window.attach(usize::MAX)), OUT);
    let all = window.attach(1 << 20)?;
    assert_eq!(kind_of(window.attach(1)), OUT);
    window.detach(all)?;
    let regions: Vec<Region> = (0..64).map(|_| window.attach(1)).collect::<rma::Result<_>>()?;
    let error = window.attach(1).expect_err("64 are attached");
    assert!(error.to_string().contains("64 regions"), "{error}");
    regions.into_iter().try_for_each(|region| window.detach(region))?;
    window.attach(1 << 20)?;
    let endless = Window::<u64>::dynamic(team, usize::MAX);
    assert_eq!(kind_of(endless), ErrorKind::System);
    Ok(())
}

fn shortage_when_attaching_is_an_error_there(team: &Team) -> Outcome {
    let mut window = Window::<u8>::dynamic(team, 1 << 30)?;
    let region = window.attach(1000)?;
    if team.rank() == OTHER {
        crate::windows::limit_files(Some(16 << 20));
        assert_eq!(kind_of(window.attach(64 << 20)), ErrorKind::System);
        crate::windows::limit_files(None);
    }
    // The others don't notice, and the window is as good as before.
    let other = Rank(1 - team.rank().0);
    team.barrier()?;
    window.fence(|epoch| epoch.put(other, region.start(), vec![6; 1000]))?;
    assert!(window.local_region(region)?.iter().all(|&byte| byte == 6));
    window.attach(64 << 20)?;
    Ok(())
}
