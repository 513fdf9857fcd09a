//! Windows over memory of the caller: two copies, of which transfers reach one and the owner the other. What moves between them
//! is seen from both sides: the owner loads from its own copy, and another rank gets from the mirror.

use std::time::{Duration, Instant};

use rma::{
    ErrorKind, Info, LockKind, MemoryModel, Origins, Rank, Returned, Sum, Team, Window, WindowOptions, own,
};

use crate::{Case, Outcome, case, flags, grace, until};

pub(crate) const CASES: &[Case] = &[
    case!(each_call_moves_what_the_table_says, [2]).over_its_own_memory(),
    case!(views_import_and_publish, [2]).over_its_own_memory(),
    case!(updates_of_both_sides_are_merged, [2]).over_its_own_memory(),
    case!(example_1_by_stores, [2]).over_its_own_memory(),
    case!(example_2_loads_the_old_value, [2]).over_its_own_memory(),
    case!(example_2_with_the_window_barrier, [2]),
    case!(the_window_barrier_meets_a_busy_thread, [2]).over_its_own_memory(),
    case!(the_mirror_serves_while_the_owner_is_busy, [2]).over_its_own_memory(),
    case!(a_get_races_the_post, [2]).over_its_own_memory(),
    case!(one_put_moves_its_bytes_only, [2]).over_its_own_memory(),
    case!(every_kind_of_transfer_is_imported, [2, 3]).over_its_own_memory(),
    case!(memory_comes_back, [1, 3]).over_its_own_memory(),
    case!(memory_comes_back_from_a_refusal, [2]).over_its_own_memory(),
    case!(memory_goes_while_a_peer_writes, [2]).over_its_own_memory(),
    case!(a_leaked_view_is_published, [2]).over_its_own_memory(),
    case!(a_panic_under_the_own_lock_publishes, [2]).over_its_own_memory(),
    case!(concurrent_puts_are_all_imported, [4]).over_its_own_memory(),
    case!(a_mirror_can_be_locked, [2]).over_its_own_memory(),
    case!(a_mirror_that_the_system_does_not_lock_is_an_error, [2]).over_its_own_memory().processes(),
    case!(the_memory_model_can_be_asked_for, [2]),
];

const OWNER: Rank = Rank(0);
const OTHER: Rank = Rank(1);
/// An element that the owner stores, and one that the other rank puts.
const STORED: usize = 0;
const PUT: usize = 1;

/// What the other rank sees in the mirror, which moves nothing.
fn mirror(window: &Window<u64>, at: usize) -> rma::Result<u64> {
    window.lock(OWNER, LockKind::Shared, |epoch| epoch.get_value(OWNER, at))
}

/// A call of the owner in the table of `docs/spec/visibility.md`, section 2, and whether it publishes and imports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    Post,
    Wait,
    Fence,
    OwnLock,
    OwnUnlock,
    WindowBarrier,
    Barrier,
    StartAndComplete,
    LockOfOther,
}

const TABLE: [(Row, bool, bool); 9] = [
    (Row::Post, true, true),
    (Row::Wait, true, true),
    (Row::Fence, true, true),
    (Row::OwnLock, false, true),
    (Row::OwnUnlock, true, false),
    (Row::WindowBarrier, true, true),
    (Row::Barrier, false, false),
    (Row::StartAndComplete, false, false),
    (Row::LockOfOther, false, false),
];

