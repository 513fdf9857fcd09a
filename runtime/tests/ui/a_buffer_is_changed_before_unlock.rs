fn main() {}

fn send(window: &rma::Window<f64>, to: rma::Rank) -> rma::Result<()> {
    let mut rim = [1.0; 4];
    window.lock(to, rma::LockKind::Exclusive, |epoch| {
        epoch.put(to, 0, &rim)?;
        rim[0] = 2.0;
        Ok(())
    })
}
