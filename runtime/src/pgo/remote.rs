//! What the agent of a rank does for events of ranks that share no memory with it, and how a rank sleeps that waits for such ones.
//! Never waits for a lock: what can't be done at once is put off.
//!
//! An event of theirs has a place in the store like any other, which keeps its order; what it is made of and its data are kept here.
//! The agent serves it if its offer is open; if the offer opens later, the rank that opens it does, and the agent answers.
#![forbid(unsafe_code)]

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rustix::event::EventfdFlags;

use super::event::{Family, Found, Heads, Key};
use super::hub::{DATA_WIRED, Hub, Locked, Met, Role, write_key};
use super::issue::NOT_OFFERED;
use super::raw::{Ends, Place};
use super::rounds::Tally;
use super::standing::Caller;
use super::wired::PIECE_MAX_BYTES;
use crate::error::{ErrorKind, Result};
use crate::liveness::WaitFor;
use crate::rank::Rank;
use crate::transport::shm::arena::Block;
use crate::transport::shm::copy::Engine;
use crate::transport::shm::offers::EventNode;
use crate::transport::shm::segment::Segment;
use crate::transport::tcp::frame::{Body, DATA_MAX_BYTES, Malformed};
use crate::transport::tcp::wire::{Progress, Service, Wire};

/// The name of the service; windows have numbers that begin with 1.
pub(super) const SERVICE: u64 = u64::MAX;

/// What a frame asks for.
pub(super) const ASK_EVENT: u32 = 1;
pub(super) const ASK_DATA: u32 = 2;
pub(super) const ASK_CANCEL: u32 = 3;
pub(super) const ASK_FETCH: u32 = 4;
pub(super) const ASK_COUNTS: u32 = 5;

/// The data of the puts are in the frame; the event promises an offer.
pub(super) const IS_GIVEN: u32 = 1;
pub(super) const IS_READY: u32 = 2;

/// What an answer says.
pub(super) const WANTED: u32 = 1;
pub(super) const DONE: u32 = 2;

/// The most that an answer carries of what gets bring; the rest is fetched.
const ANSWER_MAX_BYTES: usize = DATA_MAX_BYTES / 2;
/// How soon what was put off is tried again.
const RETRY: Duration = Duration::from_millis(1);
/// The longest sleep of a rank that waits for ranks of both kinds, as those that share memory can't wake it from a socket.
const MIXED_SLICE: Duration = Duration::from_millis(1);
/// The longest data that an event may ask a target to keep.
const KEPT_MAX_BYTES: usize = 1 << 40;

/// See the module.
pub(super) struct Remote {
    wire: Weak<Wire>,
    table: Mutex<Table>,
    /// Wakes a rank that sleeps on sockets.
    bell: OwnedFd,
    is_polling: AtomicBool,
    has_mapped_peers: bool,
}

#[derive(Default)]
struct Table {
    /// By the offsets of their nodes.
    events: HashMap<u64, Kept>,
    /// Their offsets by originator and request.
    offsets: HashMap<(u32, u64), u64>,
    /// What gets have brought and their originators have not fetched yet.
    brought: HashMap<(u32, u64), Vec<u8>>,
    /// Answers that the agent is to send.
    answers: Vec<(u32, u64, Vec<u8>)>,
    /// Frames that could not be looked at.
    put_off: VecDeque<(u32, u64, Vec<u8>)>,
    /// Nodes that are in no list any more, as soon as the lock is given back that is held now.
    finished: Vec<Block>,
}

/// An event of a rank that shares no memory.
struct Kept {
    from: u32,
    request: u64,
    block: Block,
    kinds: u32,
    heads: Heads,
    data: Vec<u8>,
    /// How many bytes of data there are to come, in all, and how many have.
    wanted: usize,
    arrived: usize,
    is_asked: bool,
}

