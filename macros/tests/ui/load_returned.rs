//! What the neighbour puts is read before the fence.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence(u))]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<f64> {
    u.at(right)[1] = u[0];
    Ok(u[1])
}

fn main() {}
