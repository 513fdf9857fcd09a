//! The formats for programs, and comments that allow findings.

mod common;

use std::process::{Command, Output};

use fortran_lint::check::check_one;
use fortran_lint::options::Options;
use fortran_lint::report::{Summary, github, json, overview, sarif, text};
use fortran_lint::rules::RULES;
use rma_source::render;
use serde_json::Value;

/// A unit with one receive that is read after the wait, with `mark` behind the read.
fn receive(before: &str, mark: &str) -> String {
    format!(
        "subroutine work(comm)\n  use mpi\n  integer :: comm, req, ierr\n  real :: buf, x\n\
         \x20 call mpi_irecv(buf, 1, MPI_REAL, 0, 1, comm, req, ierr)\n\
         \x20 call mpi_wait(req, MPI_STATUS_IGNORE, ierr)\n{before}  x = buf{mark}\nend subroutine\n"
    )
}

fn rules_in(path: &str, text: &str) -> (Vec<String>, usize) {
    let report = check_one(path, text.as_bytes(), &Options::default());
    let found =
        report.findings.iter().map(|finding| format!("{} {}", finding.rule, finding.message)).collect();
    (found, report.n_silenced)
}

// covers: REG-LINT-21
#[test]
fn a_comment_with_a_reason_allows_a_finding() {
    for (before, mark) in [
        ("", " ! rma-lint: allow FR02 probed before"),
        ("  ! rma-lint: allow FR02 probed before\n", ""),
        ("  !rma-lint: allow fr02(buf) probed before\n  ! another comment\n\n", ""),
        ("", " ! rma-lint: allow FR02(BUF): probed before"),
    ] {
        let (found, n_silenced) = rules_in("w.f90", &receive(before, mark));
        assert!(found.is_empty() && n_silenced == 1, "{before}{mark}: {found:?}");
    }
    // In fixed form, with every mark of a comment.
    for comment in
        ["C rma-lint: allow FR02 probed", "* rma-lint: allow FR02 probed", "! rma-lint: allow FR02 probed"]
    {
        let text = format!(
            "      SUBROUTINE WORK(COMM)\n      INCLUDE 'mpif.h'\n      INTEGER COMM, REQ, IERR\n      REAL BUF, X\n\
             \x20     CALL MPI_IRECV(BUF, 1, MPI_REAL, 0, 1, COMM, REQ, IERR)\n\
             \x20     CALL MPI_WAIT(REQ, MPI_STATUS_IGNORE, IERR)\n{comment}\n      X = BUF\n      END\n"
        );
        let (found, n_silenced) = rules_in("w.f", &text);
        assert!(found.is_empty() && n_silenced == 1, "{comment}: {found:?}");
    }
}

// covers: REG-LINT-21
#[test]
fn a_comment_that_is_wrong_or_without_effect_is_reported() {
    for (before, mark, expected) in [
        (
            "",
            " ! rma-lint: allow FR02",
            &["FR02", "FR90 the comment allows a finding and does not say why"][..],
        ),
        ("", " ! rma-lint: allow FR02 --", &["FR02", "FR90 the comment allows"]),
        ("", " ! rma-lint: allow FR2 probed", &["FR02", "FR90 no rule has the code `FR2`"]),
        ("", " ! rma-lint: allow", &["FR02", "FR90 the comment names no rule"]),
        ("", " ! rma-lint: off", &["FR02", "FR90 the comment does not say `allow`"]),
        ("", " ! rma-lint: allow FR02(buf probed", &["FR02", "FR90 a `)` is missing"]),
        ("", " ! rma-lint: allow FR02(x) probed", &["FR02", "FR91 there is no FR02 about `x` on this line"]),
        ("", " ! rma-lint: allow FR02, FR01 probed", &["FR91 there is no FR01 on this line to allow"]),
        // Two lines away.
        ("  ! rma-lint: allow FR02 probed\n  ierr = 0\n", "", &["FR91 there is no FR02", "FR02"]),
        // A word in a text is no comment.
        ("  print *, '! rma-lint: allow FR02'\n", "", &["FR02"]),
    ] {
        let (found, _) = rules_in("w.f90", &receive(before, mark));
        assert_eq!(found.len(), expected.len(), "{before}{mark}: {found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{before}{mark}: {found} is not {expected}");
        }
    }
    // A rule that did not run could not say anything.
    let text = receive("", " ! rma-lint: allow FR02 probed");
    for options in [
        Options { select: vec!["FR01".to_string()], ..Options::default() },
        Options { ignore: vec!["FR02".to_string()], ..Options::default() },
    ] {
        let report = check_one("w.f90", text.as_bytes(), &options);
        assert!(report.findings.is_empty(), "{:?}", report.findings);
    }
}

