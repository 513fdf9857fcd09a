//! Findings for programs. The shape is fixed by its version. Never abbreviates.

use rma_source::{FileId, LineColumn, SourceMap, Span};
use serde::Serialize;

use super::Summary;
use crate::check::{self, FileReport};
use crate::finding::Finding;
use crate::rules::ADVICE_COMMAND;

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
    path: String,
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
    message: &'a str,
    variable: &'a str,
    because: &'a [&'static str],
    related: Vec<JsonRelated<'a>>,
    remedies: &'a [String],
    advice: &'static str,
}

#[derive(Serialize)]
struct JsonRelated<'a> {
    path: String,
    line: usize,
    column: usize,
    message: &'a str,
}

#[derive(Serialize)]
struct JsonSkipped<'a> {
    path: &'a str,
    line: usize,
    column: usize,
    reason: &'a str,
}

#[derive(Serialize)]
struct JsonSummary {
    files: usize,
    lines: usize,
    statements: usize,
    skipped: usize,
    missing: usize,
    errors: usize,
    warnings: usize,
    notes: usize,
    silenced: usize,
    known: usize,
    gone: usize,
    untouched: usize,
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
pub fn document(reports: &[FileReport], summary: &Summary, show: Skipped) -> String {
    let mut findings = Vec::new();
    let mut skipped = Vec::new();
    for report in reports {
        if !report.findings.is_empty() {
            let map = report.sources();
            findings.extend(report.findings.iter().map(|finding| one(&map, finding)));
        }
        skipped.extend(report.skipped.iter().map(|skipped| {
            let check::Skipped { path, line, column, reason, .. } = skipped;
            JsonSkipped { path, line: *line, column: *column, reason }
        }));
    }
    let Summary {
        files,
        lines,
        statements,
        skipped: n_skipped,
        missing,
        errors,
        warnings,
        notes,
        silenced,
        known,
        gone,
        untouched,
    } = *summary;
    let document = Document {
        version: VERSION,
        findings,
        summary: JsonSummary {
            files,
            lines,
            statements,
            skipped: n_skipped,
            missing,
            errors,
            warnings,
            notes,
            silenced,
            known,
            gone,
            untouched,
        },
        skipped: (show == Skipped::Listed).then_some(skipped),
    };
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

fn one<'a>(map: &SourceMap, finding: &'a Finding) -> JsonFinding<'a> {
    let Span { start, end } = finding.span;
    let (path, start) = place(map, finding.file, start);
    let (_, end) = place(map, finding.file, end);
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
                let (path, place) = place(map, related.file, related.span.start);
                JsonRelated { path, line: place.line, column: place.column, message: &related.message }
            })
            .collect(),
        remedies: &finding.remedies,
        advice: ADVICE_COMMAND,
    }
}

/// The path of a file of a report, and a place in it.
fn place(map: &SourceMap, file: FileId, offset: u32) -> (String, LineColumn) {
    match map.get(file) {
        Some(file) => (file.path().to_string(), file.line_column(offset as usize)),
        None => (String::new(), LineColumn { line: 1, column: 1 }),
    }
}
