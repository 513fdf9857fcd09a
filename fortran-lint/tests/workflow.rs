//! A day with the program: settings, ignored files, baselines, changed lines, mended files.

mod common;

use std::path::Path;
use std::process::{Command, Output};

const RECEIVE: &str = "subroutine work(comm)\n  use mpi\n  integer :: comm, req, ierr\n  real :: buf, x\n\
    \x20 call mpi_irecv(buf, 1, MPI_REAL, 0, 1, comm, req, ierr)\n\
    \x20 call mpi_wait(req, MPI_STATUS_IGNORE, ierr)\n  x = buf\nend subroutine\n";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Folder {
        let folder = Folder(tempfile::tempdir().expect("a temporary folder can be made"));
        for (path, text) in files {
            folder.write(path, text.as_bytes());
        }
        folder
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, path: &str, text: &[u8]) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().expect("it lies in a folder")).expect("the folder can be made");
        std::fs::write(path, text).expect("the file can be written");
    }

    fn read(&self, path: &str) -> String {
        String::from_utf8_lossy(&std::fs::read(self.path().join(path)).expect("the file can be read"))
            .into_owned()
    }

    fn run(&self, args: &[&str]) -> Output {
        self.run_in("", args)
    }

    fn run_in(&self, folder: &str, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_fortran-lint"))
            .current_dir(self.path().join(folder))
            .arg("check")
            .args(args)
            .output()
            .expect("the program starts")
    }

    fn git(&self, args: &[&str]) {
        let output = Command::new("git")
            .current_dir(self.path())
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"])
            .args(args)
            .output()
            .expect("git starts");
        assert!(output.status.success(), "git {args:?}: {}", text(&output.stderr));
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn status(output: &Output) -> i32 {
    output.status.code().expect("the program ends by itself")
}

// ---- settings -------------------------------------------------------------------------------------------------------

#[test]
fn the_nearest_configuration_holds_and_the_command_line_comes_before_it() {
    let folder = Folder::new(&[
        ("fortran-lint.toml", "min-level = 'error'\n"),
        ("a/w.f90", RECEIVE),
        ("b/fortran-lint.toml", "ignore = ['FR01']\nstd = 'f2003'\n"),
        ("b/deep/w.f90", RECEIVE),
        ("c/fortran-lint.toml", "ignore = ['FR02']\n"),
        ("c/w.f90", RECEIVE),
    ]);
    // FR02 is a warning here.
    assert_eq!(status(&folder.run(&["a"])), 0);
    assert_eq!(status(&folder.run(&["a", "--min-level", "warning"])), 1);
    assert_eq!(status(&folder.run(&["b"])), 1);
    assert_eq!(status(&folder.run(&["b", "--ignore", "FR02"])), 0);
    assert_eq!(status(&folder.run(&["c/w.f90"])), 0);
    assert_eq!(status(&folder.run(&["c/w.f90", "--select", "FR02", "--ignore", "FR01"])), 1);
    assert_eq!(status(&folder.run(&["a/w.f90", "--config", "b/fortran-lint.toml"])), 1);
    // From below, and for several at once.
    assert_eq!(status(&folder.run_in("a", &["."])), 0);
    let both = folder.run(&["a", "b"]);
    assert_eq!(status(&both), 1);
    assert!(text(&both.stdout).contains("0 errors, 1 warning, 0 notes in 2 files"), "{}", text(&both.stdout));
}

#[test]
fn a_wrong_configuration_is_shown_and_nothing_is_checked() {
    let folder = Folder::new(&[("fortran-lint.toml", "\nslect = ['FR01']\n"), ("w.f90", RECEIVE)]);
    let output = folder.run(&["."]);
    assert_eq!(status(&output), 2);
    assert!(output.stdout.is_empty());
    let said = text(&output.stderr);
    for part in ["error: unknown field `slect`", "fortran-lint.toml:2:1", "`select` was probably meant"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(status(&folder.run(&["w.f90", "--config", "none.toml"])), 2);
    assert_eq!(status(&folder.run(&["w.f90", "--ignore", "FR14"])), 2);
}

#[test]
fn what_git_ignores_and_what_is_excluded_is_passed_over_unless_named() {
    let folder = Folder::new(&[
        (".gitignore", "build/\n"),
        ("fortran-lint.toml", "exclude = ['third/party/**', 'gen_*.f90']\n"),
        ("build/w.f90", RECEIVE),
        ("third/party/w.f90", RECEIVE),
        ("third/own.f90", "end\n"),
        ("src/gen_w.f90", RECEIVE),
        (".hidden/w.f90", RECEIVE),
    ]);
    let output = folder.run(&["."]);
    assert_eq!(status(&output), 0, "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("in 1 file\n"), "{}", text(&output.stdout));
    assert_eq!(status(&folder.run_in("third", &["."])), 0);
    for named in ["build/w.f90", "third/party/w.f90", "src/gen_w.f90", ".hidden/w.f90"] {
        assert_eq!(status(&folder.run(&[named])), 1, "{named}");
    }
    // A file that two paths lead to is read once.
    let twice = text(&folder.run(&["third", "third/own.f90", "."]).stdout);
    assert!(twice.contains("in 1 file\n"), "{twice}");
}

#[test]
fn wrappers_and_macros_are_described_in_the_configuration() {
    let call = "subroutine work\n  use mpi\n  real :: buf, x\n  integer :: req\n\
        \x20 call halo_recv(buf, 1, req)\n  HALO_WAIT(req)\n  x = buf\nend subroutine\n";
    let folder = Folder::new(&[
        ("plain/w.f90", call),
        (
            "known/fortran-lint.toml",
            "procedures = ['halo_recv nonblocking buf:out n request:request', 'halo_wait finish request:request']\n",
        ),
        ("known/w.f90", call),
    ]);
    assert_eq!(status(&folder.run(&["plain"])), 0);
    let output = folder.run(&["known"]);
    assert_eq!(status(&output), 1, "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).contains("`buf` is read after HALO_WAIT"), "{}", text(&output.stdout));
}

#[test]
fn the_form_and_the_binding_are_settings() {
    let bare = RECEIVE.replace("  use mpi\n", "  use parallel\n");
    let folder = Folder::new(&[("w.f90", &bare)]);
    let helps = |args: &[&str]| text(&folder.run(args).stdout);
    assert!(!helps(&["w.f90"]).contains("declare `buf` ASYNCHRONOUS"));
    assert!(helps(&["w.f90", "--binding", "mpi"]).contains("declare `buf` ASYNCHRONOUS"));
    folder.write("fortran-lint.toml", b"binding = 'mpi_f08'\n");
    assert!(helps(&["w.f90"]).contains("call MPI_F_SYNC_REG(buf)"));
    // Both forms understand this text and mean something else by it.
    folder.write("odd/w.f90", b"c = 1\nend\n");
    folder.write("odd/fortran-lint.toml", b"[[form]]\nfiles = ['odd/*.f90', '*.f90']\nform = 'fixed'\n");
    let json = |path: &str| -> serde_json::Value {
        serde_json::from_slice(&folder.run(&[path, "--format", "json"]).stdout).expect("it is JSON")
    };
    assert_eq!(json("odd/w.f90")["summary"]["statements"], 1, "the first line is a comment");
    folder.write("odd/fortran-lint.toml", b"[[form]]\nfiles = ['other/*.f90']\nform = 'fixed'\n");
    assert_eq!(json("odd/w.f90")["summary"]["statements"], 2);
}

// ---- baseline -------------------------------------------------------------------------------------------------------

#[test]
fn a_baseline_knows_old_findings_wherever_they_move() {
    let folder = Folder::new(&[("src/w.f90", RECEIVE)]);
    let written = folder.run(&["src", "--write-baseline", "lint/base.json"]);
    assert_eq!(status(&written), 2, "the folder is not there");
    std::fs::create_dir(folder.path().join("lint")).expect("the folder can be made");
    let written = folder.run(&["src", "--write-baseline", "lint/base.json"]);
    assert_eq!(status(&written), 0, "{}", text(&written.stderr));
    assert!(written.stdout.is_empty());
    let first = folder.read("lint/base.json");
    assert!(first.contains("\"line\": \"x = buf\""), "{first}");
    let check = |args: &[&str]| {
        let output = folder.run(&[&["src", "--baseline", "lint/base.json"], args].concat());
        (status(&output), text(&output.stdout))
    };
    let (known, said) = check(&[]);
    assert_eq!(known, 0, "{said}");
    assert!(
        said.contains("0 errors, 0 warnings, 0 notes in 1 file, 1 finding known by the baseline"),
        "{said}"
    );
    // Moved, indented, shouted.
    folder.write(
        "src/w.f90",
        format!("\n! more\n{}", RECEIVE.replace("  x = buf", "     X  =  BUF")).as_bytes(),
    );
    assert_eq!(check(&[]).0, 0);
    // One more of the same kind is new.
    folder.write(
        "src/w.f90",
        RECEIVE
            .replace("real :: buf", "real :: other, buf")
            .replace(
                "  x = buf\n",
                "  x = buf\n  call mpi_irecv(other, 1, MPI_REAL, 0, 1, comm, req, ierr)\n\
         \x20 call mpi_wait(req, MPI_STATUS_IGNORE, ierr)\n  x = other\n",
            )
            .as_bytes(),
    );
    let (new, said) = check(&[]);
    assert!(new == 1 && said.contains("`other`") && !said.contains("`buf`"), "{said}");
    // Mended: the baseline may shrink.
    folder.write(
        "src/w.f90",
        RECEIVE.replace("real :: buf, x", "real :: x\n  real, volatile :: buf").as_bytes(),
    );
    let (none, said) = check(&[]);
    assert!(none == 0 && said.contains("1 finding of the baseline no longer there"), "{said}");
    // What this run did not look for may be there still.
    assert!(!check(&["--select", "FR01"]).1.contains("no longer there"));
    assert!(!check(&["--min-level", "error"]).1.contains("no longer there"));
    folder.write("src/other.f90", b"end\n");
    let other = folder.run(&["src/other.f90", "--baseline", "lint/base.json"]);
    assert!(!text(&other.stdout).contains("no longer there"), "{}", text(&other.stdout));
    // By configuration, relative to it.
    folder.write("src/w.f90", RECEIVE.as_bytes());
    folder.write("fortran-lint.toml", b"baseline = 'lint/base.json'\n");
    assert_eq!(status(&folder.run_in("src", &["w.f90"])), 0);
    // What is no baseline is not taken for an empty one.
    folder.write("lint/base.json", b"{ \"version\": 2, \"findings\": [] }");
    assert_eq!(status(&folder.run(&["src"])), 2);
    folder.write("lint/base.json", b"[]");
    assert_eq!(status(&folder.run(&["src"])), 2);
}

// ---- changed lines --------------------------------------------------------------------------------------------------

#[test]
fn since_a_revision_only_touched_findings_count() {
    if Command::new("git").arg("--version").output().is_err() {
        return common::skip("no git");
    }
    let folder = Folder::new(&[("src/old.f90", RECEIVE), ("src/with blank é.f90", RECEIVE)]);
    folder.git(&["init", "-q", "-b", "trunk"]);
    folder.git(&["add", "."]);
    folder.git(&["commit", "-q", "-m", "first"]);
    folder.git(&["tag", "first"]);
    let check = |args: &[&str]| {
        let output = folder.run(&[&["src", "--since", "first", "--format", "json"], args].concat());
        assert!(status(&output) < 2, "{}", text(&output.stderr));
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        let paths: Vec<String> = document["findings"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|finding| finding["path"].as_str().unwrap_or_default().to_string())
            .collect();
        (paths, document["summary"]["untouched"].as_u64().expect("a number"))
    };
    assert_eq!(check(&[]), (vec![], 2));
    // A line that has nothing to do with it, above.
    folder.write(
        "src/old.f90",
        RECEIVE.replace("subroutine work(comm)", "! a comment\nsubroutine work(comm)").as_bytes(),
    );
    assert_eq!(check(&[]).0, Vec::<String>::new());
    // The finishing call of one, committed on a branch while the trunk moves on.
    folder.git(&["checkout", "-q", "-b", "side"]);
    folder
        .write("src/with blank é.f90", RECEIVE.replace("MPI_STATUS_IGNORE", "mpi_status_ignore").as_bytes());
    folder.git(&["commit", "-q", "-a", "-m", "second"]);
    assert_eq!(check(&[]), (vec!["src/with blank é.f90".to_string()], 1));
    // A new file that git does not know yet is all new.
    folder.write("src/new.f90", RECEIVE.as_bytes());
    assert_eq!(check(&[]).0, ["src/new.f90", "src/with blank é.f90"]);
    let unknown = folder.run(&["src", "--since", "no-such-revision"]);
    assert_eq!(status(&unknown), 2);
    assert!(text(&unknown.stderr).contains("no-such-revision"), "{}", text(&unknown.stderr));
    assert_eq!(status(&folder.run(&["src", "--since", "--output=x"])), 2);
}

// ---- mended files ---------------------------------------------------------------------------------------------------

/// Errors say what is wrong, where, and what to do about it.
#[test]
fn errors_tell_the_way_out() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    std::fs::write(folder.path().join("a.f90"), "end\n").expect("the file can be written");
    std::fs::write(folder.path().join("bad.json"), "{\n").expect("the file can be written");
    let ask = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_fortran-lint"))
            .current_dir(folder.path())
            .env("GIT_CEILING_DIRECTORIES", folder.path())
            .args(["check", "a.f90"])
            .args(arguments)
            .output()
            .expect("the program starts");
        assert_eq!(status(&output), 2, "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}: {}", text(&output.stdout));
        text(&output.stderr)
    };
    for (arguments, what, way_out) in [
        (&["--since", "HEAD"][..], "git ", "the paths must be in a checkout"),
        (
            &["--baseline", "none.json"],
            "cannot read the baseline none.json",
            "`--write-baseline none.json` makes one",
        ),
        (
            &["--baseline", "bad.json"],
            "the baseline bad.json is not understood",
            "`--write-baseline bad.json`",
        ),
        (&["--dummy", "a b"], "`a b` is no name of a procedure", "a letter, then letters"),
        (&["-D", "=3"], "`=3` defines no macro", "NAME=text"),
        (&["--select", "FR0l"], "no rule has the code `FR0l`", "was probably meant"),
    ] {
        let said = ask(arguments);
        assert!(said.contains(what) && said.contains(way_out), "{arguments:?}: {said}");
    }
}

#[test]
fn a_diff_is_what_a_fix_does() {
    let folder = Folder::new(&[("src/w.f90", RECEIVE), ("src/clean.f90", "end\n")]);
    let diff = folder.run(&["src", "--diff"]);
    assert_eq!(status(&diff), 1);
    assert_eq!(
        text(&diff.stdout),
        "--- a/src/w.f90\n+++ b/src/w.f90\n@@ -2,6 +2,7 @@\n   use mpi\n   integer :: comm, req, ierr\n   real :: buf, x\n\
         +  asynchronous :: buf\n   call mpi_irecv(buf, 1, MPI_REAL, 0, 1, comm, req, ierr)\n\
         \x20  call mpi_wait(req, MPI_STATUS_IGNORE, ierr)\n   x = buf\n"
    );
    assert_eq!(folder.read("src/w.f90"), RECEIVE, "--diff changes nothing");
    let applied = Folder::new(&[("src/w.f90", RECEIVE)]);
    applied.write("change.diff", &diff.stdout);
    if Command::new("git").arg("--version").output().is_ok() {
        applied.git(&["init", "-q"]);
        applied.git(&["apply", "change.diff"]);
        assert!(applied.read("src/w.f90").contains("  asynchronous :: buf\n"));
    }
    let fixed = folder.run(&["src", "--fix"]);
    assert_eq!(status(&fixed), 0, "{}", text(&fixed.stdout));
    assert_eq!(text(&fixed.stderr), "mended src/w.f90: FR02: `buf` is declared ASYNCHRONOUS\n");
    assert_eq!(
        folder.read("src/w.f90"),
        RECEIVE.replace("real :: buf, x\n", "real :: buf, x\n  asynchronous :: buf\n")
    );
    assert_eq!(folder.read("src/clean.f90"), "end\n");
    let names: Vec<String> = std::fs::read_dir(folder.path().join("src"))
        .expect("the folder can be read")
        .map(|entry| entry.expect("the folder can be read").file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(names.len(), 2, "nothing else is left: {names:?}");
    let again = folder.run(&["src", "--diff"]);
    assert!(status(&again) == 0 && again.stdout.is_empty());
}

#[test]
fn what_must_not_be_written_is_left_and_said() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new(&[("w.f90", RECEIVE), ("real/target.f90", RECEIVE)]);
    let path = folder.path().join("w.f90");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).expect("permissions can be set");
    let output = folder.run(&["w.f90", "--fix"]);
    assert_eq!(status(&output), 2);
    assert!(text(&output.stderr).contains("cannot write w.f90"), "{}", text(&output.stderr));
    assert_eq!(folder.read("w.f90"), RECEIVE);
    // A link stays a link, and permissions stay.
    let target = folder.path().join("real/target.f90");
    std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o750))
        .expect("permissions can be set");
    std::os::unix::fs::symlink("real/target.f90", folder.path().join("link.f90"))
        .expect("a link can be made");
    assert_eq!(status(&folder.run(&["link.f90", "--fix"])), 0);
    assert!(std::fs::symlink_metadata(folder.path().join("link.f90")).expect("it is there").is_symlink());
    assert!(folder.read("real/target.f90").contains("asynchronous"));
    let mode = std::fs::metadata(&target).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o750);
}

