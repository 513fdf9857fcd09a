//! Expressions. Never tells an array from a function, and never weighs operators.

use rma_source::Span;

use super::cursor::{Cursor, Parsed};
use super::tree::{ExprId, ExprKind, List, Literal, Symbol, Tree};
use crate::lex::TokenKind as T;

/// Deepest nesting of parentheses that is followed; a deeper statement counts as not understood.
const DEPTH_MAX: usize = 100;

/// Builds the expressions of one statement.
pub(super) struct Expressions<'t> {
    pub(super) tree: &'t mut Tree,
    depth: usize,
}

impl<'t> Expressions<'t> {
    pub(super) fn new(tree: &'t mut Tree) -> Expressions<'t> {
        Expressions { tree, depth: 0 }
    }

    fn nested<R>(
        &mut self,
        c: &mut Cursor<'_>,
        inner: impl FnOnce(&mut Self, &mut Cursor<'_>) -> Parsed<R>,
    ) -> Parsed<R> {
        if self.depth >= DEPTH_MAX {
            return Err(c.fail("less nesting"));
        }
        self.depth += 1;
        let result = inner(self, c);
        self.depth -= 1;
        result
    }

    pub(super) fn intern(&mut self, text: &str) -> Symbol {
        self.tree.symbols.intern(text)
    }

    /// An expression.
    pub(super) fn expr(&mut self, c: &mut Cursor<'_>) -> Parsed<ExprId> {
        let start = c.span();
        let mut operators = String::new();
        let mut operands: Vec<ExprId> = Vec::new();
        loop {
            while let Some(text) = prefix_operator(c) {
                operators.push_str(text);
                c.bump();
            }
            let operand = self.operand(c)?;
            operands.push(operand);
            match infix_operator(c) {
                Some(text) => {
                    operators.push_str(text);
                    c.bump();
                }
                None => break,
            }
        }
        if operators.is_empty() {
            return Ok(operands[0]);
        }
        let operators = self.intern(&operators);
        let operands = self.tree.add_list(&operands);
        Ok(self.tree.add(ExprKind::Operation { operators, operands }, start.to(c.last_span())))
    }

    /// A literal, a variable, a function reference, or what stands in parentheses.
    pub(super) fn operand(&mut self, c: &mut Cursor<'_>) -> Parsed<ExprId> {
        let start = c.span();
        let token = c.token(0).ok_or_else(|| c.fail("an expression"))?;
        match token.kind {
            T::Word => {
                // A kind before a literal (c_'x'), and the letters of b'01'.
                if c.kind(1) == T::Text && c.token(1).is_some_and(|next| next.start == token.end) {
                    c.bump();
                    c.bump();
                    return Ok(self.tree.add(ExprKind::Literal(Literal::Text), start.to(c.last_span())));
                }
                self.designator(c)
            }
            T::Int => {
                let text = c.text_of(token);
                let digits = text.bytes().take_while(u8::is_ascii_digit).count();
                let value = text[..digits].parse().unwrap_or(u64::MAX);
                c.bump();
                Ok(self.tree.add(ExprKind::Literal(Literal::Int(value)), start))
            }
            T::Real => {
                c.bump();
                Ok(self.tree.add(ExprKind::Literal(Literal::Real), start))
            }
            T::Text => {
                c.bump();
                // '01'x of DEC Fortran.
                if matches!(c.word(0), "x" | "o" | "b" | "z")
                    && c.token(0).is_some_and(|next| next.start == token.end)
                {
                    c.bump();
                }
                let id = self.tree.add(ExprKind::Literal(Literal::Text), start.to(c.last_span()));
                // A substring of a literal, or parts of a joined one.
                self.trailers(c, id)
            }
            T::DotWord => {
                let literal = match c.text_of(token) {
                    ".true." => Literal::True,
                    ".false." => Literal::False,
                    _ => return Err(c.fail("an operand")),
                };
                c.bump();
                // The kind of .true._4.
                if c.word(0).starts_with('_') {
                    c.bump();
                }
                Ok(self.tree.add(ExprKind::Literal(literal), start))
            }
            T::Open => self.parenthesis(c),
            T::OpenBracket => {
                c.bump();
                let items =
                    self.nested(c, |this, c| this.array_items(c, |c| c.kind(0) == T::CloseBracket))?;
                c.expect(T::CloseBracket)?;
                Ok(self.tree.add(ExprKind::Array(items), start.to(c.last_span())))
            }
            T::Percent if c.kind(1) == T::Word && c.kind(2) == T::Open => {
                c.bump();
                let name = self.intern(c.word(0));
                c.bump();
                c.bump();
                let value = self.nested(c, |this, c| this.expr(c))?;
                c.expect(T::Close)?;
                Ok(self.tree.add(ExprKind::Percent { name, value }, start.to(c.last_span())))
            }
            _ => Err(c.fail("an expression")),
        }
    }

    /// A name with its subscripts, arguments and components.
    pub(super) fn designator(&mut self, c: &mut Cursor<'_>) -> Parsed<ExprId> {
        let (name, span) = c.name()?;
        let symbol = self.intern(name);
        let id = self.tree.add(ExprKind::Name(symbol), span);
        self.trailers(c, id)
    }

    fn trailers(&mut self, c: &mut Cursor<'_>, mut id: ExprId) -> Parsed<ExprId> {
        let start = self.tree.span(id);
        for _ in 0..DEPTH_MAX {
            match c.kind(0) {
                T::Open => {
                    let args = self.arguments(c)?;
                    id = self.tree.add(ExprKind::Reference { base: id, args }, start.to(c.last_span()));
                }
                // An image selector: the object stays the same.
                T::OpenBracket => self.codimensions(c)?,
                T::Percent | T::Dot if c.kind(1) == T::Word => {
                    c.bump();
                    let name = self.intern(c.word(0));
                    c.bump();
                    id = self.tree.add(ExprKind::Component { base: id, name }, start.to(c.last_span()));
                }
                _ => return Ok(id),
            }
        }
        Err(c.fail("fewer subscripts and components"))
    }

    /// `[ … ]` of a coarray.
    pub(super) fn codimensions(&mut self, c: &mut Cursor<'_>) -> Parsed<()> {
        c.expect(T::OpenBracket)?;
        self.nested(c, |this, c| {
            this.argument(c)?;
            while c.eat(T::Comma) {
                this.argument(c)?;
            }
            Ok(())
        })?;
        c.expect(T::CloseBracket)
    }

    /// `( … )` behind a name.
    pub(super) fn arguments(&mut self, c: &mut Cursor<'_>) -> Parsed<List> {
        c.expect(T::Open)?;
        let items = self.nested(c, |this, c| {
            let mut items = Vec::new();
            while c.kind(0) != T::Close {
                items.push(this.argument(c)?);
                if !c.eat(T::Comma) {
                    break;
                }
                if c.kind(0) == T::Close {
                    items.push(this.tree.add(ExprKind::Missing, c.span()));
                }
            }
            Ok(items)
        })?;
        c.expect(T::Close)?;
        Ok(self.tree.add_list(&items))
    }

    /// One subscript, section or actual argument.
    pub(super) fn argument(&mut self, c: &mut Cursor<'_>) -> Parsed<ExprId> {
        let start = c.span();
        match c.kind(0) {
            T::Comma => return Ok(self.tree.add(ExprKind::Missing, start)),
            T::Star if matches!(c.kind(1), T::Comma | T::Close | T::CloseBracket) => {
                c.bump();
                return Ok(self.tree.add(ExprKind::Star, start));
            }
            T::DotDot => {
                c.bump();
                return Ok(self.tree.add(ExprKind::Star, start));
            }
            T::Star | T::Ampersand if c.kind(1) == T::Int => {
                c.bump();
                let label = c.eat_digits().ok_or_else(|| c.fail("a label"))?;
                return Ok(self.tree.add(ExprKind::AlternateReturn(label), start.to(c.last_span())));
            }
            T::Word if c.kind(1) == T::Equals => {
                let name = self.intern(c.word(0));
                c.bump();
                c.bump();
                let value = self.argument(c)?;
                return Ok(self.tree.add(ExprKind::Keyword { name, value }, start.to(c.last_span())));
            }
            T::Word if c.kind(1) == T::Arrow => {
                let name = self.intern(c.word(0));
                c.bump();
                c.bump();
                let value = self.expr(c)?;
                return Ok(self.tree.add(ExprKind::Alias { name, value }, start.to(c.last_span())));
            }
            _ => {}
        }
        let low = match c.kind(0) {
            T::Colon | T::DoubleColon => None,
            _ => Some(self.expr(c)?),
        };
        if !matches!(c.kind(0), T::Colon | T::DoubleColon) {
            return low.ok_or_else(|| c.fail("an expression"));
        }
        let is_double = c.kind(0) == T::DoubleColon;
        c.bump();
        let ends = |c: &Cursor<'_>| matches!(c.kind(0), T::Comma | T::Close | T::Colon | T::CloseBracket);
        let mut high = None;
        let mut has_stride = is_double;
        if !is_double {
            if c.kind(0) == T::Star && matches!(c.kind(1), T::Comma | T::Close | T::CloseBracket) {
                // The upper bound of an assumed size.
                let span = c.span();
                c.bump();
                high = Some(self.tree.add(ExprKind::Star, span));
            } else if !ends(c) {
                high = Some(self.expr(c)?);
            }
            has_stride = c.eat(T::Colon);
        }
        let stride = match has_stride && !ends(c) {
            true => Some(self.expr(c)?),
            false => None,
        };
        Ok(self.tree.add(ExprKind::Section { low, high, stride }, start.to(c.last_span())))
    }

    /// `(x)`, `(re, im)`, `(/ … /)` or an implied DO.
    fn parenthesis(&mut self, c: &mut Cursor<'_>) -> Parsed<ExprId> {
        let start = c.span();
        c.expect(T::Open)?;
        self.nested(c, |this, c| {
            if c.kind(0) == T::Slash {
                c.bump();
                let items = this.array_items(c, |c| c.kind(0) == T::Slash && c.kind(1) == T::Close)?;
                c.expect(T::Slash)?;
                c.expect(T::Close)?;
                return Ok(this.tree.add(ExprKind::Array(items), start.to(c.last_span())));
            }
            let mut items = vec![this.expr(c)?];
            let mut bounds = Vec::new();
            let mut variable = None;
            while c.eat(T::Comma) {
                if variable.is_none() && c.kind(0) == T::Word && c.kind(1) == T::Equals {
                    variable = Some(this.intern(c.word(0)));
                    c.bump();
                    c.bump();
                    bounds.push(this.expr(c)?);
                } else if variable.is_some() {
                    bounds.push(this.expr(c)?);
                } else {
                    items.push(this.expr(c)?);
                }
            }
            c.expect(T::Close)?;
            let span = start.to(c.last_span());
            let kind = match (variable, items.as_slice()) {
                (Some(variable), _) => ExprKind::ImpliedDo {
                    variable,
                    items: this.tree.add_list(&items),
                    bounds: this.tree.add_list(&bounds),
                },
                (None, [one]) => ExprKind::Paren(*one),
                (None, [re, im]) => ExprKind::Complex(*re, *im),
                (None, _) => ExprKind::Array(this.tree.add_list(&items)),
            };
            let id = this.tree.add(kind, span);
            // (a)(1:2) of DEC Fortran, and the components of a function result.
            Ok(id)
        })
    }

    fn array_items(&mut self, c: &mut Cursor<'_>, ends: impl Fn(&Cursor<'_>) -> bool) -> Parsed<List> {
        // A type in front: [character(3) :: 'a', 'b'].
        self.type_before_colons(c)?;
        let mut items = Vec::new();
        while !ends(c) {
            items.push(self.expr(c)?);
            if !c.eat(T::Comma) {
                break;
            }
        }
        Ok(self.tree.add_list(&items))
    }

    /// The place of a list item or of the statement's end.
    pub(super) fn missing(&mut self, span: Span) -> ExprId {
        self.tree.add(ExprKind::Missing, span)
    }
}

fn prefix_operator(c: &Cursor<'_>) -> Option<&'static str> {
    match c.kind(0) {
        T::Plus => Some("+"),
        T::Minus => Some("-"),
        T::DotWord => {
            let text = c.text_of(c.token(0)?);
            match text {
                ".true." | ".false." => None,
                ".not." => Some(".not."),
                _ => Some(".user."),
            }
        }
        _ => None,
    }
}

fn infix_operator(c: &Cursor<'_>) -> Option<&'static str> {
    Some(match c.kind(0) {
        T::Plus => "+",
        T::Minus => "-",
        T::Star => "*",
        // The end of an array constructor.
        T::Slash if c.kind(1) == T::Close => return None,
        T::Slash => "/",
        T::Power => "**",
        T::Concat => "//",
        T::Equal => "==",
        T::NotEqual => "/=",
        T::Less => "<",
        T::LessEqual => "<=",
        T::Greater => ">",
        T::GreaterEqual => ">=",
        T::DotWord => match c.text_of(c.token(0)?) {
            ".eq." => "==",
            ".ne." => "/=",
            ".lt." => "<",
            ".le." => "<=",
            ".gt." => ">",
            ".ge." => ">=",
            ".and." => ".and.",
            ".or." => ".or.",
            ".eqv." => ".eqv.",
            ".neqv." | ".xor." => ".neqv.",
            ".true." | ".false." | ".not." => return None,
            _ => ".user.",
        },
        _ => return None,
    })
}
