//! The rules, one file each, and the table that lists them. A rule's module doc is its manual page. Rules never open
//! files, never search text, and never look at each other.

mod behind;
mod finished;
mod hidden;
mod repair;
mod support;

mod fr01;
mod fr02;
mod fr03;
mod fr04;
mod fr05;
mod fr06;
mod fr07;
mod fr08;
mod fr09;
mod fr10;
mod fr11;
mod fr12;
mod fr13;
mod fr14;
mod fr15;
mod fr16;
mod fr17;
mod fr18;
mod fr19;
mod fr20;
mod fr21;
mod fr22;

use crate::dataflow::Analysis;
use crate::finding::Finding;

/// The advice on registers as a whole, in Markdown.
pub const ADVICE: &str = include_str!("../../../docs/registers.md");

/// The command that prints it.
pub const ADVICE_COMMAND: &str = "fortran-lint explain registers";

/// How a code appears.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// It has findings of its own.
    Rule,
    /// It rides on the findings of others, as the reason why a remedy fails.
    Reason,
}

/// What a rule does to a unit.
type Check = fn(&Analysis<'_>, &mut Vec<Finding>);

/// One code.
pub struct Rule {
    /// `FR` and two digits.
    pub code: &'static str,
    /// The wrong pattern; reads after "allow".
    pub name: &'static str,
    /// How it appears.
    pub role: Role,
    /// Its usual level, in a word.
    pub level: &'static str,
    /// The source file, whose head is the manual page.
    source: &'static str,
    check: Option<Check>,
}

impl Rule {
    /// The manual page, in Markdown.
    pub fn page(&self) -> String {
        let lines = self.source.lines().take_while(|line| line.starts_with("//!"));
        let mut page = String::new();
        for line in lines {
            let text = line.strip_prefix("//!").unwrap_or_default();
            page.push_str(text.strip_prefix(' ').unwrap_or(text));
            page.push('\n');
        }
        page.push_str(&format!("\nThe advice on registers as a whole: `{ADVICE_COMMAND}`.\n"));
        page
    }

    /// Runs it on a unit.
    pub fn check(&self, analysis: &Analysis<'_>, out: &mut Vec<Finding>) {
        let Some(check) = self.check else { return };
        let first = out.len();
        check(analysis, out);
        for finding in &mut out[first..] {
            support::name_wrappers(analysis, finding);
        }
    }
}

macro_rules! rule {
    ($code:literal, $name:literal, $level:literal, $file:literal) => {
        Rule {
            code: $code,
            name: $name,
            role: Role::Rule,
            level: $level,
            source: include_str!($file),
            check: None,
        }
    };
    ($code:literal, $name:literal, $level:literal, $file:literal, $check:expr) => {
        Rule {
            code: $code,
            name: $name,
            role: Role::Rule,
            level: $level,
            source: include_str!($file),
            check: Some($check),
        }
    };
    ($code:literal, $name:literal, $file:literal) => {
        Rule {
            code: $code,
            name: $name,
            role: Role::Reason,
            level: "reason",
            source: include_str!($file),
            check: None,
        }
    };
}

/// All codes in order.
pub const RULES: &[Rule] = &[
    rule!("FR01", "window-read-from-register", "error", "fr01.rs", fr01::check),
    rule!("FR02", "receive-buffer-used-after-wait", "warning", "fr02.rs", fr02::check),
    rule!("FR03", "hidden-receive-read-from-register", "error", "fr03.rs", fr03::check),
    rule!("FR04", "anchored-neighbour-in-register", "error", "fr04.rs", fr04::check),
    rule!("FR05", "store-hidden-from-send", "error", "fr05.rs", fr05::check),
    rule!("FR06", "got-value-read-from-register", "warning", "fr06.rs", fr06::check),
    rule!("FR07", "store-moved-before-completion", "warning", "fr07.rs", fr07::check),
    rule!("FR08", "window-store-left-in-register", "error", "fr08.rs", fr08::check),
    rule!("FR09", "callback-state-in-register", "error", "fr09.rs", fr09::check),
    rule!("FR10", "offered-memory-used-after-wait", "warning", "fr10.rs", fr10::check),
    rule!("FR11", "common-hidden-from-wrapper", "warning", "fr11.rs", fr11::check),
    rule!("FR12", "remedy-outside-standard", "note", "fr12.rs", fr12::check),
    rule!("FR13", "dummy-routine-in-application", "fr13.rs"),
    rule!("FR14", "misplaced-dummy-routine", "fr14.rs"),
    rule!("FR15", "buffer-touched-while-open", "error", "fr15.rs", fr15::check),
    rule!("FR16", "temporary-as-buffer", "error", "fr16.rs", fr16::check),
    rule!("FR17", "poll-from-register", "error", "fr17.rs", fr17::check),
    rule!("FR18", "remedy-lost-on-the-way", "fr18.rs"),
    rule!("FR19", "weak-remedy", "fr19.rs"),
    rule!("FR20", "buffer-ends-before-operation", "note", "fr20.rs", fr20::check),
    rule!("FR21", "epoch-out-of-order", "error", "fr21.rs", fr21::check),
    rule!("FR22", "update-not-made-visible", "error", "fr22.rs", fr22::check),
    // About comments that allow a finding, which are looked at when the findings are known.
    rule!("FR90", "suppression-without-reason", "warning", "fr90.rs"),
    rule!("FR91", "suppression-without-effect", "warning", "fr91.rs"),
];

/// The rule of that code, in any case.
pub fn find(code: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.code.eq_ignore_ascii_case(code))
}

#[cfg(test)]
mod test {
    use super::RULES;

    #[test]
    fn every_rule_has_a_manual_page() {
        for rule in RULES {
            let page = rule.page();
            assert!(page.starts_with(&format!("# {}: {}\n", rule.code, rule.name)), "{}", rule.code);
            for part in ["## What happens", "## What to do", super::ADVICE_COMMAND] {
                assert!(page.contains(part), "{} lacks {part}", rule.code);
            }
        }
    }

    #[test]
    fn codes_are_unique_and_in_order() {
        assert!(RULES.windows(2).all(|pair| pair[0].code < pair[1].code));
    }
}
