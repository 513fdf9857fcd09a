//! Whether two expressions can be the same request or window. Never evaluates anything but literals.

use std::collections::HashMap;

use crate::model::Flow;
use crate::parse::{ExprId, ExprKind, List, StatementKind, Symbol, Tree};

/// Copies of handles: `r2 = r1`.
#[derive(Debug, Default)]
pub(super) struct Copies {
    group: HashMap<Symbol, Symbol>,
}

impl Copies {
    pub(super) fn new(tree: &Tree, flow: &Flow) -> Copies {
        let mut copies = Copies::default();
        for node in &flow.nodes {
            let Some(statement) = node.statement else { continue };
            if let StatementKind::Assignment { target, value } = tree.statements[statement as usize].kind
                && let (Some(to), Some(from)) = (tree.root(target), tree.root(value))
                && to != from
            {
                copies.join(to, from);
            }
        }
        copies
    }

    fn leader(&self, name: Symbol) -> Symbol {
        let mut name = name;
        while let Some(&next) = self.group.get(&name) {
            name = next;
        }
        name
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

/// Whether two designators of one variable can name the same place.
pub(super) fn overlap(tree: &Tree, one: ExprId, other: ExprId) -> bool {
    let (one, other) = (parts(tree, one), parts(tree, other));
    one.iter().zip(&other).all(|(a, b)| match (a, b) {
        (Part::Component(a), Part::Component(b)) => a == b,
        (Part::Subscripts(a), Part::Subscripts(b)) => may_meet(tree, *a, *b),
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
