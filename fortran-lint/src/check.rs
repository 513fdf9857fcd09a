//! Many files at once: parse them all, learn which procedures they define, run the rules. Never opens a file.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::dataflow::{Analysis, FileContext};
use crate::finding::Finding;
use crate::form::Form;
use crate::model::Model;
use crate::options::Options;
use crate::parse::{StatementKind, Tree, UnitKind, parse_file};
use crate::rules::RULES;
use rma_source::Span;

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
    /// Statements that were not understood.
    pub skipped: Vec<Span>,
    /// All statements.
    pub n_statements: usize,
    /// Lines.
    pub n_lines: usize,
}

/// Checks files that belong together.
pub fn check(inputs: &[Input], options: &Options) -> Vec<FileReport> {
    let parsed: Vec<(Tree, Form, Model)> = in_parallel(inputs, |input| {
        let (tree, form) = parse_file(&input.path, &input.bytes);
        let model = Model::new(&tree);
        (tree, form, model)
    });
    let mut known_procedures = HashSet::new();
    for (tree, _, model) in &parsed {
        known_procedures.extend(procedures(tree, model));
    }
    let work: Vec<(&Input, &(Tree, Form, Model))> = inputs.iter().zip(&parsed).collect();
    in_parallel(&work, |(input, (tree, form, model))| {
        let context = FileContext { tree, model, known_procedures: &known_procedures, options };
        let mut findings = check_file(context);
        findings.retain(|finding| is_wanted(finding, options));
        FileReport {
            path: input.path.clone(),
            text: text_of(&input.bytes),
            form: *form,
            findings,
            skipped: tree
                .statements
                .iter()
                .filter(|statement| matches!(statement.kind, StatementKind::Unknown))
                .map(|statement| statement.span)
                .collect(),
            n_statements: tree.statements.len(),
            n_lines: input.bytes.split(|&byte| byte == b'\n').count()
                - usize::from(input.bytes.ends_with(b"\n")),
        }
    })
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
    findings.sort_by(|a, b| (a.span, a.rule, &a.variable).cmp(&(b.span, b.rule, &b.variable)));
    findings.dedup();
    findings
}

fn is_wanted(finding: &Finding, options: &Options) -> bool {
    let is_selected = options.select.is_empty()
        || options.select.iter().any(|code| {
            code.eq_ignore_ascii_case(finding.rule)
                || finding.because.iter().any(|reason| code.eq_ignore_ascii_case(reason))
        });
    // Levels are ordered from the worst to the mildest.
    is_selected && finding.level <= options.min_level
}

fn procedures<'a>(tree: &'a Tree, model: &'a Model) -> impl Iterator<Item = String> + 'a {
    model
        .units
        .iter()
        .filter(|unit| {
            matches!(unit.kind, UnitKind::Subroutine | UnitKind::Function | UnitKind::ModuleProcedure)
        })
        .filter_map(|unit| unit.name)
        .map(|name| tree.symbols.name(name.symbol).to_string())
}

/// The text with every byte that belongs to no character replaced by one `?`, so that offsets stay.
fn text_of(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '?'));
    }
    text
}

/// Maps in the order of the input, on all cores.
fn in_parallel<T: Sync, R: Send>(items: &[T], map: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from).min(items.len());
    if n_threads <= 1 {
        return items.iter().map(map).collect();
    }
    let next = AtomicUsize::new(0);
    let parts: Vec<Vec<(usize, R)>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..n_threads)
            .map(|_| {
                scope.spawn(|| {
                    let mut done = Vec::new();
                    loop {
                        // Relaxed: the counter orders nothing but itself.
                        let i = next.fetch_add(1, Ordering::Relaxed);
                        match items.get(i) {
                            Some(item) => done.push((i, map(item))),
                            None => return done,
                        }
                    }
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let mut all: Vec<(usize, R)> = parts.into_iter().flatten().collect();
    all.sort_by_key(|(i, _)| *i);
    all.into_iter().map(|(_, result)| result).collect()
}
