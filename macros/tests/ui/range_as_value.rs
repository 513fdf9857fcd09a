//! A range of another rank as a value.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence(u))]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    let row = u.at(right)[0..4];
    println!("{}", row.len());
    Ok(())
}

fn main() {}
