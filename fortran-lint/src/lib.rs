//! Finds the Fortran buffers that an optimising compiler may keep in a register while a transfer changes memory.
//!
//! The way through the crate is the order of its modules: files and what they include, source form, logical lines, tokens, tolerant statements,
//! program units and scopes, control flow, events and open operations, rules, report. Never opens a file: the program in
//! `bin` does.
#![forbid(unsafe_code)]

pub mod form;
pub mod lex;
pub mod parse;
pub mod source;

pub mod model;
pub mod mpi;

pub mod finding;
pub mod options;

pub mod config;
pub mod program;

pub mod dataflow;
pub mod rules;

pub mod baseline;
pub mod changed;
pub mod check;
pub mod fix;
pub mod report;
pub mod suppress;
