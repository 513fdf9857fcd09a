//! An exchange that lets nobody in.
// gives: option_missing

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(exchange(u, targets = [right]))]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    u.at(right)[0] = 1.0;
    Ok(())
}

fn main() {}
