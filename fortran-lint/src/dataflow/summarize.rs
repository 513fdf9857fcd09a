//! Sums a procedure up for its callers. Never looks at a caller.

use super::event::{Call, Event, EventKind, PassedTo};
use super::{Analysis, FileContext, Memory, Step};
use crate::model::{Unit, UnitId};
use crate::mpi::{self, Class, Part};
use crate::parse::{Attributes, ExprId, ExprKind, Name, StatementKind, Symbol, Tree, UnitKind};
use crate::program::{Actual, Certainty, Dummy, Effect, ProcedureId, Summary, Use};

/// A procedure that does more library calls for its caller than this is summed up without the rest.
const EFFECTS_MAX: usize = 64;

/// How many ENTRY statements a unit has.
pub fn n_entries(tree: &Tree, unit: &Unit) -> u32 {
    entries(tree, unit).count() as u32
}

fn entries<'a>(tree: &'a Tree, unit: &'a Unit) -> impl Iterator<Item = &'a [Name]> {
    unit.body.iter().filter_map(|step| {
        let crate::model::Step::Statement(i) = step else { return None };
        match &tree.statements[*i as usize].kind {
            StatementKind::Entry { dummies, .. } => Some(dummies.as_slice()),
            _ => None,
        }
    })
}

/// Sums one procedure up, as it is from one of its doors. `place` says where it stands.
pub fn summarize(file: FileContext<'_>, id: ProcedureId, place: String) -> Summary {
    let mut a = Analysis::whole(file, UnitId(id.unit));
    let has_doors = a.flow.entries.len() > 1;
    if let (true, Some(&door)) = (has_doors, a.flow.entries.get(id.entry as usize)) {
        a.flow.entries = vec![door];
    }
    let reached = has_doors.then(|| reached(&a));
    let is_reached =
        |call: u32| reached.as_ref().is_none_or(|reached| reached[a.calls[call as usize].event as usize]);
    let dummies = dummies_of(&a, id.entry);
    let mut effects = Vec::new();
    for call in 0..a.calls.len() as u32 {
        if effects.len() < EFFECTS_MAX
            && is_reached(call)
            && let Some(effect) = effect(&a, &dummies, call)
        {
            effects.push(effect);
        }
    }
    Summary {
        effects,
        dummies: dummies
            .iter()
            .zip(usages(&a, &dummies))
            .map(|(&name, usage)| dummy(&a, name, usage))
            .collect(),
        blocks: blocks(&a),
        calls_unknown: a.calls.iter().any(|call| calls_unknown(&a, call)),
        place,
    }
}

/// The events that can happen when the procedure is entered by its first door.
fn reached(a: &Analysis<'_>) -> Vec<bool> {
    let mut reached = vec![false; a.events.len()];
    a.can_bypass(|i, _| {
        reached[i as usize] = true;
        false
    });
    reached
}

/// The dummy arguments of the header, or of an ENTRY statement.
fn dummies_of(a: &Analysis<'_>, entry: u32) -> Vec<Symbol> {
    if let Some(before) = entry.checked_sub(1) {
        let mut entries = entries(a.file.tree, a.unit);
        let dummies = entries.nth(before as usize).unwrap_or_default();
        return dummies.iter().map(|dummy| dummy.symbol).collect();
    }
    let Some(crate::model::Step::Statement(i)) = a.unit.body.first() else { return Vec::new() };
    match &a.file.tree.statements[*i as usize].kind {
        StatementKind::Unit { dummies, .. } => dummies.iter().map(|dummy| dummy.symbol).collect(),
        _ => Vec::new(),
    }
}

fn calls_unknown(a: &Analysis<'_>, call: &Call) -> bool {
    match (call.procedure, call.callee) {
        (Some(_), _) => false,
        (None, Some(callee)) => {
            a.file.program.summaries.get(&callee).is_none_or(|summary| summary.calls_unknown)
        }
        (None, None) => {
            let name = a.name(call.name);
            !super::is_intrinsic(name) && !mpi::is_library_name(name)
        }
    }
}

fn blocks(a: &Analysis<'_>) -> Vec<Box<str>> {
    let tree = a.file.tree;
    let own = a.unit.variables.values().filter_map(|variable| variable.common_place);
    let mut blocks: Vec<Box<str>> =
        own.map(|place| place.block.map_or("", |block| tree.symbols.name(block)).into()).collect();
    for callee in a.calls.iter().filter_map(|call| call.callee) {
        if let Some(summary) = a.file.program.summaries.get(&callee) {
            blocks.extend(summary.blocks.iter().cloned());
        }
    }
    blocks.sort_unstable();
    blocks.dedup();
    blocks
}

