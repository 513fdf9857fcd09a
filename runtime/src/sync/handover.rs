//! The word of a parcel: something that one rank, its sender, hands to another, its receiver, and that may be taken back or carried
//! by its sender meanwhile. Never holds what is handed over.
//!
//! A parcel goes by one of two ways:
//!
//! - *the data lie in it:* the sender posts it, the receiver claims it, takes the data and says that it is done;
//! - *the data stay with the sender:* the receiver claims it and grants a place, the sender begins to copy there and says that it
//!   has delivered, the receiver has seen that and says that it is done.
//!
//! A parcel that is posted can be claimed by its sender, too, who has found another way; and taken back. One that is granted can be
//! revoked by the receiver or taken back by the sender, until the sender has begun. Every such choice is one exchange of the word,
//! so exactly one of those who want the parcel gets it. A parcel that the other side is at can be forsaken: what would come next
//! for it is that it is over. The word has a number that grows with every parcel of its sender, so that an
//! old look is never taken for a new one, and parcels have an order.
#![forbid(unsafe_code)]

use super::primitive::{AtomicU64, Ordering};

/// Where a parcel is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nowhere: it was never used, or was taken back. Zeroed memory is that, too.
    Idle,
    /// It waits for whoever claims it.
    Posted,
    /// Somebody has it: the receiver, or the sender by another way.
    Claimed,
    /// Its sender may copy to the place that is named in it.
    Granted,
    /// Its sender copies.
    Begun,
    /// Its sender has copied. The receiver has not seen it yet.
    Delivered,
    /// It was received.
    Done,
    /// It was received, and was not what it should be.
    Refused,
    /// One side is at it and the other one has no more to do with it: it is over as soon as the first one leaves it.
    Forsaken,
}

const STAGES: [Stage; 16] = [
    Stage::Idle,
    Stage::Posted,
    Stage::Claimed,
    Stage::Granted,
    Stage::Begun,
    Stage::Delivered,
    Stage::Done,
    Stage::Refused,
    Stage::Forsaken,
    // No word has any of these.
    Stage::Idle,
    Stage::Idle,
    Stage::Idle,
    Stage::Idle,
    Stage::Idle,
    Stage::Idle,
    Stage::Idle,
];
const STAGE_BITS: u32 = 4;

impl Stage {
    /// Whether the sender may use the word for another parcel.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Stage::Idle | Stage::Done | Stage::Refused)
    }
}

/// A look at the word: the stage of a parcel, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look(u64);

impl Look {
    /// A parcel's number is this, at any stage.
    pub(crate) const fn at(number: u64, stage: Stage) -> Look {
        Look(number << STAGE_BITS | stage as u64)
    }

    #[inline]
    pub(crate) fn stage(self) -> Stage {
        STAGES[(self.0 & ((1 << STAGE_BITS) - 1)) as usize]
    }

    #[inline]
    pub(crate) fn number(self) -> u64 {
        self.0 >> STAGE_BITS
    }
}

/// See the module.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Handover(AtomicU64);

impl Handover {
    /// Zeroed memory is that, too.
    #[allow(dead_code, reason = "the checker builds it, the segment zeroes it")]
    pub(crate) fn new() -> Handover {
        Handover(AtomicU64::new(0))
    }

    #[inline]
    pub(crate) fn look(&self) -> Look {
        // Acquire: pairs with the Release of every change: what lies in the parcel at this stage is seen.
        Look(self.0.load(Ordering::Acquire))
    }

    #[inline]
    fn set(&self, number: u64, stage: Stage) {
        // Release: pairs with the Acquire in `look` and `turn`.
        self.0.store(Look::at(number, stage).0, Ordering::Release);
    }

    #[inline]
    fn turn(&self, number: u64, from: Stage, to: Stage) -> bool {
        let (from, to) = (Look::at(number, from).0, Look::at(number, to).0);
        // Acquire: pairs with the Release in `set`. Release: who sees the new stage sees what its maker saw.
        self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Posts the sender's next parcel, where the last one is over.
    #[inline]
    pub(crate) fn post(&self, number: u64) {
        self.set(number, Stage::Posted);
    }

    /// Claims a posted parcel.
    #[inline]
    pub(crate) fn claim(&self, number: u64) -> bool {
        self.turn(number, Stage::Posted, Stage::Claimed)
    }

    /// Goes on with a parcel that the other side may have forsaken, which makes it over. Says whether it was not.
    fn go_on(&self, number: u64, from: Stage, to: Stage) -> bool {
        let is_wanted = self.turn(number, from, to);
        if !is_wanted {
            self.set(number, Stage::Idle);
        }
        is_wanted
    }

    /// Lets a parcel go that was claimed. The other side may have looked meanwhile, and is to be told.
    pub(crate) fn let_go(&self, number: u64) {
        self.go_on(number, Stage::Claimed, Stage::Posted);
    }

    /// Says that a parcel that was claimed, or delivered, is received.
    #[inline]
    pub(crate) fn done(&self, number: u64) {
        self.set(number, Stage::Done);
    }

    /// Says that a parcel that was claimed is refused.
    pub(crate) fn refuse(&self, number: u64) {
        self.set(number, Stage::Refused);
    }

    /// Lets the sender copy what it keeps, where the receiver has claimed. Says whether the sender still wants to.
    #[inline]
    pub(crate) fn grant(&self, number: u64) -> bool {
        self.go_on(number, Stage::Claimed, Stage::Granted)
    }

    /// Takes a grant back, unless the sender has begun.
    pub(crate) fn revoke(&self, number: u64) -> bool {
        self.turn(number, Stage::Granted, Stage::Posted)
    }

    /// Begins to copy, unless the grant was taken back.
    #[inline]
    pub(crate) fn begin(&self, number: u64) -> bool {
        self.turn(number, Stage::Granted, Stage::Begun)
    }

    /// Says that what was begun is copied.
    #[inline]
    pub(crate) fn delivered(&self, number: u64) {
        self.go_on(number, Stage::Begun, Stage::Delivered);
    }

    /// Takes a parcel back that nobody is at.
    pub(crate) fn take_back(&self, number: u64) -> bool {
        self.turn(number, Stage::Posted, Stage::Idle)
    }

    /// Has no more to do with a parcel that was sent, wherever it is: takes it back, or forsakes it while the receiver is at it. Says
    /// whether it was neither over nor delivered.
    pub(crate) fn withdraw(&self, number: u64) -> bool {
        loop {
            let stage = self.look().stage();
            let to = match stage {
                Stage::Posted | Stage::Granted => Stage::Idle,
                Stage::Claimed => Stage::Forsaken,
                _ => return false,
            };
            if self.turn(number, stage, to) {
                return true;
            }
        }
    }

    /// Has no more to do with what the sender has begun to copy. What it has delivered meanwhile is over, too.
    pub(crate) fn forsake(&self, number: u64) {
        if !self.turn(number, Stage::Begun, Stage::Forsaken)
            && self.look() == Look::at(number, Stage::Delivered)
        {
            self.done(number);
        }
    }
}
