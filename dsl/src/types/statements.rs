//! What runs in a step or looks at it: updates, sources, output, prints, probes, time. Never declares a field.

use std::collections::HashSet;

use rma_source::{Applicability, Span};

use super::lower::{Context, Fields, Poison};
use super::{COLORMAPS, LetState, Typer};
use crate::ir::{
    Checkpoint, Colour, ExprId, ExprKind, FieldId, FieldKind, Format, LetKind, Output, ParamId, Print,
    PrintItem, Probe, Source, Statement, Time, TimeRule, Type, Update, When,
};
use crate::messages::{Code, did_you_mean};
use crate::resolve::Symbol;
use crate::syntax::ast::{self, Expr, Name, StatementKind};

impl<'a, 'r> Typer<'a, 'r> {
    pub(super) fn statements(&mut self) {
        // An update with a syntax error may be the one that makes a level.
        let mut produced: HashSet<usize> = (0..self.program.fields.len())
            .filter(|&f| self.resolved.broken.contains(self.program.fields[f].name.as_str()))
            .collect();
        let mut earlier: Vec<(usize, Option<Colour>, Span)> = Vec::new();
        let mut until: Option<Span> = None;
        for statement in self.resolved.rest.clone() {
            let span = statement.span;
            match &statement.kind {
                StatementKind::Update(update) => {
                    let typed = self.update(update, &produced, &mut earlier);
                    if let Some(f) = self.field_of(&update.field) {
                        produced.insert(f);
                    }
                    if let Ok(update) = typed {
                        self.program.statements.push(Statement::Update(update));
                    }
                }
                StatementKind::Together(updates) => {
                    let typed: Vec<_> =
                        updates.iter().map(|update| self.update(update, &produced, &mut earlier)).collect();
                    produced.extend(updates.iter().filter_map(|update| self.field_of(&update.field)));
                    if let Ok(updates) = typed.into_iter().collect::<Result<Vec<_>, _>>() {
                        self.program.statements.push(Statement::Together(updates));
                    }
                }
                StatementKind::Source { at, field, value } => {
                    let _ = self.source(at, field, value, span);
                }
                StatementKind::Until(condition) => {
                    if let Some(first) = until {
                        self.report(
                            Code::Missing
                                .error("a program has one `until`")
                                .label(span, "the second one")
                                .label(first, "the first one")
                                .note("the run ends when its condition holds")
                                .help("join the conditions with `or`"),
                        );
                    }
                    until = Some(span);
                    if let Ok(condition) = self.condition_root(condition, &Context::scalar()) {
                        self.program.until = condition;
                    }
                }
                StatementKind::Output { fields, every, formats } => {
                    let _ = self.output(fields, every.as_ref(), formats, span);
                }
                StatementKind::Print { items, every } => {
                    let _ = self.print(items, every.as_ref(), span);
                }
                StatementKind::Probe { at, field, every, format, file } => {
                    let _ = self.probe(at, field, every.as_ref(), format.as_ref(), file.as_deref(), span);
                }
                StatementKind::Checkpoint { every } => {
                    if let Ok(every) = self.scalar_of(every, Type::I64) {
                        self.program.checkpoint = Some(Checkpoint { every, span });
                    }
                }
                _ => {}
            }
        }
        if until.is_none() && self.resolved.broken.is_empty() {
            let at = self.resolved.name.map_or(Span::at(0), |name| name.span);
            self.report(
                Code::Missing
                    .error("the program never ends: there is no `until`")
                    .label(at, "this program")
                    .note("steps run until the condition of `until` holds")
                    .help("write for example `until step >= 1000`"),
            );
        }
    }

