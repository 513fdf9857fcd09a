//! Random programs in which every access is properly synchronized, with the values that their reads must give. Never looks at a
//! run: all ranks make the same program from the same seed.
//!
//! A program is a list of rounds. In a round, each cell of each rank is left alone, only read, written by one access, or only
//! combined by one operation; so the accesses of a round may come in any order, and the rounds follow each other by what the
//! styles promise (`docs/spec/rma.md`, section 7), with a barrier of the team only where no style orders them.

use super::model::{COMBINES, Combine, Memory};

/// A generator of numbers, the same on every rank.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Numbers {
        Numbers(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    /// A number below `end`, which is not 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// Blocks of cells at a distance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cells {
    pub(super) start: usize,
    pub(super) count: usize,
    pub(super) block: usize,
    pub(super) stride: usize,
}

impl Cells {
    pub(super) fn all(self) -> Vec<usize> {
        let block = |at: usize| (0..self.block).map(move |cell| self.start + at * self.stride + cell);
        (0..self.count).flat_map(block).collect()
    }

    fn one(at: usize) -> Cells {
        Cells { start: at, count: 1, block: 1, stride: 1 }
    }

    fn random(numbers: &mut Numbers, len: usize) -> Cells {
        let start = numbers.below(len);
        let left = len - start;
        let block = 1 + numbers.below(left.min(6));
        if numbers.one_in(3) {
            let stride = block + numbers.below(4);
            let fit = 1 + (left - block) / stride;
            return Cells { start, count: 1 + numbers.below(fit.min(4)), block, stride };
        }
        Cells { start, count: 1, block, stride: block }
    }
}

/// An access of an origin to cells of a target.
#[derive(Clone, Debug)]
pub(super) struct Access {
    pub(super) origin: u32,
    pub(super) target: u32,
    pub(super) cells: Cells,
    pub(super) kind: Kind,
    /// What the cells hold before the round, where the access reads them.
    pub(super) expected: Vec<u64>,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Put(Vec<u64>),
    /// From the origin's own window, from this cell on.
    PutOwn(usize),
    /// As a value that the epoch's end opens.
    Get,
    /// Into a buffer that is lent to the epoch.
    GetInto,
    /// Into the origin's own window, from this cell on.
    GetOwn(usize),
    GetOne,
    Accumulate(Combine, Vec<u64>),
    GetAccumulate(Combine, Vec<u64>),
    Fetch(Combine, u64),
    Swap {
        expected: u64,
        new: u64,
    },
    /// Got, made larger and put back, under an exclusive lock.
    Increment(u64),
    /// By the owner, without any transfer.
    Load,
    Store(Vec<u64>),
}

/// Whom a rank lets in, in a round of post and start.
#[derive(Clone, Debug)]
pub(super) struct Exposure {
    pub(super) origins: Vec<u32>,
    pub(super) form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    AnyCount,
    GroupCount,
    GroupAll,
}

#[derive(Clone, Debug)]
pub(super) enum Style {
    Fence,
    /// Who posts, by rank; whether the starts promise that.
    Exposures {
        posts: Vec<Option<Exposure>>,
        promised: bool,
    },
    /// Whether the locks on each rank's window are exclusive, by rank.
    Locks {
        exclusive: Vec<bool>,
    },
    /// The owners' own accesses to private memory: by views, or element by element under their own lock.
    Local {
        views: bool,
    },
}

#[derive(Clone, Debug)]
pub(super) struct Round {
    pub(super) window: usize,
    pub(super) style: Style,
    pub(super) accesses: Vec<Access>,
    pub(super) barrier: bool,
    /// When an epoch waits for its target.
    pub(super) waits: Waits,
}

/// The info value that epochs are opened with, where nothing is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    Strong,
    Opening,
    Transfer,
    Closing,
}

const WAITS: [Waits; 4] = [Waits::Strong, Waits::Opening, Waits::Transfer, Waits::Closing];

pub(super) struct Program {
    pub(super) lens: [Vec<usize>; 2],
    pub(super) rounds: Vec<Round>,
    /// What the windows hold at the end.
    pub(super) memories: [Memory; 2],
}

/// Bytes of an element of each window.
pub(super) const SIZES: [usize; 2] = [8, 2];
const LEN_MAX: usize = 40;
const ROUNDS_MAX: usize = 12;
const TRIES_MAX: usize = 30;

/// What a cell is used for in a round.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Free,
    Read,
    Written,
    Combined(Combine),
    Incremented,
}

