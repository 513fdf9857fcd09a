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
//!
//! A program depends on the package `rma-runtime` and calls it `rma`:
//!
//! ```toml
//! [dependencies]
//! rma = { package = "rma-runtime", path = "…/runtime" }
//! ```
//!
//! # By hand
//!
//! The annotation is not needed: everything that it writes is a call of [`Window`]. Here each rank of a ring gives its number
//! to its right neighbour, once in each style.
//!
//! ```
//! use rma::{Info, LockKind, Origins, Rank, Sum, Window};
//!
//! let ranks = rma::spawn(4, |team| {
//!     let (me, n) = (team.rank().0, team.size());
//!     let (left, right) = (Rank((me + n - 1) % n), Rank((me + 1) % n));
//!     let mut u = Window::<u32>::allocate(team, 3)?;
//!
//!     // Fence: everybody opens and closes together.
//!     u.fence(|epoch| epoch.put(right, 0, [me]))?;
//!     assert_eq!(u.load(0)?, left.0);
//!
//!     // Lock: the target does nothing; a barrier tells it that the others are done.
//!     u.lock(right, LockKind::Exclusive, |epoch| epoch.accumulate(right, 1, Sum, [me]))?;
//!     team.barrier()?;
//!     assert_eq!(u.load(1)?, left.0);
//!
//!     // Post and wait at the target, start and complete at the origin: only neighbours wait for each other.
//!     let exposure = u.post(Origins::Group(&[left]))?;
//!     let access = exposure.start(right, Info::Strong)?;
//!     access.put(right, 2, [me])?;
//!     access.complete()?;
//!     exposure.wait_all()?;
//!     assert_eq!(u.load(2)?, left.0);
//!     Ok::<(), rma::Error>(())
//! })?;
//! ranks.into_iter().collect::<rma::Result<()>>()?;
//! # Ok::<(), rma::Error>(())
//! ```
//!
//! A closure that uses `?` and ends in a plain `Ok(())` has no error type unless something around it names one; hence
//! `Ok::<(), rma::Error>(())` in its last line.
#![deny(unsafe_code)]

mod element;
mod epoch;
mod error;
mod info;
mod job;
#[doc(hidden)]
pub mod launch;
mod liveness;
mod op;
mod patience;
pub mod pgo;
#[doc(hidden)]
pub mod private;
mod rank;
mod run;
mod sync;
mod sys;
mod team;
pub mod trace;
mod traffic;
mod transport;
mod window;

pub use element::{
    And, Basic, BasicType, Bool, Element, Max, Min, NoOp, OpCode, Operation, Or, Prod, Replace, Sum, Xor,
};
pub use epoch::{
    Access, AccessEpoch, Closed, Deliver, Exposure, FenceEpoch, Lock, LockAllEpoch, LockEpoch, Pending,
    Plain, Request, StartRequest, TwoCall, WaitRequest,
};
pub use error::{Context, Error, ErrorKind, Evidence, Result};
pub use info::{Hints, Info, Schedule};
pub use job::MemoryModel;
pub use op::{
    Buffer, Datatype, Origin, OriginMut, Own, OwnOf, Section, Strided, StridedSlice, StridedSliceMut,
    TypedSlice, TypedSliceMut, own, strided, strided_mut, typed, typed_mut,
};
pub use rank::Rank;
pub use rma_macros::{Element, rma_epoch, rma_test};
pub use run::{Job, run, spawn};
pub use sync::registers::{touch, touch_mut};
pub use team::Team;
pub use traffic::Traffic;
pub use transport::shm::copier::CopyEngine;
pub use window::raw::{Expected, LockKind, Origins};
pub use window::{
    Atomicity, COUNTERS, CallerMemory, LocalView, LocalViewMut, Moved, Region, Returned, Unexposed, Window,
    WindowOptions,
};
