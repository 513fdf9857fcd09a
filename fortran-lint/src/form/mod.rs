//! Physical lines become logical lines with the exact place of every character. Never looks at what a statement means.
//!
//! A logical line is one statement (or several, separated by `;`) without comments and continuation marks, in lower
//! case outside character literals, in ASCII. In fixed form its blanks are gone as well, because they mean nothing
//! there. [`LogicalLine::source_of`] leads back to the file.

mod detect;
mod directive;
mod fixed;
mod free;
mod macros;
mod template;

pub use detect::{Form, detect, form_beside, text_score};
pub use directive::{Directive, DirectiveKind, is_balanced};
pub use macros::{MacroChange, Macros, Sureness};

use std::cell::Cell;
use std::collections::HashMap;

use rma_source::Span;

use macros::MacroId;

/// Longest logical line that is kept; what lies beyond is dropped and the statement counts as skipped.
pub const LOGICAL_LINE_BYTES_MAX: usize = 1 << 20;

/// Stands for a byte outside ASCII, so that places stay exact.
pub const FOREIGN: u8 = 0x1a;

/// Where a run of adjacent characters of a logical line comes from.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// First byte in the logical line.
    at: u32,
    /// First byte in the file.
    source: u32,
    /// Zero where the file has the same characters; otherwise all of them stand for so many bytes of it.
    width: u32,
}

/// One logical line; the buffers are reused from line to line.
#[derive(Default, Debug)]
pub struct LogicalLine {
    text: String,
    runs: Vec<Run>,
    /// The run that was asked for last.
    last_run: Cell<usize>,
    /// Statement label of fixed form, where it stands in columns of its own.
    pub label: Option<u32>,
    /// From the first byte to behind the last byte in the file.
    pub span: Span,
    /// Length of the text up to the first blank between words. Macros of fixed form end there and nowhere else.
    pub first_gap: Option<usize>,
    /// Characters beyond the last column were left out.
    pub is_cut: bool,
    /// The line is longer than [`LOGICAL_LINE_BYTES_MAX`].
    pub is_too_long: bool,
    /// Some compilers or flags take it for a comment: a D-line, or one with the sentinel `!$`.
    pub is_optional: bool,
    /// A continuation of fixed form without the line that it would continue.
    pub is_fragment: bool,
    /// Names of macros in order.
    uses: Vec<MacroUse>,
}

/// A name in a logical line that a macro has.
#[derive(Clone, Copy, Debug)]
struct MacroUse {
    /// First byte in the logical line.
    at: u32,
    length: u32,
    id: MacroId,
}

impl LogicalLine {
    /// The statement text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The place in the file of the character at `at`.
    pub fn source_of(&self, at: usize) -> u32 {
        let at = at as u32;
        match self.run_of(at) {
            Some(run) if run.width > 0 => run.source,
            Some(run) => run.source + (at - run.at),
            None => self.span.start,
        }
    }

    /// The run that the character at `at` belongs to.
    fn run_of(&self, at: u32) -> Option<&Run> {
        // Questions come from left to right, so that the answer is mostly the last one or the next.
        let holds = |i: usize| {
            self.runs.get(i).is_some_and(|run| run.at <= at)
                && self.runs.get(i + 1).is_none_or(|next| at < next.at)
        };
        let last = self.last_run.get();
        let i = match (holds(last), holds(last + 1)) {
            (true, _) => last,
            (_, true) => last + 1,
            _ => self.runs.partition_point(|run| run.at <= at).checked_sub(1)?,
        };
        self.last_run.set(i);
        self.runs.get(i)
    }

    /// The span in the file of a non-empty range of the text.
    pub fn span_of(&self, start: usize, end: usize) -> Span {
        let first = self.source_of(start);
        let last = end.max(start + 1) - 1;
        Span { start: first, end: (self.source_of(last) + self.width_of(last)).max(first) }
    }

    /// How many bytes of the file the character at `at` stands for.
    fn width_of(&self, at: usize) -> u32 {
        self.run_of(at as u32).map_or(1, |run| run.width.max(1))
    }

    /// Whether names of macros stand in it.
    pub fn has_macros(&self) -> bool {
        !self.uses.is_empty()
    }

    fn clear(&mut self, start: usize) {
        self.text.clear();
        self.runs.clear();
        self.label = None;
        self.first_gap = None;
        self.span = Span::at(start);
        self.is_cut = false;
        self.is_too_long = false;
        self.is_optional = false;
        self.is_fragment = false;
        self.uses.clear();
    }

    /// Takes the last character back.
    fn pop(&mut self) {
        self.text.pop();
        if self.runs.last().is_some_and(|run| run.at as usize == self.text.len()) {
            self.runs.pop();
        }
    }

    fn push(&mut self, byte: u8, source: usize) {
        if self.text.len() >= LOGICAL_LINE_BYTES_MAX {
            self.is_too_long = true;
            return;
        }
        let at = self.text.len() as u32;
        let source = source as u32;
        let continues =
            self.runs.last().is_some_and(|run| run.width == 0 && run.source + (at - run.at) == source);
        if !continues {
            self.runs.push(Run { at, source, width: 0 });
        }
        self.text.push(char::from(if byte.is_ascii() && byte != 0 { byte } else { FOREIGN }));
    }
}

