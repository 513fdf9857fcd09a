//! The rendezvous: where ranks learn where the others are, and how they have ended. Never sees what ranks send each other.
//!
//! It runs in the launcher, as a thread. Every rank keeps one connection to it for as long as it lives. A rank that ends says
//! how; of one whose connection closes without that, the launcher knows more, or else the closing is the evidence.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFlags};

use super::door::{Door, STRANGERS_FROM};
use super::frame::{Decoder, Frame, Kind, Malformed, Writer};
use super::handshake::{Party, Secret};
use super::link::{Cut, Pause, connect};
use super::socket::{self, Moved, Poller};
use crate::error::Evidence;

/// What the launcher gets to say how a process has ended whose connection has closed.
const EVIDENCE_GRACE: Duration = Duration::from_millis(500);

const DOOR: u64 = 0;
const BELL: u64 = 1;
const RANKS_FROM: u64 = 2;

/// The rank shares its memory with no other one.
pub(crate) const NODE_ALONE: u32 = u32::MAX;

/// Where a rank is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Ranks of one node share memory. [`NODE_ALONE`] is not a node.
    pub(crate) node: u32,
    /// `None` for a rank that has ended before it joined.
    pub(crate) address: Option<SocketAddr>,
}

/// The rendezvous of one job, as its launcher holds it. It ends with this value.
pub(crate) struct Rendezvous {
    shared: Arc<Shared>,
    secret: Secret,
    address: SocketAddr,
}

struct Shared {
    ends: Mutex<Ends>,
    /// Told when an end has become known.
    noted: Condvar,
    bell: OwnedFd,
}

#[derive(Default)]
struct Ends {
    /// In the order in which they became known.
    known: Vec<(u32, Evidence)>,
    /// Ends that the launcher has seen; what the rank itself has said before counts more.
    seen: Vec<(u32, Evidence, Instant)>,
    over: bool,
}

impl Ends {
    fn of(&self, rank: u32) -> Option<Evidence> {
        self.known.iter().find(|(ended, _)| *ended == rank).map(|(_, evidence)| *evidence)
    }

    /// The first evidence about a rank counts.
    fn note(&mut self, rank: u32, evidence: Evidence) {
        if self.of(rank).is_none() {
            self.known.push((rank, evidence));
        }
    }
}

impl Shared {
    fn ends(&self) -> MutexGuard<'_, Ends> {
        // Nothing panics while the list is inconsistent.
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self) {
        // Fails only when the counter is full, and then the bell has been rung.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }
}

impl Rendezvous {
    /// Listens at an address for the ranks of a job of this size.
    pub(crate) fn open(address: SocketAddr, size: u32) -> io::Result<Rendezvous> {
        let secret = Secret::generate()?;
        let door = Door::open(address, secret.clone(), Party::Rendezvous, size)?;
        let address = door.address()?;
        let bell = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let shared = Arc::new(Shared { ends: Mutex::default(), noted: Condvar::new(), bell });
        let poller = Poller::new()?;
        door.watch(&poller, DOOR)?;
        poller.watch(&shared.bell, BELL)?;
        let mut server = Server {
            shared: Arc::clone(&shared),
            poller,
            door,
            ranks: (0..size).map(|_| Seat::default()).collect(),
        };
        thread::Builder::new().name("rendezvous".to_owned()).spawn(move || server.run())?;
        Ok(Rendezvous { shared, secret, address })
    }

