//! Compiles the programs of `fixtures/` as a user's would be, with the optimisation that a test asks for, and reads what the
//! compiler has made of their functions. Never builds into the folder that `cargo test` is using, which is locked.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::root;

/// Whether the whole program is optimised as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lto {
    /// Each crate for itself.
    Off,
    /// All crates together.
    Fat,
}

/// Compiles a program of `fixtures/` and returns its path.
pub fn build(program: &str, level: u8, lto: Lto) -> PathBuf {
    let output = target().join(format!("{program}-{level}-{lto:?}-{}", number()).to_lowercase());
    rustc(program, level, lto, &["-o", &output.to_string_lossy()]);
    output
}

/// Tests of one file run side by side and may want the same program: each has its own.
fn number() -> u32 {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// Compiles a program of `fixtures/` for reading: its text in a language of the compiler, `llvm-ir` or `asm`.
pub fn text(program: &str, language: &str) -> String {
    let output = target().join(format!("{program}-{}.{language}", number()));
    let emit = format!("--emit={language}={}", output.display());
    rustc(program, 3, Lto::Off, &[&emit, "-Ccodegen-units=1"]);
    std::fs::read_to_string(output).expect("the compiler wrote the text")
}

/// The body of the function in an LLVM text whose name holds `name`, as lines.
pub fn ir_of<'a>(ir: &'a str, name: &str) -> Vec<&'a str> {
    between(ir, |line| line.starts_with("define ") && line.contains(name), |line| line == "}")
}

/// The body of the function in an assembly text whose name holds `name`, as lines.
pub fn assembly_of<'a>(assembly: &'a str, name: &str) -> Vec<&'a str> {
    let begins = |line: &str| line.ends_with(':') && line.contains(name) && !line.starts_with('.');
    between(assembly, begins, |line| line.starts_with(".Lfunc_end"))
}

fn between(text: &str, begins: impl Fn(&str) -> bool, ends: impl Fn(&str) -> bool) -> Vec<&str> {
    text.lines()
        .skip_while(|line| !begins(line))
        .skip(1)
        .take_while(|line| !ends(line))
        .map(str::trim)
        .collect()
}

fn target() -> PathBuf {
    root().join("target/emitted")
}

/// Compiles a program against the runtime, which is built once, optimised, with what link-time optimisation needs.
fn rustc(program: &str, level: u8, lto: Lto, rest: &[&str]) {
    static RUNTIME: OnceLock<()> = OnceLock::new();
    RUNTIME.get_or_init(build_runtime);
    let release = target().join("release");
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(compiler);
    command.arg(root().join("tests/fixtures").join(program).with_extension("rs"));
    command.args(["--edition=2024", "--crate-type=bin", "-Cdebuginfo=line-tables-only"]);
    command.arg(format!("-Copt-level={level}"));
    if lto == Lto::Fat {
        command.arg("-Clto=fat");
    }
    command.arg(format!("--extern=rma={}", release.join("librma.rlib").display()));
    command.arg(format!("-Ldependency={}", release.join("deps").display()));
    run(command.args(rest));
}

fn build_runtime() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--locked", "--release", "--package=rma-runtime", "--lib"]);
    command.args(["--no-default-features", "--target-dir"]).arg(target());
    // The second flag: valgrind hides the kernel page that rustix would look for by itself.
    command
        .env("RUSTFLAGS", "-Cembed-bitcode=yes --cfg=rustix_use_libc")
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    run(command.current_dir(root()));
}

fn run(command: &mut Command) {
    let output = command.output().expect("the compiler starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed:\n{said}");
}
