//! Entry: from a closure to ranks that run it. Never starts a process; `launch` does.
#![forbid(unsafe_code)]

use std::any::Any;
use std::ffi::OsString;
use std::fmt::Display;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind, Evidence, Result, say};
use crate::info::Policy;
use crate::job::{MemoryModel, RankContext};
use crate::launch::environment::{self, Network, Part, STATS};
use crate::liveness::{self, Act, NO_BLOCKER, Needs, WaitFor};
use crate::pgo::{self, Hub};
use crate::sys;
use crate::team::{Members, Rank, Team, create_root};
use crate::transport::shm::copier::CopyEngine;
use crate::transport::shm::copy::Engine;
use crate::transport::shm::segment::Segment;
use crate::transport::tcp::agent;
use crate::transport::tcp::door::Door;
use crate::transport::tcp::frame::Malformed;
use crate::transport::tcp::handshake::Party;
use crate::transport::tcp::link::Cut;
use crate::transport::tcp::rendezvous::{NODE_ALONE, NotJoined, Place, join};
use crate::transport::tcp::wire::{Waits, Wire};

/// Stack of a rank that is a thread: what the first thread of a process usually has. Unused parts cost nothing.
const STACK_BYTES: usize = 8 << 20;

/// A job whose ranks are threads of this process.
///
/// A `Job` owns everything that its ranks share, so any number of jobs can live in one process.
///
/// ```
/// let squares = rma::Job::new(3).spawn(|team| team.rank().0 * team.rank().0)?;
/// assert_eq!(squares, [0, 1, 4]);
/// # Ok::<(), rma::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Job {
    ranks: u32,
    limit: Option<Duration>,
    info: Policy,
    memory_model: MemoryModel,
    copy_engine: CopyEngine,
}

/// What the environment of a rank says beside its part in the job.
#[derive(Clone, Copy)]
struct Settings {
    info: Policy,
    memory_model: MemoryModel,
    copy_engine: CopyEngine,
}

impl Settings {
    fn read(get: impl Fn(&str) -> Option<OsString> + Copy) -> Result<Settings> {
        Ok(Settings {
            info: environment::info_policy(get)?,
            memory_model: environment::memory_model(get)?,
            copy_engine: environment::copy_engine(get)?,
        })
    }
}

impl Job {
    /// A job of `ranks` ranks without a time limit.
    pub fn new(ranks: u32) -> Job {
        let (memory_model, copy_engine) = (MemoryModel::default(), CopyEngine::default());
        Job { ranks, limit: None, info: Policy::default(), memory_model, copy_engine }
    }

    /// Sets the time limit of each blocking call: past it, the call ends with [`ErrorKind::Stalled`] (RMA-PROG-11).
    pub fn time_limit(self, limit: Duration) -> Job {
        Job { limit: Some(limit), ..self }
    }

    /// Sets what the job makes of info values, as `RMA_INFO` does for a job of processes: `force_info=strong` takes every
    /// [`Info`](crate::Info) as strong, `weak=transfer` and kin set the [`Schedule`](crate::Schedule) of epochs that have no
    /// hint; several stand in a list with commas.
    ///
    /// # Errors
    /// `Launch` for a text that says anything else.
    pub fn info(self, text: &str) -> Result<Job> {
        match Policy::parse(text) {
            Ok(info) => Ok(Job { info, ..self }),
            Err(why) => Err(Error::new(ErrorKind::Launch, "info of a job").note(why)),
        }
    }

    /// Sets how many copies the windows have that the runtime allocates, where they say nothing else.
    pub fn memory_model(self, memory_model: MemoryModel) -> Job {
        Job { memory_model, ..self }
    }

    /// Sets who makes longer copies in mapped memory, as `RMA_COPY_ENGINE` does for a job of processes (`mapped`, `calls` or
    /// `thread`).
    pub fn copy_engine(self, copy_engine: CopyEngine) -> Job {
        Job { copy_engine, ..self }
    }

