//! The tree of a file, as written. Never knows what a name means.

use rma_source::Span;

use super::SyntaxError;

/// Deepest nesting of an expression; with functions inlined see `types::DEPTH_MAX`.
pub const DEPTH_MAX: u32 = 200;

/// A file: its statements in order.
pub type File = Vec<Statement>;

/// A name and where it stands.
#[derive(Clone, PartialEq, Debug)]
pub struct Name {
    /// The letters.
    pub text: String,
    /// The place.
    pub span: Span,
}

/// A statement and where it stands.
#[derive(Clone, PartialEq, Debug)]
pub struct Statement {
    /// What it says.
    pub kind: StatementKind,
    /// The place.
    pub span: Span,
}

/// The statements of the language.
#[derive(Clone, PartialEq, Debug)]
pub enum StatementKind {
    /// `program NAME`
    Program(Name),
    /// `param NAME : TYPE = VALUE in LO..HI "doc"`
    Param {
        /// The name.
        name: Name,
        /// `int` or `real`.
        ty: Name,
        /// Value without `--set`.
        default: Option<Expr>,
        /// Allowed range.
        range: Option<(Option<Expr>, Option<Expr>)>,
        /// What it means.
        doc: Option<String>,
    },
    /// `let NAME = VALUE`
    Let {
        /// The name.
        name: Name,
        /// The value.
        value: Expr,
    },
    /// `grid NAME(i: n, …) x = …, …`
    Grid {
        /// The name.
        name: Name,
        /// Index names and sizes.
        axes: Vec<(Name, Expr)>,
        /// Coordinates.
        coordinates: Vec<(Name, Expr)>,
    },
    /// `field NAME : TYPE on GRID at (…) levels N | constant`
    Field {
        /// The name.
        name: Name,
        /// `real`, `real32`, `u64` or `i64`.
        ty: Option<Name>,
        /// The grid.
        grid: Name,
        /// Where its points are.
        at: Option<Vec<Expr>>,
        /// How many levels.
        levels: Option<Levels>,
    },
    /// `init NAME[.LEVEL] = VALUE | file "…"`
    Init {
        /// The field.
        field: Name,
        /// `prev`, if one level is meant.
        level: Option<Name>,
        /// The value.
        value: InitValue,
    },
    /// `boundary NAME: SIDES = RULE; …`
    Boundary {
        /// The field.
        field: Name,
        /// The rules.
        rules: Vec<Rule>,
    },
    /// `function NAME(…) = VALUE`
    Function {
        /// The name.
        name: Name,
        /// Names of the arguments.
        params: Vec<Name>,
        /// The value.
        body: Expr,
    },
    /// `update …`
    Update(Update),
    /// `together { … }`
    Together(Vec<Update>),
    /// `source at (…): FIELD += VALUE`
    Source {
        /// Coordinates.
        at: Vec<Expr>,
        /// The field.
        field: Name,
        /// What is added.
        value: Expr,
    },
    /// `reduce NAME = OP VALUE every N`
    Reduce {
        /// The name.
        name: Name,
        /// `max`, `min`, `sum` or `norm2`.
        op: Name,
        /// The value at a point.
        value: Expr,
        /// Interval.
        every: Option<Expr>,
    },
    /// `until CONDITION`
    Until(Expr),
    /// `output FIELDS every N as FORMATS`
    Output {
        /// The fields.
        fields: Vec<Name>,
        /// Interval.
        every: Option<Expr>,
        /// File forms.
        formats: Vec<Format>,
    },
    /// `print ITEMS every N`
    Print {
        /// What.
        items: Vec<Expr>,
        /// Interval.
        every: Option<Expr>,
    },
    /// `probe at (…) of FIELD every N as FORMAT "name"`
    Probe {
        /// Coordinates.
        at: Vec<Expr>,
        /// The field.
        field: Name,
        /// Interval.
        every: Option<Expr>,
        /// File form.
        format: Option<Format>,
        /// File name.
        file: Option<String>,
    },
    /// `checkpoint every N`
    Checkpoint {
        /// Interval.
        every: Expr,
    },
    /// `decompose rows | blocks | (px, py)`
    Decompose(Decompose),
    /// `epoch STYLE` or `epoch STYLE(MODE)`
    Epoch {
        /// The style.
        style: Name,
        /// Its mode.
        mode: Option<Name>,
    },
    /// `overlap core | none`
    Overlap(Name),
    /// `block time N`
    Block {
        /// `time`.
        what: Name,
        /// Depth.
        depth: Expr,
    },
}

/// `levels N` or `constant`.
#[derive(Clone, PartialEq, Debug)]
pub enum Levels {
    /// A number of levels.
    Count(Expr),
    /// Set once.
    Constant(Span),
}

/// What a field starts as.
#[derive(Clone, PartialEq, Debug)]
pub enum InitValue {
    /// An expression.
    Value(Expr),
    /// A file.
    File(String, Span),
}

/// `SIDES = RULE`
#[derive(Clone, PartialEq, Debug)]
pub struct Rule {
    /// `west`, …, or `all`.
    pub sides: Vec<Name>,
    /// What holds there.
    pub value: RuleValue,
    /// The place.
    pub span: Span,
}

