// covers: PGO-IOFFER-05 -- the typed calls; there are no raw ones yet
// A buffer is read that a request owns.
use rma::pgo::{PUTS_OK, ioffer, over};

fn wrong(team: &rma::Team) -> rma::Result<u32> {
    let numbers = vec![0_u32; 4];
    let mut request = ioffer(team, 1, over(numbers, PUTS_OK), 1)?;
    let first = numbers[0];
    request.wait()?;
    Ok(first)
}

fn main() {}
