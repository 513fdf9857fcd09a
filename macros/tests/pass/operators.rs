//! Every assignment operator and method of the table, on elements and ranges.

use rma::{Team, Window, rma_epoch, rma_test};

#[rma_epoch(lock(w, rank = 0, exclusive))]
fn all(w: &Window<u64>, two: &[u64]) -> rma::Result<(u64, u64)> {
    w.at(0)[0] += 3;
    w.at(0)[1] *= 3;
    w.at(0)[2] &= 3;
    w.at(0)[3] |= 3;
    w.at(0)[4] ^= 3;
    w.at(0)[5].min(3);
    w.at(0)[6].max(7);
    w.at(0)[0..2] += two;
    w.at(0)[2..4] |= &[8, 16];
    w.at(0)[4..6] *= vec![2, 2];
    w.at(0)[6..8].max([1, 1]);
    let a = w.at(0)[8].compare_swap(5, 6);
    let b = w.at(0)[8].fetch_xor(1);
    Ok((a, b))
}

#[rma_test(ranks = 1, transports = [local, shm])]
fn program(team: &Team) -> rma::Result<()> {
    let mut w = Window::allocate(team, 9)?;
    w.local_mut()?.fill(5);
    assert_eq!(all(&w, &[100, 200])?, (5, 6));
    assert_eq!(w.local()?.to_vec(), [108, 215, 9, 23, 12, 6, 7, 5, 7]);
    Ok(())
}
