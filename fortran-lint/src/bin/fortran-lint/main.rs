//! The command line: finds files and settings, reads, prints reports, writes mended files. Never judges a statement.
#![forbid(unsafe_code)]

mod disk;
mod files;
mod git;
mod progress;
mod save;
mod settings;

use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand, ValueEnum};
use fortran_lint::baseline::Baseline;
use fortran_lint::changed::keep_touched;
use fortran_lint::check::{FileReport, Input, check, check_watched};
use fortran_lint::finding::Level;
use fortran_lint::fix;
use fortran_lint::form::Form;
use fortran_lint::mpi::Binding;
use fortran_lint::options::{BINDINGS, FORMS, LEVELS, STANDARDS, Standard};
use fortran_lint::report::{Summary, github, json, overview, sarif, text};
use fortran_lint::rules::{ADVICE, RULES, Role, find};
use progress::Progress;
use rma_source::render::Colour;

use settings::Group;

/// Findings from warning up.
const EXIT_FINDINGS: u8 = 1;
/// A wrong command line, a file that cannot be read, or nothing to check.
const EXIT_USAGE: u8 = 2;

/// Stands for the standard input among the paths.
const STDIN: &str = "-";

#[derive(Parser)]
#[command(name = "fortran-lint", version, about = "Finds the Fortran buffers that an optimiser may break")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check files and folders
    ///
    /// Exit status: 0 nothing from warning up, 1 findings, 2 usage, unreadable input, or no Fortran file.
    Check(Box<CheckArguments>),
    /// Print the manual page of a rule, or the advice on registers
    Explain {
        /// The code of a rule, such as FR01, or `registers`
        code: String,
    },
    /// List all rules
    Rules,
}

#[derive(clap::Args)]
struct CheckArguments {
    /// Files and folders; `-` is the standard input
    #[arg(required = true, value_name = "PATHS")]
    paths: Vec<PathBuf>,
    /// How findings are printed
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Only these rules, and findings with these reasons
    #[arg(long, value_delimiter = ',', value_name = "CODES")]
    select: Vec<String>,
    /// Not these rules
    #[arg(long, value_delimiter = ',', value_name = "CODES")]
    ignore: Vec<String>,
    /// The lowest level that is reported and counted [default: note]
    #[arg(long, value_parser = one_of(LEVELS))]
    min_level: Option<Level>,
    /// The language standard that remedies are judged by [default: f2018]
    #[arg(long, value_parser = one_of(STANDARDS))]
    std: Option<Standard>,
    /// The binding of units that do not show one
    #[arg(long, value_parser = one_of(BINDINGS))]
    binding: Option<Binding>,
    /// Count a procedure as opaque although it is in the sources
    #[arg(long, value_name = "NAME")]
    dummy: Vec<String>,
    /// The source form of all files; without it each file's content decides
    #[arg(long, value_parser = one_of(FORMS))]
    form: Option<Form>,
    /// A folder in which included files are looked for
    #[arg(short = 'I', long = "include", value_name = "FOLDER")]
    include: Vec<PathBuf>,
    /// A macro that no file defines: NAME=text or NAME(a,b)=text
    #[arg(short = 'D', long = "define", value_name = "MACRO")]
    define: Vec<String>,
    /// Take the settings from this file and look for no other
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Under which name the standard input is checked and reported
    #[arg(long, value_name = "NAME")]
    stdin_filename: Option<PathBuf>,
    /// Leave out the findings that this file lists
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// List all findings in this file, for --baseline, and print none
    #[arg(long, value_name = "FILE", conflicts_with_all = ["baseline", "since", "fix", "diff"])]
    write_baseline: Option<PathBuf>,
    /// Only findings with a place on a line that changed since this revision of git
    #[arg(long, value_name = "REVISION")]
    since: Option<String>,
    /// Add the declaration or the call that mends a finding, where one compiles, to the files
    #[arg(long, conflicts_with = "diff")]
    fix: bool,
    /// Print what --fix would do, and change nothing
    #[arg(long)]
    diff: bool,
    /// List the statements that were not understood and the included files that were not found
    #[arg(long)]
    show_skipped: bool,
    /// Print figures about the run
    #[arg(long)]
    stats: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// For programs
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Annotations of GitHub's checks
    Github,
    /// How many findings of which rule in which file
    Summary,
}

