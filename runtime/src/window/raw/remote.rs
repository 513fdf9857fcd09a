//! The own half of what is asked of ranks that share no memory with this one. Never decides who is admitted: the agent of the
//! target does, see `served`.
//!
//! Puts and accumulates are staged and travel together; the closing calls (unlock, complete, flush, fence) send them and wait
//! until the target has done all. What brings something back waits for it.

use std::ops::Range;
use std::panic::Location;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::RawWindow;
use super::packing::{pack, packed_bytes};
use super::parts::Part;
use super::protocol::{Answer, Ask, NOT_POSTED, POSTED_FOR_OTHERS, Vouched};
use crate::element::OpCode;
use crate::error::{Error, ErrorKind, Evidence, Result};
use crate::liveness::{self, Act, NO_BLOCKER, Needs, WaitFor};
use crate::sync::exposure;
use crate::sync::phases::{Reason, Way};
use crate::sync::state_word::{Refusal, Sharing};
use crate::team::Rank;
use crate::transport::tcp::frame::{Body, DATA_MAX_BYTES, Kind, Malformed, Writer};
use crate::transport::tcp::link::{Cut, Link, Pause, Streaming};
use crate::transport::tcp::wire::Wire;

/// The longest piece of a transfer; longer ones are cut.
const PIECE_MAX_BYTES: usize = DATA_MAX_BYTES / 2;
/// What a piece has before its data: where it goes and how long it is.
pub(super) const PIECE_HEADER_BYTES: usize = 12;
/// Requests for data that are on their way at one time.
const GETS_AT_ONCE: usize = 16;

/// How long a rank that says that a window is broken, or that it departs, tries to open a link for that.
const BREAKING_PATIENCE: Duration = Duration::from_millis(300);
const DEPARTING_PATIENCE: Duration = Duration::from_secs(5);
/// How long a rank that lets go of a lock tries to open a link to the agent at which the next one waits, who is found a little
/// later anyway.
const RINGING_PATIENCE: Duration = Duration::from_millis(20);
const TELLING_SLICE: Duration = Duration::from_millis(10);

const NO_EXPOSURE: Malformed = Malformed("an exposure of a number that none has");

