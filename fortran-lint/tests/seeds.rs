//! The three programs of the seed documents, a window that goes from 999 to 777, a receive by hidden address and a
//! nonblocking receive: each with its repaired twins, and each in twelve layouts of both source forms.
//!
//! `UPDATE=1 cargo test -p fortran-lint --test seeds` writes the files anew; the compiler runs them in `gfortran.rs`.

mod common;

use common::{Expectation, expected, findings, header, package, update};
use fortran_lint::check::check_one;
use fortran_lint::finding::Level;
use fortran_lint::options::Options;

/// How the buffer is protected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Remedy {
    None,
    Common,
    Volatile,
    Asynchronous,
    Module,
    Dummy,
    /// Only behind the synchronization, as the first of the seed documents has it.
    DummyAfter,
}

const TWINS: [(Remedy, &str); 7] = [
    (Remedy::None, "local"),
    (Remedy::Common, "common"),
    (Remedy::Volatile, "volatile"),
    (Remedy::Asynchronous, "asynchronous"),
    (Remedy::Module, "module"),
    (Remedy::Dummy, "dummy"),
    (Remedy::DummyAfter, "dummyafter"),
];

/// One of the programs.
struct Seed {
    name: &'static str,
    buffer: &'static str,
    /// Declarations behind the header.
    declarations: &'static [&'static str],
    body: &'static [&'static str],
    /// Indices into `body` before which the dummy call belongs; the last one is the place behind the synchronization.
    dummies: &'static [usize],
    /// Rule, level and the token of the primary place.
    findings: &'static [(&'static str, &'static str, &'static str)],
}

const SEEDS: [Seed; 3] = [
    Seed {
        name: "window",
        buffer: "BUFF",
        declarations: &[
            "INTEGER RES, WIN, IERROR",
            "INTEGER(KIND=MPI_ADDRESS_KIND) SIZE, ZERO",
            "DOUBLE PRECISION OTHER(8)",
        ],
        body: &[
            "SIZE = 64",
            "ZERO = 0",
            "OTHER(1) = 777",
            "CALL MPI_WIN_CREATE(BUFF, SIZE, 8, MPI_INFO_NULL, MPI_COMM_WORLD, WIN, IERROR)",
            "BUFF(1) = 999",
            "CALL MPI_WIN_FENCE(0, WIN, IERROR)",
            "CALL MPI_PUT(OTHER, 1, MPI_DOUBLE_PRECISION, 0, ZERO, 1, MPI_DOUBLE_PRECISION, WIN, IERROR)",
            "CALL MPI_WIN_FENCE(0, WIN, IERROR)",
            "RES = INT(BUFF(1))",
            "CALL MPI_WIN_FREE(WIN, IERROR)",
        ],
        dummies: &[5, 8],
        findings: &[("FR01", "error", "buff"), ("FR08", "error", "buff(1)")],
    },
    Seed {
        name: "hidden",
        buffer: "BUF",
        declarations: &[
            "INTEGER RES, TYPE(1), NEWTYPE, LENGTH(1), REQUEST, IERROR",
            "INTEGER STATUS(MPI_STATUS_SIZE)",
            "INTEGER(KIND=MPI_ADDRESS_KIND) ADDRESS(1)",
            "DOUBLE PRECISION OTHER(8), OLD",
        ],
        body: &[
            "OTHER(1) = 777",
            "LENGTH(1) = 1",
            "TYPE(1) = MPI_DOUBLE_PRECISION",
            "CALL MPI_GET_ADDRESS(BUF, ADDRESS(1), IERROR)",
            "CALL MPI_TYPE_CREATE_STRUCT(1, LENGTH, ADDRESS, TYPE, NEWTYPE, IERROR)",
            "CALL MPI_TYPE_COMMIT(NEWTYPE, IERROR)",
            "BUF(1) = 999",
            "CALL MPI_ISEND(OTHER, 1, MPI_DOUBLE_PRECISION, 0, 7, MPI_COMM_WORLD, REQUEST, IERROR)",
            "OLD = BUF(1)",
            "CALL MPI_RECV(MPI_BOTTOM, 1, NEWTYPE, 0, 7, MPI_COMM_WORLD, STATUS, IERROR)",
            "RES = INT(BUF(1))",
            "CALL MPI_WAIT(REQUEST, STATUS, IERROR)",
            "IF (OLD .NE. 999) RES = -1",
        ],
        dummies: &[10],
        findings: &[("FR03", "error", "buf(1)")],
    },
    Seed {
        name: "receive",
        buffer: "BUF",
        declarations: &[
            "INTEGER RES, REQUEST, IERROR",
            "INTEGER STATUS(MPI_STATUS_SIZE)",
            "DOUBLE PRECISION OTHER(8)",
        ],
        body: &[
            "OTHER(1) = 777",
            "BUF(1) = 999",
            "CALL MPI_IRECV(BUF, 1, MPI_DOUBLE_PRECISION, 0, 7, MPI_COMM_WORLD, REQUEST, IERROR)",
            "CALL MPI_SEND(OTHER, 1, MPI_DOUBLE_PRECISION, 0, 7, MPI_COMM_WORLD, IERROR)",
            "CALL MPI_WAIT(REQUEST, STATUS, IERROR)",
            "RES = INT(BUF(1))",
        ],
        dummies: &[5],
        findings: &[("FR02", "warning", "buf(1)")],
    },
];

