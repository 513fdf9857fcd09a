//! Ranks that share no memory. Never waits.
#![forbid(unsafe_code)]

use std::panic::Location;

use super::event::{Family, Found, Key};
use super::hub::{Hub, Locked, Met};
use super::rounds::Tally;
use super::scope::{Queue, Scope};
use super::standing::Caller;
use crate::error::{ErrorKind, Result};
use crate::rank::Rank;

pub(super) enum Remote {}

impl Remote {
    pub(super) fn nudge(&self) {
        match *self {}
    }
}

#[derive(Default)]
pub(super) struct Far;

#[derive(Default)]
pub(super) struct Sent;

impl Hub {
    pub(super) fn keeper<'a>(&'a self, _locked: &'a Locked<'_>, _key: &Key) -> impl FnMut(u64, u64) -> Option<Met> + 'a {
        |_, _| None
    }

    pub(super) fn send_tally_far(
        &self,
        by: &Caller,
        _key: &Key,
        to: Rank,
        _tally: &Tally,
        call: &'static str,
        location: &'static Location<'static>,
    ) -> Result<()> {
        Err(by.error(ErrorKind::System, call).target(to).called_at(location))
    }
}

impl<'scope> Scope<'scope, '_> {
    pub(super) fn push_far(
        &self,
        queue: &mut Queue<'scope>,
        by: &Caller,
        _key: &Key,
        call: &'static str,
        _is_ready: bool,
        location: &'static Location<'static>,
    ) -> Result<()> {
        Err(by.error(ErrorKind::System, call).target(queue.target).called_at(location))
    }

    pub(super) fn take_far_back(&self, _queue: &mut Queue<'_>, _by: &Caller, _key: &Key) {}
}

impl Queue<'_> {
    pub(super) fn take_far(&mut self, _faults: &mut Vec<(Family, Rank, Found)>) {}
}
