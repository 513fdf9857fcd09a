fn main() {}

fn keep(window: &mut rma::Window<u64>) -> rma::Result<()> {
    let mut kept = None;
    window.fence_part(0..1, |_, mine| kept = Some(mine.after))?;
    kept.into_iter().for_each(|rest| rest.fill(1));
    Ok(())
}
