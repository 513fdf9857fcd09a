//! The atomics and the sleep that the other files of `sync` build on. Never used through another path, so that a
//! checker can replace all of it.
#![forbid(unsafe_code)]

use std::time::Duration;

pub(crate) use std::sync::atomic::{
    AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, compiler_fence, fence,
};

/// Sleeps while `word` is `expected`, at most for `timeout`; may return early.
pub(crate) fn futex_wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) {
    crate::sys::futex::wait(word, expected, timeout);
}

/// Wakes everybody that sleeps on `word`.
pub(crate) fn futex_wake_all(word: &AtomicU32) {
    crate::sys::futex::wake_all(word);
}
