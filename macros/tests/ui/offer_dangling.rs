//! A chain of combined events without its last part.

use rma::{Rank, Team, rma_epoch};

#[rma_epoch(offer(team, tag = 1, count = 0))]
fn body(team: &Team, rim: &[f64], left: Rank, right: Rank) -> rma::Result<()> {
    team.combine(left)[0..4].copy_from_slice(rim);
    team.at(left)[4..8].copy_from_slice(rim);
    team.combine(right)[0..4].copy_from_slice(rim);
    Ok(())
}

fn main() {}
