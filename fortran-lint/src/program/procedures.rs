//! Which procedure a call means: internal, of a module, or external. Never guesses among several of one name.

use std::collections::{HashMap, HashSet};

use crate::model::{Memo, Model, Modules, OuterUse, Reach, Step, UnitId};
use crate::parse::{Attributes, Name, StatementKind, Symbol, Tree, UnitKind};

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
#[derive(Default, Debug)]
pub struct Procedures {
    by_name: HashMap<Box<str>, Vec<(ProcedureId, Home)>>,
    /// Functions that call something, so that they may do more than compute a value.
    acting: HashSet<Box<str>>,
    folders: HashMap<u32, Box<str>>,
    homes: Memo<OuterHome>,
}

/// Where a name that comes by USE is at home, and what it is called there.
#[derive(Clone, Debug)]
enum OuterHome {
    Module(Box<str>, Box<str>),
    /// Declared in a module and written down in a submodule.
    Submodule(Box<str>),
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
    /// Adds the procedures of the file with that place in the input; files come in any order.
    pub fn add(&mut self, file: u32, path: &str, tree: &Tree, model: &Model) {
        self.folders.insert(file, path.rsplit_once('/').map_or("", |(folder, _)| folder).into());
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

    /// Puts the procedures of one name into the order of the input, once all are here.
    pub fn settle(&mut self, modules: &mut Modules) {
        for (name, all) in &mut self.by_name {
            all.sort_by_key(|(id, _)| *id);
            modules.tell_apart(name);
        }
    }

    fn push(&mut self, tree: &Tree, name: Name, id: ProcedureId, home: Home) {
        let name = tree.symbols.name(name.symbol);
        self.by_name.entry(name.into()).or_default().push((id, home));
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
            for used in here.outer_uses(tree) {
                if let Some(found) = self.in_use(modules, file, &used, text) {
                    return found;
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
    fn in_use(&self, modules: &Modules, file: u32, used: &OuterUse, local: &str) -> Option<Seen> {
        let original = used.original(local)?;
        let homes = |name: &str| self.by_name.get(name).map_or(&[][..], Vec::as_slice);
        let at_home = |module: &str, name: &str| {
            let all = homes(name);
            if all.iter().any(|(_, home)| matches!(home, Home::Module(own) if **own == *module)) {
                return Some(OuterHome::Module(module.into(), name.into()));
            }
            let n_submodules = all.iter().filter(|(_, home)| *home == Home::Submodule).count();
            (n_submodules == 1 && !modules.named(module).is_empty())
                .then(|| OuterHome::Submodule(name.into()))
        };
        match modules.reach(&used.module, original, &self.homes, &OuterUse::original, &at_home) {
            Reach::Found(OuterHome::Module(module, name)) => {
                Some(self.seen(file, &name, |home| matches!(home, Home::Module(own) if *own == module)))
            }
            Reach::Found(OuterHome::Submodule(name)) => {
                Some(self.seen(file, &name, |home| *home == Home::Submodule))
            }
            Reach::Absent | Reach::Unknown => None,
        }
    }

    /// The only procedure of a name with such a home; of several, the only one in the caller's folder.
    pub(super) fn pick(&self, file: u32, name: &str, wanted: impl Fn(&Home) -> bool) -> Option<ProcedureId> {
        let all = self.by_name.get(name).map_or(&[][..], Vec::as_slice);
        let fitting: Vec<ProcedureId> =
            all.iter().filter(|(_, home)| wanted(home)).map(|(id, _)| *id).collect();
        let folder = |file: u32| self.folders.get(&file);
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
