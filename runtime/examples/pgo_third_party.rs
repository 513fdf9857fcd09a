//! Ranks that exchange values through others that only compute: each rank holds a slot, which the rank before it fills and the rank
//! behind it reads, by events of the progressive family. The result is compared with a serial one.
//!
//! ```text
//! cargo build --example pgo_third_party && cargo run --bin rma-run -- -n 3 target/debug/examples/pgo_third_party
//! ```

use std::process::ExitCode;

use rma::pgo::{self, COUNT_ANY, GETS_OK, PUTS_OK, over};
use rma::{Rank, Sum, Team};

/// Exchanges of every rank.
const ROUNDS: u64 = 100;

/// What a rank puts in a round.
fn value(rank: u32, round: u64) -> u64 {
    (u64::from(rank) + 1) * 1_000_003 + round * round
}

/// Exchanges all rounds and gives the sum of what this rank has read.
pub(crate) fn exchange(team: &Team) -> rma::Result<u64> {
    const SLOT: u64 = 1;
    let (me, n) = (team.rank().0, team.size());
    let (before, behind) = (Rank((me + n - 1) % n), Rank((me + 1) % n));
    let mut slot = pgo::iofferp(team, SLOT, over(vec![0_u64], PUTS_OK + GETS_OK), COUNT_ANY)?;
    team.barrier()?;
    let mut sum = 0;
    for round in 0..ROUNDS {
        // Into the slot behind this rank; whoever comes before the slot before it has done the same.
        let mine = [value(me, round)];
        pgo::scope(team, SLOT, |scope| scope.putp(&mine, behind, 0))?;
        team.barrier()?;
        let mut theirs = [0];
        pgo::scope(team, SLOT, |scope| scope.getp(&mut theirs, before, 0))?;
        sum += theirs[0];
        team.barrier()?;
    }
    slot.wait()?;
    Ok(sum)
}

/// What a rank reads: what the rank two before it has put.
pub(crate) fn expected(rank: u32, ranks: u32) -> u64 {
    let from = (rank + 2 * ranks - 2) % ranks;
    (0..ROUNDS).map(|round| value(from, round)).sum()
}

#[allow(dead_code, reason = "the tests call what is above")]
fn main() -> ExitCode {
    rma::run(|team| {
        let sum = exchange(team).map_err(|error| error.to_string())?;
        let wanted = expected(team.rank().0, team.size());
        if sum != wanted {
            return Err(format!("the values that were read sum up to {sum}, and should to {wanted}"));
        }
        let mut all = [sum];
        team.allreduce(&mut all, Sum).map_err(|error| error.to_string())?;
        if team.rank() == Rank(0) {
            println!("{ROUNDS} rounds on {} ranks, sum {} ok", team.size(), all[0]);
        }
        Ok::<(), String>(())
    })
}
