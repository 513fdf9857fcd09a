//! Text to tree: tokens (logos), statements (a splitter), one LALR(1) parse per statement (lalrpop).
//!
//! The splitter finds the end of each statement first, so every broken statement gets its own message and the rest of
//! the file is still parsed. Never looks a name up.

pub mod ast;
pub mod token;

use lalrpop_util::{ParseError, lalrpop_mod};
use logos::Logos;
use rma_source::{Applicability, Diagnostic, Span};

use crate::messages::{Code, did_you_mean};
use ast::Name;
use token::Token;

lalrpop_mod!(
    #[allow(clippy::all, missing_docs, unreachable_pub, unused, reason = "generated")]
    grammar,
    "/syntax/grammar.rs"
);

/// Longest text that is read.
pub const SOURCE_BYTES_MAX: usize = 4 << 20;

/// Most tokens of one statement.
pub const STATEMENT_TOKENS_MAX: usize = 20_000;

/// Most syntax errors that are reported.
pub const ERRORS_MAX: usize = 100;

/// What a grammar action may refuse.
#[derive(Clone, Debug)]
pub enum SyntaxError {
    /// An expression nested beyond [`ast::DEPTH_MAX`].
    TooDeep(Span),
    /// A number that does not fit.
    Number(Span, &'static str),
}

/// A file as far as it could be read.
#[derive(Debug, Default)]
pub struct Parsed {
    /// Statements that are well formed.
    pub statements: ast::File,
    /// Names that broken statements would have declared; nothing is said about their uses.
    pub broken: Vec<Name>,
    /// What is wrong.
    pub diagnostics: Vec<Diagnostic>,
}

type Spanned<'a> = (usize, Token<'a>, usize);

/// Reads a file; every broken statement is reported.
pub fn parse(text: &str) -> Parsed {
    let mut parsed = Parsed::default();
    if SOURCE_BYTES_MAX < text.len() {
        parsed.diagnostics.push(
            Code::TooLarge
                .error(format!("the file has {} bytes; the limit is {SOURCE_BYTES_MAX}", text.len()))
                .label(Span::at(0), "")
                .note("a program is a page of text; data belongs into `.npy` files")
                .help("read initial data with `init u = file \"start.npy\"`"),
        );
        return parsed;
    }
    let mut splitter =
        Splitter { text, out: &mut parsed, statement: Vec::new(), open: Vec::new(), state: State::Good };
    let mut at_line_start = true;
    for (token, range) in Token::lexer(text).spanned() {
        match token {
            Ok(Token::NewLine) => {
                splitter.new_line();
                at_line_start = true;
                continue;
            }
            Ok(Token::IntDots(digits)) => {
                let middle = range.end - 2;
                splitter.token(range.start, Token::Int(&digits[..digits.len() - 2]), middle, at_line_start);
                splitter.token(middle, Token::Dots, range.end, false);
            }
            Ok(token) => splitter.token(range.start, token, range.end, at_line_start),
            Err(()) => splitter.bad_text(Span::new(range.start, range.end)),
        }
        at_line_start = false;
    }
    splitter.finish();
    parsed.diagnostics.truncate(ERRORS_MAX);
    parsed
}

/// Reads one expression, such as the value of a flag.
pub fn parse_expr(text: &str) -> Option<ast::Expr> {
    let tokens: Vec<Spanned<'_>> = Token::lexer(text)
        .spanned()
        .map(|(token, range)| Some((range.start, token.ok()?, range.end)))
        .collect::<Option<_>>()?;
    grammar::ExprParser::new().parse(tokens.into_iter().map(Ok::<_, SyntaxError>)).ok()
}

/// The place of a name with its level and indices. Where indices are absent, the parser's own end is the start of the
/// next token, which is too far.
pub(crate) fn place_span(
    name: &Name,
    level: Option<&Name>,
    indices: Option<&Vec<ast::Expr>>,
    whole: Span,
) -> Span {
    match (indices, level) {
        (Some(_), _) => whole,
        (None, Some(level)) => name.span.to(level.span),
        (None, None) => name.span,
    }
}

