//! Where a name lives, as an optimiser sees it. Never says whether that is good enough.

use rma_source::Span;

use super::scope::{Model, SAVE_ALL, Unit, UnitId, Variable, is_assumed_shape};
use crate::options::Standard;
use crate::parse::{Attributes, Include, Symbol, Tree, UnitKind};

/// Where a variable lives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Storage {
    /// A local of this unit, or of the host that is no module. Nothing else can reach it.
    Local,
    /// A dummy argument.
    Dummy,
    /// In COMMON, also through EQUIVALENCE.
    Common,
    /// Of a module in this file.
    Module,
    /// What a Cray pointer leads to.
    Pointee,
    /// From a module or an included file that is not seen, so that nothing is known.
    Imported,
}

/// A name as it is seen from one unit.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// Where it lives.
    pub storage: Storage,
    /// Attributes from its declaration and from statements of the unit that uses it.
    pub attributes: Attributes,
    /// Where it is declared.
    pub declared: Option<Span>,
    /// Where a weak attribute was given.
    pub attribute_place: Option<Span>,
    /// It shares its place with other names.
    pub is_equivalenced: bool,
    /// What its declarations say, where one is seen.
    pub variable: Option<Variable>,
}

impl Resolved {
    /// Whether it is an array or may be subscripted otherwise.
    pub fn is_array(&self) -> bool {
        self.variable.as_ref().is_some_and(|variable| variable.shape.is_some())
    }

    /// Whether it is a dummy array whose elements may be apart in the caller.
    pub fn is_assumed_shape(&self, tree: &Tree) -> bool {
        self.storage == Storage::Dummy
            && !self.attributes.has(Attributes::ALLOCATABLE)
            && !self.attributes.has(Attributes::POINTER)
            && self
                .variable
                .as_ref()
                .and_then(|variable| variable.shape)
                .is_some_and(|shape| is_assumed_shape(tree, shape))
    }
}

/// Modules that hold no variables of the program.
const HARMLESS_MODULES: &[&str] = &[
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

impl Model {
    /// What a name means in a unit.
    pub fn resolve(&self, tree: &Tree, unit: UnitId, name: Symbol) -> Resolved {
        let mut attributes = Attributes::NONE;
        let mut next = Some(unit);
        let mut may_be_imported = false;
        let mut is_implicit_none = false;
        while let Some(id) = next {
            let here = self.unit(id);
            is_implicit_none |= here.is_implicit_none;
            if let Some(variable) = here.variables.get(&name) {
                attributes = attributes.with(variable.attributes);
                if variable.is_owned || variable.is_dummy || !(self.is_visible_above(tree, id, name)) {
                    return self.own(here, variable, attributes);
                }
            }
            for used in &here.uses {
                let original = match used.names.iter().find(|(local, _)| *local == name) {
                    Some((_, original)) => Some(*original),
                    None if used.has_only => None,
                    None => Some(name),
                };
                let Some(original) = original else { continue };
                match self.module(used.module) {
                    Some(module) => {
                        if let Some(found) = self.of_module(module, original, attributes) {
                            return found;
                        }
                        may_be_imported |= self.has_unknown_names(tree, module);
                    }
                    None => {
                        let is_harmless = HARMLESS_MODULES.contains(&tree.symbols.name(used.module));
                        if used.has_only && !is_harmless {
                            return Resolved::imported(attributes);
                        }
                        may_be_imported |= !is_harmless;
                    }
                }
            }
            may_be_imported |= here.includes.iter().any(Include::may_hold_names);
            // A submodule sees all of a module that is elsewhere.
            may_be_imported |= here.kind == UnitKind::Submodule;
            next = here.parent;
        }
        match may_be_imported || is_implicit_none {
            true => Resolved::imported(attributes),
            false => Resolved {
                storage: Storage::Local,
                attributes,
                declared: None,
                attribute_place: None,
                is_equivalenced: false,
                variable: None,
            },
        }
    }

    fn own(&self, unit: &Unit, variable: &Variable, mut attributes: Attributes) -> Resolved {
        let storage = match unit.kind {
            _ if unit.is_common(variable) => Storage::Common,
            _ if variable.is_pointee => Storage::Pointee,
            _ if variable.is_dummy => Storage::Dummy,
            UnitKind::Module | UnitKind::Submodule => Storage::Module,
            _ => Storage::Local,
        };
        if storage == Storage::Local && unit.variables.contains_key(&SAVE_ALL) {
            attributes = attributes.with(Attributes::SAVE);
        }
        Resolved {
            storage,
            attributes,
            declared: variable.declared,
            attribute_place: variable.attribute_place,
            is_equivalenced: variable.equivalence.is_some(),
            variable: Some(variable.clone()),
        }
    }

    /// A variable of a module, or of a module that it uses in turn.
    fn of_module(&self, module: UnitId, name: Symbol, attributes: Attributes) -> Option<Resolved> {
        let unit = self.unit(module);
        let variable = unit.variables.get(&name).filter(|variable| variable.is_owned)?;
        Some(self.own(unit, variable, attributes.with(variable.attributes)))
    }

    /// Whether a module may hand on names that are not seen.
    fn has_unknown_names(&self, tree: &Tree, module: UnitId) -> bool {
        let unit = self.unit(module);
        unit.includes.iter().any(Include::may_hold_names)
            || unit.uses.iter().any(|used| !HARMLESS_MODULES.contains(&tree.symbols.name(used.module)))
    }

    /// Whether a name that has only attributes here can come from elsewhere.
    fn is_visible_above(&self, tree: &Tree, id: UnitId, name: Symbol) -> bool {
        let unit = self.unit(id);
        let used = unit.uses.iter().any(|used| {
            let is_harmless = HARMLESS_MODULES.contains(&tree.symbols.name(used.module));
            !is_harmless && (!used.has_only || used.names.iter().any(|(local, _)| *local == name))
        });
        let mut above = unit.parent;
        let mut is_above = false;
        while let Some(parent) = above {
            let parent = self.unit(parent);
            is_above |= parent.variables.contains_key(&name) || !parent.uses.is_empty();
            above = parent.parent;
        }
        used || is_above || unit.includes.iter().any(Include::may_hold_names)
    }
}

impl Resolved {
    fn imported(attributes: Attributes) -> Resolved {
        Resolved {
            storage: Storage::Imported,
            attributes,
            declared: None,
            attribute_place: None,
            is_equivalenced: false,
            variable: None,
        }
    }
}

/// Whether a compiler must assume that a call changes a variable.
///
/// Of locals it must for those that are arguments of the call, in COMMON, or VOLATILE, and since Fortran 2003 for those
/// that are ASYNCHRONOUS. Module variables are visible to unknown procedures just as COMMON is.
pub fn may_be_changed_by_call(resolved: &Resolved, is_argument: IsArgument, standard: Standard) -> bool {
    let attributes = resolved.attributes;
    let is_asynchronous = attributes.has(Attributes::ASYNCHRONOUS) && standard >= Standard::F2003;
    match (is_argument, resolved.storage) {
        (IsArgument::Yes, _) => true,
        (IsArgument::No, Storage::Common | Storage::Module | Storage::Imported) => true,
        (IsArgument::No, Storage::Local | Storage::Dummy | Storage::Pointee) => {
            attributes.has(Attributes::VOLATILE) || is_asynchronous
        }
    }
}

/// Whether the variable stands among the arguments of the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IsArgument {
    /// It does.
    Yes,
    /// It does not.
    No,
}