// covers: VIS-MAP-01, VIS-MAP-03, RMA-COPY-04, RMA-COPY-05
fn each_call_moves_what_the_table_says(team: &Team) -> Outcome {
    for (row, published, imported) in TABLE {
        // A team of its own for the second window, which the barrier over the windows of the first is not about.
        let other_team = team.duplicate()?;
        let mut window = Window::<u64>::create(team, vec![0; 4])?;
        let mut second = Window::<u64>::create(&other_team, vec![0; 4])?;
        let owner = team.rank() == OWNER;
        // The second window has a changed byte on both sides, too, and no call.
        if owner {
            second.store(STORED, 9)?;
        } else {
            second.lock(OWNER, LockKind::Exclusive, |epoch| epoch.put(OWNER, PUT, 9))?;
        }
        let put =
            |window: &Window<u64>| window.lock(OWNER, LockKind::Shared, |epoch| epoch.put(OWNER, PUT, 2));
        let (mut loaded, mut got) = (0, 0);
        let is_split = matches!(row, Row::Wait | Row::OwnLock | Row::OwnUnlock);
        if !is_split {
            match owner {
                true => window.store(STORED, 1)?,
                false => put(&window)?,
            }
            team.barrier()?;
        }
        match (row, owner) {
            (Row::Post, true) => {
                let exposure = window.post(Origins::Group(&[OTHER]))?;
                loaded = exposure.load(PUT)?;
                exposure.wait_all()?;
            }
            (Row::Post, false) => {
                got = window.access(&[OWNER], Info::Strong, |epoch| epoch.get_value(OWNER, STORED))?;
            }
            (Row::Wait, true) => {
                let exposure = window.post(Origins::Group(&[OWNER, OTHER]))?;
                // An access to the own window, as a store needs an epoch that gives it.
                exposure.access(&[OWNER], Info::Strong, |epoch| epoch.store(STORED, 1))?;
                team.barrier()?;
                assert_eq!(exposure.load(PUT)?, 0, "the put came before the wait");
                team.barrier()?;
                exposure.wait_all()?;
                loaded = window.load(PUT)?;
            }
            (Row::Wait, false) => {
                let early = window.access(&[OWNER], Info::Strong, |epoch| {
                    epoch.put(OWNER, PUT, 2)?;
                    team.barrier()?;
                    team.barrier()?;
                    epoch.get_value(OWNER, STORED)
                })?;
                assert_eq!(early, 0, "the store went before the wait");
            }
            (Row::Fence, _) => {
                window.fence(|_| ())?;
                loaded = window.load(PUT)?;
            }
            (Row::OwnLock | Row::OwnUnlock, true) => {
                // Under a shared lock, so that the other rank can look and put meanwhile.
                if row == Row::OwnLock {
                    window.store(STORED, 1)?;
                    team.barrier()?;
                    team.barrier()?;
                }
                window.lock(OWNER, LockKind::Shared, |epoch| {
                    if row == Row::OwnLock {
                        loaded = epoch.load(PUT)?;
                    } else {
                        epoch.store(STORED, 1)?;
                    }
                    team.barrier()?;
                    team.barrier()
                })?;
                if row == Row::OwnUnlock {
                    loaded = window.load(PUT)?;
                }
            }
            (Row::OwnLock, false) => {
                team.barrier()?;
                put(&window)?;
                team.barrier()?;
                team.barrier()?;
                got = mirror(&window, STORED)?;
                team.barrier()?;
            }
            (Row::OwnUnlock, false) => {
                team.barrier()?;
                put(&window)?;
                team.barrier()?;
            }
            (Row::WindowBarrier, _) => {
                team.rma_barrier()?;
                loaded = window.load(PUT)?;
            }
            (Row::Barrier, _) => {
                team.barrier()?;
                loaded = window.load(PUT)?;
            }
            (Row::StartAndComplete, true) => {
                window.access(&[OTHER], Info::Strong, |_| ())?;
                loaded = window.load(PUT)?;
            }
            (Row::StartAndComplete, false) => {
                window.post(Origins::Any)?.wait(1)?;
            }
            (Row::LockOfOther, true) => {
                window.lock(OTHER, LockKind::Exclusive, |_| ())?;
                loaded = window.load(PUT)?;
            }
            (Row::LockOfOther, false) => {}
        }
        team.barrier()?;
        if owner {
            assert_eq!(loaded == 2, imported, "{row:?} imports");
            assert_eq!((second.load(STORED)?, second.load(PUT)?), (9, 0), "{row:?} moves the other window");
        } else {
            if !matches!(row, Row::Post | Row::OwnLock) {
                got = mirror(&window, STORED)?;
            }
            assert_eq!(got == 1, published, "{row:?} publishes");
            assert_eq!(
                (mirror(&second, STORED)?, mirror(&second, PUT)?),
                (0, 9),
                "{row:?} moves the other window"
            );
        }
        team.barrier()?;
    }
    Ok(())
}