pub(crate) fn integer(text: &str, span: Span) -> Result<u64, SyntaxError> {
    let value = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    value.map_err(|_| SyntaxError::Number(span, "the largest whole number is 18446744073709551615"))
}

pub(crate) fn real(text: &str, span: Span) -> Result<f64, SyntaxError> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err(SyntaxError::Number(span, "the largest real number is about 1.8e308")),
    }
}

enum State {
    Good,
    /// Something in the statement was reported already; it is not parsed.
    Reported,
}

struct Splitter<'a, 'b> {
    text: &'a str,
    out: &'b mut Parsed,
    statement: Vec<Spanned<'a>>,
    open: Vec<(Token<'a>, Span)>,
    state: State,
}

impl<'a> Splitter<'a, '_> {
    fn token(&mut self, start: usize, token: Token<'a>, end: usize, at_line_start: bool) {
        if at_line_start && token.starts_statement() && !self.statement.is_empty() {
            match self.open.last() {
                Some((Token::BraceOpen, _)) if token == Token::Update => {}
                Some(&(bracket, span)) => {
                    self.unclosed(bracket, span);
                    self.end_statement();
                }
                None => self.end_statement(),
            }
        }
        match token {
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => {
                self.open.push((token, Span::new(start, end)));
            }
            Token::ParenClose | Token::BracketClose | Token::BraceClose => {
                let fits = matches!(
                    (self.open.last(), token),
                    (Some((Token::ParenOpen, _)), Token::ParenClose)
                        | (Some((Token::BracketOpen, _)), Token::BracketClose)
                        | (Some((Token::BraceOpen, _)), Token::BraceClose)
                );
                match fits {
                    true => drop(self.open.pop()),
                    // The parser says what is wrong; the line ends the statement.
                    false => self.open.clear(),
                }
            }
            _ => {}
        }
        self.statement.push((start, token, end));
    }

    fn new_line(&mut self) {
        let goes_on = match self.statement.last() {
            Some((_, token, _)) => !self.open.is_empty() || token.continues_line(),
            None => true,
        };
        if !goes_on {
            self.end_statement();
        }
    }

    fn finish(mut self) {
        if let Some(&(bracket, span)) = self.open.last() {
            self.unclosed(bracket, span);
        }
        self.end_statement();
    }

    fn unclosed(&mut self, bracket: Token<'_>, span: Span) {
        let close = match bracket {
            Token::ParenOpen => ")",
            Token::BracketOpen => "]",
            _ => "}",
        };
        if let State::Good = self.state {
            self.out.diagnostics.push(
                Code::Syntax
                    .error(format!(
                        "this bracket is never closed; expected `{close}` before the next statement"
                    ))
                    .label(span, "opened here")
                    .note("a statement goes on over several lines while a bracket or brace is open")
                    .help(format!("write the missing `{close}`")),
            );
        }
        self.state = State::Reported;
    }

    fn bad_text(&mut self, span: Span) {
        let bad = &self.text[span.range()];
        let hint = match bad.chars().next() {
            Some('"') => "close the text with `\"` on the same line",
            Some('\'') => "texts stand in double quotes",
            Some('%') => "write `mod` for the rest of a division, `#` for a comment",
            Some('&') => "write `and` for conditions, `band` for bits",
            Some('!') => "write `not` for conditions, `#` for a comment, `!=` for unequal",
            Some('~') => "write `bnot` for bits, `not` for conditions",
            Some('×' | '·') => "write `*`",
            Some('−' | '–') => "write `-`",
            Some('²' | '³') => "write `^2` or `^3`",
            _ => "names are of the letters A to Z, digits and `_`",
        };
        if let State::Good = self.state {
            self.out.diagnostics.push(
                Code::Syntax
                    .error(format!("expected a word, number or sign, found `{}`", bad.escape_debug()))
                    .label(span, "not part of the language")
                    .note("outside comments and texts a program is plain ASCII")
                    .help(hint),
            );
        }
        self.state = State::Reported;
    }

