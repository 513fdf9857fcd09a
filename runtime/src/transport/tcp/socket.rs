//! Sockets that never block, and sleeping until one of them has something. Never interprets a byte.

use std::io::{self, ErrorKind, Read, Write};
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt;

/// After so much silence the system asks whether the other side is still there, and how often before it gives up. This is
/// what ends a connection whose link was cut.
const PROBE_AFTER: Duration = Duration::from_secs(5);
const PROBE_EVERY: Duration = Duration::from_secs(2);
const PROBES: u32 = 3;
/// Events that are taken from the system at once.
const EVENTS: usize = 64;

/// What reading or writing did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// So many bytes moved.
    Bytes(usize),
    /// None now; waiting helps.
    Nothing,
    /// The other side has closed the connection, or it has broken.
    Closed,
}

/// Makes a new connection one that never blocks, sends at once what it is given, and notices a cut link.
pub(crate) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, PROBE_AFTER)?;
    sockopt::set_tcp_keepintvl(stream, PROBE_EVERY)?;
    Ok(sockopt::set_tcp_keepcnt(stream, PROBES)?)
}

/// Takes what has arrived.
pub(crate) fn read(mut stream: &TcpStream, into: &mut [u8]) -> Moved {
    loop {
        match stream.read(into) {
            Ok(0) => return Moved::Closed,
            Ok(len) => return Moved::Bytes(len),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Moved::Nothing,
            Err(_) => return Moved::Closed,
        }
    }
}

/// Gives as much as the connection takes now.
pub(crate) fn write(mut stream: &TcpStream, bytes: &[u8]) -> Moved {
    loop {
        match stream.write(bytes) {
            Ok(len) => return Moved::Bytes(len),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Moved::Nothing,
            Err(_) => return Moved::Closed,
        }
    }
}

/// Sleeps until the connection can be read (or written, too, where that is asked for), or for so long. May return early.
pub(crate) fn wait(stream: &TcpStream, flags: PollFlags, timeout: Duration) {
    let mut watched = [PollFd::from_borrowed_fd(stream.as_fd(), flags)];
    // Every outcome means the same to the caller: look again.
    let _ = poll(&mut watched, Some(&timespec(timeout)));
}

/// Sleeps until one of several connections has what it is watched for, or `bell` can be read, or for so long.
pub(crate) fn wait_any(streams: &[(Arc<TcpStream>, PollFlags)], bell: BorrowedFd<'_>, timeout: Duration) {
    let mut watched: Vec<PollFd<'_>> =
        streams.iter().map(|(stream, flags)| PollFd::from_borrowed_fd(stream.as_fd(), *flags)).collect();
    watched.push(PollFd::from_borrowed_fd(bell, PollFlags::IN));
    // As in `wait`.
    let _ = poll(&mut watched, Some(&timespec(timeout)));
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

/// Sleeps on many descriptors at once, each with a number of its own.
pub(crate) struct Poller {
    epoll: OwnedFd,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Poller> {
        Ok(Poller { epoll: epoll::create(CreateFlags::CLOEXEC)? })
    }

    /// Watches a descriptor until it is closed.
    pub(crate) fn watch(&self, descriptor: impl AsFd, number: u64) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, descriptor, EventData::new_u64(number), EventFlags::IN)?)
    }

    /// Changes what a watched descriptor is watched for: to be read, to be written, or both.
    pub(crate) fn change(&self, descriptor: impl AsFd, number: u64, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, descriptor, EventData::new_u64(number), flags)?)
    }

    /// Watches a descriptor no more.
    pub(crate) fn forget(&self, descriptor: impl AsFd) {
        // It was watched, so this can't fail.
        let _ = epoll::delete(&self.epoll, descriptor);
    }

    /// Sleeps until something can be done, or for so long, and gives the numbers of those that have something.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> io::Result<Vec<u64>> {
        let mut events = [const { MaybeUninit::uninit() }; EVENTS];
        let timeout = timeout.map(timespec);
        match epoll::wait(&self.epoll, &mut events, timeout.as_ref()) {
            Ok((events, _)) => Ok(events.iter().map(|event| event.data.u64()).collect()),
            Err(Errno::INTR) => Ok(Vec::new()),
            Err(errno) => Err(errno.into()),
        }
    }
}
