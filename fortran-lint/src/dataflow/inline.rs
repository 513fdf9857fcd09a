//! The library calls that procedures make for their callers, written down at the calls of those procedures. Never knows
//! what they mean.

use std::collections::{BTreeSet, HashMap};

use rma_source::Span;

use crate::model::{Model, UnitId};
use crate::parse::{ExprId, ExprKind, List, Literal, StatementKind, Symbol, Tree};
use crate::program::{Actual, ProcedureId, Program, Seen, Summary};

/// For each call, by the expression that names the procedure: whom it calls, and the arguments of the library calls
/// made for it.
#[derive(Clone, Default, Debug)]
pub struct Inlined {
    calls: HashMap<ExprId, InlinedCall>,
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
    /// What the call whose procedure is named by this expression brings.
    pub fn of(&self, procedure: ExprId) -> Option<&InlinedCall> {
        self.calls.get(&procedure)
    }

    /// All calls of procedures that were summed up, by the expressions that name these.
    pub fn calls(&self) -> impl Iterator<Item = (ExprId, &InlinedCall)> {
        self.calls.iter().map(|(id, call)| (*id, call))
    }

    /// The expression that stands for a shared name in this file.
    pub(super) fn shared(&self) -> impl Iterator<Item = (&str, ExprId)> {
        self.shared.iter().map(|(name, id)| (&**name, *id))
    }

    /// Writes down what the calls of one unit bring.
    pub fn add_unit(&mut self, tree: &mut Tree, model: &Model, program: &Program, id: ProcedureId) {
        for (expr, name, args) in calls_of(tree, model, program, UnitId(id.unit)) {
            let seen = program.procedures.find(&program.modules, id.file, tree, model, UnitId(id.unit), name);
            let Seen::Procedure(callee) = seen else { continue };
            // What a caller learns must not depend on when its tree was read.
            let Some(summary) = program.summaries.get(&callee).filter(|_| program.is_before(callee, id))
            else {
                continue;
            };
            let args = ordered(tree, summary, args);
            let effects = summary
                .effects
                .iter()
                .map(|effect| effect.args.iter().map(|actual| self.actual(tree, actual, &args)).collect())
                .collect();
            self.calls.insert(expr, InlinedCall { caller: UnitId(id.unit), callee, args, effects });
        }
    }

    fn actual(&mut self, tree: &mut Tree, actual: &Actual, args: &[Option<ExprId>]) -> Option<ExprId> {
        match actual {
            Actual::Dummy(position, path) => {
                let arg = args.get(*position as usize).copied().flatten()?;
                Some(component(tree, arg, path))
            }
            Actual::Shared(name, path) => {
                let root = self.named(tree, name);
                Some(component(tree, root, path))
            }
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

/// `a%b%c` from `a` and the names behind it, in the place of `a`.
fn component(tree: &mut Tree, root: ExprId, path: &[Box<str>]) -> ExprId {
    let span = tree.span(root);
    path.iter().fold(root, |base, name| {
        let name = tree.symbols.intern(name);
        tree.add(ExprKind::Component { base, name }, span)
    })
}

/// The arguments in the order of the dummies.
fn ordered(tree: &Tree, summary: &Summary, args: List) -> Vec<Option<ExprId>> {
    let mut ordered = vec![None; summary.dummies.len().max(tree.list(args).len())];
    for (i, &arg) in tree.list(args).iter().enumerate() {
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

/// The procedures that a unit calls.
pub fn callees(tree: &Tree, model: &Model, program: &Program, id: ProcedureId) -> BTreeSet<ProcedureId> {
    let mut names: Vec<Symbol> =
        calls_of(tree, model, program, UnitId(id.unit)).into_iter().map(|(_, name, _)| name).collect();
    names.sort_unstable();
    names.dedup();
    let found = names
        .into_iter()
        .map(|name| program.procedures.find(&program.modules, id.file, tree, model, UnitId(id.unit), name));
    found
        .filter_map(|seen| match seen {
            Seen::Procedure(callee) => Some(callee),
            Seen::Unknown => None,
        })
        .collect()
}

/// The calls of a unit whose names the sources define: the expression that names the procedure, and the arguments.
fn calls_of(tree: &Tree, model: &Model, program: &Program, id: UnitId) -> Vec<(ExprId, Symbol, List)> {
    let mut calls = Vec::new();
    for step in &model.unit(id).body {
        let crate::model::Step::Statement(i) = step else { continue };
        let statement = &tree.statements[*i as usize];
        if let StatementKind::Call { procedure, args } = statement.kind
            && let ExprKind::Name(name) = tree.expr(procedure).kind
            && program.procedures.has(tree.symbols.name(name))
        {
            calls.push((procedure, name, args));
        }
    }
    calls
}
