//! Whether two expressions can be the same request or window. Never evaluates anything but literals.

use std::collections::HashMap;

use super::FileContext;
use crate::model::{Flow, Step, UnitId, is_shared_name};
use crate::parse::{ExprId, ExprKind, List, StatementKind, Symbol, Tree};

/// Copies of handles: `r2 = r1`.
#[derive(Debug, Default)]
pub(super) struct Copies {
    group: HashMap<Symbol, Symbol>,
}

impl Copies {
    pub(super) fn new(file: FileContext<'_>, unit: UnitId, flow: &Flow) -> Copies {
        let tree = file.tree;
        let mut copies = Copies::default();
        copies.join_shared(file, unit);
        for node in &flow.nodes {
            let Some(statement) = node.statement else { continue };
            if let StatementKind::Assignment { target, value } = tree.statements[statement as usize].kind
                && let (Some(to), Some(from)) = (tree.root(target), tree.root(value))
                && to != from
                && !is_result(file, value)
            {
                copies.join(to, from);
            }
        }
        copies
    }

    /// A variable of a module or of COMMON has a name of its own here and one that all units share.
    fn join_shared(&mut self, file: FileContext<'_>, unit: UnitId) {
        let shared: Vec<(&str, Symbol)> = file
            .inlined
            .shared()
            .filter(|(name, _)| is_shared_name(name))
            .filter_map(|(name, id)| Some((name, file.tree.root(id)?)))
            .collect();
        if shared.is_empty() {
            return;
        }
        for step in &file.model.unit(unit).body {
            let Step::Statement(i) = step else { continue };
            let StatementKind::Call { args, .. } = file.tree.statements[*i as usize].kind else { continue };
            for root in file.tree.list(args).iter().filter_map(|&arg| file.tree.root(arg)) {
                let resolved = file.model.resolve(file.tree, &file.program.modules, unit, root);
                let same = shared.iter().find(|(name, _)| resolved.shared_name.as_deref() == Some(*name));
                match same {
                    Some(&(_, symbol)) if symbol != root => self.join(root, symbol),
                    _ => {}
                }
            }
        }
    }

    fn leader(&self, name: Symbol) -> Symbol {
        let mut name = name;
        while let Some(&next) = self.group.get(&name) {
            name = next;
        }
        name
    }

    /// Whether one of two names is a copy of the other.
    pub(super) fn are_copies(&self, one: Symbol, other: Symbol) -> bool {
        self.leader(one) == self.leader(other)
    }

    fn join(&mut self, one: Symbol, other: Symbol) {
        let (one, other) = (self.leader(one), self.leader(other));
        if one != other {
            self.group.insert(one, other);
        }
    }

    /// Whether two handles can be the same at run time.
    pub(super) fn may_be_same(&self, tree: &Tree, one: ExprId, other: ExprId) -> bool {
        let (Some(a), Some(b)) = (tree.root(one), tree.root(other)) else { return false };
        if a != b {
            return self.leader(a) == self.leader(b);
        }
        overlap(tree, one, other)
    }
}

/// Whether a value comes from a function whose result stands for what it has started.
fn is_result(file: FileContext<'_>, value: ExprId) -> bool {
    match file.tree.expr(value).kind {
        ExprKind::Reference { base, .. } => file.inlined.of(base).is_some(),
        _ => false,
    }
}

/// Whether two designators of one variable can name the same place.
pub(super) fn overlap(tree: &Tree, one: ExprId, other: ExprId) -> bool {
    let (one, other) = (parts(tree, one), parts(tree, other));
    one.iter().zip(&other).all(|(a, b)| match (a, b) {
        (Part::Component(a), Part::Component(b)) => a == b,
        (Part::Subscripts(a), Part::Subscripts(b)) => may_meet(tree, *a, *b),
        _ => true,
    })
}

/// Whether two designators lead to the same object, or to elements of the same array.
pub(super) fn may_concern(tree: &Tree, one: ExprId, other: ExprId) -> bool {
    // Names of ASSOCIATE stand for parts.
    if tree.root(one) != tree.root(other) {
        return true;
    }
    let (one, other) = (parts(tree, one), parts(tree, other));
    let is_inner =
        |parts: &[Part], i: usize| parts[i + 1..].iter().any(|part| matches!(part, Part::Component(_)));
    one.iter().zip(&other).enumerate().all(|(i, pair)| match pair {
        (Part::Component(a), Part::Component(b)) => a == b,
        // Elements of an array of objects are objects of their own.
        (Part::Subscripts(a), Part::Subscripts(b)) if is_inner(&one, i) && is_inner(&other, i) => {
            may_meet(tree, *a, *b)
        }
        _ => true,
    })
}

enum Part {
    Component(Symbol),
    Subscripts(List),
}

/// The parts of a designator behind its name.
fn parts(tree: &Tree, id: ExprId) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut at = id;
    loop {
        match tree.expr(at).kind {
            ExprKind::Reference { base, args } => {
                parts.push(Part::Subscripts(args));
                at = base;
            }
            ExprKind::Component { base, name } => {
                parts.push(Part::Component(name));
                at = base;
            }
            _ => break,
        }
    }
    parts.reverse();
    parts
}

/// Different whole numbers at one place are different elements.
fn may_meet(tree: &Tree, one: List, other: List) -> bool {
    tree.list(one).iter().zip(tree.list(other)).all(|(&a, &b)| match (tree.int(a), tree.int(b)) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    })
}
