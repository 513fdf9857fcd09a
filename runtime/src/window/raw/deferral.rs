//! Epochs that were opened under WEAK and have not been let in yet: what they wait for, and the transfers that they keep until
//! then. Never moves a byte before the target has let the epoch in.
//!
//! What is kept owns its data, or lies in the own window, so that an epoch can be leaked with it. It is bounded
//! (`combine_bytes`): a transfer that exceeds the bound waits for the target, and takes what was kept before along.
#![forbid(unsafe_code)]

use rma_automaton::LockKind as TableKind;

use super::{Access, LockKind, RawWindow};
use crate::error::{Error, ErrorKind, Result};
use crate::info::{Hints, Schedule, Terms};
use crate::team::Rank;

/// What a kept transfer costs beside its data, so that transfers of nothing are bounded, too.
const KEPT_OVERHEAD_BYTES: usize = 128;

/// How an epoch was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Start,
    Lock(LockKind),
}

/// A transfer that is kept. It runs when its target has let the epoch in.
pub(super) type Kept = Box<dyn FnOnce(&RawWindow) -> Result<()> + Send>;

/// An epoch that has not been let in.
pub(super) struct Promise {
    at: usize,
    style: Style,
    terms: Terms,
    kept: Vec<Kept>,
    kept_bytes: usize,
}

impl Promise {
    /// How the epoch was opened, and what it keeps.
    pub(super) fn into_kept(self) -> (Style, Vec<Kept>) {
        (self.style, self.kept)
    }

    fn has_room(&self, bytes: usize) -> bool {
        let room = self.terms.combine_bytes.saturating_sub(self.kept_bytes);
        bytes.checked_add(KEPT_OVERHEAD_BYTES).is_some_and(|bytes| bytes <= room)
    }
}

impl RawWindow {
    /// Opens an epoch without asking its target.
    pub(super) fn promise(&self, at: usize, style: Style, terms: Terms) {
        self.promises.borrow_mut().push(Promise { at, style, terms, kept: Vec::new(), kept_bytes: 0 });
        self.targets[at].access.set(Access::Promised);
        match style {
            Style::Start => self.open.started.set(self.open.started.get() + 1),
            Style::Lock(_) => self.open.locked.set(self.open.locked.get() + 1),
        }
    }

    /// How the epoch toward a target was opened, if there is one, in the words of the table of legal calls.
    pub(super) fn opened(&self, at: usize) -> Option<Opened> {
        match self.targets[at].access.get() {
            Access::None => None,
            Access::Asked | Access::Started => Some(Opened::Started),
            Access::Exclusive => Some(Opened::Locked(TableKind::Exclusive)),
            Access::Shared => Some(Opened::Locked(TableKind::Shared)),
            Access::Promised => match self.promised_style(at) {
                Some(Style::Lock(kind)) => Some(Opened::Locked(kind.into())),
                Some(Style::Start) | None => Some(Opened::Started),
            },
        }
    }

    fn promised_style(&self, at: usize) -> Option<Style> {
        self.promises.borrow().iter().find(|promise| promise.at == at).map(|promise| promise.style)
    }

    /// Whether transfers to a target are to be kept for the closing call.
    #[inline]
    pub(super) fn keeps_transfers(&self, target: Rank) -> bool {
        let there = self.targets.get(target.index());
        there.is_some_and(|there| there.access.get() == Access::Promised)
            && self.promised(target, |promise| promise.terms.schedule == Schedule::Closing)
    }

    /// Whether a transfer that holds this many bytes can be kept.
    pub(super) fn has_room(&self, target: Rank, bytes: usize) -> bool {
        self.promised(target, |promise| promise.has_room(bytes))
    }

    #[cold]
    fn promised(&self, target: Rank, is_so: impl FnOnce(&Promise) -> bool) -> bool {
        let promises = self.promises.borrow();
        promises.iter().find(|promise| promise.at == target.index()).is_some_and(is_so)
    }

