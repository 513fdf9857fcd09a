//! The slice of a private epoch does not leave it.
// The types refuse this, not the macro.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(local(u, read))]
fn body<'a>(u: &'a Window<f64>) -> rma::Result<&'a [f64]> {
    Ok(&u[..])
}

fn main() {}