/// What the reader met next.
#[derive(Debug)]
pub enum Item {
    /// The logical line was filled.
    Statement,
    /// A preprocessor line.
    Directive(Directive),
}

/// How far a fixed-form line reaches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    /// Up to the standard's column 72.
    Standard,
    /// To its end.
    Whole,
}

/// Last column of a fixed-form statement.
const FIXED_COLUMNS: usize = 72;

/// Reads logical lines from the text of one file and of what it includes.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    /// Where the text is written in which form, from the start on.
    forms: &'a [(u32, Form)],
    /// How many of `forms` have begun.
    n_forms: usize,
    /// The form of the statement that was read last.
    form: Form,
    /// Macros that are defined so far.
    pub macros: Macros,
    /// What was defined in this text.
    pub changes: Vec<MacroChange>,
    /// Levels of `#if` that are open.
    n_conditions: usize,
    /// First byte of the next physical line.
    at: usize,
    /// First byte of the logical line that was read last.
    began: usize,
    /// Directives met inside a statement, to be handed out after it.
    pending_endifs: Vec<Span>,
    /// Which branches inside a statement are read.
    choice: Choice,
    /// A condition stands inside the statement that was read last.
    has_branches: bool,
    /// Where to go on when the other branch of a condition ends in the same lines as the statement at hand, and how many
    /// directives were pending there.
    resume: Option<(usize, usize)>,
    /// The text ended inside something.
    ends_inside: Cell<bool>,
    /// Lines of `#else` whose branches go on behind the `#endif`, each with that, once they are asked for.
    joins: Option<HashMap<usize, usize>>,
}

/// Which branch of a condition inside a statement is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Choice {
    First,
    Last,
}

/// One physical line: the bytes `start..end` without the line end, and where the next line starts.
#[derive(Clone, Copy, Debug)]
struct Physical {
    start: usize,
    end: usize,
    next: usize,
}

