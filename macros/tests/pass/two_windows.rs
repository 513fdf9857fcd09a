//! Two windows in one epoch, and puts from one into the other.

use rma::{Rank, Team, Window, rma_epoch, rma_test};

#[rma_epoch(fence(u, v))]
fn swap(u: &mut Window<u64>, v: &mut Window<u64>, right: Rank) -> rma::Result<(u64, u64)> {
    u.at(right)[0] = v[1];
    v.at(right)[2..4].copy_from_slice(&u[2..4]);
    Ok((u.at(right)[1], v.at(right)[1]))
}

#[rma_test(ranks = 2, transports = [local, shm])]
fn program(team: &Team) -> rma::Result<()> {
    let mut u = Window::allocate(team, 4)?;
    let mut v = Window::allocate(team, 4)?;
    u.local_mut()?.copy_from_slice(&[0, 1, 2, 3]);
    v.local_mut()?.copy_from_slice(&[10, 11, 12, 13]);
    let right = Rank(1 - team.rank().0);
    assert_eq!(swap(&mut u, &mut v, right)?, (1, 11));
    assert_eq!(u.load(0)?, 11);
    assert_eq!((v.load(2)?, v.load(3)?), (2, 3));
    Ok(())
}
