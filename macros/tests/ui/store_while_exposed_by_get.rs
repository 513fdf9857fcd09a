//! A get from one window into another, which lets others write to it meanwhile.
// gives: store_while_exposed

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(exposure(v, origins = [right]), access(u, targets = [right]))]
fn body(u: &Window<f64>, right: Rank, v: &mut Window<f64>) -> rma::Result<()> {
    v[0] = u.at(right)[0];
    Ok(())
}

fn main() {}
