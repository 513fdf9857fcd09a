//! Hazards behind INCLUDE, `#include` and macros: what is found, and where it is said to be.

use std::sync::Arc;

use fortran_lint::check::{FileReport, Input, check};
use fortran_lint::options::Options;
use fortran_lint::report::text;
use fortran_lint::report::{
    Summary,
    json::{self, Skipped},
};
use fortran_lint::source::{InMemory, Reading};
use rma_source::render::Colour;

/// Reports on `src/work.f` or, with `!` in front, on `src/work.f90`, beside the other files.
fn reports(main: &str, files: &[(&str, &str)], macros: &[&str]) -> Vec<FileReport> {
    let path = if main.starts_with('!') { "src/work.f90" } else { "src/work.f" };
    let reading = Reading {
        include_paths: vec!["inc".to_string()],
        macros: macros.iter().map(|text| text.to_string()).collect(),
        files: Arc::new(InMemory::new(files.iter().copied())),
        ..Reading::default()
    };
    let inputs = [Input { path: path.to_string(), bytes: main.as_bytes().to_vec() }];
    check(&inputs, &Options { reading, ..Options::default() })
}

/// Rule, variable, file, line and column of each finding.
fn places(reports: &[FileReport]) -> Vec<String> {
    let mut places = Vec::new();
    for report in reports {
        let map = report.sources();
        for finding in &report.findings {
            let file = map.get(finding.file).expect("the file is in the report");
            let place = file.line_column(finding.span.start as usize);
            places.push(format!(
                "{} {} {}:{}:{}",
                finding.rule,
                finding.variable,
                file.path(),
                place.line,
                place.column
            ));
        }
    }
    places
}

fn found(main: &str, files: &[(&str, &str)]) -> Vec<String> {
    let reports = reports(main, files, &[]);
    assert!(reports.iter().all(|report| report.skipped.is_empty()), "{}", text::skipped(&reports));
    places(&reports)
}

const RECEIVE: &str = "      CALL MPI_IRECV(BUF, 4, MPI_REAL, 1, 0, MPI_COMM_WORLD, IREQ, IERR)
      CALL MPI_WAIT(IREQ, ISTAT, IERR)
      X = BUF(1)
      END
";

#[test]
fn an_included_declaration_decides() {
    let main = format!("      SUBROUTINE S\n      INCLUDE 'mpif.h'\n      INCLUDE 'buf.inc'\n{RECEIVE}");
    let local = found(&main, &[("src/buf.inc", "      REAL BUF(4)\n")]);
    assert_eq!(local, ["FR02 buf src/work.f:6:11"]);
    let common = "C     shared\n      REAL BUF(4)\n      COMMON /B/ BUF\n";
    assert_eq!(found(&main, &[("src/buf.inc", common)]), [""; 0]);
    assert_eq!(found(&main, &[("src/buf.inc", "#include \"deep.h\"\n"), ("inc/deep.h", common)]), [""; 0]);
    // Without the file nothing is known about the name.
    assert_eq!(found(&main, &[]), [""; 0]);
    let missing = reports(&main, &[], &[]);
    assert_eq!(
        text::skipped(&missing),
        "src/work.f:3:7: not included: INCLUDE 'buf.inc' (`buf.inc` was found nowhere)\n"
    );
}

