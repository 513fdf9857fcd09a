//! Random correct programs, run and compared with a model that knows only the specification. Never emits an access that is not
//! properly synchronized: what the values of others are is undefined.
//!
//! A failure names its seed; `RMA_SEED=… cargo test -p rma-runtime --test conformance -- random_programs` runs that program
//! alone, on every transport and number of ranks.

mod model;
mod plan;

/// The driver for windows of each type of element: the same text, as Rust has no name for "every operation on `T`".
mod words {
    type T = u64;
    include!("drive.rs");
}
mod halves {
    type T = u16;
    include!("drive.rs");
}

use std::time::{Duration, Instant};

use rma::{Basic, Rank, Team, Window};

use crate::{Case, Outcome, case, is_full, shares_memory};
pub(crate) use plan::Numbers;
use plan::Program;

pub(crate) const CASES: &[Case] = &[
    case!(random_programs_read_what_the_model_says, [2, 3, 6]),
    case!(random_programs_of_layouts_read_what_the_model_says, [3]),
];

/// How a transfer says which cells it means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Described {
    Sections,
    /// By datatypes that the program makes while it runs.
    Datatypes,
}

/// Programs of a full run, and of many ranks that wait for many messages.
const PROGRAMS: u64 = 10_000;
const PROGRAMS_CONNECTED: u64 = 1_000;
/// How long other runs go on.
const TIME: Duration = Duration::from_secs(2);
/// Programs that an ordinary run makes at most.
const PROGRAMS_SOON: u64 = 1_000;

// covers: RMA-READ-01
fn random_programs_read_what_the_model_says(team: &Team) -> Outcome {
    random_programs(team, Described::Sections)
}

fn random_programs_of_layouts_read_what_the_model_says(team: &Team) -> Outcome {
    random_programs(team, Described::Datatypes)
}

fn random_programs(team: &Team, described: Described) -> Outcome {
    let begun = Instant::now();
    let fixed: Option<u64> = std::env::var("RMA_SEED").ok().and_then(|text| text.parse().ok());
    // Other seeds in every run; the clock is rank 0's.
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let mut seeds = Numbers::new(clock.as_nanos() as u64);
    let programs = if team.size() <= 3 || shares_memory(team)? { PROGRAMS } else { PROGRAMS_CONNECTED };
    for number in 0.. {
        let goes_on = match (fixed, is_full()) {
            (Some(_), _) => number == 0,
            (None, true) => number < programs,
            (None, false) => number < PROGRAMS_SOON && begun.elapsed() < TIME,
        };
        let mut next = [u64::from(goes_on), fixed.unwrap_or_else(|| seeds.next())];
        team.broadcast(Rank(0), &mut next)?;
        let [goes_on, seed] = next;
        if goes_on == 0 {
            if team.rank() == Rank(0) {
                println!("{number} random programs on {} ranks", team.size());
            }
            return Ok(());
        }
        run(team, seed, described).map_err(|error| format!("RMA_SEED={seed}: {error}"))?;
    }
    Ok(())
}

/// Says which program it was, on the way out of a panic.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("this was the program of RMA_SEED={}", self.0);
        }
    }
}

fn run(team: &Team, seed: u64, described: Described) -> rma::Result<()> {
    let _seed = Seed(seed);
    let me = team.rank();
    let program = Program::random(seed, team.size());
    let mut words = Window::<u64>::allocate(team, program.lens[0][me.index()])?;
    let mut halves = Window::<u16>::allocate(team, program.lens[1][me.index()])?;
    for round in &program.rounds {
        match round.window {
            0 => words::run(team, &mut words, round, described)?,
            _ => halves::run(team, &mut halves, round, described)?,
        }
    }
    words.fence(|_| ())?;
    halves.fence(|_| ())?;
    // Every byte at the end, so that a write to a wrong place is seen.
    let [model, small] = &program.memories;
    let found: Vec<u64> = words.local()?.iter().map(|value| value.to_bits()).collect();
    let expected: Vec<u64> = (0..words.len()).map(|cell| model.read(me.0, cell)).collect();
    assert_eq!(found, expected, "the words of rank {me} at the end");
    let found: Vec<u64> = halves.local()?.iter().map(|value| value.to_bits()).collect();
    let expected: Vec<u64> = (0..halves.len()).map(|cell| small.read(me.0, cell)).collect();
    assert_eq!(found, expected, "the halves of rank {me} at the end");
    Ok(())
}
