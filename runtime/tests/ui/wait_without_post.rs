fn main() {}

fn receive(window: &mut rma::Window<f64>) -> rma::Result<()> {
    window.wait(1)
}
