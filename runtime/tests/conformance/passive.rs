//! Epochs toward all ranks, flushes, and requests that own their buffers.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rma::{ErrorKind, Info, LockKind, NoOp, Origins, Rank, Sum, Team, Window};

use crate::{Case, Outcome, case, grace, is_full, kind_of, shares_memory, until};

pub(crate) const CASES: &[Case] = &[
    case!(an_epoch_toward_all_reaches_all, [1, 4, 6]),
    case!(an_epoch_toward_all_shares_locks, [3]),
    case!(an_epoch_toward_all_waits_for_an_exclusive_holder, [2]),
    case!(an_epoch_toward_all_mixes_with_nothing, [2]),
    case!(a_panic_gives_all_locks_back, [2]),
    case!(requests_own_their_buffers, [1, 2]),
    case!(refused_requests_give_buffers_back, [2]),
    case!(two_flushes_do_not_both_miss, [2]).under(&[""]),
    case!(a_flushed_put_is_seen_by_whoever_is_told, [3]),
];

fn raise(flags: &Window<u64>, at: Rank, flag: usize) -> rma::Result<()> {
    flags.lock(at, LockKind::Shared, |epoch| epoch.accumulate(at, flag, Sum, 1))
}

fn an_epoch_toward_all_reaches_all(team: &Team) -> Outcome {
    let window = Window::<u64>::allocate(team, 4)?;
    let me = u64::from(team.rank().0);
    let olds = window.lock_all(|epoch| {
        for round in 1..=50 {
            for target in team.ranks() {
                epoch.accumulate(target, 0, Sum, round)?;
            }
        }
        epoch.flush_all(())?;
        let mut olds = Vec::new();
        for target in team.ranks() {
            let now = epoch.flush(target, epoch.get_accumulate(target, 0..1, NoOp, [0])?)?;
            assert!(1275 <= now[0], "the own ones at least: {now:?}");
            olds.push(epoch.fetch_op(target, 1, Sum, me + 1)?);
        }
        epoch.flush_local(Rank(0), ())?;
        epoch.flush_local_all(())?;
        Ok(olds)
    })?;
    assert_eq!(olds.len(), team.size() as usize);
    team.barrier()?;
    let ranks = u64::from(team.size());
    assert_eq!(*window.local()?, [1275 * ranks, ranks * (ranks + 1) / 2, 0, 0]);
    Ok(())
}

fn an_epoch_toward_all_shares_locks(team: &Team) -> Outcome {
    let (window, flags) = (Window::<u64>::allocate(team, 1)?, crate::flags(team, 8)?);
    // All are inside at once, at the same target.
    window.lock_all(|epoch| {
        epoch.accumulate(Rank(0), 0, Sum, 1)?;
        raise(&flags, Rank(0), 0)?;
        let all = u64::from(team.size());
        until(|| flags.lock(Rank(0), LockKind::Shared, |epoch| epoch.get_value(Rank(0), 0)).unwrap() == all);
        Ok(())
    })?;
    team.barrier()?;
    // Nothing is left.
    window.lock(Rank(0), LockKind::Exclusive, |epoch| epoch.put(Rank(0), 0, 7))?;
    Ok(())
}

fn an_epoch_toward_all_waits_for_an_exclusive_holder(team: &Team) -> Outcome {
    let (window, flags) = (Window::<u64>::allocate(team, 2)?, crate::flags(team, 8)?);
    match team.rank() {
        Rank(0) => {
            window.lock(Rank(0), LockKind::Exclusive, |epoch| {
                raise(&flags, Rank(1), 0)?;
                // The other has been to its own window, and waits for this one.
                until(|| flags.load(1).unwrap() == 1);
                grace();
                let there = epoch.flush(epoch.get_value(Rank(0), 0)?)?;
                assert_eq!(there, 0, "the put waits");
                epoch.put(Rank(0), 1, 5)
            })?;
        }
        _ => {
            until(|| flags.load(0).unwrap() == 1);
            let found = window.lock_all(|epoch| {
                epoch.put(Rank(1), 0, 3)?;
                raise(&flags, Rank(0), 1)?;
                epoch.put(Rank(0), 0, 4)?;
                epoch.get_value(Rank(0), 1)
            })?;
            assert_eq!(found, 5, "what the holder put");
        }
    }
    team.barrier()?;
    assert_eq!(window.local()?[0], if team.rank() == Rank(0) { 4 } else { 3 });
    Ok(())
}

