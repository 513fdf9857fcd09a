//! The server half of a process: the links of other ranks to this one, the door, and what the rendezvous says. It does what the
//! frames ask for. Never waits, and never decides when to look: the agent does, and whoever waits for something, see `driving`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::connection::{Broken, Connection, Receipt};
use super::door::{Door, STRANGERS_FROM};
use super::frame::{Decoder, Kind};
use super::handshake::Party;
use super::rendezvous::read_lost;
use super::socket::{self, Moved, Poller};
use super::wire::Wire;
use crate::error::Evidence;

/// Reads of one connection before others get their turn.
const READS_PER_TURN: usize = 8;
/// Looks at the connection that was the last to bring something, before all are looked at.
const LOOKS_AT_LATEST: u32 = 3;
/// How soon a frame is tried again that something has stopped which does not last.
const HELD_SLICE: Duration = Duration::from_millis(1);
/// How soon a rank counts as lost whose link has broken while nobody says how it has ended: at once where the link was cut, and
/// later where it was closed, since whoever knows why may be slow.
const CUT_GRACE: Duration = Duration::from_millis(500);
const CLOSED_GRACE: Duration = Duration::from_secs(5);

const DOOR: u64 = 0;
/// What wakes the agent, which alone silences it.
pub(super) const BELL: u64 = 1;
const RENDEZVOUS: u64 = 2;
const RANKS_FROM: u64 = 3;

/// What is done when a rank has ended.
pub(crate) type OnLost = Box<dyn Fn(u32, Evidence) + Send>;

/// See the module.
pub(super) struct Server {
    poller: Arc<Poller>,
    door: Door,
    /// The links of the others, by job rank; grown when a rank opens one.
    ranks: Vec<Option<Connection>>,
    /// The rank whose link was the last to bring something: the likeliest to bring more.
    latest: Option<u32>,
    looks: u32,
    /// Whether a connection has a frame that can't be done yet.
    has_held: bool,
    /// What the rendezvous says; `None` once it is gone.
    rendezvous: Option<Decoder>,
    /// Ranks whose links have broken, and when they count as lost.
    broken: Vec<(u32, Instant)>,
    /// Ranks that strangers claim to be.
    claimed: Vec<u32>,
    on_lost: OnLost,
}

impl Server {
    pub(super) fn new(
        wire: &Wire,
        poller: &Arc<Poller>,
        door: Door,
        rendezvous: Decoder,
        on_lost: OnLost,
    ) -> std::io::Result<Server> {
        door.watch(poller, DOOR)?;
        poller.watch(wire.bell(), BELL)?;
        poller.watch(wire.rendezvous(), RENDEZVOUS)?;
        let mut server = Server {
            poller: Arc::clone(poller),
            door,
            ranks: Vec::new(),
            latest: None,
            looks: 0,
            has_held: false,
            rendezvous: Some(rendezvous),
            broken: Vec::new(),
            claimed: Vec::new(),
            on_lost,
        };
        // What came behind the answer to the join has arrived already, so no descriptor tells of it.
        server.hear_rendezvous(wire);
        Ok(server)
    }

    /// Looks at the sockets once and does what there is to do. Whether there was something. Of several looks one is at all
    /// sockets, and the others are at the one that was the last to bring something; with `all` this one is.
    pub(super) fn turn(&mut self, wire: &Wire, rung: &AtomicBool, all: bool) -> std::io::Result<bool> {
        let mut did = self.look_again_if(wire, rung);
        if self.has_held {
            self.try_again(wire, rung);
        }
        self.looks = if all { 0 } else { (self.looks + 1) % (LOOKS_AT_LATEST + 1) };
        match self.latest.filter(|_| self.looks != 0) {
            // This saves the question which of them has something.
            Some(rank) => did |= self.hear(wire, rank, rung),
            None => {
                for number in self.poller.wait(Some(Duration::ZERO))? {
                    did |= self.serve(wire, number, rung);
                }
            }
        }
        if did && !self.claimed.is_empty() {
            self.settle_claims(wire);
        }
        Ok(did)
    }

    fn serve(&mut self, wire: &Wire, number: u64, rung: &AtomicBool) -> bool {
        match number {
            DOOR => self.door.accept(&self.poller),
            BELL => return self.look_again_if(wire, rung),
            RENDEZVOUS => self.hear_rendezvous(wire),
            stranger if STRANGERS_FROM <= stranger => self.admit(wire, stranger, rung),
            rank => return self.hear(wire, (rank - RANKS_FROM) as u32, rung),
        }
        true
    }

    /// What only time asks for; says when to look again.
    pub(super) fn chores(&mut self, wire: &Wire, rung: &AtomicBool) -> Option<Duration> {
        self.settle_claims(wire);
        let (expiry, waiting) = (self.door.expire(), self.look_again(wire));
        self.try_again(wire, rung);
        let held = self.has_held.then_some(HELD_SLICE);
        let (unacknowledged, broken) = (self.look_for_cuts(wire), self.believe_lost());
        [expiry, waiting, held, unacknowledged, broken].into_iter().flatten().min()
    }

    /// Answers requests that had to wait and need not any more, if something has been done here that they may wait for.
    pub(super) fn look_again_if(&mut self, wire: &Wire, rung: &AtomicBool) -> bool {
        // Acquire: pairs with the Release of whoever rings, so that what it has done before is seen.
        let is_rung = rung.load(Ordering::Relaxed) && rung.swap(false, Ordering::Acquire);
        if is_rung {
            self.look_again(wire);
        }
        is_rung
    }

