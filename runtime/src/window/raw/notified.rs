//! Puts that are counted at their target, and the target's wait for the count. Never counts a put before its data are there.

use super::control::NOTICES;
use super::{RawWindow, control};
use crate::element::Element;
use crate::error::{ErrorKind, Result};
use crate::liveness::{Act, NO_BLOCKER, Needs, WaitFor};
use crate::op::Source;
use crate::op::section::Section;
use crate::team::Rank;

impl RawWindow {
    /// Copies into the memory of a target, and counts that there.
    #[track_caller]
    #[inline]
    pub(crate) fn put_notify<T: Element>(
        &self,
        target: Rank,
        at: Section<'_>,
        origin: Source<'_, T>,
        counter: usize,
    ) -> Result<()> {
        const CALL: &str = "put_notify";
        let number = self.refuse_counter(CALL, counter)?;
        // An epoch that was not let in yet is let in now: a put that is kept for later could not be counted.
        let remote = self.admitted(CALL, target)?.remote;
        self.put(target, at, origin)?;
        if remote {
            return self.notify_remote(CALL, target.index(), number);
        }
        let notice = &self.control(target.index()).notices.0[number];
        notice.count.add();
        notice.told.notify();
        Ok(())
    }

    /// Waits until so many puts have been counted by a counter of this rank, and takes them from it.
    #[track_caller]
    pub(crate) fn wait_notified(&self, counter: usize, arrivals: usize) -> Result<()> {
        const CALL: &str = "wait_notified";
        let number = self.refuse_counter(CALL, counter)?;
        self.refuse_views(CALL)?;
        let notice = &self.control(self.me).notices.0[number];
        let wanted = arrivals as u64;
        let others: Vec<Rank> = self.members.ranks().filter(|rank| rank.index() != self.me).collect();
        let what = WaitFor {
            call: CALL,
            window: Some(self.id),
            team: &self.members,
            // Anybody may put, so the wait ends when nobody is left.
            needs: Needs::AnyOf(&others),
            act: Act::Any,
            detail: Some(("puts counted so far", notice.count.untaken())),
            blocker: NO_BLOCKER,
        };
        self.context.wait(&notice.told, what, || notice.count.take(wanted).then_some(()))?;
        self.import();
        Ok(())
    }

    #[track_caller]
    fn refuse_counter(&self, call: &'static str, counter: usize) -> Result<usize> {
        match counter < NOTICES {
            true => Ok(counter),
            false => {
                let note =
                    format!("there is no counter {counter}; they are numbered from 0 to {}", NOTICES - 1);
                Err(self.error(ErrorKind::OutOfBounds, call).note(note))
            }
        }
    }
}

/// Counters of one window at one rank.
pub const COUNTERS: usize = control::NOTICES;
