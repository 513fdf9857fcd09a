//! The state word of one window at one rank: who may touch the rank's memory now. Never waits: callers sleep on the slot
//! that a ticket names and poll.
//!
//! # A first-come-first-served reader/writer lock in one word
//!
//! Whoever finds the lock free takes it with one compare-and-swap that also writes its rank. Whoever does not takes a
//! ticket and waits until `serving` has reached it. An exclusive holder keeps `serving` at its ticket until it unlocks; a
//! shared one passes the turn on as soon as it has counted itself among the readers, so that readers next to each other in
//! the queue hold the lock together and a writer behind them waits for the count to reach zero. Nobody overtakes
//! anybody, so nobody starves.
//!
//! # Abandonment
//!
//! A waiter that gives up (time limit, death of a peer) marks its slot. A mark is acted upon by whoever sees the ticket's
//! turn come: the one that moved `serving` there, or the one that set the mark. Each looks at the word after a
//! sequentially consistent fence that follows its own write, so at least one of them sees both; the skip is a
//! compare-and-swap, so only one of them moves the turn.
//!
//! # Posted windows
//!
//! While its owner has posted it, a window can't be locked, and while it is locked or waited for, it can't be posted.
//!
//! # Poison
//!
//! A poisoned word grants nothing any more. Those that hold the lock give it back as usual, so that the owner can see when
//! nobody is left that may write.

use super::primitive::{AtomicU64, Ordering, fence};

/// The most ranks that the word's fields can count.
pub(crate) const RANKS_MAX: usize = 4095;

/// Whether a holder shares the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// Nobody else holds it.
    Exclusive,
    /// Other shared holders may be there.
    Shared,
}

/// A place in the queue of one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u16);

impl Ticket {
    /// The ring slot of the ticket; `slots` is a power of two.
    #[inline]
    pub(crate) fn slot(self, slots: usize) -> usize {
        self.0 as usize & (slots - 1)
    }
}

/// Why a request is not granted, or not even queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The owner has posted the window.
    Posted,
    /// The window is out of use.
    Poisoned,
    /// Somebody holds the lock or waits for it; for calls that don't queue.
    Busy,
    /// The queue is full of abandoned tickets. Trying again later helps.
    Full,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// The lock is held.
    Granted,
    /// The caller is in the queue: it publishes itself in the ticket's slot and polls.
    Queued(Ticket),
}

/// What a waiter sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The lock is held. A shared holder then calls [`StateWord::settle`], as its successor's turn may have come.
    Mine,
    /// Others are before us.
    Waiting,
    /// The lock will never be granted.
    Poisoned,
}

/// A decoded word, for reports and decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State(u64);

const POSTED: u64 = 1;
const POISON: u64 = 1 << 1;
const READER: u64 = 1 << 4;
const READERS: u64 = 0xfff << 4;
const HOLDER_SHIFT: u32 = 16;
const HOLDER: u64 = 0xffff << HOLDER_SHIFT;
const NEXT_SHIFT: u32 = 32;
const NEXT: u64 = 0xffff << NEXT_SHIFT;
/// The serving ticket has the top bits, so that its overflow falls off in an addition.
const SERVING_ONE: u64 = 1 << 48;

impl State {
    /// The exclusive holder.
    pub(crate) fn holder(self) -> Option<u32> {
        match (self.0 & HOLDER) >> HOLDER_SHIFT {
            0 => None,
            holder => Some(holder as u32 - 1),
        }
    }

    /// How many hold it together.
    pub(crate) fn readers(self) -> usize {
        ((self.0 & READERS) / READER) as usize
    }

    /// Whether the owner has posted the window.
    pub(crate) fn is_posted(self) -> bool {
        self.0 & POSTED != 0
    }

    /// Whether the window is out of use.
    pub(crate) fn is_poisoned(self) -> bool {
        self.0 & POISON != 0
    }

    /// Whether nobody holds the lock or waits for it.
    pub(crate) fn is_idle(self) -> bool {
        self.0 & (HOLDER | READERS) == 0 && self.queued() == 0
    }

    /// The ticket whose turn it is, if somebody has it.
    pub(crate) fn first(self) -> Option<Ticket> {
        if self.queued() == 0 { None } else { Some(Ticket(self.serving())) }
    }

    fn serving(self) -> u16 {
        (self.0 >> 48) as u16
    }

    fn next(self) -> u16 {
        (self.0 >> NEXT_SHIFT) as u16
    }

    /// Tickets that are not served yet; an exclusive holder's counts.
    fn queued(self) -> u16 {
        self.next().wrapping_sub(self.serving())
    }

    fn with_next(self) -> u64 {
        let next = u64::from(self.next().wrapping_add(1)) << NEXT_SHIFT;
        self.0 & !NEXT | next
    }

