//! The form of indices: an access has a known offset on every axis, or an error. Never looks at fields.

use rma_source::{Applicability, Edit, Span};

use super::lower::Poison;
use super::{RADIUS_MAX, Typer, edit};
use crate::ir::AXES_MAX;
use crate::messages::Code;
use crate::syntax::ast::{self, Expr};

impl Typer<'_, '_> {
    /// The written offsets of `[…]` in halves, one per axis.
    pub(super) fn offsets(
        &mut self,
        indices: &[Expr],
        g: usize,
        name: &str,
        span: Span,
    ) -> Result<[i32; AXES_MAX], Poison> {
        let grid = &self.resolved.grids[g];
        let axes: Vec<&str> = grid.axes.iter().take(AXES_MAX).map(|(index, _)| index.text.as_str()).collect();
        if indices.len() != axes.len() {
            return Err(self.report(
                Code::DimensionMismatch
                    .error(format!("`{name}` has {} indices, not {}", axes.len(), indices.len()))
                    .label(span, format!("{} given", indices.len()))
                    .label(grid.span, format!("the grid has {} axes", axes.len()))
                    .note("every access names all axes, in the order of the grid")
                    .help(format!("write `{name}[{}]` and shift the index you mean", axes.join(","))),
            ));
        }
        let mut offsets = [0; AXES_MAX];
        for (axis, index) in indices.iter().enumerate() {
            offsets[axis] = self.offset(index, axis, &axes, indices)?;
        }
        Ok(offsets)
    }

    fn offset(&mut self, index: &Expr, axis: usize, axes: &[&str], indices: &[Expr]) -> Result<i32, Poison> {
        let own = axes[axis];
        let form = match linear(index, axes) {
            Ok(form) => form,
            Err(NotLinear::Real(span)) => {
                return Err(self.report(
                    Code::IntegerReal
                        .error("an offset is a whole number or a multiple of 1/2")
                        .label(span, "a real number")
                        .note("points are counted; there is none in between, except at halves for staggered fields")
                        .suggest("write", span, "1/2", Applicability::Unsafe),
                ));
            }
            Err(NotLinear::Name(span)) => {
                return Err(self.report(
                    Code::IndexForm
                        .error(format!("an index is `{own}` plus or minus a written number"))
                        .label(span, "not an index of this grid")
                        .note("halo widths are inferred from the offsets, so they are known when the program is compiled")
                        .suggest("write for example", index.span, format!("{own}+1"), Applicability::Unsafe),
                ));
            }
            Err(NotLinear::Form(span)) => {
                return Err(self.report(
                    Code::IndexForm
                        .error(format!("an index is `{own}` plus or minus a number"))
                        .label(span, "not of this form")
                        .note("every rank must know which points it needs from its neighbours")
                        .suggest("write for example", index.span, format!("{own}+1"), Applicability::Unsafe),
                ));
            }
        };
        let others: Vec<usize> =
            (0..axes.len()).filter(|&other| other != axis && form.factors[other] != (0, 1)).collect();
        if form.factors[axis] == (0, 1)
            && let [other] = others.as_slice()
            && form.factors[*other] == (1, 1)
        {
            return Err(self.report(
                Code::IndexForm
                    .error(format!("the index `{}` stands where `{own}` belongs", axes[*other]))
                    .label(index.span, format!("the index of axis {} is `{own}`", axis + 1))
                    .note(format!("indices stand in the order of the grid: {}", axes.join(", ")))
                    .suggest_edits(
                        "put each index in its place",
                        unswapped(indices, axes, self.text),
                        Applicability::Unsafe,
                    ),
            ));
        }
        if form.factors[axis] != (1, 1) || !others.is_empty() {
            let what = match form.factors[axis] {
                (0, _) if others.is_empty() => "a fixed place, not an offset",
                _ => "not an offset from the point",
            };
            return Err(self.report(
                Code::IndexForm
                    .error(format!("an index is `{own}` plus or minus a number"))
                    .label(index.span, what)
                    .note("every point reads neighbours at the same distances, so that halos have one width")
                    .suggest("write for example", index.span, format!("{own}+1"), Applicability::Unsafe),
            ));
        }
        let (numerator, denominator) = form.constant;
        if 2 % denominator != 0 {
            return Err(self.report(
                Code::IntegerReal
                    .error("an offset is a whole number or a multiple of 1/2")
                    .label(index.span, format!("{numerator}/{denominator}"))
                    .note("points are counted; staggered fields have points at halves")
                    .suggest("write", index.span, format!("{own}+1/2"), Applicability::Unsafe),
            ));
        }
        let halves = numerator * (2 / denominator);
        i32::try_from(halves).ok().filter(|halves| halves.abs() <= 4 * RADIUS_MAX).ok_or_else(|| {
            self.report(
                Code::TooLarge
                    .error("this offset is too large")
                    .label(index.span, "here")
                    .note(format!("the limit is {RADIUS_MAX} points"))
                    .help("read nearer points"),
            )
        })
    }
}

