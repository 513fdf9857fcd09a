//! Waiting for an offer to be complete: for what it serves, and for what its caller has issued. Never matches by itself.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::panic::Location;
use std::sync::atomic::Ordering;

use super::event::{Family, Key};
use super::hub::UNCOUNTED;
use super::offer::{Offerable, Request, Status};
use super::standing::{Caller, Ended, Standing};
use crate::error::{Error, ErrorKind, Evidence, Result};
use crate::liveness::{self, Act, NO_BLOCKER, Needs, WaitFor};
use crate::rank::Rank;

/// The events that a caller has issued.
pub(super) trait Own {
    /// Brings the events of a family forward, those of earlier rounds than `before` in the collective one. Whether all of them
    /// are served.
    fn advance(
        &self,
        key: &Key,
        before: u64,
        call: &'static str,
        location: &'static Location<'static>,
    ) -> Result<bool>;

    /// The ranks of the job without shared memory that an event waits for.
    fn far(&self, key: &Key) -> Vec<u32>;

    /// Whether an event of the family waits for a rank. With `is_over`, for one whose program has returned: whether there is one
    /// that it has not served.
    fn waits_for(&self, family: Family, rank: Rank, is_over: bool) -> bool;

    /// Takes the first fault of the events of a family.
    fn take_fault(
        &self,
        key: &Key,
        call: &'static str,
        location: &'static Location<'static>,
    ) -> Option<Error>;
}

/// Waits until `ready` gives a value.
pub(super) fn wait<R>(
    by: &Caller<'_>,
    call: &'static str,
    key: &Key,
    (needed, far): (&dyn Fn(Rank) -> bool, &dyn Fn() -> Vec<u32>),
    location: &'static Location<'static>,
    ready: &mut dyn FnMut() -> Result<Option<R>>,
) -> Result<R> {
    let store = by.hub.store(by.hub.me, call)?;
    let what = WaitFor {
        call,
        window: None,
        team: by.members,
        needs: Needs::Those(needed),
        act: Act::Any,
        detail: Some(("tag", key.tag)),
        blocker: NO_BLOCKER,
    };
    by.hub.has_failed.store(false, Ordering::Relaxed);
    let outcome = match &by.hub.remote {
        Some(remote) => remote.wait(by, what, far, location, ready),
        None => {
            let outcome = by.context.wait(&store.changed, what, || ready().transpose());
            outcome.map_err(|error| error.called_at(location)).and_then(|value| value)
        }
    };
    if outcome.is_err() {
        by.hub.has_failed.store(true, Ordering::Relaxed);
    }
    outcome
}

/// Whether a rank has ended without failure.
pub(super) fn is_end_in_order(end: Option<Evidence>) -> bool {
    end.is_some_and(|end| !end.is_failure())
}

/// Whether an offer can't be complete before a rank has done something: `only` is the rank whose events alone it serves, and
/// `is_full` whether it has served all that it counts.
pub(super) fn is_needed(
    by: &Caller<'_>,
    key: &Key,
    own: Option<&dyn Own>,
    (only, is_full, round): (Option<Rank>, bool, u64),
    rank: Rank,
) -> bool {
    let segment = by.context.segment();
    let evidence = |rank: Rank| liveness::evidence(segment, by.members.job_rank(rank).0);
    // The end first: what the rank has done before it is seen then.
    let end = evidence(rank);
    if own.is_some_and(|own| own.waits_for(key.family, rank, is_end_in_order(end))) {
        return true;
    }
    if is_full {
        return false;
    }
    // A rank that ended well has served what it had to, and was served; but it may not have come here.
    match (end, key.family, only) {
        (Some(end), ..) if end.is_failure() => true,
        (Some(_), Family::Collective, _) => by.hub.lacks(by, key, round, rank),
        (None, Family::Collective, _) => true,
        (_, _, Some(only)) => only == rank,
        // Events may come from anybody, until all have left; a failure says more than that.
        (None, _, None) => false,
        (Some(_), _, None) => {
            let mut others = by.members.ranks().filter(|&other| other != by.members.rank());
            others.all(|other| is_end_in_order(evidence(other)))
        }
    }
}

/// Adds to the wait of an offer that has stalled how far it came, and what may be the cause.
#[cold]
pub(super) fn explain(error: Error, (count, served): (u64, u64), hint: Option<String>) -> Error {
    if error.kind() != ErrorKind::Stalled {
        return error;
    }
    let note = error.context().note.clone().unwrap_or_default();
    let served = match count {
        UNCOUNTED => format!("{served} events served"),
        count => format!("{served} of {count} events served"),
    };
    match hint {
        Some(hint) => error.note(format!("{served}; {hint}; {note}")),
        None => error.note(format!("{served}; {note}")),
    }
}