#[test]
fn a_hazard_in_an_included_file_is_shown_there() {
    let main = "! free\nsubroutine s\ninclude 'mpif.h'\n  include 'body.h'\nend\nsubroutine t\ninclude 'mpif.h'\n  include 'body.h'\nend\n";
    let body = "real buf(4)\ncall mpi_irecv(buf, 4, mpi_real, 1, 0, mpi_comm_world, ireq, ierr)\ncall mpi_wait(ireq, istat, ierr)\n\tx = buf(1)\n";
    let reports = reports(main, &[("inc/body.h", body)], &[]);
    assert_eq!(places(&reports), ["FR02 buf inc/body.h:4:6"], "once, although it is included twice");
    let shown = text::findings(&reports, Colour::Never);
    assert!(shown.contains("inc/body.h:4:6") && shown.contains("x = buf(1)"), "{shown}");
    let document = json::document(&reports, &Summary::new(&reports), Skipped::Counted);
    assert!(document.contains(r#""path": "inc/body.h""#), "{document}");
    assert_eq!((reports[0].n_files, reports[0].n_lines), (2, 13));
}

#[test]
fn macros_hide_calls_and_types() {
    let head = "      SUBROUTINE S\n      INCLUDE 'mpif.h'\n      _RL BUF(4)\n";
    let body =
        "      RECV_IT( BUF,\n     &         IREQ )\n      WAIT_FOR(IREQ)\n      X = BUF(1)\n      END\n";
    let defines = "#define _RL Real*8\n#define COMM MPI_COMM_WORLD\n#define RECV_IT(a,r) CALL MPI_IRECV(a, 4, _MPI_TYPE_RL, 1, 0, COMM, r, IERR)\n\
                   #define _MPI_TYPE_RL \\\n   MPI_DOUBLE_PRECISION\n#define WAIT_FOR(r) CALL MPI_WAIT(r, ISTAT, IERR)\n";
    let expected = ["FR02 buf src/work.f:8:11"];
    let main = format!("#include \"macros.h\"\n{head}{body}");
    assert_eq!(found(&main, &[("inc/macros.h", defines)]), expected);
    // Both definitions are seen where a condition decides.
    let either = defines
        .replace("#define WAIT_FOR(r)", "#ifdef SERIAL\n#define WAIT_FOR(r)\n#else\n#define WAIT_FOR(r)")
        + "#endif\n";
    assert_eq!(found(&main, &[("inc/macros.h", &either)]), expected);
    // What no file defines comes from the command line.
    let reports = reports(
        &format!("{head}{body}").replace("_RL", "REAL*8"),
        &[],
        &[
            "RECV_IT(a,r)=call mpi_irecv(a, 4, mpi_real, 1, 0, mpi_comm_world, r, ierr)",
            "WAIT_FOR(r)=call mpi_wait(r, istat, ierr)",
        ],
    );
    assert_eq!(places(&reports), ["FR02 buf src/work.f:7:11"]);
}

#[test]
fn arguments_of_macros_keep_their_places() {
    let main = "! free\n#define recv(what) call mpi_irecv(what, 4, mpi_real, 1, 0, mpi_comm_world, ireq, ierr)\nsubroutine s\nuse mpi\nreal buf(4)\n  recv(buf(1:4:2))\nend\n";
    let reports = reports(main, &[], &[]);
    assert_eq!(places(&reports), ["FR16 buf src/work.f90:6:3"]);
    let copied = &reports[0].findings[0].related[0];
    assert_eq!(&main[copied.span.range()], "buf(1:4:2)");
}

#[test]
fn macros_end_whatever_they_say() {
    let doubling: String =
        (0..60).map(|i| format!("#define M{i} M{} M{}\n", i + 1, i + 1)).collect::<String>() + "M0\n";
    let deep = "#define F(x) (x)\nx = ".to_string() + &"F(".repeat(10_000) + &")".repeat(10_000) + "\n";
    for main in [
        "! free\n#define A B\n#define B A\nA = B\nx = 1\n",
        "! free\n#define F(x) F(F(x))\nx = F(1)\nx = 1\n",
        "! free\n#define F(x,y) x\nx = F(1)\nx = F(1\nx = F(1,'a)\nx = 1\n",
        "! free\n#define\n#define 1 2\n#define F(\n#define F(x\n#undef\nx = 1\n",
        &format!("! free\n{doubling}x = 1\n"),
        &format!("! free\n{deep}x = 1\n"),
    ] {
        let reports = reports(main, &[], &[]);
        assert!(reports[0].n_statements > 0);
    }
}
