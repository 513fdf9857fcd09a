//! One program in many layouts: the same finding each time, in its place. Never tests a rule for its own sake.

use std::sync::Arc;

use fortran_lint::check::{FileReport, Input, check};
use fortran_lint::options::Options;
use fortran_lint::source::{InMemory, Reading};

/// The statements of the program, declarations first.
const STATEMENTS: [&str; 8] = [
    "subroutine work(comm, x)",
    "include 'mpif.h'",
    "integer comm, x, req, ierr, istat(10), buf(4)",
    "call mpi_irecv(buf, 4, mpi_integer, 0, 7, comm, req, ierr)",
    "print *, 'call mpi_wait(req, istat, ierr)'",
    "call mpi_wait(req, istat, ierr)",
    "x = buf(2)",
    "end",
];

/// How many of them stand before the first that is executed.
const N_DECLARATIONS: usize = 3;

/// A layout: its name, the path of the file, and the text.
struct Layout {
    name: &'static str,
    path: &'static str,
    text: String,
}

/// A statement in free form on several lines, broken behind its commas.
fn continued(statement: &str, mark: &str) -> String {
    outside_literals(statement, |part| part.replace(", ", &format!(", {mark}")))
}

/// A statement in fixed form, in cards of so many characters of text at most.
fn cards(statement: &str, marks: &str, length: usize) -> String {
    let marks: Vec<char> = marks.chars().collect();
    let text: Vec<char> = statement.chars().collect();
    let mut out = String::new();
    for (i, part) in text.chunks(length).enumerate() {
        let part: String = part.iter().collect();
        match i.checked_sub(1) {
            None => out.push_str(&format!("      {part}\n")),
            Some(k) => out.push_str(&format!("     {}{part}\n", marks[k % marks.len()])),
        }
    }
    out
}

/// Outside of literals: what `change` makes of a text.
fn outside_literals(text: &str, change: impl Fn(&str) -> String) -> String {
    let parts = text.split('\'').enumerate();
    let changed = parts.map(|(i, part)| if i % 2 == 0 { change(part) } else { part.to_string() });
    changed.collect::<Vec<_>>().join("'")
}

fn lines(each: impl Fn(usize, &str) -> String) -> String {
    STATEMENTS.iter().enumerate().map(|(i, statement)| each(i, statement)).collect()
}

fn mixed_case(text: &str) -> String {
    let letter = |(i, c): (usize, char)| if i % 3 == 0 { c.to_ascii_uppercase() } else { c };
    outside_literals(text, |part| part.chars().enumerate().map(letter).collect())
}

fn layouts() -> Vec<Layout> {
    let mut layouts = Vec::new();
    let mut add = |name, path, text| layouts.push(Layout { name, path, text });
    let free = "work.f90";
    let fixed = "work.f";
    add("free form", free, lines(|_, s| format!("  {s}\n")));
    add("capitals", free, lines(|_, s| outside_literals(s, str::to_uppercase) + "\n"));
    add("mixed case", free, lines(|_, s| mixed_case(s) + "\n"));
    add("a mark at the end of the line", free, lines(|_, s| continued(s, "&\n    ") + "\n"));
    add("a mark on both sides", free, lines(|_, s| continued(s, "&\n   & ") + "\n"));
    add(
        "names broken by marks",
        free,
        lines(|_, s| {
            outside_literals(s, |part| part.replace("mpi_", "mp&\n  &i_").replace("buf", "b&\n&uf")) + "\n"
        }),
    );
    add(
        "comments and blank lines between continuations",
        free,
        lines(|_, s| {
            "! call mpi_wait(req, istat, ierr)\n".to_string()
                + &continued(s, "& ! don't (\n\n  ! call mpi_wait(req, istat, ierr)\n  ")
                + " ! x = buf(1)\n"
        }),
    );
    add(
        "several statements on a line",
        free,
        lines(|i, s| s.to_string() + if i >= N_DECLARATIONS && i < 6 { "; " } else { "\n" }),
    );
    add(
        "labels in free form",
        free,
        lines(|i, s| if i >= N_DECLARATIONS { format!("{i}0 {s}\n") } else { format!("{s}\n") }),
    );
    add(
        "indented by tabs",
        free,
        lines(|_, s| format!("\t{}\n", outside_literals(s, |part| part.replace(", ", ",\t")))),
    );
    add("lines that end in CR LF", free, lines(|_, s| continued(s, "&\r\n    ") + "\r\n"));
    add("no line end at the end", free, lines(|_, s| format!("{s}\n")).trim_end().to_string());
    add("fixed form", fixed, lines(|_, s| cards(s, "&", 60)));
    add(
        "fixed form in capitals",
        fixed,
        lines(|_, s| cards(&outside_literals(s, str::to_uppercase), "1", 60)),
    );
    add("short cards with all kinds of marks", fixed, lines(|_, s| cards(s, "123456789$+*&!#.,/(X", 9)));
    add(
        "without blanks",
        fixed,
        lines(|_, s| cards(&outside_literals(s, |part| part.replace(' ', "")), "1", 60)),
    );
    add(
        "blanks everywhere",
        fixed,
        lines(|_, s| {
            let spread = |part: &str| part.chars().flat_map(|c| [c, ' ']).collect::<String>();
            cards(&outside_literals(s, spread), "1", 66)
        }),
    );
    add(
        "tabs in fixed form",
        fixed,
        lines(|_, s| format!("\t{}\n", outside_literals(s, |part| part.replace(", ", ",\n\t1")))),
    );
    add(
        "every kind of comment between cards",
        fixed,
        lines(|_, s| {
            let between = "\n\nC     CALL MPI_WAIT(REQ, ISTAT, IERR)\nc     don't (\n*     CALL MPI_WAIT(REQ, ISTAT, IERR)\n!     x = buf(1)\n     1";
            let s = outside_literals(s, |part| part.replace(", ", &format!(",{between}")));
            format!("      {s} ! call mpi_wait(req, istat, ierr)\n")
        }),
    );
    add(
        "sequence numbers behind column 72",
        fixed,
        lines(|i, s| {
            let numbered = cards(s, "1", 44);
            numbered.lines().map(|line| format!("{line:<72}WORK{i:04}\n")).collect()
        }),
    );
    add(
        "labels in fixed form",
        fixed,
        lines(|i, s| {
            let cards = cards(s, "2", 60);
            if i < N_DECLARATIONS { cards } else { format!(" {i:<4} {}", &cards[6..]) }
        }),
    );
    add(
        "several statements on a card",
        fixed,
        cards(&STATEMENTS[..1].join(""), "1", 60)
            + &cards(STATEMENTS[1], "1", 60)
            + &cards(&STATEMENTS[2..].join(";"), "1", 60),
    );
    add("CR LF in fixed form", fixed, lines(|_, s| cards(s, "&", 30)).replace('\n', "\r\n"));
    let declared = |include: &str| {
        let mut text = lines(|i, s| if i == 2 { format!("{include}\n") } else { format!("      {s}\n") });
        text.push_str("      subroutine other\n      end\n");
        text
    };
    add("declarations by INCLUDE", fixed, declared("      include 'declared.inc'"));
    add("declarations by #include", "work.F90", declared("#include \"declared.inc\""));
    layouts
}

