//! The evidence programs, each case in a file of its own, and the verdicts that their README implies.
//!
//! `UPDATE=1 cargo test -p fortran-lint --test hazard` writes the files anew.

mod common;

use common::{Expectation, expected, findings, header, package, preprocess, update};

/// A case of one of the programs.
struct Case {
    source: &'static str,
    name: String,
    defines: Vec<(&'static str, i64)>,
    expected: Vec<Expectation>,
}

const NONE: i64 = 0;
const TARGET: i64 = 4;
const SYNC_AFTER: i64 = 5;
const ADDRESS_AFTER: i64 = 6;
const SAVE: i64 = 7;
const ALLOCATABLE: i64 = 8;

/// With `use mpi` the address routine may be INTENT(IN): Open MPI gives stale values there.
const USE_MPI: i64 = 1;
const F08: i64 = 2;

fn one(level: &str, rule: &str, variable: &str, because: &[&str]) -> Vec<Expectation> {
    vec![Expectation::new(level, rule, variable, because)]
}

/// The finding of a hazard whose buffer is `buf`, for each way to declare or to sync it; `level` is that without a
/// remedy, SAVE makes a warning of it.
fn with_remedy(rule: &str, level: &str, bind: i64, remedy: i64) -> Vec<Expectation> {
    match remedy {
        NONE => one(level, rule, "buf", &[]),
        TARGET | ALLOCATABLE => one(level, rule, "buf", &["FR19"]),
        SAVE => one("warning", rule, "buf", &["FR19"]),
        ADDRESS_AFTER if bind == USE_MPI => one(level, rule, "buf", &["FR19"]),
        // VOLATILE, ASYNCHRONOUS, COMMON, a sync call, an opaque external routine.
        _ => Vec::new(),
    }
}

fn direct(case: i64, bind: i64, remedy: i64) -> Vec<Expectation> {
    let is_declared = matches!(remedy, NONE | TARGET | SAVE | ALLOCATABLE);
    match case {
        2 => {
            let mut all = with_remedy("FR01", "error", bind, remedy);
            if is_declared {
                all.extend(with_remedy("FR08", "error", bind, remedy));
            }
            all
        }
        3 => with_remedy("FR03", "error", bind, remedy),
        // The owner never reads the window; its store must reach memory before the fence. `r` is what the get brings.
        5 => {
            let mut all = one("warning", "FR06", "r", &[]);
            if is_declared {
                all.extend(with_remedy("FR08", "error", bind, remedy));
                all.extend(with_remedy("FR01", "warning", bind, remedy));
            } else if matches!(remedy, SYNC_AFTER | ADDRESS_AFTER) {
                all.extend(one("error", "FR08", "buf", &["FR14"]));
            }
            all
        }
        6 => with_remedy("FR02", "error", bind, remedy),
        // No compiler tried broke this one; `r` is received by MPI_IRECV and read after the wait.
        7 => {
            let mut all = one("warning", "FR02", "r", &[]);
            if is_declared {
                all.extend(with_remedy("FR05", "warning", bind, remedy));
            }
            all
        }
        _ => unreachable!("h03 has the cases 2, 3, 5, 6 and 7"),
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for bind in 0..3 {
        for remedy in 0..9 {
            cases.push(Case {
                source: "h01_irecv_local.f90",
                name: format!("h01_b{bind}_r{remedy}.f90"),
                defines: vec![("BIND", bind), ("REM", remedy)],
                expected: with_remedy("FR02", "warning", bind, remedy),
            });
        }
        for case in [2, 3, 5, 6, 7] {
            let misplaced: &[i64] = if case == 5 { &[13, 14] } else { &[] };
            for &remedy in [0, 1, 2, 3, 4, 5, 6, 7, 8, 15].iter().chain(misplaced) {
                cases.push(Case {
                    source: "h03_direct.f90",
                    name: format!("h03_c{case}_b{bind}_r{remedy}.f90"),
                    defines: vec![("BIND", bind), ("CASE", case), ("REM", remedy)],
                    expected: direct(case, bind, remedy),
                });
            }
        }
        cases.push(Case {
            source: "h04_section_copy.f90",
            name: format!("h04_b{bind}.f90"),
            defines: vec![("BIND", bind)],
            expected: if bind == F08 { Vec::new() } else { one("error", "FR16", "a", &[]) },
        });
    }
    for is_volatile in [false, true] {
        let defines = if is_volatile { vec![("VOL", 1)] } else { Vec::new() };
        let suffix = if is_volatile { "r1" } else { "r0" };
        let unless_volatile = |expected: Vec<Expectation>| if is_volatile { Vec::new() } else { expected };
        cases.push(Case {
            source: "h06_poll.f90",
            name: format!("h06_{suffix}.f90"),
            defines: defines.clone(),
            // Its window outlives the local flag in either case.
            expected: [
                one("error", "FR20", "flag", &[]),
                unless_volatile(
                    [
                        one("error", "FR01", "flag", &[]),
                        one("error", "FR17", "flag", &[]),
                        one("error", "FR17", "f", &["FR19"]),
                    ]
                    .concat(),
                ),
            ]
            .concat(),
        });
        cases.push(Case {
            source: "h07_grequest.f90",
            name: format!("h07_{suffix}.f90"),
            defines,
            expected: unless_volatile(one("error", "FR09", "es", &[])),
        });
    }
    cases
}

#[test]
fn the_expanded_cases_are_fresh() {
    let mut stale = Vec::new();
    for case in cases() {
        let source = std::fs::read_to_string(package().join("tests/hazard").join(case.source))
            .expect("the program is there");
        let defines: Vec<String> =
            case.defines.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let head = format!("! {} with {}\n{}", case.source, defines.join(" "), header(&case.expected));
        let text = head + &preprocess(&source, &case.defines);
        update(&package().join("tests/fixtures/hazard").join(&case.name), &text, &mut stale);
    }
    assert!(stale.is_empty(), "stale, run with UPDATE=1: {stale:#?}");
}

#[test]
fn every_case_gets_its_verdict() {
    let mut wrong = Vec::new();
    for case in cases() {
        let path = package().join("tests/fixtures/hazard").join(&case.name);
        let bytes = std::fs::read(&path).expect("the fixture is there");
        let expected = expected(&String::from_utf8_lossy(&bytes));
        let found = findings(&case.name, &bytes);
        if found != expected {
            wrong.push(format!("{}: expected {expected:?}, found {found:?}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases().len(), wrong.join("\n"));
}
