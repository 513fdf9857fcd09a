//! The list of example 1.12 in annotated functions, beside the same by hand: the locks that the annotation writes cost no message,
//! as the master lock says that nobody else is there. Never takes the master lock inside an operation.

use std::cell::Cell;

use rma::{Info, LockKind, Rank, Team, Window, rma_epoch, rma_test};

/// A node has two words: what it holds, and where the next one is. A place is a number over all ranks; 0 is the end and, as a
/// node, where the list begins.
type Node = (u64, u64);

const EACH: u64 = 16;
const WORDS: usize = 2;

fn owner_of(place: u64) -> (Rank, usize) {
    (Rank((place / EACH) as u32), (place % EACH) as usize * WORDS)
}

// by macro
#[rma_epoch(lock(heap, rank = owner, shared, info = nocheck, because = "the master lock is held"))]
fn node(heap: &Window<u64>, owner: Rank, at: usize) -> rma::Result<Node> {
    Ok((heap.at(owner)[at], heap.at(owner)[at + 1]))
}
#[rma_epoch(lock(heap, rank = owner, exclusive, info = nocheck, because = "the master lock is held"))]
fn set_node(heap: &Window<u64>, owner: Rank, at: usize, (info, next): Node) -> rma::Result<()> {
    heap.at(owner)[at] = info;
    heap.at(owner)[at + 1] = next;
    Ok(())
}
// by hand
fn node_by_hand(heap: &Window<u64>, owner: Rank, at: usize) -> rma::Result<Node> {
    heap.lock_with(owner, LockKind::Shared, Info::NoCheck, |epoch| {
        let info = epoch.get_value(owner, at)?;
        let next = epoch.get_value(owner, at + 1)?;
        Ok((info, next))
    })
}
fn set_node_by_hand(heap: &Window<u64>, owner: Rank, at: usize, node: Node) -> rma::Result<()> {
    let (info, next) = node;
    heap.lock_with(owner, LockKind::Exclusive, Info::NoCheck, |epoch| {
        epoch.put(owner, at, info)?;
        epoch.put(owner, at + 1, next)
    })
}
// end

/// How many lines of this file lie between two marks.
fn lines_between(from: &str, to: &str) -> usize {
    let lines = include_str!("list.rs").lines().skip_while(|line| *line != from);
    lines.skip(1).take_while(|line| *line != to).count()
}

/// A list whose nodes are reached in one of the two ways. It counts how often that is at another rank.
struct List<'w> {
    heap: &'w Window<u64>,
    get: fn(&Window<u64>, Rank, usize) -> rma::Result<Node>,
    set: fn(&Window<u64>, Rank, usize, Node) -> rma::Result<()>,
    me: Rank,
    others: Cell<u64>,
}

impl List<'_> {
    fn reach(&self, place: u64) -> (Rank, usize) {
        let (owner, at) = owner_of(place);
        self.others.set(self.others.get() + u64::from(owner != self.me));
        (owner, at)
    }

    fn node(&self, place: u64) -> rma::Result<Node> {
        let (owner, at) = self.reach(place);
        (self.get)(self.heap, owner, at)
    }

    fn set_node(&self, place: u64, node: Node) -> rma::Result<()> {
        let (owner, at) = self.reach(place);
        (self.set)(self.heap, owner, at, node)
    }

    fn insert_first(&self, place: u64, info: u64) -> rma::Result<()> {
        let (head, first) = self.node(0)?;
        self.set_node(place, (info, first))?;
        self.set_node(0, (head, place))
    }

    fn infos(&self) -> rma::Result<Vec<u64>> {
        let mut infos = Vec::new();
        let (_, mut next) = self.node(0)?;
        while next != 0 {
            let (info, after) = self.node(next)?;
            infos.push(info);
            next = after;
        }
        Ok(infos)
    }

    fn delete(&self, wanted: u64) -> rma::Result<()> {
        let mut previous = 0;
        loop {
            let (info, place) = self.node(previous)?;
            let (found, next) = self.node(place)?;
            if found == wanted {
                return self.set_node(previous, (info, next));
            }
            previous = place;
        }
    }
}

// covers: EX-E112-16
#[rma_test(ranks = 3, transports = [tcp])]
fn the_locks_of_a_list_are_no_messages(team: &Team) -> rma::Result<()> {
    type Get = fn(&Window<u64>, Rank, usize) -> rma::Result<Node>;
    type Set = fn(&Window<u64>, Rank, usize, Node) -> rma::Result<()>;
    let forms: [(Get, Set); 2] = [(node, set_node), (node_by_hand, set_node_by_hand)];
    for (get, set) in forms {
        let master = Window::<u8>::allocate(team, 0)?;
        let heap = Window::<u64>::allocate(team, EACH as usize * WORDS)?;
        for turn in team.ranks() {
            if turn == team.rank() {
                let list = List { heap: &heap, get, set, me: turn, others: Cell::new(0) };
                master.lock(Rank(0), LockKind::Exclusive, |_| {
                    let before = team.traffic().frames_sent;
                    for place in 1..3 * EACH {
                        list.insert_first(place, 100 + place)?;
                    }
                    for place in (1..3 * EACH).step_by(3) {
                        list.delete(100 + place)?;
                    }
                    let left: Vec<u64> = (1..3 * EACH).rev().filter(|place| place % 3 != 1).collect();
                    let infos = list.infos()?;
                    assert!(infos.iter().eq(left.iter().map(|place| place + 100).collect::<Vec<_>>().iter()));
                    list.set_node(0, (0, 0))?;
                    // A get is a request for each word. Two puts are a frame, and one asks whether they are there.
                    let frames = team.traffic().frames_sent - before;
                    assert_eq!(frames, 2 * list.others.get(), "locks and unlocks send nothing");
                    Ok(())
                })?;
            }
            team.barrier()?;
        }
    }
    let [by_macro, by_hand] = [("// by macro", "// by hand"), ("// by hand", "// end")];
    let lines = [lines_between(by_macro.0, by_macro.1), lines_between(by_hand.0, by_hand.1)];
    println!("lines of get and put: {} by macro, {} by hand", lines[0], lines[1]);
    Ok(())
}
