//! The one typed representation of a program, between the passes and the back ends.
//!
//! Every name is an id, every operand has the type that its operator works in (conversions are explicit
//! [`ExprKind::Cast`] nodes), functions and coordinates are inlined, sugar is gone. Parameters stay symbolic, so that
//! `--set` needs no new compilation.
//!
//! # What one step does
//!
//! Let `s` be the number of completed steps and `t` the time (see [`TimeRule`]).
//!
//! 1. [`LetKind::PerStep`] scalars are evaluated (they use reductions).
//! 2. For each field with two or more levels, `Next` starts as a copy of `Now`; its fixed points take their rule's
//!    value at the new time (`s + 1`). Fields with one level keep their fixed points' values of time `s`.
//! 3. [`Program::statements`] run in order over the points of their field that no boundary fixes.
//! 4. [`Program::sources`] add to the level that the step produces, `t` still being the time at the start.
//! 5. Sponges act (on `Next`, and on `Now` for fields with three levels), one multiplication per side in the order of
//!    [`Side::ALL`]; then fixed points of the produced level are set at the new time.
//! 6. Reductions that are due (`(s + 1) % every == 0`) run in order of declaration, over all points of their grid
//!    place; in them `Next` is the produced value and `Now` the one before.
//! 7. Levels shift: `Prev` takes `Now`, `Now` takes `Next`. Now `s + 1` steps are complete.
//! 8. Prints, probes and outputs that are due act, then `until` is tested.
//!
//! At the end each print without `every` acts once and each output acts unless it just did.
//! Before step 1 every level takes its `init` (fixed points their rule's value at that level's time), and reductions
//! that a [`LetKind::PerStep`] scalar uses run once with `Next` read as `Now`.
//!
//! # Reading outside
//!
//! An access outside the stored points is found axis by axis, first axis first, by the rule of the side it crosses:
//! see [`SideRule`]. To fill ghost points, fill the last axis' sides first and the first axis' sides last, each over
//! the ghost range of the axes already filled.
//!
//! Never holds text that a pass still has to look up, and never touches files.

mod eval;
mod expr;
mod plan;
mod print;
mod verify;

use rma_source::Span;

pub use eval::{
    Arithmetic, Environment, EvalError, POINTS_MAX, Scalars, Setting, Value, apply_binary, apply_call,
    apply_unary, cast, compare, evaluate, maximum, minimum, powi,
};
pub use expr::{Access, BinaryOp, Call, CompareOp, Expr, ExprId, ExprKind, Exprs, Type, UnaryOp};
pub use plan::{
    Decompose, Epoch, Exchange, HaloCopy, LockMode, Overlap, Plan, Planned, PscwMode, Shape, StepPart,
    TimeBlock,
};
pub use verify::verify;

/// Largest number of axes of a grid.
pub const AXES_MAX: usize = 3;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub struct $name(pub u32);

        impl $name {
            /// The position in its table.
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// The id of a position.
            pub fn new(index: usize) -> $name {
                $name(u32::try_from(index).expect("tables are far smaller than 2^32"))
            }
        }
    };
}

id!(
    /// Index into [`Program::params`].
    ParamId
);
id!(
    /// Index into [`Program::lets`].
    LetId
);
id!(
    /// Index into [`Program::grids`].
    GridId
);
id!(
    /// Index into [`Program::fields`].
    FieldId
);
id!(
    /// Index into [`Program::reductions`].
    ReductionId
);

/// The last pass that has run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stage {
    /// Names are ids and every expression is typed.
    Typed,
    /// Every access that leaves the grid has a rule; footprints and halos are filled in.
    Shaped,
    /// The plan is filled in.
    Planned,
}

/// A whole program.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// The last pass that has run.
    pub stage: Stage,
    /// All expressions.
    pub exprs: Exprs,
    /// Parameters in order of declaration.
    pub params: Vec<Param>,
    /// Named scalars in an order in which each uses earlier ones only.
    pub lets: Vec<Let>,
    /// Grids in order of declaration.
    pub grids: Vec<Grid>,
    /// Fields in order of declaration.
    pub fields: Vec<Field>,
    /// What a step computes, in order.
    pub statements: Vec<Statement>,
    /// Point sources in order.
    pub sources: Vec<Source>,
    /// Reductions in order of declaration.
    pub reductions: Vec<Reduction>,
    /// The end of the run; a [`Type::Bool`] scalar over step, time, parameters, lets and reductions.
    pub until: ExprId,
    /// Pictures and arrays.
    pub outputs: Vec<Output>,
    /// Lines of numbers.
    pub prints: Vec<Print>,
    /// Time series at points.
    pub probes: Vec<Probe>,
    /// Checkpoints, if asked for.
    pub checkpoint: Option<Checkpoint>,
    /// How `t` is formed.
    pub time: Time,
    /// What the schedule pass decided.
    pub plan: Plan,
}

