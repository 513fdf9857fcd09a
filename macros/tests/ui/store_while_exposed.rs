//! A store into the window while others put into it.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence(u))]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    u.at(right)[0] = 1.0;
    u[1] = 2.0;
    Ok(())
}

fn main() {}

// covers: RMA-MAC-04
