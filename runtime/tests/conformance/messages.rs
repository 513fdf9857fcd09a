//! The sentence of every kind of error that a window's calls can give: call, window, caller, target, range and other party.
//! Never compares what differs from run to run: numbers of windows, lists of who waits.

use rma::{
    Datatype, Error, ErrorKind, Info, LockKind, Origins, Rank, Strided, Sum, Team, Window, WindowOptions,
    own, typed_mut,
};

use crate::{Case, Outcome, case, stalled};

pub(crate) const CASES: &[Case] = &[
    case!(mistakes_of_arguments_have_their_sentences, [2]).one_copy(),
    case!(mistakes_of_order_have_their_sentences, [2]).one_copy().under(&[""]),
    case!(results_opened_early_have_their_sentence, [2]).one_copy().under(&[""]),
    case!(failures_of_others_have_their_sentences, [3]).one_copy().under(&[""]),
];

/// Compares an error with its kind and sentence. `W` stands for the window's number, `…` at the end for the rest.
#[track_caller]
fn says(error: Error, window: u64, kind: ErrorKind, sentence: &str) {
    let text = error.to_string().replace(&format!("window {window} "), "window W ");
    let fits = match sentence.strip_suffix('…') {
        Some(begin) => text.starts_with(begin),
        None => text == sentence,
    };
    assert!(error.kind() == kind && fits, "{:?}: {text}\nexpected: {kind:?}: {sentence}", error.kind());
    assert!(error.context().location.file().ends_with("messages.rs"), "{error:?}");
}

/// As `says`, of an epoch under NOCHECK: what it takes for granted is looked at by the first of these calls where the target's
/// memory is mapped, and by the second where it is not.
#[track_caller]
fn says_unchecked(error: Error, window: u64, kind: ErrorKind, calls: [&str; 2], rest: &str) {
    let call = error.context().call;
    assert!(calls.contains(&call), "{error}");
    says(error, window, kind, &format!("{call} {rest}"));
}

/// The error of a call that should fail.
#[track_caller]
fn failed<T>(result: rma::Result<T>) -> Error {
    match result {
        Ok(_) => panic!("the call should fail"),
        Err(error) => error,
    }
}

fn mistakes_of_arguments_have_their_sentences(team: &Team) -> Outcome {
    let me = team.rank();
    let unit = failed(WindowOptions::new().disp_unit(0).allocate::<u32>(team, 4));
    says(
        unit,
        0,
        ErrorKind::BadDispUnit,
        &format!("window allocation by rank {me} has a displacement unit of zero: rank 0 gave a unit of 0"),
    );
    let shortage = failed(Window::<u64>::allocate(team, if me == Rank(1) { usize::MAX / 8 } else { 1 }));
    says(
        shortage,
        0,
        ErrorKind::System,
        &format!("window allocation by rank {me} was refused by the operating system: …"),
    );
    let mut window = WindowOptions::new().disp_unit(2).allocate::<u32>(team, 8)?;
    let id = window.id();
    let (mut three, all_three) = ([0_u32; 3], Datatype::of::<u32>().contiguous(3)?);
    let (mut wide, one_wide) = ([0_u64; 1], Datatype::of::<u64>());
    window.fence(|epoch| {
        if me == Rank(1) {
            return;
        }
        let target = Rank(1);
        says(
            failed(epoch.put(Rank(9), 0, 1)),
            id,
            ErrorKind::RankOutOfRange,
            "put of elements 0..1 on window W at rank 9 by rank 0 names a rank that is not in the team: the window has 2 ranks",
        );
        says(
            failed(epoch.put(target, 14, [1, 2, 3])),
            id,
            ErrorKind::OutOfBounds,
            "put of elements 14..17 on window W at rank 1 by rank 0 reaches outside the window: its length is 16",
        );
        says(failed(epoch.get_vec(target, 3)), id, ErrorKind::LengthMismatch, "get on window W at rank 1 by rank 0 differs in length between origin and target: \
            neither side says how many elements; give a range");
        says(failed(epoch.put(target, 0..3, [1, 2])), id, ErrorKind::LengthMismatch, "put of elements 0..3 on window W at rank 1 by rank 0 differs in length between \
            origin and target: the target section has 3 elements, the origin 2");
        let twice = Strided { start: 0, count: 2, block: 2, stride: 1 };
        says(failed(epoch.put(target, twice, [1, 2, 3, 4])), id, ErrorKind::OverlappingLayout, "put of elements 0..3 on window W at rank 1 by rank 0 has a target layout that \
            names a byte twice");
        // Displacements are two bytes apart, elements have four.
        let overlap = "conflicts with a concurrent access to the same location: bytes 0..16 of the own window, which it names at \
            the target, and bytes 2..18, at the origin, are not apart";
        says(
            failed(epoch.put(me, 0..4, own(1))),
            id,
            ErrorKind::ConflictingAccess,
            &format!("put of elements 0..4 on window W at rank 0 by rank 0 {overlap}"),
        );
        says(
            failed(epoch.accumulate(me, 0..4, Sum, own(1))),
            id,
            ErrorKind::ConflictingAccess,
            &format!("accumulate of elements 0..4 on window W at rank 0 by rank 0 {overlap}"),
        );
        says(
            failed(epoch.get(target, 3..5, typed_mut(&mut three, &all_three))),
            id,
            ErrorKind::LengthMismatch,
            "get of elements 3..5 on window W at rank 1 by rank 0 differs in length between origin and target: \
            the target section has 2 items of basic types, the origin 3",
        );
        says(
            failed(epoch.get(target, 3..4, typed_mut(&mut wide, &one_wide))),
            id,
            ErrorKind::DatatypeMismatch,
            "get of elements 3..4 on window W at rank 1 by rank 0 differs in basic types between origin and target: \
            item 0 is u32 at the target and u64 at the origin",
        );
        says(failed(epoch.load(8)), id, ErrorKind::OutOfBounds, "load of elements 8..9 on window W at rank 0 by rank 0 reaches outside the \
            window: its length is 8");
    })?;
    Ok(())
}

