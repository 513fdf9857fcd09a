//! The window without its element type: memory of every rank, and the words that say who may touch it.
//!
//! Everything that dereferences window memory is in this folder, and every call checks for itself what makes it sound: a
//! transfer moves bytes only if this handle has been admitted to its target (`fences`, `exposures`, `locks`), and a view of
//! the own memory is given only while nobody else is admitted, and nobody is admitted while it lives (`local`). Callers
//! outside the folder can use it wrongly and get an error; they cannot make it race.
//!
//! Never knows closures, scopes or what a call's result is delivered into: `epoch` does.
#![allow(unsafe_code)]

mod accumulate;
mod admission;
mod control;
mod copies;
mod deferral;
mod elsewhere;
mod envelope;
mod exposures;
mod failures;
mod fences;
mod grants;
mod guard;
mod local;
mod lock_all;
mod locks;
mod notified;
mod packing;
mod parts;
mod protocol;
mod regions;
mod remote;
mod rules;
mod served;
mod sides;
mod transfer;
mod typed;

pub use admission::{Expected, LockKind, Origins};
pub use copies::Moved;
pub(crate) use copies::Private;
pub use guard::Atomicity;
pub use local::{LocalView, LocalViewMut, Unexposed};
pub use notified::COUNTERS;

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::panic::Location;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use self::control::{Control, DROPPED, GONE, Peer, Plan, Waiter};
use self::copies::{Copies, Marked};
use self::deferral::Promise;
use self::envelope::Envelope;
use self::guard::owner_atomicity;
use self::parts::{Part, Rest};
use self::protocol::Vouched;
use self::regions::{Attached, Owned, Regions};
use self::served::{Extents, Ground, Memory, Served};
use crate::element::{self, name_of};
use crate::error::{Error, ErrorKind, Result};
use crate::job::RankContext;
use crate::liveness;
use crate::op::Handle;
use crate::sync::exposure::{Admits, Extent};
use crate::sync::phases::Broken;
use crate::team::{Members, OpenEpochs, Rank, Team};
use crate::trace;
use crate::transport::shm::arena::{Block, LARGE_BLOCK_BYTES};
use crate::transport::shm::copy::Engine;
use crate::transport::shm::segment::{Locked, Segment};
use crate::transport::tcp::wire::Service;

/// What this handle may do at a target now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Access {
    /// Nothing, unless a fence phase is open.
    None,
    /// Nothing: a request to start is pending.
    Asked,
    /// Nothing yet: an epoch under WEAK is let in before its first transfer, or at its end. See `deferral`.
    Promised,
    // From here on everything is admitted: `sides` compares.
    /// Everything, between start and complete.
    Started,
    /// Everything, under the exclusive lock.
    Exclusive,
    /// Everything, under a shared lock.
    Shared,
}

/// How one rank's memory is reached. Decided once, at the creation of the window: it is mapped, or its owner's agent is asked.
struct Target {
    /// The public copy of the rank's memory, where it is mapped.
    data: *mut u8,
    bytes: usize,
    unit: usize,
    /// The bytes from the start that a transfer may name without further tests: all, or none while only a part is exposed.
    reach: Cell<usize>,
    /// As `reach`, for a put that passes no hook and leaves no mark: none where the rank has a private copy, or the handle is watched.
    unmarked_reach: Cell<usize>,
    /// Calls toward the rank pass the hook in `trace`.
    watched: Cell<bool>,
    /// The part that is exposed to this handle; at its own rank, what is not lent to the program as slices.
    part: Cell<Option<Part>>,
    /// Where writes are marked, if the rank has a private copy too.
    marked: Option<Marked>,
    /// Where what is attached is found, if the rank attaches its memory later; it has none of the other kind then.
    attached: Option<Attached>,
    /// The region that a rank without shared memory has named last. It stays attached as long as this handle is admitted.
    region: Cell<(usize, usize)>,
    access: Cell<Access>,
    /// What the program vouches for in the epoch that `access` names, toward a rank without shared memory.
    vouched: Cell<Vouched>,
    /// Locks of the rank that are nested in the one that `access` names.
    nested: Cell<u32>,
    /// The last exposure of the rank that this handle was admitted to.
    exposure: Cell<u32>,
    control: *const Control,
    /// The rank shares no memory with this one, and `control` leads to a block of this rank that nobody reads.
    remote: bool,
    /// Transfers to the rank are on their way, or will be with the next call that completes them.
    staged: Cell<bool>,
}

