// A buffer ends before the scope that its put lends it to.
fn wrong(team: &rma::Team) -> rma::Result<()> {
    rma::pgo::scope(team, 1, |scope| {
        let numbers = [1_u32; 4];
        scope.put(&numbers, rma::Rank(0), 0)
    })
}

fn main() {}
