//! One way out has a plain value, another a pending one.
// The types refuse this, not the macro.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence(u))]
fn body(u: &mut Window<f64>, right: Option<Rank>) -> rma::Result<f64> {
    match right {
        Some(right) => Ok(u.at(right)[0]),
        None => Ok(0.0),
    }
}

fn main() {}
