//! Walks over the tokens of one statement and splits words where fixed form glued them. Never builds a tree.

use std::cell::Cell;

use rma_source::Span;

use crate::form::{Form, LogicalLine};
use crate::lex::{Token, TokenKind, lex};

/// Characters of a token that a reason shows.
const SHOWN_MAX: usize = 24;

/// The tokens of one statement.
pub(super) struct Cursor<'a> {
    pub(super) line: &'a LogicalLine,
    pub(super) form: Form,
    tokens: &'a mut Vec<Token>,
    at: usize,
    /// One past the last byte of the statement in its line.
    end: usize,
    /// The token at which the reading that came furthest failed, and what was expected there.
    furthest: Cell<Option<(usize, &'static str)>>,
}

/// A statement, or a part of it, that is not understood. [`Cursor::fail`] makes it and remembers why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct NotUnderstood(());

pub(super) type Parsed<T> = Result<T, NotUnderstood>;

impl<'a> Cursor<'a> {
    /// A cursor before the first of `tokens`, which are those of one statement.
    pub(super) fn new(line: &'a LogicalLine, form: Form, tokens: &'a mut Vec<Token>) -> Cursor<'a> {
        let end = tokens.last().map_or(0, |last| last.end as usize);
        Cursor { line, form, tokens, at: 0, end, furthest: Cell::new(None) }
    }

    /// What is expected at the token at hand is not there.
    pub(super) fn fail(&self, expected: &'static str) -> NotUnderstood {
        if self.furthest.get().is_none_or(|(at, _)| at <= self.at) {
            self.furthest.set(Some((self.at, expected)));
        }
        NotUnderstood(())
    }

    /// What was expected where, in the reading that came furthest.
    pub(super) fn reason(&self) -> String {
        let Some((at, expected)) = self.furthest.get() else {
            return "no statement looks like this".to_string();
        };
        match self.tokens.get(at) {
            Some(&token) => {
                let text = self.text_of(token);
                let shown: String = text.chars().take(SHOWN_MAX).collect();
                let rest = if shown.len() < text.len() { "…" } else { "" };
                format!("{expected} is expected at `{shown}{rest}`")
            }
            None => format!("{expected} is expected at the end"),
        }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    pub(super) fn rewind(&mut self, at: usize) {
        self.at = at;
    }

    /// Goes back to a token and undoes the splitting of words from there on.
    pub(super) fn restart(&mut self, at: usize) {
        self.at = at;
        let Some(start) = self.tokens.get(at).map(|token| token.start as usize) else { return };
        self.tokens.truncate(at);
        lex(self.line.text(), start, self.end, self.tokens);
    }

    /// Passes the name at hand.
    pub(super) fn name(&mut self) -> Parsed<(&'a str, Span)> {
        if self.kind(0) != TokenKind::Word {
            return Err(self.fail("a name"));
        }
        let name = (self.word(0), self.span());
        self.at += 1;
        Ok(name)
    }

    /// Nothing may follow.
    pub(super) fn expect_end(&self) -> Parsed<()> {
        if self.is_end() { Ok(()) } else { Err(self.fail("the end of the statement")) }
    }

    pub(super) fn token(&self, ahead: usize) -> Option<Token> {
        self.tokens.get(self.at + ahead).copied()
    }

    pub(super) fn kind(&self, ahead: usize) -> TokenKind {
        self.token(ahead).map_or(TokenKind::End, |token| token.kind)
    }

    pub(super) fn text_of(&self, token: Token) -> &'a str {
        &self.line.text()[token.start as usize..token.end as usize]
    }

    /// The word at a token, or nothing.
    pub(super) fn word(&self, ahead: usize) -> &'a str {
        match self.token(ahead) {
            Some(token) if token.kind == TokenKind::Word => self.text_of(token),
            _ => "",
        }
    }

    pub(super) fn is_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    pub(super) fn bump(&mut self) {
        self.at += 1;
    }

    pub(super) fn skip_to_end(&mut self) {
        self.at = self.tokens.len();
    }

    pub(super) fn eat(&mut self, kind: TokenKind) -> bool {
        let is_here = self.kind(0) == kind;
        if is_here {
            self.at += 1;
        }
        is_here
    }

    pub(super) fn expect(&mut self, kind: TokenKind) -> Parsed<()> {
        if self.eat(kind) { Ok(()) } else { Err(self.fail(shown(kind))) }
    }

    /// The place of the token at hand, or of the end of the statement.
    pub(super) fn span(&self) -> Span {
        match self.token(0) {
            Some(token) => token.span(self.line),
            None => Span::at(self.last_span().end as usize),
        }
    }

    /// The place of the token that was passed last.
    pub(super) fn last_span(&self) -> Span {
        match self.at.checked_sub(1).and_then(|at| self.tokens.get(at)) {
            Some(token) => token.span(self.line),
            None => self.line.span,
        }
    }

    /// Whether a keyword stands here; in fixed form a longer word may begin with it.
    pub(super) fn at_word(&self, keyword: &str) -> bool {
        let word = self.word(0);
        match self.form {
            Form::Free => word == keyword,
            Form::Fixed => word.starts_with(keyword),
        }
    }

    /// Passes a keyword, splitting the word in fixed form.
    pub(super) fn eat_word(&mut self, keyword: &str) -> bool {
        if !self.at_word(keyword) {
            return false;
        }
        self.eat_prefix(keyword.len());
        true
    }

    /// Passes the first `length` bytes of the token at hand and reads the rest of it anew.
    pub(super) fn eat_prefix(&mut self, length: usize) {
        let Some(token) = self.token(0) else { return };
        let (start, end) = (token.start as usize, token.end as usize);
        if start + length >= end {
            self.at += 1;
            return;
        }
        // What was glued may reach into the next tokens: `e5` of `real*8e5` or `10e5` of `do10e5=`.
        let mut rest = Vec::with_capacity(2);
        lex(self.line.text(), start + length, end, &mut rest);
        self.tokens[self.at].end = (start + length) as u32;
        self.tokens.splice(self.at + 1..self.at + 1, rest);
        self.at += 1;
    }

    /// Passes the digits that the token at hand starts with.
    pub(super) fn eat_digits(&mut self) -> Option<u32> {
        let token = self.token(0)?;
        if !matches!(token.kind, TokenKind::Int | TokenKind::Real) {
            return None;
        }
        let text = self.text_of(token);
        let length = text.bytes().take_while(u8::is_ascii_digit).count();
        if length == 0 {
            return None;
        }
        let value = text[..length].parse().unwrap_or(u32::MAX);
        self.eat_prefix(length);
        if token.kind == TokenKind::Real {
            self.join_words();
        }
        Some(value)
    }

    /// Makes one word of two without anything between them: the rest of `8d5`, read as a number with an exponent, and the
    /// `d` of `REAL*8 D5D`.
    fn join_words(&mut self) {
        let is_word = |ahead| self.kind(ahead) == TokenKind::Word;
        if is_word(0) && is_word(1) && self.tokens[self.at].end == self.tokens[self.at + 1].start {
            self.tokens[self.at].end = self.tokens[self.at + 1].end;
            self.tokens.remove(self.at + 1);
        }
    }

    /// Tokens from here to behind the parenthesis that matches the one at hand.
    pub(super) fn matching(&self, ahead: usize) -> Option<usize> {
        let mut depth = 0usize;
        let mut i = ahead;
        loop {
            match self.kind(i) {
                TokenKind::Open | TokenKind::OpenBracket => depth += 1,
                TokenKind::Close | TokenKind::CloseBracket => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(i + 1);
                    }
                }
                TokenKind::End => return None,
                _ => {}
            }
            i += 1;
        }
    }

    /// The first token outside parentheses, from here on, that satisfies `wanted`.
    pub(super) fn find_outside(&self, ahead: usize, wanted: impl Fn(TokenKind) -> bool) -> Option<usize> {
        let mut depth = 0usize;
        let mut i = ahead;
        loop {
            let kind = self.kind(i);
            if depth == 0 && wanted(kind) {
                return Some(i);
            }
            match kind {
                TokenKind::Open | TokenKind::OpenBracket => depth += 1,
                TokenKind::Close | TokenKind::CloseBracket => depth = depth.saturating_sub(1),
                TokenKind::End => return None,
                _ => {}
            }
            i += 1;
        }
    }
}

/// A token as a reason names it.
fn shown(kind: TokenKind) -> &'static str {
    match kind {
        TokenKind::Open => "`(`",
        TokenKind::Close => "`)`",
        TokenKind::OpenBracket => "`[`",
        TokenKind::CloseBracket => "`]`",
        TokenKind::Comma => "`,`",
        TokenKind::Colon => "`:`",
        TokenKind::DoubleColon => "`::`",
        TokenKind::Equals => "`=`",
        TokenKind::Arrow => "`=>`",
        TokenKind::Slash => "`/`",
        TokenKind::Minus => "`-`",
        _ => "another token",
    }
}
