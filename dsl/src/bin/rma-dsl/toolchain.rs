//! From emitted text to a program that can be run: the cache, the runtime library and `rustc`.
//!
//! Everything is found by the hash of what it was made from, is built beside its final place and moved there in one
//! step, so that runs at the same time do not disturb each other and a build that was cut off is never used.
//! Never looks at what a program means.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The runtime's sources, as the workspace had them when this binary was built.
const EMBEDDED: &[(&str, &[u8])] = &include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
/// Names another workspace to build the runtime from; if there is none at its place, the embedded sources are used.
const WORKSPACE_VARIABLE: &str = "RMA_WORKSPACE";
/// The workspace in which this binary was built; it may be gone.
const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// Parts of the workspace that the runtime is built from.
const SOURCES: [&str; 2] = ["runtime", "macros"];
const LEFT_OUT: [&str; 4] = ["target", "benches", "examples", "bindings"];
/// Changes whenever the layout of the cache does.
const LAYOUT: &str = "1";

/// How programs are compiled. Rust never fuses a multiplication with an addition, so `native` changes no bit.
const RUSTC_FLAGS: [&str; 7] = [
    "--edition=2024",
    "-Copt-level=3",
    "-Ctarget-cpu=native",
    "-Cdebuginfo=0",
    "-Cstrip=debuginfo",
    "-Ccodegen-units=2",
    "--cap-lints=allow",
];

/// What is needed to run emitted programs.
pub(crate) struct Toolchain {
    cache: PathBuf,
    rustc: OsString,
    version: String,
}

/// The built runtime.
pub(crate) struct Runtime {
    folder: PathBuf,
    key: String,
}

impl Runtime {
    /// The launcher.
    pub(crate) fn launcher(&self) -> PathBuf {
        self.folder.join("rma-run")
    }
}

