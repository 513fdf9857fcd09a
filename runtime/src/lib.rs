//! One-sided communication: windows, epochs and transfers between the ranks of a job. Never keeps anything in a global, so
//! that many jobs live in one process.
//!
//! # Where to begin
//!
//! - [`rma_epoch`]: the annotation with which ordinary Rust says what moves. Its page has a ring of ranks in twenty lines, the
//!   table of places and operators, and an example of each kind of epoch.
//! - [`Window`]: memory that other ranks can reach, and the calls behind the annotation.
//! - [`spawn`] runs ranks as threads of one process, [`run`] makes a program that `rma-run -n 4 ./program` starts as four.
//! - [`rma_test`]: tests that run as a job.
#![deny(unsafe_code)]

mod element;
mod epoch;
mod error;
mod job;
#[doc(hidden)]
pub mod launch;
mod liveness;
mod op;
mod patience;
#[doc(hidden)]
pub mod private;
mod rank;
mod run;
mod sync;
mod sys;
mod team;
pub mod trace;
mod transport;
mod window;

pub use element::{And, BasicType, Element, Max, Min, OpCode, Operation, Or, Prod, Replace, Sum, Xor};
pub use epoch::{Access, AccessEpoch, Closed, Deliver, Exposure, FenceEpoch, LockEpoch, Pending, Plain};
pub use error::{Context, Error, ErrorKind, Evidence, Result};
pub use op::{
    Origin, OriginMut, Own, Section, Strided, StridedSlice, StridedSliceMut, own, strided, strided_mut,
};
pub use rank::Rank;
pub use rma_macros::{rma_epoch, rma_test};
pub use run::{Job, run, spawn};
pub use sync::registers::{touch, touch_mut};
pub use team::Team;
pub use window::raw::{Expected, Info, LockKind, Origins};
pub use window::{LocalView, LocalViewMut, Window};
