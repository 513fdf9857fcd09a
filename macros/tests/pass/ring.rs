//! A ring: everybody puts into the right neighbour.

use rma::{Rank, Team, Window, rma_epoch, rma_test};

#[rma_epoch(fence(u))]
fn pass_on(u: &mut Window<u64>, right: Rank) -> rma::Result<()> {
    u.at(right)[1] = u[0];
    Ok(())
}

#[rma_test(ranks = 3, transports = [local, shm])]
fn program(team: &Team) -> rma::Result<()> {
    let right = Rank((team.rank().0 + 1) % team.size());
    let mut u = Window::allocate(team, 2)?;
    u.store(0, 7)?;
    pass_on(&mut u, right)?;
    assert_eq!(u.load(1)?, 7);
    Ok(())
}