/// Degree of an expression in an index; `None` below a constant bound means 0, above any means not a polynomial.
pub(super) fn degree(expr: &Expr, index: &str) -> Option<u32> {
    const ANY: u32 = u32::MAX;
    let of = |expr: &Expr| degree(expr, index).unwrap_or(0);
    Some(match &*expr.kind {
        ast::ExprKind::Int(_) | ast::ExprKind::Real(_) => 0,
        ast::ExprKind::Place { name, .. } => u32::from(name.text == index),
        ast::ExprKind::Paren(a) | ast::ExprKind::Unary(ast::UnaryOp::Neg | ast::UnaryOp::Plus, a) => of(a),
        ast::ExprKind::Binary(ast::BinaryOp::Add | ast::BinaryOp::Sub, a, b) => of(a).max(of(b)),
        ast::ExprKind::Binary(ast::BinaryOp::Mul, a, b) => of(a).saturating_add(of(b)),
        ast::ExprKind::Binary(ast::BinaryOp::Div, a, b) if of(b) == 0 => of(a),
        other => match other.operands().map(of).max().unwrap_or(0) {
            0 => 0,
            _ => ANY,
        },
    })
}

/// A fraction in lowest terms with a positive denominator.
type Fraction = (i64, i64);

struct Linear {
    factors: [Fraction; AXES_MAX],
    constant: Fraction,
}

enum NotLinear {
    Real(Span),
    Name(Span),
    Form(Span),
}

/// An index expression as a sum of multiples of indices and a constant.
fn linear(expr: &Expr, axes: &[&str]) -> Result<Linear, NotLinear> {
    let form = || NotLinear::Form(expr.span);
    let constant = |constant| Linear { factors: [(0, 1); AXES_MAX], constant };
    Ok(match &*expr.kind {
        ast::ExprKind::Int(n) => constant((i64::try_from(*n).map_err(|_| form())?, 1)),
        ast::ExprKind::Real(_) => return Err(NotLinear::Real(expr.span)),
        ast::ExprKind::Place { name, level: None, indices: None } => {
            match axes.iter().position(|axis| *axis == name.text) {
                Some(axis) => {
                    let mut linear = constant((0, 1));
                    linear.factors[axis] = (1, 1);
                    linear
                }
                None => return Err(NotLinear::Name(expr.span)),
            }
        }
        ast::ExprKind::Paren(a) | ast::ExprKind::Unary(ast::UnaryOp::Plus, a) => linear(a, axes)?,
        ast::ExprKind::Unary(ast::UnaryOp::Neg, a) => scale(linear(a, axes)?, (-1, 1)).ok_or_else(form)?,
        ast::ExprKind::Binary(ast::BinaryOp::Add, a, b) => {
            sum(linear(a, axes)?, linear(b, axes)?).ok_or_else(form)?
        }
        ast::ExprKind::Binary(ast::BinaryOp::Sub, a, b) => {
            let b = scale(linear(b, axes)?, (-1, 1)).ok_or_else(form)?;
            sum(linear(a, axes)?, b).ok_or_else(form)?
        }
        ast::ExprKind::Binary(ast::BinaryOp::Mul, a, b) => {
            let (a, b) = (linear(a, axes)?, linear(b, axes)?);
            match (a.factors == [(0, 1); AXES_MAX], b.factors == [(0, 1); AXES_MAX]) {
                (true, _) => scale(b, a.constant).ok_or_else(form)?,
                (false, true) => scale(a, b.constant).ok_or_else(form)?,
                (false, false) => return Err(form()),
            }
        }
        ast::ExprKind::Binary(ast::BinaryOp::Div, a, b) => {
            let (a, b) = (linear(a, axes)?, linear(b, axes)?);
            let (n, d) = b.constant;
            match b.factors == [(0, 1); AXES_MAX] && n != 0 {
                true => scale(a, (d * n.signum(), n.checked_abs().ok_or_else(form)?)).ok_or_else(form)?,
                false => return Err(form()),
            }
        }
        _ => return Err(form()),
    })
}

fn sum(a: Linear, b: Linear) -> Option<Linear> {
    let mut factors = a.factors;
    for (factor, more) in factors.iter_mut().zip(b.factors) {
        *factor = add(*factor, more)?;
    }
    Some(Linear { factors, constant: add(a.constant, b.constant)? })
}

fn scale(a: Linear, by: Fraction) -> Option<Linear> {
    let times = |x: Fraction| reduced(x.0.checked_mul(by.0)?, x.1.checked_mul(by.1)?);
    let mut factors = a.factors;
    for factor in &mut factors {
        *factor = times(*factor)?;
    }
    Some(Linear { factors, constant: times(a.constant)? })
}

fn add(a: Fraction, b: Fraction) -> Option<Fraction> {
    reduced(a.0.checked_mul(b.1)?.checked_add(b.0.checked_mul(a.1)?)?, a.1.checked_mul(b.1)?)
}

fn reduced(numerator: i64, denominator: i64) -> Option<Fraction> {
    let (mut a, mut b) = (numerator.checked_abs()?, denominator);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    Some((numerator / a, denominator / a))
}

/// Edits that put its own index's name at each place where another one stands.
fn unswapped(indices: &[Expr], axes: &[&str], text: &str) -> Vec<Edit> {
    let mut edits = Vec::new();
    for (axis, index) in indices.iter().enumerate() {
        let Ok(form) = linear(index, axes) else { continue };
        let named: Vec<usize> = (0..axes.len()).filter(|&other| form.factors[other] != (0, 1)).collect();
        if let [other] = named.as_slice()
            && *other != axis
        {
            let written = &text[index.span.range()];
            edits.push(edit(index.span, &written.replacen(axes[*other], axes[axis], 1)));
        }
    }
    edits
}
