//! A put to a window that the epoch does not open.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence(u))]
fn body(u: &mut Window<f64>, right: Rank, v: &mut Window<f64>) -> rma::Result<()> {
    u.at(right)[0] = 1.0;
    v.at(right)[0] = 1.0;
    Ok(())
}

fn main() {}
