fn main() {}

fn put(window: &rma::Window<u64>, target: rma::Rank) -> rma::Result<Vec<u64>> {
    let mut kept = None;
    window.lock(target, rma::LockKind::Shared, |epoch| {
        kept = Some(epoch.rget(target, 0, vec![0; 3])?);
        Ok(())
    })?;
    Ok(kept.unwrap().wait()?)
}
