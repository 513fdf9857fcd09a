//! Put, get, accumulate: what arrives, and what is refused before a byte moves.

use rma::{
    ErrorKind, Info, LockKind, Origins, Rank, Section, Strided, Sum, Team, Window, own, strided, strided_mut,
};

use crate::{Case, Outcome, case, kind_of};

pub(crate) const CASES: &[Case] = &[
    case!(put_changes_exactly_its_bytes, [2]),
    case!(get_leaves_the_window_alone, [2]),
    case!(accumulate_combines_every_element, [1, 4]),
    case!(rows_become_columns, [1, 2]),
    case!(strided_sections_on_either_side, [2]),
    case!(the_own_window_is_an_origin, [1, 2]),
    case!(nothing_moves_out_of_bounds, [1, 2]),
    case!(layouts_that_overlap_are_refused, [1, 2]),
    case!(lengths_must_agree, [2]),
    case!(self_transfers_obey_the_epochs, [1, 2]),
    case!(nothing_is_still_a_transfer, [2]),
    case!(outside_an_epoch_there_is_no_transfer, [3]),
    case!(large_transfers_need_no_target, [2]).one_copy(),
    case!(every_alignment_arrives, [2]),
    case!(a_result_is_opened_by_its_own_epoch_only, [2]),
    case!(a_transfer_is_one_copy, [2]).mapped(),
    case!(whoever_copies_copies_all, [1]).mapped().one_copy(),
];

// covers: RMA-COMM-01
fn put_changes_exactly_its_bytes(team: &Team) -> Outcome {
    let mut window = Window::<f64>::allocate(team, 12)?;
    window.local_mut()?.fill(-1.0);
    window.fence(|epoch| match team.rank() {
        Rank(0) => epoch.put(Rank(1), 3, &[0.5, 1.5, 2.5, 3.5, 4.5]),
        _ => Ok(()),
    })?;
    let local = window.local()?;
    match team.rank() {
        Rank(0) => assert!(local.iter().all(|&value| value == -1.0)),
        _ => assert_eq!(*local, [-1.0, -1.0, -1.0, 0.5, 1.5, 2.5, 3.5, 4.5, -1.0, -1.0, -1.0, -1.0]),
    }
    Ok(())
}

// covers: RMA-COMM-02
fn get_leaves_the_window_alone(team: &Team) -> Outcome {
    let mut window = Window::<i32>::allocate(team, 100)?;
    let all: Vec<i32> = (0..100).collect();
    window.local_mut()?.copy_from_slice(&all);
    let mut ten = [0; 10];
    window.fence(|epoch| match team.rank() {
        Rank(0) => epoch.get(Rank(1), 40, &mut ten),
        _ => Ok(()),
    })?;
    if team.rank() == Rank(0) {
        assert_eq!(ten, [40, 41, 42, 43, 44, 45, 46, 47, 48, 49]);
    }
    assert_eq!(*window.local()?, all[..]);
    Ok(())
}

// covers: RMA-COMM-03
fn accumulate_combines_every_element(team: &Team) -> Outcome {
    let mut window = Window::<i64>::allocate(team, 3)?;
    window.fence(|epoch| epoch.accumulate(Rank(0), 0, Sum, [1, 2, 3]))?;
    let ranks = i64::from(team.size());
    if team.rank() == Rank(0) {
        assert_eq!(*window.local()?, [ranks, 2 * ranks, 3 * ranks]);
    }
    Ok(())
}

fn rows_become_columns(team: &Team) -> Outcome {
    let mut window = Window::<f64>::allocate(team, 100)?;
    let target = Rank(team.size() - 1);
    let row: Vec<f64> = (0..8).map(f64::from).collect();
    let column = Strided { start: 3, count: 8, block: 1, stride: 10 };
    let mut back = [0.0; 8];
    window.fence(|epoch| {
        if team.rank() == Rank(0) {
            epoch.put(target, column, &row)?;
        }
        Ok(())
    })?;
    window.fence(|epoch| epoch.get(target, column, &mut back))?;
    assert_eq!(back[..], row);
    if team.rank() == target {
        let local = window.local()?;
        for (at, &value) in local.iter().enumerate() {
            let expected = if at % 10 == 3 && at < 80 { (at / 10) as f64 } else { 0.0 };
            assert_eq!(value, expected, "element {at}");
        }
    }
    Ok(())
}

