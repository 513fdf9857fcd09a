//! Post, start, complete, wait.

use rma::{ErrorKind, Expected, Info, LockKind, Origins, Rank, Sum, Team, Window};

use crate::{Case, FORCED, Outcome, case, grace, kind_of, stalled, until};

pub(crate) const CASES: &[Case] = &[
    case!(a_start_waits_for_the_post, [2]),
    case!(stores_before_a_post_are_got, [2]).many_rounds(),
    case!(waits_see_every_round, [2]),
    case!(buffers_are_free_after_complete, [2]),
    case!(starts_and_completes_pair_up, [2]),
    case!(leaving_with_an_open_start_is_an_error, [2])
        .failing("finds an epoch still open: the access to ranks 0 was not completed"),
    case!(several_accesses_complete_in_any_order, [4]),
    case!(wait_counts_origins, [4]),
    case!(wait_shows_everything, [4]),
    case!(one_use_of_an_exposure_per_origin, [3]).under(&[""]),
    case!(too_many_origins_are_named, [4]),
    case!(a_wait_for_nobody_returns, [2]),
    case!(posts_and_waits_alternate, [2]),
    case!(a_group_admits_its_members_only, [4]).under(&[""]),
    case!(a_group_is_waited_for, [4]),
    case!(group_and_count_forms_interoperate, [4]),
    case!(start_has_a_group_form, [3]),
    case!(weak_data_do_not_arrive_before_the_post, [2]).under(&[
        "",
        "weak=start",
        "weak=transfer",
        "weak=complete",
        FORCED,
    ]),
    case!(a_kept_promise_needs_no_wait, [2]),
    case!(a_broken_promise_moves_nothing, [2]).under(&[""]),
    case!(a_stalled_start_says_what_it_waits_for, [2]),
    case!(the_symmetric_exchange_never_deadlocks, [2]),
    case!(a_posted_target_need_not_help, [2]).one_copy(),
    case!(scopes_do_what_guards_do, [2, 3]),
    case!(a_dropped_access_is_completed, [2]),
    case!(a_dropped_exposure_nobody_used_is_closed, [2]),
    case!(a_dropped_exposure_in_use_breaks_the_window, [2]),
    case!(a_wait_on_a_broken_window_ends, [3]),
    case!(an_own_access_excludes_views_of_a_broken_window, [2]),
    case!(a_stalled_wait_keeps_the_memory_closed, [2]),
    case!(a_dropped_window_ends_starts_and_waits, [3]).under(&[""]),
    case!(a_count_that_nobody_can_reach_is_refused, [3]),
    case!(a_complete_shows_nothing_before_the_wait, [2]).over_its_own_memory(),
];

/// A flag that a rank raises at another, beside the window under test.
pub(crate) struct Flags(Window<u64>);

impl Flags {
    pub(crate) fn new(team: &Team) -> rma::Result<Flags> {
        Ok(Flags(crate::flags(team, 8)?))
    }

    pub(crate) fn raise(&self, at: Rank, flag: usize) {
        self.0.lock(at, LockKind::Shared, |epoch| epoch.accumulate(at, flag, Sum, 1)).expect("flags work");
    }

    pub(crate) fn count(&self, flag: usize) -> u64 {
        self.0.load(flag).expect("flags work")
    }

    pub(crate) fn wait_for(&self, flag: usize, count: u64) {
        until(|| count <= self.count(flag));
    }
}

// covers: RMA-SYNC-02, RMA-INFO-01
fn a_start_waits_for_the_post(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 2)?;
    let flags = Flags::new(team)?;
    for round in 1..=20 {
        if team.rank() == Rank(0) {
            flags.wait_for(0, round);
            grace();
            assert_eq!(flags.count(1), round - 1, "the start returned before the post");
            assert_eq!(window.load(0)?, round - 1, "the put arrived before the post");
            let exposure = window.post(Origins::Any)?;
            exposure.wait(1)?;
            assert_eq!(window.load(0)?, round);
        } else {
            flags.raise(Rank(0), 0);
            let access = window.start(Rank(0), Info::Strong)?;
            assert!(window.target_posted(Rank(0))?);
            flags.raise(Rank(0), 1);
            access.put(Rank(0), 0, round)?;
            access.complete()?;
        }
    }
    Ok(())
}

const ROUNDS: u64 = 10_000;

