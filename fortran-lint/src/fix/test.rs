//! Where edits go and how they are written. Never compiles what comes out; the tests with gfortran do.

use std::sync::Arc;

use super::{Outcome, mend};
use crate::check::{FileReport, Input, check};
use crate::options::Options;
use crate::source::InMemory;

fn all(_: &mut [FileReport]) {}

fn mended_with(inputs: &[(&str, &[u8])], options: &Options) -> (Vec<Vec<u8>>, Outcome) {
    let inputs: Vec<Input> =
        inputs.iter().map(|(path, bytes)| Input { path: path.to_string(), bytes: bytes.to_vec() }).collect();
    let outcome = mend(&inputs, options, all);
    let texts: Vec<Vec<u8>> = inputs
        .iter()
        .enumerate()
        .map(|(i, input)| match outcome.patches.get(&i) {
            Some(patch) => patch.new_text(),
            None => input.bytes.clone(),
        })
        .collect();
    // What was there is there still, in its order.
    for (input, text) in inputs.iter().zip(&texts) {
        let mut rest = text.iter();
        assert!(
            input.bytes.iter().all(|byte| rest.any(|own| own == byte)),
            "a byte of {} is gone",
            input.path
        );
    }
    // A second run has nothing to do.
    let again: Vec<Input> = inputs
        .iter()
        .zip(&texts)
        .map(|(input, text)| Input { path: input.path.clone(), bytes: text.clone() })
        .collect();
    assert!(mend(&again, options, all).patches.is_empty(), "the second run changes something");
    (texts, outcome)
}

/// The lines that mending adds to a file, and how many findings with a way out are left.
fn check_one(path: &str, text: &[u8], options: &Options, expected: &[&str]) {
    let (texts, outcome) = mended_with(&[(path, text)], options);
    let old: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
    let new = String::from_utf8_lossy(&texts[0]).into_owned();
    let mut old = old.iter().peekable();
    let mut added = Vec::new();
    for line in texts[0].split_inclusive(|&byte| byte == b'\n') {
        match old.peek() {
            Some(own) if **own == line => {
                old.next();
            }
            _ => added.push(String::from_utf8_lossy(line).into_owned()),
        }
    }
    assert_eq!(added, expected, "in\n{new}");
    let left: Vec<&str> = outcome
        .reports
        .iter()
        .flat_map(|report| &report.findings)
        .filter(|finding| !finding.repairs.is_empty())
        .map(|finding| finding.message.as_str())
        .collect();
    assert!(left.is_empty(), "{left:?} is left in\n{new}");
}

/// A unit in which `buf` is received and read after the wait; `declaration` must declare it.
fn receive(door: &str, declaration: &str) -> String {
    format!(
        "subroutine work(comm)\n{door}  integer :: comm, req, ierr\n{declaration}  real :: x\n\
         \x20 call MPI_Irecv(buf, 1, MPI_REAL, 0, 1, comm, req, ierr)\n\
         \x20 call MPI_Wait(req, MPI_STATUS_IGNORE, ierr)\n  x = buf\nend subroutine\n"
    )
}

const USE: &str = "  use mpi\n";
const F08: &str = "  use mpi_f08\n";
const HEADER: &str = "  include 'mpif.h'\n";

#[test]
fn the_declaration_follows_in_the_style_of_the_old_one() {
    let options = Options::default();
    for (declaration, expected) in [
        ("  real :: buf\n", "  asynchronous :: buf\n"),
        ("\tREAL Buf\n", "\tASYNCHRONOUS Buf\n"),
        ("  real :: a, buf, b ! three\n", "  asynchronous :: buf\n"),
        ("  real, dimension(3) :: a, &\n       & buf, b\n", "  asynchronous :: buf\n"),
        ("  integer :: i; real :: buf\n", "  asynchronous :: buf\n"),
        ("  real :: buf;\n", "  asynchronous :: buf\n"),
    ] {
        check_one("w.f90", receive(USE, declaration).as_bytes(), &options, &[expected]);
    }
    // Between two statements of one line.
    let text = receive(USE, "  real :: buf; integer :: i\n");
    let (texts, _) = mended_with(&[("w.f90", text.as_bytes())], &options);
    let new = text.replace("real :: buf;", "real :: buf; asynchronous :: buf;");
    assert_eq!(String::from_utf8_lossy(&texts[0]), new);
    // Implicit typing: behind the last declaration.
    check_one("w.f90", receive(USE, "").as_bytes(), &options, &["  asynchronous :: buf\n"]);
}

