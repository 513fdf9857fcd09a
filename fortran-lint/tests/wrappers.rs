//! Wrappers: procedures that start, finish or hide operations for their callers, in files of their own and in any order.

mod common;

use common::{Expectation, check_files, input, package, preprocess, said_of};
use fortran_lint::check::check;
use fortran_lint::options::Options;

/// A unit that uses the module `halo` and receives into `buf`.
fn user(declaration: &str, body: &str) -> String {
    format!(
        "subroutine work(x)\nuse halo\nimplicit none\ninteger :: x, r, r2, rs(4), n\nlogical :: done\n{declaration}\n{body}\nend subroutine\n"
    )
}

/// A module with a procedure that starts a receive and one that finishes it.
const HALO: &str = "module halo\nuse mpi\nimplicit none\ninteger :: pending, others(8)\ncontains\n\
subroutine begin(buf, req)\ninteger :: buf(*), req, ierr\ncall MPI_IRECV(buf, 4, MPI_INTEGER, 0, 7, MPI_COMM_WORLD, req, ierr)\nend subroutine\n\
subroutine finish(req)\ninteger :: req, ierr\ncall MPI_WAIT(req, MPI_STATUS_IGNORE, ierr)\nend subroutine\n\
subroutine begin_kept(buf)\ninteger :: buf(*), ierr\ncall MPI_IRECV(buf, 4, MPI_INTEGER, 0, 7, MPI_COMM_WORLD, pending, ierr)\nend subroutine\n\
subroutine finish_kept\ninteger :: ierr\ncall MPI_WAIT(pending, MPI_STATUS_IGNORE, ierr)\nend subroutine\n\
subroutine whole(buf)\ninteger :: buf(*), req\ncall begin(buf, req)\ncall finish(req)\nend subroutine\n\
subroutine outer_begin(req, buf)\ninteger :: buf(*), req\ncall begin(buf, req)\nend subroutine\n\
end module\n";

/// The four cases of the program h02 that have a verdict, with each way to declare or to sync the buffer.
#[test]
fn the_wrapped_programs_get_the_verdicts_of_the_direct_ones() {
    let folder = package().join("tests/hazard");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("the program is there");
    let (wrapped, module, main) = (read("h02_wrapped.f90"), read("wrapmod.f90"), read("h02_main.f90"));
    // VOLATILE, ASYNCHRONOUS, COMMON, a module variable, and an opaque routine that may change the buffer.
    let is_safe = |remedy: i64| matches!(remedy, 1 | 2 | 3 | 6 | 9);
    let reasons = |remedy: i64| match remedy {
        0 => &[][..],
        5 => &["FR13"],
        // TARGET, SAVE, ALLOCATABLE, POINTER, EQUIVALENCE; an address routine with an INTENT(IN) dummy argument.
        _ => &["FR19"],
    };
    for remedy in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12] {
        let level = if remedy == 7 { "warning" } else { "error" };
        let one = |level: &str, rule: &str| Expectation::new(level, rule, "buf", reasons(remedy));
        for case in [1, 2, 3, 5] {
            let expected = match case {
                5 if matches!(remedy, 6 | 12) => vec![Expectation::new("error", "FR08", "buf", &["FR14"])],
                // COMMON that the wrapper with the synchronization does not declare.
                1 | 2 if remedy == 3 => vec![Expectation::new("warning", "FR11", "buf", &[])],
                // Accepted, with a note.
                _ if remedy == 9 => vec![Expectation::new("note", "FR12", "buf", &[])],
                _ if is_safe(remedy) => Vec::new(),
                1 => vec![one("warning", "FR02")],
                // A call behind the last fence stands before nothing else that looks at the window.
                2 if remedy == 12 => vec![one(level, "FR01")],
                2 => vec![one(level, "FR01"), one(level, "FR08")],
                3 => vec![one(level, "FR03")],
                // To be an argument of a procedure that the compiler can look into is an access.
                _ if remedy == 5 => vec![one(level, "FR01"), one(level, "FR08")],
                _ => vec![one(level, "FR08"), one("warning", "FR01")],
            };
            let text = preprocess(&wrapped, &[("CASE", case), ("REM", remedy)]);
            let inputs = [
                input("h02_wrapped.f90", &text),
                input("wrapmod.f90", &module),
                input("h02_main.f90", &main),
            ];
            let mut found: Vec<Expectation> = check(&inputs, &Options::default())
                .iter()
                .flat_map(|report| &report.findings)
                .map(|finding| {
                    Expectation::new(finding.level.name(), finding.rule, &finding.variable, &finding.because)
                })
                .collect();
            let mut expected = expected;
            // What a get brings is read behind the fence that completes it.
            if case == 5 {
                expected.push(Expectation::new("warning", "FR06", "s", &[]));
            }
            found.sort();
            found.dedup();
            expected.sort();
            assert_eq!(found, expected, "case {case}, remedy {remedy}");
        }
    }
}

