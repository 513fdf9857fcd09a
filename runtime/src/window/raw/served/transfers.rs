//! Transfers that ranks without shared memory ask for: checked on arrival, and done by the same copies and the same
//! instructions as those of ranks that map the memory. Never decides who is admitted, and never waits: an element that somebody
//! else is changing stops a transfer, which goes on from there when it is given again.

#![allow(unsafe_code)]

use std::ops::Range;

use super::elements;
use super::{Extents, Granted, Memory, Served, State, Verdict};
use crate::element::{BasicType, OpCode};
use crate::error::Evidence;
use crate::sync::state_word::Sharing;
use crate::team::Rank;
use crate::transport::shm::atomic::COMBINE_ALONE_MIN;
use crate::transport::tcp::frame::{BODY_MAX_BYTES, Body, Malformed};
use crate::window::raw::Atomicity;
use crate::window::raw::control::Stripe;
use crate::window::raw::guard::{owner_atomicity, stripe_of};
use crate::window::raw::packing::{pack, packed_bytes, unpack};
use crate::window::raw::protocol::Answer;
use crate::window::raw::regions::Regions;

/// How often a guard that somebody else has is looked at before the transfer is put off: who has it has it for the time of two
/// copies.
const GUARD_LOOKS: u32 = 64;

/// Values of an accumulate that are made aligned at one time: 4 KiB.
const ALIGNED_WORDS: usize = 512;

/// How far a transfer has come: elements that are done, and what was there before them.
#[derive(Clone, Default)]
pub(super) struct Resume {
    done: usize,
    before: Vec<u8>,
}

/// Whether what was there is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fetches {
    No,
    Yes,
}

/// What became of elements that were to be combined.
pub(super) enum Combined {
    /// All are, and this was there, if that was asked for.
    All(Vec<u8>),
    /// Somebody else is changing one of them; the rest has to come later.
    Held,
    /// Somebody has ended while changing one of them.
    Lost(u32, Evidence),
}

/// Why an element was not changed.
enum Stop {
    Held,
    Lost(u32, Evidence),
    Malformed(Malformed),
}

impl Stop {
    /// The answer to a compare and swap that was stopped; `None` if it has to come later.
    fn answer(self) -> Result<Option<Answer>, Malformed> {
        match self {
            Stop::Held => Ok(None),
            Stop::Lost(lost, evidence) => Ok(Some(Answer::Lost(lost, evidence))),
            Stop::Malformed(malformed) => Err(malformed),
        }
    }
}

impl From<Malformed> for Stop {
    fn from(malformed: Malformed) -> Stop {
        Stop::Malformed(malformed)
    }
}

/// Elements of an accumulate in a row: where, how many, and their packed bytes.
struct Elements<'a> {
    at: usize,
    count: usize,
    from: &'a [u8],
}

impl Served {
    /// Whether a rank may move data now; a refusal is remembered for its closing call.
    pub(super) fn admits(&self, state: &mut State, rank: u32) -> bool {
        let access = state.origins.get(&rank).map_or(Granted::Nothing, |origin| origin.access);
        // Without a start or a lock it has to be a fence phase, in which the owner has no view.
        let admitted = match access {
            Granted::Nothing => self.control().word.0.state().holder() != Some(self.me),
            Granted::Refused if !state.shut => return false, // It has its verdict.
            Granted::Refused => false,
            Granted::Start(_) | Granted::Lock(_) => true,
        };
        if !state.shut && admitted {
            return true;
        }
        state.origins.entry(rank).or_default().verdict = Verdict::Refused;
        false
    }

    /// The region that has all of these bytes.
    pub(super) fn region(&self, named: &Range<usize>) -> Option<Range<usize>> {
        match self.ground.extent {
            Extents::Fixed(bytes) => (named.start <= named.end && named.end <= bytes).then_some(0..bytes),
            Extents::Attached => self.regions().region_of(named),
        }
    }

    fn regions(&self) -> &Regions {
        self.segment.shared(self.offset + self.plan.data as u64)
    }