    /// The word after a request of `sharing` by `rank` that finds the lock free, or `None`.
    #[inline(always)]
    fn granted(self, rank: u32, sharing: Sharing) -> Option<u64> {
        let free = match sharing {
            Sharing::Exclusive => self.is_idle(),
            Sharing::Shared => self.queued() == 0, // An exclusive holder keeps its ticket queued.
        };
        if !free {
            return None;
        }
        Some(match sharing {
            Sharing::Exclusive => self.with_next() | holder(rank),
            Sharing::Shared => self.with_next().wrapping_add(SERVING_ONE) + READER,
        })
    }
}

#[inline(always)]
fn holder(rank: u32) -> u64 {
    (u64::from(rank) + 1) << HOLDER_SHIFT
}

/// See the module.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct StateWord(AtomicU64);

impl StateWord {
    /// A free word. Zeroed memory is one, too.
    #[allow(dead_code, reason = "the checker builds it, the segment zeroes it")]
    pub(crate) fn new() -> StateWord {
        StateWord(AtomicU64::new(0))
    }

    /// The word as it is.
    #[inline]
    pub(crate) fn state(&self) -> State {
        State(self.0.load(Ordering::Acquire)) // Acquire: pairs with the Release of every change.
    }

    /// Takes the lock if it is free, else joins the queue. `slots` is the length of the ring, a power of two.
    #[inline(always)]
    pub(crate) fn request(&self, rank: u32, sharing: Sharing, slots: usize) -> Result<Request, Refusal> {
        let mut now = State(self.0.load(Ordering::Relaxed)); // Relaxed: confirmed by the exchange.
        loop {
            if now.0 & (POSTED | POISON) != 0 {
                return Err(refusal(now));
            }
            let (new, outcome) = match now.granted(rank, sharing) {
                Some(new) => (new, Request::Granted),
                None if now.queued() as usize >= slots => return Err(Refusal::Full),
                None => (now.with_next(), Request::Queued(Ticket(now.next()))),
            };
            // Acquire: pairs with the Release of the unlocks before us. Release: publishes what a shared holder has
            // recorded about itself to whoever poisons the word later.
            match self.0.compare_exchange_weak(now.0, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Ok(outcome),
                Err(changed) => now = State(changed),
            }
        }
    }

    /// Takes the lock if it is free; never queues.
    #[inline]
    pub(crate) fn try_lock(&self, rank: u32, sharing: Sharing) -> Result<(), Refusal> {
        let mut now = State(self.0.load(Ordering::Relaxed)); // Relaxed: confirmed by the exchange.
        loop {
            if now.0 & (POSTED | POISON) != 0 {
                return Err(refusal(now));
            }
            let new = now.granted(rank, sharing).ok_or(Refusal::Busy)?;
            // Acquire: pairs with the Release of the unlocks before us. Release: publishes what a shared holder has
            // recorded about itself to whoever poisons the word later.
            match self.0.compare_exchange_weak(now.0, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(changed) => now = State(changed),
            }
        }
    }

    /// Makes a shared lock exclusive if nobody else has it or waits for it.
    pub(crate) fn try_upgrade(&self, rank: u32) -> Result<(), Refusal> {
        let mut now = State(self.0.load(Ordering::Relaxed)); // Relaxed: confirmed by the exchange.
        loop {
            if now.is_poisoned() {
                return Err(Refusal::Poisoned);
            }
            if now.readers() != 1 || now.queued() != 0 {
                return Err(Refusal::Busy);
            }
            let new = (now.with_next() - READER) | holder(rank);
            // Acquire: pairs with the Release of the readers that were there. Release: as in `request`.
            match self.0.compare_exchange_weak(now.0, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(changed) => now = State(changed),
            }
        }
    }

    /// Takes the lock if the ticket's turn has come.
    pub(crate) fn poll(&self, ticket: Ticket, rank: u32, sharing: Sharing) -> Turn {
        let mut now = State(self.0.load(Ordering::Relaxed)); // Relaxed: confirmed by the exchange.
        loop {
            if now.is_poisoned() {
                return Turn::Poisoned;
            }
            if now.serving() != ticket.0 || (sharing == Sharing::Exclusive && now.readers() != 0) {
                return Turn::Waiting;
            }
            let new = match sharing {
                Sharing::Exclusive => now.0 | holder(rank),
                Sharing::Shared => now.0.wrapping_add(SERVING_ONE) + READER,
            };
            // Acquire: pairs with the Release of the unlocks before us. Release: publishes what a shared holder has
            // recorded about itself to whoever poisons the word later.
            match self.0.compare_exchange_weak(now.0, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Turn::Mine,
                Err(changed) => now = State(changed),
            }
        }
    }

