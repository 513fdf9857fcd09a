//! Processes: what a rank inherits, who its parent is, what state it is in. Never starts one by itself.
#![allow(unsafe_code)]

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use rustix::io::{Errno, FdFlags};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};

/// The name that the memory file of a job has in `/proc`, before the id of the process that made it.
const JOB_FILE_LINK: &str = "/memfd:rma-job-";

/// The letter that the system gives the state of a process (`T` is stopped), if the process exists.
pub(crate) fn state_letter(process: u32) -> Option<char> {
    field_after_name(process, 0)?.chars().next()
}

/// How many threads a process has, if it exists.
pub(crate) fn threads(process: u32) -> Option<u32> {
    field_after_name(process, 17)?.parse().ok()
}

/// The threads of this process.
pub(crate) fn own_threads() -> Option<Vec<u32>> {
    let entries = fs::read_dir("/proc/self/task").ok()?;
    Some(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

/// The calling thread, as [`own_threads`] names it.
pub(crate) fn own_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()
}

/// Asks the system to let the calling thread run for short times only, and soon when it is woken, before threads that compute.
/// Systems that know nothing of it do so in any case, or not.
pub(crate) fn take_short_turns(turn: Duration) {
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_OTHER.cast_unsigned(),
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: turn.as_nanos() as u64,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: - readable: the attributes outlive the call, and say how long they are. - it changes nothing but when the calling
    //   thread (0) runs.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

/// Whether a process exists and has a thread that can still execute something.
pub(crate) fn is_running(process: u32) -> bool {
    match state_letter(process) {
        None => false,
        // The first thread may be over before others are.
        Some('Z' | 'X') => threads(process).is_some_and(|threads| 1 < threads),
        Some(_) => true,
    }
}

/// A field of what the system tells about a process, counted from the one after the name.
fn field_after_name(process: u32, at: usize) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may hold blanks and parentheses itself.
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_whitespace().nth(at).map(str::to_owned)
}

/// Makes `command` start a rank: it dies with the process `parent`, whose main thread must start it, and it inherits
/// `file`, which every other child closes.
pub(crate) fn prepare_rank(command: &mut Command, file: Option<BorrowedFd<'_>>, parent: u32) {
    let file = file.map(|file| file.as_raw_fd());
    let prepare = move || -> io::Result<()> {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // A parent that died before the line above sends no signal any more.
        if getppid().map(|pid| pid.as_raw_nonzero().get().cast_unsigned()) != Some(parent) {
            return Err(Errno::SRCH.into());
        }
        match file {
            Some(file) => {
                // SAFETY: - open: the caller of `spawn` holds the descriptor that the child is a copy of.
                let file = unsafe { BorrowedFd::borrow_raw(file) };
                Ok(rustix::io::fcntl_setfd(file, FdFlags::empty())?)
            }
            None => Ok(()),
        }
    };
    // SAFETY: - after fork only the calling thread exists, so the closure must not lock or allocate: it makes three
    //           system calls, and its error values are numbers.
    unsafe { command.pre_exec(prepare) };
}

/// A copy of an inherited descriptor that names the memory file of a job, if `number` does. The descriptor itself is
/// closed in children from now on.
pub(crate) fn inherit_job_file(number: RawFd) -> Result<OwnedFd, Errno> {
    if number < 0 {
        return Err(Errno::BADF);
    }
    let link = fs::read_link(format!("/proc/self/fd/{number}")).map_err(|_| Errno::BADF)?;
    if !link.to_string_lossy().starts_with(JOB_FILE_LINK) {
        return Err(Errno::INVAL);
    }
    // SAFETY: - open: its link was read above, and nobody closes a job's file but the process's end.
    let inherited = unsafe { BorrowedFd::borrow_raw(number) };
    rustix::io::fcntl_setfd(inherited, FdFlags::CLOEXEC)?;
    rustix::io::fcntl_dupfd_cloexec(inherited, 0)
}

/// Makes this process die with its parent, and returns who that is.
pub(crate) fn die_with_parent() -> Option<u32> {
    set_parent_process_death_signal(Some(Signal::KILL)).ok()?;
    getppid().map(|pid| pid.as_raw_nonzero().get().cast_unsigned())
}
