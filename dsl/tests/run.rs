//! Programs as users run them: built, launched on ranks, and compared with the reference interpreter.
//!
//! All tests share one cache below the build folder, so the runtime is built once.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rma_dsl::interp::{self, Inputs};
use rma_dsl::ir::{Setting, Value};
use rma_dsl::{Settings, compile_front};

const RANKS: [u32; 5] = [1, 2, 3, 4, 6];
/// Longer than any blocking call of these runs, on a busy machine too.
const TIMEOUT_SECONDS: &str = "120";
/// Until a process that was started shows up or goes away.
const PROCESS_WAIT_MAX: Duration = Duration::from_secs(120);

fn source(name: &str) -> PathBuf {
    let folder = if ["heat2d", "jacobi"].contains(&name) { "examples" } else { "tests/programs" };
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(format!("{name}.rma"))
}

fn driver(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rma-dsl"));
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dsl-cache");
    command.current_dir(folder).env("RMA_CACHE", cache).env_remove("RUST_BACKTRACE").stdin(Stdio::null());
    command
}

fn run(folder: &Path, file: &Path, arguments: &[&str]) -> Output {
    let mut command = driver(folder);
    command.arg("run").arg(file).args(["--timeout", TIMEOUT_SECONDS]).args(arguments);
    command.output().expect("the driver starts")
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("there is room for a folder")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Lines on standard output of a run that has to succeed.
fn lines(output: &Output) -> Vec<String> {
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout).lines().map(str::to_string).collect()
}

fn reference(file: &Path, set: &[(&str, &str)]) -> interp::Outcome {
    let text = std::fs::read_to_string(file).expect("the program is there");
    let set = set
        .iter()
        .map(|(name, value)| Setting { name: name.to_string(), value: value.to_string() })
        .collect();
    let compiled =
        compile_front(&text, &Settings { set, ..Settings::default() }).expect("the program is right");
    interp::run(&compiled.program, &compiled.scalars, &Inputs::default()).expect("the program runs")
}

fn sets(set: &[(&str, &str)]) -> Vec<String> {
    set.iter().flat_map(|(name, value)| [String::from("--set"), format!("{name}={value}")]).collect()
}

/// Runs a program on all numbers of ranks, and demands the lines of the reference.
fn agrees(name: &str, set: &[(&str, &str)]) {
    let file = source(name);
    let outcome = reference(&file, set);
    let expected: Vec<String> = outcome.lines.iter().cloned().chain(outcome.closing()).collect();
    let folder = folder();
    for ranks in RANKS {
        let mut arguments = sets(set);
        arguments.extend([String::from("-n"), ranks.to_string()]);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        assert_eq!(lines(&run(folder.path(), &file, &arguments)), expected, "{name} on {ranks} ranks");
    }
}

// covers: EX-E107-01 -- the form in the stencil language
#[test]
fn jacobi_gives_the_table_on_every_number_of_ranks() {
    let table = [
        (["32", "32", "1e-4", "100000"], 642, Some("9.991994828301154e-05"), "b7edf685b899f559"),
        (["30", "17", "1e-5", "100000"], 524, Some("9.984465945286902e-06"), "1372cb6fb3886360"),
        (["32", "32", "0", "50"], 50, None, "45a8edcb347d3b55"),
    ];
    let folder = folder();
    for ([rows, cols, tol, updates], steps, change, digest) in table {
        let set = sets(&[("rows", rows), ("cols", cols), ("tol", tol), ("updates", updates)]);
        for ranks in RANKS {
            let ranks = ranks.to_string();
            let mut arguments: Vec<&str> = set.iter().map(String::as_str).collect();
            arguments.extend(["-n", &ranks]);
            let lines = lines(&run(folder.path(), &source("jacobi"), &arguments));
            assert_eq!(lines[1..], [format!("steps {steps}"), format!("digest u {digest}")], "{ranks} ranks");
            if let Some(change) = change {
                assert_eq!(lines[0], format!("step={steps} r={change}"));
            }
        }
    }
}