fn strided_sections_on_either_side(team: &Team) -> Outcome {
    let mut window = Window::<u16>::allocate(team, 64)?;
    let matrix: Vec<u16> = (0..64).collect();
    // Blocks of 3 here, blocks of 2 there.
    let here = Strided { start: 1, count: 4, block: 3, stride: 8 };
    let there = Strided { start: 2, count: 6, block: 2, stride: 5 };
    let mut back = vec![0_u16; 64];
    let next = Rank((team.rank().0 + 1) % team.size());
    window.fence(|epoch| {
        epoch.put(next, there, strided(&matrix, here))?;
        epoch.fence()?;
        epoch.get(next, there, strided_mut(&mut back, here))
    })?;
    let sent: Vec<u16> = (0..4).flat_map(|block| (0..3).map(move |i| 1 + block * 8 + i)).collect();
    let local = window.local()?;
    let arrived: Vec<u16> = (0..6).flat_map(|block| [local[2 + block * 5], local[3 + block * 5]]).collect();
    assert_eq!(arrived, sent);
    assert_eq!(local.iter().filter(|&&value| value != 0).count(), 12);
    for (at, &value) in back.iter().enumerate() {
        let inside = (0..4).any(|block| (1 + block * 8..4 + block * 8).contains(&at));
        assert_eq!(value, if inside { at as u16 } else { 0 });
    }
    Ok(())
}

fn the_own_window_is_an_origin(team: &Team) -> Outcome {
    let mut window = Window::<u32>::allocate(team, 16)?;
    let me = team.rank().0;
    for (at, value) in window.local_mut()?.iter_mut().enumerate() {
        *value = me * 100 + at as u32;
    }
    let next = Rank((me + 1) % team.size());
    let previous = (me + team.size() - 1) % team.size();
    window.fence(|epoch| epoch.put(next, 8, own(0..4)))?;
    window
        .fence(|epoch| epoch.get(next, 8..12, own(Strided { start: 12, count: 4, block: 1, stride: 1 })))?;
    let local = window.local()?;
    assert_eq!(local[8..12], [0, 1, 2, 3].map(|at| previous * 100 + at));
    assert_eq!(local[12..16], [0, 1, 2, 3].map(|at| me * 100 + at), "the get brought back what the put took");
    drop(local);
    window.fence(|epoch| {
        assert_eq!(kind_of(epoch.put(Rank(me), 2, own(0..4))), ErrorKind::ConflictingAccess);
        assert_eq!(kind_of(epoch.put(next, 0, own(14..18))), ErrorKind::OutOfBounds);
    })?;
    Ok(())
}

// covers: RMA-COMM-07
fn nothing_moves_out_of_bounds(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 8)?;
    let target = Rank(team.size() - 1);
    let id = window.id();
    let error = window.fence(|epoch| epoch.put(target, 6, &[1, 2, 3])).expect_err("two slots are left");
    assert_eq!(error.kind(), ErrorKind::OutOfBounds);
    let text = error.to_string();
    for part in ["put", "6..9", &format!("window {id}"), &format!("rank {target}"), "8"] {
        assert!(text.contains(part), "{part} is missing in: {text}");
    }
    assert!(error.context().location.file().ends_with("transfers.rs"), "{error:?}");
    // A negative displacement does not compile, as displacements are unsigned; those that would overflow are refused.
    let mut two = [[0; 2]; 4];
    let mut buffers = two.iter_mut();
    window.fence(|epoch| {
        let far = [8, usize::MAX, usize::MAX / 8, usize::MAX / 8 + 1];
        for at in far {
            assert_eq!(kind_of(epoch.put(target, at, 1)), ErrorKind::OutOfBounds, "{at}");
            assert_eq!(
                kind_of(epoch.get(target, at, buffers.next().expect("one for each"))),
                ErrorKind::OutOfBounds,
                "{at}"
            );
            assert_eq!(kind_of(epoch.get_value(target, at)), ErrorKind::OutOfBounds, "{at}");
            assert_eq!(kind_of(epoch.accumulate(target, at, Sum, 1)), ErrorKind::OutOfBounds, "{at}");
            assert_eq!(kind_of(epoch.fetch_op(target, at, Sum, 1)), ErrorKind::OutOfBounds, "{at}");
            assert_eq!(kind_of(epoch.compare_swap(target, at, 0, 1)), ErrorKind::OutOfBounds, "{at}");
            assert_eq!(kind_of(epoch.load(at)), ErrorKind::OutOfBounds, "{at}");
            assert_eq!(kind_of(epoch.store(at, 1)), ErrorKind::OutOfBounds, "{at}");
        }
        assert_eq!(kind_of(epoch.get_vec(target, 0..usize::MAX)), ErrorKind::OutOfBounds);
        assert_eq!(kind_of(epoch.read(7, &mut [0; 2])), ErrorKind::OutOfBounds);
        assert_eq!(kind_of(epoch.write(7, &[0; 2])), ErrorKind::OutOfBounds);
        let wide = Strided { start: 0, count: 2, block: 1, stride: usize::MAX / 2 };
        assert_eq!(kind_of(epoch.put(target, wide, &[1, 2])), ErrorKind::OutOfBounds);
        // An index may overflow to a small number when it is multiplied.
        let wraps = Strided { start: 0, count: 3, block: 1, stride: usize::MAX / 2 + 1 };
        assert_eq!(kind_of(epoch.put(target, wraps, &[1, 2, 3])), ErrorKind::OutOfBounds);
    })?;
    assert!(window.local()?.iter().all(|&value| value == 0));
    Ok(())
}

