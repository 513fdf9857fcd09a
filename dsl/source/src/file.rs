//! Source texts and their line index. Never opens what a path names.

use crate::Span;

/// Index of a file in its [`SourceMap`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct FileId(pub u32);

/// A place in a file as people count it: both from 1, columns in characters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct LineColumn {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
}

/// One text with its name and line starts.
#[derive(Clone, Debug)]
pub struct SourceFile {
    path: String,
    text: String,
    line_starts: Vec<u32>,
}

impl SourceFile {
    /// Indexes `text`; `path` is only shown. Lines end in `\n`, `\r\n` or a lone `\r`.
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> SourceFile {
        let text = text.into();
        let bytes = text.as_bytes();
        let mut line_starts = vec![0];
        for (i, &byte) in bytes.iter().enumerate() {
            let ends = byte == b'\n' || (byte == b'\r' && bytes.get(i + 1) != Some(&b'\n'));
            if ends {
                line_starts.push(u32::try_from(i + 1).unwrap_or(u32::MAX));
            }
        }
        SourceFile { path: path.into(), text, line_starts }
    }

    /// The name that messages show.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Number of lines; a text that ends in a newline has an empty last line.
    pub fn n_lines(&self) -> usize {
        self.line_starts.len()
    }

    /// The text of a span, clamped to the file and to whole characters.
    pub fn slice(&self, span: Span) -> &str {
        &self.text[self.clamp(span).range()]
    }

    /// The span brought inside the file, widened to whole characters.
    pub fn clamp(&self, span: Span) -> Span {
        let length = self.text.len();
        let mut start = (span.start as usize).min(length);
        let mut end = (span.end as usize).clamp(start, length);
        while !self.text.is_char_boundary(start) {
            start -= 1;
        }
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        Span::new(start, end)
    }

    /// Line and column of a byte offset.
    pub fn line_column(&self, offset: usize) -> LineColumn {
        let offset = self.clamp(Span::at(offset)).start as usize;
        let line = self.line_starts.partition_point(|&start| start as usize <= offset);
        let start = self.line_starts[line - 1] as usize;
        LineColumn { line, column: self.text[start..offset].chars().count() + 1 }
    }

    /// The byte range of a line (from 1), without its line end; `None` beyond the last line.
    pub fn line_span(&self, line: usize) -> Option<Span> {
        let start = *self.line_starts.get(line.checked_sub(1)?)? as usize;
        let end = self.line_starts.get(line).map_or(self.text.len(), |&next| next as usize);
        let body = self.text[start..end].trim_end_matches(['\n', '\r']);
        Some(Span::new(start, start + body.len()))
    }

    /// The text of a line (from 1), without its line end.
    pub fn line_text(&self, line: usize) -> Option<&str> {
        self.line_span(line).map(|span| &self.text[span.range()])
    }
}

/// All texts of one run.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

impl SourceMap {
    /// A map without files.
    pub fn new() -> SourceMap {
        SourceMap::default()
    }

    /// A map of one file, which is `FileId(0)`.
    pub fn single(path: impl Into<String>, text: impl Into<String>) -> SourceMap {
        SourceMap { files: vec![SourceFile::new(path, text)] }
    }

    /// Adds a file and names it.
    pub fn add(&mut self, file: SourceFile) -> FileId {
        let id = FileId(u32::try_from(self.files.len()).expect("fewer than 2^32 files"));
        self.files.push(file);
        id
    }

    /// The file of an id, if it is of this map.
    pub fn get(&self, id: FileId) -> Option<&SourceFile> {
        self.files.get(id.0 as usize)
    }

    /// All files in order of their ids.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }
}
