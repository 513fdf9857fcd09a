//! Logical lines become a tolerant tree: what is not understood costs that one statement. Never knows what a name means.

mod cursor;
mod expr;
mod headers;
mod keyword;
mod relocate;
mod statement;
mod tree;
mod types;

#[cfg(test)]
mod shapes;
#[cfg(test)]
mod sharing;
#[cfg(test)]
mod test;

pub use headers::Headers;
pub use tree::*;

use std::sync::Arc;

use rma_source::Span;

use crate::form::{
    DirectiveKind, Form, Item, LOGICAL_LINE_BYTES_MAX, LogicalLine, Macros, Reader, detect, is_balanced,
};
use crate::lex::{Lexer, Token, TokenKind};
use crate::source::{Origin, Reading, expand};
use cursor::Cursor;
use headers::{Before, Fragment, Known};

/// Statements not understood from which on a free-form file is read in fixed form as well.
const UNKNOWN_MIN: usize = 5;

/// Parses a whole file with what it includes. Where its form is not given it is detected, and decided by the better
/// reading where the first one fails somewhere: some files can nearly be read both ways.
pub fn parse_file(path: &str, bytes: &[u8], reading: &Reading) -> (Tree, Form) {
    let parse = |form| {
        let expanded = expand(path, bytes, form, reading);
        let macros = Macros::of_command_line(reading.macros.iter().map(String::as_str));
        parse_text(&expanded.text, expanded.origin, macros, Some(&reading.headers))
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
    if !may_be_other || !may_be_read_better(&tree, form, other_form, reading) {
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

/// Whether something in a text that was not understood might be in the other form. An included file that is no better in
/// the other form by itself is not worth reading all of the text again, each time that it is included.
fn may_be_read_better(tree: &Tree, form: Form, other_form: Form, reading: &Reading) -> bool {
    tree.files_with_unknown().into_iter().any(|file| match file {
        0 => true,
        _ => {
            let bytes = &tree.origin.files[file as usize].bytes;
            let n_unknown = |form| reading.headers.n_unknown(bytes, form);
            n_unknown(other_form) < n_unknown(form)
        }
    })
}

/// Parses a text in a given form, without what it includes.
pub fn parse(bytes: &[u8], form: Form) -> Tree {
    parse_text(bytes, Origin::alone("", form), Macros::default(), None)
}

fn parse_text(text: &[u8], origin: Origin, macros: Macros, headers: Option<&Headers>) -> Tree {
    let forms = origin.forms.clone();
    let reader = Reader::new(text, &forms, macros);
    let mut tree = Tree::new(origin);
    tree.expect(text.len());
    let mut parser = FileParser::new(tree, reader, text, headers);
    parser.run();
    parser.tree.shrink();
    parser.tree
}

struct FileParser<'a> {
    tree: Tree,
    reader: Reader<'a>,
    text: &'a [u8],
    headers: Option<&'a Headers>,
    line: LogicalLine,
    /// The line with the texts of its macros.
    expanded: LogicalLine,
    tokens: Vec<Token>,
}

impl<'a> FileParser<'a> {
    fn new(tree: Tree, reader: Reader<'a>, text: &'a [u8], headers: Option<&'a Headers>) -> FileParser<'a> {
        FileParser {
            tree,
            reader,
            text,
            headers,
            line: LogicalLine::default(),
            expanded: LogicalLine::default(),
            tokens: Vec::new(),
        }
    }

    fn run(&mut self) {
        while let Some(item) = self.reader.next(&mut self.line) {
            let mut may_include = false;
            match item {
                Item::Statement => {
                    self.statement();
                    let last = self.tree.statements.last();
                    may_include = last.is_some_and(|last| matches!(last.kind, StatementKind::Include { .. }));
                }
                Item::Directive(directive) => match directive.kind {
                    DirectiveKind::If => self.tree.mark(Mark::If),
                    DirectiveKind::Else => self.tree.mark(Mark::Else),
                    DirectiveKind::EndIf => self.tree.mark(Mark::EndIf),
                    DirectiveKind::Include(name) => {
                        let span = directive.span;
                        let inclusion = self.tree.origin.inclusion(span.start);
                        let at = self.tree.statements.len() as u32;
                        self.tree.add_include(at, Include { name, inclusion, span });
                        may_include = true;
                    }
                    DirectiveKind::Other => {}
                },
            }
            if may_include && let Some(headers) = self.headers {
                self.included(headers);
            }
        }
    }

    /// Takes the text that is put in at this place from the ones that were parsed before, if it is among them.
    fn included(&mut self, headers: &Headers) {
        let Some(start) = self.reader.position() else { return };
        let Some(place) = self.tree.origin.put_in_at(start as u32) else { return };
        let text = &self.text[place.range()];
        if text.len() < headers::TEXT_BYTES_MIN {
            return;
        }
        let Some(known) = headers.text(text, self.reader.form()) else { return };
        let before = Before {
            macros: known.concern(&self.reader.macros),
            sureness: self.reader.sureness(),
            has_missing_files: self.tree.has_missing_files(),
            macro_types: headers::hash_of(self.tree.macro_types().join(",").as_bytes()),
        };
        let fragment = match known.meet(before) {
            Known::New | Known::InPlace => return,
            Known::Parsed(fragment) => fragment,
            Known::Once => {
                let fragment = self.fragment(place, headers).map(Arc::new);
                headers.learn(&known, before, fragment.clone());
                let Some(fragment) = fragment else { return };
                fragment
            }
        };
        let end = place.end as usize;
        if !self.reader.goes_on_at(end) && self.tree.take_in(&fragment, place.start) {
            self.reader.pass(end, &fragment.changes);
        }
    }

    /// What a part of the text comes to, if that does not depend on what stands behind it.
    fn fragment(&self, place: Span, headers: &Headers) -> Option<Fragment> {
        let text = &self.text[place.range()];
        if !is_balanced(text) {
            return None;
        }
        let reader = self.reader.part(place.end as usize);
        let mut part = FileParser::new(self.tree.part(), reader, self.text, Some(headers));
        part.run();
        part.tree.shrink();
        let FileParser { tree, reader, .. } = part;
        let is_whole = reader.is_whole();
        is_whole.then_some(Fragment { tree, start: place.start, changes: reader.changes })
    }

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
