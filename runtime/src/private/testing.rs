//! What a test of `#[rma_test]` calls: runs a function as a job of threads or of processes. Never hides a skip.

use std::fmt::Display;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use crate::launch::environment::RANK;
use crate::launch::{Launch, Tags, Transport, launch};
use crate::run::Job;
use crate::team::Team;

/// The time limit of each blocking call of a test: a test that hangs fails, with the report of who waits for whom.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs `body` on so many ranks over the named transport, or says that the transport does not exist yet.
///
/// `module` is the path of the module that holds the test; the test itself has the transport's name.
///
/// # Panics
/// If a rank fails or panics.
#[track_caller]
pub fn run<E: Display + Send>(transport: &str, ranks: u32, module: &str, body: fn(&Team) -> Result<(), E>) {
    match transport {
        "local" => threads(ranks, body),
        "shm" => match std::env::var_os(RANK) {
            None => processes(ranks, module, transport),
            Some(_) => rank(body),
        },
        _ => eprintln!("skipped: the transport {transport} does not exist yet"),
    }
}

#[track_caller]
fn threads<E: Display + Send>(ranks: u32, body: fn(&Team) -> Result<(), E>) {
    let outcome = Job::new(ranks).time_limit(LIMIT).try_spawn(body);
    let results = outcome.unwrap_or_else(|error| panic!("{error}"));
    let failed: Vec<String> = results
        .into_iter()
        .enumerate()
        .filter_map(|(rank, result)| result.err().map(|error| format!("rank {rank}: {error}")))
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Starts this test program again, once per rank, for this one test.
#[track_caller]
fn processes(ranks: u32, module: &str, test: &str) {
    // The harness names tests without the crate.
    let name = match module.split_once("::") {
        Some((_, path)) => format!("{path}::{test}"),
        None => test.to_owned(),
    };
    let program = std::env::current_exe().expect("a running program has a path").into_os_string();
    let arguments = [&name, "--exact", "--nocapture", "--include-ignored", "--test-threads=1"];
    let arguments = arguments.map(Into::into).to_vec();
    let job =
        Launch { ranks, limit: Some(LIMIT), tags: Tags::On, transport: Transport::Shm, program, arguments };
    // The launcher takes signals in its own way, which ends with its thread.
    let status = thread::spawn(move || launch(&job)).join().expect("the launcher does not panic");
    assert!(status == 0, "the job ended with status {status}; its output is above");
}

/// Is one of those ranks.
fn rank<E: Display>(body: fn(&Team) -> Result<(), E>) {
    let status = crate::run::run(body);
    assert!(status == ExitCode::SUCCESS, "this rank failed");
}
