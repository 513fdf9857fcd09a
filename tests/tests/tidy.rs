//! The invariants of the repository, each an ordinary test: where `unsafe` may stand and how it is argued, module
//! docs, which crate and which module may know which. Never judges style that rustfmt or clippy already judge.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rma_tests::{files, text};

/// The only places whose production code may contain `unsafe`.
const UNSAFE_PLACES: [&str; 6] = [
    "runtime/src/sys/",
    "runtime/src/sync/",
    "runtime/src/transport/shm/",
    "runtime/src/window/raw",
    "runtime/src/pgo/raw/",
    "runtime/src/element/plain.rs",
];

/// The arrows between packages: who may depend on whom (development dependencies of tests excluded).
const PACKAGES: [(&str, &[&str]); 8] = [
    ("runtime/automaton", &[]),
    ("macros", &["rma-automaton"]),
    ("runtime", &["rma-automaton", "rma-macros"]),
    ("runtime/bindings", &["rma"]),
    ("dsl/source", &[]),
    ("dsl", &["rma-source"]),
    ("fortran-lint", &["rma-automaton", "rma-source"]),
    ("tests", &[]),
];

/// The modules of `rma`, lowest first, and which other modules the code of each names (its tests excluded). Whoever adds an
/// arrow adds it here, where it can be seen that it leads down.
const MODULES: [(&str, &[&str]); 20] = [
    ("sys", &[]),
    ("sync", &["sys"]),
    ("rank", &[]),
    ("info", &[]),
    ("traffic", &[]),
    ("patience", &[]),
    ("element", &[]),
    ("error", &["rank"]),
    ("op", &["element", "error"]),
    ("trace", &["rank"]),
    ("transport", &["element", "error", "sync", "sys"]),
    ("job", &["error", "info", "patience", "rank", "traffic", "transport"]),
    ("liveness", &["error", "job", "rank", "sync", "sys", "transport"]),
    ("team", &["element", "error", "job", "liveness", "rank", "sync", "sys", "traffic", "transport"]),
    ("window", &["element", "error", "info", "job", "liveness", "op", "sync", "team", "trace", "transport"]),
    ("pgo", &["element", "error", "job", "liveness", "op", "rank", "sync", "team", "transport", "window"]),
    ("launch", &["error", "info", "job", "liveness", "sys", "team", "transport"]),
    ("run", &["error", "info", "job", "launch", "liveness", "pgo", "sys", "team", "transport"]),
    ("epoch", &["element", "error", "info", "op", "team", "window"]),
    (
        "private",
        &[
            "element",
            "epoch",
            "error",
            "info",
            "launch",
            "op",
            "pgo",
            "run",
            "sync",
            "team",
            "transport",
            "window",
        ],
    ),
];

/// Files longer than this are named, as a hint that they may hold two ideas.
const LONG_FILE_LINES: usize = 900;

/// Production sources: everything under a `src` folder.
fn sources() -> Vec<PathBuf> {
    ["macros", "runtime", "dsl", "fortran-lint", "tests"]
        .iter()
        .flat_map(|package| files(package, ".rs"))
        .filter(|path| path.components().any(|c| c.as_os_str() == "src"))
        .filter(|path| !path.components().any(|c| c.as_os_str() == "tests" && !path.starts_with("tests/src")))
        .collect()
}

