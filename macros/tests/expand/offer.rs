//! Events on a team and the offer that ends them.

#[rma_epoch(offer(team, tag = 3, count = 2, over = halo, events = both))]
fn exchange(team: &Team, halo: &mut [f64], rim: &[f64], more: &[f64], far: &mut [f64], left: Rank) -> rma::Result<()> {
    team.combine(left)[0..4].copy_from_slice(rim);
    team.at(left)[8..12].copy_from_slice(&more[4..]);
    far.copy_from_slice(&team.at(2)[1..3]);
    Ok(())
}
