//! The calls of both dialects and what is known about their arguments. Never says what a call does.

use crate::{Check, LockKind};

/// Whose calls are spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dialect {
    /// The calls of the seeds and of this project's runtime: START and COMPLETE toward one rank or a group, WAIT with
    /// a count or for a group, nested NOCHECK locks, the barrier over all windows, guards, offers.
    Seed,
    /// MPI's one-sided calls (chapter 12 of the standard): START names one group and COMPLETE ends it as a whole, at
    /// most one START is open per window, WAIT takes no count, locks of one rank do not nest, fences carry assertions.
    /// A rank's exposure epoch may overlap its access epochs on the same window, lock epochs toward other ranks too.
    Mpi,
}

/// A call, seen from the tracked target of a [`State`](crate::State).
///
/// The caller is the rank whose state it is. Not every call exists in both dialects: see [`Dialect::has`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Call {
    /// Window barrier on this window, collective.
    Fence(Assertion),
    /// The barrier of a communicator that also is a window barrier for all its windows.
    RmaBarrier,
    /// The plain barrier of a communicator.
    Barrier,
    /// Opens an access epoch.
    Start(Toward, Check),
    /// Ends an access epoch.
    Complete(Toward),
    /// Opens the caller's own memory, to anyone or to a group.
    Post(Permit),
    /// Ends the exposure opened by POST, when all that it waits for have completed.
    Wait(WaitFor),
    /// As WAIT, but returns at once; whether it ended the exposure is the input `ends`.
    Test(WaitFor),
    /// Takes a lock; never `Toward::Both`.
    Lock(Toward, LockKind, Check),
    /// Releases one level of a lock; never `Toward::Both`.
    Unlock(Toward),
    /// Takes a shared lock at every rank of the window.
    LockAll,
    /// Releases what LOCK_ALL took.
    UnlockAll,
    /// Completes the transfers of a lock epoch without ending it; never `Toward::Both`.
    Flush(Toward),
    /// MPI_WIN_SYNC: moves data between the private and the public copy of the caller's own window, both ways.
    Sync,
    /// A transfer; never `Toward::Both`.
    Transfer(Toward, Transfer),
    /// A local load from the caller's own memory in the window, outside a guard's slice or through it.
    Load,
    /// A local store to the caller's own memory in the window, outside a guard's slice or through it.
    Store,
    /// Takes a guard for a private epoch: `local()` with `Load`, `local_mut()` with `Store`.
    View(LocalOp),
    /// Drops a guard.
    EndView,
    /// OFFER of the caller's memory, blocking; after its return nothing is offered any more by this call.
    Offer,
    /// IOFFER of the caller's memory.
    IOffer,
    /// WAIT or TEST on the request of an IOFFER; whether it ended the last offer of this memory is the input `ends`.
    FinishOffer,
    /// Not a call of the caller: another rank has updated the caller's memory under a lock, and the program orders what
    /// follows after it (by a plain barrier, a message). Linter and macro report it where they see such a program.
    PeerUpdate,
    /// Frees the window, collective.
    Free,
    /// Ends the job, seen from this window.
    Finalize,
    /// Not a call of the caller: the runtime takes the window out of use after a failure.
    Poison,
}

/// Which targets a call names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Toward {
    /// The tracked target only.
    This,
    /// Other targets of the same window only.
    Another,
    /// The tracked target and others: a START with a group, a COMPLETE of everything that is started.
    Both,
}

/// Assertions of a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Assertion {
    /// None: the fence ends a phase and opens the next.
    None,
    /// NOPRECEDE: the caller has issued no transfer in the phase that ends.
    NoPrecede,
    /// NOSUCCEED: no transfer follows; the fence opens no phase. In the seeds' dialect, the fence that closes a scope.
    NoSucceed,
    /// NOPRECEDE and NOSUCCEED.
    Both,
}

/// Operations that a POST permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Permit {
    /// Every operation.
    All,
    /// Gets only (MPI: NOPUT).
    Gets,
}

/// What a WAIT waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WaitFor {
    /// A number of distinct origins.
    Count,
    /// All members of the posted group.
    Group,
}

/// Kinds of transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Transfer {
    /// Writes the target.
    Put,
    /// Reads the target.
    Get,
    /// Combines with the target.
    Accumulate,
    /// Combines and fetches: get_accumulate, fetch_op, compare_swap.
    Atomic,
}

/// Kinds of local access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LocalOp {
    /// Reads the caller's own memory.
    Load,
    /// Writes the caller's own memory.
    Store,
}

/// What is known about one condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tri {
    /// It does not hold.
    No,
    /// It holds.
    Yes,
    /// Either.
    #[default]
    Unknown,
}