    /// The address of a range of the data.
    fn place(&self, at: usize, len: usize) -> Result<*mut u8, Malformed> {
        const OUTSIDE: Malformed = Malformed("a transfer reaches outside the window");
        let end = at.checked_add(len).ok_or(OUTSIDE)?;
        let start = match self.ground.extent {
            Extents::Fixed(bytes) if end <= bytes => self.offset + self.plan.data as u64,
            Extents::Attached if len == 0 || self.regions().region_of(&(at..end)).is_some() => {
                self.regions().range()
            }
            Extents::Fixed(_) | Extents::Attached => return Err(OUTSIDE),
        };
        // What names no bytes may lie behind all that there are.
        Ok(self.segment.at(start + if len == 0 { 0 } else { at as u64 }))
    }

    /// Notes what a transfer has written, for an owner that has a private copy.
    fn wrote(&self, at: usize, len: usize) {
        if let (Some(marked), Extents::Fixed(bytes)) = (self.ground.marked, self.ground.extent) {
            marked.note(&self.segment, bytes, at, len);
        }
    }

    pub(super) fn put(&self, admitted: bool, mut body: Body<'_>) -> Result<(), Malformed> {
        while !body.is_empty() {
            let (at, len) = (body.len()?, body.u32()? as usize);
            let from = body.bytes(len)?;
            let to = self.place(at, len)?;
            if admitted {
                // SAFETY: - writable and in bounds: `place`. - readable: a slice. - no reference to the memory lives: the
                //   origin is admitted, which excludes the owner's views. - readers and writers at the same time copy by
                //   the same routine.
                unsafe { self.ground.engine.copy(to, from.as_ptr(), len) };
                self.wrote(at, len);
            }
        }
        Ok(())
    }

    /// Appends to a reply what is asked for.
    pub(super) fn get(&self, mut body: Body<'_>, reply: &mut Vec<u8>) -> Result<(), Malformed> {
        let before = reply.len();
        while !body.is_empty() {
            let (at, len) = (body.len()?, body.u32()? as usize);
            let from = self.place(at, len)?;
            let start = reply.len();
            if BODY_MAX_BYTES / 2 < start - before + len {
                return Err(Malformed("more is asked for than one reply holds"));
            }
            reply.resize(start + len, 0);
            // SAFETY: - readable and in bounds: `place`. - writable: just made so long. - writers at the same time copy by the
            //   same routine.
            unsafe { self.ground.engine.copy(reply[start..].as_mut_ptr(), from, len) };
        }
        Ok(())
    }

    /// Combines elements of the window with those of a body, from where an earlier try has stopped, and gives what was there if
    /// that is wanted.
    pub(super) fn combine(
        &self,
        state: &mut State,
        (rank, admitted): (u32, bool),
        mut body: Body<'_>,
        wants: Fetches,
    ) -> Result<Combined, Malformed> {
        let operation = body.u32()?;
        let each = packed_bytes(self.ground.element);
        let alone = is_alone(state, rank);
        let fetches = wants == Fetches::Yes;
        let origin = state.origins.get_mut(&rank);
        let Resume { mut done, mut before } =
            origin.and_then(|origin| origin.resume.take()).unwrap_or_default();
        let mut passed = 0;
        while !body.is_empty() {
            let (at, count) = (body.len()?, body.u32()? as usize);
            let len = count.checked_mul(each).ok_or(Malformed("more elements than can be counted"))?;
            let from = body.bytes(len)?;
            let bytes = count.checked_mul(self.ground.element.size);
            self.place(at, bytes.ok_or(Malformed("more elements than can be counted"))?)?;
            if !admitted {
                continue;
            }
            // Elements that were combined before the transfer was put off.
            let skipped = count.min(done - passed.min(done));
            let mut left = Elements {
                at: at + skipped * self.ground.element.size,
                count: count - skipped,
                from: &from[skipped * each..],
            };
            let outcome = self.combine_elements(alone, operation, &mut left, fetches.then_some(&mut before));
            passed += count - left.count;
            done = done.max(passed);
            match outcome {
                Ok(()) => {}
                Err(Stop::Held) => {
                    state.origins.entry(rank).or_default().resume = Some(Resume { done, before });
                    return Ok(Combined::Held);
                }
                Err(Stop::Lost(lost, evidence)) => return Ok(Combined::Lost(lost, evidence)),
                Err(Stop::Malformed(malformed)) => return Err(malformed),
            }
        }
        Ok(Combined::All(before))
    }

