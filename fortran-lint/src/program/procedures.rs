//! Which procedure a call means: internal, of a module, or external. Never guesses among several of one name.

use std::collections::{HashMap, HashSet};

use crate::model::{Model, Modules, OuterUse, Step, UnitId};
use crate::parse::{Attributes, Name, StatementKind, Symbol, Tree, UnitKind};

/// USE goes no further than this through modules that hand procedures on.
pub(super) const USE_DEPTH_MAX: usize = 256;

/// What a search through USE statements has looked for, and in which modules: many ways lead to one module.
#[derive(Default)]
pub(super) struct Trail {
    seen: HashSet<(Box<str>, Box<str>)>,
}

impl Trail {
    /// Whether the search comes to a module with this name for the first time.
    pub(super) fn enters(&mut self, module: &str, name: &str) -> bool {
        self.seen.insert((module.into(), name.into()))
    }
}

/// One procedure of the run: a file by its place in the input, and a unit of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ProcedureId {
    /// Index of the file.
    pub file: u32,
    /// Index of the unit.
    pub unit: u32,
    /// By which door: 0 is the header, 1 the first ENTRY statement.
    pub entry: u32,
}

/// Who can call a procedure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Home {
    /// Everybody.
    External,
    /// The users of a module.
    Module(Box<str>),
    /// Those who call by the interface of the module that the submodule belongs to.
    Submodule,
    /// The unit that contains it.
    Internal,
}

/// All procedures of a run.
#[derive(Clone, Default, Debug)]
pub struct Procedures {
    by_name: HashMap<Box<str>, Vec<(ProcedureId, Home)>>,
    /// Functions that call something, so that they may do more than compute a value.
    acting: HashSet<Box<str>>,
    /// Names that some USE gives to what its module calls otherwise.
    renamings: HashSet<Box<str>>,
    folders: Vec<Box<str>>,
}

/// What is known about the procedure that a name means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen {
    /// This one.
    Procedure(ProcedureId),
    /// One of several, or one that is not seen.
    Unknown,
}

impl Procedures {
    /// Adds the procedures of one file. Files are added in the order of the input.
    pub fn add(&mut self, path: &str, tree: &Tree, model: &Model) {
        let file = self.folders.len() as u32;
        self.folders.push(path.rsplit_once('/').map_or("", |(folder, _)| folder).into());
        for used in model.units.iter().flat_map(|unit| &unit.uses) {
            let renamed = used.names.iter().filter(|(local, original)| local != original);
            self.renamings.extend(renamed.map(|(local, _)| tree.symbols.name(*local).into()));
        }
        for (id, unit) in model.iter() {
            let is_procedure =
                matches!(unit.kind, UnitKind::Subroutine | UnitKind::Function | UnitKind::ModuleProcedure);
            let (true, Some(name)) = (is_procedure, unit.name) else { continue };
            let home = match unit.parent.map(|parent| model.unit(parent)) {
                None => Home::External,
                Some(parent) => match (parent.kind, parent.name) {
                    (UnitKind::Module, Some(module)) => Home::Module(tree.symbols.name(module.symbol).into()),
                    (UnitKind::Submodule, _) => Home::Submodule,
                    _ => Home::Internal,
                },
            };
            let mut acts = false;
            let mut entry = 0;
            for step in &unit.body {
                let Step::Statement(i) = step else { continue };
                match &tree.statements[*i as usize].kind {
                    StatementKind::Entry { name, .. } => {
                        entry += 1;
                        self.push(tree, *name, ProcedureId { file, unit: id.0, entry }, home.clone());
                    }
                    StatementKind::Call { .. } => acts = true,
                    _ => {}
                }
            }
            if acts && unit.kind == UnitKind::Function {
                self.acting.insert(tree.symbols.name(name.symbol).into());
            }
            self.push(tree, name, ProcedureId { file, unit: id.0, entry: 0 }, home);
        }
    }

    fn push(&mut self, tree: &Tree, name: Name, id: ProcedureId, home: Home) {
        let name = tree.symbols.name(name.symbol);
        self.by_name.entry(name.into()).or_default().push((id, home));
    }

    /// Whether a USE somewhere gives this name to something that its module calls otherwise.
    pub fn is_renaming(&self, name: &str) -> bool {
        self.renamings.contains(name)
    }

    /// Whether a USE can bring a procedure under this name.
    fn comes_by_use(&self, name: &str) -> bool {
        let all = self.by_name.get(name).map_or(&[][..], Vec::as_slice);
        self.is_renaming(name)
            || all.iter().any(|(_, home)| matches!(home, Home::Module(_) | Home::Submodule))
    }

