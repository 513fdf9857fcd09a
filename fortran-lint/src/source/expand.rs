//! Puts included files into the text that includes them. Never loses a line: what can't be found stays as it is.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rma_source::Span;

use super::search::{find, normal};
use super::{Origin, ReadLine, Reading, Segment, SourceText};
use crate::form::{Form, form_beside};

/// Deepest nesting of included files.
const DEPTH_MAX: usize = 64;

/// Longest expanded text; beyond it no more files are put in.
pub(super) const EXPANDED_BYTES_MAX: usize = 64 << 20;

/// Most files that are put into one text.
const INCLUSIONS_MAX: usize = 10_000;

/// A text with its included files.
#[derive(Debug)]
pub struct Expanded<'a> {
    /// The text.
    pub text: Cow<'a, [u8]>,
    /// The way back.
    pub origin: Origin,
}

/// Puts in what a file includes, by INCLUDE lines and by `#include`; `form` is that of the file.
pub fn expand<'a>(path: &str, bytes: &'a [u8], form: Form, reading: &Reading) -> Expanded<'a> {
    let path: Arc<str> = normal(path).into();
    let mut expander = Expander {
        reading,
        text: Vec::new(),
        origin: Origin::alone(&path, form),
        chain: Vec::new(),
        guarded: HashSet::new(),
        numbers: HashMap::new(),
    };
    expander.file(bytes, 0, &path, form);
    let Expander { text, origin, .. } = expander;
    // A single segment is the file itself, which needs no copy.
    let text = if origin.read.is_empty() { Cow::Borrowed(bytes) } else { Cow::Owned(text) };
    Expanded { text, origin }
}

struct Expander<'r> {
    reading: &'r Reading,
    text: Vec<u8>,
    origin: Origin,
    /// The files that are open, the outermost first.
    chain: Vec<Arc<str>>,
    /// Files that were put in and say themselves that once is enough.
    guarded: HashSet<Arc<str>>,
    /// The number of each file.
    numbers: HashMap<Arc<str>, u32>,
}

impl Expander<'_> {
    fn file(&mut self, bytes: &[u8], file: u32, path: &Arc<str>, form: Form) {
        self.chain.push(path.clone());
        // First byte that has not been copied.
        let mut kept = 0;
        let mut lines = Lines { bytes, at: 0 };
        // Levels of `#if` inside a branch that can never be compiled.
        let mut n_dead = 0usize;
        while let Some(line) = lines.next() {
            let text = &bytes[line.range()];
            if !matches!(text.trim_ascii_start().first(), Some(b'#' | b'i' | b'I')) {
                continue;
            }
            let name = match directive(text) {
                Some((b"if", rest)) if n_dead > 0 || is_zero(rest) => {
                    n_dead += 1;
                    None
                }
                Some((b"ifdef" | b"ifndef", _)) if n_dead > 0 => {
                    n_dead += 1;
                    None
                }
                Some((b"else" | b"elif" | b"elifdef" | b"elifndef", _)) if n_dead == 1 => {
                    n_dead = 0;
                    None
                }
                Some((b"endif", _)) => {
                    n_dead = n_dead.saturating_sub(1);
                    None
                }
                Some((b"include", rest)) if n_dead == 0 => quoted(rest).or_else(|| self.named_by_macro(rest)),
                Some(_) => None,
                None if n_dead == 0 => included_by_line(text, form),
                None => None,
            };
            let Some(name) = name else { continue };
            let Some((path, included)) = self.found(&name) else { continue };
            self.copy(bytes, kept, lines.at, file, form);
            kept = lines.at;
            let start = self.text.len() - (lines.at - line.start as usize);
            let number = self.origin.read.len();
            let line = Span::new(start, start + line.len());
            self.origin.read.push(ReadLine { line, text: Span::at(line.end as usize) });
            if self.text.last().is_some_and(|byte| !matches!(byte, b'\n' | b'\r')) {
                self.text.push(b'\n');
            }
            if self.guarded.contains(&path) {
                continue;
            }
            if is_guarded(&included) {
                self.guarded.insert(path.clone());
            }
            let form = form_beside(self.reading.headers.score(&included), form);
            let i = self.number(&path, &included);
            let begin = self.text.len();
            self.file(&included, i, &path, form);
            if self.text.last().is_some_and(|byte| !matches!(byte, b'\n' | b'\r')) {
                self.text.push(b'\n');
            }
            self.origin.read[number].text = Span::new(begin, self.text.len());
        }
        if !self.origin.read.is_empty() || file > 0 {
            self.copy(bytes, kept, bytes.len(), file, form);
        }
        self.chain.pop();
    }

    /// The name in `#include NAME`, where a macro of the command line gives it.
    fn named_by_macro(&self, name: &[u8]) -> Option<String> {
        let definitions = self.reading.macros.iter().filter_map(|definition| definition.split_once('='));
        let text = definitions.filter(|(own, _)| own.as_bytes() == name).map(|(_, text)| text).next_back()?;
        quoted(text.as_bytes()).or_else(|| Some(text.to_string()))
    }

    /// The file that a name means here; none that would include itself.
    fn found(&self, name: &str) -> Option<(Arc<str>, Arc<[u8]>)> {
        let is_full = self.chain.len() > DEPTH_MAX
            || self.text.len() > EXPANDED_BYTES_MAX
            || self.origin.read.len() > INCLUSIONS_MAX;
        if is_full {
            return None;
        }
        let (path, bytes) = find(name, &self.chain, self.reading)?;
        let is_open = self.chain.iter().any(|open| **open == *path);
        (!is_open).then(|| (Arc::from(path), bytes))
    }

    fn number(&mut self, path: &Arc<str>, bytes: &Arc<[u8]>) -> u32 {
        let origin = &mut self.origin;
        *self.numbers.entry(path.clone()).or_insert_with(|| {
            origin.files.push(SourceText { path: path.clone(), bytes: bytes.clone() });
            origin.files.len() as u32 - 1
        })
    }

    fn copy(&mut self, bytes: &[u8], from: usize, to: usize, file: u32, form: Form) {
        if from == to {
            return;
        }
        let at = self.text.len() as u32;
        let segment = Segment { at, file, source: from as u32 };
        match self.origin.segments.last_mut() {
            Some(last) if last.at == at => *last = segment,
            _ => self.origin.segments.push(segment),
        }
        if self.origin.forms.last().is_some_and(|(_, last)| *last != form) {
            self.origin.forms.push((at, form));
        }
        self.text.extend_from_slice(&bytes[from..to]);
    }
}

