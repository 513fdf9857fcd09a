//! One expression at a time: tree to typed nodes. Never keeps state between statements beyond the arena.

mod arithmetic;
mod condition;
mod place;

use std::collections::HashSet;

use rma_source::{Applicability, Span};

use super::{DEPTH_MAX, EXPANDED_NODES_MAX, Typer};
use crate::ir::{AXES_MAX, Call, ExprId, ExprKind, Type, UnaryOp};
use crate::messages::Code;
use crate::resolve::Symbol;
use crate::syntax::ast::{self, Expr, Name};

/// Something was reported and there is no value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Poison;

/// Deepest walk through functions' bodies in search of fields; parentheses count.
const SCAN_DEPTH_MAX: u32 = 2000;

/// Work that one statement may cause.
const FUEL_MAX: u32 = 2_000_000;

/// Whether an expression may read fields.
#[derive(Clone, Copy)]
pub(super) enum Fields<'c> {
    /// Yes; `next` only of these.
    Allowed(&'c HashSet<usize>),
    /// No, in what is named.
    Refused(&'static str),
    /// No, and coordinates are not known yet either.
    Coordinate,
}

/// Where an expression is evaluated.
#[derive(Clone, Copy)]
pub(super) struct Context<'c> {
    grid: Option<usize>,
    /// The point's place on each axis in halves: 0 or 1.
    halves: [i32; AXES_MAX],
    /// Displacement in halves, by indices of function arguments.
    shift: [i32; AXES_MAX],
    scope: Option<&'c Scope<'c>>,
    fields: Fields<'c>,
    /// The type that real and word leaves are brought to: that of the fields of the expression.
    width: Option<Type>,
    /// One index that stands for a constant.
    fixed: Option<(usize, ExprId)>,
}

/// Arguments of the function whose body is lowered.
struct Scope<'c> {
    names: &'c [Name],
    args: &'c [Expr],
    caller: &'c Context<'c>,
}

impl<'c> Context<'c> {
    /// A number that is the same everywhere.
    pub(super) fn scalar() -> Context<'c> {
        Context {
            grid: None,
            halves: [0; AXES_MAX],
            shift: [0; AXES_MAX],
            scope: None,
            fields: Fields::Refused("a scalar"),
            width: None,
            fixed: None,
        }
    }

    /// A value at a point.
    pub(super) fn point(grid: Option<usize>, halves: [i32; AXES_MAX], fields: Fields<'c>) -> Context<'c> {
        Context { grid, halves, fields, ..Context::scalar() }
    }

    fn argument(&self, name: &str) -> Option<(&'c Expr, &'c Context<'c>)> {
        let scope = self.scope?;
        let i = scope.names.iter().position(|other| other.text == name)?;
        scope.args.get(i).map(|arg| (arg, scope.caller))
    }
}

/// Field types in the arithmetic of one expression.
#[derive(Default)]
struct Found {
    real: Option<Span>,
    short: Option<Span>,
    word: Option<Span>,
    integer: Option<Span>,
}

impl Typer<'_, '_> {
    /// A whole expression, brought to a type if one is given.
    pub(super) fn root(
        &mut self,
        expr: &Expr,
        context: &Context<'_>,
        target: Option<Type>,
    ) -> Result<ExprId, Poison> {
        self.fuel = FUEL_MAX;
        let width = self.width(&[expr], context)?;
        let width = match (width, target) {
            (None, Some(ty @ (Type::F32 | Type::U64))) => Some(ty),
            (width, _) => width,
        };
        let id = self.lower(expr, &Context { width, ..*context })?;
        match target {
            Some(ty) => self.store(id, ty, expr),
            None => Ok(id),
        }
    }

    /// A whole condition.
    pub(super) fn condition_root(&mut self, expr: &Expr, context: &Context<'_>) -> Result<ExprId, Poison> {
        self.fuel = FUEL_MAX;
        self.condition(expr, context)
    }

    /// An integer that is the same everywhere.
    pub(super) fn integer(&mut self, expr: &Expr, context: &Context<'_>) -> Result<ExprId, Poison> {
        self.root(expr, context, Some(Type::I64))
    }

