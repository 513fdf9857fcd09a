fn main() {}

// A window owns the memory that it is made over, so there is none left for a second one.
fn twice(team: &rma::Team, memory: Vec<f64>) -> rma::Result<(rma::Window<f64>, rma::Window<f64>)> {
    Ok((rma::Window::create(team, memory)?, rma::Window::create(team, memory)?))
}
