//! The kinds of tokens. Never holds text: a token is a range of its logical line.

use logos::{Lexer, Logos};

/// What a token is. Statement text arrives in lower case.
#[derive(Logos, Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[logos(skip r"[ \t\x0b\x0c]+")]
pub enum TokenKind {
    /// A name or a keyword.
    #[regex(r"[a-z_$][a-z0-9_$@]*")]
    Word,
    /// Digits without anything else; `1.` of `1.eq.x` is one.
    #[regex(r"[0-9]+", number)]
    Int,
    /// A number with a point or an exponent, with its kind.
    #[regex(r"\.[0-9]+", fraction)]
    Real,
    /// A character literal or what was a Hollerith constant.
    #[regex(r"'([^']|'')*'")]
    #[regex(r#""([^"]|"")*""#)]
    Text,
    /// `.and.`, `.true.`, `.myop.`.
    #[regex(r"\.[a-z]+\.")]
    DotWord,
    /// `(`
    #[token("(")]
    Open,
    /// `)`
    #[token(")")]
    Close,
    /// `[`
    #[token("[")]
    OpenBracket,
    /// `]`
    #[token("]")]
    CloseBracket,
    /// `,`
    #[token(",")]
    Comma,
    /// `:`
    #[token(":")]
    Colon,
    /// `::`
    #[token("::")]
    DoubleColon,
    /// `;`
    #[token(";")]
    Semicolon,
    /// `=`
    #[token("=")]
    Equals,
    /// `=>`
    #[token("=>")]
    Arrow,
    /// `%`
    #[token("%")]
    Percent,
    /// `..`
    #[token("..")]
    DotDot,
    /// `.` between the parts of a DEC record.
    #[token(".")]
    Dot,
    /// `+`
    #[token("+")]
    Plus,
    /// `-`
    #[token("-")]
    Minus,
    /// `*`
    #[token("*")]
    Star,
    /// `**`
    #[token("**")]
    Power,
    /// `/`
    #[token("/")]
    Slash,
    /// `//`
    #[token("//")]
    Concat,
    /// `==`
    #[token("==")]
    Equal,
    /// `/=`
    #[token("/=")]
    NotEqual,
    /// `<`
    #[token("<")]
    Less,
    /// `<=`
    #[token("<=")]
    LessEqual,
    /// `>`
    #[token(">")]
    Greater,
    /// `>=`
    #[token(">=")]
    GreaterEqual,
    /// `&` where it continues nothing: a label of an alternate return.
    #[token("&")]
    Ampersand,
    /// A character that starts no token.
    Unknown,
    /// Behind the last token.
    End,
}

/// Digits are a whole number unless a fraction or an exponent follows. The point of `1.eq.2` belongs to the operator.
fn number(lexer: &mut Lexer<'_, TokenKind>) -> TokenKind {
    let rest = lexer.remainder().as_bytes();
    let (length, is_real) = number_tail(rest);
    lexer.bump(length);
    if is_real { TokenKind::Real } else { TokenKind::Int }
}

fn fraction(lexer: &mut Lexer<'_, TokenKind>) -> TokenKind {
    let rest = lexer.remainder().as_bytes();
    let length = exponent(rest);
    lexer.bump(length + kind_suffix(&rest[length..]));
    TokenKind::Real
}

fn number_tail(rest: &[u8]) -> (usize, bool) {
    let digits = |from: usize| rest[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut length = 0;
    let mut is_real = false;
    let is_point = match rest {
        // `0..and.` is a number and an operator, `0..` a range of ranks.
        [b'.', b'.', more @ ..] => starts_operator(more),
        [b'.', more @ ..] => !starts_operator(more),
        _ => false,
    };
    if is_point {
        length = 1 + digits(1);
        is_real = true;
    }
    let exponent = exponent(&rest[length..]);
    is_real |= exponent > 0;
    length += exponent;
    (length + kind_suffix(&rest[length..]), is_real)
}

/// Whether `and.`, `eq.` or another operator follows the point.
fn starts_operator(rest: &[u8]) -> bool {
    let letters = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    letters > 0 && rest.get(letters) == Some(&b'.')
}

fn exponent(rest: &[u8]) -> usize {
    let sign = match rest {
        [b'e' | b'd' | b'q', b'+' | b'-', ..] => 1,
        [b'e' | b'd' | b'q', ..] => 0,
        _ => return 0,
    };
    let digits = rest[1 + sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 { 0 } else { 1 + sign + digits }
}

fn kind_suffix(rest: &[u8]) -> usize {
    match rest {
        [b'_', next, ..] if next.is_ascii_alphanumeric() => {
            1 + rest[1..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count()
        }
        _ => 0,
    }
}
