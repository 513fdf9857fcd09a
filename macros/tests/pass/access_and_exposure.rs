//! Start and complete on one side, post and wait on the other.

use rma::{Rank, Team, Window, rma_epoch, rma_test};

#[rma_epoch(access(u, targets = [owner], info = weak))]
fn report(u: &Window<f64>, owner: Rank, at: usize, x: f64) -> rma::Result<()> {
    u.at(owner)[at] = x;
    Ok(())
}

#[rma_epoch(exposure(u, origins = any, count = n))]
fn collect(u: &mut Window<f64>, n: usize) -> rma::Result<f64> {
    let before = u[0];
    Ok(before)
}

#[rma_epoch(exposure(u, origins = peers))]
fn collect_from(u: &mut Window<f64>, peers: &[Rank]) -> rma::Result<()> {
    Ok(())
}

#[rma_test(ranks = 3, transports = [local, shm])]
fn program(team: &Team) -> rma::Result<()> {
    let mut u = Window::allocate(team, 3)?;
    let me = team.rank().index();
    if me == 0 {
        collect(&mut u, 2)?;
        collect_from(&mut u, &[Rank(1), Rank(2)])?;
        assert_eq!((u.load(1)?, u.load(2)?), (2.5, 2.5));
    } else {
        report(&u, Rank(0), me, 1.5)?;
        report(&u, Rank(0), me, 2.5)?;
    }
    Ok(())
}
