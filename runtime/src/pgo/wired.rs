//! Events to ranks that share no memory, at their originator: what is sent, what comes back, and how much may be on its way. Never
//! matches: the target does.
//!
//! An event travels as one frame, and with it its data if they are short: synchronization and data are one message. The target
//! answers when it has served the event, with what the gets bring. Long data stay with the originator until the target asks for
//! them. Of each queue only so many events are on their way; the others are kept until answers come, so neither side's memory
//! grows with what waits.
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::panic::Location;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::event::{Family, Fault, Found, Heads, Key, Layout, Way};
use super::hub::Hub;
use super::queue::{Queue, Waiting};
use super::raw::Place;
use super::remote::{
    ASK_CANCEL, ASK_COUNTS, ASK_DATA, ASK_EVENT, ASK_FETCH, DONE, IS_GIVEN, IS_READY, SERVICE, WANTED,
};
use super::rounds::Tally;
use super::scope::Scope;
use super::standing::Caller;
use crate::error::{Error, ErrorKind, Evidence, Result};
use crate::liveness::{self, Act, NO_BLOCKER, Needs, WaitFor};
use crate::rank::Rank;
use crate::transport::tcp::frame::{Body, DATA_MAX_BYTES, Kind, Malformed};
use crate::transport::tcp::link::{Cut, Link, Pause};

/// Data up to this length travel with their event.
const EAGER_MAX_BYTES: usize = 64 << 10;
/// Events of one queue that may be on their way, and what their data may come to.
const EVENTS_MAX: usize = 128;
const BYTES_MAX: usize = 256 << 10;
/// Layouts that are described by more bytes than this don't travel.
const HEADS_MAX_BYTES: usize = 128 << 10;
/// The longest piece of long data.
pub(super) const PIECE_MAX_BYTES: usize = DATA_MAX_BYTES / 2;
/// Pieces that are asked for at one time.
const PIECES_AT_ONCE: usize = 8;
/// Staged bytes from which on no more pieces are given to a link at once.
const STAGED_MAX_BYTES: usize = 2 << 20;
/// How long a rank that takes events back tries to reach their target.
const TELLING_PATIENCE: Duration = Duration::ZERO;

/// What a queue has on its way.
#[derive(Default)]
pub(super) struct Far {
    events: usize,
    bytes: usize,
    /// Asked when the target's program has returned: what it has served, it has answered before it answers this.
    last_question: Option<u64>,
    is_answered: bool,
    /// Nobody will serve what is left.
    pub(super) is_over: bool,
}

/// How far an event has come.
#[derive(Default)]
pub(super) struct Sent {
    pub(super) is_ready: bool,
    step: Step,
    /// The bytes that travelled with it.
    bytes: usize,
}

#[derive(Default)]
enum Step {
    /// It has not been sent.
    #[default]
    Kept,
    /// It waits at the target.
    Waits {
        request: u64,
    },
    /// The target wants its data; so many bytes have been sent.
    Gives {
        request: u64,
        given: usize,
    },
    /// The target has what the gets bring.
    Takes {
        request: u64,
        total: usize,
        asked: usize,
        pieces: VecDeque<(u64, usize)>,
    },
    Done,
}

impl Waiting<'_> {
    /// Visits the stretches of the parts of one way, between two places in their row: the part's place, where the stretch begins in
    /// it, where in the row, and its length.
    fn stretches(
        &self,
        way: Way,
        (start, end): (usize, usize),
        mut visit: impl FnMut(&Place<'_>, usize, usize, usize),
    ) {
        let mut at = 0;
        for part in self.parts.iter().filter(|part| part.head.way == way) {
            let size = part.layout.size();
            if at < end && start < at + size {
                Layout::pair((&part.layout, 0), (&Layout::Bytes(size), at), |place_at, row_at, len| {
                    let (from, to) = (row_at.max(start), (row_at + len).min(end));
                    if from < to {
                        visit(&part.place, place_at + (from - row_at), from, to - from);
                    }
                });
            }
            at += size;
        }
    }

    /// Appends a piece of what the puts bring.
    fn gather(&self, hub: &Hub, start: usize, len: usize, out: &mut Vec<u8>) {
        let before = out.len();
        out.resize(before + len, 0);
        let target = Place::of_mut(&mut out[before..]);
        self.stretches(Way::Put, (start, start + len), |place, place_at, row_at, len| {
            target.take(hub.engine, row_at - start, place, place_at, len);
        });
    }

    /// Puts a piece of what the gets bring where it belongs.
    fn scatter(&self, hub: &Hub, start: usize, piece: &[u8]) {
        let origin = Place::of(piece);
        self.stretches(Way::Get, (start, start + piece.len()), |place, place_at, row_at, len| {
            place.take(hub.engine, place_at, &origin, row_at - start, len);
        });
    }
}

