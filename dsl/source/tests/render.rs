//! The looks of a diagnostic, and that no span can make the renderer panic.

use expect_test::expect;
use rma_source::{Applicability, Diagnostic, FileId, LineColumn, SourceFile, SourceMap, Span, render};

fn misspelt() -> (SourceMap, Diagnostic) {
    let map = SourceMap::single("heat.rma", "let a = 1\nlet b = kapa*2\nlet c = 3\n");
    let diagnostic = Diagnostic::error("E0001", "`kapa` is not declared")
        .label(Span::new(18, 22), "not found")
        .label(Span::new(4, 5), "declared here")
        .note("names are declared before they are used")
        .suggest("did you mean `kappa`?", Span::new(18, 22), "kappa", Applicability::Unsafe)
        .help("or declare it");
    (map, diagnostic)
}

#[test]
fn text_has_code_place_excerpt_note_and_help() {
    let (map, diagnostic) = misspelt();
    expect![[r#"
        error[E0001]: `kapa` is not declared
         --> heat.rma:2:9
          |
        1 | let a = 1
          |     - declared here
        2 | let b = kapa*2
          |         ^^^^ not found
          |
          = note: names are declared before they are used
          = help: or declare it
        help: did you mean `kappa`?
          |
        2 | let b = kappa*2
          |            +"#]]
    .assert_eq(&render::text(&map, &diagnostic, render::Colour::Never));
}

#[test]
fn short_is_one_line() {
    let (map, diagnostic) = misspelt();
    expect!["heat.rma:2:9: error[E0001]: `kapa` is not declared"]
        .assert_eq(&render::short(&map, &diagnostic));
}

#[test]
fn json_has_places() {
    let (map, diagnostic) = misspelt();
    expect![[r#"
        [
          {
            "level": "error",
            "code": "E0001",
            "message": "`kapa` is not declared",
            "labels": [
              {
                "file": "heat.rma",
                "start": 18,
                "end": 22,
                "line": 2,
                "column": 9,
                "end_line": 2,
                "end_column": 13,
                "text": "not found"
              },
              {
                "file": "heat.rma",
                "start": 4,
                "end": 5,
                "line": 1,
                "column": 5,
                "end_line": 1,
                "end_column": 6,
                "text": "declared here"
              }
            ],
            "notes": [
              "names are declared before they are used"
            ],
            "helps": [
              {
                "message": "did you mean `kappa`?",
                "applicability": "unsafe",
                "edits": [
                  {
                    "file": "heat.rma",
                    "start": 18,
                    "end": 22,
                    "line": 2,
                    "column": 9,
                    "end_line": 2,
                    "end_column": 13,
                    "replacement": "kappa"
                  }
                ]
              },
              {
                "message": "or declare it",
                "applicability": "display",
                "edits": []
              }
            ]
          }
        ]"#]]
    .assert_eq(&render::json(&map, &[diagnostic]));
}

#[test]
fn any_span_renders() {
    let text = "é\tx\r\n\u{FFFD}y\rz\n";
    let map = SourceMap::single("odd", text);
    for start in 0..text.len() + 3 {
        for end in start..text.len() + 4 {
            let diagnostic = Diagnostic::error("X", "odd").label(Span::new(start, end), "here").suggest(
                "try",
                Span::new(start, end),
                "w",
                Applicability::Display,
            );
            let out = render::text(&map, &diagnostic, render::Colour::Never);
            assert!(out.starts_with("error[X]: odd"), "{start}..{end}: {out}");
            render::json(&map, &[diagnostic]);
        }
    }
}

#[test]
fn a_label_of_an_unknown_file_is_dropped() {
    let (map, _) = misspelt();
    let diagnostic = Diagnostic::warning("W1", "lost").label_in(FileId(7), Span::at(0), "nowhere");
    assert_eq!(render::text(&map, &diagnostic, render::Colour::Never), "warning[W1]: lost");
}

#[test]
fn lines_and_columns_count_from_one_and_in_characters() {
    let file = SourceFile::new("f", "aé b\r\ncd\re\n");
    assert_eq!(file.line_column(0), LineColumn { line: 1, column: 1 });
    assert_eq!(file.line_column(3), LineColumn { line: 1, column: 3 });
    assert_eq!(file.line_column(7), LineColumn { line: 2, column: 1 });
    assert_eq!(file.line_column(10), LineColumn { line: 3, column: 1 });
    assert_eq!(file.line_column(99), LineColumn { line: 4, column: 1 });
    assert_eq!(file.line_text(1), Some("aé b"));
    assert_eq!(file.line_text(2), Some("cd"));
    assert_eq!(file.line_text(3), Some("e"));
    assert_eq!(file.line_text(4), Some(""));
    assert_eq!(file.line_text(5), None);
    assert_eq!(file.line_span(0), None);
    assert_eq!(file.slice(Span::new(2, 3)), "é");
}
