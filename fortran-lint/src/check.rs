//! Many files at once: parse them all, learn what they know about each other, run the rules. Never opens a file.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::dataflow::{Analysis, FileContext, Inlined, calls_library, n_entries, summarize};
use crate::finding::Finding;
use crate::form::Form;
use crate::model::{Model, UnitId};
use crate::options::Options;
use crate::parse::{StatementKind, Tree, parse_file};
use crate::program::{ProcedureId, Program, ProtectedActual, levels};
use crate::rules::RULES;
use crate::source::{Origin, Place};
use crate::suppress;
use rma_source::{FileId, SourceFile, SourceMap, Span};

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
    /// The file, as in [`Finding::file`].
    pub file: FileId,
    /// The place.
    pub span: Span,
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

/// A file between parsing and checking.
struct Parsed {
    tree: Tree,
    form: Form,
    model: Model,
    inlined: Inlined,
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
    let mut parsed: Vec<Parsed> = in_parallel(inputs, |input| {
        let (tree, form) = parse_file(&input.path, &input.bytes, &options.reading);
        let model = Model::new(&tree);
        step();
        Parsed { tree, form, model, inlined: Inlined::default() }
    });
    let program = learn(inputs, &mut parsed, options);
    let owners = owners(&parsed);
    let work: Vec<(u32, &Input, &Parsed)> = inputs
        .iter()
        .zip(&parsed)
        .enumerate()
        .map(|(i, (input, parsed))| (i as u32, input, parsed))
        .collect();
    let mut reports = in_parallel(&work, |&(i, input, parsed)| {
        let findings = check_file(context(i, parsed, &program, options));
        step();
        report(i, input, parsed, findings, &owners, options)
    });
    say_once(&mut reports);
    reports
}

/// What is said about a file; `owners` tells which of the files that it includes it speaks for.
fn report(
    i: u32,
    input: &Input,
    parsed: &Parsed,
    mut findings: Vec<Finding>,
    owners: &HashMap<Arc<str>, u32>,
    options: &Options,
) -> FileReport {
    let Parsed { tree, form, model, .. } = parsed;
    let is_own = |place: &Place| owners.get(&tree.origin.files[place.file as usize].path) == Some(&i);
    let mut locator = Locator { origin: &tree.origin, texts: Vec::new() };
    for finding in &mut findings {
        (finding.file, finding.span) = locator.locate(finding.span);
        for related in &mut finding.related {
            (related.file, related.span) = locator.locate(related.span);
        }
        for (file, span) in finding.repairs.iter_mut().flat_map(|repair| &mut repair.places) {
            (*file, *span) = locator.locate(*span);
        }
    }
    let text = text_of(&input.bytes);
    let mut n_silenced = suppress::apply(FileId(0), &text, *form, &mut findings, options);
    for (i, (_, included)) in locator.texts.iter().enumerate() {
        n_silenced += suppress::apply(FileId(i as u32 + 1), included.text(), *form, &mut findings, options);
    }
    findings.retain(|finding| is_wanted(finding, options));
    sort(&mut findings);
    let mut skipped = Vec::new();
    let mut n_statements = 0;
    for (i, statement) in tree.statements.iter().enumerate() {
        if !is_own(&tree.origin.place(statement.span)) {
            continue;
        }
        n_statements += 1;
        if matches!(statement.kind, StatementKind::Unknown) {
            let (file, span) = locator.locate(statement.span);
            let reason = tree.reasons.get(&(i as u32)).map_or(String::new(), ToString::to_string);
            skipped.push(Skipped { file, span, reason });
        }
    }
    let mut missing: Vec<Skipped> = model
        .units
        .iter()
        .flat_map(|unit| &unit.includes)
        .filter(|include| include.may_hold_names() && is_own(&tree.origin.place(include.span)))
        .map(|include| {
            let (file, span) = locator.locate(include.span);
            Skipped { file, span, reason: format!("`{}` was found nowhere", include.name) }
        })
        .collect();
    // A file that is included twice says everything twice.
    skipped.sort();
    skipped.dedup();
    missing.sort();
    missing.dedup();
    let own = tree.origin.files.iter().skip(1).filter(|file| owners.get(&file.path) == Some(&i));
    let included_lines: usize = own.clone().map(|file| n_lines(&file.bytes)).sum();
    // Only places lead into a text, and the texts of all files together are large.
    let has_places = !(findings.is_empty() && skipped.is_empty() && missing.is_empty());
    FileReport {
        path: input.path.clone(),
        text: if has_places { text } else { String::new() },
        form: *form,
        findings,
        n_silenced,
        skipped,
        missing,
        n_files: 1 + own.count(),
        included: locator.texts.into_iter().map(|(_, text)| text).collect(),
        n_statements,
        n_lines: n_lines(&input.bytes) + included_lines,
    }
}

