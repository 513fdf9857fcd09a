//! The launcher's main loop: starts ranks, learns how they end, tells the others, and ends what is left. Never reads
//! or writes what ranks share, except for who has ended.
//!
//! When a rank fails, its evidence goes into the segment and everybody is woken, so that the survivors' calls return
//! typed errors. What still runs after a grace time is asked to end, and after another one ended.

use std::io::{self, IsTerminal};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal};

use super::environment::{
    self, BIND, LOOPBACK, NODE, RANK, RENDEZVOUS, SECRET, SIZE, STATS, TIMEOUT, TRANSPORT,
};
use super::output::{Output, Over, forward_input};
use super::{Launch, Stats, Tags, Transport};
use crate::error::{Error, ErrorKind, Evidence, Result, say};
use crate::liveness;
use crate::sys::process::prepare_rank;
use crate::sys::signal::{Signals, is_ignored};
use crate::team::create_root;
use crate::transport::shm::layout::RANKS_MAX;
use crate::transport::shm::segment::Segment;
use crate::transport::tcp::rendezvous::Rendezvous;

/// What survivors of a failed rank get to report their own errors.
const GRACE: Duration = Duration::from_secs(2);
/// What a rank gets between being asked to end and being ended.
const TERM_GRACE: Duration = Duration::from_secs(2);
/// How often the launcher looks for signals while the rest of the output is written.
const OUTPUT_SLICE: Duration = Duration::from_millis(20);
/// Descriptors per rank: two pipes, the process, its memory and its connection, a stranger in its place, and two more while
/// it is started.
const DESCRIPTORS_PER_RANK: u64 = 8;
/// Descriptors of the launcher itself, and of strangers.
const DESCRIPTORS_BASE: u64 = 128;

/// Exit status for a wrong call, for a launcher that could not work, and for a program that is not there or cannot
/// be run, as shells have them.
const STATUS_USAGE: u8 = 2;
const STATUS_LAUNCHER: u8 = 1;
const STATUS_NOT_FOUND: u8 = 127;
const STATUS_NOT_EXECUTABLE: u8 = 126;

/// Signals that are passed on to all ranks, and after which the job is expected to end.
const ENDING_SIGNALS: [i32; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];
/// Signals that are passed on and mean what the program makes of them.
const PASSED_SIGNALS: [i32; 2] = [libc::SIGUSR1, libc::SIGUSR2];

/// Starts the ranks of a job, forwards their output, and waits for their end.
///
/// Returns the launcher's exit status: 0 if every rank exited with 0, otherwise the status of the rank that failed
/// first, or 128 and the signal that killed it. Says on standard error what happened and what can be done.
pub fn launch(launch: &Launch) -> u8 {
    match Launcher::start(launch) {
        Ok(launcher) => launcher.supervise(),
        Err(refusal) => {
            say(format_args!("rma-run: {}", refusal.message));
            refusal.status
        }
    }
}

/// Why a job did not start.
struct Refusal {
    status: u8,
    message: String,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal { status: STATUS_LAUNCHER, message: error.to_string() }
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        Refusal {
            status: STATUS_LAUNCHER,
            message: format!("the system refused what the launcher needs: {error}"),
        }
    }
}

/// What the launcher has of what ranks share.
enum Ground {
    /// Nothing: the ranks are threads of one process, which has a segment of its own.
    Threads,
    /// The segment of all ranks.
    Segment(Arc<Segment>),
    /// The rendezvous, and the segment of each node of so many ranks.
    Nodes { rendezvous: Rendezvous, segments: Vec<Arc<Segment>>, ranks_per_node: u32 },
}

