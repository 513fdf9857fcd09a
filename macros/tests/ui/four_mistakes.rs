//! Four mistakes in one body: four messages.
// gives: no_such_accumulate, store_while_exposed, used_too_early, origin_busy

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence(u))]
fn body(u: &mut Window<f64>, right: Rank, buffer: &mut [f64]) -> rma::Result<f64> {
    u.at(right)[0] -= 1.0;
    u[3] = 1.0;
    buffer.copy_from_slice(&u.at(right)[0..4]);
    let first = buffer[0];
    let second = u.at(right)[1] + first;
    Ok(second)
}

fn main() {}