    /// Combines elements in a row, and leaves those that are not combined.
    fn combine_elements(
        &self,
        alone: bool,
        operation: u32,
        left: &mut Elements<'_>,
        mut before: Option<&mut Vec<u8>>,
    ) -> Result<(), Stop> {
        let (each, size) = (packed_bytes(self.ground.element), self.ground.element.size);
        if let (Some(basic), None) = (self.native(left.at), &before) {
            let &mut Elements { at, count, from } = left;
            let _guard = self.guard_native(alone, at)?;
            let to = self.place(at, count * size)?;
            let many = (alone || self.ground.is_guarded) && COMBINE_ALONE_MIN <= count;
            // The bytes of a body lie anywhere, and the loops want them aligned. A few at a time stay in the fastest memory.
            let mut aligned = [0_u64; ALIGNED_WORDS];
            let most = size_of_val(&aligned) / size;
            for first in (0..count).step_by(most) {
                let some = most.min(count - first);
                let from = &from[first * each..][..some * each];
                // SAFETY: - readable: a slice. - writable: as long as `most` elements, which have no padding.
                unsafe { self.ground.engine.copy(aligned.as_mut_ptr().cast(), from.as_ptr(), from.len()) };
                // SAFETY: - in bounds: `first` is below `count`.
                let to = unsafe { to.add(first * size) };
                let (code, values) = ((basic, operation), aligned.as_ptr().cast());
                match many {
                    // SAFETY: - in bounds and writable: `place`. - readable: copied above. - aligned: `native`, and words are. -
                    //   no reference lives there: see `put`. - nobody else changes the elements: the exclusive lock, or the
                    //   guard, which all take who can reach them.
                    true => unsafe { elements::combine_alone(self.ground.engine, code, to, values, some) }?,
                    // SAFETY: - as above, but for others.
                    false => unsafe { elements::combine_each(self.ground.engine, code, to, values, some) }?,
                }
            }
            self.wrote(at, count * size);
            left.count = 0;
            return Ok(());
        }
        while 0 < left.count {
            let value = &left.from[..each];
            let old = match self.native(left.at) {
                Some(basic) => {
                    let _guard = self.guard_native(alone, left.at)?;
                    let place = self.place(left.at, size)?;
                    // SAFETY: - in bounds and aligned: `place`, `native`. - no reference lives there: see `put`.
                    let old = unsafe { elements::fetch_op((basic, operation), place, bits_of(value)) }?;
                    self.wrote(left.at, size);
                    old.to_le_bytes()[..each].to_vec()
                }
                None => self.change(alone, left.at, |old| self.combined(operation, old, value))?,
            };
            if let Some(before) = &mut before {
                before.extend_from_slice(&old);
            }
            left.at += size;
            left.count -= 1;
            left.from = &left.from[each..];
        }
        Ok(())
    }

    /// The answer of a compare and swap; `None` if it has to come later.
    pub(super) fn compare_swap(
        &self,
        state: &State,
        rank: u32,
        mut body: Body<'_>,
    ) -> Result<Option<Answer>, Malformed> {
        let basic = self.ground.element.as_basic().ok_or(Malformed("structures are not compared"))?;
        let at = body.len()?;
        let (expected, new) = (body.u64()?, body.u64()?);
        body.end()?;
        let size = basic.size();
        let place = self.place(at, size)?;
        if self.native(at).is_some() {
            let _guard = match self.guard_native(is_alone(state, rank), at) {
                Ok(guard) => guard,
                Err(stop) => return stop.answer(),
            };
            // SAFETY: - in bounds and aligned: `place`, `native`. - no reference lives there: see `put`.
            let before = unsafe { elements::compare_swap(basic, place, expected, new) };
            if before == expected {
                self.wrote(at, size);
            }
            return Ok(Some(Answer::Done(before)));
        }
        let choose = |old: &[u8]| {
            let bits = if bits_of(old) == expected { new } else { bits_of(old) };
            Ok(bits.to_le_bytes()[..size].to_vec())
        };
        match self.change(is_alone(state, rank), at, choose) {
            Ok(old) => Ok(Some(Answer::Done(bits_of(&old)))),
            Err(stop) => stop.answer(),
        }
    }

