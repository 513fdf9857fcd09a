//! What annotated functions do at run time: the calls that they make, on every way out of the body, and the errors that
//! only a running program can earn. Never looks at generated text: `tests/expand.rs` does that.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rma::{ErrorKind, Info, LockKind, Origins, Rank, Team, Window, own, rma_epoch, rma_test};

/// Calls with their targets and ranges, in order.
type Calls = Vec<(&'static str, Option<Rank>, Option<std::ops::Range<usize>>)>;

fn calls(w: &Window<u64>) -> Calls {
    w.take_trace().into_iter().map(|event| (event.call, event.target, event.range)).collect()
}

fn names(w: &Window<u64>) -> Vec<&'static str> {
    calls(w).into_iter().map(|(call, ..)| call).collect()
}

fn right_of(team: &Team) -> Rank {
    Rank((team.rank().0 + 1) % team.size())
}

// The same epochs by macro and by hand.

#[rma_epoch(fence(w))]
fn fence_by_macro(w: &mut Window<u64>, right: Rank, row: &[u64]) -> rma::Result<u64> {
    w.at(right)[0] = w[1];
    w.at(right)[2..4].copy_from_slice(row);
    w.fence()?;
    w.at(right)[4] += 5;
    Ok(w.at(right)[0])
}

fn fence_by_hand(w: &mut Window<u64>, right: Rank, row: &[u64]) -> rma::Result<u64> {
    w.fence(|epoch| {
        epoch.put(right, 0, own(1..2))?;
        epoch.put(right, 2..4, row)?;
        epoch.fence()?;
        epoch.accumulate(right, 4, rma::Sum, [5])?;
        epoch.get_value(right, 0)
    })
}

#[rma_epoch(access(w, targets = [right]))]
fn access_by_macro(w: &Window<u64>, right: Rank, value: u64) -> rma::Result<()> {
    w.at(right)[0] = value;
    Ok(())
}

fn access_by_hand(w: &Window<u64>, right: Rank, value: u64) -> rma::Result<()> {
    w.access(&[right], Info::Strong, |epoch| epoch.put(right, 0, [value]))
}

#[rma_epoch(exposure(w, origins = [left]))]
fn exposure_by_macro(w: &mut Window<u64>, left: Rank) -> rma::Result<()> {
    Ok(())
}

fn exposure_by_hand(w: &mut Window<u64>, left: Rank) -> rma::Result<()> {
    w.exposure(Origins::Group(&[left]), rma::Expected::All, |_| ())
}

#[rma_epoch(exchange(w, targets = [peer], origins = [peer]))]
fn exchange_by_macro(w: &mut Window<u64>, peer: Rank) -> rma::Result<u64> {
    w.at(peer)[0] = w[1];
    Ok(w.at(peer)[2])
}

fn exchange_by_hand(w: &mut Window<u64>, peer: Rank) -> rma::Result<u64> {
    let exposure = w.post(Origins::Group(&[peer]))?;
    let access = exposure.start(peer, Info::Strong)?;
    access.put(peer, 0, own(1..2))?;
    let value = access.get_value(peer, 2)?;
    let value = access.complete_with(value)?;
    exposure.wait_all()?;
    Ok(value)
}

#[rma_epoch(lock(w, rank = owner, exclusive))]
fn lock_by_macro(w: &Window<u64>, owner: Rank) -> rma::Result<(u64, u64)> {
    let old = w.at(owner)[5].fetch_add(1);
    let seen = w.at(owner)[6].compare_swap(0, 1);
    Ok((old, seen))
}

fn lock_by_hand(w: &Window<u64>, owner: Rank) -> rma::Result<(u64, u64)> {
    w.lock(owner, LockKind::Exclusive, |epoch| -> rma::Result<_> {
        let old = epoch.fetch_op(owner, 5, rma::Sum, 1)?;
        let seen = epoch.compare_swap(owner, 6, 0, 1)?;
        Ok((old, seen))
    })
}