#[test]
fn an_edit_that_belongs_into_a_header_is_made_only_when_that_is_named() {
    let unit = RECEIVE.replace("real :: buf, x", "include 'names.inc'");
    let folder = Folder::new(&[("src/w.f90", &unit), ("src/names.inc", "  real :: buf, x\n")]);
    let output = folder.run(&["src", "--fix"]);
    assert_eq!(status(&output), 1);
    assert!(text(&output.stderr).contains("an edit belongs into src/names.inc"), "{}", text(&output.stderr));
    assert_eq!(folder.read("src/names.inc"), "  real :: buf, x\n");
    let output = folder.run(&["src", "src/names.inc", "--fix"]);
    assert_eq!(status(&output), 0, "{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(folder.read("src/names.inc"), "  real :: buf, x\n  asynchronous :: buf\n");
    assert_eq!(folder.read("src/w.f90"), unit);
}

#[test]
fn only_selected_findings_and_changed_lines_are_mended() {
    let folder = Folder::new(&[("w.f90", RECEIVE)]);
    assert_eq!(status(&folder.run(&["w.f90", "--fix", "--select", "FR01"])), 0);
    assert_eq!(folder.read("w.f90"), RECEIVE);
    assert_eq!(status(&folder.run(&["w.f90", "--write-baseline", "base.json"])), 0);
    assert_eq!(status(&folder.run(&["w.f90", "--fix", "--baseline", "base.json"])), 0);
    assert_eq!(folder.read("w.f90"), RECEIVE);
}