impl Remote {
    pub(super) fn new(wire: &Arc<Wire>, segment: &Segment, me: u32) -> std::io::Result<Remote> {
        let mapped = (0..segment.size()).any(|rank| rank != me && wire.shares_memory(rank));
        Ok(Remote {
            wire: Arc::downgrade(wire),
            table: Mutex::default(),
            bell: rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            is_polling: AtomicBool::new(false),
            has_mapped_peers: mapped,
        })
    }

    /// Wakes the rank if it sleeps on sockets.
    pub(super) fn nudge(&self) {
        // SeqCst: pairs with the fence in `wait`: either this sees that the rank sleeps on sockets, or it sees what has changed.
        fence(Ordering::SeqCst);
        if self.is_polling.load(Ordering::Relaxed) {
            // Fails only when the counter is full, and then the bell has been rung.
            let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // Nothing panics while the tables are inconsistent.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the agent send what there is to answer.
    fn ring(&self) {
        if let Some(wire) = self.wire.upgrade() {
            wire.ring();
        }
    }

    /// Waits until `ready` gives a value, where answers of ranks that share no memory may come: of those that `far` names.
    pub(super) fn wait<R>(
        &self,
        by: &Caller<'_>,
        what: WaitFor<'_>,
        far: &dyn Fn() -> Vec<u32>,
        location: &'static Location<'static>,
        ready: &mut dyn FnMut() -> Result<Option<R>>,
    ) -> Result<R> {
        if let Some(outcome) = by.context.look_eagerly(&mut || ready().transpose()) {
            return outcome;
        }
        let store = by.hub.store(by.hub.me, what.call)?;
        let mut watch = by.context.watch(&store.changed, what, location);
        let _polling = Polling::new(&self.is_polling);
        loop {
            let ticket = store.changed.announce();
            fence(Ordering::SeqCst); // SeqCst: as in `nudge`.
            if let Some(value) = ready()? {
                return Ok(value);
            }
            let slice = match watch.look() {
                Ok(slice) => slice,
                Err(error) => {
                    return match (error.kind(), ready()) {
                        // What a lost rank did before it ended counts.
                        (ErrorKind::PeerLost, Ok(Some(value))) => Ok(value),
                        _ => Err(error),
                    };
                }
            };
            let far = far();
            if let Some(driving) = by.context.polled() {
                driving.sleep(slice);
                continue;
            }
            match self.wire.upgrade().filter(|_| !far.is_empty()) {
                None => store.changed.sleep(ticket, Some(slice)),
                Some(wire) => {
                    let slice = if self.has_mapped_peers { slice.min(MIXED_SLICE) } else { slice };
                    wire.wait_any(&far, self.bell.as_fd(), slice);
                    let _ = rustix::io::read(&self.bell, &mut [0; 8]);
                }
            }
        }
    }
}

/// Says that a rank may sleep on sockets.
struct Polling<'a>(&'a AtomicBool);

impl<'a> Polling<'a> {
    fn new(flag: &'a AtomicBool) -> Polling<'a> {
        flag.store(true, Ordering::Relaxed);
        Polling(flag)
    }
}

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

fn answer_done(outcome: &Result<u64, Found>, data: &[u8]) -> (Vec<u8>, bool) {
    let (code, start, end, bytes) = match outcome {
        Ok(_) => (0, 0, 0, 0),
        Err(found) => (found.fault as u32, found.start, found.end, found.bytes),
    };
    let mut out = Vec::with_capacity(48 + data.len().min(ANSWER_MAX_BYTES));
    out.extend_from_slice(&DONE.to_le_bytes());
    out.extend_from_slice(&code.to_le_bytes());
    [start, end, bytes, data.len() as u64]
        .iter()
        .for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
    let fits = data.len() <= ANSWER_MAX_BYTES;
    if fits {
        out.extend_from_slice(data);
    }
    (out, fits)
}

impl Table {
    /// Says what an event has come to.
    fn done(&mut self, from: u32, request: u64, outcome: &Result<u64, Found>, data: Vec<u8>) {
        let (answer, fits) = answer_done(outcome, &data);
        if !fits {
            self.brought.insert((from, request), data);
        }
        self.answers.push((from, request, answer));
    }
}

impl Hub {
    /// Serves events of ranks that share no memory, for [`Locked::settle`].
    pub(super) fn keeper<'a>(
        &'a self,
        locked: &'a Locked<'_>,
        key: &Key,
    ) -> impl FnMut(u64, u64) -> Option<Met> + 'a {
        let family = key.family;
        if let Some(remote) = &self.remote {
            self.reap(&mut remote.table());
        }
        move |at, offer| {
            let remote = self.remote.as_ref()?;
            let mut table = remote.table();
            let kept = table.events.get_mut(&at)?;
            if kept.arrived < kept.wanted {
                if !kept.is_asked {
                    kept.is_asked = true;
                    let (from, request) = (kept.from, kept.request);
                    table.answers.push((from, request, WANTED.to_le_bytes().to_vec()));
                    remote.ring();
                }
                return Some(Met::Later);
            }
            let kept = table.events.remove(&at)?;
            table.offsets.remove(&(kept.from, kept.request));
            // What does not fit is not made room for.
            let has_fault = locked.fault(offer, family, kept.kinds, &kept.heads).is_some();
            let mut data = vec![0; if has_fault { 0 } else { kept.heads.lengths().1 }];
            let rows = Ends::Rows(Place::of(&kept.data), Place::of_mut(&mut data));
            let outcome = locked.serve(offer, family, kept.kinds, &kept.heads, rows);
            let data = if outcome.is_ok() { data } else { Vec::new() };
            table.done(kept.from, kept.request, &outcome, data);
            table.finished.push(kept.block);
            remote.ring();
            Some(Met::Served(outcome))
        }
    }