// covers: RMA-SYNC-03
fn stores_before_a_post_are_got(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 100)?;
    for round in 0..ROUNDS {
        if team.rank() == Rank(0) {
            for at in 0..100 {
                window.store(at, round + at as u64)?;
            }
            window.post(Origins::Any)?.wait(1)?;
        } else {
            let mut got = [0; 100];
            window.access(&[Rank(0)], Info::Strong, |epoch| epoch.get(Rank(0), 0, &mut got))?;
            assert!(got.iter().zip(round..).all(|(&value, expected)| value == expected));
        }
    }
    Ok(())
}

// covers: RMA-SYNC-04
fn waits_see_every_round(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    for round in 1..=ROUNDS {
        if team.rank() == Rank(0) {
            window.post(Origins::Any)?.wait(1)?;
            assert_eq!(window.load(0)?, round);
        } else {
            let access = window.start(Rank(0), Info::Strong)?;
            access.put(Rank(0), 0, round)?;
            access.complete()?;
        }
    }
    Ok(())
}

// covers: RMA-SYNC-05
fn buffers_are_free_after_complete(team: &Team) -> Outcome {
    for len in [1, 100, 1 << 20] {
        let mut window = Window::<u32>::allocate(team, len)?;
        if team.rank() == Rank(0) {
            window.post(Origins::Any)?.wait(1)?;
            assert!(window.local()?.iter().zip(5..).all(|(&value, expected)| value == expected));
        } else {
            let mut buffer: Vec<u32> = (5..).take(len).collect();
            let access = window.start(Rank(0), Info::Strong)?;
            access.put(Rank(0), 0, &buffer)?;
            access.complete()?;
            buffer.fill(u32::MAX);
        }
    }
    Ok(())
}

// covers: RMA-SYNC-07 -- its last part is in the next case
fn starts_and_completes_pair_up(team: &Team) -> Outcome {
    let mut window = Window::<u8>::allocate(team, 1)?;
    if team.rank() == Rank(0) {
        window.post(Origins::Any)?.wait(1)?;
        return Ok(());
    }
    let access = window.start(Rank(0), Info::Strong)?;
    assert_eq!(kind_of(window.start(Rank(0), Info::Strong).map(|_| ())), ErrorKind::StartNested);
    // COMPLETE without START, or twice, does not compile: `complete` takes the guard that `start` gave.
    access.complete()?;
    Ok(())
}

// covers: RMA-SYNC-07
fn leaving_with_an_open_start_is_an_error(team: &Team) -> Outcome {
    let mut window = Window::<u8>::allocate(team, 1)?;
    if team.rank() == Rank(0) {
        window.post(Origins::Any)?.wait(1)?;
    } else {
        std::mem::forget(window.start(Rank(0), Info::Strong)?);
    }
    Ok(())
}

// covers: RMA-SYNC-08
fn several_accesses_complete_in_any_order(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    let me = team.rank();
    window.store(0, u64::from(me.0) * 10)?;
    let others: Vec<Rank> = team.ranks().filter(|&rank| rank != me).collect();
    let exposure = window.post(Origins::Any)?;
    let mut accesses = Vec::new();
    for &rank in &others {
        let access = exposure.start(rank, Info::Strong)?;
        let value = access.get_value(rank, 0)?;
        accesses.push((rank, access, value));
    }
    for (rank, access, value) in accesses.into_iter().rev() {
        assert_eq!(access.complete_with(value)?, u64::from(rank.0) * 10);
    }
    exposure.wait(others.len())?;
    Ok(())
}

// covers: RMA-SYNC-09
fn wait_counts_origins(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 4)?;
    let flags = Flags::new(team)?;
    let me = team.rank();
    if me == Rank(0) {
        let exposure = window.post(Origins::Any)?;
        exposure.wait(3)?;
        assert_eq!(flags.count(0), 1, "the third origin had not completed");
    } else {
        let access = window.start(Rank(0), Info::Strong)?;
        access.put(Rank(0), me.index(), 1)?;
        if me == Rank(3) {
            // The other two are done; the wait must not be.
            until(|| window.lock(Rank(0), LockKind::Shared, |_| ()).is_err() && 2 <= flags.count(1));
            grace();
            flags.raise(Rank(0), 0);
            access.complete()?;
        } else {
            access.complete()?;
            flags.raise(Rank(3), 1);
        }
    }
    Ok(())
}