/// See the module.
pub(crate) struct RawWindow {
    targets: Box<[Target]>,
    engine: Engine,
    me: usize,
    /// The first rank of the team whose memory is mapped here: its block says whether the window is broken.
    home: usize,
    /// The own part, for ranks that share no memory with this one, if the team has such.
    served: Option<Arc<Served>>,
    /// A fence phase is open: every target may be accessed.
    phase_open: Cell<bool>,
    /// Targets with an open access, targets with a held lock, and views of the own memory that live.
    open: Arc<OpenEpochs>,
    /// What the program has of the own memory while only a part is exposed.
    rest: Cell<Rest>,
    /// Epochs that have not been let in yet.
    promises: RefCell<Vec<Promise>>,
    /// What an epoch sends with its opening and closing, while that is gathered.
    envelope: RefCell<Option<Envelope>>,
    /// An epoch toward all ranks is open.
    all_locked: Cell<bool>,
    /// The ranks whose locks it has taken.
    taken_by_all: RefCell<Vec<usize>>,
    /// The own window is posted.
    posted: Cell<bool>,
    /// This handle may have written by plain stores since its last atomic change of an element.
    undrained: Cell<bool>,
    /// Calls pass the long way through the hook: they are recorded, or serve others as no agent does.
    instrumented: Cell<bool>,
    is_traced: Cell<bool>,
    /// The private copy of the own memory: what loads, stores and views use. Equal to the public one where there is one copy.
    private: *mut u8,
    /// What two copies need; `None` where there is one.
    copies: Option<Copies>,
    /// Whether the views hold the own lock; in a poisoned window they don't.
    views_locked: Cell<bool>,
    /// Fences that this handle has signalled.
    fences: Cell<u64>,
    /// The window has gone out of use by a call of this handle.
    failed: Cell<bool>,
    /// Somebody has been told that an epoch is open at the end of the window.
    open_is_reported: Cell<bool>,
    /// Members of the group of the open exposure, if it is for a group.
    group: Cell<Option<usize>>,
    id: u64,
    element: &'static element::Shape,
    atomicity: Atomicity,
    plan: Plan,
    members: Arc<Members>,
    context: Arc<RankContext>,
    /// Keeps the own mirror in memory, if that was asked for.
    locked: Option<Locked>,
    /// The own memory; it is given up on drop only.
    block: Option<Block>,
    /// What the owner keeps of memory that it attaches.
    regions: Option<Owned>,
    events: RefCell<Vec<trace::Event>>,
}

// SAFETY: - the pointers lead into the segment's mapping, which `context` keeps alive and which is the same for all threads of
//   the process, or into memory that `copies` owns; nothing in the handle is bound to the thread that made it.
unsafe impl Send for RawWindow {}

/// What a rank tells the others about its part of a new window.
struct Description {
    /// 0 when the rank could not get its memory.
    ready: u64,
    element: u64,
    id: u64,
    offset: u64,
    bytes: u64,
    unit: u64,
    /// What the rank wants accumulates to be kept apart by.
    atomicity: u64,
    /// How many copies of its memory the rank has; 0 if it attaches memory later.
    copies: u64,
    /// The bytes that displacements can name, where memory is attached later.
    capacity: u64,
}

