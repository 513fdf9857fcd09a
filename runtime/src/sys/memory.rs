//! Memory files, their mappings, and copies that the system makes. Never decides how large anything becomes.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::fs;
use std::ptr::{self, NonNull};

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::io::{Errno, Result};
use rustix::mm::{Advice, MapFlags, ProtFlags};
use rustix::process::{Resource, getrlimit};

/// Asks the system to copy within this process by its call for the memory of other processes, and says how many bytes it has copied:
/// none if it does not permit that.
///
/// # Safety
///
/// `origin` is readable and `target` writable for `bytes` bytes, of which no Rust reference lives that the copy would contradict.
pub(crate) unsafe fn copy_by_calls(target: *mut u8, origin: *const u8, bytes: usize) -> usize {
    let mut done = 0;
    while done < bytes {
        let from =
            libc::iovec { iov_base: origin.wrapping_add(done).cast_mut().cast(), iov_len: bytes - done };
        let to = libc::iovec { iov_base: target.wrapping_add(done).cast(), iov_len: bytes - done };
        let own = std::process::id().cast_signed();
        // SAFETY: - one entry on each side. - the system reads and writes what the caller may, and no more.
        match unsafe { libc::process_vm_writev(own, &raw const from, 1, &raw const to, 1, 0) } {
            copied @ 1.. => done += copied.cast_unsigned(),
            _ => break,
        }
    }
    done
}

/// The page size of the machine.
pub(crate) fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// A nameless memory file, closed on exec, that nobody can shrink under a mapping.
pub(crate) fn memory_file(name: &str) -> Result<OwnedFd> {
    let file = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK)?;
    Ok(file)
}

/// Gives `len` bytes at `offset` of the file real memory, growing the file where needed.
///
/// Works in pieces, because an interrupted allocation starts over and a large one would never end under signals.
pub(crate) fn commit(file: impl AsFd, offset: u64, len: u64) -> Result<()> {
    const PIECE_BYTES: u64 = 64 << 20;
    // Growing beyond this limit would raise SIGXFSZ, which ends the process instead of the call.
    match getrlimit(Resource::Fsize).current {
        Some(limit) if limit < offset + len => return Err(Errno::FBIG),
        _ => {}
    }
    let end = offset + len;
    let mut at = offset;
    while at < end {
        let piece = PIECE_BYTES.min(end - at);
        match rustix::fs::fallocate(&file, FallocateFlags::empty(), at, piece) {
            Ok(()) => at += piece,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Gives the memory of a range back; the range reads as zero when it is committed again.
pub(crate) fn release(file: impl AsFd, offset: u64, len: u64) -> Result<()> {
    rustix::fs::fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, len)
}

/// Keeps the pages of a range of a mapping in memory until [`unlock`].
pub(crate) fn lock(mapping: &Mapping, offset: usize, len: usize) -> Result<()> {
    assert!(offset <= mapping.len && len <= mapping.len - offset, "range outside the mapping");
    // SAFETY: - the range is mapped: checked above. Its contents don't change.
    unsafe { rustix::mm::mlock(mapping.base().wrapping_add(offset).cast(), len) }
}

/// Lets the system page a range out again.
pub(crate) fn unlock(mapping: &Mapping, offset: usize, len: usize) -> Result<()> {
    assert!(offset <= mapping.len && len <= mapping.len - offset, "range outside the mapping");
    // SAFETY: - the range is mapped: checked above. Its contents don't change.
    unsafe { rustix::mm::munlock(mapping.base().wrapping_add(offset).cast(), len) }
}

/// How much memory the machine, or the control group of this process, can still give.
///
/// A memory file is not limited by the kernel, so asking for too much would end in the out-of-memory killer; this
/// is what lets shortage be an error instead. `None` where the system does not tell.
pub(crate) fn available_bytes() -> Option<u64> {
    let table = fs::read_to_string("/proc/meminfo").ok()?;
    let line = table.lines().find(|line| line.starts_with("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    let machine = kib * 1024;
    match control_group_bytes() {
        Some(group) => Some(machine.min(group)),
        None => Some(machine),
    }
}

/// What the control group still allows, if it has a limit: of either version of control groups.
fn control_group_bytes() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let unified = |line: &str| {
        let folder = format!("/sys/fs/cgroup{}", line.strip_prefix("0::")?);
        group_bytes(&folder, "memory.max", "memory.current")
    };
    let separate = |line: &str| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let folder = format!("/sys/fs/cgroup/memory{path}");
        controllers
            .split(',')
            .any(|controller| controller == "memory")
            .then(|| group_bytes(&folder, "memory.limit_in_bytes", "memory.usage_in_bytes"))?
    };
    groups.lines().find_map(|line| unified(line).or_else(|| separate(line)))
}

/// What the older control groups give as the limit of a group without one is somewhat less than the largest number.
const NO_LIMIT_BYTES: u64 = 1 << 60;

fn group_bytes(folder: &str, limit: &str, current: &str) -> Option<u64> {
    let number = |name: &str| fs::read_to_string(format!("{folder}/{name}")).ok()?.trim().parse::<u64>().ok();
    let limit = number(limit)?;
    if NO_LIMIT_BYTES <= limit {
        return None;
    }
    // Files that are only cached make room when somebody asks.
    let statistics = fs::read_to_string(format!("{folder}/memory.stat")).unwrap_or_default();
    let cached = statistics.lines().find_map(|line| line.strip_prefix("inactive_file ")?.parse::<u64>().ok());
    Some(limit.saturating_sub(number(current)?.saturating_sub(cached.unwrap_or(0))))
}

/// A shared mapping of a memory file over a range that may be far larger than the file.
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: - a mapping is an address range that stays valid until drop, on whichever thread that happens.
unsafe impl Send for Mapping {}
// SAFETY: - shared use hands out only the base address; what is done with it is the business of the user's proof.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `len` bytes of address space of the file, without reserving memory for them.
    pub(crate) fn new(file: impl AsFd, len: usize) -> Result<Mapping> {
        // SAFETY: - the address is chosen by the system, so no existing mapping is replaced.
        let address = unsafe {
            rustix::mm::mmap(
                ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::NORESERVE,
                file,
                0,
            )
        }?;
        // A core file would otherwise walk the whole range, and a crashed rank would take minutes to die.
        // SAFETY: - the range is the mapping made above; the advice changes no contents.
        let _ = unsafe { rustix::mm::madvise(address, len, Advice::LinuxDontDump) };
        let base = NonNull::new(address.cast::<u8>()).ok_or(Errno::FAULT)?;
        Ok(Mapping { base, len })
    }

    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: - the range was mapped by `new` and is unmapped once: drop runs once.
        //         - no reference into it is left: they borrow from the owner of this value.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast::<c_void>(), self.len) };
    }
}