// covers: RMA-SYNC-10
fn wait_shows_everything(team: &Team) -> Outcome {
    const PART: usize = 1 << 20;
    let mut window = Window::<u8>::allocate(team, 3 * PART)?;
    let me = team.rank();
    let byte = |rank: usize, at: usize| (rank * 31 + at % 251) as u8;
    if me == Rank(0) {
        window.post(Origins::Any)?.wait(3)?;
        for (at, &value) in window.local()?.iter().enumerate() {
            assert_eq!(value, byte(at / PART + 1, at % PART));
        }
    } else {
        let part: Vec<u8> = (0..PART).map(|at| byte(me.index(), at)).collect();
        window.access(&[Rank(0)], Info::Weak, |epoch| epoch.put(Rank(0), (me.index() - 1) * PART, &part))?;
    }
    Ok(())
}

// covers: RMA-SYNC-11
fn one_use_of_an_exposure_per_origin(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 3)?;
    let flags = Flags::new(team)?;
    match team.rank() {
        Rank(0) => {
            window.post(Origins::Any)?.wait(2)?;
            // The fast origin has come once, whatever time it had to come twice.
            assert_eq!((window.load(1)?, window.load(2)?), (1, 1));
            window.post(Origins::Any)?.wait(1)?;
            assert_eq!((window.load(1)?, window.load(2)?), (2, 1));
        }
        Rank(1) => {
            for round in 1..=2 {
                let access = window.start(Rank(0), Info::Strong)?;
                access.put(Rank(0), 1, round)?;
                access.complete()?;
                if round == 1 {
                    assert_eq!(
                        kind_of(window.start(Rank(0), Info::NoCheck).and_then(|access| access.complete())),
                        ErrorKind::NotPosted,
                        "this exposure is used up"
                    );
                    flags.raise(Rank(2), 0);
                }
            }
        }
        _ => {
            flags.wait_for(0, 1);
            grace();
            let access = window.start(Rank(0), Info::Strong)?;
            access.put(Rank(0), 2, 1)?;
            access.complete()?;
        }
    }
    Ok(())
}

// covers: RMA-SYNC-12
fn too_many_origins_are_named(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 4)?;
    let flags = Flags::new(team)?;
    let me = team.rank();
    if me == Rank(0) {
        let exposure = window.post(Origins::Any)?;
        flags.wait_for(0, 3);
        let error = exposure.wait(2).expect_err("three have started");
        assert_eq!(error.kind(), ErrorKind::CountExceeded);
        assert!(error.to_string().contains("1, 2, 3"), "{error}");
        // The exposure has ended, and nobody is inside.
        assert_eq!(window.local()?.iter().sum::<u64>(), 3);
    } else {
        let access = window.start(Rank(0), Info::Strong)?;
        flags.raise(Rank(0), 0);
        access.put(Rank(0), me.index(), 1)?;
        access.complete()?;
    }
    Ok(())
}

// covers: RMA-SYNC-13
fn a_wait_for_nobody_returns(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    let flags = Flags::new(team)?;
    if team.rank() == Rank(0) {
        window.post(Origins::Any)?.wait(0)?;
        window.post(Origins::Group(&[]))?.wait_all()?;
        flags.raise(Rank(1), 0);
        flags.wait_for(1, 1);
        grace();
        window.store(0, 5)?;
        window.post(Origins::Any)?.wait(1)?;
    } else {
        flags.wait_for(0, 1);
        flags.raise(Rank(0), 1);
        let access = window.start(Rank(0), Info::Strong)?;
        let value = access.get_value(Rank(0), 0)?;
        assert_eq!(access.complete_with(value)?, 5, "the start got into an exposure that was over");
    }
    Ok(())
}

// covers: RMA-SYNC-15
fn posts_and_waits_alternate(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    for _ in 0..3 {
        window.post(Origins::Any)?.wait(0)?;
    }
    // A second post needs the window by `&mut`, which the first one's guard has; only a leaked guard leaves a way.
    std::mem::forget(window.post(Origins::Any)?);
    assert_eq!(kind_of(window.post(Origins::Any).map(|_| ())), ErrorKind::AlreadyPosted);
    assert_eq!(kind_of(window.local().map(|_| ())), ErrorKind::EpochStillOpen);
    // WAIT on a window that was never posted has no receiver, and does not compile.
    assert_eq!(kind_of(window.free()), ErrorKind::EpochStillOpen);
    Ok(())
}