// covers: RMA-MAC-01
#[rma_test(ranks = 2, transports = [local, shm, tcp])]
fn every_kind_makes_the_calls_of_the_hand_written_form(team: &Team) -> rma::Result<()> {
    let peer = right_of(team);
    let mut w = Window::<u64>::allocate(team, 8)?;
    w.local_mut()?.copy_from_slice(&[0, 1, 2, 3, 4, 5, 6, 7]);
    team.barrier()?;
    w.start_trace();

    let by_macro = (fence_by_macro(&mut w, peer, &[8, 9])?, calls(&w));
    let by_hand = (fence_by_hand(&mut w, peer, &[8, 9])?, calls(&w));
    assert_eq!(by_macro, by_hand);
    let names: Vec<_> = by_hand.1.iter().map(|(call, ..)| *call).collect();
    assert_eq!(names, ["fence", "put", "put", "fence", "accumulate", "get", "fence"]);

    if team.rank() == Rank(0) {
        access_by_macro(&w, peer, 3)?;
        let by_macro = calls(&w);
        access_by_hand(&w, peer, 3)?;
        assert_eq!(by_macro, calls(&w));
        assert_eq!(by_macro.iter().map(|(call, ..)| *call).collect::<Vec<_>>(), ["start", "put", "complete"]);
    } else {
        exposure_by_macro(&mut w, peer)?;
        let by_macro = calls(&w);
        exposure_by_hand(&mut w, peer)?;
        assert_eq!(by_macro, calls(&w));
        assert_eq!(by_macro.iter().map(|(call, ..)| *call).collect::<Vec<_>>(), ["post", "wait"]);
    }

    let by_macro = (exchange_by_macro(&mut w, peer)?, calls(&w));
    let by_hand = (exchange_by_hand(&mut w, peer)?, calls(&w));
    assert_eq!(by_macro, by_hand);
    let names: Vec<_> = by_hand.1.iter().map(|(call, ..)| *call).collect();
    assert_eq!(names, ["post", "start", "put", "get", "complete", "wait"]);

    let by_macro = (lock_by_macro(&w, team.rank())?, calls(&w));
    let by_hand = (lock_by_hand(&w, team.rank())?, calls(&w));
    assert_eq!(by_macro.1, by_hand.1);
    assert_eq!((by_macro.0, by_hand.0), ((5, 6), (6, 6)));
    let names: Vec<_> = by_hand.1.iter().map(|(call, ..)| *call).collect();
    assert_eq!(names, ["lock", "fetch_op", "compare_swap", "unlock"]);
    team.barrier()
}

// Example 1 of the third seed: from post and wait to locks and back.

const X: usize = 0;
const Y: usize = 1;

/// One way to write the example.
struct Example {
    /// By the owner `a`: lets itself and `b` in, and puts 11 to x.
    update: fn(&mut Window<u64>, Rank, Rank) -> rma::Result<()>,
    /// By `b`: puts 22 to y.
    update_from_afar: fn(&Window<u64>, Rank) -> rma::Result<()>,
    /// By `b`: gets x and puts 33 to y.
    exchange: fn(&Window<u64>, Rank) -> rma::Result<u64>,
    /// By the owner: loads y in an exposure that lets nobody in, or under its own lock.
    looks: [Look; 2],
}

type Look = fn(&mut Window<u64>, Rank, &mut u64) -> rma::Result<()>;

const BY_MACRO: Example = {
    #[rma_epoch(exchange(w, targets = [a], origins = [a, b]))]
    fn update(w: &mut Window<u64>, a: Rank, b: Rank) -> rma::Result<()> {
        w.at(a)[X] = 11;
        Ok(())
    }
    #[rma_epoch(access(w, targets = [a]))]
    fn update_from_afar(w: &Window<u64>, a: Rank) -> rma::Result<()> {
        w.at(a)[Y] = 22;
        Ok(())
    }
    #[rma_epoch(lock(w, rank = a, exclusive))]
    fn exchange(w: &Window<u64>, a: Rank) -> rma::Result<u64> {
        let x = w.at(a)[X];
        w.at(a)[Y] = 33;
        Ok(x)
    }
    #[rma_epoch(exposure(w, origins = []))]
    fn look_exposed(w: &mut Window<u64>, _: Rank, y: &mut u64) -> rma::Result<()> {
        *y = w[Y];
        Ok(())
    }
    #[rma_epoch(lock(w, rank = a, shared))]
    fn look_under_lock(w: &mut Window<u64>, a: Rank, y: &mut u64) -> rma::Result<()> {
        *y = w[Y];
        Ok(())
    }
    Example { update, update_from_afar, exchange, looks: [look_exposed, look_under_lock] }
};

