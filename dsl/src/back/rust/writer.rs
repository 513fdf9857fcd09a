//! Indented text. Never knows what it writes.

use std::fmt::Display;

/// Columns per level of nesting.
const INDENT: usize = 4;

/// Collects lines.
#[derive(Default)]
pub(super) struct Writer {
    text: String,
    depth: usize,
}

impl Writer {
    /// One line; an empty one gets no indentation.
    pub(super) fn line(&mut self, line: impl Display) {
        let line = line.to_string();
        if !line.is_empty() {
            self.text.extend(std::iter::repeat_n(' ', self.depth * INDENT));
            self.text.push_str(&line);
        }
        self.text.push('\n');
    }

    /// `head {`, what `body` writes, and `}`.
    pub(super) fn block(&mut self, head: impl Display, body: impl FnOnce(&mut Writer)) {
        self.block_then(head, "", body);
    }

    /// A block with something after its brace.
    pub(super) fn block_then(&mut self, head: impl Display, tail: &str, body: impl FnOnce(&mut Writer)) {
        self.line(format_args!("{head} {{").to_string().trim_start());
        self.depth += 1;
        body(self);
        self.depth -= 1;
        self.line(format_args!("}}{tail}"));
    }

    /// Text that brings its own lines.
    pub(super) fn verbatim(&mut self, text: &str) {
        for line in text.lines() {
            self.line(line);
        }
    }

    /// All that was written.
    pub(super) fn finish(self) -> String {
        self.text
    }
}
