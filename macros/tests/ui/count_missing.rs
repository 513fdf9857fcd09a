//! Any origin may come, but how many will?

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(exposure(u, origins = any))]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    Ok(())
}

fn main() {}