fn views_import_and_publish(team: &Team) -> Outcome {
    let mut window = Window::<u64>::create(team, vec![0; 1000])?;
    if team.rank() == OTHER {
        window.lock(OWNER, LockKind::Exclusive, |epoch| epoch.put(OWNER, 500, [5; 10]))?;
    }
    team.barrier()?;
    if team.rank() == OWNER {
        assert_eq!(window.load(500)?, 0);
        let mut cells = window.local_mut()?;
        assert_eq!(cells.iter().sum::<u64>(), 50, "taking a view imports");
        // A plain store, which the runtime can't see.
        cells[999] = 7;
        cells[0] = 3;
        drop(cells);
        let moved = window.moved();
        assert!(16 <= moved.published && moved.published <= 128, "{moved:?} where two lines have changed");
        assert_eq!(moved.imported, 80);
    }
    team.barrier()?;
    if team.rank() == OTHER {
        assert_eq!((mirror(&window, 999)?, mirror(&window, 0)?, mirror(&window, 500)?), (7, 3, 5));
    }
    Ok(())
}

// covers: RMA-COPY-10 -- the merge; conflicts are for checked mode
fn updates_of_both_sides_are_merged(team: &Team) -> Outcome {
    const LEN: usize = 200;
    let mut window = Window::<u8>::create(team, vec![0; LEN])?;
    // Neighbouring bytes, so that every word has bytes of both.
    let stored = |at: usize| at.is_multiple_of(3);
    for round in 1..20 {
        let value = |at: usize| round * if stored(at) { 1 } else { 2 };
        if team.rank() == OWNER {
            let exposure = window.post(Origins::Group(&[OWNER, OTHER]))?;
            exposure.access(&[OWNER], Info::Strong, |epoch| {
                (0..LEN).filter(|&at| stored(at)).try_for_each(|at| epoch.store(at, value(at)))
            })?;
            exposure.wait_all()?;
            for at in 0..LEN {
                assert_eq!(window.load(at)?, value(at), "byte {at} of the own copy");
            }
        } else {
            window.access(&[OWNER], Info::Strong, |epoch| {
                (0..LEN).filter(|&at| !stored(at)).try_for_each(|at| epoch.put(OWNER, at, value(at)))
            })?;
        }
        team.barrier()?;
        if team.rank() == OTHER {
            let seen = window.lock(OWNER, LockKind::Shared, |epoch| epoch.get_vec(OWNER, 0..LEN))?;
            assert!(seen.iter().enumerate().all(|(at, &byte)| byte == value(at)), "the mirror has {seen:?}");
        }
        team.barrier()?;
    }
    Ok(())
}

// covers: VIS-EX1-03, VIS-R5-01, VIS-R6-01
fn example_1_by_stores(team: &Team) -> Outcome {
    const X: usize = 0;
    const Y: usize = 1;
    let (a, b) = (OWNER, OTHER);
    for ending_by_lock in [false, true] {
        let mut window = Window::<u64>::create(team, vec![0; 2])?;
        if team.rank() == a {
            let exposure = window.post(Origins::Group(&[a, b]))?;
            let access = exposure.start(a, Info::Strong)?;
            access.store(X, 11)?;
            access.complete()?;
            // The put is sure to have come, and is not in the own copy before the wait.
            team.barrier()?;
            assert_eq!(exposure.load(Y)?, 0);
            exposure.wait_all()?;
            assert_eq!((window.load(X)?, window.load(Y)?), (11, 22));
            team.barrier()?;
            team.barrier()?;
            if ending_by_lock {
                assert_eq!(window.lock(a, LockKind::Exclusive, |epoch| epoch.load(Y))?, 33);
            } else {
                let exposure = window.post(Origins::Group(&[]))?;
                assert_eq!(exposure.load(Y)?, 33);
                exposure.wait(0)?;
            }
        } else {
            window.access(&[a], Info::Strong, |epoch| epoch.put(a, Y, 22))?;
            team.barrier()?;
            team.barrier()?;
            let both = window.lock(a, LockKind::Exclusive, |epoch| {
                let both = (epoch.get_value(a, X)?, epoch.get_value(a, Y)?);
                epoch.put(a, Y, 33)?;
                Ok(both)
            })?;
            assert_eq!(both, (11, 22));
            team.barrier()?;
        }
    }
    Ok(())
}

// covers: VIS-EX2-04 -- the values; the report is for checked mode
fn example_2_with_the_window_barrier(team: &Team) -> Outcome {
    let window = Window::<u64>::create(team, vec![0; 2])?;
    team.rma_barrier()?;
    if team.rank() == OTHER {
        window.lock(OWNER, LockKind::Exclusive, |epoch| epoch.put(OWNER, 1, 5))?;
    }
    team.rma_barrier()?;
    assert!(team.rank() != OWNER || window.load(1)? == 5);
    Ok(())
}

