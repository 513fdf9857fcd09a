//! Findings that were there before: a file that lists them, and what is left when they are taken out. Never counts
//! lines: a finding is known by its file, rule, variable and the text of its line, so that it may move.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::check::FileReport;
use crate::finding::{Finding, Level};
use crate::options::{LEVELS, Options};

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
    level: String,
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
    known: BTreeMap<Key, Known>,
}

/// How many findings look the same, and how bad they are.
#[derive(Clone, Copy, Debug)]
struct Known {
    level: Level,
    count: usize,
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
        let mut known: BTreeMap<Key, Known> = BTreeMap::new();
        for report in reports {
            for finding in &report.findings {
                let Known { count, .. } = known
                    .entry(key(report, finding, &relative))
                    .or_insert(Known { level: finding.level, count: 0 });
                *count += 1;
            }
        }
        Baseline { known }
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
        let entries =
            document.findings.into_iter().map(|Entry { path, rule, level, variable, line, count }| {
                let level =
                    LEVELS.iter().find(|(word, _)| *word == level).ok_or(format!("`{level}` is no level"))?.1;
                Ok((Key { path, rule, variable, line }, Known { level, count }))
            });
        Ok(Baseline { known: entries.collect::<Result<_, String>>()? })
    }

    /// The text of the file, in an order that does not depend on the run.
    pub fn text(&self) -> String {
        let findings = self.known.iter().map(|(key, known)| {
            let Key { path, rule, variable, line } = key.clone();
            Entry { path, rule, level: known.level.name().to_string(), variable, line, count: known.count }
        });
        let document = Document { version: VERSION, findings: findings.collect() };
        serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
    }

    /// How many findings it holds.
    pub fn n_findings(&self) -> usize {
        self.known.values().map(|known| known.count).sum()
    }

    /// Takes known findings out. Of several that look the same the first ones are the known ones. Those that this run
    /// could not have found, by its paths, rules and level, do not count as gone.
    pub fn apply(
        &self,
        reports: &mut [FileReport],
        options: &Options,
        relative: impl Fn(&str) -> String,
    ) -> Applied {
        let mut left = self.known.clone();
        let mut n_known = 0;
        let mut looked_at: BTreeSet<String> = BTreeSet::new();
        for report in reports {
            looked_at.insert(relative(&report.path));
            looked_at.extend(report.included.iter().map(|file| relative(file.path())));
            let mut findings = std::mem::take(&mut report.findings);
            findings.retain(|finding| match left.get_mut(&key(report, finding, &relative)) {
                Some(Known { count, .. }) if *count > 0 => {
                    *count -= 1;
                    n_known += 1;
                    false
                }
                _ => true,
            });
            report.findings = findings;
        }
        let could_be_found = |key: &Key, level: Level| {
            looked_at.contains(&key.path) && options.runs(&key.rule) && level <= options.min_level
        };
        let gone = left.iter().filter(|(key, known)| could_be_found(key, known.level));
        Applied { n_known, n_gone: gone.map(|(_, known)| known.count).sum() }
    }
}

fn key(report: &FileReport, finding: &Finding, relative: impl Fn(&str) -> String) -> Key {
    Key {
        path: relative(report.path_of(finding.file)),
        rule: finding.rule.to_string(),
        variable: finding.variable.clone(),
        line: normal(line_of(report.text_of(finding.file), finding.span.start as usize)),
    }
}

/// The line that holds a byte.
pub(crate) fn line_of(text: &str, at: usize) -> &str {
    let (before, behind) = text.split_at_checked(at).unwrap_or((text, ""));
    let is_end = |c: char| matches!(c, '\n' | '\r');
    let start = before.rfind(is_end).map_or(0, |end| end + 1);
    let end = behind.find(is_end).map_or(text.len(), |length| at + length);
    &text[start..end]
}

/// A line as it is compared: blanks and case may change.
pub(crate) fn normal(line: &str) -> String {
    line.split_whitespace().collect::<Vec<&str>>().join(" ").to_ascii_lowercase()
}
