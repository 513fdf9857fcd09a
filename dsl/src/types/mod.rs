//! Typed IR from the tree: functions and coordinates are inlined, every operand gets the type that it is computed in.
//!
//! Post-condition: every expression is typed as [`crate::ir::ExprKind`] demands, every access has a known offset on
//! every axis and reads a level that its field keeps. Never looks at sides that accesses cross; that is the shape
//! pass's.

mod fields;
mod index;
mod lower;
mod statements;
#[cfg(test)]
mod test;

use std::collections::{HashMap, HashSet};

use rma_source::{Applicability, Diagnostic, Edit, FileId, Span};

use crate::ir::{
    self, ExprId, ExprKind, FieldId, Initially, Let, LetId, LetKind, Param, Program, ReduceOp, Reduction,
    ReductionId, Stage, Statement, Time, TimeRule, Type,
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

    fn field_of(&self, name: &Name) -> Option<usize> {
        match self.resolved.symbols.get(name.text.as_str()) {
            // Parameters, lets and grids are typed before there are fields; the names' pass refuses fields in them.
            Some(&Symbol::Field(f)) if f < self.program.fields.len() && !self.broken_fields.contains(&f) => {
                Some(f)
            }
            _ => None,
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
