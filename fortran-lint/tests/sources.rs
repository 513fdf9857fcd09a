//! What real sources look like: each shape of the list in `docs/hazard-evidence.md` has a fixture here, in which a hazard
//! depends on the shape being understood. Never more or fewer shapes than the list has.

use std::sync::Arc;

use fortran_lint::check::{Input, check};
use fortran_lint::options::Options;
use fortran_lint::source::{InMemory, Reading};

/// A shape as the list names it, a file, and the findings in it.
struct Shape {
    phrase: &'static str,
    path: &'static str,
    text: Vec<u8>,
    findings: &'static [&'static str],
}

/// Files that the fixtures include.
const FILES: &[(&str, &str)] = &[
    ("mode.h", "!     -*- fortran -*-\n      INTEGER BUF\n"),
    (
        "receive.h",
        "      CALL MPI_IRECV(WHAT, 1, MPI_INTEGER, 0, 7, COMM, REQ, IERR)\n      CALL MPI_WAIT(REQ, ISTAT, IERR)\n      X = WHAT\n",
    ),
];

const HEAD: &str =
    "      SUBROUTINE WORK(COMM, X)\n      INCLUDE 'mpif.h'\n      INTEGER COMM, X, REQ, IERR, ISTAT(10)\n";
const BUFFER: &str = "      INTEGER BUF\n";
const RECEIVE: &str = "      CALL MPI_IRECV(BUF, 1, MPI_INTEGER, 0, 7, COMM, REQ, IERR)\n";
const WAIT: &str = "      CALL MPI_WAIT(REQ, ISTAT, IERR)\n";
const READ: &str = "      X = BUF\n";
const END: &str = "      END\n";
const FOUND: &[&str] = &["FR02 buf"];

/// A subroutine in fixed form that receives and waits, and then does this.
fn behind_wait(declarations: &str, rest: &str) -> Vec<u8> {
    [HEAD, declarations, RECEIVE, WAIT, rest, END].concat().into_bytes()
}

/// A subroutine in fixed form with such a body.
fn body(body: &str) -> Vec<u8> {
    [HEAD, BUFFER, body, END].concat().into_bytes()
}

/// A subroutine in which the buffer has another name.
fn named(name: &str, declaration: &str) -> Vec<u8> {
    let rest = [RECEIVE, WAIT, READ].concat().replace("BUF", name);
    [HEAD, declaration, &rest, END].concat().into_bytes()
}

/// Free form: a request that is kept somewhere.
fn kept(declarations: &str, request: &str) -> Vec<u8> {
    format!(
        "module store\ninteger :: kept\nend module\nsubroutine work(comm, x)\nuse mpi\nuse store\n{declarations}\ninteger :: comm, x, ierr, buf\n\
         call MPI_Irecv(buf, 1, MPI_INTEGER, 0, 7, comm, {request}, ierr)\n\
         call MPI_Wait({request}, MPI_STATUS_IGNORE, ierr)\nx = buf\nend subroutine\n"
    )
    .into_bytes()
}