fn mistakes_of_order_have_their_sentences(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 4)?;
    let id = window.id();
    let (owner, origin) = (Rank(0), Rank(1));
    if team.rank() == owner {
        says(
            failed(window.post(Origins::Any)?.wait_all()),
            id,
            ErrorKind::WaitWithoutPost,
            "wait on window W by rank 0 finds the window not posted: no group was posted; \
            give a count",
        );
        let exposure = window.post(Origins::Any)?;
        team.barrier()?;
        team.barrier()?;
        says(
            failed(exposure.wait(0)),
            id,
            ErrorKind::CountExceeded,
            "wait on window W by rank 0 counts another number of origins than come, against ranks 1 on \
            exposure 2: it counts 0",
        );
        team.barrier()?;
        team.barrier()?;
        // Rank 1 has the lock.
        says(
            failed(window.post(Origins::Any)),
            id,
            ErrorKind::MixedSync,
            "post on window W by rank 0 overlaps with another synchronization style on the \
            window, against the lock of rank 1 on this rank's window",
        );
        team.barrier()?;
        let view = window.local()?;
        says(
            failed(window.lock(owner, LockKind::Shared, |_| ())),
            id,
            ErrorKind::EpochStillOpen,
            "lock on window W at rank 0 by rank 0 finds an epoch still open: a local view of \
            the own window is alive, and holds the own lock",
        );
        let stored = window.lock(origin, LockKind::Shared, |epoch| epoch.store(0, 1));
        says(
            failed(stored),
            id,
            ErrorKind::StoreDuringUpdate,
            "store of elements 0..1 on window W at rank 0 by rank 0 is a store that no synchronization orders \
            with a remote update: a local view of the own window is alive",
        );
        drop(view);
        team.barrier()?;
        std::mem::forget(window.post(Origins::Group(&[]))?);
        team.barrier()?;
        says(
            failed(window.post(Origins::Any)),
            id,
            ErrorKind::AlreadyPosted,
            "post on window W by rank 0 finds the window already posted, against the own \
            exposure, which is not waited for",
        );
        says(
            failed(window.local()),
            id,
            ErrorKind::EpochStillOpen,
            "local on window W by rank 0 finds an epoch still open, against the own exposure, \
            which is not waited for",
        );
        team.barrier()?;
        says(
            failed(window.free()),
            id,
            ErrorKind::EpochStillOpen,
            "free on window W by rank 0 finds an epoch still open: the own exposure was not \
            waited for",
        );
        return Ok(());
    }
    team.barrier()?;
    let access = window.start(owner, Info::Strong)?;
    says(
        failed(window.start(owner, Info::Strong)),
        id,
        ErrorKind::StartNested,
        "start on window W at rank 0 by rank 1 finds the access epoch toward its target \
            already open, against the own access of ranks 0, which is not completed",
    );
    says(
        failed(window.lock(owner, LockKind::Shared, |_| ())),
        id,
        ErrorKind::MixedSync,
        "lock on window W at rank 0 by rank 1 overlaps with another synchronization style \
            on the window, against the own access of ranks 0, which is not completed",
    );
    says(
        failed(access.put(origin, 1, 5)),
        id,
        ErrorKind::TransferOutsideEpoch,
        "put of elements 1..2 on window W at rank 1 by rank 1 has no access epoch or lock for its target: \
            open one by a fence, by start, or by a lock of the target",
    );
    let mut refused = vec![failed(access.get_value(origin, 1)), failed(access.fetch_op(origin, 1, Sum, 1))];
    refused.push(failed(access.compare_swap(origin, 1, 0, 1)));
    refused.push(failed(access.get_vec(origin, 1..2)));
    refused.push(failed(access.accumulate(origin, 1, Sum, 1)));
    refused.push(failed(access.get_accumulate(origin, 1, Sum, [1])));
    for (call, error) in
        ["get", "fetch_op", "compare_swap", "get", "accumulate", "get_accumulate"].into_iter().zip(refused)
    {
        let sentence =
            format!("{call} of elements 1..2 on window W at rank 1 by rank 1 has no access epoch …");
        says(error, id, ErrorKind::TransferOutsideEpoch, &sentence);
    }
    access.complete()?;
    let unchecked = || failed(window.start(owner, Info::NoCheck).and_then(|access| access.complete()));
    says_unchecked(
        unchecked(),
        id,
        ErrorKind::NotPosted,
        ["start", "complete"],
        "on window W at rank 0 by rank 1 promised a posted window, but the window \
            is not posted: this rank has used exposure 2 already, and no other was posted \
            since",
    );
    team.barrier()?;
    team.barrier()?;
    window.lock(owner, LockKind::Exclusive, |_| {
        team.barrier()?;
        team.barrier()?;
        says(
            failed(window.lock(owner, LockKind::Shared, |_| ())),
            id,
            ErrorKind::LockHeld,
            "lock on window W at rank 0 by rank 1 finds the lock already held by its caller, \
            against the own lock of ranks 0",
        );
        Ok(())
    })?;
    team.barrier()?;
    team.barrier()?;
    says_unchecked(
        unchecked(),
        id,
        ErrorKind::NotInGroup,
        ["start", "complete"],
        "on window W at rank 0 by rank 1 comes from a rank that is not in the \
            posted group",
    );
    let free = window.lock_with(owner, LockKind::Exclusive, Info::NoCheck, |epoch| epoch.put(owner, 0, 1));
    says_unchecked(
        failed(free),
        id,
        ErrorKind::MixedSync,
        ["lock", "unlock"],
        "on window W at rank 0 by rank 1 overlaps with another synchronization style \
            on the window, against its owner's post",
    );
    team.barrier()?;
    Ok(())
}