/// A number that the user may set at start.
#[derive(Clone, Debug)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// [`Type::I64`] or [`Type::F64`].
    pub ty: Type,
    /// Value without `--set`; a static scalar over earlier parameters and lets.
    pub default: ExprId,
    /// Smallest value allowed, itself allowed.
    pub min: Option<ExprId>,
    /// Largest value allowed, itself allowed.
    pub max: Option<ExprId>,
    /// What it means, in the author's words; may be empty.
    pub doc: String,
    /// The declaration.
    pub span: Span,
}

/// When a named scalar is evaluated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LetKind {
    /// Once at start: it uses parameters and static lets only.
    Static,
    /// At the start of each step: it uses reductions.
    PerStep,
}

/// A named scalar. Lets that use `t` or `step` are inlined and do not appear here.
#[derive(Clone, Debug)]
pub struct Let {
    /// Its name.
    pub name: String,
    /// [`Type::I64`], [`Type::U64`] (from an integer reduction), [`Type::F64`] or [`Type::Bool`].
    pub ty: Type,
    /// Its value.
    pub value: ExprId,
    /// When it is evaluated.
    pub kind: LetKind,
    /// The declaration.
    pub span: Span,
}

/// A grid: its axes, first axis slowest in storage and digests.
#[derive(Clone, Debug)]
pub struct Grid {
    /// Its name.
    pub name: String,
    /// One to three axes.
    pub axes: Vec<Axis>,
    /// The declaration.
    pub span: Span,
}

/// One axis of a grid.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Name of the index, such as `i`.
    pub index: String,
    /// Number of points; a static [`Type::I64`] scalar.
    pub len: ExprId,
    /// Name of the coordinate, if one is declared.
    pub coordinate: Option<String>,
    /// The coordinate over [`ExprKind::Index`], for whole points, as f64; the index itself if none is declared.
    pub position: ExprId,
}

/// Where along an axis a field's points are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// At `i`.
    Whole,
    /// At `i+1/2`: one point fewer unless the axis is periodic.
    Half,
}

/// What a field is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldKind {
    /// Set once by `init`, one level.
    Constant,
    /// Updated by steps.
    Evolving,
}

/// A value per grid point.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// [`Type::F64`], [`Type::F32`], [`Type::U64`] or [`Type::I64`].
    pub ty: Type,
    /// Its grid.
    pub grid: GridId,
    /// One per axis.
    pub places: Vec<Place>,
    /// Constant or updated.
    pub kind: FieldKind,
    /// Kept levels: 1 (`Now`), 2 (with `Next`) or 3 (with `Prev`).
    pub levels: u32,
    /// Number of stored points per axis; static [`Type::I64`] scalars.
    pub lens: Vec<ExprId>,
    /// The coordinate of the field's own points per axis, over [`ExprKind::Index`]; [`Type::F64`].
    pub positions: Vec<ExprId>,
    /// Initial values by level, [`Level::Now`] first, then [`Level::Prev`] if it is kept.
    pub init: Vec<(Level, Init)>,
    /// Rules, one per side of the grid, in the order of [`Side::ALL`].
    pub sides: Vec<SideRule>,
    /// The order in which the sides' rules were written, earlier first. At a corner that two sides fix, the later
    /// one wins.
    pub written: Vec<Side>,
    /// Filled by the shape pass: the most that any access of any statement or reduction reaches, one per axis.
    pub halo: Vec<Extent>,
    /// The declaration.
    pub span: Span,
}

impl Field {
    /// The rule of a side.
    pub fn rule(&self, side: Side) -> &SideRule {
        &self.sides[side.position()]
    }

    /// The sides whose outermost points are fixed, in the order written.
    pub fn fixed_sides(&self) -> impl Iterator<Item = (Side, ExprId)> + '_ {
        self.written.iter().filter_map(|&side| match self.rule(side) {
            SideRule::Fixed(value) => Some((side, *value)),
            _ => None,
        })
    }

    /// Whether the outermost points of a side are fixed.
    pub fn is_fixed(&self, side: Side) -> bool {
        matches!(self.rule(side), SideRule::Fixed(_))
    }

    /// Whether an axis is periodic.
    pub fn is_periodic(&self, axis: usize) -> bool {
        matches!(self.rule(Side { axis, end: End::Low }), SideRule::Periodic)
    }
}