/// The handle in another thread than the team: what is stored meanwhile is published by the next call that publishes, and no
/// view sees its memory change.
fn the_window_barrier_meets_a_busy_thread(team: &Team) -> Outcome {
    const ROUNDS: u64 = 300;
    let mut window = Window::<u64>::create(team, vec![0; 64])?;
    let me = team.rank();
    let other = Rank(1 - me.0);
    let window = std::thread::scope(|scope| -> rma::Result<Window<u64>> {
        let busy = scope.spawn(move || -> rma::Result<Window<u64>> {
            for round in 1..=ROUNDS {
                window.store(round as usize % 32, round)?;
                window.lock(other, LockKind::Shared, |epoch| {
                    epoch.put(other, 32 + round as usize % 32, round)
                })?;
                let view = window.local()?;
                let first: Vec<u64> = view.to_vec();
                std::thread::yield_now();
                assert_eq!(first, view[..], "the view changes");
            }
            Ok(window)
        });
        // Refused while the other thread has something open; both ranks have to make as many barriers that are not.
        let mut passed = 0;
        while passed < 50 {
            passed += usize::from(team.rma_barrier().is_ok());
        }
        busy.join().expect("the thread ends well")
    })?;
    team.rma_barrier()?;
    let last = |at: u64| (1..=ROUNDS).rev().find(|round| round % 32 == at);
    for at in 0..32 {
        let seen = window.lock(other, LockKind::Shared, |epoch| epoch.get_value(other, at as usize))?;
        assert_eq!((Some(seen), Some(window.load(32 + at as usize)?)), (last(at), last(at)));
    }
    Ok(())
}

// covers: VIS-EX2-02 -- lazy and unified; eager does not exist
// covers: VIS-R7-04 -- the old value; the report is for checked mode
fn example_2_loads_the_old_value(team: &Team) -> Outcome {
    const Y: usize = 1;
    for (model, expected) in [(MemoryModel::Separate, 0), (MemoryModel::Unified, 5)] {
        let window = match model {
            MemoryModel::Separate => Window::<u64>::create(team, vec![0; 2])?,
            MemoryModel::Unified => WindowOptions::new().memory_model(model).allocate(team, 2)?,
        };
        team.barrier()?;
        if team.rank() == OTHER {
            window.lock(OWNER, LockKind::Exclusive, |epoch| epoch.put(OWNER, Y, 5))?;
        }
        team.barrier()?;
        if team.rank() == OWNER {
            assert_eq!(window.load(Y)?, expected, "{model:?}");
            // The first of the three remedies.
            assert_eq!(window.lock(OWNER, LockKind::Shared, |epoch| epoch.load(Y))?, 5);
        }
        team.barrier()?;
    }
    Ok(())
}

// covers: RMA-SHM-03, RMA-COPY-09
fn the_mirror_serves_while_the_owner_is_busy(team: &Team) -> Outcome {
    let memory: Box<[u64]> = vec![1; 1 << 16].into();
    let mut window = Window::create(team, memory.into_vec())?;
    let done = flags::<u64>(team, 1)?;
    if team.rank() == OWNER {
        let exposure = window.post(Origins::Group(&[OTHER]))?;
        // No call of the runtime but loads until the origin has completed.
        until(|| done.load(0).unwrap() == 1);
        grace();
        assert_eq!(exposure.load(77)?, 1, "the put has touched more than the mirror");
        exposure.wait_all()?;
        assert!(window.local()?.iter().all(|&value| value == 2));
    } else {
        let begun = Instant::now();
        window.access(&[OWNER], Info::Strong, |epoch| epoch.put(OWNER, 0, vec![2; 1 << 16]))?;
        assert!(begun.elapsed() < Duration::from_secs(20), "the origin completes without the owner");
        done.lock(OWNER, LockKind::Shared, |epoch| epoch.put(OWNER, 0, 1))?;
    }
    Ok(())
}