    /// Whether the sources define a function of that name that calls something.
    pub fn acts(&self, name: &str) -> bool {
        self.acting.contains(name)
    }

    /// Whether the sources define a procedure of that name.
    pub fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The procedure that `name` means in a unit.
    pub fn find(
        &self,
        modules: &Modules,
        file: u32,
        tree: &Tree,
        model: &Model,
        unit: UnitId,
        name: Symbol,
    ) -> Seen {
        let text = tree.symbols.name(name);
        let comes_by_use = self.comes_by_use(text);
        let mut trail = Trail::default();
        let mut next = Some(unit);
        while let Some(id) = next {
            let here = model.unit(id);
            let is_declared = here
                .variables
                .get(&name)
                .is_some_and(|variable| variable.is_dummy || variable.attributes.has(Attributes::POINTER));
            if is_declared {
                return Seen::Unknown;
            }
            let inner = model.iter().find(|(_, inner)| {
                inner.parent == Some(id) && inner.name.is_some_and(|own| own.symbol == name)
            });
            if let Some(entry) = self.entry_inside(file, model, id, text) {
                return Seen::Procedure(entry);
            }
            if let Some((inner, _)) = inner {
                return Seen::Procedure(ProcedureId { file, unit: inner.0, entry: 0 });
            }
            let uses = if comes_by_use { here.outer_uses(tree) } else { Vec::new() };
            for used in uses {
                match self.in_use(modules, file, &used, text, USE_DEPTH_MAX, &mut trail) {
                    Some(found) => return found,
                    None => continue,
                }
            }
            next = here.parent;
        }
        // A module that is not seen may bring the name, but hardly one that the sources define as external.
        self.seen(file, text, |home| *home == Home::External)
    }

    /// The ENTRY of that name in a procedure that a unit contains.
    fn entry_inside(&self, file: u32, model: &Model, unit: UnitId, name: &str) -> Option<ProcedureId> {
        let all = self.by_name.get(name)?;
        let is_inside = |id: ProcedureId| {
            id.entry > 0 && id.file == file && model.unit(UnitId(id.unit)).parent == Some(unit)
        };
        all.iter().map(|(id, _)| *id).find(|id| is_inside(*id))
    }

    /// `None` when the name does not come through this USE.
    fn in_use(
        &self,
        modules: &Modules,
        file: u32,
        used: &OuterUse,
        local: &str,
        depth: usize,
        trail: &mut Trail,
    ) -> Option<Seen> {
        let original = used.original(local)?;
        if !trail.enters(&used.module, original) {
            return None;
        }
        let is_of_module = |home: &Home| matches!(home, Home::Module(module) if *module == used.module);
        if self.by_name.get(original).is_some_and(|all| all.iter().any(|(_, home)| is_of_module(home))) {
            return Some(self.seen(file, original, is_of_module));
        }
        if depth == 0 {
            return None;
        }
        for module in modules.named(&used.module) {
            for inner in &module.uses {
                if let Some(found) = self.in_use(modules, file, inner, original, depth - 1, trail) {
                    return Some(found);
                }
            }
        }
        // Declared in the module, written down in a submodule.
        let is_seen = !modules.named(&used.module).is_empty();
        let has_one = self
            .by_name
            .get(original)
            .is_some_and(|all| all.iter().filter(|(_, home)| *home == Home::Submodule).count() == 1);
        (is_seen && has_one).then(|| self.seen(file, original, |home| *home == Home::Submodule))
    }

    /// The only procedure of a name with such a home; of several, the only one in the caller's folder.
    pub(super) fn pick(&self, file: u32, name: &str, wanted: impl Fn(&Home) -> bool) -> Option<ProcedureId> {
        let all = self.by_name.get(name).map_or(&[][..], Vec::as_slice);
        let fitting: Vec<ProcedureId> =
            all.iter().filter(|(_, home)| wanted(home)).map(|(id, _)| *id).collect();
        let folder = |file: u32| self.folders.get(file as usize);
        let near: Vec<ProcedureId> =
            fitting.iter().copied().filter(|id| folder(id.file) == folder(file)).collect();
        match (fitting.as_slice(), near.as_slice()) {
            ([one], _) | (_, [one]) => Some(*one),
            _ => None,
        }
    }

    fn seen(&self, file: u32, name: &str, wanted: impl Fn(&Home) -> bool) -> Seen {
        self.pick(file, name, wanted).map_or(Seen::Unknown, Seen::Procedure)
    }
}
