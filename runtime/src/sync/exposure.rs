//! The exposure of one window by its owner: who was let in, and who is done. Never waits: callers sleep and try again.
//!
//! An exposure has two words on cache lines of their own: the door, which origins look at and the owner writes, and the tally of
//! those that are done, which origins add to and the owner looks at.
//!
//! # Anyone
//!
//! An origin is admitted by a compare-and-swap of the door that finds it open and counts the origin among `started`; it
//! leaves by an addition to the tally. The owner closes by a compare-and-swap of the door that finds as many started as are
//! done, and as many as it waits for. As admission and closing change the same word, an origin is either admitted before the
//! closing, and waited for, or sees it.
//!
//! # A group
//!
//! Who will come is known, and each comes once. So a member that finds the door open only announces itself in its record and
//! looks at the door once more: nobody changes the door, which each member has in its cache while it waits. When all members
//! are done, nobody is left that could come in, and the owner shuts the door by a store. An owner that ends the exposure before
//! (it counts fewer, or gives up) shuts the door and then looks at the records: of two that announce themselves by a store, a
//! fence and a look, at least one sees the other. If more have come than are done, the door is opened again.
//!
//! # One use per origin
//!
//! Every exposure has a number. An origin remembers the last number that it used and is admitted to a later one only, so the
//! completes that a wait counts come from different origins. Beside the words every origin has a record, written
//! by it before it is admitted: the owner reads the records to name origins, and, after a failure, to see whether
//! somebody who was admitted may still write. The first member of a group stands in the door, as a group has one member more often
//! than not, and a record that the owner writes too would wander between the caches.

use super::primitive::{AtomicU64, Ordering, fence};

/// The first member of the group, or all bits.
const FIRST_MASK: u64 = (1 << 14) - 1;
/// How many origins have started, if there is no group.
const STARTED_ONE: u64 = 1 << 14;
const STARTED_MASK: u64 = FIRST_MASK << 14;
const OPEN: u64 = 1 << 28;
const GROUP: u64 = 1 << 29;
const POISON: u64 = 1 << 30;
const PART: u64 = 1 << 31;
const NUMBER_SHIFT: u32 = 32;

/// The most ranks of a team whose members the door can name and count.
pub(crate) const RANKS_MAX: usize = FIRST_MASK as usize;

/// Whom an exposure admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admits {
    /// Every rank of the team.
    Anyone,
    /// This rank, if there is one, and those whose records name the exposure's number.
    Group { first: Option<u32> },
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

    /// Whether the exposure is for this rank, whose record at the owner is `origin`.
    #[inline]
    pub(crate) fn admits(self, rank: u32, origin: &Origin) -> bool {
        !self.is_for_group() || self.0 & FIRST_MASK == u64::from(rank) || origin.is_allowed(self.number())
    }

    /// How many origins have been admitted, if the exposure is for anyone.
    fn started(self) -> u64 {
        (self.0 & STARTED_MASK) / STARTED_ONE
    }

    /// The same exposure, closed.
    fn shut(self) -> u64 {
        self.0 & !(OPEN | GROUP | PART | FIRST_MASK | STARTED_MASK)
    }
}

/// The door of one window's exposures. See the module.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Exposure {
    word: AtomicU64,
    /// How many were done when the exposure was opened; the owner alone reads it.
    before: AtomicU64,
}

/// How many origins are done, in all exposures of one window.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Tally(AtomicU64);

impl Tally {
    /// Nobody has come. Zeroed memory is that, too.
    #[allow(dead_code, reason = "the checker builds it, the segment zeroes it")]
    pub(crate) fn new() -> Tally {
        Tally(AtomicU64::new(0))
    }

    /// Counts an origin of exposure `number` as done. The owner is to be notified.
    #[inline]
    pub(crate) fn complete(&self, origin: &Origin, number: u32) {
        // Release: pairs with the Acquire in `try_close`: the owner sees what the origin wrote.
        self.0.fetch_add(1, Ordering::Release);
        // Behind the tally, so that an origin that ends in between counts as done or as at work. Release: pairs with the
        // Acquire in `is_at_work`.
        origin.used.store(u64::from(number), Ordering::Release);
    }
}