/// Accepts the words of a table and gives what they stand for.
fn one_of<T: Copy + Send + Sync + 'static>(
    table: &'static [(&'static str, T)],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(table.iter().map(|(word, _)| *word)).map(|word| {
        let found = table.iter().find(|(own, _)| *own == word);
        found.expect("the parser lets only words of the table through").1
    })
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { EXIT_USAGE } else { 0 });
        }
    };
    match arguments.command {
        Command::Check(arguments) => match run_check(&arguments) {
            Ok(status) => status,
            Err(message) => {
                complain(&message);
                ExitCode::from(EXIT_USAGE)
            }
        },
        Command::Explain { code } if code == "registers" => {
            print(ADVICE.as_bytes());
            ExitCode::SUCCESS
        }
        Command::Explain { code } => match find(&code) {
            Some(rule) => {
                print(rule.page().as_bytes());
                ExitCode::SUCCESS
            }
            None => {
                complain(&format!("no rule has the code `{code}`; `fortran-lint rules` lists them"));
                ExitCode::from(EXIT_USAGE)
            }
        },
        Command::Rules => {
            let mut out = String::new();
            for rule in RULES {
                let level = match rule.role {
                    Role::Rule => rule.level,
                    Role::Reason => "reason",
                };
                out.push_str(&format!("{}  {level:<8} {}\n", rule.code, rule.name));
            }
            print(out.as_bytes());
            ExitCode::SUCCESS
        }
    }
}

/// Checks what was asked for. An error is a sentence for the user; then nothing was checked.
fn run_check(arguments: &CheckArguments) -> Result<ExitCode, String> {
    let started = Instant::now();
    let standard_input = standard_input(arguments)?;
    let mut has_failed = false;
    let mut groups = settings::groups(arguments)?;
    for group in &mut groups {
        let (inputs, failures) = files::read(group, standard_input.as_ref());
        group.inputs = inputs;
        for failure in failures {
            complain(&failure);
            has_failed = true;
        }
    }
    if groups.iter().all(|group| group.inputs.is_empty()) && !has_failed {
        return Err(files::nothing_to_check(&arguments.paths));
    }
    let changed = arguments.since.as_deref().map(|revision| git::changed(revision, &groups)).transpose()?;
    if let Some(path) = &arguments.write_baseline {
        let status = write_baseline(path, &groups, has_failed);
        return status;
    }

    let mut summary = Summary::default();
    let mut reports: Vec<FileReport> = Vec::new();
    let mut has_patches = false;
    for group in &groups {
        let baseline = group.baseline.as_deref().map(read_baseline).transpose()?;
        let filter = |reports: &mut [FileReport]| {
            let mut left_out = Summary::default();
            if let Some((path, baseline)) = &baseline {
                let applied = baseline.apply(reports, &group.options, |file| files::relative(file, path));
                (left_out.known, left_out.gone) = (applied.n_known, applied.n_gone);
            }
            if let Some(changed) = &changed {
                left_out.untouched = keep_touched(reports, |path| changed.lines_of(path));
            }
            left_out
        };
        let mut own = match arguments.fix || arguments.diff {
            true => {
                let outcome = fix::mend(&group.inputs, &group.options, |reports| {
                    filter(reports);
                });
                has_patches |= !outcome.patches.is_empty();
                has_failed |= !deliver(arguments, group, &outcome);
                outcome.reports
            }
            false => {
                let progress = Progress::new(2 * group.inputs.len());
                let reports = check_watched(&group.inputs, &group.options, &|n_done| progress.show(n_done));
                progress.clear();
                reports
            }
        };
        let left_out = filter(&mut own);
        summary.known += left_out.known;
        summary.gone += left_out.gone;
        summary.untouched += left_out.untouched;
        reports.append(&mut own);
    }
    summary.add(&reports);
    match arguments.diff {
        // The standard output is the diff alone.
        true => complain_plainly(&text::summary(&summary)),
        false => show(arguments, &reports, &summary),
    }
    if arguments.stats {
        complain_plainly(&text::stats(&summary, started.elapsed().as_secs_f64()));
    }
    Ok(if has_failed {
        ExitCode::from(EXIT_USAGE)
    } else if summary.errors + summary.warnings > 0 || (arguments.diff && has_patches) {
        ExitCode::from(EXIT_FINDINGS)
    } else {
        ExitCode::SUCCESS
    })
}

