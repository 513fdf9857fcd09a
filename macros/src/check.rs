//! Legality of a model against the epoch automaton, gathering every error. Never looks at syntax beyond names and
//! literals, and never judges types: a value that only the closed epoch may open has a type that says so.

use std::collections::BTreeMap;

use quote::ToTokens;
use rma_automaton::{
    AccessState, Call, Check, Dialect, Elsewhere, ExposureState, Inputs, LocalAccess, LocalOp, LockKind,
    Permit, State, StateSet, Toward, Transfer,
};
use syn::Expr;

use crate::messages::{self as say, Errors};
use crate::model::{
    Access, Act, Body, Destination, Function, Info, Kind, Layer, Origin, Step, bare, tracked,
};

/// Checks the whole function.
pub(crate) fn function(function: &Function, errors: &mut Errors) {
    for (number, layer) in function.layers.iter().enumerate() {
        let earlier = &function.layers[..number];
        if earlier.iter().any(|other| other.window == layer.window) {
            errors.push(&layer.window, &say::WINDOW_TWICE, &[&layer.window]);
        }
        duplicates(layer, errors);
        if layer.kind == Kind::Offer && 1 < function.layers.len() {
            errors.push(&layer.window, &say::OFFER_ALONE, &[&layer.window]);
        }
    }
    for (number, layer) in function.layers.iter().enumerate() {
        if layer.kind == Kind::Offer {
            events(number, &function.body, errors);
            continue;
        }
        let phases = phases(number, &function.body);
        arrivals(number, function, errors);
        for access in function.body.accesses.iter().filter(|access| access.layer == number) {
            legality(access, layer, during(layer, opened(layer), &phases, access), errors);
        }
    }
    let mut walk = Walk { function, errors, told: Vec::new() };
    walk.sequence(&function.body.steps, &mut Some(BTreeMap::new()));
}

/// The events of a body that an offer ends: puts and gets of buffers, and no chain that is open at its end.
fn events(layer: usize, body: &Body, errors: &mut Errors) {
    for access in body.accesses.iter().filter(|access| access.layer == layer) {
        match &access.act {
            Act::Put { from: Origin::Buffer(_), .. } | Act::Get { into: Destination::Buffer(_), .. } => {}
            other => errors.push(&access.written, &say::OFFER_BUFFERS, &[&other.noun()]),
        }
    }
    // The last event to each rank, by its text. What loops and branches do only a run tells.
    let mut last: BTreeMap<String, Option<&Access>> = BTreeMap::new();
    for step in &body.steps {
        let mut inside = Vec::new();
        let is_plain = matches!(step, Step::Access(_));
        if gather(step, layer, body, &mut inside).is_none() {
            return;
        }
        for access in inside.into_iter().filter(|access| access.layer == layer) {
            let Some(remote) = access.act.remote() else { continue };
            let rank = remote.rank.to_token_stream().to_string();
            last.insert(rank, Some(access).filter(|_| is_plain && remote.goes_on));
        }
        if let Step::Leave = step {
            return;
        }
    }
    for access in last.into_values().flatten() {
        errors.push(&access.written, &say::OFFER_DANGLING, &[]);
    }
}

/// A rank that is named twice opens an epoch that is open already.
fn duplicates(layer: &Layer, errors: &mut Errors) {
    let ranks = literal_ranks(layer);
    for (at, (value, expr)) in ranks.iter().enumerate() {
        if ranks[..at].iter().any(|(earlier, _)| earlier == value) {
            errors.push(expr, &say::TARGET_TWICE, &[value]);
        }
    }
}

