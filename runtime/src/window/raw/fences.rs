//! Fence phases: all ranks go in together and come out together. Never lets a rank into a phase that another is leaving.
#![forbid(unsafe_code)]

use std::ops::Range;
use std::time::{Duration, Instant};

use rma_automaton::{Assertion, Call};

use super::RawWindow;
use super::parts::Rest;
use crate::error::{Error, ErrorKind, Result};
use crate::liveness::{Act, NO_BLOCKER, Needs, WaitFor};
use crate::sync::exposure::Extent;
use crate::sync::phases::{Reason, Way};
use crate::team::Rank;

/// How long a fence that was broken by a mismatch looks for the mismatch itself.
const MISMATCH_GRACE: Duration = Duration::from_millis(200);

/// What ends the wait for another rank's signal.
enum Heard {
    /// The signal: which way the rank, and those that it has heard of, are going.
    Way(Way),
    /// Somebody has broken the window.
    Broken,
    /// A rank that is missing has dropped its handle of the window.
    Departed(Rank),
}

impl RawWindow {
    /// The fence that opens a phase: afterwards everybody may access everybody.
    #[track_caller]
    pub(crate) fn open_phase(&self, call: &'static str) -> Result<()> {
        self.refuse_poisoned(call)?;
        self.refuse_illegal(call, Call::Fence(Assertion::None))?;
        self.enter_phase(call, Way::In)
    }

    /// The fence that opens a phase in which everybody exposes a part: here, a range of elements of this size.
    #[track_caller]
    pub(crate) fn open_part_phase<T>(&self, call: &'static str, exposed: &Range<usize>) -> Result<()> {
        self.refuse_poisoned(call)?;
        self.refuse_illegal(call, Call::Fence(Assertion::None))?;
        let part = self.own_part::<T>(call, exposed)?;
        self.keep_rest(part);
        let outcome = self.enter_phase(call, Way::Part);
        match &outcome {
            Ok(()) => {
                for at in (0..self.targets.len()).filter(|&at| at != self.me) {
                    match self.targets[at].remote {
                        false => self.learn_part(at, Extent::Part),
                        true => {
                            let part = self.part_remote(call, at);
                            self.learn_remote_part(at, part.inspect_err(|error| self.break_after(error))?);
                        }
                    }
                }
            }
            Err(_) => self.take_rest_back(),
        }
        outcome
    }

    #[track_caller]
    fn enter_phase(&self, call: &'static str, way: Way) -> Result<()> {
        self.control(self.me).fences.0.phases.begin_writing();
        match self.synchronize(call, way) {
            Ok(()) => {
                self.phase_open.set(true);
                Ok(())
            }
            Err(error) => {
                self.control(self.me).fences.0.phases.end_writing();
                Err(error)
            }
        }
    }

    /// The fence between two phases, which expose the same.
    #[track_caller]
    pub(crate) fn next_phase(&self, call: &'static str) -> Result<()> {
        if !self.phase_open.get() {
            return Err(self.poisoned_again(call));
        }
        let way = match self.rest.get() {
            Rest::Own => Way::In,
            Rest::Kept | Rest::Lent => Way::Part,
        };
        let outcome = self.synchronize(call, way);
        if outcome.is_err() {
            self.leave_phase();
        }
        outcome
    }

    /// Says that this rank accesses nobody any more.
    fn leave_phase(&self) {
        self.phase_open.set(false);
        self.control(self.me).fences.0.phases.end_writing();
        if self.rest.get() != Rest::Own {
            for at in 0..self.targets.len() {
                self.forget_part(at);
            }
        }
    }

    /// The fence that ends the last phase. If an earlier one has failed, there is nothing to end.
    #[track_caller]
    pub(crate) fn close_phase(&self, call: &'static str) -> Result<()> {
        self.refuse_lent(call)?;
        let was_open = self.phase_open.get();
        if was_open {
            self.leave_phase();
        }
        self.take_rest_back();
        match was_open {
            true => self.synchronize(call, Way::Out),
            false => Err(self.poisoned_again(call)),
        }
    }

    /// Waits for all other ranks, outside any phase.
    #[track_caller]
    pub(crate) fn meet(&self, call: &'static str) -> Result<()> {
        self.refuse_poisoned(call)?;
        self.synchronize(call, Way::Out)
    }

    /// Leaves a phase without its fence, as the program panicked: the others are told.
    #[cold]
    pub(crate) fn abandon_phase(&self) {
        if self.rest.get() == Rest::Lent {
            return; // The slices are gone before the scope of the phase is.
        }
        if self.phase_open.get() {
            self.leave_phase();
            self.break_window(self.me, Reason::Panicked);
        }
        self.take_rest_back();
    }

