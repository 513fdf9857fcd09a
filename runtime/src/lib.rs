//! One-sided communication: windows, epochs and transfers between the ranks of a job.
#![deny(unsafe_code)]

mod element;
mod error;
mod job;
mod liveness;
mod run;
mod sync;
mod sys;
mod team;
mod transport;

pub use element::{And, BasicType, Element, Max, Min, OpCode, Operation, Or, Prod, Replace, Sum, Xor};
pub use error::{Context, Error, ErrorKind, Evidence, Result};
pub use run::{Job, spawn};
pub use team::{Rank, Team};