const BY_HAND: Example = {
    fn update(w: &mut Window<u64>, a: Rank, b: Rank) -> rma::Result<()> {
        let exposure = w.post(Origins::Group(&[a, b]))?;
        let access = exposure.start(a, Info::Strong)?;
        access.put(a, X, 11)?;
        access.complete()?;
        exposure.wait_all()
    }
    fn update_from_afar(w: &Window<u64>, a: Rank) -> rma::Result<()> {
        let access = w.start(a, Info::Strong)?;
        access.put(a, Y, 22)?;
        access.complete()
    }
    fn exchange(w: &Window<u64>, a: Rank) -> rma::Result<u64> {
        let lock = w.acquire(a, LockKind::Exclusive, Info::Strong)?;
        let x = lock.get_value(a, X)?;
        lock.put(a, Y, 33)?;
        lock.unlock_with(x)
    }
    fn look_exposed(w: &mut Window<u64>, _: Rank, y: &mut u64) -> rma::Result<()> {
        let exposure = w.post(Origins::Group(&[]))?;
        *y = exposure.load(Y)?;
        exposure.wait_all()
    }
    fn look_under_lock(w: &mut Window<u64>, a: Rank, y: &mut u64) -> rma::Result<()> {
        let lock = w.acquire(a, LockKind::Shared, Info::Strong)?;
        *y = lock.load(Y)?;
        lock.unlock()
    }
    Example { update, update_from_afar, exchange, looks: [look_exposed, look_under_lock] }
};

/// Runs the example with one of its endings and gives the calls of this rank.
fn from_exposures_to_locks(team: &Team, example: &Example, ending: usize) -> rma::Result<Calls> {
    let (a, b) = (Rank(0), Rank(1));
    let mut w = Window::<u64>::allocate(team, 2)?;
    w.start_trace();
    if team.rank() == a {
        (example.update)(&mut w, a, b)?;
        assert_eq!(w.load(Y)?, 22);
        team.barrier()?;
        team.barrier()?;
        let mut y = 0;
        (example.looks[ending])(&mut w, a, &mut y)?;
        assert_eq!(y, 33);
    } else {
        (example.update_from_afar)(&w, a)?;
        team.barrier()?;
        assert_eq!((example.exchange)(&w, a)?, 11);
        team.barrier()?;
    }
    Ok(calls(&w))
}

// covers: VIS-EX1-07
#[rma_test(ranks = 2, transports = [local, shm])]
fn styles_are_switched_by_macro_as_by_hand(team: &Team) -> rma::Result<()> {
    for ending in 0..2 {
        let by_macro = from_exposures_to_locks(team, &BY_MACRO, ending)?;
        let by_hand = from_exposures_to_locks(team, &BY_HAND, ending)?;
        assert_eq!(by_macro, by_hand);
        let names: Vec<_> = by_hand.iter().map(|(call, ..)| *call).collect();
        let expected: &[&str] = match (team.rank(), ending) {
            (Rank(0), 0) => &["post", "start", "put", "complete", "wait", "post", "wait"],
            (Rank(0), _) => &["post", "start", "put", "complete", "wait", "lock", "unlock"],
            _ => &["start", "put", "complete", "lock", "get", "put", "unlock"],
        };
        assert_eq!(names, expected);
    }
    Ok(())
}

// Ways out.

