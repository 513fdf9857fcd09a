//! A statement's lines, and how a neighbour of it is written: its form, indentation, case and line end. Never looks at
//! what the statement means.

use rma_source::Span;

use crate::form::Form;

/// Last column of a statement.
const FIXED_COLUMNS_MAX: usize = 72;
/// The same for free form.
const FREE_COLUMNS_MAX: usize = 132;
/// Where a fixed-form statement begins.
const FIXED_INDENT: usize = 6;

/// The statement beside which something is added.
pub(super) struct Anchor<'a> {
    text: &'a [u8],
    form: Form,
    /// The statement's bytes.
    start: usize,
    end: usize,
    /// The first byte of its first line.
    first_line: usize,
    /// The last line: its first byte, the byte behind it, and where the next line starts.
    last_end: usize,
    next_line: usize,
}

impl<'a> Anchor<'a> {
    pub(super) fn new(text: &'a [u8], form: Form, span: Span) -> Option<Anchor<'a>> {
        let (start, end) = (span.start as usize, span.end as usize);
        if start >= end || end > text.len() {
            return None;
        }
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let first_line = text[..start].iter().rposition(is_end).map_or(0, |at| at + 1);
        let last_end = text[end..].iter().position(is_end).map_or(text.len(), |length| end + length);
        let ending = match &text[last_end..] {
            [b'\r', b'\n', ..] => 2,
            [] => 0,
            _ => 1,
        };
        Some(Anchor { text, form, start, end, first_line, last_end, next_line: last_end + ending })
    }

    fn statement(&self) -> &[u8] {
        &self.text[self.start..self.end]
    }

    fn is_upper(&self) -> bool {
        self.statement().iter().find(|byte| byte.is_ascii_alphabetic()).is_some_and(u8::is_ascii_uppercase)
    }

    /// A keyword in the case of the statement's own.
    pub(super) fn keyword(&self, word: &str) -> String {
        self.like(word)
    }

    /// A word in the case of the statement.
    pub(super) fn like(&self, word: &str) -> String {
        if self.is_upper() { word.to_ascii_uppercase() } else { word.to_ascii_lowercase() }
    }

    /// A routine of the library as the statement writes such names, and any other as it was given.
    pub(super) fn routine(&self, name: &str) -> String {
        let Some(rest) = name.strip_prefix("MPI_") else { return name.to_string() };
        let at = self.statement().windows(4).position(|four| four.eq_ignore_ascii_case(b"mpi_"));
        match at.map(|at| &self.statement()[at..]) {
            Some([b'm', ..]) => name.to_ascii_lowercase(),
            Some([b'M', _, _, _, b'A'..=b'Z', b'A'..=b'Z', ..]) => name.to_string(),
            Some([b'M', b'P', ..]) => {
                let lower = rest.to_ascii_lowercase();
                format!("MPI_{}{}", &rest[..1], &lower[1..])
            }
            _ => self.like(name),
        }
    }

    /// A name as the statement spells it.
    pub(super) fn spelling(&self, name: &str) -> String {
        let is_part =
            |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        let statement = self.statement();
        let found = statement.windows(name.len().max(1)).enumerate().find(|(at, word)| {
            word.eq_ignore_ascii_case(name.as_bytes())
                && !is_part(at.checked_sub(1).and_then(|before| statement.get(before)))
                && !is_part(statement.get(at + name.len()))
        });
        match found {
            Some((_, word)) => String::from_utf8_lossy(word).into_owned(),
            None => self.like(name),
        }
    }

    /// The statement declares with `::`.
    pub(super) fn has_colons(&self) -> bool {
        self.statement().windows(2).any(|two| two == b"::")
    }

    /// The place and the text of a statement in front of this one.
    pub(super) fn before(&self, words: &[&str]) -> Option<(usize, Vec<u8>)> {
        let prefix = &self.text[self.first_line..self.start];
        let has_neighbour = prefix.contains(&b';');
        // Directives, marks of continuation and other things that do not belong to the statement.
        let is_plain = prefix.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'0'..=b'9'));
        match (is_plain, has_neighbour) {
            (true, _) => Some((self.first_line, self.lines(words))),
            (false, true) => self.inline(self.start, words, "", "; "),
            (false, false) => None,
        }
    }

    /// The place and the text of a statement behind this one.
    pub(super) fn behind(&self, words: &[&str]) -> Option<(usize, Vec<u8>)> {
        let suffix = self.text[self.end..self.last_end].trim_ascii_start();
        // Behind the last column of fixed form there are comments without a mark.
        let is_beyond = self.form == Form::Fixed
            && self.end.checked_sub(self.last_line()).is_some_and(|columns| {
                let blanks = self.last_end - self.end - suffix.len();
                columns + blanks >= FIXED_COLUMNS_MAX
            });
        match suffix.first() {
            None | Some(b'!') => Some((self.next_line, self.lines(words))),
            _ if is_beyond => Some((self.next_line, self.lines(words))),
            Some(b';') => {
                let rest = suffix[1..].trim_ascii_start();
                match rest.first() {
                    None | Some(b'!') => Some((self.next_line, self.lines(words))),
                    _ => self.inline(self.end, words, "; ", ""),
                }
            }
            // A mark of continuation behind the last word, or something not understood.
            _ => None,
        }
    }

    fn last_line(&self) -> usize {
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        self.text[..self.end].iter().rposition(is_end).map_or(0, |at| at + 1)
    }

    /// Text inside a line, if the line does not become too long.
    fn inline(&self, at: usize, words: &[&str], before: &str, behind: &str) -> Option<(usize, Vec<u8>)> {
        let text = format!("{before}{}{behind}", words.join(" "));
        let length = self.last_end - self.last_line() + text.len();
        let columns = match self.form {
            Form::Fixed => FIXED_COLUMNS_MAX,
            Form::Free => FREE_COLUMNS_MAX,
        };
        (length <= columns).then(|| (at, text.into_bytes()))
    }

    /// Whole lines, each with its line end; the first one begins with a line end where the text lacks its last one.
    fn lines(&self, words: &[&str]) -> Vec<u8> {
        let ending = self.ending();
        let mut out = Vec::new();
        let lacks_end = self.next_line == self.last_end;
        for line in self.wrapped(words) {
            if lacks_end {
                out.extend_from_slice(ending);
                out.extend_from_slice(&line);
            } else {
                out.extend_from_slice(&line);
                out.extend_from_slice(ending);
            }
        }
        out
    }

    fn ending(&self) -> &'a [u8] {
        let own = &self.text[self.last_end..self.next_line];
        if !own.is_empty() {
            return own;
        }
        match self.text.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            Some(at) if self.text[at..].starts_with(b"\r\n") => b"\r\n",
            Some(at) => &self.text[at..at + 1],
            None => b"\n",
        }
    }

    /// The blanks in front of the line, with a label's digits among them; other statements may stand between them and
    /// this one.
    fn indent(&self) -> Vec<u8> {
        let prefix = &self.text[self.first_line..self.start];
        let blank = prefix.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'0'..=b'9'));
        let mut indent: Vec<u8> = blank.map(|&byte| if byte == b'\t' { byte } else { b' ' }).collect();
        if self.form == Form::Fixed && !indent.contains(&b'\t') && indent.len() < FIXED_INDENT {
            indent.resize(FIXED_INDENT, b' ');
        }
        indent
    }

    fn wrapped(&self, words: &[&str]) -> Vec<Vec<u8>> {
        let columns = match self.form {
            Form::Fixed => FIXED_COLUMNS_MAX,
            Form::Free => FREE_COLUMNS_MAX,
        };
        let text = words.join(" ");
        let mut indent = self.indent();
        if indent.len() + text.len() > columns {
            indent.truncate(if self.form == Form::Fixed { FIXED_INDENT } else { 0 });
        }
        let line = |text: &str| [indent.as_slice(), text.as_bytes()].concat();
        if indent.len() + text.len() <= columns {
            return vec![line(&text)];
        }
        let last = words.len() - 1;
        let head = words[..last].join(" ");
        match self.form {
            Form::Fixed => vec![line(&head), format!("     & {}", words[last]).into_bytes()],
            Form::Free => vec![line(&format!("{head} &")), format!("  {}", words[last]).into_bytes()],
        }
    }
}