    fn end_statement(&mut self) {
        self.open.clear();
        let tokens = std::mem::take(&mut self.statement);
        let state = std::mem::replace(&mut self.state, State::Good);
        let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else { return };
        let span = Span::new(first.0, last.2);
        if STATEMENT_TOKENS_MAX < tokens.len() {
            self.out.diagnostics.push(
                Code::TooLarge
                    .error(format!("this statement has {} words and signs", tokens.len()))
                    .label(Span::new(first.0, first.2), "it starts here")
                    .note(format!("the limit is {STATEMENT_TOKENS_MAX}"))
                    .help("name parts of it with `function` or `let`"),
            );
            return self.broken(&tokens);
        }
        let State::Good = state else { return self.broken(&tokens) };
        if self.out.diagnostics.len() >= ERRORS_MAX {
            return;
        }
        match run(&tokens) {
            Ok(statement) => self.out.statements.push(statement),
            Err(error) => {
                let diagnostic = explain(error, &tokens, span, self.text);
                self.out.diagnostics.push(diagnostic);
                self.broken(&tokens);
            }
        }
    }

    /// Remembers the name that a broken statement is about.
    fn broken(&mut self, tokens: &[Spanned<'_>]) {
        for &(start, token, end) in tokens.iter().take(BROKEN_NAMES_MAX) {
            if let Token::Name(text) = token {
                self.out.broken.push(Name { text: text.to_string(), span: Span::new(start, end) });
            }
        }
    }
}

/// Names of a broken statement that are not reported as undeclared; a grid has several.
const BROKEN_NAMES_MAX: usize = 40;

type Failure<'a> = ParseError<usize, Token<'a>, SyntaxError>;

fn run<'a>(tokens: &[Spanned<'a>]) -> Result<ast::Statement, Failure<'a>> {
    grammar::StatementParser::new().parse(tokens.iter().copied().map(Ok::<_, SyntaxError>))
}

fn explain(error: Failure<'_>, tokens: &[Spanned<'_>], span: Span, text: &str) -> Diagnostic {
    match error {
        ParseError::User { error: SyntaxError::TooDeep(at) } => Code::TooLarge
            .error(format!("this expression is nested more than {} levels deep", ast::DEPTH_MAX))
            .label(Span::new(at.start as usize, at.start as usize + 1), "it starts here")
            .note("each operator, bracket and function call is a level")
            .help("name parts of it with `function` or `let`"),
        ParseError::User { error: SyntaxError::Number(at, why) } => Code::Syntax
            .error(format!("expected a number that fits, found `{}`", &text[at.range()]))
            .label(at, "too large")
            .note(why)
            .help("write a smaller number"),
        ParseError::UnrecognizedEof { expected, .. } => {
            let end = span.end as usize;
            unexpected(None, "the end of the line", Span::at(end), &expected, tokens)
        }
        ParseError::UnrecognizedToken { token: (start, token, end), expected } => {
            let found = format!("`{}`", &text[start..end]);
            unexpected(Some((start, token, end)), &found, Span::new(start, end), &expected, tokens)
        }
        ParseError::ExtraToken { token: (start, token, end) } => {
            let found = format!("`{}`", &text[start..end]);
            unexpected(Some((start, token, end)), &found, Span::new(start, end), &[], tokens)
        }
        ParseError::InvalidToken { location } => {
            unexpected(None, "something unreadable", Span::at(location), &[], tokens)
        }
    }
}

