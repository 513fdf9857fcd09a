//! What the files of a run know about each other. Never looks at a file that has nothing to do with the library.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::digest::{Digest, NameHash, UnitNames};
use super::parallel::in_parallel;
use super::store::{Parsed, Store};
use super::{Input, context};
use crate::dataflow::{calls_library, n_entries, summarize};
use crate::model::UnitId;
use crate::options::Options;
use crate::parse::Tree;
use crate::program::{ProcedureId, Program, ProtectedActual, Summary, levels};
use rma_source::Span;

/// The calls among procedures.
type Calls = BTreeMap<ProcedureId, BTreeSet<ProcedureId>>;

/// Files that may have to do with the library, judged by names alone: those that call it, those from which calls lead
/// there, and those that they call.
pub(super) fn candidates(digests: &[Digest]) -> Vec<bool> {
    let files = (0..).zip(digests);
    let units: Vec<(usize, &UnitNames)> =
        files.flat_map(|(file, digest)| digest.names.iter().map(move |unit| (file, unit))).collect();
    let mut callers: HashMap<NameHash, Vec<u32>> = HashMap::new();
    let mut n_homes: HashMap<(NameHash, NameHash), u32> = HashMap::new();
    for &(name, home) in units.iter().flat_map(|(_, unit)| &unit.defined) {
        callers.entry(name).or_default();
        if let Some(home) = home {
            *n_homes.entry((name, home)).or_default() += 1;
        }
    }
    for (i, (_, unit)) in (0..).zip(&units) {
        for name in &unit.called {
            if let Entry::Occupied(mut all) = callers.entry(*name) {
                all.get_mut().push(i);
            }
        }
    }
    let folder = |file: usize| digests[file].folder;
    // From where a name can be called that is defined in a file; `None` is everywhere.
    let range = |file: usize, name: NameHash, home: Option<NameHash>| match home {
        Some(home) if n_homes[&(name, home)] > 1 => Some(folder(file)),
        _ => None,
    };
    let mut is_near: Vec<bool> = units.iter().map(|(_, unit)| unit.calls_library).collect();
    let mut queue: Vec<u32> = (0..units.len() as u32).filter(|&i| is_near[i as usize]).collect();
    let mut followed: HashSet<(NameHash, Option<NameHash>)> = HashSet::new();
    while let Some(i) = queue.pop() {
        let (file, unit) = units[i as usize];
        for &(name, home) in &unit.defined {
            let range = range(file, name, home);
            if !followed.insert((name, range)) {
                continue;
            }
            for &caller in &callers[&name] {
                let is_in_range = range.is_none_or(|range| range == folder(units[caller as usize].0));
                if is_in_range && !std::mem::replace(&mut is_near[caller as usize], true) {
                    queue.push(caller);
                }
            }
        }
    }
    let mut called: HashSet<(NameHash, Option<NameHash>)> = HashSet::new();
    for ((file, unit), _) in units.iter().zip(&is_near).filter(|(_, is_near)| **is_near) {
        called.extend(unit.called.iter().flat_map(|&name| [(name, None), (name, Some(folder(*file)))]));
    }
    let mut is_candidate = vec![false; digests.len()];
    for (&(file, unit), is_near) in units.iter().zip(is_near) {
        let is_called =
            |&(name, home): &(NameHash, Option<NameHash>)| called.contains(&(name, range(file, name, home)));
        is_candidate[file] |= is_near || unit.defined.iter().any(is_called);
    }
    is_candidate
}