/// One of the two ends of an axis.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum End {
    /// Index 0.
    Low,
    /// The last index.
    High,
}

/// A side of a grid.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Side {
    /// The axis, from 0.
    pub axis: usize,
    /// Which end.
    pub end: End,
}

impl Side {
    /// West, east, south, north, bottom, top.
    pub const ALL: [Side; 2 * AXES_MAX] = [
        Side { axis: 0, end: End::Low },
        Side { axis: 0, end: End::High },
        Side { axis: 1, end: End::Low },
        Side { axis: 1, end: End::High },
        Side { axis: 2, end: End::Low },
        Side { axis: 2, end: End::High },
    ];

    /// The sides of a grid with this many axes.
    pub fn of(n_axes: usize) -> &'static [Side] {
        &Side::ALL[..2 * n_axes]
    }

    /// Its place in [`Side::ALL`].
    pub fn position(self) -> usize {
        2 * self.axis + usize::from(self.end == End::High)
    }

    /// Its word in the language.
    pub fn name(self) -> &'static str {
        ["west", "east", "south", "north", "bottom", "top"][self.position()]
    }
}

/// What lies at and beyond a side. In the formulas `0` is the outermost stored point, `-k` the k-th outside; at the
/// high end count from the other end.
#[derive(Clone, Debug)]
pub enum SideRule {
    /// No rule: nothing reads across.
    None,
    /// The outermost points are not updated and hold the expression (of the field's type, over indices, time and
    /// scalars) at the level's time; outside the same expression is read at the position outside.
    Fixed(ExprId),
    /// `u[-k] = u[k]`.
    Mirror,
    /// `u[-k] = u[0] + (k*spacing)*slope` in the field's type, `slope` at the point of `u[0]` and the level's time.
    Neumann {
        /// Coordinate at index 1 minus coordinate at index 0.
        spacing: ExprId,
        /// Derivative along the outward normal.
        slope: ExprId,
    },
    /// `u[-k] = u[n-k]`; both ends of an axis.
    Periodic,
    /// At distance `d < width` from the side the kept levels are multiplied by `exp(-(strength*(width-d))^2)` after
    /// each step; outside is 0.
    Sponge {
        /// In points; a static [`Type::I64`] scalar.
        width: ExprId,
        /// A static [`Type::F64`] scalar.
        strength: ExprId,
    },
}

/// How far accesses reach along an axis.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Extent {
    /// Towards index 0.
    pub lo: u32,
    /// Towards the last index.
    pub hi: u32,
}

impl Extent {
    /// The smallest extent that holds both.
    pub fn max(self, other: Extent) -> Extent {
        Extent { lo: self.lo.max(other.lo), hi: self.hi.max(other.hi) }
    }

    /// Holds an offset.
    pub fn with(self, offset: i32) -> Extent {
        match offset < 0 {
            true => Extent { lo: self.lo.max(offset.unsigned_abs()), ..self },
            false => Extent { hi: self.hi.max(offset.unsigned_abs()), ..self },
        }
    }
}

/// Which of a field's kept values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Level {
    /// One step before `Now`.
    Prev,
    /// The value at the start of the step; for fields with one level the value as it stands.
    Now,
    /// What this step produces.
    Next,
}

impl Level {
    /// What the level adds to the number of completed steps to give its time.
    pub fn shift(self) -> i64 {
        match self {
            Level::Prev => -1,
            Level::Now => 0,
            Level::Next => 1,
        }
    }
}

/// Where a first value comes from.
#[derive(Clone, Debug)]
pub enum Init {
    /// All zero.
    Zero,
    /// An expression of the field's type over indices, time and scalars.
    Value(ExprId),
    /// A `.npy` file whose shape is that of the field.
    File(String),
}

/// One line, or one group, of a step.
#[derive(Clone, Debug)]
pub enum Statement {
    /// A single update.
    Update(Update),
    /// Updates that read the values from before the group, wherever they read `Now` of a field with one level.
    Together(Vec<Update>),
}

impl Statement {
    /// The updates in order.
    pub fn updates(&self) -> &[Update] {
        match self {
            Statement::Update(update) => std::slice::from_ref(update),
            Statement::Together(updates) => updates,
        }
    }
}

/// The parity of the sum of the field's stored global indices.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Colour {
    /// Even.
    Red,
    /// Odd.
    Black,
}

