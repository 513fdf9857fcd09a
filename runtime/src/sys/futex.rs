//! Sleeping on a word of shared memory. Never private to a process: a waiter and a waker may be two processes.
#![forbid(unsafe_code)]

use std::sync::atomic::AtomicU32;
use std::time::Duration;

use rustix::thread::futex::{self, Flags, Timespec};

/// Sleeps while `word` is `expected`, at most for `timeout`. May return early; the caller looks at its condition.
pub(crate) fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) {
    let timeout = timeout.map(|limit| Timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    });
    // Every outcome (woken, changed word, time-out, signal) means the same to the caller: look again.
    let _ = futex::wait(word, Flags::empty(), expected, timeout.as_ref());
}

/// Wakes everybody that sleeps on `word`.
pub(crate) fn wake_all(word: &AtomicU32) {
    // Fails only for an address that is no word of this process, which a reference excludes.
    let _ = futex::wake(word, Flags::empty(), i32::MAX as u32);
}
