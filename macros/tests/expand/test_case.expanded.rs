//! A function that runs as a job, once per transport.
#[cfg(test)]
fn ring(team: &Team) -> rma::Result<()> {
    team.barrier()
}
#[cfg(test)]
mod ring {
    #[test]
    #[ignore = "slow"]
    fn local() {
        ::rma::private::testing::run("local", 4u32, ::core::module_path!(), super::ring);
    }
    #[test]
    #[ignore = "slow"]
    fn shm() {
        ::rma::private::testing::run("shm", 4u32, ::core::module_path!(), super::ring);
    }
    #[test]
    #[ignore = "slow"]
    fn tcp() {
        ::rma::private::testing::run("tcp", 4u32, ::core::module_path!(), super::ring);
    }
}