// covers: RMA-SYNC-17
fn a_group_admits_its_members_only(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 4)?;
    let flags = Flags::new(team)?;
    let me = team.rank();
    if me == Rank(0) {
        let exposure = window.post(Origins::Group(&[Rank(1), Rank(2)]))?;
        for rank in 1..4 {
            flags.raise(Rank(rank), 0);
        }
        flags.wait_for(1, 1);
        flags.raise(Rank(1), 1);
        flags.raise(Rank(2), 1);
        exposure.wait_all()?;
        // Rank 3 has stalled; now it is let in.
        window.post(Origins::Group(&[Rank(3)]))?.wait_all()?;
        assert_eq!(*window.local()?, [0, 1, 1, 1]);
        return Ok(());
    }
    flags.wait_for(0, 1);
    if me == Rank(3) {
        assert_eq!(
            kind_of(window.start(Rank(0), Info::NoCheck).and_then(|access| access.complete())),
            ErrorKind::NotInGroup
        );
        let error = stalled(team, || window.start(Rank(0), Info::Strong));
        assert!(error.to_string().contains("group"), "{error}");
        flags.raise(Rank(0), 1);
    }
    let access = window.start(Rank(0), Info::Strong)?;
    access.put(Rank(0), me.index(), 1)?;
    access.complete()?;
    if me != Rank(3) {
        // Nobody leaves before rank 3 has stalled.
        flags.wait_for(1, 1);
    }
    Ok(())
}

// covers: RMA-SYNC-18
fn a_group_is_waited_for(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 4)?;
    let flags = Flags::new(team)?;
    let me = team.rank();
    if me == Rank(0) {
        window.post(Origins::Group(&[Rank(1), Rank(2), Rank(3)]))?.wait_all()?;
        assert_eq!(flags.count(0), 3, "somebody had not completed");
        let error = window.post(Origins::Any)?.wait_all().expect_err("no group was posted");
        assert_eq!(error.kind(), ErrorKind::WaitWithoutPost);
        assert!(error.to_string().contains("no group was posted; give a count"), "{error}");
    } else {
        let access = window.start(Rank(0), Info::Strong)?;
        grace();
        flags.raise(Rank(0), 0);
        access.complete()?;
    }
    Ok(())
}

// covers: RMA-SYNC-19
fn group_and_count_forms_interoperate(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    let me = team.rank();
    let group = [Rank(1), Rank(2), Rank(3)];
    let forms = [
        (Origins::Any, Expected::Count(3)),
        (Origins::Group(&group), Expected::All),
        (Origins::Group(&group), Expected::Count(3)),
    ];
    for (round, (origins, expected)) in (1..).zip(forms) {
        if me == Rank(0) {
            window.post(origins)?.wait(expected)?;
            assert_eq!(window.load(0)?, 3 * round);
        } else {
            window.access(&[Rank(0)], Info::Strong, |epoch| epoch.accumulate(Rank(0), 0, Sum, 1))?;
        }
    }
    if me == Rank(0) {
        let error = window.post(Origins::Group(&group))?.wait(2).expect_err("the group has three");
        assert_eq!(error.kind(), ErrorKind::CountExceeded);
    } else if me != Rank(3) {
        // The third stays away: it could not say whether it takes one of the two places that the wait counts.
        window.start(Rank(0), Info::Strong)?.complete()?;
    }
    team.barrier()?;
    Ok(())
}

// covers: RMA-SYNC-20
fn start_has_a_group_form(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 2)?;
    if team.rank() == Rank(0) {
        for round in 0..2 {
            if round == 0 {
                let access = window.start_group(&[Rank(1), Rank(2)], Info::Strong)?;
                access.put(Rank(1), 0, 1)?;
                access.put(Rank(2), 0, 2)?;
                assert_eq!(kind_of(access.put(Rank(0), 0, 3)), ErrorKind::TransferOutsideEpoch);
                access.complete()?;
            } else {
                for rank in [1, 2] {
                    let access = window.start(Rank(rank), Info::Strong)?;
                    access.put(Rank(rank), 1, u64::from(rank))?;
                    access.complete()?;
                }
            }
        }
        assert_eq!(
            kind_of(window.start_group(&[Rank(1), Rank(1)], Info::Strong).map(|_| ())),
            ErrorKind::StartNested
        );
    } else {
        window.post(Origins::Any)?.wait(1)?;
        window.post(Origins::Any)?.wait(1)?;
        let me = u64::from(team.rank().0);
        assert_eq!(*window.local()?, [me, me]);
        if team.rank() == Rank(1) {
            // For the list that names this rank twice.
            window.post(Origins::Any)?.wait(1)?;
        }
    }
    Ok(())
}

