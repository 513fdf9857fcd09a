//! Findings for people, in the look of rustc. Never decides what is shown.

use rma_source::{Diagnostic, render};

use super::Summary;
use crate::check::{FileReport, Skipped};
use crate::finding::Finding;

/// All findings of a run, each followed by an empty line.
pub fn findings(reports: &[FileReport], colour: render::Colour) -> String {
    let mut out = String::new();
    for report in reports.iter().filter(|report| !report.findings.is_empty()) {
        let map = report.sources();
        for finding in &report.findings {
            out.push_str(&render::text(&map, &diagnostic(finding), colour));
            out.push_str("\n\n");
        }
    }
    out
}

/// A finding in the terms of the shared renderer.
fn diagnostic(finding: &Finding) -> Diagnostic {
    let mut diagnostic = Diagnostic::new(finding.level, finding.rule, finding.message.clone()).label_in(
        finding.file,
        finding.span,
        finding.label,
    );
    for related in &finding.related {
        diagnostic = diagnostic.label_in(related.file, related.span, related.message.clone());
    }
    if !finding.because.is_empty() {
        diagnostic =
            diagnostic.note(format!("a remedy that was tried does not help: {}", finding.because.join(", ")));
    }
    for remedy in &finding.remedies {
        diagnostic = diagnostic.help(remedy.clone());
    }
    diagnostic.note(super::see(finding.rule))
}

/// Statements that were not understood and included files that were not found, one a line.
pub fn skipped(reports: &[FileReport]) -> String {
    let mut out = String::new();
    for report in reports {
        let mut add = |skipped: &Skipped, what: &str| {
            let Skipped { path, line, column, text, reason } = skipped;
            out.push_str(&format!("{path}:{line}:{column}: {what}: {text} ({reason})\n"));
        };
        for skipped in &report.skipped {
            add(skipped, "skipped");
        }
        for missing in &report.missing {
            add(missing, "not included");
        }
    }
    out
}

/// The last lines of a run.
pub fn summary(summary: &Summary) -> String {
    let skipped = match summary.skipped {
        0 => String::new(),
        1 => "1 statement was not understood (--show-skipped lists it)\n".to_string(),
        n => format!("{n} statements were not understood (--show-skipped lists them)\n"),
    };
    let mut left_out = String::new();
    for (n, why) in [
        (summary.silenced, "allowed by comments"),
        (summary.known, "known by the baseline"),
        (summary.untouched, "on lines that did not change"),
    ] {
        if n > 0 {
            left_out.push_str(&format!(", {} {why}", counted(n, "finding")));
        }
    }
    let gone = match summary.gone {
        0 => String::new(),
        n => format!("{} of the baseline no longer there: write it anew\n", counted(n, "finding")),
    };
    format!(
        "{skipped}{gone}{}, {}, {} in {}{left_out}\n",
        counted(summary.errors, "error"),
        counted(summary.warnings, "warning"),
        counted(summary.notes, "note"),
        counted(summary.files, "file"),
    )
}

/// Figures about the run.
pub fn stats(summary: &Summary, seconds: f64) -> String {
    format!(
        "{}, {}, {}, {} skipped, {:.3} % understood, {} not found, {seconds:.2} s, {:.0} lines/s\n",
        counted(summary.files, "file"),
        counted(summary.lines, "line"),
        counted(summary.statements, "statement"),
        summary.skipped,
        summary.understood(),
        counted(summary.missing, "included file"),
        summary.lines as f64 / seconds.max(1e-9),
    )
}

/// A number and a word that goes with it.
pub fn counted(n: usize, word: &str) -> String {
    match n {
        1 => format!("1 {word}"),
        n => format!("{n} {word}s"),
    }
}
