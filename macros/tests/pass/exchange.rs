//! Post, start, complete and wait with both neighbours.

use rma::{Rank, Team, Window, rma_epoch, rma_test};

#[rma_epoch(exchange(u, targets = neighbours, origins = neighbours))]
fn halos(u: &mut Window<u64>, neighbours: &[Rank], me: u64) -> rma::Result<u64> {
    let mut seen = 0.into();
    for &rank in neighbours {
        u.at(rank)[me as usize] = me + 1;
        seen = u.at(rank)[3];
    }
    Ok(seen)
}

#[rma_test(ranks = 3, transports = [local, shm])]
fn program(team: &Team) -> rma::Result<()> {
    let me = team.rank().0;
    let neighbours: Vec<Rank> = team.ranks().filter(|rank| rank.0 != me).collect();
    let mut u = Window::allocate(team, 4)?;
    u.store(3, 30)?;
    assert_eq!(halos(&mut u, &neighbours, u64::from(me))?, 30);
    let sum: u64 = u.local()?.iter().sum();
    assert_eq!(sum, 30 + 6 - (u64::from(me) + 1));
    Ok(())
}
