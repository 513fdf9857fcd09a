//! Entry: from a closure to ranks that run it. Never starts a process; `launch` does.
#![forbid(unsafe_code)]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Evidence, Result};
use crate::job::RankContext;
use crate::liveness;
use crate::team::{Rank, Team, create_root};
use crate::transport::shm::segment::Segment;

/// A job whose ranks are threads of this process.
///
/// A `Job` owns everything that its ranks share, so any number of jobs can live in one process.
///
/// ```
/// let squares = rma::Job::new(3).spawn(|team| team.rank().0 * team.rank().0)?;
/// assert_eq!(squares, [0, 1, 4]);
/// # Ok::<(), rma::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Job {
    ranks: u32,
    limit: Option<Duration>,
}

impl Job {
    /// A job of `ranks` ranks without a time limit.
    pub fn new(ranks: u32) -> Job {
        Job { ranks, limit: None }
    }

    /// Sets the time limit of each blocking call: past it, the call ends with [`ErrorKind::Stalled`].
    pub fn time_limit(self, limit: Duration) -> Job {
        Job { limit: Some(limit), ..self }
    }

    /// Runs `body` as every rank and returns what each returned, in the order of ranks.
    ///
    /// A value that `body` returns ends the rank in order, also if the value is an `Err`; see
    /// [`try_spawn`](Job::try_spawn) for bodies that can fail.
    ///
    /// # Errors
    /// `Launch` for a number of ranks that no job can have; `System` if memory or threads are short; `PeerLost` if a
    /// rank panicked, with its message.
    pub fn spawn<R: Send>(&self, body: impl Fn(&Team) -> R + Sync) -> Result<Vec<R>> {
        self.start(&body, &|_| Evidence::Finished)
    }

    /// As [`spawn`](Job::spawn), for bodies that can fail: the other ranks learn of an `Err` as of a failed rank
    /// ([`Evidence::ReturnedError`]), and the caller gets every rank's result.
    ///
    /// # Errors
    /// As [`spawn`](Job::spawn); an `Err` of a rank is no error of this call.
    pub fn try_spawn<R: Send, E: Send>(
        &self,
        body: impl Fn(&Team) -> Result<R, E> + Sync,
    ) -> Result<Vec<Result<R, E>>> {
        self.start(&body, &|result: &Result<R, E>| match result {
            Ok(_) => Evidence::Finished,
            Err(_) => Evidence::ReturnedError,
        })
    }

    fn start<R: Send>(
        &self,
        body: &(dyn Fn(&Team) -> R + Sync),
        evidence_of: &(dyn Fn(&R) -> Evidence + Sync),
    ) -> Result<Vec<R>> {
        const CALL: &str = "spawn";
        let segment = Segment::create(self.ranks)?;
        create_root(&segment)?;
        let run_rank = |rank: u32| {
            liveness::join(&segment, rank, std::process::id());
            // The body may leave things half done when it panics, but only things of this rank and of the job,
            // which the others are told about and which end with it.
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                let context = RankContext::new(Arc::clone(&segment), Rank(rank), self.limit, None);
                body(&Team::root(Arc::new(context)))
            }));
            let evidence = outcome.as_ref().map_or(Evidence::Panicked, evidence_of);
            liveness::end(&segment, rank, evidence);
            outcome
        };
        let outcomes = thread::scope(|scope| {
            let threads: Vec<_> = (0..self.ranks)
                .map(|rank| {
                    let builder = thread::Builder::new().name(format!("rank {rank}"));
                    let started = builder.spawn_scoped(scope, move || run_rank(rank));
                    if started.is_err() {
                        // The others must not wait for a rank that never was.
                        liveness::end(&segment, rank, Evidence::LauncherGone);
                    }
                    started
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.map(|handle| handle.join().and_then(|outcome| outcome)))
                .collect::<Vec<_>>()
        });
        let first = liveness::first_failure(&segment);
        let mut results = Vec::with_capacity(outcomes.len());
        let mut failures = Vec::new();
        for (rank, outcome) in outcomes.into_iter().enumerate() {
            let error = match outcome {
                Ok(Ok(value)) => {
                    results.push(value);
                    continue;
                }
                Ok(Err(panic)) => Error::new(ErrorKind::PeerLost, CALL)
                    .lost(Rank(rank as u32))
                    .evidence(Evidence::Panicked)
                    .note(panic_text(panic.as_ref())),
                Err(error) => Error::new(ErrorKind::System, CALL)
                    .note(format!("no thread for rank {rank} could be made: {error}")),
            };
            failures.push((rank as u32, error));
        }
        // The failure that came first explains the others.
        failures.sort_by_key(|(rank, _)| Some(*rank) != first);
        match failures.into_iter().next() {
            None => Ok(results),
            Some((_, error)) => Err(error),
        }
    }
}

/// Runs `body` as `ranks` ranks that are threads of this process: [`Job::spawn`] without a time limit.
///
/// ```
/// let sums = rma::spawn(4, |team| team.size())?;
/// assert_eq!(sums, [4, 4, 4, 4]);
/// # Ok::<(), rma::Error>(())
/// ```
///
/// # Errors
/// As [`Job::spawn`].
pub fn spawn<R: Send>(ranks: u32, body: impl Fn(&Team) -> R + Sync) -> Result<Vec<R>> {
    Job::new(ranks).spawn(body)
}

/// The message of a panic, as far as it is text.
fn panic_text(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (None, Some(text)) => text.clone(),
        (None, None) => "the panic carries no text".to_owned(),
    }
}