// covers: RMA-COMM-08
fn layouts_that_overlap_are_refused(team: &Team) -> Outcome {
    let mut window = Window::<u8>::allocate(team, 16)?;
    window.local_mut()?[3] = 9;
    let target = Rank(team.size() - 1);
    let same = Strided { start: 3, count: 4, block: 1, stride: 0 };
    let half = Strided { start: 0, count: 2, block: 4, stride: 2 };
    let mut four = [0; 4];
    let mut eight = [0; 8];
    window.fence(|epoch| {
        for section in [Section::from(same), Section::from(Strided { block: 2, count: 2, stride: 1, ..same })]
        {
            assert_eq!(kind_of(epoch.put(target, section, &[1; 4])), ErrorKind::OverlappingLayout);
            assert_eq!(
                kind_of(epoch.accumulate(target, section, Sum, &[1; 4])),
                ErrorKind::OverlappingLayout
            );
        }
        assert_eq!(kind_of(epoch.put(target, half, [1; 8])), ErrorKind::OverlappingLayout);
        epoch.get(target, same, &mut four)?;
        assert_eq!(
            kind_of(epoch.get(target, 0, strided_mut(&mut eight, half))),
            ErrorKind::OverlappingLayout
        );
        Ok(())
    })?;
    assert_eq!(four, [9; 4]);
    assert_eq!(window.local()?.iter().map(|&value| u32::from(value)).sum::<u32>(), 9);
    Ok(())
}

fn lengths_must_agree(team: &Team) -> Outcome {
    let mut window = Window::<u8>::allocate(team, 16)?;
    let mut three = [0; 3];
    window.fence(|epoch| {
        assert_eq!(kind_of(epoch.put(Rank(0), 0..4, &[1; 5])), ErrorKind::LengthMismatch);
        assert_eq!(kind_of(epoch.put(Rank(0), Section::Range(4, 2), &[1; 0])), ErrorKind::OutOfBounds);
        let column = Strided { start: 0, count: 4, block: 1, stride: 4 };
        assert_eq!(kind_of(epoch.get(Rank(0), column, &mut three)), ErrorKind::LengthMismatch);
        assert_eq!(kind_of(epoch.get_vec(Rank(0), 3)), ErrorKind::LengthMismatch);
        assert_eq!(kind_of(epoch.put(Rank(1), 0, own(3))), ErrorKind::LengthMismatch);
    })?;
    Ok(())
}

// covers: RMA-COMM-12
fn self_transfers_obey_the_epochs(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 4)?;
    let me = team.rank();
    let exposure = window.post(Origins::Group(&[me]))?;
    let access = exposure.start(me, Info::Strong)?;
    access.put(me, 1, 42)?;
    access.complete()?;
    exposure.wait_all()?;
    assert_eq!(window.load(1)?, 42);
    // Without an epoch there is no way in.
    let other = window.lock(me, LockKind::Exclusive, |epoch| epoch.put(me, 2, 43));
    other?;
    assert_eq!(window.local()?[2], 43);
    Ok(())
}

