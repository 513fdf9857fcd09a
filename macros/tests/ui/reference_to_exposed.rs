//! A reference into exposed memory.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence(u))]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    let cell = &u[1];
    println!("{cell}");
    Ok(())
}

fn main() {}
