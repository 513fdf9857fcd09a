//! A fence inside a fence epoch: what was put before it can be got after it.

use rma::{Rank, Team, Window, rma_epoch, rma_test};

#[rma_epoch(fence(u))]
fn there_and_back(u: &mut Window<u64>, peer: Rank, x: u64) -> rma::Result<u64> {
    u.at(peer)[0] = x;
    u.fence()?;
    Ok(u.at(peer)[0])
}

#[rma_test(ranks = 2, transports = [local, shm])]
fn program(team: &Team) -> rma::Result<()> {
    let mut u = Window::allocate(team, 1)?;
    let me = team.rank().0;
    assert_eq!(there_and_back(&mut u, Rank(1 - me), 5 + u64::from(me))?, 5 + u64::from(me));
    Ok(())
}
