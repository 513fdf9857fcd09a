//! The library calls that procedures make for their callers, written down at the calls of those procedures. Never knows
//! what they mean.

use std::collections::{BTreeSet, HashMap, HashSet};

use rma_source::Span;

use super::sites::sites;
use crate::model::{Model, UnitId};
use crate::parse::{Attributes, ExprId, ExprKind, Literal, Symbol, Tree};
use crate::program::{Actual, ProcedureId, Program, Summary};

/// For each call, by the expression that names the procedure: whom it calls, and the arguments of the library calls
/// made for it.
#[derive(Clone, Default, Debug)]
pub struct Inlined {
    /// Names in this file of functions that do more than compute a value.
    acting: HashSet<Symbol>,
    calls: HashMap<ExprId, InlinedCall>,
    /// Units whose calls make library calls for them.
    with_effects: HashSet<UnitId>,
    shared: HashMap<Box<str>, ExprId>,
}

/// What one call brings.
#[derive(Clone, Debug)]
pub struct InlinedCall {
    /// The unit that calls.
    pub caller: UnitId,
    /// The procedure.
    pub callee: ProcedureId,
    /// The arguments by the position of the dummy argument.
    pub args: Vec<Option<ExprId>>,
    /// The arguments of each effect.
    pub effects: Vec<Vec<Option<ExprId>>>,
}

impl Inlined {
    /// Nothing yet, for a file of a program whose procedures are known.
    pub fn new(tree: &Tree, program: &Program) -> Inlined {
        let acts = |name: &str| program.procedures.acts(name) || program.generics.has(name);
        let acting = tree.symbols.all().filter(|(_, name)| acts(name)).map(|(symbol, _)| symbol);
        Inlined { acting: acting.collect(), ..Inlined::default() }
    }

    /// What the call whose procedure is named by this expression brings.
    pub fn of(&self, procedure: ExprId) -> Option<&InlinedCall> {
        self.calls.get(&procedure)
    }

    /// Whether procedures make library calls for a unit.
    pub fn has_effects(&self, unit: UnitId) -> bool {
        self.with_effects.contains(&unit)
    }

    /// All calls of procedures that were summed up, by the expressions that name these.
    pub fn calls(&self) -> impl Iterator<Item = (ExprId, &InlinedCall)> {
        self.calls.iter().map(|(id, call)| (*id, call))
    }

    /// The expression that stands for a shared name in this file.
    pub(super) fn shared(&self) -> impl Iterator<Item = (&str, ExprId)> {
        self.shared.iter().map(|(name, id)| (&**name, *id))
    }

    /// The procedures that a unit can call.
    pub fn callees(
        &self,
        tree: &Tree,
        model: &Model,
        program: &Program,
        id: ProcedureId,
    ) -> BTreeSet<ProcedureId> {
        let sites = sites(tree, model, program, &self.acting, id);
        sites.into_iter().flat_map(|site| site.callees).collect()
    }

    /// Writes down what the calls of one unit bring.
    pub fn add_unit(&mut self, tree: &mut Tree, model: &Model, program: &Program, id: ProcedureId) {
        for site in sites(tree, model, program, &self.acting, id) {
            let Some((callee, summary)) = choose(tree, program, id, &site.callees, &site.args) else {
                continue;
            };
            let args = ordered(tree, summary, &site.args);
            let effects: Vec<Vec<Option<ExprId>>> = summary
                .effects
                .iter()
                .map(|effect| {
                    let actuals = effect.args.iter();
                    actuals.map(|actual| self.actual(tree, actual, &args, site.result)).collect()
                })
                .collect();
            if !summary.effects.is_empty() {
                self.with_effects.insert(UnitId(id.unit));
            }
            self.calls.insert(site.procedure, InlinedCall { caller: UnitId(id.unit), callee, args, effects });
        }
    }

