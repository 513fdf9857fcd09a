fn main() {}

fn put(window: &rma::Window<u64>, target: rma::Rank) -> rma::Result<()> {
    window.lock(target, rma::LockKind::Shared, |epoch| {
        let buffer = vec![1, 2, 3];
        let request = epoch.rput(target, 0, buffer)?;
        println!("{buffer:?}");
        request.wait()?;
        Ok(())
    })
}
