//! A store into a posted window.
// gives: store_while_exposed

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(exposure(u, origins = [right]))]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    u[0] = 1.0;
    Ok(())
}

fn main() {}