    /// Brings a value to the type of what holds it.
    fn store(&mut self, id: ExprId, ty: Type, written: &Expr) -> Result<ExprId, Poison> {
        let from = self.program.exprs[id].ty;
        match (from, ty) {
            _ if from == ty => Ok(id),
            (Type::Bool, _) => Err(self.not_a_number(written.span)),
            (Type::F32 | Type::F64, Type::I64 | Type::U64) => {
                let division = find_division(written);
                let diagnostic = Code::IntegerReal
                    .error("a whole number is needed here, and this is a real number")
                    .label(written.span, "real")
                    .note("`/` is always real division, and numbers with a point are real");
                Err(self.report(match division {
                    Some((span, a, b)) => {
                        let text = format!("{} div {}", &self.text[a.range()], &self.text[b.range()]);
                        diagnostic.suggest(
                            "`div` divides whole numbers, rounding down",
                            span,
                            text,
                            Applicability::Unsafe,
                        )
                    }
                    None => diagnostic.help("write a whole number, or round with parameters of type `int`"),
                }))
            }
            (Type::I64, Type::U64) => self.cast(id, ty),
            (Type::U64, Type::I64) => Err(self.mixed_words(written.span, written.span)),
            _ => self.cast(id, ty),
        }
    }

    fn not_a_number(&mut self, span: Span) -> Poison {
        self.report(
            Code::TypeMismatch
                .error("a number is expected, and this is a condition")
                .label(span, "either true or false")
                .note("conditions stand after `if`, `where`, `until`, `and`, `or` and `not`")
                .help("write `if … then 1 else 0` to make a number of it"),
        )
    }

    fn mixed_words(&mut self, a: Span, b: Span) -> Poison {
        let mut diagnostic = Code::TypeMismatch.error("u64 and i64 cannot be mixed").label(a, "one of them");
        if a != b {
            diagnostic = diagnostic.label(b, "the other");
        }
        self.report(
            diagnostic
                .note("there is no whole type that holds both ranges")
                .help("declare both fields with the same type"),
        )
    }

    /// Adds a node, within limits.
    pub(super) fn node(&mut self, kind: ExprKind, ty: Type, span: Span) -> Result<ExprId, Poison> {
        let (mut size, mut depth) = (1u64, 1u32);
        for operand in kind.operands().into_iter().flatten() {
            let (below_size, below_depth) = self.measures[operand.0 as usize];
            size = size.saturating_add(below_size);
            depth = depth.max(1 + below_depth);
        }
        if EXPANDED_NODES_MAX < size || DEPTH_MAX < depth {
            return Err(self.too_large(span));
        }
        self.measures.push((size, depth));
        Ok(self.program.exprs.add(kind, ty, span))
    }

    fn too_large(&mut self, span: Span) -> Poison {
        self.report(
            Code::TooLarge
                .error("this expression is too large once its functions are written out")
                .label(span, "here")
                .note(format!("the limits are {EXPANDED_NODES_MAX} terms and {DEPTH_MAX} levels"))
                .help("compute part of it in a field of its own"),
        )
    }

    /// Gives the next expression its share of work.
    pub(super) fn refuel(&mut self) {
        self.fuel = FUEL_MAX;
    }

    fn burn(&mut self, span: Span) -> Result<(), Poison> {
        match self.fuel.checked_sub(1) {
            Some(left) => {
                self.fuel = left;
                Ok(())
            }
            None => Err(self.too_large(span)),
        }
    }

    /// Converts a node; literals are converted in place.
    pub(super) fn cast(&mut self, id: ExprId, ty: Type) -> Result<ExprId, Poison> {
        let expr = &self.program.exprs[id];
        let (from, span) = (expr.ty, expr.span);
        match (expr.kind, ty) {
            _ if from == ty => Ok(id),
            (_, Type::Bool) => Err(self.not_a_condition(span)),
            (ExprKind::Bool(_), _) => Err(self.not_a_number(span)),
            (ExprKind::Int(n), Type::F64) => self.node(ExprKind::Real(n as f64), ty, span),
            (ExprKind::Int(n), Type::F32) => self.node(ExprKind::Real(f64::from(n as f32)), ty, span),
            (ExprKind::Int(n), Type::U64) => self.node(ExprKind::Word(n as u64), ty, span),
            (ExprKind::Real(x), Type::F32) => self.node(ExprKind::Real(f64::from(x as f32)), ty, span),
            _ if from == Type::Bool => Err(self.not_a_number(span)),
            _ => self.node(ExprKind::Cast(id), ty, span),
        }
    }

    /// A scalar in the type that its expression is computed in.
    fn leaf(&mut self, id: ExprId, context: &Context<'_>) -> Result<ExprId, Poison> {
        match (self.program.exprs[id].ty, context.width) {
            (Type::F64, Some(Type::F32)) => self.cast(id, Type::F32),
            (Type::I64, Some(Type::U64)) => self.cast(id, Type::U64),
            _ => Ok(id),
        }
    }

    fn real_type(context: &Context<'_>) -> Type {
        match context.width {
            Some(Type::F32) => Type::F32,
            _ => Type::F64,
        }
    }

