//! Everything that a get can fill.

#[rma_epoch(fence(u))]
fn gets(u: &mut Window<f64>, right: Rank, buffer: &mut [f64]) -> rma::Result<(f64, Vec<f64>)> {
    buffer.copy_from_slice(&u.at(right)[0..4]);
    u[5] = u.at(right)[9];
    u[6..8].copy_from_slice(&u.at(right)[0..2]);
    let x = u.at(right)[3];
    let row = u.at(right)[8..16].to_vec();
    Ok((x, row))
}