impl Ground {
    fn make(launch: &Launch) -> Result<Ground> {
        let segment = |node: u32| {
            let segment = Segment::create(launch.ranks)?;
            segment.number_from(node);
            create_root(&segment)?;
            Ok(segment)
        };
        let ranks_per_node = match (launch.transport, launch.ranks_per_node) {
            (Transport::Local, _) => return Ok(Ground::Threads),
            (Transport::Shm, _) | (Transport::Auto, None) => return segment(0).map(Ground::Segment),
            (Transport::Auto, Some(ranks)) if launch.ranks <= ranks => {
                return segment(0).map(Ground::Segment);
            }
            (Transport::Tcp | Transport::Auto, ranks) => ranks.unwrap_or(1),
        };
        let address = SocketAddr::new(launch.bind.unwrap_or(LOOPBACK), 0);
        let rendezvous = Rendezvous::open(address, launch.ranks).map_err(|error| {
            let note = format!("nothing can listen at {}: {error}", address.ip());
            Error::new(ErrorKind::Launch, "launch").note(note)
        })?;
        let segments = match ranks_per_node {
            // A rank that shares memory with nobody makes its own.
            1 => Vec::new(),
            ranks => (0..launch.ranks.div_ceil(ranks)).map(segment).collect::<Result<_>>()?,
        };
        Ok(Ground::Nodes { rendezvous, segments, ranks_per_node })
    }

    /// Says in the environment of a rank how it reaches the others, and gives the memory file that it is to inherit.
    fn describe(&self, command: &mut Command, rank: u32, bind: Option<IpAddr>) -> Option<BorrowedFd<'_>> {
        match self {
            Ground::Threads => {
                command.env(TRANSPORT, "local");
                None
            }
            Ground::Segment(segment) => {
                command.env(RANK, rank.to_string());
                command.env(RENDEZVOUS, format!("memfd:{}", segment.file().as_raw_fd()));
                Some(segment.file())
            }
            Ground::Nodes { rendezvous, segments, ranks_per_node } => {
                let node = rank / ranks_per_node;
                let segment = segments.get(node as usize);
                let memory =
                    segment.map_or(String::new(), |segment| format!("memfd:{}+", segment.file().as_raw_fd()));
                command.env(RANK, rank.to_string());
                command.env(RENDEZVOUS, format!("{memory}tcp:{}", rendezvous.address()));
                command.env(SECRET, rendezvous.secret().to_hex());
                if segment.is_some() {
                    command.env(NODE, node.to_string());
                }
                if let Some(bind) = bind {
                    command.env(BIND, bind.to_string());
                }
                segment.map(|segment| segment.file())
            }
        }
    }

    /// Tells the other ranks how one has ended.
    fn end(&self, rank: u32, evidence: Evidence) {
        match self {
            Ground::Threads => {}
            Ground::Segment(segment) => liveness::end(segment, rank, evidence),
            Ground::Nodes { rendezvous, .. } => rendezvous.end(rank, evidence),
        }
    }

    fn first_failure(&self) -> Option<u32> {
        match self {
            Ground::Threads => None,
            Ground::Segment(segment) => liveness::first_failure(segment),
            Ground::Nodes { rendezvous, .. } => rendezvous.first_failure(),
        }
    }
}

struct Launcher {
    signals: Signals,
    ground: Ground,
    processes: Vec<Process>,
    /// Told when all output has been written, or why some of it is lost.
    output: mpsc::Receiver<io::Result<()>>,
    over: Over,
}

/// One started process: a rank, or all ranks of a local job.
struct Process {
    child: Child,
    watch: OwnedFd,
    status: Option<ExitStatus>,
}

impl Process {
    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends a signal to the process and to what it has started in its group.
    fn signal(&self, signal: Signal) {
        if self.status.is_none() {
            let group = rustix::process::kill_process_group(self.pid(), signal);
            // A program that has left its group is reached by itself. If that fails too, it has ended.
            if group.is_err() || signal == Signal::KILL {
                let _ = rustix::process::pidfd_send_signal(&self.watch, signal);
            }
        }
    }
}

/// What the launcher waits for.
#[derive(Clone, Copy)]
enum Phase {
    /// For the ranks to do their work.
    Running,
    /// For survivors to report, until the deadline.
    Grace(Instant),
    /// For ranks that were asked to end, until the deadline.
    Terminating(Instant),
    /// For ranks that were killed.
    Killed,
}

