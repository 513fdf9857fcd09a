//! A buffer that dies before the epoch ends.
// The types refuse this, not the macro.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence(u))]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    let mut buffer = [0.0; 4];
    buffer.copy_from_slice(&u.at(right)[0..4]);
    Ok(())
}

fn main() {}
