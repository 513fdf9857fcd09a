//! The epochs of one window over a unit: sets of states of the shared automaton at each event. Accuses a call only where
//! every state that can be there refuses it. Never judges a window that it cannot follow.

use rma_automaton::{
    Assertion, Call as Step, Check, Dialect, ErrorKind, Inputs, LocalAccess, LocalOp, LockKind, Outcomes,
    Permit, State, StateSet, Toward, Transfer, Tri, WaitFor,
};

use super::Analysis;
use super::event::{Call, Event, EventKind, PassedTo};
use crate::model::Storage;
use crate::mpi::{Class, Part};
use crate::parse::{ExprId, ExprKind, Symbol};
use crate::program::Certainty;

/// What a linter knows of arguments that it cannot evaluate: they are taken to be right.
const LENIENT: Inputs =
    Inputs { own: Tri::Unknown, unordered: Tri::Unknown, ends: Tri::Unknown, ..Inputs::FINE };

/// Ranks that are followed one by one; more than these are rare and cost time.
const RANKS_MAX: usize = 8;

/// The windows of a unit that can be followed.
pub struct Epochs<'a> {
    a: &'a Analysis<'a>,
    windows: Vec<Followed>,
}

/// One window that can be followed.
struct Followed {
    handle: ExprId,
    /// The ranks that calls on it name.
    ranks: Vec<ExprId>,
}

/// What is wrong at a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The event.
    pub event: u32,
    /// The window.
    pub window: ExprId,
    /// What the automaton says.
    pub kind: ErrorKind,
}