impl Toolchain {
    /// Finds the compiler and the cache.
    ///
    /// # Errors
    /// A sentence saying what is missing.
    pub(crate) fn find() -> Result<Toolchain, String> {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| OsString::from("rustc"));
        let output = Command::new(&rustc).arg("-vV").stderr(Stdio::inherit()).output();
        let version = match output {
            Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
            Ok(output) => return Err(format!("`{} -vV` failed: {}", rustc.display(), output.status)),
            Err(error) => {
                return Err(format!(
                    "cannot run the Rust compiler `{}`: {error}; `rma-dsl run` builds its programs with it: install \
                     Rust from https://rustup.rs, or set RUSTC",
                    rustc.display()
                ));
            }
        };
        Ok(Toolchain { cache: cache_folder(), rustc, version })
    }

    /// The runtime library and launcher, built if they are not there yet.
    ///
    /// # Errors
    /// A sentence; the compiler's own messages are on standard error.
    pub(crate) fn runtime(&self) -> Result<Runtime, String> {
        let workspace = std::env::var_os(WORKSPACE_VARIABLE).map_or(PathBuf::from(WORKSPACE), PathBuf::from);
        let sources = workspace_sources(&workspace);
        let is_workspace = sources.is_some();
        let sources = match sources {
            Some(sources) => sources,
            None => EMBEDDED.iter().map(|(name, bytes)| (name.to_string(), bytes.to_vec())).collect(),
        };
        let mut hash = Hash::new();
        hash.add(LAYOUT.as_bytes());
        hash.add(self.version.as_bytes());
        for (name, bytes) in &sources {
            hash.add(name.as_bytes());
            hash.add(bytes);
        }
        let key = hash.text();
        let folder = self.cache.join("runtime").join(&key);
        let runtime = Runtime { folder: folder.clone(), key };
        if is_complete(&folder) {
            return Ok(runtime);
        }
        let base = self.cache.join("runtime");
        create_folder(&base)?;
        let lock_path = base.join("lock");
        let lock = File::create(&lock_path).map_err(|error| cannot("write", &lock_path, &error))?;
        lock.lock().map_err(|error| cannot("lock", &lock_path, &error))?;
        if is_complete(&folder) {
            return Ok(runtime); // Another run has built it meanwhile.
        }
        eprintln!("building the runtime (once)");
        let manifest = match is_workspace {
            true => workspace,
            false => unpack(&base.join("source"), &sources)?,
        }
        .join("Cargo.toml");
        self.build_runtime(&manifest, &base.join("target"), &folder)?;
        Ok(runtime)
    }

    fn build_runtime(&self, manifest: &Path, target: &Path, folder: &Path) -> Result<(), String> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
        let build = |offline: &[&str]| {
            let mut command = Command::new(&cargo);
            command.args(["build", "--release", "--quiet", "-p", "rma-runtime", "--lib", "--bin", "rma-run"]);
            command.arg("--manifest-path").arg(manifest).arg("--target-dir").arg(target).args(offline);
            // A build that runs inside another one must not take over its settings.
            for name in [
                "RUSTFLAGS",
                "CARGO_ENCODED_RUSTFLAGS",
                "CARGO_BUILD_TARGET",
                "RUSTC_WRAPPER",
                "CARGO_MAKEFLAGS",
            ] {
                command.env_remove(name);
            }
            command.env("RUSTC", &self.rustc).stdin(Stdio::null()).output()
        };
        // First without the network; what is missing is fetched only if that does not work.
        let mut output = build(&["--offline"]);
        if output.as_ref().is_ok_and(|output| !output.status.success()) {
            output = build(&[]);
        }
        match output {
            Ok(output) if output.status.success() => {}
            Ok(output) => {
                eprint!("{}", String::from_utf8_lossy(&output.stderr));
                return Err(String::from("the runtime could not be built; cargo's messages are above"));
            }
            Err(error) => return Err(format!("cannot run `{}`: {error}", cargo.display())),
        }
        let release = target.join("release");
        replace(folder, |new| {
            copy(&release.join("librma.rlib"), &new.join("librma.rlib"))?;
            copy(&release.join("rma-run"), &new.join("rma-run"))?;
            let deps = new.join("deps");
            create_folder(&deps)?;
            let listed = release.join("deps");
            let entries = fs::read_dir(&listed).map_err(|error| cannot("read", &listed, &error))?;
            for entry in entries.flatten() {
                let name = entry.file_name();
                let text = name.to_string_lossy();
                if text.starts_with("lib") && (text.ends_with(".rlib") || text.ends_with(".so")) {
                    copy(&entry.path(), &deps.join(&name))?;
                }
            }
            Ok(())
        })
    }

    /// The program built from `text`; `true` when it was in the cache.
    ///
    /// # Errors
    /// A sentence; the compiler's own messages are on standard error.
    pub(crate) fn program(
        &self,
        name: &str,
        text: &str,
        runtime: &Runtime,
    ) -> Result<(PathBuf, Origin), String> {
        let mut hash = Hash::new();
        for part in [LAYOUT, &self.version, &runtime.key, &processor(), &RUSTC_FLAGS.join(" "), text] {
            hash.add(part.as_bytes());
        }
        let folder = self.cache.join("programs").join(hash.text());
        let program = folder.join(name);
        if is_complete(&folder) && program.is_file() {
            return Ok((program, Origin::Cache));
        }
        replace(&folder, |new| {
            let source = new.join(format!("{name}.rs"));
            fs::write(&source, text).map_err(|error| cannot("write", &source, &error))?;
            let mut command = Command::new(&self.rustc);
            command.args(RUSTC_FLAGS).args(["--crate-type=bin", "--crate-name"]).arg(crate_name(name));
            let mut library = OsString::from("rma=");
            library.push(runtime.folder.join("librma.rlib"));
            let mut dependencies = OsString::from("dependency=");
            dependencies.push(runtime.folder.join("deps"));
            command.arg("--extern").arg(library).arg("-L").arg(dependencies);
            let built = command.arg("-o").arg(new.join(name)).arg(&source).stdin(Stdio::null()).output();
            match built {
                Ok(output) if output.status.success() => Ok(()),
                Ok(output) => {
                    eprint!("{}", String::from_utf8_lossy(&output.stderr));
                    Err(String::from("the emitted program does not compile, which is a mistake in rma-dsl"))
                }
                Err(error) => Err(format!("cannot run `{}`: {error}", self.rustc.display())),
            }
        })?;
        Ok((program, Origin::Built))
    }
}

/// Where a program came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// It was there.
    Cache,
    /// It has just been built.
    Built,
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> String {
    format!("cannot {what} {}: {error}", path.display())
}

