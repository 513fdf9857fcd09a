//! From one rank to another.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence(u))]
fn body(u: &mut Window<f64>, right: Rank, left: Rank) -> rma::Result<()> {
    u.at(right)[0] = u.at(left)[0];
    Ok(())
}

fn main() {}
