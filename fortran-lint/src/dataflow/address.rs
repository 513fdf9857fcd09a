//! Follows addresses into datatypes, so that a transfer by MPI_BOTTOM tells its variables. Reads the unit in the order
//! of its text. Never follows an address out of the unit.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::Analysis;
use super::event::{Call, EventKind};
use crate::mpi::{Class, Part};
use crate::parse::{ExprId, ExprKind, StatementKind, Symbol, Tree};

/// What datatypes hide.
#[derive(Debug, Default)]
pub struct HiddenBuffers {
    /// By call and position of the buffer argument: the variables that the datatype reaches by absolute address.
    by_argument: HashMap<(u32, usize), Vec<Symbol>>,
    /// By call and position of the buffer argument: the variables that the datatype reaches by their distance from the
    /// buffer.
    by_anchor: HashMap<(u32, usize), Vec<Symbol>>,
    /// Calls of the address routine whose result went into a datatype.
    feeding: HashSet<u32>,
    /// By call that makes a datatype: the dummy arguments that its displacements are made of.
    dummies: HashMap<u32, Vec<Symbol>>,
}

impl HiddenBuffers {
    /// The variables behind MPI_BOTTOM at a position of a call.
    pub fn of(&self, call: u32, position: usize) -> &[Symbol] {
        self.by_argument.get(&(call, position)).map_or(&[], Vec::as_slice)
    }

    /// The variables that a datatype reaches from the buffer at a position of a call, without the buffer itself.
    pub fn anchored(&self, call: u32, position: usize) -> &[Symbol] {
        self.by_anchor.get(&(call, position)).map_or(&[], Vec::as_slice)
    }

    /// The dummy arguments whose values, or whose addresses, are the displacements of a datatype that a call makes.
    pub fn dummies_of(&self, call: u32) -> &[Symbol] {
        self.dummies.get(&call).map_or(&[], Vec::as_slice)
    }

    /// Whether this call of the address routine served a datatype and is no attempt at a remedy.
    pub fn feeds_datatype(&self, call: u32) -> bool {
        self.feeding.contains(&call)
    }
}

/// Variables whose absolute addresses a value holds, and the calls that they come from.
#[derive(Clone, Default)]
struct Reach {
    variables: BTreeSet<Symbol>,
    /// Variables whose distances from another one a value holds.
    distances: BTreeSet<Symbol>,
    calls: BTreeSet<u32>,
    /// Dummy arguments that may hold addresses of the caller's variables.
    dummies: BTreeSet<Symbol>,
}

impl Reach {
    fn join(&mut self, other: &Reach) {
        self.variables.extend(&other.variables);
        self.distances.extend(&other.distances);
        self.calls.extend(&other.calls);
        self.dummies.extend(&other.dummies);
    }

    /// What is left when the address of something else is taken away.
    fn as_distance(&self) -> Reach {
        Reach { distances: self.variables.clone(), calls: self.calls.clone(), ..Reach::default() }
    }

    fn is_empty(&self) -> bool {
        self.variables.is_empty() && self.distances.is_empty() && self.dummies.is_empty()
    }
}

struct Follower<'a> {
    tree: &'a Tree,
    dummies: &'a [Symbol],
    reach: HashMap<Symbol, Reach>,
    out: HiddenBuffers,
}

pub(super) fn follow(analysis: &Analysis<'_>) -> HiddenBuffers {
    let (tree, flow) = (analysis.file.tree, &analysis.flow);
    let mut follower = Follower {
        tree,
        dummies: &analysis.unit.dummies,
        reach: HashMap::new(),
        out: HiddenBuffers::default(),
    };
    for &dummy in &analysis.unit.dummies {
        follower.reach.insert(dummy, Reach { dummies: BTreeSet::from([dummy]), ..Reach::default() });
    }
    for (i, node) in flow.nodes.iter().enumerate() {
        let Some(statement) = node.statement else { continue };
        if let StatementKind::Assignment { target, value } = tree.statements[statement as usize].kind {
            let reach = follower.value(value);
            follower.assign(target, reach);
        }
        for event in analysis.events_of(i as u32) {
            if let EventKind::Call(call) = event.kind {
                follower.call(call, &analysis.calls[call as usize]);
            }
        }
    }
    follower.out
}

