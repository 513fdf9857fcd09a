//! What a test of `#[rma_test]` calls: runs a function as a job of threads or of processes. Never hides a skip.

use std::fmt::Display;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use crate::element::Element;
use crate::error::Result as Outcome;
use crate::launch::environment::RANK;
use crate::launch::{Launch, Stats, Tags, Transport, launch};
use crate::run::Job;
use crate::team::{Rank, Team};
use crate::window::Window;

/// The time limit of each blocking call of a test: a test that hangs fails, with the report of who waits for whom.
const LIMIT: Duration = Duration::from_secs(60);

/// Set for the process that launches the ranks of a test; the ranks have [`RANK`] besides.
const LAUNCHER: &str = "RMA_TEST_LAUNCHER";

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
        "shm" | "tcp" => match (std::env::var_os(RANK), std::env::var_os(LAUNCHER)) {
            (Some(_), _) => rank(body),
            (None, Some(_)) => launcher(ranks, transport, module),
            (None, None) => processes(&name(module, transport)),
        },
        _ => eprintln!("skipped: the transport {transport} does not exist yet"),
    }
}

/// Makes a call of this rank under another time limit than the job's, so that a test can expect one call to stall and
/// leave all others the time that a busy machine needs.
pub fn with_limit<R>(team: &Team, limit: Duration, call: impl FnOnce() -> R) -> R {
    let before = team.context().set_limit(Some(limit));
    let result = call();
    team.context().set_limit(before);
    result
}

/// How many bytes the calling thread has had copied in mapped memory, in pieces that are longer than a word, and how many of them
/// another copier has copied for it; see [`CopyEngine`](crate::CopyEngine).
pub fn copied() -> (u64, u64) {
    crate::transport::shm::copier::copied()
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

/// The name of a test as the harness has it: without the crate.
fn name(module: &str, test: &str) -> String {
    match module.split_once("::") {
        Some((_, path)) => format!("{path}::{test}"),
        None => test.to_owned(),
    }
}

/// The arguments with which a test program runs one test and nothing else.
fn arguments(name: &str) -> [&str; 5] {
    [name, "--exact", "--nocapture", "--include-ignored", "--test-threads=1"]
}

/// Starts this test program again as the launcher of a job for this one test, and keeps what it says for a failure.
#[track_caller]
fn processes(name: &str) {
    let program = std::env::current_exe().expect("a running program has a path");
    let mut command = Command::new(program);
    command.args(arguments(name)).env(LAUNCHER, "1").stdin(Stdio::null());
    let output = command.output().expect("a running program can be started again");
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "the job failed ({}):\n{}{}", output.status, said[0], said[1]);
}

/// Is that launcher.
#[track_caller]
fn launcher(ranks: u32, transport: &str, module: &str) {
    let program = std::env::current_exe().expect("a running program has a path").into_os_string();
    let arguments = arguments(&name(module, transport)).map(Into::into).to_vec();
    let transport = match transport {
        "tcp" => Transport::Tcp,
        _ => Transport::Shm,
    };
    let status = launch(&Launch {
        ranks,
        limit: Some(LIMIT),
        tags: Tags::On,
        stats: Stats::Off,
        transport,
        ranks_per_node: None,
        bind: None,
        program,
        arguments,
    });
    assert!(status == 0, "the job ended with status {status}");
}

/// Is one of those ranks.
fn rank<E: Display>(body: fn(&Team) -> Result<(), E>) {
    let status = crate::run::run(body);
    assert!(status == ExitCode::SUCCESS, "this rank failed");
}

/// Gives this rank a request as if a rank of the job had sent it over a connection: the number of a window, or `u64::MAX` for the
/// offers, and what is asked. Gives the number of bytes of the answer, or what is wrong with the request, for which the
/// connection would be closed.
///
/// # Errors
/// See above.
pub fn receive(team: &Team, from: Rank, request: u64, body: &[u8]) -> Result<usize, &'static str> {
    team.context().receive(team.members().job_rank(from), request, body)
}

/// Runs `body` while the guard of a target's element is held, as by an accumulate to it that takes long.
///
/// # Errors
/// As a transfer to the element.
#[track_caller]
pub fn holding_guard<T: Element, R>(
    window: &Window<T>,
    target: Rank,
    at: usize,
    body: impl FnOnce() -> R,
) -> Outcome<R> {
    window.raw().holding_guard::<T, R>(target, at, body)
}

/// Runs `body` while this rank holds the lock of its store of offers and events, as one does that is stopped in the middle of a copy.
///
/// # Errors
/// As a call that offers.
#[track_caller]
pub fn holding_offers<R>(team: &Team, body: impl FnOnce() -> R) -> Outcome<R> {
    crate::pgo::holding(team, body)
}

/// How many events of Put/Get/Offer this rank has served as originator, as target and by its agent.
pub fn served(team: &Team) -> u64 {
    pgo_counters(team)[..3].iter().sum()
}

/// What the calls of Put/Get/Offer have done at this rank: events served as originator, as target and by the agent; copies through
/// memory between the two ends; messages about counts; frames to ranks without shared memory; blocks of memory taken; locks of stores
/// taken.
pub fn pgo_counters(team: &Team) -> [u64; 8] {
    crate::pgo::counters(team)
}
