//! A value of another type than the window's elements.
// The types refuse this, not the macro.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence(u))]
fn body(u: &mut Window<f64>, right: Rank, x: f32) -> rma::Result<()> {
    u.at(right)[0] = x;
    Ok(())
}

fn main() {}
