//! The command line: arguments in, exit status out. Never computes anything itself.
#![forbid(unsafe_code)]

mod front;
mod launch;
mod toolchain;
mod verify;

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use rma_dsl::Settings;
use rma_dsl::back;
use rma_dsl::back::rust::prelude::space::Cut;
use rma_dsl::ir::{Decompose, Epoch, Overlap, Setting};

use rma_dsl::schedule::{BLOCK_MAX as BLOCK_MAX_U64, EPOCHS};

use front::Loaded;
use launch::Job;
use toolchain::{Origin, Toolchain};

/// Stencil programs that run in parallel
///
/// Exit status: 0 when all is well or there are only warnings; 1 for errors in the program, unknown parameters and
/// files that cannot be read; 2 for a wrong command line. A run that fails exits with the status of the failed rank.
#[derive(Parser)]
#[command(name = "rma-dsl", version, max_term_width = 100)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Look for mistakes, and list the program's parameters
    Check {
        #[command(flatten)]
        input: Input,
    },
    /// Write what a program becomes
    Compile {
        #[command(flatten)]
        input: Input,
        /// What to write
        #[arg(long, value_enum, default_value_t = Emit::Rust)]
        emit: Emit,
        /// Where to write it; standard output if not given
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Build a program and run it
    Run(Box<Run>),
}

#[derive(Args)]
struct Input {
    /// The program
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Set a parameter
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = parse_setting)]
    set: Vec<(String, String)>,
}

#[derive(Args)]
#[command(disable_help_flag = true)]
struct Run {
    /// The program
    #[arg(value_name = "FILE", required_unless_present = "help")]
    file: Option<PathBuf>,
    /// Number of ranks
    #[arg(short = 'n', long = "ranks", value_name = "RANKS", default_value_t = 1, value_parser = parse_ranks)]
    ranks: u32,
    /// Set a parameter
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = parse_setting)]
    set: Vec<(String, String)>,
    /// How the grids are cut: blocks, rows, or parts per axis such as 2x2
    #[arg(long, value_name = "CUT", value_parser = parse_cut)]
    decompose: Option<String>,
    /// How halos travel, such as fence or 'pscw(weak)'
    #[arg(long, value_name = "SCHEDULE", value_parser = parse_epoch)]
    epoch: Option<Epoch>,
    /// Whether the core is computed while halos travel: core or none
    #[arg(long, value_name = "HOW", value_parser = parse_overlap)]
    overlap: Option<Overlap>,
    /// Steps between two exchanges
    #[arg(long, value_name = "STEPS", value_parser = clap::value_parser!(u32).range(1..=BLOCK_MAX))]
    block: Option<u32>,
    /// How ranks reach each other
    #[arg(long, value_enum, default_value_t = Transport::Auto)]
    transport: Transport,
    /// Time limit of each blocking call, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    timeout: Option<f64>,
    /// Compute everything again in the reference interpreter and compare every bit
    #[arg(long)]
    verify: bool,
    /// Print help, with the program's parameters if FILE is given
    #[arg(short, long)]
    help: bool,
}

/// What `compile` can write.
#[derive(Clone, Copy, ValueEnum)]
enum Emit {
    /// The Rust program
    Rust,
    /// The typed representation
    Ir,
    /// What the schedule decided and why
    Plan,
}

/// Names of the launcher's transports.
#[derive(Clone, Copy, ValueEnum)]
enum Transport {
    /// What suits the place of the ranks
    Auto,
    /// Threads of one process
    Local,
    /// Processes with shared memory
    Shm,
    /// Processes that are connected by TCP
    Tcp,
}

impl Transport {
    fn name(self) -> &'static str {
        match self {
            Transport::Auto => "auto",
            Transport::Local => "local",
            Transport::Shm => "shm",
            Transport::Tcp => "tcp",
        }
    }
}

/// Most ranks of a run, as the launcher has it.
const RANKS_MAX: u32 = 1024;

/// As the language has it.
const BLOCK_MAX: i64 = BLOCK_MAX_U64 as i64;

fn parse_ranks(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(ranks) if (1..=RANKS_MAX).contains(&ranks) => Ok(ranks),
        Ok(ranks) => Err(format!("{ranks} is not in 1..={RANKS_MAX}")),
        Err(_) => Err(format!("it needs a number in 1..={RANKS_MAX}")),
    }
}

fn parse_setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_string(), value.trim().to_string()))
        }
        _ => Err(String::from("a parameter is set as NAME=VALUE")),
    }
}

fn parse_cut(text: &str) -> Result<String, String> {
    match Cut::parse(text) {
        Some(_) => Ok(text.to_string()),
        None => Err(String::from("a cut is blocks, rows, or parts per axis such as 2x2")),
    }
}

fn parse_epoch(text: &str) -> Result<Epoch, String> {
    Epoch::parse(text).ok_or_else(|| format!("schedules are {}", EPOCHS.join(", ")))
}

fn parse_overlap(text: &str) -> Result<Overlap, String> {
    Overlap::parse(text).ok_or_else(|| String::from("an overlap is core or none"))
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && 0.0 < seconds => Ok(seconds),
        _ => Err(String::from("a time limit is a positive number of seconds")),
    }
}

