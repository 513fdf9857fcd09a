//! One suite for every transport and rank count. Never knows how a transport works: a case is a body that every rank runs.
//!
//! On `local` a case's ranks are threads of this process; otherwise this binary starts `rma-run`, which starts this binary again
//! as every rank, as real processes: that share memory, that share none (`tcp`), or two and two of which do (`mixed`). Every run of a case has a hard limit, after which it fails; every blocking call of
//! a case has the time limit of its job, so that a case that hangs says who waits for whom.
//!
//! Legs that the requirements name and that do not exist yet; a claim below holds for the legs that exist:
//!
//! | leg | exists | what will run it |
//! |---|---|---|
//! | local (threads) | yes | `Transport::Local` |
//! | shm (processes, one segment) | yes | `Transport::Shm` |
//! | tcp | yes, with the most ranks of each case | `Transport::Tcp` |
//! | shm and tcp mixed | yes, with the most ranks of each case that has three | `Transport::Mixed` |
//! | memory model separate, lazy | yes: what memory of the caller is | `Memory::Caller` |
//! | memory model separate, eager and poison | no | environment of the run |
//! | progress agent (polling, ticks) | no: mapped memory needs none, and locks need one | the test `agents`, for what works without |
//! | checked mode (strict, disjoint) | no | environment of the run |
//! | memory of the caller (two copies) | yes | `Memory::Caller` |
//! | another copier than the calling thread | yes, where ranks share memory | `Run::copier` |
//!
//! `cargo test -p rma-runtime --test conformance -- FILTER` runs the cases whose name contains the filter.
#![forbid(unsafe_code)]
#![allow(
    clippy::needless_borrows_for_generic_args,
    reason = "a borrowed origin is another case than an owned one"
)]

mod atomics;
mod barriers;
mod between;
mod copies;
mod distributed;
mod examples;
mod failures;
mod fences;
mod figures;
mod halos;
mod infos;
mod jacobi;
mod layouts;
mod list;
mod litmus;
mod locks;
mod messages;
mod notified;
mod parts;
mod passive;
mod pgo;
mod pscw;
mod regions;
mod requests;
mod traces;
mod transfers;
mod trouble;
mod visibility;
mod windows;
mod wrong_requests;

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rma::CopyEngine::{self, Mapped};
use rma::{Element, MemoryModel, Team, Window, WindowOptions};

/// The error of a body: anything that says what went wrong.
type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// How the ranks of a case reach each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Transport {
    Local,
    Shm,
    Tcp,
    Mixed,
}

impl Transport {
    /// What the launcher is told.
    fn options(self) -> [&'static str; 2] {
        match self {
            Transport::Local => ["--transport", "local"],
            Transport::Shm => ["--transport", "shm"],
            Transport::Tcp => ["--transport", "tcp"],
            Transport::Mixed => ["--ranks-per-node", "2"],
        }
    }
}

/// What the windows lie in that a case allocates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Memory {
    /// Memory of the runtime, which the owner and all others use: one copy.
    Runtime,
    /// Private memory with a mirror, as under a window over memory of the caller.
    Caller,
}

impl Memory {
    fn model(self) -> MemoryModel {
        match self {
            Memory::Runtime => MemoryModel::Unified,
            Memory::Caller => MemoryModel::Separate,
        }
    }
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
    memories: &'static [Memory],
    ending: Ending,
    many_rounds: bool,
    /// What the job makes of info values, leg by leg; see `Job::info`.
    infos: &'static [&'static str],
    body: fn(&Team) -> Outcome,
}

/// The variants of the copier, beside the calling thread. The one that the system makes is tried everywhere.
// covers: RMA-SHM-05
const COPIERS: &[CopyEngine] = &[CopyEngine::Calls, CopyEngine::Thread];

/// Every case that keeps its promises passes if all info values are taken as strong.
// covers: RMA-INFO-07
const FORCED: &str = "force_info=strong";

