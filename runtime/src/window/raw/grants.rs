//! Exposures that grow rank by rank, for the two-call layer. Never lets a rank in twice by one exposure.
#![forbid(unsafe_code)]

use super::failures::Failure;
use super::{Access, Origins, RawWindow};
use crate::error::{ErrorKind, Result};
use crate::liveness::{Act, NO_BLOCKER, Needs, WaitFor};
use crate::team::Rank;

impl RawWindow {
    /// Lets one more rank into the own window, which is posted for it if it is not posted yet.
    #[track_caller]
    pub(crate) fn grant(&self, call: &'static str, rank: Rank) -> Result<()> {
        let at = self.check_rank(call, rank)?;
        match (self.posted.get(), self.group.get()) {
            (false, _) => self.post(call, Origins::Group(&[rank]))?,
            (true, Some(members)) => {
                let own = self.control(self.me);
                let status = own.exposure.0.word.status();
                let origin = &self.peer(self.me, at).origin;
                if status.admits(at as u32, origin) {
                    return Err(self.error(ErrorKind::AlreadyPosted, call).target(rank));
                }
                self.publish();
                self.group.set(Some(members + 1));
                origin.allow(status.number());
                own.exposure.0.posted.notify();
            }
            (true, None) => return Err(self.error(ErrorKind::AlreadyPosted, call).target(rank)),
        }
        // Whoever waits for grants of several ranks sleeps on an event of its own.
        match self.targets[at].remote {
            false => self.control(at).ends.0.completed.notify(),
            true => self.ring(),
        }
        Ok(())
    }

    /// Whether ranks were let in that have not been waited for.
    pub(crate) fn has_granted(&self) -> bool {
        self.posted.get()
    }

    /// Waits until `count` ranks have let this one in, and starts an access to each, which is added to `open`.
    #[track_caller]
    pub(crate) fn await_grants(&self, call: &'static str, count: usize, open: &mut Vec<Rank>) -> Result<()> {
        let ranks = self.targets.len();
        let possible = ranks - open.len();
        if possible < count {
            let note = format!("it counts {count}, and {possible} ranks can let this one in");
            return Err(self.error(ErrorKind::CountExceeded, call).note(note));
        }
        let all = open.len() + count;
        // Begins behind the rank that came last, so that none comes first always.
        let first = open.last().map_or(self.me, |rank| rank.index()) + 1;
        let what = WaitFor {
            call,
            window: Some(self.id),
            team: &self.members,
            needs: Needs::AnyOf(&[]),
            act: Act::Any,
            detail: Some(("grants", count as u64)),
            blocker: NO_BLOCKER,
        };
        let mut look = || {
            for step in 0..ranks {
                let at = (first + step) % ranks;
                if open.len() < all
                    && self.targets[at].access.get() == Access::None
                    && self.try_start(at).is_ok()
                {
                    self.open.started.set(self.open.started.get() + 1);
                    open.push(Rank(at as u32));
                }
            }
            (open.len() == all).then_some(Ok(()))
        };
        let completed = &self.control(self.me).ends.0.completed;
        let admitted = self.context.wait(completed, what, || {
            look().or_else(|| {
                let failure = self.hopeless_grants(count)?;
                // A second look, since what a lost rank did before it ended counts.
                look().or(Some(Err(failure)))
            })
        });
        match admitted {
            Ok(Ok(())) => Ok(()),
            Ok(Err(failure)) => Err(self.failure(call, failure)),
            Err(error) => {
                let absent = self.ranks_where(|rank| self.targets[rank].access.get() == Access::None);
                Err(error.other(format!("ranks {absent}, which have not let this rank in")))
            }
        }
    }

    /// Why fewer than `count` ranks will let this one in.
    fn hopeless_grants(&self, count: usize) -> Option<Failure> {
        match (self.broken().get(), self.failed_member()) {
            (Some(_), _) => return Some(Failure::Poisoned),
            (None, Some(lost)) => return Some(Failure::Lost(lost)),
            (None, None) => {}
        }
        let is_open = |rank: &Rank| self.targets[rank.index()].access.get() == Access::None;
        let departed = |rank: &Rank| self.has_departed(rank.index());
        let possible = self.members.ranks().filter(is_open).filter(|rank| !departed(rank)).count();
        match possible < count {
            true => self.members.ranks().filter(is_open).find(departed).map(Failure::Departed),
            false => None,
        }
    }
}
