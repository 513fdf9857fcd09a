//! The epoch automaton: states, calls, and what each call does to each state, as one table.
//! Never allocates, never does I/O, never reads a clock.
#![no_std]
#![forbid(unsafe_code)]

mod error;

pub use error::ErrorKind;
