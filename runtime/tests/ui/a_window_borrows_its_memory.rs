fn main() {}

// A window over borrowed memory could be leaked, and the memory be used beside it.
fn borrowed(team: &rma::Team, memory: &mut [f64]) -> rma::Result<rma::Window<f64>> {
    Ok(rma::Window::create(team, memory)?)
}
