//! COMMON, EQUIVALENCE, DATA, IMPLICIT and the other specifications without a type. Never looks at what is executed.

use super::Parser;
use crate::lex::TokenKind as T;
use crate::parse::cursor::{Cursor, Parsed};
use crate::parse::tree::*;

impl Parser<'_> {
    pub(super) fn specification(&mut self, c: &mut Cursor<'_>, keyword: &str) -> Parsed<StatementKind> {
        use StatementKind as S;
        Ok(match keyword {
            "implicit" => self.implicit(c)?,
            "namelist" => self.namelist(c)?,
            "procedure" => self.procedures(c)?,
            "enum" => {
                c.expect(T::Comma)?;
                if !c.eat_word("bind") {
                    return Err(c.fail("BIND"));
                }
                self.e.arguments(c)?;
                // Fortran 2023 names the type.
                if c.eat(T::DoubleColon) {
                    self.name(c)?;
                }
                S::Other
            }
            "enumerator" => {
                c.eat(T::DoubleColon);
                let entities = self.entities(c)?;
                let spec = TypeSpec { base: BaseType::Integer, kind: Kind::Default };
                S::Declaration { spec, attributes: Attributes::PARAMETER, shape: None, entities }
            }
            "bind" => {
                self.e.arguments(c)?;
                c.eat(T::DoubleColon);
                self.objects(c)?;
                S::Other
            }
            "import" => {
                if c.eat(T::Comma) {
                    // ONLY: names, NONE, ALL
                    self.name(c)?;
                    c.eat(T::Colon);
                }
                c.eat(T::DoubleColon);
                if !c.is_end() {
                    self.names(c)?;
                }
                S::Other
            }
            "generic" => {
                if c.eat(T::Comma) {
                    self.name(c)?;
                }
                c.expect(T::DoubleColon)?;
                let generic = self.generic_spec(c)?;
                c.expect(T::Arrow)?;
                S::Specific { generic, procedures: self.names(c)? }
            }
            "final" => {
                c.eat(T::DoubleColon);
                self.names(c)?;
                S::Other
            }
            "define" => {
                if !c.eat_word("file") {
                    return Err(c.fail("FILE"));
                }
                loop {
                    // A unit, which may be a number, and its records.
                    self.e.operand(c)?;
                    self.optional_arguments(c)?;
                    if !c.eat(T::Comma) {
                        break;
                    }
                }
                S::Other
            }
            "options" => {
                while c.eat(T::Slash) {
                    self.name(c)?;
                    if c.eat(T::Equals) {
                        self.e.operand(c)?;
                    }
                }
                S::Other
            }
            _ => {
                // PRIVATE, PUBLIC, PROTECTED
                c.eat(T::DoubleColon);
                while !c.is_end() {
                    self.generic_spec(c)?;
                    if !c.eat(T::Comma) {
                        break;
                    }
                }
                S::Other
            }
        })
    }

    /// Names and COMMON blocks.
    fn objects(&mut self, c: &mut Cursor<'_>) -> Parsed<()> {
        loop {
            let is_block = c.eat(T::Slash);
            self.name(c)?;
            if is_block {
                c.expect(T::Slash)?;
            }
            if !c.eat(T::Comma) {
                return Ok(());
            }
        }
    }

    /// PROCEDURE (interface), attributes :: names; in a type also PROCEDURE, attributes :: name => name.
    fn procedures(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        if c.kind(0) == T::Open {
            c.expect(T::Open)?;
            if c.kind(0) != T::Close {
                self.e.type_spec(c, |_| true)?;
            }
            c.expect(T::Close)?;
        }
        let spec = TypeSpec { base: BaseType::Procedure, kind: Kind::Default };
        self.declaration(c, spec, Attributes::EXTERNAL)
    }

    fn implicit(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        if c.eat_word("none") {
            // IMPLICIT NONE (TYPE, EXTERNAL)
            let kinds = self.optional_arguments(c)?;
            let kinds = self.e.tree.list(kinds);
            let is_type = |id: &ExprId| match self.e.tree.expr(*id).kind {
                ExprKind::Name(symbol) => self.e.tree.symbols.name(symbol) == "type",
                _ => false,
            };
            let is_none = kinds.is_empty() || kinds.iter().any(is_type);
            return Ok(StatementKind::Implicit { is_none, rules: Vec::new() });
        }
        if c.eat_word("undefined") {
            let ranges = self.letters(c)?;
            let is_none = ranges.contains(&(b'a', b'z'));
            return Ok(StatementKind::Implicit { is_none, rules: Vec::new() });
        }
        let mut rules = Vec::new();
        loop {
            // A parenthesis belongs to the type when another one, with the letters, follows.
            let is_kind = |c: &Cursor<'_>| c.matching(0).is_some_and(|behind| c.kind(behind) == T::Open);
            let spec = self.e.type_spec(c, is_kind)?;
            let ranges = self.letters(c)?;
            rules.extend(ranges.into_iter().map(|(first, last)| ImplicitRule { first, last, spec }));
            if !c.eat(T::Comma) {
                return Ok(StatementKind::Implicit { is_none: false, rules });
            }
        }
    }

    /// `(a-h, o, x-z)`
    fn letters(&mut self, c: &mut Cursor<'_>) -> Parsed<Vec<(u8, u8)>> {
        let letter = |c: &mut Cursor<'_>| match c.word(0).as_bytes() {
            [letter] => {
                c.bump();
                Ok(*letter)
            }
            _ => Err(c.fail("a letter")),
        };
        c.expect(T::Open)?;
        let mut ranges = Vec::new();
        loop {
            let first = letter(c)?;
            let last = if c.eat(T::Minus) { letter(c)? } else { first };
            ranges.push((first, last));
            if !c.eat(T::Comma) {
                c.expect(T::Close)?;
                return Ok(ranges);
            }
        }
    }

    fn namelist(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        let mut groups = Vec::new();
        loop {
            c.expect(T::Slash)?;
            let group = self.name(c)?;
            c.expect(T::Slash)?;
            let mut members = vec![self.name(c)?];
            while c.eat(T::Comma) && c.kind(0) == T::Word {
                members.push(self.name(c)?);
            }
            groups.push((group, members));
            if c.is_end() {
                return Ok(StatementKind::Namelist(groups));
            }
        }
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
        loop {
            let mut name = None;
            if c.eat(T::Slash) {
                if c.kind(0) == T::Word {
                    name = Some(self.name(c)?.symbol);
                }
                c.expect(T::Slash)?;
            } else {
                c.eat(T::Concat);
            }
            let mut members = vec![self.entity_in_common(c)?];
            while c.eat(T::Comma) && c.kind(0) == T::Word {
                members.push(self.entity_in_common(c)?);
            }
            blocks.push(CommonBlock { name, members });
            if c.is_end() {
                return Ok(StatementKind::Common(blocks));
            }
        }
    }

    /// As [`Parser::entity`], but a slash begins the next block.
    fn entity_in_common(&mut self, c: &mut Cursor<'_>) -> Parsed<Entity> {
        let name = self.name(c)?;
        let shape = match c.kind(0) {
            T::Open => Some(self.e.arguments(c)?),
            _ => None,
        };
        Ok(Entity { name, shape, length: None, is_initialised: false, bound_to: None })
    }

    pub(super) fn equivalence(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        let mut sets = Vec::new();
        loop {
            sets.push(self.e.arguments(c)?);
            if !c.eat(T::Comma) {
                return Ok(StatementKind::Equivalence(sets));
            }
        }
    }

    pub(super) fn data(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        let mut names = Vec::new();
        loop {
            loop {
                let object = match c.kind(0) {
                    T::Open => self.e.operand(c)?,
                    _ => self.e.designator(c)?,
                };
                self.roots(object, &mut names);
                if !c.eat(T::Comma) {
                    break;
                }
            }
            self.values(c)?;
            c.eat(T::Comma);
            if c.is_end() {
                return Ok(StatementKind::Data(names));
            }
        }
    }

    /// The variables of a DATA object, also inside implied loops.
    fn roots(&self, object: ExprId, names: &mut Vec<Symbol>) {
        match self.e.tree.expr(object).kind {
            ExprKind::ImpliedDo { items, .. } => {
                for &item in self.e.tree.list(items) {
                    self.roots(item, names);
                }
            }
            _ => names.extend(self.e.tree.root(object)),
        }
    }

    /// `/1, 3*0.0, -5, 'text'/`
    pub(super) fn values(&mut self, c: &mut Cursor<'_>) -> Parsed<()> {
        c.expect(T::Slash)?;
        loop {
            self.value(c)?;
            if c.eat(T::Star) {
                self.value(c)?;
            }
            if !c.eat(T::Comma) {
                return c.expect(T::Slash);
            }
        }
    }

    fn value(&mut self, c: &mut Cursor<'_>) -> Parsed<()> {
        if !c.eat(T::Minus) {
            c.eat(T::Plus);
        }
        self.e.operand(c)?;
        // `1. _d -6`: a macro stands for the letter of an exponent.
        if matches!(c.kind(0), T::Minus | T::Plus) && c.kind(1) == T::Int {
            c.bump();
            c.bump();
        }
        Ok(())
    }

    pub(super) fn parameter(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        let mut entities = Vec::new();
        let is_parenthesised = c.eat(T::Open);
        loop {
            let name = self.name(c)?;
            c.expect(T::Equals)?;
            self.e.expr(c)?;
            entities.push(Entity { name, shape: None, length: None, is_initialised: false, bound_to: None });
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
                return Ok(StatementKind::CrayPointer(pairs));
            }
        }
    }
}