    /// Runs `body` as every rank and returns what each returned, in the order of ranks, once all have. A rank that never
    /// returns keeps the call: a thread cannot be ended from outside.
    ///
    /// A value that `body` returns ends the rank in order, also if the value is an `Err`; see
    /// [`try_spawn`](Job::try_spawn) for bodies that can fail.
    ///
    /// # Errors
    /// `Launch` for a number of ranks that no job can have; `System` if memory or threads are short; `PeerLost` if a
    /// rank panicked, with its message; `EpochStillOpen` if a rank left something open that it dropped.
    pub fn spawn<R: Send>(&self, body: impl Fn(&Team) -> R + Sync) -> Result<Vec<R>> {
        self.start(&body, &|_| Evidence::Finished)
    }

    /// As [`spawn`](Job::spawn), for bodies that can fail: the other ranks learn of an `Err` as of a failed rank
    /// ([`Evidence::ReturnedError`]), and the caller gets every rank's result.
    ///
    /// # Errors
    /// As [`spawn`](Job::spawn); an `Err` of a rank is no error of this call.
    pub fn try_spawn<R: Send, E: Send>(
        &self,
        body: impl Fn(&Team) -> Result<R, E> + Sync,
    ) -> Result<Vec<Result<R, E>>> {
        self.start(&body, &|result: &Result<R, E>| match result {
            Ok(_) => Evidence::Finished,
            Err(_) => Evidence::ReturnedError,
        })
    }

    fn start<R: Send>(
        &self,
        body: &(dyn Fn(&Team) -> R + Sync),
        evidence_of: &(dyn Fn(&R) -> Evidence + Sync),
    ) -> Result<Vec<R>> {
        const CALL: &str = "spawn";
        let segment = Segment::create(self.ranks)?;
        create_root(&segment)?;
        // A job without this knowledge takes every thread for one of a rank.
        let threads_before: Arc<[u32]> = sys::process::own_threads().unwrap_or_default().into();
        let run_rank = |rank: u32| {
            liveness::join(&segment, rank, std::process::id());
            // The body may leave things half done when it panics, but only things of this rank and of the job,
            // which the others are told about and which end with it.
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                let context = RankContext::new(Arc::clone(&segment), Rank(rank), self.limit, None, None);
                let context = context.beside(Arc::clone(&threads_before));
                let context = context.with_memory_model(self.memory_model).with_copy_engine(self.copy_engine);
                let context = Arc::new(context.with_info_policy(self.info));
                let value = body(&Team::root(Arc::clone(&context)));
                match context.take_left_open() {
                    None => Ok(value),
                    Some(error) => Err(error),
                }
            }));
            let evidence = match &outcome {
                Ok(Ok(value)) => evidence_of(value),
                Ok(Err(_)) => Evidence::ReturnedError,
                Err(_) => Evidence::Panicked,
            };
            liveness::end(&segment, rank, evidence);
            outcome
        };
        let outcomes = thread::scope(|scope| {
            let threads: Vec<_> = (0..self.ranks)
                .map(|rank| {
                    let builder = thread::Builder::new().name(format!("rank {rank}")).stack_size(STACK_BYTES);
                    let started = builder.spawn_scoped(scope, move || run_rank(rank));
                    if started.is_err() {
                        // The others must not wait for a rank that never was.
                        liveness::end(&segment, rank, Evidence::LauncherGone);
                    }
                    started
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.map(|handle| handle.join().and_then(|outcome| outcome)))
                .collect::<Vec<_>>()
        });
        let first = liveness::first_failure(&segment);
        let mut results = Vec::with_capacity(outcomes.len());
        let mut failures = Vec::new();
        for (rank, outcome) in outcomes.into_iter().enumerate() {
            let error = match outcome {
                Ok(Ok(Ok(value))) => {
                    results.push(value);
                    continue;
                }
                Ok(Ok(Err(error))) => error,
                Ok(Err(panic)) => Error::new(ErrorKind::PeerLost, CALL)
                    .lost(Rank(rank as u32))
                    .evidence(Evidence::Panicked)
                    .note(panic_text(panic.as_ref())),
                Err(error) => Error::new(ErrorKind::System, CALL)
                    .note(format!("no thread for rank {rank} could be made: {error}")),
            };
            failures.push((rank as u32, error));
        }
        // The failure that came first explains the others.
        failures.sort_by_key(|(rank, _)| Some(*rank) != first);
        match failures.into_iter().next() {
            None => Ok(results),
            Some((_, error)) => Err(error),
        }
    }
}