    /// The type of fields of expressions that are computed together.
    fn width(&mut self, exprs: &[&Expr], context: &Context<'_>) -> Result<Option<Type>, Poison> {
        let mut found = Found::default();
        for expr in exprs {
            self.scan(expr, context, &mut found)?;
        }
        match (found.real, found.short, found.word, found.integer) {
            (_, _, Some(word), Some(integer)) => Err(self.mixed_words(word, integer)),
            (Some(_), ..) => Ok(Some(Type::F64)),
            (None, Some(_), None, None) => Ok(Some(Type::F32)),
            (None, Some(_), ..) => Ok(Some(Type::F64)),
            (None, None, Some(_), None) => Ok(Some(Type::U64)),
            (None, None, None, Some(_)) => Ok(Some(Type::I64)),
            (None, None, None, None) => Ok(None),
        }
    }

    /// Finds the fields in the arithmetic of an expression; conditions are arithmetic of their own.
    fn scan(&mut self, expr: &Expr, context: &Context<'_>, found: &mut Found) -> Result<(), Poison> {
        self.burn(expr.span)?;
        if SCAN_DEPTH_MAX < self.depth {
            return Err(self.too_large(expr.span));
        }
        self.depth += 1;
        let result = self.scan_kind(expr, context, found);
        self.depth -= 1;
        result
    }

    fn scan_kind(&mut self, expr: &Expr, context: &Context<'_>, found: &mut Found) -> Result<(), Poison> {
        match &*expr.kind {
            ast::ExprKind::Place { name, .. } => {
                if let Some((arg, caller)) = context.argument(&name.text) {
                    return self.scan(arg, caller, found);
                }
                if context.grid.is_some_and(|g| self.local(g, &name.text).is_some()) {
                    return Ok(());
                }
                let ty = match self.resolved.symbols.get(name.text.as_str()) {
                    Some(&Symbol::Field(f)) => self.program.fields.get(f).map(|field| field.ty),
                    Some(&Symbol::Reduction(i)) => match self.reductions.get(i) {
                        Some(Some(reduction)) if reduction.ty.is_integer() => Some(reduction.ty),
                        _ => None,
                    },
                    _ => None,
                };
                match ty {
                    Some(Type::F64) => found.real = found.real.or(Some(name.span)),
                    Some(Type::F32) => found.short = found.short.or(Some(name.span)),
                    Some(Type::U64) => found.word = found.word.or(Some(name.span)),
                    Some(Type::I64) => found.integer = found.integer.or(Some(name.span)),
                    Some(Type::Bool) | None => {}
                }
                Ok(())
            }
            ast::ExprKind::Call { name, args } => match self.function(name) {
                Some(i) => {
                    let function = &self.resolved.functions[i];
                    let scope = Scope { names: function.params, args, caller: context };
                    self.scan(function.body, &Context { scope: Some(&scope), ..*context }, found)
                }
                None => args.iter().try_for_each(|arg| self.scan(arg, context, found)),
            },
            ast::ExprKind::Binary(op, ..) if is_comparison(*op) || is_logic(*op) => Ok(()),
            ast::ExprKind::Unary(ast::UnaryOp::Not, _) => Ok(()),
            ast::ExprKind::If(_, a, b) => {
                self.scan(a, context, found)?;
                self.scan(b, context, found)
            }
            other => other.operands().try_for_each(|operand| self.scan(operand, context, found)),
        }
    }

    /// The first field that an expression reads, wherever.
    pub(super) fn first_field(&mut self, expr: &Expr) -> Option<usize> {
        self.fuel = FUEL_MAX;
        self.first_field_in(expr, &Context::scalar())
    }

    fn first_field_in(&mut self, expr: &Expr, context: &Context<'_>) -> Option<usize> {
        self.fuel = self.fuel.checked_sub(1)?;
        if SCAN_DEPTH_MAX < self.depth {
            return None;
        }
        self.depth += 1;
        let found = self.first_field_kind(expr, context);
        self.depth -= 1;
        found
    }

    fn first_field_kind(&mut self, expr: &Expr, context: &Context<'_>) -> Option<usize> {
        match &*expr.kind {
            ast::ExprKind::Place { name, .. } => match context.argument(&name.text) {
                Some((arg, caller)) => self.first_field_in(arg, caller),
                None => self.field_of(name),
            },
            ast::ExprKind::Call { name, args } => match self.function(name) {
                Some(i) => {
                    let function = &self.resolved.functions[i];
                    let scope = Scope { names: function.params, args, caller: context };
                    self.first_field_in(function.body, &Context { scope: Some(&scope), ..*context })
                }
                None => args.iter().find_map(|arg| self.first_field_in(arg, context)),
            },
            other => other.operands().find_map(|operand| self.first_field_in(operand, context)),
        }
    }