    pub(crate) fn secret(&self) -> &Secret {
        &self.secret
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Tells all ranks how the process of one has ended, unless the rank itself has said how it ended.
    pub(crate) fn end(&self, rank: u32, evidence: Evidence) {
        let mut ends = self.shared.ends();
        ends.seen.push((rank, evidence, Instant::now()));
        self.shared.ring();
        // So that the first failure is known when the last process has ended.
        while ends.of(rank).is_none() {
            ends = match self.shared.noted.wait_timeout(ends, 2 * EVIDENCE_GRACE) {
                Ok((ends, outcome)) if !outcome.timed_out() => ends,
                _ => return,
            };
        }
    }

    /// The rank whose failure came first, if one has failed.
    pub(crate) fn first_failure(&self) -> Option<u32> {
        let ends = self.shared.ends();
        ends.known.iter().find(|(_, evidence)| evidence.is_failure()).map(|(rank, _)| *rank)
    }
}

impl Drop for Rendezvous {
    fn drop(&mut self) {
        self.shared.ends().over = true;
        self.shared.ring();
    }
}

/// What the rendezvous has of one rank.
#[derive(Default)]
struct Seat {
    place: Option<Place>,
    connection: Option<Connection>,
    /// When its connection closed without a word.
    closed: Option<Instant>,
}

struct Connection {
    stream: TcpStream,
    decoder: Decoder,
    out: Vec<u8>,
    /// How many of the known ends the rank has been told.
    told: usize,
    knows_table: bool,
}

struct Server {
    shared: Arc<Shared>,
    poller: Poller,
    door: Door,
    ranks: Vec<Seat>,
}

impl Server {
    fn run(&mut self) {
        loop {
            let timeout = [self.door.expire(), self.overdue(), self.believe()].into_iter().flatten().min();
            let Ok(numbers) = self.poller.wait(timeout) else { return };
            for number in numbers {
                match number {
                    DOOR => self.door.accept(&self.poller),
                    BELL => {
                        let _ = rustix::io::read(&self.shared.bell, &mut [0; 8]);
                    }
                    stranger if STRANGERS_FROM <= stranger => self.admit(stranger),
                    rank => self.hear((rank - RANKS_FROM) as usize),
                }
            }
            if self.shared.ends().over {
                return;
            }
            self.tell();
        }
    }

    /// Notes ranks whose connections have been closed for long enough, and says when the next one will be.
    fn overdue(&mut self) -> Option<Duration> {
        let now = Instant::now();
        let mut next = None;
        let mut late = Vec::new();
        for (rank, seat) in self.ranks.iter_mut().enumerate() {
            let Some(closed) = seat.closed else { continue };
            match (closed + EVIDENCE_GRACE).checked_duration_since(now) {
                Some(left) if !left.is_zero() => next = Some(next.unwrap_or(left).min(left)),
                _ => {
                    seat.closed = None;
                    late.push(rank as u32);
                }
            }
        }
        if !late.is_empty() {
            for rank in late {
                self.shared.ends().note(rank, Evidence::Disconnected);
            }
            self.tell();
        }
        next
    }

    /// Notes the ends that the launcher has seen of ranks that can't say anything any more, and says when to look again.
    fn believe(&mut self) -> Option<Duration> {
        let seen = std::mem::take(&mut self.shared.ends().seen);
        if seen.is_empty() {
            return None;
        }
        let mut kept = Vec::new();
        for (rank, evidence, since) in seen {
            self.hear(rank as usize);
            let speaks = self.ranks.get(rank as usize).is_some_and(|seat| seat.connection.is_some());
            // The process that the launcher has seen may have been a shell around a rank that lives on.
            match speaks && since.elapsed() < EVIDENCE_GRACE {
                true => kept.push((rank, evidence, since)),
                false => self.shared.ends().note(rank, evidence),
            }
        }
        let next = kept.iter().map(|(_, _, since)| EVIDENCE_GRACE.saturating_sub(since.elapsed())).min();
        self.shared.ends().seen.append(&mut kept);
        self.shared.noted.notify_all();
        self.tell();
        next
    }

