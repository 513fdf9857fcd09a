//! A buffer for one element.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence(u))]
fn body(u: &mut Window<f64>, right: Rank, buffer: &mut [f64]) -> rma::Result<()> {
    u.at(right)[0].copy_from_slice(buffer);
    Ok(())
}

fn main() {}
