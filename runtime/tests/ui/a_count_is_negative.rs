// A count of events below zero.
fn wrong(team: &rma::Team) -> rma::Result<()> {
    rma::pgo::offer(team, 1, rma::pgo::nothing(), -1).map(drop)
}

fn main() {}
