fn main() {}

fn first(window: &rma::Window<f64>) -> rma::Result<&f64> {
    let cells = window.local()?;
    Ok(&cells[0])
}