// covers: VIS-MAP-04
fn a_get_races_the_post(team: &Team) -> Outcome {
    let mut window = Window::<u64>::create(team, vec![0; 64])?;
    for round in 1..1000_u64 {
        if team.rank() == OWNER {
            for at in 0..64 {
                window.store(at, round)?;
            }
            window.post(Origins::Any)?.wait(1)?;
            assert_eq!(window.load(63)?, 2 * round, "the wait returned before the import");
        } else {
            let seen = window.access(&[OWNER], Info::Strong, |epoch| {
                let seen = epoch.get_vec(OWNER, 0..64)?;
                epoch.put(OWNER, 63, 2 * round)?;
                Ok(seen)
            })?;
            assert_eq!(seen, [round; 64], "admitted before all was published");
        }
    }
    Ok(())
}

// covers: RMA-COPY-07
fn one_put_moves_its_bytes_only(team: &Team) -> Outcome {
    const BYTES: usize = 64 << 20;
    const AT: usize = BYTES / 8 - 5;
    let len = if team.rank() == OWNER { BYTES / 8 } else { 0 };
    let mut window = Window::create(team, vec![0_u64; len])?;
    if team.rank() == OWNER {
        window.post(Origins::Any)?.wait(1)?;
        assert_eq!(window.load(AT)?, 6);
        let moved = window.moved();
        assert!(moved.imported <= 4096 && moved.published == 0, "{moved:?} for one put of 8 bytes");
    } else {
        window.access(&[OWNER], Info::Strong, |epoch| epoch.put(OWNER, AT, 6))?;
    }
    Ok(())
}

fn every_kind_of_transfer_is_imported(team: &Team) -> Outcome {
    let column = |start: usize| rma::Strided { start, count: 50, block: 1, stride: 4 };
    let me = u64::from(team.rank().0);
    let right = Rank((team.rank().0 + 1) % team.size());
    let left = (me + u64::from(team.size()) - 1) % u64::from(team.size());
    let mut window = Window::create(team, vec![me; 1000])?;
    window.fence(|epoch| {
        epoch.put(right, column(0), vec![me + 1; 50])?;
        epoch.put(right, 201..300, own(901..1000))?;
        epoch.accumulate(right, 300, Sum, 10)?;
        epoch.accumulate(right, 400..500, Sum, vec![20; 100])?;
        // What a get brings into the own window is a store of the owner.
        epoch.get(right, 0, own(800..801))?;
        let swapped = epoch.compare_swap(right, 502, u64::from(right.0), 40)?;
        let kept = epoch.compare_swap(right, 503, 99, 40)?;
        let before = epoch.get_accumulate(right, column(600), Sum, vec![50; 50])?;
        Ok((epoch.fetch_op(right, 501, Sum, 30)?, swapped, kept, before))
    })?;
    let mut expected = vec![me; 1000];
    (0..50).for_each(|i| expected[4 * i] = left + 1);
    expected[201..300].fill(left);
    expected[300] += 10;
    expected[400..500].iter_mut().for_each(|value| *value += 20);
    expected[501] += 30;
    expected[502] = 40;
    (0..50).for_each(|i| expected[600 + 4 * i] += 50);
    // The get may have come before or after the put of the same phase; both are of this case's making.
    expected[800] = window.load(800)?;
    assert_eq!(&window.local()?[..], expected);
    // The next fence publishes what the get has stored.
    let got = window.fence(|epoch| epoch.get_value(right, 800))?;
    let value = right.0 + 1;
    assert!([value, value % team.size()].map(u64::from).contains(&got), "{got}");
    Ok(())
}

fn memory_comes_back(team: &Team) -> Outcome {
    let me = team.rank();
    let memory: Vec<u64> = vec![u64::from(me.0); 100];
    let start = memory.as_ptr();
    let mut window = Window::create(team, memory)?;
    assert_eq!((window.memory_model(), window.len()), (MemoryModel::Separate, 100));
    // What the memory held is there for others at once.
    let seen = window.lock(OWNER, LockKind::Shared, |epoch| epoch.get_value(OWNER, 99))?;
    assert_eq!(seen, 0);
    let right = Rank((me.0 + 1) % team.size());
    window.fence(|epoch| epoch.put(right, 0, 70 + u64::from(me.0)))?;
    window.lock(right, LockKind::Shared, |epoch| epoch.put(right, 1, 80 + u64::from(me.0)))?;
    let memory: Vec<u64> = window.into_inner()?;
    let left = u64::from((me.0 + team.size() - 1) % team.size());
    assert_eq!(memory[..3], [70 + left, 80 + left, u64::from(me.0)]);
    assert_eq!(memory.as_ptr(), start, "it is the same memory");
    // Memory of the runtime is copied.
    let mut window = Window::<u64>::allocate(team, 3)?;
    window.store(1, 5)?;
    assert_eq!(window.into_inner::<Vec<u64>>()?, [0, 5, 0]);
    Ok(())
}