/// The states that a layer's window can be in while the body runs.
fn opened(layer: &Layer) -> StateSet {
    use ExposureState::{Posted, PostedGets, Private, Stale};
    // What the caller did with the window before is not known, only that nothing is open toward the targets: an
    // epoch that a program left open would hold the window borrowed.
    let before: StateSet = [Private, Stale, Posted, PostedGets]
        .into_iter()
        .filter_map(|exposure| State::new(AccessState::Idle, Elsewhere::Idle, exposure))
        .collect();
    let check = match layer.info {
        Info::Strong | Info::Weak => Check::Checked,
        Info::NoCheck(_) => Check::NoCheck,
    };
    let calls: &[Call] = match layer.kind {
        Kind::Fence => &[Call::Fence(rma_automaton::Assertion::None)],
        Kind::Access => &[Call::Start(Toward::This, check)],
        Kind::Exposure => &[Call::Post(Permit::All)],
        Kind::Exchange => &[Call::Post(Permit::All), Call::Start(Toward::This, check)],
        Kind::LockExclusive => &[Call::Lock(Toward::This, LockKind::Exclusive, check)],
        Kind::LockShared => &[Call::Lock(Toward::This, LockKind::Shared, check)],
        Kind::Local => &[Call::View(LocalOp::Store)],
        Kind::LocalRead => &[Call::View(LocalOp::Load)],
        // It has no window.
        Kind::Offer => &[],
    };
    calls.iter().fold(before, |states, &call| states.step(Dialect::Seed, call, Inputs::UNKNOWN).next())
}

/// The accesses between two fences, each group with what it does; `None` if a fence stands inside a loop or branch, so
/// that the text does not tell which accesses share a phase.
fn phases(layer: usize, body: &Body) -> Option<Vec<Vec<&Access>>> {
    let mut phases = vec![Vec::new()];
    for step in &body.steps {
        match step {
            Step::Fence(fenced) if *fenced == layer => phases.push(Vec::new()),
            step => gather(step, layer, body, phases.last_mut()?)?,
        }
    }
    Some(phases)
}

/// Adds the accesses of a step to a phase; `None` if a fence is among them.
fn gather<'a>(step: &Step, layer: usize, body: &'a Body, phase: &mut Vec<&'a Access>) -> Option<()> {
    match step {
        Step::Access(number) => phase.push(&body.accesses[*number]),
        Step::Fence(fenced) if *fenced == layer => return None,
        Step::Loop(steps) => steps.iter().try_for_each(|step| gather(step, layer, body, phase))?,
        Step::Branch(arms) => arms.iter().flatten().try_for_each(|step| gather(step, layer, body, phase))?,
        Step::Use(_) | Step::Bind(_) | Step::Fence(_) | Step::Leave => {}
    }
    Some(())
}

/// The states of the window at an access: in a fence phase, those after all transfers of the phase, since the peers
/// run the same text and may be ahead.
fn during(layer: &Layer, opened: StateSet, phases: &Option<Vec<Vec<&Access>>>, access: &Access) -> StateSet {
    if layer.kind != Kind::Fence {
        return opened;
    }
    let Some(phases) = phases else {
        return opened.union(after(opened, &[Transfer::Get])).union(after(opened, &[Transfer::Put]));
    };
    let phase = phases.iter().find(|phase| phase.iter().any(|other| std::ptr::eq(*other, access)));
    let transfers: Vec<Transfer> =
        phase.into_iter().flatten().filter_map(|other| transfer(&other.act)).collect();
    after(opened, &transfers)
}

fn after(states: StateSet, transfers: &[Transfer]) -> StateSet {
    transfers.iter().fold(states, |states, &transfer| {
        let call = Call::Transfer(Toward::This, transfer);
        states.step(Dialect::Seed, call, Inputs::UNKNOWN).next()
    })
}

fn transfer(act: &Act) -> Option<Transfer> {
    match act {
        Act::Put { .. } => Some(Transfer::Put),
        Act::Get { .. } => Some(Transfer::Get),
        Act::Accumulate { .. } => Some(Transfer::Accumulate),
        Act::FetchOp { .. } | Act::CompareSwap { .. } => Some(Transfer::Atomic),
        Act::Fence | Act::Load { .. } | Act::Read { .. } => None,
        Act::Store { .. } | Act::Update { .. } | Act::Write { .. } | Act::Called(_) => None,
    }
}

