//! Findings as annotations of GitHub's checks, one line each. Never longer than a line.

use rma_source::LineColumn;

use crate::check::FileReport;
use crate::finding::Level;

/// All findings of a run.
pub fn annotations(reports: &[FileReport]) -> String {
    let mut out = String::new();
    for report in reports {
        let sources = report.sources();
        for finding in &report.findings {
            let command = match finding.level {
                Level::Error => "error",
                Level::Warning => "warning",
                Level::Note => "notice",
            };
            let Some(file) = sources.get(finding.file) else { continue };
            let LineColumn { line, column } = file.line_column(finding.span.start as usize);
            let end = file.line_column(finding.span.end as usize);
            // An annotation with columns must not go over several lines.
            let columns = match end.line == line {
                true => format!(",col={column},endColumn={}", end.column),
                false => String::new(),
            };
            let mut message = finding.message.clone();
            if !finding.because.is_empty() {
                message.push_str(&format!(
                    "\na remedy that was tried does not help: {}",
                    finding.because.join(", ")
                ));
            }
            for remedy in &finding.remedies {
                message.push_str(&format!("\nhelp: {remedy}"));
            }
            message.push_str(&format!("\nnote: {}", super::see(finding.rule)));
            out.push_str(&format!(
                "::{command} file={},line={line},endLine={}{columns},title={}::{}\n",
                property(file.path()),
                end.line,
                property(&format!("{} {}", finding.rule, finding.variable)),
                data(&message),
            ));
        }
    }
    out
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
