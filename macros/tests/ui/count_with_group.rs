//! A count beside a group.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(exposure(u, origins = [right], count = 1))]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    Ok(())
}

fn main() {}
