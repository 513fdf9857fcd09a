fn main() {}

// A window makes its own memory: there is no way to give it some, and so none to give it twice.
fn twice(team: &rma::Team, memory: &mut [f64]) -> rma::Result<(rma::Window<f64>, rma::Window<f64>)> {
    Ok((rma::Window::allocate(team, memory)?, rma::Window::allocate(team, memory)?))
}