    fn function(&self, name: &Name) -> Option<usize> {
        match self.resolved.symbols.get(name.text.as_str()) {
            Some(&symbol @ Symbol::Function(i)) if !self.resolved.circular.contains(&symbol) => Some(i),
            _ => None,
        }
    }

    /// Whether a name is an index or coordinate of a grid, and of which axis.
    fn local(&self, g: usize, text: &str) -> Option<(usize, LocalKind)> {
        let grid = self.resolved.grids.get(g)?;
        for axis in 0..grid.axes.len().min(AXES_MAX) {
            if grid.axes[axis].0.text == text {
                return Some((axis, LocalKind::Index));
            }
            if grid.coordinates[axis].is_some_and(|(name, _)| name.text == text) {
                return Some((axis, LocalKind::Coordinate));
            }
        }
        None
    }

    /// A number.
    pub(super) fn lower(&mut self, expr: &Expr, context: &Context<'_>) -> Result<ExprId, Poison> {
        self.burn(expr.span)?;
        if DEPTH_MAX < self.depth {
            return Err(self.too_large(expr.span));
        }
        self.depth += 1;
        let result = self.lower_kind(expr, context);
        self.depth -= 1;
        result
    }

    fn lower_kind(&mut self, expr: &Expr, context: &Context<'_>) -> Result<ExprId, Poison> {
        let span = expr.span;
        match &*expr.kind {
            ast::ExprKind::Int(n) => match (context.width, i64::try_from(*n)) {
                (Some(Type::U64), _) => self.node(ExprKind::Word(*n), Type::U64, span),
                (_, Ok(n)) => self.node(ExprKind::Int(n), Type::I64, span),
                (_, Err(_)) => Err(self.report(
                    Code::BadOption
                        .error(format!("{n} is too large for a whole number"))
                        .label(span, "beyond 9223372036854775807")
                        .note("whole numbers have 64 bits and a sign, except among u64 fields")
                        .help(format!("write {n}.0 for a real number")),
                )),
            },
            ast::ExprKind::Real(x) => {
                let id = self.node(ExprKind::Real(*x), Type::F64, span)?;
                self.leaf(id, context)
            }
            ast::ExprKind::Place { name, level, indices } => {
                self.place(name, level.as_ref(), indices.as_deref(), span, context)
            }
            ast::ExprKind::Call { name, args } => self.call(name, args, span, context),
            ast::ExprKind::Unary(op, a) => {
                let op = match op {
                    ast::UnaryOp::Plus => return self.number(a, context),
                    ast::UnaryOp::Neg => UnaryOp::Neg,
                    ast::UnaryOp::BitNot => UnaryOp::BitNot,
                    ast::UnaryOp::Not => return Err(self.not_a_number(span)),
                };
                let a = self.number(a, context)?;
                if op == UnaryOp::BitNot {
                    self.needs_bits(a)?;
                }
                let ty = self.program.exprs[a].ty;
                self.node(ExprKind::Unary(op, a), ty, span)
            }
            ast::ExprKind::Binary(op, a, b) => self.binary(*op, a, b, span, context),
            ast::ExprKind::If(condition, a, b) => {
                let condition = self.condition(condition, context)?;
                let (a, b) = (self.number(a, context)?, self.number(b, context)?);
                let (a, b) = self.join(a, b)?;
                let ty = self.program.exprs[a].ty;
                self.node(ExprKind::Select(condition, a, b), ty, span)
            }
            ast::ExprKind::Abs(a) => {
                let a = self.number(a, context)?;
                let ty = self.program.exprs[a].ty;
                self.node(ExprKind::Call(Call::Abs, a), ty, span)
            }
            ast::ExprKind::Paren(a) => self.lower(a, context),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LocalKind {
    Index,
    Coordinate,
}

enum Sign {
    Plus,
    Minus,
}

fn is_comparison(op: ast::BinaryOp) -> bool {
    use ast::BinaryOp::{Eq, Ge, Gt, Le, Lt, Ne};
    matches!(op, Eq | Ne | Lt | Le | Gt | Ge)
}

fn is_logic(op: ast::BinaryOp) -> bool {
    matches!(op, ast::BinaryOp::And | ast::BinaryOp::Or)
}

/// The first `/` of an expression outside brackets, with its sides.
fn find_division(expr: &Expr) -> Option<(Span, Span, Span)> {
    match &*expr.kind {
        ast::ExprKind::Binary(ast::BinaryOp::Div, a, b) => Some((expr.span, a.span, b.span)),
        ast::ExprKind::Place { .. } => None,
        other => other.operands().find_map(find_division),
    }
}