#[test]
fn coupled_rings_give_the_published_hashes() {
    let folder = folder();
    for ranks in ["1", "2", "3"] {
        let lines = lines(&run(folder.path(), &source("ring"), &["-n", ranks]));
        assert!(lines.contains(&String::from("digest a0 f0411069f324ad7c")), "{lines:?}");
        assert!(lines.contains(&String::from("digest a1 2df2de30f2906ca5")), "{lines:?}");
    }
}

/// A halo of one point that changes in every step, between ranks of one point each: what is read is what was sent last.
// covers: REG-DSL-01 -- with the order of the accesses in the emitted text, below
// covers: EX-REG-01 -- the form in the stencil language; tests/tests/registers.rs has those in Rust, and fortran-lint's
// tests `seeds` and `gfortran` the Fortran programs
#[test]
fn a_point_that_another_rank_changes_is_read_anew() {
    const STEPS: usize = 201;
    let folder = folder();
    for transport in ["local", "shm", "tcp"] {
        let steps = format!("steps={STEPS}");
        let arguments = ["-n", "2", "--transport", transport, "--set", &steps];
        let lines = lines(&run(folder.path(), &source("handover"), &arguments));
        for (step, line) in (1..=STEPS).zip(&lines) {
            let first = if step % 2 == 1 { 777 } else { 999 };
            assert_eq!(*line, format!("step={step} first={first}"), "{transport}");
        }
        assert_eq!(lines[STEPS], format!("steps {STEPS}"), "{transport}");
    }
}

/// What is sent is packed before the fence that sends it, and what arrives is read after it, in a private epoch: nobody else can
/// touch the bytes then, so the accesses need not be volatile.
// covers: REG-DSL-01
#[test]
fn halos_are_read_after_the_fence_that_brings_them() {
    let folder = folder();
    let output = driver(folder.path()).args(["compile", "--emit", "rust"]).arg(source("handover")).output();
    let emitted = text(&output.expect("the driver starts").stdout);
    assert!(emitted.contains("#![forbid(unsafe_code)]"), "every access is one that the types allow");
    let (_, exchange) = emitted.split_once("pub fn exchange(").expect("halos are exchanged by one function");
    let (exchange, _) = exchange.split_once("\n    }\n").expect("it ends");
    let places: Vec<usize> = [".pack(", "window.fence(", "epoch.put(", "window.local()", ".unpack("]
        .iter()
        .map(|access| exchange.find(access).unwrap_or_else(|| panic!("no {access} in {exchange}")))
        .collect();
    assert!(places.is_sorted(), "{exchange}");
    for access in ["window.fence(", "window.local", ".unpack(", ".pack("] {
        assert_eq!(exchange.matches(access).count(), 1, "{access} in {exchange}");
    }
}

#[test]
fn heat_agrees_with_the_reference() {
    agrees("heat2d", &[("n", "20")]);
}

#[test]
fn one_axis_and_moving_ends_agree_with_the_reference() {
    agrees("line", &[]);
}

#[test]
fn rings_of_words_agree_with_the_reference() {
    agrees("ring", &[("n", "50")]);
}

#[test]
fn a_wave_with_source_and_sponge_agrees_with_the_reference() {
    agrees("wave", &[]);
}

#[test]
fn staggered_fields_agree_with_the_reference() {
    agrees("cavity", &[]);
}

#[test]
fn red_and_black_points_agree_with_the_reference() {
    agrees("sor", &[]);
}

#[test]
fn three_axes_in_single_precision_agree_with_the_reference() {
    agrees("cube", &[]);
}

#[test]
fn fields_updated_together_agree_with_the_reference() {
    agrees("gray", &[]);
}

