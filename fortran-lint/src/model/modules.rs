//! What the modules of all files hold, so that USE finds them in any order of files. Never holds a tree.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use super::scope::{Model, Unit};
use crate::parse::{Attributes, Tree, UnitKind};

/// Modules that hold no variables of the program.
pub(super) const HARMLESS_MODULES: &[&str] = &[
    "mpi",
    "mpi_f08",
    "mpi_f08_ext",
    "mpi_ext",
    "iso_c_binding",
    "iso_fortran_env",
    "omp_lib",
    "ieee_arithmetic",
    "ieee_exceptions",
    "ieee_features",
];

/// USE goes no further than this through modules that hand names on.
const USE_DEPTH_MAX: usize = 256;

/// A module variable, as the users of the module see it.
#[derive(Clone, Debug)]
pub struct Outer {
    /// Its attributes.
    pub attributes: Attributes,
    /// It has bounds.
    pub is_array: bool,
    /// It holds characters.
    pub is_character: bool,
    /// It is in COMMON.
    pub is_common: bool,
}

/// A USE statement by the names themselves.
#[derive(Clone, Debug)]
pub struct OuterUse {
    /// The module.
    pub module: Box<str>,
    /// Only the listed names come in.
    pub has_only: bool,
    /// Local names and the names in the module.
    pub names: Vec<(Box<str>, Box<str>)>,
}

impl OuterUse {
    /// The name in the module of what the user calls `local`.
    pub fn original<'a>(&'a self, local: &'a str) -> Option<&'a str> {
        match self.names.iter().find(|(name, _)| &**name == local) {
            Some((_, original)) => Some(original),
            None if self.has_only => None,
            // A name that was renamed away is not visible under its own name.
            None if self.names.iter().any(|(_, original)| &**original == local) => None,
            None => Some(local),
        }
    }
}

/// One module.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// The place of its file in the input.
    pub file: u32,
    /// Its variables.
    pub variables: HashMap<Box<str>, Outer>,
    /// What it uses and hands on.
    pub uses: Vec<OuterUse>,
    /// A file that was not read may declare more.
    pub has_unseen_names: bool,
    /// It includes `mpif.h`.
    pub includes_header: bool,
}

/// All modules of a run.
#[derive(Debug, Default)]
pub struct Modules {
    /// Several modules may have one name: a code keeps alternatives in folders of their own.
    by_name: HashMap<Box<str>, u32>,
    groups: Vec<Group>,
    /// Names that some USE or some module treats apart from others. What holds for one of the rest holds for all.
    names: HashSet<Box<str>>,
    found: Memo<Place>,
}

/// Modules of one name.
#[derive(Debug)]
struct Group {
    name: Box<str>,
    modules: Vec<Module>,
}

/// Where a variable is declared: group, module in the group, name.
#[derive(Clone, Debug)]
struct Place {
    group: u32,
    module: u32,
    name: Box<str>,
}

/// What was found on the way from a module through those that it uses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reach<T> {
    /// This.
    Found(T),
    /// Nothing, and all modules were seen.
    Absent,
    /// Nothing, and some module was not seen.
    Unknown,
}

/// Answers that were found before. Modules use each other in so many ways that walking all of them anew for each name
/// would take for ever.
#[derive(Debug)]
pub struct Memo<T> {
    known: Mutex<Known<T>>,
}

/// Answers by the group of the module and the name.
type Known<T> = HashMap<(u32, Box<str>), Reach<T>>;

impl<T> Default for Memo<T> {
    fn default() -> Memo<T> {
        Memo { known: Mutex::default() }
    }
}

/// What is known about a name of a module.
#[derive(Clone, Copy, Debug)]
pub enum Found<'a> {
    /// A variable of that module.
    Variable(&'a Outer, &'a str),
    /// The module has no variable of that name.
    Absent,
    /// The module, or one that it hands on, is not seen.
    Unknown,
}

impl Module {
    fn new(file: u32, tree: &Tree, unit: &Unit) -> Module {
        let own = unit.variables.iter().filter(|(_, variable)| variable.is_owned);
        let variables = own.map(|(&name, variable)| {
            let outer = Outer {
                attributes: variable.attributes,
                is_array: variable.shape.is_some(),
                is_character: variable.is_character,
                is_common: unit.is_common(variable),
            };
            (tree.symbols.name(name).into(), outer)
        });
        Module {
            file,
            variables: variables.collect(),
            uses: unit.outer_uses(tree),
            has_unseen_names: unit.has_unseen_names(),
            includes_header: unit.includes_header(),
        }
    }
}

