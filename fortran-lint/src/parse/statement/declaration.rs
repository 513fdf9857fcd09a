//! Declarations: types, attributes, COMMON, EQUIVALENCE, DATA. Never looks at what is executed.

use super::Parser;
use crate::form::Form;
use crate::lex::TokenKind as T;
use crate::parse::cursor::{Cursor, NotUnderstood, Parsed};
use crate::parse::keyword;
use crate::parse::tree::*;

impl Parser<'_> {
    pub(super) fn typed(&mut self, c: &mut Cursor<'_>, keyword: &str) -> Parsed<StatementKind> {
        let mut spec = TypeSpec::Numeric;
        match keyword {
            "integer" | "real" | "complex" | "logical" | "doubleprecision" | "doublecomplex" | "byte" => {
                self.length(c)?;
                if c.kind(0) == T::Open && self.is_kind(c) {
                    self.e_skip_parenthesis(c)?;
                }
            }
            "character" => {
                spec = TypeSpec::Character;
                self.length(c)?;
                if c.kind(0) == T::Open {
                    self.e_skip_parenthesis(c)?;
                }
                // CHARACTER*80, X
                if c.kind(0) == T::Comma && c.find_outside(0, |kind| kind == T::DoubleColon).is_none() {
                    c.bump();
                }
            }
            "type" | "class" => {
                if c.kind(0) != T::Open {
                    // TYPE name, TYPE :: name, TYPE, attributes :: name.
                    if keyword == "class" {
                        return Err(NotUnderstood);
                    }
                    if c.kind(0) == T::Star {
                        // TYPE *, x prints.
                        return self.io(c, "print");
                    }
                    c.skip_to_end();
                    return Ok(StatementKind::TypeDefinition);
                }
                let name = match c.kind(1) {
                    T::Word => Some(self.e.tree.symbols.intern(c.word(1))),
                    _ => None,
                };
                spec = TypeSpec::Derived(name);
                self.e_skip_parenthesis(c)?;
            }
            "record" => {
                spec = TypeSpec::Derived(None);
                c.expect(T::Slash)?;
                self.name(c)?;
                c.expect(T::Slash)?;
            }
            _ => return Err(NotUnderstood),
        }
        // A prefix of a function: RECURSIVE may still follow.
        loop {
            let is_prefix = ["recursive", "pure", "elemental", "impure", "module"]
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

    /// `*8`, `*(*)`, `*(n)` behind a type.
    fn length(&mut self, c: &mut Cursor<'_>) -> Parsed<()> {
        if !c.eat(T::Star) {
            return Ok(());
        }
        match c.kind(0) {
            T::Open => self.e_skip_parenthesis(c),
            // A macro may stand for the number.
            T::Word => self.name(c).map(|_| ()),
            _ => c.eat_digits().map(|_| ()).ok_or(NotUnderstood),
        }
    }

    /// Whether the parenthesis behind a numeric type holds a kind: what follows must begin a list of names.
    fn is_kind(&self, c: &Cursor<'_>) -> bool {
        match c.matching(0) {
            Some(behind) => matches!(c.kind(behind), T::Word | T::Comma | T::DoubleColon),
            None => false,
        }
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
                let attribute = keyword::take(c);
                match attribute {
                    Some("dimension") => shape = Some(self.e.arguments(c)?),
                    Some("intent") => attributes = attributes.with(self.intent(c)?),
                    Some(word) => {
                        attributes = attributes.with(attribute_named(word).unwrap_or(Attributes::OTHER));
                        if matches!(c.kind(0), T::Open | T::OpenBracket) {
                            self.e_skip_group(c)?;
                        }
                    }
                    // Attributes of accelerators and of standards to come.
                    None => {
                        self.name(c)?;
                        if matches!(c.kind(0), T::Open | T::OpenBracket) {
                            self.e_skip_group(c)?;
                        }
                    }
                }
            }
            c.expect(T::DoubleColon)?;
        }
        let entities = self.entities(c)?;
        Ok(StatementKind::Declaration { spec, attributes, shape, entities })
    }

    fn e_skip_group(&mut self, c: &mut Cursor<'_>) -> Parsed<()> {
        let behind = c.matching(0).ok_or(NotUnderstood)?;
        for _ in 0..behind {
            c.bump();
        }
        Ok(())
    }

    pub(super) fn intent(&mut self, c: &mut Cursor<'_>) -> Parsed<Attributes> {
        let is_in = c.kind(0) == T::Open && c.word(1) == "in" && c.kind(2) == T::Close;
        self.e_skip_parenthesis(c)?;
        Ok(if is_in { Attributes::INTENT_IN } else { Attributes::OTHER })
    }

    /// Names with bounds, lengths and initial values.
    fn entities(&mut self, c: &mut Cursor<'_>) -> Parsed<Vec<Entity>> {
        let mut entities = Vec::new();
        while !c.is_end() {
            entities.push(self.entity(c)?);
            if !c.eat(T::Comma) {
                break;
            }
        }
        Ok(entities)
    }

    fn entity(&mut self, c: &mut Cursor<'_>) -> Parsed<Entity> {
        let name = self.name(c)?;
        let mut shape = None;
        let mut is_initialised = false;
        loop {
            match c.kind(0) {
                T::Open if shape.is_none() => shape = Some(self.e.arguments(c)?),
                T::OpenBracket => self.e_skip_group(c)?,
                T::Star => self.length(c)?,
                _ => break,
            }
        }
        match c.kind(0) {
            T::Equals | T::Arrow => {
                is_initialised = c.kind(0) == T::Equals;
                c.bump();
                self.e.expr(c)?;
            }
            T::Slash => {
                is_initialised = true;
                c.bump();
                while !matches!(c.kind(0), T::Slash | T::End) {
                    c.bump();
                }
                c.expect(T::Slash)?;
            }
            _ => {}
        }
        Ok(Entity { name, shape, is_initialised })
    }

    pub(super) fn attribute_statement(
        &mut self,
        c: &mut Cursor<'_>,
        attributes: Attributes,
    ) -> Parsed<StatementKind> {
        c.eat(T::DoubleColon);
        let entities = self.entities(c)?;
        Ok(StatementKind::Attribute { attributes, entities })
    }

    pub(super) fn save(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        c.eat(T::DoubleColon);
        let mut entities = Vec::new();
        let is_bare = c.is_end();
        while !c.is_end() {
            if c.eat(T::Slash) {
                self.name(c)?;
                c.expect(T::Slash)?;
            } else {
                entities.push(self.entity(c)?);
            }
            c.eat(T::Comma);
        }
        if !is_bare && entities.is_empty() {
            // Only COMMON blocks were named.
            return Ok(StatementKind::Other);
        }
        Ok(StatementKind::Attribute { attributes: Attributes::SAVE, entities })
    }

    pub(super) fn common(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        let mut blocks = Vec::new();
        while !c.is_end() {
            let mut name = None;
            if c.eat(T::Slash) {
                if c.kind(0) == T::Word {
                    name = Some(self.name(c)?.symbol);
                }
                c.expect(T::Slash)?;
            } else {
                c.eat(T::Concat);
            }
            let mut members = Vec::new();
            while c.kind(0) == T::Word {
                members.push(self.entity_in_common(c)?);
                if !c.eat(T::Comma) {
                    break;
                }
            }
            if members.is_empty() {
                return Err(NotUnderstood);
            }
            blocks.push(CommonBlock { name, members });
        }
        Ok(StatementKind::Common(blocks))
    }

    /// As [`Parser::entity`], but a slash begins the next block.
    fn entity_in_common(&mut self, c: &mut Cursor<'_>) -> Parsed<Entity> {
        let name = self.name(c)?;
        let shape = match c.kind(0) {
            T::Open => Some(self.e.arguments(c)?),
            _ => None,
        };
        Ok(Entity { name, shape, is_initialised: false })
    }

    pub(super) fn equivalence(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        let mut sets = Vec::new();
        loop {
            sets.push(self.e.arguments(c)?);
            if !c.eat(T::Comma) {
                break;
            }
        }
        Ok(StatementKind::Equivalence(sets))
    }

    pub(super) fn data(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        let mut names = Vec::new();
        while !c.is_end() {
            // Names up to the slash, also inside implied loops, where the loop variable does no harm.
            while c.kind(0) != T::Slash {
                if c.is_end() {
                    return Err(NotUnderstood);
                }
                if c.kind(0) == T::Word {
                    names.push(self.e.tree.symbols.intern(c.word(0)));
                }
                c.bump();
            }
            c.bump();
            while c.kind(0) != T::Slash {
                if c.is_end() {
                    return Err(NotUnderstood);
                }
                c.bump();
            }
            c.bump();
            c.eat(T::Comma);
        }
        Ok(StatementKind::Data(names))
    }

    pub(super) fn parameter(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        let mut entities = Vec::new();
        let is_parenthesised = c.eat(T::Open);
        loop {
            let name = self.name(c)?;
            c.expect(T::Equals)?;
            self.e.expr(c)?;
            entities.push(Entity { name, shape: None, is_initialised: false });
            if !c.eat(T::Comma) {
                break;
            }
        }
        if is_parenthesised {
            c.expect(T::Close)?;
        }
        Ok(StatementKind::Attribute { attributes: Attributes::PARAMETER, entities })
    }

    pub(super) fn cray_pointer(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        let mut pairs = Vec::new();
        loop {
            c.expect(T::Open)?;
            let pointer = self.name(c)?;
            c.expect(T::Comma)?;
            let pointee = self.entity(c)?;
            c.expect(T::Close)?;
            pairs.push((pointer, pointee));
            if !c.eat(T::Comma) {
                break;
            }
        }
        Ok(StatementKind::CrayPointer(pairs))
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