#[test]
fn decomposition_and_transport_change_no_bit() {
    let folder = folder();
    let file = source("heat2d");
    let expected = lines(&run(folder.path(), &file, &["--set", "n=24", "--set", "tol=1e-3"]));
    for cut in ["rows", "blocks", "2x2", "1x4", "4x1"] {
        for transport in ["local", "shm", "tcp"] {
            let arguments = [
                "--set",
                "n=24",
                "--set",
                "tol=1e-3",
                "-n",
                "4",
                "--decompose",
                cut,
                "--transport",
                transport,
            ];
            assert_eq!(lines(&run(folder.path(), &file, &arguments)), expected, "{cut} {transport}");
        }
    }
}

#[test]
fn verify_compares_with_the_reference() {
    let folder = folder();
    let lines = lines(&run(folder.path(), &source("heat2d"), &["--set", "n=16", "-n", "2", "--verify"]));
    let last = lines.last().expect("something is printed");
    assert_eq!(last, "verified: 512 values are the same bits in the reference interpreter");
}

/// Values of a `.npy` file of doubles, and its header.
fn read_npy(path: &Path) -> (String, Vec<f64>) {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(bytes.starts_with(b"\x93NUMPY\x01\x00"));
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    assert_eq!(start % 64, 0);
    let values =
        bytes[start..].chunks_exact(8).map(|word| f64::from_le_bytes(word.try_into().unwrap())).collect();
    (text(&bytes[10..start]), values)
}

#[test]
fn outputs_hold_the_field() {
    let folder = folder();
    let set = [("n", "12"), ("tol", "1e-4")];
    let outcome = reference(&source("heat2d"), &set);
    let arguments = sets(&set);
    let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    arguments.extend(["-n", "3"]);
    let output = run(folder.path(), &source("heat2d"), &arguments);
    lines(&output);
    let base = format!("heat2d_u_{:06}", outcome.steps);
    assert_eq!(text(&output.stderr), format!("wrote {base}.png, {base}.npy\n"));
    let (header, values) = read_npy(&folder.path().join(format!("{base}.npy")));
    assert!(header.starts_with("{'descr': '<f8', 'fortran_order': False, 'shape': (12, 12), }"), "{header}");
    let expected: Vec<u64> =
        outcome.fields[0].values.iter().map(|value| Value::f64(*value).to_bits()).collect();
    assert_eq!(values.iter().map(|value| value.to_bits()).collect::<Vec<_>>(), expected);
    let bytes = std::fs::read(folder.path().join(format!("{base}.png"))).expect("there is a picture");
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().expect("it is a PNG file");
    let mut pixels = vec![0; reader.output_buffer_size().expect("it has a size")];
    let info = reader.next_frame(&mut pixels).expect("it is whole");
    assert!(800 < info.width && 700 < info.height, "{} x {}", info.width, info.height);
    let has = |wanted: [u8; 3]| pixels.chunks_exact(3).any(|pixel| pixel == wanted);
    let ends = [0.0, 1.0].map(|at| rma_dsl::picture::color("viridis", at));
    assert!(has(ends[0]) && has(ends[1]), "both ends of the colour map are in the bar");
    let left = std::fs::read_dir(folder.path()).expect("it is a folder").count();
    assert_eq!(left, 2, "nothing but the array and the picture is left");
}

#[test]
fn a_probe_is_followed() {
    let folder = folder();
    let outcome = reference(&source("wave"), &[]);
    let output = run(folder.path(), &source("wave"), &["-n", "4"]);
    lines(&output);
    assert!(text(&output.stderr).ends_with("trace.csv\n"), "{}", text(&output.stderr));
    let table = std::fs::read_to_string(folder.path().join("trace.csv")).expect("there is a table");
    let expected: Vec<String> = outcome.probes[0]
        .iter()
        .map(|(step, time, value)| format!("{step},{},{value}", Value::F64(*time)))
        .collect();
    assert_eq!(table.lines().next(), Some("step,t,p"));
    assert_eq!(table.lines().skip(1).collect::<Vec<_>>(), expected);
}

