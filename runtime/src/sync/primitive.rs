//! The atomics and the sleep that the other files of `sync` build on. Never used through another path, so that a
//! checker can replace all of it.
#![forbid(unsafe_code)]

use std::time::Duration;

pub(crate) use std::sync::atomic::{
    AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, compiler_fence, fence,
};

/// A full fence behind an atomic change of this thread: on x86-64, where no load or store passes a locked instruction in either
/// direction, the change is one.
#[inline(always)]
pub(crate) fn fence_after_change() {
    match CHANGES_ARE_FENCES {
        true => compiler_fence(Ordering::SeqCst), // SeqCst: as below, for the compiler.
        false => fence(Ordering::SeqCst),         // SeqCst: what the caller says.
    }
}

/// Whether an atomic change of a word is a full fence, whatever its ordering is called.
pub(crate) const CHANGES_ARE_FENCES: bool = cfg!(all(target_arch = "x86_64", not(miri)));

/// Sleeps while `word` is `expected`, at most for `timeout`; may return early.
pub(crate) fn futex_wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) {
    crate::sys::futex::wait(word, expected, timeout);
}

/// Wakes everybody that sleeps on `word`.
pub(crate) fn futex_wake_all(word: &AtomicU32) {
    crate::sys::futex::wake_all(word);
}
