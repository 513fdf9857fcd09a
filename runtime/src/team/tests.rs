//! Collective calls among threads; processes are covered by `tests/`. Never starts one.

use std::time::Duration;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::{Rank, Team};
use crate::error::{Error, ErrorKind, Evidence};
use crate::liveness::{Act, NO_BLOCKER, Needs, WaitFor};
use crate::run::Job;
use crate::sync::event::Event;
use crate::window::Window;

const LIMIT: Duration = Duration::from_secs(20);

#[test]
fn everybody_gets_everybodys_bytes() {
    for ranks in [1, 2, 3, 5, 8] {
        let all = Job::new(ranks)
            .time_limit(LIMIT)
            .spawn(|team| {
                // Lengths differ, and the longest takes several rounds.
                let mine = vec![team.rank().0 as u8; team.rank().index() * 9_001];
                team.barrier().unwrap();
                team.allgather_bytes("exchange", &mine).unwrap()
            })
            .unwrap();
        for seen in all {
            for (rank, bytes) in seen.iter().enumerate() {
                assert_eq!(bytes.len(), rank * 9_001);
                assert!(bytes.iter().all(|&byte| byte == rank as u8));
            }
        }
    }
}

#[test]
fn a_panic_ends_the_waits_of_others() {
    let error = Job::new(3)
        .spawn(|team| {
            if team.rank() == Rank(1) {
                panic!("on purpose");
            }
            let error = team.barrier().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::PeerLost);
            assert_eq!(error.context().lost, Some(Rank(1)));
            assert_eq!(error.context().evidence, Some(Evidence::Panicked));
        })
        .unwrap_err();
    assert_eq!(error.context().lost, Some(Rank(1)));
    assert!(error.to_string().ends_with("on purpose"), "{error}");
}

#[test]
fn a_limit_ends_a_wait_with_a_report() {
    let reports = Job::new(2)
        .time_limit(Duration::from_millis(200))
        .spawn(|team| match team.rank() {
            Rank(0) => team.barrier().unwrap_err(),
            _ => {
                // Comes when the other has given up and left.
                while crate::liveness::ended(team.context().segment()) == 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
                team.barrier().unwrap_err()
            }
        })
        .unwrap();
    assert_eq!(reports[0].kind(), ErrorKind::Stalled);
    let text = reports[0].to_string();
    assert!(text.contains("rank 0 waits in barrier for rank 1 (meeting 1) since"), "{text}");
    assert!(text.contains("rank 1 does not wait"), "{text}");
    assert_eq!(reports[1].kind(), ErrorKind::PeerLost, "{}", reports[1]);
    assert_eq!(reports[1].context().evidence, Some(Evidence::Finished));
}

/// Waits for an event that nobody notifies, as a window's calls do.
fn wait_in_vain(
    team: &Team,
    window: u64,
    act: Act,
    needs: Needs<'_>,
    ready: impl FnMut() -> Option<()>,
) -> Error {
    let block = team.context().allocate("test", 64).unwrap();
    let event: &Event = team.context().segment().shared(block.offset());
    let what = WaitFor {
        call: "fence",
        window: Some(window),
        team: team.members(),
        needs,
        act,
        detail: Some(("phase", 7)),
        blocker: NO_BLOCKER,
    };
    team.context().wait(event, what, ready).unwrap_err()
}