impl Seed {
    fn expected(&self, remedy: Remedy) -> Vec<Expectation> {
        if remedy == Remedy::Module {
            // Accepted, with a note.
            return vec![Expectation::new("note", "FR12", &self.buffer.to_lowercase(), &[])];
        }
        if remedy != Remedy::None {
            return Vec::new();
        }
        self.findings
            .iter()
            .map(|(rule, level, _)| Expectation::new(level, rule, &self.buffer.to_lowercase(), &[]))
            .collect()
    }

    /// The statements of one version.
    fn statements(&self, routine: &str, remedy: Remedy) -> Vec<String> {
        let buffer = self.buffer;
        let mut all = Vec::new();
        if remedy == Remedy::Module {
            all.push(format!("MODULE {routine}_STORE"));
            all.push(format!("DOUBLE PRECISION {buffer}(8)"));
            all.push("END MODULE".to_string());
        }
        all.push(format!("SUBROUTINE {routine}(RES)"));
        if remedy == Remedy::Module {
            all.push(format!("USE {routine}_STORE"));
        }
        all.push("IMPLICIT NONE".to_string());
        all.push("INCLUDE 'mpif.h'".to_string());
        all.extend(self.declarations.iter().map(|line| line.to_string()));
        if remedy != Remedy::Module {
            all.push(format!("DOUBLE PRECISION {buffer}(8)"));
        }
        match remedy {
            Remedy::Common => all.push(format!("COMMON /{}_COM/ {buffer}", self.name.to_uppercase())),
            Remedy::Volatile => all.push(format!("VOLATILE {buffer}")),
            Remedy::Asynchronous => all.push(format!("ASYNCHRONOUS :: {buffer}")),
            _ => {}
        }
        let last = self.dummies.last();
        for (i, line) in self.body.iter().enumerate() {
            let has_dummy = match remedy {
                Remedy::Dummy => self.dummies.contains(&i),
                Remedy::DummyAfter => last == Some(&i),
                _ => false,
            };
            if has_dummy {
                all.push(format!("CALL DD({buffer})"));
            }
            all.push(line.to_string());
        }
        // Words in literals are no calls.
        all.push(format!("IF (RES .EQ. -5) PRINT *, 'CALL MPI_WAIT(REQUEST, STATUS, IERROR); {buffer} = 1'"));
        all.push("END SUBROUTINE".to_string());
        all
    }
}

/// A way to write a program down.
struct Layout {
    extension: &'static str,
    write: fn(&[String]) -> String,
}

/// Twelve layouts, seven of fixed and five of free form.
const LAYOUTS: [Layout; 12] = [
    Layout { extension: "f", write: fixed_plain },
    Layout { extension: "f", write: fixed_digits_and_comments },
    Layout { extension: "f", write: fixed_blanks_in_words },
    Layout { extension: "f", write: fixed_glued },
    Layout { extension: "f", write: fixed_tabs },
    Layout { extension: "f", write: fixed_sequence_numbers },
    Layout { extension: "f", write: fixed_labels_and_returns },
    Layout { extension: "f90", write: free_plain },
    Layout { extension: "f90", write: free_continued_with_comments },
    Layout { extension: "f90", write: free_semicolons },
    Layout { extension: "f90", write: free_split_tokens },
    Layout { extension: "f90", write: free_labels_and_returns },
];

fn is_include(statement: &str) -> bool {
    statement.starts_with("INCLUDE")
}

