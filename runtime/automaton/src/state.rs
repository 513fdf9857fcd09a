//! The states of one window as one rank sees them. Never says what a call does to a state: that is `table.rs`.

/// What the caller has open toward the tracked target.
///
/// One `State` follows one pair of a window and a target rank. What the caller has open on the same window toward
/// its other ranks is summed up in [`Elsewhere`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AccessState {
    /// Nothing is open toward the target.
    Idle,
    /// Between START and COMPLETE.
    Started(Check),
    /// Between LOCK and UNLOCK of the target.
    Locked(Held),
    /// Between LOCK_ALL and UNLOCK_ALL: a shared lock at every rank, the caller's own included.
    LockedAll,
}

/// Which lock the caller holds at the tracked target. A nest of locks is one state; its depth is counted outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Held {
    /// `Exclusive` as soon as one lock of the nest is exclusive, and until the nest ends.
    pub kind: LockKind,
    /// How the lock that gave `kind` was taken.
    pub check: Check,
    /// Whose window is locked.
    pub side: Side,
}

/// Kind of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LockKind {
    /// May be held by several ranks at once.
    Shared,
    /// Excludes every other lock.
    Exclusive,
}

/// Whether an opening call verified what it relies on, or the caller vouched for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Check {
    /// Info STRONG or WEAK: the target is posted, or the lock held, before data moves.
    Checked,
    /// Info NOCHECK: the caller vouches.
    NoCheck,
}

/// Whether the tracked target is another rank or the caller itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// Another rank's window.
    Peer,
    /// The caller's own window.
    Own,
}

/// What the caller has open on the window toward ranks other than the tracked target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Elsewhere {
    /// Nothing.
    Idle,
    /// At least one START without its COMPLETE.
    Started,
    /// At least one LOCK without its UNLOCK.
    Locked,
}

/// How far the caller's own memory in the window (or, with Put/Get/Offer, the caller's buffer) is open to others, and
/// whether the caller's loads see what others have written.
///
/// An unexposed range of a window counts as another window, so a program that exposes a part keeps two states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ExposureState {
    /// No exposure is open; every finished update by others has been imported. Others may still lock the window.
    Private,
    /// No exposure is open; an update that others made under a lock has not been imported by a call of the owner.
    Stale,
    /// Between POST and WAIT, open to every operation.
    Posted,
    /// Between POST and WAIT, open to gets only (MPI: posted with NOPUT).
    PostedGets,
    /// A guard for reading (`local()`) is alive and no exposure is open: a private epoch.
    ViewRead,
    /// The guard for writing (`local_mut()`) is alive: a private epoch.
    ViewWrite,
    /// As `PostedGets`, and a guard for reading is alive.
    ViewPosted,
    /// After a window barrier: its phase is open, and the caller has issued no transfer in it yet.
    FenceUnused,
    /// In a phase between two window barriers in which the caller has issued gets only.
    FenceReading,
    /// In a phase between two window barriers in which the caller has issued at least one put, accumulate or atomic.
    FenceUpdating,
    /// Between IOFFER and the end of its request, or inside OFFER.
    Offered,
    /// The window has been freed, or the job finalized.
    Freed,
    /// The window is out of use after a failure.
    Poisoned,
}

/// One state of the automaton: what one rank has open on one window, seen from one tracked target.
///
/// Only combinations that mean something exist: a window that is fenced, offered, freed or poisoned has nothing else
/// open, START and LOCK never overlap, the caller's own lock excludes its guards and its posts, and nothing can become
/// stale under the caller's own checked exclusive lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct State {
    access: AccessState,
    elsewhere: Elsewhere,
    exposure: ExposureState,
}

const ACCESS: usize = 12;
const ELSEWHERE: usize = 3;
const EXPOSURE: usize = 13;
const CODES: usize = ACCESS * ELSEWHERE * EXPOSURE;

