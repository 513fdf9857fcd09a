//! Where a name lives, as an optimiser sees it. Never says whether that is good enough.

use rma_source::Span;

use super::modules::{Found, HARMLESS_MODULES, Modules, OuterUse};
use super::scope::{Model, SAVE_ALL, Unit, UnitId, Variable, is_assumed_shape};
use crate::options::Standard;
use crate::parse::{Attributes, Include, List, Symbol, Tree, UnitKind};

/// Where a variable lives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Storage {
    /// A local of this unit, or of the host that is no module. Nothing else can reach it.
    Local,
    /// A dummy argument.
    Dummy,
    /// In COMMON, also through EQUIVALENCE.
    Common,
    /// Of a module.
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
    /// A name for it that all units share, when it lives in a module or in COMMON.
    pub shared_name: Option<Box<str>>,
}

impl Resolved {
    /// Whether it is an array or may be subscripted otherwise.
    pub fn is_array(&self) -> bool {
        self.variable.as_ref().is_some_and(|variable| variable.shape.is_some())
    }

    /// The word for what protects it, unless nothing does.
    pub fn remedy(&self) -> Option<&'static str> {
        match self.storage {
            _ if self.attributes.has(Attributes::VOLATILE) => Some("VOLATILE"),
            _ if self.attributes.has(Attributes::ASYNCHRONOUS) => Some("ASYNCHRONOUS"),
            Storage::Common => Some("in COMMON"),
            _ => None,
        }
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

impl Model {
    /// What a name means in a unit.
    pub fn resolve(&self, tree: &Tree, modules: &Modules, unit: UnitId, name: Symbol) -> Resolved {
        if is_shared_name(tree.symbols.name(name)) {
            let mut resolved = Resolved::imported(Attributes::NONE);
            resolved.shared_name = Some(tree.symbols.name(name).into());
            return resolved;
        }
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
                    return self.own(tree, here, variable, name, attributes);
                }
            }
            for used in &here.uses {
                let original = match used.names.iter().find(|(local, _)| *local == name) {
                    Some((_, original)) => Some(*original),
                    None if used.has_only => None,
                    None => Some(name),
                };
                let Some(original) = original else { continue };
                if let Some(module) = self.module(used.module)
                    && let Some(found) = self.of_module(tree, module, original, attributes)
                {
                    return found;
                }
                match modules.find(tree.symbols.name(used.module), tree.symbols.name(original)) {
                    Found::Variable(outer, module) => {
                        let storage = if outer.is_common { Storage::Common } else { Storage::Module };
                        let variable = Variable {
                            is_owned: true,
                            attributes: outer.attributes,
                            shape: outer.is_array.then(List::default),
                            is_character: outer.is_character,
                            ..Variable::default()
                        };
                        return Resolved {
                            storage,
                            attributes: attributes.with(outer.attributes),
                            declared: None,
                            attribute_place: None,
                            is_equivalenced: false,
                            variable: Some(variable),
                            shared_name: Some(shared_name(module, tree.symbols.name(original))),
                        };
                    }
                    Found::Absent => {}
                    Found::Unknown if used.has_only => return Resolved::imported(attributes),
                    Found::Unknown => may_be_imported = true,
                }
            }
            may_be_imported |= here.has_unseen_names();
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
                shared_name: None,
            },
        }
    }

    fn own(
        &self,
        tree: &Tree,
        unit: &Unit,
        variable: &Variable,
        name: Symbol,
        mut attributes: Attributes,
    ) -> Resolved {
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
        let shared_name = match (storage, unit.name, &variable.common_place) {
            (Storage::Common, _, Some(place)) => {
                let block = place.block.map_or("", |block| tree.symbols.name(block));
                // Units may call the members what they like.
                Some(format!("/{block}/{}", place.position).into())
            }
            (Storage::Module, Some(module), _) => {
                Some(shared_name(tree.symbols.name(module.symbol), tree.symbols.name(name)))
            }
            _ => None,
        };
        Resolved {
            storage,
            attributes,
            declared: variable.declared,
            attribute_place: variable.attribute_place,
            is_equivalenced: variable.equivalence.is_some(),
            variable: Some(variable.clone()),
            shared_name,
        }
    }

    /// A variable of a module of this file.
    fn of_module(
        &self,
        tree: &Tree,
        module: UnitId,
        name: Symbol,
        attributes: Attributes,
    ) -> Option<Resolved> {
        let unit = self.unit(module);
        let variable = unit.variables.get(&name).filter(|variable| variable.is_owned)?;
        Some(self.own(tree, unit, variable, name, attributes.with(variable.attributes)))
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
        used || is_above || unit.has_unseen_names()
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
            shared_name: None,
        }
    }
}

impl Unit {
    /// Whether an included file that was not read may declare variables.
    pub fn has_unseen_names(&self) -> bool {
        self.includes.iter().any(Include::may_hold_names)
    }

    /// Whether it includes `mpif.h`.
    pub fn includes_header(&self) -> bool {
        self.includes.iter().any(|include| file_name(&include.name).eq_ignore_ascii_case("mpif.h"))
    }

    /// Its USE statements by the names themselves.
    pub fn outer_uses(&self, tree: &Tree) -> Vec<OuterUse> {
        let name = |symbol: Symbol| -> Box<str> { tree.symbols.name(symbol).into() };
        self.uses
            .iter()
            .map(|used| OuterUse {
                module: name(used.module),
                has_only: used.has_only,
                names: used.names.iter().map(|&(local, original)| (name(local), name(original))).collect(),
            })
            .collect()
    }
}

/// The name that all units share for a module variable. No name in a source looks like it.
fn shared_name(module: &str, name: &str) -> Box<str> {
    format!("{module}::{name}").into()
}

/// Whether a name is one that all units share.
pub fn is_shared_name(name: &str) -> bool {
    name.contains("::") || name.starts_with('/')
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
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