fn shapes() -> Vec<Shape> {
    let plain = behind_wait(BUFFER, READ);
    let text = String::from_utf8(plain.clone()).expect("the fixture is text");
    let mut shapes = Vec::new();
    let mut add = |phrase, path, text: Vec<u8>, findings| {
        shapes.push(Shape { phrase, path, text, findings });
    };
    let mut fixed = |phrase, text: Vec<u8>| add(phrase, "work.F", text, FOUND);
    fixed("tab-indented lines", text.replace("      ", "\t").into_bytes());
    fixed("CRLF files", text.replace('\n', "\r\n").into_bytes());
    fixed(
        "labelled DO with shared terminators",
        body(&format!("      DO 10 I = 1, 3\n      DO 10 J = 1, 3\n{RECEIVE}{WAIT}   10 X = X + BUF\n")),
    );
    fixed(
        "text past column 72",
        body(&format!("{:<72}WORK0010\n{WAIT}{:<72}', 'X\n", RECEIVE.trim_end(), READ.trim_end())),
    );
    fixed(
        "glued keywords (`DO300`, `GOTO`, `ENDIF`)",
        body(
            "      DO300I=1,3\n      IF(I.EQ.2)GOTO300\n      CALLMPI_IRECV(BUF,1,MPI_INTEGER,0,7,COMM,REQ,IERR)\n\
             \x20     CALLMPI_WAIT(REQ,ISTAT,IERR)\n      IF(I.GT.0)THEN\n      X=BUF\n      ENDIF\n300   CONTINUE\n",
        ),
    );
    fixed(
        "blanks inside names and keywords in fixed form",
        body(
            "      C A L L MPI _ I RECV(B UF, 1, MPI_INT EGER, 0, 7, CO MM, RE Q, IERR)\n\
             \x20     CAL LMPI_WAIT(REQ, IS TAT, IERR)\n      X = B U F\n",
        ),
    );
    let first_line = format!("{:<72}&\n     &", "      CALL MPI_IRECV(BUF, 1, MPI_INTEGER,");
    let both = format!("{first_line} 0, 7, COMM, REQ, IERR)\n{WAIT}{READ}");
    fixed("`&` in column 73 together with column 6 (one file read as both forms)", body(&both));
    let between = "      CALL MPI_IRECV(BUF,\nC     CALL MPI_WAIT(REQ, ISTAT, IERR)\n\n#if defined(LONG)\n     1  2,\n#else\n     1  1,\n#endif\n     2  MPI_INTEGER, 0, 7, COMM, REQ, IERR)\n";
    fixed("comments and `#if` lines between continuations", body(&format!("{between}{WAIT}{READ}")));
    fixed(
        "statement macros",
        body(&format!("#define DONE CALL MPI_WAIT(REQ, ISTAT, IERR)\n{RECEIVE}      DONE\n{READ}")),
    );
    fixed("macro types", behind_wait("#define _INT INTEGER*4\n      _INT BUF\n", READ));
    fixed(
        "multi-line `#define`",
        body(
            "#define START(B) CALL MPI_IRECV(B, 1, MPI_INTEGER, \\\n  0, 7, COMM, REQ, IERR) ; \\\n  CALL MPI_WAIT(REQ, ISTAT, IERR)\n      START(BUF)\n      X = BUF\n",
        ),
    );
    fixed("`#include` of templates", body("#define WHAT BUF\n#include \"receive.h\"\n"));
    fixed(
        "Hollerith in FORMAT",
        behind_wait(BUFFER, "      WRITE (6, 10)\n   10 FORMAT (14HDON'T (COUNT),)\n      X = BUF\n"),
    );
    fixed("as actual arguments", behind_wait(BUFFER, "      CALL SAY(3HA'B, 4H!)),)\n      X = BUF\n"));
    fixed("`%VAL`", behind_wait(BUFFER, "      CALL SAY(%VAL(IERR))\n      X = BUF\n"));
    fixed("`%LOC`", behind_wait(BUFFER, "      CALL SAY(%LOC(IERR))\n      X = BUF\n"));
    fixed(
        "Cray pointers",
        behind_wait("      INTEGER BUF\n      POINTER (IP, BUF(10))\n", "      X = BUF(1)\n"),
    );
    fixed("ENTRY", behind_wait(BUFFER, "      ENTRY LATER(COMM, X)\n      X = BUF\n"));
    fixed("alternate returns", behind_wait(BUFFER, "      CALL TRY(IERR, *20, *20)\n   20 X = BUF\n"));
    fixed(
        "statement functions",
        behind_wait("      INTEGER BUF, TWICE, K\n      TWICE(K) = 2 * K\n", "      X = TWICE(BUF)\n"),
    );
    fixed("NAMELIST", behind_wait("      INTEGER BUF\n      NAMELIST /ALL/ BUF, IERR\n", READ));
    fixed("non-UTF-8 bytes", {
        let mut bytes = behind_wait(BUFFER, "C     caf?\n      CALL SAY('?')\n      X = BUF\n");
        bytes.iter_mut().filter(|byte| **byte == b'?').for_each(|byte| *byte = 0xe9);
        bytes
    });
    fixed("no newline at the end of file", {
        let mut bytes = [HEAD, BUFFER, RECEIVE, WAIT, READ].concat().into_bytes();
        bytes.pop();
        bytes
    });
    fixed("include files that begin with an editor mode line", behind_wait("      INCLUDE 'mode.h'\n", READ));
    fixed(
        "calls to MPI hidden behind preprocessor macros",
        body(
            "#define GET(B) CALL MPI_IRECV(B, 1, MPI_INTEGER, 0, 7, COMM, REQ, IERR)\n#define DONE(R) CALL MPI_WAIT(R, ISTAT, IERR)\n      GET(BUF)\n      DONE(REQ)\n      X = BUF\n",
        ),
    );
    fixed(
        "behind wrappers",
        [
            HEAD,
            BUFFER,
            "      CALL GET(BUF, COMM, REQ)\n      CALL DONE(REQ)\n      X = BUF\n      END\n\
             \x20     SUBROUTINE GET(B, COMM, R)\n      INCLUDE 'mpif.h'\n      INTEGER B, COMM, R, IERR\n\
             \x20     CALL MPI_IRECV(B, 1, MPI_INTEGER, 0, 7, COMM, R, IERR)\n      END\n\
             \x20     SUBROUTINE DONE(R)\n      INCLUDE 'mpif.h'\n      INTEGER R, ISTAT(10), IERR\n\
             \x20     CALL MPI_WAIT(R, ISTAT, IERR)\n      END\n",
        ]
        .concat()
        .into_bytes(),
    );
    fixed(
        "COMMON blocks that hold something else than the buffer",
        behind_wait("      INTEGER BUF, OTHER(10)\n      COMMON /BLOCK/ OTHER\n", READ),
    );
    fixed(
        "MPI_IN_PLACE",
        body(&format!(
            "      CALL MPI_IALLREDUCE(MPI_IN_PLACE, BUF, 1, MPI_INTEGER,\n     1  MPI_SUM, COMM, REQ, IERR)\n{WAIT}{READ}"
        )),
    );
    add(
        "`CHARACTER*2` before names that look like exponents",
        "work.f",
        named("E5", "      CHARACTER*2 E5, D3\n"),
        &["FR02 e5"],
    );
    add("names ending in `$`", "work.f", named("BUF$", "      INTEGER BUF$\n"), &["FR02 buf$"]);
    for (phrase, name, findings) in [
        ("variables named `fmt`", "FMT", &["FR02 fmt"]),
        ("`format`", "FORMAT", &["FR02 format"]),
        ("`if`", "IF", &["FR02 if"]),
        ("`end`", "END", &["FR02 end"]),
    ] {
        add(phrase, "work.f", named(name, &format!("      INTEGER {name}\n")), findings);
    }
    add("requests kept in arrays", "work.f90", kept("integer :: all(4)", "all(2)"), FOUND);
    add(
        "in derived types",
        "work.f90",
        kept("type holder\ninteger :: own\nend type\ntype(holder) :: h", "h%own"),
        FOUND,
    );
    add("in other modules", "work.f90", kept("", "kept"), FOUND);
    add(
        "MPI_BOTTOM with count 0",
        "work.f",
        body(
            "      BUF = 1\n      CALL MPI_RECV(MPI_BOTTOM, 0, MPI_INTEGER, 0, 7, COMM,\n     1  ISTAT, IERR)\n      X = BUF\n",
        ),
        &[],
    );
    add(
        "a dummy call that is the only thing keeping a program right",
        "work.f",
        behind_wait(BUFFER, "      CALL TOUCH(BUF)\n      X = BUF\n"),
        &[],
    );
    shapes
}