/// Who can come to an exposure that is to be closed.
pub(crate) enum Crowd<'a> {
    /// Nobody but those that are counted: they are all members of its group.
    Counted,
    /// Others, too; this says how many records name the exposure of a number as the last that was asked for.
    Others(&'a dyn Fn(u32) -> u64),
}

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

    /// Puts the origin into the group of the exposure that is opened next, or into that of the open one.
    pub(crate) fn allow(&self, number: u32) {
        // Release: pairs with the Acquire in `is_allowed`; in most cases the opening of the exposure orders it already.
        self.allowed.store(u64::from(number), Ordering::Release);
    }

    /// Whether the origin's record names this exposure. [`Status::admits`] knows the whole group.
    pub(crate) fn is_allowed(&self, number: u32) -> bool {
        // Acquire: pairs with the Release in `allow`: who is let in later sees what the owner stored before.
        self.allowed.load(Ordering::Acquire) == u64::from(number)
    }

    /// Whether the origin was let in, or was about to be, and may not have completed.
    pub(crate) fn is_at_work(&self) -> bool {
        // Acquire: pairs with the Release in `complete`, so that the origin's last write is seen before.
        self.used.load(Ordering::Acquire) & AT_WORK != 0
    }

    /// As `is_at_work`, on this exposure.
    pub(crate) fn is_at_work_on(&self, number: u32) -> bool {
        self.used.load(Ordering::Acquire) == u64::from(number) | AT_WORK // Acquire: as above.
    }

    /// The number of the last exposure that the origin was let into.
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
        Exposure { word: AtomicU64::new(0), before: AtomicU64::new(0) }
    }

    /// The word as it is.
    #[inline]
    pub(crate) fn status(&self) -> Status {
        Status(self.word.load(Ordering::Acquire)) // Acquire: pairs with the Release of every change.
    }

    /// The number that the next exposure will have.
    pub(crate) fn next_number(&self) -> u32 {
        self.status().number().wrapping_add(1)
    }

    /// Opens the next exposure. Only the owner calls this, with the previous one closed.
    pub(crate) fn open(&self, tally: &Tally, admits: Admits, extent: Extent) -> Result<u32, Refusal> {
        let now = self.status();
        if now.0 & POISON != 0 {
            return Err(Refusal::Poisoned);
        }
        debug_assert!(!now.is_open());
        let number = now.number().wrapping_add(1);
        let group = match admits {
            Admits::Anyone => 0,
            Admits::Group { first } => GROUP | first.map_or(FIRST_MASK, u64::from),
        };
        let part = match extent {
            Extent::Whole => 0,
            Extent::Part => PART,
        };
        // Relaxed: everybody who was admitted has been waited for, so the count stands still.
        self.before.store(tally.0.load(Ordering::Relaxed), Ordering::Relaxed);
        // Release: pairs with the Acquire in `start`: origins see the stores before the post. A closed word is changed by
        // nobody else, so a store will do.
        self.word.store(u64::from(number) << NUMBER_SHIFT | OPEN | group | part, Ordering::Release);
        Ok(number)
    }

    /// Admits a rank, whose record is `origin` and that has last used exposure `last`, and returns the number of this one and what
    /// it opens. If it has seemed to be at work and is not admitted, `withdrawn` is called: an owner may wait for that.
    #[inline]
    pub(crate) fn start(
        &self,
        rank: u32,
        origin: &Origin,
        last: u32,
        withdrawn: impl FnOnce(),
    ) -> Result<(u32, Extent), Refusal> {
        let mut now = self.status();
        let outcome = loop {
            if now.0 & (POISON | OPEN) != OPEN {
                break Err(if now.0 & POISON == 0 { Refusal::Closed } else { Refusal::Poisoned });
            }
            let number = now.number();
            if number == last {
                break Err(Refusal::Used);
            }
            if !now.admits(rank, origin) {
                break Err(Refusal::NotInGroup);
            }
            // Relaxed: published by the exchange or the fence that follows.
            origin.used.store(u64::from(number) | AT_WORK, Ordering::Relaxed);
            if now.is_for_group() {
                // SeqCst: pairs with the fences in `try_close` and `poison`: the owner sees the record, or this sees the door.
                fence(Ordering::SeqCst);
                match self.status() {
                    again if again == now => return Ok((number, now.extent())),
                    changed => now = changed,
                }
                continue;
            }
            let new = now.0 + STARTED_ONE;
            // Acquire: pairs with the Release in `open`. Release: publishes the record to whoever closes or poisons.
            match self.word.compare_exchange_weak(now.0, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok((number, now.extent())),
                Err(changed) => now = Status(changed),
            }
        };
        // Not admitted: take an announcement back. Release: pairs with the Acquire in `is_at_work`.
        if origin.used.load(Ordering::Relaxed) & AT_WORK != 0 {
            origin.used.store(u64::from(last), Ordering::Release);
            withdrawn();
        }
        outcome
    }

    /// Ends the exposure if exactly `count` origins have completed, or if more came and all of them have.
    #[inline]
    pub(crate) fn try_close(&self, tally: &Tally, count: usize, crowd: &Crowd<'_>) -> Closing {
        let mut done = self.done(tally);
        if done < count as u64 {
            return Closing::Pending;
        }
        let now = self.status();
        let closed = match (now.is_for_group(), crowd) {
            (true, Crowd::Counted) => {
                self.shut(now);
                true
            }
            (true, Crowd::Others(come)) => match self.shut_before_others(now, tally, come) {
                Some(done_at_last) => {
                    done = done_at_last;
                    true
                }
                None => false,
            },
            // Acquire: pairs with the Release of other origins' exchanges. Release: pairs with the Acquire in `start`.
            (false, _) => {
                done == now.started()
                    && self
                        .word
                        .compare_exchange(now.0, now.shut(), Ordering::AcqRel, Ordering::Acquire)
                        .is_ok()
            }
        };
        match closed {
            false => Closing::Pending,
            true if done == count as u64 => Closing::Closed,
            true => Closing::Exceeded,
        }
    }

    /// Shuts the door of a group: nobody else changes it.
    #[inline]
    fn shut(&self, now: Status) {
        self.word.store(now.shut(), Ordering::Release); // Release: pairs with the Acquire in `start`.
    }

    /// How many origins have completed in this exposure.
    #[inline]
    fn done(&self, tally: &Tally) -> u64 {
        // Acquire: pairs with the Release in `complete`. Relaxed: the owner reads what it wrote.
        tally.0.load(Ordering::Acquire) - self.before.load(Ordering::Relaxed)
    }

    /// Shuts the door of a group some of which may still come, unless one of them is inside. How many are done then.
    #[cold]
    fn shut_before_others(&self, now: Status, tally: &Tally, come: &dyn Fn(u32) -> u64) -> Option<u64> {
        self.all_done(now, tally, come)?;
        self.shut(now);
        // SeqCst: pairs with the fence in `start`.
        fence(Ordering::SeqCst);
        let done = self.all_done(now, tally, come);
        if done.is_none() {
            // It is inside, or has seen the door shut and looks again, as after any post.
            self.word.store(now.0, Ordering::Release);
        }
        done
    }

    /// How many are done, if those are all who have come. Whether a record says that its origin is at work does not matter: that
    /// falls behind the tally, and nobody would be told of it.
    fn all_done(&self, now: Status, tally: &Tally, come: &dyn Fn(u32) -> u64) -> Option<u64> {
        let mut done = self.done(tally);
        loop {
            // Whoever is done is among those who have come, so as many are the same ones.
            if come(now.number()) == done {
                return Some(done);
            }
            match self.done(tally) {
                same if same == done => return None,
                more => done = more,
            }
        }
    }

    /// Takes the window out of use: nobody is admitted from here on, and the records show who was.
    #[cold]
    pub(crate) fn poison(&self) -> Status {
        // SeqCst: origins that were admitted have announced themselves before; see `is_at_work`.
        let old = Status(self.word.fetch_or(POISON, Ordering::SeqCst));
        fence(Ordering::SeqCst);
        old
    }
}
