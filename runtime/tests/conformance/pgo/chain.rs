//! The list of example 1.12 by the progressive family: nodes in memory that all ranks offer for as long as the list lives, and a
//! token, taken by a mixed chain that swaps it, as master lock. Never lets the owner of a node take part in an operation.

use std::thread;

use rma::pgo::{self, COUNT_ANY, GETS_OK, Malloc, PUTS_OK, Request, malloc, over};
use rma::{LockKind, Rank, Sum, Team};

use crate::list::structure::{END, HEAD, Info8, Missing, Pointer, info};
use crate::list::{DELETE, ENTRY, INSERT_AFTER, INSERT_FIRST, KEYS, NODES, RUN, SEARCH, Step, model, next};
use crate::{Case, Outcome, case, flags, until};

pub(crate) const CASES: &[Case] = &[
    case!(a_list_behind_a_token_gives_the_table, [1, 4]).one_copy().under(&[""]),
    case!(a_token_keeps_operations_apart, [4]).one_copy().under(&[""]),
];

/// The tags of the list's exchanges.
const HEAP: u64 = 1;
const CONTROL: u64 = 2;

const NODE_BYTES: usize = 16;
const NODE_WORDS: usize = 2;
const OWNER: Rank = Rank(0);
/// What the words at the owner of the list are.
const FIRST: usize = 0;
const FREE: usize = 1;
const TOKEN: usize = 2;
const TICKET: usize = 3;
const CONTROL_WORDS: usize = 4;

const TAKEN: u64 = 0;
const FREED: u64 = 1;

#[derive(Clone, Copy)]
struct Node {
    info: Info8,
    next: Pointer,
}

struct Chained<'a> {
    team: &'a Team,
    heap: Request<Malloc<u64>>,
    /// At the owner.
    control: Option<Request<Vec<u64>>>,
}

