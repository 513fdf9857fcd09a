//! The Rust back end: one self-contained text per program, which needs only the runtime library.
//! Never runs a compiler and never touches files.

mod expression;
mod names;
pub mod prelude;
mod program;
mod writer;

use crate::ir::Program;

/// The text of a planned program. `source` is what the user wrote; its lines appear as comments.
///
/// # Errors
/// Names what this back end cannot do yet.
pub fn emit(program: &Program, source: &str) -> Result<String, Vec<&'static str>> {
    let missing = program::missing(program);
    match missing.is_empty() {
        true => Ok(program::emit(program, source)),
        false => Err(missing),
    }
}
