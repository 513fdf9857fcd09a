//! In which order procedures can be summed up: each behind those that it calls. Never looks into one.

use std::collections::{BTreeMap, BTreeSet};

use super::ProcedureId;

/// Groups of procedures that depend on earlier groups only. Procedures that call each other in a circle stand in one
/// group, so that none of them knows the others.
pub fn levels(calls: &BTreeMap<ProcedureId, BTreeSet<ProcedureId>>) -> Vec<Vec<ProcedureId>> {
    let components = Components::new(calls);
    let mut level_of: BTreeMap<ProcedureId, usize> = BTreeMap::new();
    let mut levels: Vec<Vec<ProcedureId>> = Vec::new();
    // A component comes out behind all that it leads to.
    for component in components.found {
        let below = component
            .iter()
            .flat_map(|id| &calls[id])
            .filter(|callee| !component.contains(callee))
            .filter_map(|callee| level_of.get(callee));
        let level = below.max().map_or(0, |below| below + 1);
        if levels.len() <= level {
            levels.resize(level + 1, Vec::new());
        }
        for &id in &component {
            level_of.insert(id, level);
            levels[level].push(id);
        }
    }
    for level in &mut levels {
        level.sort_unstable();
    }
    levels
}

/// Strongly connected components, without recursion: call chains of generated codes are long.
struct Components {
    found: Vec<Vec<ProcedureId>>,
}

#[derive(Clone, Copy)]
struct Mark {
    index: usize,
    low: usize,
    is_on_stack: bool,
}

impl Components {
    fn new(calls: &BTreeMap<ProcedureId, BTreeSet<ProcedureId>>) -> Components {
        let mut found = Vec::new();
        let mut marks: BTreeMap<ProcedureId, Mark> = BTreeMap::new();
        let mut stack: Vec<ProcedureId> = Vec::new();
        let mut work: Vec<(ProcedureId, Vec<ProcedureId>)> = Vec::new();
        for &start in calls.keys() {
            if marks.contains_key(&start) {
                continue;
            }
            work.push((start, open(start, calls, &mut marks, &mut stack)));
            while let Some((id, rest)) = work.last_mut() {
                let id = *id;
                if let Some(callee) = rest.pop() {
                    match marks.get(&callee).copied() {
                        None => work.push((callee, open(callee, calls, &mut marks, &mut stack))),
                        Some(mark) if mark.is_on_stack => lower(&mut marks, id, mark.index),
                        Some(_) => {}
                    }
                    continue;
                }
                work.pop();
                let mark = marks[&id];
                if let Some((caller, _)) = work.last() {
                    lower(&mut marks, *caller, mark.low);
                }
                if mark.low == mark.index {
                    let at = stack.iter().rposition(|own| *own == id).unwrap_or_default();
                    let component = stack.split_off(at);
                    for id in &component {
                        if let Some(mark) = marks.get_mut(id) {
                            mark.is_on_stack = false;
                        }
                    }
                    found.push(component);
                }
            }
        }
        Components { found }
    }
}

fn open(
    id: ProcedureId,
    calls: &BTreeMap<ProcedureId, BTreeSet<ProcedureId>>,
    marks: &mut BTreeMap<ProcedureId, Mark>,
    stack: &mut Vec<ProcedureId>,
) -> Vec<ProcedureId> {
    let index = marks.len();
    marks.insert(id, Mark { index, low: index, is_on_stack: true });
    stack.push(id);
    calls[&id].iter().copied().filter(|callee| calls.contains_key(callee)).collect()
}

fn lower(marks: &mut BTreeMap<ProcedureId, Mark>, id: ProcedureId, low: usize) {
    if let Some(mark) = marks.get_mut(&id) {
        mark.low = mark.low.min(low);
    }
}

#[cfg(test)]
mod test {
    use super::{ProcedureId, levels};

    #[test]
    fn circles_share_a_level_and_callers_come_later() {
        let id = |unit: u32| ProcedureId { file: 0, unit, entry: 0 };
        // 0 → 1 → 2 → 1, 2 → 3, 4 alone.
        let calls = [(0, vec![1]), (1, vec![2]), (2, vec![1, 3]), (3, vec![]), (4, vec![4])]
            .map(|(from, to)| (id(from), to.into_iter().map(id).collect()));
        let found = levels(&calls.into_iter().collect());
        assert_eq!(found, [vec![id(3), id(4)], vec![id(1), id(2)], vec![id(0)]]);
    }
}
