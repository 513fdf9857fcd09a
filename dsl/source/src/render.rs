//! Diagnostics as text (rustc's look) and as JSON. Never writes to a stream.

use annotate_snippets::{
    AnnotationKind, Group, Level as Look, Patch, Renderer, Snippet, renderer::DecorStyle,
};
use serde::Serialize;

use crate::{Applicability, Diagnostic, Edit, FileId, Level, SourceFile, SourceMap, Span};

/// Whether the text carries terminal colours.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Colour {
    /// Plain text.
    #[default]
    Never,
    /// ANSI escape sequences.
    Ansi,
}

/// Width that excerpts are cut to.
const WIDTH_MAX: usize = 140;

/// One diagnostic as text, without a trailing newline.
pub fn text(map: &SourceMap, diagnostic: &Diagnostic, colour: Colour) -> String {
    let look = match diagnostic.level {
        Level::Error => Look::ERROR,
        Level::Warning => Look::WARNING,
        Level::Note => Look::NOTE,
    };
    let mut main =
        Group::with_title(look.primary_title(diagnostic.title.clone()).id(diagnostic.code.clone()));
    for (file, labels) in by_file(map, &diagnostic.labels, |label| label.file) {
        // Only the lines between the first and the last label: the renderer looks at all of what it is given.
        let excerpt = excerpt(file, labels.iter().map(|label| label.span));
        let mut snippet = Snippet::source(&file.text()[excerpt.range()])
            .line_start(file.line_column(excerpt.start as usize).line)
            .path(file.path())
            .fold(true);
        for label in labels {
            let is_primary = diagnostic.primary().is_some_and(|primary| std::ptr::eq(primary, label));
            let kind = match is_primary {
                true => AnnotationKind::Primary,
                false => AnnotationKind::Context,
            };
            let span = file.clamp(label.span).range();
            let start = excerpt.start as usize;
            let mark = kind.span(span.start - start..span.end - start);
            snippet = snippet.annotation(match label.text.is_empty() {
                true => mark,
                false => mark.label(label.text.clone()),
            });
        }
        main = main.element(snippet);
    }
    for note in &diagnostic.notes {
        main = main.element(Look::NOTE.message(note.clone()));
    }
    let mut groups = Vec::new();
    for help in &diagnostic.helps {
        if help.edits.is_empty() {
            main = main.element(Look::HELP.message(help.text.clone()));
            continue;
        }
        let mut group = Group::with_title(Look::HELP.secondary_title(help.text.clone()));
        for (file, edits) in by_file(map, &help.edits, |edit| edit.file) {
            let mut snippet = Snippet::source(file.text()).path(file.path()).fold(true);
            for edit in edits {
                snippet = snippet.patch(Patch::new(file.clamp(edit.span).range(), edit.replacement.clone()));
            }
            group = group.element(snippet);
        }
        groups.push(group);
    }
    groups.insert(0, main);
    let renderer = match colour {
        Colour::Never => Renderer::plain(),
        Colour::Ansi => Renderer::styled(),
    };
    renderer.decor_style(DecorStyle::Ascii).term_width(WIDTH_MAX).render(&groups)
}

/// The whole lines that hold some spans.
fn excerpt(file: &SourceFile, spans: impl Iterator<Item = Span>) -> Span {
    let spans: Vec<Span> = spans.map(|span| file.clamp(span)).collect();
    let line_of = |offset: Option<u32>| file.line_column(offset.unwrap_or_default() as usize).line;
    let first = file.line_span(line_of(spans.iter().map(|span| span.start).min()));
    let last = file.line_span(line_of(spans.iter().map(|span| span.end).max()));
    match (first, last) {
        // A span may end at the line end itself.
        (Some(first), Some(last)) => {
            let end = spans.iter().map(|span| span.end).max().unwrap_or_default();
            file.clamp(Span { start: first.start, end: last.end.max(end) })
        }
        _ => Span::new(0, file.text().len()),
    }
}