/// What a rank wants its part of a new window to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) bytes: usize,
    /// The bytes that displacements can name, where memory is attached later. There are no `bytes` then.
    pub(crate) capacity: Option<usize>,
    pub(crate) unit: usize,
    pub(crate) element: &'static element::Shape,
    pub(crate) atomicity: Atomicity,
    pub(crate) begins: Begins,
    pub(crate) mirror: Mirror,
}

/// Where the mirror of a private copy lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mirror {
    /// In memory like any other.
    #[default]
    Pageable,
    /// In memory that the system does not page out.
    Locked,
}

/// What a new window is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Begins {
    /// Its owner's.
    #[default]
    Private,
    /// Posted, for anybody.
    Posted,
}

/// Why there is no window, and the memory that was to be its own.
pub(crate) struct Refused {
    pub(crate) error: Error,
    pub(crate) private: Option<Private>,
}

impl Description {
    fn to_bytes(&self) -> Vec<u8> {
        let [ready, element, id, offset] = [self.ready, self.element, self.id, self.offset];
        let [unit, atomicity, copies] = [self.unit, self.atomicity, self.copies];
        let words = [ready, element, id, offset, self.bytes, unit, atomicity, copies, self.capacity];
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Description> {
        let (words, rest) = bytes.as_chunks::<8>();
        match words {
            &[ready, element, id, offset, bytes, unit, atomicity, copies, capacity] if rest.is_empty() => {
                let [ready, element, id, offset] = [ready, element, id, offset].map(u64::from_le_bytes);
                let [bytes, unit, atomicity, copies, capacity] =
                    [bytes, unit, atomicity, copies, capacity].map(u64::from_le_bytes);
                Some(Description { ready, element, id, offset, bytes, unit, atomicity, copies, capacity })
            }
            _ => None,
        }
    }
}

impl RawWindow {
    /// Makes a window over fresh memory of every rank of the team; its shape may differ per rank.
    ///
    /// With `private` memory this rank has two copies, of which the fresh one is the mirror: it begins with the same
    /// contents. If `private` is an error, so is the outcome, on all ranks.
    ///
    /// # Errors
    /// `BadDispUnit` on all ranks if one has unit 0; `CollectiveMismatch` if the basic types differ; `System` on all ranks
    /// if one has no memory; and the errors of a collective call.
    #[track_caller]
    pub(crate) fn allocate(
        team: &Team,
        shape: Shape,
        private: Result<Option<Private>>,
    ) -> Result<RawWindow, Refused> {
        let (private, lacking) = match private {
            Ok(private) => (private, None),
            Err(error) => (None, Some(error)),
        };
        match RawWindow::build(team, shape, private.as_ref(), lacking) {
            Ok((mut window, stored)) => {
                let own = &window.targets[window.me];
                if let (Some(private), Some(marked)) = (private, own.marked) {
                    let mirror = own.data;
                    window.copies = Some(private.into_copies(mirror, marked, stored, &window));
                    window.join_barriers();
                }
                Ok(window)
            }
            Err(error) => Err(Refused { error, private }),
        }
    }

