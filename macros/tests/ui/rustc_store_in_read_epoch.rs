//! A store in a private epoch for reading.
// The types refuse this, not the macro.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(local(u, read))]
fn body(u: &Window<f64>) -> rma::Result<()> {
    u[0] = 1.0;
    Ok(())
}

fn main() {}
