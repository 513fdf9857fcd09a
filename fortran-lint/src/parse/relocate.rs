//! Puts a tree into another one at another place. Never looks at what a statement means.

use rma_source::Span;

use super::headers::Fragment;
use super::tree::*;

/// What is added to places and numbers.
struct Move {
    /// Bytes, wrapping round.
    places: u32,
    exprs: u32,
    lists: u32,
    /// The symbols of the new tree by those of the old one.
    symbols: Vec<Symbol>,
}

impl Tree {
    /// Adds the statements of a fragment, whose text stands at `start` here. `false`, with nothing done, where an included
    /// file was found here and not there, or the other way round.
    pub(super) fn take_in(&mut self, fragment: &Fragment, start: u32) -> bool {
        let from = &fragment.tree;
        let places = start.wrapping_sub(fragment.start);
        let is_same = |include: &Include| {
            self.origin.inclusion(include.span.start.wrapping_add(places)) == include.inclusion
        };
        let by_statements = from.statements.iter().all(|statement| match statement.kind {
            StatementKind::Include { inclusion, .. } => {
                self.origin.inclusion(statement.span.start.wrapping_add(places)) == inclusion
            }
            _ => true,
        });
        if !by_statements || !from.includes.iter().all(|(_, include)| is_same(include)) {
            return false;
        }
        let n_before = self.statements.len() as u32;
        from.macro_types().iter().for_each(|name| self.note_macro_type(name));
        let symbols = from.symbols.iter().map(|name| self.symbols.intern(name)).collect();
        let by = Move { places, exprs: self.n_exprs(), lists: self.n_list_items(), symbols };
        self.take_exprs(from, |kind| by.expr_kind(kind), |span| by.span(span), by.exprs);
        self.statements.extend(from.statements.iter().map(|statement| Statement {
            kind: by.kind(&statement.kind),
            label: statement.label,
            span: by.span(statement.span),
        }));
        self.marks.extend(from.marks.iter().map(|(at, mark)| (at + n_before, mark.clone())));
        for (at, include) in &from.includes {
            let Include { name, inclusion, span } = include;
            let include = Include { name: name.clone(), inclusion: *inclusion, span: by.span(*span) };
            self.add_include(at + n_before, include);
        }
        self.reasons.extend(from.reasons.iter().map(|(at, reason)| (at + n_before, reason.clone())));
        true
    }
}

impl Move {
    fn span(&self, span: Span) -> Span {
        Span { start: span.start.wrapping_add(self.places), end: span.end.wrapping_add(self.places) }
    }

    fn symbol(&self, symbol: Symbol) -> Symbol {
        self.symbols[symbol.0 as usize]
    }

    fn symbols(&self, symbols: &[Symbol]) -> Vec<Symbol> {
        symbols.iter().map(|&symbol| self.symbol(symbol)).collect()
    }

    fn name(&self, name: Name) -> Name {
        Name { symbol: self.symbol(name.symbol), span: self.span(name.span) }
    }

    fn names(&self, names: &[Name]) -> Vec<Name> {
        names.iter().map(|&name| self.name(name)).collect()
    }

    fn expr(&self, id: ExprId) -> ExprId {
        ExprId(id.0 + self.exprs)
    }

    fn list(&self, list: List) -> List {
        list.moved(self.lists)
    }

    fn spec(&self, spec: TypeSpec) -> TypeSpec {
        let base = match spec.base {
            BaseType::Derived(name) => BaseType::Derived(name.map(|name| self.symbol(name))),
            base => base,
        };
        TypeSpec { base, kind: self.length(spec.kind) }
    }

    fn length(&self, kind: Kind) -> Kind {
        match kind {
            Kind::Value(value) => Kind::Value(self.expr(value)),
            Kind::Default | Kind::Bytes(_) => kind,
        }
    }

    fn entity(&self, entity: &Entity) -> Entity {
        let &Entity { name, shape, length, is_initialised, bound_to } = entity;
        Entity {
            name: self.name(name),
            shape: shape.map(|shape| self.list(shape)),
            length: length.map(|length| self.length(length)),
            is_initialised,
            bound_to: bound_to.map(|procedure| self.symbol(procedure)),
        }
    }

    fn entities(&self, entities: &[Entity]) -> Vec<Entity> {
        entities.iter().map(|entity| self.entity(entity)).collect()
    }

    fn expr_kind(&self, kind: ExprKind) -> ExprKind {
        use ExprKind as E;
        let option = |id: Option<ExprId>| id.map(|id| self.expr(id));
        match kind {
            E::Name(name) => E::Name(self.symbol(name)),
            E::Reference { base, args } => E::Reference { base: self.expr(base), args: self.list(args) },
            E::Component { base, name } => E::Component { base: self.expr(base), name: self.symbol(name) },
            E::Operation { operators, operands } => {
                E::Operation { operators: self.symbol(operators), operands: self.list(operands) }
            }
            E::Paren(inner) => E::Paren(self.expr(inner)),
            E::Complex(re, im) => E::Complex(self.expr(re), self.expr(im)),
            E::Section { low, high, stride } => {
                E::Section { low: option(low), high: option(high), stride: option(stride) }
            }
            E::Keyword { name, value } => E::Keyword { name: self.symbol(name), value: self.expr(value) },
            E::Array(items) => E::Array(self.list(items)),
            E::ImpliedDo { items, variable, bounds } => E::ImpliedDo {
                items: self.list(items),
                variable: self.symbol(variable),
                bounds: self.list(bounds),
            },
            E::Percent { name, value } => E::Percent { name: self.symbol(name), value: self.expr(value) },
            E::Alias { name, value } => E::Alias { name: self.symbol(name), value: self.expr(value) },
            E::Literal(_) | E::AlternateReturn(_) | E::Star | E::Missing => kind,
        }
    }

