//! Stores into the window by the handle's own calls, while others put into it.
// gives: store_while_exposed, store_while_exposed

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence(u))]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    u.at(right)[0] = 1.0;
    u.store(1, 2.0)?;
    u.write(2, &[3.0, 4.0])?;
    Ok(())
}

fn main() {}