#[test]
fn a_peer_that_does_not_look_is_not_accused() {
    let (looks_no_more, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    let until = |flag: &AtomicBool| {
        while !flag.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let errors = Job::new(2)
        .time_limit(Duration::from_secs(1))
        .spawn(|team| match team.rank() {
            // Its wait is over, but like a stopped process it does not come to see that.
            Rank(1) => {
                let mut looks = 0;
                wait_in_vain(team, 4, Act::Collective, Needs::All, || {
                    looks += 1;
                    if looks == 200 {
                        looks_no_more.store(true, Ordering::Release);
                        until(&is_over);
                    }
                    None
                })
            }
            _ => {
                until(&looks_no_more);
                let error = wait_in_vain(team, 3, Act::Collective, Needs::All, || None);
                is_over.store(true, Ordering::Release);
                error
            }
        })
        .unwrap();
    let text = errors[0].to_string();
    assert_eq!(errors[0].kind(), ErrorKind::Stalled, "{text}");
    assert!(text.contains("1s have passed; phase 7;"), "{text}");
    assert!(text.contains("rank 0 waits in fence on window 3 for rank 1 (phase 7)"), "{text}");
}

/// The board shows the wait of a rank's first thread, so whoever notes an end can't wake a second one: its own looks must not
/// be as rare as those of waiters in large jobs.
#[test]
fn a_second_thread_looks_often_by_itself() {
    const RANKS: u32 = 160;
    let looks = Job::new(RANKS)
        .spawn(|team| {
            let second_team = team.duplicate().unwrap();
            if team.rank() != Rank(0) {
                return None;
            }
            // The ends of the others wake whoever is on the board, so they come before.
            while crate::liveness::ended(team.context().segment()) != RANKS - 1 {
                std::thread::sleep(Duration::from_millis(1));
            }
            team.context().set_limit(Some(Duration::from_secs(2)));
            let on_the_board = AtomicBool::new(false);
            let count = |team: &Team, board: Option<&AtomicBool>| {
                let mut looks = 0;
                wait_in_vain(team, 1, Act::Any, Needs::AnyOf(&[]), || {
                    looks += 1;
                    if let Some(board) = board {
                        board.store(1 < looks, Ordering::Release);
                    }
                    None
                });
                looks
            };
            Some(std::thread::scope(|scope| {
                let second = scope.spawn(|| {
                    let team = second_team;
                    while !on_the_board.load(Ordering::Acquire) {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    count(&team, None)
                });
                (count(team, Some(&on_the_board)), second.join().unwrap())
            }))
        })
        .unwrap();
    let Some((first, second)) = looks[0] else { panic!("rank 0 counts") };
    // Half a second apart, and a twentieth of a second; a busy machine slows both down.
    assert!(2 * first < second, "{first} looks of the first thread, {second} of the second");
}

#[test]
fn a_wait_ends_with_the_ranks_that_it_needs() {
    let done = AtomicU32::new(0);
    let errors = Job::new(4)
        .time_limit(Duration::from_secs(2))
        .spawn(|team| {
            let two_and_three = [Rank(2), Rank(3)];
            let error = match team.rank() {
                Rank(0) => wait_in_vain(team, 1, Act::Toward(Rank(3)), Needs::One(Rank(3)), || None),
                Rank(1) => wait_in_vain(team, 1, Act::Any, Needs::AnyOf(&two_and_three), || None),
                // Still there when rank 3 has left.
                Rank(2) => loop {
                    match done.load(Ordering::Acquire) {
                        1 => return None,
                        _ => std::thread::sleep(Duration::from_millis(1)),
                    }
                },
                _ => return None,
            };
            if team.rank() == Rank(0) {
                std::thread::sleep(Duration::from_millis(200));
                done.store(1, Ordering::Release);
            }
            Some(error)
        })
        .unwrap();
    let toward = errors[0].as_ref().unwrap();
    assert_eq!((toward.kind(), toward.context().lost), (ErrorKind::PeerLost, Some(Rank(3))));
    assert_eq!(toward.context().target, Some(Rank(3)));
    // One of the two was there until the first one's error, and the wait lasted until both had left.
    assert_eq!(errors[1].as_ref().unwrap().kind(), ErrorKind::PeerLost);
}

#[test]
fn what_is_left_open_is_an_error_at_the_end() {
    let error = Job::new(2)
        .spawn(|team| {
            if team.rank() == Rank(1) {
                team.context().leave_open(Error::new(ErrorKind::EpochStillOpen, "dropping a request"));
            }
        })
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::EpochStillOpen);
}

#[test]
fn the_memory_of_a_kept_team_is_not_used_again() {
    let teams = Job::new(2)
        .time_limit(LIMIT)
        .spawn(|team| {
            let kept = team.duplicate().unwrap();
            (kept, team.duplicate().unwrap())
        })
        .unwrap();
    let [(first, other), (second, _)]: [_; 2] = teams.try_into().unwrap();
    let place = match &first.ground {
        super::Ground::Mapped(place) => place.offset(),
        super::Ground::Wired => unreachable!("threads share memory"),
    };
    // The maker gives its handle up, and both programs have returned: the other handle is still there.
    drop(first);
    let context = std::sync::Arc::clone(other.context());
    let bytes = super::collective::Place::bytes(2);
    let taken: Vec<_> = (0..4).map(|_| context.allocate("test", bytes).unwrap()).collect();
    assert!(taken.iter().all(|block| block.offset() != place), "the memory of a team that a member has kept");
    drop(second);
    drop(taken);
    let taken = context.allocate("test", bytes).unwrap();
    assert_eq!(taken.offset(), place, "nobody has the team any more");
}

#[test]
fn memory_that_was_offered_in_a_failed_call_is_not_used_again() {
    const BYTES: usize = 1 << 20;
    let gave_up = AtomicBool::new(false);
    Job::new(2)
        .spawn(|team| {
            let other = team.duplicate().unwrap();
            if team.rank() == Rank(0) {
                let context = team.context();
                let next = context.allocate("test", BYTES).unwrap().offset();
                context.set_limit(Some(Duration::from_millis(200)));
                // The other member comes too late for this one, and could find all that it needs.
                let refused = Window::<u8>::allocate(&other, BYTES / 2).unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::Stalled);
                assert_ne!(context.allocate("test", BYTES).unwrap().offset(), next);
                gave_up.store(true, Ordering::Release);
            } else {
                while !gave_up.load(Ordering::Acquire) {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        })
        .unwrap();
}
