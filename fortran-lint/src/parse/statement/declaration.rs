//! Declarations: types, attributes and the names that get them. Never looks at what is executed.

use super::Parser;
use crate::form::Form;
use crate::lex::TokenKind as T;
use crate::parse::cursor::{Cursor, Parsed};
use crate::parse::keyword;
use crate::parse::tree::*;

impl Parser<'_> {
    /// A statement that begins with a type; `base` is that of its keyword, where it is an intrinsic one.
    pub(super) fn typed(
        &mut self,
        c: &mut Cursor<'_>,
        keyword: &str,
        base: Option<BaseType>,
    ) -> Parsed<StatementKind> {
        let spec = match (keyword, base) {
            (_, Some(base)) => {
                let is_kind = |c: &Cursor<'_>| base == BaseType::Character || is_kind(c);
                let spec = self.e.intrinsic(c, base, is_kind)?;
                // CHARACTER*80, X
                if c.kind(0) == T::Comma && c.find_outside(0, |kind| kind == T::DoubleColon).is_none() {
                    c.bump();
                }
                spec
            }
            ("type", _) if c.kind(0) == T::Star => return self.io(c, "print"),
            ("type", _) if c.kind(0) != T::Open => return self.type_definition(c),
            ("type" | "class", _) => self.e.derived(c)?,
            ("record", _) => {
                c.expect(T::Slash)?;
                let name = self.name(c)?;
                c.expect(T::Slash)?;
                TypeSpec { base: BaseType::Derived(Some(name.symbol)), kind: Kind::Default }
            }
            _ => return Err(c.fail("another statement")),
        };
        // A prefix of a function: RECURSIVE may still follow.
        loop {
            let is_prefix = ["recursive", "pure", "elemental", "impure", "module", "simple", "non_recursive"]
                .into_iter()
                .find(|&word| c.at_word(word) && self.leads_to_function(c));
            match is_prefix {
                Some(word) => {
                    c.eat_word(word);
                }
                None => break,
            }
        }
        if c.at_word("function") && self.leads_to_function(c) {
            c.eat_word("function");
            return self.unit(c, UnitKind::Function, Some(spec));
        }
        self.declaration(c, spec, Attributes::NONE)
    }

    /// Whether a function header follows a type: `FUNCTION name (`, not an array of such a name.
    fn leads_to_function(&self, c: &Cursor<'_>) -> bool {
        match c.form {
            Form::Free => c.kind(1) == T::Word,
            Form::Fixed => {
                let word = c.word(0);
                let at = word.find("function").filter(|&at| word.len() > at + "function".len());
                let Some(at) = at else { return false };
                let is_first =
                    matches!(&word[..at], "" | "recursive" | "pure" | "elemental" | "impure" | "module");
                // Dummy arguments are names; bounds of an array mostly are not.
                is_first && (c.kind(1) == T::Open || c.kind(1) == T::Star) && !self.has_number_inside(c)
            }
        }
    }

    fn has_number_inside(&self, c: &Cursor<'_>) -> bool {
        let Some(behind) = c.matching(1) else { return false };
        (2..behind).any(|i| !matches!(c.kind(i), T::Word | T::Comma | T::Close | T::Star))
    }

    pub(super) fn declaration(
        &mut self,
        c: &mut Cursor<'_>,
        spec: TypeSpec,
        given: Attributes,
    ) -> Parsed<StatementKind> {
        let mut attributes = given;
        let mut shape = None;
        let has_double_colon = c.find_outside(0, |kind| kind == T::DoubleColon).is_some();
        if has_double_colon {
            while c.eat(T::Comma) {
                if c.kind(0) == T::DoubleColon {
                    break;
                }
                self.attribute(c, &mut attributes, &mut shape)?;
            }
            c.expect(T::DoubleColon)?;
        }
        let entities = self.entities(c)?;
        if entities.is_empty() {
            return Err(c.fail("a name"));
        }
        Ok(StatementKind::Declaration { spec, attributes, shape, entities })
    }

    /// One attribute between the commas of a declaration.
    fn attribute(
        &mut self,
        c: &mut Cursor<'_>,
        attributes: &mut Attributes,
        shape: &mut Option<List>,
    ) -> Parsed<()> {
        match keyword::take(c) {
            Some("dimension") => *shape = Some(self.e.arguments(c)?),
            Some("intent") => *attributes = attributes.with(self.intent(c)?),
            Some("codimension") => self.e.codimensions(c)?,
            Some(word) => {
                *attributes = attributes.with(attribute_named(word).unwrap_or(Attributes::OTHER));
                // BIND (C, NAME = …), PASS (x), RANK (n)
                self.optional_arguments(c)?;
            }
            // Attributes of accelerators and of standards to come, and macros.
            None => {
                let name = self.name(c)?;
                self.optional_arguments(c)?;
                let is_nopass = self.e.tree.symbols.name(name.symbol) == "nopass";
                *attributes = attributes.with(if is_nopass { Attributes::NOPASS } else { Attributes::OTHER });
            }
        }
        Ok(())
    }

    /// `(in)`, `(out)`, `(in out)`
    pub(super) fn intent(&mut self, c: &mut Cursor<'_>) -> Parsed<Attributes> {
        c.expect(T::Open)?;
        let (first, _) = c.name()?;
        let second = if c.kind(0) == T::Word { c.name()?.0 } else { "" };
        c.expect(T::Close)?;
        match (first, second) {
            ("in", "") => Ok(Attributes::INTENT_IN),
            ("out" | "inout", "") | ("in", "out") => Ok(Attributes::OTHER),
            _ => Err(c.fail("IN, OUT or INOUT")),
        }
    }

    /// Names with bounds, lengths and initial values.
    pub(super) fn entities(&mut self, c: &mut Cursor<'_>) -> Parsed<Vec<Entity>> {
        let mut entities = Vec::new();
        while !c.is_end() {
            entities.push(self.entity(c)?);
            if !c.eat(T::Comma) {
                break;
            }
        }
        Ok(entities)
    }

    pub(super) fn entity(&mut self, c: &mut Cursor<'_>) -> Parsed<Entity> {
        let name = self.name(c)?;
        let mut shape = None;
        let mut length = None;
        let mut is_initialised = false;
        let mut bound_to = None;
        loop {
            match c.kind(0) {
                T::Open if shape.is_none() => shape = Some(self.e.arguments(c)?),
                T::OpenBracket => self.e.codimensions(c)?,
                T::Star if length.is_none() => length = self.e.length(c)?,
                _ => break,
            }
        }
        match c.kind(0) {
            T::Equals | T::Arrow => {
                is_initialised = c.kind(0) == T::Equals;
                c.bump();
                let value = self.e.expr(c)?;
                if let (false, ExprKind::Name(symbol)) = (is_initialised, self.e.tree.expr(value).kind) {
                    bound_to = Some(symbol);
                }
            }
            T::Slash => {
                is_initialised = true;
                self.values(c)?;
            }
            _ => {}
        }
        Ok(Entity { name, shape, length, is_initialised, bound_to })
    }

    pub(super) fn attribute_statement(
        &mut self,
        c: &mut Cursor<'_>,
        attributes: Attributes,
    ) -> Parsed<StatementKind> {
        c.eat(T::DoubleColon);
        let entities = self.entities(c)?;
        if entities.is_empty() {
            return Err(c.fail("a name"));
        }
        Ok(StatementKind::Attribute { attributes, entities })
    }
}

/// Whether the parenthesis behind a numeric type holds a kind: what follows must begin a list of names.
fn is_kind(c: &Cursor<'_>) -> bool {
    match c.matching(0) {
        Some(behind) => matches!(c.kind(behind), T::Word | T::Comma | T::DoubleColon),
        None => false,
    }
}

/// The attribute that a word gives.
pub(super) fn attribute_named(word: &str) -> Option<Attributes> {
    Some(match word {
        "volatile" => Attributes::VOLATILE,
        "asynchronous" => Attributes::ASYNCHRONOUS,
        "target" => Attributes::TARGET,
        "pointer" => Attributes::POINTER,
        "allocatable" => Attributes::ALLOCATABLE,
        "save" | "static" => Attributes::SAVE,
        "contiguous" => Attributes::CONTIGUOUS,
        "parameter" => Attributes::PARAMETER,
        "external" => Attributes::EXTERNAL,
        "intrinsic" => Attributes::INTRINSIC,
        "value" => Attributes::VALUE,
        "optional" => Attributes::OPTIONAL,
        "dimension" | "codimension" | "automatic" => Attributes::NONE,
        _ => return None,
    })
}