fn results_opened_early_have_their_sentence(team: &Team) -> Outcome {
    let (window, other) = (Window::<u64>::allocate(team, 1)?, Window::<u64>::allocate(team, 1)?);
    let (me, target) = (team.rank(), Rank(1 - team.rank().0));
    let sentence = format!(
        "opening of a result on window W at rank {target} by rank {me} touches an origin buffer whose operation is not complete: the \
        result belongs to an epoch of another window or toward another rank; the closing call or a flush of its own epoch opens it"
    );
    window.lock(target, LockKind::Shared, |epoch| {
        let value = epoch.get_value(target, 0)?;
        let error = failed(other.lock(target, LockKind::Shared, |_| value));
        says(error, other.id(), ErrorKind::OriginBufferBusy, &sentence);
        let value = epoch.get_value(target, 0);
        let error = failed(window.lock(me, LockKind::Shared, |_| value));
        says(error, window.id(), ErrorKind::OriginBufferBusy, &sentence);
        Ok::<(), Error>(())
    })?;
    team.barrier()?;
    Ok(())
}

fn failures_of_others_have_their_sentences(team: &Team) -> Outcome {
    let me = team.rank();
    let mut window = Window::<u64>::allocate(team, 1)?;
    let id = window.id();
    if me == Rank(0) {
        window.lock(Rank(0), LockKind::Exclusive, |_| {
            team.barrier()?;
            team.barrier()
        })?;
    } else {
        team.barrier()?;
        let free =
            window.lock_with(Rank(0), LockKind::Shared, Info::NoCheck, |epoch| epoch.put(Rank(0), 0, 1));
        says_unchecked(
            failed(free),
            id,
            ErrorKind::NoCheckConflict,
            ["lock", "unlock"],
            &format!(
                "on window W at rank 0 by rank {me} promised that no lock conflicts, but one \
            does, against the lock of rank 0"
            ),
        );
        if me == Rank(1) {
            says(
                stalled(team, || window.lock(Rank(0), LockKind::Shared, |_| ())),
                id,
                ErrorKind::Stalled,
                "lock on window W at rank 0 by rank 1 passed its time limit: 400ms have passed; \
            wait-for cycle: rank 1 in lock on window W waits for rank 0 in barrier waits for \
            rank 1; rank 0 waits in barrier for rank 1 (meeting …",
            );
        }
        team.barrier()?;
    }
    let mut other = Window::<u64>::allocate(team, 1)?;
    let which = if me == Rank(0) { &mut window } else { &mut other };
    let error = failed(which.fence(|_| ()));
    says(
        error,
        which.id(),
        ErrorKind::CollectiveMismatch,
        &format!(
            "fence on window W by rank {me} met a different collective call, against fence on \
            window …"
        ),
    );
    says(
        failed(which.fence(|_| ())),
        which.id(),
        ErrorKind::Poisoned,
        &format!(
            "fence on window W by rank {me} is refused after an earlier failure: the window \
            is out of use: the ranks came to different collective calls"
        ),
    );
    team.barrier()?;
    Ok(())
}