impl Standing {
    /// Whether the offer has served all that it counts.
    fn is_full(&self, round: u64, location: &'static Location<'static>) -> Result<bool> {
        if self.key.family == Family::Collective {
            let by = &self.owner.caller();
            let hub = by.hub;
            hub.advance_rounds(by, &self.key, self.call, location)?;
            return Ok(hub.total(&self.key, round) == Some(self.served()));
        }
        Ok(self.count() == UNCOUNTED || self.count() <= self.served())
    }

    /// Waits until the offer has served what it counts, and the caller's own events are served.
    fn complete(
        &self,
        own: Option<&dyn Own>,
        round: u64,
        location: &'static Location<'static>,
    ) -> Result<()> {
        self.attend(location)?;
        let is_full = Cell::new(false);
        let by = &self.owner.caller();
        let needed = |rank: Rank| is_needed(by, &self.key, own, (self.only(), is_full.get(), round), rank);
        let mut ready = || {
            let before = round.saturating_add(1);
            let is_own_done = match own {
                Some(own) => own.advance(&self.key, before, self.call, location)?,
                None => true,
            };
            is_full.set(self.is_full(round, location)?);
            Ok((is_own_done && is_full.get()).then_some(()))
        };
        let far = || own.map_or(Vec::new(), |own| own.far(&self.key));
        wait(by, self.call, &self.key, (&needed, &far), location, &mut ready)
            .map_err(|error| explain(error, (self.count(), self.served()), self.hint()))
    }

    /// Refuses to complete without the events of an open scope.
    pub(super) fn refuse_inside_scope(&self, location: &'static Location<'static>) -> Result<()> {
        let by = self.owner.caller();
        by.context.serve();
        match by.hub.has_scope(&self.key) {
            false => Ok(()),
            true => {
                let note =
                    format!("a scope of the same team and tag is open, so complete it there; {}", self.key);
                Err(self
                    .owner
                    .caller()
                    .error(ErrorKind::EpochStillOpen, self.call)
                    .note(note)
                    .called_at(location))
            }
        }
    }
}

impl<B: Offerable> Request<B> {
    /// Waits for the offer and the caller's own events, and closes it.
    pub(super) fn finish(
        &mut self,
        own: Option<&dyn Own>,
        location: &'static Location<'static>,
    ) -> Result<Status> {
        let outcome = match self.standing.is_open() {
            true => self.standing.complete(own, self.round, location),
            false => return Err(self.at_its_end(location)),
        };
        self.settle_end(outcome, own, location)
    }

    #[cold]
    fn at_its_end(&self, location: &'static Location<'static>) -> Error {
        let note = format!("it is complete already, or was never started; {}", self.standing.key);
        let error = self.standing.owner.caller().error(ErrorKind::NotOffered, self.standing.call);
        error.note(note).called_at(location)
    }

    /// Completes the offer if that needs no waiting.
    pub(super) fn try_finish(
        &mut self,
        own: Option<&dyn Own>,
        location: &'static Location<'static>,
    ) -> Result<Option<Status>> {
        if !self.standing.is_open() {
            // "Not yet" would be wrong for ever.
            return Err(self.at_its_end(location));
        }
        let key = self.standing.key;
        let is_complete = match key.family {
            // What has arrived here, and nothing else.
            Family::Collective => {
                self.standing.owner.caller().hub.total(&key, self.round) == Some(self.standing.served())
                    && own.is_none_or(|own| {
                        !self
                            .standing
                            .owner
                            .caller()
                            .members
                            .ranks()
                            .any(|rank| own.waits_for(key.family, rank, false))
                    })
            }
            Family::Plain | Family::Progressive => {
                self.standing.attend(location)?;
                let is_own_done = match own {
                    Some(own) => own.advance(&key, u64::MAX, self.standing.call, location)?,
                    None => true,
                };
                is_own_done && self.standing.is_full(self.round, location)?
            }
        };
        match is_complete && self.standing.is_open() {
            true => self.settle_end(Ok(()), own, location).map(Some),
            false => {
                self.standing.turn_away(location)?;
                Ok(None)
            }
        }
    }

    fn settle_end(
        &mut self,
        outcome: Result<()>,
        own: Option<&dyn Own>,
        location: &'static Location<'static>,
    ) -> Result<Status> {
        let ended = self.close(location);
        let (key, call) = (self.standing.key, self.standing.call);
        if key.family == Family::Collective {
            self.standing.owner.caller().hub.end_round(&key, self.round);
        }
        outcome?;
        let Ended { status, fault } = ended?;
        match own.and_then(|own| own.take_fault(&key, call, location)).or(fault) {
            Some(fault) => Err(fault),
            None => Ok(status),
        }
    }
}