impl AccessState {
    /// Every value, in a fixed order.
    pub const ALL: [AccessState; ACCESS] = {
        use Check::{Checked, NoCheck};
        use LockKind::{Exclusive, Shared};
        use Side::{Own, Peer};
        const fn held(kind: LockKind, check: Check, side: Side) -> AccessState {
            AccessState::Locked(Held { kind, check, side })
        }
        [
            AccessState::Idle,
            AccessState::Started(Checked),
            AccessState::Started(NoCheck),
            held(Shared, Checked, Peer),
            held(Shared, NoCheck, Peer),
            held(Exclusive, Checked, Peer),
            held(Exclusive, NoCheck, Peer),
            held(Shared, Checked, Own),
            held(Shared, NoCheck, Own),
            held(Exclusive, Checked, Own),
            held(Exclusive, NoCheck, Own),
            AccessState::LockedAll,
        ]
    };

    const fn index(self) -> usize {
        match self {
            AccessState::Idle => 0,
            AccessState::Started(check) => 1 + check as usize,
            AccessState::Locked(held) => {
                3 + held.side as usize * 4 + held.kind as usize * 2 + held.check as usize
            }
            AccessState::LockedAll => 11,
        }
    }
}

impl Elsewhere {
    /// Every value, in a fixed order.
    pub const ALL: [Elsewhere; ELSEWHERE] = [Elsewhere::Idle, Elsewhere::Started, Elsewhere::Locked];
}

impl ExposureState {
    /// Every value, in a fixed order.
    pub const ALL: [ExposureState; EXPOSURE] = [
        ExposureState::Private,
        ExposureState::Stale,
        ExposureState::Posted,
        ExposureState::PostedGets,
        ExposureState::ViewRead,
        ExposureState::ViewWrite,
        ExposureState::ViewPosted,
        ExposureState::FenceUnused,
        ExposureState::FenceReading,
        ExposureState::FenceUpdating,
        ExposureState::Offered,
        ExposureState::Freed,
        ExposureState::Poisoned,
    ];
}

impl State {
    /// A window as it is created.
    pub const CREATED: State = State::of(AccessState::Idle, Elsewhere::Idle, ExposureState::Private);
    /// A window created with the option `created_posted`.
    pub const CREATED_POSTED: State = State::of(AccessState::Idle, Elsewhere::Idle, ExposureState::Posted);

    /// How many states there are.
    pub const COUNT: usize = {
        let (mut code, mut count) = (0, 0);
        while code < CODES {
            count += State::decode(code).exists() as usize;
            code += 1;
        }
        count
    };

    /// The state with these three parts, if that combination exists.
    pub const fn new(access: AccessState, elsewhere: Elsewhere, exposure: ExposureState) -> Option<State> {
        let state = State::of(access, elsewhere, exposure);
        if state.exists() { Some(state) } else { None }
    }

    pub(crate) const fn of(access: AccessState, elsewhere: Elsewhere, exposure: ExposureState) -> State {
        State { access, elsewhere, exposure }
    }

    pub(crate) const fn exists(self) -> bool {
        use AccessState::{Idle, Locked, LockedAll, Started};
        use ExposureState as X;
        let accesses_fit = match (self.access, self.elsewhere) {
            (_, Elsewhere::Idle) | (Idle, _) => true,
            (Started(_), Elsewhere::Started) | (Locked(_), Elsewhere::Locked) => true,
            (Started(_), Elsewhere::Locked) | (Locked(_), Elsewhere::Started) | (LockedAll, _) => false,
        };
        let exposure_fits = match self.exposure {
            X::Private => true,
            X::Stale => !matches!(
                self.access,
                Locked(Held { kind: LockKind::Exclusive, check: Check::Checked, side: Side::Own })
            ),
            X::Posted | X::PostedGets | X::ViewRead | X::ViewWrite | X::ViewPosted => {
                !matches!(self.access, Locked(Held { side: Side::Own, .. }) | LockedAll)
            }
            X::FenceUnused | X::FenceReading | X::FenceUpdating | X::Offered | X::Freed | X::Poisoned => {
                matches!(self.access, Idle) && matches!(self.elsewhere, Elsewhere::Idle)
            }
        };
        accesses_fit && exposure_fits
    }

