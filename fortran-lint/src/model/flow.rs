//! The order in which the statements of a unit can run. Both branches of `#if` are ways through. Never looks inside a
//! statement further than its labels.

use std::collections::HashMap;

use super::scope::{Step, Unit};
use crate::parse::{BlockKind, DoKind, ExprKind, List, Mark, StatementKind, Symbol, Tree};

/// A statement, or the end of a counted loop, where it is decided whether to go round again.
#[derive(Clone, Debug)]
pub struct Node {
    /// The statement; `None` for the end of a loop.
    pub statement: Option<u32>,
    /// Where control can go.
    pub next: Vec<u32>,
    /// The successor that is only taken when a counted loop runs not at all.
    pub zero_trip: Option<u32>,
}

/// The nodes of a loop: a DO construct or a jump back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loop {
    /// The first node: the DO, or the target of the jump.
    pub first: u32,
    /// The last node.
    pub last: u32,
}

/// Control flow of one unit.
#[derive(Debug, Default)]
pub struct Flow {
    /// Nodes in the order of the text.
    pub nodes: Vec<Node>,
    /// Where control enters: the start, and each ENTRY.
    pub entries: Vec<u32>,
    /// Loops.
    pub loops: Vec<Loop>,
}

#[derive(Clone, Debug)]
enum Frame {
    If {
        ends: Vec<u32>,
        otherwise: Option<u32>,
    },
    Do {
        header: u32,
        end_label: Option<u32>,
        name: Option<Symbol>,
        kind: DoKind,
        breaks: Vec<u32>,
        cycles: Vec<u32>,
    },
    Select {
        head: u32,
        ends: Vec<u32>,
        has_default: bool,
        is_in_case: bool,
    },
    Block,
}

/// What is remembered at an `#if`.
struct Branch {
    pending: Vec<u32>,
    frames: Vec<Frame>,
    ends: Vec<u32>,
    first_frames: Option<Vec<Frame>>,
}

struct Builder<'t> {
    tree: &'t Tree,
    flow: Flow,
    /// Nodes that fall through to the next one.
    pending: Vec<u32>,
    frames: Vec<Frame>,
    branches: Vec<Branch>,
    labels: HashMap<u32, u32>,
    jumps: Vec<(u32, u32)>,
    /// Labels that variables are given by ASSIGN.
    assigned: Vec<(Symbol, u32)>,
    /// Assigned GO TOs without a list, which can lead to each label of their variable.
    assigned_jumps: Vec<(u32, Symbol)>,
    /// The IF of a one-line IF whose statement comes next.
    one_line: Vec<u32>,
}

impl Flow {
    /// Builds the flow of a unit.
    pub fn new(tree: &Tree, unit: &Unit) -> Flow {
        let mut builder = Builder {
            tree,
            flow: Flow::default(),
            pending: Vec::new(),
            frames: Vec::new(),
            branches: Vec::new(),
            labels: HashMap::new(),
            jumps: Vec::new(),
            assigned: Vec::new(),
            assigned_jumps: Vec::new(),
            one_line: Vec::new(),
        };
        for step in &unit.body {
            match step {
                Step::Statement(i) => builder.statement(*i),
                Step::Mark(mark) => builder.mark(mark),
            }
        }
        builder.finish()
    }
}

