//! A function that runs as a job, once per transport.

#[rma_test(ranks = 4, transports = [local, shm, tcp])]
#[ignore = "slow"]
fn ring(team: &Team) -> rma::Result<()> {
    team.barrier()
}
