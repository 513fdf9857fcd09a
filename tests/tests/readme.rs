//! Runs what the README shows. Never runs the README's test command, which is what runs this test.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The lines of the README's `sh` blocks.
fn commands() -> Vec<String> {
    let readme = rma_tests::text(Path::new("README.md"));
    let mut inside = false;
    let mut found = Vec::new();
    for line in readme.lines() {
        match line {
            "```sh" => inside = true,
            "```" => inside = false,
            _ if inside => found.push(line.to_owned()),
            _ => {}
        }
    }
    found
}

/// What lies in the root of the workspace.
fn in_root() -> BTreeSet<String> {
    std::fs::read_dir(rma_tests::root())
        .expect("the root is readable")
        .map(|entry| entry.expect("a readable entry").file_name().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn every_command_of_the_readme_works() {
    let commands = commands();
    assert!(
        commands.iter().any(|c| c == "cargo test --workspace"),
        "the README names no test command: {commands:?}"
    );
    for command in commands.iter().filter(|c| !c.starts_with("cargo test --workspace")) {
        let before = in_root();
        let output = Command::new("sh")
            .args(["-c", command])
            .current_dir(rma_tests::root())
            // The cache of the tests, not the user's; the stencil compiler's own tests have built the runtime there.
            .env("RMA_CACHE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("dsl-cache"))
            .output()
            .expect("sh starts");
        let new: Vec<String> = in_root().difference(&before).cloned().collect();
        for file in &new {
            std::fs::remove_file(rma_tests::root().join(file))
                .expect("what the command wrote can be removed");
        }
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "`{command}` failed: {}\n{said}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        if command.contains(" run dsl/examples/heat2d.rma") {
            assert!(
                said.lines().any(|l| l.starts_with("digest u ")),
                "`{command}` prints no digest:\n{said}"
            );
            assert!(new.iter().any(|f| f.ends_with(".png")), "`{command}` wrote no picture, only {new:?}");
        }
    }
}
