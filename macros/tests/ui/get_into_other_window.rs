//! A get from one window into another.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence(u, v))]
fn body(u: &mut Window<f64>, right: Rank, v: &mut Window<f64>) -> rma::Result<()> {
    v[0] = u.at(right)[0];
    Ok(())
}

fn main() {}