    pub(super) fn update(
        &mut self,
        update: &ast::Update,
        produced: &HashSet<usize>,
        earlier: &mut Vec<(usize, Option<Colour>, Span)>,
    ) -> Result<Update, Poison> {
        let f = self.field_of(&update.field).ok_or(Poison)?;
        let (g, ty) = (self.program.fields[f].grid.index(), self.program.fields[f].ty);
        let name = update.field.text.as_str();
        let colour = match update.colour.as_ref().map(|colour| (colour.text.as_str(), colour.span)) {
            None => None,
            Some(("red", _)) => Some(Colour::Red),
            Some(("black", _)) => Some(Colour::Black),
            Some((other, span)) => {
                let guess = did_you_mean(other, ["red", "black"].into_iter()).unwrap_or("red");
                return Err(self.report(
                    Code::BadOption
                        .error(format!("`{other}` is not a colour"))
                        .label(span, "expected `red` or `black`")
                        .note("red points have an even sum of indices, black points an odd one")
                        .suggest(format!("write `{guess}`"), span, guess, Applicability::Unsafe),
                ));
            }
        };
        let mut failed = false;
        if let Some(level) = &update.level {
            self.report(
                Code::WrongUse
                    .error(format!("an update names its field without a level: `{name}`"))
                    .label(level.span, "the level is known")
                    .note("an update always makes the next value")
                    .suggest("write", update.target, name, Applicability::Safe),
            );
            failed = true;
        }
        if let Some(indices) = &update.indices {
            let offsets = self.offsets(indices, g, name, update.target)?;
            let own = self.halves(f);
            if offsets != own {
                let shifts: Vec<String> = (0..indices.len())
                    .map(|axis| {
                        let shift = (own[axis] - offsets[axis]) / 2;
                        let index = &self.resolved.grids[g].axes[axis].0.text;
                        match shift {
                            0 => index.clone(),
                            _ => format!("{index}{shift:+}"),
                        }
                    })
                    .collect();
                self.report(
                    Code::StoreToNeighbour
                        .error(format!("an update of `{name}` stores to a neighbour"))
                        .label(update.target, "this is not the point itself")
                        .note("each point computes its own value from what it reads (gather), so that points can be computed in any order and on any rank")
                        .help(format!(
                            "turn the scatter into a gather: write `update {name} = …` and shift every index of the right side, `{}` in place of `{}`",
                            shifts.join(","),
                            self.resolved.grids[g].axes.iter().map(|(index, _)| index.text.clone()).collect::<Vec<_>>().join(",")
                        )),
                );
                failed = true;
            }
        }
        for &(other, other_colour, span) in earlier.iter() {
            let is_pair = matches!(
                (other_colour, colour),
                (Some(Colour::Red), Some(Colour::Black)) | (Some(Colour::Black), Some(Colour::Red))
            );
            if other == f && !is_pair {
                self.report(
                    Code::OrderDependence
                        .error(format!("`{name}` is updated twice in one step"))
                        .label(update.span, "the second update")
                        .label(span, "the first update")
                        .note("a step gives each point one new value; only a red and a black update of one field can share a step")
                        .help(format!("join them into one update, read `{name}.next` in another field, or colour one red and one black")),
                );
                failed = true;
                break;
            }
        }
        earlier.push((f, colour, update.span));
        let context = Context::point(Some(g), self.halves(f), Fields::Allowed(produced));
        let value = self.root(&update.value, &context, Some(ty));
        let condition = update.condition.as_ref().map(|condition| self.condition_root(condition, &context));
        let (value, condition) = (value?, condition.transpose()?);
        match failed {
            true => Err(Poison),
            false => Ok(Update {
                field: FieldId::new(f),
                colour,
                value,
                condition,
                reads: Vec::new(),
                target: update.target,
                span: update.span,
            }),
        }
    }

    pub(super) fn position(&mut self, at: &[Expr], g: usize, span: Span) -> Result<Vec<ExprId>, Poison> {
        let n_axes = self.program.grids[g].axes.len();
        if at.len() != n_axes {
            return Err(self.report(
                Code::DimensionMismatch
                    .error(format!(
                        "a point of a grid of {n_axes} axes has {n_axes} coordinates, not {}",
                        at.len()
                    ))
                    .label(
                        at.iter().map(|x| x.span).reduce(Span::to).unwrap_or(span),
                        format!("{} here", at.len()),
                    )
                    .note(format!("the grid is `{}`", self.program.grids[g].name))
                    .help("give one coordinate per axis"),
            ));
        }
        at.iter().map(|x| self.scalar_of(x, Type::F64)).collect()
    }

