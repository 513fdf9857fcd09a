// covers: PGO-OFFER-07 -- the typed calls; there are no raw ones yet
// A buffer is read while it is lent to an offer.
use rma::pgo::{PUTS_OK, offer, over};

fn wrong(team: &rma::Team) -> rma::Result<u32> {
    let mut numbers = [0_u32; 4];
    let offered = over(&mut numbers, PUTS_OK);
    let first = numbers[0];
    offer(team, 1, offered, 1)?;
    Ok(first)
}

fn main() {}