/// Maps the characters outside literals.
fn outside_literals(text: &str, mut map: impl FnMut(char) -> String) -> String {
    let mut is_inside = false;
    let mut out = String::new();
    for c in text.chars() {
        if c == '\'' {
            is_inside = !is_inside;
        }
        match is_inside || c == '\'' {
            true => out.push(c),
            false => out.push_str(&map(c)),
        }
    }
    out
}

fn lower(text: &str) -> String {
    outside_literals(text, |c| c.to_ascii_lowercase().to_string())
}

/// Cuts a statement into fixed-form lines of at most 66 characters of text.
fn cards(text: &str, mark: impl Fn(usize) -> char) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::new();
    for (i, chunk) in chars.chunks(66).enumerate() {
        match i {
            0 => out.push_str("      "),
            i => out.push_str(&format!("     {}", mark(i))),
        }
        out.extend(chunk);
        out.push('\n');
    }
    out
}

fn fixed_plain(statements: &[String]) -> String {
    statements.iter().map(|statement| cards(statement, |_| '&')).collect()
}

fn fixed_digits_and_comments(statements: &[String]) -> String {
    let mut out = String::from("C     CALL MPI_WAIT(REQUEST, STATUS, IERROR)\n");
    for statement in statements {
        let text = lower(statement);
        if is_include(statement) || text.contains('\'') {
            out.push_str(&cards(&text, |_| '1'));
            continue;
        }
        for (i, part) in text.split_inclusive(',').enumerate() {
            match i {
                0 => out.push_str(&format!("      {part}\n")),
                i => {
                    let comment = ["c     it isn't over", "*     'still going", "! don't stop", ""][i % 4];
                    out.push_str(&format!("{comment}\n     {}   {part}\n", i % 9 + 1));
                }
            }
        }
    }
    out
}

fn fixed_blanks_in_words(statements: &[String]) -> String {
    let mut out = String::new();
    for statement in statements {
        let mut n = 0;
        let text = match is_include(statement) {
            true => statement.clone(),
            false => outside_literals(statement, |c| {
                n += 1;
                if n % 3 == 0 { format!("{c} ") } else { c.to_string() }
            }),
        };
        out.push_str(&cards(&text, |_| '$'));
    }
    out
}

fn fixed_glued(statements: &[String]) -> String {
    let mut out = String::new();
    for statement in statements {
        let text = match is_include(statement) {
            true => statement.clone(),
            false => outside_literals(statement, |c| if c == ' ' { String::new() } else { c.to_string() }),
        };
        out.push_str(&cards(&text, |_| '+'));
    }
    out
}

fn fixed_tabs(statements: &[String]) -> String {
    let mut out = String::new();
    for statement in statements {
        let text = lower(statement);
        let chars: Vec<char> = text.chars().collect();
        for (i, chunk) in chars.chunks(60).enumerate() {
            let text: String = chunk.iter().collect();
            match i {
                0 => out.push_str(&format!("\t{text}\n")),
                i => out.push_str(&format!("\t{i}{text}\n")),
            }
        }
    }
    out
}

fn fixed_sequence_numbers(statements: &[String]) -> String {
    let text: String = statements.iter().map(|statement| cards(statement, |_| 'X')).collect();
    let lines = text.lines().enumerate();
    // The include line is no statement for the compiler, and must stand alone.
    lines
        .map(|(i, line)| match line.trim_start().starts_with("INCLUDE") {
            true => format!("{line}\n"),
            false => format!("{line:<72}BUF{:05}\n", i * 10),
        })
        .collect()
}

fn fixed_labels_and_returns(statements: &[String]) -> String {
    let mut out = String::new();
    for (i, statement) in statements.iter().enumerate() {
        let text = lower(statement);
        let card = cards(&text, |_| '*');
        match statement.starts_with("CALL") {
            true => out.push_str(&format!("{:<5}{}", 100 + i, &card[5..])),
            false => out.push_str(&card),
        }
    }
    out.replace('\n', "\r\n")
}

fn free_plain(statements: &[String]) -> String {
    statements.iter().map(|statement| format!("  {}\n", lower(statement))).collect()
}

fn free_continued_with_comments(statements: &[String]) -> String {
    let mut out = String::new();
    for statement in statements {
        if is_include(statement) || statement.contains('\'') {
            out.push_str(&format!("{statement}\n"));
            continue;
        }
        let parts: Vec<&str> = statement.split_inclusive(',').collect();
        for (i, part) in parts.iter().enumerate() {
            let is_last = i + 1 == parts.len();
            match is_last {
                true => out.push_str(&format!("  {part} ! call MPI_WAIT(\n")),
                false => out.push_str(&format!("  {part} & ! it isn't over\n\n  ! 'still going &\n")),
            }
        }
    }
    out
}