fn an_epoch_toward_all_mixes_with_nothing(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    let other = Rank(1 - team.rank().0);
    window.lock_all(|epoch| {
        let inner = window.lock(other, LockKind::Shared, |_| ());
        let error = inner.expect_err("all are locked");
        assert_eq!(error.kind(), ErrorKind::LockHeld);
        assert!(error.to_string().contains("toward all ranks"), "{error}");
        epoch.put(other, 0, 1)?;
        assert_eq!(kind_of(window.lock(other, LockKind::Exclusive, |_| ())), ErrorKind::LockHeld);
        assert_eq!(kind_of(window.lock_all(|_| ())), ErrorKind::LockHeld);
        assert_eq!(kind_of(window.start(other, Info::Strong).map(drop)), ErrorKind::MixedSync);
        assert!(window.local().is_err(), "others may write");
        assert_eq!(kind_of(epoch.put(Rank(2), 0, 1)), ErrorKind::RankOutOfRange);
        Ok(())
    })?;
    let kind = window.lock(other, LockKind::Shared, |_| rma::Plain(kind_of(window.lock_all(|_| ()))))?;
    assert_eq!(kind, ErrorKind::LockHeld);
    team.barrier()?;
    let exposure = window.post(Origins::Any)?;
    let access = exposure.start(other, Info::Strong)?;
    assert_eq!(kind_of(exposure.lock_all(|_| ())), ErrorKind::MixedSync);
    access.complete()?;
    exposure.wait(1)?;
    Ok(())
}

fn a_panic_gives_all_locks_back(team: &Team) -> Outcome {
    let window = Window::<u64>::allocate(team, 1)?;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        window.lock_all(|epoch| {
            for target in team.ranks() {
                epoch.accumulate(target, 0, Sum, 1)?;
            }
            if team.rank() == Rank(0) {
                panic!("on purpose");
            }
            Ok(())
        })
    }));
    assert_eq!(outcome.is_err(), team.rank() == Rank(0));
    for target in team.ranks() {
        window.lock(target, LockKind::Exclusive, |epoch| epoch.accumulate(target, 0, Sum, 10))?;
    }
    team.barrier()?;
    assert_eq!(window.local()?[0], 11 * u64::from(team.size()));
    Ok(())
}

fn requests_own_their_buffers(team: &Team) -> Outcome {
    let mut window = Window::<i32>::allocate(team, 16)?;
    let target = Rank(team.size() - 1);
    if team.rank() == Rank(0) {
        window.lock(target, LockKind::Exclusive, |epoch| {
            let put = epoch.rput(target, 2, vec![1, 2, 3])?;
            let add = epoch.raccumulate(target, 3, Sum, [10, 10])?;
            until(|| put.test() && add.test());
            // What comes back is free at once.
            let mut three = put.wait()?;
            three.fill(-1);
            assert_eq!(add.wait()?, [10, 10]);
            let put = epoch.rput(target, 8, three.into_boxed_slice())?;
            let old = epoch.rget_accumulate(target, 4, Sum, [5])?.wait()?;
            assert_eq!(old, [13]);
            assert_eq!(epoch.rget(target, 1..6, [9; 5])?.wait()?, [0, 1, 12, 18, 0]);
            assert_eq!(*put.wait()?, [-1, -1, -1]);
            // A request that nobody waits for is complete when the epoch is.
            drop(epoch.rput(target, 15, vec![6])?);
            Ok(())
        })?;
    }
    team.barrier()?;
    if team.rank() == target {
        assert_eq!(*window.local()?, [0, 0, 1, 12, 18, 0, 0, 0, -1, -1, -1, 0, 0, 0, 0, 6]);
    }
    team.barrier()?;
    // Every epoch has them.
    window.fence(|epoch| {
        epoch.rput(target, team.rank().index(), [7])?.wait()?;
        Ok(())
    })?;
    let value = window.lock_all(|epoch| Ok(rma::Plain(epoch.rget(target, 0, [0])?.wait()?)))?;
    assert_eq!(value, [7]);
    Ok(())
}

