//! Operators and functions of numbers. Never reads a field: places are another file's.

use rma_source::{Applicability, Span};

use super::{Context, Poison, Scope, Sign, is_comparison, is_logic};
use crate::ir::{BinaryOp, Call, ExprId, ExprKind, Type, UnaryOp};
use crate::messages::Code;
use crate::syntax::ast::{self, Expr, Name};
use crate::types::{EXPONENT_MAX, Typer};

impl Typer<'_, '_> {
    /// A value that is not a condition.
    pub(super) fn number(&mut self, expr: &Expr, context: &Context<'_>) -> Result<ExprId, Poison> {
        let id = self.lower(expr, context)?;
        match self.program.exprs[id].ty {
            Type::Bool => Err(self.not_a_number(expr.span)),
            _ => Ok(id),
        }
    }

    pub(super) fn needs_bits(&mut self, id: ExprId) -> Result<(), Poison> {
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
    pub(super) fn join(&mut self, a: ExprId, b: ExprId) -> Result<(ExprId, ExprId), Poison> {
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

    pub(super) fn binary(
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
    pub(super) fn join_as(&mut self, a: ExprId, b: ExprId, ty: Type) -> Result<(ExprId, ExprId), Poison> {
        let is_wide = |id: ExprId, typer: &Self| typer.program.exprs[id].ty == Type::F64;
        let ty = match is_wide(a, self) || is_wide(b, self) {
            true => Type::F64,
            false => ty,
        };
        Ok((self.cast(a, ty)?, self.cast(b, ty)?))
    }

    pub(super) fn power(
        &mut self,
        a: &Expr,
        b: &Expr,
        span: Span,
        context: &Context<'_>,
    ) -> Result<ExprId, Poison> {
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

    pub(super) fn call(
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
    pub(super) fn real_call(
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

    pub(super) fn arity(
        &mut self,
        name: &Name,
        n_params: usize,
        args: &[Expr],
        span: Span,
    ) -> Result<(), Poison> {
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

    pub(super) fn fold(
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
    pub(super) fn ricker(
        &mut self,
        f: &Expr,
        t: &Expr,
        span: Span,
        context: &Context<'_>,
    ) -> Result<ExprId, Poison> {
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
}
