// covers: PGO-PUT-03 -- the typed calls; there are no raw ones yet
// A buffer that a put lends to its scope is changed before the scope has ended.
fn wrong(team: &rma::Team) -> rma::Result<()> {
    let mut numbers = [1_u32; 4];
    rma::pgo::scope(team, 1, |scope| {
        scope.put(&numbers, rma::Rank(0), 0)?;
        numbers[0] = 2;
        Ok(())
    })
}

fn main() {}