/// The lines of a source file without its comments and string contents, so that words in them do not count.
fn code_lines(source: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut rest = source.chars().peekable();
    let mut depth = 0;
    while let Some(c) = rest.next() {
        let line = lines.last_mut().expect("one line at least");
        match c {
            '\n' => lines.push(String::new()),
            _ if depth > 0 => match (c, rest.peek()) {
                ('*', Some('/')) => (depth, _) = (depth - 1, rest.next()),
                ('/', Some('*')) => (depth, _) = (depth + 1, rest.next()),
                _ => {}
            },
            '/' if rest.peek() == Some(&'*') => (depth, _) = (1, rest.next()),
            '/' if rest.peek() == Some(&'/') => while rest.next_if(|c| *c != '\n').is_some() {},
            '"' => {
                while let Some(c) = rest.next() {
                    match c {
                        '\\' => drop(rest.next()),
                        '"' => break,
                        '\n' => lines.push(String::new()),
                        _ => {}
                    }
                }
            }
            '\'' => {
                // A character literal such as '"' must not open a string; a lifetime has no closing quote.
                let ahead: Vec<char> = rest.clone().take(3).collect();
                let skip = match ahead.as_slice() {
                    ['\\', _, '\''] => 3,
                    [_, '\'', ..] => 2,
                    _ => 0,
                };
                for _ in 0..skip {
                    rest.next();
                }
            }
            'r' if matches!(rest.peek(), Some('"' | '#')) && !line.ends_with(is_identifier) => {
                let hashes = std::iter::from_fn(|| rest.next_if_eq(&'#')).count();
                if rest.next_if_eq(&'"').is_none() {
                    continue; // a raw identifier
                }
                let mut trailing = None;
                while trailing != Some(hashes) {
                    match (rest.next(), trailing) {
                        (None, _) => break,
                        (Some('"'), _) => trailing = Some(0),
                        (Some('#'), Some(seen)) => trailing = Some(seen + 1),
                        (Some(c), _) => {
                            trailing = None;
                            if c == '\n' {
                                lines.push(String::new());
                            }
                        }
                    }
                }
            }
            _ => line.push(c),
        }
    }
    lines
}