fn report(path: &str, text: &str) -> FileReport {
    let declared = format!("      {}\n", STATEMENTS[2]);
    let files = Arc::new(InMemory::new([("declared.inc", declared.as_str())]));
    let options = Options { reading: Reading { files, ..Reading::default() }, ..Options::default() };
    check(&[Input { path: path.to_string(), bytes: text.as_bytes().to_vec() }], &options).remove(0)
}

/// What a text is without its layout.
fn squeezed(text: &str) -> String {
    let mut out = String::new();
    for (i, line) in text.lines().enumerate() {
        // The mark of a continuation is no part of a name.
        let card = line.strip_prefix("     ").and_then(|card| card.get(1..)).filter(|_| i > 0);
        let line = card.unwrap_or(line);
        out.extend(line.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_'));
    }
    out.to_ascii_lowercase()
}

/// Findings with the texts of their places.
fn said(layout: &Layout) -> Vec<String> {
    let report = report(layout.path, &layout.text);
    assert!(report.skipped.is_empty(), "{}: {:?} in\n{}", layout.name, report.skipped, layout.text);
    let mut said = Vec::new();
    for finding in &report.findings {
        let text = |file, span: rma_source::Span| squeezed(&report.text_of(file)[span.range()]);
        let related: Vec<String> = finding
            .related
            .iter()
            .map(|related| format!("{} at {}", related.message, text(related.file, related.span)))
            .collect();
        said.push(format!(
            "{} {} {}: {} at {}; {}",
            finding.level.name(),
            finding.rule,
            finding.variable.to_lowercase(),
            finding.message.to_lowercase(),
            text(finding.file, finding.span),
            related.join("; ").to_lowercase()
        ));
    }
    said
}

// covers: REG-LINT-18
#[test]
fn every_layout_has_the_same_finding() {
    let layouts = layouts();
    assert!(layouts.len() >= 12, "there are {} layouts", layouts.len());
    let expected = said(&layouts[0]);
    assert_eq!(expected.len(), 1, "{expected:?}");
    assert!(expected[0].starts_with("warning FR02 buf") && expected[0].contains(" at buf"), "{expected:?}");
    for layout in &layouts[1..] {
        assert_eq!(said(layout), expected, "{}:\n{}", layout.name, layout.text);
    }
}

/// The call that completes the receive stands in comments and literals only: then nothing has changed behind the back of
/// the compiler, and the buffer is used while the receive is open.
#[test]
fn words_in_comments_and_literals_are_no_calls() {
    let wait = STATEMENTS[5];
    for Layout { name, path, text } in layouts() {
        // Where the call stands on a line of its own.
        if !text.lines().any(|line| line.trim() == wait) {
            continue;
        }
        let comment = if path == "work.f" { "C     " } else { "  ! " };
        let instead =
            |line: &str| if line.trim() == wait { format!("{comment}{wait}\n") } else { format!("{line}\n") };
        let text: String = text.lines().map(instead).collect();
        let rules: Vec<&str> = report(path, &text).findings.iter().map(|finding| finding.rule).collect();
        assert_eq!(rules, ["FR15"], "{name}:\n{text}");
    }
}