/// What holds at a side.
#[derive(Clone, PartialEq, Debug)]
pub enum RuleValue {
    /// `neumann EXPR`
    Neumann(Expr),
    /// A value; also `mirror`, `periodic` and `sponge(…)`, which look like one.
    Value(Expr),
}

/// `update [COLOUR] TARGET = VALUE [where CONDITION]`
#[derive(Clone, PartialEq, Debug)]
pub struct Update {
    /// `red` or `black`.
    pub colour: Option<Name>,
    /// The field.
    pub field: Name,
    /// A level, which should not be there.
    pub level: Option<Name>,
    /// Indices, which should be the point itself.
    pub indices: Option<Vec<Expr>>,
    /// The place of field, level and indices.
    pub target: Span,
    /// The value.
    pub value: Expr,
    /// Where it holds.
    pub condition: Option<Expr>,
    /// The place.
    pub span: Span,
}

/// `NAME` or `NAME(OPTION, …)`
#[derive(Clone, PartialEq, Debug)]
pub struct Format {
    /// `png`, …
    pub name: Name,
    /// Options.
    pub options: Vec<Name>,
}

/// How the grid is split.
#[derive(Clone, PartialEq, Debug)]
pub enum Decompose {
    /// A word.
    Named(Name),
    /// Parts per axis.
    Parts(Vec<Expr>),
}

/// An expression, where it stands and how deeply it is nested.
#[derive(Clone, PartialEq, Debug)]
pub struct Expr {
    /// What it says.
    pub kind: Box<ExprKind>,
    /// The place.
    pub span: Span,
    /// Levels of nesting; a leaf has 1.
    pub depth: u32,
}

/// The forms of expressions.
#[derive(Clone, PartialEq, Debug)]
pub enum ExprKind {
    /// A whole number.
    Int(u64),
    /// A number with a point or exponent.
    Real(f64),
    /// `NAME`, `NAME.LEVEL`, `NAME[…]`, `NAME.LEVEL[…]`
    Place {
        /// The name.
        name: Name,
        /// `next` or `prev`.
        level: Option<Name>,
        /// Indices.
        indices: Option<Vec<Expr>>,
    },
    /// `NAME(…)`
    Call {
        /// The function.
        name: Name,
        /// Its arguments.
        args: Vec<Expr>,
    },
    /// An operator with one operand.
    Unary(UnaryOp, Expr),
    /// An operator with two operands.
    Binary(BinaryOp, Expr, Expr),
    /// `if … then … else …`
    If(Expr, Expr, Expr),
    /// `|…|`
    Abs(Expr),
    /// `(…)`
    Paren(Expr),
}

/// Operators with one operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnaryOp {
    /// `-`
    Neg,
    /// `+`
    Plus,
    /// `not`
    Not,
    /// `bnot`
    BitNot,
}

/// Operators with two operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each is the operator that it is named for")]
pub enum BinaryOp {
    Or,
    And,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    BitOr,
    BitXor,
    BitAnd,
    Shl,
    Shr,
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    FloorDiv,
    Pow,
}

impl BinaryOp {
    /// As written.
    pub fn text(self) -> &'static str {
        match self {
            BinaryOp::Or => "or",
            BinaryOp::And => "and",
            BinaryOp::Eq => "==",
            BinaryOp::Ne => "!=",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Gt => ">",
            BinaryOp::Ge => ">=",
            BinaryOp::BitOr => "bor",
            BinaryOp::BitXor => "xor",
            BinaryOp::BitAnd => "band",
            BinaryOp::Shl => "<<",
            BinaryOp::Shr => ">>",
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::Mod => "mod",
            BinaryOp::FloorDiv => "div",
            BinaryOp::Pow => "^",
        }
    }
}

impl Expr {
    /// A node; an error if it is nested too deeply, so that no later pass can run out of stack.
    pub fn new(kind: ExprKind, span: Span) -> Result<Expr, SyntaxError> {
        let depth = 1 + kind.operands().map(|operand| operand.depth).max().unwrap_or(0);
        match depth <= DEPTH_MAX {
            true => Ok(Expr { kind: Box::new(kind), span, depth }),
            false => Err(SyntaxError::TooDeep(span)),
        }
    }

    /// The expression without parentheses around it.
    pub fn bare(&self) -> &Expr {
        let mut expr = self;
        while let ExprKind::Paren(inner) = &*expr.kind {
            expr = inner;
        }
        expr
    }
}

impl ExprKind {
    /// Direct operands in order.
    pub fn operands(&self) -> impl Iterator<Item = &Expr> {
        let (few, many): ([Option<&Expr>; 3], &[Expr]) = match self {
            ExprKind::Int(_) | ExprKind::Real(_) => ([None; 3], &[]),
            ExprKind::Place { indices, .. } => ([None; 3], indices.as_deref().unwrap_or(&[])),
            ExprKind::Call { args, .. } => ([None; 3], args),
            ExprKind::Unary(_, a) | ExprKind::Abs(a) | ExprKind::Paren(a) => ([Some(a), None, None], &[]),
            ExprKind::Binary(_, a, b) => ([Some(a), Some(b), None], &[]),
            ExprKind::If(a, b, c) => ([Some(a), Some(b), Some(c)], &[]),
        };
        few.into_iter().flatten().chain(many)
    }
}