/// What is known about a call's arguments and about the world: the predicates beside the table.
///
/// Counts, groups and byte ranges live outside; here is only whether they fit. A field that a call does not read (see
/// [`Call::reads`]) has no influence on it. A field that is read is still without influence in states to which its
/// question does not apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Inputs {
    /// Every rank that the call names is in the team. No: `RankOutOfRange`.
    pub rank: Tri,
    /// Every byte that a transfer or local access names is inside the window. No: `OutOfBounds`.
    pub bounds: Tri,
    /// What a NOCHECK caller vouches for is true: at START and within its epoch that the target is posted, at LOCK and
    /// within its epoch that nobody else holds a conflicting lock. A LOCK that is not NOCHECK reads it too: No means
    /// that another rank relies on NOCHECK and conflicts with it.
    pub vouched: Tri,
    /// The caller is in the group that the target has posted, as far as a NOCHECK epoch meets that question (without
    /// NOCHECK the call waits for an exposure that admits it).
    pub in_group: Tri,
    /// The target's exposure permits this kind of transfer. No: `EventNotOffered`.
    pub permitted: Tri,
    /// The count fits the origins that came, or, with `WaitFor::Group`, a group was posted.
    pub count: Tri,
    /// The call ends the last of what it closes, when that is counted outside the table: the last level of a nest of
    /// locks, the last of several other targets, the last guard, the last offer, a TEST that found all complete.
    pub ends: Tri,
    /// A target that LOCK names is the caller itself.
    pub own: Tri,
    /// A peer's access that no call has ordered or imported yet concerns the local access. For a load: a peer's update
    /// changes the same bytes. For a store: a peer's update goes to the same exposed range (constraint 1), or, while the
    /// window is posted for gets only, a peer's get may read the same bytes. In an offer: the access lies in the offered
    /// range. No means known to be apart. The question applies everywhere but under a guard, under the caller's own
    /// checked exclusive lock, and to loads while the window is posted for gets only.
    pub unordered: Tri,
}

/// Names of the fields of [`Inputs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Input {
    /// [`Inputs::rank`]
    Rank,
    /// [`Inputs::bounds`]
    Bounds,
    /// [`Inputs::vouched`]
    Vouched,
    /// [`Inputs::in_group`]
    InGroup,
    /// [`Inputs::permitted`]
    Permitted,
    /// [`Inputs::count`]
    Count,
    /// [`Inputs::ends`]
    Ends,
    /// [`Inputs::own`]
    Own,
    /// [`Inputs::unordered`]
    Unordered,
}

impl Dialect {
    /// Both dialects.
    pub const ALL: [Dialect; 2] = [Dialect::Seed, Dialect::Mpi];

    /// Whether the call exists in this dialect. One that does not has no outcome at all.
    pub const fn has(self, call: Call) -> bool {
        match (self, call) {
            (_, Call::Lock(Toward::Both, ..) | Call::Unlock(Toward::Both)) => false,
            (_, Call::Flush(Toward::Both) | Call::Transfer(Toward::Both, _)) => false,
            (Dialect::Seed, Call::Fence(Assertion::NoPrecede | Assertion::Both) | Call::Sync) => false,
            (Dialect::Seed, _) => true,
            (Dialect::Mpi, Call::Complete(Toward::This | Toward::Another)) => false,
            (Dialect::Mpi, Call::Wait(WaitFor::Count) | Call::Test(WaitFor::Count)) => false,
            (Dialect::Mpi, Call::RmaBarrier | Call::View(_) | Call::EndView) => false,
            (Dialect::Mpi, Call::Offer | Call::IOffer | Call::FinishOffer) => false,
            (Dialect::Mpi, _) => true,
        }
    }
}

impl Call {
    /// Every call of either dialect, in a fixed order.
    pub const ALL: [Call; 56] = {
        use Check::{Checked, NoCheck};
        use LockKind::{Exclusive, Shared};
        use Toward::{Another, Both, This};
        [
            Call::Fence(Assertion::None),
            Call::Fence(Assertion::NoPrecede),
            Call::Fence(Assertion::NoSucceed),
            Call::Fence(Assertion::Both),
            Call::RmaBarrier,
            Call::Barrier,
            Call::Start(This, Checked),
            Call::Start(This, NoCheck),
            Call::Start(Another, Checked),
            Call::Start(Another, NoCheck),
            Call::Start(Both, Checked),
            Call::Start(Both, NoCheck),
            Call::Complete(This),
            Call::Complete(Another),
            Call::Complete(Both),
            Call::Post(Permit::All),
            Call::Post(Permit::Gets),
            Call::Wait(WaitFor::Count),
            Call::Wait(WaitFor::Group),
            Call::Test(WaitFor::Count),
            Call::Test(WaitFor::Group),
            Call::Lock(This, Shared, Checked),
            Call::Lock(This, Shared, NoCheck),
            Call::Lock(This, Exclusive, Checked),
            Call::Lock(This, Exclusive, NoCheck),
            Call::Lock(Another, Shared, Checked),
            Call::Lock(Another, Shared, NoCheck),
            Call::Lock(Another, Exclusive, Checked),
            Call::Lock(Another, Exclusive, NoCheck),
            Call::Unlock(This),
            Call::Unlock(Another),
            Call::LockAll,
            Call::UnlockAll,
            Call::Flush(This),
            Call::Flush(Another),
            Call::Sync,
            Call::Transfer(This, Transfer::Put),
            Call::Transfer(This, Transfer::Get),
            Call::Transfer(This, Transfer::Accumulate),
            Call::Transfer(This, Transfer::Atomic),
            Call::Transfer(Another, Transfer::Put),
            Call::Transfer(Another, Transfer::Get),
            Call::Transfer(Another, Transfer::Accumulate),
            Call::Transfer(Another, Transfer::Atomic),
            Call::Load,
            Call::Store,
            Call::View(LocalOp::Load),
            Call::View(LocalOp::Store),
            Call::EndView,
            Call::Offer,
            Call::IOffer,
            Call::FinishOffer,
            Call::PeerUpdate,
            Call::Free,
            Call::Finalize,
            Call::Poison,
        ]
    };

