fn main() {}

fn start(window: &rma::Window<f64>, to: rma::Rank) -> rma::Result<()> {
    let request = window.istart(to, rma::Info::Strong)?;
    request.wait()?.complete()?;
    request.wait()?.complete()
}

fn wait(window: &mut rma::Window<f64>) -> rma::Result<()> {
    let request = window.post(rma::Origins::Any)?.iwait(1)?;
    request.wait()?;
    request.wait()
}

fn get(window: &rma::Window<f64>, from: rma::Rank) -> rma::Result<()> {
    window.lock(from, rma::LockKind::Shared, |epoch| {
        let request = epoch.rget(from, 0, vec![0.0])?;
        request.wait()?;
        request.wait()?;
        Ok(())
    })
}