    /// Every state, in a fixed order.
    pub fn all() -> impl Iterator<Item = State> {
        StateSet::ALL.iter()
    }

    /// What is open toward the tracked target.
    pub const fn access(self) -> AccessState {
        self.access
    }

    /// What is open toward other targets of the window.
    pub const fn elsewhere(self) -> Elsewhere {
        self.elsewhere
    }

    /// How far the caller's own memory is open.
    pub const fn exposure(self) -> ExposureState {
        self.exposure
    }

    const fn code(self) -> usize {
        (self.access.index() * ELSEWHERE + self.elsewhere as usize) * EXPOSURE + self.exposure as usize
    }

    const fn decode(code: usize) -> State {
        State::of(
            AccessState::ALL[code / (ELSEWHERE * EXPOSURE)],
            Elsewhere::ALL[code / EXPOSURE % ELSEWHERE],
            ExposureState::ALL[code % EXPOSURE],
        )
    }
}

impl core::fmt::Debug for State {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:?}", self.exposure)?;
        match self.access {
            AccessState::Idle => {}
            AccessState::Started(check) => write!(f, "+Started({check:?})")?,
            AccessState::Locked(held) => {
                write!(f, "+Locked({:?} {:?} {:?})", held.kind, held.check, held.side)?;
            }
            AccessState::LockedAll => write!(f, "+LockedAll")?,
        }
        match self.elsewhere {
            Elsewhere::Idle => Ok(()),
            other => write!(f, "+elsewhere {other:?}"),
        }
    }
}

/// A set of states: one bit for each.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct StateSet {
    bits: u128,
}

/// Every state, each at the place of its bit.
const STATES: [State; State::COUNT] = {
    let mut states = [State::CREATED; State::COUNT];
    let (mut code, mut bit) = (0, 0);
    while code < CODES {
        if State::decode(code).exists() {
            states[bit] = State::decode(code);
            bit += 1;
        }
        code += 1;
    }
    states
};

/// The bit of each state, by its code; combinations that do not exist have none.
const BITS: [u8; CODES] = {
    let mut bits = [u8::MAX; CODES];
    let mut bit = 0;
    while bit < State::COUNT {
        bits[STATES[bit].code()] = bit as u8;
        bit += 1;
    }
    bits
};

const _: () = assert!(State::COUNT <= u128::BITS as usize, "the bits of a set hold every state");

impl StateSet {
    /// No state.
    pub const EMPTY: StateSet = StateSet { bits: 0 };

    /// Every state.
    pub const ALL: StateSet = StateSet { bits: u128::MAX >> (u128::BITS as usize - State::COUNT) };

    /// The set of one state.
    pub const fn of(state: State) -> StateSet {
        StateSet { bits: 1 << BITS[state.code()] }
    }

    /// This set and one state more.
    #[must_use]
    pub const fn with(self, state: State) -> StateSet {
        self.union(StateSet::of(state))
    }

    /// The states that are in either set.
    #[must_use]
    pub const fn union(self, other: StateSet) -> StateSet {
        StateSet { bits: self.bits | other.bits }
    }

    /// Whether the state is in the set.
    pub const fn contains(self, state: State) -> bool {
        StateSet::of(state).is_subset_of(self)
    }

    /// Whether every state of this set is in the other.
    pub const fn is_subset_of(self, other: StateSet) -> bool {
        self.bits & !other.bits == 0
    }

    /// Whether there is no state in the set.
    pub const fn is_empty(self) -> bool {
        self.bits == 0
    }

    /// How many states are in the set.
    pub const fn len(self) -> usize {
        self.bits.count_ones() as usize
    }

    /// The states of the set, in a fixed order.
    pub fn iter(self) -> impl Iterator<Item = State> {
        STATES.iter().enumerate().filter(move |(bit, _)| self.bits >> bit & 1 == 1).map(|(_, &state)| state)
    }
}

impl FromIterator<State> for StateSet {
    fn from_iter<I: IntoIterator<Item = State>>(states: I) -> StateSet {
        states.into_iter().fold(StateSet::EMPTY, StateSet::with)
    }
}

impl core::fmt::Debug for StateSet {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
