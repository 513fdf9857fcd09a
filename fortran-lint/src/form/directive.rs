//! Preprocessor lines. Never evaluates a condition; both branches are seen, but for `#if 0`.

use std::collections::HashMap;

use rma_source::Span;

use super::{Choice, MacroChange, Physical, Reader, is_space};

/// A line that belongs to the C preprocessor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Directive {
    /// What it does.
    pub kind: DirectiveKind,
    /// The whole line, with its continuations.
    pub span: Span,
}

/// What a preprocessor line does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DirectiveKind {
    /// `#if`, `#ifdef`, `#ifndef`.
    If,
    /// `#elif` and its kin, and `#else`.
    Else,
    /// `#endif`.
    EndIf,
    /// `#include`, with the name between the quotes or angle brackets.
    Include(String),
    /// Anything else: `#line`, `#pragma`, editor lines; also `#define` and `#undef`, which the reader heeds itself.
    Other,
}

/// Whether a branch can ever be compiled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Branch {
    Possible,
    /// `#if 0`, which commonly holds prose.
    Never,
}

impl Reader<'_> {
    pub(super) fn is_directive(&self, line: Physical) -> bool {
        let bytes = self.bytes_of(line);
        let first = bytes.iter().position(|&byte| byte != b' ').unwrap_or(bytes.len());
        // In fixed form column 6 may hold a `#` as continuation mark.
        bytes.get(first) == Some(&b'#') && first < 5
    }

    /// Reads the directive at `line` and moves behind it; lines of a branch that can never be compiled are left out.
    pub(super) fn take_directive(&mut self, line: Physical) -> Directive {
        let (directive, branch) = self.read_directive(line);
        match directive.kind {
            DirectiveKind::If => self.n_conditions += 1,
            DirectiveKind::EndIf => self.n_conditions = self.n_conditions.saturating_sub(1),
            _ => {}
        }
        if branch == Branch::Never {
            self.at = self.end_of_branch(self.at);
        }
        directive
    }

    pub(super) fn read_directive(&mut self, line: Physical) -> (Directive, Branch) {
        let mut last = line;
        while self.bytes_of(last).last() == Some(&b'\\') {
            match self.physical(last.next) {
                Some(next) => last = next,
                None => break,
            }
        }
        self.at = last.next;
        let span = Span::new(line.start, last.end);
        let text = String::from_utf8_lossy(self.bytes_of(line));
        let text = text.trim_start().trim_start_matches('#').trim_start();
        let word_length = text.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (word, rest) = text.split_at(word_length);
        let mut branch = Branch::Possible;
        let kind = match word {
            "if" => {
                if rest.trim() == "0" || rest.trim_start().starts_with("0 ") {
                    branch = Branch::Never;
                }
                DirectiveKind::If
            }
            "ifdef" | "ifndef" => DirectiveKind::If,
            "elif" | "elifdef" | "elifndef" | "else" => DirectiveKind::Else,
            "endif" => DirectiveKind::EndIf,
            "include" => {
                let name = rest.trim().trim_start_matches(['"', '<', '\'']);
                let length = name.find(['"', '>', '\'']).unwrap_or(name.len());
                DirectiveKind::Include(name[..length].to_string())
            }
            "define" => {
                let body = String::from_utf8_lossy(&self.bytes[line.start..last.end]);
                let body = body.replace("\\\r\n", " ").replace("\\\n", " ");
                let body = body.trim_start().trim_start_matches('#').trim_start();
                self.change(MacroChange::Define(body["define".len()..].to_string(), self.sureness()));
                DirectiveKind::Other
            }
            "undef" => {
                self.change(MacroChange::Undefine(rest.trim().to_string(), self.sureness()));
                DirectiveKind::Other
            }
            _ => DirectiveKind::Other,
        };
        (Directive { kind, span }, branch)
    }

    fn change(&mut self, change: MacroChange) {
        self.macros.repeat(std::slice::from_ref(&change));
        self.changes.push(change);
    }

    /// First byte of the line with the `#else`, `#elif` or `#endif` that ends the branch starting at `at`.
    pub(super) fn end_of_branch(&self, mut at: usize) -> usize {
        let mut depth = 0usize;
        while let Some(line) = self.physical(at) {
            if self.is_directive(line) {
                match directive_word(self.bytes_of(line)) {
                    b"if" | b"ifdef" | b"ifndef" => depth += 1,
                    b"endif" if depth == 0 => return at,
                    b"endif" => depth -= 1,
                    _ if depth == 0 && is_else(self.bytes_of(line)) => return at,
                    _ => {}
                }
            }
            at = line.next;
        }
        at
    }

    /// Walks over the directives that stand between the lines of one statement: of every `#if` one branch is taken, the
    /// first that can be compiled or the last. `open` counts the `#if`s entered inside the statement.
    pub(super) fn directive_inside(&mut self, line: Physical, open: &mut usize) {
        // What is defined there holds under the conditions there.
        self.n_conditions += *open;
        let (directive, branch) = self.read_directive(line);
        self.n_conditions -= *open;
        match directive.kind {
            DirectiveKind::If => {
                self.has_branches |= branch == Branch::Possible;
                match self.choice {
                    Choice::Last => self.enter_last_branch(open),
                    Choice::First => {
                        *open += 1;
                        if branch == Branch::Never {
                            self.at = self.end_of_branch(self.at);
                            self.skip_one_directive();
                        }
                    }
                }
            }
            DirectiveKind::Else => {
                // The other branches of this `#if` are left out, whether it was opened inside the statement or before.
                loop {
                    self.at = self.end_of_branch(self.at);
                    let Some(next) = self.physical(self.at) else { return };
                    let (directive, _) = self.read_directive(next);
                    if directive.kind == DirectiveKind::EndIf {
                        self.note_endif(directive.span, open);
                        return;
                    }
                }
            }
            DirectiveKind::EndIf => self.note_endif(directive.span, open),
            DirectiveKind::Include(_) | DirectiveKind::Other => {}
        }
    }

    /// Moves from behind an `#if` to its last branch, or behind all of it where it has only one.
    fn enter_last_branch(&mut self, open: &mut usize) {
        let mut n_branches = 1;
        loop {
            let end = self.end_of_branch(self.at);
            let Some(line) = self.physical(end) else {
                self.at = end;
                return;
            };
            let is_last = directive_word(self.bytes_of(line)) == b"endif";
            if is_last && n_branches > 1 {
                *open += 1;
                return;
            }
            self.at = line.next;
            if is_last {
                return;
            }
            n_branches += 1;
        }
    }

    /// The `#endif` that belongs to the `#else` or its kin at `line`, if a continuation follows it: what stands before
    /// either of them goes on there.
    pub(super) fn joins(&mut self, line: Physical) -> Option<usize> {
        if self.joins.is_none() {
            self.joins = Some(self.find_joins());
        }
        self.joins.as_ref()?.get(&line.start).copied()
    }

    /// First bytes of all such lines, found in one go, since each statement before one of them asks.
    fn find_joins(&self) -> HashMap<usize, usize> {
        let mut joins = HashMap::new();
        let mut open: Vec<Vec<usize>> = Vec::new();
        let mut at = 0;
        while let Some(line) = self.physical(at) {
            at = line.next;
            if !self.is_directive(line) {
                continue;
            }
            match directive_word(self.bytes_of(line)) {
                b"if" | b"ifdef" | b"ifndef" => open.push(Vec::new()),
                b"else" | b"elif" | b"elifdef" | b"elifndef" => {
                    if let Some(branches) = open.last_mut() {
                        branches.push(line.start);
                    }
                }
                b"endif" => {
                    let branches = open.pop().unwrap_or_default();
                    if !branches.is_empty() && self.is_continued_at(line.next) {
                        joins.extend(branches.into_iter().map(|branch| (branch, line.start)));
                    }
                }
                _ => {}
            }
        }
        joins
    }

    fn skip_one_directive(&mut self) {
        if let Some(line) = self.physical(self.at) {
            let ends = directive_word(self.bytes_of(line)) == b"endif";
            if !ends {
                self.read_directive(line);
            }
        }
    }

    /// An `#endif` whose `#if` stands before the statement is handed out after it.
    fn note_endif(&mut self, span: Span, open: &mut usize) {
        match open.checked_sub(1) {
            Some(fewer) => *open = fewer,
            None => self.pending_endifs.push(span),
        }
    }
}

/// Whether each condition in a text ends in it and begins in it.
pub fn is_balanced(text: &[u8]) -> bool {
    let mut depth = 0usize;
    for line in text.split(|&byte| byte == b'\n') {
        if line.trim_ascii_start().first() != Some(&b'#') {
            continue;
        }
        match directive_word(line) {
            b"if" | b"ifdef" | b"ifndef" => depth += 1,
            b"endif" | b"else" | b"elif" | b"elifdef" | b"elifndef" if depth == 0 => return false,
            b"endif" => depth -= 1,
            _ => {}
        }
    }
    depth == 0
}

/// Whether a preprocessor line begins another branch.
pub(super) fn is_else(bytes: &[u8]) -> bool {
    matches!(directive_word(bytes), b"else" | b"elif" | b"elifdef" | b"elifndef")
}

fn directive_word(bytes: &[u8]) -> &[u8] {
    let skip =
        |bytes: &[u8], from: usize| from + bytes[from..].iter().take_while(|&&byte| is_space(byte)).count();
    let hash = skip(bytes, 0);
    let start = skip(bytes, (hash + 1).min(bytes.len()));
    let length = bytes[start..].iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    &bytes[start..start + length]
}
