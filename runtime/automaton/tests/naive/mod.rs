//! A second transcription of the requirements, written independently of the table, one call after another.
//! Never calls `State::step`.
//!
//! Each function below is one sentence of the requirements, or one call put together from such sentences. Where the
//! requirements are silent, the comment starts with `silent:`; `silent (crate):` means that the crate's documentation
//! settles the point, which makes this oracle no independent witness there.
//!
//! Sentences transcribed:
//!
//! - docs/spec/rma.md: RMA-WIN-08, 09, 11; RMA-COMM-07, 12, 14; RMA-SYNC-01, 06, 07, 08, 12, 15, 16, 17, 18, 19, 20,
//!   25; RMA-INFO-05, 06; RMA-BAR-04, 05, 08; RMA-LOCK-04, 07, 09, 10, 12, 13, 14; RMA-CORR-01, 03, 05.
//! - docs/spec/visibility.md: VIS-R6-01, 02; VIS-R7-01, 02, 03, 04; the table of section 2.
//! - docs/spec/pgo.md: PGO-IOFFER-01, 02, 05 and the rule of local references.
//! - docs/spec/register-hazard.md: REG-LINT-30, 31, 35 (the outcomes that these rules judge by).
//! - The table "Error kinds" of docs/spec/README.md; the rules of guards, offers and failures of the design.
//! - MPI's chapter on one-sided communication: one START per window; COMPLETE ends its whole group; locks of one
//!   target do not nest; a window is not locked and exposed at once; epochs of one origin on one window are disjoint;
//!   FLUSH needs a lock epoch; the assertions of a fence; WIN_SYNC.
//!
//! Time limits, waiting, collective agreement and which bytes overlap are no matter of this module.

use rma_automaton::{
    AccessState, Assertion, Call, Check, Dialect, Elsewhere, ErrorKind, ExposureState, Held, Input, Inputs,
    LocalOp, LockKind, Outcome, Permit, Side, State, Toward, Transfer, Tri, WaitFor,
};

/// The outcomes of a call in a state, in any order; none if the dialect does not have the call.
///
/// Inputs may be unknown; then the outcomes of yes and of no are both in the list.
///
/// # Panics
///
/// Panics if a rule asks for an input that `Call::reads` does not name, or leads to a state that does not exist.
pub(crate) fn naive(dialect: Dialect, state: State, call: Call, inputs: Inputs) -> Vec<Outcome> {
    if !dialect_has(dialect, call) {
        return Vec::new();
    }
    for &input in call.reads() {
        if inputs.get(input) == Tri::Unknown {
            let mut outcomes = naive(dialect, state, call, inputs.with(input, Tri::Yes));
            for outcome in naive(dialect, state, call, inputs.with(input, Tri::No)) {
                if !outcomes.contains(&outcome) {
                    outcomes.push(outcome);
                }
            }
            return outcomes;
        }
    }
    let outcome = match one(dialect, state, call, inputs) {
        Ok(next) => Outcome::Next(next),
        Err(kind) => Outcome::Error(kind),
    };
    vec![outcome]
}

/// The outcome of a call whose inputs are known.
fn one(dialect: Dialect, state: State, call: Call, inputs: Inputs) -> Result<State, ErrorKind> {
    match call {
        Call::Barrier => plain_barrier(state),
        Call::Finalize => finalize(state),
        Call::Free => free(state),
        Call::Poison => poison(state),
        Call::Fence(assertion) => fence(state, assertion),
        Call::RmaBarrier => rma_barrier(state),
        Call::Start(toward, check) => start(dialect, state, toward, check, inputs),
        Call::Complete(toward) => complete(state, toward, inputs),
        Call::Post(permit) => post(dialect, state, permit, inputs),
        Call::Wait(wait_for) => wait(state, wait_for, inputs),
        Call::Test(wait_for) => test(state, wait_for, inputs),
        Call::Lock(toward, kind, check) => lock(dialect, state, toward, kind, check, inputs),
        Call::Unlock(toward) => unlock(dialect, state, toward, inputs),
        Call::LockAll => lock_all(state, inputs),
        Call::UnlockAll => unlock_all(state),
        Call::Flush(toward) => flush(state, toward, inputs),
        Call::Sync => sync(state),
        Call::Transfer(toward, transfer) => transfer_call(state, toward, transfer, inputs),
        Call::Load => load(state, inputs),
        Call::Store => store(state, inputs),
        Call::View(op) => view(state, op),
        Call::EndView => end_view(state, inputs),
        Call::Offer => offer(state),
        Call::IOffer => ioffer(state),
        Call::FinishOffer => finish_offer(state, inputs),
        Call::PeerUpdate => peer_update(state),
    }
}

// ---------------------------------------------------------------------------------------------------------------
// Which calls a dialect has.

/// The calls that exist: those of the seeds with groups and counts, and those of MPI's chapter.
fn dialect_has(dialect: Dialect, call: Call) -> bool {
    // A lock, unlock, flush or transfer names one rank; it is the tracked one or it is not.
    if let Call::Lock(Toward::Both, _, _)
    | Call::Unlock(Toward::Both)
    | Call::Flush(Toward::Both)
    | Call::Transfer(Toward::Both, _) = call
    {
        return false;
    }
    if dialect == Dialect::Seed {
        // The seeds' fence has no assertions; the closing end of a fence scope is spelled NOSUCCEED.
        if let Call::Fence(Assertion::NoPrecede | Assertion::Both) = call {
            return false;
        }
        // WIN_SYNC is MPI's: in the seeds POST, FENCE and LOCK import (VIS-R7-01, 02, 03).
        return call != Call::Sync;
    }
    // MPI_Win_complete takes the window only and ends the whole group.
    if let Call::Complete(Toward::This | Toward::Another) = call {
        return false;
    }
    // MPI_Win_wait and MPI_Win_test take no count.
    if let Call::Wait(WaitFor::Count) | Call::Test(WaitFor::Count) = call {
        return false;
    }
    // MPI's barrier is the plain one, and guards and offers are not MPI's.
    !matches!(
        call,
        Call::RmaBarrier | Call::View(_) | Call::EndView | Call::Offer | Call::IOffer | Call::FinishOffer
    )
}

