//! One suite for every transport and rank count. Never knows how a transport works: a case is a body that every rank runs.
//!
//! On `local` a case's ranks are threads of this process; on `shm` this binary starts `rma-run`, which starts this binary again
//! as every rank, as real processes. Every run of a case has a hard limit, after which it fails; every blocking call of
//! a case has the time limit of its job, so that a case that hangs says who waits for whom.
//!
//! Legs that the requirements name and that do not exist yet; a claim below holds for the legs that exist:
//!
//! | leg | exists | what will run it |
//! |---|---|---|
//! | local (threads) | yes | `Transport::Local` |
//! | shm (processes, one segment) | yes | `Transport::Shm` |
//! | tcp | no | one more `Transport` here |
//! | shm and tcp mixed | no | one more `Transport` here |
//! | memory model separate (lazy, eager, poison) | no | environment of the run |
//! | progress agent (thread, polling) | no: mapped memory needs none | environment of the run |
//! | checked mode (strict, disjoint) | no | environment of the run |
//! | memory of the caller | no | a parameter of the bodies' `allocate` |
//!
//! `cargo test -p rma-runtime --test conformance -- FILTER` runs the cases whose name contains the filter.
#![forbid(unsafe_code)]
#![allow(
    clippy::needless_borrows_for_generic_args,
    reason = "a borrowed origin is another case than an owned one"
)]

mod atomics;
mod barriers;
mod failures;
mod fences;
mod jacobi;
mod locks;
mod pscw;
mod transfers;
mod visibility;
mod windows;

use std::io::Read;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rma::Team;

/// The error of a body: anything that says what went wrong.
type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// How the ranks of a case reach each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Transport {
    Local,
    Shm,
}

/// How a case's job ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// Every rank's body succeeds.
    Well,
    /// Some ranks die on purpose; the job fails, and this many others print a line with [`SURVIVED`].
    Survived(usize),
    /// Some rank ends with an error that contains this.
    Fails(&'static str),
}

/// What a rank that outlives the others on purpose prints when its expectations held.
const SURVIVED: &str = "survived as expected";

struct Case {
    name: &'static str,
    ranks: &'static [u32],
    transports: &'static [Transport],
    /// The time limit of each blocking call.
    limit: Duration,
    ending: Ending,
    body: fn(&Team) -> Outcome,
}

const BOTH: &[Transport] = &[Transport::Local, Transport::Shm];
/// The limit of a blocking call in cases that don't expect one to pass: far above what a busy machine needs.
const PATIENT: Duration = Duration::from_secs(40);
/// The hard limit of one run.
const WATCHDOG: Duration = Duration::from_secs(100);

impl Case {
    const fn new(name: &'static str, ranks: &'static [u32], body: fn(&Team) -> Outcome) -> Case {
        Case { name, ranks, transports: BOTH, limit: PATIENT, ending: Ending::Well, body }
    }

    /// A case that expects a blocking call to stall.
    const fn stalling(self) -> Case {
        Case { limit: Duration::from_millis(600), ..self }
    }

    /// A case in which ranks die, which threads can't, and this many survive.
    const fn surviving(self, survivors: usize) -> Case {
        Case { transports: &[Transport::Shm], ending: Ending::Survived(survivors), ..self }
    }

    /// A case in which a rank ends with an error that contains this.
    const fn failing(self, text: &'static str) -> Case {
        Case { ending: Ending::Fails(text), ..self }
    }

    /// A case that stops or watches processes.
    const fn processes(self) -> Case {
        Case { transports: &[Transport::Shm], ..self }
    }

    fn runs(&'static self) -> impl Iterator<Item = (u32, Transport)> {
        self.ranks.iter().flat_map(|&ranks| self.transports.iter().map(move |&transport| (ranks, transport)))
    }
}

/// A line of a table of cases: the body's name is the case's name.
macro_rules! case {
    ($body:ident, $ranks:expr) => {
        $crate::Case::new(stringify!($body), &$ranks, $body)
    };
}
use case;

const TABLES: &[&[Case]] = &[
    windows::CASES,
    transfers::CASES,
    fences::CASES,
    barriers::CASES,
    pscw::CASES,
    locks::CASES,
    atomics::CASES,
    visibility::CASES,
    failures::CASES,
    jacobi::CASES,
];

fn cases() -> impl Iterator<Item = &'static Case> {
    TABLES.iter().copied().flatten()
}