fn create_folder(path: &Path) -> Result<(), String> {
    fs::create_dir_all(path).map_err(|error| cannot("create the folder", path, &error))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::copy(from, to).map(|_| ()).map_err(|error| cannot("copy", from, &error))
}

/// `RMA_CACHE`, else `rma` in the user's cache folder.
fn cache_folder() -> PathBuf {
    let from = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    match (from("RMA_CACHE"), from("XDG_CACHE_HOME"), from("HOME")) {
        (Some(cache), ..) => cache,
        (_, Some(cache), _) => cache.join("rma"),
        (_, _, Some(home)) => home.join(".cache").join("rma"),
        _ => std::env::temp_dir().join("rma-cache"),
    }
}

/// Fills a new folder and puts it in the place of `folder`.
fn replace(folder: &Path, fill: impl FnOnce(&Path) -> Result<(), String>) -> Result<(), String> {
    let parent = folder.parent().unwrap_or(Path::new("."));
    create_folder(parent)?;
    let stamp =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    let new = parent.join(format!("new-{}-{stamp}", std::process::id()));
    create_folder(&new)?;
    let filled = fill(&new).and_then(|()| seal(&new)).and_then(|()| {
        if folder.exists() {
            // It is broken, or another run has been faster; moving it away keeps programs that run from it alive.
            let old = parent.join(format!("old-{}-{stamp}", std::process::id()));
            if is_complete(folder) {
                return Ok(());
            }
            if fs::rename(folder, &old).is_ok() {
                let _ = fs::remove_dir_all(&old);
            }
        }
        match fs::rename(&new, folder) {
            Ok(()) => Ok(()),
            Err(_) if is_complete(folder) => Ok(()),
            Err(error) => Err(cannot("create the folder", folder, &error)),
        }
    });
    let _ = fs::remove_dir_all(&new); // It is only there if it was not needed.
    filled
}

/// The file that lists a folder's files with the hashes of their contents.
const SEAL: &str = "seal";

fn seal(folder: &Path) -> Result<(), String> {
    let path = folder.join(SEAL);
    let text = contents(folder).map_err(|error| cannot("read", folder, &error))?;
    fs::write(&path, text).map_err(|error| cannot("write", &path, &error))
}

/// Whether all files of a folder are as they were when it was sealed.
fn is_complete(folder: &Path) -> bool {
    match (fs::read_to_string(folder.join(SEAL)), contents(folder)) {
        (Ok(sealed), Ok(found)) => sealed == found,
        _ => false,
    }
}

/// Files of a folder with their sizes, and hashes of those directly in it.
fn contents(folder: &Path) -> io::Result<String> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == SEAL {
            continue;
        }
        if entry.file_type()?.is_dir() {
            for inner in fs::read_dir(entry.path())? {
                let inner = inner?;
                lines.push(format!(
                    "{name}/{} {}\n",
                    inner.file_name().to_string_lossy(),
                    inner.metadata()?.len()
                ));
            }
        } else {
            let mut hash = Hash::new();
            hash.add(&fs::read(entry.path())?);
            lines.push(format!("{name} {}\n", hash.text()));
        }
    }
    lines.sort();
    Ok(lines.concat())
}

/// The sources of the runtime in a workspace, if it is there.
fn workspace_sources(workspace: &Path) -> Option<Vec<(String, Vec<u8>)>> {
    if !workspace.join("runtime").join("Cargo.toml").is_file() {
        return None;
    }
    let mut files = vec![(String::from("Cargo.lock"), fs::read(workspace.join("Cargo.lock")).ok()?)];
    files.push((String::from("Cargo.toml"), fs::read(workspace.join("Cargo.toml")).ok()?));
    for folder in SOURCES {
        collect(&workspace.join(folder), folder, &mut files).ok()?;
    }
    files.sort();
    Some(files)
}

fn collect(folder: &Path, name: &str, files: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let file = entry.file_name().to_string_lossy().into_owned();
        let inner = format!("{name}/{file}");
        match entry.file_type()?.is_dir() {
            true if LEFT_OUT.contains(&file.as_str()) => {}
            true => collect(&entry.path(), &inner, files)?,
            false => files.push((inner, fs::read(entry.path())?)),
        }
    }
    Ok(())
}