#[test]
fn without_an_interface_a_block_is_made_that_nothing_else_has() {
    let options = Options::default();
    let text = receive(HEADER, "  real :: buf\n");
    check_one("w.f90", text.as_bytes(), &options, &["  common /work_buf/ buf\n"]);
    let taken = receive(HEADER, "  real :: buf\n  integer :: work_buf\n");
    check_one("w.f90", taken.as_bytes(), &options, &["  common /work_bufx/ buf\n"]);
    // What must not stand in COMMON is left to a person.
    for declaration in [
        "  real, allocatable :: buf\n",
        "  real, pointer :: buf\n",
        "  real, save :: buf\n",
        "  real :: buf = 3\n",
        "  type(t) :: buf\n",
        "  real :: buf(comm)\n",
        "  character(len=comm) :: buf\n",
    ] {
        let (_, outcome) = mended_with(&[("w.f90", receive(HEADER, declaration).as_bytes())], &options);
        assert!(outcome.patches.is_empty(), "{declaration}");
        assert!(!outcome.reports.is_empty() && outcome.mended.is_empty());
    }
    // The empty routine of the code changes nothing about the variable, and comes first.
    let own = Options { sync_routine: Some("keep".to_string()), ..Options::default() };
    check_one("w.f90", text.as_bytes(), &own, &["  call keep(buf)\n"]);
    let saved = receive(HEADER, "  real, save :: buf\n");
    check_one("w.f90", saved.as_bytes(), &own, &["  call keep(buf)\n"]);
}

#[test]
fn a_name_declared_in_each_branch_gets_the_attribute_in_each() {
    let text = receive(USE, "#ifdef SINGLE\n  real :: buf\n#else\n  double precision :: buf\n#endif\n");
    let expected = ["  asynchronous :: buf\n", "  asynchronous :: buf\n"];
    check_one("w.F90", text.as_bytes(), &Options::default(), &expected);
    let (texts, _) = mended_with(&[("w.F90", text.as_bytes())], &Options::default());
    let new = String::from_utf8_lossy(&texts[0]).into_owned();
    assert!(new.contains("real :: buf\n  asynchronous :: buf\n#else"), "{new}");
    assert!(new.contains("double precision :: buf\n  asynchronous :: buf\n#endif"), "{new}");
}

#[test]
fn a_bare_dummy_argument_gets_a_call_and_one_with_an_interface_an_attribute() {
    let options = Options::default();
    let text = receive(F08, "  real :: buf\n").replace("work(comm)", "work(comm, buf)");
    check_one("w.f90", text.as_bytes(), &options, &["  call MPI_F_sync_reg(buf)\n"]);
    let shouted = text.replace("MPI_Wait", "MPI_WAIT");
    check_one("w.f90", shouted.as_bytes(), &options, &["  call MPI_F_SYNC_REG(buf)\n"]);
    let in_module = format!("module m\ncontains\n{text}end module\n");
    check_one("w.f90", in_module.as_bytes(), &options, &["  asynchronous :: buf\n"]);
    // The routine is not in sight.
    let only = text.replace("use mpi_f08", "use mpi_f08, only: mpi_irecv, mpi_wait, mpi_real");
    let (_, outcome) = mended_with(&[("w.f90", only.as_bytes())], &options);
    assert!(outcome.patches.is_empty());
    let listed = only.replace("mpi_real", "mpi_real, mpi_f_sync_reg");
    check_one("w.f90", listed.as_bytes(), &options, &["  call MPI_F_sync_reg(buf)\n"]);
}

