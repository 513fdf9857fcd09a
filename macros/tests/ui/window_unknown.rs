//! The window is no parameter.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence(w))]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    Ok(())
}

fn main() {}