impl Follower<'_> {
    fn value(&self, id: ExprId) -> Reach {
        let mut reach = Reach::default();
        self.collect(id, &mut reach);
        reach
    }

    fn collect(&self, id: ExprId, reach: &mut Reach) {
        match self.tree.expr(id).kind {
            ExprKind::Name(name) => {
                if let Some(own) = self.reach.get(&name) {
                    reach.join(own);
                }
            }
            ExprKind::Reference { base, args } => {
                if let Some(own) = self.tree.root(base).and_then(|root| self.reach.get(&root)) {
                    reach.join(own);
                }
                let ExprKind::Name(name) = self.tree.expr(base).kind else { return };
                match (self.tree.symbols.name(name), self.tree.list(args)) {
                    ("mpi_aint_add", args) => {
                        for &arg in args {
                            self.collect(arg, reach);
                        }
                    }
                    ("mpi_aint_diff", &[to, _]) => reach.join(&self.value(to).as_distance()),
                    // int(address, kind) and its kin.
                    ("int", &[value, ..]) => self.collect(value, reach),
                    _ => {}
                }
            }
            ExprKind::Component { base, .. } => {
                if let Some(own) = self.tree.root(base).and_then(|root| self.reach.get(&root)) {
                    reach.join(own);
                }
            }
            ExprKind::Paren(inner) => self.collect(inner, reach),
            ExprKind::Operation { operators, operands } => {
                let parts: Vec<Reach> =
                    self.tree.list(operands).iter().map(|&operand| self.value(operand)).collect();
                let n_addresses = parts.iter().filter(|part| !part.variables.is_empty()).count();
                let is_difference = n_addresses > 1 && self.tree.symbols.name(operators).contains('-');
                match is_difference {
                    // The difference of two addresses is no address.
                    true => reach.join(&parts[0].as_distance()),
                    false => parts.iter().for_each(|part| reach.join(part)),
                }
            }
            ExprKind::Array(items) => {
                for &item in self.tree.list(items) {
                    self.collect(item, reach);
                }
            }
            _ => {}
        }
    }

    fn assign(&mut self, target: ExprId, value: Reach) {
        let Some(root) = self.tree.root(target) else { return };
        let is_whole = matches!(self.tree.expr(target).kind, ExprKind::Name(_));
        if value.is_empty() && !self.reach.contains_key(&root) {
            return;
        }
        let reach = self.reach.entry(root).or_default();
        if is_whole {
            *reach = value;
        } else {
            reach.join(&value);
        }
    }

    fn call(&mut self, id: u32, call: &Call) {
        let Some(procedure) = call.procedure else { return };
        match procedure.class {
            Class::Address => {
                let location = call.part(Part::Location).and_then(|arg| self.tree.root(arg));
                if let (Some(location), Some(address)) = (location, call.part(Part::Address)) {
                    let reach = Reach {
                        variables: BTreeSet::from([location]),
                        calls: BTreeSet::from([id]),
                        ..Reach::default()
                    };
                    self.assign(address, reach);
                }
            }
            Class::Datatype => {
                let mut reach = Reach::default();
                for (part, arg) in call.parts() {
                    if matches!(part, Part::Displacements | Part::Types) {
                        self.collect(arg, &mut reach);
                    }
                }
                self.out.feeding.extend(&reach.calls);
                let mut dummies: Vec<Symbol> = reach.dummies.iter().copied().collect();
                // An address that is taken in here hides a dummy argument as well.
                dummies.extend(reach.variables.iter().filter(|name| self.dummies.contains(name)));
                self.out.dummies.insert(id, dummies);
                if let Some(newtype) = call.part(Part::NewType) {
                    self.assign(newtype, reach);
                }
            }
            _ => {
                let parts: Vec<(usize, Part, ExprId)> =
                    call.parts().enumerate().map(|(i, (part, arg))| (i, part, arg)).collect();
                for &(i, part, arg) in &parts {
                    let is_bottom =
                        self.tree.root(arg).is_some_and(|root| self.tree.symbols.name(root) == "mpi_bottom");
                    if !matches!(part, Part::Buffer(_)) {
                        continue;
                    }
                    let datatype = parts.iter().find(|(at, part, _)| *at > i && *part == Part::Type);
                    let Some(&(_, _, datatype)) = datatype else { continue };
                    let reach = self.value(datatype);
                    if is_bottom {
                        self.out.by_argument.insert((id, i), reach.variables.into_iter().collect());
                    } else if !reach.distances.is_empty() {
                        let anchor = self.tree.root(arg);
                        let others = reach.distances.into_iter().filter(|name| Some(*name) != anchor);
                        self.out.by_anchor.insert((id, i), others.collect());
                    }
                }
            }
        }
    }
}