fn legality(access: &Access, layer: &Layer, states: StateSet, errors: &mut Errors) {
    let transfer = transfer(&access.act);
    if let Some(transfer) = transfer {
        let outcomes = states.step(Dialect::Seed, Call::Transfer(Toward::This, transfer), Inputs::UNKNOWN);
        if outcomes.must_err() {
            let words: [&dyn std::fmt::Display; 2] = [&access.act.noun(), &layer.kind.word()];
            errors.push(&access.written, &say::NO_TRANSFER_IN_KIND, &words);
        }
    }
    let op = match &access.act {
        Act::Store { .. } | Act::Update { .. } | Act::Write { .. } | Act::Called(_) => LocalOp::Store,
        _ => LocalOp::Load,
    };
    if matches!(access.act, Act::Fence) {
        return;
    }
    // A store is refused where a peer's update that nothing orders would concern it: which bytes a peer updates is
    // not written in this function, so the rule of the whole window counts (constraint 1).
    let refused = states.iter().all(|state| match state.local_access(op) {
        LocalAccess::Plain | LocalAccess::Volatile => false,
        LocalAccess::VolatileUnless(_) => op == LocalOp::Store,
        LocalAccess::Forbidden(_) => true,
    });
    if transfer.is_none() && refused {
        errors.push(&access.written, &say::STORE_WHILE_EXPOSED, &[&layer.window, &layer.kind.word()]);
    }
    // A load is right for bytes that no peer updates meanwhile, which only the program knows. But what a body returns is
    // wanted as it is after the epoch, and that is not loaded yet.
    let unsure = |state: State| {
        !matches!(state.local_access(LocalOp::Load), LocalAccess::Plain | LocalAccess::Volatile)
    };
    if matches!(access.act, Act::Load { returned: true, .. }) && states.iter().all(unsure) {
        errors.push(&access.written, &say::LOAD_RETURNED, &[&layer.window, &layer.kind.closing()]);
    }
    if let Some(remote) = access.act.remote()
        && let Some(rank) = literal(&remote.rank)
        && !opens(layer, rank)
    {
        errors.push(&remote.rank, &say::RANK_NOT_OPENED, &[&access.act.noun(), &rank]);
    }
}

/// Gets from other windows into a window that its epoch only exposes: stores of its owner, seen from there. An epoch that lets the
/// owner transfer, too, takes what it gets like what others put.
fn arrivals(number: usize, function: &Function, errors: &mut Errors) {
    let layer = &function.layers[number];
    if layer.kind != Kind::Exposure {
        return;
    }
    let refused = opened(layer).iter().all(|state| {
        !matches!(state.local_access(LocalOp::Store), LocalAccess::Plain | LocalAccess::Volatile)
    });
    let into = |access: &&Access| matches!(access.act, Act::Get { into: Destination::Own { layer, .. }, .. } if layer == number);
    for access in function.body.accesses.iter().filter(into).filter(|_| refused) {
        errors.push(&access.written, &say::STORE_WHILE_EXPOSED, &[&layer.window, &layer.kind.word()]);
    }
}

/// Whether a layer may open the rank: it does not only if all its ranks are literals and this is none of them.
fn opens(layer: &Layer, rank: u64) -> bool {
    let Some(targets) = &layer.targets else { return true };
    let literals = literal_ranks(layer);
    let all_literal = match bare(targets) {
        Expr::Array(array) => array.elems.len() == literals.len(),
        _ => literals.len() == 1,
    };
    !all_literal || literals.iter().any(|(value, _)| *value == rank)
}

/// The ranks that the attribute names as numbers.
fn literal_ranks(layer: &Layer) -> Vec<(u64, &Expr)> {
    let Some(targets) = &layer.targets else { return Vec::new() };
    match bare(targets) {
        Expr::Array(array) => array.elems.iter().filter_map(|e| literal(e).map(|v| (v, e))).collect(),
        other => literal(other).map(|value| (value, other)).into_iter().collect(),
    }
}

