fn main() {}

fn both(window: &rma::Window<f64>) {
    std::thread::scope(|scope| {
        scope.spawn(|| window.load(0));
        scope.spawn(|| window.load(0));
    });
}
