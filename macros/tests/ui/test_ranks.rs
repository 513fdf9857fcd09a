//! A test on no ranks.

use rma::{Team, rma_test};

#[rma_test(transports = [local])]
fn body(team: &Team) -> rma::Result<()> {
    team.barrier()
}

fn main() {}