    fn admit(&mut self, stranger: u64) {
        let Some((party, stream)) = self.door.hear(stranger, |_| ()) else { return };
        let Party::Rank(rank) = party else { return };
        let Some(seat) = self.ranks.get_mut(rank as usize) else { return };
        if seat.connection.is_some() || seat.closed.is_some() || self.shared.ends().of(rank).is_some() {
            let mut refusal = Vec::new();
            Writer::new(&mut refusal, Kind::Reply, 0)
                .text(&format!("rank {rank} has joined already: a process enters its job once"));
            // Whoever it is finds its connection closed in any case.
            let _ = socket::write(&stream, &refusal);
            return;
        }
        // The number of a stranger is not one of a rank, so the descriptor is watched under a new one.
        if self
            .poller
            .change(&stream, RANKS_FROM + u64::from(rank), rustix::event::epoll::EventFlags::IN)
            .is_ok()
        {
            let decoder = Decoder::new();
            seat.connection =
                Some(Connection { stream, decoder, out: Vec::new(), told: 0, knows_table: false });
            self.hear(rank as usize);
        }
    }

    fn hear(&mut self, rank: usize) {
        let size = self.ranks.len() as u32;
        let Some(seat) = self.ranks.get_mut(rank) else { return };
        let Some(connection) = &mut seat.connection else { return };
        let open = loop {
            match socket::read(&connection.stream, connection.decoder.room()) {
                Moved::Bytes(len) => connection.decoder.filled(len),
                Moved::Nothing => break true,
                Moved::Closed | Moved::Cut => break false,
            }
            let understood = loop {
                match connection.decoder.next() {
                    Ok(None) => break true,
                    Ok(Some(frame)) => match understand(frame, size) {
                        Ok(Word::Joined(place)) => seat.place = Some(place),
                        Ok(Word::Ended(evidence)) => self.shared.ends().note(rank as u32, evidence),
                        Ok(Word::Refused(why)) => {
                            Writer::new(&mut connection.out, Kind::Reply, 0).text(&why);
                        }
                        Err(_) => break false,
                    },
                    Err(_) => break false,
                }
            };
            if !understood {
                break false;
            }
        };
        if !open {
            seat.connection = None;
            if self.shared.ends().of(rank as u32).is_none() {
                seat.closed = Some(Instant::now());
            }
        }
    }

