//! A range without an end.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence(u))]
fn body(u: &mut Window<f64>, right: Rank, buffer: &[f64]) -> rma::Result<()> {
    u.at(right)[2..].copy_from_slice(buffer);
    Ok(())
}

fn main() {}
