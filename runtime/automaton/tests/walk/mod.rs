//! Walks a list of calls through the table. Never judges: the tests do.

use rma_automaton::Call::{self, Complete, Post, Start, Transfer, Wait};
use rma_automaton::{
    Assertion, Check, Dialect, ErrorKind, Inputs, LockKind, Outcome, Permit, State, Toward, Transfer as Op,
    Tri, WaitFor,
};

pub(crate) use rma_automaton::Toward::{Another, Both, This};

pub(crate) const FENCE: Call = Call::Fence(Assertion::None);
pub(crate) const LAST_FENCE: Call = Call::Fence(Assertion::NoSucceed);
pub(crate) const POST: Call = Post(Permit::All);
pub(crate) const POST_GETS: Call = Post(Permit::Gets);
pub(crate) const WAIT: Call = Wait(WaitFor::Count);
pub(crate) const WAIT_ALL: Call = Wait(WaitFor::Group);
pub(crate) const START: Call = Start(This, Check::Checked);
pub(crate) const START_OTHER: Call = Start(Another, Check::Checked);
pub(crate) const START_GROUP: Call = Start(Both, Check::Checked);
pub(crate) const START_NOCHECK: Call = Start(This, Check::NoCheck);
pub(crate) const COMPLETE: Call = Complete(This);
pub(crate) const COMPLETE_OTHER: Call = Complete(Another);
pub(crate) const COMPLETE_ALL: Call = Complete(Both);
pub(crate) const LOCK: Call = lock(LockKind::Exclusive);
pub(crate) const LOCK_SHARED: Call = lock(LockKind::Shared);
pub(crate) const LOCK_NOCHECK: Call = Call::Lock(This, LockKind::Exclusive, Check::NoCheck);
pub(crate) const LOCK_SHARED_NOCHECK: Call = Call::Lock(This, LockKind::Shared, Check::NoCheck);
pub(crate) const LOCK_OTHER: Call = Call::Lock(Another, LockKind::Exclusive, Check::Checked);
pub(crate) const UNLOCK: Call = Call::Unlock(This);
pub(crate) const PUT: Call = Transfer(This, Op::Put);
pub(crate) const GET: Call = Transfer(This, Op::Get);
pub(crate) const PUT_OTHER: Call = Transfer(Another, Op::Put);

/// The target is the caller itself.
pub(crate) const OWN: Inputs = Inputs { own: Tri::Yes, ..Inputs::FINE };
/// One of several is closed, not the last.
pub(crate) const MORE: Inputs = Inputs { ends: Tri::No, ..Inputs::FINE };
/// A peer's update concerns the local access.
pub(crate) const UNORDERED: Inputs = Inputs { unordered: Tri::Yes, ..Inputs::FINE };

const fn lock(kind: LockKind) -> Call {
    Call::Lock(Toward::This, kind, Check::Checked)
}

/// A call with what is known about it: everything in order, unless it is said.
pub(crate) struct Step(Call, Inputs);

impl From<Call> for Step {
    fn from(call: Call) -> Step {
        Step(call, Inputs::FINE)
    }
}

impl From<(Call, Inputs)> for Step {
    fn from((call, inputs): (Call, Inputs)) -> Step {
        Step(call, inputs)
    }
}

/// The state after the steps, or the first that is refused, by its index and its error.
pub(crate) fn walk(dialect: Dialect, start: State, steps: &[Step]) -> Result<State, (usize, ErrorKind)> {
    steps.iter().enumerate().try_fold(start, |state, (index, &Step(call, inputs))| {
        match state.step(dialect, call, inputs).only() {
            Some(Outcome::Next(next)) => Ok(next),
            Some(Outcome::Error(kind)) => Err((index, kind)),
            None => panic!("step {index}, {call:?} in {state:?} of {dialect:?}, has not exactly one outcome"),
        }
    })
}

/// A list of steps.
macro_rules! steps {
    ($($step:expr),* $(,)?) => { [$($crate::walk::Step::from($step)),*] };
}
pub(crate) use steps;
