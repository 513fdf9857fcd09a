//! What the tests share: expectations in header comments, a small preprocessor, peers. Never part of the product.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use fortran_lint::check::{Input, check, check_one};
use fortran_lint::options::Options;

/// The package's folder.
pub(crate) fn package() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A subroutine with the usual names.
pub(crate) fn unit(binding: &str, declarations: &str, body: &str) -> String {
    let header = match binding {
        "mpif.h" => "include 'mpif.h'".to_string(),
        other => format!("use {other}"),
    };
    let (before, behind) =
        if binding == "mpif.h" { (String::new(), header) } else { (header, String::new()) };
    format!(
        "subroutine work(comm)\n{before}\nimplicit none\n{behind}\ninteger :: comm, ierr, req, req2, reqs(2), win, group, i, n, x, y, type, status(10)\n\
         logical :: flag\ninteger(kind=MPI_ADDRESS_KIND) :: address, size, zero\n{declarations}\n{body}\nend subroutine\n"
    )
}

/// Each finding as `level rule variable: line of the primary place`, with its reasons.
pub(crate) fn said(text: &str, options: &Options) -> Vec<String> {
    let report = check_one("work.f90", text.as_bytes(), options);
    assert!(report.skipped.is_empty(), "a statement was skipped in:\n{text}");
    report.findings.iter().map(|finding| line_of(&report.text, finding)).collect()
}

/// One text under a name.
pub(crate) fn input(path: &str, text: &str) -> Input {
    Input { path: path.to_string(), bytes: text.as_bytes().to_vec() }
}

/// What is said about files that belong together, in any order, as `file: level rule variable`.
pub(crate) fn said_of(files: &[(&str, &str)]) -> Vec<String> {
    let ask = |files: &[(&str, &str)]| {
        let inputs: Vec<Input> = files.iter().map(|(path, text)| input(path, text)).collect();
        let mut all = Vec::new();
        for report in check(&inputs, &Options::default()) {
            assert!(report.skipped.is_empty(), "a statement of {} was skipped", report.path);
            for finding in &report.findings {
                let start = report.text[..finding.span.start as usize].rfind('\n').map_or(0, |at| at + 1);
                let line = report.text[start..].lines().next().unwrap_or_default().trim().to_string();
                let because = match finding.because.is_empty() {
                    true => String::new(),
                    false => format!(" because {}", finding.because.join(" ")),
                };
                let (level, rule) = (finding.level.name(), finding.rule);
                all.push(format!("{}: {level} {rule} {}: {line}{because}", report.path, finding.variable));
            }
        }
        all.sort();
        all
    };
    let forwards = ask(files);
    let reversed: Vec<(&str, &str)> = files.iter().rev().copied().collect();
    assert_eq!(forwards, ask(&reversed), "the order of the files changes nothing");
    forwards
}

/// Checks what is said about files that belong together.
#[track_caller]
pub(crate) fn check_files(files: &[(&str, &str)], expected: &[&str]) {
    let texts: Vec<String> = files.iter().map(|(path, text)| format!("==> {path}\n{text}")).collect();
    assert_eq!(said_of(files), expected, "in:\n{}", texts.join("\n"));
}

pub(crate) fn line_of(text: &str, finding: &fortran_lint::finding::Finding) -> String {
    let start = text[..finding.span.start as usize].rfind('\n').map_or(0, |at| at + 1);
    let line = text[start..].lines().next().unwrap_or_default().trim();
    let because = match finding.because.is_empty() {
        true => String::new(),
        false => format!(" because {}", finding.because.join(" ")),
    };
    format!("{} {} {}: {line}{because}", finding.level.name(), finding.rule, finding.variable)
}

/// One finding in a word: level, rule, variable, reasons.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Expectation(pub(crate) String);

impl Expectation {
    pub(crate) fn new(level: &str, rule: &str, variable: &str, because: &[&str]) -> Expectation {
        let mut text = format!("{level} {rule} {variable}");
        if !because.is_empty() {
            text.push_str(&format!(" because {}", because.join(" ")));
        }
        Expectation(text)
    }

    pub(crate) fn is_error(&self) -> bool {
        self.0.starts_with("error")
    }
}

/// What the linter says about a text, in the order of the words.
pub(crate) fn findings(path: &str, bytes: &[u8]) -> Vec<Expectation> {
    let report = check_one(path, bytes, &Options::default());
    let mut found: Vec<Expectation> = report
        .findings
        .iter()
        .map(|finding| {
            Expectation::new(finding.level.name(), finding.rule, &finding.variable, &finding.because)
        })
        .collect();
    found.sort();
    found
}

/// The `expect:` lines of a fixture's head; `expect: nothing` stands for none.
pub(crate) fn expected(text: &str) -> Vec<Expectation> {
    let mut expected: Vec<Expectation> = text
        .lines()
        .filter_map(|line| line.split_once("expect: "))
        .map(|(_, rest)| rest.trim().to_string())
        .filter(|rest| rest != "nothing")
        .map(Expectation)
        .collect();
    expected.sort();
    expected
}

