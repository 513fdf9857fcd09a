//! Names that stand for several procedures: generic interfaces, and what is bound to types. Never decides among procedures
//! that do different things.

use std::collections::{HashMap, HashSet};

use super::Program;
use super::procedures::{Home, ProcedureId, Procedures};
use crate::model::{Model, Modules, OuterUse, UnitId};
use crate::parse::{Attributes, BaseType, StatementKind, Symbol, Tree};

/// A generic interface.
#[derive(Clone, Debug)]
struct Generic {
    file: u32,
    unit: UnitId,
    /// The module that holds it.
    module: Option<Box<str>>,
    specifics: Vec<Box<str>>,
}

/// A name that is bound to a type.
#[derive(Clone, Debug)]
struct Binding {
    file: u32,
    type_name: Box<str>,
    module: Option<Box<str>>,
    procedures: Vec<Box<str>>,
    passes_object: bool,
}

/// What a call of something bound to a type means.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bound {
    /// The procedures that it can be.
    pub procedures: Vec<ProcedureId>,
    /// The object comes before the arguments.
    pub passes_object: bool,
}

/// All such names of a run.
#[derive(Clone, Default, Debug)]
pub struct Generics {
    by_name: HashMap<Box<str>, Vec<Generic>>,
    bindings: HashMap<Box<str>, Vec<Binding>>,
    /// Names that some USE gives to what its module calls otherwise.
    renamings: HashSet<Box<str>>,
}

impl Generics {
    /// Adds those of the file with that place in the input; files come in any order.
    pub fn add(&mut self, file: u32, tree: &Tree, model: &Model) {
        for used in model.units.iter().flat_map(|unit| &unit.uses) {
            let renamed = used.names.iter().filter(|(local, original)| local != original);
            self.renamings.extend(renamed.map(|(local, _)| tree.symbols.name(*local).into()));
        }
        let is_of_interest = |kind: &StatementKind| {
            matches!(
                kind,
                StatementKind::Interface { generic: Some(_) } | StatementKind::TypeDefinition(Some(_))
            )
        };
        if !tree.statements.iter().any(|statement| is_of_interest(&statement.kind)) {
            return;
        }
        let owners = owners(tree, model);
        let name = |symbol: Symbol| -> Box<str> { tree.symbols.name(symbol).into() };
        let mut i = 0;
        while i < tree.statements.len() {
            let Some(unit) = owners[i] else {
                i += 1;
                continue;
            };
            let module = model.unit(unit).name.map(|module| name(module.symbol));
            match tree.statements[i].kind {
                StatementKind::Interface { generic: Some(generic) } => {
                    let end = end_of(tree, i, |kind| matches!(kind, StatementKind::EndInterface));
                    let specifics = specifics(tree, i + 1..end);
                    self.by_name.entry(name(generic.symbol)).or_default().push(Generic {
                        file,
                        unit,
                        module,
                        specifics,
                    });
                    i = end;
                }
                StatementKind::TypeDefinition(Some(own)) => {
                    let end = end_of(tree, i, |kind| matches!(kind, StatementKind::EndType));
                    self.bind(file, tree, i + 1..end, &name(own.symbol), module.as_deref());
                    i = end;
                }
                _ => {}
            }
            i += 1;
        }
    }

    /// What a type definition binds to its names.
    fn bind(
        &mut self,
        file: u32,
        tree: &Tree,
        range: std::ops::Range<usize>,
        type_name: &str,
        module: Option<&str>,
    ) {
        let name = |symbol: Symbol| -> Box<str> { tree.symbols.name(symbol).into() };
        let mut is_behind_contains = false;
        let mut own: HashMap<Box<str>, (Vec<Box<str>>, bool)> = HashMap::new();
        for statement in &tree.statements[range] {
            match &statement.kind {
                StatementKind::Contains => is_behind_contains = true,
                StatementKind::Declaration { spec, attributes, entities, .. }
                    if is_behind_contains && spec.base == BaseType::Procedure =>
                {
                    for entity in entities {
                        let procedure = entity.bound_to.unwrap_or(entity.name.symbol);
                        let passes = !attributes.has(Attributes::NOPASS);
                        own.insert(name(entity.name.symbol), (vec![name(procedure)], passes));
                    }
                }
                StatementKind::Specific { generic: Some(generic), procedures } if is_behind_contains => {
                    let bound: Vec<&(Vec<Box<str>>, bool)> =
                        procedures.iter().filter_map(|procedure| own.get(&name(procedure.symbol))).collect();
                    let all: Vec<Box<str>> = bound.iter().flat_map(|(all, _)| all.clone()).collect();
                    let passes = bound.iter().all(|(_, passes)| *passes);
                    if bound.len() == procedures.len() {
                        own.insert(name(generic.symbol), (all, passes));
                    }
                }
                _ => {}
            }
        }
        let mut own: Vec<_> = own.into_iter().collect();
        own.sort();
        for (bound, (procedures, passes_object)) in own {
            self.bindings.entry(bound).or_default().push(Binding {
                file,
                type_name: type_name.into(),
                module: module.map(Into::into),
                procedures,
                passes_object,
            });
        }
    }

    /// Whether the sources define a generic interface of that name.
    pub fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Whether a USE somewhere gives this name to something that its module calls otherwise.
    pub fn is_renaming(&self, name: &str) -> bool {
        self.renamings.contains(name)
    }

    /// Whether the sources bind procedures to that name of a type.
    pub fn binds(&self, name: &str) -> bool {
        self.bindings.contains_key(name)
    }

