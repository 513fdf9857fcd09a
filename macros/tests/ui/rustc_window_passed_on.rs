//! A handle is no window: it cannot open a second epoch elsewhere.
// The types refuse this, not the macro.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence(u))]
fn outer(u: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    inner(u, right)
}

#[rma_epoch(fence(u))]
fn inner(u: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    u.at(right)[0] = 1.0;
    Ok(())
}

fn main() {}