#[derive(Clone, Copy)]
enum WayOut {
    End,
    Return,
    Question,
    Break,
    Panic,
}

#[rma_epoch(lock(w, rank = 0, exclusive))]
fn leave_lock(w: &Window<u64>, way: WayOut) -> Result<(), Box<dyn std::error::Error>> {
    w.at(0)[0] += 1;
    for _ in 0..2 {
        match way {
            WayOut::End => {}
            WayOut::Return => return Ok(()),
            WayOut::Question => drop("no number".parse::<u64>()?),
            WayOut::Break => break,
            WayOut::Panic => panic!("this body panics as the test wants it to"),
        }
    }
    w.at(0)[1] += 1;
    Ok(())
}

// covers: RMA-MAC-02, RMA-LOCK-17
#[rma_test(ranks = 3, transports = [local, shm, tcp])]
fn a_lock_is_given_back_on_every_way_out(team: &Team) -> rma::Result<()> {
    let w = Window::<u64>::allocate(team, 2)?;
    w.start_trace();
    // Each rank leaves in another way while the others want the lock; whoever kept it would stall them.
    for (turn, way) in [WayOut::End, WayOut::Return, WayOut::Question, WayOut::Break, WayOut::Panic]
        .into_iter()
        .cycle()
        .skip(team.rank().index())
        .take(10)
        .enumerate()
    {
        let left = catch_unwind(AssertUnwindSafe(|| leave_lock(&w, way).map_err(|error| error.to_string())));
        match (way, left) {
            (WayOut::End | WayOut::Return | WayOut::Break, Ok(Ok(()))) => {}
            (WayOut::Question, Ok(Err(error))) => assert!(error.contains("invalid digit"), "{error}"),
            (WayOut::Panic, Err(_)) => {}
            (_, left) => panic!("turn {turn}: {left:?}"),
        }
        let mut made = names(&w);
        made.retain(|call| matches!(*call, "lock" | "unlock"));
        // A panic unlocks while it unwinds, which is no call of the program.
        let expected: &[&str] = if matches!(way, WayOut::Panic) { &["lock"] } else { &["lock", "unlock"] };
        assert_eq!(made, expected, "turn {turn}");
    }
    team.barrier()?;
    if team.rank() == Rank(0) {
        let counted = w.load(0)?;
        assert_eq!(counted, 30, "every epoch of every rank has put before it left");
    }
    team.barrier()
}

#[rma_epoch(fence(w))]
fn leave_fence(w: &mut Window<u64>, right: Rank, way: WayOut) -> Result<(), Box<dyn std::error::Error>> {
    w.at(right)[0] += 1;
    for _ in 0..2 {
        match way {
            WayOut::End => {}
            WayOut::Return => return Ok(()),
            WayOut::Question => drop("no number".parse::<u64>()?),
            WayOut::Break => break,
            WayOut::Panic => panic!("this body panics as the test wants it to"),
        }
    }
    w.at(right)[1] += 1;
    Ok(())
}

// covers: RMA-MAC-02
#[rma_test(ranks = 3, transports = [local, shm, tcp])]
fn a_fence_is_closed_on_every_way_out(team: &Team) -> rma::Result<()> {
    let mut w = Window::<u64>::allocate(team, 2)?;
    w.start_trace();
    for way in [WayOut::End, WayOut::Return, WayOut::Question, WayOut::Break] {
        // Ranks that leave early meet ranks that come to the end, and all go on together.
        let mine = if team.rank() == Rank(1) { way } else { WayOut::End };
        let left = leave_fence(&mut w, right_of(team), mine);
        assert_eq!(left.is_err(), matches!(mine, WayOut::Question));
        let made = names(&w);
        assert_eq!(made.iter().filter(|call| **call == "fence").count(), 2);
        assert_eq!((made.first(), made.last()), (Some(&"fence"), Some(&"fence")));
    }
    assert_eq!(w.load(0)?, 4);

    // A panic in one body: the peers are told, not left blocked.
    let mine = if team.rank() == Rank(1) { WayOut::Panic } else { WayOut::End };
    let left = catch_unwind(AssertUnwindSafe(|| {
        leave_fence(&mut w, right_of(team), mine).map_err(|error| error.to_string())
    }));
    match (team.rank(), left) {
        (Rank(1), Err(_)) => {}
        (_, Ok(Err(error))) => assert!(error.contains("rank 1"), "{error}"),
        (rank, left) => panic!("rank {rank}: {left:?}"),
    }
    team.barrier()
}