fn unexpected(
    token: Option<Spanned<'_>>,
    found: &str,
    at: Span,
    expected: &[String],
    tokens: &[Spanned<'_>],
) -> Diagnostic {
    let first = tokens[0];
    let (is_first, last) = match token {
        Some((start, _, _)) => {
            let before = tokens.partition_point(|(other, _, _)| *other < start);
            (before == 0, tokens[..before].last().copied())
        }
        None => (false, tokens.last().copied()),
    };
    let previous = last.map(|(_, token, _)| token);
    if is_first {
        return unknown_statement(first, found, at);
    }
    let mut wanted = describe(expected);
    let before: Vec<Spanned<'_>> =
        tokens.iter().copied().filter(|(start, _, _)| (*start as u32) < at.start).collect();
    if token.is_some() && !before.is_empty() && run(&before).is_ok() {
        wanted.push(String::from("the end of the line"));
    }
    let list = match wanted.as_slice() {
        [] => String::from("the end of the line"),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} or {last}", rest.join(", ")),
    };
    let mut diagnostic =
        Code::Syntax.error(format!("expected {list}, found {found}")).label(at, "not expected here");
    let accepts = |what: &str| expected.iter().any(|item| item.trim_matches('"') == what);
    let found_token = token.map(|(_, token, _)| token);
    let misspelt = match (first.1, last) {
        (Token::Boundary, Some((start, Token::Name(word), end))) => {
            did_you_mean(word, ["neumann"].into_iter()).map(|rule| (rule, Span::new(start, end)))
        }
        _ => None,
    };
    match (previous, found_token) {
        (_, Some(_)) if let Some((rule, span)) = misspelt => {
            diagnostic =
                diagnostic.suggest(format!("did you mean `{rule}`?"), span, rule, Applicability::Unsafe);
        }
        (_, Some(Token::Assign)) if accepts("==") => {
            diagnostic = diagnostic.suggest("`==` compares", at, "==", Applicability::Unsafe);
        }
        (Some(Token::Star), Some(Token::Star)) => {
            diagnostic = diagnostic.help("write `a^b` for a power");
        }
        (
            Some(Token::Int(_) | Token::Real(_) | Token::ParenClose | Token::Name(_)),
            Some(Token::Name(_) | Token::ParenOpen | Token::Int(_) | Token::Real(_)),
        ) if accepts("*") => {
            diagnostic = diagnostic.suggest(
                "write `*` between factors",
                Span::at(at.start as usize),
                "* ",
                Applicability::Unsafe,
            );
        }
        (_, Some(word)) if word.is_word() && accepts("NAME") => {
            diagnostic = diagnostic
                .help(format!("{found} is a word of the language and cannot be a name; choose another name"));
        }
        (_, Some(word)) if word.starts_statement() => {
            diagnostic = diagnostic.help(format!("start {found} on a line of its own"));
        }
        _ => {}
    }
    match form(first.1) {
        Some(form) => {
            let diagnostic = diagnostic.note(format!("the statement's form is `{form}`"));
            match diagnostic.helps.is_empty() {
                true => diagnostic.help(format!("for example `{}`", example(first.1))),
                false => diagnostic,
            }
        }
        None => diagnostic,
    }
}

fn unknown_statement(first: Spanned<'_>, found: &str, at: Span) -> Diagnostic {
    let mut diagnostic = Code::Syntax
        .error(format!("expected a statement, found {found}"))
        .label(at, "no statement starts with this")
        .note(format!("statements start with one of {}", STATEMENTS.map(|(word, _, _)| word).join(", ")));
    let guess = match first.1 {
        Token::Name(word) => did_you_mean(word, STATEMENTS.iter().map(|(word, _, _)| *word)),
        _ => None,
    };
    diagnostic = match guess {
        Some(word) => diagnostic.suggest(format!("did you mean `{word}`?"), at, word, Applicability::Unsafe),
        None => diagnostic
            .help("write `let a = …` to name a number, `update u = …` to compute a field, `#` for a comment"),
    };
    diagnostic
}

/// Groups the parser's terminals into what a person would say.
fn describe(expected: &[String]) -> Vec<String> {
    let has = |what: &str| expected.iter().any(|item| item.trim_matches('"') == what);
    let mut wanted = Vec::new();
    let is_operand = has("INT") && has("(");
    let is_operator = has("*") || has("+") && !is_operand;
    if is_operand {
        wanted.push(String::from("an expression"));
    }
    if is_operator {
        wanted.push(String::from("an operator"));
    }
    for item in expected {
        let item = item.trim_matches('"');
        let is_covered = match item {
            "INT" | "REAL" | "if" | "not" | "bnot" => is_operand,
            "(" | "|" | "NAME" if is_operand => true,
            "mod" => is_operand || is_operator,
            "+" | "-" => is_operand || is_operator,
            "*" | "/" | "^" | "div" | "==" | "!=" | "<" | "<=" | ">" | ">=" | "<<" | ">>" | "and" | "or"
            | "xor" | "band" | "bor" => is_operator,
            "." | "[" if is_operator => true,
            _ => false,
        };
        if is_covered {
            continue;
        }
        wanted.push(match item {
            "NAME" => String::from("a name"),
            "INT" => String::from("a whole number"),
            "REAL" => String::from("a number"),
            "TEXT" => String::from("a text in double quotes"),
            other => format!("`{other}`"),
        });
    }
    wanted
}

