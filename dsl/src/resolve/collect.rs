//! Who declares what. Never looks at what a declaration uses.

use rma_source::{Applicability, Span};

use super::{
    CONSTANTS, FUNCTIONS, FieldDecl, FunctionDecl, GridDecl, LetClass, LetDecl, ParamDecl, RULES, ReduceDecl,
    Resolver, Symbol, mentions,
};
use crate::messages::Code;
use crate::syntax::ast::{self, Expr, Name, StatementKind};

impl<'a> Resolver<'a> {
    pub(super) fn collect(&mut self, statements: &'a [ast::Statement]) {
        for statement in statements {
            let span = statement.span;
            match &statement.kind {
                StatementKind::Program(name) => match self.out.name {
                    Some(first) => self.twice("a file is one program", name, first.span),
                    None => self.out.name = Some(name),
                },
                StatementKind::Param { name, ty, default, range, doc } => {
                    let (min, max) = match range {
                        Some((min, max)) => (min.as_ref(), max.as_ref()),
                        None => (None, None),
                    };
                    self.declare(name, Symbol::Param(self.out.params.len()));
                    let doc = doc.as_deref().unwrap_or("");
                    let default = default.as_ref();
                    self.out.params.push(ParamDecl { name, ty, default, range: (min, max), doc, span });
                }
                StatementKind::Let { name, value } => {
                    self.declare(name, Symbol::Let(self.out.lets.len()));
                    self.out.lets.push(LetDecl { name, value, class: LetClass::Static });
                }
                StatementKind::Grid { name, axes, coordinates } => {
                    self.declare(name, Symbol::Grid(self.out.grids.len()));
                    let coordinates = self.assign_coordinates(axes, coordinates);
                    self.out.grids.push(GridDecl { name, axes, coordinates, span });
                }
                StatementKind::Field { name, ty, at, levels, .. } => {
                    self.declare(name, Symbol::Field(self.out.fields.len()));
                    let (ty, at, levels) = (ty.as_ref(), at.as_deref(), levels.as_ref());
                    self.out.fields.push(FieldDecl { name, ty, grid: None, at, levels, span });
                }
                StatementKind::Function { name, params, body } => {
                    self.declare(name, Symbol::Function(self.out.functions.len()));
                    for (i, param) in params.iter().enumerate() {
                        if let Some(first) = params[..i].iter().find(|other| other.text == param.text) {
                            self.twice("each argument has its own name", param, first.span);
                        }
                    }
                    self.out.functions.push(FunctionDecl { name, params, body });
                }
                StatementKind::Reduce { name, op, value, every } => {
                    self.declare(name, Symbol::Reduction(self.out.reductions.len()));
                    let every = every.as_ref();
                    let is_needed_initially = false;
                    self.out.reductions.push(ReduceDecl {
                        name,
                        op,
                        value,
                        every,
                        is_needed_initially,
                        span,
                    });
                }
                _ => self.out.rest.push(statement),
            }
        }
        // Indices and coordinates belong to their grid, but a global of the same name would hide in expressions.
        for grid in 0..self.out.grids.len() {
            let axes = self.out.grids[grid].axes;
            let coordinates: Vec<&Name> =
                self.out.grids[grid].coordinates.iter().flatten().map(|pair| &pair.0).collect();
            let names: Vec<&Name> = axes.iter().map(|(name, _)| name).chain(coordinates).collect();
            for (i, name) in names.iter().enumerate() {
                if let Some(&first) = self.declared.get(name.text.as_str()) {
                    self.twice("indices and coordinates need names of their own", name, first);
                } else if let Some(first) = names[..i].iter().find(|other| other.text == name.text) {
                    self.twice("indices and coordinates of a grid need names of their own", name, first.span);
                } else {
                    self.built_in(name);
                }
            }
        }
    }

    /// Each coordinate belongs to the only axis that it uses, else to the axis at its place in the list.
    pub(super) fn assign_coordinates(
        &mut self,
        axes: &'a [(Name, Expr)],
        coordinates: &'a [(Name, Expr)],
    ) -> Vec<Option<&'a (Name, Expr)>> {
        let mut assigned: Vec<Option<&'a (Name, Expr)>> = vec![None; axes.len()];
        for (position, coordinate) in coordinates.iter().enumerate() {
            let used: Vec<usize> =
                (0..axes.len()).filter(|&axis| mentions(&coordinate.1, &axes[axis].0.text)).collect();
            let axis = match used.as_slice() {
                [only] => *only,
                _ => position,
            };
            match assigned.get_mut(axis) {
                Some(slot @ None) => *slot = Some(coordinate),
                _ => self.diagnostics.push(
                    Code::DimensionMismatch
                        .error(format!("`{}` is one coordinate too many", coordinate.0.text))
                        .label(coordinate.0.span, "no axis is left for it")
                        .note(format!("the grid has {} axes and each has at most one coordinate", axes.len()))
                        .help("name other quantities with a `function`"),
                ),
            }
        }
        assigned
    }

    pub(super) fn declare(&mut self, name: &'a Name, symbol: Symbol) {
        if let Some(&first) = self.declared.get(name.text.as_str()) {
            return self.twice("every name has one meaning", name, first);
        }
        if self.built_in(name) {
            return;
        }
        self.declared.insert(&name.text, name.span);
        self.out.symbols.insert(&name.text, symbol);
    }

    pub(super) fn built_in(&mut self, name: &Name) -> bool {
        let text = name.text.as_str();
        let is_built_in = CONSTANTS.contains(&text) || FUNCTIONS.contains(&text) || RULES.contains(&text);
        if is_built_in {
            self.diagnostics.push(
                Code::DeclaredTwice
                    .error(format!("`{text}` is a name of the language"))
                    .label(name.span, "declared again here")
                    .note(format!(
                        "the language's own names are {}, {} and {}",
                        CONSTANTS.join(", "),
                        FUNCTIONS.join(", "),
                        RULES.join(", ")
                    ))
                    .suggest("choose another name", name.span, format!("{text}0"), Applicability::Unsafe),
            );
        }
        is_built_in
    }

    pub(super) fn twice(&mut self, why: &str, name: &Name, first: Span) {
        self.diagnostics.push(
            Code::DeclaredTwice
                .error(format!("`{}` is declared twice", name.text))
                .label(name.span, "declared again here")
                .label(first, "first declared here")
                .note(why)
                .help("rename or remove one of them"),
        );
    }
}
