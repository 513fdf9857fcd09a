//! How many findings of which rule in which file. Never shows a finding.

use std::collections::BTreeMap;

use crate::check::FileReport;
use crate::finding::Level;
use crate::rules::find;

/// Findings of one level each: errors, warnings, notes.
#[derive(Clone, Copy, Default)]
struct Counts([usize; 3]);

impl Counts {
    fn add(&mut self, level: Level) {
        self.0[match level {
            Level::Error => 0,
            Level::Warning => 1,
            Level::Note => 2,
        }] += 1;
    }

    fn row(self, name: &str) -> String {
        let [errors, warnings, notes] = self.0;
        format!("{errors:>8} {warnings:>8} {notes:>8}  {name}\n")
    }
}

/// A table by rule and a table by file, each in the order of its names.
pub fn tables(reports: &[FileReport]) -> String {
    let mut rules: BTreeMap<&str, Counts> = BTreeMap::new();
    let mut files: BTreeMap<String, Counts> = BTreeMap::new();
    for report in reports.iter().filter(|report| !report.findings.is_empty()) {
        let sources = report.sources();
        for finding in &report.findings {
            rules.entry(finding.rule).or_default().add(finding.level);
            let path = sources.get(finding.file).map_or(report.path.as_str(), |file| file.path());
            files.entry(path.to_string()).or_default().add(finding.level);
        }
    }
    if rules.is_empty() {
        return String::new();
    }
    let head = |what: &str| format!("{:>8} {:>8} {:>8}  {what}\n", "errors", "warnings", "notes");
    let mut out = head("rule");
    for (code, counts) in rules {
        let name = find(code).map_or("", |rule| rule.name);
        out.push_str(&counts.row(&format!("{code} {name}")));
    }
    out.push('\n');
    out.push_str(&head("file"));
    for (path, counts) in files {
        out.push_str(&counts.row(&path));
    }
    out.push('\n');
    out
}
