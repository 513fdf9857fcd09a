//! A function that is generic over the element, with lints and documentation kept.

use rma::{Element, Rank, Team, Window, rma_epoch, rma_test};

/// Fetches one element of a neighbour.
#[rma_epoch(fence(u))]
#[must_use = "it was fetched at some cost"]
#[inline(never)]
pub(crate) fn fetch<T: Element>(u: &mut Window<T>, from: Rank, at: usize) -> rma::Result<T> {
    Ok(u.at(from)[at])
}

#[rma_epoch(local(u))]
fn set<T, const N: usize>(u: &mut Window<T>, values: [T; N]) -> rma::Result<()>
where
    T: Element,
{
    u[..N].copy_from_slice(&values);
    Ok(())
}

#[rma_test(ranks = 2, transports = [local, shm])]
fn program(team: &Team) -> rma::Result<()> {
    let mut u = Window::<f32>::allocate(team, 2)?;
    set(&mut u, [1.5, 2.5])?;
    assert_eq!(fetch(&mut u, Rank(0), 1)?, 2.5);
    let mut u = Window::<i8>::allocate(team, 1)?;
    set(&mut u, [-3])?;
    assert_eq!(fetch(&mut u, Rank(1), 0)?, -3);
    Ok(())
}