#[test]
fn an_output_that_cannot_be_written_is_an_error_with_its_path() {
    let folder = folder();
    std::fs::create_dir(folder.path().join("jacobi_u.npy")).expect("there is room for a folder");
    let output = run(folder.path(), &source("jacobi"), &["-n", "2"]);
    assert!(!output.status.success());
    let stderr = text(&output.stderr);
    assert!(stderr.contains("rank 0: error: cannot write jacobi_u.npy: "), "{stderr}");
}

#[test]
fn a_value_that_is_not_finite_ends_the_run() {
    let folder = folder();
    let file = folder.path().join("blow.rma");
    std::fs::write(
        &file,
        "program blow\nparam n : int = 20 in 4..\ngrid L(i: n)\nfield u on L levels 2\n\
         init u = if i == 11 then 1e300 else 0\nboundary u: all = 0\nupdate u = u * 10\nuntil step >= 100\n",
    )
    .expect("the program can be written");
    for (ranks, rank) in [("1", 0), ("2", 1)] {
        let output = run(folder.path(), &file, &["-n", ranks]);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(text(&output.stdout), "");
        let stderr = text(&output.stderr);
        let expected =
            format!("rank {rank}: error: u is not finite (inf) at cell (11), step 9, rank {rank}\n");
        assert!(stderr.contains(&expected), "{stderr}");
    }
}

#[test]
fn wrong_calls_are_refused() {
    let launcher = include_str!("../../runtime/src/transport/shm/layout.rs");
    assert!(launcher.contains("RANKS_MAX: u32 = 1024;"), "the launcher and the driver have one limit");
    let folder = folder();
    let heat = source("heat2d");
    let heat = heat.to_str().expect("paths are text here");
    std::fs::write(folder.path().join("broken.rma"), "program p\ngrid G(i: 4\n").expect("it can be written");
    let cases: [(&[&str], i32, &str); 18] = [
        (&["run", "nowhere.rma"], 1, "cannot read nowhere.rma: "),
        (&["check", "nowhere.rma"], 1, "cannot read nowhere.rma: "),
        (&["run", "broken.rma"], 1, "broken.rma:"),
        (&["run", heat, "--frobnicate"], 2, "unexpected argument '--frobnicate'"),
        (&["run", heat, "-n", "0"], 2, "0 is not in 1..="),
        (&["run", heat, "-n", "1025"], 2, "1025 is not in 1..=1024"),
        (&["run", heat, "-n", "two"], 2, "it needs a number in 1..=1024"),
        (&["run", heat, "--set", "n=abc"], 1, "for example `--set n=96`"),
        (
            &["run", heat, "--set", "h=1"],
            1,
            "`h` is computed by a `let`; change the parameters it depends on",
        ),
        (&["run", heat, "--set", "n"], 2, "a parameter is set as NAME=VALUE"),
        (&["run", heat, "--set", "kapa=3"], 1, "did you mean `--set kappa=3`?"),
        (&["check", heat, "--set", "kapa=3"], 1, "did you mean `--set kappa=3`?"),
        (&["run", heat, "--set", "n=2"], 1, "below the smallest allowed value 8"),
        (&["run", heat, "--set", "n=8", "-n", "100"], 1, "too few for 100 ranks"),
        (&["run", heat, "--set", "n=8", "-n", "9", "--decompose", "rows"], 1, "at most 8 ranks fit"),
        (
            &["run", heat, "-n", "3", "--decompose", "2x2"],
            1,
            "a decomposition into 2x2 parts of grid G does not fit 3 ranks",
        ),
        (&["run", heat, "--decompose", "2y2"], 2, "a cut is blocks, rows, or parts per axis"),
        (&["run", heat, "--epoch", "fench"], 2, "schedules are auto, fence"),
    ];
    for (arguments, status, message) in cases {
        let output = driver(folder.path()).args(arguments).output().expect("the driver starts");
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {stderr}");
        assert!(stderr.contains(message), "{arguments:?}: {stderr}");
        assert_eq!(text(&output.stdout), "", "{arguments:?}");
    }
}

