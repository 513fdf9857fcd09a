//! A get whose value the function returns.

use rma::{Rank, Team, Window, rma_epoch, rma_test};

#[rma_epoch(fence(u))]
fn peek(u: &mut Window<u32>, right: Rank) -> rma::Result<u32> {
    let x = u.at(right)[0];
    Ok(x)
}

#[rma_test(ranks = 2, transports = [local, shm])]
fn program(team: &Team) -> rma::Result<()> {
    let mut u = Window::allocate(team, 1)?;
    u.store(0, team.rank().0)?;
    assert_eq!(peek(&mut u, Rank(1 - team.rank().0))?, 1 - team.rank().0);
    Ok(())
}
