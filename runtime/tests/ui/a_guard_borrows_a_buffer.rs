fn main() {}

// A guard can be leaked with the buffer still lent, so it has no `get`.
fn receive(window: &rma::Window<f64>, from: rma::Rank) -> rma::Result<()> {
    let mut halo = [0.0; 4];
    let access = window.start(from, rma::Info::Strong)?;
    access.get(from, 0, &mut halo)?;
    access.complete()
}
