//! What the cross-crate tests share: where the workspace is, which files are its sources, how a missing tool is
//! reported. Never used outside tests; nothing else may depend on this package.
#![forbid(unsafe_code)]

pub mod emitted;

/// The README, so that its Rust programs are compiled and run, each alone as a job of one rank.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The root of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the tests package lies in the workspace")
        .to_path_buf()
}

/// All files below `folder` (relative to the root) whose name ends in `suffix`, sorted, as paths relative to the
/// root. Build output is left out.
pub fn files(folder: &str, suffix: &str) -> Vec<PathBuf> {
    let root = root();
    let mut found = Vec::new();
    let mut open = vec![root.join(folder)];
    while let Some(folder) = open.pop() {
        let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        for entry in entries {
            let path = entry.expect("a readable folder entry").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                if name != "target" && !name.starts_with('.') {
                    open.push(path);
                }
            } else if name.ends_with(suffix) {
                found.push(path.strip_prefix(&root).expect("found below the root").to_path_buf());
            }
        }
    }
    found.sort();
    found
}

/// The text of a workspace file.
pub fn text(path: &Path) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Whether `tool` can be started. If not, says on stderr that the caller's test is skipped and why; with
/// `RMA_REQUIRE_PEERS=1` a missing tool fails the test instead.
pub fn have(tool: &str) -> bool {
    let found = Command::new(tool)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok();
    if !found {
        assert!(
            std::env::var_os("RMA_REQUIRE_PEERS").is_none_or(|v| v != "1"),
            "{tool} is not installed, and RMA_REQUIRE_PEERS=1 turns a skip into a failure"
        );
        eprintln!("skipped: {tool} is not installed");
    }
    found
}
