//! Typed IR from the tree: functions and coordinates are inlined, every operand gets the type that it is computed in.
//!
//! Post-condition: every expression is typed as [`crate::ir::ExprKind`] demands, every access has a known offset on
//! every axis and reads a level that its field keeps. Never looks at sides that accesses cross; that is the shape
//! pass's.

mod index;
mod lower;
#[cfg(test)]
mod test;

use std::collections::{HashMap, HashSet};

use rma_source::{Applicability, Diagnostic, Edit, FileId, Span};

use crate::ir::{
    self, Axis, Checkpoint, Colour, ExprId, ExprKind, Extent, Field, FieldId, FieldKind, Format, Grid,
    GridId, Init, Initially, Let, LetId, LetKind, Level, Output, Param, ParamId, Place, Print, PrintItem,
    Probe, Program, ReduceOp, Reduction, ReductionId, Side, SideRule, Source, Stage, Statement, Time,
    TimeRule, Type, Update, When,
};
use crate::messages::{Code, did_you_mean};
use crate::resolve::{LetClass, Resolved, Symbol};
use crate::syntax::ast::{self, Expr, Name, StatementKind};
use lower::{Context, Fields, Poison};

/// Most nodes of an expression with everything inlined, shared nodes counted at each use.
pub const EXPANDED_NODES_MAX: u64 = 20_000;

/// Deepest nesting of an expression with everything inlined.
pub const DEPTH_MAX: u32 = 300;

/// Largest literal exponent that is multiplied out.
pub const EXPONENT_MAX: u64 = 1024;

/// Farthest that an access may reach.
pub const RADIUS_MAX: i32 = 1024;

/// What is left to tell later passes beside the program.
#[derive(Debug, Default)]
pub struct Facts {
    /// Fields some of whose statements were reported; nothing is said about their missing rules.
    pub doubtful: HashSet<FieldId>,
    /// Where numbers of levels are written.
    pub levels: HashMap<FieldId, Span>,
}

/// The result of the pass; the program is whole only if there is no error.
pub struct Typed {
    /// The program.
    pub program: Program,
    /// What later passes must know.
    pub facts: Facts,
    /// What was found.
    pub diagnostics: Vec<Diagnostic>,
}

/// Types a resolved file; `text` is its source, for the labels of prints.
pub fn types(resolved: &Resolved<'_>, text: &str) -> Typed {
    let mut typer = Typer::new(resolved, text);
    typer.params();
    typer.static_lets();
    typer.grids();
    typer.fields();
    typer.lets_and_reductions();
    typer.statements();
    typer.time();
    typer.unread();
    Typed { program: typer.program, facts: typer.facts, diagnostics: typer.diagnostics }
}

/// What a let became.
#[derive(Clone, Copy, Debug)]
enum LetState {
    Inline,
    Scalar(LetId),
    Broken,
}

struct Typer<'a, 'r> {
    resolved: &'r Resolved<'a>,
    text: &'r str,
    program: Program,
    facts: Facts,
    diagnostics: Vec<Diagnostic>,
    lets: Vec<LetState>,
    reductions: Vec<Option<Reduction>>,
    /// Fields that could not be declared.
    broken_fields: HashSet<usize>,
    /// Size with everything inlined and depth, per node.
    measures: Vec<(u64, u32)>,
    /// Work left for one statement.
    fuel: u32,
    depth: u32,
}

