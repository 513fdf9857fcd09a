//! What stays of a file when its tree is gone: figures for the report, and the names by which it may concern other files.
//! Never decides which procedure a name means.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use super::store::Parsed;
use super::{Input, Skipped, text_of};
use crate::dataflow::calls_library;
use crate::form::Form;
use crate::model::{Model, Step};
use crate::options::Options;
use crate::parse::{BaseType, Entity, ExprId, ExprKind, StatementKind, Symbol, Tree, UnitKind};
use crate::source::SourceText;
use rma_source::{SourceFile, Span};

/// A name, in little room. Two names that collide only make more files be looked at.
pub(super) type NameHash = u64;

/// The home of procedures that everybody can call.
const EXTERNAL: NameHash = 0;

/// What stays of one file.
pub(super) struct Digest {
    pub(super) form: Form,
    /// The folder of the file.
    pub(super) folder: NameHash,
    /// The file itself and those that it includes.
    pub(super) parts: Vec<Part>,
    /// Names by which its units may concern others.
    pub(super) names: Vec<UnitNames>,
}

/// Names by which a unit with its internal procedures may concern others.
#[derive(Default)]
pub(super) struct UnitNames {
    /// It calls the library.
    pub(super) calls_library: bool,
    /// Names by which others call it, each with its home: of several procedures with the same home only those of the
    /// caller's folder can be meant.
    pub(super) defined: Vec<(NameHash, Option<NameHash>)>,
    /// Names that it calls, or hands on to others that do.
    pub(super) called: Vec<NameHash>,
}

/// What was seen in one of the files that a text is made of.
pub(super) struct Part {
    pub(super) source: SourceText,
    pub(super) n_statements: usize,
    pub(super) skipped: Vec<Skipped>,
    pub(super) missing: Vec<Skipped>,
}

impl Digest {
    pub(super) fn new(input: &Input, parsed: &Parsed, options: &Options) -> Digest {
        let Input { path, bytes } = input;
        let Parsed { tree, form, model, .. } = parsed;
        let mut parts = Parts::new(bytes, tree);
        for (i, statement) in tree.statements.iter().enumerate() {
            parts.count(statement.span);
            if matches!(statement.kind, StatementKind::Unknown) {
                let reason = tree.reasons.get(&(i as u32)).map_or(String::new(), ToString::to_string);
                let (part, skipped) = parts.locate(statement.span, reason);
                parts.all[part].skipped.push(skipped);
            }
        }
        for include in model.units.iter().flat_map(|unit| &unit.includes) {
            if include.may_hold_names() {
                let reason = format!("`{}` was found nowhere", include.name);
                let (part, missing) = parts.locate(include.span, reason);
                parts.all[part].missing.push(missing);
            }
        }
        let mut parts = parts.all;
        for part in &mut parts {
            // A file that is included twice says everything twice.
            for list in [&mut part.skipped, &mut part.missing] {
                list.sort();
                list.dedup();
            }
        }
        Digest {
            form: *form,
            folder: hash(path.rsplit_once('/').map_or("", |(folder, _)| folder)),
            parts,
            names: Names::of(tree, model, options),
        }
    }
}

/// Counts statements by the files in which they stand.
struct Parts<'t> {
    bytes: &'t [u8],
    tree: &'t Tree,
    all: Vec<Part>,
    /// Texts with their lines, once something in them is to be shown.
    texts: Vec<Option<SourceFile>>,
}

impl<'t> Parts<'t> {
    fn new(bytes: &'t [u8], tree: &'t Tree) -> Parts<'t> {
        let part = |source: &SourceText| Part {
            source: source.clone(),
            n_statements: 0,
            skipped: Vec::new(),
            missing: Vec::new(),
        };
        let all: Vec<Part> = tree.origin.files.iter().map(part).collect();
        let texts = all.iter().map(|_| None).collect();
        Parts { bytes, tree, all, texts }
    }

    fn count(&mut self, span: Span) {
        let file = if self.all.len() == 1 { 0 } else { self.tree.origin.place(span).file };
        self.all[file as usize].n_statements += 1;
    }

    fn locate(&mut self, span: Span, reason: String) -> (usize, Skipped) {
        let place = self.tree.origin.place(span);
        let file = place.file as usize;
        let source = &self.all[file].source;
        let bytes = if file == 0 { self.bytes } else { &source.bytes };
        let text = self.texts[file]
            .get_or_insert_with(|| SourceFile::new(&*source.path, text_of(bytes).into_owned()));
        let at = text.line_column(place.span.start as usize);
        let first = text.slice(place.span).lines().next().unwrap_or_default().trim().to_string();
        (file, Skipped { path: source.path.clone(), line: at.line, column: at.column, text: first, reason })
    }
}

