//! Statements are dealt out to program units, and declarations to names. Never follows USE or host association.

use std::collections::HashMap;

use rma_source::Span;

use crate::parse::{
    Attributes, BaseType, Entity, ExprId, ExprKind, ImplicitRule, Include, Kind, List, Mark, Name,
    StatementKind, Symbol, Tree, TypeSpec, UnitKind,
};

/// Index of a unit in its [`Model`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct UnitId(pub u32);

/// What the declarations of one unit say about a name.
#[derive(Clone, Debug, Default)]
pub struct Variable {
    /// The first declaration that names it.
    pub declared: Option<Span>,
    /// It has a type, bounds, or a place in COMMON; otherwise only attributes were given to it.
    pub is_owned: bool,
    /// All attributes.
    pub attributes: Attributes,
    /// Where the attribute that protects it least stands: TARGET, SAVE and their kin.
    pub attribute_place: Option<Span>,
    /// Its bounds.
    pub shape: Option<List>,
    /// It holds characters, so that a parenthesis may be a substring.
    pub is_character: bool,
    /// Its declared type.
    pub spec: Option<TypeSpec>,
    /// The place in COMMON.
    pub common_place: Option<CommonPlace>,
    /// Index of its EQUIVALENCE set.
    pub equivalence: Option<u32>,
    /// It is a dummy argument.
    pub is_dummy: bool,
    /// A Cray pointer leads to it.
    pub is_pointee: bool,
}

/// A place in a COMMON block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommonPlace {
    /// The block; `None` is blank COMMON.
    pub block: Option<Symbol>,
    /// How many members stand before it.
    pub position: u32,
}

impl Variable {
    /// Whether it is of a derived type.
    pub fn is_derived(&self) -> bool {
        self.spec.is_some_and(|spec| matches!(spec.base, BaseType::Derived(_)))
    }

    fn set_type(&mut self, spec: Option<TypeSpec>) {
        if let Some(spec) = spec {
            self.is_character = spec.base == BaseType::Character;
            self.spec = Some(spec);
        }
    }
}

/// One USE statement.
#[derive(Clone, Debug)]
pub struct Use {
    /// The module.
    pub module: Symbol,
    /// Only the listed names come in.
    pub has_only: bool,
    /// Local names and the names in the module.
    pub names: Vec<(Symbol, Symbol)>,
}

/// One element of a unit's body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Index of a statement.
    Statement(u32),
    /// A preprocessor mark.
    Mark(Mark),
}

/// A program unit or procedure.
#[derive(Clone, Debug)]
pub struct Unit {
    /// Its kind.
    pub kind: UnitKind,
    /// Its name.
    pub name: Option<Name>,
    /// The unit that contains it.
    pub parent: Option<UnitId>,
    /// Statements and preprocessor marks in order.
    pub body: Vec<Step>,
    /// What its declarations say.
    pub variables: HashMap<Symbol, Variable>,
    /// Dummy arguments in order.
    pub dummies: Vec<Symbol>,
    /// Names that are defined as statement functions.
    pub statement_functions: Vec<Symbol>,
    /// USE statements.
    pub uses: Vec<Use>,
    /// Included files, by INCLUDE or `#include`. The statements of those that were read are in `body`.
    pub includes: Vec<Include>,
    /// IMPLICIT NONE stands in it.
    pub is_implicit_none: bool,
    /// What its IMPLICIT statements say.
    pub implicit: Vec<ImplicitRule>,
    /// EQUIVALENCE sets whose members are in COMMON through one of them.
    pub common_sets: Vec<u32>,
    n_equivalences: u32,
    has_contains: bool,
    /// A statement stood in it that is executed.
    is_executing: bool,
}

/// All units of a file.
#[derive(Debug, Default)]
pub struct Model {
    /// In order of their headers.
    pub units: Vec<Unit>,
}

impl Model {
    /// Deals out the statements of a file.
    pub fn new(tree: &Tree) -> Model {
        let mut builder = Builder {
            tree,
            model: Model::default(),
            stack: Vec::new(),
            branches: Vec::new(),
            n_interface: 0,
            n_interface_units: 0,
            is_type: false,
        };
        builder.run();
        let mut model = builder.model;
        for unit in &mut model.units {
            unit.find_common_sets();
        }
        model
    }

    /// The unit.
    pub fn unit(&self, id: UnitId) -> &Unit {
        &self.units[id.0 as usize]
    }

    /// All units with their indices.
    pub fn iter(&self) -> impl Iterator<Item = (UnitId, &Unit)> {
        self.units.iter().enumerate().map(|(i, unit)| (UnitId(i as u32), unit))
    }

