//! Logical lines become tokens. Never decides that a word is a keyword: Fortran has no reserved words.

mod token;

pub use token::TokenKind;

use logos::Logos;
use rma_source::Span;

use crate::form::LogicalLine;

/// One token of a logical line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// First byte in the logical line.
    pub start: u32,
    /// One past the last byte in the logical line.
    pub end: u32,
}

impl Token {
    /// The place in the file.
    pub fn span(self, line: &LogicalLine) -> Span {
        line.span_of(self.start as usize, self.end as usize)
    }
}

/// Reads a line statement by statement.
pub struct Lexer<'a> {
    inner: logos::Lexer<'a, TokenKind>,
}

impl<'a> Lexer<'a> {
    /// A lexer at the start of a line.
    pub fn new(text: &'a str) -> Lexer<'a> {
        Lexer { inner: TokenKind::lexer(text) }
    }

    /// Adds the tokens up to the next `;`, which is passed, or to the end. `false` at the end.
    pub fn statement(&mut self, tokens: &mut Vec<Token>) -> bool {
        while let Some(kind) = self.inner.next() {
            let kind = kind.unwrap_or(TokenKind::Unknown);
            if kind == TokenKind::Semicolon {
                return true;
            }
            let range = self.inner.span();
            tokens.push(Token { kind, start: range.start as u32, end: range.end as u32 });
        }
        false
    }
}

/// Fills `tokens` with those of `text[start..end]`; characters that start no token become [`TokenKind::Unknown`].
pub fn lex(text: &str, start: usize, end: usize, tokens: &mut Vec<Token>) {
    let mut lexer = TokenKind::lexer(&text[start..end]);
    while let Some(kind) = lexer.next() {
        let range = lexer.span();
        let kind = kind.unwrap_or(TokenKind::Unknown);
        tokens.push(Token { kind, start: (start + range.start) as u32, end: (start + range.end) as u32 });
    }
}
