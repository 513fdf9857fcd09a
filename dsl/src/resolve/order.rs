//! The order of declarations by what they use, and those that nothing uses. Never reports an undeclared name.

use std::collections::{HashMap, HashSet};

use rma_source::Diagnostic;

use super::{Dependence, LetClass, Mark, PATH_MAX, Resolver, Symbol, names};
use crate::messages::Code;
use crate::syntax::ast::{self, Expr, Name, StatementKind};

impl<'a> Resolver<'a> {
    /// Orders lets, finds declarations that use themselves, and what depends on time and reductions.
    pub(super) fn order(&mut self) {
        let mut marks: HashMap<Symbol, Mark> = HashMap::new();
        let n_lets = self.out.lets.len();
        let roots = (0..n_lets)
            .map(Symbol::Let)
            .chain((0..self.out.functions.len()).map(Symbol::Function))
            .chain((0..self.out.reductions.len()).map(Symbol::Reduction));
        for root in roots {
            self.visit(root, &mut marks, &mut Vec::new());
        }
        for i in 0..n_lets {
            let mark = marks.get(&Symbol::Let(i)).copied().unwrap_or_default();
            self.out.lets[i].class = match (mark.time, mark.reduction) {
                (Dependence::Yes, _) => LetClass::Inline,
                (Dependence::No, Dependence::Yes) => LetClass::PerStep,
                (Dependence::No, Dependence::No) => LetClass::Static,
            };
        }
        // Reductions whose value steps need.
        let mut needed: HashSet<Symbol> = HashSet::new();
        let mut stack: Vec<Symbol> = (0..n_lets).map(Symbol::Let).collect();
        for statement in &self.out.rest {
            match &statement.kind {
                StatementKind::Update(update) => self.mentioned_in_update(update, &mut stack),
                StatementKind::Together(updates) => {
                    updates.iter().for_each(|update| self.mentioned_in_update(update, &mut stack));
                }
                StatementKind::Source { value, .. } => stack.extend(self.mentioned(value)),
                StatementKind::Boundary { rules, .. } => {
                    for rule in rules {
                        let (ast::RuleValue::Neumann(value) | ast::RuleValue::Value(value)) = &rule.value;
                        stack.extend(self.mentioned(value));
                    }
                }
                _ => {}
            }
        }
        while let Some(symbol) = stack.pop() {
            if !needed.insert(symbol) {
                continue;
            }
            match symbol {
                Symbol::Let(i) => stack.extend(self.mentioned(self.out.lets[i].value)),
                Symbol::Function(i) => stack.extend(self.mentioned(self.out.functions[i].body)),
                Symbol::Reduction(i) => self.out.reductions[i].is_needed_initially = true,
                _ => {}
            }
        }
    }

    pub(super) fn mentioned_in_update(&self, update: &'a ast::Update, stack: &mut Vec<Symbol>) {
        stack.extend(self.mentioned(&update.value));
        stack.extend(update.condition.iter().flat_map(|condition| self.mentioned(condition)));
    }

    pub(super) fn mentioned(&self, expr: &Expr) -> Vec<Symbol> {
        let mut found = Vec::new();
        names(expr, &mut |name| {
            if let Some(&symbol) = self.out.symbols.get(name.text.as_str()) {
                found.push(symbol);
            }
        });
        found
    }

    pub(super) fn visit(
        &mut self,
        symbol: Symbol,
        marks: &mut HashMap<Symbol, Mark>,
        path: &mut Vec<Symbol>,
    ) -> Mark {
        if let Some(&mark) = marks.get(&symbol) {
            return mark;
        }
        let (value, params): (&'a Expr, &'a [Name]) = match symbol {
            Symbol::Let(i) => (self.out.lets[i].value, &[]),
            Symbol::Function(i) => (self.out.functions[i].body, self.out.functions[i].params),
            Symbol::Reduction(i) => (self.out.reductions[i].value, &[]),
            Symbol::Param(_) | Symbol::Grid(_) | Symbol::Field(_) => return Mark::default(),
        };
        if path.contains(&symbol) || PATH_MAX <= path.len() {
            let name = self.name_of(symbol);
            let (title, why) = match path.contains(&symbol) {
                true => (format!("`{}` uses itself", name.text), "this needs its own value"),
                false => {
                    (format!("`{}` is declared through too many others", name.text), "too far from its use")
                }
            };
            let mut diagnostic = Code::Cycle.error(title).label(name.span, why);
            for other in path.iter().rev().take_while(|other| **other != symbol) {
                let other = self.name_of(*other);
                diagnostic = diagnostic.label(other.span, format!("by way of `{}`", other.text));
            }
            self.diagnostics.push(
                diagnostic
                    .note("lets, functions and reductions are evaluated one after the other, without recursion")
                    .help("break the circle; a value from the step before is `u` or a reduction used by a `let`"),
            );
            let from = path.iter().position(|other| *other == symbol).unwrap_or(0);
            self.out.circular.extend(path[from..].iter().copied().chain([symbol]));
            marks.insert(symbol, Mark::default());
            return Mark::default();
        }
        path.push(symbol);
        let mut mark = Mark::default();
        let mut symbols = Vec::new();
        names(value, &mut |name| {
            if params.iter().any(|param| param.text == name.text) {
                return;
            }
            match self.out.symbols.get(name.text.as_str()) {
                Some(&other) => symbols.push(other),
                None if name.text == "t" || name.text == "step" => mark.time = Dependence::Yes,
                None => {}
            }
        });
        for other in symbols {
            let below = self.visit(other, marks, path);
            match other {
                Symbol::Reduction(_) => mark.reduction = Dependence::Yes,
                _ => mark = mark.or(below),
            }
        }
        path.pop();
        marks.entry(symbol).or_insert(mark);
        if let Symbol::Let(_) | Symbol::Reduction(_) = symbol
            && !self.out.order.contains(&symbol)
        {
            self.out.order.push(symbol);
        }
        mark
    }

    pub(super) fn name_of(&self, symbol: Symbol) -> &'a Name {
        match symbol {
            Symbol::Param(i) => self.out.params[i].name,
            Symbol::Let(i) => self.out.lets[i].name,
            Symbol::Grid(i) => self.out.grids[i].name,
            Symbol::Field(i) => self.out.fields[i].name,
            Symbol::Function(i) => self.out.functions[i].name,
            Symbol::Reduction(i) => self.out.reductions[i].name,
        }
    }

    pub(super) fn unused(&mut self) {
        // What could not be read may use anything.
        if !self.out.broken.is_empty() {
            return;
        }
        if self.out.uses_time {
            self.used.insert("dt");
        }
        let params = self.out.params.iter().map(|param| ("parameter", param.name));
        let lets = self.out.lets.iter().map(|named| ("let", named.name));
        let functions = self.out.functions.iter().map(|function| ("function", function.name));
        let unused: Vec<Diagnostic> = params
            .chain(lets)
            .chain(functions)
            .filter(|(_, name)| {
                !self.used.contains(name.text.as_str()) && !self.meant.contains(name.text.as_str())
            })
            .map(|(what, name)| {
                Code::Unused
                    .error(format!("the {what} `{}` is never used", name.text))
                    .label(name.span, "declared here")
                    .note("it has no effect on the result")
                    .help("remove it, or use it")
            })
            .collect();
        self.diagnostics.extend(unused);
    }
}