/// `3` or `Rank(3)`.
pub(crate) fn literal(expr: &Expr) -> Option<u64> {
    match bare(expr) {
        Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(number), .. }) => number.base10_parse().ok(),
        Expr::Call(call) if call.args.len() == 1 => match bare(&call.func) {
            Expr::Path(path) if path.path.segments.last()?.ident == "Rank" => literal(&call.args[0]),
            _ => None,
        },
        _ => None,
    }
}

/// Buffers that belong to an operation: by name, which operation and in which layer's epoch.
type Busy = BTreeMap<String, (&'static str, usize)>;

/// Follows a body and finds buffers that are touched while an operation owns them.
///
/// The borrow checker refuses nearly all of this anyway; this walk says it in the words of the epoch, and adds reads
/// of a put's buffer, which are no error of Rust.
struct Walk<'a> {
    function: &'a Function,
    errors: &'a mut Errors,
    /// Places that have been reported, since loops are walked twice.
    told: Vec<(usize, usize)>,
}

impl Walk<'_> {
    /// Walks a sequence; the state becomes `None` where control has left it.
    fn sequence(&mut self, steps: &[Step], state: &mut Option<Busy>) {
        for step in steps {
            let Some(busy) = state else { return };
            match step {
                Step::Access(number) => self.access(*number, busy),
                Step::Use(name) => self.used(name, busy),
                Step::Bind(name) => drop(busy.remove(&name.to_string())),
                Step::Fence(layer) => busy.retain(|_, (_, owner)| owner != layer),
                Step::Leave => *state = None,
                Step::Loop(round) => {
                    let mut after = Some(busy.clone());
                    self.sequence(round, &mut after);
                    self.sequence(round, &mut after);
                    busy.extend(after.unwrap_or_default());
                }
                Step::Branch(arms) => {
                    let mut joined: Option<Busy> = None;
                    for arm in arms {
                        let mut after = Some(busy.clone());
                        self.sequence(arm, &mut after);
                        match (&mut joined, after) {
                            (Some(joined), Some(after)) => joined.extend(after),
                            (None, after) => joined = after,
                            (Some(_), None) => {}
                        }
                    }
                    *state = joined;
                }
            }
        }
    }

    fn used(&mut self, name: &proc_macro2::Ident, busy: &Busy) {
        let Some(&(operation, layer)) = busy.get(&name.to_string()) else { return };
        let start = name.span().start();
        if self.told.contains(&(start.line, start.column)) {
            return;
        }
        self.told.push((start.line, start.column));
        let kind = self.function.layers[layer].kind;
        match kind {
            Kind::Offer => self.errors.push(name, &say::OFFER_ORIGIN_BUSY, &[name, &operation]),
            _ => self.errors.push(name, &say::ORIGIN_BUSY, &[name, &operation, &kind.closing()]),
        }
    }

    fn access(&mut self, number: usize, busy: &mut Busy) {
        let access = &self.function.body.accesses[number];
        match &access.act {
            Act::Put { from: Origin::Buffer(buffer), .. } => self.origin(buffer, "a put", access.layer, busy),
            Act::Accumulate { from: Origin::Buffer(buffer), .. } => {
                self.origin(buffer, "an accumulate", access.layer, busy);
            }
            Act::Get { into: Destination::Buffer(buffer), .. } => {
                if let Some(name) = tracked(buffer) {
                    self.used(name, busy);
                    busy.insert(name.to_string(), ("a get", access.layer));
                }
            }
            _ => {}
        }
    }

    /// Several operations may read one origin buffer at once; none may read what a get will write.
    fn origin(&mut self, buffer: &Expr, operation: &'static str, layer: usize, busy: &mut Busy) {
        let Some(name) = tracked(buffer) else { return };
        let borrowed = matches!(bare(buffer), Expr::Reference(_));
        if busy.get(&name.to_string()).is_some_and(|(owner, _)| *owner == "a get") {
            self.used(name, busy);
        } else if borrowed || self.function.body.borrowed.contains(name) {
            // A buffer that is handed over by value is moved or copied: what the name means afterwards is Rust's to say.
            busy.insert(name.to_string(), (operation, layer));
        }
    }
}