impl<'a, 'r> Typer<'a, 'r> {
    fn new(resolved: &'r Resolved<'a>, text: &'r str) -> Typer<'a, 'r> {
        let mut exprs = ir::Exprs::default();
        let until = exprs.add(ExprKind::Bool(true), Type::Bool, Span::at(0));
        Typer {
            resolved,
            text,
            program: Program {
                name: resolved.name.map_or(String::from("program"), |name| name.text.clone()),
                stage: Stage::Typed,
                exprs,
                params: Vec::new(),
                lets: Vec::new(),
                grids: Vec::new(),
                fields: Vec::new(),
                statements: Vec::new(),
                sources: Vec::new(),
                reductions: Vec::new(),
                until,
                outputs: Vec::new(),
                prints: Vec::new(),
                probes: Vec::new(),
                checkpoint: None,
                time: Time { dt: None, rule: TimeRule::Unused },
                plan: ir::Plan::default(),
            },
            facts: Facts::default(),
            diagnostics: Vec::new(),
            lets: vec![LetState::Broken; resolved.lets.len()],
            reductions: Vec::new(),
            broken_fields: HashSet::new(),
            measures: vec![(1, 1)],
            fuel: 0,
            depth: 0,
        }
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Poison {
        self.diagnostics.push(diagnostic);
        Poison
    }

    fn params(&mut self) {
        for decl in &self.resolved.params {
            let ty = match decl.ty.text.as_str() {
                "int" => Type::I64,
                "real" => Type::F64,
                other => {
                    let guess = did_you_mean(other, ["int", "real"].into_iter()).unwrap_or("real");
                    self.report(
                        Code::BadOption
                            .error(format!("`{other}` is not a type of parameters"))
                            .label(decl.ty.span, "expected `int` or `real`")
                            .note("a parameter is a whole number or a real number")
                            .suggest(format!("write `{guess}`"), decl.ty.span, guess, Applicability::Unsafe),
                    );
                    Type::F64
                }
            };
            if decl.default.is_none() {
                self.report(
                    Code::Missing
                        .error(format!("the parameter `{}` has no value", decl.name.text))
                        .label(decl.span, "no `= VALUE`")
                        .note("a value is needed when `--set` gives none")
                        .help(format!("write `param {} : {} = 1`", decl.name.text, decl.ty.text)),
                );
            }
            let mut scalar = |value: Option<&Expr>| value.and_then(|value| self.scalar_of(value, ty).ok());
            let (min, max) = (scalar(decl.range.0), scalar(decl.range.1));
            let default = scalar(decl.default).unwrap_or(self.program.until);
            self.program.params.push(Param {
                name: decl.name.text.clone(),
                ty,
                default,
                min,
                max,
                doc: decl.doc.to_string(),
                span: decl.span,
            });
        }
    }

    /// A static scalar of a type, for parameters and sizes.
    fn scalar_of(&mut self, expr: &Expr, ty: Type) -> Result<ExprId, Poison> {
        let context = Context::scalar();
        match ty {
            Type::I64 => self.integer(expr, &context),
            _ => self.root(expr, &context, Some(ty)),
        }
    }

    fn static_lets(&mut self) {
        for symbol in self.resolved.order.clone() {
            if let Symbol::Let(i) = symbol
                && !self.resolved.circular.contains(&symbol)
            {
                match self.resolved.lets[i].class {
                    LetClass::Static => self.named(i, LetKind::Static),
                    LetClass::Inline => self.lets[i] = LetState::Inline,
                    LetClass::PerStep => {}
                }
            }
        }
    }

    fn named(&mut self, i: usize, kind: LetKind) {
        let decl = &self.resolved.lets[i];
        let context = Context::scalar();
        let value = match self.is_condition(decl.value, &context) {
            true => self.condition(decl.value, &context),
            false => self.root(decl.value, &context, None),
        };
        if let Ok(value) = value {
            let id = LetId::new(self.program.lets.len());
            let ty = self.program.exprs[value].ty;
            self.program.lets.push(Let {
                name: decl.name.text.clone(),
                ty,
                value,
                kind,
                span: decl.name.span,
            });
            self.lets[i] = LetState::Scalar(id);
        }
    }

    fn grids(&mut self) {
        for (g, decl) in self.resolved.grids.iter().enumerate() {
            if ir::AXES_MAX < decl.axes.len() {
                self.report(
                    Code::DimensionMismatch
                        .error(format!("the grid `{}` has {} axes", decl.name.text, decl.axes.len()))
                        .label(decl.span, "more than three")
                        .note("grids have one, two or three axes")
                        .help("use several fields instead of a fourth axis"),
                );
            }
            let mut axes = Vec::new();
            for (axis, (index, len)) in decl.axes.iter().enumerate().take(ir::AXES_MAX) {
                let len = self.scalar_of(len, Type::I64).unwrap_or(self.program.until);
                let coordinate = decl.coordinates[axis].map(|(name, _)| name.text.clone());
                self.refuel();
                let position = self.coordinate(g, axis, &Context::point(Some(g), [0; 3], Fields::Coordinate));
                let position = position.unwrap_or(self.program.until);
                axes.push(Axis { index: index.text.clone(), len, coordinate, position });
            }
            self.program.grids.push(Grid { name: decl.name.text.clone(), axes, span: decl.span });
        }
    }

    fn fields(&mut self) {
        let coloured = self.updated(|update| update.colour.is_some());
        let updated = self.updated(|_| true);
        let perhaps_updated = self.perhaps_updated();
        for (f, decl) in self.resolved.fields.iter().enumerate() {
            let id = FieldId::new(f);
            let ty = match decl.ty.map(|name| name.text.as_str()) {
                None | Some("real") => Type::F64,
                Some("real32") => Type::F32,
                Some("u64") => Type::U64,
                Some("i64") => Type::I64,
                Some(other) => {
                    let span = decl.ty.map_or(decl.span, |name| name.span);
                    let guess =
                        did_you_mean(other, ["real", "real32", "u64", "i64"].into_iter()).unwrap_or("real");
                    self.report(
                        Code::BadOption
                            .error(format!("`{other}` is not a type of fields"))
                            .label(span, "expected `real`, `real32`, `u64` or `i64`")
                            .note("a field holds one number per point")
                            .suggest(format!("write `{guess}`"), span, guess, Applicability::Unsafe),
                    );
                    Type::F64
                }
            };
            let name = decl.name.text.as_str();
            let (kind, levels) = match decl.levels {
                Some(ast::Levels::Constant(span)) => {
                    if updated.contains(name) {
                        self.report(
                            Code::WrongUse
                                .error(format!("the field `{name}` is constant and has an update"))
                                .label(*span, "declared constant here")
                                .note("a constant field keeps its initial values")
                                .help("remove `constant`, or the update"),
                        );
                    }
                    (FieldKind::Constant, 1)
                }
                Some(ast::Levels::Count(count)) => {
                    self.facts.levels.insert(id, count.span);
                    (FieldKind::Evolving, self.levels(count))
                }
                None if !perhaps_updated.contains(name) => (FieldKind::Constant, 1),
                None if coloured.contains(name) => (FieldKind::Evolving, 1),
                None => (FieldKind::Evolving, 2),
            };
            let Some(g) = decl.grid else {
                self.broken_fields.insert(f);
                self.facts.doubtful.insert(id);
                self.program.fields.push(self.empty_field(name, ty, decl.span));
                continue;
            };
            let places = self.places(decl, g);
            let n_axes = self.program.grids[g].axes.len();
            let mut field = Field {
                kind,
                levels,
                grid: GridId::new(g),
                places,
                sides: vec![SideRule::None; 2 * n_axes],
                halo: vec![Extent::default(); n_axes],
                ..self.empty_field(name, ty, decl.span)
            };
            field.init = vec![(Level::Now, Init::Zero)];
            if levels == 3 {
                field.init.push((Level::Prev, Init::Zero));
            }
            self.program.fields.push(field);
        }
        for statement in self.resolved.rest.clone() {
            if let StatementKind::Boundary { field, rules } = &statement.kind {
                self.boundary(field, rules);
            }
        }
        for f in 0..self.program.fields.len() {
            if !self.broken_fields.contains(&f) {
                self.periodic_pairs(f);
                self.lens(f);
            }
        }
        for statement in self.resolved.rest.clone() {
            if let StatementKind::Init { field, level, value } = &statement.kind {
                self.init(field, level.as_ref(), value);
            }
        }
    }

    fn empty_field(&self, name: &str, ty: Type, span: Span) -> Field {
        Field {
            name: name.to_string(),
            ty,
            grid: GridId(0),
            places: Vec::new(),
            kind: FieldKind::Constant,
            levels: 1,
            lens: Vec::new(),
            positions: Vec::new(),
            init: Vec::new(),
            sides: Vec::new(),
            written: Vec::new(),
            halo: Vec::new(),
            span,
        }
    }

    /// Names of fields with an update of a kind.
    fn updated(&self, is_meant: impl Fn(&ast::Update) -> bool) -> HashSet<String> {
        let mut names = HashSet::new();
        for statement in &self.resolved.rest {
            let updates = match &statement.kind {
                StatementKind::Update(update) => std::slice::from_ref(update),
                StatementKind::Together(updates) => updates,
                _ => &[],
            };
            names.extend(
                updates.iter().filter(|update| is_meant(update)).map(|update| update.field.text.clone()),
            );
        }
        names
    }

    /// Names of fields with an update, or that a statement with a syntax error may update.
    fn perhaps_updated(&self) -> HashSet<String> {
        let mut names = self.updated(|_| true);
        names.extend(self.resolved.broken.iter().map(|name| name.to_string()));
        names
    }

    fn levels(&mut self, count: &Expr) -> u32 {
        match *count.bare().kind {
            ast::ExprKind::Int(n @ 1..=3) => n as u32,
            _ => {
                self.report(
                    Code::BadOption
                        .error("the number of levels must be 1, 2 or 3")
                        .label(count.span, "not a whole number from 1 to 3")
                        .note("1 keeps `u`, 2 also `u.next`, 3 also `u.prev`")
                        .suggest("most fields need two", count.span, "2", Applicability::Unsafe),
                );
                2
            }
        }
    }

    fn places(&mut self, decl: &crate::resolve::FieldDecl<'_>, g: usize) -> Vec<Place> {
        let grid = &self.resolved.grids[g];
        let n_axes = self.program.grids[g].axes.len();
        let Some(at) = decl.at else { return vec![Place::Whole; n_axes] };
        let span = at.iter().map(|expr| expr.span).reduce(Span::to).unwrap_or(decl.span);
        let Ok(offsets) = self.offsets(at, g, &decl.name.text, span) else {
            return vec![Place::Whole; n_axes];
        };
        let mut places = Vec::new();
        for axis in 0..n_axes {
            places.push(match offsets[axis] {
                0 => Place::Whole,
                1 => Place::Half,
                _ => {
                    let index = &grid.axes[axis].0.text;
                    self.report(
                        Code::IllegalStaggering
                            .error(format!("a field lives at `{index}` or at `{index}+1/2`"))
                            .label(at[axis].span, "neither")
                            .note("stored points are counted from the west, south and bottom")
                            .suggest("write", at[axis].span, format!("{index}+1/2"), Applicability::Unsafe),
                    );
                    Place::Whole
                }
            });
        }
        places
    }

    fn lens(&mut self, f: usize) {
        let field = &self.program.fields[f];
        let (g, n_axes) = (field.grid.index(), field.places.len());
        let mut lens = Vec::new();
        for axis in 0..field.places.len() {
            let len = self.program.grids[field.grid.index()].axes[axis].len;
            let is_shorter = field.places[axis] == Place::Half && !field.is_periodic(axis);
            lens.push((len, is_shorter));
        }
        let mut counted = Vec::new();
        for (len, is_shorter) in lens {
            counted.push(match is_shorter {
                true => self.one_less(len).unwrap_or(self.program.until),
                false => len,
            });
        }
        self.program.fields[f].lens = counted;
        let context = Context::point(Some(g), self.halves(f), Fields::Coordinate);
        let mut positions = Vec::new();
        for axis in 0..n_axes {
            self.refuel();
            positions.push(self.coordinate(g, axis, &context).unwrap_or(self.program.until));
        }
        self.program.fields[f].positions = positions;
    }

    fn one_less(&mut self, len: ExprId) -> Result<ExprId, Poison> {
        let span = self.program.exprs[len].span;
        let one = self.node(ExprKind::Int(1), Type::I64, span)?;
        self.node(ExprKind::Binary(ir::BinaryOp::Sub, len, one), Type::I64, span)
    }

    fn field_of(&self, name: &Name) -> Option<usize> {
        match self.resolved.symbols.get(name.text.as_str()) {
            // Parameters, lets and grids are typed before there are fields; the names' pass refuses fields in them.
            Some(&Symbol::Field(f)) if f < self.program.fields.len() && !self.broken_fields.contains(&f) => {
                Some(f)
            }
            _ => None,
        }
    }

    fn halves(&self, f: usize) -> [i32; ir::AXES_MAX] {
        let mut halves = [0; ir::AXES_MAX];
        for (axis, place) in self.program.fields[f].places.iter().enumerate() {
            halves[axis] = i32::from(*place == Place::Half);
        }
        halves
    }

    fn boundary(&mut self, name: &Name, rules: &[ast::Rule]) {
        let Some(f) = self.field_of(name) else { return };
        for rule in rules {
            let Some(sides) = self.sides(f, rule) else {
                self.facts.doubtful.insert(FieldId::new(f));
                continue;
            };
            for (side, span) in sides {
                let value = match self.rule(f, side, &rule.value) {
                    Ok(value) => value,
                    Err(Poison) => {
                        self.facts.doubtful.insert(FieldId::new(f));
                        break;
                    }
                };
                let field = &mut self.program.fields[f];
                match field.sides[side.position()] {
                    SideRule::None => {
                        field.sides[side.position()] = value;
                        field.written.push(side);
                    }
                    _ => {
                        let first = self.rule_span(f, side).unwrap_or(span);
                        self.report(
                            Code::BoundaryRules
                                .error(format!("the {} side of `{}` has two rules", side.name(), name.text))
                                .label(span, "the second rule")
                                .label(first, "the first rule")
                                .note("each side of a field has one rule; `all` is every side")
                                .help("remove one of them"),
                        );
                    }
                }
            }
        }
    }

    fn sides(&mut self, f: usize, rule: &ast::Rule) -> Option<Vec<(Side, Span)>> {
        let n_axes = self.program.fields[f].places.len();
        if let Some(all) = rule.sides.iter().find(|name| name.text == "all") {
            if 1 < rule.sides.len() {
                self.report(
                    Code::BoundaryRules
                        .error("`all` stands alone")
                        .label(all.span, "already every side")
                        .note("the other sides of the list would have two rules")
                        .help("write `all` only, or list the sides"),
                );
                return None;
            }
            return Some(Side::of(n_axes).iter().map(|&side| (side, all.span)).collect());
        }
        let mut sides = Vec::new();
        for name in &rule.sides {
            match Side::ALL.iter().find(|side| side.name() == name.text) {
                Some(&side) if side.axis < n_axes => sides.push((side, name.span)),
                Some(side) => {
                    let grid = &self.program.grids[self.program.fields[f].grid.index()].name;
                    let diagnostic = Code::DimensionMismatch
                        .error(format!("a grid of {n_axes} axes has no {} side", side.name()))
                        .label(name.span, format!("`{grid}` has {n_axes} axes"))
                        .note("1D grids have west and east, 2D grids also south and north, 3D grids also bottom and top")
                        .help("remove the side, or use `all`");
                    self.report(diagnostic);
                    return None;
                }
                None => {
                    let names = Side::ALL.iter().map(|side| side.name()).chain(["all"]);
                    let diagnostic = Code::Undeclared
                        .error(format!("`{}` is not a side", name.text))
                        .label(name.span, "no side of this name")
                        .note("sides are west, east, south, north, bottom, top and all");
                    let diagnostic = match did_you_mean(&name.text, names) {
                        Some(guess) => diagnostic.suggest(
                            format!("did you mean `{guess}`?"),
                            name.span,
                            guess,
                            Applicability::Unsafe,
                        ),
                        None => diagnostic.help("write `all` for every side"),
                    };
                    self.report(diagnostic);
                    return None;
                }
            }
        }
        Some(sides)
    }

    fn rule(&mut self, f: usize, side: Side, value: &ast::RuleValue) -> Result<SideRule, Poison> {
        let (g, ty) = (self.program.fields[f].grid.index(), self.program.fields[f].ty);
        let context = Context::point(Some(g), self.halves(f), Fields::Refused("a boundary rule"));
        match value {
            ast::RuleValue::Neumann(slope) => {
                if ty.is_integer() {
                    return Err(self.report(
                        Code::Unsupported
                            .error("`neumann` for an integer field is not supported yet")
                            .label(slope.span, format!("`{}` is {}", self.program.fields[f].name, ty.name()))
                            .note("a derivative is a real number")
                            .help("write `mirror` for a zero derivative at the edge"),
                    ));
                }
                let spacing = self.spacing(f, side.axis, slope.span)?;
                let slope = self.root(slope, &context, Some(ty))?;
                Ok(SideRule::Neumann { spacing, slope })
            }
            ast::RuleValue::Value(value) => match &*value.kind {
                ast::ExprKind::Place { name, level: None, indices: None } if name.text == "mirror" => {
                    Ok(SideRule::Mirror)
                }
                ast::ExprKind::Place { name, level: None, indices: None } if name.text == "periodic" => {
                    Ok(SideRule::Periodic)
                }
                ast::ExprKind::Place { name, .. } if name.text == "sponge" => {
                    Err(self.sponge_form(name.span))
                }
                ast::ExprKind::Call { name, args } if name.text == "sponge" => {
                    let [width, strength] = args.as_slice() else { return Err(self.sponge_form(value.span)) };
                    if ty.is_integer() {
                        return Err(self.report(
                            Code::TypeMismatch
                                .error("a sponge damps real fields only")
                                .label(
                                    value.span,
                                    format!("`{}` is {}", self.program.fields[f].name, ty.name()),
                                )
                                .note("its factor is a real number below 1")
                                .help("choose another rule"),
                        ));
                    }
                    let width = self.scalar_of(width, Type::I64)?;
                    let strength = self.scalar_of(strength, Type::F64)?;
                    Ok(SideRule::Sponge { width, strength })
                }
                _ => Ok(SideRule::Fixed(self.root(value, &context, Some(ty))?)),
            },
        }
    }

    fn sponge_form(&mut self, span: Span) -> Poison {
        self.report(
            Code::BadOption
                .error("a sponge needs a width in points and a strength")
                .label(span, "expected two numbers")
                .note("`sponge(w, a)` multiplies by exp(-(a*(w-d))^2) at distance d < w")
                .suggest("for example", span, "sponge(20, 0.01)", Applicability::Unsafe),
        )
    }

    fn periodic_pairs(&mut self, f: usize) {
        let field = &self.program.fields[f];
        let mut found = Vec::new();
        for axis in 0..field.places.len() {
            let (low, high) = (Side::ALL[2 * axis], Side::ALL[2 * axis + 1]);
            let is_periodic = |side| matches!(field.rule(side), SideRule::Periodic);
            let (one, other) = match (is_periodic(low), is_periodic(high)) {
                (true, false) => (low, high),
                (false, true) => (high, low),
                _ => continue,
            };
            found.push((one, other, field.name.clone(), field.span));
        }
        for (one, other, name, span) in found {
            let is_doubtful = !self.facts.doubtful.insert(FieldId::new(f));
            if is_doubtful {
                continue;
            }
            self.report(
                Code::BoundaryRules
                    .error(format!("the {} side of `{name}` is periodic and the {} side is not", one.name(), other.name()))
                    .label(self.rule_span(f, one).unwrap_or(span), "periodic here")
                    .note("beyond one side of a periodic axis lies the other side, so both sides are periodic or none")
                    .help(format!("write `{}, {} = periodic`", one.name(), other.name())),
            );
        }
    }

    /// Where the rule of a side is written.
    fn rule_span(&self, f: usize, side: Side) -> Option<Span> {
        let name = &self.program.fields[f].name;
        self.resolved.rest.iter().find_map(|statement| match &statement.kind {
            StatementKind::Boundary { field, rules } if field.text == *name => rules
                .iter()
                .find(|rule| rule.sides.iter().any(|other| other.text == side.name() || other.text == "all"))
                .map(|rule| rule.span),
            _ => None,
        })
    }

    fn init(&mut self, name: &Name, level: Option<&Name>, value: &ast::InitValue) {
        let Some(f) = self.field_of(name) else { return };
        let (g, ty) = (self.program.fields[f].grid.index(), self.program.fields[f].ty);
        let value = match value {
            ast::InitValue::File(path, _) => Init::File(path.clone()),
            ast::InitValue::Value(value) => {
                let context = Context::point(Some(g), self.halves(f), Fields::Refused("an initial value"));
                match self.root(value, &context, Some(ty)) {
                    Ok(value) => Init::Value(value),
                    Err(Poison) => return,
                }
            }
        };
        let field = &mut self.program.fields[f];
        match level.map(|level| level.text.as_str()) {
            None => {
                // A level that has its own statement keeps it.
                let has_own = |resolved: &Resolved<'_>| {
                    resolved.rest.iter().any(|statement| match &statement.kind {
                        StatementKind::Init { field, level: Some(_), .. } => field.text == name.text,
                        _ => false,
                    })
                };
                let keep = has_own(self.resolved);
                for (kept, slot) in &mut field.init {
                    if *kept == Level::Now || !keep {
                        *slot = value.clone();
                    }
                }
            }
            Some("prev") if field.levels == 3 => {
                for (kept, slot) in &mut field.init {
                    if *kept == Level::Prev {
                        *slot = value.clone();
                    }
                }
            }
            Some(word) => {
                let span = level.map_or(name.span, |level| level.span);
                let (word, kept) = (word.to_string(), field.levels);
                self.report(
                    Code::LevelNotKept
                        .error(format!("`{}.{word}` cannot be initialised", name.text))
                        .label(
                            span,
                            format!("`{}` has {kept} level{}", name.text, if kept == 1 { "" } else { "s" }),
                        )
                        .note("a run starts from `u` and, with `levels 3`, from `u.prev`")
                        .help(format!("declare `levels 3`, or write `init {} = …`", name.text)),
                );
            }
        }
    }

