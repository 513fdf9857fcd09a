//! Windows: creation, sizes, units, the end.

use rma::{ErrorKind, Info, LockKind, Origins, Rank, Sum, Team, Window, WindowOptions};

use crate::{Case, Outcome, case, grace, kind_of, until};

pub(crate) const CASES: &[Case] = &[
    case!(creation_is_collective_and_puts_arrive, [1, 2, 4]),
    case!(a_rank_that_skips_creation_is_named, [3]),
    case!(the_targets_unit_scales_the_displacement, [2, 3]),
    case!(lengths_may_differ_and_be_zero, [2, 4]),
    case!(a_window_without_memory_has_a_lock, [4]),
    case!(windows_are_independent, [2]).one_copy(),
    case!(memory_is_zeroed_and_aligned, [1, 2]),
    case!(free_refuses_an_open_epoch, [2]),
    case!(arguments_are_checked_first, [1, 3]),
    case!(many_windows_come_and_go, [2]),
    case!(shortage_is_an_error_on_every_rank, [2]),
    case!(a_limit_of_memory_is_an_error_on_every_rank, [3]).processes(),
    case!(four_thousand_windows_at_once, [2]),
    case!(a_hundred_thousand_windows_come_and_go, [2]),
];

// covers: RMA-WIN-01 -- the first half; the second is in the next case
fn creation_is_collective_and_puts_arrive(team: &Team) -> Outcome {
    let mut window = Window::<i64>::allocate(team, 128)?;
    let me = team.rank();
    window.fence(|epoch| epoch.put(Rank(0), me.index(), i64::from(me.0)))?;
    if me == Rank(0) {
        let expected: Vec<i64> = team.ranks().map(|rank| i64::from(rank.0)).collect();
        assert_eq!(window.local()?[..expected.len()], expected);
    }
    Ok(())
}

// covers: RMA-WIN-01
fn a_rank_that_skips_creation_is_named(team: &Team) -> Outcome {
    if team.rank() == Rank(2) {
        let error = team.barrier().expect_err("the others are elsewhere");
        assert!(matches!(
            error.kind(),
            ErrorKind::CollectiveMismatch | ErrorKind::Stalled | ErrorKind::PeerLost
        ));
        return Ok(());
    }
    let error = Window::<i64>::allocate(team, 8).expect_err("rank 2 does not come");
    match error.kind() {
        ErrorKind::CollectiveMismatch | ErrorKind::Stalled => {}
        other => panic!("{other:?}: {error}"),
    }
    assert!(error.to_string().contains("rank 2"), "{error}");
    Ok(())
}

// covers: RMA-WIN-02
fn the_targets_unit_scales_the_displacement(team: &Team) -> Outcome {
    let unit = if team.rank() == Rank(0) { 8 } else { 24 };
    let mut window = WindowOptions::new().disp_unit(unit).allocate::<u64>(team, 10)?;
    window.fence(|epoch| {
        if team.rank() == Rank(0) {
            epoch.put(Rank(0), 2, 7)?;
            epoch.put(Rank(1), 2, 7)?;
            // In bounds for 8 bytes a displacement, not for 24.
            epoch.put(Rank(0), 9, 9)?;
            assert_eq!(kind_of(epoch.put(Rank(1), 9, 9)), ErrorKind::OutOfBounds);
        }
        Ok(())
    })?;
    let local = window.local()?;
    let at = |byte: usize| local[byte / 8];
    match team.rank() {
        Rank(0) => assert_eq!((at(16), local.iter().sum::<u64>()), (7, 16)),
        Rank(1) => assert_eq!((at(48), local.iter().sum::<u64>()), (7, 7)),
        _ => assert!(local.iter().all(|&value| value == 0)),
    }
    Ok(())
}

// covers: RMA-WIN-03
fn lengths_may_differ_and_be_zero(team: &Team) -> Outcome {
    let len = if team.rank() == Rank(0) { 16 } else { 0 };
    let mut window = Window::<u8>::allocate(team, len)?;
    assert_eq!((window.len_at(Rank(0))?, window.len_at(Rank(1))?), (16, 0));
    if team.rank() == Rank(0) {
        window.local_mut()?.copy_from_slice(&[5; 16]);
    }
    let got = window.fence(|epoch| {
        assert_eq!(kind_of(epoch.put(Rank(1), 0, 1)), ErrorKind::OutOfBounds);
        epoch.put(Rank(1), 0, Vec::new())?;
        epoch.get_vec(Rank(0), 0..16)
    })?;
    assert_eq!(got, [5; 16]);
    Ok(())
}

// covers: RMA-WIN-04
fn a_window_without_memory_has_a_lock(team: &Team) -> Outcome {
    const ROUNDS: u64 = 1000;
    let lock = Window::<u8>::allocate(team, 0)?;
    let counter = Window::<u64>::allocate(team, 1)?;
    for _ in 0..ROUNDS {
        lock.lock(Rank(0), LockKind::Exclusive, |_| {
            // Nobody else is here, as the master lock says.
            let free = Info::NoCheck;
            let now =
                counter.lock_with(Rank(0), LockKind::Exclusive, free, |epoch| epoch.get_value(Rank(0), 0))?;
            counter.lock_with(Rank(0), LockKind::Exclusive, free, |epoch| epoch.put(Rank(0), 0, now + 1))
        })?;
    }
    team.barrier()?;
    if team.rank() == Rank(0) {
        assert_eq!(counter.local()?[0], ROUNDS * u64::from(team.size()));
    }
    Ok(())
}

