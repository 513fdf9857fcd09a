//! Input, output and allocation. Never interprets a format.

use super::Parser;
use crate::lex::TokenKind as T;
use crate::parse::cursor::{Cursor, Parsed};
use crate::parse::tree::*;

impl Parser<'_> {
    pub(super) fn io(&mut self, c: &mut Cursor<'_>, keyword: &str) -> Parsed<StatementKind> {
        let kind = match keyword {
            "read" | "decode" | "accept" => IoKind::Read,
            "write" | "print" | "encode" => IoKind::Write,
            _ => IoKind::Control,
        };
        let control;
        let has_control = c.kind(0) == T::Open && !matches!(keyword, "print" | "accept");
        let is_format_only = has_control && keyword == "read" && {
            // READ (fmt), x and READ (5, fmt) x differ by the comma.
            let behind = c.matching(0).ok_or_else(|| c.fail("a closing parenthesis"))?;
            c.kind(behind) == T::Comma
        };
        if has_control && !is_format_only {
            control = self.e.arguments(c)?;
            c.eat(T::Comma);
        } else {
            // PRINT fmt, READ fmt, REWIND unit.
            let span = c.span();
            let format = match c.eat(T::Star) {
                true => self.e.tree.add(ExprKind::Star, span),
                false if c.is_end() => self.e.missing(span),
                false => self.e.expr(c)?,
            };
            control = self.e.tree.add_list(&[format]);
            if !c.is_end() {
                c.expect(T::Comma)?;
            }
        }
        let mut items = Vec::new();
        while !c.is_end() {
            items.push(self.e.expr(c)?);
            if !c.eat(T::Comma) {
                break;
            }
        }
        let items = self.e.tree.add_list(&items);
        Ok(StatementKind::Io { kind, control, items })
    }

    /// ALLOCATE (type :: a(n), stat = i): the type is passed over.
    pub(super) fn allocation(&mut self, c: &mut Cursor<'_>) -> Parsed<List> {
        c.expect(T::Open)?;
        self.e.type_before_colons(c)?;
        let mut items = Vec::new();
        while c.kind(0) != T::Close {
            items.push(self.e.argument(c)?);
            if !c.eat(T::Comma) {
                break;
            }
        }
        c.expect(T::Close)?;
        Ok(self.e.tree.add_list(&items))
    }
}
