fn main() {}

fn swap(window: &mut rma::Window<f64>) -> rma::Result<()> {
    let mut one = window.local_mut()?;
    let mut two = window.local_mut()?;
    std::mem::swap(&mut one[0], &mut two[0]);
    Ok(())
}