impl Program {
    pub(super) fn random(seed: u64, ranks: u32) -> Program {
        let mut numbers = Numbers::new(seed);
        let mut lens = || (0..ranks).map(|_| numbers.below(LEN_MAX + 1)).collect::<Vec<_>>();
        let lens = [lens(), lens()];
        let mut memories = [0, 1].map(|window| Memory::new(SIZES[window], &lens[window]));
        // Ranks of each window that somebody has changed under a shared lock, which orders nothing with another one.
        let mut shared = [vec![false; ranks as usize], vec![false; ranks as usize]];
        let rounds = 1 + numbers.below(ROUNDS_MAX);
        let rounds = (0..rounds)
            .map(|_| {
                let window = numbers.below(2);
                random_round(&mut numbers, ranks, window, &mut memories[window], &mut shared[window])
            })
            .collect();
        Program { lens, rounds, memories }
    }
}

fn random_round(
    numbers: &mut Numbers,
    ranks: u32,
    window: usize,
    memory: &mut Memory,
    shared: &mut [bool],
) -> Round {
    let style = match numbers.below(8) {
        0..3 => Style::Fence,
        3..5 => {
            let posts = (0..ranks)
                .map(|_| {
                    let form = [Form::AnyCount, Form::GroupCount, Form::GroupAll][numbers.below(3)];
                    let origins: Vec<u32> = (0..ranks).filter(|_| numbers.one_in(2)).collect();
                    (!numbers.one_in(4)).then_some(Exposure { origins, form })
                })
                .collect();
            Style::Exposures { posts, promised: numbers.one_in(3) }
        }
        5..7 => {
            Style::Locks { exclusive: shared.iter().map(|&shared| shared || numbers.one_in(2)).collect() }
        }
        _ => Style::Local { views: numbers.one_in(2) },
    };
    let before = memory.clone();
    let mut uses: Vec<Vec<Use>> = (0..ranks).map(|rank| vec![Use::Free; memory.len(rank)]).collect();
    let mut accesses = Vec::new();
    for _ in 0..1 + numbers.below(TRIES_MAX) {
        let (origin, target) = (numbers.below(ranks as usize) as u32, numbers.below(ranks as usize) as u32);
        if !style.admits(origin, target) || before.len(target) == 0 {
            continue;
        }
        if let Some(access) = random_access(numbers, &style, (origin, target), &before, &mut uses) {
            access.apply(&before, memory);
            accesses.push(access);
        }
    }
    for (target, shared) in (0..).zip(shared.iter_mut()) {
        let changes = accesses.iter().any(|access| access.target == target && !access.only_reads());
        *shared = match &style {
            Style::Locks { exclusive } => !exclusive[target as usize] && (*shared || changes),
            // Everybody has met, or the owner has taken the memory over.
            Style::Fence | Style::Local { .. } => false,
            Style::Exposures { posts, .. } => *shared && posts[target as usize].is_none(),
        };
    }
    // Fences order everything. Members of a group are let in once per exposure; anybody may come to others too early, and a
    // lock may find the window still posted, or locked.
    let barrier = match &style {
        Style::Fence => numbers.one_in(8),
        Style::Exposures { .. } | Style::Locks { .. } | Style::Local { .. } => true,
    };
    let waits = WAITS[numbers.below(WAITS.len())];
    Round { window, style, accesses, barrier, waits }
}

impl Style {
    fn admits(&self, origin: u32, target: u32) -> bool {
        match self {
            Style::Fence | Style::Locks { .. } => true,
            Style::Exposures { posts, .. } => match &posts[target as usize] {
                Some(exposure) => exposure.origins.contains(&origin),
                None => false,
            },
            Style::Local { .. } => origin == target,
        }
    }
}

