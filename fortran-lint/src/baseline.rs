//! Findings that were there before: a file that lists them, and what is left when they are taken out. Never counts
//! lines: a finding is known by its file, rule, variable and the text of its line, so that it may move.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::check::FileReport;
use crate::finding::Finding;

/// Version of the shape.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    findings: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    path: String,
    rule: String,
    variable: String,
    /// The line, in lower case and with single blanks.
    line: String,
    count: usize,
}

/// What makes two findings the same.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key {
    path: String,
    rule: String,
    variable: String,
    line: String,
}

/// The findings of an earlier run.
#[derive(Clone, Default, Debug)]
pub struct Baseline {
    counts: BTreeMap<Key, usize>,
}

/// What a baseline did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Applied {
    /// Findings taken out.
    pub n_known: usize,
    /// Findings of the baseline that are there no more.
    pub n_gone: usize,
}

impl Baseline {
    /// The findings of a run; `relative` names a file as seen from the baseline.
    pub fn of(reports: &[FileReport], relative: impl Fn(&str) -> String) -> Baseline {
        let mut counts = BTreeMap::new();
        for report in reports {
            for finding in &report.findings {
                *counts.entry(key(report, finding, &relative)).or_default() += 1;
            }
        }
        Baseline { counts }
    }

    /// Reads a baseline.
    ///
    /// # Errors
    ///
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<Baseline, String> {
        let document: Document = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if document.version != VERSION {
            return Err(format!(
                "it has version {}, and this program reads version {VERSION}",
                document.version
            ));
        }
        let entries = document
            .findings
            .into_iter()
            .map(|Entry { path, rule, variable, line, count }| (Key { path, rule, variable, line }, count));
        Ok(Baseline { counts: entries.collect() })
    }

    /// The text of the file, in an order that does not depend on the run.
    pub fn text(&self) -> String {
        let findings = self.counts.iter().map(|(key, &count)| {
            let Key { path, rule, variable, line } = key.clone();
            Entry { path, rule, variable, line, count }
        });
        let document = Document { version: VERSION, findings: findings.collect() };
        serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
    }

    /// How many findings it holds.
    pub fn len(&self) -> usize {
        self.counts.values().sum()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Takes known findings out. Of several that look the same the first ones are the known ones.
    pub fn apply(&self, reports: &mut [FileReport], relative: impl Fn(&str) -> String) -> Applied {
        let mut left = self.counts.clone();
        let mut n_known = 0;
        for report in reports {
            let mut findings = std::mem::take(&mut report.findings);
            findings.retain(|finding| match left.get_mut(&key(report, finding, &relative)) {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    n_known += 1;
                    false
                }
                _ => true,
            });
            report.findings = findings;
        }
        Applied { n_known, n_gone: left.values().sum() }
    }
}

fn key(report: &FileReport, finding: &Finding, relative: impl Fn(&str) -> String) -> Key {
    let sources = report.sources();
    let (path, line) = match sources.get(finding.file) {
        Some(file) => {
            let line = file.line_column(finding.span.start as usize).line;
            (relative(file.path()), normal(file.line_text(line).unwrap_or_default()))
        }
        None => (relative(&report.path), String::new()),
    };
    Key { path, rule: finding.rule.to_string(), variable: finding.variable.clone(), line }
}

/// A line as it is compared: blanks and case may change.
pub(crate) fn normal(line: &str) -> String {
    line.split_whitespace().collect::<Vec<&str>>().join(" ").to_ascii_lowercase()
}
