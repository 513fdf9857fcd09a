//! The text of one file with everything that it includes, and the way back from there to the files. Never opens a
//! file: [`Files`] does, and is supplied by the caller.
//!
//! Included files are put in behind the line that names them, so that all later passes work on one text in which
//! places grow in reading order. [`Origin`] leads from a place in it to a file and a place there.

mod expand;
mod search;

#[cfg(test)]
mod test;

pub use expand::{Expanded, expand};

use std::collections::HashMap;
use std::fmt::Debug;
use std::panic::RefUnwindSafe;
use std::sync::Arc;

use rma_source::Span;

use crate::form::Form;
use crate::parse::Headers;

/// Where included files come from.
pub trait Files: Debug + RefUnwindSafe + Send + Sync {
    /// The bytes of the file at a path.
    fn read(&self, path: &str) -> Option<Arc<[u8]>>;

    /// Paths of those files of the trees to be checked whose last part is `name`. They are looked at last.
    fn named(&self, name: &str) -> Vec<String>;
}

/// Files that are held in memory, none at first.
#[derive(Clone, Debug, Default)]
pub struct InMemory {
    files: HashMap<String, Arc<[u8]>>,
}

impl InMemory {
    /// Files by their paths.
    pub fn new<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> InMemory {
        let files = files.into_iter().map(|(path, text)| (path.to_string(), Arc::from(text.as_bytes())));
        InMemory { files: files.collect() }
    }
}

impl Files for InMemory {
    fn read(&self, path: &str) -> Option<Arc<[u8]>> {
        self.files.get(path).cloned()
    }

    fn named(&self, name: &str) -> Vec<String> {
        let is_wanted = |path: &&String| path.rsplit('/').next() == Some(name);
        self.files.keys().filter(is_wanted).cloned().collect()
    }
}

/// How files are read.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The form of every file; each file's content decides where this is `None`.
    pub form: Option<Form>,
    /// Forms of the files whose paths match a pattern; the first match counts. See [`matches()`] for patterns.
    pub forms: Vec<(String, Form)>,
    /// Folders in which included files are looked for, behind the folders of the files that include them.
    pub include_paths: Vec<String>,
    /// Macros that no file defines, each as `NAME=text` or `NAME(a,b)=text`, as behind `#define`.
    pub macros: Vec<String>,
    /// Where included files come from.
    pub files: Arc<dyn Files>,
    /// What was parsed of included texts.
    pub headers: Arc<Headers>,
}

impl Default for Reading {
    fn default() -> Reading {
        Reading {
            form: None,
            forms: Vec::new(),
            include_paths: Vec::new(),
            macros: Vec::new(),
            files: Arc::new(InMemory::default()),
            headers: Arc::default(),
        }
    }
}

impl Reading {
    /// The form that was asked for.
    pub fn form_of(&self, path: &str) -> Option<Form> {
        self.form
            .or_else(|| self.forms.iter().find(|(pattern, _)| matches(pattern, path)).map(|(_, form)| *form))
    }
}

/// Whether a path matches a pattern: `?` stands for one character and `*` for any number of them, both within one part
/// of the path; `**` stands for any number of parts. A pattern without `/` is compared with the last part alone.
pub fn matches(pattern: &str, path: &str) -> bool {
    let path = path.strip_prefix("./").unwrap_or(path);
    if !pattern.contains('/') {
        return matches_part(pattern.as_bytes(), path.rsplit('/').next().unwrap_or(path).as_bytes());
    }
    let pattern: Vec<&str> = pattern.split('/').collect();
    let path: Vec<&str> = path.split('/').collect();
    // reached[j]: the parts of the pattern so far match the first j parts of the path.
    let mut reached = vec![false; path.len() + 1];
    reached[0] = true;
    for part in pattern {
        let mut next = vec![false; path.len() + 1];
        for j in 0..=path.len() {
            next[j] = match part {
                "**" => reached[j] || (j > 0 && next[j - 1]),
                _ => j > 0 && reached[j - 1] && matches_part(part.as_bytes(), path[j - 1].as_bytes()),
            };
        }
        reached = next;
    }
    reached[path.len()]
}

