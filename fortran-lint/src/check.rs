//! Many files at once: parse them all, learn what they know about each other, run the rules. Never opens a file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::dataflow::{Analysis, FileContext, Inlined, callees, calls_library, summarize};
use crate::finding::Finding;
use crate::form::Form;
use crate::model::{Model, UnitId};
use crate::options::Options;
use crate::parse::{StatementKind, Tree, parse_file};
use crate::program::{ProcedureId, Program, ProtectedActual, levels};
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

/// A file between parsing and checking.
struct Parsed {
    tree: Tree,
    form: Form,
    model: Model,
    inlined: Inlined,
}

/// Checks files that belong together.
pub fn check(inputs: &[Input], options: &Options) -> Vec<FileReport> {
    let mut parsed: Vec<Parsed> = in_parallel(inputs, |input| {
        let (tree, form) = parse_file(&input.path, &input.bytes);
        let model = Model::new(&tree);
        Parsed { tree, form, model, inlined: Inlined::default() }
    });
    let program = learn(inputs, &mut parsed, options);
    let work: Vec<(u32, (&Input, &Parsed))> = (0..).zip(inputs.iter().zip(&parsed)).collect();
    in_parallel(&work, |(index, (input, parsed))| {
        let mut findings = check_file(context(*index, parsed, &program, options));
        findings.retain(|finding| is_wanted(finding, options));
        FileReport {
            path: input.path.clone(),
            text: text_of(&input.bytes),
            form: parsed.form,
            findings,
            skipped: parsed
                .tree
                .statements
                .iter()
                .filter(|statement| matches!(statement.kind, StatementKind::Unknown))
                .map(|statement| statement.span)
                .collect(),
            n_statements: parsed.tree.statements.len(),
            n_lines: input.bytes.split(|&byte| byte == b'\n').count()
                - usize::from(input.bytes.ends_with(b"\n")),
        }
    })
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

/// Gathers what the files know about each other: modules and procedures, and then what each procedure does for its
/// callers, each behind those that it calls itself.
fn learn(inputs: &[Input], parsed: &mut [Parsed], options: &Options) -> Program {
    let mut program = Program::default();
    for (input, parsed) in inputs.iter().zip(parsed.iter()) {
        program.modules.add(&parsed.tree, &parsed.model);
        program.procedures.add(&input.path, &parsed.tree, &parsed.model);
    }
    let units: Vec<ProcedureId> = parsed
        .iter()
        .enumerate()
        .flat_map(|(file, parsed)| {
            parsed.model.iter().map(move |(id, _)| ProcedureId { file: file as u32, unit: id.0 })
        })
        .collect();
    let calls = in_parallel(&units, |&id| {
        let parsed = &parsed[id.file as usize];
        callees(&parsed.tree, &parsed.model, &program, id)
    });
    let calls: BTreeMap<ProcedureId, BTreeSet<ProcedureId>> = units.iter().copied().zip(calls).collect();
    let wanted = concerned(parsed, &calls);
    let is_wanted = |id: &ProcedureId| wanted.contains(id);
    let order = calls.iter().filter(|(id, _)| is_wanted(id));
    let order = order.map(|(&id, callees)| (id, callees.iter().copied().filter(is_wanted).collect()));
    for level in levels(&order.collect()) {
        for &id in &level {
            let Parsed { tree, model, inlined, .. } = &mut parsed[id.file as usize];
            inlined.add_unit(tree, model, &program, id);
        }
        let summaries = in_parallel(&level, |&id| {
            let (input, parsed) = (&inputs[id.file as usize], &parsed[id.file as usize]);
            let unit = parsed.model.unit(UnitId(id.unit));
            let place = place_of(input, unit.name.map_or(0, |name| name.span.start));
            summarize(context(id.file, parsed, &program, options), UnitId(id.unit), place)
        });
        program.summaries.extend(level.into_iter().zip(summaries));
    }
    for (input, parsed) in inputs.iter().zip(parsed.iter()) {
        note_protected(input, parsed, &mut program);
    }
    program
}

/// Notes which protected variables the calls of a file hand to dummy arguments.
fn note_protected(input: &Input, parsed: &Parsed, program: &mut Program) {
    let Parsed { tree, model, inlined, .. } = parsed;
    let mut found = Vec::new();
    for (expr, call) in inlined.calls() {
        for (position, arg) in (0..).zip(&call.args) {
            let Some(root) = arg.and_then(|arg| tree.root(arg)) else { continue };
            let resolved = model.resolve(tree, &program.modules, call.caller, root);
            if let Some(remedy) = resolved.remedy() {
                let place = place_of(input, tree.span(expr).start);
                let name = tree.symbols.name(root).into();
                found.push(((call.callee, position), ProtectedActual { place, name, remedy }));
            }
        }
    }
    found.sort();
    for (at, actual) in found {
        program.protected_actuals.entry(at).or_default().push(actual);
    }
}

/// The units that call the library, themselves or through others, and the procedures that these call.
fn concerned(
    parsed: &[Parsed],
    calls: &BTreeMap<ProcedureId, BTreeSet<ProcedureId>>,
) -> BTreeSet<ProcedureId> {
    let mut callers: BTreeMap<ProcedureId, Vec<ProcedureId>> = BTreeMap::new();
    for (&caller, callees) in calls {
        for &callee in callees {
            callers.entry(callee).or_default().push(caller);
        }
    }
    let direct = calls.keys().copied().filter(|id| {
        let parsed = &parsed[id.file as usize];
        calls_library(&parsed.tree, parsed.model.unit(UnitId(id.unit)))
    });
    let mut queue: Vec<ProcedureId> = direct.collect();
    let mut concerned: BTreeSet<ProcedureId> = queue.iter().copied().collect();
    while let Some(id) = queue.pop() {
        for &caller in callers.get(&id).map_or(&[][..], Vec::as_slice) {
            if concerned.insert(caller) {
                queue.push(caller);
            }
        }
    }
    let callees: Vec<ProcedureId> = concerned.iter().flat_map(|id| &calls[id]).copied().collect();
    concerned.extend(callees);
    concerned
}

/// A place as messages of other files name it.
fn place_of(input: &Input, at: u32) -> String {
    let before = &input.bytes[..input.bytes.len().min(at as usize)];
    let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    format!("{}:{line}", input.path)
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
