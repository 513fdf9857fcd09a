//! return, `?`, break and continue inside an epoch, with an error type of one's own.

use rma::{Team, Window, rma_epoch, rma_test};

#[rma_epoch(lock(w, rank = 0, exclusive))]
fn parse_and_count(w: &Window<u64>, words: &[&str]) -> Result<(), Box<dyn std::error::Error>> {
    for word in words {
        match *word {
            "stop" => return Ok(()),
            "skip" => continue,
            "end" => break,
            word => w.at(0)[word.parse::<usize>()?] += 1,
        }
    }
    Ok(())
}

#[rma_test(ranks = 1, transports = [local, shm])]
fn program(team: &Team) -> rma::Result<()> {
    let w = Window::allocate(team, 2)?;
    assert!(parse_and_count(&w, &["0", "skip", "1", "stop", "1"]).is_ok());
    assert!(parse_and_count(&w, &["1", "end", "1"]).is_ok());
    assert!(parse_and_count(&w, &["1", "x"]).is_err());
    assert!(parse_and_count(&w, &["2"]).is_err());
    assert_eq!((w.load(0)?, w.load(1)?), (1, 3));
    Ok(())
}
