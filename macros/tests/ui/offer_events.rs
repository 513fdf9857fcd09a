//! A choice of events that does not exist.

use rma::{Team, rma_epoch};

#[rma_epoch(offer(team, tag = 1, count = 1, over = halo, events = all))]
fn body(team: &Team, halo: &mut [f64]) -> rma::Result<()> {
    Ok(())
}

fn main() {}
