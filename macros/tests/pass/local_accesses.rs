//! Loads, stores, updates and copies of one's own memory under a lock, also in macros and closures.

use rma::{Rank, Team, Window, rma_epoch, rma_test};

#[rma_epoch(lock(w, rank = me, exclusive))]
fn own(w: &Window<u64>, me: Rank) -> rma::Result<u64> {
    w[0] = 3;
    w[1] = w[0] * 2;
    let (old, change) = (4, "1");
    w[1] += old;
    w[1] -= 4 + change.parse::<u64>().unwrap_or(7);
    w[1] += 2;
    assert_eq!(w.len(), 4);
    w.store(2, w[0])?;
    w.write(3, &[w[1]; 1])?;
    assert_eq!((w[2], w[3]), (3, 7));
    let mut buffer = [0; 2];
    buffer.copy_from_slice(&w[..=1]);
    w[2..w.len()].copy_from_slice(&buffer);
    assert_eq!(w[2], 3, "the copy of {}", w[0]);
    let text = format!("{} {name}", w[3], name = w[1]);
    assert_eq!(text, "7 7");
    let sum: u64 = (0..4).map(|i| w[i]).sum();
    Ok(sum.max(w[0]))
}

#[rma_test(ranks = 1, transports = [local, shm])]
fn program(team: &Team) -> rma::Result<()> {
    let w = Window::allocate(team, 4)?;
    assert_eq!(own(&w, Rank(0))?, 20);
    Ok(())
}