fn memory_comes_back_from_a_refusal(team: &Team) -> Outcome {
    let unit = usize::from(team.rank() != OWNER);
    let refused = WindowOptions::new().disp_unit(unit).create(team, vec![3_u8; 5]);
    let Returned { error, memory } = refused.expect_err("a unit is 0");
    assert_eq!((error.kind(), memory), (ErrorKind::BadDispUnit, vec![3; 5]));
    let mut window = Window::create(team, vec![4_u8; 5])?;
    if team.rank() == OWNER {
        std::mem::forget(window.post(Origins::Any)?);
        let Returned { error, memory } = window.into_inner::<Vec<u8>>().expect_err("an exposure is open");
        assert_eq!((error.kind(), memory), (ErrorKind::EpochStillOpen, vec![4; 5]));
    }
    team.barrier()?;
    Ok(())
}

fn memory_goes_while_a_peer_writes(team: &Team) -> Outcome {
    const LEN: usize = 10_000;
    let window = Window::create(team, vec![0_u64; LEN])?;
    if team.rank() == OWNER {
        team.barrier()?;
        drop(window);
        // Very likely where the window's memory was; no put reaches it.
        let memory = vec![0_u64; LEN];
        team.barrier()?;
        team.barrier()?;
        assert!(memory.iter().all(|&value| value == 0));
        return Ok(());
    }
    window.lock(OWNER, LockKind::Exclusive, |epoch| {
        team.barrier()?;
        team.barrier()?;
        (0..100).try_for_each(|round| epoch.put(OWNER, 0, vec![round; LEN]))?;
        team.barrier()
    })?;
    Ok(())
}

fn a_leaked_view_is_published(team: &Team) -> Outcome {
    let mut window = Window::<u64>::create(team, vec![0; 4])?;
    if team.rank() == OWNER {
        let mut view = window.local_mut()?;
        view[2] = 8;
        std::mem::forget(view);
        // The next call that takes the window by `&mut` gives the view back, and so publishes.
        window.store(3, 1)?;
    }
    team.barrier()?;
    if team.rank() == OTHER {
        assert_eq!((mirror(&window, 2)?, mirror(&window, 3)?), (8, 0));
    }
    team.barrier()?;
    Ok(())
}

fn a_panic_under_the_own_lock_publishes(team: &Team) -> Outcome {
    let window = Window::<u64>::create(team, vec![0; 4])?;
    if team.rank() == OWNER {
        let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            window.lock(OWNER, LockKind::Exclusive, |epoch| {
                epoch.store(1, 6).expect("in bounds");
                if team.rank() == OWNER {
                    panic!("on purpose");
                }
            })
        }));
        assert!(unwound.is_err());
    }
    team.barrier()?;
    if team.rank() == OTHER {
        assert_eq!(mirror(&window, 1)?, 6);
    }
    team.barrier()?;
    Ok(())
}

/// Shared holders put while the owner imports: nothing that was put is missing after the last import.
fn concurrent_puts_are_all_imported(team: &Team) -> Outcome {
    const PART: usize = 3000;
    let window = Window::<u8>::create(team, vec![0; 3 * PART])?;
    let done = flags::<u64>(team, 1)?;
    let me = team.rank();
    if me == OWNER {
        let mut imports = 0;
        while done.load(0)? < 3 {
            window.lock(OWNER, LockKind::Shared, |_| ())?;
            imports += 1;
        }
        let all = window.local()?;
        let wrong = all.iter().enumerate().find(|&(at, &byte)| byte != (at % 251) as u8);
        assert_eq!(wrong, None, "after {imports} imports");
    } else {
        let from = (me.index() - 1) * PART;
        // Pieces of every length, so that words of marks are shared and whole.
        let mut at = from;
        let mut len = 1;
        while at < from + PART {
            let end = (at + len).min(from + PART);
            let piece: Vec<u8> = (at..end).map(|at| (at % 251) as u8).collect();
            window.lock(OWNER, LockKind::Shared, |epoch| epoch.put(OWNER, at, piece))?;
            (at, len) = (end, len % 130 + 1);
        }
        done.lock(OWNER, LockKind::Shared, |epoch| epoch.accumulate(OWNER, 0, Sum, 1))?;
    }
    Ok(())
}