// covers: RMA-COMM-14
fn nothing_is_still_a_transfer(team: &Team) -> Outcome {
    let window = Window::<u64>::allocate(team, 4)?;
    let other = Rank(1 - team.rank().0);
    window.lock(Rank(0), LockKind::Shared, |epoch| {
        epoch.put(Rank(0), 0, &[])?;
        epoch.put(Rank(0), 4, &[])?;
        epoch.put(Rank(0), Strided { start: 0, count: 0, block: 9, stride: 9 }, &[])?;
        epoch.get(Rank(0), 2..2, &mut [])?;
        epoch.accumulate(Rank(0), 4, Sum, &[])?;
        assert_eq!(kind_of(epoch.put(Rank(1), 0, &[])), ErrorKind::TransferOutsideEpoch);
        assert_eq!(kind_of(epoch.accumulate(Rank(1), 0, Sum, &[])), ErrorKind::TransferOutsideEpoch);
        Ok(())
    })?;
    team.barrier()?;
    assert!(window.local()?.iter().all(|&value| value == 0), "rank {other} put nothing");
    Ok(())
}

// covers: RMA-SYNC-25
fn outside_an_epoch_there_is_no_transfer(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 4)?;
    let error = window
        .lock(Rank(0), LockKind::Shared, |epoch| epoch.put(Rank(1), 0, 1))
        .expect_err("the lock is rank 0's");
    assert_eq!(error.kind(), ErrorKind::TransferOutsideEpoch);
    for way in ["fence", "start", "lock"] {
        assert!(error.to_string().contains(way), "{error}");
    }
    team.barrier()?;
    // After an access is completed, its target is closed again; the other stays open.
    let (me, next) = (team.rank(), Rank((team.rank().0 + 1) % team.size()));
    let exposure = window.post(Origins::Any)?;
    let mine = exposure.start(me, Info::Strong)?;
    let theirs = exposure.start(next, Info::Strong)?;
    theirs.complete()?;
    assert_eq!(kind_of(mine.put(next, 0, 1)), ErrorKind::TransferOutsideEpoch);
    mine.put(me, 0, 1)?;
    mine.complete()?;
    exposure.wait(2)?;
    Ok(())
}

// covers: RMA-COMM-13
fn large_transfers_need_no_target(team: &Team) -> Outcome {
    const LEN: usize = 256 << 20 >> 3;
    let window = Window::<u64>::allocate(team, if team.rank() == Rank(1) { LEN } else { 1 })?;
    match team.rank() {
        Rank(0) => {
            let data: Vec<u64> = (0..LEN as u64).map(|at| at.wrapping_mul(0x9e37_79b9)).collect();
            window.lock(Rank(1), LockKind::Exclusive, |epoch| epoch.put(Rank(1), 0, &data))?;
            window.lock(Rank(0), LockKind::Exclusive, |epoch| epoch.store(0, 1))?;
            window.lock(Rank(1), LockKind::Exclusive, |epoch| epoch.put(Rank(1), 0, 77))?;
        }
        // The target makes no call until the data are there; it looks with plain loads only.
        _ => crate::until(|| window.load(0).unwrap() == 77),
    }
    team.barrier()?;
    if team.rank() == Rank(1) {
        let local = window.local()?;
        assert!(local[1..].iter().zip(1..).all(|(&value, at)| value == u64::wrapping_mul(at, 0x9e37_79b9)));
    }
    Ok(())
}

fn every_alignment_arrives(team: &Team) -> Outcome {
    let mut window = Window::<u8>::allocate(team, 128)?;
    let data: Vec<u8> = (0..96_u8).map(|at| at.wrapping_mul(3) | 1).collect();
    for target_at in 0..9 {
        for origin_at in 0..9 {
            let len = (target_at * 9 + origin_at) % 70;
            window.local_mut()?.fill(0xcc);
            window.fence(|epoch| match team.rank() {
                Rank(0) => epoch.put(Rank(1), target_at, &data[origin_at..origin_at + len]),
                _ => Ok(()),
            })?;
            if team.rank() == Rank(1) {
                let local = window.local()?;
                assert_eq!(local[target_at..target_at + len], data[origin_at..origin_at + len]);
                assert!(local[..target_at].iter().chain(&local[target_at + len..]).all(|&byte| byte == 0xcc));
            }
        }
    }
    Ok(())
}

/// How many bytes a call of this thread has copied, and how many of them somebody else has copied for it.
fn copied_in(call: impl FnOnce() -> rma::Result<()>) -> rma::Result<(u64, u64)> {
    let before = rma::private::testing::copied();
    call()?;
    let after = rma::private::testing::copied();
    Ok((after.0 - before.0, after.1 - before.1))
}

