//! Runs the launcher under a watchdog and looks at what it leaves behind. Never waits without a limit.
#![allow(dead_code, reason = "each test file uses its part")]

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// What every job of these tests gets at most. On a loaded machine a job of one second may take many.
pub(crate) const WATCHDOG: Duration = Duration::from_secs(180);
/// What processes get that should be gone soon.
pub(crate) const SOON: Duration = Duration::from_secs(20);

pub(crate) const RANKS: &str = env!("CARGO_BIN_EXE_rma-test-ranks");

/// A started launcher whose output is collected while it runs.
pub(crate) struct Job {
    child: Child,
    out: Receiver<String>,
    err: Receiver<String>,
    seen: Vec<String>,
    begun: Instant,
}

/// How a job ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) out: Vec<String>,
    pub(crate) err: Vec<String>,
    pub(crate) took: Duration,
}

impl Job {
    /// Starts `rma-run OPTIONS rma-test-ranks PROGRAM`, both given as words.
    pub(crate) fn start(options: &str, program: &str) -> Job {
        Job::start_in(&[], options, program)
    }

    /// As `start`, with more variables in the environment.
    pub(crate) fn start_in(environment: &[(&str, &str)], options: &str, program: &str) -> Job {
        let words = options.split_whitespace().chain([RANKS]).chain(program.split_whitespace());
        Job::spawn(environment, words, b"")
    }

    /// Starts `rma-run WORDS` and gives it `input`.
    pub(crate) fn start_words<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>, input: &[u8]) -> Job {
        Job::spawn(&[], words, input)
    }

    fn spawn<W: AsRef<OsStr>>(
        environment: &[(&str, &str)],
        words: impl IntoIterator<Item = W>,
        input: &[u8],
    ) -> Job {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rma-run"));
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env("RUST_BACKTRACE", "0").envs(environment.iter().copied());
        let begun = Instant::now();
        let mut child = command.spawn().expect("the launcher starts");
        let mut pipe = child.stdin.take().expect("piped");
        // A launcher that refuses its arguments does not read.
        let _ = pipe.write_all(input);
        drop(pipe);
        let out = lines_of(child.stdout.take().expect("piped"));
        let err = lines_of(child.stderr.take().expect("piped"));
        Job { child, out, err, seen: Vec::new(), begun }
    }

    /// The process id of the launcher.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line of standard output that contains `text`, and gives it.
    pub(crate) fn wait_line(&mut self, text: &str) -> String {
        loop {
            match self.out.recv_timeout(WATCHDOG) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if line.contains(text) {
                        return line;
                    }
                }
                Err(_) => self.fail(&format!("no line with '{text}'")),
            }
        }
    }

    /// The processes of `ranks` ranks, by what each says: `rank 2 runs as process 77`.
    pub(crate) fn processes(&mut self, ranks: usize) -> Vec<u32> {
        let mut processes = vec![0; ranks];
        for _ in 0..ranks {
            let line = self.wait_line("runs as process");
            let numbers: Vec<u32> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            processes[numbers[0] as usize] = numbers[1];
        }
        processes
    }

    /// Waits until so many lines of standard output have contained `text`, those that have been read already among them.
    pub(crate) fn wait_lines(&mut self, text: &str, count: usize) {
        let seen = self.seen.iter().filter(|line| line.contains(text)).count();
        for _ in seen..count {
            self.wait_line(text);
        }
    }

    /// The lines of standard output that have been waited for.
    pub(crate) fn seen(&self) -> &[String] {
        &self.seen
    }

    /// Waits for the end of the launcher.
    pub(crate) fn end(mut self) -> Ended {
        let status = loop {
            match self.child.try_wait().expect("the launcher is a child") {
                Some(status) => break status,
                None if WATCHDOG < self.begun.elapsed() => self.fail("the job did not end"),
                None => thread::sleep(Duration::from_millis(5)),
            }
        };
        let took = self.begun.elapsed();
        let mut out = std::mem::take(&mut self.seen);
        drain(&self.out, &mut out);
        let mut err = Vec::new();
        drain(&self.err, &mut err);
        Ended { status, out, err, took }
    }

    /// Ends the job and the test, with everything that the job has said.
    fn fail(&mut self, why: &str) -> ! {
        let states: Vec<String> =
            descendants(self.child.id()).iter().map(|&process| state_of(process)).collect();
        // The ranks die with their launcher.
        let _ = self.child.kill();
        let _ = self.child.wait();
        drain(&self.out, &mut self.seen);
        let mut err = Vec::new();
        drain(&self.err, &mut err);
        panic!("{why}\nprocesses: {states:#?}\nout: {:#?}\nerr: {err:#?}", self.seen);
    }
}

impl Ended {
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// The lines of standard output that contain `text`.
    pub(crate) fn lines(&self, text: &str) -> Vec<&str> {
        self.out.iter().filter(|line| line.contains(text)).map(String::as_str).collect()
    }

    /// Asserts that standard error says `text` somewhere.
    #[track_caller]
    pub(crate) fn says(&self, text: &str) {
        assert!(self.err.iter().any(|line| line.contains(text)), "'{text}' is not said by {self:#?}");
    }
}

fn lines_of(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (send, receive) = channel();
    thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        while let Ok(len) = reader.read_until(b'\n', &mut line) {
            if len == 0
                || send.send(String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned()).is_err()
            {
                return;
            }
            line.clear();
        }
    });
    receive
}

/// Takes what is left of a stream; a process that survives its launcher would keep it open.
fn drain(lines: &Receiver<String>, into: &mut Vec<String>) {
    loop {
        match lines.recv_timeout(Duration::from_secs(5)) {
            Ok(line) => into.push(line),
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                into.push("(the stream stays open: somebody has survived the job)".to_owned());
                return;
            }
        }
    }
}

