//! Pending and plain values side by side, and plain ways out beside pending ones.

use rma::{Team, Window, rma_epoch, rma_test};

#[rma_epoch(lock(w, rank = 0, exclusive))]
fn several(w: &Window<u64>, early: Option<u64>) -> rma::Result<(u64, u64, usize)> {
    if let Some(value) = early {
        return Ok((value.into(), 0.into(), 1));
    }
    let old = w.at(0)[0].fetch_add(1);
    let other = w.at(0)[1].swap(9);
    Ok((old, other, 2))
}

#[rma_epoch(lock(w, rank = 0, shared))]
fn listed(w: &Window<u64>) -> rma::Result<Vec<u64>> {
    let mut all = Vec::new();
    for i in 0..3 {
        all.push(w.at(0)[i].fetch_max(5));
    }
    Ok(all)
}

#[rma_epoch(lock(w, rank = 0, shared))]
fn maybe(w: &Window<u64>, wanted: bool) -> rma::Result<Option<u64>> {
    Ok(if wanted { Some(w.at(0)[2]) } else { None })
}

#[rma_test(ranks = 1, transports = [local, shm])]
fn program(team: &Team) -> rma::Result<()> {
    let w = Window::allocate(team, 3)?;
    assert_eq!(several(&w, Some(4))?, (4, 0, 1));
    assert_eq!(several(&w, None)?, (0, 0, 2));
    assert_eq!(listed(&w)?, [1, 9, 0]);
    assert_eq!((maybe(&w, true)?, maybe(&w, false)?), (Some(5), None));
    Ok(())
}
