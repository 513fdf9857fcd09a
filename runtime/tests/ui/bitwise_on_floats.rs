fn main() {}

fn mask(window: &mut rma::Window<f64>, to: rma::Rank) -> rma::Result<()> {
    window.fence(|epoch| epoch.accumulate(to, 0, rma::And, 1.0))
}
