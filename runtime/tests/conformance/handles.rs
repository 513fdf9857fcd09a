//! What becomes of results and requests that are used out of their time: after their epoch, after a failure, twice, or never, since
//! they were leaked. What can't be written at all is in `tests/ui`.

use rma::pgo::{self, PUTS_OK, over};
use rma::{ErrorKind, Info, LockKind, Origins, Rank, Team, Window};

use crate::{Case, Outcome, case, kind_of};

pub(crate) const CASES: &[Case] = &[
    case!(a_later_epoch_opens_what_the_earlier_one_got, [2]),
    case!(results_of_a_leaked_epoch_stay_closed, [2]),
    case!(requests_of_an_earlier_phase_are_complete, [2]),
    case!(dropped_and_leaked_transfers_arrive, [2]).under(&[""]),
    case!(a_leaked_istart_stays_asked, [2]).under(&[""]),
    case!(a_leaked_iwait_is_found_again, [2]).under(&[""]),
    case!(a_request_that_failed_fails_again, [3]),
    case!(leaked_turns_end_with_the_window, [2]).under(&[""]),
    case!(an_offer_at_its_end_says_so, [1]).one_copy().under(&[""]),
];

/// The results of a guard may outlive it. A window has one epoch toward a rank at a time, so the epoch that opens them comes after
/// their own; what they hold is what their own call has brought.
fn a_later_epoch_opens_what_the_earlier_one_got(team: &Team) -> Outcome {
    let window = Window::<u64>::allocate(team, 1)?;
    let (mine, other) = (team.rank(), Rank(1 - team.rank().0));
    window.lock(mine, LockKind::Exclusive, |epoch| epoch.store(0, 5))?;
    team.barrier()?;
    let lock = window.acquire(other, LockKind::Shared, Info::Strong)?;
    let (first, second) = (lock.get_value(other, 0)?, lock.get_vec(other, 0..1)?);
    // Nothing that could open them begins meanwhile.
    let again = window.lock(other, LockKind::Shared, |_| ());
    assert_eq!(kind_of(again), ErrorKind::LockHeld);
    assert_eq!(kind_of(window.start(other, Info::Strong).map(|_| ())), ErrorKind::MixedSync);
    assert_eq!(kind_of(window.lock_all(|_| ())), ErrorKind::LockHeld);
    lock.unlock()?;
    team.barrier()?;
    window.lock(mine, LockKind::Exclusive, |epoch| epoch.store(0, 9))?;
    team.barrier()?;
    let later = window.acquire(other, LockKind::Shared, Info::Strong)?;
    let third = later.get_value(other, 0)?;
    assert_eq!(later.unlock_with((first, third))?, (5, 9));
    assert_eq!(window.lock_all(|_| second)?, [5]);
    Ok(())
}

fn results_of_a_leaked_epoch_stay_closed(team: &Team) -> Outcome {
    let window = Window::<u64>::allocate(team, 1)?;
    let (mine, other) = (team.rank(), Rank(1 - team.rank().0));
    let lock = window.acquire(other, LockKind::Shared, Info::Strong)?;
    let value = lock.get_value(other, 0)?;
    std::mem::forget(lock);
    // No epoch toward the rank begins any more, and no other opens the result.
    assert_eq!(
        kind_of(window.acquire(other, LockKind::Shared, Info::Strong).map(|_| ())),
        ErrorKind::LockHeld
    );
    assert_eq!(kind_of(window.lock(mine, LockKind::Shared, |_| value)), ErrorKind::OriginBufferBusy);
    team.barrier()?;
    assert_eq!(kind_of(window.free()), ErrorKind::EpochStillOpen);
    team.barrier()?;
    Ok(())
}

fn requests_of_an_earlier_phase_are_complete(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 2)?;
    let (me, other) = (u64::from(team.rank().0), Rank(1 - team.rank().0));
    let got = window.fence(|epoch| {
        let put = epoch.rput(other, 0, vec![me + 1])?;
        epoch.fence()?;
        let get = epoch.rget(other, 0, vec![0])?;
        epoch.fence()?;
        assert!(put.test() && get.test());
        Ok::<_, rma::Error>(rma::Plain((put.wait()?, get.wait()?)))
    })?;
    assert_eq!(got, (vec![me + 1], vec![me + 1]));
    assert_eq!(window.load(0)?, 2 - me);
    Ok(())
}

fn dropped_and_leaked_transfers_arrive(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 2)?;
    if team.rank() == Rank(0) {
        window.post(Origins::Any)?.wait(1)?;
        assert_eq!(*window.local()?, [7, 8]);
    } else {
        let access = window.start(Rank(0), Info::Weak.with("weak", "complete"))?;
        drop(access.rput(Rank(0), 0, vec![7])?);
        std::mem::forget(access.rput(Rank(0), 1, vec![8])?);
        std::mem::forget(access.rget(Rank(0), 0, vec![0; 2])?);
        access.complete()?;
    }
    Ok(())
}