impl<'a> Epochs<'a> {
    /// Gathers the windows of a unit.
    pub fn new(a: &'a Analysis<'a>) -> Epochs<'a> {
        let mut handles: Vec<ExprId> = Vec::new();
        for call in &a.calls {
            let Some(handle) = call.part(Part::Win) else { continue };
            if !handles.iter().any(|&other| a.file.tree.same(other, handle)) {
                handles.push(handle);
            }
        }
        let windows = handles
            .iter()
            .filter(|&&handle| {
                // What may be another window under another name can't be followed.
                let is_alone = handles
                    .iter()
                    .all(|&other| a.file.tree.same(other, handle) || !a.may_be_same(other, handle));
                is_alone && is_fixed(a, handle) && !speaks_seed(a, handle)
            })
            .map(|&handle| Followed { handle, ranks: ranks(a, handle) });
        Epochs { a, windows: windows.collect() }
    }

    /// Calls that are wrong in every state that can be there.
    pub fn faults(&self) -> Vec<Fault> {
        let mut faults: Vec<Fault> = Vec::new();
        for window in &self.windows {
            for rank in tracks(window) {
                let before = self.states(window, rank, &[]);
                for (i, event) in self.a.events.iter().enumerate() {
                    let EventKind::Call(call) = event.kind else { continue };
                    let outcomes = self.step(window, rank, call, before[i]);
                    let is_known = self.a.certainty(call) == Certainty::Always;
                    let kind = outcomes
                        .and_then(|outcomes| outcomes.errors().iter().next().filter(|_| outcomes.must_err()));
                    if let (true, Some(kind)) = (is_known, kind) {
                        let fault = Fault { event: i as u32, window: window.handle, kind };
                        if !faults.iter().any(|other| other.event == fault.event) {
                            faults.push(fault);
                        }
                    }
                }
            }
        }
        faults.sort_by_key(|fault| fault.event);
        faults
    }

    /// Loads of window memory that others may have updated under a lock, before any call of one's own that would make
    /// the update visible. `updates` are the meeting points behind such updates.
    pub fn stale_loads(&self, handle: ExprId, variable: Symbol, updates: &[u32]) -> Vec<u32> {
        let Some(window) = self.windows.iter().find(|window| self.a.file.tree.same(window.handle, handle))
        else {
            return Vec::new();
        };
        let before = self.states(window, None, updates);
        let is_stale = |states: StateSet| {
            let verdict = |state: State| state.local_access(LocalOp::Load);
            !states.is_empty()
                && states.iter().all(|state| {
                    state.exposure() == rma_automaton::ExposureState::Stale
                        && verdict(state) == LocalAccess::VolatileUnless(ErrorKind::UnsafeLocalRead)
                })
        };
        let events = self.a.events.iter().zip(before).enumerate();
        events
            .filter(|(_, (event, states))| {
                matches!(event.kind, EventKind::Read { variable: own, .. } if own == variable)
                    && is_stale(*states)
            })
            .map(|(i, _)| i as u32)
            .collect()
    }

    /// The states before each event.
    fn states(&self, window: &Followed, rank: Option<ExprId>, updates: &[u32]) -> Vec<StateSet> {
        let a = self.a;
        let n_nodes = a.flow.nodes.len();
        let mut entry = vec![StateSet::EMPTY; n_nodes];
        let mut queue: Vec<u32> = a.flow.entries.clone();
        for &node in &queue {
            entry[node as usize] = StateSet::ALL;
        }
        let leave = |node: u32, states: StateSet| {
            let first = a.first_event(node);
            let events = a.events_of(node).iter().enumerate();
            events.fold(states, |states, (k, event)| {
                self.after(window, rank, updates, first + k as u32, event, states)
            })
        };
        while let Some(node) = queue.pop() {
            let states = leave(node, entry[node as usize]);
            for &next in &a.flow.nodes[node as usize].next {
                let merged = entry[next as usize].union(states);
                if merged != entry[next as usize] {
                    entry[next as usize] = merged;
                    queue.push(next);
                }
            }
        }
        let mut before = Vec::with_capacity(a.events.len());
        for node in 0..n_nodes as u32 {
            let mut states = entry[node as usize];
            for (k, event) in a.events_of(node).iter().enumerate() {
                before.push(states);
                states = self.after(window, rank, updates, a.first_event(node) + k as u32, event, states);
            }
        }
        before
    }

    fn after(
        &self,
        window: &Followed,
        rank: Option<ExprId>,
        updates: &[u32],
        at: u32,
        event: &Event,
        states: StateSet,
    ) -> StateSet {
        let a = self.a;
        if states.is_empty() {
            return states;
        }
        let root = a.file.tree.root(window.handle);
        match event.kind {
            EventKind::Call(call) => {
                if a.calls[call as usize].procedure.is_none() {
                    let storage = root.map(|root| a.resolve(root).storage);
                    let is_out_of_reach = matches!(storage, Some(Storage::Local | Storage::Dummy));
                    return if is_out_of_reach || a.reaches_known_only(call) {
                        states
                    } else {
                        StateSet::ALL
                    };
                }
                let states = match updates.contains(&at) {
                    true => states.step(Dialect::Mpi, Step::PeerUpdate, LENIENT).next(),
                    false => states,
                };
                let Some(outcomes) = self.step(window, rank, call, states) else { return states };
                // Behind an error nothing is known, so that one mistake is told once.
                let next = if outcomes.next().is_empty() { StateSet::ALL } else { outcomes.next() };
                match a.certainty(call) {
                    Certainty::Always => next,
                    Certainty::Perhaps => states.union(next),
                }
            }
            EventKind::Write { variable, .. } if Some(variable) == root => StateSet::ALL,
            EventKind::Pass { variable, to: PassedTo::User(call), .. } if Some(variable) == root => {
                let usage = a.usage(call, event);
                if usage.is_given_away || usage.is_written { StateSet::ALL } else { states }
            }
            _ => states,
        }
    }

    /// What a call does; `None` when it does not concern the window.
    fn step(&self, window: &Followed, rank: Option<ExprId>, id: u32, states: StateSet) -> Option<Outcomes> {
        let a = self.a;
        let call = &a.calls[id as usize];
        let procedure = call.procedure?;
        if procedure.name == "mpi_finalize" {
            return Some(states.step(Dialect::Mpi, Step::Finalize, LENIENT));
        }
        let own = call.part(Part::Win)?;
        if !a.file.tree.same(own, window.handle) {
            return None;
        }
        if is_creation(procedure.name) {
            return Some(Outcomes::NONE.with(rma_automaton::Outcome::Next(State::CREATED)));
        }
        let toward = self.toward(rank, call);
        let steps = steps(a, call, procedure.class, &toward)?;
        let all = steps.into_iter().map(|step| states.step(Dialect::Mpi, step, LENIENT));
        Some(all.fold(Outcomes::NONE, Outcomes::union))
    }

    /// Whether a call names the tracked rank; both where that is not known.
    fn toward(&self, rank: Option<ExprId>, call: &Call) -> Vec<Toward> {
        let tree = self.a.file.tree;
        let (Some(rank), Some(own)) = (rank, named_rank(call)) else { return vec![Toward::This] };
        if tree.same(rank, own) {
            return match is_fixed(self.a, own) {
                true => vec![Toward::This],
                false => vec![Toward::This, Toward::Another],
            };
        }
        match (tree.int(rank), tree.int(own)) {
            (Some(_), Some(_)) => vec![Toward::Another],
            _ => vec![Toward::This, Toward::Another],
        }
    }
}