// covers: RMA-WIN-05
fn windows_are_independent(team: &Team) -> Outcome {
    let mut first = Window::<u64>::allocate(team, 1)?;
    let mut second = Window::<u64>::allocate(team, 1)?;
    match team.rank() {
        Rank(0) => {
            let first = first.post(Origins::Any)?;
            // The origin is through its first start, and before or in its second.
            until(|| first.load(0).unwrap() == 1);
            grace();
            second.store(0, 2)?;
            second.post(Origins::Any)?.wait(1)?;
            first.wait(1)?;
        }
        _ => {
            let one = first.start(Rank(0), Info::Strong)?;
            one.put(Rank(0), 0, 1)?;
            let two = second.start(Rank(0), Info::Strong)?;
            let seen = two.get_value(Rank(0), 0)?;
            let seen = two.complete_with(seen)?;
            one.complete()?;
            assert_eq!(seen, 2, "the second start returned before the second window was posted");
        }
    }
    Ok(())
}

// covers: RMA-WIN-06
fn memory_is_zeroed_and_aligned(team: &Team) -> Outcome {
    for len in [0, 1, 7, 1000, 100_000] {
        // The second window may reuse the memory of the first.
        for _ in 0..2 {
            let mut window = Window::<u8>::allocate(team, len)?;
            let mut local = window.local_mut()?;
            assert_eq!(local.as_ptr().addr() % 64, 0);
            assert!(local.iter().all(|&byte| byte == 0));
            local.fill(0xff);
        }
        team.barrier()?;
    }
    Ok(())
}

// covers: RMA-WIN-09
fn free_refuses_an_open_epoch(team: &Team) -> Outcome {
    let mut window = Window::<u8>::allocate(team, 1)?;
    if team.rank() == Rank(0) {
        window.post(Origins::Any)?.wait(1)?;
    } else {
        // Only a leaked guard can leave an epoch open at this point, and only by value is a window freed, so that a put
        // after it does not compile.
        std::mem::forget(window.start(Rank(0), Info::Strong)?);
        let error = window.free().expect_err("the access was never completed");
        assert_eq!(error.kind(), ErrorKind::EpochStillOpen);
    }
    team.barrier()?;
    let window = Window::<u8>::allocate(team, 1)?;
    window.free()?;
    Ok(())
}

// covers: RMA-WIN-11
fn arguments_are_checked_first(team: &Team) -> Outcome {
    let unit = if team.rank().0 + 1 == team.size() { 0 } else { 1 };
    assert_eq!(kind_of(WindowOptions::new().disp_unit(unit).allocate::<u8>(team, 4)), ErrorKind::BadDispUnit);
    let mut window = Window::<u64>::allocate(team, 4)?;
    let nobody = Rank(team.size());
    let out = ErrorKind::RankOutOfRange;
    assert_eq!(kind_of(window.len_at(nobody)), out);
    assert_eq!(kind_of(window.target_posted(nobody)), out);
    assert_eq!(kind_of(window.lock(nobody, LockKind::Shared, |_| ())), out);
    assert_eq!(kind_of(window.start(nobody, Info::Strong).map(|_| ())), out);
    assert_eq!(kind_of(window.start_group(&[nobody], Info::Strong).map(|_| ())), out);
    assert_eq!(kind_of(window.access(&[Rank(u32::MAX)], Info::NoCheck, |_| ())), out);
    assert_eq!(kind_of(window.post(Origins::Group(&[nobody])).map(|_| ())), out);
    let mut buffer = [0; 1];
    window.fence(|epoch| {
        assert_eq!(kind_of(epoch.put(nobody, 0, 1)), out);
        assert_eq!(kind_of(epoch.get(nobody, 0, &mut buffer)), out);
        assert_eq!(kind_of(epoch.accumulate(nobody, 0, Sum, 1)), out);
        assert_eq!(kind_of(epoch.get_value(nobody, 0)), out);
        assert_eq!(kind_of(epoch.get_vec(nobody, 0..1)), out);
        assert_eq!(kind_of(epoch.fetch_op(nobody, 0, Sum, 1)), out);
        assert_eq!(kind_of(epoch.compare_swap(nobody, 0, 1, 1)), out);
        assert_eq!(kind_of(epoch.get_accumulate(nobody, 0, Sum, 1)), out);
    })?;
    Ok(())
}

