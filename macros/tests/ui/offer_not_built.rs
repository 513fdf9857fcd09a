//! A kind that will exist.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(offer(u))]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    Ok(())
}

fn main() {}
