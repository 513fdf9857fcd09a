//! The buffer of a put is read inside the epoch.
// gives: origin_busy

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(lock(u, rank = right, exclusive))]
fn body(u: &mut Window<f64>, right: Rank, halo: &[f64]) -> rma::Result<()> {
    u.at(right)[0..4].copy_from_slice(halo);
    println!("{}", halo[0]);
    Ok(())
}

fn main() {}
