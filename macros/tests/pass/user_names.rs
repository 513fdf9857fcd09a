//! Names that the expansion might clash with: a module `rma` of one's own, a type named Result, a shadowed Ok.

use rma::{Rank, Team, Window, rma_test};

mod inside {
    #![allow(dead_code, unreachable_pub)]
    pub mod rma {}
    pub struct Result;
    pub struct Sum;

    #[::rma::rma_epoch(lock(w, rank = 0, exclusive))]
    pub fn add(w: &super::Window<u64>) -> ::core::result::Result<u64, ::rma::Error> {
        ::core::result::Result::Ok(w.at(0)[0].fetch_add(2))
    }
}

#[rma_test(ranks = 1, transports = [local, shm])]
fn program(team: &Team) -> rma::Result<()> {
    let w = Window::allocate(team, 1)?;
    inside::add(&w)?;
    assert_eq!(inside::add(&w)?, 2);
    let _ = Rank(0);
    Ok(())
}