fn is_identifier(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_word(line: &str, word: &str) -> bool {
    line.split(|c| !is_identifier(c)).any(|w| w == word)
}

fn allowed_unsafe(path: &Path) -> bool {
    UNSAFE_PLACES.iter().any(|place| path.to_string_lossy().starts_with(place))
}

#[test]
fn unsafe_lives_in_its_places_only() {
    let mut wrong = Vec::new();
    for path in sources().into_iter().filter(|p| !allowed_unsafe(p)) {
        for (number, line) in code_lines(&text(&path)).iter().enumerate() {
            if is_word(line, "unsafe") {
                wrong.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "unsafe outside {UNSAFE_PLACES:?}:\n{}", wrong.join("\n"));
}

#[test]
fn every_unsafe_block_carries_its_proof() {
    let mut wrong = Vec::new();
    for path in sources().into_iter().filter(|p| allowed_unsafe(p)) {
        let source = text(&path);
        let plain: Vec<&str> = source.lines().collect();
        for (number, line) in code_lines(&source).iter().enumerate() {
            let opens = line.contains("unsafe {") || line.contains("unsafe impl");
            // The proof may stand above a statement of several lines: look back to the statement's beginning.
            let proven = || plain[..=number].iter().rev().take(14).any(|l| l.contains("SAFETY:"));
            if opens && !proven() {
                wrong.push(format!("{}:{}", path.display(), number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "unsafe without a SAFETY comment above it:\n{}", wrong.join("\n"));
}

#[test]
fn every_module_says_what_it_is_for_and_what_it_never_does() {
    let wrong: Vec<String> = sources()
        .into_iter()
        .filter(|path| {
            let source = text(path);
            let doc =
                source.lines().skip_while(|l| !l.starts_with("//!")).take_while(|l| l.starts_with("//!"));
            !doc.flat_map(|line| line.split_whitespace()).any(|word| word.eq_ignore_ascii_case("never"))
        })
        .map(|path| path.display().to_string())
        .collect();
    assert!(wrong.is_empty(), "modules whose doc at the top has no \"never\":\n{}", wrong.join("\n"));
}

#[test]
fn packages_depend_in_one_direction() {
    for (folder, allowed) in PACKAGES {
        let manifest = text(Path::new(&format!("{folder}/Cargo.toml")));
        let mut in_dependencies = false;
        for line in manifest.lines() {
            if let Some(section) = line.strip_prefix('[') {
                in_dependencies =
                    section.starts_with("dependencies") || section.starts_with("build-dependencies");
            }
            let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
            let ours = name == "rma" || name.starts_with("rma-") || name == "fortran-lint";
            if in_dependencies && ours {
                assert!(allowed.contains(&name), "{folder} may not depend on {name}; allowed: {allowed:?}");
            }
        }
    }
}

/// The modules that the code of `path` names by `crate::`, its unit tests excluded.
fn modules_named(path: &Path) -> BTreeSet<String> {
    let lines = code_lines(&text(path));
    let tests = lines.iter().position(|line| line.trim_start().starts_with("mod tests {"));
    let mut named = BTreeSet::new();
    for line in &lines[..tests.unwrap_or(lines.len())] {
        // What a macro names by `$crate` is named where the macro is used.
        for (at, _) in line.match_indices("crate::").filter(|(at, _)| !line[..*at].ends_with('$')) {
            let name = line[at + "crate::".len()..].split(|c| !is_identifier(c)).next().unwrap_or_default();
            assert!(
                name.starts_with(char::is_lowercase),
                "{}: name the module, not the root's re-export: {}",
                path.display(),
                line.trim()
            );
            named.insert(name.to_owned());
        }
    }
    named
}

#[test]
fn modules_of_the_runtime_depend_in_one_direction() {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in files("runtime/src", ".rs") {
        let inside = path.strip_prefix("runtime/src").expect("found there").with_extension("");
        let module = inside.iter().next().expect("a file").to_string_lossy().into_owned();
        // The root shows everything, programs have modules of their own, and test files may look at all.
        if matches!(module.as_str(), "lib" | "bin") || inside.ends_with("tests") {
            continue;
        }
        let named = modules_named(&path);
        found.entry(module.clone()).or_default().extend(named.into_iter().filter(|name| *name != module));
    }
    for (at, (module, allowed)) in MODULES.iter().enumerate() {
        for name in *allowed {
            assert!(MODULES[..at].iter().any(|(lower, _)| lower == name), "{name} is not below {module}");
        }
        let named = found.remove(*module).unwrap_or_default();
        let named: Vec<&str> = named.iter().map(String::as_str).collect();
        assert_eq!(named, *allowed, "what {module} names, and what it may");
    }
    assert!(found.is_empty(), "modules that the table does not have: {:?}", found.keys());
}

#[test]
fn the_soundness_page_names_tests_that_exist() {
    let page = text(Path::new("docs/soundness.md"));
    let sources: Vec<String> = files("runtime", ".rs").iter().map(|path| text(path)).collect();
    let mut named = 0;
    for name in page.split('`').skip(1).step_by(2) {
        let is_test = name.matches('_').count() >= 2 && name.chars().all(|c| c.is_lowercase() || c == '_');
        if !is_test {
            continue;
        }
        named += 1;
        let is_function = sources.iter().any(|source| source.contains(&format!("fn {name}(")));
        let is_program = rma_tests::root().join(format!("runtime/tests/ui/{name}.rs")).exists();
        assert!(is_function || is_program, "docs/soundness.md names `{name}`, and there is no such test");
    }
    assert!(named > 50, "only {named} tests are named");
}

#[test]
fn long_files_are_named() {
    // A hint, not a rule: prints, never fails.
    for path in sources() {
        let lines = text(&path).lines().count();
        if lines > LONG_FILE_LINES {
            println!("{}: {lines} lines; does it hold two ideas?", path.display());
        }
    }
}

#[test]
fn comments_and_strings_are_not_code() {
    let lines = code_lines("let a = '\"'; // unsafe\nlet s = \"unsafe {\"; /* unsafe */ b<'a>();\n");
    assert_eq!(lines[0].trim(), "let a = ;");
    assert!(!is_word(&lines[1], "unsafe"));
    assert!(is_word(&lines[1], "b"));
    let lines = code_lines("let r = r#\"a \" unsafe \"#; for_r\"unsafe\"; x");
    assert_eq!(lines[0].trim(), "let r = ; for_r; x");
}
