//! A link between two sockets of this process: which replies count, and who reads them. Never starts a rank.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::mpsc;
use std::thread;

use super::*;

/// Longer than any test: a thread that sleeps so long is woken, or fails its test.
const FOREVER: Duration = Duration::from_secs(3600);
const WATCHDOG: Duration = Duration::from_secs(60);

/// An open link and its other end.
fn open() -> (Link, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let stream = TcpStream::connect(address).unwrap();
    socket::prepare(&stream).unwrap();
    let link = Link::new(address, Arc::default(), None);
    link.state().connection = Connection::Open(Arc::new(stream));
    link.opened.store(true, Ordering::Relaxed);
    let peer = listener.accept().unwrap().0;
    peer.set_nodelay(true).unwrap();
    (link, peer)
}

fn answer(peer: &TcpStream, requests: &[u64]) {
    let mut bytes = Vec::new();
    for &request in requests {
        Writer::new(&mut bytes, Kind::Reply, request).u64(request);
    }
    io::Write::write_all(&mut &*peer, &bytes).unwrap();
}

fn reply(link: &Link, request: u64) -> Result<Vec<u8>, Cut> {
    link.reply(request, &mut || Ok(FOREVER))
}

#[test]
fn replies_that_came_before_the_end_count() {
    // Together, and one by one, with the end behind the last.
    for together in [true, false] {
        let (link, peer) = open();
        match together {
            true => answer(&peer, &[1, 2, 3]),
            false => [1, 2, 3].iter().for_each(|&request| answer(&peer, &[request])),
        }
        drop(peer);
        for request in 1..=3 {
            assert_eq!(reply(&link, request).unwrap(), request.to_le_bytes(), "together: {together}");
        }
        assert!(matches!(reply(&link, 4), Err(Cut::Gone(_))), "together: {together}");
    }
}

#[test]
fn replies_count_where_the_wait_was_given_up() {
    let (link, peer) = open();
    answer(&peer, &[1]);
    drop(peer);
    // The end is found by somebody else, who reads the reply too.
    while link.exchange_now().is_ok() {}
    let give_up = || Err(Error::new(crate::error::ErrorKind::Stalled, "testing"));
    assert_eq!(link.reply(1, &mut { give_up }).unwrap(), 1_u64.to_le_bytes());
    assert!(link.reply(2, &mut { give_up }).is_err());
}

/// Who reads for all sleeps until the connection has something, so nobody may take that away.
#[test]
fn a_thread_that_sleeps_on_the_connection_learns_of_its_reply() {
    let (link, peer) = open();
    let (done, is_done) = mpsc::channel();
    let link = Arc::new(link);
    let reader = Arc::clone(&link);
    thread::spawn(move || {
        for request in 1..=200 {
            done.send(reply(&reader, request).unwrap()).unwrap();
        }
    });
    for request in 1..=200_u64 {
        while !link.reading.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        answer(&peer, &[request]);
        let begun = Instant::now();
        let body = loop {
            link.exchange_now().unwrap();
            match is_done.try_recv() {
                Ok(body) => break body,
                Err(_) => assert!(begun.elapsed() < WATCHDOG, "the reply to {request} was taken away"),
            }
        };
        assert_eq!(body, request.to_le_bytes());
    }
}