    /// Makes the window, and the words in which the owner's stores are marked.
    #[track_caller]
    fn build(
        team: &Team,
        shape: Shape,
        private: Option<&Private>,
        lacking: Option<Error>,
    ) -> Result<(RawWindow, Box<[AtomicU64]>)> {
        const CALL: &str = "window allocation";
        let Shape { bytes, capacity, unit, element, atomicity, begins, mirror } = shape;
        let (context, members) = (Arc::clone(team.context()), Arc::clone(team.members()));
        let plan = Plan::new(team.size() as usize);
        // A closure has no caller of its own.
        let location = Location::caller();
        let fail = |kind| Error::new(kind, CALL).caller(team.rank()).called_at(location);
        let engine = context.engine();
        let marked = private.and_then(|_| Marked::behind(plan.data, bytes));
        let locks = private.is_some() && mirror == Mirror::Locked;
        let total = match (private, marked) {
            (None, _) => plan.data.checked_add(capacity.map_or(bytes, |_| size_of::<Regions>())),
            (Some(_), marked) => marked.and_then(|marked| marked.end()),
        };
        let range = capacity.map(|capacity| context.reserve(CALL, capacity)).transpose();
        let (range, lacking) = match (range, lacking) {
            (Ok(range), lacking) => (range, lacking),
            (Err(error), lacking) => (None, lacking.or(Some(error))),
        };
        // A rank without memory comes to the exchange all the same, so that the others learn of it there.
        let memory = match (lacking, total) {
            (Some(error), _) => Err(error),
            (None, Some(total)) => {
                // What is locked has pages of its own.
                let total = if locks { total.max(LARGE_BLOCK_BYTES as usize) } else { total };
                context.allocate(CALL, total).and_then(|block| {
                    let refused = |note: String| fail(ErrorKind::System).note(note);
                    let stored = marked.map_or(Ok(Box::default()), copies::words).map_err(refused)?;
                    let locked = match locks {
                        true => Some(copies::lock(&context, &block, total).map_err(refused)?),
                        false => None,
                    };
                    Ok((block, stored, locked))
                })
            }
            (None, None) => {
                Err(fail(ErrorKind::System).note(format!("{bytes} bytes are more than an address can name")))
            }
        };
        let block = memory.as_ref().map(|(block, ..)| block);
        if let (Some(private), Ok(block)) = (private, &block) {
            let mirror = context.at(block.offset() + plan.data as u64);
            // SAFETY: - writable: the block is as long, zeroed, and this rank's alone before the exchange. - readable: the private
            //   memory is as long as the window's part.
            unsafe { copies::fill(engine, mirror, private.start(), bytes) };
        }
        if let (Some(range), Some(capacity), Ok(block)) = (&range, capacity, &block) {
            let table: &Regions = context.segment().shared(block.offset() + plan.data as u64);
            table.begin(range, capacity);
        }
        if let (Begins::Posted, Ok(block)) = (begins, &block) {
            // Before the exchange, so that whoever has the window finds it posted.
            let own: &Control = context.segment().shared(block.offset());
            let locked_out = own.word.0.post().is_ok();
            let opened = own.exposure.0.word.open(&own.ends.0.tally, Admits::Anyone, Extent::Whole).is_ok();
            debug_assert!(locked_out && opened, "a new window is posted by nobody");
        }
        let mine = Description {
            ready: u64::from(block.is_ok()),
            element: element.code(),
            id: if team.rank() == Rank(0) { context.fresh_id() } else { 0 },
            offset: block.map_or(0, Block::offset),
            bytes: bytes as u64,
            unit: unit as u64,
            atomicity: atomicity as u64,
            copies: if range.is_some() { 0 } else { 1 + u64::from(private.is_some()) },
            capacity: capacity.map_or(0, |capacity| capacity as u64),
        };
        let all = match team.allgather_bytes(CALL, &mine.to_bytes()) {
            Ok(all) => all,
            Err(error) => {
                // The exchange may have ended well for others, which then have the window and can reach this memory.
                memory.ok().map(|(block, ..)| block).into_iter().chain(range).for_each(Block::leave_behind);
                return Err(error);
            }
        };
        let (block, stored, locked) = match memory {
            Ok(memory) => memory,
            Err(error) => return Err(error.caller(team.rank()).called_at(location)),
        };
        let all: Vec<Description> = all
            .iter()
            .map(|bytes| Description::from_bytes(bytes).ok_or_else(|| fail(ErrorKind::Protocol)))
            .collect::<Result<_>>()?;
        for (rank, theirs) in all.iter().enumerate() {
            if theirs.unit == 0 {
                return Err(fail(ErrorKind::BadDispUnit).note(format!("rank {rank} gave a unit of 0")));
            }
            if theirs.element != mine.element {
                let name = name_of(theirs.element);
                let note = format!("rank {rank} has elements of {name}, this rank of {element}");
                return Err(fail(ErrorKind::CollectiveMismatch).note(note));
            }
            if theirs.atomicity != mine.atomicity {
                let note = format!(
                    "rank {rank} keeps accumulates apart in another way than this rank's {atomicity:?}"
                );
                return Err(fail(ErrorKind::CollectiveMismatch).note(note));
            }
            if theirs.ready == 0 {
                let note = format!("rank {rank} could not get {} bytes of window memory", theirs.bytes);
                return Err(fail(ErrorKind::System).note(note));
            }
        }
        let me = members.rank().index();
        let is_mapped = |rank: usize| context.shares_memory(members.job_rank(Rank(rank as u32)));
        let attached = |theirs: &Description| match theirs.copies {
            0 => Some(Attached::new(context.segment().shared(theirs.offset + plan.data as u64))),
            _ => None,
        };
        let targets: Box<[Target]> = all
            .iter()
            .enumerate()
            .map(|(rank, theirs)| {
                let remote = !is_mapped(rank);
                let attached = match (remote, theirs.copies) {
                    (true, 0) => Some(Attached::elsewhere(theirs.capacity as usize)),
                    (true, _) => None,
                    (false, _) => attached(theirs),
                };
                let offset = if remote { all[me].offset } else { theirs.offset };
                let target = Target {
                    data: match (remote, &attached) {
                        (true, _) => ptr::null_mut(),
                        (false, None) => context.at(offset + plan.data as u64),
                        (false, Some(attached)) => context.at(attached.range),
                    },
                    attached,
                    region: Cell::new((0, 0)),
                    bytes: theirs.bytes as usize,
                    unit: theirs.unit as usize,
                    reach: Cell::default(),
                    unmarked_reach: Cell::default(),
                    watched: Cell::new(context.polled().is_some()),
                    part: Cell::new(None),
                    marked: match theirs.copies {
                        0 | 1 => None,
                        _ => Marked::behind(offset as usize + plan.data, theirs.bytes as usize),
                    },
                    access: Cell::new(Access::None),
                    vouched: Cell::default(),
                    nested: Cell::new(0),
                    exposure: Cell::new(0),
                    control: ptr::from_ref(context.segment().shared(offset)),
                    remote,
                    staged: Cell::new(false),
                };
                target.widen();
                target
            })
            .collect();
        let home = (0..targets.len()).find(|&rank| is_mapped(rank)).unwrap_or(me);
        let mapped = (0..targets.len()).filter(|&rank| is_mapped(rank)).count();
        let is_guarded = mapped == 1 && 1 < targets.len() && atomicity == Atomicity::Native;
        let ground = Ground {
            offset: all[me].offset,
            broken_offset: all[home].offset,
            plan,
            memory: Memory {
                extent: match targets[me].attached {
                    None => Extents::Fixed(bytes),
                    Some(_) => Extents::Attached,
                },
                engine,
                marked: targets[me].marked,
                element,
                atomicity,
                is_guarded,
            },
        };
        let served = match context.wire().filter(|_| targets.iter().any(|target| target.remote)) {
            None => None,
            Some(wire) => {
                let served = Arc::new(Served::new(&context, wire, &members, ground));
                let service: Arc<dyn Service> = Arc::clone(&served) as Arc<dyn Service>;
                wire.register(all[0].id, service);
                // Nobody asks for the window before everybody serves it.
                if let Err(error) = team.allgather_bytes(CALL, &[]) {
                    wire.withdraw(all[0].id);
                    block.leave_behind();
                    return Err(error);
                }
                Some(served)
            }
        };
        let window = RawWindow {
            engine,
            private: private.map_or(targets[me].data, Private::start),
            copies: None,
            targets,
            me,
            home,
            served,
            phase_open: Cell::new(false),
            open: team.watch(all[0].id),
            rest: Cell::new(Rest::Own),
            promises: RefCell::default(),
            envelope: RefCell::default(),
            all_locked: Cell::new(false),
            taken_by_all: RefCell::default(),
            posted: Cell::new(begins == Begins::Posted),
            undrained: Cell::new(false),
            instrumented: Cell::new(context.polled().is_some()),
            is_traced: Cell::new(false),
            views_locked: Cell::new(false),
            fences: Cell::new(0),
            failed: Cell::new(false),
            open_is_reported: Cell::new(false),
            group: Cell::new(None),
            id: all[0].id,
            element,
            atomicity: owner_atomicity(atomicity, is_guarded),
            plan,
            members,
            context,
            locked,
            block: Some(block),
            regions: range.map(Owned::new),
            events: RefCell::new(Vec::new()),
        };
        Ok((window, stored))
    }