// covers: RMA-INFO-02
fn weak_data_do_not_arrive_before_the_post(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    let flags = Flags::new(team)?;
    if team.rank() == Rank(0) {
        flags.wait_for(0, 1);
        grace();
        assert_eq!(window.load(0)?, 0);
        window.post(Origins::Any)?.wait(1)?;
        assert_eq!(window.load(0)?, 6);
    } else {
        flags.raise(Rank(0), 0);
        let access = window.start(Rank(0), Info::Weak)?;
        access.put(Rank(0), 0, 6)?;
        access.complete()?;
    }
    Ok(())
}

fn a_kept_promise_needs_no_wait(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    let other = Rank(1 - team.rank().0);
    for round in 1..=1000 {
        let exposure = window.post(Origins::Any)?;
        team.barrier()?;
        let access = exposure.start(other, Info::NoCheck)?;
        access.put(other, 0, round)?;
        access.complete()?;
        exposure.wait(1)?;
        assert_eq!(window.load(0)?, round);
    }
    Ok(())
}

fn a_broken_promise_moves_nothing(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    let other = Rank(1 - team.rank().0);
    let error = window
        .access(&[other], Info::NoCheck, |epoch| epoch.put(other, 0, 1))
        .expect_err("nobody has posted");
    assert_eq!(error.kind(), ErrorKind::NotPosted);
    assert_eq!(error.context().target, Some(other));
    team.barrier()?;
    assert_eq!(window.load(0)?, 0);
    // The views are not affected, and neither is the next epoch.
    window.local_mut()?.fill(1);
    window.fence(|epoch| epoch.put(other, 0, 2))?;
    assert_eq!(window.load(0)?, 2);
    Ok(())
}

// covers: RMA-PROG-11
fn a_stalled_start_says_what_it_waits_for(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    let flags = Flags::new(team)?;
    if team.rank() == Rank(0) {
        window.post(Origins::Any)?.wait(1)?;
        flags.wait_for(0, 1);
    } else {
        window.start(Rank(0), Info::Strong)?.complete()?;
        let error = stalled(team, || window.start(Rank(0), Info::Strong));
        flags.raise(Rank(0), 0);
        for part in ["start", &format!("window {}", window.id()), "rank 0", "exposure 1"] {
            assert!(error.to_string().contains(part), "{part} is missing in: {error}");
        }
    }
    Ok(())
}

// covers: RMA-PROG-03
// covers: EX-F13-01 -- form R
fn the_symmetric_exchange_never_deadlocks(team: &Team) -> Outcome {
    let other = Rank(1 - team.rank().0);
    // The largest takes seconds to get its memory on a busy machine, so only full runs have it.
    let largest = std::env::var_os("RMA_FULL").map(|_| 512 << 20);
    for bytes in [8, 64 << 10, 16 << 20].into_iter().chain(largest) {
        let mut window = Window::<u8>::allocate(team, bytes)?;
        for info in [Info::Strong, Info::Weak] {
            let fill = if info == Info::Strong { 1 } else { 2 } + 10 * team.rank().0 as u8;
            let data = vec![fill; bytes];
            let exposure = window.post(Origins::Any)?;
            let access = exposure.start(other, info)?;
            access.put(other, 0, &data)?;
            access.complete()?;
            exposure.wait(1)?;
            // All bytes at once, as comparing them one by one takes a debug build a minute.
            let expected = vec![fill % 10 + 10 * other.0 as u8; bytes];
            assert!(window.local()?[..] == expected[..]);
        }
    }
    Ok(())
}

// covers: RMA-PROG-01
fn a_posted_target_need_not_help(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    let flags = Flags::new(team)?;
    if team.rank() == Rank(0) {
        let exposure = window.post(Origins::Any)?;
        // No call but loads until the origin has finished, which it does within the time limit or not at all.
        flags.wait_for(0, 1);
        assert_eq!(exposure.load(0)?, 3);
        exposure.wait(1)?;
    } else {
        let access = window.start(Rank(0), Info::Strong)?;
        access.put(Rank(0), 0, 3)?;
        access.complete()?;
        flags.raise(Rank(0), 0);
    }
    Ok(())
}

