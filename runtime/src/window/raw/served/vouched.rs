//! Epochs that are opened by their transfers, as their origin vouches for what others ask for first (NOCHECK). Never takes its word
//! for it: what it vouches for is looked at when a transfer arrives, and if it is not true nothing moves.
//!
//! - Of a start it is said that the target is posted. The first transfer, or the complete of an epoch without one, is counted in
//!   at the exposure like a request to start; if there is none, nothing of the epoch is done any more, and its complete says why,
//!   unless a transfer that brings something back has. As nobody has told the origin which part is exposed, its transfers are held against that here.
//! - Of a lock it is said that nobody has one that conflicts. Nothing is held between the transfers of such an epoch; each takes the
//!   lock while it is done, which excludes the views of the owner, or is refused. One that is put off with a part of it done, as it has
//!   met an element that somebody else is changing, keeps the lock until it is done.
#![forbid(unsafe_code)]

use std::ops::Range;

use super::{Granted, Served, State, Verdict};
use crate::sync::exposure::Extent;
use crate::sync::state_word::Sharing;
use crate::transport::tcp::frame::{Body, Malformed};
use crate::window::raw::packing::packed_bytes;
use crate::window::raw::protocol::{Ask, Vouched};

/// What is put back when a transfer of a vouched epoch is done.
#[derive(Clone, Default)]
pub(super) struct Entry {
    lock: Option<Sharing>,
    /// What the origin has then, and, if that changes, what it is told at the end.
    after: Option<(Granted, Option<Verdict>)>,
}

impl Served {
    /// Lets a transfer in, as far as it is true what its origin vouches for. [`leave`](Served::leave) follows it.
    pub(super) fn enter(
        &self,
        state: &mut State,
        rank: u32,
        vouched: Vouched,
        (ask, body): (Ask, Body<'_>),
    ) -> Result<Entry, Malformed> {
        // Nothing else of its origin is done before.
        if let Some(kept) = state.origins.get_mut(&rank).and_then(|origin| origin.kept.take()) {
            return Ok(kept);
        }
        match vouched {
            _ if state.shut => Ok(Entry::default()),
            Vouched::Nothing => Ok(Entry::default()),
            Vouched::Posted => self.enter_exposure(state, rank, (ask, body)),
            Vouched::Alone => Ok(self.enter_lock(state, rank, Sharing::Exclusive, ask)),
            Vouched::Unlocked => Ok(self.enter_lock(state, rank, Sharing::Shared, ask)),
        }
    }

    /// Ends what [`enter`](Served::enter) began.
    pub(super) fn leave(&self, state: &mut State, rank: u32, entry: Entry) {
        let unfinished = state.origins.get_mut(&rank).filter(|origin| origin.resume.is_some());
        if let (Some(_), Some(origin)) = (entry.lock, unfinished) {
            origin.kept = Some(entry);
            return;
        }
        if let Some(sharing) = entry.lock {
            self.give_back(rank, sharing);
        }
        if let (Some((access, verdict)), Some(origin)) = (entry.after, state.origins.get_mut(&rank)) {
            origin.access = access;
            if let Some(verdict) = verdict {
                origin.verdict = verdict;
                origin.told = false;
            }
        }
    }

    fn enter_exposure(
        &self,
        state: &mut State,
        rank: u32,
        (ask, body): (Ask, Body<'_>),
    ) -> Result<Entry, Malformed> {
        let here = state.origins.entry(rank).or_default();
        match here.access {
            Granted::Lock(_) => return Err(Malformed("a rank vouches for a post under a lock")),
            // It stays refused for all of its epoch, lest half of that is done.
            Granted::Refused => return Ok(Entry::default()),
            Granted::Start(_) => {}
            Granted::Nothing => match self.try_start(rank) {
                Ok((number, extent)) => {
                    here.access = Granted::Start(number);
                    here.request = 0;
                    here.verdict = Verdict::Done;
                    here.part = match extent {
                        Extent::Whole => None,
                        Extent::Part => Some(self.control().exposure.0.part.get()),
                    };
                }
                Err(refusal) => {
                    here.access = Granted::Refused;
                    here.verdict = Verdict::NotStarted(refusal);
                    here.told = false;
                    return Ok(Entry::default());
                }
            },
        }
        let Some((start, end)) = here.part else { return Ok(Entry::default()) };
        if !self.reaches_outside(ask, body, &(start..end))? {
            return Ok(Entry::default());
        }
        // Only this transfer is refused; who is told of it at once need not be told at the end.
        let told = if ask.has_reply() { here.verdict } else { Verdict::Outside(start, end) };
        let after = Some((here.access, Some(told)));
        here.access = Granted::Refused;
        here.verdict = Verdict::Outside(start, end);
        Ok(Entry { lock: None, after })
    }

    fn enter_lock(&self, state: &mut State, rank: u32, sharing: Sharing, ask: Ask) -> Entry {
        let here = state.origins.entry(rank).or_default();
        match here.access {
            // Inside an epoch that was asked for, that one counts.
            Granted::Start(_) | Granted::Lock(_) => return Entry::default(),
            // Until its origin has asked what has become of what it has put.
            Granted::Refused => return Entry::default(),
            Granted::Nothing => {}
        }
        if let Err(refusal) = self.take_at_once(rank, sharing) {
            let after = ask.has_reply().then_some((Granted::Nothing, Some(here.verdict)));
            here.access = Granted::Refused;
            here.verdict = Verdict::NotLocked(refusal, self.control().word.0.state().holder());
            return Entry { lock: None, after };
        }
        here.access = Granted::Lock(sharing);
        Entry { lock: Some(sharing), after: Some((Granted::Nothing, None)) }
    }

    /// Whether a transfer reaches outside these bytes.
    fn reaches_outside(&self, ask: Ask, mut body: Body<'_>, exposed: &Range<u64>) -> Result<bool, Malformed> {
        const TOO_MANY: Malformed = Malformed("more elements than can be counted");
        let (size, packed) = (self.ground.element.size, packed_bytes(self.ground.element));
        match ask {
            Ask::Put | Ask::Get | Ask::CompareSwap => {}
            Ask::Fetch | Ask::Accumulate => drop(body.u32()?),
            _ => return Ok(false),
        }
        while !body.is_empty() {
            let start = body.u64()?;
            let (len, travels) = match ask {
                Ask::CompareSwap => (size, 16),
                Ask::Get => (body.u32()? as usize, 0),
                Ask::Put => {
                    let len = body.u32()? as usize;
                    (len, len)
                }
                _ => {
                    let count = body.u32()? as usize;
                    let bytes = |each| count.checked_mul(each).ok_or(TOO_MANY);
                    (bytes(size)?, bytes(packed)?)
                }
            };
            body.bytes(travels)?;
            let end = start.checked_add(len as u64).ok_or(TOO_MANY)?;
            if start < exposed.start || exposed.end < end {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
