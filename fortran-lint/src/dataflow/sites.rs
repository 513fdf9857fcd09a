//! The calls of a unit that lead to procedures of the program: by name, by a generic name, through what is bound to a type,
//! and by a function reference. Never looks into a procedure.

use std::collections::HashSet;

use crate::model::{Model, Step, UnitId};
use crate::parse::{BaseType, ExprId, ExprKind, List, StatementKind, Symbol, Tree};
use crate::program::{ProcedureId, Program, Seen};

/// One call.
pub(super) struct Site {
    /// The expression that names the procedure.
    pub(super) procedure: ExprId,
    /// The procedures that it can mean.
    pub(super) callees: Vec<ProcedureId>,
    /// The arguments, with the object that is passed along.
    pub(super) args: Vec<ExprId>,
    /// What the function result is assigned to.
    pub(super) result: Option<ExprId>,
}

/// All calls of a unit whose procedures the sources define. `acting` holds the functions that are of interest.
pub(super) fn sites(
    tree: &Tree,
    model: &Model,
    program: &Program,
    acting: &HashSet<Symbol>,
    id: ProcedureId,
) -> Vec<Site> {
    let mut finder = Finder { tree, model, program, acting, id, sites: Vec::new() };
    for step in &model.unit(UnitId(id.unit)).body {
        let Step::Statement(i) = step else { continue };
        match tree.statements[*i as usize].kind {
            StatementKind::Call { procedure, args } => {
                finder.site(procedure, args, None);
                finder.functions_in(args);
            }
            _ if acting.is_empty() => {}
            StatementKind::Assignment { target, value } => finder.functions(value, Some(target)),
            StatementKind::IfStatement(condition)
            | StatementKind::IfThen(condition)
            | StatementKind::ElseIf(condition) => finder.functions(condition, None),
            StatementKind::Do { control, .. } => finder.functions_in(control),
            _ => {}
        }
    }
    finder.sites
}

struct Finder<'a> {
    tree: &'a Tree,
    model: &'a Model,
    program: &'a Program,
    acting: &'a HashSet<Symbol>,
    id: ProcedureId,
    sites: Vec<Site>,
}

impl Finder<'_> {
    fn site(&mut self, procedure: ExprId, args: List, result: Option<ExprId>) {
        let tree = self.tree;
        let mut args = tree.list(args).to_vec();
        let callees = match tree.expr(procedure).kind {
            ExprKind::Name(name) => self.named(name),
            ExprKind::Component { base, name } => match self.bound(base, name) {
                Some((callees, passes_object)) => {
                    if passes_object {
                        args.insert(0, base);
                    }
                    callees
                }
                None => return,
            },
            _ => return,
        };
        if !callees.is_empty() {
            self.sites.push(Site { procedure, callees, args, result });
        }
    }

    fn named(&self, name: Symbol) -> Vec<ProcedureId> {
        let Finder { tree, model, program, id, .. } = *self;
        let text = tree.symbols.name(name);
        let unit = UnitId(id.unit);
        let is_renamed = program.generics.is_renaming(text);
        if program.generics.has(text) || is_renamed {
            let found = program.generic(id.file, tree, model, unit, text);
            if !found.is_empty() {
                return found;
            }
        }
        if !program.procedures.has(text) && !is_renamed {
            return Vec::new();
        }
        match program.procedures.find(&program.modules, id.file, tree, model, unit, name) {
            Seen::Procedure(callee) => vec![callee],
            Seen::Unknown => Vec::new(),
        }
    }

    /// What is bound to a name of the type of an object, and whether the object is passed along.
    fn bound(&self, base: ExprId, name: Symbol) -> Option<(Vec<ProcedureId>, bool)> {
        let Finder { tree, program, id, .. } = *self;
        let text = tree.symbols.name(name);
        if !program.generics.binds(text) {
            return None;
        }
        let bound = program.generics.bound(&program.procedures, id.file, self.type_name(base), text)?;
        Some((bound.procedures, bound.passes_object))
    }

    /// The derived type of a variable or of an element of one.
    fn type_name(&self, object: ExprId) -> Option<&str> {
        let base = match self.tree.expr(object).kind {
            ExprKind::Reference { base, .. } => base,
            _ => object,
        };
        let ExprKind::Name(name) = self.tree.expr(base).kind else { return None };
        let mut next = Some(UnitId(self.id.unit));
        while let Some(id) = next {
            let unit = self.model.unit(id);
            if let Some(spec) = unit.variables.get(&name).and_then(|variable| variable.spec) {
                return match spec.base {
                    BaseType::Derived(Some(own)) => Some(self.tree.symbols.name(own)),
                    _ => None,
                };
            }
            next = unit.parent;
        }
        None
    }

    fn functions_in(&mut self, list: List) {
        if !self.acting.is_empty() {
            for &id in self.tree.list(list) {
                self.functions(id, None);
            }
        }
    }

    /// The function references of an expression; `target` is what the expression is assigned to.
    fn functions(&mut self, id: ExprId, target: Option<ExprId>) {
        let tree = self.tree;
        match tree.expr(id).kind {
            ExprKind::Reference { base, args } => {
                if let ExprKind::Name(name) = tree.expr(base).kind
                    && self.acting.contains(&name)
                {
                    self.site(base, args, target);
                }
                self.functions_in(args);
            }
            ExprKind::Operation { operands, .. } => self.functions_in(operands),
            ExprKind::Paren(inner) => self.functions(inner, None),
            ExprKind::Keyword { value, .. } => self.functions(value, None),
            _ => {}
        }
    }
}