/// The `expect:` lines that say so.
pub(crate) fn header(expected: &[Expectation]) -> String {
    if expected.is_empty() {
        return "! expect: nothing\n".to_string();
    }
    let mut sorted = expected.to_vec();
    sorted.sort();
    sorted.iter().map(|expectation| format!("! expect: {}\n", expectation.0)).collect()
}

/// Writes a generated file when UPDATE=1, and says what is stale otherwise.
pub(crate) fn update(path: &Path, text: &str, stale: &mut Vec<String>) {
    let is_same = std::fs::read_to_string(path).is_ok_and(|old| old == text);
    if is_same {
        return;
    }
    if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
        std::fs::create_dir_all(path.parent().expect("a fixture lies in a folder"))
            .expect("the folder can be made");
        std::fs::write(path, text).expect("the fixture can be written");
    } else {
        stale.push(path.display().to_string());
    }
}

/// Expands `#if`, `#ifdef` and `#define NAME value` of the hazard programs.
pub(crate) fn preprocess(text: &str, defines: &[(&str, i64)]) -> String {
    let mut defines: Vec<(String, i64)> =
        defines.iter().map(|(name, value)| (name.to_string(), *value)).collect();
    let mut out = String::new();
    // For each open #if: whether its lines count now, whether a branch was taken, whether the outside counts.
    let mut open: Vec<(bool, bool, bool)> = Vec::new();
    for line in text.lines() {
        let counts = open.last().is_none_or(|(counts, ..)| *counts);
        let Some(directive) = line.strip_prefix('#') else {
            if counts {
                out.push_str(&substitute(line, &defines));
                out.push('\n');
            }
            continue;
        };
        let (word, rest) = directive.split_once(' ').unwrap_or((directive, ""));
        match word {
            "if" | "ifdef" | "ifndef" => {
                let is_defined = defines.iter().any(|(name, _)| name == rest.trim());
                let holds = match word {
                    "ifdef" => is_defined,
                    "ifndef" => !is_defined,
                    _ => condition(rest, &defines),
                };
                open.push((counts && holds, holds, counts));
            }
            "elif" => {
                let (_, taken, outside) = open.pop().expect("an #elif stands behind an #if");
                let holds = !taken && condition(rest, &defines);
                open.push((outside && holds, taken || holds, outside));
            }
            "else" => {
                let (_, taken, outside) = open.pop().expect("an #else stands behind an #if");
                open.push((outside && !taken, true, outside));
            }
            "endif" => {
                open.pop().expect("an #endif stands behind an #if");
            }
            "define" if counts => {
                let (name, value) = rest.split_once(' ').expect("the programs define names with values");
                defines.push((name.to_string(), value.trim().parse().expect("values are numbers")));
            }
            "define" => {}
            other => panic!("the hazard programs have no #{other}"),
        }
    }
    out
}

fn condition(text: &str, defines: &[(String, i64)]) -> bool {
    let value = |word: &str| -> i64 {
        let word = word.trim();
        word.parse()
            .unwrap_or_else(|_| defines.iter().find(|(name, _)| name == word).map_or(0, |(_, value)| *value))
    };
    text.split("||").any(|part| {
        part.split("&&").all(|test| match test.split_once("==") {
            Some((left, right)) => value(left) == value(right),
            None => {
                let (left, right) = test.split_once("!=").expect("tests compare");
                value(left) != value(right)
            }
        })
    })
}

fn substitute(line: &str, defines: &[(String, i64)]) -> String {
    let mut out = String::new();
    let mut word = String::new();
    for c in line.chars().chain(['\n']) {
        if c.is_ascii_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        match defines.iter().find(|(name, _)| *name == word) {
            Some((_, value)) => out.push_str(&value.to_string()),
            None => out.push_str(&word),
        }
        word.clear();
        out.push(c);
    }
    out.pop();
    out
}

/// The MPI Fortran compiler, where there is one.
pub(crate) fn compiler() -> Option<&'static str> {
    ["mpif90.mpich", "mpif90", "mpifort"].into_iter().find(|name| {
        let runs = std::process::Command::new(name).arg("--version").output();
        runs.is_ok_and(|output| {
            output.status.success() && String::from_utf8_lossy(&output.stdout).contains("GNU Fortran")
        })
    })
}

/// Says why a test is skipped, and fails where peers are required.
pub(crate) fn skip(why: &str) {
    assert!(
        std::env::var_os("RMA_REQUIRE_PEERS").is_none_or(|value| value != "1"),
        "a required peer is missing: {why}"
    );
    println!("skipped: {why}");
}

/// Works on all jobs with as many threads as there are cores; the results are in the order of the jobs.
pub(crate) fn in_parallel<J: Sync, R: Send>(jobs: &[J], work: impl Fn(&J) -> R + Sync) -> Vec<R> {
    let results: Vec<Mutex<Option<R>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from).min(8) {
            scope.spawn(|| {
                // Relaxed: the number only deals out jobs.
                while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&at| at < jobs.len())
                {
                    *results[at].lock().expect("no job panics with the lock") = Some(work(&jobs[at]));
                }
            });
        }
    });
    let done = |result: Mutex<Option<R>>| result.into_inner().expect("no job panics with the lock");
    results.into_iter().map(|result| done(result).expect("every job was done")).collect()
}