/// Runs `body` as `ranks` ranks that are threads of this process: [`Job::spawn`] without a time limit.
///
/// ```
/// let sums = rma::spawn(4, |team| team.size())?;
/// assert_eq!(sums, [4, 4, 4, 4]);
/// # Ok::<(), rma::Error>(())
/// ```
///
/// # Errors
/// As [`Job::spawn`].
pub fn spawn<R: Send>(ranks: u32, body: impl Fn(&Team) -> R + Sync) -> Result<Vec<R>> {
    Job::new(ranks).spawn(body)
}

/// Enters the job that this process was started for, runs `body` as its rank (or ranks), and leaves the job.
///
/// The same program text runs in every way of being started: by `rma-run -n 4 ./prog` as one process per rank, by
/// `rma-run --transport local` as threads of one process, and alone as a job of one rank.
///
/// Leaving is collective (RMA-PROG-10): a rank whose body has returned waits until all ranks have, so that its memory
/// stays reachable. A rank that returns an error, panics or dies does not wait, and is not waited for.
///
/// ```no_run
/// fn main() -> std::process::ExitCode {
///     rma::run(|team| -> rma::Result<()> {
///         println!("rank {} of {}", team.rank(), team.size());
///         team.barrier()
///     })
/// }
/// ```
///
/// Between ranks that share no memory, `RMA_AGENT` in the environment says who serves a rank's memory while it computes:
/// `auto` or `thread`, which is the default, a thread that sleeps until something comes; `timer(10ms)` one that looks at ticks
/// (RMA-PROG-08); `polling` nobody, so that requests wait for the rank's next call (RMA-PROG-04), and a lock is an error
/// ([`ErrorKind::NeedsAgent`], RMA-PROG-07). `polling,poll_only_in_wait` is a fault for tests, with which ranks block each other.
///
/// # Errors
/// An error that `body` returns is printed on standard error with its rank; the other ranks learn of it
/// ([`Evidence::ReturnedError`], RMA-ERR-02), and the exit code is 1. After a panic it is 101, and 2 if the environment of the
/// process describes no rank of a job.
pub fn run<E: Display>(body: impl Fn(&Team) -> Result<(), E> + Sync) -> ExitCode {
    let get = |name: &str| std::env::var_os(name);
    let ((part, limit), settings) =
        match environment::read(get).and_then(|part| Ok((part, Settings::read(get)?))) {
            Ok(found) => found,
            Err(error) => return refuse(&error),
        };
    let joined = match part {
        Part::Alone => join_alone(),
        Part::Process { rank, size, file } => join_process(rank, size, file),
        Part::Wired { rank, size, network } => environment::agent(get)
            .and_then(|mode| join_wired(rank, size, &network, (limit, mode), settings.copy_engine)),
        Part::Threads { size } => {
            let Settings { info, memory_model, copy_engine } = settings;
            return run_threads(&Job { ranks: size, limit, info, memory_model, copy_engine }, &body);
        }
    };
    match joined {
        Ok(rank) => run_rank(rank, limit, settings, &body),
        Err(error) => refuse(&error),
    }
}

const STATUS_FAILED: u8 = 1;
const STATUS_NO_RANK: u8 = 2;
const STATUS_PANICKED: u8 = 101;

/// Says that this process can be no rank.
fn refuse(error: &Error) -> ExitCode {
    say(format_args!("error: {error}"));
    ExitCode::from(STATUS_NO_RANK)
}

/// A rank that has joined its job in this process.
struct Joined {
    segment: Arc<Segment>,
    rank: Rank,
    /// The process that watches this one.
    parent: Option<u32>,
    /// How ranks are reached that share no memory with this one.
    wire: Option<Arc<Wire>>,
    /// What has been registered for them before the agent began.
    hub: Option<Arc<Hub>>,
}

impl Joined {
    /// Tells the others how this rank has ended.
    fn end(&self, evidence: Evidence) {
        if let Some(wire) = &self.wire {
            wire.leave();
            wire.say_ended(evidence);
        }
        liveness::end(&self.segment, self.rank.0, evidence);
    }

    /// Ends the rank with an error. It is printed before the others learn of it, so that the cause stands above its
    /// consequences.
    fn fail(&self, error: &dyn Display) -> ExitCode {
        say(format_args!("rank {}: error: {error}", self.rank));
        self.end(Evidence::ReturnedError);
        ExitCode::from(STATUS_FAILED)
    }
}

