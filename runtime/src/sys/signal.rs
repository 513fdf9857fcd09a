//! Signals as something to read instead of something that interrupts. Never installs a handler.
#![allow(unsafe_code)]

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;

use rustix::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

/// Signals that this process no longer takes by default, but reads from a descriptor.
pub(crate) struct Signals {
    descriptor: OwnedFd,
}

impl Signals {
    /// Blocks the signals in the calling thread, and in the threads that it makes later, and opens their descriptor.
    /// `Command` starts children with nothing blocked.
    pub(crate) fn block(numbers: &[i32]) -> io::Result<Signals> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: - writes a set into memory that is large enough for one.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        for &number in numbers {
            // SAFETY: - the set was initialized above; a number that is no signal is refused.
            match unsafe { libc::sigaddset(set.as_mut_ptr(), number) } {
                0 => {}
                _ => return Err(io::Error::last_os_error()),
            }
        }
        // SAFETY: - the set is initialized; no old set is asked for.
        match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), ptr::null_mut()) } {
            0 => {}
            error => return Err(io::Error::from_raw_os_error(error)),
        }
        // SAFETY: - the set is initialized; -1 asks for a new descriptor.
        let descriptor = unsafe { libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        match descriptor {
            -1 => Err(io::Error::last_os_error()),
            // SAFETY: - open and new: the call above made it, and nobody else owns it.
            _ => Ok(Signals { descriptor: unsafe { OwnedFd::from_raw_fd(descriptor) } }),
        }
    }

    /// The next signal that has arrived, if there is one.
    pub(crate) fn next(&self) -> Option<i32> {
        let mut record = [0; size_of::<libc::signalfd_siginfo>()];
        match rustix::io::read(&self.descriptor, &mut record) {
            // The record begins with the signal's number.
            Ok(len) if len == record.len() => {
                Some(i32::from_ne_bytes([record[0], record[1], record[2], record[3]]))
            }
            _ => None,
        }
    }
}

/// Whether this process was started to ignore a signal, as `nohup` and background jobs of simple shells are.
pub(crate) fn is_ignored(number: i32) -> bool {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = text.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (number - 1)) != 0
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
