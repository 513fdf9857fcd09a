//! Names: who declares what, and that every name that is used is declared and fit for its use.
//!
//! Post-condition: every name in an expression that was not reported is a local, a built-in or a [`Symbol`], lets are
//! in an order in which each uses earlier ones only, and no declaration uses itself. Never types an expression.

mod collect;
mod order;
#[cfg(test)]
mod test;

use std::collections::{HashMap, HashSet};

use rma_source::{Applicability, Diagnostic, Span};

use crate::messages::{Code, did_you_mean};
use crate::syntax::ast::{self, Expr, ExprKind, Name, StatementKind};

/// What a global name stands for; the number is its position in its table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Symbol {
    /// A parameter.
    Param(usize),
    /// A named scalar.
    Let(usize),
    /// A grid.
    Grid(usize),
    /// A field.
    Field(usize),
    /// A function.
    Function(usize),
    /// A reduction.
    Reduction(usize),
}

/// When a let can be evaluated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LetClass {
    /// At start.
    Static,
    /// At the start of a step.
    PerStep,
    /// Wherever it is used: it depends on `t` or `step`.
    Inline,
}

/// `param`
#[derive(Debug)]
pub struct ParamDecl<'a> {
    /// The name.
    pub name: &'a Name,
    /// `int` or `real`.
    pub ty: &'a Name,
    /// Value without `--set`.
    pub default: Option<&'a Expr>,
    /// Allowed range.
    pub range: (Option<&'a Expr>, Option<&'a Expr>),
    /// What it means.
    pub doc: &'a str,
    /// The statement.
    pub span: Span,
}

/// `let`
#[derive(Debug)]
pub struct LetDecl<'a> {
    /// The name.
    pub name: &'a Name,
    /// The value.
    pub value: &'a Expr,
    /// When it is evaluated.
    pub class: LetClass,
}

/// `grid`
#[derive(Debug)]
pub struct GridDecl<'a> {
    /// The name.
    pub name: &'a Name,
    /// Index names and sizes.
    pub axes: &'a [(Name, Expr)],
    /// Per axis the coordinate, if there is one.
    pub coordinates: Vec<Option<&'a (Name, Expr)>>,
    /// The statement.
    pub span: Span,
}

/// `field`
#[derive(Debug)]
pub struct FieldDecl<'a> {
    /// The name.
    pub name: &'a Name,
    /// Its type's word.
    pub ty: Option<&'a Name>,
    /// Position of its grid; `None` if that was reported.
    pub grid: Option<usize>,
    /// Where its points are.
    pub at: Option<&'a [Expr]>,
    /// Levels as written.
    pub levels: Option<&'a ast::Levels>,
    /// The statement.
    pub span: Span,
}

/// `function`
#[derive(Debug)]
pub struct FunctionDecl<'a> {
    /// The name.
    pub name: &'a Name,
    /// Names of its arguments.
    pub params: &'a [Name],
    /// Its value.
    pub body: &'a Expr,
}

/// `reduce`
#[derive(Debug)]
pub struct ReduceDecl<'a> {
    /// The name.
    pub name: &'a Name,
    /// The operation's word.
    pub op: &'a Name,
    /// The value at a point.
    pub value: &'a Expr,
    /// Interval.
    pub every: Option<&'a Expr>,
    /// A let, update or source needs its value before it is first due.
    pub is_needed_initially: bool,
    /// The statement.
    pub span: Span,
}

/// A file whose names are known.
#[derive(Debug, Default)]
pub struct Resolved<'a> {
    /// Name of the program.
    pub name: Option<&'a Name>,
    /// All global names.
    pub symbols: HashMap<&'a str, Symbol>,
    /// Names of statements that could not be read.
    pub broken: HashSet<&'a str>,
    /// Parameters.
    pub params: Vec<ParamDecl<'a>>,
    /// Lets.
    pub lets: Vec<LetDecl<'a>>,
    /// Lets and reductions in an order in which each uses earlier ones only.
    pub order: Vec<Symbol>,
    /// Grids.
    pub grids: Vec<GridDecl<'a>>,
    /// Fields.
    pub fields: Vec<FieldDecl<'a>>,
    /// Functions.
    pub functions: Vec<FunctionDecl<'a>>,
    /// Reductions.
    pub reductions: Vec<ReduceDecl<'a>>,
    /// Declarations that use themselves; they were reported and have no value.
    pub circular: HashSet<Symbol>,
    /// All other statements in order.
    pub rest: Vec<&'a ast::Statement>,
    /// Whether anything uses `t`.
    pub uses_time: bool,
}