/// Without ranks there is one track for all targets.
fn tracks(window: &Followed) -> Vec<Option<ExprId>> {
    match window.ranks.is_empty() {
        true => vec![None],
        false => window.ranks.iter().copied().map(Some).collect(),
    }
}

fn named_rank(call: &Call) -> Option<ExprId> {
    call.named("rank").or_else(|| call.named("target_rank"))
}

/// The ranks that calls on a window name, as far as each names one and the same all the time.
fn ranks(a: &Analysis<'_>, handle: ExprId) -> Vec<ExprId> {
    let tree = a.file.tree;
    let mut ranks: Vec<ExprId> = Vec::new();
    for call in &a.calls {
        let concerns = call.part(Part::Win).is_some_and(|own| tree.same(own, handle));
        let Some(rank) = named_rank(call).filter(|_| concerns) else { continue };
        if !ranks.iter().any(|&other| tree.same(other, rank)) && ranks.len() < RANKS_MAX {
            ranks.push(rank);
        }
    }
    ranks
}

/// Whether an expression means the same thing wherever it stands in the unit.
fn is_fixed(a: &Analysis<'_>, id: ExprId) -> bool {
    let tree = a.file.tree;
    let mut names = Vec::new();
    let is_handle = match tree.expr(id).kind {
        ExprKind::Name(name) => {
            names.push(name);
            true
        }
        _ => {
            collect(a, id, &mut names);
            false
        }
    };
    // A handle that stands alone changes by the calls that are followed anyway.
    let changes = |event: &Event| match event.kind {
        EventKind::Write { variable, .. } => names.contains(&variable),
        EventKind::Pass { variable, to: PassedTo::User(call), .. } => {
            names.contains(&variable) && a.usage(call, event).is_written
        }
        EventKind::Pass { variable, to: PassedTo::Library(_, part), .. } => {
            !is_handle
                && part != Part::Win
                && names.contains(&variable)
                && matches!(part, Part::Other | Part::Request | Part::Requests | Part::Buffer(_))
                && !is_plain_input(a, event)
        }
        _ => false,
    };
    !a.events.iter().any(changes)
}

/// A rank that stands among the arguments of a transfer or of a lock is only read there.
fn is_plain_input(a: &Analysis<'_>, event: &Event) -> bool {
    let EventKind::Pass { place, to: PassedTo::Library(call, _), .. } = event.kind else { return false };
    let call = &a.calls[call as usize];
    named_rank(call) == Some(place)
        || ["comm", "dest", "source", "count", "tag"].iter().any(|keyword| call.named(keyword) == Some(place))
}

fn collect(a: &Analysis<'_>, id: ExprId, names: &mut Vec<Symbol>) {
    let tree = a.file.tree;
    match tree.expr(id).kind {
        ExprKind::Name(name) => names.push(name),
        ExprKind::Reference { base, args } => {
            for &arg in tree.list(args) {
                collect(a, arg, names);
            }
            if !matches!(tree.expr(base).kind, ExprKind::Name(_)) {
                collect(a, base, names);
            }
        }
        ExprKind::Component { base, .. } if !matches!(tree.expr(base).kind, ExprKind::Name(_)) => {
            collect(a, base, names);
        }
        ExprKind::Paren(inner) => collect(a, inner, names),
        ExprKind::Operation { operands, .. } => {
            for &operand in tree.list(operands) {
                collect(a, operand, names);
            }
        }
        _ => {}
    }
}

/// Whether a window is used by the calls of the proposal, whose rules are others.
fn speaks_seed(a: &Analysis<'_>, handle: ExprId) -> bool {
    a.calls.iter().any(|call| {
        call.within.is_none()
            && a.name(call.name).starts_with("rma_")
            && call.part(Part::Win).is_some_and(|own| a.file.tree.same(own, handle))
    })
}

fn is_creation(name: &str) -> bool {
    matches!(
        name,
        "mpi_win_create" | "mpi_win_allocate" | "mpi_win_allocate_shared" | "mpi_win_create_dynamic"
    )
}