#[test]
fn a_folder_that_takes_no_files_is_named_at_start() {
    // No file can be made there, whoever asks.
    let nowhere = Path::new("/proc/self");
    if !nowhere.exists() {
        return;
    }
    let output = run(nowhere, &source("jacobi"), &[]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = text(&output.stderr);
    assert!(stderr.starts_with("error: cannot write into the folder /proc/"), "{stderr}");
    assert!(stderr.contains("start it in a folder that you can write to"), "{stderr}");
}

#[test]
fn a_missing_compiler_is_named() {
    let folder = folder();
    let mut command = driver(folder.path());
    command.arg("run").arg(source("jacobi")).env("RUSTC", "/nonexistent/rustc");
    let output = command.output().expect("the driver starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("cannot run the Rust compiler `/nonexistent/rustc`"));
}

#[test]
fn parameters_are_listed() {
    let folder = folder();
    for arguments in [["check", "FILE", ""], ["run", "FILE", "--help"]] {
        let mut command = driver(folder.path());
        for argument in arguments.iter().filter(|argument| !argument.is_empty()) {
            match *argument {
                "FILE" => command.arg(source("heat2d")),
                other => command.arg(other),
            };
        }
        let listed = lines(&command.output().expect("the driver starts"));
        if arguments[0] == "run" {
            assert!(listed.iter().any(|line| line.starts_with("Usage: rma-dsl run ")), "{listed:?}");
        }
        let n = listed.iter().find(|line| line.trim_start().starts_with("n ")).expect("n is listed");
        assert_eq!(
            n.split_whitespace().collect::<Vec<_>>(),
            ["n", "int", "96", "8..", "points", "per", "side"]
        );
    }
}

/// The text that belongs to one program, without what all have.
fn own_text(name: &str) -> String {
    let folder = folder();
    let output = driver(folder.path()).args(["compile", "--emit", "rust"]).arg(source(name)).output();
    let emitted = text(&output.expect("the driver starts").stdout);
    let (_, own) = emitted.split_once("use prelude::sums::*;\n").expect("the prelude comes first");
    own.to_string()
}

#[test]
fn emitted_text_is_as_reviewed() {
    insta::assert_snapshot!("jacobi", own_text("jacobi"));
}

#[test]
fn the_plan_is_told() {
    let folder = folder();
    let output = driver(folder.path()).args(["compile", "--emit", "plan"]).arg(source("heat2d")).output();
    insta::assert_snapshot!("heat2d-plan", text(&output.expect("the driver starts").stdout));
}

/// A program that no other test has, so that its place in the cache is known to be empty.
fn fresh_program(folder: &Path, name: &str) -> PathBuf {
    let stamp =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("time goes on").as_nanos();
    let file = folder.join(format!("{name}.rma"));
    let text = format!(
        "program {name}\nparam mark : int = {}\nparam steps : int = 10\ngrid L(i: 16)\nfield u on L levels 2\n\
         init u = i + mark\nboundary u: all = 0\nupdate u = 0.5*u[i-1] + 0.5*u[i+1]\nuntil step >= steps\n",
        stamp % 1_000_000_000
    );
    std::fs::write(&file, text).expect("the program can be written");
    file
}

#[test]
fn a_damaged_cache_entry_is_built_again() {
    let folder = folder();
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dsl-cache").join("programs");
    let name = format!("damaged{}", std::process::id());
    let file = fresh_program(folder.path(), &name);
    let first = lines(&run(folder.path(), &file, &[]));
    let find = || {
        let entries = std::fs::read_dir(&cache).expect("the cache is there").flatten();
        let found: Vec<PathBuf> =
            entries.map(|entry| entry.path().join(&name)).filter(|path| path.is_file()).collect();
        assert_eq!(found.len(), 1, "one entry per program: {found:?}");
        found[0].clone()
    };
    let program = find();
    let whole = std::fs::read(&program).expect("the program is there");
    std::fs::write(&program, &whole[..whole.len() / 2]).expect("it can be cut short");
    assert_eq!(lines(&run(folder.path(), &file, &[])), first);
    // Not the same to the byte: the linker is told where the program goes.
    let again = std::fs::read(find()).expect("the program is there");
    assert!(whole.len() / 10 * 9 < again.len(), "{} bytes after {}", again.len(), whole.len());
}

#[test]
fn runs_at_the_same_time_do_not_disturb_each_other() {
    let folder = folder();
    let file = fresh_program(folder.path(), &format!("twice{}", std::process::id()));
    let start = || {
        let mut command = driver(folder.path());
        command.arg("run").arg(&file).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the driver starts")
    };
    let (one, two) = (start(), start());
    let one = lines(&one.wait_with_output().expect("it ends"));
    let two = lines(&two.wait_with_output().expect("it ends"));
    assert_eq!(one, two);
    assert!(one.contains(&String::from("steps 10")), "{one:?}");
}

/// Ids of processes whose command line has a word in it and whose environment holds a setting.
fn processes(word: &str, setting: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("this is Linux").flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_string_lossy().parse::<u32>().ok());
    let has = |id: &u32, file: &str, wanted: &str| {
        let bytes = std::fs::read(format!("/proc/{id}/{file}")).unwrap_or_default();
        bytes.split(|byte| *byte == 0).any(|part| text(part).contains(wanted))
    };
    ids.filter(|id| has(id, "cmdline", word) && has(id, "environ", setting)).collect()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PROCESS_WAIT_MAX, "{what} does not happen");
        std::thread::yield_now();
    }
}