const ALL: &[Transport] = &[Transport::Local, Transport::Shm, Transport::Tcp, Transport::Mixed];
const MAPPED: &[Transport] = &[Transport::Local, Transport::Shm];
const PROCESSES: &[Transport] = &[Transport::Shm, Transport::Tcp, Transport::Mixed];
// covers: RMA-WIN-07 -- on mapped memory: every case that keeps the rules runs over both
const EITHER: &[Memory] = &[Memory::Runtime, Memory::Caller];
/// The limit of a blocking call in cases that don't expect one to pass: far above what a busy machine needs.
const PATIENT: Duration = Duration::from_secs(60);
/// The hard limit of one run, and of one in which all rounds are made.
const WATCHDOG: Duration = Duration::from_secs(300);
const FULL_WATCHDOG: Duration = Duration::from_secs(900);
/// Jobs of processes that run at one time, beside the one of threads. In full runs each has the machine to itself: ten million
/// rounds in which two ranks take turns are seconds while each has a core, and hours if they have to be woken.
const JOBS_AT_ONCE: usize = 2;
/// The limit of a single call that is expected to stall.
const STALL: Duration = Duration::from_millis(400);

impl Case {
    const fn new(name: &'static str, ranks: &'static [u32], body: fn(&Team) -> Outcome) -> Case {
        Case {
            name,
            ranks,
            transports: ALL,
            memories: EITHER,
            ending: Ending::Well,
            many_rounds: false,
            infos: &["", FORCED],
            body,
        }
    }

    /// A case in which ranks die, which threads can't, and this many survive.
    const fn surviving(self, survivors: usize) -> Case {
        Case { transports: PROCESSES, ending: Ending::Survived(survivors), ..self }
    }

    /// A case in which a rank ends with an error that contains this.
    const fn failing(self, text: &'static str) -> Case {
        Case { ending: Ending::Fails(text), ..self }
    }

    /// A case about what is so only while ranks share memory.
    const fn mapped(self) -> Case {
        Case { transports: MAPPED, ..self }
    }

    /// A case of so many rounds that it belongs to the long checks where each round is a message.
    const fn many_rounds(self) -> Case {
        Case { many_rounds: true, ..self }
    }

    /// A case whose ranks are processes that share memory, as it stops one that others go on to reach.
    const fn processes(self) -> Case {
        Case { transports: &[Transport::Shm], ..self }
    }

    /// A case about ranks that share no memory.
    const fn connected(self) -> Case {
        Case { transports: &[Transport::Tcp], memories: &[Memory::Runtime], infos: &[""], ..self }
    }

    /// A case of fewer rounds than the one that it is of, for where each round is a message.
    const fn wired(self) -> Case {
        Case {
            transports: &[Transport::Tcp, Transport::Mixed],
            memories: &[Memory::Runtime],
            infos: &[""],
            ..self
        }
    }

    /// A case about ranks some of whom share memory.
    const fn mixed(self) -> Case {
        Case { transports: &[Transport::Mixed], memories: &[Memory::Runtime], infos: &[""], ..self }
    }

    /// A case that looks at its window's memory until others have changed it, which no rule promises.
    const fn one_copy(self) -> Case {
        Case { memories: &[Memory::Runtime], ..self }
    }

    /// A case that makes its windows over the memory that it is about.
    const fn over_its_own_memory(self) -> Case {
        Case { memories: &[Memory::Runtime], ..self }
    }