    /// The handle, as transfers of other windows are given it.
    #[inline(always)]
    pub(crate) fn handle(&self) -> Handle<'_> {
        Handle(self)
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// What the rank has in its job.
    pub(crate) fn context(&self) -> Arc<RankContext> {
        Arc::clone(&self.context)
    }

    pub(crate) fn rank(&self) -> Rank {
        self.members.rank()
    }

    pub(crate) fn size(&self) -> u32 {
        self.members.size()
    }

    /// The bytes that a rank has contributed, if the rank is in the team.
    pub(crate) fn bytes_at(&self, rank: Rank) -> Option<usize> {
        self.targets.get(rank.index()).map(|target| target.bytes)
    }

    /// The control block of a rank of the team.
    #[inline(always)]
    fn control(&self, rank: usize) -> &Control {
        debug_assert!(!self.targets[rank].remote, "rank {rank} is asked, not looked at");
        let control = self.targets[rank].control;
        // SAFETY: - in bounds, aligned and valid: it was a shared reference when the window was made.
        // - alive: the mapping lives as long as `context`, and no rank uses the block for anything else before this handle
        //   has said that it is gone, see `drop`.
        // - aliasing: all fields are atomics.
        unsafe { &*control }
    }

    /// What the block of `owner` knows about `rank`.
    #[inline(always)]
    fn peer(&self, owner: usize, rank: usize) -> &Peer {
        assert!(rank < self.targets.len(), "rank {rank} is not in the window's team");
        debug_assert!(!self.targets[owner].remote, "rank {owner} is asked, not looked at");
        let block = self.targets[owner].control.cast::<u8>();
        // SAFETY: - in bounds: the plan lays one entry per rank behind the control block.
        let entry = unsafe { block.add(self.plan.peers + rank * size_of::<Peer>()) };
        // SAFETY: - as in `control`; the plan keeps the entries aligned.
        unsafe { &*entry.cast::<Peer>() }
    }