/// What a transfer without an intermediate buffer copies is what it transfers: a buffer would make it twice as much.
// covers: RMA-SHM-01
fn a_transfer_is_one_copy(team: &Team) -> Outcome {
    const LEN: usize = (1 << 20) / size_of::<u64>();
    const MIB: u64 = 1 << 20;
    let mut window = Window::<u64>::allocate(team, LEN)?;
    let numbers: Vec<u64> = (0..LEN as u64).collect();
    let mut back = vec![0; LEN];
    // Blocks of three elements, so that none is a single word, which is an access and no copy.
    let (blocks, each) = (LEN / 5, 3);
    let spread = Strided { start: 1, count: blocks, block: each, stride: 5 };
    let payload = (blocks * each * size_of::<u64>()) as u64;
    let packed = vec![7; blocks * each];
    window.fence(|epoch| {
        if team.rank() == Rank(0) {
            let (put, _) = copied_in(|| epoch.put(Rank(1), 0, &numbers))?;
            assert_eq!(put, MIB, "a put of 1 MiB");
            let (put, _) = copied_in(|| epoch.put(Rank(1), spread, &packed))?;
            assert_eq!(put, payload, "a put of a block in every stride");
            let (put, _) = copied_in(|| epoch.put(Rank(1), spread, strided(&numbers, spread)))?;
            assert_eq!(put, payload, "a put with strides on either side");
        }
        epoch.fence()?;
        if team.rank() == Rank(0) {
            let (got, _) = copied_in(|| epoch.get(Rank(1), 0, &mut back))?;
            assert_eq!(got, MIB, "a get of 1 MiB");
        }
        Ok(())
    })?;
    if team.rank() == Rank(0) {
        assert_eq!(back, numbers);
    }
    Ok(())
}

// covers: RMA-SHM-05
fn whoever_copies_copies_all(_: &Team) -> Outcome {
    use rma::CopyEngine;
    const BYTES: u64 = 3 << 20;
    for (engine, by_others) in
        [(CopyEngine::Mapped, 0), (CopyEngine::Calls, BYTES), (CopyEngine::Thread, BYTES)]
    {
        let results = rma::Job::new(2).copy_engine(engine).try_spawn(|team| {
            let mut window = Window::<u8>::allocate(team, BYTES as usize + 3)?;
            let origin: Vec<u8> = (0..BYTES).map(|at| at as u8 % 251).collect();
            window.fence(|epoch| {
                if team.rank() == Rank(0) {
                    let copied = copied_in(|| epoch.put(Rank(1), 2, &origin))?;
                    assert_eq!(copied, (BYTES, by_others), "{engine:?}");
                }
                Ok(())
            })?;
            let local = window.local()?;
            Ok::<bool, rma::Error>(local[2..][..BYTES as usize] == origin[..] && local[..2] == [0; 2])
        })?;
        let arrived: Vec<bool> = results.into_iter().collect::<rma::Result<_>>()?;
        assert_eq!(arrived, [false, true], "{engine:?}");
    }
    Ok(())
}

fn a_result_is_opened_by_its_own_epoch_only(team: &Team) -> Outcome {
    let busy = ErrorKind::OriginBufferBusy;
    let (mine, other) = (team.rank(), Rank(1 - team.rank().0));
    let (one, two) = (Window::<u64>::allocate(team, 1)?, Window::<u64>::allocate(team, 1)?);
    one.lock(mine, LockKind::Exclusive, |epoch| epoch.store(0, 7))?;
    team.barrier()?;
    one.lock(other, LockKind::Shared, |epoch| {
        let [first, second, third] = [(); 3].map(|()| epoch.get_value(other, 0));
        let (first, second, third) = (first?, second?, third?);
        assert_eq!(kind_of(two.lock(other, LockKind::Shared, |_| first)), busy, "another window");
        let own = one.acquire(mine, LockKind::Shared, Info::Strong)?;
        assert_eq!(kind_of(own.unlock_with(second)), busy, "another rank");
        assert_eq!(epoch.flush(third)?, 7);
        Ok(())
    })?;
    one.lock_all(|epoch| {
        let (early, right) = (epoch.get_value(other, 0)?, epoch.get_value(other, 0)?);
        assert_eq!(kind_of(epoch.flush(mine, early)), busy, "a flush of another rank");
        assert_eq!(epoch.flush_all(vec![right])?, [7]);
        Ok(())
    })?;
    team.barrier()?;
    Ok(())
}