/// Runs `body` with the link to a member.
fn on_link<R>(
    by: &Caller<'_>,
    call: &'static str,
    key: &Key,
    target: Rank,
    location: &'static Location<'static>,
    body: impl FnOnce(&Link, Pause<'_>) -> Result<R, Cut>,
) -> Result<R> {
    let Some(wire) = by.context.wire() else {
        unreachable!("a rank that shares no memory is reached by a wire")
    };
    // A rank whose program has returned is still reached: its agent answers.
    let segment = by.context.segment();
    let job_rank = by.members.job_rank(target);
    let needed =
        |rank: Rank| rank == target && liveness::evidence(segment, job_rank.0) != Some(Evidence::Finished);
    let what = WaitFor {
        call,
        window: None,
        team: by.members,
        needs: Needs::Those(&needed),
        act: Act::Toward(target),
        detail: Some(("tag", key.tag)),
        blocker: NO_BLOCKER,
    };
    let mail = &segment.record(by.hub.me).mail;
    let mut watch = None;
    let mut pause = || watch.get_or_insert_with(|| by.context.watch(mail, what, location)).look();
    let outcome = match wire.link(job_rank.0, &mut pause) {
        Ok(link) => body(link, &mut pause),
        Err(cut) => Err(cut),
    };
    drop(watch);
    outcome.map_err(|cut| by.context.cut(cut, &what, target, location))
}

fn malformed(why: Malformed) -> Cut {
    Cut::Gone(why.0)
}

/// What a queue belongs to.
struct Line<'a> {
    by: &'a Caller<'a>,
    key: &'a Key,
}

