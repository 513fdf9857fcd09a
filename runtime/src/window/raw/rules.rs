//! Asks the table of legal calls. Never decides which call is legal: `rma-automaton` does, for the macros as well.
//!
//! The table knows what this handle has open; what others do (a posted target, a held lock) is decided by the words of
//! `sync`. To ask it costs some hundred nanoseconds, so the states that programs are in when all is well are tested for
//! first, by a few comparisons; a unit test holds these tests against the table.
#![forbid(unsafe_code)]

use rma_automaton::{
    AccessState, Call, Check, Dialect, Elsewhere, ExposureState, Held, Inputs, LockKind, Outcome, Side,
    State, Toward, Tri,
};

use super::deferral::Opened;
use super::{Access, RawWindow};
use crate::error::{Error, ErrorKind, Result};
use crate::info::{Info, Terms};
use crate::team::Rank;

/// How the table calls what the caller said.
pub(super) fn check_of(terms: Terms) -> Check {
    match terms.said {
        Info::NoCheck => Check::NoCheck,
        Info::Strong | Info::Weak => Check::Checked,
    }
}

impl RawWindow {
    /// Whether this handle has nothing open, as origin or as owner.
    #[inline(always)]
    pub(super) fn has_nothing_open(&self) -> bool {
        self.open.started.get() == 0
            && self.open.locked.get() == 0
            && self.open.views.get() == 0
            && !self.posted.get()
            && !self.phase_open.get()
    }

    /// Refuses a call that the table does not allow now, seen from the own rank.
    #[inline(always)]
    #[track_caller]
    pub(super) fn refuse_illegal(&self, name: &'static str, call: Call) -> Result<()> {
        match self.has_nothing_open() {
            true => Ok(()),
            false => self.ask(name, call, None),
        }
    }

    /// Refuses a START toward a target that the table does not allow now.
    #[inline(always)]
    #[track_caller]
    pub(super) fn refuse_start(&self, name: &'static str, check: Check, at: usize) -> Result<()> {
        let others = self.open.locked.get() != 0 || self.open.views.get() != 0 || self.phase_open.get();
        match !others && self.targets[at].access.get() == Access::None {
            true => Ok(()),
            false => self.ask(name, Call::Start(Toward::This, check), Some(at)),
        }
    }

    /// Refuses a LOCK of a target that the table does not allow now.
    #[inline(always)]
    #[track_caller]
    pub(super) fn refuse_lock(
        &self,
        name: &'static str,
        kind: LockKind,
        check: Check,
        at: usize,
    ) -> Result<()> {
        let others = self.open.started.get() != 0
            || self.has_all_locked()
            || self.open.views.get() != 0
            || self.posted.get()
            || self.phase_open.get();
        match !others && self.targets[at].access.get() == Access::None {
            true => Ok(()),
            false => self.ask(name, Call::Lock(Toward::This, kind, check), Some(at)),
        }
    }

    #[inline(never)]
    #[track_caller]
    fn ask(&self, name: &'static str, call: Call, target: Option<usize>) -> Result<()> {
        match self.verdict(call, target.unwrap_or(self.me)) {
            Some(kind) => Err(self.illegal(name, kind, target)),
            None => Ok(()),
        }
    }

    /// The error that the call earns in the present state.
    pub(super) fn verdict(&self, call: Call, target: usize) -> Option<ErrorKind> {
        let own = if target == self.me { Tri::Yes } else { Tri::No };
        // Ranks, bounds, counts and promises are looked at elsewhere.
        let inputs = Inputs { own, ..Inputs::FINE };
        match self.state_toward(target).step(Dialect::Seed, call, inputs).only() {
            Some(Outcome::Error(kind)) => Some(kind),
            _ => None,
        }
    }

    /// What is open, in the table's words.
    fn state_toward(&self, target: usize) -> State {
        let held = |kind| {
            let side = if target == self.me { Side::Own } else { Side::Peer };
            AccessState::Locked(Held { kind, check: Check::Checked, side })
        };
        let (access, started, locked) = match self.opened(target) {
            _ if self.has_all_locked() => (AccessState::LockedAll, 0, self.open.locked.get()),
            None => (AccessState::Idle, 0, 0),
            Some(Opened::Started) => (AccessState::Started(Check::Checked), 1, 0),
            Some(Opened::Locked(kind)) => (held(kind), 0, 1),
        };
        let elsewhere = match (self.open.started.get() - started, self.open.locked.get() - locked) {
            (0, 0) => Elsewhere::Idle,
            (0, _) => Elsewhere::Locked,
            _ => Elsewhere::Started,
        };
        let exposure = match (self.phase_open.get(), self.posted.get(), self.open.views.get()) {
            (true, ..) => ExposureState::FenceUpdating,
            (false, true, _) => ExposureState::Posted,
            (false, false, 0) => ExposureState::Private,
            (false, false, _) => ExposureState::ViewRead,
        };
        let state = State::new(access, elsewhere, exposure);
        debug_assert!(state.is_some(), "{access:?}, {elsewhere:?} and {exposure:?} exclude each other");
        state.unwrap_or(State::CREATED)
    }

