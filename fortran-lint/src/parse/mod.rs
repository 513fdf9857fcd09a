//! Logical lines become a tolerant tree: what is not understood costs that one statement. Never knows what a name means.

mod cursor;
mod expr;
mod keyword;
mod statement;
mod tree;
mod types;

#[cfg(test)]
mod shapes;
#[cfg(test)]
mod test;

pub use tree::*;

use crate::form::{DirectiveKind, Form, Item, LOGICAL_LINE_BYTES_MAX, LogicalLine, Macros, Reader, detect};
use crate::lex::{Lexer, Token, TokenKind};
use crate::source::{Origin, Reading, expand};
use cursor::Cursor;

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
    parser.tree.shrink();
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
        let is_optional = self.line.is_optional;
        if is_optional {
            self.tree.mark(Mark::If);
        }
        let before = self.tree.statements.len();
        let n_marks = self.tree.marks.len();
        self.surely();
        if self.reader.has_branches() {
            self.last_branches(before, n_marks);
        }
        if is_optional {
            // What is no statement is a comment indeed.
            if has_unknown(&self.tree, before) {
                self.tree.statements.truncate(before);
            }
            self.tree.mark(Mark::EndIf);
        }
    }

    /// Parses the line again with the last branches of the conditions inside it; its first reading begins at
    /// the statement `before` and the mark `n_marks`. Both readings are kept as branches beside each other, or the one that is understood.
    fn last_branches(&mut self, before: usize, n_marks: usize) {
        let text = self.line.text().to_string();
        self.reader.again_last(&mut self.line);
        if self.line.text() == text {
            return;
        }
        let (middle, n_marks_middle) = (self.tree.statements.len(), self.tree.marks.len());
        self.surely();
        if has_unknown(&self.tree, middle) {
            self.tree.statements.truncate(middle);
            self.tree.marks.truncate(n_marks_middle);
        } else if has_unknown(&self.tree, before) {
            self.tree.statements.drain(before..middle);
            self.tree.marks.truncate(n_marks);
        } else if !self.tree.statements[before..]
            .iter()
            .all(|statement| may_stand_beside_another(&statement.kind))
        {
            self.tree.statements.truncate(middle);
            self.tree.marks.truncate(n_marks_middle);
        } else if middle < self.tree.statements.len() {
            self.tree.marks.insert(n_marks_middle, (middle as u32, Mark::Else));
            self.tree.marks.insert(n_marks, (before as u32, Mark::If));
            self.tree.mark(Mark::EndIf);
        }
    }

    /// Parses the statements of a line that is no comment.
    fn surely(&mut self) {
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
            // An argument may stand at the beginning of the text, but the statement begins with the macro.
            if let Some(first) = self.tree.statements.get_mut(before) {
                first.span.start = self.line.span.start;
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

/// Whether two readings of a statement may both be kept. What opens, closes or counts something is read once, with the
/// first branches of the conditions inside it.
fn may_stand_beside_another(kind: &StatementKind) -> bool {
    use StatementKind as S;
    matches!(
        kind,
        S::Assignment { .. }
            | S::PointerAssignment { .. }
            | S::Call { .. }
            | S::IfStatement(_)
            | S::Masked(_)
            | S::Io { .. }
            | S::Allocate(_)
            | S::Deallocate(_)
            | S::Nullify(_)
            | S::Declaration { .. }
            | S::Attribute { .. }
            | S::Data(_)
            | S::Use { .. }
    )
}

fn has_unknown(tree: &Tree, from: usize) -> bool {
    tree.statements[from..].iter().any(|statement| matches!(statement.kind, StatementKind::Unknown))
}

/// Parses the statements of a logical line, of which several are separated by `;`.
fn parse_statements(tree: &mut Tree, line: &LogicalLine, tokens: &mut Vec<Token>, form: Form) {
    let mut lexer = Lexer::new(line.text());
    let mut label = line.label;
    loop {
        // Each statement has its tokens to itself, so that splitting a word costs no more in a long line.
        tokens.clear();
        let has_more = lexer.statement(tokens);
        if !tokens.is_empty() {
            let mut cursor = Cursor::new(line, form, tokens);
            if form == Form::Free && cursor.kind(0) == TokenKind::Int && cursor.kind(1) != TokenKind::End {
                label = cursor.eat_digits();
            }
            parse_one(tree, &mut cursor, label.take());
        }
        if !has_more {
            return;
        }
    }
}

fn parse_one(tree: &mut Tree, cursor: &mut Cursor<'_>, label: Option<u32>) {
    let before = tree.statements.len();
    let start = cursor.position();
    let span = cursor.span();
    let reason = match cursor.line.is_too_long {
        true => Some(format!("the line is longer than {LOGICAL_LINE_BYTES_MAX} bytes")),
        false => statement::parse(tree, cursor, label).err().map(|_| cursor.reason()),
    };
    if let Some(reason) = reason {
        tree.statements.truncate(before);
        cursor.rewind(start);
        cursor.skip_to_end();
        let span = span.to(cursor.last_span());
        tree.reasons.insert(before as u32, reason.into());
        tree.statements.push(Statement { kind: StatementKind::Unknown, label, span });
    }
}