    pub(super) fn source(
        &mut self,
        at: &[Expr],
        name: &Name,
        value: &Expr,
        span: Span,
    ) -> Result<(), Poison> {
        let f = self.field_of(name).ok_or(Poison)?;
        let field = &self.program.fields[f];
        let (g, ty) = (field.grid.index(), field.ty);
        if field.kind == FieldKind::Constant {
            return Err(self.report(
                Code::WrongUse
                    .error(format!("a source cannot add to `{}`, which never changes", name.text))
                    .label(name.span, "a field without updates")
                    .note("a source adds to the value that a step produces")
                    .help(format!("write an update, such as `update {0} = {0}`", name.text)),
            ));
        }
        let position = self.position(at, g, span)?;
        let produced = self.updated_fields();
        let context = Context::point(Some(g), self.halves(f), Fields::Allowed(&produced));
        let value = self.root(value, &context, Some(ty))?;
        self.program.sources.push(Source { field: FieldId::new(f), position, value, span });
        Ok(())
    }

    pub(super) fn when(&mut self, every: Option<&Expr>) -> Result<When, Poison> {
        match every {
            Some(every) => Ok(When::Every(self.scalar_of(every, Type::I64)?)),
            None => Ok(When::AtEnd),
        }
    }

    pub(super) fn output(
        &mut self,
        names: &[Name],
        every: Option<&Expr>,
        formats: &[ast::Format],
        span: Span,
    ) -> Result<(), Poison> {
        let when = self.when(every)?;
        let fields = names
            .iter()
            .map(|name| self.field_of(name).map(FieldId::new).ok_or(Poison))
            .collect::<Result<Vec<_>, _>>()?;
        let formats = formats.iter().map(|format| self.format(format)).collect::<Result<Vec<_>, _>>()?;
        self.program.outputs.push(Output { fields, when, formats, span });
        Ok(())
    }

    pub(super) fn format(&mut self, format: &ast::Format) -> Result<Format, Poison> {
        let name = format.name.text.as_str();
        let n_options = match name {
            "png" | "gif" => 1,
            _ => 0,
        };
        if n_options < format.options.len() {
            return Err(self.report(
                Code::BadOption
                    .error(format!("`{name}` has at most {n_options} options"))
                    .label(format.options[n_options].span, "one too many")
                    .note("the option of pictures is their colour map")
                    .help("write for example `png(viridis)`"),
            ));
        }
        let colormap = match format.options.first() {
            Some(option) if COLORMAPS.contains(&option.text.as_str()) => option.text.clone(),
            Some(option) => {
                let guess = did_you_mean(&option.text, COLORMAPS.into_iter()).unwrap_or(COLORMAPS[0]);
                return Err(self.report(
                    Code::BadOption
                        .error(format!("`{}` is not a colour map", option.text))
                        .label(option.span, "no colour map of this name")
                        .note(format!("colour maps are {}", COLORMAPS.join(", ")))
                        .suggest(format!("write `{guess}`"), option.span, guess, Applicability::Unsafe),
                ));
            }
            None => COLORMAPS[0].to_string(),
        };
        match name {
            "png" => Ok(Format::Png { colormap }),
            "gif" => Ok(Format::Gif { colormap }),
            "npy" => Ok(Format::Npy),
            "vtk" => Ok(Format::Vtk),
            "csv" => Ok(Format::Csv),
            _ => {
                let words = ["png", "gif", "npy", "vtk", "csv"];
                let guess = did_you_mean(name, words.into_iter()).unwrap_or("npy");
                Err(self.report(
                    Code::BadOption
                        .error(format!("`{name}` is not a file format"))
                        .label(format.name.span, "no format of this name")
                        .note(format!("formats are {}", words.join(", ")))
                        .suggest(format!("write `{guess}`"), format.name.span, guess, Applicability::Unsafe),
                ))
            }
        }
    }

