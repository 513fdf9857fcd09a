fn main() {}

fn send(window: &mut rma::Window<f64>, to: rma::Rank) -> rma::Result<()> {
    window.fence(|epoch| epoch.put(to, -1, 1.0))
}