/// Whether this is one of the long runs.
pub(crate) fn is_full() -> bool {
    std::env::var_os("RMA_FULL").is_some()
}

/// How often ranks are killed, stopped and cut off: so often, or as often as `RMA_TEST_KILLS` says.
pub(crate) fn rounds(usual: u32) -> u32 {
    std::env::var("RMA_TEST_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Lets a job of many short rounds come to some point of some round, so that what happens next meets it anywhere.
pub(crate) fn some_rounds(seed: u32) {
    thread::sleep(Duration::from_micros(some_number(seed) % 20_000));
}

/// Kills a rank, waits until so many others have said what they got, and gives the time in which they were told.
pub(crate) fn kill(job: &mut Job, victim: u32, others: usize) -> Duration {
    let killed = Instant::now();
    signal(victim, "KILL");
    for _ in 0..others {
        job.wait_line("got");
    }
    killed.elapsed()
}

/// Asserts what the requirements ask of the runtime, and not of a machine that is busy with other things: most are
/// told within a second, and nobody waits for a limit.
#[track_caller]
pub(crate) fn assert_within_a_second(mut latencies: Vec<Duration>) {
    latencies.sort_unstable();
    let (median, slowest) = (latencies[latencies.len() / 2], latencies[latencies.len() - 1]);
    println!("told of {} deaths: median {median:?}, slowest {slowest:?}", latencies.len());
    assert!(median < Duration::from_secs(1) && slowest < SOON, "{latencies:?}");
}

/// Asserts that a job in which a rank was killed has ended with that signal, and has left nothing.
#[track_caller]
pub(crate) fn assert_killed(ended: &Ended, launcher: u32, processes: &[u32]) {
    assert_eq!(ended.code(), Some(128 + 9), "{ended:#?}");
    assert_gone(processes, Duration::ZERO);
    assert_nothing_left(launcher);
}

/// A number that differs from call to call.
pub(crate) fn some_number(seed: u32) -> u64 {
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    (u64::from(clock.subsec_nanos()) ^ u64::from(seed)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}

/// What a rank says about the rank that it lost.
pub(crate) fn lost(rank: u32, lost: u32, evidence: &str) -> String {
    format!("rank {rank} got PeerLost lost Some(Rank({lost})) evidence Some({evidence})")
}

/// Asserts that every rank but one has lost this one, with this evidence.
#[track_caller]
pub(crate) fn assert_all_lost(ended: &Ended, ranks: u32, victim: u32, evidence: &str) {
    for rank in (0..ranks).filter(|&rank| rank != victim) {
        assert_eq!(ended.lines(&lost(rank, victim, evidence)).len(), 1, "rank {rank}: {ended:#?}");
    }
}

/// Runs a job to its end.
pub(crate) fn run(options: &str, program: &str) -> Ended {
    Job::start(options, program).end()
}

/// Sends a signal to a process.
pub(crate) fn signal(process: u32, name: &str) {
    let status = Command::new("kill").args([format!("-{name}"), process.to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()), "kill -{name} {process} is refused");
}

/// Lets a stopped process go on, unless the launcher has ended it meanwhile, as the others have ended and its time of grace is over.
pub(crate) fn wake(process: u32) {
    let refused = Command::new("kill").args(["-CONT", &process.to_string()]).stderr(Stdio::null()).status();
    assert!(refused.is_ok(), "kill is there");
}

/// Whether this process, and with it what it starts, ignores a signal: background jobs of a shell ignore SIGINT.
pub(crate) fn ignores(number: u32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (number - 1)) != 0
}

/// Whether a process exists and is no zombie.
pub(crate) fn runs(process: u32) -> bool {
    match fs::read_to_string(format!("/proc/{process}/stat")) {
        Ok(text) => !text.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'),
        Err(_) => false,
    }
}

/// Asserts that processes end within a time.
#[track_caller]
pub(crate) fn assert_gone(processes: &[u32], within: Duration) {
    let begun = Instant::now();
    while processes.iter().any(|&process| runs(process)) {
        assert!(begun.elapsed() < within, "of {processes:?} some still run after {within:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Asserts that nothing of the launcher's job is left: no descriptor of its memory in any process, no entry of it
/// under /dev/shm. (That no process is left is asserted by those who know the processes.)
#[track_caller]
pub(crate) fn assert_nothing_left(launcher: u32) {
    let name = format!("rma-job-{launcher}");
    let holders: Vec<String> = numbers_in("/proc")
        .into_iter()
        .filter(|process| {
            let entries = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
            let mapped =
                fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default().contains(&name);
            mapped
                || entries
                    .filter_map(|entry| fs::read_link(entry.path()).ok())
                    .any(|link| names(&link, &name))
        })
        .map(state_of)
        .collect();
    assert!(holders.is_empty(), "{name} is still held by {holders:?}");
    let entries: Vec<_> =
        fs::read_dir("/dev/shm").into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    assert!(!entries.iter().any(|path| names(path, "rma")), "left in /dev/shm: {entries:?}");
}

fn names(path: &std::path::Path, name: &str) -> bool {
    path.to_string_lossy().contains(name)
}

fn numbers_in(folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The processes that a process has started, directly or not.
pub(crate) fn descendants(process: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut open = vec![process];
    while let Some(parent) = open.pop() {
        let children =
            fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
        let children: Vec<u32> = children.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        found.extend(&children);
        open.extend(&children);
    }
    found
}

fn state_of(process: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let kernel = fs::read_to_string(format!("/proc/{process}/wchan")).unwrap_or_default();
    format!("{} in {kernel}", stat.split_whitespace().take(3).collect::<Vec<_>>().join(" "))
}
