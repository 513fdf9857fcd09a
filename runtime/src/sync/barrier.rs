//! A barrier that also compares what its members came for. Never sleeps and never counts time: waiting is the
//! caller's business.
//!
//! Members add one and a signature of their call to one word; the last one compares the sum with its own signature
//! times the number of members, resets the word and advances the generation. A member that gives up waiting breaks
//! the barrier for good, since its arrival cannot be taken back.
#![forbid(unsafe_code)]

use super::event::Event;
use super::primitive::{AtomicU32, AtomicU64, Ordering};

/// Bits of the arrival word that count members; the rest sums signatures.
const COUNT_BITS: u32 = 16;
/// Members that one barrier can have.
pub(crate) const BARRIER_MEMBERS_MAX: u32 = (1 << COUNT_BITS) - 1;

/// Beside the name of who broke the barrier off: because time had passed.
const STALLED: u32 = 1 << 31;
/// Beside the name of who broke the barrier off: because a member waits in a different call.
const ELSEWHERE: u32 = 1 << 30;

const BROKEN: u32 = 1;
const MISMATCHED: u32 = 2;
const FLAGS: u32 = BROKEN | MISMATCHED;
const GENERATION: u32 = 4;

/// A barrier in shared memory. All zero is the initial state.
///
/// One cache line on purpose: with two members, arrival and release then cost two transfers of the line, not three.
#[repr(C, align(64))]
pub(crate) struct Barrier {
    /// How many have arrived (low bits) and the sum of their signatures.
    arrived: AtomicU64,
    /// The generation (upper bits) and two flags that never fall.
    generation: AtomicU32,
    /// Who broke the barrier, plus one, and STALLED or ELSEWHERE.
    broken_by: AtomicU32,
    /// What waiting members sleep on.
    event: Event,
}

/// What a member is told when it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It was the last; the others have been released.
    Last(Outcome),
    /// Others are missing; ask [`Barrier::passed`] with this generation.
    Early(u32),
    /// The barrier was broken before; the member has not arrived.
    Refused,
}

/// How one use of the barrier ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Everybody came, for the same thing.
    Agreed,
    /// Everybody came, for different things. The barrier is broken from now on.
    Mismatched,
    /// A member gave up waiting.
    Broken,
}

/// Why a member breaks the barrier off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A member that the barrier needs was lost.
    Lost,
    /// The time limit passed.
    Stalled,
    /// A member was found in a different call.
    Elsewhere,
}

#[allow(dead_code, reason = "the checker builds barriers, the segment zeroes them")]
impl Barrier {
    pub(crate) fn new() -> Barrier {
        Barrier {
            arrived: AtomicU64::new(0),
            generation: AtomicU32::new(0),
            broken_by: AtomicU32::new(0),
            event: Event::new(),
        }
    }
}

impl Barrier {
    /// Arrives, as one of `members`, with a signature that all members should share.
    ///
    /// Everything a member wrote before is visible to every member after. Budget: one read-modify-write, and for
    /// the last member a second one and the cost of [`Event::notify`].
    #[inline]
    pub(crate) fn arrive(&self, members: u32, signature: u64) -> Arrival {
        // Relaxed: the generation cannot advance without this member, which has seen the last advance already.
        let generation = self.generation.load(Ordering::Relaxed);
        if generation & FLAGS != 0 {
            return Arrival::Refused;
        }
        let share = (signature << COUNT_BITS) | 1;
        // AcqRel: the Release half publishes this member's writes, the Acquire half lets the last member see all.
        let before = self.arrived.fetch_add(share, Ordering::AcqRel);
        let after = before.wrapping_add(share);
        if after & u64::from(BARRIER_MEMBERS_MAX) != u64::from(members) {
            return Arrival::Early(generation);
        }
        let outcome = match after >> COUNT_BITS
            == (signature.wrapping_mul(members.into()) << COUNT_BITS) >> COUNT_BITS
        {
            true => Outcome::Agreed,
            false => Outcome::Mismatched,
        };
        // Relaxed: published by the Release below, before which no member starts the next generation.
        self.arrived.store(0, Ordering::Relaxed);
        let advance = match outcome {
            Outcome::Mismatched => GENERATION | MISMATCHED,
            _ => GENERATION,
        };
        // Release: pairs with the Acquire load in `passed`. An addition keeps a BROKEN flag that arrives meanwhile.
        self.generation.fetch_add(advance, Ordering::Release);
        self.event.notify();
        Arrival::Last(outcome)
    }

    /// Whether the use of the barrier that an early member joined has ended, and how.
    #[inline]
    pub(crate) fn passed(&self, joined: u32) -> Option<Outcome> {
        // Acquire: pairs with the Release in `arrive`.
        let now = self.generation.load(Ordering::Acquire);
        // The generation first: a barrier that broke after it let this member pass has let it pass.
        if (now ^ joined) & !FLAGS != 0 {
            return match now & MISMATCHED {
                0 => Some(Outcome::Agreed),
                _ => Some(Outcome::Mismatched),
            };
        }
        match now & BROKEN {
            0 => None,
            _ => Some(Outcome::Broken),
        }
    }

    /// Gives up waiting on behalf of `member`: everybody that waits or arrives later is told.
    #[cold]
    pub(crate) fn break_off(&self, member: u32, cause: Cause) {
        let name = match cause {
            Cause::Lost => member + 1,
            Cause::Stalled => (member + 1) | STALLED,
            Cause::Elsewhere => (member + 1) | ELSEWHERE,
        };
        // Relaxed: published by the Release below. The first to break off is the one that is named.
        let _ = self.broken_by.compare_exchange(0, name, Ordering::Relaxed, Ordering::Relaxed);
        // Release: pairs with the Acquire loads in `passed` and `broken_by`.
        self.generation.fetch_or(BROKEN, Ordering::Release);
        self.event.wake();
    }

    /// The member that broke the barrier off, if one did, and why.
    pub(crate) fn broken_by(&self) -> Option<(u32, Cause)> {
        // Acquire: pairs with the Release in `break_off`, so that the name is there when the flag is.
        match self.generation.load(Ordering::Acquire) & BROKEN {
            0 => None,
            _ => {
                let name = self.broken_by.load(Ordering::Relaxed);
                let cause = match name & (STALLED | ELSEWHERE) {
                    0 => Cause::Lost,
                    STALLED => Cause::Stalled,
                    _ => Cause::Elsewhere,
                };
                (name & !(STALLED | ELSEWHERE)).checked_sub(1).map(|member| (member, cause))
            }
        }
    }

    /// What waiting members sleep on.
    pub(crate) fn event(&self) -> &Event {
        &self.event
    }
}