fn scopes_do_what_guards_do(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, team.size() as usize)?;
    let me = team.rank();
    let others: Vec<Rank> = team.ranks().filter(|&rank| rank != me).collect();
    for round in 1..100 {
        let got = window.exposure(Origins::Group(&others), Expected::All, |exposure| {
            exposure.access(&others, Info::Strong, |epoch| {
                for &other in &others {
                    epoch.put(other, me.index(), round)?;
                }
                others
                    .iter()
                    .map(|&other| epoch.get_value(other, other.index()))
                    .collect::<rma::Result<Vec<_>>>()
            })
        })?;
        assert_eq!(got.len(), others.len());
        for rank in others.iter() {
            assert_eq!(window.load(rank.index())?, round);
        }
    }
    Ok(())
}

fn a_dropped_access_is_completed(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    if team.rank() == Rank(0) {
        for _ in 0..2 {
            window.post(Origins::Any)?.wait(1)?;
        }
        assert_eq!(window.load(0)?, 2);
    } else {
        let access = window.start(Rank(0), Info::Strong)?;
        access.put(Rank(0), 0, 1)?;
        drop(access);
        let outcome = window.access(&[Rank(0)], Info::Strong, |epoch| {
            epoch.put(Rank(0), 0, 2)?;
            epoch.put(Rank(0), 1, 2)
        });
        assert_eq!(
            kind_of(outcome),
            ErrorKind::OutOfBounds,
            "the error of the body ends the access all the same"
        );
    }
    Ok(())
}

fn a_dropped_exposure_nobody_used_is_closed(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    drop(window.post(Origins::Any)?);
    window.local_mut()?.fill(1);
    assert!(!window.target_posted(team.rank())?);
    window.fence(|_| ())?;
    Ok(())
}

fn a_dropped_exposure_in_use_breaks_the_window(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    let flags = Flags::new(team)?;
    if team.rank() == Rank(0) {
        let exposure = window.post(Origins::Any)?;
        flags.wait_for(0, 1);
        drop(exposure);
        let error = window.local().map(|_| ()).expect_err("rank 1 is inside");
        assert_eq!(error.kind(), ErrorKind::Poisoned);
        assert!(error.to_string().contains("rank 1"), "{error}");
        flags.raise(Rank(1), 0);
        flags.wait_for(0, 2);
        assert_eq!(*window.local()?, [4]);
    } else {
        let access = window.start(Rank(0), Info::Strong)?;
        flags.raise(Rank(0), 0);
        flags.wait_for(0, 1);
        // Admitted is admitted.
        access.put(Rank(0), 0, 4)?;
        access.complete()?;
        assert_eq!(kind_of(window.start(Rank(0), Info::Strong).map(|_| ())), ErrorKind::Poisoned);
        flags.raise(Rank(0), 0);
    }
    Ok(())
}

/// A window that others have broken admits nobody, so a wait for origins that have not come can't end well.
fn a_wait_on_a_broken_window_ends(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    let owner = team.rank() == Rank(0);
    let Some(others) = team.split((!owner).then_some(0), 0)? else {
        let exposure = window.post(Origins::Any)?;
        team.barrier()?; // A post that came after the others broke the window would be refused itself.
        assert_eq!(kind_of(exposure.wait(1)), ErrorKind::Poisoned);
        team.barrier()?;
        return Ok(());
    };
    team.barrier()?;
    if team.rank() == Rank(1) {
        let access = window.start(Rank(2), Info::Strong)?;
        others.barrier()?;
        others.barrier()?;
        drop(access);
        assert_eq!(kind_of(window.start(Rank(0), Info::Strong).map(|_| ())), ErrorKind::Poisoned);
    } else {
        let exposure = window.post(Origins::Any)?;
        others.barrier()?;
        drop(exposure);
        others.barrier()?;
    }
    team.barrier()?;
    Ok(())
}

/// An access to the own memory outlives the exposure that let it in when others break the window.
fn an_own_access_excludes_views_of_a_broken_window(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    if team.rank() == Rank(0) {
        let exposure = window.post(Origins::Any)?;
        let own = exposure.start(Rank(0), Info::Strong)?;
        let other = exposure.start(Rank(1), Info::Strong)?;
        team.barrier()?;
        team.barrier()?;
        other.complete()?;
        assert_eq!(kind_of(exposure.start(Rank(1), Info::Strong).map(|_| ())), ErrorKind::Poisoned);
        assert_eq!(kind_of(exposure.local().map(|_| ())), ErrorKind::Poisoned);
        own.put(Rank(0), 0, 7)?;
        own.complete()?;
        assert_eq!(*exposure.local()?, [7]);
        return Ok(());
    }
    let exposure = window.post(Origins::Any)?;
    team.barrier()?;
    drop(exposure);
    team.barrier()?;
    Ok(())
}

