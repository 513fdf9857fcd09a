//! A put to a rank that the lock does not open.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(lock(u, rank = 0, exclusive))]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    u.at(1)[0] = 1.0;
    Ok(())
}

fn main() {}

// covers: RMA-MAC-05
