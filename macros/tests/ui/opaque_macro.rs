//! A window inside a macro of one's own.

use rma::{Rank, Window, rma_epoch};

macro_rules! twice {
    ($e:expr) => {
        $e + $e
    };
}

#[rma_epoch(fence(u))]
fn body(u: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    let x = twice!(u[1]);
    println!("{x}");
    Ok(())
}

fn main() {}
