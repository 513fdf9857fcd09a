//! Epochs under WEAK toward ranks without shared memory, whose transfers are kept until the closing call: one frame opens the
//! epoch, brings what was kept, and closes it. Never decides who is admitted: the agent of the target does, and keeps the
//! frame until then.
//!
//! What the frame can't hold (too much, or a transfer that brings something back) makes an ordinary epoch of it: the target is
//! asked, and what was put into the frame before travels behind the answer.
#![allow(unsafe_code)]

use super::deferral::{Promise, Style};
use super::packing::{pack, packed_bytes};
use super::parts::Part;
use super::protocol::{Answer, Ask};
use super::remote::{PIECE_HEADER_BYTES, RemotePiece};
use super::{Access, LockKind, RawWindow};
use crate::element::OpCode;
use crate::error::{ErrorKind, Result};
use crate::team::Rank;
use crate::transport::tcp::frame::{Body, DATA_MAX_BYTES, Kind};

/// What one frame brings at most, beside what it says of the epoch.
const ENVELOPE_MAX_BYTES: usize = DATA_MAX_BYTES / 2;

/// The transfers of an epoch that travel with its opening and closing: for each its length and the body of its frame.
pub(super) struct Envelope {
    at: usize,
    style: Style,
    bytes: Vec<u8>,
}

impl RawWindow {
    /// Whether the closing call of an epoch that was not let in can open, fill and close it by one frame.
    pub(super) fn can_enclose(&self, at: usize) -> bool {
        self.targets[at].remote && self.targets[at].attached.is_none()
    }

    /// Whether an epoch is being gathered for one frame.
    #[inline]
    pub(super) fn has_envelope(&self) -> bool {
        self.envelope.borrow().is_some()
    }

    /// Opens an epoch, moves what it has kept, and closes it.
    #[track_caller]
    pub(super) fn close_enclosed(&self, call: &'static str, at: usize, promise: Promise) -> Result<()> {
        let here = &self.targets[at];
        let (style, kept) = promise.into_kept();
        here.access.set(match style {
            Style::Start => Access::Started,
            Style::Lock(LockKind::Exclusive) => Access::Exclusive,
            Style::Lock(LockKind::Shared) => Access::Shared,
        });
        *self.envelope.borrow_mut() = Some(Envelope { at, style, bytes: Vec::new() });
        let mut outcome = Ok(());
        for transfer in kept {
            let moved = transfer(self);
            outcome = outcome.and(moved);
        }
        let envelope = self.envelope.borrow_mut().take();
        let closed = match envelope {
            Some(envelope) => self.send_envelope(call, &envelope),
            // It became an ordinary epoch on the way, or could not be opened.
            None if here.access.get() == Access::None => Ok(()),
            None => self.close_ordinary(call, at, style),
        };
        here.access.set(Access::None);
        self.forget_part(at);
        let count = match style {
            Style::Start => &self.open.started,
            Style::Lock(_) => &self.open.locked,
        };
        count.set(count.get() - 1);
        outcome.and(closed)
    }

    #[track_caller]
    fn close_ordinary(&self, call: &'static str, at: usize, style: Style) -> Result<()> {
        match style {
            Style::Start => self.complete_remote(call, at),
            Style::Lock(_) => self.unlock_remote(call, at),
        }
    }

    #[track_caller]
    fn send_envelope(&self, call: &'static str, envelope: &Envelope) -> Result<()> {
        let &Envelope { at, style, ref bytes } = envelope;
        let last = u64::from(self.targets[at].exposure.get());
        let (code, detail) = match style {
            Style::Start => (0, Some(("last used exposure", last))),
            Style::Lock(LockKind::Exclusive) => (1, None),
            Style::Lock(LockKind::Shared) => (2, None),
        };
        let answer = self.inquire(call, at, (Ask::Epoch, detail), |body| {
            body.u32(code).bytes(bytes);
        });
        match (style, answer) {
            (Style::Start, Err(error)) if error.kind() == ErrorKind::Stalled => {
                Err(self.group_of_stalled_start(call, at, error))
            }
            (_, Err(error)) => Err(error),
            (Style::Start, Ok((answer, data))) => {
                let Some(part) = self.enclosed_start(call, at, answer, &data)? else { return Ok(()) };
                // Nothing was moved, as the target can't know what the part leaves of it.
                self.refuse_outside(call, at, part, bytes)?;
                self.send_entries(call, at, bytes)?;
                self.complete_remote(call, at)
            }
            (Style::Lock(_), Ok((answer, _))) => self.enclosed_lock(call, at, answer),
        }
    }

