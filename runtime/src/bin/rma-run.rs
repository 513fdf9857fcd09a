//! The launcher's command line. Never does more than parse it.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::net::IpAddr;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use rma::launch::{Launch, RANKS_MAX, Stats, Tags, Transport, launch, parse_bind, parse_seconds};

/// Starts a program as the ranks of a job, forwards its output, and ends the whole job when a rank fails.
///
/// The exit status is 0 if every rank exits with 0; otherwise it is the status of the rank that failed first, or 128
/// plus the number of the signal that killed it. A wrong call exits with 2, a program that is not there with 127.
#[derive(Parser)]
#[command(name = "rma-run", version, max_term_width = 100)]
struct Arguments {
    /// Number of ranks
    #[arg(short = 'n', long = "ranks", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(RANKS_MAX)))]
    ranks: u32,

    /// Time limit of each blocking call, in seconds; past it the call ends with an error that says who waits for whom
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    timeout: Option<Duration>,

    /// Begin each line of output with the rank that wrote it, as `[3]`
    #[arg(long)]
    tag_output: bool,

    /// Say at the end of each rank, on standard error, what it has sent and received over connections and how long it has slept
    #[arg(long)]
    stats: bool,

    /// How ranks reach each other
    #[arg(long, value_name = "TRANSPORT", value_enum, default_value_t = TransportName::Auto)]
    transport: TransportName,

    /// Ranks that share memory, as on one machine; those of different nodes are connected by TCP
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=i64::from(RANKS_MAX)))]
    ranks_per_node: Option<u32>,

    /// Address of this machine that ranks listen at when they are connected by TCP; without it, they are reached from this
    /// machine only
    #[arg(long, value_name = "ADDRESS", value_parser = parse_bind)]
    bind: Option<IpAddr>,

    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    program: Vec<OsString>,
}

#[derive(Clone, Copy, ValueEnum)]
enum TransportName {
    /// What suits the place of the ranks
    Auto,
    /// Threads of one process
    Local,
    /// Processes with shared memory
    Shm,
    /// Processes that are connected by TCP
    Tcp,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut words = arguments.program.into_iter();
    let Some(program) = words.next() else { return ExitCode::from(2) };
    let status = launch(&Launch {
        ranks: arguments.ranks,
        limit: arguments.timeout,
        tags: if arguments.tag_output { Tags::On } else { Tags::Off },
        stats: if arguments.stats { Stats::On } else { Stats::Off },
        transport: match arguments.transport {
            TransportName::Auto => Transport::Auto,
            TransportName::Local => Transport::Local,
            TransportName::Shm => Transport::Shm,
            TransportName::Tcp => Transport::Tcp,
        },
        ranks_per_node: arguments.ranks_per_node,
        bind: arguments.bind,
        program,
        arguments: words.collect(),
    });
    ExitCode::from(status)
}
