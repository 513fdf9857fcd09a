//! A function with its own error type.

use rma::{Rank, Team, Window, rma_epoch, rma_test};

#[derive(Debug)]
enum Trouble {
    Rma(rma::ErrorKind),
    Negative,
}

impl From<rma::Error> for Trouble {
    fn from(error: rma::Error) -> Trouble {
        Trouble::Rma(error.kind())
    }
}

#[rma_epoch(lock(w, rank = owner, exclusive))]
fn add(w: &Window<i64>, owner: Rank, x: i64) -> Result<i64, Trouble> {
    if x < 0 {
        return Err(Trouble::Negative);
    }
    Ok(w.at(owner)[0].fetch_add(x))
}

#[rma_test(ranks = 1, transports = [local, shm])]
fn program(team: &Team) -> rma::Result<()> {
    let w = Window::allocate(team, 1)?;
    assert!(matches!(add(&w, Rank(0), 3), Ok(0)));
    assert!(matches!(add(&w, Rank(0), -3), Err(Trouble::Negative)));
    assert!(matches!(add(&w, Rank(9), 3), Err(Trouble::Rma(rma::ErrorKind::RankOutOfRange))));
    assert!(matches!(add(&w, Rank(0), 1), Ok(3)));
    Ok(())
}