/// The properties that SARIF 2.1.0 requires of each object, and what is said about their values.
#[test]
fn sarif_obeys_the_schema() {
    let text = receive("", "");
    let report = check_one("a b%/w:1.f90", text.as_bytes(), &Options::default());
    let document: Value = serde_json::from_str(&sarif::document(&[report])).expect("it is JSON");
    assert_eq!(document["version"], "2.1.0");
    assert!(document["$schema"].as_str().is_some_and(|schema| schema.ends_with("sarif-schema-2.1.0.json")));
    let runs = document["runs"].as_array().expect("`runs` is an array");
    assert_eq!(runs.len(), 1);
    let run = &runs[0];
    // A `toolComponent` needs a name; a `reportingDescriptor` an id; a `multiformatMessageString` a text.
    assert_eq!(run["tool"]["driver"]["name"], "fortran-lint");
    let rules = run["tool"]["driver"]["rules"].as_array().expect("`rules` is an array");
    assert_eq!(rules.len(), RULES.len());
    for (rule, own) in rules.iter().zip(RULES) {
        assert_eq!(rule["id"], own.code);
        for key in ["shortDescription", "fullDescription", "help"] {
            assert!(rule[key]["text"].as_str().is_some_and(|text| !text.is_empty()), "{} {key}", own.code);
        }
        let level = rule["defaultConfiguration"]["level"].as_str().expect("a level");
        assert!(["none", "note", "warning", "error"].contains(&level));
    }
    assert!(["utf16CodeUnits", "unicodeCodePoints"].contains(&run["columnKind"].as_str().expect("a kind")));
    let results = run["results"].as_array().expect("`results` is an array");
    assert_eq!(results.len(), 1);
    let result = &results[0];
    assert!(
        result["message"]["text"].as_str().is_some_and(|text| text.contains("`buf` is read after MPI_WAIT"))
    );
    assert_eq!(result["ruleId"], "FR02");
    assert_eq!(rules[result["ruleIndex"].as_u64().expect("an index") as usize]["id"], "FR02");
    assert_eq!(result["level"], "warning");
    assert!(result["partialFingerprints"].as_object().is_some_and(|prints| prints.len() == 1));
    let places = result["locations"].as_array().expect("locations");
    let related = result["relatedLocations"].as_array().expect("related locations");
    assert_eq!(places.len(), 1);
    assert!(related.len() >= 3, "declaration, starting and finishing call");
    for place in places.iter().chain(related) {
        let physical = &place["physicalLocation"];
        assert_eq!(physical["artifactLocation"]["uri"], "a%20b%25/w%3A1.f90");
        let number = |key: &str| physical["region"][key].as_u64().expect("a number");
        assert!(number("startLine") >= 1 && number("startColumn") >= 1);
        assert!(number("endLine") > number("startLine") || number("endColumn") >= number("startColumn"));
    }
    for (i, place) in related.iter().enumerate() {
        assert_eq!(place["id"], i as u64 + 1);
        assert!(place["message"]["text"].is_string());
    }
    // Lines above do not change what makes a finding the same.
    let moved = check_one("a b%/w:1.f90", format!("\n\n{text}").as_bytes(), &Options::default());
    let moved: Value = serde_json::from_str(&sarif::document(&[moved])).expect("it is JSON");
    assert_eq!(moved["runs"][0]["results"][0]["partialFingerprints"], result["partialFingerprints"]);
    assert_ne!(moved["runs"][0]["results"][0]["locations"], result["locations"]);
}

