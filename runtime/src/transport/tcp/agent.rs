//! The progress agent: one thread per process that reads every link to this rank and does what the frames ask for, whatever
//! the rank itself is doing. Never waits for anything but its own sockets and bell.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::epoll::EventFlags;

use super::door::{Door, STRANGERS_FROM};
use super::frame::{Decoder, Kind, Writer};
use super::handshake::Party;
use super::rendezvous::read_lost;
use super::socket::{self, Moved, Poller};
use super::tally::Tally;
use super::wire::{Progress, Wire};
use crate::error::Evidence;

/// Replies of one connection from which on nothing more is read from it until the other side has taken them.
const REPLIES_MAX_BYTES: usize = 4 << 20;
/// Reads of one connection before others get their turn.
const READS_PER_TURN: usize = 8;
/// How soon a frame is tried again that something has stopped which does not last.
const HELD_SLICE: Duration = Duration::from_millis(1);

/// How often a connection is looked at that has sent something, until that is acknowledged.
const ACKNOWLEDGED_SLICE: Duration = Duration::from_secs(1);
/// How soon a rank counts as lost whose link has broken while nobody says how it has ended: at once where the link was cut, and
/// later where it was closed, since whoever knows why may be slow.
const CUT_GRACE: Duration = Duration::from_millis(500);
const CLOSED_GRACE: Duration = Duration::from_secs(5);

const DOOR: u64 = 0;
const BELL: u64 = 1;
const RENDEZVOUS: u64 = 2;
const RANKS_FROM: u64 = 3;

/// What is done when a rank has ended.
pub(crate) type OnLost = Box<dyn Fn(u32, Evidence) + Send>;

struct Agent {
    wire: Arc<Wire>,
    poller: Poller,
    door: Door,
    /// The links of the others, by job rank; grown when a rank opens one.
    ranks: Vec<Option<Connection>>,
    /// What the rendezvous says; `None` once it is gone.
    rendezvous: Option<Decoder>,
    /// Ranks whose links have broken, and when they count as lost.
    broken: Vec<(u32, Instant)>,
    /// Ranks that strangers claim to be.
    claimed: Vec<u32>,
    on_lost: OnLost,
}

/// How a link has ended.
#[derive(Clone, Copy)]
enum Broken {
    /// The other side has closed it, or has sent what makes no sense.
    Closed,
    /// Nothing comes from the other side any more.
    Cut,
}

struct Connection {
    stream: TcpStream,
    decoder: Decoder,
    replies: Vec<u8>,
    /// What the connection is watched for.
    watched: EventFlags,
    /// Its next frame has come and can't be done yet, so nothing more is read.
    is_held: bool,
    /// When something was sent, or looked for last, that may not have been acknowledged yet.
    unacknowledged: Option<Instant>,
}

/// Starts the agent of a process.
pub(crate) fn start(wire: Arc<Wire>, door: Door, rendezvous: Decoder, on_lost: OnLost) -> io::Result<()> {
    let poller = Poller::new()?;
    door.watch(&poller, DOOR)?;
    poller.watch(wire.bell(), BELL)?;
    poller.watch(wire.rendezvous(), RENDEZVOUS)?;
    let mut agent = Agent {
        wire,
        poller,
        door,
        ranks: Vec::new(),
        rendezvous: Some(rendezvous),
        broken: Vec::new(),
        claimed: Vec::new(),
        on_lost,
    };
    thread::Builder::new().name("rma agent".to_owned()).spawn(move || agent.run())?;
    Ok(())
}

impl Agent {
    fn run(&mut self) {
        // What came behind the answer to the join has arrived already, so no descriptor tells of it.
        self.hear_rendezvous();
        loop {
            let (expiry, waiting, held) = (self.door.expire(), self.look_again(), self.try_again());
            let (unacknowledged, broken) = (self.look_for_cuts(), self.believe_lost());
            let timeouts = [expiry, waiting, held, unacknowledged, broken];
            let timeout = timeouts.into_iter().flatten().min();
            self.settle_claims();
            // Without its sockets the process can't take part, which the others see by its silence.
            let Ok(numbers) = self.poller.wait(timeout) else { return };
            // What this rank has done before another could ask about it is answered before the question.
            self.look_again();
            for number in numbers {
                match number {
                    DOOR => self.door.accept(&self.poller),
                    BELL => {
                        let _ = rustix::io::read(self.wire.bell(), &mut [0; 8]);
                    }
                    RENDEZVOUS => self.hear_rendezvous(),
                    stranger if STRANGERS_FROM <= stranger => self.admit(stranger),
                    rank => self.hear((rank - RANKS_FROM) as u32),
                }
            }
        }
    }