    /// A place in the queue for the lock of `owner`.
    #[inline(always)]
    fn waiter(&self, owner: usize, slot: usize) -> &Waiter {
        assert!(slot < self.plan.slots, "slot {slot} is not in the ring");
        debug_assert!(!self.targets[owner].remote, "rank {owner} is asked, not looked at");
        let block = self.targets[owner].control.cast::<u8>();
        // SAFETY: - in bounds: the plan lays this many entries behind those of the peers.
        let entry = unsafe { block.add(self.plan.waiters + slot * size_of::<Waiter>()) };
        // SAFETY: - as in `control`; the plan keeps the entries aligned.
        unsafe { &*entry.cast::<Waiter>() }
    }

    /// The word that says whether the window is broken: one for all ranks that share memory, as they agree on it.
    #[inline(always)]
    fn broken(&self) -> &Broken {
        &self.control(self.home).fate.0.broken
    }

    /// Tells the own agent that the own words have changed, for those that it keeps waiting.
    #[inline]
    fn ring(&self) {
        if let Some(served) = &self.served {
            served.ring();
        }
    }

    /// An error of a call on this window.
    #[cold]
    #[track_caller]
    pub(crate) fn error(&self, kind: ErrorKind, call: &'static str) -> Error {
        Error::new(kind, call).window(self.id).caller(self.rank())
    }

