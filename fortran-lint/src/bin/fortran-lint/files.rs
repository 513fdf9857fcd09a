//! Source files below the paths of the command line. Never looks at what git ignores, at hidden folders, or behind
//! links, unless a path names it.

use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use fortran_lint::check::Input;
use fortran_lint::source::matches;
use ignore::WalkBuilder;

use super::STDIN;
use super::settings::Group;

/// Extensions of files that are looked at in folders; a file named on the command line is always read.
const EXTENSIONS: &[&str] =
    &["f", "for", "ftn", "f66", "f77", "f90", "f95", "f03", "f08", "f18", "f23", "fpp"];

/// Largest file that is taken for a source.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Zeros among so many bytes at the beginning tell a file that is no text.
const PROBE_BYTES: usize = 8192;

/// What to do about a file that is no source.
const WAY_OUT: &str = "leave it out by `exclude` in fortran-lint.toml";

/// The files of a group, each once, in the order of paths and names, and what could not be read.
pub(super) fn read(group: &Group, standard_input: Option<&Input>) -> (Vec<Input>, Vec<String>) {
    let mut inputs = Vec::new();
    let mut failures = Vec::new();
    let mut seen = HashSet::new();
    for path in &group.paths {
        if path.as_os_str() == STDIN {
            inputs.extend(standard_input.cloned());
            continue;
        }
        let mut files = Vec::new();
        collect(group, path, &mut files, &mut failures);
        for file in files {
            if !seen.insert(std::path::absolute(&file).unwrap_or_else(|_| file.clone())) {
                continue;
            }
            match text(&file) {
                Ok(bytes) => inputs.push(Input { path: file.display().to_string(), bytes }),
                Err(why) => failures.push(format!("cannot read {}: {why}", file.display())),
            }
        }
    }
    (inputs, failures)
}

/// The bytes of a file that can be a source.
fn text(file: &Path) -> Result<Vec<u8>, String> {
    let too_large = |n_bytes: u64| {
        format!("it has {n_bytes} bytes, and no source has more than {FILE_BYTES_MAX}; {WAY_OUT}")
    };
    let n_bytes = std::fs::metadata(file).map_err(|error| error.to_string())?.len();
    if n_bytes > FILE_BYTES_MAX {
        return Err(too_large(n_bytes));
    }
    // A pipe tells its length only at its end.
    let mut bytes = Vec::new();
    std::fs::File::open(file)
        .and_then(|open| open.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(too_large(bytes.len() as u64));
    }
    match bytes[..bytes.len().min(PROBE_BYTES)].iter().position(|&byte| byte == 0) {
        Some(at) => {
            Err(format!("it is no text, since byte {at} is zero; convert it if it is UTF-16, or {WAY_OUT}"))
        }
        None => Ok(bytes),
    }
}

fn collect(group: &Group, path: &Path, files: &mut Vec<PathBuf>, failures: &mut Vec<String>) {
    match std::fs::metadata(path) {
        Ok(data) if data.is_dir() => {}
        Ok(_) => return files.push(path.to_path_buf()),
        Err(error) => return failures.push(format!("cannot read {}: {error}", path.display())),
    }
    let (exclude, folder) = (group.exclude.clone(), group.folder.clone());
    let is_excluded = move |path: &Path| {
        let path = relative_to(path, &folder);
        exclude.iter().any(|pattern| matches(pattern, &path))
    };
    let walk = WalkBuilder::new(path)
        .require_git(false)
        .sort_by_file_name(Ord::cmp)
        .filter_entry(move |entry| entry.depth() == 0 || !is_excluded(entry.path()))
        .build();
    for entry in walk {
        match entry {
            Ok(entry) => {
                let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
                // A link to a source is a source; one to a folder is not followed.
                let is_link = entry.path_is_symlink() && entry.path().is_file();
                if (is_file || is_link) && is_source(entry.path()) {
                    files.push(entry.into_path());
                }
            }
            Err(error) => failures.push(format!("cannot read {}: {error}", path.display())),
        }
    }
}

fn is_source(path: &Path) -> bool {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
    extension.is_some_and(|extension| EXTENSIONS.contains(&extension.as_str()))
}

/// A path as seen from a folder, with `/` between its parts.
fn relative_to(path: &Path, folder: &Path) -> String {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let (path, folder) = (absolute(path), absolute(folder));
    let inner = path.strip_prefix(&folder).unwrap_or(&path);
    inner.iter().map(|part| part.to_string_lossy().into_owned()).collect::<Vec<String>>().join("/")
}

/// A file as seen from the folder of another one.
pub(super) fn relative(file: &str, other: &Path) -> String {
    let folder = other.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    relative_to(Path::new(file), folder)
}

/// A run that looked at nothing must not pass for one that found nothing.
pub(super) fn nothing_to_check(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
    let extensions: Vec<String> = EXTENSIONS.iter().map(|extension| format!(".{extension}")).collect();
    format!(
        "there is no Fortran file in {}; in folders, names that end in {} are looked for, and what git ignores and \
         what the configuration excludes is passed over",
        paths.join(", "),
        extensions.join(", ")
    )
}
