//! Processes: who the parent is, what state a process is in. Never starts one by itself.
#![forbid(unsafe_code)]

use std::fs;

/// The letter that the system gives the state of a process (`T` is stopped), if the process exists.
pub(crate) fn state_letter(process: u32) -> Option<char> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may hold blanks and parentheses itself.
    let (_, rest) = text.rsplit_once(')')?;
    rest.trim_start().chars().next()
}