    /// Bytes that it takes, about.
    pub fn weight(&self) -> usize {
        let of_unit = |unit: &Unit| {
            let variables = unit.variables.capacity() * size_of::<(Symbol, Variable)>();
            size_of::<Unit>() + unit.body.capacity() * size_of::<Step>() + variables
        };
        self.units.iter().map(of_unit).sum()
    }

    /// The module of that name in this file.
    pub fn module(&self, name: Symbol) -> Option<UnitId> {
        self.iter()
            .find(|(_, unit)| {
                unit.kind == UnitKind::Module && unit.name.is_some_and(|own| own.symbol == name)
            })
            .map(|(id, _)| id)
    }
}

impl Model {
    /// The type of a name of a unit that is declared or left to its first letter; `None` under IMPLICIT NONE and for
    /// names that no declaration gives a type.
    pub fn type_of(&self, tree: &Tree, id: UnitId, name: Symbol) -> Option<TypeSpec> {
        let unit = self.unit(id);
        if let Some(spec) = unit.variables.get(&name).and_then(|variable| variable.spec) {
            return Some(spec);
        }
        let first = *tree.symbols.name(name).as_bytes().first()?;
        let mut next = Some(unit);
        while let Some(unit) = next {
            let rule = unit.implicit.iter().rev().find(|rule| rule.first <= first && first <= rule.last);
            if let Some(rule) = rule {
                return Some(rule.spec);
            }
            if unit.is_implicit_none {
                return None;
            }
            next = unit.parent.map(|parent| self.unit(parent));
        }
        let base = if (b'i'..=b'n').contains(&first) { BaseType::Integer } else { BaseType::Real };
        Some(TypeSpec { base, kind: Kind::Default })
    }
}

impl Unit {
    fn new(kind: UnitKind, name: Option<Name>, parent: Option<UnitId>) -> Unit {
        Unit {
            kind,
            name,
            parent,
            body: Vec::new(),
            variables: HashMap::new(),
            dummies: Vec::new(),
            statement_functions: Vec::new(),
            uses: Vec::new(),
            includes: Vec::new(),
            is_implicit_none: false,
            implicit: Vec::new(),
            common_sets: Vec::new(),
            n_equivalences: 0,
            has_contains: false,
            is_executing: false,
        }
    }

    /// Whether the name is in COMMON, itself or through EQUIVALENCE.
    pub fn is_common(&self, variable: &Variable) -> bool {
        variable.common_place.is_some()
            || variable.equivalence.is_some_and(|set| self.common_sets.contains(&set))
    }

    fn find_common_sets(&mut self) {
        let sets = self
            .variables
            .values()
            .filter(|variable| variable.common_place.is_some())
            .filter_map(|variable| variable.equivalence);
        self.common_sets = sets.collect();
    }

    fn variable(&mut self, name: Symbol) -> &mut Variable {
        self.variables.entry(name).or_default()
    }

    fn declare(&mut self, entity: &Entity, attributes: Attributes) -> &mut Variable {
        let variable = self.variable(entity.name.symbol);
        // The declaration with the type or the bounds is the one a reader looks for.
        variable.declared.get_or_insert(entity.name.span);
        variable.attributes = variable.attributes.with(attributes);
        if entity.is_initialised {
            variable.attributes = variable.attributes.with(Attributes::SAVE);
        }
        let weak = [Attributes::TARGET, Attributes::POINTER, Attributes::ALLOCATABLE, Attributes::SAVE];
        if weak.iter().any(|&weak| attributes.has(weak)) || entity.is_initialised {
            variable.attribute_place = Some(entity.name.span);
        }
        if entity.shape.is_some() {
            variable.shape = entity.shape;
        }
        variable
    }

    fn merge_equivalence(&mut self, names: &[(Symbol, Span)]) {
        let known = names
            .iter()
            .find_map(|(name, _)| self.variables.get(name).and_then(|variable| variable.equivalence));
        let set = known.unwrap_or(self.n_equivalences);
        self.n_equivalences += u32::from(known.is_none());
        for &(name, span) in names {
            let variable = self.variable(name);
            let old = variable.equivalence.replace(set);
            variable.attribute_place.get_or_insert(span);
            if let Some(old) = old {
                for variable in self.variables.values_mut() {
                    if variable.equivalence == Some(old) {
                        variable.equivalence = Some(set);
                    }
                }
            }
        }
    }
}

/// What is remembered at an `#if`.
struct Branch {
    stack: Vec<UnitId>,
    first: Option<Vec<UnitId>>,
}

struct Builder<'t> {
    tree: &'t Tree,
    model: Model,
    stack: Vec<UnitId>,
    branches: Vec<Branch>,
    n_interface: u32,
    n_interface_units: u32,
    is_type: bool,
}

