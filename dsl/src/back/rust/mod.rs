//! The Rust back end: one self-contained text per program, which needs only the runtime library.
//! Never runs a compiler and never touches files.

mod expression;
mod names;
pub mod prelude;
mod program;
mod writer;

use rma_source::Diagnostic;

use crate::ir::{Program, Scalars};

/// What this back end cannot do yet, in the order of the text; empty when it can do everything.
pub fn missing(program: &Program) -> Vec<Diagnostic> {
    program::missing(program)
}

/// The text of a planned program. `source` is what the user wrote; its lines appear as comments.
///
/// # Errors
/// What this back end cannot do yet.
pub fn emit(program: &Program, source: &str) -> Result<String, Vec<Diagnostic>> {
    let missing = missing(program);
    match missing.is_empty() {
        true => Ok(program::emit(program, source)),
        false => Err(missing),
    }
}

/// Whether a number of ranks fits the program's grids under some settings; `flag` goes before what the program says.
///
/// # Errors
/// The sentence that the emitted program would say at start.
pub fn check_ranks(
    program: &Program,
    scalars: &Scalars,
    ranks: u32,
    flag: Option<prelude::space::Cut>,
) -> Result<(), String> {
    program::check_ranks(program, scalars, ranks as usize, flag)
}
