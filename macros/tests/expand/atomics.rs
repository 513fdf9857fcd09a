//! Operations that fetch.

#[rma_epoch(lock(w, rank = owner, shared))]
fn all(w: &Window<u64>, owner: Rank) -> rma::Result<(u64, u64, u64)> {
    let a = w.at(owner)[0].fetch_max(3);
    let b = w.at(owner)[1].swap(a_value());
    let c = w.at(owner)[2].compare_swap(0, 1);
    w.at(owner)[3] += 1;
    w.at(owner)[3] *= 2;
    w.at(owner)[3] &= 3;
    w.at(owner)[3] |= 4;
    w.at(owner)[3] ^= 5;
    w.at(owner)[3].min(6);
    w.at(owner)[4..6] += vec![1, 2];
    Ok((a, b, c))
}
