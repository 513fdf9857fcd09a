//! Several windows in one epoch, and epochs of several kinds around one body.

#[rma_epoch(fence(u, v))]
fn both(u: &mut Window<f64>, v: &mut Window<f64>, right: Rank) -> rma::Result<f64> {
    u.at(right)[0] = v[1];
    v.at(right)[2..4].copy_from_slice(&u[2..4]);
    Ok(u.at(right)[7])
}

#[rma_epoch(local(old), fence(new))]
fn overlap(old: &mut Window<f64>, new: &mut Window<f64>, right: Rank) -> rma::Result<()> {
    new.at(right)[0] = old[1];
    old[0] = 1.0;
    Ok(())
}