    /// Refuses entries that reach outside the part that a target exposes, and gives the epoch up.
    #[track_caller]
    fn refuse_outside(&self, call: &'static str, at: usize, part: Part, bytes: &[u8]) -> Result<()> {
        let sizes = (self.element.size, packed_bytes(self.element));
        let outside =
            pieces_of(bytes, sizes).find(|(start, len)| *start < part.start || part.end < start + len);
        let Some((start, len)) = outside else { return Ok(()) };
        let unit = self.targets[at].unit;
        let range = start / unit..(start + len).div_ceil(unit);
        let error = self.error(ErrorKind::OutOfBounds, call).target(Rank(at as u32)).range(range);
        let error = error.note(format!("bytes {}..{} are exposed", part.start, part.end));
        self.complete_remote(call, at).and(Err(error))
    }

    /// Sends what an envelope holds as frames of their own, to a target that has let this rank in.
    #[track_caller]
    fn send_entries(&self, call: &'static str, at: usize, bytes: &[u8]) -> Result<()> {
        self.targets[at].staged.set(true);
        self.on_link(call, at, None, |link, pause| {
            for entry in entries(bytes) {
                link.stage(Kind::Service, 0, |body| drop(body.u64(self.id).bytes(entry)));
                link.push_if_many(pause)?;
            }
            Ok(())
        })
    }

    /// Makes an ordinary epoch of one toward this target, if that is to travel in one frame: the target is asked now.
    #[track_caller]
    #[inline]
    pub(super) fn open_envelope(&self, call: &'static str, at: usize) -> Result<()> {
        match self.targets[at].remote && self.envelope.borrow().as_ref().is_some_and(|it| it.at == at) {
            true => self.open_envelope_now(call, at),
            false => Ok(()),
        }
    }

    #[cold]
    #[track_caller]
    fn open_envelope_now(&self, call: &'static str, at: usize) -> Result<()> {
        let Some(envelope) = self.envelope.borrow_mut().take() else { return Ok(()) };
        let admitted = match envelope.style {
            Style::Start => self.ask_to_start(call, at, true),
            Style::Lock(kind) => self.ask_for_lock(call, at, kind, true),
        };
        if let Err(error) = admitted {
            self.targets[at].access.set(Access::None);
            return Err(error);
        }
        self.send_entries(call, at, &envelope.bytes)
    }

    /// Puts a put into the envelope of its epoch. `false` if there is none.
    ///
    /// # Safety
    ///
    /// As for [`put_remote`](RawWindow::put_remote).
    #[track_caller]
    pub(super) unsafe fn enclose_put(
        &self,
        call: &'static str,
        at: usize,
        pieces: &[RemotePiece<*const u8>],
    ) -> Result<bool> {
        let bytes = pieces.iter().map(|(_, _, len)| len + PIECE_HEADER_BYTES).sum();
        if !self.has_envelope_for(call, at, bytes)? {
            return Ok(false);
        }
        self.enclose(|body| {
            body.extend_from_slice(&(Ask::Put as u32).to_le_bytes());
            for &(offset, from, len) in pieces {
                body.extend_from_slice(&(offset as u64).to_le_bytes());
                body.extend_from_slice(&(len as u32).to_le_bytes());
                let start = body.len();
                body.resize(start + len, 0);
                // SAFETY: - readable: the caller's promise. - writable: just made so long.
                unsafe { self.engine.copy(body[start..].as_mut_ptr(), from, len) };
            }
        });
        Ok(true)
    }

