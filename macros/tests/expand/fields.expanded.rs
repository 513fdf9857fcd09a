//! A window behind a field, early ways out, and a control flow of every sort.
fn step(&mut self, right: Rank) -> Result<(), Box<dyn Error>> {
    ::rma::private::fence(
        &mut self.field,
        |u| -> Result<(), Box<dyn Error>> {
            if self.done {
                return Ok(());
            }
            let count: usize = self.text.parse()?;
            for i in 0..count {
                match i % 3 {
                    0 => u.put(right, i, [0.0])?,
                    1 if i > 3 => continue,
                    _ => u.accumulate(right, i, ::rma::private::Max, [self.values[i]])?,
                }
            }
            Ok(())
        },
    )
}