    /// The basic type of an element that is changed by an instruction.
    fn native(&self, at: usize) -> Option<BasicType> {
        let basic = self.ground.element.as_basic()?;
        (self.ground.atomicity == Atomicity::Native && at.is_multiple_of(basic.size())).then_some(basic)
    }

    /// What an element and a value combine to, as packed bytes.
    fn combined(&self, operation: u32, old: &[u8], value: &[u8]) -> Result<Vec<u8>, Malformed> {
        match self.ground.element.as_basic() {
            Some(basic) => {
                let bits = elements::combine_bits(basic, operation, bits_of(old), bits_of(value))?;
                Ok(bits.to_le_bytes()[..old.len()].to_vec())
            }
            None if operation == OpCode::Replace as u32 => Ok(value.to_vec()),
            None if operation == OpCode::NoOp as u32 => Ok(old.to_vec()),
            None => Err(Malformed("an operation that structures don't have")),
        }
    }

    /// Changes one element under its guard, and gives what was there. Both are packed.
    fn change(
        &self,
        alone: bool,
        at: usize,
        new: impl FnOnce(&[u8]) -> Result<Vec<u8>, Malformed>,
    ) -> Result<Vec<u8>, Stop> {
        let Memory { engine, element, .. } = self.ground;
        let place = self.place(at, element.size)?;
        // The exclusive lock proves that nobody else accumulates here, as everybody would need the lock.
        let _guard = match alone {
            true => None,
            false => Some(self.take_guard(at)?),
        };
        let mut old = Vec::new();
        // SAFETY: - readable and in bounds: `place`.
        unsafe { pack(engine, element, place, 1, &mut old) };
        let outcome = new(&old);
        if let Ok(new) = &outcome {
            // SAFETY: - writable and in bounds: `place`. - no reference lives there: see `put`.
            unsafe { unpack(engine, element, new, place) };
            self.wrote(at, element.size);
        }
        outcome.map(|_| old).map_err(Stop::Malformed)
    }

    /// Takes the guard of elements that are changed by instructions, where the owner takes it, too.
    fn guard_native(&self, alone: bool, at: usize) -> Result<Option<Guarded<'_>>, Stop> {
        match self.ground.is_guarded && !alone {
            true => self.take_guard(at).map(Some),
            false => Ok(None),
        }
    }

    /// Takes the guard of a place for the owner, whose process it is that changes the element.
    fn take_guard(&self, at: usize) -> Result<Guarded<'_>, Stop> {
        let atomicity = owner_atomicity(self.ground.atomicity, self.ground.is_guarded);
        let stripe = &self.control().guards.0[stripe_of(atomicity, at)];
        for _ in 0..GUARD_LOOKS {
            if stripe.guard.try_take(self.me) {
                return Ok(Guarded(stripe));
            }
            std::thread::yield_now();
        }
        match stripe.guard.holder().and_then(|holder| Some((holder, self.evidence(Rank(holder))?))) {
            Some((lost, evidence)) => Err(Stop::Lost(lost, evidence)),
            None => Err(Stop::Held),
        }
    }
}

/// A guard that is held.
struct Guarded<'a>(&'a Stripe);

impl Drop for Guarded<'_> {
    fn drop(&mut self) {
        self.0.guard.give_back();
        self.0.released.notify();
    }
}

fn is_alone(state: &State, rank: u32) -> bool {
    state.origins.get(&rank).is_some_and(|origin| origin.access == Granted::Lock(Sharing::Exclusive))
}

/// The bits of a packed element of a basic type.
fn bits_of(packed: &[u8]) -> u64 {
    let mut bits = [0; 8];
    bits[..packed.len()].copy_from_slice(packed);
    u64::from_le_bytes(bits)
}
