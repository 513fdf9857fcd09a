//! Teams: groups of ranks that act together. Never moves window data.
#![forbid(unsafe_code)]

mod collective;
#[cfg(test)]
mod tests;
mod windows;
mod wired;

pub(crate) use collective::create_root;
pub(crate) use windows::{Mover, OpenEpochs};

pub(crate) use crate::rank::Members;
pub use crate::rank::Rank;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use crate::error::{Error, ErrorKind, Result};
use crate::job::RankContext;
use crate::liveness;
use crate::traffic::Traffic;
use crate::transport::shm::arena::Block;
use crate::transport::shm::layout::TeamBlock;
use crate::transport::shm::segment::Segment;

/// A group of ranks that act together (in other systems: a communicator).
///
/// A rank gets the team of the whole job from [`run`](crate::run) or [`spawn`](crate::spawn) and makes others
/// by [`split`](Team::split) and [`duplicate`](Team::duplicate). Collective calls must be made by all members in the
/// same order; a rank that comes to a different call is told so ([`ErrorKind::CollectiveMismatch`]), and a member
/// that dies or leaves ends the calls that wait for it ([`ErrorKind::PeerLost`]). After such an error the team is out
/// of use: later collective calls on it give the same error, or [`ErrorKind::Poisoned`].
///
/// A team may move to another thread of its rank, but one thread at a time uses it. Dropping it is not collective.
#[doc(alias = "communicator")]
pub struct Team {
    context: Arc<RankContext>,
    members: Arc<Members>,
    ground: Ground,
    /// The memory of the team, at the member that made it.
    block: Option<Block>,
    /// Rounds of data that the team has exchanged.
    round: Cell<u64>,
    /// What the caller's windows of the team have open.
    windows: RefCell<Vec<Weak<OpenEpochs>>>,
}

/// How the members of a team come together.
enum Ground {
    /// In memory that all of them share.
    Mapped(collective::Place),
    /// By messages.
    Wired,
}

impl Team {
    /// The team of the whole job, whose block the creator of the segment has made.
    pub(crate) fn root(context: Arc<RankContext>) -> Team {
        let size = context.segment().size();
        let block = context.segment().header().root_block.load(Ordering::Acquire);
        let members = Members::new(0, context.job_rank(), (0..size).map(Rank).collect());
        let ground = match members.ranks().all(|rank| context.shares_memory(rank)) {
            true => Ground::Mapped(collective::Place::new(block, size)),
            false => Ground::Wired,
        };
        Team {
            ground,
            members: Arc::new(members),
            block: None,
            round: Cell::new(0),
            windows: RefCell::default(),
            context,
        }
    }

    /// The caller's rank in this team.
    pub fn rank(&self) -> Rank {
        self.members.rank()
    }

    /// The number of members.
    pub fn size(&self) -> u32 {
        self.members.size()
    }

    /// Whether a member's memory is mapped here, as on one machine; the caller's own is. Other members are reached by connections.
    ///
    /// # Errors
    /// `RankOutOfRange` for a rank that is not in the team.
    #[track_caller]
    pub fn shares_memory(&self, rank: Rank) -> Result<bool> {
        self.check_rank("shares_memory", rank)?;
        Ok(self.context.shares_memory(self.members.job_rank(rank)))
    }

    /// What this rank has sent and received over connections since it joined the job, by all its calls, and how often it has slept.
    ///
    /// ```
    /// // Ranks that share memory send each other nothing.
    /// let sent = rma::spawn(2, |team| team.barrier().map(|()| team.traffic().frames_sent))?;
    /// assert_eq!(sent.into_iter().collect::<rma::Result<Vec<u64>>>()?, [0, 0]);
    /// # Ok::<(), rma::Error>(())
    /// ```
    pub fn traffic(&self) -> Traffic {
        self.context.traffic()
    }

    /// All ranks of the team, in order.
    pub fn ranks(&self) -> impl Iterator<Item = Rank> + use<> {
        self.members.ranks()
    }

    /// The number that tells this team from all others of the job. It is the same at all members.
    pub fn id(&self) -> u64 {
        self.members.id()
    }

    pub(crate) fn context(&self) -> &Arc<RankContext> {
        &self.context
    }

    pub(crate) fn members(&self) -> &Arc<Members> {
        &self.members
    }

    /// Refuses a rank that is not in the team.
    #[track_caller]
    pub(crate) fn check_rank(&self, call: &'static str, rank: Rank) -> Result<()> {
        match rank.0 < self.size() {
            true => Ok(()),
            false => {
                let note = format!("rank {rank} was named and the team has {} ranks", self.size());
                Err(Error::new(ErrorKind::RankOutOfRange, call).caller(self.rank()).target(rank).note(note))
            }
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        let offset = match (&self.ground, self.context.wire()) {
            (Ground::Mapped(place), _) => place.offset(),
            (Ground::Wired, wire) => {
                if let Some(wire) = wire {
                    wire.mailbox().forget(self.id());
                }
                return;
            }
        };
        // Release: pairs with the Acquire below: a member that has left touches the block no more.
        self.context.segment().shared::<TeamBlock>(offset).left.fetch_add(1, Ordering::Release);
        let Some(block) = self.block.take() else { return };
        let members = Arc::clone(&self.members);
        self.context.retire(vec![block], move |segment: &Segment| {
            // Acquire: pairs with the Release above.
            let left = segment.shared::<TeamBlock>(offset).left.load(Ordering::Acquire);
            // A member whose program has returned may have kept its handle, in another thread or among its results.
            let dead = || members.job_ranks().iter().all(|&rank| liveness::cannot_act(segment, rank));
            left == members.size() || dead()
        });
    }
}

impl fmt::Debug for Team {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "team {} (rank {} of {})", self.id(), self.rank(), self.size())
    }
}
