//! One-sided communication: windows, epochs and transfers between the ranks of a job.
#![deny(unsafe_code)]

mod error;
mod team;

pub use error::{Context, Error, ErrorKind, Evidence, Result};
pub use team::Rank;
