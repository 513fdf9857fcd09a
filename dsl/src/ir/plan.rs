//! What the schedule pass decides. Never changes what a program computes.

use rma_source::Span;

use super::{Extent, FieldId, Level};

/// What was asked for, what is done, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Planned<T> {
    /// As written or given by flag.
    pub asked: Option<T>,
    /// Where it was written; none for flags and defaults.
    pub span: Option<Span>,
    /// What back ends do.
    pub done: T,
    /// A sentence for `explain`.
    pub why: String,
}

/// How a grid is split over ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decompose {
    /// Along the first axis only.
    Rows,
    /// As square as possible.
    Blocks,
    /// This many parts per axis.
    Parts(Vec<u32>),
}

/// How strongly a start waits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PscwMode {
    /// Start waits for the post.
    Strong,
    /// Any call may wait.
    Weak,
    /// The post is proven to be before the start.
    Nocheck,
}

/// How a lock excludes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LockMode {
    /// Not other shared ones.
    Shared,
    /// All others.
    Exclusive,
}

/// How halos travel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Epoch {
    /// Chosen from footprint, sizes and ranks.
    Auto,
    /// Window fences.
    Fence,
    /// Post, start, complete, wait.
    Pscw(PscwMode),
    /// Two windows, posts before completes.
    Checkerboard,
    /// Lock, transfer, unlock.
    Lock(LockMode),
    /// Put/Get/Offer, point to point.
    Offer,
    /// Put/Get/Offer, collective.
    OfferCollective,
}

/// Whether computing and halo traffic overlap.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Overlap {
    /// Not at all.
    None,
    /// The core is computed while the halo travels.
    Core,
}

/// Steps between exchanges.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TimeBlock(pub u32);

/// Which neighbours a footprint touches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Shape {
    /// Only along axes: no corners are needed.
    Star,
    /// Corners are needed.
    Box,
}

/// The halo of one level of one field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HaloCopy {
    /// The field.
    pub field: FieldId,
    /// The level.
    pub level: Level,
    /// How deep, one per axis.
    pub halo: Vec<Extent>,
    /// Whether corners are needed.
    pub shape: Shape,
}

/// One round of halo traffic: all of it to one neighbour travels as one transfer. Ghost points beyond the grid are
/// filled by the sides' rules at the same time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Exchange {
    /// What travels; empty means no traffic.
    pub copies: Vec<HaloCopy>,
}

/// One statement with the exchange it needs first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepPart {
    /// Before the statement.
    pub exchange: Exchange,
    /// Index into `Program::statements`.
    pub statement: usize,
    /// Fields with one level that a `together` group both writes and reads: they need a copy of their values from
    /// before the group, which all of its reads use.
    pub snapshot: Vec<FieldId>,
}

/// The whole schedule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// How grids are split.
    pub decompose: Planned<Decompose>,
    /// How halos travel.
    pub epoch: Planned<Epoch>,
    /// Overlap of computing and traffic.
    pub overlap: Planned<Overlap>,
    /// Steps between exchanges.
    pub block: Planned<TimeBlock>,
    /// Once before step 1 and before initial reductions: halos of constant fields.
    pub prologue: Exchange,
    /// Each step.
    pub parts: Vec<StepPart>,
    /// Before each reduction, in order of declaration: halos that it reads and no statement has fetched.
    pub reductions: Vec<Exchange>,
}

impl Default for Plan {
    fn default() -> Plan {
        fn planned<T>(done: T) -> Planned<T> {
            Planned { asked: None, span: None, done, why: String::from("not planned yet") }
        }
        Plan {
            decompose: planned(Decompose::Blocks),
            epoch: planned(Epoch::Auto),
            overlap: planned(Overlap::None),
            block: planned(TimeBlock(1)),
            prologue: Exchange::default(),
            parts: Vec::new(),
            reductions: Vec::new(),
        }
    }
}