/// What a call does for the caller of this procedure; `None` when the caller has nothing to do with it.
fn effect(a: &Analysis<'_>, dummies: &[Symbol], id: u32) -> Option<Effect> {
    let call = &a.calls[id as usize];
    let procedure = call.procedure?;
    let mut args: Vec<Actual> = Vec::with_capacity(procedure.arguments.len());
    for (argument, arg) in procedure.arguments.iter().zip(&call.args) {
        args.push(match (arg, argument.part) {
            (Some(arg), Part::Displacements | Part::Types) => displacement(a, dummies, id, *arg),
            (Some(arg), Part::Request | Part::Requests | Part::Win) => handle(a, dummies, *arg),
            (Some(arg), _) => actual(a, dummies, *arg),
            (None, _) => Actual::Own,
        });
    }
    let reaches_caller = |part: Part| {
        let own = procedure.arguments.iter().zip(&args).find(|(argument, _)| argument.part == part);
        own.is_some_and(|(_, actual)| {
            matches!(actual, Actual::Dummy(..) | Actual::Shared(..) | Actual::Result(..))
        })
    };
    let handle = [Part::Request, Part::Requests, Part::Win].into_iter().find(|&part| reaches_caller(part));
    let hides = hidden_by_caller(procedure, &args);
    let mut known = procedure;
    let concerns = match procedure.class {
        Class::Nonblocking | Class::Persistent | Class::Transfer | Class::Split => {
            let is_open = handle.is_some() && stays_open(a, id);
            if !is_open && hides {
                // It has ended in here, and the caller sees no variable.
                known = blocking(procedure)?;
                args = blocking_args(procedure, known, args);
            }
            is_open || hides
        }
        Class::Blocking => hides,
        Class::Start | Class::Finish | Class::FinishSome | Class::Test | Class::RequestFree => {
            handle.is_some() && concerns_callers_operation(a, id)
        }
        Class::WinCreate
        | Class::WinFree
        | Class::Fence
        | Class::Post
        | Class::Access
        | Class::Complete
        | Class::Wait
        | Class::WaitTest
        | Class::Lock
        | Class::Unlock
        | Class::Flush
        | Class::WinSync => reaches_caller(Part::Win),
        Class::Barrier => true,
        Class::Address => reaches_caller(Part::Location) && reaches_caller(Part::Address),
        Class::Datatype => reaches_caller(Part::NewType),
        Class::SyncReg => args.iter().any(|arg| matches!(arg, Actual::Dummy(..))),
        _ => false,
    };
    if !concerns {
        return None;
    }
    let own_certainty = match a.can_bypass(|i, _| i == call.event) {
        true => Certainty::Perhaps,
        false => Certainty::Always,
    };
    let certainty = match a.certainty(id) {
        Certainty::Always => own_certainty,
        Certainty::Perhaps => Certainty::Perhaps,
    };
    Some(Effect { procedure: known, args, certainty, binding: a.binding_of(id) })
}

/// What an argument is to the caller.
fn actual(a: &Analysis<'_>, dummies: &[Symbol], arg: ExprId) -> Actual {
    let tree = a.file.tree;
    if let Some(value) = tree.int(arg) {
        return Actual::Number(value);
    }
    let Some(root) = tree.root(arg) else { return Actual::Own };
    let root = a.alias_of(root);
    if let Some(position) = dummies.iter().position(|&dummy| dummy == root) {
        return Actual::Dummy(position as u32, path(tree, arg));
    }
    let name = a.name(root);
    if mpi::is_library_name(name) {
        return Actual::Constant(name.into());
    }
    match &a.resolve(root).shared_name {
        Some(shared) => Actual::Shared(shared.clone(), path(tree, arg)),
        None => Actual::Own,
    }
}

/// What a handle is to the caller: also the function result that it is copied to.
fn handle(a: &Analysis<'_>, dummies: &[Symbol], arg: ExprId) -> Actual {
    match (actual(a, dummies, arg), a.file.tree.root(arg), result_of(a)) {
        (Actual::Own, Some(root), Some(result)) if a.copies.are_copies(root, result) => {
            Actual::Result(if root == result { path(a.file.tree, arg) } else { Vec::new() })
        }
        (actual, ..) => actual,
    }
}

/// The variable that holds the result of a function.
fn result_of(a: &Analysis<'_>) -> Option<Symbol> {
    let Some(crate::model::Step::Statement(i)) = a.unit.body.first() else { return None };
    match &a.file.tree.statements[*i as usize].kind {
        StatementKind::Unit { kind: UnitKind::Function, name, result, .. } => {
            result.or(*name).map(|name| name.symbol)
        }
        _ => None,
    }
}

/// The components of a designator.
fn path(tree: &Tree, id: ExprId) -> Vec<Box<str>> {
    match tree.expr(id).kind {
        ExprKind::Component { base, name } => {
            let mut path = path(tree, base);
            path.push(tree.symbols.name(name).into());
            path
        }
        ExprKind::Reference { base, .. } => path(tree, base),
        _ => Vec::new(),
    }
}

/// The dummy argument whose address, or whose value as an address, a displacement holds.
fn displacement(a: &Analysis<'_>, dummies: &[Symbol], call: u32, arg: ExprId) -> Actual {
    let held = a.hidden.dummies_of(call);
    match held.iter().find_map(|own| dummies.iter().position(|dummy| dummy == own)) {
        Some(position) => Actual::Dummy(position as u32, Vec::new()),
        None => actual(a, dummies, arg),
    }
}

