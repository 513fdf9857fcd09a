//! Reads the table: one state or a set of states, one call, what is known about it. Never decides by itself which
//! call is legal where; that is `table.rs`.

use core::ops::ControlFlow;

use crate::table::{OriginCell, OwnerCell, local, origin, owner};
use crate::{
    AccessState, Call, Check, Dialect, Elsewhere, ErrorKind, ExposureState, Held, Input, Inputs, LocalAccess,
    LocalOp, LockKind, Outcome, Outcomes, Side, State, StateSet, Toward, Tri, WaitFor,
};

/// Whether a call ends the last of several things that it can close.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    Last,
    OneOfMore,
}

impl State {
    /// What the call does in this state.
    ///
    /// Exactly one outcome when every input that matters is known; the union over yes and no of those that are not;
    /// none when the dialect does not have the call.
    pub fn step(self, dialect: Dialect, call: Call, inputs: Inputs) -> Outcomes {
        let mut outcomes = Outcomes::NONE;
        if !dialect.has(call) {
            return outcomes;
        }
        let dead = matches!(self.exposure(), ExposureState::Freed | ExposureState::Poisoned);
        if !dead && refuse(&mut outcomes, arguments(call, inputs)).is_break() {
            return outcomes;
        }
        let ends = [(Ends::Last, inputs.ends.may()), (Ends::OneOfMore, inputs.ends.may_not())];
        for side in possible(sides(self.access(), call, inputs)) {
            for ends in possible(ends) {
                match self.cross(dialect, call, side, ends) {
                    Err(kind) => outcomes = outcomes.with(Outcome::Error(kind)),
                    Ok(next) => {
                        if refuse(&mut outcomes, self.predicates(call, inputs)).is_continue() {
                            outcomes = outcomes.with(Outcome::Next(next));
                        }
                    }
                }
            }
        }
        outcomes
    }

    /// How code may touch the caller's own memory in this state.
    ///
    /// Locks of the caller's own window count only in the state whose tracked target is the caller itself.
    pub const fn local_access(self, op: LocalOp) -> LocalAccess {
        match (self.access(), self.exposure(), op) {
            // RMA-LOCK-03: nobody else can hold a lock, so the lock is a private epoch.
            (AccessState::Locked(held), ..) if held.keeps_peers_out() => LocalAccess::Plain,
            // RMA-CORR-01: others may put under their shared locks.
            (AccessState::LockedAll, ExposureState::Private, LocalOp::Store)
            | (
                AccessState::Locked(Held { kind: LockKind::Shared, side: Side::Own, .. }),
                ExposureState::Private,
                LocalOp::Store,
            ) => LocalAccess::VolatileUnless(ErrorKind::StoreDuringUpdate),
            (_, exposure, op) => local(exposure, op),
        }
    }

    /// The state after the table's cells for this call, or the error of the first cell that refuses it.
    fn cross(self, dialect: Dialect, call: Call, side: Side, ends: Ends) -> Result<State, ErrorKind> {
        let origin_row = origin(dialect, call);
        let to_target = match self.access() {
            AccessState::Idle => origin_row.access[0],
            AccessState::Started(_) => origin_row.access[1],
            AccessState::Locked(_) => origin_row.access[2],
            AccessState::LockedAll => origin_row.access[3],
        };
        let to_others = origin_row.elsewhere[self.elsewhere() as usize];
        let own = owner(dialect, call).exposure[self.exposure() as usize];

        let access = self.access_after(to_target, call, side, ends)?;
        let elsewhere = self.elsewhere_after(to_others, call, ends)?;
        let exposure = self.exposure_after(own, side, ends)?;

        let absent = |cell| matches!(cell, OriginCell::Absent);
        let present = |cell| matches!(cell, OriginCell::Present | OriginCell::Close | OriginCell::CloseLast);
        // A fence phase is an access epoch toward everyone (RMA-BAR-05), and the table shows it as a change of phase.
        let found = present(to_target) || present(to_others) || matches!(own, OwnerCell::Become(_));
        match (absent(to_target) || absent(to_others)) && !found {
            true => Err(origin_row.missing),
            false => {
                let next = State::of(access, elsewhere, exposure);
                debug_assert!(next.exists(), "{call:?} in {self:?} leads to {next:?}, which means nothing");
                Ok(next)
            }
        }
    }

