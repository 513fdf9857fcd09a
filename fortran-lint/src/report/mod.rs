//! Findings for people and for programs. Never writes to a stream.

pub mod github;
pub mod json;
pub mod overview;
pub mod sarif;
pub mod text;

use crate::check::FileReport;
use crate::finding::Level;
use crate::rules::ADVICE_COMMAND;
use serde::Serialize;

/// Where a finding of a rule is explained, and the topic as a whole.
fn see(rule: &str) -> String {
    format!(
        "`fortran-lint explain {rule}` tells what the compiler may do and what helps, `{ADVICE_COMMAND}` how to keep \
         memory out of registers"
    )
}

/// How many of what; the names of the fields are those of the JSON document.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Files read, included ones among them.
    pub files: usize,
    /// Lines in them.
    pub lines: usize,
    /// Statements in them.
    pub statements: usize,
    /// Statements not understood.
    pub skipped: usize,
    /// Included files that were not found.
    pub missing: usize,
    /// Findings at level error.
    pub errors: usize,
    /// Findings at level warning.
    pub warnings: usize,
    /// Findings at level note.
    pub notes: usize,
    /// Findings that comments allow.
    pub silenced: usize,
    /// Findings that the baseline holds.
    pub known: usize,
    /// Findings of the baseline that are there no more.
    pub gone: usize,
    /// Findings on lines that did not change.
    pub untouched: usize,
}

impl Summary {
    /// Counts.
    pub fn new(reports: &[FileReport]) -> Summary {
        let mut summary = Summary::default();
        summary.add(reports);
        summary
    }

    /// Counts these as well.
    pub fn add(&mut self, reports: &[FileReport]) {
        let summary = self;
        for report in reports {
            summary.files += report.n_files;
            summary.missing += report.missing.len();
            summary.lines += report.n_lines;
            summary.statements += report.n_statements;
            summary.skipped += report.skipped.len();
            summary.silenced += report.n_silenced;
            for finding in &report.findings {
                match finding.level {
                    Level::Error => summary.errors += 1,
                    Level::Warning => summary.warnings += 1,
                    Level::Note => summary.notes += 1,
                }
            }
        }
    }

    /// Share of the statements that were understood, in per cent.
    pub fn understood(&self) -> f64 {
        match self.statements {
            0 => 100.0,
            n => 100.0 * (n - self.skipped) as f64 / n as f64,
        }
    }
}
