//! A transfer inside a closure.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence(u))]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    (0..3).for_each(|i| u.at(right)[i] = 1.0);
    Ok(())
}

fn main() {}