    fn lets_and_reductions(&mut self) {
        self.reductions = (0..self.resolved.reductions.len()).map(|_| None).collect();
        for symbol in self.resolved.order.clone() {
            match symbol {
                _ if self.resolved.circular.contains(&symbol) => {}
                Symbol::Let(i) if self.resolved.lets[i].class == LetClass::PerStep => {
                    self.named(i, LetKind::PerStep);
                }
                Symbol::Reduction(i) => {
                    if let Ok(reduction) = self.reduction(i) {
                        self.reductions[i] = Some(reduction);
                    }
                }
                _ => {}
            }
        }
        let dummy = self.program.until;
        for (i, decl) in self.resolved.reductions.iter().enumerate() {
            let reduction = self.reductions[i].clone().unwrap_or(Reduction {
                name: decl.name.text.clone(),
                op: ReduceOp::Max,
                value: dummy,
                ty: Type::F64,
                over: FieldId(0),
                every: dummy,
                initially: Initially::Wait,
                reads: Vec::new(),
                span: decl.span,
            });
            self.program.reductions.push(reduction);
        }
    }

    fn reduction(&mut self, i: usize) -> Result<Reduction, Poison> {
        let decl = &self.resolved.reductions[i];
        let op = match decl.op.text.as_str() {
            "max" => ReduceOp::Max,
            "min" => ReduceOp::Min,
            "sum" => ReduceOp::Sum,
            "norm2" => ReduceOp::Norm2,
            other => {
                let guess = did_you_mean(other, ["max", "min", "sum", "norm2"].into_iter()).unwrap_or("max");
                return Err(self.report(
                    Code::BadOption
                        .error(format!("`{other}` is not a reduction"))
                        .label(decl.op.span, "expected `max`, `min`, `sum` or `norm2`")
                        .note("a reduction makes one number of all points")
                        .suggest(format!("write `{guess}`"), decl.op.span, guess, Applicability::Unsafe),
                ));
            }
        };
        let every = match decl.every {
            Some(every) => self.scalar_of(every, Type::I64)?,
            None => self.node(ExprKind::Int(1), Type::I64, decl.span)?,
        };
        let Some(over) = self.first_field(decl.value) else {
            return Err(self.report(
                Code::WrongUse
                    .error(format!("the reduction `{}` reads no field", decl.name.text))
                    .label(decl.value.span, "the same at every point")
                    .note("a reduction runs over the points of the grid of the fields that it reads")
                    .help("read a field, for example `0*u + 1` to count points"),
            ));
        };
        let produced: HashSet<usize> = self.updated_fields();
        let g = self.program.fields[over].grid.index();
        let context = Context::point(Some(g), self.halves(over), Fields::Allowed(&produced));
        let mut value = self.root(decl.value, &context, None)?;
        if op == ReduceOp::Norm2 && self.program.exprs[value].ty.is_integer() {
            value = self.cast(value, Type::F64)?;
        }
        let ty = match self.program.exprs[value].ty {
            integer @ (Type::I64 | Type::U64) => integer,
            _ => Type::F64,
        };
        Ok(Reduction {
            name: decl.name.text.clone(),
            op,
            value,
            ty,
            over: FieldId::new(over),
            every,
            initially: match decl.is_needed_initially {
                true => Initially::Run,
                false => Initially::Wait,
            },
            reads: Vec::new(),
            span: decl.span,
        })
    }

