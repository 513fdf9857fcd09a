//! What the modules of all files hold, so that USE finds them in any order of files. Never holds a tree.

use std::collections::HashMap;

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
const USE_DEPTH_MAX: usize = 16;

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
#[derive(Clone, Debug, Default)]
pub struct Modules {
    /// Several modules may have one name: a code keeps alternatives in folders of their own.
    by_name: HashMap<Box<str>, Vec<Module>>,
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
    fn new(tree: &Tree, unit: &Unit) -> Module {
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
            variables: variables.collect(),
            uses: unit.outer_uses(tree),
            has_unseen_names: unit.has_unseen_names(),
            includes_header: unit.includes_header(),
        }
    }
}

impl Modules {
    /// Adds the modules of one file.
    pub fn add(&mut self, tree: &Tree, model: &Model) {
        for (_, unit) in model.iter() {
            if let (UnitKind::Module, Some(name)) = (unit.kind, unit.name) {
                let name = tree.symbols.name(name.symbol);
                self.by_name.entry(name.into()).or_default().push(Module::new(tree, unit));
            }
        }
    }

    /// The modules of that name.
    pub fn named(&self, name: &str) -> &[Module] {
        self.by_name.get(name).map_or(&[], Vec::as_slice)
    }

    /// What `name` means in a module, and in which module it was declared.
    pub fn find<'a>(&'a self, module: &'a str, name: &'a str) -> Found<'a> {
        self.find_within(module, name, USE_DEPTH_MAX)
    }

    fn find_within<'a>(&'a self, module: &'a str, name: &'a str, depth: usize) -> Found<'a> {
        if HARMLESS_MODULES.contains(&module) {
            return Found::Absent;
        }
        let modules = self.named(module);
        if modules.is_empty() || depth == 0 {
            return Found::Unknown;
        }
        let mut is_unknown = false;
        for own in modules {
            if let Some((_, outer)) = own.variables.get_key_value(name) {
                return Found::Variable(outer, module);
            }
            is_unknown |= own.has_unseen_names;
            for used in &own.uses {
                let Some(original) = used.original(name) else { continue };
                match self.find_within(&used.module, original, depth - 1) {
                    found @ Found::Variable(..) => return found,
                    // A name that is handed on by itself comes from there and from nowhere else.
                    Found::Unknown => is_unknown = true,
                    Found::Absent => {}
                }
            }
        }
        match is_unknown {
            true => Found::Unknown,
            false => Found::Absent,
        }
    }
}
