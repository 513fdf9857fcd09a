//! A lock that is spun for inside one epoch.
// gives: used_too_early

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(lock(u, rank = right, shared))]
fn body(u: &Window<u64>, right: Rank) -> rma::Result<()> {
    while u.at(right)[0].compare_swap(0, 1) != 0 {}
    Ok(())
}

fn main() {}
