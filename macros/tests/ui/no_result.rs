//! A function that cannot report an error.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence(u))]
fn body(u: &mut Window<f64>, right: Rank) {
    u.at(right)[0] = 1.0;
}

fn main() {}
