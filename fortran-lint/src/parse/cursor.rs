//! Walks over the tokens of one statement and splits words where fixed form glued them. Never builds a tree.

use rma_source::Span;

use crate::form::{Form, LogicalLine};
use crate::lex::{Token, TokenKind, lex};

/// The tokens of one statement.
pub(super) struct Cursor<'a> {
    pub(super) line: &'a LogicalLine,
    pub(super) form: Form,
    tokens: &'a mut Vec<Token>,
    at: usize,
    end: usize,
}

/// A statement, or a part of it, that is not understood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct NotUnderstood;

pub(super) type Parsed<T> = Result<T, NotUnderstood>;

impl<'a> Cursor<'a> {
    pub(super) fn new(
        line: &'a LogicalLine,
        form: Form,
        tokens: &'a mut Vec<Token>,
        at: usize,
        end: usize,
    ) -> Cursor<'a> {
        Cursor { line, form, tokens, at, end }
    }

    /// Number of tokens that stand behind this statement; it stays the same when words are split.
    pub(super) fn n_behind(&self) -> usize {
        self.tokens.len() - self.end
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    pub(super) fn rewind(&mut self, at: usize) {
        self.at = at;
    }

    pub(super) fn token(&self, ahead: usize) -> Option<Token> {
        let at = self.at + ahead;
        if at < self.end { self.tokens.get(at).copied() } else { None }
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
        self.at >= self.end
    }

    pub(super) fn bump(&mut self) {
        self.at += 1;
    }

    pub(super) fn skip_to_end(&mut self) {
        self.at = self.end;
    }

    pub(super) fn eat(&mut self, kind: TokenKind) -> bool {
        let is_here = self.kind(0) == kind;
        if is_here {
            self.at += 1;
        }
        is_here
    }

    pub(super) fn expect(&mut self, kind: TokenKind) -> Parsed<()> {
        if self.eat(kind) { Ok(()) } else { Err(NotUnderstood) }
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
        let n = rest.len();
        self.tokens.splice(self.at + 1..self.at + 1, rest);
        self.end += n;
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
        Some(value)
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
