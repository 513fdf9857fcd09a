//! Golden expansions: each `tests/expand/NAME.rs` must expand to `NAME.expanded.rs`, as prettyplease prints it.
//! `UPDATE=1 cargo test -p rma-macros` writes them anew. Never compiles what it expands: `tests/pass/` does that.

#![allow(dead_code)] // The modules of the crate are compiled here as they are; not all of each is used.

use std::fs;
use std::path::Path;

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

use quote::ToTokens;

/// The file with every annotated function expanded.
fn expanded(source: &str) -> String {
    let mut file = syn::parse_file(source).expect("the case is Rust");
    let mut items = Vec::new();
    for item in file.items {
        match annotated(item) {
            Ok((name, attribute, item)) => {
                let tokens = match name.as_str() {
                    "rma_epoch" => engine::epoch(attribute, item),
                    _ => engine::test(attribute, item),
                };
                items.extend(syn::parse2::<syn::File>(tokens).expect("the expansion is Rust").items);
            }
            Err(item) => items.push(*item),
        }
    }
    file.items = items;
    prettyplease::unparse(&file)
}

type Annotated = (String, proc_macro2::TokenStream, proc_macro2::TokenStream);

fn annotated(item: syn::Item) -> Result<Annotated, Box<syn::Item>> {
    let syn::Item::Fn(mut function) = item else { return Err(Box::new(item)) };
    let ours = |attr: &syn::Attribute| attr.path().is_ident("rma_epoch") || attr.path().is_ident("rma_test");
    let Some(at) = function.attrs.iter().position(ours) else {
        return Err(Box::new(syn::Item::Fn(function)));
    };
    let name = function.attrs[at].path().segments[0].ident.to_string();
    let attribute = match function.attrs.remove(at).meta {
        syn::Meta::List(list) => list.tokens,
        _ => proc_macro2::TokenStream::new(),
    };
    Ok((name, attribute, function.to_token_stream()))
}

// covers: RMA-MAC-01, REG-MAC-01
#[test]
fn every_kind_expands_to_the_runtime_calls_of_its_order() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expand");
    let mut cases = 0;
    let mut stale = Vec::new();
    for entry in fs::read_dir(&folder).expect("the folder exists") {
        let path = entry.expect("readable").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a plain name");
        if !name.ends_with(".rs") || name.ends_with(".expanded.rs") {
            continue;
        }
        cases += 1;
        let golden = path.with_extension("expanded.rs");
        let now = expanded(&fs::read_to_string(&path).expect("readable"));
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&golden, &now).expect("writable");
        } else if fs::read_to_string(&golden).ok().as_deref() != Some(now.as_str()) {
            stale.push(format!("{}:\n{now}", golden.display()));
        }
    }
    assert!(cases >= 8, "only {cases} cases in {}", folder.display());
    assert!(stale.is_empty(), "stale; look, then run with UPDATE=1:\n{}", stale.join("\n"));
}
