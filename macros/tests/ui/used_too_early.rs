//! The value of a get is used before it has arrived.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence(u))]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    let x = u.at(right)[0] + 1.0;
    println!("{x}");
    Ok(())
}

fn main() {}

// covers: REG-MAC-04