/// The standard input, where it is asked for.
fn standard_input(arguments: &CheckArguments) -> Result<Option<Input>, String> {
    let is_wanted = arguments.paths.iter().any(|path| path.as_os_str() == STDIN);
    match (is_wanted, &arguments.stdin_filename) {
        (false, None) => Ok(None),
        (false, Some(_)) => {
            Err("--stdin-filename names the standard input, and `-` is not among the paths".to_string())
        }
        (true, _) if arguments.fix => {
            Err("--fix writes files, and the standard input is none; --diff prints what it would do"
                .to_string())
        }
        (true, name) => {
            let mut bytes = Vec::new();
            std::io::stdin()
                .read_to_end(&mut bytes)
                .map_err(|error| format!("cannot read the standard input: {error}"))?;
            let path = name.as_ref().map_or("<stdin>".to_string(), |name| name.display().to_string());
            Ok(Some(Input { path, bytes }))
        }
    }
}

/// Writes what was mended, or prints it as a diff. False when something could not be written.
fn deliver(arguments: &CheckArguments, group: &Group, outcome: &fix::Outcome) -> bool {
    let mut is_well = true;
    for (&i, patch) in &outcome.patches {
        let path = &group.inputs[i].path;
        if arguments.diff {
            print(&patch.diff(path));
        } else if let Err(error) = save::replace(Path::new(path), patch.old_text(), &patch.new_text()) {
            complain(&format!("cannot write {path}: {error}; it is as it was"));
            is_well = false;
        }
    }
    for fix::Mended { path, rule, variable, action } in &outcome.mended {
        let would = if arguments.diff { "would mend" } else { "mended" };
        complain_plainly(&format!("{would} {path}: {rule}: {}\n", action.told(variable)));
    }
    for path in &outcome.not_asked_for {
        complain_plainly(&format!(
            "note: an edit belongs into {path}, which other files may include too; name it among the paths to have it changed\n"
        ));
    }
    is_well
}

fn write_baseline(path: &Path, groups: &[Group], has_failed: bool) -> Result<ExitCode, String> {
    if has_failed {
        return Err("no baseline is written when a file could not be read".to_string());
    }
    let reports: Vec<FileReport> =
        groups.iter().flat_map(|group| check(&group.inputs, &group.options)).collect();
    let baseline = Baseline::of(&reports, |file| files::relative(file, path));
    save::create(path, baseline.text().as_bytes())
        .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    complain_plainly(&format!("{}: {}\n", path.display(), text::counted(baseline.n_findings(), "finding")));
    Ok(ExitCode::SUCCESS)
}

fn read_baseline(path: &Path) -> Result<(PathBuf, Baseline), String> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        format!("cannot read the baseline {shown}: {error}; `--write-baseline {shown}` makes one")
    })?;
    let baseline = Baseline::parse(&text).map_err(|error| {
        format!("the baseline {shown} is not understood: {error}; `--write-baseline {shown}` makes it anew")
    })?;
    Ok((path.to_path_buf(), baseline))
}

fn show(arguments: &CheckArguments, reports: &[FileReport], summary: &Summary) {
    match arguments.format {
        Format::Text => {
            let colour = if std::io::stdout().is_terminal() { Colour::Ansi } else { Colour::Never };
            print(text::findings(reports, colour).as_bytes());
        }
        Format::Json => {
            let skipped = if arguments.show_skipped { json::Skipped::Listed } else { json::Skipped::Counted };
            print(json::document(reports, summary, skipped).as_bytes());
        }
        Format::Sarif => print(sarif::document(reports).as_bytes()),
        Format::Github => print(github::annotations(reports).as_bytes()),
        Format::Summary => print(overview::tables(reports).as_bytes()),
    }
    if matches!(arguments.format, Format::Text | Format::Summary) {
        if arguments.show_skipped {
            print(text::skipped(reports).as_bytes());
        }
        print(text::summary(summary).as_bytes());
    }
}

fn complain(message: &str) {
    complain_plainly(&format!("error: {message}\n"));
}

fn complain_plainly(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// A closed pipe is no reason to panic.
fn print(bytes: &[u8]) {
    let _ = std::io::stdout().write_all(bytes);
}
