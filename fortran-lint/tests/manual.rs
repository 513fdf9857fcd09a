//! Runs what `docs/fortran-lint.md` and the definition of the pre-commit hook show.
//!
//! `UPDATE=1 cargo test -p fortran-lint --test manual` writes the outputs in the page anew.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::{package, skip};
use fortran_lint::config::Config;

fn root() -> PathBuf {
    package().parent().expect("the package lies in the workspace").to_path_buf()
}

fn page() -> PathBuf {
    root().join("docs/fortran-lint.md")
}

/// A fenced block: what stands before it, its language, its lines.
struct Block {
    before: String,
    language: String,
    lines: Vec<String>,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut before = String::new();
    let mut open: Option<Block> = None;
    for line in text.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(language), None) => {
                open =
                    Some(Block { before: before.clone(), language: language.to_string(), lines: Vec::new() });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => block.lines.push(line.to_string()),
            (None, None) if !line.is_empty() => before = line.to_string(),
            (None, None) => {}
        }
    }
    blocks
}

/// The folder of the page: its files, in a repository of git where there is one.
struct Tree {
    folder: tempfile::TempDir,
}

impl Tree {
    fn new(blocks: &[Block]) -> Tree {
        let tree = Tree { folder: tempfile::tempdir().expect("a temporary folder can be made") };
        for block in blocks.iter().filter(|block| block.language == "fortran") {
            let Some(path) = block.before.strip_prefix('`').and_then(|rest| rest.strip_suffix("`:")) else {
                continue;
            };
            let path = tree.folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("it lies in a folder"))
                .expect("the folder can be made");
            std::fs::write(path, block.lines.join("\n") + "\n").expect("the file can be written");
        }
        tree
    }

    /// Runs a line of shell, with the program on the path.
    fn sh(&self, line: &str) -> Output {
        let program = Path::new(env!("CARGO_BIN_EXE_fortran-lint"));
        let folder = program.parent().expect("the program lies in a folder");
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
        Command::new("sh")
            .args(["-c", line])
            .current_dir(self.folder.path())
            .env("PATH", path)
            .env("GITHUB_BASE_REF", "trunk")
            .env("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "trunk")
            .output()
            .expect("sh starts")
    }

    /// Makes a repository whose trunk on the server is the tree as it is.
    fn commit(&self) {
        let git = "git -c user.name=t -c user.email=t@example.org -c commit.gpgsign=false";
        for line in [
            "git init -q -b work".to_string(),
            "git add src".to_string(),
            format!("{git} commit -q -m first"),
            "git update-ref refs/remotes/origin/trunk HEAD".to_string(),
        ] {
            let output = self.sh(&line);
            assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

#[test]
fn the_page_shows_what_the_program_prints() {
    let text = std::fs::read_to_string(page()).expect("the page is there");
    let tree = Tree::new(&blocks(&text));
    let mut fresh = String::new();
    let mut is_console = false;
    let mut n_commands = 0;
    for line in text.lines() {
        if let Some(language) = line.strip_prefix("```") {
            is_console = language == "console";
        }
        match line.strip_prefix("$ ").filter(|_| is_console) {
            Some(command) => {
                n_commands += 1;
                let output = tree.sh(&format!("{{ {command}; }} 2>&1"));
                let printed = String::from_utf8_lossy(&output.stdout).into_owned();
                fresh.push_str(&format!("{line}\n"));
                // Markdown has no blanks at the end of lines.
                for printed in printed.lines() {
                    fresh.push_str(&format!("{}\n", printed.trim_end()));
                }
            }
            None if is_console && !line.starts_with("```") => {}
            None => fresh.push_str(&format!("{line}\n")),
        }
    }
    assert!(n_commands > 6, "the page shows {n_commands} commands");
    let mut stale = Vec::new();
    common::update(&page(), &fresh, &mut stale);
    assert!(stale.is_empty(), "stale, run with UPDATE=1: {stale:?}\n{fresh}");
}

#[test]
fn the_settings_of_the_page_are_understood() {
    let text = std::fs::read_to_string(page()).expect("the page is there");
    let mut n = 0;
    for block in blocks(&text).iter().filter(|block| block.language == "toml") {
        n += 1;
        let parsed = Config::parse(&block.lines.join("\n"));
        assert!(parsed.is_ok(), "{parsed:?}");
    }
    assert_eq!(n, 1);
}

#[test]
fn the_commands_for_continuous_integration_and_the_hook_work() {
    if Command::new("git").arg("--version").output().is_err() {
        return skip("no git");
    }
    let text = std::fs::read_to_string(page()).expect("the page is there");
    let blocks = blocks(&text);
    let tree = Tree::new(&blocks);
    tree.commit();
    let hook = std::fs::read_to_string(root().join(".pre-commit-hooks.yaml")).expect("the hook is there");
    let value = |key: &str| -> String {
        let line = hook.lines().find_map(|line| line.trim_start_matches("- ").trim_start().strip_prefix(key));
        line.unwrap_or_else(|| panic!("the hook has no `{key}`")).trim().to_string()
    };
    let mut commands: Vec<String> = blocks
        .iter()
        .filter(|block| block.language == "yaml")
        .flat_map(|block| &block.lines)
        .map(|line| line.trim_start().trim_start_matches("- ").trim_start_matches("run: ").to_string())
        .filter(|line| line.starts_with("fortran-lint "))
        .collect();
    assert_eq!(commands.len(), 3, "{commands:?}");
    commands.push(format!("{} {}", value("entry:"), value("args:").trim_matches(['[', ']'])));
    let statuses = || -> Vec<i32> {
        commands
            .iter()
            .map(|command| {
                let output = tree.sh(command);
                let status = output.status.code().expect("it ends by itself");
                assert!(status < 2, "{command}: {}", String::from_utf8_lossy(&output.stderr));
                status
            })
            .collect()
    };
    // Nothing has changed yet; the file for code scanning is written all the same.
    assert_eq!(statuses(), [0, 0, 0, 0]);
    let sarif = std::fs::read_to_string(tree.folder.path().join("registers.sarif")).expect("it was written");
    assert!(sarif.contains("\"ruleId\": \"FR01\""));
    // A change beside the read of the window.
    let path = tree.folder.path().join("src/counter.f90");
    let text = std::fs::read_to_string(&path)
        .expect("the file is there")
        .replace("last = ticket", "last = ticket + 1");
    std::fs::write(&path, text).expect("the file can be written");
    assert_eq!(statuses(), [1, 0, 1, 1]);
    // The hook is called for every file that the program looks at.
    let listed = value("files:");
    let (_, listed) = listed.split_once('(').and_then(|(_, rest)| rest.split_once('(')).expect("two groups");
    let listed: Vec<&str> = listed.trim_end_matches(")$").split('|').collect();
    let empty = tempfile::tempdir().expect("a temporary folder can be made");
    let output = tree.sh(&format!("fortran-lint check {}", empty.path().display()));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let (_, endings) = said.split_once("end in ").expect("the message lists them");
    let (endings, _) = endings.split_once(" are").expect("the message lists them");
    for ending in endings.split(", ") {
        assert!(listed.contains(&ending.trim_start_matches('.')), "{ending} is missing in {listed:?}");
    }
}