    fn kind(&self, kind: &StatementKind) -> StatementKind {
        use StatementKind as S;
        let symbol = |name: Option<Symbol>| name.map(|name| self.symbol(name));
        let name = |name: Option<Name>| name.map(|name| self.name(name));
        let expr = |id: Option<ExprId>| id.map(|id| self.expr(id));
        match kind {
            S::Unit { kind, name: own, dummies, result, prefix } => S::Unit {
                kind: *kind,
                name: name(*own),
                dummies: self.names(dummies),
                result: name(*result),
                prefix: prefix.map(|prefix| self.spec(prefix)),
            },
            S::Entry { name, dummies } => S::Entry { name: self.name(*name), dummies: self.names(dummies) },
            S::Interface { generic } => S::Interface { generic: name(*generic) },
            S::Specific { generic, procedures } => {
                S::Specific { generic: name(*generic), procedures: self.names(procedures) }
            }
            S::TypeDefinition(own) => S::TypeDefinition(name(*own)),
            S::Declaration { spec, attributes, shape, entities } => S::Declaration {
                spec: self.spec(*spec),
                attributes: *attributes,
                shape: shape.map(|shape| self.list(shape)),
                entities: self.entities(entities),
            },
            S::Attribute { attributes, entities } => {
                S::Attribute { attributes: *attributes, entities: self.entities(entities) }
            }
            S::Common(blocks) => S::Common(
                blocks
                    .iter()
                    .map(|CommonBlock { name, members }| CommonBlock {
                        name: symbol(*name),
                        members: self.entities(members),
                    })
                    .collect(),
            ),
            S::Equivalence(sets) => S::Equivalence(sets.iter().map(|&set| self.list(set)).collect()),
            S::Implicit { is_none, rules } => S::Implicit {
                is_none: *is_none,
                rules: rules
                    .iter()
                    .map(|&ImplicitRule { first, last, spec }| ImplicitRule {
                        first,
                        last,
                        spec: self.spec(spec),
                    })
                    .collect(),
            },
            S::Namelist(groups) => S::Namelist(
                groups.iter().map(|(group, members)| (self.name(*group), self.names(members))).collect(),
            ),
            S::Assign { label, variable } => S::Assign { label: *label, variable: self.expr(*variable) },
            S::Use { module, has_only, names } => S::Use {
                module: self.name(*module),
                has_only: *has_only,
                names: names
                    .iter()
                    .map(|&(local, original)| (self.symbol(local), self.symbol(original)))
                    .collect(),
            },
            S::CrayPointer(pairs) => S::CrayPointer(
                pairs.iter().map(|(pointer, pointee)| (self.name(*pointer), self.entity(pointee))).collect(),
            ),
            S::Data(names) => S::Data(self.symbols(names)),
            S::Assignment { target, value } => {
                S::Assignment { target: self.expr(*target), value: self.expr(*value) }
            }
            S::PointerAssignment { target, value } => {
                S::PointerAssignment { target: self.expr(*target), value: self.expr(*value) }
            }
            S::Call { procedure, args } => {
                S::Call { procedure: self.expr(*procedure), args: self.list(*args) }
            }
            S::IfStatement(condition) => S::IfStatement(self.expr(*condition)),
            S::IfThen(condition) => S::IfThen(self.expr(*condition)),
            S::ElseIf(condition) => S::ElseIf(self.expr(*condition)),
            S::ArithmeticIf { value, labels } => {
                S::ArithmeticIf { value: self.expr(*value), labels: labels.clone() }
            }
            S::Do { kind, end_label, name, variable, control } => S::Do {
                kind: *kind,
                end_label: *end_label,
                name: symbol(*name),
                variable: expr(*variable),
                control: self.list(*control),
            },
            S::Goto { labels, selector } => S::Goto { labels: labels.clone(), selector: expr(*selector) },
            S::Cycle(name) => S::Cycle(symbol(*name)),
            S::Exit(name) => S::Exit(symbol(*name)),
            S::Select(selector) => S::Select(expr(*selector)),
            S::BlockStart { kind, args } => S::BlockStart { kind: *kind, args: self.list(*args) },
            S::ElseWhere(mask) => S::ElseWhere(self.list(*mask)),
            S::Masked(mask) => S::Masked(self.list(*mask)),
            S::Io { kind, control, items } => {
                S::Io { kind: *kind, control: self.list(*control), items: self.list(*items) }
            }
            S::Allocate(list) => S::Allocate(self.list(*list)),
            S::Deallocate(list) => S::Deallocate(self.list(*list)),
            S::Nullify(list) => S::Nullify(self.list(*list)),
            S::Contains
            | S::EndUnit(_)
            | S::EndInterface
            | S::EndType
            | S::Include { .. }
            | S::Format
            | S::Else
            | S::EndIf
            | S::EndDo
            | S::Continue
            | S::Return
            | S::Stop
            | S::Case { .. }
            | S::EndSelect
            | S::BlockEnd(_)
            | S::Other
            | S::Unknown => kind.clone(),
        }
    }
}