fn random_access(
    numbers: &mut Numbers,
    style: &Style,
    (origin, target): (u32, u32),
    before: &Memory,
    uses: &mut [Vec<Use>],
) -> Option<Access> {
    let cells = Cells::random(numbers, before.len(target));
    let many = cells.count * cells.block;
    let mut value = || before.truncate(numbers.next() >> (numbers.next() % 60));
    let values: Vec<u64> = (0..many).map(|_| value()).collect();
    let combine = COMBINES[numbers.below(COMBINES.len())];
    let first = cells.start;
    let is_exclusive = matches!(style, Style::Locks { exclusive } if exclusive[target as usize]);
    let (cells, kind, used) = match (style, numbers.below(12)) {
        (Style::Local { .. }, 0..6) => (cells, Kind::Store(values), Use::Written),
        (Style::Local { .. }, _) => (cells, Kind::Load, Use::Read),
        (_, 0..3) => (cells, Kind::Put(values), Use::Written),
        (_, 3) => (cells, Kind::Get, Use::Read),
        (_, 4) => (cells, Kind::GetInto, Use::Read),
        (_, 5) => (Cells::one(first), Kind::GetOne, Use::Read),
        // A replacement depends on who comes last.
        (_, 6..8) if combine != Combine::Replace => {
            (cells, Kind::Accumulate(combine, values), Use::Combined(combine))
        }
        (_, 6..8) => (cells, Kind::Accumulate(combine, values), Use::Written),
        (_, 8) => (cells, Kind::GetAccumulate(combine, values), Use::Written),
        (_, 9) => (Cells::one(first), Kind::Fetch(combine, values[0]), Use::Written),
        (_, 10) => {
            let now = before.read(target, first);
            let expected = if numbers.one_in(2) { now } else { values[0] };
            (Cells::one(first), Kind::Swap { expected, new: before.truncate(!values[0]) }, Use::Written)
        }
        (Style::Locks { .. }, _) if is_exclusive => {
            (Cells::one(first), Kind::Increment(values[0]), Use::Incremented)
        }
        (Style::Fence, _) if many <= before.len(origin) => {
            let own = numbers.below(before.len(origin) - many + 1);
            match numbers.one_in(2) {
                true => (cells, Kind::PutOwn(own), Use::Written),
                false => (cells, Kind::GetOwn(own), Use::Read),
            }
        }
        _ => return None,
    };
    let own = match kind {
        Kind::PutOwn(own) => Some((own, Use::Read)),
        Kind::GetOwn(own) => Some((own, Use::Written)),
        _ => None,
    };
    let mut wanted: Vec<(u32, usize, Use)> = cells.all().iter().map(|&cell| (target, cell, used)).collect();
    wanted.extend(
        own.into_iter().flat_map(|(own, used)| (own..own + many).map(move |cell| (origin, cell, used))),
    );
    let distinct = (0..wanted.len()).all(|at| {
        let (rank, cell, _) = wanted[at];
        wanted[..at].iter().all(|&(other, place, _)| (other, place) != (rank, cell))
    });
    let fits = |&(rank, cell, wanted): &(u32, usize, Use)| match (uses[rank as usize][cell], wanted) {
        (Use::Free, _) => true,
        (Use::Written, _) | (_, Use::Written) => false,
        (now, wanted) => now == wanted,
    };
    if !distinct || !wanted.iter().all(fits) {
        return None;
    }
    for (rank, cell, wanted) in wanted {
        uses[rank as usize][cell] = wanted;
    }
    let expected = cells.all().iter().map(|&cell| before.read(target, cell)).collect();
    Some(Access { origin, target, cells, kind, expected })
}

impl Access {
    pub(super) fn only_reads(&self) -> bool {
        matches!(self.kind, Kind::Get | Kind::GetInto | Kind::GetOne | Kind::Load)
    }

    fn apply(&self, before: &Memory, memory: &mut Memory) {
        let cells = self.cells.all();
        match &self.kind {
            Kind::Get | Kind::GetInto | Kind::GetOne | Kind::Load => {}
            Kind::Put(values) | Kind::Store(values) => {
                cells.iter().zip(values).for_each(|(&cell, &value)| memory.write(self.target, cell, value));
            }
            Kind::PutOwn(own) => {
                for (at, &cell) in cells.iter().enumerate() {
                    memory.write(self.target, cell, before.read(self.origin, own + at));
                }
            }
            Kind::GetOwn(own) => {
                for (at, &cell) in cells.iter().enumerate() {
                    memory.write(self.origin, own + at, before.read(self.target, cell));
                }
            }
            Kind::Accumulate(combine, values) | Kind::GetAccumulate(combine, values) => {
                for (&cell, &value) in cells.iter().zip(values) {
                    memory.combine(self.target, cell, *combine, value);
                }
            }
            Kind::Fetch(combine, value) => memory.combine(self.target, cells[0], *combine, *value),
            Kind::Swap { expected, new } => {
                if before.read(self.target, cells[0]) == *expected {
                    memory.write(self.target, cells[0], *new);
                }
            }
            Kind::Increment(value) => memory.combine(self.target, cells[0], Combine::Sum, *value),
        }
    }
}
