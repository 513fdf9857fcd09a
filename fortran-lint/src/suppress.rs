//! Comments that allow a finding: `! rma-lint: allow FR02 reason`. Never silences anything without a reason.
//!
//! A comment behind a statement concerns its line; a line that is all comment concerns the next line that is not.
//! `FR02(buf)` allows the findings about one variable only, and several codes are separated by commas.

use rma_source::{FileId, Span};

use crate::finding::{Finding, Level};
use crate::form::Form;
use crate::options::Options;
use crate::rules::find;

/// What a comment must begin with.
const MARK: &str = "rma-lint:";

/// One code that a comment allows.
struct Allowed {
    code: &'static str,
    variable: Option<String>,
    is_used: bool,
}

/// One comment.
struct Directive {
    span: Span,
    /// The byte range of the line that it concerns.
    line: Span,
    allowed: Vec<Allowed>,
    /// Why it allows nothing.
    fault: Option<String>,
}

/// Takes the findings out that comments of this text allow, and returns how many; what is wrong with a comment, and a
/// comment without effect, becomes a finding.
pub fn apply(file: FileId, text: &str, form: Form, findings: &mut Vec<Finding>, options: &Options) -> usize {
    // Most files have none.
    if !text.contains(MARK) {
        return 0;
    }
    let mut directives = directives(text, form);
    let n_before = findings.len();
    findings.retain(|finding| {
        if finding.file != file {
            return true;
        }
        let mut is_kept = true;
        for directive in &mut directives {
            let at = finding.span.start;
            if !(directive.line.start <= at && at <= directive.line.end) || directive.fault.is_some() {
                continue;
            }
            for allowed in &mut directive.allowed {
                let is_meant = allowed.code == finding.rule
                    && allowed
                        .variable
                        .as_ref()
                        .is_none_or(|name| name.eq_ignore_ascii_case(&finding.variable));
                allowed.is_used |= is_meant;
                is_kept &= !is_meant;
            }
        }
        is_kept
    });
    let n_silenced = n_before - findings.len();
    for directive in directives {
        if let Some(fault) = directive.fault {
            findings.push(remark("FR90", file, directive.span, fault));
            continue;
        }
        for allowed in directive.allowed {
            // A rule that did not run could not have said anything.
            if !allowed.is_used && options.runs(allowed.code) {
                let about = allowed.variable.map_or(String::new(), |name| format!(" about `{name}`"));
                let message = format!("there is no {}{about} on this line to allow", allowed.code);
                findings.push(remark("FR91", file, directive.span, message));
            }
        }
    }
    n_silenced
}

fn remark(rule: &'static str, file: FileId, span: Span, message: String) -> Finding {
    Finding {
        rule,
        level: Level::Warning,
        span,
        file,
        label: "",
        message,
        variable: String::new(),
        because: Vec::new(),
        related: Vec::new(),
        remedies: vec![
            match rule {
                "FR90" => {
                    "write `rma-lint: allow FR02 reason`, with the code of the finding and why it is right"
                }
                _ => "take the comment away",
            }
            .to_string(),
        ],
        repairs: Vec::new(),
    }
}

fn directives(text: &str, form: Form) -> Vec<Directive> {
    let mut found: Vec<Directive> = Vec::new();
    // Those that wait for the line they concern.
    let mut n_waiting = 0;
    let mut at = 0;
    for whole in text.split_inclusive(['\n', '\r']) {
        let line = whole.trim_end_matches(['\n', '\r']);
        let (start, end) = (at, at + line.len());
        at += whole.len();
        let comment = comment_of(line, form);
        let is_comment = comment.is_some_and(|comment| line[..comment].trim().is_empty());
        if line.trim().is_empty() {
            continue;
        }
        if !is_comment {
            let n = found.len();
            for directive in &mut found[n - n_waiting..] {
                directive.line = Span::new(start, end);
            }
            n_waiting = 0;
        }
        let Some(comment) = comment else { continue };
        let words = line[comment + 1..].trim_start();
        let Some(words) = words.strip_prefix(MARK) else { continue };
        let (allowed, fault) = understand(words);
        let own = Span::new(start + comment, end);
        let line = match is_comment {
            true => own,
            false => Span::new(start, end),
        };
        found.push(Directive { span: own, line, allowed, fault });
        n_waiting += usize::from(is_comment);
    }
    found
}

/// Where the comment of a line begins, at its mark.
fn comment_of(line: &str, form: Form) -> Option<usize> {
    let bytes = line.as_bytes();
    if form == Form::Fixed && matches!(bytes.first(), Some(b'c' | b'C' | b'*')) {
        return Some(0);
    }
    let mut quote = None;
    for (i, &byte) in bytes.iter().enumerate() {
        match (quote, byte) {
            (Some(open), _) if byte == open => quote = None,
            (Some(_), _) => {}
            (None, b'\'' | b'"') => quote = Some(byte),
            // In column 6 of fixed form it marks a continuation.
            (None, b'!') if form == Form::Free || i != 5 => return Some(i),
            _ => {}
        }
    }
    None
}

/// What follows the mark: `allow`, codes, a reason.
fn understand(words: &str) -> (Vec<Allowed>, Option<String>) {
    let Some(rest) = words.trim_start().strip_prefix("allow") else {
        return (Vec::new(), Some("the comment does not say `allow` and what".to_string()));
    };
    let mut rest = rest.trim_start();
    let mut allowed = Vec::new();
    loop {
        let length = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let word = &rest[..length];
        let Some(rule) = find(word) else {
            let fault = match word {
                "" => "the comment names no rule".to_string(),
                word => format!("no rule has the code `{word}`"),
            };
            return (allowed, Some(fault));
        };
        rest = &rest[length..];
        let mut variable = None;
        if let Some(inner) = rest.strip_prefix('(') {
            let Some((name, behind)) = inner.split_once(')') else {
                return (allowed, Some("a `)` is missing behind the variable".to_string()));
            };
            variable = Some(name.trim().to_string());
            rest = behind;
        }
        allowed.push(Allowed { code: rule.code, variable, is_used: false });
        rest = rest.trim_start();
        match rest.strip_prefix(',') {
            Some(behind) => rest = behind.trim_start(),
            None => break,
        }
    }
    let has_reason = rest.chars().any(char::is_alphanumeric);
    let fault =
        (!has_reason).then(|| "the comment allows a finding and does not say why it is right".to_string());
    (allowed, fault)
}