    fn access_after(
        self,
        cell: OriginCell,
        call: Call,
        side: Side,
        ends: Ends,
    ) -> Result<AccessState, ErrorKind> {
        let here = self.access();
        match (cell, here, call) {
            (OriginCell::Error(kind), ..) => Err(kind),
            (OriginCell::ErrorIfOwn(kind), AccessState::Locked(Held { side: Side::Own, .. }), _) => Err(kind),
            (OriginCell::Nest, _, Call::Lock(_, _, Check::Checked)) => Err(ErrorKind::LockHeld),
            (OriginCell::Nest, AccessState::Locked(held), Call::Lock(_, kind, Check::NoCheck)) => {
                Ok(AccessState::Locked(held.nested(kind)))
            }
            (OriginCell::Open, _, Call::Start(_, check)) => Ok(AccessState::Started(check)),
            (OriginCell::Open, _, Call::Lock(_, kind, check)) => {
                Ok(AccessState::Locked(Held { kind, check, side }))
            }
            (OriginCell::Open, _, Call::LockAll) => Ok(AccessState::LockedAll),
            (OriginCell::Close, ..) => Ok(AccessState::Idle),
            (OriginCell::CloseLast, ..) if ends == Ends::Last => Ok(AccessState::Idle),
            _ => Ok(here),
        }
    }

    fn elsewhere_after(self, cell: OriginCell, call: Call, ends: Ends) -> Result<Elsewhere, ErrorKind> {
        match (cell, call) {
            (OriginCell::Error(kind), _) => Err(kind),
            (OriginCell::Open, Call::Start(..)) => Ok(Elsewhere::Started),
            (OriginCell::Open, Call::Lock(..)) => Ok(Elsewhere::Locked),
            (OriginCell::Close, _) => Ok(Elsewhere::Idle),
            (OriginCell::CloseLast, _) if ends == Ends::Last => Ok(Elsewhere::Idle),
            _ => Ok(self.elsewhere()),
        }
    }

    fn exposure_after(self, cell: OwnerCell, side: Side, ends: Ends) -> Result<ExposureState, ErrorKind> {
        match cell {
            OwnerCell::Error(kind) => Err(kind),
            OwnerCell::ErrorIfOwn(kind) if side == Side::Own => Err(kind),
            OwnerCell::ErrorBySide { own, peer } => Err(match side {
                Side::Own => own,
                Side::Peer => peer,
            }),
            OwnerCell::ImportIfOwn if side == Side::Own => Ok(ExposureState::Private),
            OwnerCell::BecomeIfLast(exposure) if ends == Ends::Last => Ok(exposure),
            OwnerCell::BecomeStale => match self.access() {
                AccessState::Locked(held) if held.keeps_peers_out() => Ok(self.exposure()),
                _ => Ok(ExposureState::Stale),
            },
            OwnerCell::Become(exposure) => Ok(exposure),
            OwnerCell::Keep
            | OwnerCell::ErrorIfOwn(_)
            | OwnerCell::ImportIfOwn
            | OwnerCell::BecomeIfLast(_) => Ok(self.exposure()),
        }
    }

    /// The predicates that a legal cell leaves open, in the order in which they are checked.
    fn predicates(self, call: Call, inputs: Inputs) -> [Option<(Tri, ErrorKind)>; 3] {
        let posted = Some((inputs.vouched, ErrorKind::NotPosted)); // RMA-INFO-06
        let in_group = Some((inputs.in_group, ErrorKind::NotInGroup)); // RMA-SYNC-17
        let alone = Some((inputs.vouched, ErrorKind::NoCheckConflict)); // RMA-LOCK-07
        let permitted = Some((inputs.permitted, ErrorKind::EventNotOffered));
        match (call, self.access()) {
            (Call::Start(_, Check::NoCheck), _) => [posted, in_group, None],
            (Call::Complete(Toward::This | Toward::Both), AccessState::Started(Check::NoCheck)) => {
                [posted, in_group, None]
            }
            (Call::Transfer(Toward::This, _), AccessState::Started(Check::NoCheck)) => {
                [posted, in_group, permitted]
            }
            (Call::Transfer(Toward::This, _), AccessState::Started(Check::Checked)) => {
                [permitted, None, None]
            }
            (Call::Lock(..) | Call::LockAll, _) => [alone, None, None],
            (
                Call::Unlock(Toward::This) | Call::Flush(Toward::This) | Call::Transfer(Toward::This, _),
                AccessState::Locked(Held { check: Check::NoCheck, .. }),
            ) => [alone, None, None],
            // RMA-SYNC-12 and RMA-SYNC-19
            (Call::Wait(WaitFor::Count) | Call::Test(WaitFor::Count), _) => {
                [Some((inputs.count, ErrorKind::CountExceeded)), None, None]
            }
            // RMA-SYNC-18
            (Call::Wait(WaitFor::Group) | Call::Test(WaitFor::Group), _) => {
                [Some((inputs.count, ErrorKind::WaitWithoutPost)), None, None]
            }
            (Call::Load, _) => [self.ordered(LocalOp::Load, inputs), None, None],
            (Call::Store, _) => [self.ordered(LocalOp::Store, inputs), None, None],
            _ => [None; 3],
        }
    }

