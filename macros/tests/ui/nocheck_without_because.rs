//! NOCHECK without a reason.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(access(u, targets = [right], info = nocheck))]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    u.at(right)[0] = 1.0;
    Ok(())
}

fn main() {}

// covers: RMA-INFO-09
