//! Finds an included file by its name. Never opens one that it doesn't return.

use std::sync::Arc;

use super::Reading;

/// The path and the bytes of the file that `name` means in a file whose includers are `chain`, the outermost first.
///
/// Looked at in this order: the folders of the includers from the innermost out, the include paths, and last the
/// trees that are checked. Codes are often built in a folder into which the files of many others are linked, so that
/// the name alone leads there; of several files of that name the nearest to the including one is meant.
pub(super) fn find(name: &str, chain: &[Arc<str>], reading: &Reading) -> Option<(String, Arc<[u8]>)> {
    let name = name.trim();
    if name.is_empty() {
        return None;
    }
    let read = |path: String| reading.files.read(&path).map(|bytes| (path, bytes));
    if name.starts_with('/') {
        return read(name.to_string());
    }
    let beside = chain.iter().rev().map(|path| folder(path));
    let given = reading.include_paths.iter().map(String::as_str);
    beside.chain(given).find_map(|folder| read(join(folder, name))).or_else(|| {
        let includer = chain.last().map_or("", |path| path);
        nearest(name, includer, reading).and_then(read)
    })
}

/// The folder of a path; empty for a path without one.
fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { normal(name) } else { normal(&format!("{folder}/{name}")) }
}

/// A path without `.` and `..`, so that one file has one path.
pub(super) fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|&last| last != "..") => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    let joined = parts.join("/");
    if path.starts_with('/') { format!("/{joined}") } else { joined }
}

/// The file of the trees that `name` can mean, nearest to `includer`.
fn nearest(name: &str, includer: &str, reading: &Reading) -> Option<String> {
    let parts: Vec<&str> = name.split('/').filter(|part| !matches!(*part, "." | ".." | "")).collect();
    let last = parts.last()?;
    let ends_so = |path: &String| {
        let mut of_path = path.rsplit('/');
        parts.iter().rev().all(|part| of_path.next() == Some(part))
    };
    let n_shared = |path: &str| {
        folder(path).split('/').zip(folder(includer).split('/')).take_while(|(a, b)| a == b).count()
    };
    reading.files.named(last).into_iter().filter(ends_so).map(|path| normal(&path)).max_by(|a, b| {
        let shared = n_shared(a).cmp(&n_shared(b));
        let depth = |path: &str| path.split('/').count();
        shared.then_with(|| depth(b).cmp(&depth(a))).then_with(|| b.cmp(a))
    })
}