    #[cold]
    #[track_caller]
    fn illegal(&self, name: &'static str, kind: ErrorKind, target: Option<usize>) -> Error {
        let error = self.error(kind, name);
        let error = match target {
            Some(target) => error.target(Rank(target as u32)),
            None => error,
        };
        let ranks_with = |wanted: fn(Opened) -> bool| {
            let ranks = self.ranks_where(|rank| self.opened(rank).is_some_and(wanted));
            format!("of ranks {ranks}")
        };
        if self.phase_open.get() {
            error.other("an open fence phase")
        } else if self.has_all_locked() {
            error.other("the own epoch toward all ranks")
        } else if 0 < self.open.views.get() {
            error.note("a local view of the own window is alive, and holds the own lock")
        } else if 0 < self.open.locked.get() {
            error.other(format!("the own lock {}", ranks_with(|opened| matches!(opened, Opened::Locked(_)))))
        } else if 0 < self.open.started.get() {
            error.other(format!(
                "the own access {}, which is not completed",
                ranks_with(|opened| opened == Opened::Started)
            ))
        } else {
            error.other("the own exposure, which is not waited for")
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use rma_automaton::{Assertion, LocalOp, Permit};

    /// The states that the tests above let through without asking are those in which the table allows the call.
    #[test]
    fn what_is_let_through_unasked_is_legal() {
        const CHECKS: [Check; 2] = [Check::Checked, Check::NoCheck];
        let legal = |elsewhere, exposure, call| {
            let state = State::new(AccessState::Idle, elsewhere, exposure).expect("such states exist");
            for own in [Tri::Yes, Tri::No] {
                let outcome = state.step(Dialect::Seed, call, Inputs { own, ..Inputs::FINE });
                assert!(!outcome.may_err(), "{call:?} with {elsewhere:?} and {exposure:?}");
            }
        };
        for exposure in [ExposureState::Private, ExposureState::Posted] {
            for elsewhere in [Elsewhere::Idle, Elsewhere::Started] {
                for check in CHECKS {
                    legal(elsewhere, exposure, Call::Start(Toward::This, check));
                }
            }
        }
        for kind in [LockKind::Shared, LockKind::Exclusive] {
            for elsewhere in [Elsewhere::Idle, Elsewhere::Locked] {
                for check in CHECKS {
                    legal(elsewhere, ExposureState::Private, Call::Lock(Toward::This, kind, check));
                }
            }
        }
        for call in [
            Call::Fence(Assertion::None),
            Call::Post(Permit::All),
            Call::View(LocalOp::Load),
            Call::View(LocalOp::Store),
            Call::LockAll,
            Call::Free,
        ] {
            legal(Elsewhere::Idle, ExposureState::Private, call);
        }
    }
    /// `Team::rma_barrier`, which knows no more than the numbers of what is open, refuses what the table refuses.
    #[test]
    fn the_barrier_over_all_windows_is_refused_as_the_table_says() {
        let verdict = |elsewhere, exposure| {
            let state = State::new(AccessState::Idle, elsewhere, exposure).expect("such states exist");
            let outcome = state.step(Dialect::Seed, Call::RmaBarrier, Inputs::FINE).only();
            match outcome.expect("nothing is unknown") {
                Outcome::Error(kind) => Some(kind),
                Outcome::Next(_) => None,
            }
        };
        for exposure in [ExposureState::Private, ExposureState::Posted] {
            assert_eq!(verdict(Elsewhere::Idle, exposure), None);
            assert_eq!(verdict(Elsewhere::Started, exposure), Some(ErrorKind::MixedSync));
            assert_eq!(verdict(Elsewhere::Locked, exposure), Some(ErrorKind::MixedSync));
        }
        assert_eq!(verdict(Elsewhere::Idle, ExposureState::FenceUpdating), None);
        assert_eq!(verdict(Elsewhere::Idle, ExposureState::ViewRead), Some(ErrorKind::EpochStillOpen));
    }
}
