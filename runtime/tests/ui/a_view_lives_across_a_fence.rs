fn main() {}

fn update(window: &mut rma::Window<f64>) -> rma::Result<f64> {
    let cells = window.local()?;
    window.fence(|_| ())?;
    Ok(cells[0])
}
