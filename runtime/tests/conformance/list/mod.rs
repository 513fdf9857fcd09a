//! Example 1.12: a list of which the nodes lie in the windows of all ranks. Never lets a rank that only owns nodes take part.

pub(crate) mod structure;

use std::time::Instant;

use rma::{LockKind, Rank, Sum, Team, Window};

use crate::{Case, Outcome, case, flags, has_time, is_full, until};
use structure::{END, HEAD, Info8, List, Missing, Options, Pointer, info};

pub(crate) const CASES: &[Case] = &[
    case!(a_new_list_is_empty_and_all_nodes_are_free, [1, 3, 4]),
    case!(the_fixed_run_gives_the_table, [1, 4]),
    case!(a_search_that_is_out_of_date_is_noticed, [2, 4]),
    case!(a_full_heap_refuses_and_takes_a_node_again, [3]),
    case!(infos_are_compared_over_eight_bytes, [2]),
    case!(each_operation_takes_one_real_lock, [2]),
    case!(searches_run_at_the_same_time, [3]),
    case!(operations_are_linearizable_while_an_owner_spins, [4]),
];

/// A rank's part of the heap in the fixed run.
pub(crate) const NODES: usize = 4;

// covers: EX-E112-01
fn a_new_list_is_empty_and_all_nodes_are_free(team: &Team) -> Outcome {
    let list = List::new(team, 5)?;
    let all = 5 * team.size() as usize;
    list.sharing(|| {
        let free = list.chain(list.first_free()?, all)?;
        let expected =
            (0..team.size() as i32).flat_map(|rank| (0..5).map(move |disp| Pointer { rank, disp }));
        assert!(free.into_iter().eq(expected.skip(1)));
        assert_eq!(list.infos(all)?, Vec::<Info8>::new());
        Ok(())
    })?;
    Ok(())
}