    fn in_use<'a>(
        &'a self,
        modules: &'a Modules,
        used: &OuterUse,
        local: &str,
        seen: &mut HashSet<(Box<str>, Box<str>)>,
        found: &mut Vec<&'a Generic>,
    ) {
        let Some(original) = used.original(local) else { return };
        let mut queue: Vec<(Box<str>, Box<str>)> = vec![(used.module.clone(), original.into())];
        while let Some((module, name)) = queue.pop() {
            let all = self.by_name.get(&name).map_or(&[][..], Vec::as_slice);
            found.extend(all.iter().filter(|generic| generic.module.as_deref() == Some(&*module)));
            for inner in modules.named(&module).iter().flat_map(|module| &module.uses) {
                let Some(original) = inner.original(&name) else { continue };
                let next = (inner.module.clone(), Box::from(original));
                if seen.insert(next.clone()) {
                    queue.push(next);
                }
            }
        }
    }

    /// Puts the generics of one name into the order of the input, once all are here.
    pub fn settle(&mut self) {
        self.by_name.values_mut().for_each(|all| all.sort_by_key(|generic| (generic.file, generic.unit.0)));
        self.bindings.values_mut().for_each(|all| all.sort_by_key(|binding| binding.file));
    }

    /// The procedures that are bound to a name of a type. Where the type is not known it must be the only one that has
    /// such a name.
    pub fn bound(
        &self,
        procedures: &Procedures,
        file: u32,
        type_name: Option<&str>,
        name: &str,
    ) -> Option<Bound> {
        let all = self.bindings.get(name)?;
        let binding =
            match type_name.and_then(|type_name| all.iter().find(|own| &*own.type_name == type_name)) {
                Some(binding) => binding,
                None => match all.as_slice() {
                    [only] => only,
                    _ => return None,
                },
            };
        let ids: Vec<ProcedureId> = binding
            .procedures
            .iter()
            .filter_map(|own| procedures.named(file, own, binding.module.as_deref()))
            .collect();
        let is_whole = ids.len() == binding.procedures.len();
        is_whole.then_some(Bound { procedures: ids, passes_object: binding.passes_object })
    }
}

impl Program {
    /// The procedures that a generic name can mean in a unit.
    pub fn generic(
        &self,
        file: u32,
        tree: &Tree,
        model: &Model,
        unit: UnitId,
        name: &str,
    ) -> Vec<ProcedureId> {
        let all = self.generics.by_name.get(name).map_or(&[][..], Vec::as_slice);
        let mut next = Some(unit);
        let mut seen = HashSet::new();
        while let Some(id) = next {
            let here = model.unit(id);
            let own = all.iter().filter(|generic| generic.file == file && generic.unit == id);
            let mut found: Vec<&Generic> = own.collect();
            for used in here.outer_uses(tree) {
                self.generics.in_use(&self.modules, &used, name, &mut seen, &mut found);
            }
            if !found.is_empty() {
                let mut ids: Vec<ProcedureId> = found
                    .iter()
                    .flat_map(|generic| generic.specifics.iter().map(move |specific| (*generic, specific)))
                    .filter_map(|(generic, specific)| {
                        self.procedures.named(generic.file, specific, generic.module.as_deref())
                    })
                    .collect();
                ids.sort_unstable();
                ids.dedup();
                return ids;
            }
            next = here.parent;
        }
        Vec::new()
    }
}

/// The unit in whose specification part each statement stands; statements inside interfaces and types, which no unit
/// counts as its own, belong to the one around.
fn owners(tree: &Tree, model: &Model) -> Vec<Option<UnitId>> {
    let mut owners: Vec<Option<UnitId>> = vec![None; tree.statements.len()];
    for (id, unit) in model.iter() {
        for step in &unit.body {
            if let crate::model::Step::Statement(i) = step {
                owners[*i as usize] = Some(id);
            }
        }
    }
    let mut last = None;
    for owner in &mut owners {
        match owner {
            Some(_) => last = *owner,
            None => *owner = last,
        }
    }
    owners
}

fn end_of(tree: &Tree, start: usize, is_end: impl Fn(&StatementKind) -> bool) -> usize {
    let behind = tree.statements[start..].iter().position(|statement| is_end(&statement.kind));
    behind.map_or(tree.statements.len(), |behind| start + behind)
}

/// The procedures that an interface lists or describes.
fn specifics(tree: &Tree, range: std::ops::Range<usize>) -> Vec<Box<str>> {
    let name = |symbol: Symbol| -> Box<str> { tree.symbols.name(symbol).into() };
    let mut found = Vec::new();
    let mut is_inside = false;
    for statement in &tree.statements[range] {
        match &statement.kind {
            StatementKind::Unit {
                kind: crate::parse::UnitKind::ModuleProcedure, name: Some(own), ..
            } => {
                found.push(name(own.symbol));
            }
            StatementKind::Unit { name: Some(own), .. } => {
                found.push(name(own.symbol));
                is_inside = true;
            }
            StatementKind::EndUnit(_) => is_inside = false,
            StatementKind::Specific { procedures, .. } => {
                found.extend(procedures.iter().map(|own| name(own.symbol)));
            }
            StatementKind::Declaration { spec, entities, .. }
                if !is_inside && spec.base == BaseType::Procedure =>
            {
                found.extend(entities.iter().map(|entity| name(entity.name.symbol)));
            }
            _ => {}
        }
    }
    found
}

impl Procedures {
    /// The procedure of a name that a module holds or hands on; without one there, the only one of the run.
    fn named(&self, file: u32, name: &str, module: Option<&str>) -> Option<ProcedureId> {
        let of_module =
            self.pick(file, name, |home| matches!(home, Home::Module(own) if Some(&**own) == module));
        of_module.or_else(|| self.pick(file, name, |home| *home != Home::Internal))
    }
}
