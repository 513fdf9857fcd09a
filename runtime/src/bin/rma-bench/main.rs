//! Measures the runtime: the metrics of `tests/peers/mpi_rma_bench.c`, under the same names, in loops of the same shape,
//! printed in the same columns, so that a script can put ours and the peers' into one table.
//!
//! One line per metric: `metric<TAB>bytes<TAB>value<TAB>unit`. Before the metric stands the kind of window, and `tcp.` before
//! that where ranks are connected. With 2 ranks all metrics; rank 0 is the origin and rank 1
//! the target, which waits in a barrier unless the metric says otherwise. With more ranks the collective ones only.
//!
//! Never compares with anything: `tests/peers/table.sh` does.
#![forbid(unsafe_code)]

mod offers;
mod report;
mod synchronization;
mod timing;
mod transfers;

use std::process::ExitCode;
use std::str::FromStr;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use rma::{Rank, Result, Team, Window};

use report::Failure;
use timing::Bench;

/// Bytes that every rank exposes.
const REGION_BYTES: usize = 4 << 20;
/// The same in elements of the window that most metrics use.
const REGION_WORDS: usize = REGION_BYTES / size_of::<u64>();
/// How long ranks keep their cores busy before anything is measured.
const SPREADING: Duration = Duration::from_millis(100);
/// The buffer at the origin begins at a page, like the peers'.
const PAGE_BYTES: usize = 4096;

/// Measures one-sided communication between the ranks of a job: start it by `rma-run -n 2 rma-bench`.
///
/// Prints one line per metric: name, bytes, value, unit, separated by tabs. With 2 ranks it prints everything, with more
/// ranks what all of them do together.
#[derive(Parser)]
#[command(name = "rma-bench", version, max_term_width = 100)]
struct Arguments {
    /// Only these groups of metrics
    #[arg(long, value_name = "GROUPS", value_enum, value_delimiter = ',')]
    only: Vec<Group>,

    /// Kinds of windows: in memory that the runtime allocates, or that the caller owns
    #[arg(long, value_name = "KINDS", value_enum, value_delimiter = ',', default_value = "alloc")]
    kinds: Vec<Kind>,

    /// Multiplies the numbers of iterations: a number, or `small` for a run that only shows that everything works
    #[arg(long, value_name = "FACTOR", default_value = "1")]
    scale: Scale,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Group {
    /// Creation of a window
    Setup,
    /// A barrier
    Barrier,
    /// One transfer at a time
    Lat,
    /// Many large transfers at a time
    Bw,
    /// Many small transfers at a time
    Rate,
    /// Accumulate
    Acc,
    /// Fetch and add
    Atomic,
    /// Compare and swap
    Cas,
    /// Post, start, complete, wait
    Pscw,
    /// Put, get, offer
    Pgo,
    /// Fence
    Fence,
    /// A lock that all ranks want
    Lock,
    /// A target that computes
    Progress,
}

impl Group {
    /// Whether it is measured between two ranks only.
    fn is_of_pairs(self) -> bool {
        match self {
            Group::Lat | Group::Bw | Group::Rate | Group::Acc | Group::Atomic | Group::Cas => true,
            Group::Pscw | Group::Progress => true,
            Group::Setup | Group::Barrier | Group::Pgo | Group::Fence | Group::Lock => false,
        }
    }
}

/// Whose memory a window is made over. The name is the prefix of the metrics.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// The runtime's
    Alloc,
    /// The caller's
    Create,
}

impl Kind {
    /// Rows of ranks that are connected stand beside those of ranks that share memory, so their names say it.
    fn prefix(self, connected: bool) -> &'static str {
        match (self, connected) {
            (Kind::Alloc, false) => "alloc",
            (Kind::Create, false) => "create",
            (Kind::Alloc, true) => "tcp.alloc",
            (Kind::Create, true) => "tcp.create",
        }
    }

    /// What the caller brings to a window of this kind, with its pages.
    fn memory<T: rma::Basic>(self) -> Vec<T> {
        match self {
            Kind::Alloc => Vec::new(),
            Kind::Create => {
                let mut memory = vec![T::default(); REGION_BYTES / size_of::<T>()];
                // As the peers' program does. The system gives zeroed memory its pages only now.
                std::hint::black_box(&mut memory).fill(T::default());
                memory
            }
        }
    }

    /// Makes a window of this kind over what its caller has brought. The only place that knows how.
    fn window_over<T: rma::Basic>(self, team: &Team, memory: Vec<T>) -> Result<Window<T>, Failure> {
        match self {
            Kind::Alloc => Ok(Window::allocate(team, REGION_BYTES / size_of::<T>())?),
            Kind::Create => Ok(Window::create(team, memory).map_err(rma::Error::from)?),
        }
    }

    fn window<T: rma::Basic>(self, team: &Team) -> Result<Window<T>, Failure> {
        self.window_over(team, self.memory())
    }
}

