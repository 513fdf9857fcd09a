//! A window behind a field, early ways out, and a control flow of every sort.

#[rma_epoch(fence(u = self.field))]
fn step(&mut self, right: Rank) -> Result<(), Box<dyn Error>> {
    if self.done {
        return Ok(());
    }
    let count: usize = self.text.parse()?;
    for i in 0..count {
        match i % 3 {
            0 => u.at(right)[i] = 0.0,
            1 if i > 3 => continue,
            _ => {
                u.at(right)[i].max(self.values[i])
            }
        }
    }
    Ok(())
}