// Errors of the running program.

#[rma_epoch(lock(w, rank = owner, exclusive))]
fn put_elsewhere(w: &Window<u64>, owner: Rank, other: Rank) -> rma::Result<()> {
    w.at(other)[0] = 1;
    Ok(())
}

#[rma_epoch(access(w, targets = targets))]
fn put_beside_targets(w: &Window<u64>, targets: &[Rank], other: Rank) -> rma::Result<()> {
    w.at(other)[0] = 1;
    Ok(())
}

// covers: RMA-MAC-05
#[rma_test(ranks = 3, transports = [local, shm, tcp])]
fn a_computed_rank_that_the_epoch_has_not_opened_is_an_error(team: &Team) -> rma::Result<()> {
    let mut w = Window::<u64>::allocate(team, 1)?;
    let refused = put_elsewhere(&w, Rank(0), Rank(1)).expect_err("the lock is rank 0's");
    assert_eq!(refused.kind(), ErrorKind::TransferOutsideEpoch);
    team.barrier()?;
    if team.rank() == Rank(0) {
        exposure_by_macro(&mut w, Rank(1))?;
    } else if team.rank() == Rank(1) {
        let refused = put_beside_targets(&w, &[Rank(0)], Rank(2)).expect_err("rank 2 is no target");
        assert_eq!(refused.kind(), ErrorKind::TransferOutsideEpoch);
    }
    team.barrier()?;
    assert_eq!(w.load(0)?, 0, "nothing moved");
    Ok(())
}

#[rma_epoch(access(w, targets = [owner], info = nocheck, because = "the post comes first in this program"))]
fn put_unchecked(w: &Window<u64>, owner: Rank) -> rma::Result<()> {
    w.at(owner)[0] = 1;
    Ok(())
}

// covers: RMA-INFO-09 (the second half: the reason shows in the report)
#[rma_test(ranks = 2, transports = [local, shm, tcp])]
fn the_reason_for_nocheck_shows_when_it_was_wrong(team: &Team) -> rma::Result<()> {
    let w = Window::<u64>::allocate(team, 1)?;
    if team.rank() == Rank(1) {
        let refused = put_unchecked(&w, Rank(0)).expect_err("nothing is posted");
        assert_eq!(refused.kind(), ErrorKind::NotPosted);
        let text = refused.to_string();
        assert!(text.contains("the post comes first in this program"), "{text}");
    }
    team.barrier()?;
    assert_eq!(w.load(0)?, 0);
    Ok(())
}

#[rma_epoch(lock(w, rank = 0, exclusive))]
fn load_out_of_range(w: &Window<u64>) -> rma::Result<u64> {
    Ok(w[7])
}

#[rma_test(ranks = 1, transports = [local, shm, tcp])]
fn an_index_out_of_range_panics_with_coordinates(team: &Team) -> rma::Result<()> {
    let w = Window::<u64>::allocate(team, 2)?;
    let panic = catch_unwind(AssertUnwindSafe(|| load_out_of_range(&w))).expect_err("out of range");
    let text = panic.downcast_ref::<String>().map(String::as_str).unwrap_or_default();
    assert!(text.contains('7') && text.contains("length is 2"), "{text}");
    // The lock was given back while the panic unwound.
    assert_eq!(lock_by_macro_len_two(&w)?, 0);
    Ok(())
}

#[rma_epoch(lock(w, rank = 0, exclusive))]
fn lock_by_macro_len_two(w: &Window<u64>) -> rma::Result<u64> {
    Ok(w.at(0)[1])
}
