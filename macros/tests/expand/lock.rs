//! Atomic operations and local accesses under a lock.

#[rma_epoch(lock(counter, rank = owner, exclusive))]
fn take_ticket(counter: &Window<u64>, owner: Rank) -> rma::Result<u64> {
    Ok(counter.at(owner)[0].fetch_add(1))
}

#[rma_epoch(lock(bins, rank = 0, shared, info = nocheck, because = "the caller holds the master lock"))]
fn count(bins: &Window<u64>, samples: &[usize]) -> rma::Result<()> {
    for &sample in samples {
        bins.at(0)[sample] += 1;
    }
    bins.at(0)[0].max(7);
    bins.at(0)[1..3] |= &[1, 2];
    Ok(())
}

#[rma_epoch(lock(w, rank = me, exclusive))]
fn bump(w: &Window<u64>, me: Rank, into: &mut [u64]) -> rma::Result<u64> {
    w[0] = w[1] + 2;
    w[2] *= w[3];
    into[1..3].copy_from_slice(&w[4..6]);
    w[4..6].copy_from_slice(&[1, 2]);
    println!("{}", w[0]);
    Ok(w[0])
}