/// The names of a file that matter to others.
struct Names<'t> {
    tree: &'t Tree,
    model: &'t Model,
    /// The units, and behind them what stands in none: interfaces and types.
    all: Vec<UnitNames>,
    /// The unit that each statement belongs to.
    owners: Vec<usize>,
}

impl<'t> Names<'t> {
    fn of(tree: &'t Tree, model: &'t Model, options: &Options) -> Vec<UnitNames> {
        let n_units = model.units.len();
        let mut owners = vec![n_units; tree.statements.len()];
        let mut all: Vec<UnitNames> = Vec::with_capacity(n_units + 1);
        for (i, unit) in model.units.iter().enumerate() {
            for step in &unit.body {
                if let Step::Statement(statement) = step {
                    owners[*statement as usize] = i;
                }
            }
            let calls_library = calls_library(tree, unit, options);
            all.push(UnitNames { calls_library, ..UnitNames::default() });
        }
        all.push(UnitNames::default());
        let mut names = Names { tree, model, all, owners };
        for (i, statement) in tree.statements.iter().enumerate() {
            names.add(i, &statement.kind);
        }
        names.add_references();
        for own in &mut names.all {
            own.defined.sort_unstable();
            own.called.sort_unstable();
            own.called.dedup();
            own.called.shrink_to_fit();
        }
        names.all.retain(|own| own.calls_library || !(own.defined.is_empty() && own.called.is_empty()));
        names.all
    }

    fn add(&mut self, i: usize, kind: &StatementKind) {
        use StatementKind as S;
        let owner = self.owners[i];
        match kind {
            S::Unit { name: Some(name), .. } | S::Entry { name, .. } => self.define(owner, name.symbol),
            // What is bound to a type or to a generic name is called by that name, and calls the procedure.
            S::Interface { generic: Some(name) } => self.pass(name.symbol),
            S::Specific { generic, procedures } => {
                generic.iter().chain(procedures).for_each(|name| self.pass(name.symbol));
            }
            S::Declaration { spec, entities, .. } if spec.base == BaseType::Procedure => {
                for Entity { name, bound_to, .. } in entities {
                    self.pass(name.symbol);
                    bound_to.iter().for_each(|procedure| self.pass(*procedure));
                }
            }
            S::Use { names, .. } => {
                for &(local, original) in names {
                    if local != original {
                        self.pass(local);
                        self.pass(original);
                    }
                }
            }
            S::Call { procedure, .. } => self.call(owner, *procedure),
            _ => {}
        }
    }

    /// Function references, which look like array elements. Expressions stand in the order of the statements, but for
    /// those that were read twice.
    fn add_references(&mut self) {
        let statements = &self.tree.statements;
        let mut at = 0;
        let tree = self.tree;
        for (_, expr) in tree.exprs() {
            let ExprKind::Reference { base, .. } = expr.kind else { continue };
            let starts_before =
                |i: usize| statements.get(i).is_some_and(|own| own.span.start <= expr.span.start);
            if !starts_before(at) || starts_before(at + 1) {
                at = statements.partition_point(|own| own.span.start <= expr.span.start).saturating_sub(1);
            }
            if let Some(&owner) = self.owners.get(at) {
                self.call(owner, base);
            }
        }
    }

    /// A name of an internal procedure is known to its host alone, which counts what happens there as its own.
    fn host(&self, mut owner: usize) -> usize {
        while let Some(parent) = self.model.units.get(owner).and_then(|unit| unit.parent) {
            match self.model.unit(parent).kind {
                UnitKind::Module | UnitKind::Submodule => return owner,
                _ => owner = parent.0 as usize,
            }
        }
        owner
    }

    fn define(&mut self, owner: usize, name: Symbol) {
        // A header inside an interface defines nothing, but may be one of those that share its name.
        if owner == self.model.units.len() {
            return self.pass(name);
        }
        if self.host(owner) == owner {
            let module = self.model.units[owner].parent.and_then(|parent| self.model.unit(parent).name);
            let home = module.map_or(EXTERNAL, |module| self.hash(module.symbol));
            let hash = self.hash(name);
            self.all[owner].defined.push((hash, Some(home)));
        }
    }

    fn pass(&mut self, name: Symbol) {
        let hash = self.hash(name);
        if let Some(rest) = self.all.last_mut() {
            rest.defined.push((hash, None));
            rest.called.push(hash);
        }
    }

    fn call(&mut self, owner: usize, procedure: ExprId) {
        if let ExprKind::Name(name) | ExprKind::Component { name, .. } = self.tree.expr(procedure).kind {
            let (owner, hash) = (self.host(owner), self.hash(name));
            self.all[owner].called.push(hash);
        }
    }

    fn hash(&self, name: Symbol) -> NameHash {
        hash(self.tree.symbols.name(name))
    }
}

fn hash(name: &str) -> NameHash {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}