    /// Keeps nodes for events to come that are in no list any more.
    fn reap(&self, table: &mut Table) {
        table.finished.drain(..).for_each(|block| self.give_node(size_of::<EventNode>(), block));
    }

    /// Does what a frame asks for. Gives it back if the lock of the store can't be had now.
    fn receive(
        &self,
        remote: &Remote,
        from: u32,
        request: u64,
        mut body: Body<'_>,
    ) -> Result<bool, Malformed> {
        match body.u32()? {
            ASK_EVENT => self.receive_event(remote, from, request, body),
            ASK_DATA => {
                let (event, at) = (body.u64()?, body.len()?);
                let piece = body.rest();
                let key = {
                    let mut table = remote.table();
                    // It may have been taken back.
                    let Some(&offset) = table.offsets.get(&(from, event)) else { return Ok(true) };
                    let Some(kept) = table.events.get_mut(&offset) else { return Ok(true) };
                    let Some(end) = at.checked_add(piece.len()).filter(|&end| end <= kept.wanted) else {
                        return Err(Malformed("data of an event come twice or not in their order"));
                    };
                    // The last piece is looked at again if the lock could not be had when it came.
                    let is_again = end == kept.wanted && kept.arrived == kept.wanted;
                    if !is_again {
                        if at != kept.arrived {
                            return Err(Malformed("data of an event come twice or not in their order"));
                        }
                        kept.data.extend_from_slice(piece);
                        kept.arrived = end;
                    }
                    match end == kept.wanted {
                        true => self.key_of(offset),
                        false => None,
                    }
                };
                match key {
                    None => Ok(true),
                    Some(key) => Ok(self.settle_soon(&key)),
                }
            }
            ASK_CANCEL => {
                let event = body.u64()?;
                let Some(locked) = self.lock_soon() else { return Ok(false) };
                let mut table = remote.table();
                table.brought.remove(&(from, event));
                let Some(&offset) = table.offsets.get(&(from, event)) else { return Ok(true) };
                let Some(key) = self.key_of(offset) else { return Ok(true) };
                if key.family == Family::Collective
                    && let Some(kept) = table.events.get_mut(&offset)
                {
                    // Its round counts it.
                    kept.heads = Heads::BLANK;
                    (kept.kinds, kept.data, kept.wanted, kept.arrived) = (0, Vec::new(), 0, 0);
                    self.event(offset).kinds.store(0, Ordering::Relaxed);
                } else {
                    table.offsets.remove(&(from, event));
                    self.unlink(&locked.bucket(&key).events, offset);
                    table.events.remove(&offset);
                }
                drop(table);
                // What came behind it may be served now.
                locked.settle(&key, Role::Agent, &mut self.keeper(&locked, &key));
                Ok(true)
            }
            ASK_FETCH => {
                let (event, at, len) = (body.u64()?, body.len()?, body.len()?);
                let mut table = remote.table();
                let Some(data) = table.brought.get(&(from, event)) else {
                    return Err(Malformed("what was fetched is not there"));
                };
                let Some(end) =
                    at.checked_add(len).filter(|&end| end <= data.len() && len <= PIECE_MAX_BYTES)
                else {
                    return Err(Malformed("more was fetched than there is"));
                };
                let (piece, is_last) = (data[at..end].to_vec(), end == data.len());
                if is_last {
                    table.brought.remove(&(from, event));
                }
                table.answers.push((from, request, piece));
                Ok(true)
            }
            ASK_COUNTS => {
                let (team, tag) = (body.u64()?, body.u64()?);
                let tally = Tally::decode(&mut body)?;
                self.rounds().entry((team, tag)).or_default().deliver(tally);
                self.wake(self.me);
                Ok(true)
            }
            _ => Err(Malformed("a frame asks for nothing that exists")),
        }
    }

