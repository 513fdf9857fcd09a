//! Files written whole or not at all. Never leaves half a file, and never one that somebody else changed meanwhile.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Result, Write};
use std::path::{Path, PathBuf};

/// Puts `new` in the place of `old`; a link stays a link, permissions stay.
pub(super) fn replace(path: &Path, old: &[u8], new: &[u8]) -> Result<()> {
    let path = std::fs::canonicalize(path)?;
    if std::fs::read(&path)? != old {
        return Err(Error::other("it was changed by somebody else since it was read"));
    }
    let permissions = std::fs::metadata(&path)?.permissions();
    if permissions.readonly() {
        return Err(Error::new(ErrorKind::PermissionDenied, "it may not be written"));
    }
    write(&path, new, |file| file.set_permissions(permissions))
}

/// Writes a file that may be there or not.
pub(super) fn create(path: &Path, text: &[u8]) -> Result<()> {
    let path = match std::fs::canonicalize(path) {
        Ok(path) => path,
        Err(_) => path.to_path_buf(),
    };
    write(&path, text, |_| Ok(()))
}

/// Writes next to the file and renames.
fn write(path: &Path, text: &[u8], prepare: impl FnOnce(&File) -> Result<()>) -> Result<()> {
    let name = path.file_name().ok_or_else(|| Error::other("it has no name"))?;
    let beside: PathBuf =
        path.with_file_name(format!(".{}.{}.fortran-lint", name.to_string_lossy(), std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).open(&beside)?;
    let done = prepare(&file)
        .and_then(|()| file.write_all(text))
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::rename(&beside, path));
    if done.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    done
}