#[test]
fn every_place_with_a_call_of_its_own_is_mended() {
    let options = Options { sync_routine: Some("keep".to_string()), ..Options::default() };
    let text = "subroutine work(comm)\n  include 'mpif.h'\n  integer comm, req, ierr\n  real buf, x\n\
        \x20 call mpi_irecv(buf, 1, mpi_real, 0, 1, comm, req, ierr)\n\
        \x20 if (comm > 3) then\n    call mpi_wait(req, mpi_status_ignore, ierr)\n    x = buf\n\
        \x20 else\n    call mpi_wait(req, mpi_status_ignore, ierr)\n    x = 2 * buf\n  end if\nend\n";
    check_one("w.f90", text.as_bytes(), &options, &["    call keep(buf)\n", "    call keep(buf)\n"]);
}

#[test]
fn calls_that_do_not_help_everywhere_are_not_made_at_all_and_units_are_judged_alone() {
    let options = Options { sync_routine: Some("keep".to_string()), ..Options::default() };
    let first = receive(HEADER, "  real, save :: buf\n");
    // The second call would make its line too long.
    let second = "subroutine other(comm)\n  include 'mpif.h'\n  integer comm, req, ierr\n  real, save :: buf\n\
        \x20 call mpi_irecv(buf, 1, mpi_real, 0, 1, comm, req, ierr)\n\
        \x20 if (comm > 3) then\n    call mpi_wait(req, mpi_status_ignore, ierr)\n    comm = buf\n\
        \x20 else\n    call mpi_wait(req, mpi_status_ignore, ierr); comm = 2 * buf; comm = 3; comm = 4; comm = 5; comm = 6; comm = 7; comm = 8; comm = 9\n\
        \x20 end if\nend\n";
    let declared = receive(USE, "  real :: buf\n").replace("work", "third");
    let text = format!("{first}{second}{declared}");
    let (texts, outcome) = mended_with(&[("w.f90", text.as_bytes())], &options);
    let new = String::from_utf8_lossy(&texts[0]).into_owned();
    assert_eq!(
        new,
        first.replace("  x = buf\n", "  call keep(buf)\n  x = buf\n")
            + second
            + &declared.replace("real :: buf\n", "real :: buf\n  asynchronous :: buf\n")
    );
    assert_eq!(outcome.mended.len(), 2, "{:?}", outcome.mended);
}

#[test]
fn fixed_form_keeps_to_its_columns_and_line_ends() {
    let options = Options::default();
    let unit = |declaration: &str, end: &str| {
        [
            "      SUBROUTINE WORK(COMM)",
            "      INCLUDE 'mpif.h'",
            "      INTEGER COMM, REQ, IERR",
            declaration,
            "      CALL MPI_IRECV(BUF, 1, MPI_REAL, 0, 1, COMM, REQ, IERR)",
            "      CALL MPI_WAIT(REQ, MPI_STATUS_IGNORE, IERR)",
            "      X = BUF",
            "      END",
        ]
        .map(|line| format!("{line}{end}"))
        .concat()
    };
    for (declaration, expected) in [
        ("      REAL BUF", "      COMMON /WORK_BUF/ BUF"),
        ("\tREAL BUF", "\tCOMMON /WORK_BUF/ BUF"),
        ("C     nothing\n      REAL X,\n     &     BUF", "      COMMON /WORK_BUF/ BUF"),
        // Sequence numbers behind column 72.
        (
            "      REAL BUF                                                          WORK0040",
            "      COMMON /WORK_BUF/ BUF",
        ),
    ] {
        for end in ["\n", "\r\n"] {
            let declaration = declaration.replace('\n', end);
            check_one("w.f", unit(&declaration, end).as_bytes(), &options, &[&format!("{expected}{end}")]);
        }
    }
    // A line end of its own kind, and none at the end of the text.
    let text = unit("      REAL BUF", "\r");
    let (texts, _) = mended_with(&[("w.f", text.as_bytes())], &options);
    let new = String::from_utf8_lossy(&texts[0]).into_owned();
    assert!(new.contains("\r      COMMON /WORK_BUF/ BUF\r") && !new.contains('\n'), "{new:?}");
    // Too long for one line.
    let long = "A_LONG_NAME_OF_A_BUFFER_THAT_IS_ALLOWED_LONG";
    let text = unit(&format!("      REAL {long}"), "\n")
        .replace("(BUF, 1,", &format!("({long},\n     & 1,"))
        .replace("X = BUF", &format!("X = {long}"));
    check_one(
        "w.f",
        text.as_bytes(),
        &options,
        &[&format!("      COMMON /WORK_{long}/\n"), &format!("     & {long}\n")],
    );
}

