//! Mends findings by adding lines: a declaration, a COMMON block, a call. Never changes or removes a byte that was
//! there, and never keeps an edit that does not remove its finding: the texts are checked again with it.

mod layout;
mod patch;

#[cfg(test)]
mod test;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use rma_source::{FileId, Span};

use crate::baseline::{line_of, normal};
use crate::check::{FileReport, Input, check};
use crate::finding::{Action, Finding, Repair};
use crate::form::Form;
use crate::options::Options;
use crate::source::Files;
pub use patch::Patch;

/// How often the texts are looked at again; a variable with calls in many places takes one round for each.
const ROUNDS_MAX: usize = 20;

/// One mended finding.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Mended {
    /// The file of the finding.
    pub path: String,
    /// Its rule.
    pub rule: &'static str,
    /// Its variable.
    pub variable: String,
    /// What was added.
    pub action: Action,
}

/// What mending came to.
#[derive(Debug)]
pub struct Outcome {
    /// Edits by the index of the input.
    pub patches: BTreeMap<usize, Patch>,
    /// What was mended.
    pub mended: Vec<Mended>,
    /// Files that hold the statement beside which an edit belongs, and that were not among the inputs.
    pub not_asked_for: BTreeSet<String>,
    /// What is still found in the new texts.
    pub reports: Vec<FileReport>,
    /// What was not to be mended.
    unwanted: BTreeSet<Key>,
    /// What was mended by calls.
    called: BTreeSet<Concern>,
}