/// Functions of the language.
pub const FUNCTIONS: [&str; 13] =
    ["exp", "log", "sqrt", "sin", "cos", "tan", "abs", "min", "max", "sign", "floor", "mod", "ricker"];

/// Scalars of the language.
pub const CONSTANTS: [&str; 4] = ["pi", "e", "t", "step"];

/// Words that look like names in rules.
const RULES: [&str; 3] = ["mirror", "periodic", "sponge"];

/// Names where an expression stands.
#[derive(Clone, Copy)]
enum Scope<'s> {
    /// Parameters only.
    Default,
    /// Parameters and lets.
    Static,
    /// Also reductions, `t` and `step`.
    Scalar,
    /// Parameters, lets and the indices of a grid.
    Coordinate(usize),
    /// Everything, with the indices and coordinates of a grid; `None` if the grid is unknown or any will do.
    Point(Option<usize>),
    /// A function's body.
    Body(&'s [Name]),
}

/// Finds all names of a file.
pub fn resolve<'a>(statements: &'a [ast::Statement], broken: &'a [Name]) -> (Resolved<'a>, Vec<Diagnostic>) {
    let mut resolver = Resolver {
        out: Resolved {
            broken: broken.iter().map(|name| name.text.as_str()).collect(),
            ..Resolved::default()
        },
        declared: HashMap::new(),
        used: HashSet::new(),
        meant: HashSet::new(),
        diagnostics: Vec::new(),
    };
    resolver.collect(statements);
    resolver.check_statements(statements);
    resolver.order();
    resolver.unused();
    (resolver.out, resolver.diagnostics)
}