    /// Tells every rank what it does not know yet.
    fn tell(&mut self) {
        let known = self.shared.ends().known.clone();
        let ended = |rank: usize| known.iter().any(|(ended, _)| *ended as usize == rank);
        let complete = self.ranks.iter().enumerate().all(|(rank, seat)| seat.place.is_some() || ended(rank));
        let needed = self.ranks.iter().any(|seat| {
            seat.place.is_some() && seat.connection.as_ref().is_some_and(|connection| !connection.knows_table)
        });
        let table = match complete && needed {
            false => None,
            true => {
                let mut table = Vec::new();
                let absent = Place { node: NODE_ALONE, address: None };
                let mut writer = Writer::new(&mut table, Kind::Table, 0);
                for seat in &self.ranks {
                    let place = seat.place.as_ref().unwrap_or(&absent);
                    let address = place.address.map_or(String::new(), |address| address.to_string());
                    writer = writer.u32(place.node).text(&address);
                }
                drop(writer);
                Some(table)
            }
        };
        for seat in &mut self.ranks {
            let Some(connection) = &mut seat.connection else { continue };
            for (rank, evidence) in &known[connection.told..] {
                Writer::new(&mut connection.out, Kind::Lost, 0).u32(*rank).u32(evidence.code());
            }
            connection.told = known.len();
            if let Some(table) = &table
                && seat.place.is_some()
                && !connection.knows_table
            {
                connection.knows_table = true;
                connection.out.extend_from_slice(table);
            }
            // What a rank does not take now is a few bytes, and goes with the next news or when it is seen to read again.
            while !connection.out.is_empty() {
                match socket::write(&connection.stream, &connection.out) {
                    Moved::Bytes(len) => {
                        connection.out.drain(..len);
                    }
                    Moved::Nothing | Moved::Closed | Moved::Cut => break,
                }
            }
        }
    }
}

/// What a rank says to the rendezvous.
enum Word {
    Joined(Place),
    Ended(Evidence),
    Refused(String),
}

fn understand(frame: Frame<'_>, size: u32) -> Result<Word, Malformed> {
    let Frame { kind, request: _, mut body } = frame;
    let word = match kind {
        Kind::Join => {
            let theirs = body.u32()?;
            let node = body.u32()?;
            let address = body.text()?.parse().map_err(|_| Malformed("an address is none"))?;
            match theirs == size {
                true => Word::Joined(Place { node, address: Some(address) }),
                false => Word::Refused(format!("RMA_SIZE is {theirs}, but the job has {size} ranks")),
            }
        }
        Kind::Ended => Word::Ended(evidence(body.u32()?)?),
        _ => return Err(Malformed("a rank says to the rendezvous what is for other ranks")),
    };
    body.end()?;
    Ok(word)
}

pub(crate) fn evidence(code: u32) -> Result<Evidence, Malformed> {
    Evidence::from_code(code).ok_or(Malformed("an end of a kind that does not exist"))
}

/// What a rank has after it has joined.
pub(crate) struct Joined {
    pub(crate) stream: TcpStream,
    pub(crate) decoder: Decoder,
    pub(crate) table: Vec<Place>,
    /// Ranks that have ended already.
    pub(crate) lost: Vec<(u32, Evidence)>,
}

/// Why a rank could not join.
#[derive(Debug)]
pub(crate) enum NotJoined {
    Cut(Cut),
    /// The rendezvous said why.
    Refused(String),
    Malformed(Malformed),
}

/// Joins the job: says where this rank listens, and waits until all ranks have joined or ended.
pub(crate) fn join(
    rendezvous: SocketAddr,
    secret: &Secret,
    rank: u32,
    size: u32,
    mine: &Place,
    pause: Pause<'_>,
) -> Result<Joined, NotJoined> {
    let stream =
        connect(rendezvous, secret, Party::Rank(rank), Party::Rendezvous, pause).map_err(NotJoined::Cut)?;
    let mut hello = Vec::new();
    let address = mine.address.map_or(String::new(), |address| address.to_string());
    Writer::new(&mut hello, Kind::Join, 0).u32(size).u32(mine.node).text(&address);
    let gone = || NotJoined::Cut(Cut::Gone("the rendezvous has closed the connection"));
    match socket::write(&stream, &hello) {
        Moved::Bytes(len) if len == hello.len() => {}
        _ => return Err(gone()),
    }
    let mut decoder = Decoder::new();
    let mut lost = Vec::new();
    loop {
        while let Some(frame) = decoder.next().map_err(NotJoined::Malformed)? {
            let Frame { kind, request: _, mut body } = frame;
            match kind {
                Kind::Lost => lost.push(read_lost(body).map_err(NotJoined::Malformed)?),
                Kind::Reply => {
                    return Err(NotJoined::Refused(body.text().map_err(NotJoined::Malformed)?.to_owned()));
                }
                Kind::Table => {
                    let mut read = || {
                        let table = (0..size)
                            .map(|_| {
                                let node = body.u32()?;
                                let address = match body.text()? {
                                    "" => None,
                                    text => Some(text.parse().map_err(|_| Malformed("an address is none"))?),
                                };
                                Ok(Place { node, address })
                            })
                            .collect::<Result<Vec<_>, _>>()?;
                        body.end()?;
                        Ok(table)
                    };
                    let table = read().map_err(NotJoined::Malformed)?;
                    return Ok(Joined { stream, decoder, table, lost });
                }
                _ => return Err(NotJoined::Malformed(Malformed("the rendezvous says what is for ranks"))),
            }
        }
        match socket::read(&stream, decoder.room()) {
            Moved::Bytes(len) => decoder.filled(len),
            Moved::Nothing => {
                socket::wait(&stream, PollFlags::IN, pause().map_err(|error| NotJoined::Cut(error.into()))?);
            }
            Moved::Closed | Moved::Cut => return Err(gone()),
        }
    }
}

/// Reads who has ended, and how.
pub(crate) fn read_lost(mut body: super::frame::Body<'_>) -> Result<(u32, Evidence), Malformed> {
    let lost = (body.u32()?, evidence(body.u32()?)?);
    body.end()?;
    Ok(lost)
}
