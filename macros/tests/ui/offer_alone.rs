//! Events on a team beside an epoch on a window.

use rma::{Rank, Team, Window, rma_epoch};

#[rma_epoch(offer(team, tag = 1, count = 0), fence(u))]
fn body(team: &Team, u: &mut Window<f64>, rim: &[f64], right: Rank) -> rma::Result<()> {
    team.at(right)[0..4].copy_from_slice(rim);
    Ok(())
}

fn main() {}