impl Line<'_> {
    /// Stages an event, and gives the request that its answer belongs to.
    fn stage_event(
        &self,
        link: &Link,
        (thread, round): (u32, u64),
        flags: u32,
        heads: &Heads,
        data: &[u8],
    ) -> u64 {
        let Line { by, key } = self;
        let (request, heads) = (link.fresh_request(), heads.encode());
        by.hub.counted.frames.fetch_add(1, Ordering::Relaxed);
        link.stage(Kind::Service, request, |body| {
            body.u64(SERVICE)
                .u32(ASK_EVENT)
                .u32(flags)
                .u64(key.family as u64)
                .u64(key.team)
                .u64(key.tag)
                .u64(round)
                .u32(thread)
                .u32(by.members.rank().0)
                .u64(heads.len() as u64)
                .bytes(&heads)
                .bytes(data);
        });
        request
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Sends what may be sent of a queue, and takes what has come back.
    pub(super) fn advance_far(
        &self,
        queue: &mut Queue<'scope>,
        key: &Key,
        call: &'static str,
        location: &'static Location<'static>,
        faults: &mut Vec<(Family, Rank, Found)>,
    ) -> Result<()> {
        if queue.events.is_empty() {
            return Ok(());
        }
        let line = Line { by: &self.by, key };
        let target = queue.target;
        on_link(&self.by, call, key, target, location, |link, _| {
            let outcome = link.exchange_now();
            queue.far.is_answered |=
                queue.far.last_question.is_some_and(|question| link.arrived(question).is_some());
            queue.hear(&line, link)?;
            let is_unserved =
                |event: &Waiting<'_>| !matches!(event.sent.step, Step::Takes { .. } | Step::Done);
            queue.far.is_over = queue.far.is_answered && queue.events.iter().any(is_unserved);
            let ended = liveness::evidence(self.by.context.segment(), self.by.members.job_rank(target).0);
            if ended == Some(Evidence::Finished) && queue.far.last_question.is_none() {
                let question = link.fresh_request();
                link.stage(Kind::Sight, question, |_| ());
                queue.far.last_question = Some(question);
            }
            // What came before the end counts.
            if queue.events.iter().all(|event| matches!(event.sent.step, Step::Done)) {
                return Ok(());
            }
            outcome?;
            queue.speak(&line, link);
            link.push_now();
            Ok(())
        })?;
        while let Some(event) = queue.events.front() {
            let Step::Done = event.sent.step else { break };
            queue.events.pop_front();
        }
        faults.append(&mut queue.far_faults);
        Ok(())
    }

    /// Refuses what is too long for a message.
    pub(super) fn refuse_long(
        &self,
        heads: &Heads,
        target: Rank,
        (call, location): (&'static str, &'static Location<'static>),
    ) -> Result<()> {
        let bytes = heads.encode().len();
        match bytes <= HEADS_MAX_BYTES {
            true => Ok(()),
            false => {
                let note = format!(
                    "its layouts take {bytes} bytes, and a message has {HEADS_MAX_BYTES}; tag {}",
                    self.tag
                );
                Err(self.by.error(ErrorKind::System, call).target(target).note(note).called_at(location))
            }
        }
    }

    /// Takes the events of a queue back, as far as they can be. Those of a round come as blanks, as the round counts them.
    pub(super) fn take_far_back(&self, queue: &mut Queue<'_>) {
        let Some(wire) = self.by.context.wire() else { return };
        let mut no_patience = || {
            Err(Error::new(ErrorKind::Stalled, "taking events back").note(format!("{TELLING_PATIENCE:?}")))
        };
        let Ok(link) = wire.link(self.by.members.job_rank(queue.target).0, &mut no_patience) else { return };
        let key = self.key(queue.family);
        let line = Line { by: &self.by, key: &key };
        for event in queue.events.drain(..) {
            match event.sent.step {
                Step::Kept if key.family == Family::Collective => {
                    let place = (queue.thread, event.round);
                    link.forget(line.stage_event(link, place, IS_GIVEN, &Heads::BLANK, &[]));
                }
                Step::Waits { request } | Step::Gives { request, .. } | Step::Takes { request, .. } => {
                    link.forget(request);
                    link.stage(Kind::Service, 0, |body| {
                        body.u64(SERVICE).u32(ASK_CANCEL).u64(request);
                    });
                }
                Step::Kept | Step::Done => {}
            }
        }
        link.push_now();
    }
}

impl Queue<'_> {
    /// Sends events and pieces.
    fn speak(&mut self, line: &Line<'_>, link: &Link) {
        let hub = &line.by.hub;
        let (thread, far) = (self.thread, &mut self.far);
        for event in &mut self.events {
            match &mut event.sent.step {
                Step::Kept => {
                    let (taken, _) = event.heads.lengths();
                    let is_given = taken <= EAGER_MAX_BYTES;
                    let bytes = if is_given { taken } else { 0 };
                    if EVENTS_MAX <= far.events || (0 < far.events && BYTES_MAX < far.bytes + bytes) {
                        return;
                    }
                    (far.events, far.bytes) = (far.events + 1, far.bytes + bytes);
                    let flags =
                        if is_given { IS_GIVEN } else { 0 } | if event.sent.is_ready { IS_READY } else { 0 };
                    let mut data = Vec::new();
                    event.gather(hub, 0, bytes, &mut data);
                    let request = line.stage_event(link, (thread, event.round), flags, &event.heads, &data);
                    event.sent.step = Step::Waits { request };
                    event.sent.bytes = bytes;
                }
                Step::Gives { request, given } => {
                    let (request, mut at) = (*request, *given);
                    let (taken, _) = event.heads.lengths();
                    while at < taken && link.staged_bytes() < STAGED_MAX_BYTES {
                        let len = (taken - at).min(PIECE_MAX_BYTES);
                        let mut data = Vec::new();
                        event.gather(hub, at, len, &mut data);
                        hub.counted.frames.fetch_add(1, Ordering::Relaxed);
                        link.stage(Kind::Service, 0, |body| {
                            body.u64(SERVICE).u32(ASK_DATA).u64(request).u64(at as u64).bytes(&data);
                        });
                        at += len;
                        link.push_now();
                    }
                    event.sent.step = match at < taken {
                        true => Step::Gives { request, given: at },
                        false => Step::Waits { request },
                    };
                }
                Step::Takes { request, total, asked, pieces } => {
                    while *asked < *total && pieces.len() < PIECES_AT_ONCE {
                        let len = (*total - *asked).min(PIECE_MAX_BYTES);
                        let piece = link.fresh_request();
                        let (event, at) = (*request, *asked);
                        hub.counted.frames.fetch_add(1, Ordering::Relaxed);
                        link.stage(Kind::Service, piece, |body| {
                            body.u64(SERVICE).u32(ASK_FETCH).u64(event).u64(at as u64).u64(len as u64);
                        });
                        pieces.push_back((piece, at));
                        *asked += len;
                    }
                }
                Step::Waits { .. } | Step::Done => {}
            }
        }
    }

    /// Takes the answers that have come.
    fn hear(&mut self, line: &Line<'_>, link: &Link) -> Result<(), Cut> {
        let hub = &line.by.hub;
        for event in &mut self.events {
            match &mut event.sent.step {
                Step::Kept => break,
                Step::Gives { .. } | Step::Done => {}
                Step::Waits { request } => {
                    let request = *request;
                    let Some(reply) = link.arrived(request) else { continue };
                    let mut body = Body::new(&reply);
                    match body.u32().map_err(malformed)? {
                        WANTED => event.sent.step = Step::Gives { request, given: 0 },
                        DONE => {
                            (self.far.events, self.far.bytes) =
                                (self.far.events - 1, self.far.bytes - event.sent.bytes);
                            let (found, total) = read_done(&mut body).map_err(malformed)?;
                            let data = body.rest();
                            if let Some(found) = found {
                                self.far_faults.push((self.family, self.target, found));
                                event.sent.step = Step::Done;
                            } else if data.len() == total {
                                event.scatter(hub, 0, data);
                                event.sent.step = Step::Done;
                            } else {
                                event.sent.step =
                                    Step::Takes { request, total, asked: 0, pieces: VecDeque::new() };
                            }
                        }
                        _ => return Err(Cut::Gone("it answered what was not asked")),
                    }
                }
                Step::Takes { total, asked, pieces, .. } => {
                    let (total, asked) = (*total, *asked);
                    let mut arrived = Vec::new();
                    while let Some(&(piece, at)) = pieces.front() {
                        let Some(reply) = link.arrived(piece) else { break };
                        pieces.pop_front();
                        arrived.push((at, reply));
                    }
                    let is_done = asked == total && pieces.is_empty();
                    arrived.iter().for_each(|(at, data)| event.scatter(hub, *at, data));
                    if is_done {
                        event.sent.step = Step::Done;
                    }
                }
            }
        }
        Ok(())
    }
}

fn read_done(body: &mut Body<'_>) -> Result<(Option<Found>, usize), Malformed> {
    let code = body.u32()?;
    let [start, end, bytes] = [body.u64()?, body.u64()?, body.u64()?];
    let total = body.len()?;
    Ok((Fault::from_code(code).map(|fault| Found { fault, start, end, bytes }), total))
}

impl Hub {
    /// Sends a message about counts to a member that shares no memory.
    pub(super) fn send_tally_far(
        &self,
        by: &Caller<'_>,
        key: &Key,
        to: Rank,
        tally: &Tally,
        call: &'static str,
        location: &'static Location<'static>,
    ) -> Result<()> {
        self.counted.frames.fetch_add(1, Ordering::Relaxed);
        on_link(by, call, key, to, location, |link, pause| {
            link.stage(Kind::Service, 0, |body| {
                body.u64(SERVICE).u32(ASK_COUNTS).u64(key.team).u64(key.tag).bytes(&tally.encode());
            });
            link.push(pause)
        })
    }
}