fn join_alone() -> Result<Joined> {
    let segment = Segment::create(1)?;
    create_root(&segment)?;
    liveness::join(&segment, 0, std::process::id());
    Ok(Joined { segment, rank: Rank(0), parent: None, wire: None, hub: None })
}

const JOINING: &str = "joining the job";
/// The longest sleep of a rank that joins, before it looks at the clock.
const JOINING_SLICE: Duration = Duration::from_millis(50);

fn join_process(rank: u32, size: u32, file: i32) -> Result<Joined> {
    let refused = |note: String| Error::new(ErrorKind::Launch, JOINING).caller(Rank(rank)).note(note);
    let segment = attach(rank, size, file)?;
    let parent = sys::process::die_with_parent();
    match liveness::join(&segment, rank, std::process::id()) {
        true => Ok(Joined { segment, rank: Rank(rank), parent, wire: None, hub: None }),
        false => Err(refused(format!("rank {rank} has joined already: a process enters its job once"))),
    }
}

fn attach(rank: u32, size: u32, file: i32) -> Result<Arc<Segment>> {
    let refused = |note: String| Error::new(ErrorKind::Launch, JOINING).caller(Rank(rank)).note(note);
    let file = sys::process::inherit_job_file(file).map_err(|errno| {
        refused(format!(
            "descriptor {file} of RMA_RENDEZVOUS is not the memory of a job here ({errno}); a program that a rank \
             starts is no rank: unset the variables that begin with RMA_ for it"
        ))
    })?;
    let segment = Segment::attach(file)?;
    match segment.size() == size {
        true => Ok(segment),
        false => Err(refused(format!("RMA_SIZE is {size}, but the job has {} ranks", segment.size()))),
    }
}

/// Joins a job in which some ranks, or all, share no memory with this one.
fn join_wired(
    rank: u32,
    size: u32,
    network: &Network,
    (limit, mode): (Option<Duration>, agent::Mode),
    copy_engine: CopyEngine,
) -> Result<Joined> {
    let failed = |kind, note: String| Error::new(kind, JOINING).caller(Rank(rank)).note(note);
    let system = |error: std::io::Error| failed(ErrorKind::System, error.to_string());
    let (segment, node) = match network.node {
        Some((node, file)) => (attach(rank, size, file)?, node),
        None => {
            let segment = Segment::create(size)?;
            segment.number_from(rank);
            create_root(&segment)?;
            (segment, NODE_ALONE)
        }
    };
    // Nobody is watched by a process that only shares a network with it.
    let parent = sys::process::die_with_parent();
    let me = Party::Rank(rank);
    let secret = &network.secret;
    let door = Door::open(SocketAddr::new(network.bind, 0), secret.clone(), me, size).map_err(|error| {
        failed(ErrorKind::Launch, format!("nothing can listen at {}: {error}", network.bind))
    })?;
    let place = Place { node, address: Some(door.address().map_err(system)?) };
    let begun = Instant::now();
    let mut pause = || match limit {
        Some(limit) if limit < begun.elapsed() => {
            Err(failed(ErrorKind::Stalled, format!("{limit:?} have passed, and not all ranks have joined")))
        }
        _ => Ok(JOINING_SLICE),
    };
    let at = network.rendezvous;
    let joined = join(at, secret, rank, size, &place, &mut pause).map_err(|why| match why {
        NotJoined::Cut(Cut::Ended(error)) => error,
        NotJoined::Cut(Cut::Gone(why)) => failed(ErrorKind::Launch, format!("the rendezvous at {at}: {why}")),
        NotJoined::Refused(why) => failed(ErrorKind::Launch, why),
        NotJoined::Malformed(Malformed(why)) => {
            failed(ErrorKind::Protocol, format!("the rendezvous at {at}: {why}"))
        }
    })?;
    if !liveness::join(&segment, rank, std::process::id()) {
        let note = format!("rank {rank} has joined already: a process enters its job once");
        return Err(failed(ErrorKind::Launch, note));
    }
    let own = Arc::clone(&segment);
    let accused = Arc::clone(&segment);
    let waits = Waits {
        sight: Box::new(move || liveness::tell(&own, rank)),
        accused: Box::new(move |body| liveness::hear_accusation(&accused, body)),
    };
    let wire = Wire::new(rank, secret.clone(), joined.table, Arc::clone(&segment), joined.stream, waits);
    let wire = wire.map_err(system)?;
    let wire = Arc::new(wire);
    let hub = pgo::join(&segment, Rank(rank), &wire, Engine::choose(copy_engine)).map_err(system)?;
    for (lost, evidence) in joined.lost {
        liveness::end(&segment, lost, evidence);
    }
    let ends = Arc::clone(&segment);
    let on_lost = move |lost: u32, evidence| {
        // A rank's own end is its own to tell.
        if lost != rank && lost < size {
            liveness::end(&ends, lost, evidence);
        }
    };
    agent::start(&wire, door, joined.decoder, Box::new(on_lost), mode).map_err(system)?;
    Ok(Joined { segment, rank: Rank(rank), parent, wire: Some(wire), hub: Some(hub) })
}

