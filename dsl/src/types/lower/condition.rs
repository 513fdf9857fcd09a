//! Conditions. Never gives a number.

use rma_source::Span;

use super::{Context, Poison, Scope, is_comparison, is_logic};
use crate::ir::{CompareOp, ExprId, ExprKind, Type, UnaryOp};
use crate::messages::Code;
use crate::resolve::Symbol;
use crate::syntax::ast::{self, Expr};
use crate::types::{DEPTH_MAX, LetState, Typer};

impl Typer<'_, '_> {
    /// Whether an expression is a condition rather than a number.
    pub(in crate::types) fn is_condition(&self, expr: &Expr, context: &Context<'_>) -> bool {
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

    pub(super) fn not_a_condition(&mut self, span: Span) -> Poison {
        self.report(
            Code::TypeMismatch
                .error("a condition is expected, and this is a number")
                .label(span, "a number")
                .note("conditions compare: `==`, `!=`, `<`, `<=`, `>`, `>=`, joined by `and`, `or`, `not`")
                .help("compare it with a number, for example `… > 0`"),
        )
    }

    /// A condition.
    pub(in crate::types) fn condition(
        &mut self,
        expr: &Expr,
        context: &Context<'_>,
    ) -> Result<ExprId, Poison> {
        self.burn(expr.span)?;
        if DEPTH_MAX < self.depth {
            return Err(self.too_large(expr.span));
        }
        self.depth += 1;
        let result = self.condition_kind(expr, context);
        self.depth -= 1;
        result
    }

    pub(super) fn condition_kind(&mut self, expr: &Expr, context: &Context<'_>) -> Result<ExprId, Poison> {
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