struct Resolver<'a> {
    out: Resolved<'a>,
    declared: HashMap<&'a str, Span>,
    used: HashSet<&'a str>,
    meant: HashSet<String>,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> Resolver<'a> {
    fn check_statements(&mut self, statements: &'a [ast::Statement]) {
        for statement in statements {
            match &statement.kind {
                StatementKind::Field { name, grid, levels, .. } => {
                    let position = self.grid(grid);
                    if let Some(Symbol::Field(field)) = self.out.symbols.get(name.text.as_str()).copied()
                        && std::ptr::eq(self.out.fields[field].name, name)
                    {
                        self.out.fields[field].grid = position;
                    }
                    if let Some(ast::Levels::Count(n)) = levels {
                        self.expr(n, Scope::Static);
                    }
                }
                StatementKind::Program(_) | StatementKind::Epoch { .. } | StatementKind::Overlap(_) => {}
                StatementKind::Param { default, range, .. } => {
                    let range = range.iter().flat_map(|(min, max)| [min, max]).flatten();
                    for value in default.iter().chain(range) {
                        self.expr(value, Scope::Default);
                    }
                }
                StatementKind::Let { value, .. } => self.expr(value, Scope::Scalar),
                StatementKind::Grid { name, axes, coordinates } => {
                    for (_, size) in axes {
                        self.expr(size, Scope::Static);
                    }
                    if let Some(&Symbol::Grid(grid)) = self.out.symbols.get(name.text.as_str()) {
                        for (_, value) in coordinates {
                            self.expr(value, Scope::Coordinate(grid));
                        }
                    }
                }
                StatementKind::Function { params, body, .. } => self.expr(body, Scope::Body(params)),
                _ => {}
            }
        }
        // Fields know their grids now.
        for statement in statements {
            match &statement.kind {
                StatementKind::Init { field, level, value } => {
                    let grid = self.field_grid(field);
                    self.level(level.as_ref());
                    if let ast::InitValue::Value(value) = value {
                        self.expr(value, Scope::Point(grid));
                    }
                }
                StatementKind::Boundary { field, rules } => {
                    let grid = self.field_grid(field);
                    for rule in rules {
                        match &rule.value {
                            ast::RuleValue::Neumann(slope) => self.expr(slope, Scope::Point(grid)),
                            ast::RuleValue::Value(value) => match &*value.kind {
                                ExprKind::Place { name, level: None, indices: None }
                                    if RULES.contains(&name.text.as_str()) => {}
                                ExprKind::Call { name, args } if name.text == "sponge" => {
                                    args.iter().for_each(|arg| self.expr(arg, Scope::Static));
                                }
                                _ => self.expr(value, Scope::Point(grid)),
                            },
                        }
                    }
                }
                StatementKind::Update(update) => self.update(update),
                StatementKind::Together(updates) => updates.iter().for_each(|update| self.update(update)),
                StatementKind::Source { at, field, value } => {
                    let grid = self.field_grid(field);
                    at.iter().for_each(|x| self.expr(x, Scope::Static));
                    self.expr(value, Scope::Point(grid));
                }
                StatementKind::Reduce { value, every, .. } => {
                    self.expr(value, Scope::Point(None));
                    every.iter().for_each(|n| self.expr(n, Scope::Static));
                }
                StatementKind::Until(condition) => self.expr(condition, Scope::Scalar),
                StatementKind::Output { fields, every, .. } => {
                    for field in fields {
                        self.field_grid(field);
                    }
                    every.iter().for_each(|n| self.expr(n, Scope::Static));
                }
                StatementKind::Print { items, every } => {
                    items.iter().for_each(|item| self.expr(item, Scope::Scalar));
                    every.iter().for_each(|n| self.expr(n, Scope::Static));
                }
                StatementKind::Probe { at, field, every, .. } => {
                    self.field_grid(field);
                    at.iter().chain(every).for_each(|x| self.expr(x, Scope::Static));
                }
                StatementKind::Checkpoint { every } | StatementKind::Block { depth: every, .. } => {
                    self.expr(every, Scope::Static);
                }
                StatementKind::Decompose(ast::Decompose::Parts(parts)) => {
                    parts.iter().for_each(|n| self.expr(n, Scope::Static));
                }
                _ => {}
            }
        }
    }

    fn update(&mut self, update: &'a ast::Update) {
        let grid = self.field_grid(&update.field);
        self.level(update.level.as_ref());
        for index in update.indices.iter().flatten() {
            self.index_names(index);
        }
        self.expr(&update.value, Scope::Point(grid));
        if let Some(condition) = &update.condition {
            self.expr(condition, Scope::Point(grid));
        }
    }

    fn grid(&mut self, name: &'a Name) -> Option<usize> {
        match self.out.symbols.get(name.text.as_str()) {
            Some(&Symbol::Grid(grid)) => Some(grid),
            Some(_) => {
                self.wrong_use(name, "a grid is expected here", "name a grid, such as `on G`");
                None
            }
            None => {
                let grids = self.out.grids.iter().map(|grid| grid.name.text.as_str()).collect();
                self.undeclared(name, "grid", grids, "declare it: `grid G(i: n, j: n)`");
                None
            }
        }
    }

    fn field_grid(&mut self, name: &'a Name) -> Option<usize> {
        match self.out.symbols.get(name.text.as_str()) {
            Some(&Symbol::Field(field)) => self.out.fields[field].grid,
            Some(_) => {
                self.wrong_use(name, "a field is expected here", "name a field");
                None
            }
            None => {
                let fields = self.out.fields.iter().map(|field| field.name.text.as_str()).collect();
                self.undeclared(name, "field", fields, "declare it: `field u on G`");
                None
            }
        }
    }

    fn level(&mut self, level: Option<&'a Name>) {
        if let Some(level) = level
            && !["next", "prev"].contains(&level.text.as_str())
        {
            self.undeclared(level, "level", vec!["next", "prev"], "levels are `u.prev`, `u` and `u.next`");
        }
    }

    fn expr(&mut self, expr: &'a Expr, scope: Scope<'_>) {
        match &*expr.kind {
            ExprKind::Place { name, level, indices } => {
                self.level(level.as_ref());
                for index in indices.iter().flatten() {
                    self.index_names(index);
                }
                self.name(name, scope, Use::Value);
            }
            ExprKind::Call { name, args } => {
                if !FUNCTIONS.contains(&name.text.as_str()) {
                    self.name(name, scope, Use::Call);
                }
                args.iter().for_each(|arg| self.expr(arg, scope));
            }
            other => other.operands().for_each(|operand| self.expr(operand, scope)),
        }
    }

    /// Names inside `u[…]`: those that exist at all; their form is checked with the types.
    fn index_names(&mut self, index: &'a Expr) {
        match &*index.kind {
            ExprKind::Place { name, .. } => {
                let is_index = self
                    .out
                    .grids
                    .iter()
                    .any(|grid| grid.axes.iter().any(|(axis, _)| axis.text == name.text));
                if is_index || self.is_known(&name.text) {
                    self.used.insert(&name.text);
                    return;
                }
                let indices = self
                    .out
                    .grids
                    .iter()
                    .flat_map(|grid| grid.axes.iter().map(|(axis, _)| axis.text.as_str()))
                    .collect();
                self.undeclared(name, "index", indices, "indices are declared with the grid: `grid G(i: n)`");
            }
            other => other.operands().for_each(|operand| self.index_names(operand)),
        }
    }

    fn is_known(&self, text: &str) -> bool {
        self.out.symbols.contains_key(text)
            || CONSTANTS.contains(&text)
            || self.out.broken.contains(text)
            || self
                .out
                .grids
                .iter()
                .any(|grid| grid.coordinates.iter().flatten().any(|(name, _)| name.text == text))
    }

    fn name(&mut self, name: &'a Name, scope: Scope<'_>, how: Use) {
        let text = name.text.as_str();
        if let Scope::Body(params) = scope
            && params.iter().any(|param| param.text == text)
        {
            if how == Use::Call {
                self.wrong_use(
                    name,
                    "this is an argument, not a function",
                    "functions cannot be passed as arguments",
                );
            }
            return;
        }
        let (has_indices, has_coordinates, only) = match scope {
            Scope::Point(grid) => (true, true, grid),
            Scope::Body(_) => (true, true, None),
            Scope::Coordinate(grid) => (true, false, Some(grid)),
            Scope::Default | Scope::Static | Scope::Scalar => (false, false, None),
        };
        let is_of = |grid: &GridDecl<'_>| Local {
            index: grid.axes.iter().any(|(axis, _)| axis.text == text),
            coordinate: grid.coordinates.iter().flatten().any(|(name, _)| name.text == text),
        };
        let grids = self.out.grids.iter().enumerate();
        let allowed = grids.filter(|(i, _)| only.is_none_or(|only| only == *i)).map(|(_, grid)| is_of(grid));
        if how == Use::Value {
            for local in allowed {
                if local.index && has_indices || local.coordinate && has_coordinates {
                    return;
                }
            }
        }
        if CONSTANTS.contains(&text) && how == Use::Value {
            let is_time = text == "t" || text == "step";
            self.out.uses_time |= text == "t";
            if is_time && matches!(scope, Scope::Default | Scope::Static | Scope::Coordinate(_)) {
                self.wrong_use(
                    name,
                    "this number must be known before the first step",
                    "use parameters and lets only",
                );
            }
            return;
        }
        if FUNCTIONS.contains(&text) {
            return self.wrong_use(name, "this is a function", &format!("give it an argument: `{text}(…)`"));
        }
        let Some(&symbol) = self.out.symbols.get(text) else {
            if self.out.broken.contains(text) {
                return;
            }
            let elsewhere = self.out.grids.iter().map(is_of).find(|local| local.index || local.coordinate);
            if elsewhere.is_some() && how == Use::Value {
                return self.wrong_use(
                    name,
                    "this belongs to the points of a grid and has no single value here",
                    "write a `function`, or use it where a field is computed",
                );
            }
            let (what, help) = match how {
                Use::Value => ("name", format!("declare it: `let {text} = …` or `param {text} : real = …`")),
                Use::Call => ("function", format!("declare it: `function {text}(f) = …`")),
            };
            let candidates = self.candidates(scope, how);
            let candidates: Vec<&str> = candidates.iter().map(String::as_str).collect();
            return self.undeclared(name, what, candidates, &help);
        };
        self.used.insert(&name.text);
        match (symbol, how) {
            (Symbol::Function(_), Use::Call) => {}
            (Symbol::Function(_), Use::Value) => {
                self.wrong_use(name, "this is a function", &format!("give it an argument: `{text}(…)`"));
            }
            (_, Use::Call) => self.wrong_use(
                name,
                "this is not a function",
                &format!("write `{text}*(…)` to multiply, `{text}[i-1]` to read a neighbour"),
            ),
            (Symbol::Grid(_), Use::Value) => {
                self.wrong_use(name, "this is a grid", "name a field or a number")
            }
            (Symbol::Field(_), Use::Value) => match scope {
                Scope::Point(_) | Scope::Body(_) => {}
                _ => self.wrong_use(
                    name,
                    "a field has a value per point, and one number is needed here",
                    &format!("reduce it first: `reduce r = max |{text}|`"),
                ),
            },
            (Symbol::Reduction(_), Use::Value) => {
                if let Scope::Default | Scope::Static | Scope::Coordinate(_) = scope {
                    self.wrong_use(
                        name,
                        "this number must be known before the first step",
                        "use parameters and lets only",
                    );
                }
            }
            (Symbol::Let(_), Use::Value) => {
                if let Scope::Default = scope {
                    self.wrong_use(
                        name,
                        "a default or range may use parameters only",
                        "write the number itself",
                    );
                }
            }
            (Symbol::Param(param), Use::Value) => {
                if let Scope::Default = scope
                    && name.span <= self.out.params[param].span
                {
                    self.wrong_use(
                        name,
                        "a default or range may use parameters above it only",
                        "declare it earlier",
                    );
                }
            }
        }
    }

    fn candidates(&self, scope: Scope<'_>, how: Use) -> Vec<String> {
        let mut names: Vec<&str> = self.out.symbols.keys().copied().collect();
        match how {
            Use::Call => names.extend(FUNCTIONS),
            Use::Value => names.extend(CONSTANTS),
        }
        if let Scope::Point(_) | Scope::Body(_) | Scope::Coordinate(_) = scope {
            for grid in &self.out.grids {
                names.extend(grid.axes.iter().map(|(name, _)| name.text.as_str()));
                names.extend(grid.coordinates.iter().flatten().map(|(name, _)| name.text.as_str()));
            }
        }
        if let Scope::Body(params) = scope {
            names.extend(params.iter().map(|param| param.text.as_str()));
        }
        // The table of symbols has no order of its own; messages must not change from run to run.
        names.sort_unstable();
        names.into_iter().map(String::from).collect()
    }

    fn undeclared(&mut self, name: &Name, what: &str, candidates: Vec<&str>, help: &str) {
        if self.out.broken.contains(name.text.as_str()) {
            return;
        }
        let mut diagnostic = Code::Undeclared.error(format!("`{}` is not declared", name.text)).label(
            name.span,
            if what == "name" { String::from("no such name") } else { format!("no {what} of this name") },
        );
        let guess = did_you_mean(&name.text, candidates.into_iter());
        // The name that was probably meant is not called unused.
        self.meant.extend(guess.map(String::from));
        diagnostic = diagnostic.note(match what {
            "level" => "a field keeps up to three levels",
            _ => "every name is declared by a statement of the file or is a name of the language",
        });
        diagnostic = match guess {
            Some(guess) => diagnostic.suggest(
                format!("did you mean `{guess}`?"),
                name.span,
                guess,
                Applicability::Unsafe,
            ),
            None => diagnostic.help(help),
        };
        self.diagnostics.push(diagnostic);
    }

    fn wrong_use(&mut self, name: &Name, why: &str, help: &str) {
        self.diagnostics.push(
            Code::WrongUse
                .error(format!("`{}` cannot be used here", name.text))
                .label(name.span, why)
                .note("each statement sees the names that have a value when it runs")
                .help(help),
        );
    }
}

/// Longest chain of declarations that use each other.
const PATH_MAX: usize = 100;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Value,
    Call,
}

struct Local {
    index: bool,
    coordinate: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Dependence {
    #[default]
    No,
    Yes,
}

#[derive(Clone, Copy, Default)]
struct Mark {
    time: Dependence,
    reduction: Dependence,
}

impl Mark {
    fn or(self, other: Mark) -> Mark {
        let either = |a, b| match (a, b) {
            (Dependence::No, Dependence::No) => Dependence::No,
            _ => Dependence::Yes,
        };
        Mark { time: either(self.time, other.time), reduction: either(self.reduction, other.reduction) }
    }
}

/// Calls `take` with every name that an expression mentions outside `[…]`.
pub fn names<'e>(expr: &'e Expr, take: &mut impl FnMut(&'e Name)) {
    match &*expr.kind {
        ExprKind::Place { name, .. } => take(name),
        ExprKind::Call { name, args } => {
            take(name);
            args.iter().for_each(|arg| names(arg, take));
        }
        other => other.operands().for_each(|operand| names(operand, take)),
    }
}

fn mentions(expr: &Expr, text: &str) -> bool {
    let mut found = false;
    names(expr, &mut |name| found |= name.text == text);
    found
}