impl Launcher {
    fn start(launch: &Launch) -> Result<Launcher, Refusal> {
        if launch.ranks == 0 || RANKS_MAX < launch.ranks {
            let message = format!("-n {}: a job has 1 to {RANKS_MAX} ranks", launch.ranks);
            return Err(Refusal { status: STATUS_USAGE, message });
        }
        if (launch.transport, launch.tags) == (Transport::Local, Tags::On) {
            let message = "--tag-output needs a process per rank, and with --transport local there is one for all; \
                           leave one of the two away";
            return Err(Refusal { status: STATUS_USAGE, message: message.to_owned() });
        }
        if let (Transport::Local | Transport::Shm, Some(_)) = (launch.transport, launch.ranks_per_node) {
            let message = "--ranks-per-node makes nodes that are connected by TCP, and this transport has one; \
                           use it with --transport auto or tcp";
            return Err(Refusal { status: STATUS_USAGE, message: message.to_owned() });
        }
        if launch.bind.is_some() && launch.ranks_per_node.is_none() && launch.transport != Transport::Tcp {
            let message =
                "--bind is for ranks that are connected by TCP: add --transport tcp or --ranks-per-node";
            return Err(Refusal { status: STATUS_USAGE, message: message.to_owned() });
        }
        let processes = match launch.transport {
            Transport::Local => 1,
            Transport::Auto | Transport::Shm | Transport::Tcp => launch.ranks,
        };
        raise_descriptor_limit(processes)?;
        let mut blocked: Vec<i32> =
            ENDING_SIGNALS.into_iter().chain(PASSED_SIGNALS).filter(|&number| !is_ignored(number)).collect();
        // A launcher in the background must not be stopped by reading the terminal for rank 0.
        blocked.push(libc::SIGTTIN);
        let signals = Signals::block(&blocked)?;
        let ground = Ground::make(launch)?;
        let (done, output) = mpsc::channel();
        let mut pipes = Output::new()?;
        let mut launcher = Launcher { signals, ground, processes: Vec::new(), output, over: pipes.over() };
        for rank in 0..processes {
            match launcher.start_process(launch, rank, &mut pipes) {
                Ok(()) => {}
                Err(refusal) => {
                    launcher.kill_all();
                    return Err(refusal);
                }
            }
        }
        thread::Builder::new().name("output".to_owned()).spawn(move || {
            // The receiver is gone if the launcher has given up waiting.
            let _ = done.send(pipes.forward());
        })?;
        Ok(launcher)
    }