    fn updated_fields(&self) -> HashSet<usize> {
        let names = self.perhaps_updated();
        (0..self.program.fields.len()).filter(|&f| names.contains(&self.program.fields[f].name)).collect()
    }

    fn statements(&mut self) {
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

    fn update(
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

    fn position(&mut self, at: &[Expr], g: usize, span: Span) -> Result<Vec<ExprId>, Poison> {
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

    fn source(&mut self, at: &[Expr], name: &Name, value: &Expr, span: Span) -> Result<(), Poison> {
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

    fn when(&mut self, every: Option<&Expr>) -> Result<When, Poison> {
        match every {
            Some(every) => Ok(When::Every(self.scalar_of(every, Type::I64)?)),
            None => Ok(When::AtEnd),
        }
    }

    fn output(
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

    fn format(&mut self, format: &ast::Format) -> Result<Format, Poison> {
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

    fn print(&mut self, items: &[Expr], every: Option<&Expr>, span: Span) -> Result<(), Poison> {
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

    fn probe(
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

    fn time(&mut self) {
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

    fn time_span(&self) -> Option<Span> {
        self.program
            .exprs
            .iter()
            .find(|(_, expr)| matches!(expr.kind, ExprKind::Time))
            .map(|(_, expr)| expr.span)
    }

    /// Warns of fields that nothing looks at.
    fn unread(&mut self) {
        if self.diagnostics.iter().any(Diagnostic::is_error) || !self.resolved.broken.is_empty() {
            return;
        }
        let program = &self.program;
        let mut read: HashSet<FieldId> = HashSet::new();
        let mut roots: Vec<ExprId> = Vec::new();
        for update in program.statements.iter().flat_map(Statement::updates) {
            roots.push(update.value);
            roots.extend(update.condition);
        }
        roots.extend(program.reductions.iter().map(|reduction| reduction.value));
        roots.extend(program.sources.iter().map(|source| source.value));
        for root in roots {
            read.extend(program.exprs.accesses(root).iter().map(|access| access.field));
        }
        read.extend(program.outputs.iter().flat_map(|output| &output.fields));
        read.extend(program.probes.iter().map(|probe| probe.field));
        let mut found = Vec::new();
        for (f, field) in program.fields.iter().enumerate() {
            if !read.contains(&FieldId::new(f)) {
                found.push(
                    Code::FieldUnread
                        .error(format!("nothing reads the field `{}`", field.name))
                        .label(field.span, "declared here")
                        .note("no update, reduction, output, print, probe or condition looks at it")
                        .help(format!("remove it, or write `output {} as npy`", field.name)),
                );
            }
        }
        self.diagnostics.extend(found);
    }
}

/// Colour maps of pictures; the first is the default.
pub const COLORMAPS: [&str; 6] = ["viridis", "magma", "inferno", "plasma", "gray", "coolwarm"];

/// An edit in the only file.
fn edit(span: Span, replacement: &str) -> Edit {
    Edit { file: FileId(0), span, replacement: replacement.to_string() }
}

/// The id of a reduction in declaration order.
fn reduction_id(i: usize) -> ReductionId {
    ReductionId::new(i)
}