    /// Meets all other ranks, everybody's writes before being visible to everybody after, and all going the same way.
    ///
    /// On x86-64 a round is a plain `mov` that raises the own flag, one full fence (`lock or` on the stack) and a load that
    /// sees nobody asleep, and then loads of the other's flag until it is up. With two ranks there is one round; its time
    /// is that of two cache lines that change cores, and the two divisions that find the neighbours and the forty stores
    /// and loads that describe the wait pass while the first of them travels. There is no system call unless a rank sleeps.
    #[track_caller]
    fn synchronize(&self, call: &'static str, way: Way) -> Result<()> {
        self.publish();
        let number = self.fences.get() + 1;
        self.fences.set(number);
        let ranks = self.targets.len();
        let own = &self.control(self.me).fences.0;
        let broken = self.broken();
        // Whoever has raised its last flag has done its part, and may leave.
        let last_round = (ranks.max(2) - 1).ilog2() as usize;
        if let Some(served) = &self.served {
            served.comes_to_fence(number);
            self.forget_regions();
            self.complete_for_fence(call)?;
        }
        let mut together = way;
        let mut parted = None;
        let mut mismatched_since = None;
        let mut round = 0;
        let mut distance = 1;
        while distance < ranks {
            own.phases.signal(round, number, together);
            let to = (self.me + distance) % ranks;
            let from = (self.me + ranks - distance) % ranks;
            match self.targets[to].remote {
                false => self.control(to).fences.0.arrivals.notify(),
                true => match self.signal_remote(call, to, round, number, together) {
                    Ok(()) => {}
                    Err(error) => {
                        self.break_after(&error);
                        return Err(error);
                    }
                },
            }
            let phases = match self.targets[from].remote {
                false => &self.control(from).fences.0.phases,
                true => &own.inbox,
            };
            let is_missing = |rank: Rank| match self.served {
                None => self.control(rank.index()).fences.0.phases.heard(last_round, number).is_none(),
                // The flags of most ranks are elsewhere; those whose flags are here wait for the others in turn.
                Some(_) => rank.index() == from && phases.heard(round, number).is_none(),
            };
            let what = WaitFor {
                call,
                window: Some(self.id),
                team: &self.members,
                needs: Needs::Those(&is_missing),
                act: Act::Collective,
                detail: Some(("fence", number)),
                blocker: NO_BLOCKER,
            };
            let heard = self.context.wait(&own.arrivals, what, || {
                if let Some(theirs) = phases.heard(round, number) {
                    return Some(Heard::Way(theirs));
                }
                // Whoever has departed has raised before all the flags that it will ever raise.
                let departed =
                    || self.members.ranks().find(|rank| self.has_departed(rank.index()) && is_missing(*rank));
                if self.somebody_has_departed()
                    && let Some(rank) = departed()
                {
                    return Some(Heard::Departed(rank));
                }
                match broken.get()? {
                    // The wait itself finds who is where, and says it better than the word does.
                    (_, Reason::Mismatched) => {
                        let since = mismatched_since.get_or_insert_with(Instant::now);
                        (MISMATCH_GRACE < since.elapsed()).then_some(Heard::Broken)
                    }
                    _ => Some(Heard::Broken),
                }
            });
            match heard {
                // Whoever goes another way is told by the rounds that follow, so this rank stays until they are over.
                Ok(Heard::Way(theirs)) => {
                    together = together.with(theirs);
                    if together == Way::Apart && parted.is_none() {
                        parted = Some((Rank(from as u32), theirs));
                    }
                }
                Ok(Heard::Departed(rank)) => {
                    self.break_window(rank.index(), Reason::Departed);
                    return Err(self.poisoned_now(call));
                }
                Ok(Heard::Broken) => break,
                Err(error) => {
                    self.break_after(&error);
                    return Err(error);
                }
            }
            round += 1;
            distance *= 2;
        }
        if let Some((rank, theirs)) = parted {
            self.break_window(self.me, Reason::Mismatched);
            return Err(self.parted(call, way, rank, theirs));
        }
        // After this rank has said that it may write; see `sync/phases.rs`.
        match broken.get() {
            None => {
                self.import();
                Ok(())
            }
            Some(_) => Err(self.poisoned_now(call)),
        }
    }

    /// Waits until the targets have done what this rank has sent them: whoever comes out of a fence may be told of it by a third
    /// rank, and then accesses the target by a connection of its own, which nothing orders behind this one. With two ranks
    /// there is no third, and the target reads the signal behind the data.
    #[cold]
    #[track_caller]
    fn complete_for_fence(&self, call: &'static str) -> Result<()> {
        let ranks = self.targets.len();
        if ranks == 2 {
            return Ok(());
        }
        let others = (0..ranks).filter(|&at| self.targets[at].remote);
        self.flush_remote(call, others).inspect_err(|error| self.break_after(error))
    }

    /// The error of a fence in which some ranks go into a phase and others end their last one.
    #[cold]
    #[track_caller]
    fn parted(&self, call: &'static str, way: Way, rank: Rank, theirs: Way) -> Error {
        let other = match theirs {
            Way::In => format!("a fence of rank {rank} that leads into a phase"),
            Way::Part => format!("a fence of rank {rank} that leads into a phase in which all expose a part"),
            Way::Out => format!("a fence of rank {rank} that ends its last phase"),
            Way::Apart => {
                "fences of other ranks, of which some lead into a phase and some end the last one".to_owned()
            }
        };
        let note = match way {
            Way::In => "this one leads into a phase",
            Way::Part => "this one leads into a phase in which all expose a part",
            Way::Out | Way::Apart => "this one ends the last phase",
        };
        self.error(ErrorKind::CollectiveMismatch, call).other(other).note(note)
    }
}