impl Builder<'_> {
    fn run(&mut self) {
        let tree = self.tree;
        let (mut next_mark, mut next_include) = (0, 0);
        for (i, statement) in tree.statements.iter().enumerate() {
            while let Some((_, mark)) = tree.marks.get(next_mark).filter(|(at, _)| *at as usize <= i) {
                self.mark(mark);
                next_mark += 1;
            }
            while let Some((_, include)) = tree.includes.get(next_include).filter(|(at, _)| *at as usize <= i)
            {
                if let Some(unit) = self.current() {
                    unit.includes.push(include.clone());
                }
                next_include += 1;
            }
            self.statement(i as u32, &statement.kind);
        }
    }

    fn current(&mut self) -> Option<&mut Unit> {
        let id = *self.stack.last()?;
        Some(&mut self.model.units[id.0 as usize])
    }

    fn mark(&mut self, mark: &Mark) {
        if let Some(unit) = self.current() {
            unit.body.push(Step::Mark(mark.clone()));
        }
        match mark {
            Mark::If => self.branches.push(Branch { stack: self.stack.clone(), first: None }),
            Mark::Else => {
                if let Some(branch) = self.branches.last_mut() {
                    branch.first.get_or_insert(self.stack.clone());
                    self.stack = branch.stack.clone();
                }
            }
            Mark::EndIf => {
                if let Some(branch) = self.branches.pop()
                    && let Some(first) = branch.first
                {
                    self.stack = first;
                }
            }
        }
    }

    fn open(&mut self, kind: UnitKind, name: Option<Name>) -> &mut Unit {
        // A header where none can stand: the END before it was lost.
        while let Some(&top) = self.stack.last() {
            let unit = &self.model.units[top.0 as usize];
            if unit.has_contains {
                break;
            }
            self.stack.pop();
        }
        let parent = self.stack.last().copied();
        let id = UnitId(self.model.units.len() as u32);
        self.model.units.push(Unit::new(kind, name, parent));
        self.stack.push(id);
        let at = id.0 as usize;
        &mut self.model.units[at]
    }

    fn statement(&mut self, i: u32, kind: &StatementKind) {
        use StatementKind as S;
        if self.n_interface > 0 {
            match kind {
                S::Interface { .. } => self.n_interface += 1,
                S::EndInterface => {
                    self.n_interface -= 1;
                    self.n_interface_units = 0;
                }
                S::Unit { kind: UnitKind::ModuleProcedure, .. } => {}
                S::Unit { .. } => self.n_interface_units += 1,
                S::EndUnit(kind) => match self.n_interface_units.checked_sub(1) {
                    Some(fewer) => self.n_interface_units = fewer,
                    // The END INTERFACE was lost.
                    None => {
                        self.n_interface = 0;
                        self.end_unit(*kind);
                    }
                },
                _ => {}
            }
            return;
        }
        match kind {
            S::Unit { kind, name, dummies, result, prefix } => {
                let is_function = *kind == UnitKind::Function;
                let unit = self.open(*kind, *name);
                unit.body.push(Step::Statement(i));
                for dummy in dummies {
                    unit.dummies.push(dummy.symbol);
                    unit.variable(dummy.symbol).is_dummy = true;
                }
                if let (true, Some(name)) = (is_function, result.or(*name)) {
                    let variable = unit.variable(name.symbol);
                    variable.is_owned = true;
                    variable.set_type(*prefix);
                }
                return;
            }
            S::EndUnit(kind) => {
                if let Some(unit) = self.current() {
                    unit.body.push(Step::Statement(i));
                }
                self.end_unit(*kind);
                return;
            }
            S::Interface { .. } => {
                self.n_interface = 1;
                return;
            }
            S::TypeDefinition(_) => {
                self.is_type = true;
                return;
            }
            S::EndType => {
                self.is_type = false;
                return;
            }
            S::Contains if self.is_type => return,
            _ if self.is_type => return,
            _ => {}
        }
        if self.stack.is_empty() {
            self.open(UnitKind::Program, None);
        }
        let tree = self.tree;
        let Some(unit) = self.current() else { return };
        unit.body.push(Step::Statement(i));
        match kind {
            S::Assignment { target, .. } if !unit.is_executing => {
                match statement_function(tree, unit, *target) {
                    Some(name) => unit.statement_functions.push(name),
                    None => unit.is_executing = true,
                }
            }
            S::Call { .. } | S::IfThen(_) | S::IfStatement(_) | S::Do { .. } | S::Io { .. } => {
                unit.is_executing = true;
            }
            S::Contains => unit.has_contains = true,
            S::Entry { dummies, .. } => {
                for dummy in dummies {
                    unit.dummies.push(dummy.symbol);
                    unit.variable(dummy.symbol).is_dummy = true;
                }
            }
            S::Declaration { spec, attributes, shape, entities } => {
                for entity in entities {
                    let variable = unit.declare(entity, *attributes);
                    variable.is_owned = true;
                    variable.declared = Some(entity.name.span);
                    variable.set_type(Some(TypeSpec { kind: entity.length.unwrap_or(spec.kind), ..*spec }));
                    if variable.shape.is_none() {
                        variable.shape = *shape;
                    }
                }
            }
            S::Attribute { attributes, entities } => {
                if entities.is_empty() && attributes.has(Attributes::SAVE) {
                    // A bare SAVE concerns what is declared before and behind it alike.
                    unit.variable(SAVE_ALL).attributes = Attributes::SAVE;
                }
                for entity in entities {
                    unit.declare(entity, *attributes).is_owned |= entity.shape.is_some();
                }
            }
            S::Common(blocks) => {
                for block in blocks {
                    // A block may be continued by a later statement.
                    let places = unit.variables.values().filter_map(|variable| variable.common_place);
                    let n_before = places.filter(|place| place.block == block.name).count() as u32;
                    for (position, member) in (n_before..).zip(&block.members) {
                        let variable = unit.declare(member, Attributes::NONE);
                        variable.is_owned = true;
                        variable.common_place = Some(CommonPlace { block: block.name, position });
                    }
                }
            }
            S::Equivalence(sets) => {
                for &set in sets {
                    let names: Vec<(Symbol, Span)> = tree
                        .list(set)
                        .iter()
                        .filter_map(|&id| Some((tree.root(id)?, tree.span(id))))
                        .collect();
                    unit.merge_equivalence(&names);
                }
            }
            S::CrayPointer(pairs) => {
                for (pointer, pointee) in pairs {
                    let variable = unit.variable(pointer.symbol);
                    variable.is_owned = true;
                    // It holds an address, whatever its letter says.
                    variable.set_type(Some(TypeSpec { base: BaseType::Integer, kind: Kind::Bytes(8) }));
                    let variable = unit.declare(pointee, Attributes::NONE);
                    variable.is_owned = true;
                    variable.is_pointee = true;
                }
            }
            S::Data(names) => {
                for &name in names {
                    if let Some(variable) = unit.variables.get_mut(&name) {
                        variable.attributes = variable.attributes.with(Attributes::SAVE);
                        variable.attribute_place = variable.attribute_place.or(variable.declared);
                    }
                }
            }
            S::Implicit { is_none, rules } => {
                unit.is_implicit_none |= is_none;
                unit.implicit.extend(rules);
            }
            S::Use { module, has_only, names } => {
                unit.uses.push(Use { module: module.symbol, has_only: *has_only, names: names.clone() });
            }
            S::Include { name, inclusion } => {
                let span = tree.statements[i as usize].span;
                unit.includes.push(Include { name: name.clone(), inclusion: *inclusion, span });
            }
            _ => {}
        }
    }

    fn end_unit(&mut self, kind: Option<UnitKind>) {
        let matches = |unit: &Unit| kind.is_none_or(|kind| kind == unit.kind);
        let at = self.stack.iter().rposition(|id| matches(&self.model.units[id.0 as usize]));
        if let Some(at) = at {
            self.stack.truncate(at);
        }
    }
}

/// The name that an assignment among the declarations defines as a function: `f(x, y) = …`, where `f` has no bounds.
fn statement_function(tree: &Tree, unit: &Unit, target: ExprId) -> Option<Symbol> {
    let ExprKind::Reference { base, args } = tree.expr(target).kind else { return None };
    let ExprKind::Name(name) = tree.expr(base).kind else { return None };
    let is_dummy = |&id: &ExprId| matches!(tree.expr(id).kind, ExprKind::Name(_));
    let is_array = unit.variables.get(&name).is_some_and(|variable| variable.shape.is_some());
    (!is_array && tree.list(args).iter().all(is_dummy)).then_some(name)
}

/// The entry that stands for a bare SAVE; no name has this symbol.
pub(super) const SAVE_ALL: Symbol = Symbol(u32::MAX);

/// Whether the bounds say that the caller's array may have gaps: `a(:)` of a dummy argument.
pub(super) fn is_assumed_shape(tree: &Tree, shape: List) -> bool {
    tree.list(shape)
        .iter()
        .all(|&bound| matches!(tree.expr(bound).kind, ExprKind::Section { high: None, stride: None, .. }))
}