/// The calls of the automaton that a call can be; `None` when it is none.
fn steps(a: &Analysis<'_>, call: &Call, class: Class, toward: &[Toward]) -> Option<Vec<Step>> {
    let name = call.procedure?.name;
    let all = name.ends_with("_all");
    let each = |make: &dyn Fn(Toward) -> Step| toward.iter().map(|&toward| make(toward)).collect();
    let flags = asserted(a, call);
    let checks = |flag: &str| match &flags {
        Some(flags) if flags.contains(&flag) => vec![Check::NoCheck],
        Some(_) => vec![Check::Checked],
        None => vec![Check::Checked, Check::NoCheck],
    };
    Some(match class {
        Class::Fence => {
            let has = |flag: &str| flags.as_ref().map(|flags| flags.contains(&flag));
            match (has("mpi_mode_noprecede"), has("mpi_mode_nosucceed")) {
                (Some(false), Some(false)) => vec![Step::Fence(Assertion::None)],
                (Some(true), Some(false)) => vec![Step::Fence(Assertion::NoPrecede)],
                (Some(false), Some(true)) => vec![Step::Fence(Assertion::NoSucceed)],
                (Some(true), Some(true)) => vec![Step::Fence(Assertion::Both)],
                _ => [Assertion::None, Assertion::NoPrecede, Assertion::NoSucceed, Assertion::Both]
                    .map(Step::Fence)
                    .to_vec(),
            }
        }
        Class::Post => match flags.map(|flags| flags.contains(&"mpi_mode_noput")) {
            Some(true) => vec![Step::Post(Permit::Gets)],
            Some(false) => vec![Step::Post(Permit::All)],
            None => vec![Step::Post(Permit::Gets), Step::Post(Permit::All)],
        },
        Class::Access => {
            checks("mpi_mode_nocheck").into_iter().map(|check| Step::Start(Toward::Both, check)).collect()
        }
        Class::Complete => vec![Step::Complete(Toward::Both)],
        Class::Wait => vec![Step::Wait(WaitFor::Group)],
        Class::WaitTest => vec![Step::Test(WaitFor::Group)],
        Class::Lock if all => vec![Step::LockAll],
        Class::Lock => {
            let kinds = match call
                .named("lock_type")
                .and_then(|kind| a.file.tree.root(kind))
                .map(|kind| a.name(kind))
            {
                Some("mpi_lock_exclusive") => vec![LockKind::Exclusive],
                Some("mpi_lock_shared") => vec![LockKind::Shared],
                _ => vec![LockKind::Exclusive, LockKind::Shared],
            };
            let mut steps = Vec::new();
            for &toward in toward {
                for &kind in &kinds {
                    steps.extend(
                        checks("mpi_mode_nocheck").into_iter().map(|check| Step::Lock(toward, kind, check)),
                    );
                }
            }
            steps
        }
        Class::Unlock if all => vec![Step::UnlockAll],
        Class::Unlock => each(&Step::Unlock),
        // It completes what there is, toward whatever target.
        Class::Flush if all => vec![Step::Flush(Toward::This), Step::Flush(Toward::Another)],
        Class::Flush => each(&Step::Flush),
        Class::WinSync => vec![Step::Sync],
        Class::WinFree => vec![Step::Free],
        Class::Transfer => {
            let kind = match name {
                "mpi_put" | "mpi_rput" => Transfer::Put,
                "mpi_get" | "mpi_rget" => Transfer::Get,
                "mpi_accumulate" | "mpi_raccumulate" => Transfer::Accumulate,
                _ => Transfer::Atomic,
            };
            each(&|toward| Step::Transfer(toward, kind))
        }
        _ => return None,
    })
}

/// The assertions of a call; `None` when they are not written down.
fn asserted<'a>(a: &Analysis<'a>, call: &Call) -> Option<Vec<&'a str>> {
    let mut flags = Vec::new();
    let is_known = call.named("assert").is_some_and(|assert| gather(a, assert, &mut flags));
    is_known.then_some(flags)
}

fn gather<'a>(a: &Analysis<'a>, id: ExprId, flags: &mut Vec<&'a str>) -> bool {
    let tree = a.file.tree;
    match tree.expr(id).kind {
        ExprKind::Literal(_) => tree.int(id) == Some(0),
        ExprKind::Name(name) => {
            let name = tree.symbols.name(name);
            flags.push(name);
            name.starts_with("mpi_mode_")
        }
        ExprKind::Paren(inner) => gather(a, inner, flags),
        ExprKind::Operation { operators, operands } => {
            tree.symbols.name(operators).chars().all(|c| c == '+')
                && tree.list(operands).iter().all(|&operand| gather(a, operand, flags))
        }
        ExprKind::Reference { base, args } => {
            let is_or =
                matches!(tree.expr(base).kind, ExprKind::Name(name) if tree.symbols.name(name) == "ior");
            is_or && tree.list(args).iter().all(|&arg| gather(a, arg, flags))
        }
        _ => false,
    }
}
