//! A rank that is named twice.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(access(u, targets = [1, 2, 1]))]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    u.at(1)[0] = 1.0;
    Ok(())
}

fn main() {}
