//! `--fix` on texts that are hard to edit: after it the file holds every line that it held, is found clean, compiles as it did
//! before, and a second run changes nothing.
//!
//! Compiling is skipped, with a reason, where there is no MPI with gfortran; a failure there when RMA_REQUIRE_PEERS=1.

mod common;

use std::path::Path;
use std::process::{Command, Output};

use common::{compiler, in_parallel, skip};

/// A file that is edited, with its name, and what must stand in it afterwards.
struct Case {
    name: &'static str,
    text: String,
    /// What `--fix` adds.
    added: &'static str,
    /// Only a call of a routine of one's own helps.
    needs_routine: bool,
}

const FIXED_HEAD: &str =
    "      SUBROUTINE S(COMM,X)\n      INCLUDE 'mpif.h'\n      INTEGER COMM, REQ, IERR\n";
const FIXED_BODY: &str = "      CALL MPI_IRECV(BUF, 1, MPI_REAL, 0, 1, COMM, REQ, IERR)\n      CALL MPI_WAIT(REQ, MPI_STATUS_IGNORE, IERR)\n      X = BUF(1)\n      END\n";
const FREE_HEAD: &str =
    "subroutine s(comm, x)\n  use mpi\n  implicit none\n  integer :: comm, req, ierr\n  real :: x\n";
const FREE_BODY: &str = "  call MPI_Irecv(buf, 1, MPI_REAL, 0, 1, comm, req, ierr)\n  call MPI_Wait(req, MPI_STATUS_IGNORE, ierr)\n  x = buf(1)\nend subroutine\n";

const COMMON: &str = "      COMMON /S_BUF/ BUF\n";
const CALL: &str = "      CALL keep_it(BUF)\n";
const ASYNCHRONOUS: &str = "  asynchronous :: buf\n";