// ---------------------------------------------------------------------------------------------------------------
// Questions about a state, and states from their parts.

/// Whether a condition beside the table holds. It must be known here.
fn holds(inputs: Inputs, input: Input) -> bool {
    match inputs.get(input) {
        Tri::Yes => true,
        Tri::No => false,
        Tri::Unknown => panic!("a rule asks for {input:?}, which the call does not name among its inputs"),
    }
}

/// The state of these parts; a rule that leads to one that does not exist is a finding about rule or state space.
fn state_of(access: AccessState, elsewhere: Elsewhere, exposure: ExposureState) -> State {
    match State::new(access, elsewhere, exposure) {
        Some(state) => state,
        None => panic!("no state for {access:?}, elsewhere {elsewhere:?}, {exposure:?}"),
    }
}

fn with_exposure(state: State, exposure: ExposureState) -> State {
    state_of(state.access(), state.elsewhere(), exposure)
}

fn started_here(state: State) -> bool {
    matches!(state.access(), AccessState::Started(_))
}

fn locked_here(state: State) -> bool {
    matches!(state.access(), AccessState::Locked(_))
}

fn locked_all(state: State) -> bool {
    state.access() == AccessState::LockedAll
}

fn started_elsewhere(state: State) -> bool {
    state.elsewhere() == Elsewhere::Started
}

fn locked_elsewhere(state: State) -> bool {
    state.elsewhere() == Elsewhere::Locked
}

/// Some START of the caller on the window is open.
fn any_start(state: State) -> bool {
    started_here(state) || started_elsewhere(state)
}

/// Some lock of the caller on the window is held.
fn any_lock(state: State) -> bool {
    locked_here(state) || locked_elsewhere(state) || locked_all(state)
}

/// The caller knows that it holds the lock of its own window.
fn own_lock(state: State) -> bool {
    // LOCK_ALL takes a shared lock at every rank, the caller's included.
    matches!(state.access(), AccessState::Locked(held) if held.side == Side::Own) || locked_all(state)
}

/// RMA-LOCK-03, RMA-LOCK-07: only an exclusive lock that was really acquired keeps every peer out.
fn own_lock_keeps_peers_out(state: State) -> bool {
    match state.access() {
        AccessState::Locked(held) => {
            held.side == Side::Own && held.kind == LockKind::Exclusive && held.check == Check::Checked
        }
        AccessState::Idle | AccessState::Started(_) | AccessState::LockedAll => false,
    }
}

fn posted(state: State) -> bool {
    use ExposureState::{Posted, PostedGets, ViewPosted};
    matches!(state.exposure(), Posted | PostedGets | ViewPosted)
}

fn guarded(state: State) -> bool {
    use ExposureState::{ViewPosted, ViewRead, ViewWrite};
    matches!(state.exposure(), ViewRead | ViewWrite | ViewPosted)
}

fn fence_phase(state: State) -> bool {
    use ExposureState::{FenceReading, FenceUnused, FenceUpdating};
    matches!(state.exposure(), FenceUnused | FenceReading | FenceUpdating)
}

/// silent (crate): a fence phase is in use from the caller's first transfer in it.
fn fence_phase_in_use(state: State) -> bool {
    matches!(state.exposure(), ExposureState::FenceReading | ExposureState::FenceUpdating)
}

fn offered(state: State) -> bool {
    state.exposure() == ExposureState::Offered
}

fn names_this(toward: Toward) -> bool {
    matches!(toward, Toward::This | Toward::Both)
}

fn names_another(toward: Toward) -> bool {
    matches!(toward, Toward::Another | Toward::Both)
}

// ---------------------------------------------------------------------------------------------------------------
// Sentences that many calls share.

/// RMA-WIN-09: freeing a window makes later use an error.
fn window_is_not_freed(state: State) -> Result<(), ErrorKind> {
    if state.exposure() == ExposureState::Freed {
        return Err(ErrorKind::WindowFreed);
    }
    Ok(())
}

/// Error kinds, `Poisoned`: the window is out of use after a failure.
fn window_is_not_poisoned(state: State) -> Result<(), ErrorKind> {
    if state.exposure() == ExposureState::Poisoned {
        return Err(ErrorKind::Poisoned);
    }
    Ok(())
}

fn window_is_in_use(state: State) -> Result<(), ErrorKind> {
    window_is_not_freed(state)?;
    window_is_not_poisoned(state)
}

/// RMA-WIN-11: ranks lie in the communicator.
fn ranks_are_in_the_team(inputs: Inputs) -> Result<(), ErrorKind> {
    if !holds(inputs, Input::Rank) {
        return Err(ErrorKind::RankOutOfRange);
    }
    Ok(())
}

/// RMA-COMM-07: an access that would touch a byte outside the window is refused before any byte moves.
fn bytes_are_in_the_window(inputs: Inputs) -> Result<(), ErrorKind> {
    if !holds(inputs, Input::Bounds) {
        return Err(ErrorKind::OutOfBounds);
    }
    Ok(())
}

/// RMA-LOCK-14: lock epochs and start epochs do not overlap on one window (MPI: an origin's access epochs on one
/// window are disjoint).
fn no_lock_is_held_where_start_opens(state: State) -> Result<(), ErrorKind> {
    if any_lock(state) {
        return Err(ErrorKind::MixedSync);
    }
    Ok(())
}

/// RMA-LOCK-14, the same from the other side.
fn nothing_is_started_where_lock_opens(state: State) -> Result<(), ErrorKind> {
    if any_start(state) {
        return Err(ErrorKind::MixedSync);
    }
    Ok(())
}

