fn main() {}

fn twice(window: &rma::Window<f64>) -> (rma::Window<f64>, rma::Window<f64>) {
    (window.clone(), window.clone())
}
