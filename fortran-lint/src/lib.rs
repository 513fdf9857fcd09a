//! Finds the Fortran buffers that an optimising compiler may keep in a register while a transfer changes memory.
#![forbid(unsafe_code)]

pub mod form;
pub mod lex;
pub mod parse;