// covers: VIS-UNI-03 -- the environment is how this case runs over memory of the caller
fn the_memory_model_can_be_asked_for(team: &Team) -> Outcome {
    let by_default = Window::<u64>::allocate(team, 2)?;
    let unified = WindowOptions::new().memory_model(MemoryModel::Unified).allocate::<u64>(team, 2)?;
    let separate = WindowOptions::new().memory_model(MemoryModel::Separate).allocate::<u64>(team, 2)?;
    assert_eq!(unified.memory_model(), MemoryModel::Unified);
    assert_eq!(separate.memory_model(), MemoryModel::Separate);
    if let Some(name) = std::env::var_os("RMA_MEMORY_MODEL") {
        assert_eq!(by_default.memory_model() == MemoryModel::Separate, name == "separate");
    }
    for window in [&by_default, &unified, &separate] {
        if team.rank() == OTHER {
            window.lock(OWNER, LockKind::Exclusive, |epoch| epoch.put(OWNER, 1, 5))?;
        }
        team.barrier()?;
        if team.rank() == OWNER {
            // What no rule promises, and each model does.
            let expected = if window.memory_model() == MemoryModel::Unified { 5 } else { 0 };
            assert_eq!(window.load(1)?, expected, "{:?}", window.memory_model());
        }
        team.barrier()?;
    }
    Ok(())
}

/// Bytes of the job's memory that this process has locked, as the system counts them.
fn locked_bytes() -> u64 {
    let maps = std::fs::read_to_string("/proc/self/smaps").expect("the system tells");
    let mut ours = false;
    let mut kib = 0;
    for line in maps.lines() {
        match line.strip_prefix("Locked:") {
            Some(rest) if ours => {
                kib += rest.trim().trim_end_matches(" kB").parse::<u64>().expect("a number")
            }
            Some(_) => {}
            // The line that begins a range of addresses names what is mapped there.
            None if line.split(' ').next().is_some_and(|word| word.contains('-')) => {
                ours = line.contains("rma-job");
            }
            None => {}
        }
    }
    kib * 1024
}

// covers: RMA-COPY-11
fn a_mirror_can_be_locked(team: &Team) -> Outcome {
    const LEN: usize = 100_000;
    let options = WindowOptions::new().locked_mirror();
    let mut window = options.create(team, vec![0_u64; LEN])?;
    team.barrier()?;
    assert!(8 * LEN as u64 <= locked_bytes(), "{} bytes are locked", locked_bytes());
    let next = Rank((team.rank().0 + 1) % team.size());
    window.store(0, 1)?;
    window.fence(|epoch| {
        epoch.put(next, LEN - 1, 7)?;
        epoch.accumulate(next, 0, Sum, 2)
    })?;
    assert_eq!((window.load(0)?, window.load(LEN - 1)?), (3, 7));
    let memory: Vec<u64> = window.into_inner()?;
    assert_eq!((memory[0], memory[LEN - 1]), (3, 7));
    team.barrier()?;
    assert_eq!(locked_bytes(), 0, "what was locked goes with its window");
    Ok(())
}

// covers: RMA-COPY-11
fn a_mirror_that_the_system_does_not_lock_is_an_error(team: &Team) -> Outcome {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    // Rank 1 may lock little; nobody could refuse it anything while it has the system's rights.
    if team.rank() == Rank(1) {
        let mut rights = capabilities(None)?;
        rights.effective.remove(CapabilitySet::IPC_LOCK);
        set_capabilities(None, rights)?;
        let limit = Rlimit { current: Some(64 << 10), ..getrlimit(Resource::Memlock) };
        setrlimit(Resource::Memlock, limit)?;
    }
    let memory = vec![5_u64; 50_000];
    let returned = WindowOptions::new().locked_mirror().create(team, memory).expect_err("rank 1 may not");
    assert_eq!(returned.error.kind(), ErrorKind::System);
    let text = returned.error.to_string();
    assert!(team.rank() != Rank(1) || text.contains("can't be locked"), "{text}");
    assert_eq!(returned.memory, [5; 50_000]);
    team.barrier()?;
    assert_eq!(locked_bytes(), 0);
    // Without the wish there is a window.
    let window = Window::create(team, returned.memory)?;
    assert_eq!(window.load(49_999)?, 5);
    Ok(())
}
