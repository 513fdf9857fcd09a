//! Gets into a vector, a buffer, and one's own window.

use rma::{Team, Window, rma_epoch, rma_test};

#[rma_epoch(lock(w, rank = 0, shared))]
fn gets(w: &Window<i32>, buffer: &mut [i32]) -> rma::Result<Vec<i32>> {
    buffer[1..3].copy_from_slice(&w.at(0)[0..2]);
    w[3] = w.at(0)[1];
    w[0..2].copy_from_slice(&w.at(0)[2..4]);
    Ok(w.at(0)[0..4].to_vec())
}

#[rma_test(ranks = 1, transports = [local, shm])]
fn program(team: &Team) -> rma::Result<()> {
    let mut w = Window::allocate(team, 4)?;
    w.local_mut()?.copy_from_slice(&[1, 2, 3, 4]);
    let mut buffer = [0; 4];
    let all = gets(&w, &mut buffer)?;
    assert_eq!(buffer, [0, 1, 2, 0]);
    assert_eq!(all.len(), 4);
    assert_eq!(w.load(0)?, 3);
    Ok(())
}