    /// Gives the lock back. `true` asks the caller to [`settle`](Self::settle), as somebody waits.
    #[inline(always)]
    pub(crate) fn unlock(&self, rank: u32, sharing: Sharing) -> bool {
        match sharing {
            Sharing::Exclusive => {
                let change = SERVING_ONE.wrapping_sub(holder(rank));
                // Release: pairs with the Acquire of the next holder.
                let old = State(self.0.fetch_add(change, Ordering::Release));
                debug_assert_eq!(old.holder(), Some(rank));
                old.queued() != 1
            }
            Sharing::Shared => {
                // Release: pairs with the Acquire of the next exclusive holder, through the later readers' exchanges.
                let old = State(self.0.fetch_sub(READER, Ordering::Release));
                debug_assert_ne!(old.readers(), 0);
                old.readers() == 1 && old.queued() != 0
            }
        }
    }

    /// Skips abandoned tickets whose turn has come, and returns the one whose waiter is to be woken.
    ///
    /// `abandoned` looks into the slot of a ticket.
    #[cold]
    pub(crate) fn settle(&self, abandoned: impl Fn(Ticket) -> bool) -> Option<Ticket> {
        // The caller has just moved the turn or marked a slot, and the other side does the other. After this fence at
        // least one of the two sees both. Pairs with the same fence in the other side's call.
        fence(Ordering::SeqCst);
        let mut now = State(self.0.load(Ordering::Acquire)); // Acquire: pairs with the Release of every change.
        loop {
            if now.queued() == 0 || now.holder().is_some() {
                return None;
            }
            let first = Ticket(now.serving());
            if !abandoned(first) {
                return Some(first);
            }
            // Release and Acquire: hands on what the previous holder released.
            let skipped = now.0.wrapping_add(SERVING_ONE);
            match self.0.compare_exchange_weak(now.0, skipped, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    fence(Ordering::SeqCst); // As above: we have moved the turn.
                    now = State(self.0.load(Ordering::Acquire)); // Acquire: as above.
                }
                Err(changed) => now = State(changed),
            }
        }
    }

    /// Marks the window as posted by its owner, unless somebody holds its lock or waits for it.
    pub(crate) fn post(&self) -> Result<(), Refusal> {
        let mut now = self.state();
        loop {
            if now.is_poisoned() || now.is_posted() {
                return Err(refusal(now));
            }
            if !now.is_idle() {
                return Err(Refusal::Busy);
            }
            // Acquire: pairs with the Release of the last unlock. Release: pairs with the Acquire of a refused request.
            match self.0.compare_exchange_weak(now.0, now.0 | POSTED, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(changed) => now = State(changed),
            }
        }
    }

    /// Ends what [`post`](Self::post) began.
    pub(crate) fn unpost(&self) {
        // Release: pairs with the Acquire of the next holder, which then sees what the exposure's origins wrote.
        let old = State(self.0.fetch_and(!POSTED, Ordering::Release));
        debug_assert!(old.is_posted());
    }

    /// Takes the window out of use and returns the state before. Whoever is admitted by the lock is admitted before this.
    #[cold]
    pub(crate) fn poison(&self) -> State {
        // SeqCst: after it, the caller reads the records of shared holders, which they wrote before their exchange.
        let old = State(self.0.fetch_or(POISON, Ordering::SeqCst));
        fence(Ordering::SeqCst);
        old
    }
}

#[cold]
fn refusal(state: State) -> Refusal {
    if state.is_poisoned() { Refusal::Poisoned } else { Refusal::Posted }
}

/// A waiter's entry in the ring: its ticket, its rank, and whether it has given up.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Slot(AtomicU64);

const ABANDONED: u64 = 1 << 32;

impl Slot {
    /// An empty slot. Zeroed memory is one, too.
    #[allow(dead_code, reason = "the checker builds it, the segment zeroes it")]
    pub(crate) fn new() -> Slot {
        Slot(AtomicU64::new(0))
    }

    /// Enters a waiter, so that others can name it.
    pub(crate) fn enter(&self, ticket: Ticket, rank: u32) {
        // Release: pairs with the Acquire in `waiter` and `is_abandoned`.
        self.0.store(u64::from(ticket.0) | (u64::from(rank) + 1) << 16, Ordering::Release);
    }

    /// Marks the entered ticket as given up. The caller then settles the word.
    pub(crate) fn abandon(&self, ticket: Ticket) {
        // Release: pairs with the Acquire in `is_abandoned`; `settle` fences before it reads the word.
        self.0.store(u64::from(ticket.0) | ABANDONED, Ordering::Release);
    }

    /// Whether this very ticket was given up.
    pub(crate) fn is_abandoned(&self, ticket: Ticket) -> bool {
        // Acquire: pairs with the Release in `abandon`.
        self.0.load(Ordering::Acquire) == u64::from(ticket.0) | ABANDONED
    }

    /// The rank that waits with this ticket.
    pub(crate) fn waiter(&self, ticket: Ticket) -> Option<u32> {
        // Acquire: pairs with the Release in `enter`.
        let entry = self.0.load(Ordering::Acquire);
        let here = entry & 0xffff == u64::from(ticket.0) && entry & ABANDONED == 0;
        match (entry >> 16) & 0xffff {
            rank if here && rank != 0 => Some(rank as u32 - 1),
            _ => None,
        }
    }
}
