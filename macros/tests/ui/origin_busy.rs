//! The buffer of a get is read inside the epoch.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence(u))]
fn body(u: &mut Window<f64>, right: Rank, buffer: &mut [f64]) -> rma::Result<()> {
    buffer.copy_from_slice(&u.at(right)[0..4]);
    println!("{}", buffer[0]);
    Ok(())
}

fn main() {}

// covers: RMA-MAC-03
