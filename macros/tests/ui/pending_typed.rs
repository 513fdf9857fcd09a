//! A promise with the type of its value.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence(u))]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<f64> {
    let x: f64 = u.at(right)[0];
    Ok(x)
}

fn main() {}
