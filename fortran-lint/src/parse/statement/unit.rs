//! Headers of program units, procedures, interfaces and types, USE and INCLUDE. Never nests them.

use super::Parser;
use crate::form::Form;
use crate::lex::TokenKind as T;
use crate::parse::cursor::{Cursor, Parsed};
use crate::parse::keyword;
use crate::parse::tree::*;
use crate::source::Inclusion;

impl Parser<'_> {
    pub(super) fn unit(
        &mut self,
        c: &mut Cursor<'_>,
        kind: UnitKind,
        prefix: Option<TypeSpec>,
    ) -> Parsed<StatementKind> {
        let name = self.name(c)?;
        let mut prefix = prefix;
        // REAL FUNCTION F*8(X) of very old codes.
        if kind == UnitKind::Function
            && let Some(length) = self.e.length(c)?
            && let Some(spec) = &mut prefix
        {
            spec.kind = length;
        }
        let dummies = self.dummies(c)?;
        let result = self.suffix(c)?;
        Ok(StatementKind::Unit { kind, name: Some(name), dummies, result, prefix })
    }

    /// PROGRAM name, and the files that old compilers wanted to know.
    pub(super) fn program(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        let name = self.name(c)?;
        self.optional_arguments(c)?;
        let kind = UnitKind::Program;
        Ok(StatementKind::Unit { kind, name: Some(name), dummies: Vec::new(), result: None, prefix: None })
    }

    pub(super) fn dummies(&mut self, c: &mut Cursor<'_>) -> Parsed<Vec<Name>> {
        let mut names = Vec::new();
        if !c.eat(T::Open) {
            return Ok(names);
        }
        while c.kind(0) != T::Close {
            // `*` and `&` stand for alternate returns.
            if !c.eat(T::Star) && !c.eat(T::Ampersand) {
                names.push(self.name(c)?);
            }
            if !c.eat(T::Comma) {
                break;
            }
        }
        c.expect(T::Close)?;
        Ok(names)
    }

    /// RESULT (name) and BIND (C, NAME = 'name') behind a procedure header, in either order.
    pub(super) fn suffix(&mut self, c: &mut Cursor<'_>) -> Parsed<Option<Name>> {
        let mut result = None;
        while c.kind(0) == T::Word {
            if c.eat_word("result") {
                c.expect(T::Open)?;
                result = Some(self.name(c)?);
                c.expect(T::Close)?;
            } else if c.eat_word("bind") {
                self.e.arguments(c)?;
            } else {
                return Err(c.fail("RESULT or BIND"));
            }
        }
        Ok(result)
    }

    pub(super) fn module(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        // MODULE SUBROUTINE and MODULE FUNCTION are prefixes, perhaps with others between; a module may be called
        // that, too.
        let is_prefix = match c.form {
            Form::Free => c.kind(1) != T::End,
            Form::Fixed => c.kind(1) != T::End && (c.at_word("subroutine") || c.at_word("function")),
        };
        if is_prefix {
            let next = keyword::take(c).ok_or_else(|| c.fail("a procedure"))?;
            return self.keyword(c, next, None);
        }
        self.unit(c, UnitKind::Module, None)
    }

    /// `MODULE PROCEDURE name` is the header of a procedure in a submodule; with `::` or several names it lists those
    /// of an interface. One name in an interface is told apart by what stands around it.
    pub(super) fn module_procedure(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        let is_list = c.eat(T::DoubleColon);
        let names = self.names(c)?;
        Ok(match names.as_slice() {
            [name] if !is_list => StatementKind::Unit {
                kind: UnitKind::ModuleProcedure,
                name: Some(*name),
                dummies: Vec::new(),
                result: None,
                prefix: None,
            },
            _ => StatementKind::Specific { generic: None, procedures: names },
        })
    }

    /// SUBMODULE (ancestor:parent) name
    pub(super) fn submodule(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        c.expect(T::Open)?;
        self.name(c)?;
        if c.eat(T::Colon) {
            self.name(c)?;
        }
        c.expect(T::Close)?;
        self.unit(c, UnitKind::Submodule, None)
    }

    /// A name, OPERATOR (+), ASSIGNMENT (=), READ (FORMATTED) and their kin; only a name is returned.
    pub(super) fn generic_spec(&mut self, c: &mut Cursor<'_>) -> Parsed<Option<Name>> {
        let is_special = ["operator", "assignment", "read", "write"].contains(&c.word(0));
        let name = self.name(c)?;
        if !is_special || !c.eat(T::Open) {
            return Ok(Some(name));
        }
        // `(/)` and `(//)` look like the marks of an array.
        while !matches!(c.kind(0), T::Close | T::End) {
            c.bump();
        }
        c.expect(T::Close)?;
        Ok(None)
    }

    pub(super) fn use_statement(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        if c.eat(T::Comma) {
            // INTRINSIC or NON_INTRINSIC.
            self.name(c)?;
        }
        c.eat(T::DoubleColon);
        let module = self.name(c)?;
        let mut has_only = false;
        let mut names = Vec::new();
        if c.eat(T::Comma) {
            if c.at_word("only") && c.kind(1) == T::Colon {
                c.eat_word("only");
                c.expect(T::Colon)?;
                has_only = true;
            }
            while !c.is_end() {
                let local = self.generic_spec(c)?;
                let original = if c.eat(T::Arrow) { self.generic_spec(c)? } else { local };
                if let (Some(local), Some(original)) = (local, original) {
                    names.push((local.symbol, original.symbol));
                }
                if !c.eat(T::Comma) {
                    break;
                }
            }
        }
        Ok(StatementKind::Use { module, has_only, names })
    }

    pub(super) fn include(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        let token = c.token(0).filter(|token| token.kind == T::Text).ok_or_else(|| c.fail("a file name"))?;
        let text = c.text_of(token);
        let name = text[1..text.len() - 1].to_string();
        c.bump();
        // The file parser knows whether it was read.
        Ok(StatementKind::Include { name, inclusion: Inclusion::Missing })
    }

    /// TYPE name, TYPE :: name(parameters), TYPE, attributes :: name
    pub(super) fn type_definition(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        while c.eat(T::Comma) {
            let attribute = self.name(c)?;
            if matches!(self.e.tree.symbols.name(attribute.symbol), "extends" | "bind") {
                self.e.arguments(c)?;
            }
        }
        c.eat(T::DoubleColon);
        let name = self.name(c)?;
        if c.kind(0) == T::Open {
            self.dummies(c)?;
        }
        Ok(StatementKind::TypeDefinition(Some(name)))
    }

    /// STRUCTURE /name/ fields
    pub(super) fn structure(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        let mut name = None;
        if c.eat(T::Slash) {
            name = Some(self.name(c)?);
            c.expect(T::Slash)?;
        }
        self.entities(c)?;
        Ok(StatementKind::TypeDefinition(name))
    }
}