    fn actual(
        &mut self,
        tree: &mut Tree,
        actual: &Actual,
        args: &[Option<ExprId>],
        result: Option<ExprId>,
    ) -> Option<ExprId> {
        match actual {
            Actual::Dummy(position, path) => {
                let arg = args.get(*position as usize).copied().flatten()?;
                Some(component(tree, arg, path))
            }
            Actual::Shared(name, path) => {
                let root = self.named(tree, name);
                Some(component(tree, root, path))
            }
            Actual::Result(path) => Some(component(tree, result?, path)),
            Actual::Constant(name) => Some(self.named(tree, name)),
            Actual::Number(value) => Some(tree.add(ExprKind::Literal(Literal::Int(*value)), Span::default())),
            Actual::Own => None,
        }
    }

    fn named(&mut self, tree: &mut Tree, name: &str) -> ExprId {
        if let Some(&id) = self.shared.get(name) {
            return id;
        }
        let symbol = tree.symbols.intern(name);
        let id = tree.add(ExprKind::Name(symbol), Span::default());
        self.shared.insert(name.into(), id);
        id
    }
}

/// The procedure that a call means: the only one, or the first of several that fit the arguments and do the same for their
/// callers.
fn choose<'p>(
    tree: &Tree,
    program: &'p Program,
    caller: ProcedureId,
    callees: &[ProcedureId],
    args: &[ExprId],
) -> Option<(ProcedureId, &'p Summary)> {
    // What a caller learns must not depend on when its tree was read.
    let known = |id: &ProcedureId| program.summaries.get(id).filter(|_| program.is_before(*id, caller));
    let summed = callees.iter().map(|id| Some((*id, known(id)?)));
    let summed: Option<Vec<(ProcedureId, &Summary)>> = summed.collect();
    let mut fitting = summed?;
    if fitting.len() > 1 {
        fitting.retain(|(_, summary)| fits(tree, summary, args));
    }
    let &(id, first) = fitting.first()?;
    let is_same = |other: &Summary| {
        let shields = |summary: &Summary| -> Vec<bool> {
            summary.dummies.iter().map(|dummy| dummy.usage.is_shielded).collect()
        };
        other.effects == first.effects
            && other.calls_unknown == first.calls_unknown
            && other.blocks == first.blocks
            && shields(other) == shields(first)
    };
    fitting.iter().all(|(_, other)| is_same(other)).then_some((id, first))
}

/// Whether a procedure takes so many arguments of such names.
fn fits(tree: &Tree, summary: &Summary, args: &[ExprId]) -> bool {
    let mut is_given = vec![false; summary.dummies.len()];
    for (i, &arg) in args.iter().enumerate() {
        let at = match tree.expr(arg).kind {
            ExprKind::Keyword { name, .. } => summary.position(tree.symbols.name(name)),
            _ => Some(i),
        };
        match at.and_then(|at| is_given.get_mut(at)) {
            Some(given) => *given = true,
            None => return false,
        }
    }
    let is_optional = |at: usize| summary.dummies[at].attributes.has(Attributes::OPTIONAL);
    is_given.iter().enumerate().all(|(at, &given)| given || is_optional(at))
}

/// `a%b%c` from `a` and the names behind it, in the place of `a`.
fn component(tree: &mut Tree, root: ExprId, path: &[Box<str>]) -> ExprId {
    let span = tree.span(root);
    path.iter().fold(root, |base, name| {
        let name = tree.symbols.intern(name);
        tree.add(ExprKind::Component { base, name }, span)
    })
}

/// The arguments in the order of the dummies.
fn ordered(tree: &Tree, summary: &Summary, args: &[ExprId]) -> Vec<Option<ExprId>> {
    let mut ordered = vec![None; summary.dummies.len().max(args.len())];
    for (i, &arg) in args.iter().enumerate() {
        match tree.expr(arg).kind {
            ExprKind::Keyword { name, value } => {
                if let Some(at) = summary.position(tree.symbols.name(name)) {
                    ordered[at] = Some(value);
                }
            }
            ExprKind::Missing => {}
            _ => ordered[i] = Some(arg),
        }
    }
    ordered
}
