//! Included files from the disk. Never reads one twice, and never follows a link to a folder.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use fortran_lint::source::Files;

/// Deepest nesting of folders that is followed.
const DEPTH_MAX: usize = 64;

/// Largest file that is included.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The files of the disk, of which those below the given paths can be found by their names alone.
#[derive(Debug)]
pub(crate) struct Disk {
    paths: Vec<PathBuf>,
    /// What was read; `None` where there is no file.
    read: Mutex<HashMap<String, Option<Arc<[u8]>>>>,
    /// Paths by their last parts, gathered when they are first asked for.
    named: OnceLock<HashMap<String, Vec<String>>>,
}

impl Disk {
    pub(crate) fn new(paths: &[PathBuf]) -> Disk {
        Disk { paths: paths.to_vec(), read: Mutex::default(), named: OnceLock::new() }
    }
}

impl Files for Disk {
    fn read(&self, path: &str) -> Option<Arc<[u8]>> {
        let known = |read: &Mutex<HashMap<String, Option<Arc<[u8]>>>>| {
            read.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned()
        };
        if let Some(bytes) = known(&self.read) {
            return bytes;
        }
        // A device or a pipe could keep the reader waiting for ever.
        let is_file =
            std::fs::metadata(path).is_ok_and(|data| data.is_file() && data.len() <= FILE_BYTES_MAX);
        let bytes: Option<Arc<[u8]>> = match is_file {
            true => std::fs::read(path).ok().map(Arc::from),
            false => None,
        };
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.insert(path.to_string(), bytes.clone());
        bytes
    }

    fn named(&self, name: &str) -> Vec<String> {
        let named = self.named.get_or_init(|| {
            let mut named = HashMap::new();
            for path in &self.paths {
                gather(path, DEPTH_MAX, &mut named);
            }
            named
        });
        named.get(name).cloned().unwrap_or_default()
    }
}

/// Notes the files below a folder; what cannot be read is not there.
fn gather(folder: &Path, depth: usize, named: &mut HashMap<String, Vec<String>>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        if kind.is_dir() && depth > 0 && !name.starts_with('.') {
            gather(&path, depth - 1, named);
        } else if !kind.is_dir() {
            named.entry(name).or_default().push(path.display().to_string());
        }
    }
}