fn a_stalled_wait_keeps_the_memory_closed(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    let flags = Flags::new(team)?;
    if team.rank() == Rank(0) {
        let exposure = window.post(Origins::Any)?;
        flags.wait_for(0, 1);
        let error = stalled(team, || exposure.wait(1));
        assert!(error.to_string().contains('1'), "{error}");
        assert_eq!(kind_of(window.local_mut().map(|_| ())), ErrorKind::Poisoned);
        flags.raise(Rank(1), 0);
        flags.wait_for(0, 2);
        assert_eq!(*window.local()?, [4]);
    } else {
        let access = window.start(Rank(0), Info::Strong)?;
        flags.raise(Rank(0), 0);
        flags.wait_for(0, 1);
        access.put(Rank(0), 0, 4)?;
        access.complete()?;
        flags.raise(Rank(0), 0);
    }
    Ok(())
}

fn a_dropped_window_ends_starts_and_waits(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    let me = team.rank();
    if me == Rank(1) {
        // What it has done before counts.
        window.access(&[Rank(0)], Info::Strong, |epoch| epoch.put(Rank(0), 0, 7))?;
        drop(window);
        team.barrier()?;
    } else if me == Rank(0) {
        let exposure = window.post(Origins::Group(&[Rank(1)]))?;
        exposure.wait_all()?;
        assert_eq!(window.load(0)?, 7);
        for origins in [Origins::Group(&[Rank(1)]), Origins::Group(&[Rank(1), Rank(2)])] {
            let error = window.post(origins)?.wait_all().expect_err("rank 1 does not come");
            assert_eq!(error.kind(), ErrorKind::WindowFreed);
            assert!(error.to_string().contains("rank 1"), "{error}");
        }
        // Those that are left can still come.
        team.barrier()?;
        window.post(Origins::Group(&[Rank(2)]))?.wait_all()?;
        assert_eq!(window.load(0)?, 8);
    } else {
        let error = window.start(Rank(1), Info::Strong).map(|_| ()).expect_err("rank 1 posts nothing");
        assert_eq!(error.kind(), ErrorKind::WindowFreed);
        assert!(error.to_string().contains("rank 1"), "{error}");
        assert_eq!(
            kind_of(window.start(Rank(1), Info::NoCheck).and_then(|access| access.complete())),
            ErrorKind::NotPosted
        );
        team.barrier()?;
        window.access(&[Rank(0)], Info::Strong, |epoch| epoch.put(Rank(0), 0, 8))?;
    }
    team.barrier()?;
    Ok(())
}

fn a_count_that_nobody_can_reach_is_refused(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    let error = window.post(Origins::Any)?.wait(4).expect_err("there are three ranks");
    assert_eq!(error.kind(), ErrorKind::CountExceeded);
    assert!(error.to_string().contains('4') && error.to_string().contains('3'), "{error}");
    let group = [Rank(0), Rank(1)];
    assert_eq!(kind_of(window.post(Origins::Group(&group))?.wait(3)), ErrorKind::CountExceeded);
    // The exposure has ended, as nobody was inside.
    window.local_mut()?.fill(1);
    team.barrier()?;
    Ok(())
}

// covers: RMA-SYNC-06 -- without the checked mode, whose report the old value stands for
fn a_complete_shows_nothing_before_the_wait(team: &Team) -> Outcome {
    let options = rma::WindowOptions::new().memory_model(rma::MemoryModel::Separate);
    let mut window = options.allocate::<u64>(team, 1)?;
    let flags = Flags::new(team)?;
    for round in 1..=50 {
        if team.rank() == Rank(0) {
            let exposure = window.post(Origins::Any)?;
            flags.wait_for(0, round);
            assert_eq!(exposure.load(0)?, round - 1);
            exposure.wait(1)?;
            assert_eq!(window.load(0)?, round);
        } else {
            window.access(&[Rank(0)], Info::Strong, |epoch| epoch.put(Rank(0), 0, round))?;
            flags.raise(Rank(0), 0);
        }
    }
    Ok(())
}