/// Physical lines without their ends.
struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Iterator for Lines<'_> {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        let rest = self.bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
        let length = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let ending = match &rest[length..] {
            [b'\r', b'\n', ..] => 2,
            [_, ..] => 1,
            [] => 0,
        };
        let line = Span::new(self.at, self.at + length);
        self.at += length + ending;
        Some(line)
    }
}

/// The word of a preprocessor line and what follows it.
fn directive(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = line.trim_ascii_start().strip_prefix(b"#")?.trim_ascii_start();
    let length = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    Some((&rest[..length], rest[length..].trim_ascii()))
}

fn is_zero(condition: &[u8]) -> bool {
    condition == b"0" || condition.starts_with(b"0 ")
}

/// `"name"`, `<name>` or `'name'`.
fn quoted(text: &[u8]) -> Option<String> {
    let (&mark, rest) = text.split_first()?;
    let close = match mark {
        b'"' | b'\'' => mark,
        b'<' => b'>',
        _ => return None,
    };
    let length = rest.iter().position(|&byte| byte == close)?;
    Some(String::from_utf8_lossy(&rest[..length]).into_owned())
}

/// The name in a line `INCLUDE 'name'`, which is no statement and stands alone on its line.
fn included_by_line(line: &[u8], form: Form) -> Option<String> {
    let mut rest = match form {
        Form::Free => line.trim_ascii_start(),
        Form::Fixed => {
            let is_tab = line.first() == Some(&b'\t');
            let margin = line.iter().take(6).take_while(|&&byte| byte == b' ').count();
            match is_tab || margin == 6 || (margin > 0 && line.get(margin) == Some(&b'\t')) {
                true => line.trim_ascii_start(),
                false => return None,
            }
        }
    };
    for &letter in b"include" {
        let (&first, behind) = rest.split_first()?;
        if first.to_ascii_lowercase() != letter {
            return None;
        }
        rest = behind;
        if form == Form::Fixed {
            rest = rest.trim_ascii_start();
        }
    }
    let (&mark, rest) =
        rest.trim_ascii_start().split_first().filter(|(mark, _)| matches!(mark, b'"' | b'\''))?;
    let length = rest.iter().position(|&byte| byte == mark)?;
    match rest[length + 1..].trim_ascii_start().first() {
        None | Some(b'!') => {}
        Some(_) => return None,
    }
    // INCLUDE 'name/LIST' of DEC Fortran.
    let name = String::from_utf8_lossy(&rest[..length]);
    let lower = name.to_ascii_lowercase();
    let suffix = ["/nolist", "/list"].into_iter().find(|suffix| lower.ends_with(suffix));
    Some(name[..name.len() - suffix.map_or(0, str::len)].to_string())
}

/// Whether the preprocessor lines of a file begin with `#ifndef X` and `#define X`: it is put in once at most.
fn is_guarded(bytes: &[u8]) -> bool {
    let mut directives = Lines { bytes, at: 0 }.filter_map(|line| directive(&bytes[line.range()]));
    match (directives.next(), directives.next()) {
        (Some((b"ifndef", name)), Some((b"define", text))) => {
            let length = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
            !name.is_empty() && &text[..length] == name
        }
        _ => false,
    }
}
