//! The register advice is where the requirements want it: on its own page, and linked where somebody meets the hazard.
//! Never judges the advice itself.

use std::fs;
use std::path::Path;

fn text(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The documentation above an item, without the comment signs.
fn documentation(source: &str, item: &str) -> String {
    let end = source.find(item).unwrap_or_else(|| panic!("no `{item}`"));
    let mut lines: Vec<&str> = source[..end]
        .lines()
        .rev()
        .skip_while(|line| line.trim_start().starts_with("#["))
        .map(str::trim_start)
        .take_while(|line| line.starts_with("///"))
        .collect();
    lines.reverse();
    lines.iter().map(|line| line.trim_start_matches("///").trim()).collect::<Vec<_>>().join(" ")
}

// covers: REG-ADV-04
#[test]
fn windows_and_epochs_state_the_restriction_and_link_the_advice() {
    let places = [
        ("macros/src/lib.rs", "#[proc_macro_attribute]\npub fn rma_epoch"),
        ("runtime/src/window/mod.rs", "    #[track_caller]\n    pub fn allocate("),
    ];
    for (file, item) in places {
        let documentation = documentation(&text(file), item);
        for word in ["COMMON", "VOLATILE", "Fortran", "docs/registers.md"] {
            assert!(
                documentation.contains(word),
                "{file}: the documentation of `{item}` does not say {word}"
            );
        }
    }
}

/// Everything that starts now and ends in a later call, in between which the buffer is somebody else's.
// covers: REG-ADV-03
#[test]
fn what_does_not_block_links_the_advice() {
    let places = [
        ("runtime/src/epoch/mod.rs", "        pub fn get<'at>("),
        ("runtime/src/epoch/mod.rs", "        pub fn rget<'at, B"),
        ("runtime/src/epoch/request.rs", "    pub fn istart("),
        ("runtime/src/epoch/request.rs", "    pub fn iwait("),
        ("runtime/src/pgo/mod.rs", "pub fn ioffer<B"),
        ("runtime/src/pgo/mod.rs", "pub fn iofferp<B"),
        ("runtime/src/pgo/mod.rs", "pub fn iofferc<B"),
    ];
    for (file, item) in places {
        let documentation = documentation(&text(file), item);
        for word in ["Fortran", "docs/registers.md"] {
            assert!(
                documentation.contains(word),
                "{file}: the documentation of `{item}` does not say {word}"
            );
        }
    }
}

// covers: REG-ADV-06
#[test]
fn the_page_states_the_quality_levels() {
    let page = text("docs/registers.md");
    for statement in [
        "C and Rust are safe",
        "Good Fortran environments may be safe without losing optimisation",
        "None is required to be",
    ] {
        assert!(page.contains(statement), "docs/registers.md does not state: {statement}");
    }
}