/// RMA-BAR-08: a window barrier is refused with an open START or lock of the caller on that window.
fn nothing_is_started_or_locked_at_a_window_barrier(state: State) -> Result<(), ErrorKind> {
    if any_start(state) || any_lock(state) {
        return Err(ErrorKind::MixedSync);
    }
    Ok(())
}

/// RMA-LOCK-14, RMA-SYNC-01: a fence phase overlaps no other style.
fn no_used_fence_phase_is_open(state: State) -> Result<(), ErrorKind> {
    // silent (crate): a phase in which the caller issued no transfer is ended by the call that opens another style
    // (VIS-MIX-03 goes from fence to locks with nothing beyond the fence).
    if fence_phase_in_use(state) {
        return Err(ErrorKind::MixedSync);
    }
    Ok(())
}

/// silent (crate): an offered memory takes no other style; it is one style more in the sense of RMA-SYNC-01.
fn memory_is_not_offered(state: State) -> Result<(), ErrorKind> {
    if offered(state) {
        return Err(ErrorKind::MixedSync);
    }
    Ok(())
}

/// RMA-WIN-10 and the rule of guards: no call lets others into memory to which the caller holds a reference.
fn no_guard_is_alive(state: State) -> Result<(), ErrorKind> {
    // silent (crate): the kind, and that the guard is named first where the window is also posted for gets (a careful
    // reader takes "a guard forbids all calls that expose, fence, …" without exception).
    if guarded(state) {
        return Err(ErrorKind::EpochStillOpen);
    }
    Ok(())
}

/// An unused fence phase ends where another style's epoch opens; any other exposure stays as it is.
fn unused_phase_ends(exposure: ExposureState) -> ExposureState {
    if exposure == ExposureState::FenceUnused {
        return ExposureState::Private;
    }
    exposure
}

/// RMA-INFO-06: a NOCHECK epoch that meets a window that is not posted is reported.
fn nocheck_target_is_posted(inputs: Inputs) -> Result<(), ErrorKind> {
    if !holds(inputs, Input::Vouched) {
        return Err(ErrorKind::NotPosted);
    }
    Ok(())
}

/// RMA-SYNC-17: START(NOCHECK) of a rank that is not in the posted group gives `NotInGroup`.
fn nocheck_origin_is_in_the_group(inputs: Inputs) -> Result<(), ErrorKind> {
    if !holds(inputs, Input::InGroup) {
        return Err(ErrorKind::NotInGroup);
    }
    Ok(())
}

/// RMA-LOCK-07: a conflicting real lock at the same time as a NOCHECK lock gives `NoCheckConflict` to both.
fn nocheck_lock_met_no_conflict(inputs: Inputs) -> Result<(), ErrorKind> {
    if !holds(inputs, Input::Vouched) {
        return Err(ErrorKind::NoCheckConflict);
    }
    Ok(())
}