fn a_leaked_istart_stays_asked(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    let (mine, other) = (team.rank(), Rank(1 - team.rank().0));
    std::mem::forget(window.istart(other, Info::Strong)?);
    assert_eq!(kind_of(window.start(other, Info::Strong).map(|_| ())), ErrorKind::StartNested);
    assert_eq!(kind_of(window.istart(other, Info::Strong).map(|_| ())), ErrorKind::StartNested);
    assert_eq!(kind_of(window.lock(mine, LockKind::Shared, |_| ())), ErrorKind::MixedSync);
    assert_eq!(kind_of(window.lock_all(|_| ())), ErrorKind::MixedSync);
    assert_eq!(kind_of(window.fence(|_| ())), ErrorKind::MixedSync);
    let outside = window.access(&[], Info::Strong, |epoch| epoch.put(other, 0, 5));
    assert_eq!(kind_of(outside), ErrorKind::TransferOutsideEpoch);
    team.barrier()?;
    assert_eq!(kind_of(window.free()), ErrorKind::EpochStillOpen);
    team.barrier()?;
    Ok(())
}

fn a_leaked_iwait_is_found_again(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    if team.rank() == Rank(0) {
        std::mem::forget(window.post(Origins::Any)?.iwait(1)?);
        assert_eq!(kind_of(window.post(Origins::Any).map(|_| ())), ErrorKind::AlreadyPosted);
        assert_eq!(kind_of(window.local().map(|_| ())), ErrorKind::EpochStillOpen);
        assert_eq!(kind_of(window.fence(|_| ())), ErrorKind::MixedSync);
        window.posted()?.wait(1)?;
        assert_eq!(*window.local()?, [3]);
    } else {
        window.access(&[Rank(0)], Info::Strong, |epoch| epoch.put(Rank(0), 0, 3))?;
    }
    Ok(())
}

/// Whoever asks again gets the error again, and is never told that what failed has come.
fn a_request_that_failed_fails_again(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    match team.rank() {
        Rank(0) => {
            let mut request = window.istart(Rank(2), Info::Strong)?;
            team.barrier()?;
            team.barrier()?;
            assert_eq!(kind_of(request.test()), ErrorKind::WindowFreed);
            assert_eq!(kind_of(request.test()), ErrorKind::WindowFreed);
            assert_eq!(kind_of(request.wait().map(|_| ())), ErrorKind::WindowFreed);
            window.local_mut()?.fill(1);
        }
        Rank(1) => {
            let mut request = window.post(Origins::Group(&[Rank(2)]))?.iwait(1)?;
            team.barrier()?;
            team.barrier()?;
            assert_eq!(kind_of(request.test()), ErrorKind::WindowFreed);
            assert_eq!(kind_of(request.test()), ErrorKind::WindowFreed);
            assert_eq!(kind_of(request.wait()), ErrorKind::WindowFreed);
            window.local_mut()?.fill(1);
        }
        _ => {
            team.barrier()?;
            drop(window);
            team.barrier()?;
        }
    }
    team.barrier()?;
    Ok(())
}

fn leaked_turns_end_with_the_window(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 1)?;
    if team.rank() == Rank(0) {
        let mut turns = window.two_call();
        turns.post2(Rank(1))?;
        team.barrier()?;
        // Rank 1 has leaked its turn, which ends with its handle of the window.
        turns.wait2(0)?;
        assert_eq!(turns.load(0)?, 4);
    } else {
        let mut turns = window.two_call();
        turns.wait2(1)?;
        turns.put(Rank(0), 0, 4)?;
        std::mem::forget(turns);
        assert_eq!(kind_of(window.start(Rank(0), Info::Strong).map(|_| ())), ErrorKind::StartNested);
        assert_eq!(kind_of(window.fence(|_| ())), ErrorKind::MixedSync);
        team.barrier()?;
        assert_eq!(kind_of(window.free()), ErrorKind::EpochStillOpen);
    }
    team.barrier()?;
    Ok(())
}

fn an_offer_at_its_end_says_so(team: &Team) -> Outcome {
    let mut request = pgo::ioffer(team, 1, over(vec![0_u8; 1], PUTS_OK), 0)?;
    let mut elsewhere = pgo::ioffer(team, 2, over(vec![0_u8; 1], PUTS_OK), 0)?;
    pgo::scope(team, 1, |scope| {
        assert_eq!(kind_of(scope.test(&mut elsewhere)), ErrorKind::MixedSync);
        assert_eq!(kind_of(scope.wait(&mut elsewhere)), ErrorKind::MixedSync);
        Ok::<(), rma::Error>(())
    })?;
    assert_eq!(elsewhere.wait()?.events(), 0);
    assert_eq!(request.wait()?.events(), 0);
    // Neither "not yet" nor a second status.
    assert_eq!(kind_of(request.test()), ErrorKind::NotOffered);
    assert_eq!(kind_of(request.wait()), ErrorKind::NotOffered);
    let mut standing = pgo::offer_init(team, 3, over(vec![0_u8; 1], PUTS_OK), 0)?;
    assert_eq!(kind_of(standing.wait()), ErrorKind::NotOffered);
    standing.start()?;
    assert_eq!(kind_of(standing.start()), ErrorKind::EpochStillOpen);
    assert_eq!(kind_of(standing.buffer().map(|_| ())), ErrorKind::LocalAccessDuringOffer);
    standing.wait()?;
    assert_eq!(kind_of(standing.wait()), ErrorKind::NotOffered);
    Ok(())
}