/// `u = value` at every point of the field that no boundary fixes, of the colour if there is one, where the condition
/// holds if there is one; elsewhere the field keeps its value.
#[derive(Clone, Debug)]
pub struct Update {
    /// What is written: `Next` if the field has two or more levels, else `Now` in place.
    pub field: FieldId,
    /// Half of the points only.
    pub colour: Option<Colour>,
    /// Of the field's type.
    pub value: ExprId,
    /// A [`Type::Bool`] expression.
    pub condition: Option<ExprId>,
    /// Filled by the shape pass: every distinct access of value and condition, in order of first appearance.
    pub reads: Vec<Access>,
    /// The left side.
    pub target: Span,
    /// The statement.
    pub span: Span,
}

/// Adds to the produced level of one point per step.
#[derive(Clone, Debug)]
pub struct Source {
    /// The field.
    pub field: FieldId,
    /// One static [`Type::F64`] scalar per axis: the coordinate to be nearest to, ties to the smaller index.
    pub position: Vec<ExprId>,
    /// Of the field's type; over indices, time, scalars and accesses.
    pub value: ExprId,
    /// The statement.
    pub span: Span,
}

/// How values are combined.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReduceOp {
    /// Largest, −0 below +0.
    Max,
    /// Smallest, −0 below +0.
    Min,
    /// Exact sum rounded once to f64; an exact sum of zero is +0. Wraps for integers.
    Sum,
    /// Square root of the exact sum of the squares, each square rounded to the operand's type first.
    Norm2,
}

/// One number from all points.
#[derive(Clone, Debug)]
pub struct Reduction {
    /// Its name.
    pub name: String,
    /// How values are combined.
    pub op: ReduceOp,
    /// The value at a point, of any numeric type; [`ReduceOp::Norm2`] has a real one.
    pub value: ExprId,
    /// Type of the result: that of an integer operand, else [`Type::F64`].
    pub ty: Type,
    /// A field whose points it runs over, fixed ones included (the first that it reads).
    pub over: FieldId,
    /// Runs at multiples of this number of steps; a static [`Type::I64`] scalar.
    pub every: ExprId,
    /// A per-step let uses it, so it also runs once on the initial data before step 1.
    pub initially: Initially,
    /// Filled by the shape pass, as in [`Update::reads`].
    pub reads: Vec<Access>,
    /// The statement.
    pub span: Span,
}

/// Whether a reduction runs before step 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Initially {
    /// It first runs when it is first due.
    Wait,
    /// It runs once on the initial data.
    Run,
}

/// When something acts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// After each step that is a multiple; a static [`Type::I64`] scalar.
    Every(ExprId),
    /// Once, after the last step.
    AtEnd,
}

/// A file format with its options.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Format {
    /// A picture per time.
    Png {
        /// Name of the colour map.
        colormap: String,
    },
    /// One moving picture.
    Gif {
        /// Name of the colour map.
        colormap: String,
    },
    /// A NumPy array.
    Npy,
    /// A legacy VTK file.
    Vtk,
    /// Comma-separated text.
    Csv,
}

/// Writes fields. Also acts after the last step.
#[derive(Clone, Debug)]
pub struct Output {
    /// The fields.
    pub fields: Vec<FieldId>,
    /// When.
    pub when: When,
    /// In each of these forms.
    pub formats: Vec<Format>,
    /// The statement.
    pub span: Span,
}

/// Prints `label=value` pairs on one line.
#[derive(Clone, Debug)]
pub struct Print {
    /// What, in order.
    pub items: Vec<PrintItem>,
    /// When.
    pub when: When,
    /// The statement.
    pub span: Span,
}

/// One pair of a print line.
#[derive(Clone, Debug)]
pub struct PrintItem {
    /// As written in the source.
    pub label: String,
    /// A scalar over step, time, parameters, lets and reductions.
    pub value: ExprId,
    /// Reductions that it mentions; if one has never run, `-` is printed.
    pub needs: Vec<ReductionId>,
}

/// Follows one point.
#[derive(Clone, Debug)]
pub struct Probe {
    /// The field.
    pub field: FieldId,
    /// As in [`Source::position`].
    pub position: Vec<ExprId>,
    /// When.
    pub when: When,
    /// The file's form.
    pub format: Format,
    /// The file's name without extension.
    pub name: String,
    /// The statement.
    pub span: Span,
}

/// Writes a state to restart from.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// At multiples of this number of steps; a static [`Type::I64`] scalar.
    pub every: ExprId,
    /// The statement.
    pub span: Span,
}

/// How `t` is formed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeRule {
    /// The program does not use `t`.
    Unused,
    /// `step as f64 * dt`, one product.
    Product,
    /// The running sum of the steps' `dt`, which depends on a reduction.
    RunningSum,
}

/// Time and its increment.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    /// `dt` as [`Type::F64`], if the program declares it.
    pub dt: Option<ExprId>,
    /// How `t` is formed.
    pub rule: TimeRule,
}
