//! Typed expressions in an arena. Never holds a name that is still to be looked up.

use rma_source::Span;

use super::{AXES_MAX, FieldId, LetId, Level, ParamId, ReductionId};

/// Type of an expression.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Type {
    /// A condition.
    Bool,
    /// Integers of indices, `int` parameters and `i64` fields; arithmetic wraps.
    I64,
    /// Words of `u64` fields; arithmetic wraps.
    U64,
    /// `real32` fields.
    F32,
    /// `real` fields and scalars.
    F64,
}

impl Type {
    /// Whether it is [`Type::I64`] or [`Type::U64`].
    pub fn is_integer(self) -> bool {
        matches!(self, Type::I64 | Type::U64)
    }

    /// Whether it is [`Type::F32`] or [`Type::F64`].
    pub fn is_real(self) -> bool {
        matches!(self, Type::F32 | Type::F64)
    }

    /// Its word in the language.
    pub fn name(self) -> &'static str {
        match self {
            Type::Bool => "condition",
            Type::I64 => "i64",
            Type::U64 => "u64",
            Type::F32 => "real32",
            Type::F64 => "real",
        }
    }
}

/// Index into [`Exprs`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ExprId(pub u32);

/// One node.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What it computes.
    pub kind: ExprKind,
    /// The type of its value.
    pub ty: Type,
    /// Where it was written.
    pub span: Span,
}

/// A read of a field near the point that is being computed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Access {
    /// The field.
    pub field: FieldId,
    /// Which of its levels.
    pub level: Level,
    /// Stored index of the read minus stored index of the point computed, per axis; 0 beyond the grid's axes.
    pub offset: [i32; AXES_MAX],
    /// Where it was first written.
    pub span: Span,
}

impl Access {
    /// The same read, wherever it was written.
    pub fn same_place(&self, other: &Access) -> bool {
        self.field == other.field && self.level == other.level && self.offset == other.offset
    }
}

/// What a node computes. Operands may be shared between nodes; evaluation has no effects, except that integer
/// division by zero and shifts by 64 or more end the program, so [`ExprKind::Select`], `And` and `Or` evaluate only
/// what they need.
#[derive(Clone, Copy, Debug)]
pub enum ExprKind {
    /// A real constant, rounded to f32 if the type says so.
    Real(f64),
    /// An [`Type::I64`] constant.
    Int(i64),
    /// A [`Type::U64`] constant.
    Word(u64),
    /// A condition's constant.
    Bool(bool),
    /// A parameter.
    Param(ParamId),
    /// A named scalar.
    Let(LetId),
    /// Last value of a reduction.
    Reduction(ReductionId),
    /// Whether a reduction has run: every comparison that mentions one is `Known(r) and …`.
    Known(ReductionId),
    /// Global stored index of the point along an axis; may be outside in boundary rules.
    Index(usize),
    /// Number of completed steps (in boundary rules: of the level's time).
    Step,
    /// `t` (in boundary rules: of the level's time).
    Time,
    /// A field's value.
    Access(Access),
    /// Conversion of the operand to this node's type: integers wrap among themselves, `as` otherwise.
    Cast(ExprId),
    /// One operand of this node's type.
    Unary(UnaryOp, ExprId),
    /// Two operands of this node's type.
    Binary(BinaryOp, ExprId, ExprId),
    /// `((a*a)*a)*…`, the exponent at least 1.
    Power(ExprId, u32),
    /// A function of real numbers, in f64 (`Abs`, `Sign`: any numeric type).
    Call(Call, ExprId),
    /// Two operands of one numeric type.
    Compare(CompareOp, ExprId, ExprId),
    /// Both; the right one is evaluated only if needed.
    And(ExprId, ExprId),
    /// Either; the right one is evaluated only if needed.
    Or(ExprId, ExprId),
    /// Condition, value if it holds, value otherwise; only one of the values is evaluated.
    Select(ExprId, ExprId, ExprId),
}

/// Operators with one operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UnaryOp {
    /// Minus; wraps.
    Neg,
    /// Of a condition.
    Not,
    /// Of an integer's bits.
    BitNot,
}

