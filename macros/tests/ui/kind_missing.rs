//! The attribute does not say which epoch the body is.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    u.at(right)[0] = 1.0;
    Ok(())
}

fn main() {}

// covers: RMA-MAC-06