/// The findings of a text as `rule variable`, and what was not understood in it.
fn found(path: &str, text: &[u8]) -> (Vec<String>, Vec<String>) {
    let files = Arc::new(InMemory::new(FILES.iter().copied()));
    let options = Options { reading: Reading { files, ..Reading::default() }, ..Options::default() };
    let inputs = [Input { path: path.to_string(), bytes: text.to_vec() }];
    let report = check(&inputs, &options).remove(0);
    let findings = report.findings.iter().map(|finding| format!("{} {}", finding.rule, finding.variable));
    (findings.collect(), report.skipped.into_iter().map(|skipped| skipped.text).collect())
}

#[test]
fn every_shape_is_understood() {
    for Shape { phrase, path, text, findings } in shapes() {
        let (found, skipped) = found(path, &text);
        let shown = String::from_utf8_lossy(&text).into_owned();
        assert_eq!(found, findings, "{phrase}:\n{shown}");
        assert!(skipped.is_empty(), "{phrase}: {skipped:?} is not understood in\n{shown}");
    }
}

#[test]
fn the_fixtures_are_the_list() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/hazard-evidence.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let (_, list) = page.split_once("Seen in large public codes: ").expect("the page has the list");
    let list = list.split("\n\n").next().unwrap_or_default();
    let mut left = list.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut phrases: Vec<&str> = shapes().iter().map(|shape| shape.phrase).collect();
    // The longest first: a short one may be a part of it.
    phrases.sort_by_key(|phrase| std::cmp::Reverse(phrase.len()));
    for phrase in phrases {
        let at = left.find(phrase).unwrap_or_else(|| panic!("{phrase} does not stand in the list: {left}"));
        left.replace_range(at..at + phrase.len(), "");
    }
    let rest: Vec<&str> =
        left.split([' ', ',', ';', '.']).filter(|word| !word.is_empty() && !matches!(*word, "and")).collect();
    assert!(rest.is_empty(), "without a fixture: {rest:?}");
}
