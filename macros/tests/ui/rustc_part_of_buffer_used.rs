//! Half of a buffer is lent to a get, and read before the epoch ends.
// The types refuse this, not the macro.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence(u))]
fn body(u: &mut Window<f64>, right: Rank, buffer: &mut [f64]) -> rma::Result<()> {
    buffer[0..4].copy_from_slice(&u.at(right)[0..4]);
    println!("{}", buffer[0]);
    Ok(())
}

fn main() {}
