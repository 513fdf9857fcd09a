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

use crate::sys;

/// What counts as evidence that a link was cut: for so long the other side's system has acknowledged nothing, neither data nor
/// the question whether it is still there. A process that is stopped does not matter, as its system goes on to acknowledge.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(4);
/// After so much silence on a connection that has nothing to send the system asks whether the other side is still there, and
/// how often before it gives up.
const PROBE_AFTER: Duration = Duration::from_secs(1);
const PROBE_EVERY: Duration = Duration::from_secs(1);
const PROBES: u32 = 3;
const _: () = assert!(
    PROBE_AFTER.as_secs() + PROBE_EVERY.as_secs() * PROBES as u64 == SILENCE_MAX.as_secs(),
    "idle connections and others are given up after the same time"
);
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
    /// The system has given the connection up, as nothing comes from the other side any more.
    Cut,
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
            Err(error) => return broken(&error),
        }
    }
}

fn broken(error: &io::Error) -> Moved {
    match error.kind() {
        ErrorKind::TimedOut | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => Moved::Cut,
        _ => Moved::Closed,
    }
}

/// Whether a connection has sent something that was not acknowledged for so long that its link counts as cut. The system asks
/// by itself only on connections that have nothing on their way.
pub(crate) fn is_cut(stream: &TcpStream) -> bool {
    sys::tcp::on_its_way(stream)
        .is_some_and(|it| it.unacknowledged != 0 && SILENCE_MAX < it.last_acknowledged)
}

/// Whether everything that a connection has sent is acknowledged.
pub(crate) fn is_acknowledged(stream: &TcpStream) -> bool {
    sys::tcp::on_its_way(stream).is_none_or(|it| it.unacknowledged == 0)
}

/// Gives as much as the connection takes now.
pub(crate) fn write(mut stream: &TcpStream, bytes: &[u8]) -> Moved {
    loop {
        match stream.write(bytes) {
            Ok(len) => return Moved::Bytes(len),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Moved::Nothing,
            Err(error) => return broken(&error),
        }
    }
}

/// What ended a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// There may be something to do.
    Ready,
    /// Its time was over.
    TimeOver,
}

/// Sleeps until the connection can be read (or written, too, where that is asked for), or for so long. May return early.
pub(crate) fn wait(stream: &TcpStream, flags: PollFlags, timeout: Duration) -> Woken {
    let mut watched = [PollFd::from_borrowed_fd(stream.as_fd(), flags)];
    match poll(&mut watched, Some(&timespec(timeout))) {
        Ok(0) => Woken::TimeOver,
        // After an error there is nothing better to do than to look.
        Ok(_) | Err(_) => Woken::Ready,
    }
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

    /// Sleeps until something can be done, or for so long.
    pub(crate) fn sleep(&self, timeout: Option<Duration>) -> io::Result<()> {
        let mut events = [MaybeUninit::uninit()];
        match epoll::wait(&self.epoll, &mut events, timeout.map(timespec).as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
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
