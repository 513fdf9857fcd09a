//! What the compiler really does: the runnable fixtures are built at -O0 to -O3 and run. Every program that prints a
//! stale value has an error-level finding, and no program without one ever prints one. The programs that `--fix` has
//! mended print the right value.
//!
//! Skipped, with a reason, where there is no MPI with gfortran; a failure there when RMA_REQUIRE_PEERS=1.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::{compiler, expected, package, skip};
use fortran_lint::check::Input;
use fortran_lint::finding::Level;
use fortran_lint::fix::mend;
use fortran_lint::options::Options;

const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];

/// A run that takes longer hangs.
const RUN_SECONDS_MAX: u64 = 180;

/// Flags that change nothing in the code: the bindings without interfaces are called with arguments of several types.
const FLAGS: [&str; 2] = ["-w", "-fallow-argument-mismatch"];

/// An empty MPI_F_SYNC_REG. That of MPICH 4.0 for `mpif.h` and `use mpi` writes through a second argument, which nobody
/// passes, and so destroys whatever the register happens to point to.
const SYNC: &str = "subroutine MPI_F_SYNC_REG(buf)\n  double precision :: buf(*)\nend subroutine\n";

/// Levels at which mended programs run in a short check; all of them do when RMA_FULL is set.
const LEVELS_SHORT: [&str; 2] = ["-O0", "-O2"];

/// Where the programs lie.
struct Sources {
    hazard: PathBuf,
    seed: PathBuf,
}

impl Sources {
    fn fixtures() -> Sources {
        Sources { hazard: hazard_folder(), seed: seed_folder() }
    }
}

/// What one program printed at one level.
struct Outcome {
    name: String,
    level: &'static str,
    is_stale: bool,
}

#[test]
fn only_reported_programs_print_stale_values() {
    let Some(compiler) = compiler() else {
        skip("no MPI compiler for Fortran that is gfortran");
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let mut jobs: Vec<Job> = Vec::new();
    for level in LEVELS {
        for bind in 0..3 {
            let files =
                [hazard_files(&format!("_b{bind}_"), "h01"), hazard_files(&format!("_b{bind}_"), "h03_c")]
                    .concat();
            jobs.push(Job::Group { level, title: format!("hazard_b{bind}"), files });
        }
        jobs.push(Job::Subroutines { level, files: seed_files() });
        for name in hazard_files("", "h04").into_iter().chain(hazard_files("", "h07")) {
            jobs.push(Job::Program { level, name });
        }
    }
    let outcomes = run_all(&jobs, compiler, folder.path(), &Sources::fixtures());
    judge(&outcomes);
}

/// Runs jobs on all cores.
fn run_all(jobs: &[Job], compiler: &str, folder: &Path, sources: &Sources) -> Vec<Outcome> {
    let outcomes = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from).min(8) {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let results = job.run(compiler, folder, sources);
                    outcomes.lock().expect("no job panics with the lock").extend(results);
                }
            });
        }
    });
    outcomes.into_inner().expect("no job panics with the lock")
}

