//! Expressions as Rust text, in the order of evaluation that the program states.
//!
//! Operands may be shared in the IR; a shared node becomes a `let`, so that the text grows as the IR does. What does
//! not change within a loop is computed before it. Nodes that can end the program stay where they are evaluated.
//! Never reassociates.

use std::collections::{HashMap, HashSet};

use crate::ir::{
    Access, BinaryOp, Call, CompareOp, ExprId, ExprKind, LetId, ParamId, Program, ReductionId, Type, UnaryOp,
};

/// Which loop an expression changes in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Varies {
    /// Constant within a sweep.
    No,
    /// Constant within a row.
    Row,
    /// Differs from point to point.
    Point,
}

/// How the things that an expression mentions are written.
pub(super) trait Naming {
    /// A parameter.
    fn param(&self, id: ParamId) -> String;
    /// A named scalar.
    fn named(&self, id: LetId) -> String;
    /// A reduction's last value.
    fn reduction(&self, id: ReductionId) -> String;
    /// Whether a reduction has run.
    fn known(&self, id: ReductionId) -> String;
    /// The index along an axis, as `i64`.
    fn index(&self, axis: usize) -> String;
    /// Completed steps.
    fn step(&self) -> String;
    /// Time.
    fn time(&self) -> String;
    /// A value of a field.
    fn access(&self, access: &Access) -> String;
    /// The axis whose index changes fastest.
    fn last_axis(&self) -> usize;
}

/// The name of a type in Rust.
pub(super) fn type_name(ty: Type) -> &'static str {
    match ty {
        Type::Bool => "bool",
        Type::I64 => "i64",
        Type::U64 => "u64",
        Type::F32 => "f32",
        Type::F64 => "f64",
    }
}

/// How tightly the outermost operator of a text binds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binds {
    Or,
    And,
    Compare,
    BitOr,
    BitXor,
    BitAnd,
    Sum,
    Product,
    Unary,
    Atom,
}

struct Text {
    text: String,
    binds: Binds,
}

impl Text {
    fn atom(text: impl Into<String>) -> Text {
        Text { text: text.into(), binds: Binds::Atom }
    }

    fn at_least(self, binds: Binds) -> String {
        if self.binds < binds { format!("({})", self.text) } else { self.text }
    }
}

/// Turns expressions of one program into text; names that were given to nodes are kept until dropped.
pub(super) struct Printer<'a, N: Naming> {
    program: &'a Program,
    pub(super) naming: N,
    bound: HashMap<ExprId, String>,
    n_bound: usize,
}

