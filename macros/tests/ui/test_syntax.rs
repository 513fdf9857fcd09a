//! A test attribute that is no list of settings.

use rma::{Team, rma_test};

#[rma_test(4)]
fn body(team: &Team) -> rma::Result<()> {
    team.barrier()
}

fn main() {}