    fn receive_event(
        &self,
        remote: &Remote,
        from: u32,
        request: u64,
        mut body: Body<'_>,
    ) -> Result<bool, Malformed> {
        let flags = body.u32()?;
        let family = Family::from_code(body.u64()?).ok_or(Malformed("an event is of no family"))?;
        let key = Key { family, team: body.u64()?, tag: body.u64()? };
        let (round, thread, member) = (body.u64()?, body.u32()?, body.u32()?);
        let len = body.len()?;
        let heads = Heads::decode(&mut Body::new(body.bytes(len)?))?;
        let data = body.rest();
        let (wanted, given) = heads.lengths();
        let is_given = flags & IS_GIVEN != 0;
        if (is_given && data.len() != wanted)
            || KEPT_MAX_BYTES < wanted.max(given)
            || self.segment.size() <= member
        {
            return Err(Malformed("an event says one length and has another"));
        }
        let kinds = heads.events().bits();
        let Some(locked) = self.lock_soon() else { return Ok(false) };
        let offer = match locked.is_behind(&key, from, thread) {
            true => None,
            false => locked.find(&key, round, (kinds, from), false),
        };
        let mut table = remote.table();
        self.reap(&mut table);
        match offer {
            Some(offer) if is_given => {
                // What does not fit is not made room for.
                let has_fault = locked.fault(offer, family, kinds, &heads).is_some();
                let mut brought = vec![0; if has_fault { 0 } else { given }];
                let rows = Ends::Rows(Place::of(data), Place::of_mut(&mut brought));
                let outcome = locked.serve(offer, family, kinds, &heads, rows);
                self.counted.by_agent.fetch_add(1, Ordering::Relaxed);
                table.done(from, request, &outcome, if outcome.is_ok() { brought } else { Vec::new() });
                drop(table);
                locked.count(offer, from, member, &outcome);
                return Ok(true);
            }
            None if flags & IS_READY != 0 => {
                table.done(from, request, &Err(NOT_OFFERED), Vec::new());
                return Ok(true);
            }
            Some(_) => table.answers.push((from, request, WANTED.to_le_bytes().to_vec())),
            None => {}
        }
        let Ok(block) = self.take_node(size_of::<EventNode>(), "agent") else {
            return Err(Malformed("there is no memory for an event"));
        };
        let offset = block.offset();
        let node = self.event(offset);
        write_key(&node.key, &key, round);
        let set = |word: &AtomicU32, value: u32| word.store(value, Ordering::Relaxed);
        set(&node.done, 0);
        set(&node.kinds, kinds);
        set(&node.data, DATA_WIRED);
        set(&node.originator, from);
        set(&node.thread, thread);
        set(&node.member, member);
        set(&node.fault.code, 0);
        self.append(&locked.bucket(&key).events, offset);
        let kept = Kept {
            from,
            request,
            block,
            kinds,
            heads,
            data: data.to_vec(),
            wanted,
            arrived: if is_given { wanted } else { 0 },
            is_asked: offer.is_some(),
        };
        table.offsets.insert((from, request), offset);
        table.events.insert(offset, kept);
        Ok(true)
    }

