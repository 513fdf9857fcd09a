fn main() {}

fn send(window: &mut rma::Window<f64>, to: rma::Rank) -> rma::Result<()> {
    window.put(to, 0, 1.0)
}
