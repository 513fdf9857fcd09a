//! Which lines changed since a revision, from git. Never changes anything in a repository.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use fortran_lint::changed::{Lines, parse_diff};

use super::settings::Group;

/// Touched lines by absolute path.
pub(super) struct Changed {
    files: HashMap<PathBuf, Lines>,
}

impl Changed {
    /// The touched lines of a file; `None` where nothing changed.
    pub(super) fn lines_of(&self, path: &str) -> Option<&Lines> {
        self.files.get(&std::fs::canonicalize(path).ok()?)
    }
}

/// What changed since the work tree left the line of `revision`, with what is not committed and new files.
pub(super) fn changed(revision: &str, groups: &[Group]) -> Result<Changed, String> {
    if revision.starts_with('-') {
        return Err(format!("`{revision}` is no revision"));
    }
    let mut roots: Vec<PathBuf> = Vec::new();
    for input in groups.iter().flat_map(|group| &group.inputs) {
        let path = Path::new(&input.path);
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let is_known = std::fs::canonicalize(folder)
            .is_ok_and(|folder| roots.iter().any(|root| folder.starts_with(root)));
        if is_known {
            continue;
        }
        let root = run(folder, &["rev-parse", "--show-toplevel"]).map_err(|why| {
            format!(
                "{why}; `--since` leaves what git knows to be changed, so the paths must be in a checkout"
            )
        })?;
        let root = PathBuf::from(String::from_utf8_lossy(&root).trim_end_matches('\n'));
        roots.push(std::fs::canonicalize(&root).unwrap_or(root));
    }
    let mut files = HashMap::new();
    for root in roots {
        let base = run(&root, &["merge-base", revision, "HEAD"]).map_err(|why| {
            format!("{why}; name a branch, a tag or a commit that this checkout has, with its history (`git fetch --unshallow`)")
        })?;
        let base = String::from_utf8_lossy(&base).trim().to_string();
        let diff = run(
            &root,
            &[
                "-c",
                "core.quotepath=off",
                "diff",
                "--no-color",
                "--no-ext-diff",
                "--no-renames",
                "--unified=0",
                "--src-prefix=a/",
                "--dst-prefix=b/",
                &base,
                "--",
            ],
        )?;
        let changed = parse_diff(&String::from_utf8_lossy(&diff))
            .map_err(|line| format!("git printed a diff that is not understood: {line}"))?;
        files.extend(changed.into_iter().map(|(path, lines)| (root.join(path), lines)));
        let new = run(&root, &["ls-files", "--others", "--exclude-standard", "-z"])?;
        let names = String::from_utf8_lossy(&new).into_owned();
        files.extend(
            names.split('\0').filter(|name| !name.is_empty()).map(|name| (root.join(name), Lines::All)),
        );
    }
    Ok(Changed { files })
}

fn run(folder: &Path, arguments: &[&str]) -> Result<Vec<u8>, String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(arguments)
        .output()
        .map_err(|error| format!("--since needs git, which does not start: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_string();
        return Err(format!("git {} in {}: {said}", arguments.join(" "), folder.display()));
    }
    Ok(output.stdout)
}
