//! Findings for programs. The shape is fixed by its version. Never abbreviates.

use rma_source::{SourceFile, Span};
use serde::Serialize;

use super::Summary;
use crate::check::FileReport;
use crate::finding::Finding;

/// Version of the shape; it grows when a field changes its meaning or goes.
pub const VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    findings: Vec<JsonFinding<'a>>,
    summary: JsonSummary,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<Vec<JsonSkipped<'a>>>,
}

#[derive(Serialize)]
struct JsonFinding<'a> {
    rule: &'a str,
    level: &'static str,
    path: &'a str,
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
    message: &'a str,
    variable: &'a str,
    because: &'a [&'static str],
    related: Vec<JsonRelated<'a>>,
    remedies: &'a [String],
}

#[derive(Serialize)]
struct JsonRelated<'a> {
    path: &'a str,
    line: usize,
    column: usize,
    message: &'a str,
}

#[derive(Serialize)]
struct JsonSkipped<'a> {
    path: &'a str,
    line: usize,
    column: usize,
}

#[derive(Serialize)]
struct JsonSummary {
    files: usize,
    lines: usize,
    statements: usize,
    skipped: usize,
    errors: usize,
    warnings: usize,
    notes: usize,
}

/// Whether the statements that were not understood are listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Skipped {
    /// They are.
    Listed,
    /// They are only counted.
    Counted,
}

/// A whole run as one JSON document, ending in a newline.
pub fn document(reports: &[FileReport], show: Skipped) -> String {
    let mut findings = Vec::new();
    let mut skipped = Vec::new();
    for report in reports {
        if report.findings.is_empty() && report.skipped.is_empty() {
            continue;
        }
        let file = SourceFile::new(report.path.clone(), report.text.clone());
        findings.extend(report.findings.iter().map(|finding| one(&report.path, &file, finding)));
        skipped.extend(report.skipped.iter().map(|&span| {
            let place = file.line_column(span.start as usize);
            JsonSkipped { path: &report.path, line: place.line, column: place.column }
        }));
    }
    let Summary { files, lines, statements, skipped: n_skipped, errors, warnings, notes } =
        Summary::new(reports);
    let document = Document {
        version: VERSION,
        findings,
        summary: JsonSummary { files, lines, statements, skipped: n_skipped, errors, warnings, notes },
        skipped: (show == Skipped::Listed).then_some(skipped),
    };
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

fn one<'a>(path: &'a str, file: &SourceFile, finding: &'a Finding) -> JsonFinding<'a> {
    let Span { start, end } = finding.span;
    let (start, end) = (file.line_column(start as usize), file.line_column(end as usize));
    JsonFinding {
        rule: finding.rule,
        level: finding.level.name(),
        path,
        line: start.line,
        column: start.column,
        end_line: end.line,
        end_column: end.column,
        message: &finding.message,
        variable: &finding.variable,
        because: &finding.because,
        related: finding
            .related
            .iter()
            .map(|related| {
                let place = file.line_column(related.span.start as usize);
                JsonRelated { path, line: place.line, column: place.column, message: &related.message }
            })
            .collect(),
        remedies: &finding.remedies,
    }
}
