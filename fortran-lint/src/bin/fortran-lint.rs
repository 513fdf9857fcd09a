//! The command line: finds files, reads them, prints reports. Never judges a statement.
#![forbid(unsafe_code)]

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::{Parser, Subcommand, ValueEnum};
use fortran_lint::check::{Input, check};
use fortran_lint::finding::Level;
use fortran_lint::form::Form;
use fortran_lint::options::{Options, Standard};
use fortran_lint::report::{Summary, json, text};
use fortran_lint::rules::{RULES, Role, find};
use fortran_lint::source::Reading;
use rma_source::render::Colour;

#[path = "fortran-lint/disk.rs"]
mod disk;

use disk::Disk;

/// Extensions of files that are looked at in folders; a file named on the command line is always read.
const EXTENSIONS: &[&str] =
    &["f", "for", "ftn", "f66", "f77", "f90", "f95", "f03", "f08", "f18", "f23", "fpp"];

/// Deepest nesting of folders that is followed.
const DEPTH_MAX: usize = 64;

/// Findings from warning up.
const EXIT_FINDINGS: u8 = 1;
/// A wrong command line, a file that cannot be read, or nothing to check.
const EXIT_USAGE: u8 = 2;

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
    Check(CheckArguments),
    /// Print the manual page of a rule
    Explain {
        /// Its code, such as FR01
        code: String,
    },
    /// List all rules
    Rules,
}

#[derive(clap::Args)]
struct CheckArguments {
    /// Files and folders
    #[arg(required = true, value_name = "PATHS")]
    paths: Vec<PathBuf>,
    /// How findings are printed
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Only these rules, and findings with these reasons
    #[arg(long, value_delimiter = ',', value_name = "CODES")]
    select: Vec<String>,
    /// The lowest level that is reported and counted
    #[arg(long, value_enum, default_value = "note")]
    min_level: MinLevel,
    /// The language standard that remedies are judged by
    #[arg(long, value_enum, default_value = "f2018")]
    std: Std,
    /// Count a procedure as opaque although it is in the sources
    #[arg(long, value_name = "NAME")]
    dummy: Vec<String>,
    /// The source form of all files; without it each file's content decides
    #[arg(long, value_enum)]
    form: Option<FormName>,
    /// A folder in which included files are looked for
    #[arg(short = 'I', long = "include", value_name = "FOLDER")]
    include: Vec<PathBuf>,
    /// A macro that no file defines: NAME=text or NAME(a,b)=text
    #[arg(short = 'D', long = "define", value_name = "MACRO")]
    define: Vec<String>,
    /// List the statements that were not understood and the included files that were not found
    #[arg(long)]
    show_skipped: bool,
    /// Print figures about the run
    #[arg(long)]
    stats: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
}

#[derive(Clone, Copy, ValueEnum)]
enum FormName {
    Fixed,
    Free,
}

#[derive(Clone, Copy, ValueEnum)]
enum MinLevel {
    Note,
    Warning,
    Error,
}

#[derive(Clone, Copy, ValueEnum)]
enum Std {
    F66,
    F77,
    F90,
    F95,
    F2003,
    F2008,
    F2018,
    F2023,
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
        Command::Check(arguments) => run_check(&arguments),
        Command::Explain { code } => match find(&code) {
            Some(rule) => {
                print(&rule.page());
                ExitCode::SUCCESS
            }
            None => usage(&format!("no rule has the code `{code}`; `fortran-lint rules` lists them")),
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
            print(&out);
            ExitCode::SUCCESS
        }
    }
}