fn refused_requests_give_buffers_back(team: &Team) -> Outcome {
    let window = Window::<u64>::allocate(team, 4)?;
    let other = Rank(1 - team.rank().0);
    window.lock(other, LockKind::Shared, |epoch| {
        let refused = epoch.rput(other, 2, vec![1, 2, 3]).expect_err("two are left");
        assert_eq!((refused.error.kind(), refused.memory), (ErrorKind::OutOfBounds, vec![1, 2, 3]));
        let refused = epoch.rget(team.rank(), 0, [4, 5]).expect_err("not locked");
        assert_eq!((refused.error.kind(), refused.memory), (ErrorKind::TransferOutsideEpoch, [4, 5]));
        let refused = epoch.rget_accumulate(other, 9, Sum, Box::from([6_u64])).expect_err("outside");
        assert_eq!((refused.error.kind(), &*refused.memory), (ErrorKind::OutOfBounds, &[6][..]));
        // `?` makes the error alone of it.
        fn put(epoch: &rma::LockEpoch<'_, u64>, target: Rank) -> rma::Result<()> {
            epoch.raccumulate(target, 0..3, Sum, vec![1])?.wait()?;
            Ok(())
        }
        assert_eq!(kind_of(put(epoch, other)), ErrorKind::LengthMismatch);
        Ok(())
    })?;
    team.barrier()?;
    assert_eq!(*window.local()?, [0; 4]);
    Ok(())
}

/// Each puts, flushes and gets what the other puts: one of them comes second, and sees the other's. The two go through many places
/// side by side, so that they meet at some.
fn two_flushes_do_not_both_miss(team: &Team) -> Outcome {
    const PLACES: usize = 2048;
    let rounds = if is_full() && shares_memory(team)? { 5000 } else { 100 };
    let mut window = Window::<u64>::allocate(team, 2 * PLACES)?;
    for _ in 0..rounds {
        window.local_mut()?.fill(0);
        let mut missed = window.lock_all(|epoch| {
            let mut missed = vec![0_u8; PLACES];
            team.barrier()?;
            for (place, missed) in missed.iter_mut().enumerate() {
                let mine = 2 * place + team.rank().index();
                epoch.put(Rank(0), mine, 1)?;
                epoch.flush(Rank(0), ())?;
                *missed = u8::from(epoch.flush_local(Rank(0), epoch.get_value(Rank(0), mine ^ 1)?)? == 0);
            }
            Ok(rma::Plain(missed))
        })?;
        team.allreduce(&mut missed, Sum)?;
        assert_eq!(
            missed.iter().position(|&both| both == 2),
            None,
            "a place where both missed the other's put"
        );
    }
    Ok(())
}

/// A chain: data, flush, a flag; whoever reads the flag syncs and reads the data.
fn a_flushed_put_is_seen_by_whoever_is_told(team: &Team) -> Outcome {
    let window = Window::<u64>::allocate(team, 64)?;
    let (me, next) = (team.rank(), Rank((team.rank().0 + 1) % team.size()));
    window.lock_all(|epoch| {
        for round in 1..=300_u64 {
            epoch.put(next, 0, [round * 3 + u64::from(me.0); 60])?;
            epoch.flush(next, ())?;
            epoch.put(next, 63, round)?;
            epoch.flush(next, ())?;
            let previous = u64::from((me.0 + team.size() - 1) % team.size());
            // The own memory is read by a get, which needs no copy of it to be moved.
            until(|| epoch.flush(me, epoch.get_value(me, 63)).unwrap() == round);
            epoch.sync()?;
            let mut data = [0; 60];
            epoch.read(0, &mut data)?;
            assert_eq!(data, [round * 3 + previous; 60]);
            team.barrier()?;
        }
        Ok(())
    })?;
    Ok(())
}
