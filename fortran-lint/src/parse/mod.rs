//! Logical lines become a tolerant tree: what is not understood costs that one statement. Never knows what a name means.

mod cursor;
mod expr;
mod keyword;
mod statement;
mod tree;

#[cfg(test)]
mod test;

pub use tree::*;

use crate::form::{DirectiveKind, Form, Item, LogicalLine, Reader, detect};
use crate::lex::{Token, TokenKind, lex};
use cursor::{Cursor, NotUnderstood};

/// Statements not understood from which on a file is read in the other form as well.
const UNKNOWN_MIN: usize = 5;

/// Parses a whole file. Its form is detected, and decided by the better reading where the first one fails somewhere:
/// some files can nearly be read both ways.
pub fn parse_file(path: &str, bytes: &[u8]) -> (Tree, Form) {
    let form = detect(path, bytes);
    let tree = parse(bytes, form);
    let n_unknown = tree.n_unknown();
    // A few bad statements say nothing about the form.
    if n_unknown < UNKNOWN_MIN || n_unknown * 50 < tree.statements.len() {
        return (tree, form);
    }
    let other_form = match form {
        Form::Fixed => Form::Free,
        Form::Free => Form::Fixed,
    };
    let other = parse(bytes, other_form);
    // A wrong reading swallows whole lines as comments, so that it must understand more, not only fail less.
    let is_better =
        other.n_unknown() * 4 < n_unknown && other.statements.len() * 10 >= tree.statements.len() * 9;
    if is_better { (other, other_form) } else { (tree, form) }
}

/// Parses a whole file in a given form.
pub fn parse(bytes: &[u8], form: Form) -> Tree {
    let mut tree = Tree::default();
    let mut reader = Reader::new(bytes, form);
    let mut line = LogicalLine::default();
    let mut tokens = Vec::new();
    while let Some(item) = reader.next(&mut line) {
        let at = tree.statements.len() as u32;
        match item {
            Item::Statement => parse_line(&mut tree, &mut reader, &mut line, &mut tokens, form),
            Item::Directive(directive) => match directive.kind {
                DirectiveKind::If => tree.marks.push((at, Mark::If)),
                DirectiveKind::Else => tree.marks.push((at, Mark::Else)),
                DirectiveKind::EndIf => tree.marks.push((at, Mark::EndIf)),
                DirectiveKind::Include(name) => tree.includes.push((at, name)),
                DirectiveKind::Other => {}
            },
        }
    }
    tree
}

/// Parses the statements of one logical line.
fn parse_line(
    tree: &mut Tree,
    reader: &mut Reader<'_>,
    line: &mut LogicalLine,
    tokens: &mut Vec<Token>,
    form: Form,
) {
    let before = tree.statements.len();
    parse_statements(tree, line, tokens, form);
    let fails = |tree: &Tree| {
        tree.statements[before..].iter().any(|statement| matches!(statement.kind, StatementKind::Unknown))
    };
    // Many compilers are told to read beyond column 72; sequence numbers there must not be read.
    if line.is_cut && fails(tree) {
        reader.again_whole(line);
        let kept = tree.statements.split_off(before);
        parse_statements(tree, line, tokens, form);
        if fails(tree) {
            tree.statements.truncate(before);
            tree.statements.extend(kept);
        }
    }
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