impl Builder<'_> {
    fn add(&mut self, statement: Option<u32>) -> u32 {
        let node = self.flow.nodes.len() as u32;
        self.flow.nodes.push(Node { statement, next: Vec::new(), zero_trip: None });
        for from in std::mem::take(&mut self.pending) {
            self.edge(from, node);
        }
        if node == 0 {
            self.flow.entries.push(0);
        }
        self.pending.push(node);
        node
    }

    fn edge(&mut self, from: u32, to: u32) {
        let next = &mut self.flow.nodes[from as usize].next;
        if !next.contains(&to) {
            next.push(to);
        }
    }

    fn statement(&mut self, i: u32) {
        use StatementKind as S;
        let tree = self.tree;
        let statement = &tree.statements[i as usize];
        let one_line = std::mem::take(&mut self.one_line);
        // Branches that end here come together before the node is made.
        match &statement.kind {
            S::ElseIf(_) | S::Else => {
                if let Some(Frame::If { ends, otherwise }) = self.frames.last_mut() {
                    ends.append(&mut self.pending);
                    self.pending.extend(otherwise.take());
                }
            }
            S::EndIf => {
                if let Some(at) = self.frames.iter().rposition(|frame| matches!(frame, Frame::If { .. })) {
                    self.frames.truncate(at + 1);
                    if let Some(Frame::If { ends, otherwise }) = self.frames.pop() {
                        self.pending.extend(ends);
                        self.pending.extend(otherwise);
                    }
                }
            }
            S::Case { .. } => {
                if let Some(Frame::Select { head, ends, is_in_case, .. }) = self.frames.last_mut() {
                    if *is_in_case {
                        ends.append(&mut self.pending);
                    }
                    *is_in_case = true;
                    self.pending = vec![*head];
                }
            }
            S::EndSelect => {
                if let Some(at) = self.frames.iter().rposition(|frame| matches!(frame, Frame::Select { .. }))
                {
                    self.frames.truncate(at + 1);
                    if let Some(Frame::Select { head, ends, has_default, .. }) = self.frames.pop() {
                        self.pending.extend(ends);
                        if !has_default {
                            self.pending.push(head);
                        }
                    }
                }
            }
            _ => {}
        }
        let node = self.add(Some(i));
        if let Some(label) = statement.label {
            self.labels.insert(label, node);
        }
        match &statement.kind {
            S::IfThen(_) => self.frames.push(Frame::If { ends: Vec::new(), otherwise: Some(node) }),
            S::ElseIf(_) => {
                if let Some(Frame::If { otherwise, .. }) = self.frames.last_mut() {
                    *otherwise = Some(node);
                }
            }
            S::IfStatement(_) => self.one_line.push(node),
            S::ArithmeticIf { labels, .. } => {
                self.jump(node, labels);
                self.pending.clear();
            }
            S::Goto { labels, selector } => {
                self.jump(node, labels);
                let assigned = selector.filter(|&id| matches!(tree.expr(id).kind, ExprKind::Name(_)));
                match (selector, assigned.and_then(|id| tree.root(id))) {
                    (Some(_), Some(variable)) if labels.is_empty() => {
                        self.assigned_jumps.push((node, variable));
                        self.pending.clear();
                    }
                    // A computed GO TO whose value is out of range goes on behind it.
                    (Some(_), _) => {}
                    (None, _) => self.pending.clear(),
                }
            }
            S::Assign { label, variable } => {
                if let Some(variable) = tree.root(*variable) {
                    self.assigned.push((variable, *label));
                }
            }
            S::Do { kind, end_label, name, .. } => {
                let frame = Frame::Do {
                    header: node,
                    end_label: *end_label,
                    name: *name,
                    kind: *kind,
                    breaks: Vec::new(),
                    cycles: Vec::new(),
                };
                self.frames.push(frame);
            }
            S::EndDo => self.close_do(),
            S::Cycle(name) => self.leave(node, *name, Way::Cycle),
            S::Exit(name) => self.leave(node, *name, Way::Exit),
            S::Return | S::Stop => self.pending.clear(),
            S::EndUnit(_) | S::Contains => self.pending.clear(),
            S::Select(_) => {
                self.frames.push(Frame::Select {
                    head: node,
                    ends: Vec::new(),
                    has_default: false,
                    is_in_case: false,
                });
            }
            S::Case { is_default } => {
                if let Some(Frame::Select { has_default, .. }) = self.frames.last_mut() {
                    *has_default |= is_default;
                }
            }
            S::BlockStart { kind, .. } if *kind != BlockKind::Where && *kind != BlockKind::Forall => {
                self.frames.push(Frame::Block);
            }
            S::BlockEnd(kind) if *kind != BlockKind::Where && *kind != BlockKind::Forall => {
                if matches!(self.frames.last(), Some(Frame::Block)) {
                    self.frames.pop();
                }
            }
            S::Entry { .. } => self.flow.entries.push(node),
            S::Call { args, .. } => self.labels_in(node, *args),
            S::Io { control, .. } => self.labels_in(node, *control),
            _ => {}
        }
        for from in one_line {
            if !self.pending.contains(&from) {
                self.pending.push(from);
            }
        }
        if let Some(label) = statement.label
            && !matches!(statement.kind, S::Do { .. } | S::EndDo)
        {
            self.close_labelled(label);
        }
    }

    fn jump(&mut self, from: u32, labels: &[u32]) {
        self.jumps.extend(labels.iter().map(|&label| (from, label)));
    }

    /// Alternate returns, and ERR=, END= and EOR= of input and output.
    fn labels_in(&mut self, node: u32, list: List) {
        let tree = self.tree;
        for &id in tree.list(list) {
            match tree.expr(id).kind {
                ExprKind::AlternateReturn(label) => self.jumps.push((node, label)),
                ExprKind::Keyword { name, value }
                    if matches!(tree.symbols.name(name), "err" | "end" | "eor") =>
                {
                    if let Some(label) = tree.int(value) {
                        self.jumps.push((node, label as u32));
                    }
                }
                _ => {}
            }
        }
    }

    fn close_labelled(&mut self, label: u32) {
        // One statement may end several loops.
        while let Some(at) = self
            .frames
            .iter()
            .rposition(|frame| matches!(frame, Frame::Do { end_label: Some(own), .. } if *own == label))
        {
            self.frames.truncate(at + 1);
            self.close_do();
        }
    }

    fn close_do(&mut self) {
        let Some(at) = self.frames.iter().rposition(|frame| matches!(frame, Frame::Do { .. })) else {
            return;
        };
        self.frames.truncate(at + 1);
        let Some(Frame::Do { header, kind, breaks, cycles, .. }) = self.frames.pop() else { return };
        self.pending.extend(cycles);
        let last;
        match kind {
            DoKind::Counted => {
                let end = self.add(None);
                self.edge(end, header);
                self.edge(header, end);
                self.flow.nodes[header as usize].zero_trip = Some(end);
                last = end;
            }
            DoKind::While | DoKind::Forever => {
                last = (self.flow.nodes.len() - 1) as u32;
                for from in std::mem::take(&mut self.pending) {
                    self.edge(from, header);
                }
                if kind == DoKind::While {
                    self.pending.push(header);
                }
            }
        }
        self.pending.extend(breaks);
        self.flow.loops.push(Loop { first: header, last });
    }

    fn leave(&mut self, node: u32, name: Option<Symbol>, way: Way) {
        self.pending.clear();
        for frame in self.frames.iter_mut().rev() {
            if let Frame::Do { name: own, breaks, cycles, .. } = frame
                && (name.is_none() || name == *own)
            {
                match way {
                    Way::Exit => breaks.push(node),
                    Way::Cycle => cycles.push(node),
                }
                return;
            }
        }
        // EXIT from a named block of another kind: what follows is reached in any case.
        self.pending.push(node);
    }

    fn mark(&mut self, mark: &Mark) {
        match mark {
            Mark::If => self.branches.push(Branch {
                pending: self.pending.clone(),
                frames: self.frames.clone(),
                ends: Vec::new(),
                first_frames: None,
            }),
            Mark::Else => {
                if let Some(branch) = self.branches.last_mut() {
                    branch.ends.append(&mut self.pending);
                    branch.first_frames.get_or_insert_with(|| std::mem::take(&mut self.frames));
                    self.frames = branch.frames.clone();
                    self.pending = branch.pending.clone();
                }
            }
            Mark::EndIf => {
                let Some(branch) = self.branches.pop() else { return };
                self.pending.extend(branch.ends);
                match branch.first_frames {
                    Some(first) => self.frames = merge(first, std::mem::take(&mut self.frames)),
                    None => {
                        // Without #else the lines may be missing altogether. What a lone branch opens or closes
                        // cannot be skipped.
                        if self.frames.len() == branch.frames.len() {
                            self.pending.extend(branch.pending);
                        }
                    }
                }
                self.pending.sort_unstable();
                self.pending.dedup();
            }
        }
    }

    fn finish(mut self) -> Flow {
        while self.frames.iter().any(|frame| matches!(frame, Frame::Do { .. })) {
            self.close_do();
        }
        for (from, variable) in std::mem::take(&mut self.assigned_jumps) {
            let labels = self.assigned.iter().filter(|(own, _)| *own == variable);
            self.jumps.extend(labels.map(|&(_, label)| (from, label)));
        }
        for (from, label) in std::mem::take(&mut self.jumps) {
            let Some(&to) = self.labels.get(&label) else { continue };
            self.edge(from, to);
            if to <= from {
                self.flow.loops.push(Loop { first: to, last: from });
            }
        }
        self.flow
    }
}

#[derive(Clone, Copy)]
enum Way {
    Exit,
    Cycle,
}

/// Two branches leave the same constructs open; jumps out of both are kept.
fn merge(mut first: Vec<Frame>, second: Vec<Frame>) -> Vec<Frame> {
    for (one, other) in first.iter_mut().zip(second) {
        match (one, other) {
            (
                Frame::Do { breaks, cycles, .. },
                Frame::Do { breaks: more_breaks, cycles: more_cycles, .. },
            ) => {
                unite(breaks, more_breaks);
                unite(cycles, more_cycles);
            }
            (Frame::If { ends, .. }, Frame::If { ends: more, .. })
            | (Frame::Select { ends, .. }, Frame::Select { ends: more, .. }) => {
                unite(ends, more);
            }
            _ => {}
        }
    }
    first
}

/// Both branches carry what was there before them; without this each condition would double it.
fn unite(nodes: &mut Vec<u32>, more: Vec<u32>) {
    nodes.extend(more);
    nodes.sort_unstable();
    nodes.dedup();
}
