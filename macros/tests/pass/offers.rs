//! The kind `offer`: puts, gets, combined events, an offer of a buffer and one of nothing.

use rma::{Rank, Team, rma_epoch, rma_test};

/// A ring of halos: two puts, and two events served.
#[rma_epoch(offer(team, tag = 3, count = 2, over = halo))]
fn halos(team: &Team, halo: &mut [u32], rim: &[u32], left: Rank, right: Rank) -> rma::Result<()> {
    team.at(left)[2..4].copy_from_slice(rim);
    team.at(right)[0..2].copy_from_slice(rim);
    Ok(())
}

/// Everybody reads from its right neighbour, two parts as one event.
#[rma_epoch(offer(team, tag = 4, count = 1, over = own, events = gets))]
fn fetch(team: &Team, own: &mut [u32], first: &mut [u32], last: &mut [u32; 1]) -> rma::Result<u32> {
    let right = Rank((team.rank().0 + 1) % team.size());
    first.copy_from_slice(&team.combine(right)[0..1]);
    last.copy_from_slice(&team.at(right)[3..4]);
    Ok(right.0)
}

#[rma_epoch(offer(team, tag = 5, count = 0))]
fn nothing(team: &Team) -> rma::Result<()> {
    Ok(())
}

// covers: PGO-EXT-03
#[rma_test(ranks = 3, transports = [local, shm])]
fn bodies_issue_events_and_end_in_an_offer(team: &Team) -> rma::Result<()> {
    let (me, n) = (team.rank().0, team.size());
    let (left, right) = (Rank((me + n - 1) % n), Rank((me + 1) % n));
    let mut halo = [0; 4];
    halos(team, &mut halo, &[me, me + 10], left, right)?;
    assert_eq!(halo, [left.0, left.0 + 10, right.0, right.0 + 10]);
    let (mut first, mut last) = ([0], [0]);
    assert_eq!(fetch(team, &mut halo.to_vec(), &mut first, &mut last)?, right.0);
    let beyond = (right.0 + 1) % n;
    assert_eq!((first, last), ([me], [beyond + 10]));
    nothing(team)
}
