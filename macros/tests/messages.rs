//! The table of messages and `tests/ui/` fit: every row has a case named like its code, and every case earns exactly
//! the messages that it says. Never looks at what rustc adds: `tests/compile.rs` does that.

#![allow(dead_code)] // The modules of the crate are compiled here as they are; not all of each is used.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "../src/body.rs"]
mod body;
#[path = "../src/check.rs"]
mod check;
#[path = "../src/element.rs"]
mod element;
#[path = "../src/engine.rs"]
mod engine;
#[path = "../src/expand.rs"]
mod expand;
#[path = "../src/messages.rs"]
mod messages;
#[path = "../src/model.rs"]
mod model;
#[path = "../src/parse.rs"]
mod parse;
#[path = "../src/test_case.rs"]
mod test_case;

use messages::{Errors, Message};
use quote::ToTokens;

fn ui() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui")
}

fn cases() -> Vec<(String, String)> {
    let mut cases: Vec<_> = fs::read_dir(ui())
        .expect("the folder exists")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| {
            let name = path.file_stem().and_then(|name| name.to_str()).expect("a plain name").to_owned();
            (name, fs::read_to_string(&path).expect("readable"))
        })
        .collect();
    cases.sort();
    cases
}

/// The item as a derive sees it, if it derives `Element`.
fn derived(item: &syn::Item) -> Option<syn::DeriveInput> {
    let item: syn::DeriveInput = syn::parse2(item.to_token_stream()).ok()?;
    let derives = |attribute: &&syn::Attribute| {
        attribute.path().is_ident("derive")
            && attribute.meta.to_token_stream().into_iter().any(|token| match token {
                proc_macro2::TokenTree::Group(list) => list.to_string().contains("Element"),
                _ => false,
            })
    };
    item.attrs.iter().find(derives)?;
    Some(item)
}

/// The texts of all messages that the annotated items of a file earn.
fn texts(source: &str) -> Vec<String> {
    let mut errors = Errors::default();
    for item in syn::parse_file(source).expect("the case is Rust").items {
        if let Some(item) = derived(&item) {
            element::read(&item, &mut errors);
            continue;
        }
        let (mut function, mut other) = (None, None);
        match item {
            syn::Item::Fn(item) => function = Some(item),
            syn::Item::Struct(item) => other = Some(item),
            _ => continue,
        }
        let attrs = match (&mut function, &mut other) {
            (Some(item), _) => &mut item.attrs,
            (_, Some(item)) => &mut item.attrs,
            _ => continue,
        };
        let Some(at) =
            attrs.iter().position(|a| a.path().is_ident("rma_epoch") || a.path().is_ident("rma_test"))
        else {
            continue;
        };
        let attribute = attrs.remove(at);
        let is_epoch = attribute.path().is_ident("rma_epoch");
        let arguments = match attribute.meta {
            syn::Meta::List(list) => list.tokens,
            _ => proc_macro2::TokenStream::new(),
        };
        let item = match (function, other) {
            (Some(item), _) => item.into_token_stream(),
            (_, item) => item.into_token_stream(),
        };
        match is_epoch {
            true => {
                if let Some(function) = parse::function(arguments, item, &mut errors) {
                    check::function(&function, &mut errors);
                }
            }
            false => drop(test_case::read(arguments, item, &mut errors)),
        }
    }
    errors.texts()
}

/// What a case says that it earns: the codes of its `// gives:` line, else its own name.
fn promised(name: &str, source: &str) -> Vec<String> {
    match source.lines().find_map(|line| line.strip_prefix("// gives: ")) {
        Some(codes) => codes.split(", ").map(str::to_owned).collect(),
        None => vec![name.to_owned()],
    }
}

fn code(text: &str) -> String {
    text.rsplit_once('[').and_then(|(_, code)| code.strip_suffix(']')).unwrap_or("no code").to_owned()
}

// covers: RMA-MAC-06
#[test]
fn every_case_earns_its_messages_and_no_other() {
    let mut wrong = Vec::new();
    for (name, source) in cases().into_iter().filter(|(name, _)| !name.starts_with("rustc_")) {
        let mut expected = promised(&name, &source);
        let mut earned: Vec<String> = texts(&source).iter().map(|text| code(text)).collect();
        expected.sort();
        earned.sort();
        if earned != expected {
            wrong.push(format!("{name}: expected {expected:?}, earned {earned:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_message_has_a_case() {
    let names: BTreeSet<String> = cases().into_iter().map(|(name, _)| name).collect();
    let missing: Vec<&str> =
        messages::ALL.iter().map(|row| row.code).filter(|code| !names.contains(*code)).collect();
    assert!(missing.is_empty(), "rows without a case in tests/ui: {missing:?}");
}

#[test]
fn every_message_teaches() {
    let requirements: String = ["rma", "pgo", "examples", "visibility", "register-hazard"]
        .iter()
        .map(|file| ui().join(format!("../../../docs/spec/{file}.md")))
        .map(|path| fs::read_to_string(path).expect("the requirements are there"))
        .collect();
    for Message { code, rule, text, label, help } in messages::ALL {
        assert!(text.len() > 12 && !text.ends_with('.'), "{code}: the text is one sentence without its stop");
        assert!(label.len() > 3, "{code}: the label says what is marked");
        assert!(help.len() > 10, "{code}: the help says what to write");
        assert!(requirements.contains(&format!("#### {rule}")), "{code}: {rule} is no requirement");
    }
}

/// How many mutilated functions the engine is given: enough to reach every arm of the parser, few enough for every run.
const MUTILATIONS: usize = 3000;

/// The tokens without, or twice with, one of them, at whatever depth number `at` falls.
fn mutilated(tokens: proc_macro2::TokenStream, at: &mut usize, twice: bool) -> proc_macro2::TokenStream {
    use proc_macro2::{Group, TokenTree};
    let mut out = Vec::new();
    for token in tokens {
        let hit = *at == 0;
        *at = at.wrapping_sub(1);
        match (token, hit) {
            (_, true) if !twice => {}
            (token, true) => out.extend([token.clone(), token]),
            (TokenTree::Group(group), false) => {
                let inside = mutilated(group.stream(), at, twice);
                out.push(TokenTree::Group(Group::new(group.delimiter(), inside)));
            }
            (token, false) => out.push(token),
        }
    }
    out.into_iter().collect()
}

#[test]
fn mutilated_functions_earn_messages_and_no_panic() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expand");
    let functions: Vec<(proc_macro2::TokenStream, proc_macro2::TokenStream)> = fs::read_dir(folder)
        .expect("the folder exists")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| !path.to_string_lossy().ends_with(".expanded.rs"))
        .flat_map(|path| syn::parse_file(&fs::read_to_string(path).expect("readable")).expect("Rust").items)
        .filter_map(|item| match item {
            syn::Item::Fn(mut item) if !item.attrs.is_empty() => match item.attrs.remove(0).meta {
                syn::Meta::List(list) => Some((list.tokens, item.into_token_stream())),
                _ => None,
            },
            _ => None,
        })
        .collect();
    assert!(functions.len() > 8);
    let mut state = 1_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for _ in 0..MUTILATIONS {
        let (attribute, item) = functions[random(functions.len())].clone();
        let (mut at, twice) = (random(120), random(2) == 0);
        // A panic of the engine would fail the test; what comes out does not matter here.
        match random(4) {
            0 => drop(engine::epoch(mutilated(attribute, &mut { random(12) }, twice), item)),
            _ => drop(engine::epoch(attribute, mutilated(item, &mut at, twice))),
        }
    }
}