    /// A case with other legs of info values: one that breaks promises, or expects that info values make a difference, has not
    /// the forced one.
    const fn under(self, infos: &'static [&'static str]) -> Case {
        Case { infos, ..self }
    }

    /// Memory of the caller, and info values that are taken as strong, are tried with the most ranks and, where the case
    /// allows it, on threads only, unless the whole matrix is asked for. Cases of many rounds do without it, too: they would make
    /// hours of it.
    fn runs(&'static self) -> impl Iterator<Item = Run> {
        let whole = is_full();
        let most = self.ranks.iter().copied().max();
        let sampled =
            move |run: &Run| Some(run.ranks) == most && Some(&run.transport) == self.transports.first();
        // Two and two share memory only if there is a third.
        let possible = |run: &Run| run.transport != Transport::Mixed || 2 < run.ranks;
        let wired = move |run: &Run| {
            let elsewhere = matches!(run.transport, Transport::Tcp | Transport::Mixed);
            !elsewhere || whole || (Some(run.ranks) == most && !self.many_rounds)
        };
        let plain =
            Run { ranks: 0, transport: Transport::Local, memory: Memory::Runtime, info: "", copier: Mapped };
        let memories = self.memories.iter().map(move |&memory| Run { memory, ..plain });
        let infos = self.infos.iter().filter(|info| !info.is_empty()).map(move |&info| Run { info, ..plain });
        let copiers = COPIERS.iter().map(move |&copier| Run { copier, ..plain });
        let copiers =
            copiers.filter(move |run| whole || run.copier == CopyEngine::Calls && !self.many_rounds);
        memories.chain(infos).chain(copiers).flat_map(move |variant| {
            let runs = self.ranks.iter().flat_map(move |&ranks| {
                self.transports.iter().map(move |&transport| Run { ranks, transport, ..variant })
            });
            let runs = runs.filter(possible).filter(wired);
            let is_variant =
                variant.memory == Memory::Caller || variant.info == FORCED || variant.copier != Mapped;
            let is_copied = |run: &Run| run.copier == Mapped || run.transport != Transport::Tcp;
            runs.filter(is_copied)
                .filter(move |run| !is_variant || (whole && !self.many_rounds) || sampled(run))
        })
    }
}

/// One way to run a case.
#[derive(Clone, Copy)]
struct Run {
    ranks: u32,
    transport: Transport,
    memory: Memory,
    info: &'static str,
    copier: CopyEngine,
}

impl Run {
    fn name(self, case: &Case) -> String {
        let Run { ranks, transport, memory, info, copier } = self;
        let memory = if memory == Memory::Caller { "/caller" } else { "" };
        let leg = if info.is_empty() { String::new() } else { format!("/{info}") };
        let copier = if copier == Mapped { String::new() } else { format!("/copier={copier:?}") };
        format!("{}/{transport:?}/{ranks}{memory}{leg}{copier}", case.name).to_lowercase()
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
    between::CASES,
    layouts::CASES,
    fences::CASES,
    barriers::CASES,
    pscw::CASES,
    infos::CASES,
    requests::CASES,
    parts::CASES,
    locks::CASES,
    passive::CASES,
    notified::CASES,
    atomics::CASES,
    visibility::CASES,
    copies::CASES,
    regions::CASES,
    failures::CASES,
    distributed::CASES,
    jacobi::CASES,
    halos::CASES,
    traces::CASES,
    examples::CASES,
    figures::CASES,
    list::CASES,
    litmus::CASES,
    messages::CASES,
    pgo::basics::CASES,
    pgo::order::CASES,
    pgo::requests::CASES,
    #[cfg(feature = "progressive")]
    pgo::progressive::CASES,
    pgo::collective::CASES,
    pgo::extras::CASES,
    pgo::programs::CASES,
    pgo::messages::CASES,
    pgo::wired::CASES,
    pgo::trouble::CASES,
    pgo::lanes::CASES,
    pgo::random::CASES,
    pgo::worked::CASES,
    #[cfg(feature = "progressive")]
    pgo::chain::CASES,
    trouble::CASES,
    wrong_requests::CASES,
];

fn cases() -> impl Iterator<Item = &'static Case> {
    TABLES.iter().copied().flatten()
}

