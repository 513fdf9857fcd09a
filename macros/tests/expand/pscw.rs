//! The general active target styles.

#[rma_epoch(access(u, targets = [left, right], info = weak))]
fn push(u: &Window<f64>, left: Rank, right: Rank, x: f64) -> rma::Result<()> {
    u.at(left)[0] = x;
    u.at(right)[1] = -x;
    Ok(())
}

#[rma_epoch(exposure(u, origins = any, count = n))]
fn serve(u: &mut Window<f64>, n: usize) -> rma::Result<()> {
    Ok(())
}

#[rma_epoch(exchange(u, targets = neighbours, origins = [Rank(0), 1]))]
fn both(u: &mut Window<f64>, neighbours: &[Rank]) -> rma::Result<()> {
    for &rank in neighbours {
        u.at(rank)[0] = u[1];
    }
    Ok(())
}
