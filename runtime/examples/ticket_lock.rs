//! A first-come-first-served lock out of two words on rank 0: take a ticket, wait until it is served, pass on.
//! `cargo run --example ticket_lock -- 4` runs it on four ranks as threads.

use rma::{LockKind, Rank, Sum, Team, Window, rma_epoch};

const TICKET: usize = 0;
const SERVING: usize = 1;
const COUNTER: usize = 2;
const WORDS: usize = 3;

/// The rank that holds the words.
const HOME: Rank = Rank(0);

#[rma_epoch(lock(w, rank = HOME, shared))]
pub(crate) fn take_ticket(w: &Window<u64>) -> rma::Result<u64> {
    Ok(w.at(HOME)[TICKET].fetch_add(1))
}

#[rma_epoch(lock(w, rank = HOME, shared))]
pub(crate) fn serving(w: &Window<u64>) -> rma::Result<u64> {
    // An atomic read: others change the word at the same time.
    Ok(w.at(HOME)[SERVING].fetch_add(0))
}

#[rma_epoch(lock(w, rank = HOME, shared))]
pub(crate) fn pass_on(w: &Window<u64>) -> rma::Result<()> {
    w.at(HOME)[SERVING] += 1;
    Ok(())
}

/// Reads the counter. Not atomic with `write_counter`: the ticket lock protects the two.
#[rma_epoch(lock(w, rank = HOME, shared))]
pub(crate) fn read_counter(w: &Window<u64>) -> rma::Result<u64> {
    Ok(w.at(HOME)[COUNTER])
}

#[rma_epoch(lock(w, rank = HOME, shared))]
pub(crate) fn write_counter(w: &Window<u64>, value: u64) -> rma::Result<()> {
    w.at(HOME)[COUNTER] = value;
    Ok(())
}

/// Every rank counts `rounds` times under the lock; the final count, on every rank.
pub(crate) fn count(team: &Team, rounds: u64) -> rma::Result<u64> {
    let w = Window::<u64>::allocate(team, if team.rank() == HOME { WORDS } else { 0 })?;
    team.barrier()?;
    for _ in 0..rounds {
        let mine = take_ticket(&w)?;
        while serving(&w)? != mine {
            std::thread::yield_now();
        }
        write_counter(&w, read_counter(&w)? + 1)?;
        pass_on(&w)?;
    }
    team.barrier()?;
    read_counter(&w)
}

/// The same without the macro.
pub(crate) fn count_by_hand(team: &Team, rounds: u64) -> rma::Result<u64> {
    let w = Window::<u64>::allocate(team, if team.rank() == HOME { WORDS } else { 0 })?;
    team.barrier()?;
    let fetch = |at, add| w.lock(HOME, LockKind::Shared, |epoch| epoch.fetch_op(HOME, at, Sum, add));
    for _ in 0..rounds {
        let mine = fetch(TICKET, 1)?;
        while fetch(SERVING, 0)? != mine {
            std::thread::yield_now();
        }
        let old = w.lock(HOME, LockKind::Shared, |epoch| epoch.get_value(HOME, COUNTER))?;
        w.lock(HOME, LockKind::Shared, |epoch| epoch.put(HOME, COUNTER, [old + 1]))?;
        fetch(SERVING, 1)?;
    }
    team.barrier()?;
    w.lock(HOME, LockKind::Shared, |epoch| epoch.get_value(HOME, COUNTER))
}

#[allow(dead_code)] // Tests include this file for what stands above.
fn main() -> std::process::ExitCode {
    let program = |team: &Team| -> rma::Result<()> {
        let expected = 100 * u64::from(team.size());
        let (macros, hand) = (count(team, 100)?, count_by_hand(team, 100)?);
        assert_eq!((macros, hand), (expected, expected));
        if team.rank() == HOME {
            println!("{expected} increments, none lost\nok");
        }
        Ok(())
    };
    match std::env::args().nth(1).and_then(|ranks| ranks.parse().ok()) {
        Some(ranks) => match rma::spawn(ranks, program).and_then(|ranks| ranks.into_iter().collect()) {
            Ok(()) => std::process::ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {error}");
                std::process::ExitCode::FAILURE
            }
        },
        None => rma::run(program),
    }
}
