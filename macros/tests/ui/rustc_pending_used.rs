//! A get's value under another name, used before it has arrived.
// The types refuse this, not the macro.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence(u))]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<f64> {
    let x = u.at(right)[0];
    Ok(x + 1.0)
}

fn main() {}
