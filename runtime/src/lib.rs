//! One-sided communication: windows, epochs and transfers between the ranks of a job.
#![deny(unsafe_code)]

mod error;
mod job;
mod liveness;
mod run;
mod sync;
mod sys;
mod team;
mod transport;

pub use error::{Context, Error, ErrorKind, Evidence, Result};
pub use run::{Job, spawn};
pub use team::{Rank, Team};
