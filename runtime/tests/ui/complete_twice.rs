fn main() {}

fn send(window: &rma::Window<f64>, to: rma::Rank) -> rma::Result<()> {
    let access = window.start(to, rma::Info::Strong)?;
    access.complete()?;
    access.complete()
}
