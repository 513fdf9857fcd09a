//! Many files at once: read them all, learn what they know about each other, run the rules. Never opens a file.
//!
//! The tree of a file is several times as large as its text, so that only some of them are held at once. Of all others
//! a digest stays, and the few that are needed again are read again.

mod digest;
mod learn;
mod parallel;
mod report;
mod store;

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use self::digest::Digest;
use self::parallel::in_parallel;
use self::store::{Parsed, Store};
use crate::dataflow::{Analysis, FileContext};
use crate::finding::Finding;
use crate::form::Form;
use crate::options::Options;
use crate::program::Program;
use crate::rules::RULES;
use rma_source::{FileId, SourceFile, SourceMap};

/// One source text.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its name, which is shown and helps to tell its form.
    pub path: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// What was found in one file.
#[derive(Clone, Debug)]
pub struct FileReport {
    /// Its name.
    pub path: String,
    /// Its text, with one character for each byte that was no text.
    pub text: String,
    /// Its form.
    pub form: Form,
    /// Findings in the order of their places.
    pub findings: Vec<Finding>,
    /// Findings that comments allow.
    pub n_silenced: usize,
    /// Statements that were not understood.
    pub skipped: Vec<Skipped>,
    /// Included files that were not found and may declare something.
    pub missing: Vec<Skipped>,
    /// Texts of included files into which a place leads: `FileId(1)` is the first of them.
    pub included: Vec<SourceFile>,
    /// Files that were read: itself, and the included ones that no report counts before this one.
    pub n_files: usize,
    /// All statements of these files.
    pub n_statements: usize,
    /// Lines of these files.
    pub n_lines: usize,
}

/// A statement or an included file that was passed over.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Skipped {
    /// The file.
    pub path: Arc<str>,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// The beginning of what was passed over, one line of it at most.
    pub text: String,
    /// Why.
    pub reason: String,
}

impl FileReport {
    /// The text of one of the files that places of this report lead into.
    pub fn text_of(&self, file: FileId) -> &str {
        match file.0.checked_sub(1) {
            None => &self.text,
            Some(i) => self.included.get(i as usize).map_or("", SourceFile::text),
        }
    }

    /// Its path.
    pub fn path_of(&self, file: FileId) -> &str {
        match file.0.checked_sub(1) {
            None => &self.path,
            Some(i) => self.included.get(i as usize).map_or("", SourceFile::path),
        }
    }

    /// All texts that places of this report lead into.
    pub fn sources(&self) -> SourceMap {
        let mut map = SourceMap::new();
        map.add(SourceFile::new(self.path.clone(), self.text.clone()));
        for file in &self.included {
            map.add(file.clone());
        }
        map
    }
}

/// Checks files that belong together.
pub fn check(inputs: &[Input], options: &Options) -> Vec<FileReport> {
    check_watched(inputs, options, &|_| {})
}

/// Checks files that belong together, and tells on the way how many of the two steps per file, reading and checking, are
/// done. The watcher is called from several threads.
pub fn check_watched(inputs: &[Input], options: &Options, watch: &(dyn Fn(usize) + Sync)) -> Vec<FileReport> {
    let n_done = AtomicUsize::new(0);
    // Relaxed: the counter orders nothing but itself.
    let step = || watch(n_done.fetch_add(1, Ordering::Relaxed) + 1);
    let numbered: Vec<(u32, &Input)> = (0..).zip(inputs).collect();
    let store = Store::new(inputs, options);
    let program = Mutex::new(Program::default());
    let digests: Vec<Digest> = in_parallel(&numbered, |&(i, input)| {
        let parsed = store.take(i);
        let digest = Digest::new(input, &parsed, options);
        let mut program = program.lock().unwrap_or_else(PoisonError::into_inner);
        program.add(i, &input.path, &parsed.tree, &parsed.model);
        drop(program);
        store.give(i, parsed);
        step();
        digest
    });
    let mut program = program.into_inner().unwrap_or_else(PoisonError::into_inner);
    program.settle();
    let mut candidates = Vec::new();
    for (i, is_candidate) in (0..).zip(learn::candidates(&digests)) {
        match is_candidate {
            true => candidates.push(i),
            false => store.forget(i),
        }
    }
    let wanted = learn::learn(inputs, &store, &candidates, &mut program, options);
    let owners = report::owners(&digests);
    let work: Vec<(u32, &Input, Mutex<Option<Digest>>)> = numbered
        .iter()
        .zip(digests)
        .map(|(&(i, input), digest)| (i, input, Mutex::new(Some(digest))))
        .collect();
    let reports = in_parallel(&work, |(i, input, digest)| {
        let digest = digest.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let checked = wanted.get(i).map(|ids| {
            let mut parsed = store.take_for(&program, *i);
            ids.iter().for_each(|&id| parsed.inline(&program, id));
            let findings = check_file(context(*i, &parsed, &program, options));
            (parsed, findings)
        });
        store.forget(*i);
        let report = report::report(*i, input, digest, checked, &owners, options);
        step();
        Some(report)
    });
    let mut reports: Vec<FileReport> = reports.into_iter().flatten().collect();
    report::say_once(&mut reports);
    reports
}

fn context<'a>(
    index: u32,
    parsed: &'a Parsed,
    program: &'a Program,
    options: &'a Options,
) -> FileContext<'a> {
    FileContext {
        index,
        tree: &parsed.tree,
        model: &parsed.model,
        program,
        inlined: &parsed.inlined,
        options,
    }
}

/// Checks one text on its own.
pub fn check_one(path: &str, bytes: &[u8], options: &Options) -> FileReport {
    let input = Input { path: path.to_string(), bytes: bytes.to_vec() };
    check(&[input], options).remove(0)
}

fn check_file(context: FileContext<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (id, _) in context.model.iter() {
        let Some(analysis) = Analysis::new(context, id) else { continue };
        let mut of_unit = Vec::new();
        for rule in RULES {
            rule.check(&analysis, &mut of_unit);
        }
        findings.append(&mut of_unit);
    }
    sort(&mut findings);
    findings.dedup();
    findings
}

fn sort(findings: &mut [Finding]) {
    findings
        .sort_by(|a, b| (a.file, a.span, a.rule, &a.variable).cmp(&(b.file, b.span, b.rule, &b.variable)));
}

/// The text with every byte that belongs to no character replaced by one `?`, so that offsets stay.
fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '?'));
    }
    Cow::Owned(text)
}
