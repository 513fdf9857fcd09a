//! Names that stand for places: coordinates, indices, spacings, accesses to fields and their levels. Never joins two values.

use std::collections::HashSet;

use rma_source::{Applicability, Span};

use super::{Context, Fields, LocalKind, Poison};
use crate::ir::{self, AXES_MAX, Access, BinaryOp, ExprId, ExprKind, FieldId, Level, ParamId, Type};
use crate::messages::Code;
use crate::resolve::Symbol;
use crate::syntax::ast::{self, Expr, Name};
use crate::types::index::degree;
use crate::types::{LetState, RADIUS_MAX, Typer, edit, reduction_id};

impl Typer<'_, '_> {
    pub(super) fn place(
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
    pub(super) fn index(&mut self, axis: usize, span: Span, context: &Context<'_>) -> Result<ExprId, Poison> {
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
    pub(in crate::types) fn coordinate(
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
    pub(super) fn point_index(
        &mut self,
        axis: usize,
        span: Span,
        context: &Context<'_>,
    ) -> Result<ExprId, Poison> {
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
    pub(in crate::types) fn spacing(
        &mut self,
        f: usize,
        axis: usize,
        written: Span,
    ) -> Result<ExprId, Poison> {
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
    pub(super) fn argument(
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

    pub(super) fn grid_of(
        &mut self,
        name: &Name,
        span: Span,
        context: &Context<'_>,
    ) -> Result<usize, Poison> {
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
    pub(super) fn bare_field(&self, arg: &Expr, caller: &Context<'_>) -> Option<usize> {
        match &*arg.bare().kind {
            ast::ExprKind::Place { name, level: None, indices: None } => match caller.argument(&name.text) {
                Some((arg, caller)) => self.bare_field(arg, caller),
                None => self.field_of(name),
            },
            _ => None,
        }
    }

    pub(super) fn access(
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

    pub(super) fn illegal_staggering(
        &mut self,
        f: usize,
        axis: usize,
        indices: Option<&[Expr]>,
        span: Span,
    ) -> Poison {
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

    pub(super) fn level(
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
}
