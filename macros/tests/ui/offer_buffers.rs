//! A value where an event of a team has a buffer.

use rma::{Rank, Team, rma_epoch};

#[rma_epoch(offer(team, tag = 1, count = 0))]
fn body(team: &Team, right: Rank) -> rma::Result<()> {
    team.at(right)[0] = 1.0;
    Ok(())
}

fn main() {}
