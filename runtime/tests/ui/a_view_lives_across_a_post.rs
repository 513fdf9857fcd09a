fn main() {}

fn update(window: &mut rma::Window<f64>) -> rma::Result<()> {
    let mut cells = window.local_mut()?;
    let exposure = window.post(rma::Origins::Any)?;
    cells[0] = 1.0;
    exposure.wait(1)
}
