fn main() {}

fn detached(window: &mut rma::Window<f64>, region: rma::Region) -> rma::Result<f64> {
    let view = window.local_region(region)?;
    window.detach(region)?;
    Ok(view[0])
}
