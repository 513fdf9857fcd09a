//! Programs that must not compile, one mistake each. `TRYBUILD=overwrite cargo test -p rma-runtime --test compile_fail`
//! writes the expected messages anew.
#![forbid(unsafe_code)]

// covers: RMA-WIN-10 -- no slice outlives its private epoch; the other half is below
#[test]
fn mistakes_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}

// covers: RMA-WIN-10
#[test]
fn references_into_windows_are_made_in_one_file() {
    let mut makers = Vec::new();
    let mut folders = vec![std::path::PathBuf::from("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the sources are there") {
            let path = entry.expect("the sources are readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if std::fs::read_to_string(&path).expect("sources are text").contains("from_raw_parts") {
                makers.push(path.display().to_string());
            }
        }
    }
    makers.sort();
    // The segment makes references to words of its own, all of them atomics.
    // Memory that a program allocates by itself is no window, and neither are the marks of a private copy, which only its owner
    // has.
    let expected = [
        "src/pgo/raw/memory.rs",
        "src/transport/shm/segment.rs",
        "src/window/raw/copies.rs",
        "src/window/raw/local.rs",
    ];
    assert_eq!(makers, expected);
}
