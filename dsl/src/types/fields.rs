//! Grids, fields, their boundary rules and first values. Never looks at statements that run in a step.

use rma_source::{Applicability, Span};

use super::Typer;
use super::lower::{Context, Fields, Poison};
use crate::ir::{
    self, Axis, ExprId, ExprKind, Extent, Field, FieldId, FieldKind, Grid, GridId, Init, Level, Place, Side,
    SideRule, Type,
};
use crate::messages::{Code, did_you_mean};
use crate::resolve::Resolved;
use crate::syntax::ast::{self, Expr, Name, StatementKind};

impl<'a, 'r> Typer<'a, 'r> {
    pub(super) fn grids(&mut self) {
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

    pub(super) fn fields(&mut self) {
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

    pub(super) fn empty_field(&self, name: &str, ty: Type, span: Span) -> Field {
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

    pub(super) fn levels(&mut self, count: &Expr) -> u32 {
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

    pub(super) fn places(&mut self, decl: &crate::resolve::FieldDecl<'_>, g: usize) -> Vec<Place> {
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

    pub(super) fn lens(&mut self, f: usize) {
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

    pub(super) fn one_less(&mut self, len: ExprId) -> Result<ExprId, Poison> {
        let span = self.program.exprs[len].span;
        let one = self.node(ExprKind::Int(1), Type::I64, span)?;
        self.node(ExprKind::Binary(ir::BinaryOp::Sub, len, one), Type::I64, span)
    }

    pub(super) fn halves(&self, f: usize) -> [i32; ir::AXES_MAX] {
        let mut halves = [0; ir::AXES_MAX];
        for (axis, place) in self.program.fields[f].places.iter().enumerate() {
            halves[axis] = i32::from(*place == Place::Half);
        }
        halves
    }

    pub(super) fn boundary(&mut self, name: &Name, rules: &[ast::Rule]) {
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

    pub(super) fn sides(&mut self, f: usize, rule: &ast::Rule) -> Option<Vec<(Side, Span)>> {
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

    pub(super) fn rule(&mut self, f: usize, side: Side, value: &ast::RuleValue) -> Result<SideRule, Poison> {
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

    pub(super) fn sponge_form(&mut self, span: Span) -> Poison {
        self.report(
            Code::BadOption
                .error("a sponge needs a width in points and a strength")
                .label(span, "expected two numbers")
                .note("`sponge(w, a)` multiplies by exp(-(a*(w-d))^2) at distance d < w")
                .suggest("for example", span, "sponge(20, 0.01)", Applicability::Unsafe),
        )
    }

    pub(super) fn periodic_pairs(&mut self, f: usize) {
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
    pub(super) fn rule_span(&self, f: usize, side: Side) -> Option<Span> {
        let name = &self.program.fields[f].name;
        self.resolved.rest.iter().find_map(|statement| match &statement.kind {
            StatementKind::Boundary { field, rules } if field.text == *name => rules
                .iter()
                .find(|rule| rule.sides.iter().any(|other| other.text == side.name() || other.text == "all"))
                .map(|rule| rule.span),
            _ => None,
        })
    }

    pub(super) fn init(&mut self, name: &Name, level: Option<&Name>, value: &ast::InitValue) {
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
}