#[derive(Clone, Copy)]
pub(crate) enum Step {
    Insert(&'static str, (i32, i32)),
    Delete((i32, i32)),
    Search(&'static str),
}

pub(crate) type Expected = Result<(i32, i32), Missing>;

/// The fixed run: a call, what it gives, the list after it and the first free node.
pub(crate) const RUN: [(Step, Expected, &str, (i32, i32)); 10] = [
    (Step::Insert("a", (0, 0)), Ok((0, 1)), "a", (0, 2)),
    (Step::Insert("b", (0, 0)), Ok((0, 2)), "b a", (0, 3)),
    (Step::Insert("c", (0, 1)), Ok((0, 3)), "b a c", (1, 0)),
    (Step::Insert("d", (0, 3)), Ok((1, 0)), "b a c d", (1, 1)),
    (Step::Search("c"), Ok((0, 1)), "b a c d", (1, 1)),
    (Step::Delete((0, 1)), Ok((0, 3)), "b a d", (0, 3)),
    (Step::Insert("e", (0, 0)), Ok((0, 3)), "e b a d", (1, 1)),
    (Step::Delete((1, 0)), Err(Missing::NotFound), "e b a d", (1, 1)),
    (Step::Search("zz"), Err(Missing::NotFound), "e b a d", (1, 1)),
    (Step::Search("e"), Ok((0, 0)), "e b a d", (1, 1)),
];

// covers: EX-E112-02 -- form R
// covers: EX-E112-04, EX-E112-05, EX-E112-07, EX-E112-13, EX-E112-17
fn the_fixed_run_gives_the_table(team: &Team) -> Outcome {
    // On one rank all nodes are its own, in the same order.
    let place = |(rank, disp): (i32, i32)| match team.size() {
        1 => Pointer { rank: 0, disp: NODES as i32 * rank + disp },
        _ => Pointer { rank, disp },
    };
    let nodes = if team.size() == 1 { 4 * NODES } else { NODES };
    for one_call in [false, true] {
        fixed_run(team, &List::with(team, nodes, Options { one_call, ..Options::default() })?, place)?;
    }
    Ok(())
}

fn fixed_run(team: &Team, list: &List, place: impl Fn((i32, i32)) -> Pointer) -> rma::Result<()> {
    for (number, (step, expected, after, free)) in (0..).zip(RUN) {
        // Another rank for each step.
        if team.rank() == Rank(number % team.size()) {
            let found = match step {
                Step::Insert(text, previous) => {
                    list.exclusively(|| list.insert_after(place(previous), info(text)))?
                }
                Step::Delete(previous) => list.exclusively(|| list.delete_after(place(previous)))?,
                Step::Search(text) => list.sharing(|| list.predecessor(info(text)))?,
            };
            assert_eq!(found, expected.map(&place), "step {}", number + 1);
            if number == 4 {
                // The listing gives the found node itself, after which a delete would take the wrong one.
                let literal = list.sharing(|| list.predecessor_by_the_letter(info("c")))?;
                assert_eq!(literal, Ok(place((0, 3))));
            }
        }
        team.barrier()?;
        list.sharing(|| {
            let expected: Vec<Info8> = after.split(' ').map(info).collect();
            assert_eq!(list.infos(4 * NODES)?, expected, "after step {}", number + 1);
            assert_eq!(list.first_free()?, place(free), "after step {}", number + 1);
            Ok(())
        })?;
        team.barrier()?;
    }
    Ok(())
}

// covers: EX-E112-09
fn a_search_that_is_out_of_date_is_noticed(team: &Team) -> Outcome {
    let list = List::with(team, NODES, Options { counted: true, ..Options::default() })?;
    let mut lost = 0;
    for round in 0..20 {
        if team.rank() == Rank(0) {
            for text in ["c", "b", "a"] {
                list.exclusively(|| list.insert_after(HEAD, info(text)))?.expect("there is room");
            }
        }
        team.barrier()?;
        // All find the same node; in other rounds the first to delete is another node's predecessor.
        let wanted = if round % 2 == 0 || team.rank() == Rank(0) { "b" } else { "c" };
        let found = list.sharing(|| list.find(info(wanted)))?.expect("it is there");
        team.barrier()?;
        let mut mine = [0_u64, 0];
        match list.exclusively(|| list.delete_found(found))? {
            Ok(place) => {
                assert_eq!(place, found.place);
                mine[0] = 1;
            }
            Err(missing) => {
                assert_eq!(missing, Missing::StaleNode);
                // As the list is now, the delete finds its node again or not at all.
                let again = list.exclusively(|| match list.find(info(wanted))? {
                    Ok(found) => list.delete_found(found),
                    Err(missing) => Ok(Err(missing)),
                })?;
                mine = [u64::from(again.is_ok()), 1];
            }
        }
        team.allreduce(&mut mine, Sum)?;
        let deleted = if round % 2 == 0 { 1 } else { 2 };
        assert_eq!(mine[0], deleted, "round {round}: each node is deleted once");
        lost += mine[1];
        list.sharing(|| {
            let left: Vec<Info8> = if deleted == 1 { vec![info("a"), info("c")] } else { vec![info("a")] };
            assert_eq!(list.infos(NODES * team.size() as usize)?, left);
            // The two chains are disjoint and have all nodes.
            let all = NODES * team.size() as usize;
            let mut places = list.chain(HEAD, all)?;
            places.extend(list.chain(list.first_free()?, all)?);
            places.sort_by_key(|place| (place.rank, place.disp));
            places.dedup();
            assert_eq!(places.len(), all);
            Ok(())
        })?;
        team.barrier()?;
        if team.rank() == Rank(0) {
            while list.exclusively(|| list.delete_after(HEAD))?.is_ok() {}
        }
    }
    assert!(10 <= lost, "somebody comes second whenever all want the same node");
    Ok(())
}

// covers: EX-E112-06
fn a_full_heap_refuses_and_takes_a_node_again(team: &Team) -> Outcome {
    let list = List::new(team, NODES)?;
    if team.rank() == Rank(1) {
        let all = NODES * team.size() as usize;
        for number in 1..all {
            let inserted = list.exclusively(|| list.insert_after(HEAD, info(&number.to_string())))?;
            assert!(inserted.is_ok(), "node {number}");
        }
        assert_eq!(list.exclusively(|| list.insert_after(HEAD, info("more")))?, Err(Missing::HeapFull));
        let deleted = list.exclusively(|| list.delete_after(HEAD))?;
        assert_eq!(list.exclusively(|| list.insert_after(HEAD, info("again")))?, deleted);
        assert_eq!(list.sharing(|| list.infos(all))?.len(), all - 1);
        assert_eq!(list.sharing(|| list.first_free())?, END);
    }
    team.barrier()?;
    Ok(())
}

// covers: EX-E112-14
fn infos_are_compared_over_eight_bytes(team: &Team) -> Outcome {
    let list = List::new(team, NODES)?;
    if team.rank() == Rank(1) {
        let (long, short) = (info("abcdefgh"), info("abcdefg"));
        let first = list.exclusively(|| list.insert_after(HEAD, long))?;
        assert_eq!(list.sharing(|| list.predecessor(short))?, Err(Missing::NotFound));
        let second = list.exclusively(|| list.insert_after(HEAD, short))?;
        assert_eq!(list.sharing(|| list.predecessor(long))?, second);
        assert_eq!(list.sharing(|| list.predecessor(short))?, Ok(HEAD));
        assert_ne!(first, second);
    }
    team.barrier()?;
    Ok(())
}

// covers: EX-E112-03
fn each_operation_takes_one_real_lock(team: &Team) -> Outcome {
    let list = List::new(team, NODES)?;
    if team.rank() == Rank(1) {
        list.master.start_trace();
        let locks = || list.master.take_trace().iter().filter(|event| event.call == "lock").count();
        // All other locks are taken under NOCHECK, which never waits and would be an error here if anybody were inside.
        list.exclusively(|| list.insert_after(HEAD, info("a")))?.expect("there is room");
        assert_eq!(locks(), 1);
        list.sharing(|| list.predecessor(info("a")))?.expect("it is there");
        assert_eq!(locks(), 1);
        list.exclusively(|| list.delete_after(HEAD))?.expect("it is there");
        assert_eq!(locks(), 1);
    }
    team.barrier()?;
    Ok(())
}

// covers: EX-E112-12
fn searches_run_at_the_same_time(team: &Team) -> Outcome {
    let list = List::new(team, NODES)?;
    let inside = flags::<u64>(team, 1)?;
    if team.rank() == Rank(0) {
        list.exclusively(|| list.insert_after(HEAD, info("a")))?.expect("there is room");
    }
    team.barrier()?;
    list.sharing(|| {
        for rank in team.ranks() {
            inside.lock(rank, LockKind::Shared, |epoch| epoch.accumulate(rank, 0, Sum, 1))?;
        }
        // Nobody leaves before all are inside.
        until(|| inside.load(0).unwrap() == u64::from(team.size()));
        assert_eq!(list.predecessor(info("a"))?, Ok(HEAD));
        Ok(())
    })?;
    team.barrier()?;
    Ok(())
}

pub(crate) const KEYS: u64 = 64;
const HEAP: usize = 24;

/// What an operation was, by which its log and the replay name it.
pub(crate) const INSERT_AFTER: u64 = 0;
pub(crate) const INSERT_FIRST: u64 = 1;
pub(crate) const DELETE: u64 = 2;
pub(crate) const SEARCH: u64 = 3;

/// An operation in a log: its ticket, what it was, its keys, and whether it found what it looked for.
pub(crate) const ENTRY: usize = 5;

// covers: EX-E112-08, EX-E112-10, EX-E112-11, EX-E112-15
fn operations_are_linearizable_while_an_owner_spins(team: &Team) -> Outcome {
    for seed in 0..if is_full() { 20 } else { 1 } {
        let list = List::new(team, HEAP)?;
        let tickets = Window::<u64>::allocate(team, 1)?;
        let done = flags::<u64>(team, 1)?;
        let mut log = Vec::new();
        let passive = Rank(team.size() - 1);
        if team.rank() == passive {
            // It owns a quarter of the nodes and makes no call but loads.
            until(|| done.load(0).unwrap() + 1 == u64::from(team.size()));
        } else {
            let begun = Instant::now();
            let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed * 100 + u64::from(team.rank().0) + 1);
            let operations = if is_full() { 3400 } else { 1000 };
            for _ in (0..operations).take_while(|_| has_time(begun)) {
                log.extend(operate(&list, &tickets, &mut state)?);
            }
            done.lock(passive, LockKind::Shared, |epoch| epoch.accumulate(passive, 0, Sum, 1))?;
        }
        if let Some(all) = team.gather(Rank(0), &log)? {
            replay(&list, &all, HEAP * team.size() as usize)?;
        }
        team.barrier()?;
    }
    Ok(())
}

pub(crate) fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// One random operation, with the master lock held throughout, and its entry in the log.
fn operate(list: &List, tickets: &Window<u64>, state: &mut u64) -> rma::Result<[u64; ENTRY]> {
    let (key, other) = (1 + next(state) % KEYS, 1 + next(state) % KEYS);
    let what = next(state) % 4;
    if what == SEARCH {
        return list.sharing(|| {
            let now = tickets.lock(Rank(0), LockKind::Shared, |epoch| epoch.get_value(Rank(0), 0))?;
            Ok([now, SEARCH, key, 0, u64::from(list.predecessor(key.to_ne_bytes())?.is_ok())])
        });
    }
    list.exclusively(|| {
        let ticket = tickets.lock(Rank(0), LockKind::Shared, |epoch| epoch.fetch_op(Rank(0), 0, Sum, 1))?;
        let done = match what {
            INSERT_FIRST => list.insert_after(HEAD, key.to_ne_bytes())?.is_ok(),
            _ => match list.predecessor(key.to_ne_bytes())? {
                Err(_) => false,
                Ok(previous) if what == DELETE => list.delete_after(previous)?.is_ok(),
                Ok(previous) => {
                    let found = list.node(previous)?.next;
                    list.insert_after(found, other.to_ne_bytes())?.is_ok()
                }
            },
        };
        Ok([ticket, what, key, other, u64::from(done)])
    })
}

/// Does everything again in the order of tickets on a plain vector, compares every answer, and gives the end.
pub(crate) fn model(log: &[u64], nodes: usize) -> Vec<u64> {
    let mut entries: Vec<&[u64]> = log.chunks(ENTRY).collect();
    // A search saw what had been done before the ticket that was next.
    entries.sort_by_key(|entry| (entry[0], entry[1] != SEARCH));
    let mut model: Vec<u64> = Vec::new();
    for entry in &entries {
        let &[ticket, what, key, other, done] = *entry else { panic!("an entry has {ENTRY} words") };
        let found = model.iter().position(|&at| at == key);
        let expected = match (what, found) {
            (SEARCH, found) => found.is_some(),
            (DELETE, Some(at)) => {
                model.remove(at);
                true
            }
            (DELETE, None) | (INSERT_AFTER, None) => false,
            _ if model.len() + 1 == nodes => false,
            (INSERT_FIRST, _) => {
                model.insert(0, key);
                true
            }
            (_, Some(at)) => {
                model.insert(at + 1, other);
                true
            }
            (_, None) => false,
        };
        assert_eq!(done != 0, expected, "ticket {ticket}: operation {what} with keys {key} and {other}");
    }
    println!("{} operations, {} nodes in the list at the end", entries.len(), model.len());
    model
}

/// Compares the end of a run with that of its log, and the two chains with all nodes.
fn replay(list: &List, log: &[u64], nodes: usize) -> rma::Result<()> {
    let model = model(log, nodes);
    list.sharing(|| {
        let found: Vec<u64> = list.infos(nodes)?.into_iter().map(u64::from_ne_bytes).collect();
        assert_eq!(found, model);
        // The two chains are disjoint and have all nodes.
        let mut places = list.chain(HEAD, nodes)?;
        places.extend(list.chain(list.first_free()?, nodes)?);
        places.sort_by_key(|place| (place.rank, place.disp));
        places.dedup();
        assert_eq!(places.len(), nodes);
        Ok(())
    })
}