    /// Which inputs the call reads in some state.
    pub const fn reads(self) -> &'static [Input] {
        match self {
            Call::Start(_, Check::Checked) => &[Input::Rank],
            Call::Start(_, Check::NoCheck) => &[Input::Rank, Input::Vouched, Input::InGroup],
            Call::Complete(Toward::This | Toward::Both) => &[Input::Rank, Input::Vouched, Input::InGroup],
            Call::Complete(Toward::Another) => &[Input::Rank, Input::Ends],
            Call::Post(_) => &[Input::Rank],
            Call::Wait(_) => &[Input::Count],
            Call::Test(_) => &[Input::Count, Input::Ends],
            Call::Lock(..) => &[Input::Rank, Input::Vouched, Input::Own],
            Call::Unlock(Toward::This) => &[Input::Rank, Input::Vouched, Input::Ends],
            Call::Unlock(_) => &[Input::Rank, Input::Ends],
            Call::LockAll => &[Input::Vouched],
            Call::Flush(Toward::This) => &[Input::Rank, Input::Vouched],
            Call::Flush(_) => &[Input::Rank],
            Call::Transfer(Toward::This, _) => {
                &[Input::Rank, Input::Bounds, Input::Vouched, Input::InGroup, Input::Permitted]
            }
            Call::Transfer(..) => &[Input::Rank, Input::Bounds],
            Call::Load | Call::Store => &[Input::Bounds, Input::Unordered],
            Call::EndView | Call::FinishOffer => &[Input::Ends],
            Call::Fence(_) | Call::RmaBarrier | Call::Barrier | Call::UnlockAll | Call::Sync => &[],
            Call::View(_) | Call::Offer | Call::IOffer | Call::PeerUpdate => &[],
            Call::Free | Call::Finalize | Call::Poison => &[],
        }
    }
}

impl Inputs {
    /// Nothing is known.
    pub const UNKNOWN: Inputs = Inputs::all(Tri::Unknown);

    /// Everything is in order: arguments fit, promises are true, counts fit, nothing is nested, the target is a peer,
    /// no update is unordered. Written as `Inputs { own: Tri::Yes, ..Inputs::FINE }` for anything else.
    pub const FINE: Inputs = Inputs { own: Tri::No, unordered: Tri::No, ..Inputs::all(Tri::Yes) };

    /// Every field the same.
    pub const fn all(tri: Tri) -> Inputs {
        Inputs {
            rank: tri,
            bounds: tri,
            vouched: tri,
            in_group: tri,
            permitted: tri,
            count: tri,
            ends: tri,
            own: tri,
            unordered: tri,
        }
    }

    /// The value of a field by name.
    pub const fn get(self, input: Input) -> Tri {
        match input {
            Input::Rank => self.rank,
            Input::Bounds => self.bounds,
            Input::Vouched => self.vouched,
            Input::InGroup => self.in_group,
            Input::Permitted => self.permitted,
            Input::Count => self.count,
            Input::Ends => self.ends,
            Input::Own => self.own,
            Input::Unordered => self.unordered,
        }
    }

    /// These inputs with one field changed.
    #[must_use]
    pub const fn with(mut self, input: Input, tri: Tri) -> Inputs {
        match input {
            Input::Rank => self.rank = tri,
            Input::Bounds => self.bounds = tri,
            Input::Vouched => self.vouched = tri,
            Input::InGroup => self.in_group = tri,
            Input::Permitted => self.permitted = tri,
            Input::Count => self.count = tri,
            Input::Ends => self.ends = tri,
            Input::Own => self.own = tri,
            Input::Unordered => self.unordered = tri,
        }
        self
    }
}

impl Input {
    /// Every field, in order.
    pub const ALL: [Input; 9] = [
        Input::Rank,
        Input::Bounds,
        Input::Vouched,
        Input::InGroup,
        Input::Permitted,
        Input::Count,
        Input::Ends,
        Input::Own,
        Input::Unordered,
    ];
}

impl Tri {
    /// Every value.
    pub const ALL: [Tri; 3] = [Tri::No, Tri::Yes, Tri::Unknown];

    /// Whether the condition may hold.
    pub const fn may(self) -> bool {
        !matches!(self, Tri::No)
    }

    /// Whether the condition may fail.
    pub const fn may_not(self) -> bool {
        !matches!(self, Tri::Yes)
    }
}

impl From<bool> for Tri {
    fn from(holds: bool) -> Tri {
        match holds {
            true => Tri::Yes,
            false => Tri::No,
        }
    }
}
