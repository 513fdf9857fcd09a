//! Both halves of a halo exchange, with origins in the window itself.

#[rma_epoch(fence(u))]
fn exchange(u: &mut Window<f64>, left: Rank, right: Rank, n: usize) -> rma::Result<()> {
    u.at(left)[n + 1] = u[1];
    u.at(right)[0] = u[n];
    Ok(())
}

#[rma_epoch(fence(u))]
fn two_phases(u: &mut Window<f64>, right: Rank, halo: &[f64]) -> rma::Result<f64> {
    u.at(right)[0..4].copy_from_slice(halo);
    u.fence()?;
    let seen = u.at(right)[3];
    Ok(seen)
}