impl<'a> Chained<'a> {
    /// Makes an empty list with so many nodes on each rank. Collective.
    fn new(team: &'a Team, nodes: usize) -> rma::Result<Chained<'a>> {
        let (me, size) = (team.rank().0 as i32, team.size() as i32);
        let mut mine = malloc::<u64>(team, nodes * NODE_WORDS)?;
        for disp in 0..nodes as i32 {
            let next = match (disp + 1 < nodes as i32, me + 1 < size) {
                (true, _) => Pointer { rank: me, disp: disp + 1 },
                (false, true) => Pointer { rank: me + 1, disp: 0 },
                (false, false) => END,
            };
            let next = if (Pointer { rank: me, disp }) == HEAD { END } else { next };
            mine[disp as usize * NODE_WORDS + 1] = next.to_word();
        }
        let offered = over(mine, PUTS_OK + GETS_OK).unit(NODE_BYTES);
        let heap = pgo::iofferp(team, HEAP, offered, COUNT_ANY)?;
        let control = match team.rank() == OWNER {
            true => {
                let words = vec![HEAD.to_word(), Pointer { rank: 0, disp: 1 }.to_word(), FREED, 0];
                assert_eq!(words.len(), CONTROL_WORDS);
                Some(pgo::iofferp(team, CONTROL, over(words, PUTS_OK + GETS_OK), COUNT_ANY)?)
            }
            false => None,
        };
        team.barrier()?;
        Ok(Chained { team, heap, control })
    }

    /// Ends the list. Collective. Gives the words of its owner.
    fn end(mut self) -> rma::Result<Option<Vec<u64>>> {
        self.team.barrier()?;
        self.heap.wait()?;
        let control = match self.control {
            Some(mut control) => {
                control.wait()?;
                Some(control.into_inner())
            }
            None => None,
        };
        // Nobody begins the next list while somebody still offers this one.
        self.team.barrier()?;
        Ok(control)
    }

    /// Runs an operation while nobody else does.
    fn alone<R>(&self, operation: impl FnOnce() -> rma::Result<R>) -> rma::Result<R> {
        loop {
            let (mut found, taken) = ([TAKEN], [TAKEN]);
            pgo::scope(self.team, CONTROL, |scope| {
                scope.combine_mixed().getp(&mut found, OWNER, TOKEN)?;
                scope.putp(&taken, OWNER, TOKEN)
            })?;
            if found == [FREED] {
                break;
            }
            thread::yield_now();
        }
        let result = operation()?;
        self.put(CONTROL, OWNER, TOKEN, &[FREED])?;
        Ok(result)
    }

    fn put(&self, tag: u64, target: Rank, at: usize, words: &[u64]) -> rma::Result<()> {
        pgo::scope(self.team, tag, |scope| scope.putp(words, target, at))
    }

    fn get<const N: usize>(&self, tag: u64, target: Rank, at: usize) -> rma::Result<[u64; N]> {
        let mut words = [0; N];
        pgo::scope(self.team, tag, |scope| scope.getp(&mut words, target, at))?;
        Ok(words)
    }

    // The rest is called with the token.

    fn node(&self, place: Pointer) -> rma::Result<Node> {
        let [info, next] = self.get(HEAP, place.owner(), place.at())?;
        Ok(Node { info: info.to_ne_bytes(), next: Pointer::from_word(next) })
    }

    fn set_node(&self, place: Pointer, node: Node) -> rma::Result<()> {
        self.put(HEAP, place.owner(), place.at(), &[u64::from_ne_bytes(node.info), node.next.to_word()])
    }

    fn pointer(&self, which: usize) -> rma::Result<Pointer> {
        let [word] = self.get(CONTROL, OWNER, which)?;
        Ok(Pointer::from_word(word))
    }

    fn set_free(&self, place: Pointer) -> rma::Result<()> {
        self.put(CONTROL, OWNER, FREE, &[place.to_word()])
    }

    /// A number that no other operation gets.
    fn ticket(&self) -> rma::Result<u64> {
        let [ticket] = self.get(CONTROL, OWNER, TICKET)?;
        self.put(CONTROL, OWNER, TICKET, &[ticket + 1])?;
        Ok(ticket)
    }

    fn insert_after(&self, previous: Pointer, info: Info8) -> rma::Result<Result<Pointer, Missing>> {
        let place = self.pointer(FREE)?;
        if place == END {
            return Ok(Err(Missing::HeapFull));
        }
        self.set_free(self.node(place)?.next)?;
        let before = self.node(previous)?;
        self.set_node(place, Node { info, next: before.next })?;
        self.set_node(previous, Node { next: place, ..before })?;
        Ok(Ok(place))
    }

    fn delete_after(&self, previous: Pointer) -> rma::Result<Result<Pointer, Missing>> {
        let before = self.node(previous)?;
        let place = before.next;
        if place == END {
            return Ok(Err(Missing::NotFound));
        }
        let deleted = self.node(place)?;
        self.set_node(previous, Node { next: deleted.next, ..before })?;
        self.set_node(place, Node { info: [0; 8], next: self.pointer(FREE)? })?;
        self.set_free(place)?;
        Ok(Ok(place))
    }

    /// The node before the first one that holds `wanted`.
    fn predecessor(&self, wanted: Info8) -> rma::Result<Result<Pointer, Missing>> {
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

    /// The places from one on, as the chain has them.
    fn chain(&self, from: Pointer, nodes_max: usize) -> rma::Result<Vec<Pointer>> {
        let mut places = Vec::new();
        let mut place = from;
        while place != END {
            assert!(places.len() < nodes_max, "the chain has no end: {places:?}");
            places.push(place);
            place = self.node(place)?.next;
        }
        Ok(places)
    }

    fn infos(&self, nodes_max: usize) -> rma::Result<Vec<Info8>> {
        let places = self.chain(self.node(HEAD)?.next, nodes_max)?;
        places.into_iter().map(|place| Ok(self.node(place)?.info)).collect()
    }
}

// covers: PGO-EXT-05 -- the list
fn a_list_behind_a_token_gives_the_table(team: &Team) -> Outcome {
    // On one rank all nodes are its own, in the same order.
    let place = |(rank, disp): (i32, i32)| match team.size() {
        1 => Pointer { rank: 0, disp: NODES as i32 * rank + disp },
        _ => Pointer { rank, disp },
    };
    let list = Chained::new(team, if team.size() == 1 { 4 * NODES } else { NODES })?;
    for (number, (step, expected, after, free)) in (0..).zip(RUN) {
        // Another rank for each step.
        if team.rank() == Rank(number % team.size()) {
            let found = list.alone(|| match step {
                Step::Insert(text, previous) => list.insert_after(place(previous), info(text)),
                Step::Delete(previous) => list.delete_after(place(previous)),
                Step::Search(text) => list.predecessor(info(text)),
            })?;
            assert_eq!(found, expected.map(place), "step {}", number + 1);
        }
        team.barrier()?;
        list.alone(|| {
            let expected: Vec<Info8> = after.split(' ').map(info).collect();
            assert_eq!(list.infos(4 * NODES)?, expected, "after step {}", number + 1);
            assert_eq!(list.pointer(FREE)?, place(free), "after step {}", number + 1);
            Ok(())
        })?;
        team.barrier()?;
    }
    let control = list.end()?;
    assert_eq!(control.map(|words| words[TOKEN]), (team.rank() == OWNER).then_some(FREED));
    Ok(())
}

/// One random operation, and its entry in the log.
fn operate(list: &Chained<'_>, state: &mut u64) -> rma::Result<[u64; ENTRY]> {
    let (key, other) = (1 + next(state) % KEYS, 1 + next(state) % KEYS);
    let what = [INSERT_AFTER, INSERT_FIRST, DELETE, SEARCH][(next(state) % 4) as usize];
    list.alone(|| {
        let ticket = list.ticket()?;
        let is_done = match what {
            INSERT_FIRST => list.insert_after(HEAD, key.to_ne_bytes())?.is_ok(),
            _ => match list.predecessor(key.to_ne_bytes())? {
                Err(_) => false,
                Ok(_) if what == SEARCH => true,
                Ok(previous) if what == DELETE => list.delete_after(previous)?.is_ok(),
                Ok(previous) => {
                    let found = list.node(previous)?.next;
                    list.insert_after(found, other.to_ne_bytes())?.is_ok()
                }
            },
        };
        Ok([ticket, what, key, other, u64::from(is_done)])
    })
}

fn a_token_keeps_operations_apart(team: &Team) -> Outcome {
    const HEAP_NODES: usize = 4;
    let all = HEAP_NODES * team.size() as usize;
    let list = Chained::new(team, HEAP_NODES)?;
    let done = flags::<u64>(team, 1)?;
    let passive = Rank(team.size() - 1);
    let mut log = Vec::new();
    if team.rank() == passive {
        // It owns a quarter of the nodes and makes no call but loads.
        until(|| done.load(0).unwrap() + 1 == u64::from(team.size()));
    } else {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(u64::from(team.rank().0) + 1);
        for _ in 0..if crate::is_full() { 1000 } else { 30 } {
            log.extend(operate(&list, &mut state)?);
        }
        done.lock(passive, LockKind::Shared, |epoch| epoch.accumulate(passive, 0, Sum, 1))?;
    }
    if let Some(log) = team.gather(Rank(0), &log)? {
        let expected = model(&log, all);
        let found = list.infos(all)?.into_iter().map(u64::from_ne_bytes);
        assert_eq!(found.collect::<Vec<_>>(), expected);
        // The two chains are disjoint and have all nodes.
        let mut places = list.chain(HEAD, all)?;
        places.extend(list.chain(list.pointer(FREE)?, all)?);
        places.sort_by_key(|place| (place.rank, place.disp));
        places.dedup();
        assert_eq!(places.len(), all);
    }
    list.end()?;
    Ok(())
}
