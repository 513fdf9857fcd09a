fn main() {}

fn mixed(window: &mut rma::Window<f64>) -> rma::Result<()> {
    let exposure = window.post(rma::Origins::Any)?;
    window.fence(|_| ())?;
    exposure.wait(1)
}
