fn main() {}

fn elsewhere(window: &rma::Window<f64>) -> rma::Result<()> {
    let cells = window.local()?;
    std::thread::scope(|scope| {
        scope.spawn(move || drop(cells));
    });
    Ok(())
}
