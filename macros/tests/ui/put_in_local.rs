//! A put in a private epoch.
// gives: no_transfer_in_kind

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(local(u))]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    u.at(right)[0] = 1.0;
    Ok(())
}

fn main() {}
