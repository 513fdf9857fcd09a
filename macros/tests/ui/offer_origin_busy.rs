//! An origin buffer that is changed before the offer has completed.

use rma::{Rank, Team, rma_epoch};

#[rma_epoch(offer(team, tag = 1, count = 0))]
fn body(team: &Team, rim: &mut [f64], right: Rank) -> rma::Result<()> {
    team.at(right)[0..4].copy_from_slice(rim);
    rim[0] = 0.0;
    Ok(())
}

fn main() {}