/// Which input reports on which file: itself, and on each included file that is no input the first one including it.
fn owners(parsed: &[Parsed]) -> HashMap<Arc<str>, u32> {
    let mut owners = HashMap::new();
    for (i, parsed) in parsed.iter().enumerate() {
        owners.insert(parsed.tree.origin.files[0].path.clone(), i as u32);
    }
    for (i, parsed) in parsed.iter().enumerate() {
        for file in &parsed.tree.origin.files[1..] {
            owners.entry(file.path.clone()).or_insert(i as u32);
        }
    }
    owners
}

/// Turns places of an expanded text into places in files, and gathers the texts of those.
struct Locator<'a> {
    origin: &'a Origin,
    texts: Vec<(u32, SourceFile)>,
}

impl Locator<'_> {
    fn locate(&mut self, span: Span) -> (FileId, Span) {
        let place = self.origin.place(span);
        if place.file == 0 {
            return (FileId(0), place.span);
        }
        let known = self.texts.iter().position(|(file, _)| *file == place.file);
        let i = known.unwrap_or_else(|| {
            let file = &self.origin.files[place.file as usize];
            self.texts.push((place.file, SourceFile::new(&*file.path, text_of(&file.bytes))));
            self.texts.len() - 1
        });
        (FileId(i as u32 + 1), place.span)
    }
}

/// A finding in an included file stands in the report of each file that includes it; the first one is enough.
fn say_once(reports: &mut [FileReport]) {
    let mut seen = HashSet::new();
    for report in reports {
        let FileReport { findings, included, .. } = report;
        findings.retain(|finding| match finding.file.0.checked_sub(1) {
            Some(i) => {
                let path = included[i as usize].path().to_string();
                seen.insert((path, finding.span, finding.rule, finding.message.clone()))
            }
            None => true,
        });
    }
}

fn n_lines(bytes: &[u8]) -> usize {
    bytes.split(|&byte| byte == b'\n').count() - usize::from(bytes.ends_with(b"\n"))
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
    for (file, parsed) in (0..).zip(parsed.iter()) {
        program.generics.add(file, &parsed.tree, &parsed.model);
    }
    for parsed in parsed.iter_mut() {
        parsed.inlined = Inlined::new(&parsed.tree, &program);
    }
    let units: Vec<ProcedureId> = (0..)
        .zip(parsed.iter())
        .flat_map(|(file, parsed)| {
            parsed.model.iter().flat_map(move |(id, unit)| {
                let entries = 0..=n_entries(&parsed.tree, unit);
                entries.map(move |entry| ProcedureId { file, unit: id.0, entry })
            })
        })
        .collect();
    let calls = in_parallel(&units, |&id| {
        let parsed = &parsed[id.file as usize];
        parsed.inlined.callees(&parsed.tree, &parsed.model, &program, id)
    });
    let calls: BTreeMap<ProcedureId, BTreeSet<ProcedureId>> = units.iter().copied().zip(calls).collect();
    let wanted = concerned(parsed, &calls, options);
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
            let place = place_of(input, &parsed.tree, unit.name.map_or(Span::at(0), |name| name.span));
            summarize(context(id.file, parsed, &program, options), id, place)
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
                let place = place_of(input, tree, tree.span(expr));
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
    options: &Options,
) -> BTreeSet<ProcedureId> {
    let mut callers: BTreeMap<ProcedureId, Vec<ProcedureId>> = BTreeMap::new();
    for (&caller, callees) in calls {
        for &callee in callees {
            callers.entry(callee).or_default().push(caller);
        }
    }
    let direct = calls.keys().copied().filter(|id| {
        let parsed = &parsed[id.file as usize];
        calls_library(&parsed.tree, parsed.model.unit(UnitId(id.unit)), options)
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
fn place_of(input: &Input, tree: &Tree, span: Span) -> String {
    let place = tree.origin.place(span);
    let (path, bytes) = match place.file {
        0 => (&*input.path, input.bytes.as_slice()),
        file => {
            let file = &tree.origin.files[file as usize];
            (&*file.path, &*file.bytes)
        }
    };
    let before = &bytes[..bytes.len().min(place.span.start as usize)];
    format!("{path}:{}", before.iter().filter(|&&byte| byte == b'\n').count() + 1)
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

fn is_wanted(finding: &Finding, options: &Options) -> bool {
    let is_in = |codes: &[String], code: &str| codes.iter().any(|own| own.eq_ignore_ascii_case(code));
    let is_selected = !is_in(&options.ignore, finding.rule)
        && (options.runs(finding.rule)
            || finding.because.iter().any(|reason| is_in(&options.select, reason)));
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