#[test]
fn requests_come_back_through_arguments_modules_and_other_wrappers() {
    let reported = ["work.f90: warning FR02 buf: x = buf(1)"];
    let declaration = "integer :: buf(4)";
    for body in [
        "call begin(buf, r)\ncall finish(r)\nx = buf(1)",
        "call begin(req=r, buf=buf)\ncall finish(r)\nx = buf(1)",
        "call outer_begin(r, buf)\ncall finish(r)\nx = buf(1)",
        "call begin_kept(buf)\ncall finish_kept\nx = buf(1)",
        "call begin_kept(buf)\ncall finish(pending)\nx = buf(1)",
        "call begin(buf, rs(2))\ncall finish(rs(n))\nx = buf(1)",
        "call begin(buf, r)\nr2 = r\ncall finish(r2)\nx = buf(1)",
    ] {
        check_files(&[("halo.f90", HALO), ("work.f90", &user(declaration, body))], &reported);
        for safe in ["integer, asynchronous :: buf(4)", "integer, volatile :: buf(4)"] {
            check_files(&[("halo.f90", HALO), ("work.f90", &user(safe, body))], &[]);
        }
        // COMMON helps where the procedure with the wait can be thought to use the block.
        let common = user("integer :: buf(4)\ncommon /c/ buf", body);
        let found = said_of(&[("halo.f90", HALO), ("work.f90", &common)]);
        assert!(
            found.len() == 1 && found[0].starts_with("work.f90: warning FR11 buf: call finish"),
            "{found:?}"
        );
        let declared = ["subroutine finish(req)\n", "subroutine finish_kept\n"]
            .iter()
            .fold(HALO.to_string(), |text, header| {
                text.replace(header, &format!("{header}integer :: z(4)\ncommon /c/ z\n"))
            });
        check_files(&[("halo.f90", &declared), ("work.f90", &common)], &[]);
    }
    // What is finished where it is started concerns nobody else: the call names the buffer.
    check_files(&[("halo.f90", HALO), ("work.f90", &user(declaration, "call whole(buf)\nx = buf(1)"))], &[]);
    // Touched before anything has finished it.
    check_files(
        &[
            ("halo.f90", HALO),
            ("work.f90", &user(declaration, "call begin(buf, r)\nx = buf(1)\ncall finish(r)")),
        ],
        &["work.f90: error FR15 buf: x = buf(1)"],
    );
    check_files(
        &[
            ("halo.f90", HALO),
            ("work.f90", &user(declaration, "call begin_kept(buf)\nx = buf(1)\ncall finish_kept")),
        ],
        &["work.f90: error FR15 buf: x = buf(1)"],
    );
    // Another request is another operation.
    check_files(
        &[
            ("halo.f90", HALO),
            ("work.f90", &user(declaration, "call begin(buf, r)\ncall finish(r2)\ncall finish(r)")),
        ],
        &[],
    );
}

#[test]
fn a_finding_names_the_wrapper_and_where_it_stands() {
    let work = user("integer :: buf(4)", "call begin(buf, r)\ncall finish(r)\nx = buf(1)");
    let reports = check(&[input("halo.f90", HALO), input("work.f90", &work)], &Options::default());
    let related: Vec<&str> =
        reports[1].findings[0].related.iter().map(|related| related.message.as_str()).collect();
    assert!(related.contains(&"BEGIN (halo.f90:6) calls MPI_IRECV"), "{related:?}");
    assert!(related.contains(&"FINISH (halo.f90:10) calls MPI_WAIT"), "{related:?}");
}

#[test]
fn names_come_through_modules_of_other_files() {
    let store = "module store\ninteger :: field(4)\ninteger, parameter :: size = 4\nend module\n";
    let body = "call begin(buf, r)\ncall finish(r)\nx = buf(1)";
    // Renamed, handed on by another module, and not declared at all.
    let middle = "module middle\nuse store, only: inner => field\nend module\n";
    let through = |uses: &str| user("", body).replace("use halo\n", &format!("use halo\n{uses}\n"));
    let files = |work: &str| {
        said_of(&[("store.f90", store), ("middle.f90", middle), ("halo.f90", HALO), ("work.f90", work)])
    };
    // Accepted, with a note.
    for uses in ["use store, only: buf => field", "use middle, buf => inner"] {
        assert_eq!(files(&through(uses)), ["work.f90: note FR12 buf: call begin(buf, r)"]);
    }
    // The module is seen and has no such name, so that it is a local.
    let implicit = through("use middle").replace("implicit none\n", "");
    assert_eq!(files(&implicit), ["work.f90: warning FR02 buf: x = buf(1)"]);
}

#[test]
fn a_wrapper_packs_what_has_gaps() {
    let declaration = "integer, asynchronous :: a(4,4)";
    for (buffer, n) in [("a(2,:)", 1), ("a(:,2)", 0), ("a(1,2)", 0), ("(a)", 1), ("a(:,1) + 1", 1)] {
        let work = user(declaration, &format!("call begin({buffer}, r)\ncall finish(r)"));
        let found = said_of(&[("halo.f90", HALO), ("work.f90", &work)]);
        assert_eq!(found.len(), n, "{buffer}: {found:?}");
        assert!(found.iter().all(|line| line.starts_with("work.f90: error FR16")), "{found:?}");
    }
}
