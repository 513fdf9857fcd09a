//! Starting a job as processes: what ranks find in their environment, and the launcher. Never touches windows.
#![forbid(unsafe_code)]

pub(crate) mod environment;
mod output;
mod supervise;

use std::ffi::OsString;
use std::net::IpAddr;
use std::time::Duration;

pub use environment::{parse_bind, parse_seconds};
pub use supervise::launch;

/// How the ranks of a launched job reach each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// Whatever suits the place of the ranks; on one machine that is [`Shm`](Transport::Shm).
    #[default]
    Auto,
    /// One process, whose threads are the ranks.
    Local,
    /// One process per rank, with a shared segment.
    Shm,
    /// One process per rank, and connections between ranks that are not on one node.
    Tcp,
}

/// Whether lines of output say which rank wrote them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tags {
    /// Lines are passed on as they are.
    #[default]
    Off,
    /// Lines begin with `[rank] `.
    On,
}

/// Whether ranks print their [`Traffic`](crate::Traffic) when they end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stats {
    /// They don't.
    #[default]
    Off,
    /// Each prints a line on standard error.
    On,
}

/// What to launch.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Number of ranks.
    pub ranks: u32,
    /// The time limit of each blocking call of the ranks.
    pub limit: Option<Duration>,
    /// Whether output is tagged.
    pub tags: Tags,
    /// Whether each rank says at its end, on standard error, what it has sent, received and waited for.
    pub stats: Stats,
    /// How ranks reach each other.
    pub transport: Transport,
    /// How many ranks share memory, as on one machine; the others are reached by connections.
    pub ranks_per_node: Option<u32>,
    /// The address that the launcher and the ranks listen at, if there are connections.
    pub bind: Option<IpAddr>,
    /// The program, by path or by its name on PATH.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

/// The largest number of ranks of one job.
pub const RANKS_MAX: u32 = crate::transport::shm::layout::RANKS_MAX;