// covers: REG-ADV-05
#[test]
fn every_finding_and_every_page_leads_to_the_advice() {
    let command = "fortran-lint explain registers";
    let report = check_one("w.f90", receive("", "").as_bytes(), &Options::default());
    assert_eq!(report.findings.len(), 1);
    let reports = [report];
    let summary = Summary::new(&reports);
    for text in [
        text::findings(&reports, render::Colour::Never),
        json::document(&reports, &summary, json::Skipped::Counted),
        sarif::document(&reports),
        github::annotations(&reports),
    ] {
        assert!(text.contains(command), "{text}");
    }
    for rule in RULES {
        assert!(rule.page().contains(command), "{}", rule.code);
    }
    // The page stands alone, and the command prints it.
    let page =
        std::fs::read_to_string(common::package().join("../docs/registers.md")).expect("the page is there");
    let printed = run(&["explain", "registers"], "");
    assert_eq!(String::from_utf8_lossy(&printed.stdout), page);
    for part in ["COMMON", "VOLATILE", "A dummy call"] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn github_annotations_are_one_line_each() {
    let report = check_one("a,b.f90", receive("", "").as_bytes(), &Options::default());
    let text = github::annotations(&[report]);
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(
        text.starts_with(
            "::warning file=a%2Cb.f90,line=7,endLine=7,col=7,endColumn=10,title=FR02 buf::`buf` is read after MPI_WAIT"
        ),
        "{text}"
    );
    assert!(text.contains("%0Ahelp: declare `buf` ASYNCHRONOUS"), "{text}");
}

#[test]
fn the_overview_counts_by_rule_and_by_file() {
    let reports: Vec<_> = ["b.f90", "a.f90", "clean.f90"]
        .iter()
        .map(|path| {
            let text = if *path == "clean.f90" { "end\n".to_string() } else { receive("", "") };
            check_one(path, text.as_bytes(), &Options::default())
        })
        .collect();
    let expected = [
        "  errors warnings    notes  rule",
        "       0        2        0  FR02 receive-buffer-used-after-wait",
        "",
        "  errors warnings    notes  file",
        "       0        1        0  a.f90",
        "       0        1        0  b.f90",
        "",
    ];
    assert_eq!(overview::tables(&reports).lines().collect::<Vec<&str>>(), expected);
    assert_eq!(overview::tables(&reports[2..]), "");
}

// ---- the program ----------------------------------------------------------------------------------------------------

fn run(args: &[&str], input: &str) -> Output {
    use std::io::Write;
    let mut child = Command::new(env!("CARGO_BIN_EXE_fortran-lint"))
        .args(args)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    // A program that refuses its command line does not read.
    let _ = child.stdin.take().expect("there is a pipe").write_all(input.as_bytes());
    child.wait_with_output().expect("the program ends")
}

#[test]
fn the_standard_input_is_a_file_with_a_name_of_your_choice() {
    let text = receive("", "");
    let output = run(&["check", "-"], &text);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("<stdin>:7:7"));
    let output = run(&["check", "-", "--stdin-filename", "src/w.f90", "--format", "github"], &text);
    assert!(String::from_utf8_lossy(&output.stdout).contains("file=src/w.f90,"));
    let output = run(&["check", "-", "--stdin-filename", "w.f90", "--diff"], &text);
    assert!(String::from_utf8_lossy(&output.stdout).contains("+  asynchronous :: buf\n"));
    assert_eq!(run(&["check", "-", "--fix"], &text).status.code(), Some(2));
    assert_eq!(run(&["check", "src", "--stdin-filename", "w.f90"], "").status.code(), Some(2));
}

#[test]
fn a_reader_that_goes_away_is_no_reason_to_complain() {
    let fixtures = format!("{}/tests/fixtures", env!("CARGO_MANIFEST_DIR"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_fortran-lint"))
        .args(["check", &fixtures])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(output.status.code(), Some(1), "the findings count all the same");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}