impl Modules {
    /// Adds the modules of the file with that place in the input; files come in any order.
    pub fn add(&mut self, file: u32, tree: &Tree, model: &Model) {
        for (_, unit) in model.iter() {
            let (UnitKind::Module, Some(name)) = (unit.kind, unit.name) else { continue };
            let name: Box<str> = tree.symbols.name(name.symbol).into();
            let module = Module::new(file, tree, unit);
            self.names.extend(module.variables.keys().cloned());
            for (local, original) in module.uses.iter().flat_map(|used| &used.names) {
                self.names.insert(local.clone());
                self.names.insert(original.clone());
            }
            let next = self.groups.len() as u32;
            let id = *self.by_name.entry(name.clone()).or_insert(next);
            if id == next {
                self.groups.push(Group { name, modules: Vec::new() });
            }
            self.groups[id as usize].modules.push(module);
        }
    }

    /// Puts the modules of one name into the order of the input, once all are here.
    pub fn settle(&mut self) {
        for group in &mut self.groups {
            group.modules.sort_by_key(|module| module.file);
        }
    }

    /// Says that a name is looked for in modules and must not be taken for another one.
    pub fn tell_apart(&mut self, name: &str) {
        if !self.names.contains(name) {
            self.names.insert(name.into());
        }
    }

    /// The modules of that name.
    pub fn named(&self, name: &str) -> &[Module] {
        self.by_name.get(name).map_or(&[], |&id| &self.groups[id as usize].modules)
    }

    /// What `name` means in a module, and in which module it was declared.
    pub fn find(&self, module: &str, name: &str) -> Found<'_> {
        let at_home = |module: &str, name: &str| {
            let &group = self.by_name.get(module)?;
            let modules = &self.groups[group as usize].modules;
            let i = modules.iter().position(|module| module.variables.contains_key(name))?;
            Some(Place { group, module: i as u32, name: name.into() })
        };
        match self.reach(module, name, &self.found, &OuterUse::original, &at_home) {
            Reach::Found(Place { group, module, name }) => {
                let group = &self.groups[group as usize];
                match group.modules[module as usize].variables.get(&name) {
                    Some(outer) => Found::Variable(outer, &group.name),
                    None => Found::Absent,
                }
            }
            Reach::Absent => Found::Absent,
            Reach::Unknown => Found::Unknown,
        }
    }

    /// Goes from a module through those that it uses until something is `at_home`: in order of the text, the near ones
    /// first. `through` says what a name is called behind a USE, and whether it comes through at all.
    pub fn reach<T: Clone>(
        &self,
        module: &str,
        name: &str,
        memo: &Memo<T>,
        through: &Through,
        at_home: &impl Fn(&str, &str) -> Option<T>,
    ) -> Reach<T> {
        // Nothing treats the other names apart, so that one answer serves them all.
        let name = if self.names.contains(name) { name } else { "" };
        self.reach_within(module, name, memo, through, at_home, &mut Vec::new()).0
    }

    /// The answer, and whether it holds for others who ask: not where a circle or the depth cut it short.
    fn reach_within<T: Clone>(
        &self,
        module: &str,
        name: &str,
        memo: &Memo<T>,
        through: &Through,
        at_home: &impl Fn(&str, &str) -> Option<T>,
        open: &mut Vec<u32>,
    ) -> (Reach<T>, bool) {
        if let Some(found) = at_home(module, name) {
            return (Reach::Found(found), true);
        }
        if HARMLESS_MODULES.contains(&module) {
            return (Reach::Absent, true);
        }
        let Some(&id) = self.by_name.get(module) else { return (Reach::Unknown, true) };
        let key = (id, Box::from(name));
        if let Some(known) = memo.known.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return (known.clone(), true);
        }
        if open.contains(&id) {
            return (Reach::Absent, false);
        }
        if open.len() >= USE_DEPTH_MAX {
            return (Reach::Unknown, false);
        }
        open.push(id);
        let mut is_whole = true;
        let mut answer = Reach::Absent;
        'search: for own in &self.groups[id as usize].modules {
            if own.has_unseen_names {
                answer = Reach::Unknown;
            }
            for used in &own.uses {
                let Some(original) = through(used, name) else { continue };
                let (inner, inner_is_whole) =
                    self.reach_within(&used.module, original, memo, through, at_home, open);
                is_whole &= inner_is_whole;
                match inner {
                    Reach::Found(_) => {
                        answer = inner;
                        // Whoever found it did not need what was cut off.
                        is_whole = true;
                        break 'search;
                    }
                    // A name that is handed on by itself comes from there and from nowhere else.
                    Reach::Unknown => answer = Reach::Unknown,
                    Reach::Absent => {}
                }
            }
        }
        open.pop();
        if is_whole || open.is_empty() {
            let mut known = memo.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert(key, answer.clone());
        }
        (answer, is_whole)
    }
}

/// What a name is called behind a USE; `None` where it does not come through.
pub type Through = dyn for<'u> Fn(&'u OuterUse, &'u str) -> Option<&'u str>;