    pub(super) fn print(&mut self, items: &[Expr], every: Option<&Expr>, span: Span) -> Result<(), Poison> {
        let when = self.when(every)?;
        let mut printed = Vec::new();
        for item in items {
            let context = Context::scalar();
            let value = match self.is_condition(item, &context) {
                true => self.condition_root(item, &context)?,
                false => self.root(item, &context, None)?,
            };
            let mut needs = Vec::new();
            self.program.exprs.visit(value, |_, expr| {
                if let ExprKind::Reduction(id) = expr.kind
                    && !needs.contains(&id)
                {
                    needs.push(id);
                }
            });
            let label = self.text[item.span.range()].split_whitespace().collect::<Vec<_>>().join("");
            printed.push(PrintItem { label, value, needs });
        }
        self.program.prints.push(Print { items: printed, when, span });
        Ok(())
    }

    pub(super) fn probe(
        &mut self,
        at: &[Expr],
        name: &Name,
        every: Option<&Expr>,
        format: Option<&ast::Format>,
        file: Option<&str>,
        span: Span,
    ) -> Result<(), Poison> {
        let f = self.field_of(name).ok_or(Poison)?;
        let position = self.position(at, self.program.fields[f].grid.index(), span)?;
        let when = self.when(every)?;
        let format = match format {
            Some(written) => match self.format(written)? {
                Format::Csv => Format::Csv,
                _ => {
                    return Err(self.report(
                        Code::BadOption
                            .error(format!("a probe cannot be written as `{}`", written.name.text))
                            .label(written.name.span, "expected `csv`")
                            .note("a probe gives one row of numbers per time")
                            .suggest("write `csv`", written.name.span, "csv", Applicability::Unsafe),
                    ));
                }
            },
            None => Format::Csv,
        };
        let name = file.unwrap_or("probe").to_string();
        self.program.probes.push(Probe { field: FieldId::new(f), position, when, format, name, span });
        Ok(())
    }

    pub(super) fn time(&mut self) {
        let dt = match self.resolved.symbols.get("dt") {
            Some(&Symbol::Param(i)) => {
                let param = &self.program.params[i];
                let (ty, span) = (param.ty, param.span);
                self.node(ExprKind::Param(ParamId::new(i)), ty, span).map(|id| (id, TimeRule::Product))
            }
            Some(&Symbol::Let(i)) => match self.lets[i] {
                LetState::Scalar(id) => {
                    let named = &self.program.lets[id.index()];
                    let rule = match named.kind {
                        LetKind::Static => TimeRule::Product,
                        LetKind::PerStep => TimeRule::RunningSum,
                    };
                    let (ty, span) = (named.ty, named.span);
                    self.node(ExprKind::Let(id), ty, span).map(|id| (id, rule))
                }
                LetState::Inline => {
                    let name = self.resolved.lets[i].name;
                    Err(self.report(
                        Code::Cycle
                            .error("`dt` depends on the time or the step")
                            .label(name.span, "declared here")
                            .note("the time is made of the steps' `dt`")
                            .help("make `dt` of parameters, lets and reductions"),
                    ))
                }
                LetState::Broken => Err(Poison),
            },
            _ => {
                let is_known = !self.resolved.uses_time || self.resolved.broken.contains("dt");
                if !is_known {
                    let at = self.time_span().unwrap_or(Span::at(0));
                    self.report(
                        Code::Missing
                            .error("a program that uses `t` declares `dt`")
                            .label(at, "the time is used here")
                            .note("the time is the number of completed steps times `dt`")
                            .help("write for example `param dt : real = 0.01`"),
                    );
                }
                Err(Poison)
            }
        };
        if let Ok((dt, rule)) = dt {
            let ty = self.program.exprs[dt].ty;
            if ty == Type::Bool {
                return;
            }
            let dt = self.cast(dt, Type::F64).unwrap_or(dt);
            self.program.time = Time {
                dt: Some(dt),
                rule: match self.resolved.uses_time {
                    true => rule,
                    false => TimeRule::Unused,
                },
            };
        }
    }

    pub(super) fn time_span(&self) -> Option<Span> {
        self.program
            .exprs
            .iter()
            .find(|(_, expr)| matches!(expr.kind, ExprKind::Time))
            .map(|(_, expr)| expr.span)
    }
}