/// The word that makes this binary run what starts processes, and end with the number of runs that have failed.
const JOBS_ONLY: &str = "--jobs-only";
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
    let runs = cases().flat_map(|case| case.runs().map(move |run| (case, run)));
    let runs: Vec<_> = runs.filter(|(case, run)| wanted(&run.name(case))).collect();
    if words.iter().any(|word| word == "--list") {
        runs.iter().for_each(|(case, run)| println!("{}: test", run.name(case)));
        return ExitCode::SUCCESS;
    }
    let (threads, processes): (Vec<_>, Vec<_>) =
        runs.into_iter().partition(|(_, run)| run.transport == Transport::Local);
    if words.iter().any(|word| word == JOBS_ONLY) {
        end_with_the_parent();
        let at_once = if is_full() { 1 } else { JOBS_AT_ONCE };
        return ExitCode::from(try_all(&processes, at_once).min(u8::MAX.into()) as u8);
    }
    // Cases of threads look at the memory, the descriptors and the threads of this process, so they go one by one, and what
    // starts the jobs of processes, which wait most of the time, is a process of its own beside this one.
    let begun = Instant::now();
    let own = std::env::current_exe().expect("this binary has a path");
    let mut jobs = Command::new(own);
    // The input is a pipe that nobody writes to: when this process ends, in whatever way, so does what starts the jobs.
    jobs.args(&words).arg(JOBS_ONLY).stdin(Stdio::piped()).process_group(0);
    let mut start = || jobs.spawn().expect("this binary starts");
    let beside = (!is_full()).then(&mut start);
    let failed_threads = try_all(&threads, 1);
    let mut jobs = beside.unwrap_or_else(start);
    let _stays_open = jobs.stdin.take(); // Waiting closes what is left in the child.
    let failed_jobs = match jobs.wait().ok().and_then(|status| status.code()) {
        Some(failures) => failures as usize,
        None => processes.len(),
    };
    let failures = failed_threads + failed_jobs;
    let passes = threads.len() + processes.len() - failures;
    let verdict = if failures == 0 { "ok" } else { "FAILED" };
    let took = begun.elapsed().as_secs();
    println!("\ntest result: {verdict}. {passes} passed; {failures} failed; finished in {took} s");
    println!("legs that do not exist yet: memory model separate (eager, poison), checked mode");
    ExitCode::from(u8::from(failures != 0))
}

/// Ends this process and the launchers that it has started, which are a group of their own, when the one that holds the other
/// end of its input has ended. Ranks end with their launcher.
fn end_with_the_parent() {
    thread::spawn(|| {
        let mut input = Vec::new();
        let _ = std::io::stdin().read_to_end(&mut input); // An error is an end, too.
        let _ = Command::new("kill").args(["-KILL", "0"]).status(); // Does not come back.
        std::process::exit(1)
    });
}

/// Makes all runs, some at one time, and counts those that fail.
fn try_all(runs: &[(&'static Case, Run)], at_once: usize) -> usize {
    let (next, failures) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        while let Some(&(case, run)) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let begun = Instant::now();
            let outcome = match run.transport {
                Transport::Local => run_threads(case, run),
                Transport::Shm | Transport::Tcp | Transport::Mixed => run_processes(case, run),
            };
            let took = begun.elapsed().as_millis();
            let name = run.name(case);
            match outcome {
                Ok(()) => println!("test {name} ... ok ({took} ms)"),
                Err(text) => {
                    failures.fetch_add(1, Ordering::Relaxed);
                    println!("test {name} ... FAILED ({took} ms)\n{text}");
                }
            }
        }
    };
    match at_once {
        1 => work(),
        _ => thread::scope(|scope| (0..at_once).for_each(|_| drop(scope.spawn(work)))),
    }
    failures.into_inner()
}

