//! The stencil language compiler.
//!
//! `syntax` (text to tree) → `resolve` (names) → `types` (typed IR, functions inlined) → `shape` (footprints, halos,
//! boundary coverage) → `schedule` (plan) → [`ir`] (and `stability`, a warning from the run's numbers), with [`ir::verify`] after each pass in debug builds.
//! [`interp`] runs the IR on one rank and is the reference for every back end.
//!
//! Passes never read files, never look at the environment and never print. Never links the runtime: it knows `rma`
//! only through the text it emits.
#![forbid(unsafe_code)]

pub mod back;
pub mod exact;
pub mod interp;
pub mod ir;
pub mod messages;
pub mod picture;
pub mod resolve;
pub mod schedule;
pub mod shape;
pub mod stability;
pub mod syntax;
pub mod types;

use rma_source::Diagnostic;

/// What the command line says beside the file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// `--set NAME=VALUE`, in order; the last one of a name wins.
    pub set: Vec<ir::Setting>,
    /// `--epoch`.
    pub epoch: Option<ir::Epoch>,
    /// `--decompose`.
    pub decompose: Option<ir::Decompose>,
    /// `--overlap`.
    pub overlap: Option<ir::Overlap>,
    /// `--block`.
    pub block: Option<u32>,
}

/// A program that may run.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The program, planned and verified.
    pub program: ir::Program,
    /// Scalars under the settings.
    pub scalars: ir::Scalars,
    /// What is probably not meant so.
    pub warnings: Vec<Diagnostic>,
}

/// Checks a file and types, shapes and plans it. Values of parameters stay symbolic in the program; the settings'
/// values are only checked.
///
/// # Errors
/// All errors of the file, and its warnings, in the order of the text.
pub fn compile_front(source: &str, settings: &Settings) -> Result<Compiled, Vec<Diagnostic>> {
    // The passes recurse over expressions, whose depth is limited; this stack holds that depth in every build.
    let on_large_stack = std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
        let thread = builder.spawn_scoped(scope, || compile_here(source, settings)).ok()?;
        Some(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    on_large_stack.unwrap_or_else(|| compile_here(source, settings))
}

/// Enough for the deepest nesting that is accepted.
const STACK_BYTES: usize = 64 << 20;

fn compile_here(source: &str, settings: &Settings) -> Result<Compiled, Vec<Diagnostic>> {
    let parsed = syntax::parse(source);
    let mut diagnostics = parsed.diagnostics;
    let (resolved, found) = resolve::resolve(&parsed.statements, &parsed.broken);
    diagnostics.extend(found);
    let types::Typed { mut program, facts, diagnostics: found } = types::types(&resolved, source);
    diagnostics.extend(found);
    let is_clean = |diagnostics: &[Diagnostic]| !diagnostics.iter().any(Diagnostic::is_error);
    if is_clean(&diagnostics) {
        verified(&program, "types");
    }
    if parsed.broken.is_empty() {
        diagnostics.extend(shape::shape(&mut program, &facts));
        if is_clean(&diagnostics) {
            verified(&program, "shape");
        }
        diagnostics.extend(schedule::schedule(&mut program, &resolved.rest, settings));
        if is_clean(&diagnostics) {
            verified(&program, "schedule");
        }
    }
    let mut scalars = None;
    if is_clean(&diagnostics) {
        match ir::Scalars::evaluate(&program, &settings.set) {
            Ok(found) => {
                diagnostics.extend(stability::stability(&program, &found));
                scalars = Some(found);
            }
            Err(found) => diagnostics.extend(found),
        }
    }
    sort(&mut diagnostics);
    match scalars {
        Some(scalars) => Ok(Compiled { program, scalars, warnings: diagnostics }),
        None => Err(diagnostics),
    }
}

/// A broken promise between passes is a mistake of the compiler, never of its user.
fn verified(program: &ir::Program, pass: &str) {
    if cfg!(debug_assertions)
        && let Err(broken) = ir::verify(program)
    {
        panic!("the {pass} pass broke its promise: {broken}");
    }
}

/// In the order of the text, without repetitions.
fn sort(diagnostics: &mut Vec<Diagnostic>) {
    diagnostics.sort_by_key(|diagnostic| diagnostic.primary().map(|label| label.span));
    diagnostics.dedup();
}
