// covers: PGO-GET-03 -- the typed calls; there are no raw ones yet
// A buffer that a get fills is read before the scope has ended.
fn wrong(team: &rma::Team) -> rma::Result<u32> {
    let mut numbers = [0_u32; 4];
    rma::pgo::scope(team, 1, |scope| {
        scope.get(&mut numbers, rma::Rank(0), 0)?;
        Ok(numbers[0])
    })
}

fn main() {}