fn run_threads(case: &'static Case, run: Run) -> Result<(), String> {
    let (report, outcome) = mpsc::channel();
    thread::spawn(move || {
        let job = rma::Job::new(run.ranks).time_limit(PATIENT).memory_model(run.memory.model());
        let job = job.copy_engine(run.copier);
        let results = job.info(run.info).and_then(|job| job.try_spawn(|team| (case.body)(team)));
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
    match outcome.recv_timeout(watchdog()) {
        Ok(outcome) => outcome,
        // Threads can't be ended, so the suite ends with them.
        Err(_) => {
            println!("test {}/local/{} in {:?} hangs", case.name, run.ranks, run.memory);
            std::process::exit(1)
        }
    }
}

fn run_processes(case: &'static Case, run: Run) -> Result<(), String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut job = Command::new(env!("CARGO_BIN_EXE_rma-run"))
        .args(["-n", &run.ranks.to_string(), "--tag-output"])
        .args(run.transport.options())
        .env("RMA_INFO", run.info)
        .args(["--timeout", &PATIENT.as_secs().to_string()])
        .arg(own)
        .args([RANK_OF, case.name])
        .env("RMA_MEMORY_MODEL", format!("{:?}", run.memory.model()).to_lowercase())
        .env("RMA_COPY_ENGINE", format!("{:?}", run.copier).to_lowercase())
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

fn watchdog() -> Duration {
    if is_full() { FULL_WATCHDOG } else { WATCHDOG }
}

fn wait(job: &mut Child) -> Option<i32> {
    let begun = Instant::now();
    while begun.elapsed() < watchdog() {
        match job.try_wait() {
            Ok(Some(status)) => return Some(status.code().unwrap_or(-1)),
            Ok(None) => thread::sleep(Duration::from_millis(2)),
            Err(_) => return None,
        }
    }
    None
}

/// Whether a case may go on with its many rounds: all of them in full runs, otherwise what a busy machine can do in some
/// seconds. Rounds that one rank makes by itself end this way; rounds that ranks make together are counted.
fn has_time(begun: Instant) -> bool {
    begun.elapsed() < ROUNDS_TIME || is_full()
}

/// Whether this is one of the long runs.
fn is_full() -> bool {
    std::env::var_os("RMA_FULL").is_some()
}

const ROUNDS_TIME: Duration = Duration::from_secs(6);

/// Whether every rank's memory is mapped by every other, so that a round costs no message.
fn shares_memory(team: &Team) -> rma::Result<bool> {
    team.ranks().try_fold(true, |all, rank| Ok(all && team.shares_memory(rank)?))
}

/// Memory through which ranks tell each other how far they are while they look at it all the time, which is no subject of
/// the case.
fn flags<T: Element>(team: &Team, len: usize) -> rma::Result<Window<T>> {
    WindowOptions::new().memory_model(MemoryModel::Unified).allocate(team, len)
}

/// A short time in which a call that should block would have returned if it did not.
fn grace() {
    thread::sleep(Duration::from_millis(30));
}

/// Waits until another rank has made a condition true, as programs do that synchronize by other means.
fn until(mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    let mut looks = 0_u32;
    while !holds() {
        assert!(begun.elapsed() < PATIENT, "nobody made the condition true");
        looks += 1;
        match looks < LOOKS_WITHOUT_SLEEP {
            true => thread::yield_now(),
            // Whoever makes the condition true may need the core.
            false => thread::sleep(Duration::from_micros(200)),
        }
    }
}

/// How often [`until`] looks before it sleeps between looks.
const LOOKS_WITHOUT_SLEEP: u32 = 1000;

/// Makes a call that should stall, under a time limit that this call alone has: before and after it every rank may take
/// the time that a busy machine needs.
fn stalled<T>(team: &Team, call: impl FnOnce() -> rma::Result<T>) -> rma::Error {
    match rma::private::testing::with_limit(team, STALL, call) {
        Ok(_) => panic!("the call should stall"),
        Err(error) => {
            assert_eq!(error.kind(), rma::ErrorKind::Stalled, "{error}");
            error
        }
    }
}

/// The kind of the error that a call ended with.
fn kind_of<T: std::fmt::Debug>(result: rma::Result<T>) -> rma::ErrorKind {
    result.expect_err("the call should fail").kind()
}