fn run_check(arguments: &CheckArguments) -> ExitCode {
    if let Some(code) = arguments.select.iter().find(|code| find(code).is_none()) {
        return usage(&format!("no rule has the code `{code}`; `fortran-lint rules` lists them"));
    }
    let started = Instant::now();
    let mut files = Vec::new();
    let mut has_failed = false;
    for path in &arguments.paths {
        if let Err(error) = collect(path, Wanted::Named, DEPTH_MAX, &mut files) {
            complain(&format!("cannot read {}: {error}", path.display()));
            has_failed = true;
        }
    }
    if files.is_empty() && !has_failed {
        return usage(&nothing_to_check(&arguments.paths));
    }
    let mut inputs = Vec::with_capacity(files.len());
    for path in files {
        match std::fs::read(&path) {
            Ok(bytes) => inputs.push(Input { path: path.display().to_string(), bytes }),
            Err(error) => {
                complain(&format!("cannot read {}: {error}", path.display()));
                has_failed = true;
            }
        }
    }
    let reports = check(&inputs, &options(arguments, Disk::new(&arguments.paths)));
    let summary = Summary::new(&reports);
    match arguments.format {
        Format::Text => {
            let colour = if std::io::stdout().is_terminal() { Colour::Ansi } else { Colour::Never };
            print(&text::findings(&reports, colour));
            if arguments.show_skipped {
                print(&text::skipped(&reports));
            }
            print(&text::summary(&summary));
        }
        Format::Json => {
            let skipped = if arguments.show_skipped { json::Skipped::Listed } else { json::Skipped::Counted };
            print(&json::document(&reports, skipped));
        }
    }
    if arguments.stats {
        let _ =
            std::io::stderr().write_all(text::stats(&summary, started.elapsed().as_secs_f64()).as_bytes());
    }
    if has_failed {
        ExitCode::from(EXIT_USAGE)
    } else if summary.errors + summary.warnings > 0 {
        ExitCode::from(EXIT_FINDINGS)
    } else {
        ExitCode::SUCCESS
    }
}

fn options(arguments: &CheckArguments, files: Disk) -> Options {
    Options {
        select: arguments.select.clone(),
        min_level: match arguments.min_level {
            MinLevel::Note => Level::Note,
            MinLevel::Warning => Level::Warning,
            MinLevel::Error => Level::Error,
        },
        standard: match arguments.std {
            Std::F66 => Standard::F66,
            Std::F77 => Standard::F77,
            Std::F90 => Standard::F90,
            Std::F95 => Standard::F95,
            Std::F2003 => Standard::F2003,
            Std::F2008 => Standard::F2008,
            Std::F2018 => Standard::F2018,
            Std::F2023 => Standard::F2023,
        },
        dummies: arguments.dummy.clone(),
        reading: Reading {
            form: arguments.form.map(|form| match form {
                FormName::Fixed => Form::Fixed,
                FormName::Free => Form::Free,
            }),
            forms: Vec::new(),
            include_paths: arguments.include.iter().map(|path| path.display().to_string()).collect(),
            macros: arguments.define.clone(),
            files: Arc::new(files),
        },
    }
}

/// Whether a path was named or met in a folder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Named,
    Met,
}

/// Gathers source files in the order of their names; links and hidden folders are passed over.
fn collect(path: &Path, wanted: Wanted, depth: usize, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let is_folder = match wanted {
        Wanted::Named => std::fs::metadata(path)?.is_dir(),
        Wanted::Met => std::fs::symlink_metadata(path)?.is_dir(),
    };
    if !is_folder {
        if wanted == Wanted::Named || is_source(path) {
            files.push(path.to_path_buf());
        }
        return Ok(());
    }
    if depth == 0 {
        return Err(std::io::Error::other("folders are nested too deeply"));
    }
    let mut entries = std::fs::read_dir(path)?.collect::<std::io::Result<Vec<_>>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let is_hidden = entry.file_name().as_encoded_bytes().first() == Some(&b'.');
        if !is_hidden {
            collect(&entry.path(), Wanted::Met, depth - 1, files)?;
        }
    }
    Ok(())
}

fn is_source(path: &Path) -> bool {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
    path.is_file() && extension.is_some_and(|extension| EXTENSIONS.contains(&extension.as_str()))
}

/// A run that looked at nothing must not pass for one that found nothing.
fn nothing_to_check(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
    let extensions: Vec<String> = EXTENSIONS.iter().map(|extension| format!(".{extension}")).collect();
    format!(
        "there is no Fortran file in {}; in folders, names that end in {} are looked for",
        paths.join(", "),
        extensions.join(", ")
    )
}

fn usage(message: &str) -> ExitCode {
    complain(message);
    ExitCode::from(EXIT_USAGE)
}

fn complain(message: &str) {
    let _ = writeln!(std::io::stderr(), "error: {message}");
}

/// A closed pipe is no reason to panic.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}