fn run_rank<E: Display>(
    joined: Joined,
    limit: Option<Duration>,
    settings: Settings,
    body: &dyn Fn(&Team) -> Result<(), E>,
) -> ExitCode {
    let context =
        RankContext::new(Arc::clone(&joined.segment), joined.rank, limit, joined.parent, joined.wire.clone());
    let context = context.with_memory_model(settings.memory_model).with_copy_engine(settings.copy_engine);
    let context = Arc::new(context.with_info_policy(settings.info).with_memory_aside());
    if let Some(hub) = joined.hub.clone() {
        context.attached(|| hub);
    }
    let team = Team::root(Arc::clone(&context));
    let members = Arc::clone(team.members());
    // The body may leave things half done when it panics, but the rank ends with it.
    let outcome = catch_unwind(AssertUnwindSafe(|| body(&team)));
    say_traffic(&context);
    match outcome {
        Ok(Ok(())) => {
            drop(team);
            if let Some(error) = context.take_left_open() {
                return joined.fail(&error);
            }
            joined.end(Evidence::Finished);
            match finalize(&context, &members) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => joined.fail(&error),
            }
        }
        Ok(Err(error)) => joined.fail(&error),
        Err(_) => {
            joined.end(Evidence::Panicked);
            ExitCode::from(STATUS_PANICKED)
        }
    }
}

/// Says what the rank has sent, received and waited for, if that was asked for.
fn say_traffic(context: &RankContext) {
    if std::env::var_os(STATS).is_some_and(|value| value == "1") {
        say(format_args!("rank {}: {}", context.job_rank(), context.traffic()));
    }
}

/// Waits until every rank has ended, in whatever way: until then others may address this rank's memory. The time limit of
/// blocking calls does not cut that short, as nothing is wrong with ranks that work for longer.
fn finalize(context: &RankContext, members: &Members) -> Result<()> {
    let segment = context.segment();
    context.set_limit(None);
    let what = WaitFor {
        call: "finalize",
        window: None,
        team: members,
        // A rank that ends badly ends the wait for it, but is nothing that this rank still needs.
        needs: Needs::AnyOf(&[]),
        act: Act::Any,
        detail: None,
        blocker: NO_BLOCKER,
    };
    context.wait(&segment.header().departures, what, || {
        (liveness::ended(segment) == segment.size()).then_some(())
    })
}

fn run_threads<E: Display>(job: &Job, body: &(dyn Fn(&Team) -> Result<(), E> + Sync)) -> ExitCode {
    let outcome = job.try_spawn(|team| {
        let result = body(team);
        say_traffic(team.context());
        result.map_err(|error| say(format_args!("rank {}: error: {error}", team.rank())))
    });
    match outcome {
        Ok(ranks) if ranks.iter().all(Result::is_ok) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(STATUS_FAILED),
        Err(error) => {
            say(format_args!("error: {error}"));
            ExitCode::from(match error.kind() {
                ErrorKind::PeerLost => STATUS_PANICKED,
                ErrorKind::Launch => STATUS_NO_RANK,
                _ => STATUS_FAILED,
            })
        }
    }
}

/// The message of a panic, as far as it is text.
fn panic_text(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (None, Some(text)) => text.clone(),
        (None, None) => "the panic carries no text".to_owned(),
    }
}