fn cases() -> Vec<Case> {
    let fixed = |declarations: &str| format!("{FIXED_HEAD}{declarations}{FIXED_BODY}");
    let free = |declarations: &str| format!("{FREE_HEAD}{declarations}{FREE_BODY}");
    let case = |name, text, added, needs_routine| Case { name, text, added, needs_routine };
    let sequence = |text: String| -> String {
        text.lines().enumerate().map(|(i, line)| format!("{line:<72}{i:08}\n")).collect()
    };
    let long = "A_LONG_NAME_OF_A_BUFFER_THAT_FILLS_THE_LINE";
    vec![
        case("crlf.f", fixed("      REAL BUF(3), X\n").replace('\n', "\r\n"), "      COMMON /S_BUF/ BUF\r\n", false),
        case("tabs.f", fixed("      REAL BUF(3),\n\t1 X\n").replace("      ", "\t"), "\tCOMMON /S_BUF/ BUF\n", false),
        case("continued.f", fixed("      REAL BUF(3),\nC     between\n     &     X\n"), COMMON, false),
        case("numbers.f", sequence(fixed("      REAL BUF(3), X\n")), COMMON, false),
        // The line is full: the name goes to a line of continuation.
        case(
            "column72.f",
            fixed("      REAL BUF(3),\n     & X\n").replace("(BUF, 1,", "(BUF,\n     & 1,").replace("BUF", long),
            "      COMMON /S_A_LONG_NAME_OF_A_BUFFER_THAT_FILLS_THE_LINE/\n     & A_LONG_NAME_OF_A_BUFFER_THAT_FILLS_THE_LINE\n",
            false,
        ),
        case("none.f", fixed("").replace("BUF(1)", "BUF"), COMMON, false),
        case("namelist.f", fixed("      REAL BUF(3), X\n      NAMELIST /NL/ X\n      F(Y) = Y + 1\n"), COMMON, false),
        case("constant.f", fixed("      PARAMETER (N=3)\n      REAL BUF(0:N-1), X\n"), COMMON, false),
        // What cannot stand in COMMON: a size that comes in, a first value, SAVE, a place shared with another name, an object, a
        // function result, a length.
        case("size.f", fixed("      REAL BUF(IERR), X\n").replace("COMM,X)", "COMM,X,IERR)"), CALL, true),
        case("data.f", fixed("      REAL BUF(3), X\n      DATA BUF /3*0.0/\n"), CALL, true),
        case("save.f", fixed("      REAL BUF(3), X\n      SAVE\n"), CALL, true),
        case("shared.f", fixed("      REAL BUF(3), X\n      EQUIVALENCE (BUF(2), Q)\n"), CALL, true),
        case("length.f", fixed("      CHARACTER*8 BUF\n").replace("X = BUF(1)", "IF (BUF.EQ.'A') X = 1"), CALL, true),
        case(
            "object.f",
            fixed("      TYPE T\n        SEQUENCE\n        REAL BUF(3)\n      END TYPE\n      TYPE(T) H\n      REAL X\n")
                .replace("(BUF, 1", "(H%BUF, 1")
                .replace("X = BUF(1)", "X = H%BUF(1)"),
            "      CALL keep_it(H)\n",
            true,
        ),
        case(
            "result.f",
            fixed("").replace("SUBROUTINE S(COMM,X)", "REAL FUNCTION BUF(COMM)").replace("X = BUF(1)", "BUF = BUF + 1"),
            CALL,
            true,
        ),
        // The call goes behind a statement with a label, which ends a loop.
        case(
            "label.f",
            fixed("      REAL BUF(3), X\n      DO 10 I = 1, 3\n")
                .replace("COMM,X)", "COMM,X,BUF)")
                .replace("      CALL MPI_WAIT", "   10 CALL MPI_WAIT"),
            CALL,
            true,
        ),
        case("continued.f90", free("  real, & ! a comment\n\n    & dimension(3) :: buf, & ! and one more\n    & other\n"), ASYNCHRONOUS, false),
        case("semicolon.f90", free("  integer :: i; real :: buf(3)\n"), ASYNCHRONOUS, false),
        case("oldstyle.f90", free("  real buf(3)\n"), "  asynchronous buf\n", false),
        case("last.f90", free("  real :: buf(3)\n").trim_end().to_string(), ASYNCHRONOUS, false),
        case("upper.f90", free("  REAL :: buf(3)\n"), "  ASYNCHRONOUS :: buf\n", false),
        case("macro.F90", free("#define BUFFER real :: buf(3)\n  BUFFER\n"), "  ASYNCHRONOUS BUF\n", false),
        case(
            "branches.F90",
            free("#ifdef DOUBLE\n  real(8) :: buf(3)\n#else\n  real(4) :: buf(3)\n#endif\n"),
            "  real(8) :: buf(3)\n  asynchronous :: buf\n#else\n  real(4) :: buf(3)\n  asynchronous :: buf\n",
            false,
        ),
        case(
            "two.f90",
            free("  real :: buf(3), more(3)\n  integer :: second\n")
                .replace("  call MPI_Wait", "  call MPI_Irecv(more, 1, MPI_REAL, 0, 2, comm, second, ierr)\n  call MPI_Wait(second, MPI_STATUS_IGNORE, ierr)\n  call MPI_Wait")
                .replace("x = buf(1)", "x = buf(1) + more(1)"),
            "  asynchronous :: buf\n  asynchronous :: more\n",
            false,
        ),
        case(
            "inside.f90",
            free("  real :: buf(3)\n").replace("  call MPI_Irecv", "  block\n  call MPI_Irecv").replace("end subroutine", "  end block\nend subroutine"),
            ASYNCHRONOUS,
            false,
        ),
        case(
            "renamed.f90",
            free("  real :: store(9)\n").replace("  call MPI_Irecv", "  associate (buf => store(2:4))\n  call MPI_Irecv").replace("end subroutine", "  end associate\nend subroutine"),
            "  asynchronous :: store\n",
            false,
        ),
        // Behind an IF of one line, in the column of that.
        case(
            "oneline.f90",
            free("  real :: buf(3)\n")
                .replace("(comm, x)", "(comm, x, buf)")
                .replace("  call MPI_Wait", "  if (x > 0) call MPI_Wait"),
            "  call keep_it(buf)\n",
            true,
        ),
    ]
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fortran-lint"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .expect("the program starts")
}

fn compiles(compiler: &str, folder: &Path, name: &str) -> bool {
    let output = Command::new(compiler)
        .current_dir(folder)
        .args(["-w", "-fallow-argument-mismatch", "-fsyntax-only", name])
        .output()
        .expect("the compiler starts");
    output.status.success()
}

/// Whether the new text has all lines of the old one, in their order.
fn holds(new: &str, old: &str) -> bool {
    let mut lines = new.lines();
    old.lines().all(|line| lines.any(|own| own == line))
}

