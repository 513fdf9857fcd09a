//! Included files: where they are found, and where places in them lead. Never looks at a statement.

use std::sync::Arc;

use rma_source::Span;

use super::{InMemory, Inclusion, Reading, expand, matches};
use crate::form::Form;

fn reading(files: &[(&str, &str)], include_paths: &[&str]) -> Reading {
    Reading {
        include_paths: include_paths.iter().map(|path| path.to_string()).collect(),
        files: Arc::new(InMemory::new(files.iter().copied())),
        ..Reading::default()
    }
}

/// The expanded text of a free-form file at `src/a.f90`.
fn expanded(text: &str, files: &[(&str, &str)], include_paths: &[&str]) -> String {
    let expanded = expand("src/a.f90", text.as_bytes(), Form::Free, &reading(files, include_paths));
    String::from_utf8_lossy(&expanded.text).into_owned()
}

#[test]
fn both_kinds_of_lines_include() {
    let files = [("src/x.inc", "x = 1\n"), ("inc/y.h", "y = 2")];
    for (line, body) in [
        ("include 'x.inc'", "x = 1\n"),
        ("  InClude \"x.inc\" ! why", "x = 1\n"),
        ("#include \"x.inc\"", "x = 1\n"),
        (" #  include \"x.inc\" /* why */", "x = 1\n"),
        ("#include <y.h>", "y = 2\n"),
        ("include 'y.h/NOLIST'", "y = 2\n"),
    ] {
        assert_eq!(
            expanded(&format!("a\n{line}\nb\n"), &files, &["inc"]),
            format!("a\n{line}\n{body}b\n"),
            "{line}"
        );
    }
    for line in [
        "include = 'x.inc'",
        "include 'x.inc'; z = 1",
        "! include 'x.inc'",
        "include 'none'",
        "includes 'x.inc'",
    ] {
        assert_eq!(expanded(&format!("{line}\n"), &files, &["inc"]), format!("{line}\n"), "{line}");
    }
}

#[test]
fn fixed_form_includes_from_column_seven() {
    let reading = reading(&[("x.inc", "      X = 1\n")], &[]);
    let is_read = |line: &str| !expand("a.f", line.as_bytes(), Form::Fixed, &reading).origin.read.is_empty();
    for line in ["      INCLUDE 'x.inc'", "\tinclude 'x.inc'", "      in clude'x.inc'", "#include \"x.inc\""]
    {
        assert!(is_read(line), "{line}");
    }
    for line in ["C     INCLUDE 'x.inc'", "     1include 'x.inc'", "   10 include 'x.inc'", "include 'x.inc'"]
    {
        assert!(!is_read(line), "{line}");
    }
}

#[test]
fn the_nearest_file_is_meant() {
    let files = [
        ("src/x.h", "beside"),
        ("inc/x.h", "path"),
        ("tree/far/x.h", "tree"),
        ("inc/y.h", "path"),
        ("src/deep/y.h", "tree"),
        ("tree/one/z.h", "far"),
        ("src/one/z.h", "near"),
        ("tree/one/sub/w.h", "one"),
        ("src/two/w.h", "two"),
    ];
    for (name, body) in
        [("x.h", "beside"), ("y.h", "path"), ("z.h", "near"), ("sub/w.h", "one"), ("../inc/x.h", "path")]
    {
        let line = format!("#include \"{name}\"\n");
        assert_eq!(expanded(&line, &files, &["inc"]), format!("{line}{body}\n"), "{name}");
    }
    // What an included file includes is looked for beside it first, then beside its includer.
    let files = [
        ("inc/a.h", "#include \"b.h\"\n#include \"c.h\"\n"),
        ("inc/b.h", "inner\n"),
        ("src/b.h", "no\n"),
        ("src/c.h", "outer\n"),
    ];
    assert_eq!(
        expanded("#include \"a.h\"\n", &files, &["inc"]),
        "#include \"a.h\"\n#include \"b.h\"\ninner\n#include \"c.h\"\nouter\n"
    );
}