#[test]
fn foreign_bytes_stay_and_a_last_line_without_an_end_gets_none() {
    let mut text = b"! gr\xfc\xdfe\n".to_vec();
    text.extend_from_slice(receive(USE, "  real :: buf\n").as_bytes());
    text.extend_from_slice(b"! \xff");
    check_one("w.f90", &text, &Options::default(), &["  asynchronous :: buf\n"]);
}

#[test]
fn an_included_declaration_is_changed_only_when_its_file_was_asked_for() {
    let text = receive(USE, "  include 'names.inc'\n");
    let names = "  real :: buf\n";
    let mut options = Options::default();
    options.reading.files = Arc::new(InMemory::new([("names.inc", names)]));
    let (_, outcome) = mended_with(&[("w.f90", text.as_bytes())], &options);
    assert!(outcome.patches.is_empty());
    assert!(outcome.not_asked_for.contains("names.inc"), "{:?}", outcome.not_asked_for);
    let (texts, outcome) =
        mended_with(&[("w.f90", text.as_bytes()), ("names.inc", names.as_bytes())], &options);
    assert_eq!(String::from_utf8_lossy(&texts[1]), "  real :: buf\n  asynchronous :: buf\n");
    assert_eq!(texts[0], text.as_bytes());
    assert!(outcome.not_asked_for.is_empty());
}

#[test]
fn only_what_is_wanted_is_mended() {
    let one = receive(USE, "  real :: buf\n");
    let inputs = [
        Input { path: "a.f90".to_string(), bytes: one.clone().into_bytes() },
        Input { path: "b.f90".to_string(), bytes: one.into_bytes() },
    ];
    let outcome = mend(&inputs, &Options::default(), |reports| reports[0].findings.clear());
    assert_eq!(outcome.patches.keys().copied().collect::<Vec<usize>>(), [1]);
    // The reports are those of all texts as they are now.
    let n_left = outcome.reports.iter().map(|report| report.findings.len()).sum::<usize>();
    assert_eq!(n_left, check(&inputs[..1], &Options::default())[0].findings.len());
}

#[test]
fn a_diff_tells_lines_and_numbers() {
    let mut patch = super::Patch::new(b"a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl".to_vec());
    patch.add(vec![(2, b"one\n".to_vec()), (23, b"\ntwo".to_vec())]);
    patch.add(vec![(6, b"three\n".to_vec())]);
    patch.add(vec![(14, b"; in".to_vec())]);
    let expected = "--- a/x.f90\n+++ b/x.f90\n@@ -1,6 +1,8 @@\n a\n+one\n+three\n b\n-c\n+; inc\n d\n e\n f\n\
        @@ -9,4 +11,5 @@\n i\n j\n k\n-l\n\\ No newline at end of file\n+l\n+two\n\\ No newline at end of file\n";
    let new = String::from_utf8_lossy(&patch.new_text()).into_owned();
    let diff = String::from_utf8_lossy(&patch.diff("x.f90")).into_owned();
    assert_eq!(new, "a\none\nthree\nb\n; inc\nd\ne\nf\ng\nh\ni\nj\nk\nl\ntwo");
    // The first inserted text is at the start of line 2, the third inside line 3.
    assert_eq!(diff, expected);
}
