//! A rank without a place.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence(u))]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    let far = u.at(right);
    drop(far);
    Ok(())
}

fn main() {}