/// Operators with two operands of their result's type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BinaryOp {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Real quotient; real operands only.
    Div,
    /// Quotient rounded down; for reals `floor(a/b)`.
    FloorDiv,
    /// Rest that is never negative for a positive divisor; for integers `a - b*floor(a/b)`, for reals fmod, plus the
    /// divisor if negative.
    Mod,
    /// Smaller, −0 below +0; NaN if either is.
    Min,
    /// Larger, −0 below +0; NaN if either is.
    Max,
    /// Real power; [`Type::F64`] only.
    Pow,
    /// Bits of both; integers only.
    BitAnd,
    /// Bits of either; integers only.
    BitOr,
    /// Bits of one; integers only.
    BitXor,
    /// Shift left; integers only, the right operand too.
    Shl,
    /// Shift right, arithmetic for [`Type::I64`].
    Shr,
}

/// Functions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Call {
    /// e to the power.
    Exp,
    /// Natural logarithm.
    Log,
    /// Square root.
    Sqrt,
    /// Sine.
    Sin,
    /// Cosine.
    Cos,
    /// Tangent.
    Tan,
    /// Rounded down.
    Floor,
    /// Without sign; wraps for the smallest integer.
    Abs,
    /// −1, 0 or 1; 0 for both zeros, NaN for NaN.
    Sign,
}

/// Comparisons.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CompareOp {
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

/// All expressions of a program.
#[derive(Clone, Debug, Default)]
pub struct Exprs {
    nodes: Vec<Expr>,
}

impl Exprs {
    /// Adds a node; its operands are of this arena already, so ids grow from operands to users.
    pub fn add(&mut self, kind: ExprKind, ty: Type, span: Span) -> ExprId {
        let id = ExprId(u32::try_from(self.nodes.len()).expect("the types pass limits the number of nodes"));
        self.nodes.push(Expr { kind, ty, span });
        id
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// All nodes, operands before users.
    pub fn iter(&self) -> impl Iterator<Item = (ExprId, &Expr)> {
        self.nodes.iter().enumerate().map(|(i, expr)| (ExprId(i as u32), expr))
    }

    /// Calls `visit` on every node below and at `root` once, operands first.
    pub fn visit(&self, root: ExprId, mut visit: impl FnMut(ExprId, &Expr)) {
        let mut seen = std::collections::HashSet::new();
        let mut stack = vec![(root, Visit::Enter)];
        while let Some((id, phase)) = stack.pop() {
            match phase {
                Visit::Leave => visit(id, &self[id]),
                Visit::Enter if !seen.insert(id) => {}
                Visit::Enter => {
                    stack.push((id, Visit::Leave));
                    for operand in self[id].kind.operands().into_iter().flatten().rev() {
                        stack.push((operand, Visit::Enter));
                    }
                }
            }
        }
    }

    /// Every distinct access below and at `root`, in order of first appearance.
    pub fn accesses(&self, root: ExprId) -> Vec<Access> {
        let mut found: Vec<Access> = Vec::new();
        self.visit(root, |_, expr| {
            if let ExprKind::Access(access) = expr.kind
                && !found.iter().any(|other| other.same_place(&access))
            {
                found.push(access);
            }
        });
        found
    }
}

enum Visit {
    Enter,
    Leave,
}

impl std::ops::Index<ExprId> for Exprs {
    type Output = Expr;

    fn index(&self, id: ExprId) -> &Expr {
        &self.nodes[id.0 as usize]
    }
}

impl ExprKind {
    /// Its operands in order of evaluation.
    pub fn operands(&self) -> [Option<ExprId>; 3] {
        match *self {
            ExprKind::Real(_)
            | ExprKind::Int(_)
            | ExprKind::Word(_)
            | ExprKind::Bool(_)
            | ExprKind::Param(_)
            | ExprKind::Let(_)
            | ExprKind::Reduction(_)
            | ExprKind::Known(_)
            | ExprKind::Index(_)
            | ExprKind::Step
            | ExprKind::Time
            | ExprKind::Access(_) => [None; 3],
            ExprKind::Cast(a) | ExprKind::Unary(_, a) | ExprKind::Power(a, _) | ExprKind::Call(_, a) => {
                [Some(a), None, None]
            }
            ExprKind::Binary(_, a, b)
            | ExprKind::Compare(_, a, b)
            | ExprKind::And(a, b)
            | ExprKind::Or(a, b) => [Some(a), Some(b), None],
            ExprKind::Select(a, b, c) => [Some(a), Some(b), Some(c)],
        }
    }
}
