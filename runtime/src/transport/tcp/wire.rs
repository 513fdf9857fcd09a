//! What a process of the job has to reach those that share no memory with it: where they are, its links to them, and what they
//! have sent. Never waits, except where a caller's pause is asked.

use std::collections::HashMap;
use std::io;
use std::net::TcpStream;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rustix::event::EventfdFlags;

use super::driving::Driving;
use super::frame::{Body, DATA_MAX_BYTES, Frame, Kind, Malformed, Writer};
use super::handshake::{Party, Secret};
use super::link::{Cut, Link, Pause};
use super::mailbox::{Address, Cause, GivenUp, Mailbox};
use super::rendezvous::{NODE_ALONE, Place};
use super::socket;
use super::tally::Tally;
use crate::error::Evidence;
use crate::transport::shm::segment::Segment;

/// Nothing has come from the rank, or nothing will any more.
const SILENT: u8 = 0;
/// The rank has a link to this one.
const SPEAKING: u8 = 1;

/// Hears what a rank says.
type Hearing = dyn Fn(Body<'_>) -> Result<(), Malformed> + Send + Sync;

/// What others can ask and tell about the waits of this rank, which this module does not understand.
pub(crate) struct Waits {
    /// Says what this rank waits for.
    pub(crate) sight: Box<dyn Fn() -> Vec<u8> + Send + Sync>,
    /// Hears that two members of a team sit in different collective calls.
    pub(crate) accused: Box<Hearing>,
}

/// See the module.
pub(crate) struct Wire {
    me: u32,
    secret: Secret,
    places: Vec<Place>,
    has_mapped_peers: bool,
    links: Vec<OnceLock<Box<Link>>>,
    /// Whether each rank may have sent what this one has not read yet.
    speaking: Vec<AtomicU8>,
    mailbox: Mailbox,
    segment: Arc<Segment>,
    bell: OwnedFd,
    rendezvous: TcpStream,
    rendezvous_is_gone: AtomicBool,
    waits: Waits,
    services: Mutex<HashMap<u64, Arc<dyn Service>>>,
    /// Whether a service may have something that has to wait.
    has_waiting: AtomicBool,
    driving: OnceLock<Arc<Driving>>,
    tally: Arc<Tally>,
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It is done, or kept.
    Done,
    /// Something that does not last is in its way: it is to be given again soon, before all that its sender has sent behind it.
    Later,
}

/// What other ranks can ask of this one by frames of [`Kind::Service`]. The agent calls it, so it never waits.
pub(crate) trait Service: Send + Sync {
    /// Does what a frame of a rank of the job asks for, and writes the reply, unless that has to come later.
    fn serve(
        &self,
        from: u32,
        request: u64,
        body: Body<'_>,
        replies: &mut Vec<u8>,
    ) -> Result<Progress, Malformed>;

    /// Looks again at what had to wait; `answer` takes a reply: to whom, to which request, and its body.
    fn look_again(&self, answer: &mut dyn FnMut(u32, u64, &[u8]));

    /// How soon it wants to look again without being told to.
    fn look_again_after(&self) -> Option<Duration>;

    /// How many of its collective calls this rank has come to, if it has such.
    fn meetings(&self) -> Option<u64> {
        None
    }
}

impl Wire {
    pub(crate) fn new(
        me: u32,
        secret: Secret,
        places: Vec<Place>,
        segment: Arc<Segment>,
        rendezvous: TcpStream,
        waits: Waits,
    ) -> io::Result<Wire> {
        let own = places[me as usize].node;
        let on_node = places.iter().filter(|place| own != NODE_ALONE && place.node == own).count();
        Ok(Wire {
            me,
            has_mapped_peers: 1 < on_node,
            secret,
            links: places.iter().map(|_| OnceLock::new()).collect(),
            speaking: places.iter().map(|_| AtomicU8::new(SILENT)).collect(),
            places,
            mailbox: Mailbox::default(),
            segment,
            bell: rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            rendezvous,
            rendezvous_is_gone: AtomicBool::new(false),
            waits,
            services: Mutex::default(),
            has_waiting: AtomicBool::new(false),
            driving: OnceLock::new(),
            tally: Arc::default(),
        })
    }

    /// Whether a rank's memory is mapped here.
    pub(crate) fn shares_memory(&self, job_rank: u32) -> bool {
        let node = |rank: u32| self.places[rank as usize].node;
        job_rank == self.me || (node(job_rank) != NODE_ALONE && node(job_rank) == node(self.me))
    }

    /// Whether the memory of any other rank is mapped here.
    pub(crate) fn has_mapped_peers(&self) -> bool {
        self.has_mapped_peers
    }

    /// How many ranks the job has.
    pub(super) fn size(&self) -> usize {
        self.places.len()
    }

    /// Who looks at the sockets, once that has begun.
    pub(crate) fn driving(&self) -> Option<&Arc<Driving>> {
        self.driving.get()
    }

    pub(super) fn drive_by(&self, driving: Arc<Driving>) {
        // It begins once.
        let _ = self.driving.set(driving);
    }

    /// Whether the job has such a rank.
    pub(super) fn has_rank(&self, job_rank: u32) -> bool {
        (job_rank as usize) < self.places.len()
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    pub(crate) fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    /// What wakes the agent.
    pub(super) fn bell(&self) -> &OwnedFd {
        &self.bell
    }

    pub(super) fn rendezvous(&self) -> &TcpStream {
        &self.rendezvous
    }

    pub(super) fn lose_rendezvous(&self) {
        self.rendezvous_is_gone.store(true, Ordering::Relaxed); // Relaxed: nothing is published by it.
    }

    pub(crate) fn rendezvous_is_gone(&self) -> bool {
        self.rendezvous_is_gone.load(Ordering::Relaxed)
    }

    /// The link to a rank, opened by the first call.
    pub(crate) fn link(&self, job_rank: u32, pause: Pause<'_>) -> Result<&Link, Cut> {
        let at = job_rank as usize;
        let Some(address) = self.places[at].address else {
            return Err(Cut::Gone("it has not joined the job"));
        };
        let link = self.links[at]
            .get_or_init(|| Box::new(Link::new(address, Arc::clone(&self.tally), self.driving().cloned())));
        link.open(&self.secret, Party::Rank(self.me), Party::Rank(job_rank), pause)?;
        Ok(link)
    }

    /// Sends what a collective call needs to another member.
    pub(crate) fn send_message(
        &self,
        to: u32,
        address: Address,
        bytes: &[u8],
        pause: Pause<'_>,
    ) -> Result<(), Cut> {
        let link = self.link(to, pause)?;
        let mut left = bytes;
        loop {
            let (part, rest) = left.split_at(left.len().min(DATA_MAX_BYTES));
            link.stage(Kind::Message, 0, |body| {
                body.u64(address.team)
                    .u64(address.number)
                    .u32(address.round)
                    .u64(bytes.len() as u64)
                    .bytes(part);
            });
            left = rest;
            if left.is_empty() {
                return link.push(pause);
            }
            link.push_if_many(pause)?;
        }
    }

    /// Tells another member that this one has given a team up. Doesn't wait; a member that can't be told finds out itself.
    pub(crate) fn send_given_up(&self, to: u32, team: u64, number: u64, cause: Cause, pause: Pause<'_>) {
        if let Ok(link) = self.link(to, pause) {
            link.stage(Kind::TeamBroken, 0, |body| {
                let [kind, rank, evidence] = cause.encode();
                body.u64(team).u64(number).u32(kind).u32(rank).u32(evidence);
            });
            link.push_now();
        }
    }

    /// Waits until a rank has done all that was sent to it, if anything was.
    pub(crate) fn complete(&self, job_rank: u32, pause: Pause<'_>) -> Result<(), Cut> {
        match self.links[job_rank as usize].get().filter(|link| link.is_open()) {
            None => Ok(()),
            // Frames are done in their order, so any answer says it.
            Some(link) => {
                let request = link.fresh_request();
                link.stage(Kind::Sight, request, |_| ());
                link.reply(request, pause).map(|_| ()).inspect_err(|_| link.forget(request))
            }
        }
    }

    /// Asks a rank what it waits for. `None` if it does not say so before the pause ends the call.
    pub(crate) fn ask_sight(&self, job_rank: u32, pause: Pause<'_>) -> Option<Vec<u8>> {
        let link = self.link(job_rank, pause).ok()?;
        let request = link.fresh_request();
        link.stage(Kind::Sight, request, |_| ());
        match link.reply(request, pause) {
            Ok(body) => Some(body),
            Err(_) => {
                link.forget(request);
                None
            }
        }
    }

    /// As `ask_sight`, without waiting: gives the request whose answer [`sight_told`](Wire::sight_told) takes later. `None` if there
    /// is no connection yet.
    pub(crate) fn begin_ask_sight(&self, job_rank: u32) -> Option<u64> {
        let link = self.open_link(job_rank)?;
        let request = link.fresh_request();
        link.stage(Kind::Sight, request, |_| ());
        link.push_now();
        Some(request)
    }

    /// The answer to a request, if it has come.
    pub(crate) fn sight_told(&self, job_rank: u32, request: u64) -> Option<Vec<u8>> {
        let link = self.open_link(job_rank)?;
        // A broken connection is found by whoever waits on it.
        let _ = link.exchange_now();
        link.arrived(request)
    }

    /// Drops the answer to a request, whether it has come or will.
    pub(crate) fn forget_sight(&self, job_rank: u32, request: u64) {
        if let Some(link) = self.open_link(job_rank) {
            link.forget(request);
        }
    }

    /// Tells a rank, if there is a connection to it, that members of a team sit in different collective calls.
    pub(crate) fn accuse(&self, job_rank: u32, accusation: &[u8]) {
        if let Some(link) = self.open_link(job_rank) {
            link.stage(Kind::Accused, 0, |body| drop(body.bytes(accusation)));
            link.push_now();
        }
    }

    /// The link to a rank, if it is open.
    pub(crate) fn open_link(&self, job_rank: u32) -> Option<&Link> {
        self.links[job_rank as usize].get().map(Box::as_ref).filter(|link| link.is_open())
    }

    /// How many of its collective calls this rank has come to on the service of that name.
    pub(crate) fn meetings(&self, name: u64) -> Option<u64> {
        self.services().get(&name).and_then(|service| service.meetings())
    }

    /// Sleeps until something has come on a link to one of these ranks, or `bell` can be read, or for so long.
    pub(crate) fn wait_any(&self, ranks: &[u32], bell: BorrowedFd<'_>, timeout: Duration) {
        let links = ranks.iter().filter_map(|&rank| self.links[rank as usize].get());
        let (streams, longest): (Vec<_>, Vec<_>) = links.filter_map(|link| link.watched()).unzip();
        socket::wait_any(&streams, bell, longest.into_iter().fold(timeout, Duration::min));
    }

    /// Lets other ranks reach a service by its name.
    pub(crate) fn register(&self, name: u64, service: Arc<dyn Service>) {
        self.services().insert(name, service);
    }

    /// Ends what [`register`](Wire::register) began.
    pub(crate) fn withdraw(&self, name: u64) {
        self.services().remove(&name);
    }

    /// Lets services look again at what had to wait, soon.
    pub(crate) fn ring(&self) {
        if let Some(driving) = self.driving() {
            driving.ring(self);
        }
    }

    /// Lets services look again at what had to wait, at once. The caller has no lock that one of them takes.
    pub(crate) fn attend(&self) {
        if let Some(driving) = self.driving() {
            driving.attend(self);
        }
    }

    /// Wakes the agent from its sleep on the sockets.
    pub(super) fn ring_bell(&self) {
        // Fails only when the counter is full, and then the bell has been rung.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    /// Ends what [`ring_bell`](Wire::ring_bell) began.
    pub(super) fn silence_bell(&self) {
        // Fails only when nobody has rung.
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
    }

    fn services(&self) -> MutexGuard<'_, HashMap<u64, Arc<dyn Service>>> {
        // Nothing panics while the table is inconsistent.
        self.services.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets services look again, and says when they want to without being told to.
    pub(super) fn look_again(&self, answer: &mut dyn FnMut(u32, u64, &[u8])) -> Option<Duration> {
        let waiting: Vec<Arc<dyn Service>> = self
            .services()
            .values()
            .filter(|service| service.look_again_after().is_some())
            .map(Arc::clone)
            .collect();
        waiting.iter().for_each(|service| service.look_again(answer));
        let next = waiting.iter().filter_map(|service| service.look_again_after()).min();
        // Relaxed: only whoever has the sockets uses it; see `has_waiting`.
        self.has_waiting.store(next.is_some(), Ordering::Relaxed);
        next
    }

    /// Whether a service may have something that has to wait, which others than this rank have asked for.
    pub(super) fn has_waiting(&self) -> bool {
        self.has_waiting.load(Ordering::Relaxed)
    }

    /// Says on every link that nothing more will come.
    pub(crate) fn leave(&self) {
        for link in self.links.iter().filter_map(OnceLock::get).filter(|link| link.is_open()) {
            link.stage(Kind::Left, 0, |_| ());
            link.push_now();
        }
    }

    /// Tells the rendezvous how this rank has ended.
    pub(crate) fn say_ended(&self, evidence: Evidence) {
        let mut word = Vec::new();
        Writer::new(&mut word, Kind::Ended, 0).u32(evidence.code());
        // The rendezvous reads at all times, so so few bytes are taken at once, or nobody is there to take them.
        let _ = socket::write(&self.rendezvous, &word);
    }

    /// Whether everything that a rank has sent has been read: it has no link to this one, or has said or shown that nothing
    /// more comes. Evidence of an end counts only then, as what the rank did before it ended counts.
    pub(crate) fn is_drained(&self, job_rank: u32) -> bool {
        // Acquire: pairs with the Release in `speaks` and `is_silent`, so that what the rank has sent is seen.
        self.speaking[job_rank as usize].load(Ordering::Acquire) == SILENT
    }

    /// A rank has opened its link to this one.
    pub(super) fn speaks(&self, job_rank: u32) {
        self.speaking[job_rank as usize].store(SPEAKING, Ordering::Release); // Release: pairs with the Acquire in `is_drained`.
    }

    /// Nothing more comes from a rank.
    pub(super) fn is_silent(&self, job_rank: u32) {
        self.speaking[job_rank as usize].store(SILENT, Ordering::Release); // Release: as in `speaks`.
        self.notify();
    }

    /// Wakes the callers that wait for something that the agent has brought.
    fn notify(&self) {
        self.segment.record(self.me).mail.notify();
    }

    /// Does what a frame from another rank asks for.
    pub(crate) fn receive(
        &self,
        from: u32,
        frame: Frame<'_>,
        replies: &mut Vec<u8>,
    ) -> Result<Progress, Malformed> {
        let Frame { kind, request, mut body } = frame;
        match kind {
            Kind::Message => self.mailbox.deliver(from, body)?,
            Kind::TeamBroken => {
                let (team, number) = (body.u64()?, body.u64()?);
                let cause = Cause::decode([body.u32()?, body.u32()?, body.u32()?])?;
                body.end()?;
                self.mailbox.give_up(team, GivenUp { by: from, number, cause });
            }
            Kind::Left => self.is_silent(from),
            Kind::Service => {
                let name = body.u64()?;
                let service = self.services().get(&name).map(Arc::clone);
                match service {
                    Some(service) => {
                        let progress = service.serve(from, request, body, replies)?;
                        if service.look_again_after().is_some() {
                            self.has_waiting.store(true, Ordering::Relaxed); // Relaxed: as in `look_again`.
                        }
                        return Ok(progress);
                    }
                    // All who could ask have said before that they are done, so what comes late means nothing any more.
                    None if request == 0 => return Ok(Progress::Done),
                    None => return Err(Malformed("a request for a service that does not exist")),
                }
            }
            Kind::Sight => {
                let sight = (self.waits.sight)();
                Writer::new(replies, Kind::Reply, request).bytes(&sight);
                return Ok(Progress::Done);
            }
            Kind::Accused => (self.waits.accused)(body)?,
            Kind::Join | Kind::Table | Kind::Ended | Kind::Lost | Kind::Reply => {
                return Err(Malformed("a rank says what is for the rendezvous, or for nobody"));
            }
        }
        self.notify();
        Ok(Progress::Done)
    }
}
