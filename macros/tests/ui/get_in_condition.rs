//! A decision about a value that has not arrived.
// gives: used_too_early

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(lock(u, rank = right, shared))]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    if u.at(right)[0] > 0.5 {
        println!("hot");
    }
    Ok(())
}

fn main() {}