/// One diagnostic as one line: `FILE:LINE:COL: error[CODE]: text`.
pub fn short(map: &SourceMap, diagnostic: &Diagnostic) -> String {
    let head = format!("{}[{}]: {}", diagnostic.level.name(), diagnostic.code, diagnostic.title);
    match diagnostic.primary().and_then(|label| Some((map.get(label.file)?, label.span))) {
        Some((file, span)) => {
            let place = file.line_column(span.start as usize);
            format!("{}:{}:{}: {head}", file.path(), place.line, place.column)
        }
        None => head,
    }
}

/// All diagnostics as text, separated by empty lines, ending in a newline unless there are none.
pub fn all(map: &SourceMap, diagnostics: &[Diagnostic], colour: Colour) -> String {
    diagnostics.iter().map(|diagnostic| text(map, diagnostic, colour) + "\n").collect::<Vec<_>>().join("\n")
}

/// A JSON array, one object per diagnostic; places carry byte offsets, lines and columns.
pub fn json(map: &SourceMap, diagnostics: &[Diagnostic]) -> String {
    let out: Vec<JsonDiagnostic<'_>> =
        diagnostics.iter().map(|diagnostic| json_one(map, diagnostic)).collect();
    serde_json::to_string_pretty(&out).expect("plain data serialises")
}

#[derive(Serialize)]
struct JsonDiagnostic<'a> {
    level: &'static str,
    code: &'a str,
    message: &'a str,
    labels: Vec<JsonLabel<'a>>,
    notes: &'a [String],
    helps: Vec<JsonHelp<'a>>,
}

#[derive(Serialize)]
struct JsonPlace<'a> {
    file: &'a str,
    start: u32,
    end: u32,
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
}

#[derive(Serialize)]
struct JsonLabel<'a> {
    #[serde(flatten)]
    place: JsonPlace<'a>,
    text: &'a str,
}

#[derive(Serialize)]
struct JsonHelp<'a> {
    message: &'a str,
    applicability: &'static str,
    edits: Vec<JsonEdit<'a>>,
}

#[derive(Serialize)]
struct JsonEdit<'a> {
    #[serde(flatten)]
    place: JsonPlace<'a>,
    replacement: &'a str,
}

fn json_one<'a>(map: &'a SourceMap, diagnostic: &'a Diagnostic) -> JsonDiagnostic<'a> {
    JsonDiagnostic {
        level: diagnostic.level.name(),
        code: &diagnostic.code,
        message: &diagnostic.title,
        labels: diagnostic
            .labels
            .iter()
            .filter_map(|label| {
                Some(JsonLabel { place: place(map, label.file, label.span)?, text: &label.text })
            })
            .collect(),
        notes: &diagnostic.notes,
        helps: diagnostic
            .helps
            .iter()
            .map(|help| JsonHelp {
                message: &help.text,
                applicability: match help.applicability {
                    Applicability::Safe => "safe",
                    Applicability::Unsafe => "unsafe",
                    Applicability::Display => "display",
                },
                edits: help.edits.iter().filter_map(|edit| json_edit(map, edit)).collect(),
            })
            .collect(),
    }
}

fn json_edit<'a>(map: &'a SourceMap, edit: &'a Edit) -> Option<JsonEdit<'a>> {
    Some(JsonEdit { place: place(map, edit.file, edit.span)?, replacement: &edit.replacement })
}

fn place(map: &SourceMap, file: FileId, span: Span) -> Option<JsonPlace<'_>> {
    let file = map.get(file)?;
    let span = file.clamp(span);
    let (from, to) = (file.line_column(span.start as usize), file.line_column(span.end as usize));
    Some(JsonPlace {
        file: file.path(),
        start: span.start,
        end: span.end,
        line: from.line,
        column: from.column,
        end_line: to.line,
        end_column: to.column,
    })
}

/// Groups items by file in order of first appearance; items of unknown files are dropped.
fn by_file<'a, T>(
    map: &'a SourceMap,
    items: &'a [T],
    file: impl Fn(&T) -> FileId,
) -> Vec<(&'a SourceFile, Vec<&'a T>)> {
    let mut groups: Vec<(FileId, Vec<&T>)> = Vec::new();
    for item in items {
        match groups.iter_mut().find(|(id, _)| *id == file(item)) {
            Some((_, group)) => group.push(item),
            None => groups.push((file(item), vec![item])),
        }
    }
    groups.into_iter().filter_map(|(id, group)| Some((map.get(id)?, group))).collect()
}
