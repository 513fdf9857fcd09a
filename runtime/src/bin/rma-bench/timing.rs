//! How a metric is timed: batches of calls, of which the first warms up. Never knows what is called.
//!
//! The loops have the shape of the peers': a barrier, a clock, the calls, a clock. With 2 ranks the best batch counts, as
//! whatever else the machine runs only ever adds time; with more ranks than cores the mean counts, as the stalls are then
//! what is measured. Medians over several runs are the business of whoever starts them.

use std::time::Instant;

use rma::{Rank, Result, Team};

use crate::report;

/// Batches per metric, the first of which does not count.
const BATCHES: usize = 10;
/// As many calls a batch has at least.
const CALLS_MIN: f64 = 4.0;

/// What every metric needs.
pub(crate) struct Bench<'a> {
    pub(crate) team: &'a Team,
    prefix: &'static str,
    scale: f64,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(team: &'a Team, prefix: &'static str, scale: f64) -> Bench<'a> {
        Bench { team, prefix, scale }
    }

    /// How often a metric makes its calls, in all batches.
    pub(crate) fn calls(n: usize) -> usize {
        BATCHES * n
    }

    /// How many calls a batch has.
    pub(crate) fn iterations(&self, n: usize) -> usize {
        (n as f64 * self.scale).max(CALLS_MIN) as usize
    }

    pub(crate) fn is_origin(&self) -> bool {
        self.team.rank() == Rank(0)
    }

    /// Prints a metric, once.
    pub(crate) fn emit(&self, metric: &str, bytes: usize, value: f64, unit: &str) {
        if self.is_origin() {
            report::line(self.prefix, metric, bytes, value, unit);
        }
    }

    /// Microseconds that a call takes at rank 0, while everybody else sits in a barrier.
    #[inline]
    pub(crate) fn origin(&self, n: usize, mut call: impl FnMut() -> Result<()>) -> Result<f64> {
        let mut best = f64::INFINITY;
        for batch in 0..BATCHES {
            self.team.barrier()?;
            if self.is_origin() {
                let took = timed(n, &mut call)?;
                if 0 < batch {
                    best = best.min(took);
                }
            }
            self.team.barrier()?;
        }
        Ok(best)
    }

    /// Microseconds that a call takes that all ranks make.
    #[inline]
    pub(crate) fn all(&self, n: usize, mut call: impl FnMut() -> Result<()>) -> Result<f64> {
        let (mut best, mut sum) = (f64::INFINITY, 0.0);
        for batch in 0..BATCHES {
            self.team.barrier()?;
            let took = timed(n, &mut call)?;
            if 0 < batch {
                best = best.min(took);
                sum += took;
            }
        }
        self.team.barrier()?;
        Ok(if self.team.size() == 2 { best } else { sum / (BATCHES - 1) as f64 })
    }
}

/// Microseconds per call.
#[inline]
pub(crate) fn timed(n: usize, mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    let begun = Instant::now();
    for _ in 0..n {
        call()?;
    }
    Ok(begun.elapsed().as_secs_f64() * 1e6 / n as f64)
}