/// A number that explains a wait, and its name.
type Detail = Option<(&'static str, u64)>;

/// A remote place and a local one, and how many bytes belong together.
pub(super) type RemotePiece<P> = (usize, P, usize);

// Asking.
impl RawWindow {
    /// Runs `body` with the link to a target and what is to be done before each sleep.
    #[track_caller]
    pub(super) fn on_link<R>(
        &self,
        call: &'static str,
        at: usize,
        detail: Detail,
        body: impl FnOnce(&Link, Pause<'_>) -> Result<R, Cut>,
    ) -> Result<R> {
        let location = Location::caller();
        let target = Rank(at as u32);
        let segment = self.context.segment();
        let job_rank = self.members.job_rank(target);
        // A target whose program has returned is still served by its agent.
        let needed = |rank: Rank| {
            rank == target && liveness::evidence(segment, job_rank.0) != Some(Evidence::Finished)
        };
        let what = WaitFor {
            call,
            window: Some(self.id),
            team: &self.members,
            needs: Needs::Those(&needed),
            act: Act::Toward(target),
            detail,
            blocker: NO_BLOCKER,
        };
        let mail = &segment.record(self.context.job_rank().0).mail;
        let mut watch = None;
        let mut pause = || watch.get_or_insert_with(|| self.context.watch(mail, what, location)).look();
        let outcome = match self.wire().link(job_rank.0, &mut pause) {
            Ok(link) => body(link, &mut pause),
            Err(cut) => Err(cut),
        };
        drop(watch);
        outcome.map_err(|cut| self.context.cut(cut, &what, target, location))
    }

    fn wire(&self) -> &Arc<Wire> {
        match self.context.wire() {
            Some(wire) => wire,
            None => unreachable!("a window with remote ranks has connections"),
        }
    }

    /// The word that asks a target for something in the epoch that is open toward it.
    fn word(&self, at: usize, ask: Ask) -> u32 {
        ask.word(self.targets[at].vouched.get())
    }

    /// What is alike in transfers that one frame can hold.
    fn alike(&self, codes: [u32; 2]) -> u128 {
        codes.iter().fold(u128::from(self.id), |mark, &code| mark << 32 | u128::from(code))
    }

    /// Asks a target for something and waits for the answer and the data behind it.
    #[track_caller]
    pub(super) fn inquire(
        &self,
        call: &'static str,
        at: usize,
        (ask, detail): (Ask, Detail),
        arguments: impl FnOnce(Writer<'_>),
    ) -> Result<(Answer, Vec<u8>)> {
        self.open_envelope(call, at)?;
        let word = self.word(at, ask);
        let reply = self.on_link(call, at, detail, |link, pause| {
            let request = link.fresh_request();
            link.stage(Kind::Service, request, |body| arguments(body.u64(self.id).u32(word)));
            link.reply(request, pause).inspect_err(|_| {
                // A grant that comes late would be nobody's.
                link.forget(request);
                link.stage(Kind::Service, 0, |body| {
                    body.u64(self.id).u32(Ask::Cancel as u32).u64(request);
                });
                link.push_now();
            })
        })?;
        self.understand(call, at, reply)
    }

    #[track_caller]
    fn understand(&self, call: &'static str, at: usize, reply: Vec<u8>) -> Result<(Answer, Vec<u8>)> {
        let mut body = Body::new(&reply);
        match Answer::read(&mut body) {
            Ok(answer) => {
                let data = body.rest().to_vec();
                Ok((answer, data))
            }
            Err(malformed) => Err(self.malformed(call, at, malformed)),
        }
    }

    #[cold]
    #[track_caller]
    fn malformed(&self, call: &'static str, at: usize, Malformed(why): Malformed) -> Error {
        self.error(ErrorKind::Protocol, call).target(Rank(at as u32)).note(why)
    }

    /// Says something to a target that wants no answer, as soon as the connection takes it.
    fn tell(&self, at: usize, patience: Duration, ask: Ask, arguments: impl FnOnce(Writer<'_>)) {
        let job_rank = self.members.job_rank(Rank(at as u32)).0;
        if matches!(liveness::evidence(self.context.segment(), job_rank), Some(end) if end != Evidence::Finished)
        {
            return;
        }
        let begun = Instant::now();
        // Whoever can't be told is stopped or lost, which whoever needs it finds out.
        let link = self.wire().link(job_rank, &mut || match begun.elapsed() < patience {
            true => Ok(TELLING_SLICE),
            false => Err(self.error(ErrorKind::Stalled, "telling")),
        });
        if let Ok(link) = link {
            link.stage(Kind::Service, 0, |body| arguments(body.u64(self.id).u32(ask as u32)));
            link.push_now();
        }
    }

    /// The error of an answer that is not what was hoped for.
    #[cold]
    #[track_caller]
    fn unhoped(&self, call: &'static str, at: usize, answer: Answer) -> Error {
        let target = Rank(at as u32);
        match answer {
            Answer::Lost(rank, evidence) => {
                let rank = Rank(rank);
                self.error(ErrorKind::PeerLost, call).lost(rank).evidence(evidence).target(target)
            }
            Answer::Departed(rank) => {
                self.failure(call, super::failures::Failure::Departed(Rank(rank))).target(target)
            }
            Answer::Broken | Answer::Start(exposure::Refusal::Poisoned) => self.poisoned_now(call),
            Answer::Start(refusal) => self.broken_start_promise(call, at, refusal),
            Answer::Lock(refusal, holder) => {
                self.lock_refused(call, refusal, holder.map(Rank)).target(target)
            }
            Answer::Outside(start, end) => {
                let note = format!("bytes {start}..{end} are exposed");
                self.error(ErrorKind::OutOfBounds, call).target(target).note(note)
            }
            Answer::NotAdmitted if self.is_broken() => self.poisoned_now(call),
            Answer::NotAdmitted => {
                let note = "the target has gone out of this epoch, and nothing was moved since";
                self.error(ErrorKind::Poisoned, call).target(target).note(note)
            }
            Answer::Done(_) => self.malformed(call, at, Malformed("an answer to another question")),
        }
    }

    #[track_caller]
    fn expect_done(&self, call: &'static str, at: usize, answer: Answer) -> Result<u64> {
        match answer {
            Answer::Done(number) => Ok(number),
            other => Err(self.unhoped(call, at, other)),
        }
    }
}

// Epochs.
impl RawWindow {
    /// Takes the lock of a target, or finds out that it can't be had now.
    #[track_caller]
    pub(super) fn lock_remote(
        &self,
        call: &'static str,
        at: usize,
        sharing: Sharing,
        waits: bool,
    ) -> Result<Result<(), (Refusal, Option<Rank>)>> {
        let code = match sharing {
            Sharing::Exclusive => 0,
            Sharing::Shared => 1,
        };
        let (answer, _) = self.inquire(call, at, (Ask::Lock, None), |body| {
            body.u32(code).u32(waits.into());
        })?;
        self.refusal_of_lock(call, at, answer)
    }

    /// Makes a shared lock of a target exclusive.
    #[track_caller]
    pub(super) fn upgrade_remote(
        &self,
        call: &'static str,
        at: usize,
    ) -> Result<Result<(), (Refusal, Option<Rank>)>> {
        let (answer, _) = self.inquire(call, at, (Ask::Upgrade, None), |_| ())?;
        self.refusal_of_lock(call, at, answer)
    }

    #[track_caller]
    pub(super) fn refusal_of_lock(
        &self,
        call: &'static str,
        at: usize,
        answer: Answer,
    ) -> Result<Result<(), (Refusal, Option<Rank>)>> {
        match answer {
            Answer::Done(_) => Ok(Ok(())),
            Answer::Lock(refusal, holder) => Ok(Err((refusal, holder.map(Rank)))),
            Answer::Lost(rank, _) => {
                // The target does not grant this lock any more; the others of the window are to know.
                self.break_window(rank as usize, Reason::Lost);
                Err(self.unhoped(call, at, answer))
            }
            other => Err(self.unhoped(call, at, other)),
        }
    }

    /// Whether an epoch under NOCHECK can be opened toward a target without a word to it, as its transfers say what the program
    /// vouches for. Memory that is attached later has to stay attached between asking where it is and reaching it.
    pub(super) fn can_vouch(&self, at: usize) -> bool {
        self.targets[at].remote && self.targets[at].attached.is_none()
    }

    /// Completes all transfers to a target and gives its lock back, if it has that.
    #[track_caller]
    pub(super) fn unlock_remote(&self, call: &'static str, at: usize) -> Result<()> {
        if self.targets[at].vouched.take() != Vouched::Nothing {
            return self.flush_remote(call, std::iter::once(at));
        }
        self.targets[at].staged.set(false);
        self.forget_region(at);
        let (answer, _) = self.inquire(call, at, (Ask::Unlock, None), |_| ())?;
        self.expect_done(call, at, answer).map(|_| ())
    }

    /// Starts an access to a target; gives the number of the exposure, or why it is refused.
    #[track_caller]
    pub(super) fn start_remote(
        &self,
        call: &'static str,
        at: usize,
        waits: bool,
    ) -> Result<Result<(u32, Option<Part>), exposure::Refusal>> {
        let detail = Some(("last used exposure", u64::from(self.targets[at].exposure.get())));
        let asked = self.inquire(call, at, (Ask::Start, detail), |body| drop(body.u32(waits.into())));
        let (answer, data) = match asked {
            Err(error) if error.kind() == ErrorKind::Stalled => {
                return Err(self.group_of_stalled_start(call, at, error));
            }
            asked => asked?,
        };
        self.understand_start(call, at, answer, &data)
    }

    /// A start that has stalled, with the reason that a group has for it.
    #[track_caller]
    pub(super) fn group_of_stalled_start(&self, call: &'static str, at: usize, error: Error) -> Error {
        match self.exposure_remote(call, at) {
            Ok(POSTED_FOR_OTHERS) => error.other("an exposure whose group this rank is not in"),
            _ => error,
        }
    }

    /// The exposure and the part that an answer to a start names, or why it is refused.
    #[track_caller]
    pub(super) fn understand_start(
        &self,
        call: &'static str,
        at: usize,
        answer: Answer,
        data: &[u8],
    ) -> Result<Result<(u32, Option<Part>), exposure::Refusal>> {
        match answer {
            Answer::Done(number) => match u32::try_from(number) {
                Ok(number) => Ok(Ok((number, self.read_part(call, at, data)?))),
                Err(_) => Err(self.malformed(call, at, NO_EXPOSURE)),
            },
            Answer::Start(refusal) => Ok(Err(refusal)),
            other => Err(self.unhoped(call, at, other)),
        }
    }

    /// The part that an answer says is open, if it says one.
    #[track_caller]
    fn read_part(&self, call: &'static str, at: usize, data: &[u8]) -> Result<Option<Part>> {
        if data.is_empty() {
            return Ok(None);
        }
        let mut body = Body::new(data);
        let mut read = || {
            let part = Part { start: body.len()?, end: body.len()? };
            body.end().map(|()| part)
        };
        read().map(Some).map_err(|malformed| self.malformed(call, at, malformed))
    }

    /// The part that a target has opened with the last fence.
    #[track_caller]
    pub(super) fn part_remote(&self, call: &'static str, at: usize) -> Result<Part> {
        let (answer, data) = self.inquire(call, at, (Ask::Part, None), |_| ())?;
        self.expect_done(call, at, answer)?;
        match self.read_part(call, at, &data)? {
            Some(part) => Ok(part),
            None => Err(self.malformed(call, at, Malformed("a target does not say what part it has opened"))),
        }
    }

    /// Completes all transfers to a target and the access.
    #[track_caller]
    pub(super) fn complete_remote(&self, call: &'static str, at: usize) -> Result<()> {
        let here = &self.targets[at];
        here.staged.set(false);
        self.forget_region(at);
        let asked = self.inquire(call, at, (Ask::Complete, None), |_| ());
        here.vouched.set(Vouched::Nothing);
        let number = self.expect_done(call, at, asked?.0)?;
        match u32::try_from(number) {
            Ok(0) => {} // It has not been let in, which this rank knows already.
            Ok(number) => here.exposure.set(number),
            Err(_) => return Err(self.malformed(call, at, NO_EXPOSURE)),
        }
        Ok(())
    }

    /// Whether a target has its window posted.
    #[track_caller]
    pub(super) fn is_posted_remote(&self, call: &'static str, at: usize) -> Result<bool> {
        self.exposure_remote(call, at).map(|posted| posted != NOT_POSTED)
    }

    #[track_caller]
    fn exposure_remote(&self, call: &'static str, at: usize) -> Result<u64> {
        let (answer, _) = self.inquire(call, at, (Ask::Posted, None), |_| ())?;
        self.expect_done(call, at, answer)
    }

    /// Forgets the regions of all targets, at a fence.
    pub(super) fn forget_regions(&self) {
        (0..self.targets.len()).for_each(|at| self.forget_region(at));
    }

    /// Waits until the targets have done all that was staged for them.
    #[track_caller]
    pub(super) fn flush_remote(
        &self,
        call: &'static str,
        targets: impl Iterator<Item = usize>,
    ) -> Result<()> {
        let mut asked = Vec::new();
        for at in targets {
            if self.targets[at].staged.replace(false) {
                let request = self.on_link(call, at, None, |link, pause| {
                    let request = link.fresh_request();
                    link.stage(Kind::Service, request, |body| {
                        body.u64(self.id).u32(Ask::Flush as u32);
                    });
                    link.push(pause)?;
                    Ok(request)
                })?;
                asked.push((at, request));
            }
        }
        for (at, request) in asked {
            let reply = self.on_link(call, at, None, |link, pause| {
                link.reply(request, pause).inspect_err(|_| link.forget(request))
            })?;
            let (answer, _) = self.understand(call, at, reply)?;
            self.expect_done(call, at, answer)?;
        }
        Ok(())
    }

    /// Raises a flag of a fence at a target, behind all that was staged for it.
    #[track_caller]
    pub(super) fn signal_remote(
        &self,
        call: &'static str,
        at: usize,
        round: usize,
        number: u64,
        way: Way,
    ) -> Result<()> {
        self.targets[at].staged.set(false);
        self.on_link(call, at, None, |link, pause| {
            link.stage(Kind::Service, 0, |body| {
                body.u64(self.id).u32(Ask::Signal as u32).u32(round as u32).u64(number).u32(way as u32);
            });
            link.push(pause)
        })
    }

    /// Tells a rank that the window is broken.
    pub(super) fn break_remote(&self, at: usize, rank: usize, reason: Reason) {
        self.tell(at, BREAKING_PATIENCE, Ask::Break, |body| {
            body.u32(rank as u32).u32(reason as u32);
        });
    }

    /// Tells the agent of a rank whose memory is mapped that the turn of somebody has come who waits there.
    #[cold]
    pub(super) fn ring_at(&self, at: usize) {
        self.tell(at, RINGING_PATIENCE, Ask::Look, |_| ());
    }

    /// Tells a rank that the own handle is gone.
    pub(super) fn depart_remote(&self, at: usize) {
        self.tell(at, DEPARTING_PATIENCE, Ask::Depart, |_| ());
    }
}

// Transfers.
impl RawWindow {
    /// Stages a put of pieces: where they go, where they come from, and how long they are.
    ///
    /// # Safety
    ///
    /// The pieces are readable, which no reference names that others may write through.
    #[track_caller]
    pub(super) unsafe fn put_remote(
        &self,
        call: &'static str,
        at: usize,
        pieces: impl Iterator<Item = RemotePiece<*const u8>>,
    ) -> Result<()> {
        if self.has_envelope() {
            let pieces: Vec<_> = pieces.collect();
            // SAFETY: - the caller's promise.
            return match unsafe { self.enclose_put(call, at, &pieces) }? {
                true => Ok(()),
                // SAFETY: - the caller's promise.
                false => unsafe { self.stage_put(call, at, pieces.into_iter()) },
            };
        }
        // SAFETY: - the caller's promise.
        unsafe { self.stage_put(call, at, pieces) }
    }

    /// As `put_remote`, without an envelope.
    ///
    /// # Safety
    ///
    /// As for `put_remote`.
    #[track_caller]
    unsafe fn stage_put(
        &self,
        call: &'static str,
        at: usize,
        pieces: impl Iterator<Item = RemotePiece<*const u8>>,
    ) -> Result<()> {
        self.targets[at].staged.set(true);
        let word = self.word(at, Ask::Put);
        self.on_link(call, at, None, |link, pause| {
            let mut streaming = Streaming::new();
            for (offset, from, len) in pieces {
                link.reserve(len + len / PIECE_MAX_BYTES * PIECE_HEADER_BYTES);
                for done in (0..len).step_by(PIECE_MAX_BYTES) {
                    let piece = PIECE_MAX_BYTES.min(len - done);
                    link.stage_more(
                        Kind::Service,
                        self.alike([word, 0]),
                        |body| {
                            body.extend_from_slice(&self.id.to_le_bytes());
                            body.extend_from_slice(&word.to_le_bytes());
                        },
                        piece + PIECE_HEADER_BYTES,
                        |body| {
                            body.extend_from_slice(&((offset + done) as u64).to_le_bytes());
                            body.extend_from_slice(&(piece as u32).to_le_bytes());
                            let start = body.len();
                            body.resize(start + piece, 0);
                            // SAFETY: - in bounds: `done` is below `len`.
                            let from = unsafe { from.add(done) };
                            // SAFETY: - readable: the caller's promise. - writable: just made so long.
                            unsafe { self.engine.copy(body[start..].as_mut_ptr(), from, piece) };
                        },
                        (&mut streaming, pause),
                    )?;
                }
            }
            Ok(())
        })
    }

    /// Gets pieces: where they come from, where they go, and how long they are.
    ///
    /// # Safety
    ///
    /// The pieces are writable, and no reference to them lives but the caller's.
    #[track_caller]
    pub(super) unsafe fn get_remote(
        &self,
        call: &'static str,
        at: usize,
        pieces: impl Iterator<Item = RemotePiece<*mut u8>>,
    ) -> Result<()> {
        self.open_envelope(call, at)?;
        let mut cut = pieces.flat_map(|(offset, to, len)| {
            (0..len)
                .step_by(PIECE_MAX_BYTES)
                .map(move |done| (offset + done, to.wrapping_add(done), PIECE_MAX_BYTES.min(len - done)))
        });
        let mut next = cut.next();
        while next.is_some() {
            let mut asked: Vec<(u64, Vec<RemotePiece<*mut u8>>)> = Vec::new();
            let outcome = self.on_link(call, at, None, |link, pause| {
                while asked.len() < GETS_AT_ONCE && next.is_some() {
                    let request = link.fresh_request();
                    let mut group = Vec::new();
                    let mut total = 0;
                    link.stage(Kind::Service, request, |body| {
                        let mut body = body.u64(self.id).u32(self.word(at, Ask::Get));
                        while let Some(piece) = next
                            && total + piece.2 <= PIECE_MAX_BYTES
                            && (group.len() + 1) * PIECE_HEADER_BYTES <= PIECE_MAX_BYTES
                        {
                            body = body.u64(piece.0 as u64).u32(piece.2 as u32);
                            total += piece.2;
                            group.push(piece);
                            next = cut.next();
                        }
                    });
                    asked.push((request, group));
                }
                asked.iter().map(|(request, _)| link.reply(*request, pause)).collect::<Result<Vec<_>, Cut>>()
            });
            let replies = outcome?;
            for (reply, (_, group)) in replies.into_iter().zip(asked) {
                let mut body = Body::new(&reply);
                let answer = Answer::read(&mut body).map_err(|why| self.malformed(call, at, why))?;
                self.expect_done(call, at, answer)?;
                let mut left = body.rest();
                for (_, to, len) in group {
                    let Some((part, rest)) = left.split_at_checked(len) else {
                        return Err(self.malformed(call, at, Malformed("a reply is too short")));
                    };
                    left = rest;
                    // SAFETY: - writable: the caller's promise. - readable: a slice.
                    unsafe { self.engine.copy(to, part.as_ptr(), len) };
                }
            }
        }
        Ok(())
    }

    /// Combines elements of a target with others: at which byte offset, where they are, and how many.
    ///
    /// # Safety
    ///
    /// The pieces are readable, which no reference names that others may write through.
    #[track_caller]
    pub(super) unsafe fn accumulate_remote(
        &self,
        call: &'static str,
        at: usize,
        operation: OpCode,
        pieces: impl Iterator<Item = RemotePiece<*const u8>>,
    ) -> Result<()> {
        if self.has_envelope() {
            let pieces: Vec<_> = pieces.collect();
            // SAFETY: - the caller's promise.
            return match unsafe { self.enclose_accumulate(call, at, operation, &pieces) }? {
                true => Ok(()),
                // SAFETY: - the caller's promise.
                false => unsafe { self.stage_accumulate(call, at, operation, pieces.into_iter()) },
            };
        }
        // SAFETY: - the caller's promise.
        unsafe { self.stage_accumulate(call, at, operation, pieces) }
    }

    /// As `accumulate_remote`, without an envelope.
    ///
    /// # Safety
    ///
    /// As for `accumulate_remote`.
    #[track_caller]
    unsafe fn stage_accumulate(
        &self,
        call: &'static str,
        at: usize,
        operation: OpCode,
        pieces: impl Iterator<Item = RemotePiece<*const u8>>,
    ) -> Result<()> {
        self.targets[at].staged.set(true);
        let (size, each) = (self.element.size, packed_bytes(self.element));
        let most = (PIECE_MAX_BYTES / size.max(each)).max(1);
        let codes = [self.word(at, Ask::Accumulate), operation as u32];
        self.on_link(call, at, None, |link, pause| {
            let mut streaming = Streaming::new();
            for (offset, from, count) in pieces {
                for done in (0..count).step_by(most) {
                    let piece = most.min(count - done);
                    link.stage_more(
                        Kind::Service,
                        self.alike(codes),
                        |body| {
                            body.extend_from_slice(&self.id.to_le_bytes());
                            codes.iter().for_each(|code| body.extend_from_slice(&code.to_le_bytes()));
                        },
                        piece * each + PIECE_HEADER_BYTES,
                        |body| {
                            body.extend_from_slice(&((offset + done * size) as u64).to_le_bytes());
                            body.extend_from_slice(&(piece as u32).to_le_bytes());
                            // SAFETY: - in bounds: `done` is below `count`.
                            let from = unsafe { from.add(done * size) };
                            // SAFETY: - readable: the caller's promise.
                            unsafe { pack(self.engine, self.element, from, piece, body) };
                        },
                        (&mut streaming, pause),
                    )?;
                }
            }
            Ok(())
        })
    }

    /// As `accumulate_remote`, and gives what was there, packed.
    ///
    /// # Safety
    ///
    /// As for `accumulate_remote`.
    #[track_caller]
    pub(super) unsafe fn fetch_remote(
        &self,
        call: &'static str,
        at: usize,
        operation: OpCode,
        pieces: impl Iterator<Item = RemotePiece<*const u8>>,
    ) -> Result<Vec<u8>> {
        let (size, each) = (self.element.size, packed_bytes(self.element));
        let most = (PIECE_MAX_BYTES / size.max(each)).max(1);
        let mut cut = pieces.flat_map(|(offset, from, count)| {
            (0..count).step_by(most).map(move |done| {
                (offset + done * size, from.wrapping_add(done * size), most.min(count - done))
            })
        });
        let mut next = cut.next();
        let mut before = Vec::new();
        while next.is_some() {
            let mut total = 0;
            let (answer, data) = self.inquire(call, at, (Ask::Fetch, None), |body| {
                let mut body = body.u32(operation as u32);
                let mut packed = Vec::new();
                while let Some((offset, from, count)) = next
                    && (total == 0 || (total + count) * each + packed.len() <= PIECE_MAX_BYTES)
                {
                    packed.clear();
                    // SAFETY: - readable: the caller's promise.
                    unsafe { pack(self.engine, self.element, from, count, &mut packed) };
                    body = body.u64(offset as u64).u32(count as u32).bytes(&packed);
                    total += count;
                    next = cut.next();
                }
            })?;
            self.expect_done(call, at, answer)?;
            if data.len() != total * each {
                return Err(self.malformed(call, at, Malformed("a reply has another length")));
            }
            before.extend_from_slice(&data);
        }
        Ok(before)
    }

    /// Counts a put, behind all that was staged for the target.
    #[track_caller]
    pub(super) fn notify_remote(&self, call: &'static str, at: usize, counter: usize) -> Result<()> {
        self.open_envelope(call, at)?;
        self.targets[at].staged.set(true);
        self.on_link(call, at, None, |link, pause| {
            link.stage(Kind::Service, 0, |body| {
                body.u64(self.id).u32(self.word(at, Ask::Notify)).u32(counter as u32);
            });
            // The target may wait for it while this rank does something else.
            link.push(pause)
        })
    }

    /// Asks a target that attaches its memory for the region that has all of these bytes, unless that is known.
    #[track_caller]
    pub(super) fn learn_region(&self, call: &'static str, at: usize, named: &Range<usize>) -> Result<()> {
        if !self.targets[at].has_unknown_region(named) {
            return Ok(());
        }
        let (answer, data) = self.inquire(call, at, (Ask::Region, None), |body| {
            body.u64(named.start as u64).u64(named.end as u64);
        })?;
        if self.expect_done(call, at, answer)? != 0
            && let Some(Part { start, end }) = self.read_part(call, at, &data)?
        {
            self.targets[at].region.set((start, end));
        }
        Ok(())
    }

    /// Forgets what a target has said about its memory, as it may change when this handle is not admitted any more.
    fn forget_region(&self, at: usize) {
        self.targets[at].region.set((0, 0));
    }

    /// Stores new bits in an element of a target if the expected ones are there, and gives those that were there.
    #[track_caller]
    pub(super) fn compare_swap_remote(
        &self,
        call: &'static str,
        at: usize,
        offset: usize,
        expected: u64,
        new: u64,
    ) -> Result<u64> {
        let (answer, _) = self.inquire(call, at, (Ask::CompareSwap, None), |body| {
            body.u64(offset as u64).u64(expected).u64(new);
        })?;
        self.expect_done(call, at, answer)
    }
}
