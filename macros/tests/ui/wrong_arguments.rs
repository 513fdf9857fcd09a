//! Compare-and-swap with one value.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence(u))]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    u.at(right)[0].compare_swap(1.0);
    Ok(())
}

fn main() {}