fn matches_part(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where to go on when what follows the last star fails.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, t));
                p += 1;
            }
            Some(&byte) if byte == b'?' || byte == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((after, from)) => {
                    star = Some((after, from + 1));
                    p = after;
                    t = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

/// One file of an expanded text.
#[derive(Clone, Debug)]
pub struct SourceText {
    /// Its path.
    pub path: Arc<str>,
    /// Its bytes; empty for the file that the text was made of, which the caller holds.
    pub bytes: Arc<[u8]>,
}

/// A place in one of the files of an expanded text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    /// Index of the file: 0 is the one that includes the others.
    pub file: u32,
    /// The place there.
    pub span: Span,
}

/// Where a stretch of an expanded text comes from; it ends where the next one begins.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// First byte in the text.
    at: u32,
    file: u32,
    /// First byte in the file.
    source: u32,
}

/// Whether an included file was found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Inclusion {
    /// It stands behind the line that names it.
    Read,
    /// It was found nowhere, or cannot be put in again here.
    Missing,
}

/// The way from an expanded text to its files.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The files, the including one first.
    pub files: Vec<SourceText>,
    /// Where each form begins, the first at the start.
    pub forms: Vec<(u32, Form)>,
    segments: Vec<Segment>,
    /// Lines that include a file which was read.
    read: Vec<ReadLine>,
}

/// A line that includes a file.
#[derive(Clone, Copy, Debug)]
struct ReadLine {
    line: Span,
    /// The text that was put in behind it.
    text: Span,
}

impl Origin {
    /// The origin of a text without included files.
    pub fn alone(path: &str, form: Form) -> Origin {
        Origin {
            files: vec![SourceText { path: path.into(), bytes: Arc::from(&b""[..]) }],
            forms: vec![(0, form)],
            segments: vec![Segment { at: 0, file: 0, source: 0 }],
            read: Vec::new(),
        }
    }

    /// The place in a file of a place in the text. What reaches from one file into another ends with the first one.
    pub fn place(&self, span: Span) -> Place {
        let first = self.segment(span.start);
        let source = |segment: Segment, at: u32| segment.source.saturating_add(at - segment.at);
        let start = source(first, span.start);
        let last_byte = span.end.max(span.start + 1) - 1;
        let last = self.segment(last_byte);
        let end = match last.file == first.file && last.source >= first.source {
            true => source(last, last_byte) + u32::from(span.end > span.start),
            false => start + self.length_behind(span.start).min(span.end - span.start),
        };
        Place { file: first.file, span: Span { start, end: end.max(start) } }
    }

    /// Whether the file that the line at `at` includes stands behind it.
    pub fn inclusion(&self, at: u32) -> Inclusion {
        match self.line_before(at) {
            Some(read) if at < read.line.end => Inclusion::Read,
            _ => Inclusion::Missing,
        }
    }

    /// The text that was put in from `at` on, if it is all in the form that the text around it has.
    pub fn put_in_at(&self, at: u32) -> Option<Span> {
        let text = self.line_before(at)?.text;
        let has_one_form = !self.forms.iter().any(|(begin, _)| text.start <= *begin && *begin <= text.end);
        (text.start == at && has_one_form).then_some(text)
    }

    /// The last line that includes something and begins no later than `at`.
    fn line_before(&self, at: u32) -> Option<ReadLine> {
        let i = self.read.partition_point(|read| read.line.start <= at);
        i.checked_sub(1).map(|i| self.read[i])
    }

    fn segment(&self, at: u32) -> Segment {
        let i = self.segments.partition_point(|segment| segment.at <= at);
        self.segments[i.saturating_sub(1)]
    }

    /// Bytes from `at` to the end of its segment.
    fn length_behind(&self, at: u32) -> u32 {
        let i = self.segments.partition_point(|segment| segment.at <= at);
        self.segments.get(i).map_or(u32::MAX, |next| next.at - at)
    }
}