    /// The key of an event that is kept here.
    fn key_of(&self, offset: u64) -> Option<Key> {
        let words = &self.event(offset).key;
        let family = Family::from_code(words.family.load(Ordering::Relaxed))?;
        Some(Key { family, team: words.team.load(Ordering::Relaxed), tag: words.tag.load(Ordering::Relaxed) })
    }

    /// Serves what can be served of a key, if the lock can be had now.
    fn settle_soon(&self, key: &Key) -> bool {
        match self.lock_soon() {
            None => false,
            Some(locked) => {
                locked.settle(key, Role::Agent, &mut self.keeper(&locked, key));
                true
            }
        }
    }

    /// The job rank of a member, for those that name ranks of the job.
    pub(super) fn far_ranks(&self, by: &Caller<'_>, ranks: impl Iterator<Item = Rank>) -> Vec<u32> {
        let far = ranks.map(|rank| by.members.job_rank(rank)).filter(|&rank| !by.context.shares_memory(rank));
        far.map(|rank| rank.0).collect()
    }
}

impl Service for Hub {
    fn serve(&self, from: u32, request: u64, body: Body<'_>, _: &mut Vec<u8>) -> Result<Progress, Malformed> {
        let Some(remote) = &self.remote else {
            return Err(Malformed("an event for a rank without an agent"));
        };
        // Counts need no lock and are in no order with anything else. They are taken in before it is said that nothing more comes.
        let is_count = body.clone().u32()? == ASK_COUNTS;
        let is_first = is_count || remote.table().put_off.is_empty();
        if !is_first || !self.receive(remote, from, request, body)? {
            let mut body = body;
            remote.table().put_off.push_back((from, request, body.rest().to_vec()));
        }
        Ok(Progress::Done)
    }

    fn look_again(&self, answer: &mut dyn FnMut(u32, u64, &[u8])) {
        let Some(remote) = &self.remote else { return };
        loop {
            let Some((from, request, frame)) = remote.table().put_off.pop_front() else { break };
            // What is malformed was sent by a rank of the job; it costs only its sender.
            match self.receive(remote, from, request, Body::new(&frame)) {
                Ok(true) | Err(_) => {}
                Ok(false) => {
                    remote.table().put_off.push_front((from, request, frame));
                    break;
                }
            }
        }
        let answers = std::mem::take(&mut remote.table().answers);
        answers.iter().for_each(|(to, request, body)| answer(*to, *request, body));
    }

    fn look_again_after(&self) -> Option<Duration> {
        let remote = self.remote.as_ref()?;
        let table = remote.table();
        (!table.put_off.is_empty() || !table.answers.is_empty()).then_some(RETRY)
    }
}

/// Lets other ranks reach the hub of a rank that has connections. To be called before the agent starts.
pub(crate) fn join(
    segment: &Arc<Segment>,
    me: Rank,
    wire: &Arc<Wire>,
    engine: Engine,
) -> std::io::Result<Arc<Hub>> {
    let hub = Hub::new(segment, me, engine, Some(Remote::new(wire, segment, me.0)?));
    wire.register(SERVICE, Arc::clone(&hub) as Arc<dyn Service>);
    Ok(hub)
}
