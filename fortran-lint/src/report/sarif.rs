//! Findings as SARIF 2.1.0, for code scanning. Never abbreviates.

use rma_source::{FileId, Level, SourceMap, Span};
use serde::Serialize;
use serde_json::{Value, json};

use crate::baseline::normal;
use crate::check::FileReport;
use crate::finding::Finding;
use crate::rules::{RULES, Role, Rule};

/// The schema that the document obeys.
const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    rule_id: &'static str,
    rule_index: usize,
    level: &'static str,
    message: Value,
    locations: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related_locations: Vec<Value>,
    partial_fingerprints: Value,
    properties: Value,
}

/// A whole run as one document, ending in a newline.
pub fn document(reports: &[FileReport]) -> String {
    let mut results = Vec::new();
    for report in reports.iter().filter(|report| !report.findings.is_empty()) {
        let sources = report.sources();
        results.extend(report.findings.iter().map(|finding| outcome(&sources, finding)));
    }
    let document = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "fortran-lint",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": RULES.iter().map(descriptor).collect::<Vec<Value>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

fn descriptor(rule: &Rule) -> Value {
    let page = rule.page();
    // The first paragraph behind the heading says what is found.
    let first = page.split("\n\n").nth(1).unwrap_or_default().replace('\n', " ");
    json!({
        "id": rule.code,
        "name": rule.name,
        "shortDescription": { "text": rule.name.replace('-', " ") },
        "fullDescription": { "text": first },
        "help": { "text": page, "markdown": page },
        "defaultConfiguration": { "level": match (rule.role, rule.level) {
            (Role::Rule, "error") => "error",
            (Role::Rule, "warning") => "warning",
            _ => "note",
        }},
    })
}

fn outcome(sources: &SourceMap, finding: &Finding) -> Outcome {
    let mut text = finding.message.clone();
    for remedy in &finding.remedies {
        text.push_str(&format!("\n- {remedy}"));
    }
    let related = finding.related.iter().enumerate().map(|(i, related)| {
        let mut location = location(sources, related.file, related.span);
        location["id"] = json!(i + 1);
        location["message"] = json!({ "text": related.message });
        location
    });
    Outcome {
        rule_id: finding.rule,
        rule_index: RULES.iter().position(|rule| rule.code == finding.rule).unwrap_or_default(),
        level: match finding.level {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Note => "note",
        },
        message: json!({ "text": text }),
        locations: vec![location(sources, finding.file, finding.span)],
        related_locations: related.collect(),
        partial_fingerprints: json!({ "place/v1": fingerprint(sources, finding) }),
        properties: json!({ "variable": finding.variable, "because": finding.because }),
    }
}

fn location(sources: &SourceMap, file: FileId, span: Span) -> Value {
    let Some(file) = sources.get(file) else { return json!({}) };
    let start = file.line_column(span.start as usize);
    let end = file.line_column(span.end as usize);
    json!({ "physicalLocation": {
        "artifactLocation": { "uri": uri(file.path()) },
        "region": {
            "startLine": start.line,
            "startColumn": start.column,
            "endLine": end.line,
            "endColumn": end.column,
        },
    }})
}

/// A path as a URI reference: what a URI may not hold is written as `%` and two digits.
fn uri(path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    let mut out = String::new();
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z'
            | b'a'..=b'z'
            | b'0'..=b'9'
            | b'/'
            | b'.'
            | b'-'
            | b'_'
            | b'~'
            | b'+'
            | b'@'
            | b'=' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    // A first part with a colon would be a scheme; it was written as %3A above.
    match out.starts_with('/') {
        true => format!("file://{out}"),
        false => out,
    }
}

/// What stays when lines move: rule, variable, and the text of the line (FNV-1a, 64 bits).
fn fingerprint(sources: &SourceMap, finding: &Finding) -> String {
    let line = sources.get(finding.file).map_or(String::new(), |file| {
        let line = file.line_column(finding.span.start as usize).line;
        normal(file.line_text(line).unwrap_or_default())
    });
    let text = format!("{}\n{}\n{line}", finding.rule, finding.variable);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}
