//! NOCHECK with its reason.

use rma::{Team, Window, rma_epoch, rma_test};

#[rma_epoch(lock(w, rank = 0, exclusive, info = nocheck, because = "this job has one rank"))]
fn bump(w: &Window<u64>) -> rma::Result<u64> {
    Ok(w.at(0)[0].fetch_add(1))
}

#[rma_test(ranks = 1, transports = [local, shm])]
fn program(team: &Team) -> rma::Result<()> {
    let w = Window::allocate(team, 1)?;
    assert_eq!(bump(&w)? + bump(&w)?, 1);
    Ok(())
}
