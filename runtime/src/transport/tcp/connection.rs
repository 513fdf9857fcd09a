//! A connection that another rank has opened to this one: requests come in, replies go out. Never blocks, and never looks into a
//! request.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::event::epoll::EventFlags;

use super::frame::{Decoder, Kind, Writer};
use super::socket::{self, Moved, Poller};
use super::tally::Tally;
use super::wire::{Progress, Wire};

/// Replies of one connection from which on nothing more is read from it until the other side has taken them.
const REPLIES_MAX_BYTES: usize = 4 << 20;
/// Replies that are sent before the next request is done, so that the other side has something to do meanwhile.
const REPLIES_MANY_BYTES: usize = 64 << 10;
/// How often a connection is looked at that has sent something, until that is acknowledged.
const ACKNOWLEDGED_SLICE: Duration = Duration::from_secs(1);

/// How a link has ended.
#[derive(Clone, Copy)]
pub(super) enum Broken {
    /// The other side has closed it, or has sent what makes no sense.
    Closed,
    /// Nothing comes from the other side any more.
    Cut,
}

/// What is known about the last bytes that were sent.
pub(super) enum Receipt {
    /// They have arrived, or there were none.
    Known,
    /// Look again after so long.
    Expected(Duration),
    /// The link counts as cut.
    Missing,
}

/// See the module.
pub(super) struct Connection {
    stream: TcpStream,
    decoder: Decoder,
    replies: Replies,
    /// What the connection is watched for.
    watched: EventFlags,
    /// Its next frame has come and can't be done yet, so nothing more is read.
    pub(super) is_held: bool,
    /// When something was sent, or looked for last, that may not have been acknowledged yet.
    unacknowledged: Option<Instant>,
}

#[derive(Default)]
struct Replies {
    bytes: Vec<u8>,
    /// How much of them has been sent.
    sent: usize,
}

impl Replies {
    fn left(&self) -> usize {
        self.bytes.len() - self.sent
    }
}

impl Connection {
    /// Takes a connection over that the poller watches already; from now on under this number.
    pub(super) fn new(stream: TcpStream, poller: &Poller, number: u64) -> std::io::Result<Connection> {
        poller.change(&stream, number, EventFlags::IN)?;
        Ok(Connection {
            stream,
            decoder: Decoder::new(),
            replies: Replies::default(),
            watched: EventFlags::IN,
            is_held: false,
            unacknowledged: None,
        })
    }

    /// Whether requests can be taken now.
    pub(super) fn takes_requests(&self) -> bool {
        !self.is_held && self.replies.left() < REPLIES_MAX_BYTES
    }

    /// Reads what has arrived; `None` if nothing has. Says whether that was all.
    pub(super) fn read(&mut self, tally: &Tally) -> Result<Option<bool>, Broken> {
        let room = self.decoder.room();
        let most = room.len();
        match socket::read(&self.stream, room) {
            Moved::Bytes(len) => {
                tally.bytes_received.add(len as u64);
                self.decoder.filled(len);
                // What left room had no more to give.
                Ok(Some(len < most))
            }
            Moved::Nothing => Ok(None),
            Moved::Closed => Err(Broken::Closed),
            Moved::Cut => Err(Broken::Cut),
        }
    }

    /// Whether something is left to be sent.
    pub(super) fn has_replies(&self) -> bool {
        self.replies.left() != 0
    }

    /// Does what the frames that have arrived ask for. Whether there was one that could be done.
    pub(super) fn do_frames(&mut self, wire: &Wire, rank: u32) -> Result<bool, Broken> {
        self.is_held = false;
        let mut did = false;
        while self.replies.left() < REPLIES_MAX_BYTES {
            let frame = match self.decoder.next() {
                Ok(None) => break,
                Ok(Some(frame)) => frame,
                Err(_) => return Err(Broken::Closed),
            };
            let (len, before) = (frame.body.left(), self.replies.bytes.len());
            match wire.receive(rank, frame, &mut self.replies.bytes) {
                Ok(Progress::Done) => {
                    did = true;
                    wire.tally().frames_received.add(1);
                    wire.tally().replies_sent.add(u64::from(before < self.replies.bytes.len()));
                }
                Ok(Progress::Later) => {
                    self.decoder.put_back(len);
                    self.is_held = true;
                    break;
                }
                Err(_) => return Err(Broken::Closed),
            }
            if REPLIES_MANY_BYTES <= self.replies.left() {
                self.push(wire.tally())?;
            }
        }
        Ok(did)
    }

    /// Adds a reply to those that are to be sent.
    pub(super) fn reply(&mut self, request: u64, body: &[u8], tally: &Tally) {
        Writer::new(&mut self.replies.bytes, Kind::Reply, request).bytes(body);
        tally.replies_sent.add(1);
    }

    /// Gives the connection as many replies as it takes.
    fn push(&mut self, tally: &Tally) -> Result<(), Broken> {
        let Replies { bytes, sent } = &mut self.replies;
        while *sent < bytes.len() {
            match socket::write(&self.stream, &bytes[*sent..]) {
                Moved::Bytes(len) => {
                    tally.wrote(len);
                    self.unacknowledged.get_or_insert_with(Instant::now);
                    *sent += len;
                }
                Moved::Nothing => break,
                Moved::Closed => return Err(Broken::Closed),
                Moved::Cut => return Err(Broken::Cut),
            }
        }
        if *sent == bytes.len() {
            bytes.clear();
            *sent = 0;
            // What a long reply took is given back.
            bytes.shrink_to(4 * REPLIES_MANY_BYTES);
        } else if REPLIES_MAX_BYTES <= *sent {
            bytes.drain(..*sent);
            *sent = 0;
        }
        Ok(())
    }

    /// Sends replies, and watches for what the connection waits for now.
    pub(super) fn send(&mut self, poller: &Poller, number: u64, tally: &Tally) -> Result<(), Broken> {
        self.push(tally)?;
        let wanted = match (self.replies.left(), self.is_held) {
            (0, false) => EventFlags::IN,
            (0, true) => EventFlags::empty(),
            (few, false) if few < REPLIES_MAX_BYTES => EventFlags::IN | EventFlags::OUT,
            _ => EventFlags::OUT,
        };
        if wanted == self.watched {
            return Ok(());
        }
        self.watched = wanted;
        poller.change(&self.stream, number, wanted).map_err(|_| Broken::Closed)
    }

    /// Looks whether the other side's system has acknowledged what was sent. A connection on which nothing was sent for a while
    /// costs nothing.
    pub(super) fn look_for_receipt(&mut self) -> Receipt {
        let Some(since) = self.unacknowledged else { return Receipt::Known };
        match ACKNOWLEDGED_SLICE.checked_sub(since.elapsed()) {
            Some(left) if !left.is_zero() => Receipt::Expected(left),
            _ if socket::is_cut(&self.stream) => Receipt::Missing,
            _ if socket::is_acknowledged(&self.stream) => {
                self.unacknowledged = None;
                Receipt::Known
            }
            _ => {
                self.unacknowledged = Some(Instant::now());
                Receipt::Expected(ACKNOWLEDGED_SLICE)
            }
        }
    }
}