/// Writes the embedded sources as a workspace of their own.
fn unpack(folder: &Path, sources: &[(String, Vec<u8>)]) -> Result<PathBuf, String> {
    let _ = fs::remove_dir_all(folder); // What an older version left.
    for (name, bytes) in sources {
        let path = folder.join(name);
        create_folder(path.parent().unwrap_or(folder))?;
        let bytes = match name.as_str() {
            "Cargo.toml" => without_other_members(&String::from_utf8_lossy(bytes)).into_bytes(),
            _ => bytes.clone(),
        };
        fs::write(&path, bytes).map_err(|error| cannot("write", &path, &error))?;
    }
    Ok(folder.to_path_buf())
}

/// The workspace's manifest with only the members that are embedded.
fn without_other_members(manifest: &str) -> String {
    let Some((before, rest)) = manifest.split_once("members = [") else { return manifest.to_string() };
    let Some((_, after)) = rest.split_once(']') else { return manifest.to_string() };
    format!("{before}members = [\"macros\", \"runtime\", \"runtime/automaton\"]{after}")
}

/// What `target-cpu=native` means here, so that a cache on a shared disk serves several kinds of machine.
fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let wanted = |line: &&str| {
        line.starts_with("model name") || line.starts_with("flags") || line.starts_with("Features")
    };
    let mut lines: Vec<&str> = text.lines().filter(wanted).collect();
    lines.sort_unstable();
    lines.dedup();
    format!("{} {}", std::env::consts::ARCH, lines.join(" "))
}

/// A program's name as rustc wants crates to be called.
fn crate_name(name: &str) -> String {
    let mut text: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        text.insert(0, '_');
    }
    text
}

/// A hash of 128 bits: two of the FNV kind over words, with different primes. It tells contents apart, and is not
/// meant against somebody who wants two to be equal.
struct Hash {
    a: u64,
    b: u64,
}

impl Hash {
    fn new() -> Hash {
        Hash { a: 0xcbf2_9ce4_8422_2325, b: 0x6c62_272e_07bb_0142 }
    }

    fn word(&mut self, word: u64) {
        self.a = (self.a ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
        self.b = (self.b ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31);
    }

    /// Adds a part; where it ends counts too.
    fn add(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            self.word(u64::from_le_bytes(word.try_into().expect("chunks of eight")));
        }
        for byte in words.remainder() {
            self.word(u64::from(*byte) | 0x100);
        }
        self.word(bytes.len() as u64);
    }

    fn text(&self) -> String {
        format!("{:016x}{:016x}", self.a ^ (self.b >> 32), self.b ^ (self.a >> 29))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_folder_notices_every_change() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("entry");
        replace(&folder, |new| fs::write(new.join("program"), b"text").map_err(|error| error.to_string()))
            .unwrap();
        assert!(is_complete(&folder));
        fs::write(folder.join("program"), b"tex").unwrap();
        assert!(!is_complete(&folder));
        replace(&folder, |new| fs::write(new.join("program"), b"more").map_err(|error| error.to_string()))
            .unwrap();
        assert!(is_complete(&folder));
        assert_eq!(fs::read(folder.join("program")).unwrap(), b"more");
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 1);
    }

    #[test]
    fn embedded_sources_are_a_workspace() {
        let names: Vec<&str> = EMBEDDED.iter().map(|(name, _)| *name).collect();
        for name in
            ["Cargo.toml", "Cargo.lock", "runtime/Cargo.toml", "runtime/src/lib.rs", "macros/Cargo.toml"]
        {
            assert!(names.contains(&name), "{name} is not embedded");
        }
        let manifest = EMBEDDED.iter().find(|(name, _)| *name == "Cargo.toml").unwrap().1;
        let manifest = without_other_members(&String::from_utf8_lossy(manifest));
        assert!(!manifest.contains("fortran-lint\",\n"), "{manifest}");
    }

    #[test]
    fn hashes_tell_parts_apart() {
        let text = |parts: &[&str]| {
            let mut hash = Hash::new();
            parts.iter().for_each(|part| hash.add(part.as_bytes()));
            hash.text()
        };
        assert_ne!(text(&["ab", "c"]), text(&["a", "bc"]));
        assert_ne!(text(&["abcdefgh"]), text(&["abcdefgi"]));
        assert_eq!(text(&["x"]), text(&["x"]));
    }
}
