//! A function that owns its window, and buffers handed over by value.

use rma::{Rank, Team, Window, rma_epoch, rma_test};

#[rma_epoch(fence(u))]
fn once(mut u: Window<u64>, right: Rank, row: Vec<u64>) -> rma::Result<()> {
    u.at(right)[0..2].copy_from_slice(row);
    u.at(right)[2..4].copy_from_slice([3, 4]);
    for i in 4..6 {
        let pair = vec![i as u64; 2];
        u.at(right)[i * 2..i * 2 + 2].copy_from_slice(pair);
    }
    Ok(())
}

#[rma_test(ranks = 2, transports = [local, shm])]
fn program(team: &Team) -> rma::Result<()> {
    let u = Window::allocate(team, 12)?;
    once(u, Rank(1 - team.rank().0), vec![1, 2])?;
    Ok(())
}
