fn main() {}

fn start(window: rma::Window<f64>, to: rma::Rank) -> rma::Result<()> {
    let request = window.istart(to, rma::Info::Strong)?;
    window.free()?;
    request.wait()?.complete()
}

fn wait(mut window: rma::Window<f64>) -> rma::Result<()> {
    let request = window.post(rma::Origins::Any)?.iwait(1)?;
    window.free()?;
    request.wait()
}

fn result(window: rma::Window<f64>, from: rma::Rank, other: &rma::Window<f64>) -> rma::Result<f64> {
    let lock = window.acquire(from, rma::LockKind::Shared, rma::Info::Strong)?;
    let value = lock.get_value(from, 0)?;
    lock.unlock()?;
    window.free()?;
    other.lock(from, rma::LockKind::Shared, |_| value)
}

fn turns(mut window: rma::Window<f64>) -> rma::Result<()> {
    let mut turns = window.two_call();
    window.free()?;
    turns.wait2(1)
}
