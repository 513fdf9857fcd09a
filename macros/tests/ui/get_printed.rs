//! A value is printed before it has arrived.
// gives: used_too_early

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(access(u, targets = [right]))]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    println!("{}", u.at(right)[0]);
    Ok(())
}

fn main() {}
