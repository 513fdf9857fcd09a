//! The distributed list of example 1.12: nodes in the windows of all ranks, one master lock, and inner locks that promise
//! there is no conflict. Never takes the master lock twice in one operation.

use rma::{Info, LockKind, Rank, Result, Strided, Team, Window, WindowOptions};

/// A node's place, 8 bytes in the windows: a rank and a displacement in that rank's heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pointer {
    pub(crate) rank: i32,
    pub(crate) disp: i32,
}

pub(crate) const END: Pointer = Pointer { rank: -1, disp: 0 };
/// The dummy before the first node of the list.
pub(crate) const HEAD: Pointer = Pointer { rank: 0, disp: 0 };

impl Pointer {
    pub(crate) fn to_word(self) -> u64 {
        u64::from(self.rank.cast_unsigned()) | u64::from(self.disp.cast_unsigned()) << 32
    }

    pub(crate) fn from_word(word: u64) -> Pointer {
        Pointer { rank: (word as u32).cast_signed(), disp: ((word >> 32) as u32).cast_signed() }
    }

    pub(crate) fn owner(self) -> Rank {
        Rank(self.rank.cast_unsigned())
    }

    pub(crate) fn at(self) -> usize {
        self.disp.cast_unsigned() as usize
    }
}

/// What a node holds: exactly 8 bytes, compared byte by byte.
pub(crate) type Info8 = [u8; 8];

/// A text of at most 8 bytes, padded with zeros.
pub(crate) fn info(text: &str) -> Info8 {
    let mut bytes = [0; 8];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    bytes
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) info: Info8,
    pub(super) next: Pointer,
    /// How often it was deleted, where nodes are counted.
    deleted: u64,
}

/// What an operation of the list could not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    NotFound,
    HeapFull,
    /// What a search has found is not there any more.
    StaleNode,
}

/// How the calls of a list are written, and what its nodes hold beside the seed's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// Lock, transfer and unlock are one call.
    pub(super) one_call: bool,
    /// Nodes have a third word, which counts how often they were deleted.
    pub(super) counted: bool,
}

/// What a search has found: the node before, the node, and how often each had been deleted then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) previous: Pointer,
    pub(super) place: Pointer,
    deleted: [u64; 2],
}

pub(super) struct List {
    options: Options,
    heap: Window<u64>,
    /// At rank 0: where the list begins, and the free list.
    control: Window<u64>,
    /// Of size 0: its lock at rank 0 is the master lock.
    pub(super) master: Window<u8>,
}

const WORD_BYTES: usize = size_of::<u64>();
const FIRST: usize = 0;
const FREE: usize = 1;
const CONTROL_RANK: Rank = Rank(0);

impl Options {
    fn node_words(self) -> usize {
        if self.counted { 3 } else { 2 }
    }
}

impl List {
    /// Makes an empty list with so many nodes on each rank. Collective.
    pub(super) fn new(team: &Team, nodes: usize) -> Result<List> {
        List::with(team, nodes, Options::default())
    }

    pub(super) fn with(team: &Team, nodes: usize, options: Options) -> Result<List> {
        let words = options.node_words();
        let is_control = team.rank() == CONTROL_RANK;
        let heap = WindowOptions::new().disp_unit(words * WORD_BYTES).allocate::<u64>(team, nodes * words)?;
        let control = Window::<u64>::allocate(team, if is_control { 2 } else { 0 })?;
        let mut list = List { options, heap, control, master: Window::allocate(team, 0)? };
        // Each owner links its own part of the free list, which begins behind the dummy head.
        let me = team.rank().0 as i32;
        let size = team.size() as i32;
        let mut mine = list.heap.local_mut()?;
        for disp in 0..nodes as i32 {
            let next = match (disp + 1 < nodes as i32, me + 1 < size) {
                (true, _) => Pointer { rank: me, disp: disp + 1 },
                (false, true) => Pointer { rank: me + 1, disp: 0 },
                (false, false) => END,
            };
            let next = if (Pointer { rank: me, disp }) == HEAD { END } else { next };
            mine[disp as usize * words + 1] = next.to_word();
        }
        drop(mine);
        if is_control {
            let free = if nodes == 1 && size == 1 { END } else { Pointer { rank: 0, disp: 1 } };
            list.control.local_mut()?.copy_from_slice(&[HEAD.to_word(), free.to_word()]);
        }
        team.barrier()?;
        Ok(list)
    }

    /// Holds the master lock for an operation that changes the list.
    pub(super) fn exclusively<R>(&self, operation: impl FnOnce() -> Result<R>) -> Result<R> {
        let mut result = None;
        self.master.lock(CONTROL_RANK, LockKind::Exclusive, |_| result = Some(operation()))?;
        result.expect("the body has run")
    }

    /// Holds the master lock together with others that only look.
    pub(super) fn sharing<R>(&self, operation: impl FnOnce() -> Result<R>) -> Result<R> {
        let mut result = None;
        self.master.lock(CONTROL_RANK, LockKind::Shared, |_| result = Some(operation()))?;
        result.expect("the body has run")
    }

    // The rest is called under the master lock.

    fn get(&self, window: &Window<u64>, owner: Rank, at: usize, words: usize) -> Result<Vec<u64>> {
        let section = Strided { start: at, count: 1, block: words, stride: words };
        match self.options.one_call {
            true => window.get_locked(owner, LockKind::Shared, Info::NoCheck, section),
            false => window
                .lock_with(owner, LockKind::Shared, Info::NoCheck, |epoch| epoch.get_vec(owner, section)),
        }
    }

