//! Logical lines become a tolerant tree: what is not understood costs that one statement. Never knows what a name means.

mod cursor;
mod expr;
mod keyword;
mod statement;
mod tree;

#[cfg(test)]
mod test;

pub use tree::*;

use crate::form::{DirectiveKind, Form, Item, LogicalLine, Macros, Reader, detect};
use crate::lex::{Token, TokenKind, lex};
use crate::source::{Origin, Reading, expand};
use cursor::{Cursor, NotUnderstood};

/// Statements not understood from which on a free-form file is read in fixed form as well.
const UNKNOWN_MIN: usize = 5;

/// Parses a whole file with what it includes. Where its form is not given it is detected, and decided by the better
/// reading where the first one fails somewhere: some files can nearly be read both ways.
pub fn parse_file(path: &str, bytes: &[u8], reading: &Reading) -> (Tree, Form) {
    let parse = |form| {
        let expanded = expand(path, bytes, form, reading);
        let macros = Macros::of_command_line(reading.macros.iter().map(String::as_str));
        parse_text(&expanded.text, expanded.origin, macros)
    };
    if let Some(form) = reading.form_of(path) {
        return (parse(form), form);
    }
    let form = detect(path, bytes);
    let tree = parse(form);
    let n_unknown = tree.n_unknown();
    let (other_form, may_be_other) = match form {
        // The comments and marks of fixed form do not pass as free form.
        Form::Fixed => (Form::Free, n_unknown > 0),
        // Fixed form takes any line that begins with a `c` for a comment, so that it must be much better.
        Form::Free => (Form::Fixed, n_unknown >= UNKNOWN_MIN && n_unknown * 50 >= tree.statements.len()),
    };
    if !may_be_other {
        return (tree, form);
    }
    let other = parse(other_form);
    let is_better = match form {
        Form::Fixed => other.n_unknown() < n_unknown,
        Form::Free => other.n_unknown() * 4 < n_unknown,
    };
    // A wrong reading swallows whole lines as comments.
    let is_whole = other.statements.len() * 10 >= tree.statements.len() * 9;
    if is_better && is_whole { (other, other_form) } else { (tree, form) }
}

/// Parses a text in a given form, without what it includes.
pub fn parse(bytes: &[u8], form: Form) -> Tree {
    parse_text(bytes, Origin::alone("", form), Macros::default())
}

fn parse_text(text: &[u8], origin: Origin, macros: Macros) -> Tree {
    let mut parser = FileParser {
        tree: Tree::new(origin.clone()),
        reader: Reader::new(text, &origin.forms, macros),
        line: LogicalLine::default(),
        expanded: LogicalLine::default(),
        tokens: Vec::new(),
    };
    while let Some(item) = parser.reader.next(&mut parser.line) {
        let tree = &mut parser.tree;
        match item {
            Item::Statement => parser.statement(),
            Item::Directive(directive) => match directive.kind {
                DirectiveKind::If => tree.mark(Mark::If),
                DirectiveKind::Else => tree.mark(Mark::Else),
                DirectiveKind::EndIf => tree.mark(Mark::EndIf),
                DirectiveKind::Include(name) => {
                    let span = directive.span;
                    let inclusion = origin.inclusion(span.start);
                    tree.includes.push((tree.statements.len() as u32, Include { name, inclusion, span }));
                }
                DirectiveKind::Other => {}
            },
        }
    }
    parser.tree
}

struct FileParser<'a> {
    tree: Tree,
    reader: Reader<'a>,
    line: LogicalLine,
    /// The line with the texts of its macros.
    expanded: LogicalLine,
    tokens: Vec<Token>,
}

impl FileParser<'_> {
    /// Parses the statements of the logical line that was read last.
    fn statement(&mut self) {
        if self.line.has_macros() && self.with_macros() {
            return;
        }
        let form = self.reader.form();
        let before = self.tree.statements.len();
        parse_statements(&mut self.tree, &self.line, &mut self.tokens, form);
        // Many compilers are told to read beyond column 72; sequence numbers there must not be read.
        if self.line.is_cut && has_unknown(&self.tree, before) {
            self.reader.again_whole(&mut self.line);
            let kept = self.tree.statements.split_off(before);
            if !(self.line.has_macros() && self.with_macros()) {
                parse_statements(&mut self.tree, &self.line, &mut self.tokens, form);
            }
            if has_unknown(&self.tree, before) {
                self.tree.statements.truncate(before);
                self.tree.statements.extend(kept);
            }
        }
        self.tree.note_inclusions(before);
    }

    /// Parses the line with the texts of its macros in their places; `false` if no reading of it is understood. Several
    /// readings are branches beside each other.
    fn with_macros(&mut self) -> bool {
        let form = self.reader.form();
        let mut starts: Vec<u32> = Vec::new();
        let mut texts: Vec<String> = Vec::new();
        for reading in 0..self.reader.macros.n_readings(&self.line) {
            let is_expanded = self.reader.macros.expand(&self.line, form, reading, &mut self.expanded);
            if !is_expanded || texts.iter().any(|text| text == self.expanded.text()) {
                continue;
            }
            let before = self.tree.statements.len();
            parse_statements(&mut self.tree, &self.expanded, &mut self.tokens, form);
            if has_unknown(&self.tree, before) {
                self.tree.statements.truncate(before);
                continue;
            }
            starts.push(before as u32);
            texts.push(self.expanded.text().to_string());
        }
        if let [first, others @ ..] = starts.as_slice()
            && !others.is_empty()
        {
            self.tree.marks.push((*first, Mark::If));
            self.tree.marks.extend(others.iter().map(|&start| (start, Mark::Else)));
            self.tree.mark(Mark::EndIf);
        }
        !starts.is_empty()
    }
}

fn has_unknown(tree: &Tree, from: usize) -> bool {
    tree.statements[from..].iter().any(|statement| matches!(statement.kind, StatementKind::Unknown))
}

fn parse_statements(tree: &mut Tree, line: &LogicalLine, tokens: &mut Vec<Token>, form: Form) {
    tokens.clear();
    let text = line.text();
    lex(text, 0, text.len(), tokens);
    let mut label = line.label;
    let mut at = 0;
    // The number of tokens behind a statement stays the same while its words are split.
    while at < tokens.len() {
        let length = tokens[at..].iter().position(|token| token.kind == TokenKind::Semicolon);
        let end = length.map_or(tokens.len(), |length| at + length);
        if at < end {
            let mut cursor = Cursor::new(line, form, tokens, at, end);
            if form == Form::Free && cursor.kind(0) == TokenKind::Int && cursor.kind(1) != TokenKind::End {
                label = cursor.eat_digits();
            }
            let n_behind = parse_one(tree, &mut cursor, label.take(), line);
            at = tokens.len() - n_behind;
        } else {
            at = end;
        }
        at += 1;
    }
}

/// Parses one statement; returns the number of tokens behind it.
fn parse_one(tree: &mut Tree, cursor: &mut Cursor<'_>, label: Option<u32>, line: &LogicalLine) -> usize {
    let start = cursor.position();
    let before = tree.statements.len();
    let span = cursor.span();
    let result = match line.is_too_long {
        true => Err(NotUnderstood),
        false => statement::parse(tree, cursor, label),
    };
    let n_behind = cursor.n_behind();
    if result.is_err() {
        tree.statements.truncate(before);
        cursor.rewind(start);
        cursor.skip_to_end();
        let span = span.to(cursor.last_span());
        tree.statements.push(Statement { kind: StatementKind::Unknown, label, span });
    }
    n_behind
}