    /// Answers requests that had to wait and need not any more. Says when to look again in any case.
    fn look_again(&mut self, wire: &Wire) -> Option<Duration> {
        let ranks = &mut self.ranks;
        let mut answered = Vec::new();
        let next = wire.look_again(&mut |rank, request, body| {
            if let Some(Some(connection)) = ranks.get_mut(rank as usize) {
                connection.reply(request, body, wire.tally());
                answered.push(rank);
            }
        });
        for rank in answered {
            self.answer(wire, rank);
        }
        next
    }

    /// Tries again what was stopped.
    fn try_again(&mut self, wire: &Wire, rung: &AtomicBool) {
        if self.has_held {
            let is_held = |it: &Option<Connection>| it.as_ref().is_some_and(|it| it.is_held);
            let held = (0..).zip(&self.ranks).filter_map(|(rank, it)| is_held(it).then_some(rank));
            let held: Vec<u32> = held.collect();
            self.has_held = false;
            for rank in held {
                self.hear(wire, rank, rung);
            }
        }
    }

    /// Forgets claims of strangers that have become known, or have gone.
    fn settle_claims(&mut self, wire: &Wire) {
        let (door, ranks) = (&self.door, &self.ranks);
        self.claimed.retain(|&rank| {
            let known = ranks.get(rank as usize).is_some_and(Option::is_some);
            let claimed = !known && door.is_claimed(Party::Rank(rank));
            if !known && !claimed {
                wire.is_silent(rank);
            }
            claimed
        });
    }

    fn admit(&mut self, wire: &Wire, stranger: u64, rung: &AtomicBool) {
        let claimed = &mut self.claimed;
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
        if !wire.has_rank(rank) {
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
        if let Ok(connection) = Connection::new(stream, &self.poller, RANKS_FROM + u64::from(rank)) {
            wire.speaks(rank);
            self.ranks[at] = Some(connection);
            self.hear(wire, rank, rung);
        }
    }

    /// Reads a rank's link, does what has arrived and answers. Whether anything had.
    fn hear(&mut self, wire: &Wire, rank: u32, rung: &AtomicBool) -> bool {
        let mut did = false;
        let outcome = self.hear_frames(wire, rank, rung, &mut did);
        match outcome {
            Ok(()) if !did && !self.has_replies(rank) => {}
            Ok(()) => self.answer(wire, rank),
            Err(broken) => {
                self.lose(wire, rank, broken);
                did = true;
            }
        }
        if did {
            // What waits may have waited for what these frames did.
            if wire.has_waiting() {
                self.look_again(wire);
            }
            self.latest = Some(rank).filter(|_| self.connection(rank).is_some());
        }
        did
    }

    fn connection(&mut self, rank: u32) -> Option<&mut Connection> {
        self.ranks.get_mut(rank as usize).and_then(Option::as_mut)
    }

    fn has_replies(&mut self, rank: u32) -> bool {
        self.connection(rank).is_some_and(|connection| connection.has_replies())
    }

    fn hear_frames(
        &mut self,
        wire: &Wire,
        rank: u32,
        rung: &AtomicBool,
        did: &mut bool,
    ) -> Result<(), Broken> {
        let Some(connection) = self.connection(rank) else { return Ok(()) };
        // Those that were stopped before.
        *did |= connection.do_frames(wire, rank)?;
        for _ in 0..READS_PER_TURN {
            let Some(connection) = self.connection(rank).filter(|it| it.takes_requests()) else { break };
            let Some(was_all) = connection.read(wire.tally())? else { break };
            *did = true;
            // What this rank has done before another could ask about it is answered before the question.
            self.look_again_if(wire, rung);
            let Some(connection) = self.connection(rank) else { break };
            connection.do_frames(wire, rank)?;
            if was_all {
                break;
            }
        }
        self.has_held |= self.connection(rank).is_some_and(|connection| connection.is_held);
        Ok(())
    }

    /// Sends a rank the replies that have come together.
    fn answer(&mut self, wire: &Wire, rank: u32) {
        let Some(Some(connection)) = self.ranks.get_mut(rank as usize) else { return };
        if let Err(broken) = connection.send(&self.poller, RANKS_FROM + u64::from(rank), wire.tally()) {
            self.lose(wire, rank, broken);
        }
    }

    fn lose(&mut self, wire: &Wire, rank: u32, broken: Broken) {
        self.ranks[rank as usize] = None;
        self.latest = self.latest.filter(|&latest| latest != rank);
        // Of a rank that has said before that it says nothing more the end of the link is no news.
        if !wire.is_drained(rank) {
            let grace = match broken {
                Broken::Cut => CUT_GRACE,
                Broken::Closed => CLOSED_GRACE,
            };
            self.broken.push((rank, Instant::now() + grace));
        }
        wire.is_silent(rank);
    }

    /// Gives up connections whose other side acknowledges nothing any more, and says when to look again.
    fn look_for_cuts(&mut self, wire: &Wire) -> Option<Duration> {
        let mut next: Option<Duration> = None;
        let mut cut = Vec::new();
        for (rank, connection) in (0..).zip(&mut self.ranks) {
            match connection.as_mut().map(Connection::look_for_receipt) {
                None | Some(Receipt::Known) => {}
                Some(Receipt::Expected(slice)) => next = Some(next.unwrap_or(slice).min(slice)),
                Some(Receipt::Missing) => cut.push(rank),
            }
        }
        cut.into_iter().for_each(|rank| self.lose(wire, rank, Broken::Cut));
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

    fn hear_rendezvous(&mut self, wire: &Wire) {
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
            match socket::read(wire.rendezvous(), decoder.room()) {
                Moved::Bytes(len) => decoder.filled(len),
                Moved::Nothing => break true,
                Moved::Closed | Moved::Cut => break false,
            }
        };
        if !open {
            self.rendezvous = None;
            wire.lose_rendezvous();
            // A descriptor that stays readable would keep the agent awake.
            self.poller.forget(wire.rendezvous());
        }
    }
}