/// What a caller vouched for toward the tracked target must still be true when a later call relies on it.
fn promise_here_is_kept(state: State, inputs: Inputs) -> Result<(), ErrorKind> {
    match state.access() {
        AccessState::Started(Check::NoCheck) => {
            nocheck_target_is_posted(inputs)?;
            nocheck_origin_is_in_the_group(inputs)
        }
        AccessState::Locked(held) if held.check == Check::NoCheck => nocheck_lock_met_no_conflict(inputs),
        // RMA-INFO-01, RMA-LOCK-05: without NOCHECK the call waits until its condition is true.
        AccessState::Idle | AccessState::Started(_) | AccessState::Locked(_) | AccessState::LockedAll => {
            Ok(())
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------
// Barriers.

/// RMA-BAR-04: the plain barrier has no effect on windows.
fn plain_barrier(state: State) -> Result<State, ErrorKind> {
    // silent (crate): it is a call on the team, so it does not even ask whether the window is freed or poisoned.
    Ok(state)
}

fn fence(state: State, assertion: Assertion) -> Result<State, ErrorKind> {
    window_is_in_use(state)?;
    nothing_is_started_or_locked_at_a_window_barrier(state)?;
    no_guard_is_alive(state)?;
    fence_meets_no_post(state)?;
    memory_is_not_offered(state)?;
    noprecede_is_true(state, assertion)?;
    // VIS-R6-02, VIS-R7-02: a fence imports, so nothing stays stale.
    Ok(with_exposure(state, phase_after_fence(assertion)))
}

/// RMA-BAR-08: a fence with an open POST of the caller on that window is refused.
fn fence_meets_no_post(state: State) -> Result<(), ErrorKind> {
    if posted(state) {
        return Err(ErrorKind::MixedSync);
    }
    Ok(())
}

/// MPI: NOPRECEDE asserts that the fence completes no sequence of locally issued transfers.
fn noprecede_is_true(state: State, assertion: Assertion) -> Result<(), ErrorKind> {
    let asserted = assertion == Assertion::NoPrecede || assertion == Assertion::Both;
    // silent (crate): the kind.
    if asserted && fence_phase_in_use(state) {
        return Err(ErrorKind::EpochStillOpen);
    }
    Ok(())
}

/// RMA-BAR-05: a fence opens access for all ranks; MPI: with NOSUCCEED it opens no phase.
fn phase_after_fence(assertion: Assertion) -> ExposureState {
    if assertion == Assertion::NoSucceed || assertion == Assertion::Both {
        return ExposureState::Private;
    }
    ExposureState::FenceUnused
}

fn rma_barrier(state: State) -> Result<State, ErrorKind> {
    window_is_in_use(state)?;
    nothing_is_started_or_locked_at_a_window_barrier(state)?;
    // silent: a window posted for gets on which a guard lives. RMA-BAR-08 would let the barrier pass, but section 2 of
    // visibility.md makes it import, and nothing may be written under the guard's reference.
    no_guard_is_alive(state)?;
    memory_is_not_offered(state)?;
    // RMA-BAR-08: it leaves a posted window posted.
    if posted(state) {
        return Ok(state);
    }
    // silent (crate): elsewhere it does what a fence does (RMA-BAR-01, VIS-EX2-04: it imports).
    Ok(with_exposure(state, ExposureState::FenceUnused))
}

// ---------------------------------------------------------------------------------------------------------------
// START and COMPLETE.

fn start(
    dialect: Dialect,
    state: State,
    toward: Toward,
    check: Check,
    inputs: Inputs,
) -> Result<State, ErrorKind> {
    window_is_in_use(state)?;
    ranks_are_in_the_team(inputs)?;
    start_is_not_nested(dialect, state, toward)?;
    no_lock_is_held_where_start_opens(state)?;
    no_used_fence_phase_is_open(state)?;
    memory_is_not_offered(state)?;
    // RMA-INFO-05, 06 and RMA-SYNC-17; RMA-SYNC-20: a group form equals one START for each member, so the promise
    // about any of them counts.
    if check == Check::NoCheck {
        nocheck_target_is_posted(inputs)?;
        nocheck_origin_is_in_the_group(inputs)?;
    }
    let access = if names_this(toward) { AccessState::Started(check) } else { state.access() };
    let elsewhere = if names_another(toward) { Elsewhere::Started } else { state.elsewhere() };
    // VIS section 2: START moves nothing, so what is stale stays stale. A posted window and a guard do not mind: a
    // rank may be origin and target at once (RMA-COMM-12).
    Ok(state_of(access, elsewhere, unused_phase_ends(state.exposure())))
}

/// RMA-SYNC-07: a second START to the same rank gives `StartNested`. RMA-SYNC-08: others are free.
fn start_is_not_nested(dialect: Dialect, state: State, toward: Toward) -> Result<(), ErrorKind> {
    if names_this(toward) && started_here(state) {
        return Err(ErrorKind::StartNested);
    }
    // MPI: a window has one access epoch at most, whatever its group.
    // silent: the kind. MPI has no name for it; a START inside a START is a nested one.
    if dialect == Dialect::Mpi && any_start(state) {
        return Err(ErrorKind::StartNested);
    }
    // silent (crate): which other targets are started is not tracked, so a START toward another is not accused.
    Ok(())
}

fn complete(state: State, toward: Toward, inputs: Inputs) -> Result<State, ErrorKind> {
    window_is_in_use(state)?;
    // silent: COMPLETE of everything names no rank; `Call::reads` lists the rank for it all the same, so a rank that
    // is not in the team is refused here as everywhere.
    ranks_are_in_the_team(inputs)?;
    complete_has_its_start(state, toward)?;
    match toward {
        Toward::This => {
            // RMA-INFO-06: the origin's COMPLETE (or the put) gives `NotPosted`.
            promise_here_is_kept(state, inputs)?;
            Ok(state_of(AccessState::Idle, state.elsewhere(), state.exposure()))
        }
        Toward::Another => {
            if holds(inputs, Input::Ends) {
                return Ok(state_of(state.access(), Elsewhere::Idle, state.exposure()));
            }
            Ok(state)
        }
        Toward::Both => {
            promise_here_is_kept(state, inputs)?;
            Ok(state_of(AccessState::Idle, Elsewhere::Idle, state.exposure()))
        }
    }
}

/// RMA-SYNC-07: each COMPLETE is matched by exactly one earlier START for the same window and rank.
fn complete_has_its_start(state: State, toward: Toward) -> Result<(), ErrorKind> {
    let started = match toward {
        Toward::This => started_here(state),
        Toward::Another => started_elsewhere(state),
        // RMA-SYNC-20 (and MPI): COMPLETE without argument ends whatever is started.
        Toward::Both => any_start(state),
    };
    if !started {
        return Err(ErrorKind::CompleteWithoutStart);
    }
    Ok(())
}

// ---------------------------------------------------------------------------------------------------------------
// POST and WAIT.

fn post(dialect: Dialect, state: State, permit: Permit, inputs: Inputs) -> Result<State, ErrorKind> {
    window_is_in_use(state)?;
    ranks_are_in_the_team(inputs)?;
    no_lock_forbids_post(dialect, state)?;
    no_guard_is_alive(state)?;
    post_alternates(state)?;
    no_used_fence_phase_is_open(state)?;
    memory_is_not_offered(state)?;
    // VIS-R7-01: POST imports, so nothing stays stale.
    let exposure = match permit {
        Permit::All => ExposureState::Posted,
        Permit::Gets => ExposureState::PostedGets,
    };
    Ok(with_exposure(state, exposure))
}

/// RMA-LOCK-14: lock epochs and post epochs do not overlap on one window.
fn no_lock_forbids_post(dialect: Dialect, state: State) -> Result<(), ErrorKind> {
    // MPI: a window must not be exposed and locked at once; that is the caller's own memory only. Whether a lock
    // elsewhere is the caller's own is not tracked, so it is not accused.
    if dialect == Dialect::Mpi && own_lock(state) {
        return Err(ErrorKind::MixedSync);
    }
    // The seeds: the requirement says "on one window", not "on one rank of it", and the style is the window's.
    if dialect == Dialect::Seed && any_lock(state) {
        return Err(ErrorKind::MixedSync);
    }
    Ok(())
}

/// RMA-SYNC-15: POST and WAIT alternate; POST twice gives `AlreadyPosted`.
fn post_alternates(state: State) -> Result<(), ErrorKind> {
    if posted(state) {
        return Err(ErrorKind::AlreadyPosted);
    }
    Ok(())
}

fn wait(state: State, wait_for: WaitFor, inputs: Inputs) -> Result<State, ErrorKind> {
    wait_is_legal(state, wait_for, inputs)?;
    // VIS-R6-01: WAIT imports, the window is private again.
    Ok(with_exposure(state, ExposureState::Private))
}

fn test(state: State, wait_for: WaitFor, inputs: Inputs) -> Result<State, ErrorKind> {
    // silent (crate): a TEST that does not end has the checks of WAIT all the same.
    wait_is_legal(state, wait_for, inputs)?;
    // RMA-SYNC-23: test is false, then true.
    if holds(inputs, Input::Ends) {
        return Ok(with_exposure(state, ExposureState::Private));
    }
    Ok(state)
}

fn wait_is_legal(state: State, wait_for: WaitFor, inputs: Inputs) -> Result<(), ErrorKind> {
    window_is_in_use(state)?;
    wait_has_its_post(state)?;
    wait_meets_no_guard(state)?;
    origins_fit_the_wait(wait_for, inputs)
}

/// RMA-SYNC-15: WAIT on a window that is not posted gives `WaitWithoutPost`, in a fence phase or an offer too.
fn wait_has_its_post(state: State) -> Result<(), ErrorKind> {
    if !posted(state) {
        return Err(ErrorKind::WaitWithoutPost);
    }
    Ok(())
}

/// WAIT imports and publishes, so it may not run under a guard.
fn wait_meets_no_guard(state: State) -> Result<(), ErrorKind> {
    if guarded(state) {
        return Err(ErrorKind::EpochStillOpen);
    }
    Ok(())
}

/// RMA-SYNC-12, 18, 19.
fn origins_fit_the_wait(wait_for: WaitFor, inputs: Inputs) -> Result<(), ErrorKind> {
    if holds(inputs, Input::Count) {
        return Ok(());
    }
    match wait_for {
        // RMA-SYNC-12: more origins than the wait counts; RMA-SYNC-19: a group of 3 with a count of 2.
        WaitFor::Count => Err(ErrorKind::CountExceeded),
        // RMA-SYNC-18: wait for all after a POST without group.
        // silent: MPI's POST always has a group, so no is impossible there; the rule is not made to differ.
        WaitFor::Group => Err(ErrorKind::WaitWithoutPost),
    }
}

// ---------------------------------------------------------------------------------------------------------------
// Locks.

fn lock(
    dialect: Dialect,
    state: State,
    toward: Toward,
    kind: LockKind,
    check: Check,
    inputs: Inputs,
) -> Result<State, ErrorKind> {
    window_is_in_use(state)?;
    ranks_are_in_the_team(inputs)?;
    nothing_is_started_where_lock_opens(state)?;
    lock_nests_rightly(dialect, state, toward, check)?;
    let own = lock_names_the_caller(state, toward, inputs);
    if own {
        no_guard_is_alive(state)?;
    }
    lock_meets_no_post(dialect, state, own)?;
    no_used_fence_phase_is_open(state)?;
    memory_is_not_offered(state)?;
    // RMA-LOCK-07: to both, so the lock without NOCHECK asks too.
    nocheck_lock_met_no_conflict(inputs)?;
    let exposure = exposure_after_lock(state, own);
    if toward == Toward::Another {
        return Ok(state_of(state.access(), Elsewhere::Locked, exposure));
    }
    let side = if own { Side::Own } else { Side::Peer };
    let held = match state.access() {
        AccessState::Locked(outer) => nest(outer, kind, check),
        AccessState::Idle | AccessState::Started(_) | AccessState::LockedAll => Held { kind, check, side },
    };
    Ok(state_of(AccessState::Locked(held), state.elsewhere(), exposure))
}

/// RMA-LOCK-12: locking the same rank again is counted if the inner lock is NOCHECK, otherwise refused.
fn lock_nests_rightly(dialect: Dialect, state: State, toward: Toward, check: Check) -> Result<(), ErrorKind> {
    // silent (crate): LOCK_ALL holds every rank's lock, and nothing nests in it.
    if locked_all(state) {
        return Err(ErrorKind::LockHeld);
    }
    // silent (crate): which other targets are locked is not tracked, so a LOCK toward another is not accused.
    if toward == Toward::Another || !locked_here(state) {
        return Ok(());
    }
    // MPI: a second lock of one target is erroneous, with NOCHECK too.
    if dialect == Dialect::Mpi || check == Check::Checked {
        return Err(ErrorKind::LockHeld);
    }
    Ok(())
}

/// RMA-LOCK-12: shared outside with exclusive inside passes and counts as exclusive.
fn nest(outer: Held, kind: LockKind, check: Check) -> Held {
    // silent (crate): the lock that made the nest exclusive says how it was taken; an exclusive nest stays as it is.
    if outer.kind == LockKind::Shared && kind == LockKind::Exclusive {
        return Held { kind, check, side: outer.side };
    }
    outer
}

/// Whether the target that the LOCK names is the caller.
fn lock_names_the_caller(state: State, toward: Toward, inputs: Inputs) -> bool {
    if let AccessState::Locked(held) = state.access() {
        if toward == Toward::This {
            // silent: the state knows already whose window the nest locks, so the input has no say.
            return held.side == Side::Own;
        }
        if held.side == Side::Own {
            // silent: the tracked target is the caller, so another target is not.
            return false;
        }
    }
    holds(inputs, Input::Own)
}

/// RMA-LOCK-14: lock on a window its owner has posted gives `MixedSync`.
fn lock_meets_no_post(dialect: Dialect, state: State, own: bool) -> Result<(), ErrorKind> {
    if !posted(state) {
        return Ok(());
    }
    // MPI: a rank that exposes its memory may hold locks of other ranks, not its own.
    // silent: the seeds, for the lock of a peer while the caller's own memory is posted. "On one window" forbids it.
    if dialect == Dialect::Seed || own {
        return Err(ErrorKind::MixedSync);
    }
    Ok(())
}

/// VIS-R7-03: LOCK of its own window, shared or exclusive, imports; section 2: LOCK of others' windows does not.
fn exposure_after_lock(state: State, own: bool) -> ExposureState {
    // silent: a NOCHECK or nested LOCK of the own window imports as well; the table makes no exception.
    if own && state.exposure() == ExposureState::Stale {
        return ExposureState::Private;
    }
    unused_phase_ends(state.exposure())
}

fn unlock(dialect: Dialect, state: State, toward: Toward, inputs: Inputs) -> Result<State, ErrorKind> {
    window_is_in_use(state)?;
    ranks_are_in_the_team(inputs)?;
    unlock_has_its_lock(state, toward)?;
    // Section 2 of visibility.md: UNLOCK imports nothing, so what is stale stays stale.
    if toward == Toward::Another {
        if holds(inputs, Input::Ends) {
            return Ok(state_of(state.access(), Elsewhere::Idle, state.exposure()));
        }
        return Ok(state);
    }
    promise_here_is_kept(state, inputs)?;
    // silent: MPI's locks of one target do not nest, so its UNLOCK always ends; the input has no say.
    if dialect == Dialect::Mpi || holds(inputs, Input::Ends) {
        return Ok(state_of(AccessState::Idle, state.elsewhere(), state.exposure()));
    }
    Ok(state)
}

/// RMA-LOCK-13: unlock without a lock is `NotLocked`.
fn unlock_has_its_lock(state: State, toward: Toward) -> Result<(), ErrorKind> {
    // silent (crate): so is UNLOCK of one rank inside LOCK_ALL.
    let locked = match toward {
        Toward::This | Toward::Both => locked_here(state),
        Toward::Another => locked_elsewhere(state),
    };
    if !locked {
        return Err(ErrorKind::NotLocked);
    }
    Ok(())
}

fn lock_all(state: State, inputs: Inputs) -> Result<State, ErrorKind> {
    window_is_in_use(state)?;
    nothing_is_started_where_lock_opens(state)?;
    // silent (crate): LOCK_ALL nests nothing.
    if any_lock(state) {
        return Err(ErrorKind::LockHeld);
    }
    no_guard_is_alive(state)?;
    // RMA-LOCK-14, and MPI: the caller's own memory is among the locked.
    if posted(state) {
        return Err(ErrorKind::MixedSync);
    }
    no_used_fence_phase_is_open(state)?;
    memory_is_not_offered(state)?;
    nocheck_lock_met_no_conflict(inputs)?;
    // VIS-R7-03: it locks the own window too, so it imports.
    Ok(state_of(AccessState::LockedAll, state.elsewhere(), exposure_after_lock(state, true)))
}

fn unlock_all(state: State) -> Result<State, ErrorKind> {
    window_is_in_use(state)?;
    // RMA-LOCK-13.
    if !locked_all(state) {
        return Err(ErrorKind::NotLocked);
    }
    Ok(state_of(AccessState::Idle, state.elsewhere(), state.exposure()))
}

/// MPI: FLUSH may be called only in a passive-target epoch, and does not end it.
fn flush(state: State, toward: Toward, inputs: Inputs) -> Result<State, ErrorKind> {
    window_is_in_use(state)?;
    ranks_are_in_the_team(inputs)?;
    // silent (crate): the kind.
    let locked = locked_all(state)
        || match toward {
            Toward::This | Toward::Both => locked_here(state),
            Toward::Another => locked_elsewhere(state),
        };
    if !locked {
        return Err(ErrorKind::NotLocked);
    }
    if toward == Toward::This {
        promise_here_is_kept(state, inputs)?;
    }
    Ok(state)
}

/// MPI: WIN_SYNC synchronizes the private and the public copy of the caller's window, in any epoch or none.
fn sync(state: State) -> Result<State, ErrorKind> {
    window_is_in_use(state)?;
    if state.exposure() == ExposureState::Stale {
        return Ok(with_exposure(state, ExposureState::Private));
    }
    Ok(state)
}

// ---------------------------------------------------------------------------------------------------------------
// Transfers.

fn transfer_call(
    state: State,
    toward: Toward,
    transfer: Transfer,
    inputs: Inputs,
) -> Result<State, ErrorKind> {
    window_is_in_use(state)?;
    ranks_are_in_the_team(inputs)?;
    bytes_are_in_the_window(inputs)?;
    transfer_has_its_epoch(state, toward)?;
    if toward == Toward::This {
        promise_here_is_kept(state, inputs)?;
        exposure_permits_transfer(state, inputs)?;
    }
    if fence_phase(state) {
        return Ok(with_exposure(state, phase_after_transfer(state, transfer)));
    }
    Ok(state)
}

/// RMA-SYNC-25: a transfer outside any access epoch, lock or fence phase is refused. RMA-SYNC-20: so is one toward a
/// rank that the START did not name.
fn transfer_has_its_epoch(state: State, toward: Toward) -> Result<(), ErrorKind> {
    // RMA-BAR-05: a fence opens access for all ranks, and LOCK_ALL holds every rank's lock.
    if fence_phase(state) || locked_all(state) {
        return Ok(());
    }
    let open = match toward {
        Toward::This | Toward::Both => started_here(state) || locked_here(state),
        Toward::Another => started_elsewhere(state) || locked_elsewhere(state),
    };
    if !open {
        return Err(ErrorKind::TransferOutsideEpoch);
    }
    Ok(())
}

/// An exposure permits some operations; another kind of transfer is an event that was not offered.
fn exposure_permits_transfer(state: State, inputs: Inputs) -> Result<(), ErrorKind> {
    // silent (crate): asked in START epochs only; a lock or a fence permits every operation.
    if started_here(state) && !holds(inputs, Input::Permitted) {
        return Err(ErrorKind::EventNotOffered);
    }
    Ok(())
}

/// How a fence phase is used after one transfer more.
fn phase_after_transfer(state: State, transfer: Transfer) -> ExposureState {
    if transfer != Transfer::Get {
        return ExposureState::FenceUpdating;
    }
    if state.exposure() == ExposureState::FenceUpdating {
        return ExposureState::FenceUpdating;
    }
    ExposureState::FenceReading
}

// ---------------------------------------------------------------------------------------------------------------
// Local accesses.

fn load(state: State, inputs: Inputs) -> Result<State, ErrorKind> {
    window_is_in_use(state)?;
    bytes_are_in_the_window(inputs)?;
    load_is_not_of_an_offer(state, inputs)?;
    load_comes_after_import(state, inputs)?;
    load_under_locks_is_protected(state, inputs)?;
    // RMA-CORR-05: gets and local loads never conflict, so a window posted for gets is loaded freely; a guard keeps
    // every update out.
    Ok(state)
}

/// PGO: from OFFER or IOFFER until its completion the offered range is not referenced locally.
fn load_is_not_of_an_offer(state: State, inputs: Inputs) -> Result<(), ErrorKind> {
    if offered(state) && holds(inputs, Input::Unordered) {
        return Err(ErrorKind::LocalAccessDuringOffer);
    }
    Ok(())
}

/// RMA-SYNC-06, RMA-COMM-12 (before WAIT), RMA-WIN-08, VIS-R6-02 (before the fence), RMA-BAR-04, VIS-R7-04 (after a
/// peer's unlock): a load before the call that makes the update visible gives `UnsafeLocalRead`.
fn load_comes_after_import(state: State, inputs: Inputs) -> Result<(), ErrorKind> {
    let import_is_missing = state.exposure() == ExposureState::Stale
        || state.exposure() == ExposureState::Posted
        || fence_phase(state);
    // silent: for a put in flight in an exposure or a fence phase RMA-CORR-03 has `ConflictingAccess` too; the tests of
    // the requirements named above say `UnsafeLocalRead`, and the missing call is what the owner can mend.
    if import_is_missing && holds(inputs, Input::Unordered) {
        return Err(ErrorKind::UnsafeLocalRead);
    }
    Ok(())
}

/// RMA-LOCK-10: an owner's load without lock while a remote put is in flight gives `ConflictingAccess`.
fn load_under_locks_is_protected(state: State, inputs: Inputs) -> Result<(), ErrorKind> {
    // In `Private` every finished update has been imported, so one that is unordered is in flight. Under one's own
    // shared or unverified lock it can be in flight as well (RMA-LOCK-04, RMA-PREC-02).
    if state.exposure() != ExposureState::Private || own_lock_keeps_peers_out(state) {
        return Ok(());
    }
    if holds(inputs, Input::Unordered) {
        return Err(ErrorKind::ConflictingAccess);
    }
    Ok(())
}

fn store(state: State, inputs: Inputs) -> Result<State, ErrorKind> {
    window_is_in_use(state)?;
    bytes_are_in_the_window(inputs)?;
    store_is_not_of_an_offer(state, inputs)?;
    store_is_not_under_a_reading_guard(state)?;
    store_meets_no_get(state, inputs)?;
    store_meets_no_update(state, inputs)?;
    Ok(state)
}

/// PGO, as for loads.
fn store_is_not_of_an_offer(state: State, inputs: Inputs) -> Result<(), ErrorKind> {
    if offered(state) && holds(inputs, Input::Unordered) {
        return Err(ErrorKind::LocalAccessDuringOffer);
    }
    Ok(())
}

/// A guard for reading holds a shared reference to the whole memory.
fn store_is_not_under_a_reading_guard(state: State) -> Result<(), ErrorKind> {
    // silent (crate): the kind.
    if state.exposure() == ExposureState::ViewRead || state.exposure() == ExposureState::ViewPosted {
        return Err(ErrorKind::ConflictingAccess);
    }
    Ok(())
}

/// RMA-CORR-03: a get and a store that are concurrent on one location conflict.
fn store_meets_no_get(state: State, inputs: Inputs) -> Result<(), ErrorKind> {
    // silent: the input speaks of a peer's update, and this exposure admits none. What concerns the store here can
    // only be a get, and the requirement reports get with store (REG-LINT-15: a store between POST and WAIT).
    if state.exposure() == ExposureState::PostedGets && holds(inputs, Input::Unordered) {
        return Err(ErrorKind::ConflictingAccess);
    }
    Ok(())
}

/// RMA-CORR-01: a put or accumulate to a window must not be concurrent with a store to it (judged per exposed range).
fn store_meets_no_update(state: State, inputs: Inputs) -> Result<(), ErrorKind> {
    // RMA-BAR-05: in a fence phase, whether the caller itself has used it or not; REG-LINT-35: the input decides.
    // silent: in `Stale` the update is over, but no call of the owner has ordered it before the store (RMA-COPY-10).
    let an_update_may_be_unordered = match state.exposure() {
        ExposureState::Private => !own_lock_keeps_peers_out(state),
        ExposureState::Stale | ExposureState::Posted => true,
        ExposureState::FenceUnused | ExposureState::FenceReading | ExposureState::FenceUpdating => true,
        // A guard for writing makes remote locks wait.
        ExposureState::ViewRead | ExposureState::ViewWrite | ExposureState::ViewPosted => false,
        ExposureState::PostedGets | ExposureState::Offered => false,
        ExposureState::Freed | ExposureState::Poisoned => false,
    };
    if an_update_may_be_unordered && holds(inputs, Input::Unordered) {
        return Err(ErrorKind::StoreDuringUpdate);
    }
    Ok(())
}

// ---------------------------------------------------------------------------------------------------------------
// Guards.

fn view(state: State, op: LocalOp) -> Result<State, ErrorKind> {
    window_is_in_use(state)?;
    no_own_lock_forbids_the_guard(state)?;
    memory_is_not_offered_to_others(state)?;
    guard_goes_with_the_exposure(state, op)?;
    // Taking a guard imports, so nothing stays stale. Guards for reading are counted outside.
    let exposure = match op {
        LocalOp::Store => ExposureState::ViewWrite,
        LocalOp::Load if posted(state) => ExposureState::ViewPosted,
        LocalOp::Load => ExposureState::ViewRead,
    };
    Ok(with_exposure(state, exposure))
}

/// A guard takes the owner's side of the state word, which the owner's own lock occupies.
fn no_own_lock_forbids_the_guard(state: State) -> Result<(), ErrorKind> {
    // silent (crate): the kind.
    if own_lock(state) {
        return Err(ErrorKind::EpochStillOpen);
    }
    Ok(())
}

/// PGO: an offered memory is not referenced locally.
fn memory_is_not_offered_to_others(state: State) -> Result<(), ErrorKind> {
    // silent (crate): the kind.
    if offered(state) {
        return Err(ErrorKind::LocalAccessDuringOffer);
    }
    Ok(())
}

/// A guard is refused while the window is exposed to writers; one for reading is allowed while it is exposed to gets.
fn guard_goes_with_the_exposure(state: State, op: LocalOp) -> Result<(), ErrorKind> {
    let allowed = match state.exposure() {
        ExposureState::Private | ExposureState::Stale => true,
        // Several readers, or one writer.
        ExposureState::PostedGets | ExposureState::ViewRead | ExposureState::ViewPosted => {
            op == LocalOp::Load
        }
        // silent: a fence phase exposes to writers though the caller has not used it. A guard is no style of
        // synchronization, so it does not end the phase.
        ExposureState::FenceUnused | ExposureState::FenceReading | ExposureState::FenceUpdating => false,
        ExposureState::Posted | ExposureState::ViewWrite => false,
        ExposureState::Offered | ExposureState::Freed | ExposureState::Poisoned => false,
    };
    if !allowed {
        return Err(ErrorKind::EpochStillOpen);
    }
    Ok(())
}

fn end_view(state: State, inputs: Inputs) -> Result<State, ErrorKind> {
    window_is_in_use(state)?;
    match state.exposure() {
        // silent: there is one guard for writing at most, so the input has no say.
        ExposureState::ViewWrite => Ok(with_exposure(state, ExposureState::Private)),
        ExposureState::ViewRead if holds(inputs, Input::Ends) => {
            Ok(with_exposure(state, ExposureState::Private))
        }
        ExposureState::ViewPosted if holds(inputs, Input::Ends) => {
            Ok(with_exposure(state, ExposureState::PostedGets))
        }
        ExposureState::ViewRead | ExposureState::ViewPosted => Ok(state),
        // silent (crate): the kind.
        _ => Err(ErrorKind::NotLocked),
    }
}

// ---------------------------------------------------------------------------------------------------------------
// Offers.

fn offer(state: State) -> Result<State, ErrorKind> {
    offer_is_legal(state)?;
    // Offers are counted: an earlier IOFFER of this memory is still open after the OFFER.
    if offered(state) {
        return Ok(state);
    }
    // silent: section 2 of visibility.md has no row for OFFER. It is an exposure that opens and ends in one call, as
    // POST and WAIT do, so it imports; an unused fence phase ends.
    Ok(with_exposure(state, ExposureState::Private))
}

fn ioffer(state: State) -> Result<State, ErrorKind> {
    offer_is_legal(state)?;
    // PGO-IOFFER-01: it does not block; the memory is offered until its request is finished.
    Ok(with_exposure(state, ExposureState::Offered))
}

/// silent (crate): an offer needs memory with no epoch, guard or used phase on it.
fn offer_is_legal(state: State) -> Result<(), ErrorKind> {
    window_is_in_use(state)?;
    if any_start(state) || any_lock(state) {
        return Err(ErrorKind::MixedSync);
    }
    no_guard_is_alive(state)?;
    if posted(state) {
        return Err(ErrorKind::MixedSync);
    }
    no_used_fence_phase_is_open(state)
}

/// PGO-IOFFER-02: WAIT or TEST on the request completes the offer.
fn finish_offer(state: State, inputs: Inputs) -> Result<State, ErrorKind> {
    window_is_in_use(state)?;
    if !offered(state) {
        // silent (crate): the kind.
        return Err(ErrorKind::NotOffered);
    }
    if holds(inputs, Input::Ends) {
        return Ok(with_exposure(state, ExposureState::Private));
    }
    Ok(state)
}

// ---------------------------------------------------------------------------------------------------------------
// The window's life.

/// VIS-R7-04: a remote UNLOCK does not make the update visible to the owner's loads.
fn peer_update(state: State) -> Result<State, ErrorKind> {
    window_is_in_use(state)?;
    // RMA-LOCK-03: under one's own real exclusive lock no peer has a lock.
    if own_lock_keeps_peers_out(state) {
        return Ok(state);
    }
    // Any other exposure ends with a call that imports (WAIT, fence, the end of an offer), or, with a guard, makes
    // remote locks wait.
    if state.exposure() == ExposureState::Private {
        return Ok(with_exposure(state, ExposureState::Stale));
    }
    Ok(state)
}

fn free(state: State) -> Result<State, ErrorKind> {
    window_is_not_freed(state)?;
    // silent (crate): a poisoned window can be freed.
    nothing_is_open_at_the_end(state)?;
    Ok(state_of(AccessState::Idle, Elsewhere::Idle, ExposureState::Freed))
}

fn finalize(state: State) -> Result<State, ErrorKind> {
    // silent (crate): FINALIZE of a freed window does nothing, that of a poisoned window frees it.
    nothing_is_open_at_the_end(state)?;
    Ok(state_of(AccessState::Idle, Elsewhere::Idle, ExposureState::Freed))
}

/// RMA-WIN-09, RMA-SYNC-07, RMA-LOCK-13: freeing and finalizing are refused while any epoch or lock is open.
fn nothing_is_open_at_the_end(state: State) -> Result<(), ErrorKind> {
    // silent (crate): an unused fence phase is not open; guards and offers are.
    let open = any_start(state)
        || any_lock(state)
        || posted(state)
        || guarded(state)
        || fence_phase_in_use(state)
        || offered(state);
    if open {
        return Err(ErrorKind::EpochStillOpen);
    }
    Ok(())
}

/// After a failure the window is out of use, and nothing on it counts as open any more.
fn poison(state: State) -> Result<State, ErrorKind> {
    window_is_not_freed(state)?;
    // silent (crate): a poisoned window stays poisoned.
    Ok(state_of(AccessState::Idle, Elsewhere::Idle, ExposureState::Poisoned))
}