    /// Keeps a transfer that holds this many bytes, if there is room for it.
    #[cold]
    pub(super) fn keep(
        &self,
        target: Rank,
        bytes: usize,
        transfer: impl FnOnce(&RawWindow) -> Result<()> + Send + 'static,
    ) -> bool {
        let mut promises = self.promises.borrow_mut();
        match promises.iter_mut().find(|promise| promise.at == target.index()) {
            Some(promise) if promise.has_room(bytes) => {
                promise.kept_bytes += bytes + KEPT_OVERHEAD_BYTES;
                promise.kept.push(Box::new(transfer));
                true
            }
            _ => false,
        }
    }

    /// Waits until the target lets the epoch in, and runs the transfers that were kept. If it can't be let in, they are
    /// dropped, and the epoch stays promised; if one of them fails, the others run all the same.
    #[cold]
    #[track_caller]
    pub(super) fn keep_promise(&self, call: &'static str, at: usize) -> Result<()> {
        let admitted = match self.promised_style(at) {
            None => Ok(()),
            Some(Style::Start) => self.await_start(call, at),
            Some(Style::Lock(kind)) => self.take_lock(call, at, kind),
        };
        let promise = {
            let mut promises = self.promises.borrow_mut();
            let Some(place) = promises.iter().position(|promise| promise.at == at) else { return admitted };
            match admitted {
                Ok(()) => promises.swap_remove(place),
                Err(error) => {
                    let promise = &mut promises[place];
                    promise.kept = Vec::new();
                    promise.kept_bytes = 0;
                    return Err(error);
                }
            }
        };
        let mut outcome = Ok(());
        for transfer in promise.kept {
            let moved = transfer(self);
            outcome = outcome.and(moved);
        }
        outcome
    }

    /// Takes an epoch that was not let in, for a closing call that opens it, too.
    pub(super) fn take_promise(&self, at: usize) -> Option<Promise> {
        let mut promises = self.promises.borrow_mut();
        let place = promises.iter().position(|promise| promise.at == at)?;
        Some(promises.swap_remove(place))
    }

    /// Gives up an epoch that was not let in, and what it keeps.
    #[cold]
    pub(super) fn break_promise(&self, at: usize) {
        let style = self.promised_style(at).unwrap_or(Style::Start);
        self.promises.borrow_mut().retain(|promise| promise.at != at);
        self.targets[at].access.set(Access::None);
        match style {
            Style::Start => self.open.started.set(self.open.started.get() - 1),
            Style::Lock(_) => self.open.locked.set(self.open.locked.get() - 1),
        }
    }

    /// Closes an epoch whose guard or scope goes without its closing call. A panic does not wait for a target: what was kept
    /// is dropped then.
    #[cold]
    pub(crate) fn abandon_epoch(&self, target: Rank, close: impl FnOnce() -> Result<()>) {
        let is_promised =
            matches!(self.targets[target.index()].access.get(), Access::Promised | Access::Asked);
        if is_promised && std::thread::panicking() {
            self.break_promise(target.index());
            return;
        }
        match close() {
            Ok(()) => {}
            // Transfers of an epoch that was let in are complete when they return, so closing it does not fail.
            Err(error) => self.context.leave_open(error),
        }
    }

    /// Whether transfers to a target may be kept until its epoch is let in.
    pub(crate) fn is_kept(&self, target: Rank) -> bool {
        self.targets.get(target.index()).is_some_and(|there| there.access.get() == Access::Promised)
    }

    /// What an opening call is to do, from what it was given and what the job makes of that.
    #[track_caller]
    #[inline]
    pub(crate) fn terms(&self, call: &'static str, hints: &Hints) -> Result<Terms> {
        match self.context.info_policy().terms(hints) {
            Ok(terms) => Ok(terms),
            Err(malformed) => Err(self.bad_info(call, malformed)),
        }
    }

    #[cold]
    #[track_caller]
    fn bad_info(&self, call: &'static str, malformed: String) -> Error {
        self.error(ErrorKind::BadInfo, call).note(malformed)
    }
}

/// What is open toward a target, as the table of legal calls knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opened {
    Started,
    Locked(TableKind),
}