/// Gathers what each procedure does for its callers, each behind those that it calls itself. Returns one procedure of each
/// unit that was looked at, by their files.
pub(super) fn learn(
    inputs: &[Input],
    store: &Store<'_>,
    candidates: &[u32],
    program: &mut Program,
    options: &Options,
) -> BTreeMap<u32, Vec<ProcedureId>> {
    let found = in_parallel(candidates, |&file| {
        let parsed = store.take_for(program, file);
        let Parsed { tree, model, inlined, .. } = &parsed;
        let mut found = Vec::new();
        for (unit, own) in model.iter() {
            let is_direct = calls_library(tree, own, options);
            for entry in 0..=n_entries(tree, own) {
                let id = ProcedureId { file, unit: unit.0, entry };
                found.push((id, inlined.callees(tree, model, program, id), is_direct));
            }
        }
        store.give(file, parsed);
        found
    });
    let mut calls = Calls::new();
    let mut direct = Vec::new();
    for (id, callees, is_direct) in found.into_iter().flatten() {
        calls.insert(id, callees);
        if is_direct {
            direct.push(id);
        }
    }
    let wanted = concerned(direct, &calls);
    let is_wanted = |id: &ProcedureId| wanted.contains(id);
    let order = calls.iter().filter(|(id, _)| is_wanted(id));
    let order = order.map(|(&id, callees)| (id, callees.iter().copied().filter(is_wanted).collect()));
    let levels = levels(&order.collect());
    for (i, level) in (0..).zip(&levels) {
        program.levels.extend(level.iter().map(|&id| (id, i)));
    }
    let mut protected = Vec::new();
    for level in levels {
        let by_file: Vec<(u32, Vec<ProcedureId>)> = by_file(level).into_iter().collect();
        let results = in_parallel(&by_file, |(file, ids)| {
            let mut parsed = store.take_for(program, *file);
            let input = &inputs[*file as usize];
            let results: Vec<_> =
                ids.iter().map(|&id| summed_up(input, &mut parsed, id, program, options)).collect();
            store.give(*file, parsed);
            results
        });
        for (id, summary, actuals) in results.into_iter().flatten() {
            program.summaries.insert(id, summary);
            protected.extend(actuals);
        }
    }
    protected.sort();
    // A unit with several doors is looked at once for each.
    protected.dedup();
    for (at, actual) in protected {
        program.protected_actuals.entry(at).or_default().push(actual);
    }
    let mut files = by_file(wanted);
    for ids in files.values_mut() {
        // Of the doors of a unit the one that knows most comes last.
        ids.sort_by_key(|id| (id.unit, program.levels.get(id).copied(), *id));
        ids.reverse();
        ids.dedup_by_key(|id| id.unit);
        ids.reverse();
    }
    files
}

fn by_file(ids: impl IntoIterator<Item = ProcedureId>) -> BTreeMap<u32, Vec<ProcedureId>> {
    let mut files: BTreeMap<u32, Vec<ProcedureId>> = BTreeMap::new();
    for id in ids {
        files.entry(id.file).or_default().push(id);
    }
    files
}

/// A protected variable and the dummy argument that it is handed to.
type Protected = ((ProcedureId, u32), ProtectedActual);

fn summed_up(
    input: &Input,
    parsed: &mut Parsed,
    id: ProcedureId,
    program: &Program,
    options: &Options,
) -> (ProcedureId, Summary, Vec<Protected>) {
    parsed.inline(program, id);
    let unit = UnitId(id.unit);
    let name = parsed.model.unit(unit).name.map_or(Span::at(0), |name| name.span);
    let place = place_of(input, &parsed.tree, name);
    let summary = summarize(context(id.file, parsed, program, options), id, place);
    (id, summary, protected_actuals(input, parsed, unit, program))
}

/// Which protected variables the calls of a unit hand to dummy arguments.
fn protected_actuals(input: &Input, parsed: &Parsed, unit: UnitId, program: &Program) -> Vec<Protected> {
    let Parsed { tree, model, inlined, .. } = parsed;
    let mut found = Vec::new();
    for (expr, call) in inlined.calls().filter(|(_, call)| call.caller == unit) {
        for (position, arg) in (0..).zip(&call.args) {
            let Some(root) = arg.and_then(|arg| tree.root(arg)) else { continue };
            let resolved = model.resolve(tree, &program.modules, call.caller, root);
            if let Some(remedy) = resolved.remedy() {
                let place = place_of(input, tree, tree.span(expr));
                let name = tree.symbols.name(root).into();
                found.push(((call.callee, position), ProtectedActual { place, name, remedy }));
            }
        }
    }
    found
}

/// The units that call the library, themselves or through others, and the procedures that these call.
fn concerned(direct: Vec<ProcedureId>, calls: &Calls) -> BTreeSet<ProcedureId> {
    let mut callers: BTreeMap<ProcedureId, Vec<ProcedureId>> = BTreeMap::new();
    for (&caller, callees) in calls {
        for &callee in callees {
            callers.entry(callee).or_default().push(caller);
        }
    }
    let mut concerned: BTreeSet<ProcedureId> = direct.iter().copied().collect();
    let mut queue = direct;
    while let Some(id) = queue.pop() {
        for &caller in callers.get(&id).map_or(&[][..], Vec::as_slice) {
            if concerned.insert(caller) {
                queue.push(caller);
            }
        }
    }
    let callees: Vec<ProcedureId> =
        concerned.iter().flat_map(|id| &calls[id]).copied().filter(|id| calls.contains_key(id)).collect();
    concerned.extend(callees);
    concerned
}

/// A place as messages of other files name it.
fn place_of(input: &Input, tree: &Tree, span: Span) -> String {
    let place = tree.origin.place(span);
    let (path, bytes) = match place.file {
        0 => (&*input.path, input.bytes.as_slice()),
        file => {
            let file = &tree.origin.files[file as usize];
            (&*file.path, &*file.bytes)
        }
    };
    let before = &bytes[..bytes.len().min(place.span.start as usize)];
    format!("{path}:{}", before.iter().filter(|&&byte| byte == b'\n').count() + 1)
}
