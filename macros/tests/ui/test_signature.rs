//! A test that takes no team.

use rma::rma_test;

#[rma_test(ranks = 2)]
fn body() -> rma::Result<()> {
    Ok(())
}

fn main() {}
