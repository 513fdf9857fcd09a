//! Two windows in one epoch, and transfers from one into the other.

use rma::{Rank, Team, Window, rma_epoch, rma_test};

#[rma_epoch(fence(u, v))]
fn swap(u: &mut Window<u64>, v: &mut Window<u64>, right: Rank) -> rma::Result<(u64, u64)> {
    u.at(right)[0] = v[1];
    v.at(right)[2..4].copy_from_slice(&u[2..4]);
    Ok((u.at(right)[1], v.at(right)[1]))
}

#[rma_epoch(fence(u, v))]
fn fetch(u: &mut Window<u64>, v: &mut Window<u64>, right: Rank) -> rma::Result<()> {
    v[0] = u.at(right)[3];
    u[1..=2].copy_from_slice(&v.at(right)[2..4]);
    Ok(())
}

#[rma_epoch(lock(u, rank = 0, exclusive), lock(v, rank = 0, exclusive))]
fn add(u: &Window<u64>, v: &Window<u64>) -> rma::Result<()> {
    u.at(0)[0..2] += &v[1..3];
    Ok(())
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
    fetch(&mut u, &mut v, right)?;
    assert_eq!(v.local()?[..], [3, 11, 2, 3]);
    assert_eq!(u.local()?[..], [11, 2, 3, 3]);
    team.barrier()?;
    add(&u, &v)?;
    team.rma_barrier()?;
    assert_eq!(
        (u.load(0)?, u.load(1)?),
        if team.rank() == Rank(0) { (11 + 2 * 11, 2 + 2 * 2) } else { (11, 2) }
    );
    Ok(())
}