fn check_case(case: &Case, compiler: Option<&str>) {
    let Case { name, text, added, needs_routine } = case;
    let folder = tempfile::tempdir().expect("a folder can be made");
    let folder = folder.path();
    let read = || std::fs::read_to_string(folder.join(name)).expect("the file is there");
    std::fs::write(folder.join(name), text).expect("the file can be written");
    let compiled = compiler.map(|compiler| compiles(compiler, folder, name));
    assert_ne!(compiled, Some(false), "{name} does not compile:\n{text}");
    let found = run(folder, &["check", name]);
    assert_eq!(
        found.status.code(),
        Some(1),
        "{name} has a finding:\n{}",
        String::from_utf8_lossy(&found.stdout)
    );
    if *needs_routine {
        // Without one nothing is changed.
        run(folder, &["check", name, "--fix"]);
        assert_eq!(&read(), text, "{name}");
        std::fs::write(folder.join("fortran-lint.toml"), "sync-routine = \"keep_it\"\n")
            .expect("it can be written");
    }
    let output = run(folder, &["check", name, "--fix"]);
    let mended = read();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{name}:\n{mended}\n{}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert!(mended.contains(added), "{name} lacks {added:?}:\n{mended}");
    assert!(holds(&mended, text), "{name} lost a line:\n{mended}");
    let again = run(folder, &["check", name, "--fix"]);
    assert_eq!((again.status.code(), read()), (Some(0), mended.clone()), "{name}");
    if let Some(compiler) = compiler {
        assert!(compiles(compiler, folder, name), "{name} does not compile any more:\n{mended}");
    }
}

// covers: REG-LINT-24
#[test]
fn hard_texts_are_mended_by_additions() {
    let compiler = compiler();
    let cases = cases();
    in_parallel(&cases, |case| check_case(case, compiler));
    if compiler.is_none() {
        skip("no MPI compiler for Fortran that is gfortran");
    }
}

/// A declaration, and COMMON of other variables, in included files: those stay as they are.
#[test]
fn included_declarations_stay_unless_they_are_named() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let folder = folder.path();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("it can be written");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("the file is there");
    let declared = "      REAL BUF(3), X\n";
    let user = format!("{FIXED_HEAD}      INCLUDE 'decl.inc'\n{FIXED_BODY}");
    write("decl.inc", declared);
    write("user.f", &user);
    run(folder, &["check", "user.f", "--fix"]);
    assert_eq!((read("user.f"), read("decl.inc")), (user.clone(), declared.to_string()));
    let output = run(folder, &["check", "user.f", "decl.inc", "--fix"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!((read("user.f"), read("decl.inc")), (user, format!("{declared}{COMMON}")));
    if let Some(compiler) = compiler() {
        assert!(compiles(compiler, folder, "user.f"));
    }
    // COMMON that comes by INCLUDE holds something else than the buffer.
    let other = "      REAL OTHER(3)\n      COMMON /BLK/ OTHER\n";
    write("blk.inc", other);
    write("second.f", &format!("{FIXED_HEAD}      INCLUDE 'blk.inc'\n{declared}{FIXED_BODY}"));
    let output = run(folder, &["check", "second.f", "--fix"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(read("second.f").contains(&format!("{declared}{COMMON}")), "{}", read("second.f"));
    assert_eq!(read("blk.inc"), other);
}

/// Bytes that are no text stay what they are.
#[test]
fn foreign_characters_stay_as_they_are() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let text = format!("{FREE_HEAD}  real :: buf(3) ! gr@@e\n{FREE_BODY}");
    let bytes: Vec<u8> = text.bytes().map(|byte| if byte == b'@' { 0xfc } else { byte }).collect();
    let path = folder.path().join("latin.f90");
    std::fs::write(&path, &bytes).expect("the file can be written");
    assert_eq!(run(folder.path(), &["check", "latin.f90", "--fix"]).status.code(), Some(0));
    let mended = std::fs::read(&path).expect("the file is there");
    let at = mended
        .windows(ASYNCHRONOUS.len())
        .position(|part| part == ASYNCHRONOUS.as_bytes())
        .expect("it is declared");
    assert_eq!([&mended[..at], &mended[at + ASYNCHRONOUS.len()..]].concat(), bytes);
}
