//! The exposure of one window by its owner: who was let in, and who is done. Never waits: callers sleep and try again.
//!
//! # Admission and closing are one word
//!
//! An origin is admitted by a compare-and-swap that finds the exposure open and counts it among `started`; it leaves by
//! an addition to `completed`. The owner closes by a compare-and-swap that finds both counts equal to the number it waits
//! for. As all three change the same word, an origin is either admitted before the closing, and waited for, or sees it.
//!
//! # One use per origin
//!
//! Every exposure has a number. An origin remembers the last number that it used and is admitted to a later one only, so the
//! completes that a wait counts come from different origins. Beside the word every origin has a record, written
//! by it before it asks for admission: the owner reads the records to name origins, and, after a failure, to see whether
//! somebody who was admitted may still write.

use super::primitive::{AtomicU64, Ordering, fence};

const COMPLETED_ONE: u64 = 1;
const STARTED_ONE: u64 = 1 << 14;
const COUNT_MASK: u64 = (1 << 14) - 1;
const OPEN: u64 = 1 << 28;
const GROUP: u64 = 1 << 29;
const POISON: u64 = 1 << 30;
const PART: u64 = 1 << 31;
const NUMBER_SHIFT: u32 = 32;

/// Whom an exposure admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admits {
    /// Every rank of the team.
    Anyone,
    /// The ranks whose records name the exposure's number.
    Group,
}

/// How much of the window an exposure opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All of it.
    Whole,
    /// What the owner's [`Part`] says.
    Part,
}

/// The bytes that an owner exposes when it does not expose all of them. It is set before the exposure is opened, or the fence
/// signalled, that it is for, and read by those whom that has let in; it does not change while they are in.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Part {
    start: AtomicU64,
    end: AtomicU64,
}

impl Part {
    /// No bytes. Zeroed memory is that, too.
    #[allow(dead_code, reason = "the checker builds it, the segment zeroes it")]
    pub(crate) fn new() -> Part {
        Part { start: AtomicU64::new(0), end: AtomicU64::new(0) }
    }

    /// Says which bytes are exposed next.
    pub(crate) fn set(&self, start: u64, end: u64) {
        // Relaxed: published by the opening of the exposure, or by the signal of the fence.
        self.start.store(start, Ordering::Relaxed);
        self.end.store(end, Ordering::Relaxed);
    }

    /// The first exposed byte, and the one after the last.
    pub(crate) fn get(&self) -> (u64, u64) {
        // Relaxed: ordered by the Acquire of the admission.
        (self.start.load(Ordering::Relaxed), self.end.load(Ordering::Relaxed))
    }
}

/// Why an origin is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The window is not posted.
    Closed,
    /// The origin has used this exposure already.
    Used,
    /// The exposure is for others.
    NotInGroup,
    /// The window is out of use.
    Poisoned,
}

/// What the owner's wait sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    /// The exposure has ended with the number of origins that was asked for.
    Closed,
    /// Somebody has not completed, or has not come.
    Pending,
    /// More origins have come than were asked for, and all are done. The exposure is closed.
    Exceeded,
}

/// A decoded word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(u64);

impl Status {
    /// The number of the latest exposure; the first is 1.
    pub(crate) fn number(self) -> u32 {
        (self.0 >> NUMBER_SHIFT) as u32
    }

    /// Whether origins can be admitted.
    pub(crate) fn is_open(self) -> bool {
        self.0 & OPEN != 0
    }

    /// Whether the exposure was for a group.
    pub(crate) fn is_for_group(self) -> bool {
        self.0 & GROUP != 0
    }

    fn extent(self) -> Extent {
        if self.0 & PART == 0 { Extent::Whole } else { Extent::Part }
    }

    /// How many origins have been admitted.
    pub(crate) fn started(self) -> usize {
        ((self.0 / STARTED_ONE) & COUNT_MASK) as usize
    }

    /// How many of them are done.
    pub(crate) fn completed(self) -> usize {
        (self.0 & COUNT_MASK) as usize
    }
}

/// See the module.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Exposure(AtomicU64);

/// What one origin has to do with the exposures of one owner.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Origin {
    /// The number of the last exposure whose group the origin is in; the owner writes it.
    allowed: AtomicU64,
    /// The number of the last exposure that the origin asked for, and whether it may still be at work; it writes it.
    used: AtomicU64,
}

const AT_WORK: u64 = 1 << 32;

impl Origin {
    /// No relation. Zeroed memory is that, too.
    #[allow(dead_code, reason = "the checker builds it, the segment zeroes it")]
    pub(crate) fn new() -> Origin {
        Origin { allowed: AtomicU64::new(0), used: AtomicU64::new(0) }
    }

    /// Puts the origin into the group of the exposure that is opened next.
    pub(crate) fn allow(&self, number: u32) {
        // Release: pairs with the Acquire in `start`; in most cases the opening of the exposure orders it already.
        self.allowed.store(u64::from(number), Ordering::Release);
    }

    /// Whether the origin is in the group of this exposure.
    pub(crate) fn is_allowed(&self, number: u32) -> bool {
        self.allowed.load(Ordering::Relaxed) == u64::from(number) // Relaxed: the owner reads what it wrote.
    }