fn settings(set: &[(String, String)]) -> Settings {
    let set = set.iter().map(|(name, value)| Setting { name: name.clone(), value: value.clone() }).collect();
    Settings { set, ..Settings::default() }
}

fn main() -> ExitCode {
    let result = match CommandLine::parse().command {
        Command::Check { input } => check(&input),
        Command::Compile { input, emit, output } => compile(&input, emit, output),
        Command::Run(run) if run.help => help(&run),
        Command::Run(run) => execute(&run),
    };
    match result {
        Ok(status) => ExitCode::from(status),
        Err(Stop::Reported) => ExitCode::from(1),
        Err(Stop::Sentence(text)) => {
            eprintln!("error: {text}");
            ExitCode::from(1)
        }
    }
}

/// Why a command did not come to its end.
enum Stop {
    /// Diagnostics on standard error said why.
    Reported,
    /// This says why.
    Sentence(String),
}

impl From<String> for Stop {
    fn from(text: String) -> Stop {
        Stop::Sentence(text)
    }
}

fn check(input: &Input) -> Result<u8, Stop> {
    let loaded = front::load(&input.file, &settings(&input.set))?;
    loaded.supported()?;
    print_text(&front::parameters(&loaded.program))?;
    Ok(0)
}

fn compile(input: &Input, emit: Emit, output: Option<PathBuf>) -> Result<u8, Stop> {
    let loaded = front::load(&input.file, &settings(&input.set))?;
    let text = match emit {
        Emit::Rust => rust_text(&loaded)?,
        Emit::Ir => front::ir_text(&loaded.program),
        Emit::Plan => front::plan_text(&loaded.program),
    };
    match output {
        Some(path) => {
            fs::write(&path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
        None => print_text(&text)?,
    }
    Ok(0)
}

fn print_text(text: &str) -> Result<(), Stop> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Stop::Sentence(format!("cannot write to standard output: {error}"))),
    }
}

fn rust_text(loaded: &Loaded) -> Result<String, Stop> {
    if let Some(sentence) = front::missing_schedule(&loaded.program) {
        return Err(Stop::Sentence(sentence));
    }
    back::rust::emit(&loaded.program, &loaded.text).map_err(|missing| loaded.refused(&missing))
}

fn help(run: &Run) -> Result<u8, Stop> {
    let mut command = CommandLine::command();
    // The subcommand's usage names the whole command only then.
    command.build();
    let run_help = command.find_subcommand_mut("run").map(|run| run.render_help().to_string());
    print_text(&run_help.unwrap_or_default())?;
    if let Some(file) = &run.file {
        let loaded = front::load(file, &Settings::default())?;
        print_text(&format!("\n{}", front::parameters(&loaded.program)))?;
    }
    Ok(0)
}

fn execute(run: &Run) -> Result<u8, Stop> {
    let Some(file) = &run.file else { return Err(Stop::Sentence(String::from("no program is given"))) };
    let settings = Settings {
        epoch: run.epoch,
        decompose: run.decompose.as_deref().and_then(Decompose::parse),
        overlap: run.overlap,
        block: run.block,
        ..settings(&run.set)
    };
    let loaded = front::load(file, &settings)?;
    let text = rust_text(&loaded)?;
    let cut = run.decompose.as_deref().and_then(Cut::parse);
    back::rust::check_ranks(&loaded.program, &loaded.scalars, run.ranks, cut)?;
    let tables: Vec<PathBuf> =
        loaded.program.probes.iter().map(|probe| PathBuf::from(format!("{}.csv", probe.name))).collect();
    if !loaded.program.outputs.is_empty() || !tables.is_empty() {
        launch::can_write_here()?;
    }
    let toolchain = Toolchain::find()?;
    let runtime = toolchain.runtime()?;
    let (program, origin) = toolchain.program(&loaded.program.name, &text, &runtime)?;
    if std::env::var_os("RMA_DSL_TIMES").is_some() {
        eprintln!("program {}", if origin == Origin::Cache { "from the cache" } else { "built" });
    }
    let mut arguments: Vec<OsString> = Vec::new();
    for setting in &settings.set {
        arguments.push("--set".into());
        arguments.push(format!("{}={}", setting.name, setting.value).into());
    }
    if let Some(cut) = &run.decompose {
        arguments.push("--decompose".into());
        arguments.push(cut.into());
    }
    let dump = match run.verify {
        true => Some(launch::Folder::new()?),
        false => None,
    };
    let status = launch::run(&Job {
        launcher: &runtime.launcher(),
        program: &program,
        arguments,
        ranks: run.ranks,
        transport: run.transport.name(),
        timeout: run.timeout,
        steps_max: front::steps_max(&loaded.program, &loaded.scalars),
        tables,
        dump: dump.as_ref().map(|folder| folder.path.as_path()),
    })?;
    match (status, dump) {
        (0, Some(folder)) => {
            verify::compare(&loaded, &folder.path)?;
            Ok(0)
        }
        _ => Ok(status),
    }
}
