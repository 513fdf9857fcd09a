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
    summary: &'a Summary,
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

/// A place and what is to be said about it, under a name of its own.
#[derive(Serialize)]
struct JsonPlace {
    path: String,
    line: usize,
    column: usize,
}

#[derive(Serialize)]
struct JsonRelated<'a> {
    #[serde(flatten)]
    place: JsonPlace,
    message: &'a str,
}

#[derive(Serialize)]
struct JsonSkipped<'a> {
    #[serde(flatten)]
    place: JsonPlace,
    reason: &'a str,
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
            let place = JsonPlace { path: path.to_string(), line: *line, column: *column };
            JsonSkipped { place, reason }
        }));
    }
    let document = Document {
        version: VERSION,
        findings,
        summary,
        skipped: (show == Skipped::Listed).then_some(skipped),
    };
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

fn one<'a>(map: &SourceMap, finding: &'a Finding) -> JsonFinding<'a> {
    let Span { start, end } = finding.span;
    let JsonPlace { path, line, column } = JsonPlace::new(map, finding.file, start);
    let end = JsonPlace::new(map, finding.file, end);
    JsonFinding {
        rule: finding.rule,
        level: finding.level.name(),
        path,
        line,
        column,
        end_line: end.line,
        end_column: end.column,
        message: &finding.message,
        variable: &finding.variable,
        because: &finding.because,
        related: finding
            .related
            .iter()
            .map(|related| {
                let place = JsonPlace::new(map, related.file, related.span.start);
                JsonRelated { place, message: &related.message }
            })
            .collect(),
        remedies: &finding.remedies,
        advice: ADVICE_COMMAND,
    }
}

impl JsonPlace {
    fn new(map: &SourceMap, file: FileId, offset: u32) -> JsonPlace {
        let (path, LineColumn { line, column }) = match map.get(file) {
            Some(file) => (file.path().to_string(), file.line_column(offset as usize)),
            None => (String::new(), LineColumn { line: 1, column: 1 }),
        };
        JsonPlace { path, line, column }
    }
}