fn free_semicolons(statements: &[String]) -> String {
    let mut out = String::new();
    let mut n_joined = 0;
    for statement in statements {
        let stands_alone =
            is_include(statement) || statement.contains("SUBROUTINE") || statement.contains('\'');
        if stands_alone {
            if n_joined > 0 {
                out.push('\n');
            }
            n_joined = 0;
            out.push_str(&format!("{statement}\n"));
            continue;
        }
        out.push_str(if n_joined == 0 { "" } else { "; " });
        out.push_str(statement);
        n_joined += 1;
        if n_joined == 2 || statement.len() > 60 {
            out.push('\n');
            n_joined = 0;
        }
    }
    out
}

fn free_split_tokens(statements: &[String]) -> String {
    let mut out = String::new();
    for statement in statements {
        if is_include(statement) || statement.contains('\'') {
            out.push_str(&format!("{statement}\n"));
            continue;
        }
        let (head, tail) = statement.split_at(statement.len() / 2);
        out.push_str(&format!("{head}&\n      &{tail}\n"));
    }
    out
}

fn free_labels_and_returns(statements: &[String]) -> String {
    let mut out = String::new();
    for (i, statement) in statements.iter().enumerate() {
        match statement.starts_with("CALL") {
            true => out.push_str(&format!("{} {statement} ! don't\n\n", 100 + i)),
            false => out.push_str(&format!("                {}\n", lower(statement))),
        }
    }
    out.replace('\n', "\r\n")
}

/// All files of this folder: name, text, expectation, and the token texts of the primary places.
fn programs() -> Vec<(String, String, Vec<Expectation>, Vec<&'static str>)> {
    let mut programs = Vec::new();
    for seed in &SEEDS {
        let tokens: Vec<&'static str> = seed.findings.iter().map(|(_, _, token)| *token).collect();
        for (remedy, word) in TWINS {
            let routine = format!("{}_{word}", seed.name);
            let expected = seed.expected(remedy);
            let text = header(&expected) + &free_plain(&seed.statements(&routine.to_uppercase(), remedy));
            let tokens = if remedy == Remedy::None { tokens.clone() } else { Vec::new() };
            programs.push((format!("{routine}.f90"), text, expected, tokens));
        }
        for (i, layout) in LAYOUTS.iter().enumerate() {
            let routine = format!("{}_layout{:02}", seed.name, i + 1);
            let expected = seed.expected(Remedy::None);
            let body = (layout.write)(&seed.statements(&routine.to_uppercase(), Remedy::None));
            let head = header(&expected);
            let head = if body.contains("\r\n") { head.replace('\n', "\r\n") } else { head };
            programs.push((
                format!("{routine}.{}", layout.extension),
                head + &body,
                expected,
                tokens.clone(),
            ));
        }
    }
    programs
}

#[test]
fn the_programs_are_fresh() {
    let mut stale = Vec::new();
    for (name, text, ..) in programs() {
        update(&package().join("tests/fixtures/seed").join(name), &text, &mut stale);
    }
    assert!(stale.is_empty(), "stale, run with UPDATE=1: {stale:#?}");
}

// covers: REG-HAZ-04, REG-HAZ-06
#[test]
fn every_layout_and_twin_gets_its_verdict() {
    for (name, _, expectation, tokens) in programs() {
        let bytes =
            std::fs::read(package().join("tests/fixtures/seed").join(&name)).expect("the fixture is there");
        let text = String::from_utf8_lossy(&bytes);
        assert_eq!(expected(&text), {
            let mut sorted = expectation.clone();
            sorted.sort();
            sorted
        });
        assert_eq!(findings(&name, &bytes), expected(&text), "{name}");
        let report = check_one(&name, &bytes, &Options::default());
        assert!(report.skipped.is_empty(), "{name}: a statement was skipped");
        let mut places: Vec<String> = report
            .findings
            .iter()
            .filter(|finding| finding.level != Level::Note)
            .map(|finding| {
                let text = &report.text[finding.span.range()];
                text.chars().filter(|c| !c.is_whitespace() && *c != '&').collect::<String>().to_lowercase()
            })
            .collect();
        let mut tokens: Vec<String> = tokens.iter().map(|token| token.to_string()).collect();
        places.sort();
        tokens.sort();
        assert_eq!(places, tokens, "{name}: the primary places");
    }
}