    /// Refuses a rank that is not in the team.
    #[track_caller]
    #[inline]
    pub(crate) fn check_rank(&self, call: &'static str, rank: Rank) -> Result<usize> {
        match rank.index() < self.targets.len() {
            true => Ok(rank.index()),
            false => Err(self.rank_error(call, rank)),
        }
    }

    #[cold]
    #[track_caller]
    fn rank_error(&self, call: &'static str, rank: Rank) -> Error {
        let note = format!("the window has {} ranks", self.targets.len());
        self.error(ErrorKind::RankOutOfRange, call).target(rank).note(note)
    }

    /// The hook that every public call passes when the window is watched.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn hook(
        &self,
        call: &'static str,
        target: Option<Rank>,
        range: impl FnOnce() -> Option<Range<usize>>,
    ) {
        if self.instrumented.get() {
            self.record(call, target, range(), Location::caller());
        }
    }

    #[cold]
    fn record(
        &self,
        call: &'static str,
        target: Option<Rank>,
        range: Option<Range<usize>>,
        location: &'static Location<'static>,
    ) {
        self.context.serve();
        if !self.is_traced.get() {
            return;
        }
        let mut events = self.events.borrow_mut();
        if events.len() < trace::EVENTS_MAX {
            events.push(trace::Event { call, window: self.id, caller: self.rank(), target, range, location });
        }
    }

    pub(crate) fn start_trace(&self) {
        self.instrumented.set(true);
        self.is_traced.set(true);
        self.targets.iter().for_each(|target| target.watch());
    }

    pub(crate) fn take_trace(&self) -> Vec<trace::Event> {
        self.events.take()
    }
}

impl Drop for RawWindow {
    fn drop(&mut self) {
        // Guards borrow the window, so the ones that are left have been leaked. Nothing of this handle can write any
        // more, which is what the peers want to know; what it holds is given back as far as that is possible.
        self.close_leaked();
        if let Some(copies) = &self.copies {
            copies.end();
        }
        for owner in 0..self.targets.len() {
            if self.targets[owner].remote {
                self.depart_remote(owner);
                continue;
            }
            // Release: pairs with the Acquire in `has_departed`: what this handle wrote, and its flags, come before.
            self.peer(owner, self.me).departed.store(DROPPED, Ordering::Release);
            // Release: pairs with the Acquire in `somebody_has_departed`.
            self.control(owner).fate.0.departures.fetch_add(1, Ordering::Release);
            self.control(owner).fences.0.arrivals.notify();
            self.control(owner).ends.0.completed.notify();
        }
        self.control(self.me).exposure.0.posted.notify();
        self.ring();
        for owner in (0..self.targets.len()).filter(|&owner| !self.targets[owner].remote) {
            // Release: pairs with the Acquire below: the last touch of the owner's block comes before.
            self.peer(owner, self.me).departed.store(GONE, Ordering::Release);
        }
        // Before the block may serve somebody else.
        drop(self.locked.take());
        let Some(block) = self.block.take() else { return };
        let (members, plan, offset) = (Arc::clone(&self.members), self.plan, block.offset());
        let service = self.served.take().and_then(|_| self.context.wire().map(Arc::downgrade));
        let id = self.id;
        let range = self.regions.take().map(|regions| regions.range);
        self.context.retire([block].into_iter().chain(range).collect(), move |segment: &Segment| {
            let peers = segment.shared_slice::<Peer>(offset + plan.peers as u64, members.size() as usize);
            // Acquire: pairs with the Release above: whoever is gone touches the block no more.
            let departed = |rank: usize| peers[rank].departed.load(Ordering::Acquire) == GONE;
            let free = members
                .ranks()
                .all(|rank| departed(rank.index()) || liveness::cannot_act(segment, members.job_rank(rank)));
            if free && let Some(wire) = service.as_ref().and_then(Weak::upgrade) {
                wire.withdraw(id);
            }
            free
        });
    }
}