impl<'a, N: Naming> Printer<'a, N> {
    pub(super) fn new(program: &'a Program, naming: N) -> Printer<'a, N> {
        Printer { program, naming, bound: HashMap::new(), n_bound: 0 }
    }

    /// Says that a node's value is at hand under a name.
    pub(super) fn bind(&mut self, id: ExprId, name: String) {
        self.bound.insert(id, name);
    }

    /// Where the value of a node changes.
    pub(super) fn varies(&self, root: ExprId) -> Varies {
        let mut varies = Varies::No;
        let last = self.naming.last_axis();
        self.program.exprs.visit(root, |_, expr| {
            varies = varies.max(match expr.kind {
                ExprKind::Access(_) => Varies::Point,
                ExprKind::Index(axis) if axis == last => Varies::Point,
                ExprKind::Index(_) => Varies::Row,
                _ => Varies::No,
            });
        });
        varies
    }

    /// Whether evaluation can end the program.
    fn can_fail(&self, root: ExprId) -> bool {
        let mut can_fail = false;
        self.program.exprs.visit(root, |_, expr| {
            can_fail |= matches!(
                expr.kind,
                ExprKind::Binary(BinaryOp::FloorDiv | BinaryOp::Mod | BinaryOp::Shl | BinaryOp::Shr, ..)
            ) && expr.ty.is_integer();
        });
        can_fail
    }

    /// The largest parts of some expressions that change less often than `limit` and are more than a literal.
    pub(super) fn invariants(&self, roots: &[ExprId], limit: Varies) -> Vec<ExprId> {
        let mut found = Vec::new();
        let mut seen = HashSet::new();
        let mut stack: Vec<ExprId> = roots.iter().rev().copied().collect();
        while let Some(id) = stack.pop() {
            if !seen.insert(id) || self.bound.contains_key(&id) {
                continue;
            }
            let kind = &self.program.exprs[id].kind;
            if is_literal(kind) {
                continue;
            }
            if self.varies(id) < limit && !self.can_fail(id) {
                found.push(id);
                continue;
            }
            stack.extend(kind.operands().into_iter().flatten().rev());
        }
        found
    }

    /// Text of an expression.
    pub(super) fn expression(&mut self, id: ExprId) -> String {
        self.expressions(&[id]).1.pop().expect("one text per expression")
    }

    /// Lines that compute what is used more than once, and the texts of the expressions.
    pub(super) fn expressions(&mut self, roots: &[ExprId]) -> (Vec<String>, Vec<String>) {
        let mut lines = Vec::new();
        let mut named_here = Vec::new();
        for id in self.shared(roots) {
            let text = self.definition(id).text;
            self.n_bound += 1;
            let name = format!("e{}", self.n_bound);
            lines.push(format!("let {name}: {} = {text};", type_name(self.program.exprs[id].ty)));
            self.bound.insert(id, name);
            named_here.push(id);
        }
        let texts = roots.iter().map(|root| self.node(*root).text).collect();
        for id in named_here {
            self.bound.remove(&id);
        }
        (lines, texts)
    }

    /// Nodes to be named before `roots` are evaluated, operands first: those used more than once, unless all uses are
    /// within one branch that may not be taken (that branch names them).
    fn shared(&self, roots: &[ExprId]) -> Vec<ExprId> {
        let exprs = &self.program.exprs;
        let mut uses: HashMap<ExprId, usize> = HashMap::new();
        let mut always: HashSet<ExprId> = HashSet::new();
        let mut branches = Vec::new();
        let mut stack: Vec<ExprId> = roots.to_vec();
        for root in roots {
            *uses.entry(*root).or_default() += 1;
        }
        while let Some(id) = stack.pop() {
            if self.bound.contains_key(&id) || !always.insert(id) {
                continue;
            }
            let (certain, maybe) = evaluated(&exprs[id].kind);
            stack.extend(certain.into_iter().flatten());
            branches.extend(maybe.into_iter().flatten());
        }
        let mut in_branches: HashMap<ExprId, usize> = HashMap::new();
        for branch in &branches {
            for id in self.below(*branch) {
                *in_branches.entry(id).or_default() += 1;
            }
        }
        let everything: HashSet<ExprId> = always.iter().chain(in_branches.keys()).copied().collect();
        for id in &everything {
            for operand in exprs[*id].kind.operands().into_iter().flatten() {
                *uses.entry(operand).or_default() += 1;
            }
        }
        let mut shared: Vec<ExprId> = everything
            .into_iter()
            .filter(|id| {
                let is_worth = !self.bound.contains_key(id) && 1 < uses[id] && !is_leaf(&exprs[*id].kind);
                is_worth && (always.contains(id) || (1 < in_branches[id] && !self.can_fail(*id)))
            })
            .collect();
        shared.sort_unstable(); // Ids grow from operands to users.
        shared
    }

    fn below(&self, root: ExprId) -> HashSet<ExprId> {
        let mut seen = HashSet::new();
        let mut stack = vec![root];
        while let Some(id) = stack.pop() {
            if !self.bound.contains_key(&id) && seen.insert(id) {
                stack.extend(self.program.exprs[id].kind.operands().into_iter().flatten());
            }
        }
        seen
    }

    /// A branch that may not be taken, with the names that only it needs.
    fn branch(&mut self, id: ExprId) -> String {
        let (lines, mut texts) = self.expressions(&[id]);
        let text = texts.pop().expect("one text per expression");
        match lines.is_empty() {
            true => text,
            false => format!("{} {text}", lines.join(" ")),
        }
    }

    /// An expression by its name, if it has one.
    fn node(&mut self, id: ExprId) -> Text {
        match self.bound.get(&id) {
            Some(name) => Text::atom(name.clone()),
            None => self.definition(id),
        }
    }

    fn definition(&mut self, id: ExprId) -> Text {
        let program = self.program;
        let expr = &program.exprs[id];
        let ty = expr.ty;
        match expr.kind {
            ExprKind::Real(number) => Text::atom(real_literal(number, ty)),
            ExprKind::Int(number) => Text::atom(match number {
                i64::MIN => String::from("i64::MIN"),
                _ if number < 0 => format!("({number}i64)"),
                _ => format!("{number}i64"),
            }),
            ExprKind::Word(number) => Text::atom(format!("{number}u64")),
            ExprKind::Bool(value) => Text::atom(value.to_string()),
            ExprKind::Param(param) => Text::atom(self.naming.param(param)),
            ExprKind::Let(named) => Text::atom(self.naming.named(named)),
            ExprKind::Reduction(reduction) => Text::atom(self.naming.reduction(reduction)),
            ExprKind::Known(reduction) => Text::atom(self.naming.known(reduction)),
            ExprKind::Index(axis) => Text::atom(self.naming.index(axis)),
            ExprKind::Step => Text::atom(self.naming.step()),
            ExprKind::Time => Text::atom(self.naming.time()),
            ExprKind::Access(ref access) => Text::atom(self.naming.access(access)),
            ExprKind::Cast(a) if program.exprs[a].ty == ty => self.node(a),
            ExprKind::Cast(a) => {
                let a = self.node(a).at_least(Binds::Unary);
                Text::atom(format!("({a} as {})", type_name(ty)))
            }
            ExprKind::Unary(op, a) => {
                let a = self.node(a);
                match (op, ty) {
                    (UnaryOp::Neg, Type::I64 | Type::U64) => {
                        Text::atom(format!("{}.wrapping_neg()", a.at_least(Binds::Atom)))
                    }
                    (UnaryOp::Neg, _) => {
                        Text { text: format!("-{}", a.at_least(Binds::Unary)), binds: Binds::Unary }
                    }
                    (UnaryOp::Not | UnaryOp::BitNot, _) => {
                        Text { text: format!("!{}", a.at_least(Binds::Unary)), binds: Binds::Unary }
                    }
                }
            }
            ExprKind::Binary(op, a, b) => {
                let (a, b) = (self.node(a), self.node(b));
                binary(op, ty, a, b)
            }
            ExprKind::Power(a, exponent) => {
                let a = self.node(a).text;
                Text::atom(match ty {
                    Type::I64 => format!("power_i64({a}, {exponent})"),
                    Type::U64 => format!("power_u64({a}, {exponent})"),
                    _ => format!("power({a}, {exponent})"),
                })
            }
            ExprKind::Call(call, a) => {
                let text = self.node(a).text;
                Text::atom(match (call, ty) {
                    (Call::Abs, Type::I64) => format!("({text}).wrapping_abs()"),
                    (Call::Abs, Type::U64) => format!("({text})"),
                    (Call::Abs, _) => format!("({text}).abs()"),
                    (Call::Sign, Type::I64) => format!("({text}).signum()"),
                    (Call::Sign, Type::U64) => format!("({text}).min(1)"),
                    (Call::Sign, Type::F32) => format!("sign32({text})"),
                    (Call::Sign, _) => format!("sign({text})"),
                    (Call::Exp, _) => format!("exp({text})"),
                    (Call::Log, _) => format!("log({text})"),
                    (Call::Sin, _) => format!("sin({text})"),
                    (Call::Cos, _) => format!("cos({text})"),
                    (Call::Tan, _) => format!("tan({text})"),
                    (Call::Sqrt, _) => format!("({text}).sqrt()"),
                    (Call::Floor, _) => format!("({text}).floor()"),
                })
            }
            ExprKind::Compare(op, a, b) => {
                let (a, b) = (self.node(a), self.node(b));
                let sign = match op {
                    CompareOp::Eq => "==",
                    CompareOp::Ne => "!=",
                    CompareOp::Lt => "<",
                    CompareOp::Le => "<=",
                    CompareOp::Gt => ">",
                    CompareOp::Ge => ">=",
                };
                let text = format!("{} {sign} {}", a.at_least(Binds::BitOr), b.at_least(Binds::BitOr));
                Text { text, binds: Binds::Compare }
            }
            ExprKind::And(a, b) => {
                let a = self.node(a).at_least(Binds::And);
                let b = self.maybe(b);
                Text { text: format!("{a} && {}", b.at_least(Binds::Compare)), binds: Binds::And }
            }
            ExprKind::Or(a, b) => {
                let a = self.node(a).at_least(Binds::Or);
                let b = self.maybe(b);
                Text { text: format!("{a} || {}", b.at_least(Binds::And)), binds: Binds::Or }
            }
            ExprKind::Select(condition, a, b) => {
                let condition = self.node(condition).text;
                let (a, b) = (self.branch(a), self.branch(b));
                Text::atom(format!("(if {condition} {{ {a} }} else {{ {b} }})"))
            }
        }
    }

    /// The right side of `&&` or `||`.
    fn maybe(&mut self, id: ExprId) -> Text {
        match self.shared(&[id]).is_empty() {
            true => self.node(id),
            false => Text::atom(format!("{{ {} }}", self.branch(id))),
        }
    }
}

/// Operands that are evaluated whenever the node is, and those that may not be.
fn evaluated(kind: &ExprKind) -> ([Option<ExprId>; 3], [Option<ExprId>; 2]) {
    match *kind {
        ExprKind::And(a, b) | ExprKind::Or(a, b) => ([Some(a), None, None], [Some(b), None]),
        ExprKind::Select(condition, a, b) => ([Some(condition), None, None], [Some(a), Some(b)]),
        ref kind => (kind.operands(), [None; 2]),
    }
}

fn is_literal(kind: &ExprKind) -> bool {
    matches!(kind, ExprKind::Real(_) | ExprKind::Int(_) | ExprKind::Word(_) | ExprKind::Bool(_))
}

fn is_leaf(kind: &ExprKind) -> bool {
    kind.operands().iter().all(Option::is_none)
}

fn real_literal(number: f64, ty: Type) -> String {
    let suffix = match ty {
        Type::F32 => " as f32)",
        _ => "",
    };
    let open = if suffix.is_empty() { "" } else { "(" };
    let text = match number {
        _ if number.is_nan() => String::from("f64::NAN"),
        f64::INFINITY => String::from("f64::INFINITY"),
        f64::NEG_INFINITY => String::from("f64::NEG_INFINITY"),
        _ if number.is_sign_negative() => format!("({number:?}f64)"),
        _ => format!("{number:?}f64"),
    };
    format!("{open}{text}{suffix}")
}

fn binary(op: BinaryOp, ty: Type, a: Text, b: Text) -> Text {
    let infix = |sign: &str, binds: Binds, above: Binds, a: Text, b: Text| Text {
        text: format!("{} {sign} {}", a.at_least(binds), b.at_least(above)),
        binds,
    };
    let call = |name: &str, a: Text, b: Text| Text::atom(format!("{name}({}, {})", a.text, b.text));
    let method =
        |name: &str, a: Text, b: Text| Text::atom(format!("{}.{name}({})", a.at_least(Binds::Atom), b.text));
    match (op, ty.is_integer()) {
        (BinaryOp::Add, false) => infix("+", Binds::Sum, Binds::Product, a, b),
        (BinaryOp::Sub, false) => infix("-", Binds::Sum, Binds::Product, a, b),
        (BinaryOp::Mul, false) => infix("*", Binds::Product, Binds::Unary, a, b),
        (BinaryOp::Div, _) => infix("/", Binds::Product, Binds::Unary, a, b),
        (BinaryOp::Add, true) => method("wrapping_add", a, b),
        (BinaryOp::Sub, true) => method("wrapping_sub", a, b),
        (BinaryOp::Mul, true) => method("wrapping_mul", a, b),
        (BinaryOp::FloorDiv, true) => call(if ty == Type::I64 { "div_i64" } else { "div_u64" }, a, b),
        (BinaryOp::FloorDiv, false) => {
            Text::atom(format!("({} / {}).floor()", a.at_least(Binds::Product), b.at_least(Binds::Unary)))
        }
        (BinaryOp::Mod, true) => call(if ty == Type::I64 { "mod_i64" } else { "mod_u64" }, a, b),
        (BinaryOp::Mod, false) => call(if ty == Type::F32 { "modulo32" } else { "modulo" }, a, b),
        (BinaryOp::Min, true) => method("min", a, b),
        (BinaryOp::Max, true) => method("max", a, b),
        (BinaryOp::Min, false) => call(if ty == Type::F32 { "min32" } else { "min" }, a, b),
        (BinaryOp::Max, false) => call(if ty == Type::F32 { "max32" } else { "max" }, a, b),
        (BinaryOp::Pow, _) => call("pow", a, b),
        (BinaryOp::BitAnd, _) => infix("&", Binds::BitAnd, Binds::Sum, a, b),
        (BinaryOp::BitXor, _) => infix("^", Binds::BitXor, Binds::BitAnd, a, b),
        (BinaryOp::BitOr, _) => infix("|", Binds::BitOr, Binds::BitXor, a, b),
        (BinaryOp::Shl, _) => call(if ty == Type::I64 { "shl_i64" } else { "shl_u64" }, a, b),
        (BinaryOp::Shr, _) => call(if ty == Type::I64 { "shr_i64" } else { "shr_u64" }, a, b),
    }
}
