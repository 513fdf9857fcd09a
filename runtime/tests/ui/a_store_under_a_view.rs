fn main() {}

fn update(window: &mut rma::Window<f64>) -> rma::Result<f64> {
    let cells = window.local()?;
    window.store(0, 1.0)?;
    Ok(cells[0])
}
