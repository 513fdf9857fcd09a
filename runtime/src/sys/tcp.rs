//! What the system knows about a connection. Never decides what it means.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// What is on its way on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OnItsWay {
    /// Packets that were sent and that the other side has not acknowledged.
    pub(crate) unacknowledged: u32,
    /// How long ago the last acknowledgement came.
    pub(crate) last_acknowledged: Duration,
}

/// Asks the system what is on its way; `None` for what is no TCP connection.
pub(crate) fn on_its_way(socket: impl AsFd) -> Option<OnItsWay> {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut len = size_of::<libc::tcp_info>() as libc::socklen_t;
    let descriptor = socket.as_fd().as_raw_fd();
    // SAFETY: - writable: the length is that of the structure. - open: the descriptor is borrowed for the call.
    let outcome = unsafe {
        libc::getsockopt(
            descriptor,
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if outcome != 0 {
        return None;
    }
    // SAFETY: - initialised: zeroed above, and zeroes are values of its numbers; an older system fills less of it.
    let info = unsafe { info.assume_init() };
    Some(OnItsWay {
        unacknowledged: info.tcpi_unacked,
        last_acknowledged: Duration::from_millis(info.tcpi_last_ack_recv.into()),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_connection_says_what_is_on_its_way() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (there, _) = listener.accept().unwrap();
        here.write_all(b"something").unwrap();
        // The system acknowledges at once, whether anybody reads or not.
        let mut found = on_its_way(&here).expect("a connection");
        for _ in 0..1000 {
            if found.unacknowledged == 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
            found = on_its_way(&here).expect("a connection");
        }
        assert_eq!(found.unacknowledged, 0);
        drop(there);
        assert_eq!(on_its_way(UnixStream::pair().unwrap().0), None);
    }
}