    /// As `enclose_put`, for elements that are combined.
    ///
    /// # Safety
    ///
    /// As for [`accumulate_remote`](RawWindow::accumulate_remote).
    #[track_caller]
    pub(super) unsafe fn enclose_accumulate(
        &self,
        call: &'static str,
        at: usize,
        operation: OpCode,
        pieces: &[RemotePiece<*const u8>],
    ) -> Result<bool> {
        let each = packed_bytes(self.element);
        let bytes = pieces.iter().map(|(_, _, count)| count * each + PIECE_HEADER_BYTES).sum();
        if !self.has_envelope_for(call, at, bytes)? {
            return Ok(false);
        }
        self.enclose(|body| {
            body.extend_from_slice(&(Ask::Accumulate as u32).to_le_bytes());
            body.extend_from_slice(&(operation as u32).to_le_bytes());
            for &(offset, from, count) in pieces {
                body.extend_from_slice(&(offset as u64).to_le_bytes());
                body.extend_from_slice(&(count as u32).to_le_bytes());
                // SAFETY: - readable: the caller's promise.
                unsafe { pack(self.engine, self.element, from, count, body) };
            }
        });
        Ok(true)
    }

    /// Whether a transfer of so many bytes has room in the envelope of its epoch; one that has none opens the epoch.
    #[track_caller]
    fn has_envelope_for(&self, call: &'static str, at: usize, bytes: usize) -> Result<bool> {
        let room = match &*self.envelope.borrow() {
            Some(envelope) if envelope.at == at => ENVELOPE_MAX_BYTES.saturating_sub(envelope.bytes.len()),
            _ => return Ok(false),
        };
        match bytes <= room {
            true => Ok(true),
            false => self.open_envelope_now(call, at).map(|()| false),
        }
    }

    fn enclose(&self, write: impl FnOnce(&mut Vec<u8>)) {
        if let Some(Envelope { bytes, .. }) = &mut *self.envelope.borrow_mut() {
            let start = bytes.len();
            bytes.extend_from_slice(&[0; ENTRY_HEADER_BYTES]);
            write(bytes);
            let len = (bytes.len() - start - ENTRY_HEADER_BYTES) as u32;
            bytes[start..start + ENTRY_HEADER_BYTES].copy_from_slice(&len.to_le_bytes());
        }
    }

    /// What is left to do of an epoch after the answer to its one frame: the part that is exposed, if it was only opened.
    #[track_caller]
    fn enclosed_start(
        &self,
        call: &'static str,
        at: usize,
        answer: Answer,
        data: &[u8],
    ) -> Result<Option<Part>> {
        match self.understand_start(call, at, answer, data)? {
            Ok((number, part)) => {
                self.started_remote(at, number, part);
                Ok(part)
            }
            Err(refusal) => Err(self.broken_start_promise(call, at, refusal)),
        }
    }

    #[track_caller]
    fn enclosed_lock(&self, call: &'static str, at: usize, answer: Answer) -> Result<()> {
        match self.refusal_of_lock(call, at, answer)? {
            Ok(()) => Ok(()),
            Err((refusal, holder)) => Err(self.lock_refused(call, refusal, holder).target(Rank(at as u32))),
        }
    }
}

const ENTRY_HEADER_BYTES: usize = 4;

/// The bodies in an envelope that this rank has written.
fn entries(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut body = Body::new(bytes);
    std::iter::from_fn(move || {
        let len = body.u32().ok()? as usize;
        body.bytes(len).ok()
    })
}

/// Where the pieces of all entries go, and how long they are; elements have so many bytes at their place, and on the way.
fn pieces_of(bytes: &[u8], (size, packed): (usize, usize)) -> impl Iterator<Item = (usize, usize)> {
    entries(bytes).flat_map(move |entry| {
        let mut body = Body::new(entry);
        let is_put = body.u32() == Ok(Ask::Put as u32);
        if !is_put {
            let _operation = body.u32();
        }
        let mut pieces = Vec::new();
        while let (Ok(at), Ok(count)) = (body.len(), body.u32()) {
            let count = count as usize;
            let (there, travels) = match is_put {
                true => (count, count),
                false => (count * size, count * packed),
            };
            pieces.push((at, there));
            if body.bytes(travels).is_err() {
                break;
            }
        }
        pieces
    })
}