/// Word, form and example of every statement.
const STATEMENTS: [(&str, &str, &str); 21] = [
    ("program", "program NAME", "program heat"),
    (
        "param",
        "param NAME : int|real = VALUE [in LO..HI] [\"what it means\"]",
        "param n : int = 512 in 8.. \"points per side\"",
    ),
    ("let", "let NAME = VALUE", "let h = 1/(n-1)"),
    ("grid", "grid NAME(INDEX: SIZE, …) [COORDINATE = VALUE, …]", "grid G(i: n, j: n) x = i*h, y = j*h"),
    (
        "field",
        "field NAME [: real|real32|u64|i64] on GRID [at (i+1/2, j)] [levels N | constant]",
        "field u on G levels 2",
    ),
    ("init", "init NAME[.prev] = VALUE | file \"NAME.npy\"", "init u = exp(-x^2)"),
    (
        "boundary",
        "boundary FIELD: SIDE, … = VALUE|neumann VALUE|mirror|periodic|sponge(W, A) ; …",
        "boundary u: west, east = 0 ; south = neumann 0",
    ),
    ("function", "function NAME(ARGUMENT, …) = VALUE", "function lap(f) = f[i-1] - 2*f + f[i+1]"),
    ("update", "update [red|black] FIELD = VALUE [where CONDITION]", "update u = u + dt*lap(u)"),
    ("together", "together { update … update … }", "together { update a = b  update b = a }"),
    ("source", "source at (X, …): FIELD += VALUE", "source at (0.5, 0.5): p += dt^2 * ricker(15, t)"),
    ("reduce", "reduce NAME = max|min|sum|norm2 VALUE [every N]", "reduce r = max |u.next - u| every 50"),
    ("until", "until CONDITION", "until r < tol or step >= 1000"),
    ("output", "output FIELD, … [every N] as FORMAT, …", "output u every 500 as png(viridis), npy"),
    ("print", "print VALUE, … [every N]", "print step, r every 100"),
    (
        "probe",
        "probe at (X, …) of FIELD [every N] as csv \"NAME\"",
        "probe at (0.2, 0.5) of p every 1 as csv \"trace\"",
    ),
    ("checkpoint", "checkpoint every N", "checkpoint every 1000"),
    ("decompose", "decompose rows|blocks|(PX, PY)", "decompose blocks"),
    (
        "epoch",
        "epoch fence|pscw(strong|weak|nocheck)|checkerboard|lock(shared|exclusive)|offer|offer(collective)|auto",
        "epoch fence",
    ),
    ("overlap", "overlap core|none", "overlap core"),
    ("block", "block time N", "block time 8"),
];

fn entry(token: Token<'_>) -> Option<&'static (&'static str, &'static str, &'static str)> {
    let word = match token {
        Token::Program => "program",
        Token::Param => "param",
        Token::Let => "let",
        Token::Grid => "grid",
        Token::Field => "field",
        Token::Init => "init",
        Token::Boundary => "boundary",
        Token::Function => "function",
        Token::Update => "update",
        Token::Together => "together",
        Token::Source => "source",
        Token::Reduce => "reduce",
        Token::Until => "until",
        Token::Output => "output",
        Token::Print => "print",
        Token::Probe => "probe",
        Token::Checkpoint => "checkpoint",
        Token::Decompose => "decompose",
        Token::Epoch => "epoch",
        Token::Overlap => "overlap",
        Token::Block => "block",
        _ => return None,
    };
    STATEMENTS.iter().find(|(name, _, _)| *name == word)
}

fn form(token: Token<'_>) -> Option<&'static str> {
    entry(token).map(|(_, form, _)| *form)
}

fn example(token: Token<'_>) -> &'static str {
    entry(token).map_or("let a = 1", |(_, _, example)| *example)
}