/// Starts a long run, ends one of its processes, and gives back what the driver then says.
fn end_one(name: &str, find: impl Fn(&str) -> Vec<u32>, driver_too: DriverEnds) -> Option<Output> {
    let folder = folder();
    let name = format!("{name}{}", std::process::id());
    let file = fresh_program(folder.path(), &name);
    lines(&run(folder.path(), &file, &[])); // Now it is in the cache.
    let word = format!("/{name}");
    let mut command = driver(folder.path());
    command.args(["run", "-n", "3", "--set", "steps=1000000000"]).arg(&file);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the driver starts");
    until("three ranks", || (0..3).all(|rank| !processes(&word, &format!("RMA_RANK={rank}")).is_empty()));
    let victims = match driver_too {
        DriverEnds::No => find(&word),
        DriverEnds::Yes => vec![child.id()],
    };
    assert_eq!(victims.len(), 1, "{victims:?}");
    let killed = Command::new("kill").arg("-KILL").arg(victims[0].to_string()).status();
    assert!(killed.expect("kill is there").success());
    let output = match driver_too {
        DriverEnds::No => Some(child.wait_with_output().expect("it ends")),
        DriverEnds::Yes => {
            child.wait().expect("it ends");
            None
        }
    };
    until("the end of all ranks", || processes(&word, "RMA_SIZE=3").is_empty());
    output
}

enum DriverEnds {
    No,
    Yes,
}

#[test]
fn a_killed_rank_ends_the_run() {
    let output =
        end_one("victim", |word| processes(word, "RMA_RANK=1"), DriverEnds::No).expect("the driver lives");
    assert_eq!(output.status.code(), Some(137));
    let stderr = text(&output.stderr);
    assert!(stderr.contains("rank 1") && stderr.contains("was killed by signal 9"), "{stderr}");
}

#[test]
fn a_killed_driver_leaves_no_rank_behind() {
    assert!(end_one("orphan", |_| Vec::new(), DriverEnds::Yes).is_none());
}
