//! The program: exit statuses, formats, and what it does with files that it cannot use.

use std::process::{Command, Output};

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fortran-lint")).args(args).output().expect("the program starts")
}

fn fixture(name: &str) -> String {
    format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

// covers: REG-LINT-17
#[test]
fn exit_status_tells_what_was_found() {
    let unsafe_one = fixture("seed/window_local.f90");
    let clean = fixture("seed/window_common.f90");
    let warned = fixture("seed/receive_local.f90");
    assert_eq!(run(&["check", &clean]).status.code(), Some(0));
    assert_eq!(run(&["check", &unsafe_one]).status.code(), Some(1));
    assert_eq!(run(&["check", &clean, &warned]).status.code(), Some(1));
    assert_eq!(run(&["check", "--min-level", "error", &warned]).status.code(), Some(0));
    assert_eq!(run(&["check", "--select", "FR08", &warned]).status.code(), Some(0));
    assert_eq!(run(&["check", "no/such/file.f90"]).status.code(), Some(2));
    // What can be read is still checked.
    let both = run(&["check", "no/such/file.f90", &unsafe_one]);
    assert_eq!(both.status.code(), Some(2));
    assert!(text(&both.stdout).contains("FR01") && text(&both.stderr).contains("no/such/file.f90"));
    assert_eq!(run(&["check"]).status.code(), Some(2));
    assert_eq!(run(&["check", "--select", "FR99", &clean]).status.code(), Some(2));
    assert_eq!(run(&["explain", "FR99"]).status.code(), Some(2));
    assert_eq!(run(&["--help"]).status.code(), Some(0));
}

/// Files that are no sources are told apart from sources that are not understood, and hide none of the others.
#[test]
fn files_that_are_no_text_are_errors() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let utf_16: Vec<u8> = "program p\nend\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    std::fs::write(path("wide.f90"), utf_16).expect("the file can be written");
    std::fs::write(path("binary.f"), b"\x7fELF\x02\x01\x01\0\0\0").expect("the file can be written");
    std::fs::File::create(path("large.f90"))
        .and_then(|file| file.set_len(1 << 31))
        .expect("a file with a hole can be made");
    std::fs::write(path("good.f90"), "program p\nend\n").expect("the file can be written");
    let output = run(&["check", &path("")]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    for part in [
        "wide.f90: it is no text",
        "binary.f: it is no text",
        "large.f90: it has 2147483648 bytes",
        "`exclude`",
    ] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    assert!(text(&output.stdout).contains("in 1 file\n"), "{}", text(&output.stdout));
}

/// Files that include each other, and folders that lead into themselves, end.
#[test]
fn circles_of_files_and_folders_end() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("a.f"), "      INCLUDE 'b.f'\n      END\n").expect("the file can be written");
    std::fs::write(path("b.f"), "      INCLUDE 'a.f'\n      END\n").expect("the file can be written");
    #[cfg(unix)]
    std::os::unix::fs::symlink(folder.path(), path("again")).expect("a link can be made");
    let output = run(&["check", &folder.path().display().to_string()]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("in 2 files\n"), "{}", text(&output.stdout));
}

// covers: REG-LINT-17
#[test]
fn every_listed_rule_can_be_explained() {
    let rules = text(&run(&["rules"]).stdout);
    assert!(rules.lines().count() >= 12, "{rules}");
    for line in rules.lines() {
        let code = line.split_whitespace().next().expect("a line starts with the code");
        let page = run(&["explain", code]);
        assert_eq!(page.status.code(), Some(0));
        assert!(text(&page.stdout).starts_with(&format!("# {code}: ")));
        for part in ["## What happens", "## What to do"] {
            assert!(text(&page.stdout).contains(part), "{code} lacks {part}");
        }
    }
    assert_eq!(run(&["explain", "fr01"]).status.code(), Some(0));
}

#[test]
fn folders_are_searched_and_json_is_one_document() {
    let output = run(&["check", "--format", "json", "--show-skipped", "--stats", &fixture("seed")]);
    assert_eq!(output.status.code(), Some(1));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("the output is JSON");
    assert_eq!(document["version"], 1);
    assert_eq!(document["summary"]["files"], 57);
    assert_eq!(document["summary"]["skipped"], 0);
    let findings = document["findings"].as_array().expect("findings are a list");
    assert_eq!(
        findings.len() as u64,
        document["summary"]["errors"].as_u64().unwrap_or(0)
            + document["summary"]["warnings"].as_u64().unwrap_or(0)
            + document["summary"]["notes"].as_u64().unwrap_or(0)
    );
    for key in [
        "rule",
        "level",
        "path",
        "line",
        "column",
        "end_line",
        "end_column",
        "message",
        "variable",
        "because",
        "related",
        "remedies",
    ] {
        assert!(findings[0].get(key).is_some(), "{key}");
    }
    assert!(text(&output.stderr).contains("100.000 % understood"));
}

#[test]
fn a_run_that_finds_no_fortran_file_fails() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    std::fs::write(folder.path().join("notes.txt"), "no Fortran").expect("the file can be written");
    let path = folder.path().display().to_string();
    for format in ["text", "json"] {
        let output = run(&["check", "--format", format, &path]);
        assert_eq!(output.status.code(), Some(2));
        let said = text(&output.stderr);
        for part in ["there is no Fortran file in", &path, ".f, ", ".f90, ", ".fpp"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(output.stdout.is_empty(), "no summary that looks like success: {}", text(&output.stdout));
    }
    // One folder with sources is something to check, and a file that was named is read whatever its name.
    assert_eq!(run(&["check", &path, &fixture("seed/window_common.f90")]).status.code(), Some(0));
    assert_eq!(run(&["check", &format!("{path}/notes.txt")]).status.code(), Some(0));
}

#[test]
fn a_declaration_is_labelled_as_such() {
    let output = run(&["check", "--select", "FR01", &fixture("seed/window_local.f90")]);
    assert!(text(&output.stdout).contains("^ declared here"), "{}", text(&output.stdout));
}

#[test]
fn skipped_statements_are_listed() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("odd.f90");
    std::fs::write(&path, b"program p\n  what is this\nend program\n\xff\xfe\n")
        .expect("the file can be written");
    let output = run(&["check", "--show-skipped", &path.display().to_string()]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("odd.f90:2:3: skipped: what is this"), "{}", text(&output.stdout));
    // Without the list, the summary says that something was passed over.
    let output = run(&["check", &path.display().to_string()]);
    assert_eq!(output.status.code(), Some(0));
    let said = text(&output.stdout);
    assert!(
        said.contains("2 statements were not understood (--show-skipped lists them)\n0 errors"),
        "{said}"
    );
    let clean = text(&run(&["check", &fixture("seed/window_common.f90")]).stdout);
    assert!(!clean.contains("understood"), "{clean}");
}

#[test]
fn the_help_is_as_documented() {
    expect_test::expect_file!["golden/help.txt"].assert_eq(&text(&run(&["--help"]).stdout));
    expect_test::expect_file!["golden/help_check.txt"].assert_eq(&text(&run(&["check", "--help"]).stdout));
    expect_test::expect_file!["golden/rules.txt"].assert_eq(&text(&run(&["rules"]).stdout));
}
