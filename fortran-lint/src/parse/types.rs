//! Types as declarations and constructors name them. Never knows which derived types exist.

use super::cursor::{Cursor, Parsed};
use super::expr::Expressions;
use super::tree::{BaseType, ExprKind, Kind, TypeSpec};
use crate::form::Form;
use crate::lex::TokenKind as T;

impl Expressions<'_> {
    /// The rest of an intrinsic type behind its keyword: `*8`, `(8)`, `(kind=8)`, `*(*)`, `(len=*)`.
    ///
    /// `is_kind` says whether a parenthesis at hand belongs to the type.
    pub(super) fn intrinsic(
        &mut self,
        c: &mut Cursor<'_>,
        base: BaseType,
        is_kind: impl Fn(&Cursor<'_>) -> bool,
    ) -> Parsed<TypeSpec> {
        let mut kind = self.length(c)?.unwrap_or(Kind::Default);
        if c.kind(0) == T::Open && is_kind(c) {
            kind = self.selector(c, base)?;
        }
        Ok(TypeSpec { base, kind })
    }

    /// `*8`, `*(*)`, `*(n)`; `None` where no star stands.
    pub(super) fn length(&mut self, c: &mut Cursor<'_>) -> Parsed<Option<Kind>> {
        if !c.eat(T::Star) {
            return Ok(None);
        }
        Ok(Some(match c.kind(0) {
            T::Open => {
                let args = self.arguments(c)?;
                match self.tree.list(args) {
                    [one] => Kind::Value(*one),
                    _ => return Err(c.fail("one length")),
                }
            }
            // A macro may stand for the number.
            T::Word => Kind::Value(self.name_alone(c)?),
            _ => Kind::Bytes(c.eat_digits().ok_or_else(|| c.fail("a length"))?),
        }))
    }

    fn name_alone(&mut self, c: &mut Cursor<'_>) -> Parsed<super::tree::ExprId> {
        let (name, span) = c.name()?;
        let symbol = self.intern(name);
        Ok(self.tree.add(ExprKind::Name(symbol), span))
    }

    /// `(8)`, `(kind=k)`, `(len=*, kind=k)`: of characters the length counts, of other types the kind.
    fn selector(&mut self, c: &mut Cursor<'_>, base: BaseType) -> Parsed<Kind> {
        let args = self.arguments(c)?;
        let wanted = if base == BaseType::Character { "len" } else { "kind" };
        let items = self.tree.list(args);
        let by_name = items.iter().find_map(|&id| match self.tree.expr(id).kind {
            ExprKind::Keyword { name, value } if self.tree.symbols.name(name) == wanted => Some(value),
            _ => None,
        });
        let by_place =
            items.first().copied().filter(|&id| !matches!(self.tree.expr(id).kind, ExprKind::Keyword { .. }));
        if items.is_empty() || items.len() > 2 {
            return Err(c.fail("a kind"));
        }
        Ok(by_name.or(by_place).map_or(Kind::Default, Kind::Value))
    }

    /// A type in a place where nothing else can stand: before `::`, in TYPE IS, in IMPLICIT.
    pub(super) fn type_spec(
        &mut self,
        c: &mut Cursor<'_>,
        is_kind: impl Fn(&Cursor<'_>) -> bool,
    ) -> Parsed<TypeSpec> {
        for (word, base) in INTRINSIC {
            let is_whole = c.form == Form::Free || c.word(0).len() == word.len();
            if c.at_word(word) && is_whole {
                c.eat_word(word);
                return self.intrinsic(c, *base, is_kind);
            }
        }
        if c.at_word("double") && matches!(c.word(1), "precision" | "complex") {
            let is_real = c.word(1) == "precision";
            c.bump();
            c.bump();
            let base = if is_real { BaseType::DoublePrecision } else { BaseType::DoubleComplex };
            return Ok(TypeSpec { base, kind: Kind::Default });
        }
        if matches!(c.word(0), "type" | "class") && c.kind(1) == T::Open {
            c.bump();
            return self.derived(c);
        }
        let (name, _) = c.name()?;
        let symbol = self.intern(name);
        if c.kind(0) == T::Open && is_kind(c) {
            self.arguments(c)?;
        }
        Ok(TypeSpec { base: BaseType::Derived(Some(symbol)), kind: Kind::Default })
    }

    /// `(name)`, `(name(parameters))`, `(*)` or, as some compilers take it, `(integer)` behind TYPE or CLASS.
    pub(super) fn derived(&mut self, c: &mut Cursor<'_>) -> Parsed<TypeSpec> {
        c.expect(T::Open)?;
        if c.eat(T::Star) {
            c.expect(T::Close)?;
            return Ok(TypeSpec { base: BaseType::Derived(None), kind: Kind::Default });
        }
        let spec = self.type_spec(c, |_| true)?;
        c.expect(T::Close)?;
        Ok(spec)
    }

    /// `type ::` at the start of a list.
    pub(super) fn type_before_colons(&mut self, c: &mut Cursor<'_>) -> Parsed<()> {
        if c.kind(0) != T::Word {
            return Ok(());
        }
        let ends = |kind| matches!(kind, T::DoubleColon | T::Comma | T::Close | T::CloseBracket | T::End);
        if c.find_outside(0, ends).is_some_and(|at| c.kind(at) == T::DoubleColon) {
            self.type_spec(c, |_| true)?;
            c.expect(T::DoubleColon)?;
        }
        Ok(())
    }
}

/// Keywords of the intrinsic types, glued where they are two.
const INTRINSIC: &[(&str, BaseType)] = &[
    ("integer", BaseType::Integer),
    ("real", BaseType::Real),
    ("doubleprecision", BaseType::DoublePrecision),
    ("doublecomplex", BaseType::DoubleComplex),
    ("complex", BaseType::Complex),
    ("logical", BaseType::Logical),
    ("character", BaseType::Character),
    ("byte", BaseType::Byte),
];

/// The intrinsic type of a keyword.
pub(super) fn intrinsic_named(keyword: &str) -> Option<BaseType> {
    INTRINSIC.iter().find(|(word, _)| *word == keyword).map(|(_, base)| *base)
}