/// What numbers of iterations are multiplied with.
#[derive(Clone, Copy)]
struct Scale(f64);

/// As few iterations as the peers' program allows, in most metrics.
const SCALE_SMALL: f64 = 0.001;
/// More would only be a mistake in typing.
const SCALE_MAX: f64 = 1000.0;

impl FromStr for Scale {
    type Err = String;

    fn from_str(text: &str) -> Result<Scale, String> {
        match (text, text.parse::<f64>()) {
            ("small", _) => Ok(Scale(SCALE_SMALL)),
            (_, Ok(factor)) if 0.0 < factor && factor <= SCALE_MAX => Ok(Scale(factor)),
            _ => Err(format!("give `small` or a number above 0, at most {SCALE_MAX}")),
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    rma::run(|team| run(&arguments, team))
}

/// Windows that come and go, while there is one: what each costs once the runtime has memory for it.
fn setup_again(bench: &Bench<'_>, kind: Kind) -> Result<(), Failure> {
    const WINDOWS: usize = 21;
    let mut times = Vec::with_capacity(WINDOWS);
    for _ in 0..=WINDOWS {
        let memory = kind.memory::<u64>();
        bench.team.barrier()?;
        let begun = Instant::now();
        let mut window = kind.window_over::<u64>(bench.team, memory)?;
        times.push(begun.elapsed().as_secs_f64() * 1e6);
        // Whoever uses a window leaves its pages full.
        window.local_mut()?.fill(1);
        window.free()?;
    }
    // The first one had no predecessor.
    times.remove(0);
    times.sort_by(f64::total_cmp);
    bench.emit("win_setup_again_median", REGION_BYTES, times[WINDOWS / 2], "us");
    Ok(())
}

fn run(arguments: &Arguments, team: &Team) -> Result<(), Failure> {
    if team.size() < 2 {
        return Err(Failure::few_ranks());
    }
    let pair = team.size() == 2;
    if !pair && !arguments.only.is_empty() && arguments.only.iter().all(|group| group.is_of_pairs()) {
        return Err(Failure::many_ranks(team.size()));
    }
    let wants = |group: Group| {
        (pair || !group.is_of_pairs()) && (arguments.only.is_empty() || arguments.only.contains(&group))
    };
    // The peers' initialisation takes long enough for the system to spread the ranks over the cores, and ends with all of
    // them there. Ranks that begin to talk before they are spread give each other the core by turns, and stay.
    let begun = Instant::now();
    while begun.elapsed() < SPREADING {
        std::hint::spin_loop();
    }
    team.barrier()?;
    // One page more than is used, so that what is used begins at one.
    let mut buffer = vec![1_u64; REGION_WORDS + PAGE_BYTES / size_of::<u64>()];
    let skipped = buffer.as_ptr().align_offset(PAGE_BYTES);
    let origin = &mut buffer[skipped..skipped + REGION_WORDS];
    let connected = !team.shares_memory(Rank((team.rank().0 + 1) % team.size()))?;
    for &kind in &arguments.kinds {
        let bench = Bench::new(team, kind.prefix(connected), arguments.scale.0);
        let memory = kind.memory::<u64>();
        // What a rank did before is no part of the creation of another's window.
        team.barrier()?;
        let begun = Instant::now();
        let mut window = kind.window_over::<u64>(team, memory)?;
        if wants(Group::Setup) {
            bench.emit("win_setup", REGION_BYTES, begun.elapsed().as_secs_f64() * 1e6, "us");
            setup_again(&bench, kind)?;
        }
        window.local_mut()?.fill(0);
        team.barrier()?;
        if wants(Group::Barrier) && kind == Kind::Alloc {
            synchronization::barrier(&bench)?;
        }
        if wants(Group::Lat) {
            transfers::latency(&bench, &window, origin)?;
        }
        if wants(Group::Bw) {
            transfers::bandwidth(&bench, &window, origin)?;
        }
        if wants(Group::Rate) {
            transfers::rate(&bench, &window, origin)?;
        }
        if wants(Group::Acc) {
            transfers::accumulate(&bench, kind.window(team)?)?;
        }
        if wants(Group::Atomic) {
            transfers::fetch_add(&bench, kind.window(team)?)?;
        }
        if wants(Group::Cas) {
            transfers::compare_swap(&bench, kind.window(team)?)?;
        }
        if wants(Group::Pscw) {
            synchronization::post_start_complete_wait(&bench, &mut window, origin)?;
        }
        if wants(Group::Pgo) && kind == Kind::Alloc {
            offers::exchange(&bench, &mut window, origin)?;
        }
        if wants(Group::Fence) {
            synchronization::fence(&bench, &mut window, origin)?;
        }
        if wants(Group::Lock) {
            synchronization::contended_lock(&bench, &window)?;
        }
        if wants(Group::Progress) {
            synchronization::computing_target(&bench, &window)?;
        }
        window.free()?;
    }
    Ok(())
}
