//! The body gives what the function does not return.
// The types refuse this, not the macro.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence(u))]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<f64> {
    Ok(vec![(u.at(right)[0], 1)])
}

fn main() {}
