fn main() {}

fn exchange(window: &mut rma::Window<f64>, left: rma::Rank) -> rma::Result<f64> {
    let mut halo = [0.0; 4];
    window.fence(|epoch| {
        epoch.get(left, 0, &mut halo)?;
        Ok(halo[0])
    })
}