    /// Answers requests that had to wait and need not any more.
    fn look_again(&mut self) -> Option<Duration> {
        let (ranks, tally) = (&mut self.ranks, self.wire.tally());
        let mut answered = Vec::new();
        let next = self.wire.look_again(&mut |rank, request, body| {
            if let Some(Some(connection)) = ranks.get_mut(rank as usize) {
                Writer::new(&mut connection.replies, Kind::Reply, request).bytes(body);
                tally.replies_sent.add(1);
                answered.push(rank);
            }
        });
        for rank in answered {
            self.answer(rank);
        }
        next
    }

    /// Tries again what was stopped, and says when to do so next.
    fn try_again(&mut self) -> Option<Duration> {
        let is_held = |connection: &Option<Connection>| {
            connection.as_ref().is_some_and(|connection| connection.is_held)
        };
        let held: Vec<u32> =
            (0..).zip(&self.ranks).filter_map(|(rank, it)| is_held(it).then_some(rank)).collect();
        held.into_iter().for_each(|rank| self.hear(rank));
        self.ranks.iter().any(is_held).then_some(HELD_SLICE)
    }

    /// Forgets claims of strangers that have become known, or have gone.
    fn settle_claims(&mut self) {
        let (door, ranks, wire) = (&self.door, &self.ranks, &self.wire);
        self.claimed.retain(|&rank| {
            let known = ranks.get(rank as usize).is_some_and(Option::is_some);
            let claimed = !known && door.is_claimed(Party::Rank(rank));
            if !known && !claimed {
                wire.is_silent(rank);
            }
            claimed
        });
    }

    fn admit(&mut self, stranger: u64) {
        let (wire, claimed) = (&self.wire, &mut self.claimed);
        // Once it is answered, its proof and what it has to say may be on their way: until that is clear, the rank counts as
        // speaking.
        let heard = self.door.hear(stranger, |party| match party {
            Party::Rank(rank) if wire.has_rank(rank) && !claimed.contains(&rank) => {
                wire.speaks(rank);
                claimed.push(rank);
            }
            _ => {}
        });
        let Some((Party::Rank(rank), stream)) = heard else { return };
        if !self.wire.has_rank(rank) {
            return;
        }
        let at = rank as usize;
        if self.ranks.len() <= at {
            self.ranks.resize_with(at + 1, || None);
        }
        // A rank opens one link. Another one is a mistake, and the first is the one that is in use.
        if self.ranks[at].is_some() {
            return;
        }
        if self.poller.change(&stream, RANKS_FROM + u64::from(rank), EventFlags::IN).is_ok() {
            self.wire.speaks(rank);
            let decoder = Decoder::new();
            let (replies, watched) = (Vec::new(), EventFlags::IN);
            self.ranks[at] =
                Some(Connection { stream, decoder, replies, watched, is_held: false, unacknowledged: None });
            self.hear(rank);
        }
    }

    /// Reads a rank's link and answers on it.
    fn hear(&mut self, rank: u32) {
        let Some(Some(connection)) = self.ranks.get_mut(rank as usize) else { return };
        match connection.serve(&self.wire, rank) {
            Ok(()) => self.answer(rank),
            Err(broken) => self.lose(rank, broken),
        }
    }

    /// Sends a rank the replies that have come together.
    fn answer(&mut self, rank: u32) {
        let Some(Some(connection)) = self.ranks.get_mut(rank as usize) else { return };
        if let Err(broken) = connection.send(&self.poller, RANKS_FROM + u64::from(rank), self.wire.tally()) {
            self.lose(rank, broken);
        }
    }

    fn lose(&mut self, rank: u32, broken: Broken) {
        self.ranks[rank as usize] = None;
        // Of a rank that has said before that it says nothing more the end of the link is no news.
        if !self.wire.is_drained(rank) {
            let grace = match broken {
                Broken::Cut => CUT_GRACE,
                Broken::Closed => CLOSED_GRACE,
            };
            self.broken.push((rank, Instant::now() + grace));
        }
        self.wire.is_silent(rank);
    }