    fn put(&self, window: &Window<u64>, owner: Rank, at: usize, words: Vec<u64>) -> Result<()> {
        match self.options.one_call {
            true => window.put_locked(owner, LockKind::Exclusive, Info::NoCheck, at, words),
            false => window
                .lock_with(owner, LockKind::Exclusive, Info::NoCheck, |epoch| epoch.put(owner, at, words)),
        }
    }

    pub(super) fn node(&self, place: Pointer) -> Result<Node> {
        let words = self.get(&self.heap, place.owner(), place.at(), self.options.node_words())?;
        let deleted = words.get(2).copied().unwrap_or(0);
        Ok(Node { info: words[0].to_ne_bytes(), next: Pointer::from_word(words[1]), deleted })
    }

    fn set_node(&self, place: Pointer, node: Node) -> Result<()> {
        let mut words = vec![u64::from_ne_bytes(node.info), node.next.to_word(), node.deleted];
        words.truncate(self.options.node_words());
        self.put(&self.heap, place.owner(), place.at(), words)
    }

    fn pointer(&self, which: usize) -> Result<Pointer> {
        let word = self.get(&self.control, CONTROL_RANK, which, 1)?;
        Ok(Pointer::from_word(word[0]))
    }

    pub(super) fn first_free(&self) -> Result<Pointer> {
        self.pointer(FREE)
    }

    fn set_free(&self, place: Pointer) -> Result<()> {
        self.put(&self.control, CONTROL_RANK, FREE, vec![place.to_word()])
    }

    pub(super) fn insert_after(&self, previous: Pointer, info: Info8) -> Result<Result<Pointer, Missing>> {
        let place = self.first_free()?;
        if place == END {
            return Ok(Err(Missing::HeapFull));
        }
        let free = self.node(place)?;
        self.set_free(free.next)?;
        let before = self.node(previous)?;
        self.set_node(place, Node { info, next: before.next, ..free })?;
        self.set_node(previous, Node { next: place, ..before })?;
        Ok(Ok(place))
    }

    /// As the seed has it, the locks of the previous and the deleted node's ranks are held together, which may be one rank.
    pub(super) fn delete_after(&self, previous: Pointer) -> Result<Result<Pointer, Missing>> {
        let owner = previous.owner();
        let place = self.heap.lock_with(owner, LockKind::Exclusive, Info::NoCheck, |_| {
            let before = self.node(previous)?;
            let place = before.next;
            if place == END {
                return Ok([END.to_word()]);
            }
            self.heap.lock_with(place.owner(), LockKind::Exclusive, Info::NoCheck, |_| {
                let deleted = self.node(place)?;
                self.set_node(previous, Node { next: deleted.next, ..before })?;
                let (next, deleted) = (self.first_free()?, deleted.deleted + 1);
                self.set_node(place, Node { info: [0; 8], next, deleted })
            })?;
            Ok([place.to_word()])
        })?;
        match Pointer::from_word(place[0]) {
            END => Ok(Err(Missing::NotFound)),
            place => {
                self.set_free(place)?;
                Ok(Ok(place))
            }
        }
    }

    /// The node before the first one that holds `wanted`.
    pub(super) fn predecessor(&self, wanted: Info8) -> Result<Result<Pointer, Missing>> {
        let mut previous = self.pointer(FIRST)?;
        loop {
            let next = self.node(previous)?.next;
            if next == END {
                return Ok(Err(Missing::NotFound));
            }
            if self.node(next)?.info == wanted {
                return Ok(Ok(previous));
            }
            previous = next;
        }
    }

    /// What a search has found, for a delete under another lock.
    pub(super) fn find(&self, wanted: Info8) -> Result<Result<Found, Missing>> {
        assert!(self.options.counted, "a list without counts cannot tell what is stale");
        Ok(match self.predecessor(wanted)? {
            Err(missing) => Err(missing),
            Ok(previous) => {
                let before = self.node(previous)?;
                let node = self.node(before.next)?;
                Ok(Found { previous, place: before.next, deleted: [before.deleted, node.deleted] })
            }
        })
    }

    /// Deletes what a search has found, if it is still what and where it was.
    pub(super) fn delete_found(&self, found: Found) -> Result<Result<Pointer, Missing>> {
        let before = self.node(found.previous)?;
        let deleted = [before.deleted, self.node(found.place)?.deleted];
        match before.next == found.place && deleted == found.deleted {
            true => self.delete_after(found.previous),
            false => Ok(Err(Missing::StaleNode)),
        }
    }

    /// The search as the seed's listing has it, which advances from the node that it has just read.
    pub(super) fn predecessor_by_the_letter(&self, wanted: Info8) -> Result<Result<Pointer, Missing>> {
        let mut previous = self.pointer(FIRST)?;
        let mut next = self.node(previous)?.next;
        let mut is_first = true;
        while next != END {
            let node = self.node(next)?;
            if !is_first {
                previous = next;
            }
            is_first = false;
            if node.info == wanted {
                return Ok(Ok(previous));
            }
            next = node.next;
        }
        Ok(Err(Missing::NotFound))
    }

    /// The places from one on, as the chain has them, without those that come again.
    pub(super) fn chain(&self, from: Pointer, nodes_max: usize) -> Result<Vec<Pointer>> {
        let mut places = Vec::new();
        let mut place = from;
        while place != END {
            assert!(places.len() < nodes_max, "the chain has no end: {places:?}");
            places.push(place);
            place = self.node(place)?.next;
        }
        Ok(places)
    }

    /// What the list holds, in order.
    pub(super) fn infos(&self, nodes_max: usize) -> Result<Vec<Info8>> {
        let places = self.chain(self.node(HEAD)?.next, nodes_max)?;
        places.into_iter().map(|place| Ok(self.node(place)?.info)).collect()
    }
}
