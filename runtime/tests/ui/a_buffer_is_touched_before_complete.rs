fn main() {}

fn send(window: &rma::Window<f64>, to: rma::Rank) -> rma::Result<()> {
    let mut rim = [1.0; 4];
    window.access(&[to], rma::Info::Strong, |epoch| {
        epoch.get(to, 0, &mut rim)?;
        rim[0] += 1.0;
        Ok(())
    })
}