#[test]
fn mended_programs_print_the_right_value() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let sources = Sources { hazard: folder.path().join("hazard"), seed: folder.path().join("seed") };
    let mut mended: Vec<String> = Vec::new();
    for (from, to) in [(hazard_folder(), &sources.hazard), (seed_folder(), &sources.seed)] {
        std::fs::create_dir(to).expect("the folder can be made");
        for name in files(&from, |name| !name.starts_with("h04")) {
            let bytes = std::fs::read(from.join(&name)).expect("the fixture can be read");
            if let Some(text) = mended_text(&name, &bytes) {
                std::fs::write(to.join(&name), text).expect("the program can be written");
                mended.push(name);
            }
        }
    }
    println!("{} programs mended", mended.len());
    assert!(mended.len() > 80, "{} programs mended", mended.len());
    let Some(compiler) = compiler() else {
        skip("no MPI compiler for Fortran that is gfortran");
        return;
    };
    let is_full = std::env::var_os("RMA_FULL").is_some();
    let levels: &[&'static str] = if is_full { &LEVELS } else { &LEVELS_SHORT };
    let named = |prefix: &str, part: &str| -> Vec<String> {
        mended.iter().filter(|name| name.starts_with(prefix) && name.contains(part)).cloned().collect()
    };
    let seeds: Vec<String> = mended.iter().filter(|name| sources.seed.join(name).exists()).cloned().collect();
    let mut jobs: Vec<Job> = Vec::new();
    for &level in levels {
        for bind in 0..3 {
            let part = format!("_b{bind}_");
            let files = [named("h01", &part), named("h03", &part)].concat();
            jobs.push(Job::Group { level, title: format!("mended_b{bind}"), files });
        }
        jobs.push(Job::Subroutines { level, files: seeds.clone() });
        for name in named("h07", "") {
            jobs.push(Job::Program { level, name });
        }
    }
    let outcomes = run_all(&jobs, compiler, folder.path(), &sources);
    let wrong: Vec<String> = outcomes
        .iter()
        .filter(|outcome| outcome.is_stale)
        .map(|outcome| format!("{} is stale at {} although it was mended", outcome.name, outcome.level))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // The loops of h06 would wait for somebody: they are compiled.
    let n_compiled = named("h06", "").len();
    for name in named("h06", "") {
        let output = Command::new(compiler)
            .args(FLAGS)
            .args(["-O2", "-c", "-o", "/dev/null"])
            .arg(sources.hazard.join(&name))
            .output()
            .expect("the compiler starts");
        assert!(output.status.success(), "{name}:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(outcomes.len() + n_compiled * levels.len(), mended.len() * levels.len(), "all of them ran");
}

/// What `--fix` adds compiles in each binding, form and kind of declaration.
#[test]
fn mended_layouts_compile() {
    let Some(compiler) = compiler() else {
        skip("no MPI compiler for Fortran that is gfortran");
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let unit = |name: &str, dummy: &str, door: &str, declaration: &str| {
        let (comm, request) = match door {
            "use mpi_f08" => ("type(MPI_Comm) :: comm", "type(MPI_Request) :: req"),
            _ => ("integer :: comm", "integer :: req"),
        };
        format!(
            "subroutine {name}(comm, x{dummy})\n  {door}\n  {comm}\n  {request}\n  integer :: ierr\n  real :: x\n\
             {declaration}  call MPI_Irecv(buf, 1, MPI_REAL, 0, 1, comm, req, ierr)\n\
             \x20 call MPI_Wait(req, MPI_STATUS_IGNORE, ierr)\n  x = sum([buf])\nend subroutine\n"
        )
    };
    let mut free = String::new();
    let declarations = [
        "  real :: buf\n",
        "",
        "  REAL buf, other\n",
        "  real, dimension(4) :: other, &\n    & buf ! two\n",
        "  real, allocatable :: buf(:)\n  allocate(buf(3))\n",
        "  real, pointer :: buf(:)\n  allocate(buf(3))\n",
        "  real, target :: buf(3); real :: other\n",
        "  integer, parameter :: n = 3\n  real buf(0:n-1)\n",
    ];
    for (i, declaration) in declarations.iter().enumerate() {
        for (k, door) in ["use mpi", "use mpi_f08", "include 'mpif.h'"].iter().enumerate() {
            free.push_str(&unit(&format!("s{i}_{k}"), "", door, declaration));
        }
    }
    free.push_str(&unit("bare", ", buf", "use mpi_f08", "  real :: buf\n"));
    free.push_str(&format!(
        "module m\ncontains\n{}end module\n",
        unit("inner", ", buf", "use mpi", "  real :: buf(3)\n")
    ));
    let fixed = "      SUBROUTINE WORK(COMM)\n      INCLUDE 'mpif.h'\n      INTEGER COMM, REQ, IERR\n      REAL BUF,\n     &     X\n\
        \x20     CALL MPI_IRECV(BUF, 1, MPI_REAL, 0, 1, COMM, REQ, IERR)\n\
        \x20     CALL MPI_WAIT(REQ, MPI_STATUS_IGNORE, IERR)\n      X = BUF\n      END\n";
    for (name, text) in [("layouts.f90", free.as_str()), ("layouts.f", fixed)] {
        let text = mended_text(name, text.as_bytes()).expect("there is something to mend");
        let path = folder.path().join(name);
        std::fs::write(&path, &text).expect("the program can be written");
        let output = Command::new(compiler)
            .args(FLAGS)
            .arg("-fsyntax-only")
            .arg("-J")
            .arg(folder.path())
            .arg(&path)
            .output()
            .expect("the compiler starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&text));
    }
}

/// The text with every finding mended, or nothing when there was none. Where only a call helps it is one of the empty
/// routine that the driver has.
fn mended_text(name: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    let mut text = bytes.to_vec();
    let own_routine = Options { sync_routine: Some("DD".to_string()), ..Options::default() };
    for options in [Options::default(), own_routine] {
        let inputs = [Input { path: name.to_string(), bytes: text.clone() }];
        let outcome = mend(&inputs, &options, |_| {});
        if let Some(patch) = outcome.patches.get(&0) {
            text = patch.new_text();
        }
        let left: Vec<&str> = outcome.reports[0]
            .findings
            .iter()
            // No edit lets a buffer live longer than its procedure: that is for the author to decide.
            .filter(|finding| finding.level != Level::Note && finding.rule != "FR20")
            .map(|finding| finding.message.as_str())
            .collect();
        if left.is_empty() {
            return (text != bytes).then_some(text);
        }
        assert!(
            options.sync_routine.is_none(),
            "{name} is not mended: {left:?}\n{}",
            String::from_utf8_lossy(&text)
        );
    }
    None
}

fn judge(outcomes: &[Outcome]) {
    let mut names: Vec<&str> = outcomes.iter().map(|outcome| outcome.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut wrong = Vec::new();
    let mut n_stale = 0;
    for name in &names {
        let stale: Vec<&str> = outcomes
            .iter()
            .filter(|outcome| outcome.name == *name && outcome.is_stale)
            .map(|outcome| outcome.level)
            .collect();
        if stale.is_empty() {
            continue;
        }
        n_stale += 1;
        println!("{name}: stale at {}", stale.join(" "));
        if !expects_error(name) {
            wrong.push(format!(
                "{name} prints a stale value at {} and has no error-level finding",
                stale.join(" ")
            ));
        }
        // Without an optimiser only temporaries go wrong.
        let breaks_at_o0 = stale.contains(&"-O0");
        assert!(
            !breaks_at_o0 || name.starts_with("h04"),
            "{name} is stale at -O0: the run itself cannot be trusted"
        );
    }
    println!("{} programs at {} levels, {n_stale} print stale values", names.len(), LEVELS.len());
    let n_expected = hazard_files("", "h0").len() - hazard_files("", "h06").len() + seed_files().len();
    assert_eq!(outcomes.len(), n_expected * LEVELS.len(), "every program ran at every level");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn expects_error(name: &str) -> bool {
    let path = [hazard_folder().join(name), seed_folder().join(name)]
        .into_iter()
        .find(|path| path.exists())
        .expect("the fixture is there");
    let text = String::from_utf8_lossy(&std::fs::read(path).expect("the fixture can be read")).into_owned();
    expected(&text).iter().any(common::Expectation::is_error)
}

fn hazard_folder() -> PathBuf {
    package().join("tests/fixtures/hazard")
}

fn seed_folder() -> PathBuf {
    package().join("tests/fixtures/seed")
}

fn hazard_files(part: &str, prefix: &str) -> Vec<String> {
    files(&hazard_folder(), |name| name.starts_with(prefix) && name.contains(part))
}

fn seed_files() -> Vec<String> {
    files(&seed_folder(), |_| true)
}

fn files(folder: &Path, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("the folder can be read").file_name().to_string_lossy().into_owned())
        .filter(|name| wanted(name))
        .collect();
    names.sort();
    names
}

enum Job {
    /// Many subroutines `work` in one module, one program that calls them all.
    Group { level: &'static str, title: String, files: Vec<String> },
    /// Subroutines with names of their own, one file for each source form.
    Subroutines { level: &'static str, files: Vec<String> },
    /// A whole program.
    Program { level: &'static str, name: String },
}

impl Job {
    fn run(&self, compiler: &str, folder: &Path, sources: &Sources) -> Vec<Outcome> {
        let compiler = Compiler { name: compiler, folder, sources };
        match self {
            Job::Group { level, title, files } => group(&compiler, level, title, files),
            Job::Subroutines { level, files } => subroutines(&compiler, level, files),
            Job::Program { level, name } => {
                let program = folder.join(format!("{name}{level}"));
                let sync = folder.join(format!("{name}{level}_sync.f90"));
                std::fs::write(&sync, SYNC).expect("the empty routine can be written");
                build(compiler.name, level, &[sources.hazard.join(name), sync], &program);
                let output = run(&program);
                let is_stale = output.contains("STALE") || output.contains("LOST");
                assert!(is_stale || output.contains("ok"), "{name} at {level} printed: {output}");
                vec![Outcome { name: name.clone(), level, is_stale }]
            }
        }
    }
}

/// The compiler, where it writes, and what it reads.
struct Compiler<'a> {
    name: &'a str,
    folder: &'a Path,
    sources: &'a Sources,
}

fn group(compiler: &Compiler<'_>, level: &'static str, title: &str, files: &[String]) -> Vec<Outcome> {
    let Compiler { name: compiler, folder, sources } = *compiler;
    let mut units = String::new();
    let mut calls = String::new();
    let mut names: Vec<String> = Vec::new();
    let mut doors: Vec<String> = Vec::new();
    for (i, name) in files.iter().enumerate() {
        let text = std::fs::read_to_string(sources.hazard.join(name)).expect("the program can be read");
        // The programs of h01 become subroutines that nobody calls.
        units.push_str(&format!("#define work work_{i}\n#define p p_{i}\n#define program subroutine\n"));
        for line in text.lines() {
            // Above all units the module of the binding is read once, and not once for each.
            match line.trim() {
                door @ ("use mpi" | "use mpi_f08") => doors.push(format!("{door}\n")),
                _ => units.push_str(&format!("{line}\n")),
            }
        }
        units.push_str("#undef work\n#undef p\n#undef program\n");
        calls.push_str(&format!("  r = 0\n  call work_{i}(r)\n  print '(i0,1x,i0)', {i}, r\n  flush(6)\n"));
        names.push(format!("work_{i}"));
    }
    doors.sort();
    doors.dedup();
    let public = names.iter().map(|name| format!("public :: {name}\n")).collect::<String>();
    let text = format!("module units\n{}private\n{public}contains\n{units}end module\n", doors.concat());
    let module = folder.join(format!("{title}{level}_units.F90"));
    std::fs::write(&module, text).expect("the units can be written");
    let main = folder.join(format!("{title}{level}_main.f90"));
    std::fs::write(&main, driver("  use units\n", &calls)).expect("the driver can be written");
    let program = folder.join(format!("{title}{level}"));
    build(compiler, level, &[module, main], &program);
    outcomes(files, level, &run(&program), "42")
}

fn subroutines(compiler: &Compiler<'_>, level: &'static str, files: &[String]) -> Vec<Outcome> {
    let Compiler { name: compiler, folder, sources } = *compiler;
    let mut calls = String::new();
    let mut units = [String::new(), String::new()];
    for (i, name) in files.iter().enumerate() {
        let (routine, extension) = name.split_once('.').expect("a file has a name");
        calls.push_str(&format!("  r = 0\n  call {routine}(r)\n  print '(i0,1x,i0)', {i}, r\n  flush(6)\n"));
        units[usize::from(extension == "f")]
            .push_str(&format!("#include \"{}\"\n", sources.seed.join(name).display()));
    }
    let mut paths: Vec<PathBuf> = Vec::new();
    for (extension, text) in ["F90", "F"].iter().zip(&units) {
        let path = folder.join(format!("seed{level}_units.{extension}"));
        std::fs::write(&path, text).expect("the units can be written");
        paths.push(path);
    }
    let main = folder.join(format!("seed{level}_main.f90"));
    std::fs::write(&main, driver("", &calls)).expect("the driver can be written");
    paths.push(main);
    let program = folder.join(format!("seed{level}"));
    build(compiler, level, &paths, &program);
    outcomes(files, level, &run(&program), "777")
}

/// A program that calls one subroutine after the other; the empty routine stands here, where nobody can look into it.
fn driver(uses: &str, calls: &str) -> String {
    format!(
        "program p\n{uses}  implicit none\n  include 'mpif.h'\n  integer :: ierr, r\n  call MPI_INIT(ierr)\n{calls}  call MPI_FINALIZE(ierr)\nend program\n\
         subroutine DD(buf)\n  double precision :: buf(*)\nend subroutine\n{SYNC}"
    )
}

fn outcomes(names: &[String], level: &'static str, output: &str, right: &str) -> Vec<Outcome> {
    let results: Vec<(usize, &str)> = output
        .lines()
        .filter_map(|line| line.trim().split_once(' '))
        .filter_map(|(i, value)| Some((i.parse().ok()?, value.trim())))
        .collect();
    names
        .iter()
        .enumerate()
        .map(|(i, name)| {
            let value = results.iter().find(|(at, _)| *at == i).map(|(_, value)| *value);
            let value = value
                .unwrap_or_else(|| panic!("{name} at {level} gave no result; the run printed:\n{output}"));
            Outcome { name: name.clone(), level, is_stale: value != right }
        })
        .collect()
}

fn build(compiler: &str, level: &str, files: &[PathBuf], program: &Path) {
    let folder = program.with_extension("d");
    std::fs::create_dir_all(&folder).expect("a folder for modules can be made");
    let output = Command::new(compiler)
        .args(FLAGS)
        .arg(level)
        .arg("-J")
        .arg(&folder)
        .args(files)
        .arg("-o")
        .arg(program)
        .output()
        .expect("the compiler starts");
    assert!(output.status.success(), "{files:?} at {level}:\n{}", String::from_utf8_lossy(&output.stderr));
}

/// Runs a program alone and returns what it printed.
fn run(program: &Path) -> String {
    let log = program.with_extension("out");
    let file = std::fs::File::create(&log).expect("the output file can be made");
    let mut child = Command::new(program)
        .stdout(file.try_clone().expect("the output file can be shared"))
        .stderr(file)
        .spawn()
        .expect("the program starts");
    let started = Instant::now();
    loop {
        if child.try_wait().expect("the program can be waited for").is_some() {
            break;
        }
        if started.elapsed() > Duration::from_secs(RUN_SECONDS_MAX) {
            let _ = child.kill();
            let _ = child.wait();
            panic!(
                "{} hangs; it printed:\n{}",
                program.display(),
                std::fs::read_to_string(&log).unwrap_or_default()
            );
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    std::fs::read_to_string(&log).unwrap_or_default()
}