impl<'a> Reader<'a> {
    /// A reader over the whole of `bytes` with the macros that no file defines. `forms` holds where each form begins,
    /// the first at the start.
    pub fn new(bytes: &'a [u8], forms: &'a [(u32, Form)], macros: Macros) -> Reader<'a> {
        let at = if bytes.starts_with(&[0xef, 0xbb, 0xbf]) { 3 } else { 0 };
        let form = forms.first().map_or(Form::Free, |(_, form)| *form);
        Reader {
            bytes,
            forms,
            n_forms: 1,
            form,
            macros,
            changes: Vec::new(),
            n_conditions: 0,
            at,
            began: 0,
            pending_endifs: Vec::new(),
            choice: Choice::First,
            has_branches: false,
            resume: None,
            ends_inside: Cell::new(false),
            joins: None,
        }
    }

    /// A reader over one part of this text, up to `end` and from where this reader stands: what it reads is what this one
    /// would, as long as [`Reader::is_whole`] holds at the end.
    pub fn part(&self, end: usize) -> Reader<'a> {
        let mut part = Reader::new(&self.bytes[..end], self.forms, self.macros.clone());
        part.at = self.at;
        part.began = self.at;
        part.n_forms = self.n_forms;
        part.form = self.form;
        part.n_conditions = self.n_conditions.min(1);
        part
    }

    /// First byte of the next physical line, where no directive waits to be handed out first.
    pub fn position(&self) -> Option<usize> {
        self.pending_endifs.is_empty().then_some(self.at)
    }

    /// Whether a condition is open.
    pub fn sureness(&self) -> Sureness {
        if self.n_conditions == 0 { Sureness::Always } else { Sureness::Conditional }
    }

    /// Passes over a part that was read already, which defines some macros.
    pub fn pass(&mut self, end: usize, changes: &[MacroChange]) {
        self.at = end;
        self.macros.repeat(changes);
        self.changes.extend_from_slice(changes);
    }

    /// Whether a statement that ends at `at` goes on behind it.
    pub fn goes_on_at(&self, at: usize) -> bool {
        self.form == Form::Fixed && self.is_continued_behind_directives(at)
    }

    /// Whether nothing was left open at the end of the text.
    pub fn is_whole(&self) -> bool {
        self.pending_endifs.is_empty() && !self.ends_inside.get()
    }

    /// The form of the statement that was read last.
    pub fn form(&self) -> Form {
        self.form
    }

    /// The next statement or directive; `None` at the end of the file.
    pub fn next(&mut self, line: &mut LogicalLine) -> Option<Item> {
        if let Some(span) = self.pending_endifs.pop() {
            self.n_conditions = self.n_conditions.saturating_sub(1);
            return Some(Item::Directive(Directive { kind: DirectiveKind::EndIf, span }));
        }
        while let Some((_, form)) = self.forms.get(self.n_forms).filter(|(at, _)| *at as usize <= self.at) {
            self.form = *form;
            self.n_forms += 1;
        }
        match self.form {
            Form::Fixed => self.next_fixed(line, Width::Standard),
            Form::Free => self.next_free(line),
        }
    }

    /// Whether a condition stands inside the statement that was read last.
    pub fn has_branches(&self) -> bool {
        self.has_branches
    }

    /// Reads the statement again that [`Reader::next`] gave last, with the last branch of each condition inside it.
    pub fn again_last(&mut self, line: &mut LogicalLine) {
        let (at, pending) = (self.at, std::mem::take(&mut self.pending_endifs));
        self.at = self.began;
        self.choice = Choice::Last;
        match self.form {
            Form::Fixed => self.next_fixed(line, Width::Standard),
            Form::Free => self.next_free(line),
        };
        self.choice = Choice::First;
        (self.at, self.pending_endifs) = (at, pending);
    }

    /// Reads the statement again that [`Reader::next`] gave last, without the limit of 72 columns.
    pub fn again_whole(&mut self, line: &mut LogicalLine) {
        let (at, pending) = (self.at, std::mem::take(&mut self.pending_endifs));
        self.at = self.began;
        self.next_fixed(line, Width::Whole);
        (self.at, self.pending_endifs) = (at, pending);
    }

    fn physical(&self, at: usize) -> Option<Physical> {
        let rest = self.bytes.get(at..).filter(|rest| !rest.is_empty())?;
        // A lone carriage return ends a line too, as in very old files; the line index counts them the same way.
        let length = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let ending = match rest.get(length..) {
            Some([b'\r', b'\n', ..]) => 2,
            Some([_, ..]) => 1,
            _ => 0,
        };
        Some(Physical { start: at, end: at + length, next: at + length + ending })
    }

    fn bytes_of(&self, line: Physical) -> &'a [u8] {
        &self.bytes[line.start..line.end]
    }

    /// Whether a comment of the preprocessor's language starts here, as some sources have them before a licence.
    fn is_c_comment(&self, line: Physical) -> bool {
        self.bytes_of(line).trim_ascii_start().starts_with(b"/*")
    }

    /// First byte of the line behind a comment.
    fn behind_comment(&self, line: Physical) -> usize {
        if !self.is_c_comment(line) {
            return line.next;
        }
        let mut last = line;
        loop {
            if self.bytes_of(last).windows(2).any(|pair| pair == b"*/") {
                return last.next;
            }
            match self.physical(last.next) {
                Some(next) => last = next,
                // Not a comment after all: it must not swallow the file.
                None => {
                    self.ends_inside.set(true);
                    return line.next;
                }
            }
        }
    }

    /// Notes that a macro's name starts at `i`, which is outside character literals and before `end`.
    fn note_macro(&self, line: &mut LogicalLine, i: usize, end: usize) {
        if !self.macros.may_start_with(self.bytes[i])
            || i.checked_sub(1).is_some_and(|k| is_word(self.bytes[k]))
        {
            return;
        }
        let length = self.bytes[i..end].iter().take_while(|&&byte| is_word(byte)).count();
        if let Some(id) = self.macros.find(&self.bytes[i..i + length]) {
            line.uses.push(MacroUse { at: line.text.len() as u32, length: length as u32, id });
        }
    }

    fn is_blank(&self, line: Physical) -> bool {
        self.bytes_of(line).iter().all(|&byte| is_space(byte))
    }
}

/// Blanks of Fortran text. Form feeds and vertical tabs appear in listings that became sources.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0b | 0x0c)
}

/// Whether a comment of the preprocessor's language starts here and ends on the same line.
fn is_c_comment_in(rest: &[u8]) -> bool {
    rest.starts_with(b"/*") && rest[2..].windows(2).any(|pair| pair == b"*/")
}

/// Its length.
fn c_comment_length(comment: &[u8]) -> usize {
    let inner = comment[2..].windows(2).position(|pair| pair == b"*/");
    inner.map_or(comment.len(), |inner| inner + 4)
}

/// Characters of names.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether a Hollerith constant may start behind this text, so that `5h` counts characters.
///
/// `real*8 h`, `do 10 h = …` and names that end in digits look alike once blanks are gone.
fn hollerith_length(text: &[u8]) -> Option<(usize, usize)> {
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let before = text.len().checked_sub(digits + 1).map(|at| text[at]);
    let may_start = match before {
        Some(b'(' | b')' | b',' | b'/' | b'=' | b'-' | b'+') => true,
        // A repeat count, as in DATA x /3*4Habcd/.
        Some(b'*') => text.len().checked_sub(digits + 2).is_some_and(|at| text[at].is_ascii_digit()),
        // An operator, as in x.eq.4Habcd.
        Some(b'.') => text.len().checked_sub(digits + 2).is_some_and(|at| text[at].is_ascii_alphabetic()),
        _ => false,
    };
    if digits == 0 || digits > 4 || !may_start {
        return None;
    }
    let length = text[text.len() - digits..].iter().fold(0, |sum, &byte| sum * 10 + usize::from(byte - b'0'));
    Some((digits, length))
}
