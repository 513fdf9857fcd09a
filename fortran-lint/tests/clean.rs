//! Correct programs of every style, written after textbooks and real codes: none has a finding of level error.

mod common;

use std::process::Command;

use common::{compiler, package, skip};
use fortran_lint::check::{Input, check};
use fortran_lint::finding::Level;
use fortran_lint::options::Options;

/// The files of the folder, each with routines for one binding.
const FILES: [&str; 3] = ["mpif.f", "mpi.f90", "f08.f90"];

/// Fewer routines than this would say little.
const ROUTINES_MIN: usize = 60;

fn inputs() -> Vec<Input> {
    let read = |name: &str| {
        let path = package().join("tests/fixtures/clean").join(name);
        Input { path: name.to_string(), bytes: std::fs::read(path).expect("the fixture is there") }
    };
    FILES.into_iter().map(read).collect()
}

#[test]
fn correct_programs_have_no_error() {
    let inputs = inputs();
    let text = |input: &Input| String::from_utf8_lossy(&input.bytes).to_lowercase();
    let n_routines: usize = inputs
        .iter()
        .map(|input| text(input).lines().filter(|line| line.trim_start().starts_with("subroutine ")).count())
        .sum();
    assert!(n_routines >= ROUTINES_MIN, "{n_routines} routines");
    for report in check(&inputs, &Options::default()) {
        assert!(report.skipped.is_empty(), "{:?} of {} were skipped", report.skipped, report.path);
        let errors: Vec<&str> = report
            .findings
            .iter()
            .filter(|finding| finding.level == Level::Error)
            .map(|finding| finding.message.as_str())
            .collect();
        assert!(errors.is_empty(), "{}: {errors:?}", report.path);
    }
}

/// What does not compile proves nothing.
#[test]
fn correct_programs_compile() {
    let Some(compiler) = compiler() else {
        skip("no MPI compiler for Fortran that is gfortran");
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    for name in FILES {
        let output = Command::new(compiler)
            .args(["-w", "-fallow-argument-mismatch", "-fsyntax-only", "-J"])
            .arg(folder.path())
            .arg(package().join("tests/fixtures/clean").join(name))
            .output()
            .expect("the compiler starts");
        assert!(output.status.success(), "{name}:\n{}", String::from_utf8_lossy(&output.stderr));
    }
}