    fn start_process(&mut self, launch: &Launch, rank: u32, pipes: &mut Output) -> Result<(), Refusal> {
        let mut command = Command::new(&launch.program);
        command.args(&launch.arguments);
        for name in environment::ALL {
            command.env_remove(name);
        }
        command.env(SIZE, launch.ranks.to_string());
        if let Some(limit) = launch.limit {
            command.env(TIMEOUT, limit.as_secs_f64().to_string());
        }
        if launch.stats == Stats::On {
            command.env(STATS, "1");
        }
        let memory = self.ground.describe(&mut command, rank, launch.bind);
        let terminal = io::stdin().is_terminal();
        command.stdin(match rank {
            // A group of its own may not read the terminal, so its input goes through the launcher.
            0 if terminal => Stdio::piped(),
            0 => Stdio::inherit(),
            _ => Stdio::null(),
        });
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        prepare_rank(&mut command, memory, std::process::id());
        let mut child = command.spawn().map_err(|error| cannot_start(launch, &error))?;
        let pid = Pid::from_child(&child);
        pipes.add(rank, launch.tags, child.stdout.take(), child.stderr.take());
        if let Some(input) = child.stdin.take() {
            thread::Builder::new().name("input".to_owned()).spawn(move || forward_input(input))?;
        }
        let watch = rustix::process::pidfd_open(pid, PidfdFlags::empty()).map_err(io::Error::from);
        let watch = match watch {
            Ok(watch) => watch,
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(error.into());
            }
        };
        self.processes.push(Process { child, watch, status: None });
        Ok(())
    }

    /// Waits for all ranks and returns the exit status of the job.
    fn supervise(mut self) -> u8 {
        let mut phase = Phase::Running;
        let mut first_failed = None;
        let mut ending_signal = None;
        let mut overstayed = Vec::new();
        while self.processes.iter().any(|process| process.status.is_none()) {
            let deadline = match phase {
                Phase::Running | Phase::Killed => None,
                Phase::Grace(deadline) | Phase::Terminating(deadline) => Some(deadline),
            };
            let ended = self.wait_for_news(deadline);
            for index in ended {
                let failed = self.bury(index);
                if failed && first_failed.is_none() {
                    first_failed = Some(index);
                }
            }
            while let Some(number) = self.signals.next() {
                let Some(signal) = Signal::from_named_raw(number) else { continue };
                if !ENDING_SIGNALS.contains(&number) && !PASSED_SIGNALS.contains(&number) {
                    continue;
                }
                let again = ENDING_SIGNALS.contains(&number) && ending_signal.is_some();
                let signal = if again { Signal::KILL } else { signal };
                self.processes.iter().for_each(|process| process.signal(signal));
                if ENDING_SIGNALS.contains(&number) {
                    ending_signal.get_or_insert(number);
                    phase = match again {
                        true => Phase::Killed,
                        false => Phase::Terminating(Instant::now() + TERM_GRACE),
                    };
                }
            }
            let now = Instant::now();
            phase = match phase {
                Phase::Running if first_failed.is_some() => Phase::Grace(now + GRACE),
                Phase::Grace(deadline) if deadline <= now => {
                    overstayed = self.alive();
                    // A stopped process takes the request only when it runs again.
                    self.processes.iter().for_each(|process| process.signal(Signal::TERM));
                    self.processes.iter().for_each(|process| process.signal(Signal::CONT));
                    Phase::Terminating(now + TERM_GRACE)
                }
                Phase::Terminating(deadline) if deadline <= now => {
                    self.processes.iter().for_each(|process| process.signal(Signal::KILL));
                    Phase::Killed
                }
                phase => phase,
            };
        }
        self.over.tell();
        // The reader of the output may be slow, so this can take any time; a signal cuts it short.
        let written = loop {
            match self.output.recv_timeout(OUTPUT_SLICE) {
                Ok(written) => break written,
                Err(mpsc::RecvTimeoutError::Disconnected) => break Ok(()),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
            match self.signals.next() {
                Some(number) if ENDING_SIGNALS.contains(&number) => {
                    ending_signal.get_or_insert(number);
                    break Ok(());
                }
                _ => {}
            }
        };
        let status = self.conclude(first_failed, ending_signal, &overstayed);
        match written {
            Ok(()) => status,
            Err(error) => {
                say(format_args!("rma-run: output of the ranks is lost: {error}"));
                if status == 0 { STATUS_LAUNCHER } else { status }
            }
        }
    }

    /// Waits for a signal, the end of a process or the deadline; gives the processes that have ended.
    fn wait_for_news(&self, deadline: Option<Instant>) -> Vec<usize> {
        let alive = self.alive();
        let mut watched = vec![PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN)];
        watched.extend(
            alive
                .iter()
                .map(|&index| PollFd::from_borrowed_fd(self.processes[index].watch.as_fd(), PollFlags::IN)),
        );
        let timeout = deadline.map(|deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() }
        });
        match poll(&mut watched, timeout.as_ref()) {
            Ok(0) | Err(_) => Vec::new(),
            Ok(_) => {
                let ready = watched[1..].iter().map(|watch| !watch.revents().is_empty());
                alive.into_iter().zip(ready).filter_map(|(index, ready)| ready.then_some(index)).collect()
            }
        }
    }

    fn alive(&self) -> Vec<usize> {
        (0..self.processes.len()).filter(|&index| self.processes[index].status.is_none()).collect()
    }

    /// Takes the status of a process that has ended, tells the other ranks, and says whether it failed.
    fn bury(&mut self, index: usize) -> bool {
        let process = &mut self.processes[index];
        // What the rank has left running in its group ends with it. Before the status is taken the process id, and
        // so the group id, cannot be anybody else's.
        let _ = rustix::process::kill_process_group(process.pid(), Signal::KILL);
        // The watch has said that the process is over, so this does not block.
        let status = match process.child.wait() {
            Ok(status) => status,
            Err(_) => ExitStatus::from_raw(libc::SIGKILL),
        };
        process.status = Some(status);
        let evidence = match (status.code(), status.signal()) {
            (Some(code), _) => Evidence::ProcessExited(code),
            (None, Some(signal)) => Evidence::Signalled(signal),
            (None, None) => Evidence::ProcessExited(-1),
        };
        self.ground.end(index as u32, evidence);
        !status.success()
    }

    fn kill_all(&mut self) {
        self.processes.iter().for_each(|process| process.signal(Signal::KILL));
        for process in &mut self.processes {
            let _ = process.child.wait();
        }
    }

    /// Says what went wrong, and gives the exit status of the job.
    fn conclude(&self, first_failed: Option<usize>, ending_signal: Option<i32>, overstayed: &[usize]) -> u8 {
        for index in overstayed {
            say(format_args!("rma-run: {} did not end by itself and was ended", self.name(*index)));
        }
        // A rank that noted its own failure may be reaped after one that failed because of it.
        let noted = self.ground.first_failure();
        let noted = noted.map(|rank| rank as usize).filter(|&index| !self.status(index).success());
        let cause = match (ending_signal, noted.or(first_failed)) {
            (Some(number), _) => {
                say(format_args!("rma-run: the job was ended by signal {number} ({})", signal_name(number)));
                return 128_u8.saturating_add(number as u8);
            }
            (None, None) => return 0,
            (None, Some(index)) => index,
        };
        let status = self.status(cause);
        let name = self.name(cause);
        match (status.code(), status.signal()) {
            (_, Some(number)) => {
                let advice = match number {
                    libc::SIGKILL => "if nobody sent it, the machine was out of memory: see the kernel's log",
                    libc::SIGSEGV | libc::SIGBUS | libc::SIGILL | libc::SIGFPE => {
                        "look for unsafe code or a stack that is too small: run the program under a debugger"
                    }
                    libc::SIGABRT => "the program gave itself up; its own message, if any, is above",
                    _ => "find out who sent it",
                };
                let signal = signal_name(number);
                say(format_args!(
                    "rma-run: {name} was killed by signal {number} ({signal}) and the job has ended; {advice}"
                ));
                128_u8.saturating_add(number as u8)
            }
            (Some(code), None) => {
                say(format_args!(
                    "rma-run: {name} exited with status {code} and the job has ended; its own message is above"
                ));
                u8::try_from(code).unwrap_or(STATUS_LAUNCHER)
            }
            (None, None) => STATUS_LAUNCHER,
        }
    }

    fn status(&self, index: usize) -> ExitStatus {
        self.processes[index].status.unwrap_or_default()
    }

    fn name(&self, index: usize) -> String {
        let process = self.processes[index].child.id();
        match self.ground {
            Ground::Segment(_) | Ground::Nodes { .. } => format!("rank {index} (process {process})"),
            Ground::Threads => format!("the process of all ranks ({process})"),
        }
    }
}

