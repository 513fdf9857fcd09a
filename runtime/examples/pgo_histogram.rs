//! A histogram whose bins lie on all ranks, in the bulk-synchronous manner: every rank counts its samples, puts each part of its counts
//! to whoever has the bins, and all come to one offer of the collective family. Nobody knows how many puts come to it. The result
//! is compared with a serial one.
//!
//! ```text
//! cargo build --example pgo_histogram && cargo run --bin rma-run -- -n 4 target/debug/examples/pgo_histogram
//! ```

use std::process::ExitCode;

use rma::pgo::{self, PUTS_OK, over};
use rma::{Rank, Team};

/// Bins of each rank.
const BINS: usize = 8;
const SAMPLES: usize = 1000;

/// A rank's samples: bin numbers over the whole job, the same in every run, and none in some ranks' bins.
fn samples(rank: u32, ranks: u32) -> Vec<usize> {
    let mut state = u64::from(rank) + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % (BINS * ranks as usize)
    };
    let all = (0..SAMPLES).map(|_| next());
    all.filter(|bin| (bin / BINS + rank as usize).is_multiple_of(2)).collect()
}

/// The whole histogram, at the first rank.
pub(crate) fn histogram(team: &Team) -> rma::Result<Option<Vec<u64>>> {
    let (me, size) = (team.rank().index(), team.size() as usize);
    let mut counts = vec![0_u64; BINS * size];
    samples(team.rank().0, team.size()).into_iter().for_each(|bin| counts[bin] += 1);
    // A row of each rank's counts, where it has some.
    let mut rows = vec![0_u64; BINS * size];
    pgo::scope(team, 1, |scope| {
        for (owner, part) in counts.chunks(BINS).enumerate() {
            if part.iter().any(|&count| count != 0) {
                scope.putc(part, Rank(owner as u32), me * BINS)?;
            }
        }
        scope.offerc(over(&mut rows, PUTS_OK))
    })?;
    let bins: Vec<u64> = (0..BINS).map(|bin| rows.iter().skip(bin).step_by(BINS).sum()).collect();
    team.gather(Rank(0), &bins)
}

/// The same by one rank.
pub(crate) fn serial(ranks: u32) -> Vec<u64> {
    let mut bins = vec![0; BINS * ranks as usize];
    (0..ranks).flat_map(|rank| samples(rank, ranks)).for_each(|bin| bins[bin] += 1);
    bins
}

#[allow(dead_code, reason = "the tests call what is above")]
fn main() -> ExitCode {
    rma::run(|team| {
        let Some(bins) = histogram(team).map_err(|error| error.to_string())? else { return Ok(()) };
        if bins != serial(team.size()) {
            return Err(format!("{bins:?} is not the serial histogram"));
        }
        println!("{} samples in {} bins ok", bins.iter().sum::<u64>(), bins.len());
        Ok::<(), String>(())
    })
}
