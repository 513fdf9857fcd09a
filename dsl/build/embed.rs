//! Packs the runtime's sources into the binary, so that a `rma-dsl` without its workspace can still build programs.
//! Never packs build output.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Folders of the workspace that a program needs, beside its `Cargo.toml` and `Cargo.lock`.
const FOLDERS: [&str; 2] = ["runtime", "macros"];
/// Folders within them that it does not need.
const LEFT_OUT: [&str; 4] = ["target", "benches", "examples", "bindings"];

/// Writes `embedded.rs`: a list of paths and contents.
pub(crate) fn embed() {
    let workspace = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("..");
    let mut files = Vec::new();
    for name in ["Cargo.toml", "Cargo.lock"] {
        files.push(workspace.join(name));
    }
    for folder in FOLDERS {
        println!("cargo::rerun-if-changed={}", workspace.join(folder).display());
        collect(&workspace.join(folder), &mut files);
    }
    files.retain(|file| file.is_file());
    files.sort();
    let mut text = String::from("[\n");
    for file in files {
        let path = file.canonicalize().expect("it was just listed");
        let name =
            file.strip_prefix(&workspace).expect("it lies in the workspace").to_string_lossy().into_owned();
        writeln!(text, "({name:?}, include_bytes!({path:?}) as &[u8]),").expect("a string takes all");
    }
    text.push_str("]\n");
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo sets it")).join("embedded.rs");
    std::fs::write(out, text).expect("the build folder can be written");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        match path.is_dir() {
            true if LEFT_OUT.iter().any(|left_out| name == *left_out) => {}
            true => collect(&path, files),
            false => files.push(path),
        }
    }
}