/// The word that makes this binary a rank of a case.
const RANK_OF: &str = "--rank-of";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [first, name] = words.as_slice()
        && first == RANK_OF
    {
        let case = cases().find(|case| case.name == name).expect("the case is in a table");
        return rma::run(|team| (case.body)(team));
    }
    let exact = words.iter().any(|word| word == "--exact");
    let filters: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
    let wanted = |name: &str| {
        filters.is_empty()
            || filters.iter().any(|filter| if exact { name == *filter } else { name.contains(*filter) })
    };
    let mut failures = 0;
    let mut passes = 0;
    let begun = Instant::now();
    for case in cases() {
        for (ranks, transport) in case.runs() {
            let name = format!("{}/{transport:?}/{ranks}", case.name).to_lowercase();
            if !wanted(&name) {
                continue;
            }
            if words.iter().any(|word| word == "--list") {
                println!("{name}: test");
                continue;
            }
            let begun = Instant::now();
            let outcome = match transport {
                Transport::Local => run_threads(case, ranks),
                Transport::Shm => run_processes(case, ranks),
            };
            let took = begun.elapsed().as_millis();
            match outcome {
                Ok(()) => {
                    passes += 1;
                    println!("test {name} ... ok ({took} ms)");
                }
                Err(text) => {
                    failures += 1;
                    println!("test {name} ... FAILED ({took} ms)\n{text}");
                }
            }
        }
    }
    let verdict = if failures == 0 { "ok" } else { "FAILED" };
    let took = begun.elapsed().as_secs();
    println!("\ntest result: {verdict}. {passes} passed; {failures} failed; finished in {took} s");
    println!(
        "legs that do not exist yet: tcp, shm+tcp, memory model separate, progress agent, checked mode, \
         memory of the caller"
    );
    ExitCode::from(u8::from(failures != 0))
}

fn run_threads(case: &'static Case, ranks: u32) -> Result<(), String> {
    let (report, outcome) = mpsc::channel();
    thread::spawn(move || {
        let results = rma::Job::new(ranks).time_limit(case.limit).try_spawn(|team| (case.body)(team));
        let text = match results {
            Err(error) => Err(error.to_string()),
            Ok(results) => {
                let errors: Vec<String> = results
                    .into_iter()
                    .enumerate()
                    .filter_map(|(rank, result)| result.err().map(|error| format!("rank {rank}: {error}")))
                    .collect();
                if errors.is_empty() { Ok(()) } else { Err(errors.join("\n")) }
            }
        };
        let text = match (case.ending, text) {
            (Ending::Fails(expected), Err(text)) if text.contains(expected) => Ok(()),
            (Ending::Fails(expected), _) => Err(format!("no rank ended with '{expected}'")),
            (_, text) => text,
        };
        let _ = report.send(text); // Nobody listens any more after the watchdog.
    });
    match outcome.recv_timeout(WATCHDOG) {
        Ok(outcome) => outcome,
        // Threads can't be ended, so the suite ends with them.
        Err(_) => {
            println!("test {}/local/{ranks} hangs", case.name);
            std::process::exit(1)
        }
    }
}

fn run_processes(case: &'static Case, ranks: u32) -> Result<(), String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut job = Command::new(env!("CARGO_BIN_EXE_rma-run"))
        .args(["-n", &ranks.to_string(), "--tag-output", "--transport", "shm"])
        .args(["--timeout", &case.limit.as_secs_f64().to_string()])
        .arg(own)
        .args([RANK_OF, case.name])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("rma-run does not start: {error}"))?;
    let mut readers = Vec::new();
    readers.extend(job.stdout.take().map(drain));
    readers.extend(job.stderr.take().map(drain));
    let status = match wait(&mut job) {
        Some(status) => status,
        None => {
            let _ = job.kill();
            let _ = job.wait();
            return Err("the job hangs".to_owned());
        }
    };
    let output: String = readers.into_iter().map(|reader| reader.join().unwrap_or_default()).collect();
    match case.ending {
        Ending::Well if status == 0 => Ok(()),
        Ending::Well => Err(format!("exit status {status}\n{output}")),
        Ending::Fails(text) if status != 0 && output.contains(text) => Ok(()),
        Ending::Fails(text) => Err(format!("no rank ended with '{text}', exit status {status}\n{output}")),
        Ending::Survived(survivors) => {
            let found = output.matches(SURVIVED).count();
            match status != 0 && found == survivors {
                true => Ok(()),
                false => Err(format!("{found} of {survivors} survived, exit status {status}\n{output}")),
            }
        }
    }
}

fn drain(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes); // What has arrived before an error is worth printing.
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn wait(job: &mut Child) -> Option<i32> {
    let begun = Instant::now();
    while begun.elapsed() < WATCHDOG {
        match job.try_wait() {
            Ok(Some(status)) => return Some(status.code().unwrap_or(-1)),
            Ok(None) => thread::sleep(Duration::from_millis(2)),
            Err(_) => return None,
        }
    }
    None
}

/// A short time in which a call that should block would have returned if it did not.
fn grace() {
    thread::sleep(Duration::from_millis(30));
}

/// Waits until another rank has made a condition true, as programs do that synchronize by other means.
fn until(mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENT, "nobody made the condition true");
        thread::yield_now();
    }
}

/// The kind of the error that a call ended with.
fn kind_of<T: std::fmt::Debug>(result: rma::Result<T>) -> rma::ErrorKind {
    result.expect_err("the call should fail").kind()
}