fn many_windows_come_and_go(team: &Team) -> Outcome {
    let mut kept = Vec::new();
    for round in 0..2000_u64 {
        let window = Window::<u64>::allocate(team, 64)?;
        window.lock(Rank(0), LockKind::Shared, |epoch| epoch.fetch_op(Rank(0), 0, Sum, round))?;
        if round % 8 == 0 {
            kept.push(window);
        }
    }
    team.barrier()?;
    if team.rank() == Rank(0) {
        for (index, window) in kept.iter().enumerate() {
            assert_eq!(window.local()?[0], 8 * index as u64 * u64::from(team.size()));
        }
    }
    Ok(())
}

fn shortage_is_an_error_on_every_rank(team: &Team) -> Outcome {
    let len = if team.rank() == Rank(0) { usize::MAX / 16 } else { 8 };
    assert_eq!(kind_of(Window::<u64>::allocate(team, len)), ErrorKind::System);
    // The team is as good as before.
    Window::<u64>::allocate(team, 8)?;
    Ok(())
}

/// Sets how large the files of this process may grow, memory of the job among them. `None` takes the limit away.
pub(crate) fn limit_files(bytes: Option<u64>) {
    let limit = bytes.map_or("unlimited".to_owned(), |bytes| bytes.to_string());
    let process = std::process::id().to_string();
    let set = std::process::Command::new("prlimit")
        .args(["--pid", &process, &format!("--fsize={limit}:")])
        .status()
        .expect("prlimit, of util-linux, is there");
    assert!(set.success(), "prlimit refuses {limit}");
}

/// One rank runs out of memory in the middle: the system has given some windows their pages, and refuses more. No rank is
/// ended by it, now or when it touches what it has.
fn a_limit_of_memory_is_an_error_on_every_rank(team: &Team) -> Outcome {
    const LEN: usize = 3 << 20;
    const WINDOWS_MAX: usize = 64;
    if team.rank() == Rank(1) {
        limit_files(Some(96 << 20));
    }
    team.barrier()?;
    let mut windows = Vec::new();
    let error = loop {
        assert!(windows.len() < WINDOWS_MAX, "the limit is not felt");
        match Window::<u8>::allocate(team, LEN) {
            Ok(window) => windows.push(window),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::System);
    assert!(error.to_string().contains("memory"), "{error}");
    assert!(!windows.is_empty());
    // Small windows, too, until the last piece of the last chunk is used.
    let mut small = Vec::new();
    while let Ok(window) = Window::<u8>::allocate(team, 100_000) {
        small.push(window);
        assert!(small.len() < 10_000, "the limit is not felt");
    }
    for window in windows.iter_mut().chain(&mut small) {
        window.local_mut()?.fill(7);
        let next = Rank((team.rank().0 + 1) % team.size());
        let len = window.len();
        window.fence(|epoch| epoch.put(next, 0, vec![8; len]))?;
        assert!(window.local()?.iter().all(|&byte| byte == 8));
    }
    // Without the limit the team is as good as before.
    if team.rank() == Rank(1) {
        limit_files(None);
    }
    team.barrier()?;
    Window::<u8>::allocate(team, LEN)?.free()?;
    Ok(())
}

/// The bytes of the job's memory that this process has mapped and touched.
fn job_bytes() -> u64 {
    let table = std::fs::read_to_string("/proc/self/status").expect("the system tells");
    let line = table.lines().find(|line| line.starts_with("RssShmem:")).expect("of shared memory");
    let kib: u64 = line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number");
    kib * 1024
}

/// Peers stop at 2,046.
fn four_thousand_windows_at_once(team: &Team) -> Outcome {
    const WINDOWS: usize = 4000;
    let next = Rank((team.rank().0 + 1) % team.size());
    let before = job_bytes();
    let mut windows = Vec::with_capacity(WINDOWS);
    for at in 0..WINDOWS as u64 {
        let window = Window::<u64>::allocate(team, 1)?;
        window.lock(next, LockKind::Exclusive, |epoch| epoch.put(next, 0, at))?;
        windows.push(window);
    }
    team.rma_barrier()?;
    for (at, window) in windows.iter().enumerate() {
        assert_eq!(window.load(0)?, at as u64);
    }
    // This process has touched what all ranks keep for the windows, where they are its threads or its neighbours.
    let each = job_bytes().saturating_sub(before) / (WINDOWS as u64 * u64::from(team.size()));
    assert!(each < 4096, "a window costs a rank {each} bytes");
    Ok(())
}

/// Memory that is given back is used again, so that it does not grow with the number of windows that have been.
fn a_hundred_thousand_windows_come_and_go(team: &Team) -> Outcome {
    let windows = if std::env::var_os("RMA_FULL").is_some() { 100_000 } else { 3_000 };
    let mut settled = 0;
    for at in 0..windows {
        // Small ones, and now and then one with pages of its own.
        let len = if at % 100 == 99 { 40_000 } else { at % 50 };
        let window = Window::<u64>::allocate(team, len)?;
        match at % 2 {
            0 => window.free()?,
            _ => drop(window),
        }
        if at == 1000 {
            settled = job_bytes();
        }
    }
    team.barrier()?;
    let grown = job_bytes().saturating_sub(settled);
    assert!(grown < 8 << 20, "{grown} bytes more after {windows} windows");
    Ok(())
}