    /// Gives up connections whose other side acknowledges nothing any more, and says when to look again. A connection on which
    /// nothing was sent for a while is none of them, and costs nothing.
    fn look_for_cuts(&mut self) -> Option<Duration> {
        let mut next = None;
        let mut cut = Vec::new();
        for (rank, connection) in (0..).zip(&mut self.ranks) {
            let Some(connection) = connection else { continue };
            let Some(since) = connection.unacknowledged else { continue };
            match ACKNOWLEDGED_SLICE.checked_sub(since.elapsed()) {
                Some(left) if !left.is_zero() => next = Some(next.unwrap_or(left).min(left)),
                _ if socket::is_cut(&connection.stream) => cut.push(rank),
                _ if socket::is_acknowledged(&connection.stream) => connection.unacknowledged = None,
                _ => {
                    connection.unacknowledged = Some(Instant::now());
                    next = Some(next.unwrap_or(ACKNOWLEDGED_SLICE).min(ACKNOWLEDGED_SLICE));
                }
            }
        }
        cut.into_iter().for_each(|rank| self.lose(rank, Broken::Cut));
        next
    }

    /// Notes that ranks are lost whose links have broken for long enough, unless it is known already how they have ended. Says
    /// when the next one's time will be over.
    fn believe_lost(&mut self) -> Option<Duration> {
        let (now, on_lost) = (Instant::now(), &self.on_lost);
        self.broken.retain(|&(rank, deadline)| {
            let waits = now < deadline;
            if !waits {
                on_lost(rank, Evidence::Disconnected);
            }
            waits
        });
        self.broken.iter().map(|(_, deadline)| deadline.saturating_duration_since(now)).min()
    }

    fn hear_rendezvous(&mut self) {
        let Some(decoder) = &mut self.rendezvous else { return };
        let open = loop {
            let understood = loop {
                match decoder.next() {
                    Ok(Some(frame)) if frame.kind == Kind::Lost => match read_lost(frame.body) {
                        Ok((rank, evidence)) => (self.on_lost)(rank, evidence),
                        Err(_) => break false,
                    },
                    Ok(None) => break true,
                    Ok(Some(_)) | Err(_) => break false,
                }
            };
            if !understood {
                break false;
            }
            match socket::read(self.wire.rendezvous(), decoder.room()) {
                Moved::Bytes(len) => decoder.filled(len),
                Moved::Nothing => break true,
                Moved::Closed | Moved::Cut => break false,
            }
        };
        if !open {
            self.rendezvous = None;
            self.wire.lose_rendezvous();
            // A descriptor that stays readable would keep the agent awake.
            self.poller.forget(self.wire.rendezvous());
        }
    }
}

impl Connection {
    /// Reads and does what has arrived.
    fn serve(&mut self, wire: &Wire, rank: u32) -> Result<(), Broken> {
        self.do_frames(wire, rank)?;
        for _ in 0..READS_PER_TURN {
            if self.is_held || REPLIES_MAX_BYTES <= self.replies.len() {
                return Ok(());
            }
            let room = self.decoder.room();
            let most = room.len();
            let read = match socket::read(&self.stream, room) {
                Moved::Bytes(len) => len,
                Moved::Nothing => return Ok(()),
                Moved::Closed => return Err(Broken::Closed),
                Moved::Cut => return Err(Broken::Cut),
            };
            wire.tally().bytes_received.add(read as u64);
            self.decoder.filled(read);
            self.do_frames(wire, rank)?;
            // What left room had no more to give, and is watched.
            if read < most {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Does what the frames that have arrived ask for.
    fn do_frames(&mut self, wire: &Wire, rank: u32) -> Result<(), Broken> {
        self.is_held = false;
        while REPLIES_MAX_BYTES > self.replies.len() {
            let frame = match self.decoder.next() {
                Ok(None) => return Ok(()),
                Ok(Some(frame)) => frame,
                Err(_) => return Err(Broken::Closed),
            };
            let (len, before) = (frame.body.left(), self.replies.len());
            match wire.receive(rank, frame, &mut self.replies) {
                Ok(Progress::Done) => {
                    wire.tally().frames_received.add(1);
                    wire.tally().replies_sent.add(u64::from(before < self.replies.len()));
                }
                Ok(Progress::Later) => {
                    self.decoder.put_back(len);
                    self.is_held = true;
                    return Ok(());
                }
                Err(_) => return Err(Broken::Closed),
            }
        }
        Ok(())
    }

    /// Sends replies, and watches for what the connection waits for now.
    fn send(&mut self, poller: &Poller, number: u64, tally: &Tally) -> Result<(), Broken> {
        while !self.replies.is_empty() {
            match socket::write(&self.stream, &self.replies) {
                Moved::Bytes(len) => {
                    tally.wrote(len);
                    self.unacknowledged.get_or_insert_with(Instant::now);
                    self.replies.drain(..len);
                }
                Moved::Nothing => break,
                Moved::Closed => return Err(Broken::Closed),
                Moved::Cut => return Err(Broken::Cut),
            }
        }
        let wanted = match (self.replies.len(), self.is_held) {
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
}
