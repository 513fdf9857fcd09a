fn main() {}

fn keep(window: &mut rma::Window<f64>, to: rma::Rank) -> rma::Result<()> {
    let mut kept = None;
    window.fence(|epoch| kept = Some(epoch))?;
    kept.unwrap().put(to, 0, 1.0)
}
