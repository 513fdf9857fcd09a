//! An accumulate as a value.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence(u))]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    let greatest = u.at(right)[0].max(1.0);
    println!("{greatest}");
    Ok(())
}

fn main() {}
