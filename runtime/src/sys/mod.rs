//! The edge to the operating system: memory files, mappings, futexes, clocks, processes. Never holds policy and
//! never retries what a caller should decide.

pub(crate) mod futex;
pub(crate) mod memory;
pub(crate) mod process;
pub(crate) mod signal;
pub(crate) mod tcp;
pub(crate) mod time;