/// Whether a transfer by MPI_BOTTOM moves variables that a datatype of the caller hides.
fn hidden_by_caller(procedure: &mpi::Procedure, args: &[Actual]) -> bool {
    let mut is_bottom = false;
    for (argument, arg) in procedure.arguments.iter().zip(args) {
        match argument.part {
            Part::Buffer(_) => is_bottom = matches!(arg, Actual::Constant(name) if &**name == "mpi_bottom"),
            Part::Type if is_bottom => return matches!(arg, Actual::Dummy(..) | Actual::Shared(..)),
            _ => {}
        }
    }
    false
}

/// The blocking procedure that moves data as a nonblocking one does.
fn blocking(procedure: &mpi::Procedure) -> Option<&'static mpi::Procedure> {
    let has_written = procedure
        .arguments
        .iter()
        .any(|argument| matches!(argument.part, Part::Buffer(direction) if direction.writes()));
    mpi::find(if has_written { "mpi_recv" } else { "mpi_send" })
}

/// The arguments of the blocking procedure: buffer and datatype.
fn blocking_args(from: &mpi::Procedure, to: &mpi::Procedure, args: Vec<Actual>) -> Vec<Actual> {
    let mut out = vec![Actual::Own; to.arguments.len()];
    for part in [Part::Type, Part::Other] {
        let is_wanted = |own: Part| match part {
            Part::Other => matches!(own, Part::Buffer(_)),
            _ => own == part,
        };
        let source = from.arguments.iter().position(|argument| is_wanted(argument.part));
        let target = to.arguments.iter().position(|argument| is_wanted(argument.part));
        if let (Some(source), Some(target)) = (source, target)
            && let Some(arg) = args.get(source)
        {
            out[target] = arg.clone();
        }
    }
    out
}

/// Whether an operation that a call starts can be open when the procedure returns.
fn stays_open(a: &Analysis<'_>, call: u32) -> bool {
    let operation = a.operations.iter().find(|operation| operation.call == call);
    let Some(operation) = operation else { return true };
    a.walk(a.calls[call as usize].event, |_, event| match event.kind {
        EventKind::Call(other)
            if matches!(
                a.class_of(other),
                Some(Class::Finish | Class::Fence | Class::Complete | Class::Unlock | Class::WinFree)
            ) && a.finishes(&a.calls[other as usize], operation) =>
        {
            Step::Stop
        }
        _ => Step::On,
    })
}

/// Whether a call can meet an operation that was started before the procedure was called.
fn concerns_callers_operation(a: &Analysis<'_>, call: u32) -> bool {
    let record = &a.calls[call as usize];
    let handles: Vec<ExprId> = handles(record).collect();
    let mut is_met = false;
    a.can_bypass(|i, event| {
        is_met |= i == record.event;
        match event.kind {
            EventKind::Call(other) => {
                i == record.event
                    || matches!(a.class_of(other), Some(Class::Nonblocking | Class::Transfer))
                        && self::handles(&a.calls[other as usize])
                            .any(|own| handles.iter().any(|&handle| a.may_be_same(own, handle)))
            }
            _ => false,
        }
    });
    is_met
}

fn handles(call: &Call) -> impl Iterator<Item = ExprId> {
    call.parts().filter(|(part, _)| matches!(part, Part::Request | Part::Requests)).map(|(_, arg)| arg)
}

fn dummy(a: &Analysis<'_>, name: Symbol, usage: Use) -> Dummy {
    let resolved = a.resolve(name);
    let is_spread = resolved.attributes.has(Attributes::POINTER)
        || (resolved.is_assumed_shape(a.file.tree) && !resolved.attributes.has(Attributes::CONTIGUOUS));
    Dummy { name: a.name(name).into(), attributes: resolved.attributes, is_spread, usage }
}

/// How each dummy argument is used.
fn usages(a: &Analysis<'_>, dummies: &[Symbol]) -> Vec<Use> {
    let mut usages = vec![Use::default(); dummies.len()];
    let mut is_touched = vec![false; dummies.len()];
    let shields = |event: &Event, name: Symbol| match event.kind {
        EventKind::Pass { variable, to: PassedTo::Library(..), .. } => variable == name,
        EventKind::Pass { variable, .. } => variable == name && a.shields_store(event, Memory::whole(name)),
        _ => false,
    };
    for event in &a.events {
        let Some(at) = event.variable().and_then(|name| dummies.iter().position(|&dummy| dummy == name))
        else {
            continue;
        };
        let usage = &mut usages[at];
        match event.kind {
            EventKind::Read { .. } => usage.is_read = true,
            EventKind::Write { .. } | EventKind::Release { .. } => usage.is_written = true,
            EventKind::Pass { to: PassedTo::User(call), .. } => {
                let inner = a.usage(call, event);
                usage.is_read |= inner.is_read;
                usage.is_written |= inner.is_written;
                usage.is_given_away |= inner.is_given_away;
            }
            EventKind::Pass { .. } | EventKind::Call(_) => {}
        }
        is_touched[at] |= shields(event, dummies[at]);
    }
    for (at, usage) in usages.iter_mut().enumerate() {
        usage.is_shielded = is_touched[at] && !a.can_bypass(|_, event| shields(event, dummies[at]));
    }
    usages
}
