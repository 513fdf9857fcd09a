//! An epoch on nothing.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence())]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    Ok(())
}

fn main() {}
