//! The attribute is no list of options.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence(u v))]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    u.at(right)[0] = 1.0;
    Ok(())
}

fn main() {}