    /// Whether the origin was let in, or was about to be, and has not completed.
    pub(crate) fn is_at_work(&self) -> bool {
        // Acquire: pairs with the Release in `complete`, so that the origin's last write is seen before.
        self.used.load(Ordering::Acquire) & AT_WORK != 0
    }

    /// The number of the last exposure that the origin was let into, or asked for.
    pub(crate) fn last(&self) -> u32 {
        self.used.load(Ordering::Relaxed) as u32 // Relaxed: the origin, or who acts for it, reads what it wrote.
    }

    /// Whether the origin has started on this exposure.
    pub(crate) fn has_used(&self, number: u32) -> bool {
        // Acquire: pairs with the Release in `complete`.
        self.used.load(Ordering::Acquire) & 0xffff_ffff == u64::from(number)
    }
}

impl Exposure {
    /// A window that was never posted. Zeroed memory is that, too.
    #[allow(dead_code, reason = "the checker builds it, the segment zeroes it")]
    pub(crate) fn new() -> Exposure {
        Exposure(AtomicU64::new(0))
    }

    /// The word as it is.
    #[inline]
    pub(crate) fn status(&self) -> Status {
        Status(self.0.load(Ordering::Acquire)) // Acquire: pairs with the Release of every change.
    }

    /// The number that the next exposure will have.
    pub(crate) fn next_number(&self) -> u32 {
        self.status().number().wrapping_add(1)
    }

    /// Opens the next exposure. Only the owner calls this, with the previous one closed.
    pub(crate) fn open(&self, admits: Admits, extent: Extent) -> Result<u32, Refusal> {
        let now = self.status();
        if now.0 & POISON != 0 {
            return Err(Refusal::Poisoned);
        }
        debug_assert!(!now.is_open());
        let number = now.number().wrapping_add(1);
        let group = match admits {
            Admits::Anyone => 0,
            Admits::Group => GROUP,
        };
        let part = match extent {
            Extent::Whole => 0,
            Extent::Part => PART,
        };
        // Release: pairs with the Acquire in `start`: origins see the stores before the post. A closed word is changed by
        // nobody else, so a store will do.
        self.0.store(u64::from(number) << NUMBER_SHIFT | OPEN | group | part, Ordering::Release);
        Ok(number)
    }

    /// Admits an origin that has last used exposure `last`, and returns the number of this one and what it opens.
    #[inline]
    pub(crate) fn start(&self, origin: &Origin, last: u32) -> Result<(u32, Extent), Refusal> {
        let mut now = self.status();
        let outcome = loop {
            if now.0 & (POISON | OPEN) != OPEN {
                break Err(if now.0 & POISON == 0 { Refusal::Closed } else { Refusal::Poisoned });
            }
            let number = now.number();
            if number == last {
                break Err(Refusal::Used);
            }
            // Acquire: pairs with the Release in `allow`.
            if now.is_for_group() && origin.allowed.load(Ordering::Acquire) != u64::from(number) {
                break Err(Refusal::NotInGroup);
            }
            // Relaxed: published by the exchange that follows.
            origin.used.store(u64::from(number) | AT_WORK, Ordering::Relaxed);
            let new = now.0 + STARTED_ONE;
            // Acquire: pairs with the Release in `open`. Release: publishes the record to whoever closes or poisons.
            match self.0.compare_exchange_weak(now.0, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok((number, now.extent())),
                Err(changed) => now = Status(changed),
            }
        };
        // Not admitted: take an announcement back. Release: pairs with the Acquire in `is_at_work`.
        if origin.used.load(Ordering::Relaxed) & AT_WORK != 0 {
            origin.used.store(u64::from(last), Ordering::Release);
        }
        outcome
    }

    /// Counts the origin as done. Its owner is to be notified.
    #[inline]
    pub(crate) fn complete(&self, origin: &Origin, number: u32) {
        // Release: pairs with the Acquire in `is_at_work`.
        origin.used.store(u64::from(number), Ordering::Release);
        // Release: pairs with the Acquire in `try_close`: the owner sees what the origin wrote.
        let old = Status(self.0.fetch_add(COMPLETED_ONE, Ordering::Release));
        debug_assert!(old.completed() < old.started());
    }

    /// Ends the exposure if exactly `count` origins have completed, or if more came and all of them have.
    pub(crate) fn try_close(&self, count: usize) -> Closing {
        let mut now = self.status(); // Its Acquire pairs with the Release in `complete`.
        loop {
            if now.completed() < count || now.completed() < now.started() {
                return Closing::Pending;
            }
            let closed = now.0 & !(OPEN | GROUP | PART | COUNT_MASK | (COUNT_MASK * STARTED_ONE));
            // Acquire: pairs with the Release in `complete`. Release: pairs with the Acquire in `start`.
            match self.0.compare_exchange_weak(now.0, closed, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) if now.completed() == count => return Closing::Closed,
                Ok(_) => return Closing::Exceeded,
                Err(changed) => now = Status(changed),
            }
        }
    }

    /// Takes the window out of use: nobody is admitted from here on, and the records show who was.
    #[cold]
    pub(crate) fn poison(&self) -> Status {
        // SeqCst: origins that were admitted have announced themselves before; see `is_at_work`.
        let old = Status(self.0.fetch_or(POISON, Ordering::SeqCst));
        fence(Ordering::SeqCst);
        old
    }
}
