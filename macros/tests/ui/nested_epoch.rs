//! A second epoch on one window.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence(u))]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    u.lock(right, rma::LockKind::Shared, |u| u.put(right, 0, [1.0]))?;
    Ok(())
}

fn main() {}