/// What tells a finding from others through edits, which move lines: file, rule, variable, text of the line, unit.
type Key = (String, &'static str, String, String, Option<u32>);

/// A rule and a variable in a unit of a file.
type Concern = (String, &'static str, String, u32);

fn concern(report: &FileReport, finding: &Finding) -> Option<(Key, Concern)> {
    let unit = finding.repairs.first()?.unit;
    let key = key(report, finding);
    let concern = (key.0.clone(), finding.rule, finding.variable.clone(), unit);
    Some((key, concern))
}

fn keys(reports: &[FileReport]) -> BTreeSet<Key> {
    reports.iter().flat_map(|report| report.findings.iter().map(|finding| key(report, finding))).collect()
}

/// Mends what `wanted` leaves of the findings.
pub fn mend(inputs: &[Input], options: &Options, wanted: impl Fn(&mut [FileReport])) -> Outcome {
    let mut hopeless: BTreeSet<Concern> = BTreeSet::new();
    loop {
        let outcome = attempt(inputs, options, &wanted, &hopeless);
        // Calls were added in some places, and in others they do not help: then all of them are for nothing.
        let left: BTreeSet<Concern> = outcome
            .reports
            .iter()
            .flat_map(|report| report.findings.iter().filter_map(|finding| concern(report, finding)))
            .filter(|(key, _)| !outcome.unwanted.contains(key))
            .map(|(_, concern)| concern)
            .collect();
        let half: Vec<Concern> = outcome.called.intersection(&left).cloned().collect();
        if half.is_empty() {
            return outcome;
        }
        hopeless.extend(half);
    }
}

fn attempt(
    inputs: &[Input],
    options: &Options,
    wanted: impl Fn(&mut [FileReport]),
    hopeless: &BTreeSet<Concern>,
) -> Outcome {
    let mut outcome = Outcome {
        patches: BTreeMap::new(),
        mended: Vec::new(),
        not_asked_for: BTreeSet::new(),
        reports: Vec::new(),
        unwanted: BTreeSet::new(),
        called: BTreeSet::new(),
    };
    let mut texts = inputs.to_vec();
    let mut reports = check(&texts, &with_texts(options, &texts));
    outcome.unwanted = keys(&reports);
    wanted(&mut reports);
    let chosen = keys(&reports);
    outcome.unwanted.retain(|key| !chosen.contains(key));
    // In later rounds only what has to do with the first one: the filter knows the old lines alone.
    let mut concerned: Option<BTreeSet<Concern>> = None;
    for _ in 0..ROUNDS_MAX {
        let mut work: Vec<Work> = Vec::new();
        for report in &reports {
            for finding in report.findings.iter().filter(|finding| !finding.repairs.is_empty()) {
                let Some((key, concern)) = concern(report, finding) else { continue };
                let is_meant = concerned.as_ref().is_none_or(|concerned| concerned.contains(&concern));
                if is_meant && !hopeless.contains(&concern) && !outcome.unwanted.contains(&key) {
                    work.push(Work::new(report, finding, (key, concern), &texts, &mut outcome.not_asked_for));
                }
            }
        }
        concerned.get_or_insert(work.iter().map(|work| work.concern.clone()).collect());
        work.retain(|work| !work.ways.is_empty());
        let Some((new_texts, insertions, new_reports)) = settle(&texts, &mut work, options) else { break };
        for (i, list) in insertions {
            let patch = outcome.patches.entry(i).or_insert_with(|| Patch::new(inputs[i].bytes.clone()));
            patch.add(list);
        }
        texts = new_texts;
        reports = new_reports;
        for work in work {
            if let Some(way) = work.ways.get(work.choice) {
                if way.action.is_call() {
                    outcome.called.insert(work.concern);
                }
                let (path, rule, variable, ..) = work.key;
                let mended = Mended { path, rule, variable, action: way.action.clone() };
                if !outcome.mended.contains(&mended) {
                    outcome.mended.push(mended);
                }
            }
        }
    }
    outcome.mended.sort();
    outcome.reports = reports;
    outcome
}

/// A finding and the ways to mend it.
struct Work {
    key: Key,
    concern: Concern,
    ways: Vec<Way>,
    /// The way tried now; behind the last one there is none left.
    choice: usize,
}

/// A way to mend a finding: edits that belong together.
struct Way {
    action: Action,
    edits: Vec<Edit>,
}

/// An edit of one of the texts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Edit {
    input: usize,
    at: usize,
    text: Vec<u8>,
    /// The first byte of the statement beside which the text goes.
    anchor: usize,
}

/// Text to be added, by place.
type Insertions = BTreeMap<usize, Vec<(usize, Vec<u8>)>>;

impl Work {
    fn new(
        report: &FileReport,
        finding: &Finding,
        (key, concern): (Key, Concern),
        texts: &[Input],
        not_asked_for: &mut BTreeSet<String>,
    ) -> Work {
        let mut ways = Vec::new();
        for Repair { action, places, .. } in &finding.repairs {
            let edit = |&(file, span): &(FileId, Span)| {
                let home = report.path_of(file);
                let Some(input) = texts.iter().position(|input| input.path == home) else {
                    not_asked_for.insert(home.to_string());
                    return None;
                };
                let (at, text) = edit(&texts[input].bytes, report.form, span, action, &finding.variable)?;
                Some(Edit { input, at, text, anchor: span.start as usize })
            };
            let edits: Option<Vec<Edit>> = places.iter().map(edit).collect();
            ways.extend(edits.map(|edits| Way { action: action.clone(), edits }));
        }
        Work { key, concern, ways, choice: 0 }
    }
}

fn edit(text: &[u8], form: Form, span: Span, action: &Action, variable: &str) -> Option<(usize, Vec<u8>)> {
    let anchor = layout::Anchor::new(text, form, span)?;
    let name = anchor.spelling(variable);
    match action {
        Action::Declare(attribute) => {
            let attribute = anchor.keyword(attribute);
            let colons = if anchor.has_colons() { " ::" } else { "" };
            anchor.behind(&[&format!("{attribute}{colons}"), &name])
        }
        Action::Common(block) => {
            let common = anchor.keyword("COMMON");
            anchor.behind(&[&format!("{common} /{}/", anchor.like(block)), &name])
        }
        Action::CallBefore(routine) => {
            let call = anchor.keyword("CALL");
            anchor.before(&[&call, &format!("{}({name})", anchor.routine(routine))])
        }
        Action::CallBehind(routine) => {
            let call = anchor.keyword("CALL");
            anchor.behind(&[&call, &format!("{}({name})", anchor.routine(routine))])
        }
    }
}

/// Tries the first way of everything, then the next one of what is still found, until nothing changes. `None` when
/// no way is left.
fn settle(
    texts: &[Input],
    work: &mut [Work],
    options: &Options,
) -> Option<(Vec<Input>, Insertions, Vec<FileReport>)> {
    loop {
        let ways = work.iter().filter_map(|work| work.ways.get(work.choice));
        let chosen: BTreeSet<&Edit> = ways.flat_map(|way| &way.edits).collect();
        if chosen.is_empty() {
            return None;
        }
        let mut insertions: Insertions = BTreeMap::new();
        for edit in chosen {
            insertions.entry(edit.input).or_default().push((edit.at, edit.text.clone()));
        }
        let mut new_texts = texts.to_vec();
        for (&i, list) in &insertions {
            let mut patch = Patch::new(texts[i].bytes.clone());
            patch.add(list.clone());
            new_texts[i].bytes = patch.new_text();
        }
        let reports = check(&new_texts, &with_texts(options, &new_texts));
        // What is found again, with the statements beside which it asks for a call.
        let mut left: BTreeMap<Key, BTreeSet<(String, usize)>> = BTreeMap::new();
        for report in &reports {
            for finding in &report.findings {
                let anchors = left.entry(key(report, finding)).or_default();
                let calls = finding.repairs.iter().filter(|repair| repair.action.is_call());
                let places = calls.flat_map(|repair| &repair.places);
                anchors.extend(
                    places.map(|(file, span)| (report.path_of(*file).to_string(), span.start as usize)),
                );
            }
        }
        let mut has_failed = false;
        for work in work.iter_mut() {
            let (Some(way), Some(anchors)) = (work.ways.get(work.choice), left.get(&work.key)) else {
                continue;
            };
            // A call that asks for another one somewhere else has done its part.
            let is_same = |edit: &Edit| {
                let before = insertions[&edit.input].iter().filter(|(at, _)| *at <= edit.anchor);
                let n_before: usize = before.map(|(_, text)| text.len()).sum();
                anchors.contains(&(texts[edit.input].path.clone(), edit.anchor + n_before))
            };
            if way.action.is_call() && !anchors.is_empty() && !way.edits.iter().any(is_same) {
                continue;
            }
            work.choice += 1;
            has_failed = true;
        }
        if !has_failed {
            return Some((new_texts, insertions, reports));
        }
    }
}

/// Files as they will be, before those on the disk: one text may include another.
#[derive(Debug)]
struct Overlay {
    texts: HashMap<String, Arc<[u8]>>,
    below: Arc<dyn Files>,
}

impl Files for Overlay {
    fn read(&self, path: &str) -> Option<Arc<[u8]>> {
        self.texts.get(path).cloned().or_else(|| self.below.read(path))
    }

    fn named(&self, name: &str) -> Vec<String> {
        self.below.named(name)
    }
}

fn with_texts(options: &Options, texts: &[Input]) -> Options {
    let texts = texts.iter().map(|input| (input.path.clone(), Arc::from(input.bytes.as_slice()))).collect();
    let mut options = options.clone();
    options.reading.files = Arc::new(Overlay { texts, below: Arc::clone(&options.reading.files) });
    options
}

fn key(report: &FileReport, finding: &Finding) -> Key {
    let line = normal(line_of(report.text_of(finding.file), finding.span.start as usize));
    let unit = finding.repairs.first().map(|repair| repair.unit);
    (report.path_of(finding.file).to_string(), finding.rule, finding.variable.clone(), line, unit)
}

impl Action {
    fn is_call(&self) -> bool {
        matches!(self, Action::CallBefore(_) | Action::CallBehind(_))
    }

    /// What was done, in words, to the variable.
    pub fn told(&self, variable: &str) -> String {
        match self {
            Action::Declare(attribute) => format!("`{variable}` is declared {attribute}"),
            Action::Common(block) => format!(
                "`{variable}` is in COMMON /{block}/: one place for all calls, so look whether threads or recursion need several"
            ),
            Action::CallBefore(routine) | Action::CallBehind(routine) => {
                format!("{routine} is called with `{variable}`")
            }
        }
    }
}
