//! The requirements catalogue in `docs/spec` is unchanged, and every `covers:` claim names an id that it has.
//! Never asks for full coverage: `docs/spec/coverage` prints what is missing.

use std::process::Command;

#[test]
fn catalogue_is_a_verbatim_copy() {
    if !rma_tests::have("sha256sum") {
        return;
    }
    let output = Command::new("sha256sum")
        .args(["--check", "--quiet", "SHA256SUMS"])
        .current_dir(rma_tests::root().join("docs/spec"))
        .output()
        .expect("sha256sum starts");
    assert!(output.status.success(), "docs/spec differs from its checksums:\n{}", lossy(&output.stdout));
}

#[test]
fn every_claim_names_a_known_requirement() {
    if !rma_tests::have("python3") {
        return;
    }
    let output = Command::new("python3")
        .arg("docs/spec/coverage")
        .current_dir(rma_tests::root())
        .output()
        .expect("python3 starts");
    let report = lossy(&output.stdout);
    assert!(output.status.success(), "docs/spec/coverage failed:\n{report}{}", lossy(&output.stderr));
    let wrong: Vec<&str> =
        report.lines().filter(|l| l.starts_with("unknown id") || l.starts_with("catalogue:")).collect();
    assert!(wrong.is_empty(), "claims that no requirement answers to:\n{}", wrong.join("\n"));
    for line in report.lines().filter(|l| l.contains('/') && l.contains(": ")) {
        println!("{line}");
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