    /// The question whether a peer's unordered access concerns a local one, where peers can reach the memory at all.
    fn ordered(self, op: LocalOp, inputs: Inputs) -> Option<(Tri, ErrorKind)> {
        use ExposureState as X;
        let kind = match (self.access(), self.exposure(), op) {
            (AccessState::Locked(held), ..) if held.keeps_peers_out() => return None,
            (_, X::ViewRead | X::ViewWrite | X::ViewPosted, _) => return None,
            (_, X::PostedGets, LocalOp::Load) => return None, // RMA-CORR-05
            (_, X::PostedGets, LocalOp::Store) => ErrorKind::ConflictingAccess, // EX-E110-02
            (_, X::Offered, _) => ErrorKind::LocalAccessDuringOffer, // PGO-OFFER-07
            // RMA-LOCK-10: everything finished has been imported, so that the update is in flight.
            (_, X::Private, LocalOp::Load) => ErrorKind::ConflictingAccess,
            (_, _, LocalOp::Load) => ErrorKind::UnsafeLocalRead, // RMA-SYNC-06, VIS-R7-04
            (_, _, LocalOp::Store) => ErrorKind::StoreDuringUpdate, // RMA-CORR-01
        };
        Some((inputs.unordered.not(), kind))
    }
}

impl StateSet {
    /// What the call does, if the state is one of these: the union over the states.
    ///
    /// [`Outcomes::must_err`] of the result means that every one of the states errs, so that the call is wrong
    /// whichever it was.
    pub fn step(self, dialect: Dialect, call: Call, inputs: Inputs) -> Outcomes {
        self.iter().fold(Outcomes::NONE, |all, state| all.union(state.step(dialect, call, inputs)))
    }

    /// How code may touch the caller's own memory, if the state may be any of these: the strictest rule of them.
    ///
    /// `None` for the empty set.
    pub fn local_access(self, op: LocalOp) -> Option<LocalAccess> {
        self.iter().map(|state| state.local_access(op)).max()
    }
}

impl Dialect {
    /// The requirements behind the rows of a call: ids of `docs/spec`, separated by blanks, first the half of the
    /// origin, then that of the owner. `MPI` stands for the standard, `silent` for a decision in the crate's
    /// documentation. Empty if the dialect does not have the call.
    pub const fn requirements(self, call: Call) -> [&'static str; 2] {
        match self.has(call) {
            true => [origin(self, call).requirements, owner(self, call).requirements],
            false => ["", ""],
        }
    }
}

impl Held {
    /// A lock that the runtime has verified to be the only one keeps all peers out of the caller's window.
    const fn keeps_peers_out(self) -> bool {
        matches!(self, Held { kind: LockKind::Exclusive, check: Check::Checked, side: Side::Own })
    }

    /// The nest after an inner NOCHECK lock (RMA-LOCK-12).
    const fn nested(self, inner: LockKind) -> Held {
        match (self.kind, inner) {
            (LockKind::Shared, LockKind::Exclusive) => {
                Held { kind: LockKind::Exclusive, check: Check::NoCheck, side: self.side }
            }
            _ => self,
        }
    }
}

impl Tri {
    /// What is known about the opposite condition.
    const fn not(self) -> Tri {
        match self {
            Tri::No => Tri::Yes,
            Tri::Yes => Tri::No,
            Tri::Unknown => Tri::Unknown,
        }
    }
}

/// The checks of a call's arguments (RMA-WIN-11, RMA-COMM-07), in order.
fn arguments(call: Call, inputs: Inputs) -> [Option<(Tri, ErrorKind)>; 3] {
    let read = |input, kind| call.reads().contains(&input).then(|| (inputs.get(input), kind));
    [read(Input::Rank, ErrorKind::RankOutOfRange), read(Input::Bounds, ErrorKind::OutOfBounds), None]
}

/// The sides that the window a LOCK names may be on; calls that name none have one side, without meaning.
fn sides(access: AccessState, call: Call, inputs: Inputs) -> [(Side, bool); 2] {
    let own = match (call, access) {
        (Call::Lock(Toward::This, ..), AccessState::Locked(held)) => Tri::from(held.side == Side::Own),
        // The tracked target is the caller, so that another one is not.
        (Call::Lock(..), AccessState::Locked(Held { side: Side::Own, .. })) => Tri::No,
        (Call::Lock(..), _) => inputs.own,
        _ => Tri::No,
    };
    [(Side::Peer, own.may_not()), (Side::Own, own.may())]
}

/// Those of two alternatives that are possible.
fn possible<T>(alternatives: [(T, bool); 2]) -> impl Iterator<Item = T> {
    alternatives.into_iter().filter_map(|(value, possible)| possible.then_some(value))
}

/// Adds the error of each check that may fail, up to the first that must.
fn refuse(outcomes: &mut Outcomes, checks: [Option<(Tri, ErrorKind)>; 3]) -> ControlFlow<()> {
    for (holds, kind) in checks.into_iter().flatten() {
        if holds.may_not() {
            *outcomes = outcomes.with(Outcome::Error(kind));
        }
        if !holds.may() {
            return ControlFlow::Break(());
        }
    }
    ControlFlow::Continue(())
}
