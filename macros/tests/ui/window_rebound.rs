//! The name of the window is given away.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence(u))]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    for u in 0..3 {
        println!("{}", 7);
    }
    Ok(())
}

fn main() {}
