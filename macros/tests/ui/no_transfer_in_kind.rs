//! A put in an epoch that only opens one's own window.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(exposure(u, origins = [right]))]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    u.at(right)[0] = 1.0;
    Ok(())
}

fn main() {}
