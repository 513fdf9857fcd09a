//! The second example of the visibility rules: rank 1 has put under a lock, and after a barrier rank 0 reads its own memory.

use rma::{Rank, Team, Window, rma_epoch};

#[rma_epoch(lock(y, rank = 0, exclusive))]
fn update(y: &Window<u64>) -> rma::Result<()> {
    y.at(0)[0] = 5;
    Ok(())
}

fn example(team: &Team, y: &mut Window<u64>) -> rma::Result<()> {
    team.barrier()?;
    if team.rank() == Rank(1) {
        update(y)?;
    }
    team.barrier()?;
    if team.rank() == Rank(0) {
        println!("{}", y[0]);
        y[0] += 1;
    }
    Ok(())
}

fn main() {}

// covers: VIS-EX2-05