fn cannot_start(launch: &Launch, error: &io::Error) -> Refusal {
    let program = launch.program.to_string_lossy();
    let (status, advice) = match error.kind() {
        io::ErrorKind::NotFound => {
            (STATUS_NOT_FOUND, "give a path (./prog) or the name of a program on PATH")
        }
        io::ErrorKind::PermissionDenied => {
            (STATUS_NOT_EXECUTABLE, "make the file executable, or name another one")
        }
        io::ErrorKind::WouldBlock => (STATUS_LAUNCHER, "raise the limit on processes, or use fewer ranks"),
        _ => (STATUS_NOT_EXECUTABLE, "check that the file is a program for this machine"),
    };
    Refusal { status, message: format!("cannot start '{program}': {error}; {advice}") }
}

/// Makes room for the pipes of all ranks.
fn raise_descriptor_limit(processes: u32) -> Result<(), Refusal> {
    let wanted = DESCRIPTORS_BASE + DESCRIPTORS_PER_RANK * u64::from(processes);
    let limit = rustix::process::getrlimit(Resource::Nofile);
    match (limit.current, limit.maximum) {
        (Some(current), maximum) if current < wanted => {
            let raised =
                Rlimit { current: Some(maximum.map_or(wanted, |maximum| wanted.min(maximum))), maximum };
            rustix::process::setrlimit(Resource::Nofile, raised).map_err(io::Error::from)?;
            match maximum {
                Some(maximum) if maximum < wanted => {
                    let message = format!(
                        "{processes} ranks need {wanted} open files and the limit is {maximum}: raise it (ulimit -n)"
                    );
                    Err(Error::new(ErrorKind::Launch, "launch").note(message).into())
                }
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

fn signal_name(number: i32) -> &'static str {
    match number {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        _ => "a signal without a common name",
    }
}
