//! A transport that does not exist.

use rma::{Team, rma_test};

#[rma_test(ranks = 2, transports = [pigeon])]
fn body(team: &Team) -> rma::Result<()> {
    team.barrier()
}

fn main() {}