#[test]
fn circles_and_towers_end() {
    let files = [
        ("src/a.h", "#include \"b.h\"\n"),
        ("src/b.h", "#include \"a.h\"\nb\n"),
        ("src/self.h", "#include \"self.h\"\ns\n"),
    ];
    assert_eq!(
        expanded("#include \"a.h\"\n#include \"self.h\"\n", &files, &[]),
        "#include \"a.h\"\n#include \"b.h\"\n#include \"a.h\"\nb\n#include \"self.h\"\n#include \"self.h\"\ns\n"
    );
    // Each of forty files includes the next one twice.
    let names: Vec<(String, String)> = (0..40)
        .map(|i| (format!("src/t{i}.h"), format!("#include \"t{0}.h\"\n#include \"t{0}.h\"\nx\n", i + 1)))
        .collect();
    let files: Vec<(&str, &str)> = names.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    assert!(expanded("#include \"t0.h\"\n", &files, &[]).len() < super::expand::EXPANDED_BYTES_MAX);
}

#[test]
fn guards_and_dead_branches_are_heeded() {
    let files = [("src/g.h", "! text\n#ifndef G\n#define G 1\ng\n#endif\n"), ("src/x.h", "x\n")];
    let once = "#include \"g.h\"\n! text\n#ifndef G\n#define G 1\ng\n#endif\n#include \"g.h\"\n";
    assert_eq!(expanded("#include \"g.h\"\n#include \"g.h\"\n", &files, &[]), once);
    assert_eq!(
        expanded("#if 0\n#include \"x.h\"\n#else\n#include \"x.h\"\n#endif\n", &files, &[]),
        "#if 0\n#include \"x.h\"\n#else\n#include \"x.h\"\nx\n#endif\n"
    );
}

#[test]
fn a_macro_of_the_command_line_may_name_the_file() {
    let mut reading = reading(&[("src/app.h", "app\n")], &[]);
    let line = "#include HEADER\n";
    assert_eq!(expand("src/a.f90", line.as_bytes(), Form::Free, &reading).text, line.as_bytes());
    reading.macros = vec!["HEADER=\"app.h\"".to_string()];
    assert_eq!(
        expand("src/a.f90", line.as_bytes(), Form::Free, &reading).text,
        format!("{line}app\n").as_bytes()
    );
}

#[test]
fn places_lead_back_to_their_files() {
    let main = "first\ninclude 'x.h'\nlast\n";
    let files = [("src/x.h", "one\n#include \"y.h\"\ntwo"), ("src/y.h", "inner\n")];
    let expanded = expand("src/a.f90", main.as_bytes(), Form::Free, &reading(&files, &[]));
    let text = String::from_utf8_lossy(&expanded.text).into_owned();
    assert_eq!(text, "first\ninclude 'x.h'\none\n#include \"y.h\"\ninner\ntwo\nlast\n");
    let texts = [("src/a.f90", main), files[0], files[1]];
    for word in ["first", "include 'x.h'", "one", "#include \"y.h\"", "inner", "two", "last"] {
        let at = text.find(word).expect("the word is in the text");
        let place = expanded.origin.place(Span::new(at, at + word.len()));
        let file = &expanded.origin.files[place.file as usize];
        let (path, source) = texts[place.file as usize];
        assert_eq!((&*file.path, &source[place.span.range()]), (path, word));
    }
    let read = |line: &str| expanded.origin.inclusion(text.find(line).expect("the line is there") as u32);
    assert_eq!(
        (read("include 'x.h'"), read("one"), read("#include")),
        (Inclusion::Read, Inclusion::Missing, Inclusion::Read)
    );
    // What reaches into another file ends with the first one.
    let whole = expanded
        .origin
        .place(Span::new(text.find("one").expect("a word"), text.find("inner").expect("a word") + 2));
    assert_eq!((whole.file, whole.span), (1, Span::new(0, "one\n#include \"y.h\"\n".len())));
}

#[test]
fn patterns_match_paths() {
    for (pattern, path) in [
        ("*.h", "src/a.h"),
        ("src/*.f", "src/a.f"),
        ("src/*.f", "./src/a.f"),
        ("**/old/*.f90", "a/b/old/c.f90"),
        ("**/old/*.f90", "old/c.f90"),
        ("src/**", "src/a/b/c.f"),
        ("a?c.f", "x/abc.f"),
        ("*a*b*", "xxaxxbxx"),
    ] {
        assert!(matches(pattern, path), "{pattern} {path}");
    }
    for (pattern, path) in [
        ("*.h", "a.hh"),
        ("src/*.f", "src/x/a.f"),
        ("src/*.f", "a.f"),
        ("**/old/*.f90", "old/x/c.f90"),
        ("a?c.f", "ac.f"),
    ] {
        assert!(!matches(pattern, path), "{pattern} {path}");
    }
    assert!(!matches(&"*a".repeat(2000), &"a".repeat(1500)));
}
