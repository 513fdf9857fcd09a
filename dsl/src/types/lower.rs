//! One expression at a time: tree to typed nodes. Never keeps state between statements beyond the arena.

use std::collections::HashSet;

use rma_source::{Applicability, Span};

use super::index::degree;
use super::{DEPTH_MAX, EXPANDED_NODES_MAX, EXPONENT_MAX, LetState, RADIUS_MAX, Typer, edit, reduction_id};
use crate::ir::{
    self, AXES_MAX, Access, BinaryOp, Call, CompareOp, ExprId, ExprKind, FieldId, Level, ParamId, Type,
    UnaryOp,
};
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

    /// A value that is not a condition.
    fn number(&mut self, expr: &Expr, context: &Context<'_>) -> Result<ExprId, Poison> {
        let id = self.lower(expr, context)?;
        match self.program.exprs[id].ty {
            Type::Bool => Err(self.not_a_number(expr.span)),
            _ => Ok(id),
        }
    }

    fn needs_bits(&mut self, id: ExprId) -> Result<(), Poison> {
        let expr = &self.program.exprs[id];
        match expr.ty.is_integer() {
            true => Ok(()),
            false => {
                let span = expr.span;
                Err(self.report(
                    Code::TypeMismatch
                        .error("only whole numbers have bits")
                        .label(span, "a real number")
                        .note("`xor`, `band`, `bor`, `bnot`, `<<` and `>>` work on integer fields, indices and int parameters")
                        .help("declare the field as `u64` or `i64`"),
                ))
            }
        }
    }

    /// Brings two values to one type.
    fn join(&mut self, a: ExprId, b: ExprId) -> Result<(ExprId, ExprId), Poison> {
        let (ta, tb) = (self.program.exprs[a].ty, self.program.exprs[b].ty);
        let ty = match (ta, tb) {
            _ if ta == tb => return Ok((a, b)),
            (Type::Bool, _) => return Err(self.not_a_number(self.program.exprs[a].span)),
            (_, Type::Bool) => return Err(self.not_a_number(self.program.exprs[b].span)),
            (Type::F64, _) | (_, Type::F64) => Type::F64,
            (Type::F32, Type::I64) | (Type::I64, Type::F32) => Type::F32,
            (Type::F32, _) | (_, Type::F32) => Type::F64,
            _ => {
                let (a, b) = (self.program.exprs[a].span, self.program.exprs[b].span);
                return Err(self.mixed_words(a, b));
            }
        };
        Ok((self.cast(a, ty)?, self.cast(b, ty)?))
    }

    fn binary(
        &mut self,
        op: ast::BinaryOp,
        a: &Expr,
        b: &Expr,
        span: Span,
        context: &Context<'_>,
    ) -> Result<ExprId, Poison> {
        if is_comparison(op) || is_logic(op) {
            return Err(self.not_a_number(span));
        }
        if op == ast::BinaryOp::Pow {
            return self.power(a, b, span, context);
        }
        // Both sides are looked at even if one fails, so that both are reported.
        let (left, right) = (self.number(a, context), self.number(b, context));
        let (left, right) = (left?, right?);
        let op = match op {
            ast::BinaryOp::Add => BinaryOp::Add,
            ast::BinaryOp::Sub => BinaryOp::Sub,
            ast::BinaryOp::Mul => BinaryOp::Mul,
            ast::BinaryOp::Div => BinaryOp::Div,
            ast::BinaryOp::FloorDiv => BinaryOp::FloorDiv,
            ast::BinaryOp::Mod => BinaryOp::Mod,
            ast::BinaryOp::BitAnd => BinaryOp::BitAnd,
            ast::BinaryOp::BitOr => BinaryOp::BitOr,
            ast::BinaryOp::BitXor => BinaryOp::BitXor,
            ast::BinaryOp::Shl => BinaryOp::Shl,
            ast::BinaryOp::Shr => BinaryOp::Shr,
            _ => unreachable!("powers, comparisons and logic are handled above"),
        };
        let (left, right) = match op {
            BinaryOp::Div => {
                let ty = Typer::real_type(context);
                self.join_as(left, right, ty)?
            }
            _ => self.join(left, right)?,
        };
        if matches!(op, BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor | BinaryOp::Shl | BinaryOp::Shr)
        {
            self.needs_bits(left)?;
            self.needs_bits(right)?;
        }
        let ty = self.program.exprs[left].ty;
        self.node(ExprKind::Binary(op, left, right), ty, span)
    }

    /// Brings two values to a real type, or to the wider of it and theirs.
    fn join_as(&mut self, a: ExprId, b: ExprId, ty: Type) -> Result<(ExprId, ExprId), Poison> {
        let is_wide = |id: ExprId, typer: &Self| typer.program.exprs[id].ty == Type::F64;
        let ty = match is_wide(a, self) || is_wide(b, self) {
            true => Type::F64,
            false => ty,
        };
        Ok((self.cast(a, ty)?, self.cast(b, ty)?))
    }

    fn power(&mut self, a: &Expr, b: &Expr, span: Span, context: &Context<'_>) -> Result<ExprId, Poison> {
        let base = self.number(a, context)?;
        let ty = self.program.exprs[base].ty;
        let (sign, literal) = match &*b.bare().kind {
            ast::ExprKind::Int(n) => (Sign::Plus, Some(*n)),
            ast::ExprKind::Unary(ast::UnaryOp::Neg, inner) => match *inner.bare().kind {
                ast::ExprKind::Int(n) => (Sign::Minus, Some(n)),
                _ => (Sign::Plus, None),
            },
            _ => (Sign::Plus, None),
        };
        let Some(exponent) = literal else {
            let exponent = self.number(b, context)?;
            let (base, exponent) = (self.cast(base, Type::F64)?, self.cast(exponent, Type::F64)?);
            let id = self.node(ExprKind::Binary(BinaryOp::Pow, base, exponent), Type::F64, span)?;
            return self.leaf(id, context);
        };
        if EXPONENT_MAX < exponent {
            return Err(self.report(
                Code::TooLarge
                    .error(format!("the exponent {exponent} is too large to be multiplied out"))
                    .label(b.span, format!("the limit is {EXPONENT_MAX}"))
                    .note("a whole literal exponent means repeated products from the left")
                    .suggest(
                        "a real exponent calls pow",
                        b.span,
                        format!("{exponent}.0"),
                        Applicability::Unsafe,
                    ),
            ));
        }
        let product = match exponent {
            0 => match ty {
                Type::U64 => self.node(ExprKind::Word(1), ty, span)?,
                Type::I64 => self.node(ExprKind::Int(1), ty, span)?,
                _ => self.node(ExprKind::Real(1.0), ty, span)?,
            },
            1 => base,
            n => self.node(ExprKind::Power(base, n as u32), ty, span)?,
        };
        match sign {
            Sign::Plus => Ok(product),
            Sign::Minus => {
                let real = match ty {
                    Type::F32 | Type::F64 => ty,
                    _ => Typer::real_type(context),
                };
                let product = self.cast(product, real)?;
                let one = self.node(ExprKind::Real(1.0), real, span)?;
                self.node(ExprKind::Binary(BinaryOp::Div, one, product), real, span)
            }
        }
    }

    fn call(
        &mut self,
        name: &Name,
        args: &[Expr],
        span: Span,
        context: &Context<'_>,
    ) -> Result<ExprId, Poison> {
        if let Some(i) = self.function(name) {
            let function = &self.resolved.functions[i];
            self.arity(name, function.params.len(), args, span)?;
            let scope = Scope { names: function.params, args, caller: context };
            return self.lower(function.body, &Context { scope: Some(&scope), ..*context });
        }
        let one = |call| (call, 1);
        let (call, n_args) = match name.text.as_str() {
            "exp" => one(Call::Exp),
            "log" => one(Call::Log),
            "sqrt" => one(Call::Sqrt),
            "sin" => one(Call::Sin),
            "cos" => one(Call::Cos),
            "tan" => one(Call::Tan),
            "floor" => one(Call::Floor),
            "abs" => one(Call::Abs),
            "sign" => one(Call::Sign),
            "min" => return self.fold(BinaryOp::Min, name, args, span, context),
            "max" => return self.fold(BinaryOp::Max, name, args, span, context),
            "mod" => {
                self.arity(name, 2, args, span)?;
                return self.binary(ast::BinaryOp::Mod, &args[0], &args[1], span, context);
            }
            "ricker" => {
                self.arity(name, 2, args, span)?;
                return self.ricker(&args[0], &args[1], span, context);
            }
            // Something else was reported by the names' pass.
            _ => return Err(Poison),
        };
        self.arity(name, n_args, args, span)?;
        let a = self.number(&args[0], context)?;
        match call {
            Call::Abs | Call::Sign => {
                let ty = self.program.exprs[a].ty;
                self.node(ExprKind::Call(call, a), ty, span)
            }
            _ => self.real_call(call, a, span, context),
        }
    }

    /// A function in f64, rounded to f32 where the expression is.
    fn real_call(
        &mut self,
        call: Call,
        a: ExprId,
        span: Span,
        context: &Context<'_>,
    ) -> Result<ExprId, Poison> {
        let a = self.cast(a, Type::F64)?;
        let id = self.node(ExprKind::Call(call, a), Type::F64, span)?;
        self.leaf(id, context)
    }

    fn arity(&mut self, name: &Name, n_params: usize, args: &[Expr], span: Span) -> Result<(), Poison> {
        match args.len() == n_params {
            true => Ok(()),
            false => Err(self.report(
                Code::TypeMismatch
                    .error(format!(
                        "`{}` takes {n_params} argument{}",
                        name.text,
                        if n_params == 1 { "" } else { "s" }
                    ))
                    .label(span, format!("{} given", args.len()))
                    .note("arguments are matched by position")
                    .help("give as many arguments as the function has"),
            )),
        }
    }

    fn fold(
        &mut self,
        op: BinaryOp,
        name: &Name,
        args: &[Expr],
        span: Span,
        context: &Context<'_>,
    ) -> Result<ExprId, Poison> {
        if args.len() < 2 {
            self.arity(name, 2, args, span)?;
        }
        let mut folded = self.number(&args[0], context)?;
        for arg in &args[1..] {
            let next = self.number(arg, context)?;
            let (a, b) = self.join(folded, next)?;
            let ty = self.program.exprs[a].ty;
            folded = self.node(ExprKind::Binary(op, a, b), ty, span)?;
        }
        Ok(folded)
    }

    /// `(1 - 2a)*exp(-a)` with `a = (pi*f*(t - 1/f))^2`.
    fn ricker(&mut self, f: &Expr, t: &Expr, span: Span, context: &Context<'_>) -> Result<ExprId, Poison> {
        let ty = Typer::real_type(context);
        let (f, t) = (self.number(f, context)?, self.number(t, context)?);
        let (f, t) = self.join_as(f, t, ty)?;
        let ty = self.program.exprs[f].ty;
        let real = |x: f64, typer: &mut Self| typer.node(ExprKind::Real(x), ty, span);
        let (one, two, pi) = (real(1.0, self)?, real(2.0, self)?, real(std::f64::consts::PI, self)?);
        let binary = |op, a, b, typer: &mut Self| typer.node(ExprKind::Binary(op, a, b), ty, span);
        let period = binary(BinaryOp::Div, one, f, self)?;
        let late = binary(BinaryOp::Sub, t, period, self)?;
        let pi_f = binary(BinaryOp::Mul, pi, f, self)?;
        let root = binary(BinaryOp::Mul, pi_f, late, self)?;
        let a = self.node(ExprKind::Power(root, 2), ty, span)?;
        let double = binary(BinaryOp::Mul, two, a, self)?;
        let factor = binary(BinaryOp::Sub, one, double, self)?;
        let minus = self.node(ExprKind::Unary(UnaryOp::Neg, a), ty, span)?;
        let exp = self.real_call(Call::Exp, minus, span, context)?;
        let (factor, exp) = self.join(factor, exp)?;
        let ty = self.program.exprs[factor].ty;
        self.node(ExprKind::Binary(BinaryOp::Mul, factor, exp), ty, span)
    }

    fn place(
        &mut self,
        name: &Name,
        level: Option<&Name>,
        indices: Option<&[Expr]>,
        span: Span,
        context: &Context<'_>,
    ) -> Result<ExprId, Poison> {
        if let Some((arg, caller)) = context.argument(&name.text) {
            return self.argument(name, arg, caller, level, indices, span, context);
        }
        let symbol = self.resolved.symbols.get(name.text.as_str()).copied();
        if let Some(Symbol::Field(_)) = symbol {
            let f = self.field_of(name).ok_or(Poison)?;
            return self.access(f, level, indices, span, context);
        }
        if level.is_some() || indices.is_some() {
            let is_known = symbol.is_some()
                || crate::resolve::CONSTANTS.contains(&name.text.as_str())
                || context.grid.is_some_and(|g| self.local(g, &name.text).is_some());
            return Err(match is_known {
                true => self.report(
                    Code::WrongUse
                        .error(format!("`{}` has neither levels nor neighbours", name.text))
                        .label(span, "not a field")
                        .note("only fields have a value per point")
                        .suggest("write", span, name.text.clone(), Applicability::Unsafe),
                ),
                false => Poison,
            });
        }
        if let Some((axis, kind)) = context.grid.and_then(|g| self.local(g, &name.text)) {
            return match kind {
                LocalKind::Index => {
                    let id = match context.fields {
                        Fields::Coordinate => self.point_index(axis, span, context)?,
                        _ => self.index(axis, span, context)?,
                    };
                    self.leaf(id, context)
                }
                // Reported by the names' pass: coordinates are made of indices.
                LocalKind::Coordinate if matches!(context.fields, Fields::Coordinate) => Err(Poison),
                LocalKind::Coordinate => {
                    let g = context.grid.ok_or(Poison)?;
                    let id = self.coordinate(g, axis, context)?;
                    self.leaf(id, context)
                }
            };
        }
        let id = match (symbol, name.text.as_str()) {
            (Some(Symbol::Param(i)), _) => {
                let ty = self.program.params.get(i).map_or(Type::F64, |param| param.ty);
                self.node(ExprKind::Param(ParamId::new(i)), ty, span)?
            }
            (Some(Symbol::Let(i)), _) => match self.lets[i] {
                LetState::Scalar(id) => {
                    let ty = self.program.lets[id.index()].ty;
                    self.node(ExprKind::Let(id), ty, span)?
                }
                LetState::Inline => {
                    let value = self.resolved.lets[i].value;
                    let scalar = Context::scalar();
                    let width = self.width(&[value], &scalar)?;
                    match self.is_condition(value, &scalar) {
                        true => self.condition(value, &scalar)?,
                        false => self.lower(value, &Context { width, ..scalar })?,
                    }
                }
                LetState::Broken => return Err(Poison),
            },
            (Some(Symbol::Reduction(i)), _) => {
                let ty = match self.reductions.get(i) {
                    Some(Some(reduction)) => reduction.ty,
                    _ => return Err(Poison),
                };
                self.node(ExprKind::Reduction(reduction_id(i)), ty, span)?
            }
            (None, "pi") => self.node(ExprKind::Real(std::f64::consts::PI), Type::F64, span)?,
            (None, "e") => self.node(ExprKind::Real(std::f64::consts::E), Type::F64, span)?,
            (None, "t") => self.node(ExprKind::Time, Type::F64, span)?,
            (None, "step") => self.node(ExprKind::Step, Type::I64, span)?,
            (None, text) => {
                // A function's body may name an index of another grid than that of its use.
                let is_local = (0..self.resolved.grids.len()).any(|g| self.local(g, text).is_some());
                return Err(match is_local {
                    true => self.report(
                        Code::DimensionMismatch
                            .error(format!("`{text}` belongs to another grid, or there is no point here"))
                            .label(span, "has no value here")
                            .note("a function sees the indices and coordinates of the grid where it is used")
                            .help("pass it as an argument"),
                    ),
                    false => Poison,
                });
            }
            // The names' pass has reported the others.
            _ => return Err(Poison),
        };
        self.leaf(id, context)
    }

    /// An index as a whole number, displaced like the point.
    fn index(&mut self, axis: usize, span: Span, context: &Context<'_>) -> Result<ExprId, Poison> {
        if let Some((fixed, value)) = context.fixed
            && fixed == axis
        {
            return Ok(value);
        }
        let id = self.node(ExprKind::Index(axis), Type::I64, span)?;
        match (context.halves[axis] + context.shift[axis]).div_euclid(2) {
            0 => Ok(id),
            whole => {
                let whole = self.node(ExprKind::Int(i64::from(whole)), Type::I64, span)?;
                self.node(ExprKind::Binary(BinaryOp::Add, id, whole), Type::I64, span)
            }
        }
    }

    /// A coordinate at the point; the index if none is declared. Real.
    pub(super) fn coordinate(
        &mut self,
        g: usize,
        axis: usize,
        context: &Context<'_>,
    ) -> Result<ExprId, Poison> {
        let grid = &self.resolved.grids[g];
        let (value, span) = match grid.coordinates[axis] {
            Some((_, value)) => (Some(value), value.span),
            None => (None, grid.axes[axis].0.span),
        };
        let context =
            Context { scope: None, width: None, fields: Fields::Coordinate, grid: Some(g), ..*context };
        let id = match value {
            Some(value) => self.lower(value, &context)?,
            None => self.point_index(axis, span, &context)?,
        };
        self.cast(id, Type::F64)
    }

    /// The index of the point itself: a whole number, or a real one at half points.
    fn point_index(&mut self, axis: usize, span: Span, context: &Context<'_>) -> Result<ExprId, Poison> {
        if let Some((fixed, value)) = context.fixed
            && fixed == axis
        {
            return Ok(value);
        }
        let halves = context.halves[axis] + context.shift[axis];
        let id = self.node(ExprKind::Index(axis), Type::I64, span)?;
        if halves == 0 {
            return Ok(id);
        }
        if halves % 2 == 0 {
            let whole = self.node(ExprKind::Int(i64::from(halves / 2)), Type::I64, span)?;
            return self.node(ExprKind::Binary(BinaryOp::Add, id, whole), Type::I64, span);
        }
        let id = self.cast(id, Type::F64)?;
        let half = self.node(ExprKind::Real(f64::from(halves) / 2.0), Type::F64, span)?;
        self.node(ExprKind::Binary(BinaryOp::Add, id, half), Type::F64, span)
    }

    /// Coordinate at index 1 minus coordinate at index 0, in the field's type.
    pub(super) fn spacing(&mut self, f: usize, axis: usize, written: Span) -> Result<ExprId, Poison> {
        self.refuel();
        let (g, ty) = (self.program.fields[f].grid.index(), self.program.fields[f].ty);
        let grid = &self.resolved.grids[g];
        if let Some((name, value)) = grid.coordinates[axis]
            && degree(value, &grid.axes[axis].0.text) > Some(1)
        {
            let index = grid.axes[axis].0.text.clone();
            return Err(self.report(
                Code::BoundaryRules
                    .error(format!(
                        "`neumann` needs evenly spaced points, and `{}` is not affine in `{index}`",
                        name.text
                    ))
                    .label(written, "a derivative here")
                    .label(value.span, "the coordinate")
                    .note("the value outside is u[0] + k*d*g with one spacing d")
                    .help(format!("declare the coordinate as a multiple of `{index}`, or use `mirror`")),
            ));
        }
        let halves = self.halves(f);
        let at = |whole: i64, typer: &mut Self| {
            let fixed = match halves[axis] {
                0 => typer.node(ExprKind::Int(whole), Type::I64, written)?,
                _ => typer.node(ExprKind::Real(whole as f64 + 0.5), Type::F64, written)?,
            };
            let context =
                Context { fixed: Some((axis, fixed)), ..Context::point(Some(g), halves, Fields::Coordinate) };
            typer.coordinate(g, axis, &context)
        };
        let (one, zero) = (at(1, self)?, at(0, self)?);
        let (one, zero) = (self.cast(one, ty)?, self.cast(zero, ty)?);
        self.node(ExprKind::Binary(BinaryOp::Sub, one, zero), ty, written)
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of one place in the text")]
    fn argument(
        &mut self,
        name: &Name,
        arg: &Expr,
        caller: &Context<'_>,
        level: Option<&Name>,
        indices: Option<&[Expr]>,
        span: Span,
        context: &Context<'_>,
    ) -> Result<ExprId, Poison> {
        if level.is_some() {
            let Some(f) = self.bare_field(arg, caller) else {
                return Err(self.report(
                    Code::WrongUse
                        .error(format!("`{}` must be a field to have levels", name.text))
                        .label(arg.span, "not the name of a field")
                        .label(span, "a level is read here")
                        .note("`.next` and `.prev` are read of fields")
                        .help("pass the field itself"),
                ));
            };
            return self.access(f, level, indices, span, context);
        }
        let mut shift = context.shift;
        if let Some(indices) = indices {
            let g = self.grid_of(name, span, context)?;
            let offsets = self.offsets(indices, g, &name.text, span)?;
            for axis in 0..AXES_MAX {
                shift[axis] = offsets[axis] + context.shift[axis] - context.halves[axis];
            }
        }
        self.lower(arg, &Context { shift, width: context.width, ..*caller })
    }

    fn grid_of(&mut self, name: &Name, span: Span, context: &Context<'_>) -> Result<usize, Poison> {
        match context.grid {
            Some(g) => Ok(g),
            None => Err(self.report(
                Code::WrongUse
                    .error(format!("`{}` has no neighbours here", name.text))
                    .label(span, "there is no point here")
                    .note("this is a single number, not a value per point")
                    .help("call the function where a field is computed"),
            )),
        }
    }

    /// The field that an argument names, through other functions' arguments.
    fn bare_field(&self, arg: &Expr, caller: &Context<'_>) -> Option<usize> {
        match &*arg.bare().kind {
            ast::ExprKind::Place { name, level: None, indices: None } => match caller.argument(&name.text) {
                Some((arg, caller)) => self.bare_field(arg, caller),
                None => self.field_of(name),
            },
            _ => None,
        }
    }

    fn access(
        &mut self,
        f: usize,
        level: Option<&Name>,
        indices: Option<&[Expr]>,
        span: Span,
        context: &Context<'_>,
    ) -> Result<ExprId, Poison> {
        let name = self.program.fields[f].name.clone();
        let produced = match context.fields {
            Fields::Allowed(produced) => produced,
            Fields::Refused("a scalar") | Fields::Coordinate => {
                return Err(self.report(
                    Code::WrongUse
                        .error(format!("the field `{name}` cannot be used here"))
                        .label(span, "a field has a value per point, and one number is needed here")
                        .note("a reduction makes one number of all points")
                        .help(format!("reduce it first: `reduce r = max |{name}|`")),
                ));
            }
            Fields::Refused(what) => {
                return Err(self.report(
                    Code::Unsupported
                        .error(format!("reading a field in {what} is not supported yet"))
                        .label(span, format!("`{name}` is a field"))
                        .note(format!("{what} may use indices, coordinates, `t`, parameters and lets"))
                        .help("write it as a function of the coordinates"),
                ));
            }
        };
        let g = self.program.fields[f].grid.index();
        if context.grid != Some(g) {
            let other = context.grid.map_or(String::new(), |g| self.program.grids[g].name.clone());
            let own = self.program.grids[g].name.clone();
            return Err(self.report(
                Code::DimensionMismatch
                    .error(format!("`{name}` is on the grid `{own}`, and this is computed on `{other}`"))
                    .label(span, format!("on `{own}`"))
                    .label(self.program.fields[f].span, "declared here")
                    .note("the points of two grids do not correspond")
                    .help("declare the fields on one grid"),
            ));
        }
        let level = self.level(f, level, produced, span)?;
        let halves = self.halves(f);
        let mut offset = [0; AXES_MAX];
        let n_axes = self.program.fields[f].places.len();
        let explicit = match indices {
            Some(indices) => Some(self.offsets(indices, g, &name, span)?),
            None => None,
        };
        for axis in 0..n_axes {
            let point = context.halves[axis] + context.shift[axis];
            let read = match explicit {
                Some(offsets) => offsets[axis] + context.shift[axis],
                None => point,
            };
            let double = read - halves[axis];
            if double % 2 != 0 {
                return Err(self.illegal_staggering(f, axis, indices, span));
            }
            offset[axis] = double / 2;
            if RADIUS_MAX < offset[axis].abs() {
                return Err(self.report(
                    Code::TooLarge
                        .error(format!("`{name}` is read {} points away", offset[axis].abs()))
                        .label(span, "here")
                        .note(format!("the limit is {RADIUS_MAX}"))
                        .help("read nearer points"),
                ));
            }
        }
        let ty = self.program.fields[f].ty;
        let access = Access { field: FieldId::new(f), level, offset, span };
        let id = self.node(ExprKind::Access(access), ty, span)?;
        // Among fields of several types the widest one is computed in; words and shorts join where they meet it.
        Ok(id)
    }

    fn illegal_staggering(&mut self, f: usize, axis: usize, indices: Option<&[Expr]>, span: Span) -> Poison {
        let field = &self.program.fields[f];
        let grid = &self.resolved.grids[field.grid.index()];
        let index = &grid.axes[axis].0.text;
        let at: Vec<String> = (0..field.places.len())
            .map(|axis| match field.places[axis] {
                ir::Place::Whole => grid.axes[axis].0.text.clone(),
                ir::Place::Half => format!("{}+1/2", grid.axes[axis].0.text),
            })
            .collect();
        let (is_half, name, declared) =
            (field.places[axis] == ir::Place::Half, field.name.clone(), field.span);
        let at = at.join(", ");
        let (where_, fix) = match (indices, is_half) {
            (Some(indices), true) => (indices[axis].span, format!("{index}+1/2")),
            (Some(indices), false) => (indices[axis].span, index.clone()),
            (None, _) => (span, format!("{name}[{at}]")),
        };
        self.report(
            Code::IllegalStaggering
                .error(format!("`{name}` lives at ({at}) and has no point here"))
                .label(where_, format!("not a point of `{name}` along `{index}`"))
                .label(declared, "its place is declared here")
                .note("a staggered field is read between whole points, other fields at whole points")
                .suggest(
                    "the nearest points are half a step away; for example",
                    where_,
                    fix,
                    Applicability::Unsafe,
                ),
        )
    }

    fn level(
        &mut self,
        f: usize,
        level: Option<&Name>,
        produced: &HashSet<usize>,
        span: Span,
    ) -> Result<Level, Poison> {
        let field = &self.program.fields[f];
        let (levels, declared, name) = (field.levels, field.span, field.name.clone());
        let kept = format!("keeps {levels} level{}", if levels == 1 { "" } else { "s" });
        match level.map(|level| level.text.as_str()) {
            None => Ok(Level::Now),
            Some("prev") if levels == 3 => Ok(Level::Prev),
            Some("next") if 2 <= levels && produced.contains(&f) => Ok(Level::Next),
            Some("next") if 2 <= levels => Err(self.report(
                Code::LevelNotKept
                    .error(format!("`{name}.next` is not known yet at this line"))
                    .label(span, "read here")
                    .note("`next` is what an earlier line of the step has produced")
                    .help(format!("move the update of `{name}` above this line, or read `{name}`")),
            )),
            Some(word @ ("prev" | "next")) => {
                let needed = if word == "prev" { 3 } else { 2 };
                let diagnostic = Code::LevelNotKept
                    .error(format!("`{name}.{word}` is not kept"))
                    .label(span, format!("`{name}` {kept}"))
                    .label(declared, "declared here")
                    .note(format!("`{name}.{word}` needs `levels {needed}`"));
                let place = self.resolved.fields[f].levels;
                let diagnostic = match place {
                    Some(ast::Levels::Count(count)) => diagnostic.suggest_edits(
                        format!("declare `levels {needed}`"),
                        vec![edit(count.span, &needed.to_string())],
                        Applicability::Unsafe,
                    ),
                    Some(ast::Levels::Constant(place)) => diagnostic.suggest_edits(
                        format!("declare `levels {needed}`"),
                        vec![edit(*place, &format!("levels {needed}"))],
                        Applicability::Unsafe,
                    ),
                    None => diagnostic.suggest_edits(
                        format!("declare `levels {needed}`"),
                        vec![edit(Span::at(declared.end as usize), &format!(" levels {needed}"))],
                        Applicability::Unsafe,
                    ),
                };
                Err(self.report(diagnostic))
            }
            // The names' pass has reported other words.
            Some(_) => Err(Poison),
        }
    }

    /// Whether an expression is a condition rather than a number.
    pub(super) fn is_condition(&self, expr: &Expr, context: &Context<'_>) -> bool {
        match &*expr.bare().kind {
            ast::ExprKind::Binary(op, ..) => is_comparison(*op) || is_logic(*op),
            ast::ExprKind::Unary(op, _) => *op == ast::UnaryOp::Not,
            ast::ExprKind::If(_, a, _) => self.is_condition(a, context),
            ast::ExprKind::Place { name, .. } => match context.argument(&name.text) {
                Some((arg, caller)) => self.is_condition(arg, caller),
                None => match self.resolved.symbols.get(name.text.as_str()) {
                    Some(&Symbol::Let(i)) => match self.lets[i] {
                        LetState::Scalar(id) => self.program.lets[id.index()].ty == Type::Bool,
                        LetState::Inline => {
                            self.is_condition(self.resolved.lets[i].value, &Context::scalar())
                        }
                        LetState::Broken => false,
                    },
                    _ => false,
                },
            },
            ast::ExprKind::Call { name, args } => match self.function(name) {
                Some(i) => {
                    let function = &self.resolved.functions[i];
                    let scope = Scope { names: function.params, args, caller: context };
                    self.is_condition(function.body, &Context { scope: Some(&scope), ..*context })
                }
                None => false,
            },
            _ => false,
        }
    }

    fn not_a_condition(&mut self, span: Span) -> Poison {
        self.report(
            Code::TypeMismatch
                .error("a condition is expected, and this is a number")
                .label(span, "a number")
                .note("conditions compare: `==`, `!=`, `<`, `<=`, `>`, `>=`, joined by `and`, `or`, `not`")
                .help("compare it with a number, for example `… > 0`"),
        )
    }

    /// A condition.
    pub(super) fn condition(&mut self, expr: &Expr, context: &Context<'_>) -> Result<ExprId, Poison> {
        self.burn(expr.span)?;
        if DEPTH_MAX < self.depth {
            return Err(self.too_large(expr.span));
        }
        self.depth += 1;
        let result = self.condition_kind(expr, context);
        self.depth -= 1;
        result
    }

    fn condition_kind(&mut self, expr: &Expr, context: &Context<'_>) -> Result<ExprId, Poison> {
        let span = expr.span;
        match &*expr.kind {
            ast::ExprKind::Paren(a) => self.condition(a, context),
            ast::ExprKind::Unary(ast::UnaryOp::Not, a) => {
                let a = self.condition(a, context)?;
                self.node(ExprKind::Unary(UnaryOp::Not, a), Type::Bool, span)
            }
            ast::ExprKind::Binary(op, a, b) if is_logic(*op) => {
                let (a, b) = (self.condition(a, context), self.condition(b, context));
                let (a, b) = (a?, b?);
                let kind = match op {
                    ast::BinaryOp::And => ExprKind::And(a, b),
                    _ => ExprKind::Or(a, b),
                };
                self.node(kind, Type::Bool, span)
            }
            ast::ExprKind::Binary(op, a, b) if is_comparison(*op) => {
                let width = self.width(&[a, b], context)?;
                let inner = Context { width, ..*context };
                let (a, b) = (self.number(a, &inner), self.number(b, &inner));
                let (a, b) = self.join(a?, b?)?;
                let op = match op {
                    ast::BinaryOp::Eq => CompareOp::Eq,
                    ast::BinaryOp::Ne => CompareOp::Ne,
                    ast::BinaryOp::Lt => CompareOp::Lt,
                    ast::BinaryOp::Le => CompareOp::Le,
                    ast::BinaryOp::Gt => CompareOp::Gt,
                    _ => CompareOp::Ge,
                };
                let mut compared = self.node(ExprKind::Compare(op, a, b), Type::Bool, span)?;
                // Until a reduction is first computed, every comparison with it is false.
                let mut needs = Vec::new();
                for side in [a, b] {
                    self.program.exprs.visit(side, |_, expr| {
                        if let ExprKind::Reduction(id) = expr.kind
                            && !needs.contains(&id)
                        {
                            needs.push(id);
                        }
                    });
                }
                for id in needs.into_iter().rev() {
                    let known = self.node(ExprKind::Known(id), Type::Bool, span)?;
                    compared = self.node(ExprKind::And(known, compared), Type::Bool, span)?;
                }
                Ok(compared)
            }
            ast::ExprKind::If(condition, a, b) => {
                let condition = self.condition(condition, context)?;
                let (a, b) = (self.condition(a, context)?, self.condition(b, context)?);
                self.node(ExprKind::Select(condition, a, b), Type::Bool, span)
            }
            ast::ExprKind::Call { name, args } if self.function(name).is_some() => {
                let i = self.function(name).ok_or(Poison)?;
                let function = &self.resolved.functions[i];
                self.arity(name, function.params.len(), args, span)?;
                let scope = Scope { names: function.params, args, caller: context };
                self.condition(function.body, &Context { scope: Some(&scope), ..*context })
            }
            ast::ExprKind::Place { name, level: None, indices: None } => {
                if let Some((arg, caller)) = context.argument(&name.text) {
                    return self.condition(arg, &Context { shift: context.shift, ..*caller });
                }
                let id = self.lower(expr, context)?;
                match self.program.exprs[id].ty {
                    Type::Bool => Ok(id),
                    _ => Err(self.not_a_condition(span)),
                }
            }
            _ => {
                // Names inside are still checked.
                let _ = self.lower(expr, context)?;
                Err(self.not_a_condition(span))
            }
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
