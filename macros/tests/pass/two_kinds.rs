//! A private epoch around a fence on another window.

use rma::{Rank, Team, Window, rma_epoch, rma_test};

#[rma_epoch(local(old), fence(new))]
fn step(old: &mut Window<f64>, new: &mut Window<f64>, right: Rank) -> rma::Result<f64> {
    new.at(right)[0] = old[1];
    old[0] += 1.0;
    Ok(old[0])
}

#[rma_test(ranks = 2, transports = [local, shm])]
fn program(team: &Team) -> rma::Result<()> {
    let mut old = Window::allocate(team, 2)?;
    let mut new = Window::allocate(team, 1)?;
    old.store(1, 0.5)?;
    assert_eq!(step(&mut old, &mut new, Rank(1 - team.rank().0))?, 1.0);
    assert_eq!(new.load(0)?, 0.5);
    Ok(())
}
