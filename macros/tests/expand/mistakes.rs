//! A function with mistakes: the messages, and the original for the tools that go on in spite of them.

#[rma_epoch(lock(w, rank = 0, exclusive))]
fn mistaken(w: &Window<u64>) -> rma::Result<u64> {
    w.at(1)[0] += 1;
    let x: u64 = w.at(0)[0];
    Ok(x)
}
