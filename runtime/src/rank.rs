//! Ranks and who of the job a team's ranks are, as plain data that errors and waits can name. Never communicates.
#![forbid(unsafe_code)]

use std::fmt;

/// A member of a team, counted from zero.
///
/// The same process may have different ranks in different teams.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rank(pub u32);

impl Rank {
    /// The rank as an index into a table with one entry per member.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Who belongs to a team: what windows keep of it.
#[derive(Debug)]
pub(crate) struct Members {
    id: u64,
    me: Rank,
    job_ranks: Box<[Rank]>,
}

impl Members {
    pub(crate) fn new(id: u64, me: Rank, job_ranks: Box<[Rank]>) -> Members {
        Members { id, me, job_ranks }
    }

    /// The context id, agreed collectively and unique in the job.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The caller's rank in the team.
    pub(crate) fn rank(&self) -> Rank {
        self.me
    }

    pub(crate) fn size(&self) -> u32 {
        self.job_ranks.len() as u32
    }

    /// The ranks of the team, in order.
    pub(crate) fn ranks(&self) -> impl Iterator<Item = Rank> + use<> {
        (0..self.size()).map(Rank)
    }

    /// The job ranks of the members, in the order of their ranks in the team.
    pub(crate) fn job_ranks(&self) -> &[Rank] {
        &self.job_ranks
    }

    /// The job rank of a member.
    pub(crate) fn job_rank(&self, rank: Rank) -> Rank {
        self.job_ranks[rank.index()]
    }

    /// The rank in the team of a rank of the job.
    pub(crate) fn rank_of(&self, job_rank: Rank) -> Option<Rank> {
        self.job_ranks.iter().position(|&member| member == job_rank).map(|at| Rank(at as u32))
    }
}
