//! Symbols: what gfortran's tree says about the names of fixtures, and what the linter's model says about them.
//!
//! The second test compares any sources, such as those of a public code, when it is told of them:
//! `RMA_SYMBOLS=list.txt cargo test -p fortran-lint --test symbols -- --nocapture`.
//!
//! Skipped, with a reason, where there is no gfortran; a failure there when RMA_REQUIRE_PEERS=1.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{package, skip};
use fortran_lint::model::{Model, UnitId};
use fortran_lint::parse::{Attributes, BaseType, Kind, Tree, UnitKind, parse_file};
use fortran_lint::source::Reading;

/// What is compared of one name: type, number of dimensions, attributes, COMMON block.
type Symbol = (String, usize, BTreeSet<&'static str>, Option<String>);

/// Names of one unit.
type Symbols = BTreeMap<String, Symbol>;

/// What gfortran says of the names of one unit, and of each whether the model may do without it.
type Dumped = BTreeMap<String, (Symbol, bool)>;

/// Attributes that both sides can tell.
const ATTRIBUTES: [(&str, &str, Attributes); 11] = [
    ("TARGET", "target", Attributes::TARGET),
    ("POINTER", "pointer", Attributes::POINTER),
    ("ALLOCATABLE", "allocatable", Attributes::ALLOCATABLE),
    ("VOLATILE", "volatile", Attributes::VOLATILE),
    ("ASYNCHRONOUS", "asynchronous", Attributes::ASYNCHRONOUS),
    ("CONTIGUOUS", "contiguous", Attributes::CONTIGUOUS),
    ("OPTIONAL", "optional", Attributes::OPTIONAL),
    ("VALUE", "value", Attributes::VALUE),
    ("PARAMETER", "parameter", Attributes::PARAMETER),
    ("DUMMY", "dummy", Attributes::NONE),
    ("IN-COMMON", "common", Attributes::NONE),
];

/// What gfortran's tree says of procedures, statement functions among them.
const PROCEDURE: &str = "procedure";

fn fixtures() -> Vec<PathBuf> {
    let folder = package().join("tests/fixtures/symbols");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension != "inc"))
        .collect();
    paths.sort();
    paths
}

#[test]
fn symbols_agree_with_gfortran() {
    let starts =
        Command::new("gfortran").arg("--version").output().is_ok_and(|output| output.status.success());
    if !starts {
        skip("no gfortran");
        return;
    }
    let scratch = tempfile::tempdir().expect("a temporary folder can be made");
    let paths = fixtures();
    assert!(paths.len() >= 4, "there are fixtures");
    for path in paths {
        let theirs = dump(&path, scratch.path(), &[]).unwrap_or_else(|complaint| panic!("{complaint}"));
        let (ours, n_unknown) = modelled(&path);
        assert_eq!(n_unknown, 0, "{} is understood", path.display());
        let (n_compared, differences) = compare(&ours, &theirs);
        assert!(differences.is_empty(), "{} (left ours):\n{}", path.display(), differences.join("\n"));
        assert!(n_compared >= 10, "{}: only {n_compared} names compared", path.display());
    }
}

/// Compares any sources: `RMA_SYMBOLS` names a file that lists them, each behind the modules that it uses, and
/// `RMA_SYMBOLS_FLAGS` holds what gfortran needs to be told. Sources that it does not compile are passed over.
#[test]
fn symbols_of_other_sources_agree_with_gfortran() {
    let Ok(list) = std::env::var("RMA_SYMBOLS") else {
        println!("skipped: RMA_SYMBOLS lists no sources");
        return;
    };
    let list = std::fs::read_to_string(list).expect("the list can be read");
    let flags = std::env::var("RMA_SYMBOLS_FLAGS").unwrap_or_default();
    let flags: Vec<&str> = flags.split_whitespace().collect();
    let scratch = tempfile::tempdir().expect("a temporary folder can be made");
    let (mut n_files, mut n_refused, mut n_units, mut n_names, mut n_different) = (0, 0, 0, 0, 0);
    for path in list.lines().map(PathBuf::from) {
        // One branch of each condition, as gfortran sees it.
        let theirs = preprocessed(&path, scratch.path(), &flags)
            .and_then(|path| Ok((dump(&path, scratch.path(), &flags)?, path)));
        let (theirs, path) = match theirs {
            Ok(theirs) => theirs,
            Err(complaint) => {
                println!("not compiled: {}", complaint.lines().take(6).collect::<Vec<_>>().join(" | "));
                n_refused += 1;
                continue;
            }
        };
        let (ours, n_unknown) = modelled(&path);
        let (n_compared, mut differences) = compare(&ours, &theirs);
        if n_unknown > 0 {
            differences.push(format!("{n_unknown} statements are not understood"));
        }
        for difference in &differences {
            println!("{}: {difference}", path.display());
        }
        n_files += 1;
        n_units += ours.len();
        n_names += n_compared;
        n_different += differences.len();
    }
    println!(
        "{n_files} files, {n_units} units, {n_names} names compared, {n_different} differences, {n_refused} files not compiled"
    );
    assert_eq!(n_different, 0);
}

/// A source with the preprocessor's work done.
fn preprocessed(path: &Path, scratch: &Path, flags: &[&str]) -> Result<PathBuf, String> {
    let name = path.file_name().expect("a source has a name").to_string_lossy().to_lowercase();
    let out = scratch.join(name);
    let mut command = Command::new("gfortran");
    command.args(["-E", "-P", "-cpp"]).args(flags).arg(path).arg("-o").arg(&out);
    let output = command.output().expect("gfortran starts");
    match output.status.success() {
        true => Ok(out),
        false => Err(format!("{}: {}", path.display(), String::from_utf8_lossy(&output.stderr))),
    }
}

/// What gfortran's tree of a source says, or why it does not compile.
fn dump(path: &Path, scratch: &Path, flags: &[&str]) -> Result<BTreeMap<String, Dumped>, String> {
    let output = Command::new("gfortran")
        .args(["-fdump-parse-tree", "-fsyntax-only", "-cpp", "-fcray-pointer", "-std=gnu", "-w", "-J"])
        .arg(scratch)
        .args(flags)
        .arg(path)
        .output()
        .expect("gfortran starts");
    match output.status.success() {
        true => Ok(dumped(&String::from_utf8_lossy(&output.stdout))),
        false => Err(format!("{}: {}", path.display(), String::from_utf8_lossy(&output.stderr))),
    }
}

/// How many names both sides know, and where they differ.
fn compare(ours: &BTreeMap<String, Symbols>, theirs: &BTreeMap<String, Dumped>) -> (usize, Vec<String>) {
    let mut n_compared = 0;
    let mut differences = Vec::new();
    let none = Dumped::new();
    for (unit, symbols) in ours {
        let known = theirs.get(unit).unwrap_or(&none);
        for (name, symbol) in symbols {
            n_compared += 1;
            match known.get(name) {
                Some((known, _)) if is_same(symbol, known) => {}
                Some((known, _)) => differences.push(format!("{name} in {unit}: {symbol:?}, {known:?}")),
                None => differences.push(format!("gfortran has no {name} in {unit}")),
            }
        }
        // What gfortran declares and nobody here knows would be lost.
        for (name, (_, may_be_lost)) in known {
            if !may_be_lost && !symbols.contains_key(name) {
                differences.push(format!("{name} of {unit} is lost"));
            }
        }
    }
    (n_compared, differences)
}

/// Whether both sides say the same of a name. The model does not know the value of a named kind, nor whether a name with a
/// type and nothing else is a variable or a procedure.
fn is_same(ours: &Symbol, theirs: &Symbol) -> bool {
    let is_same_type = match ours.0.strip_suffix('?') {
        Some(base) => theirs.0.starts_with(base),
        None => ours.0 == theirs.0,
    };
    if theirs.2.contains(PROCEDURE) {
        let is_bare = ours.1 == 0 && ours.2.iter().all(|attribute| *attribute == "dummy");
        return is_bare && (is_same_type || theirs.0.starts_with("unknown"));
    }
    is_same_type && (ours.1, &ours.2, &ours.3) == (theirs.1, &theirs.2, &theirs.3)
}

/// The names that gfortran dumps, by unit.
fn dumped(text: &str) -> BTreeMap<String, Dumped> {
    let mut units: BTreeMap<String, Dumped> = BTreeMap::new();
    let mut unit = String::new();
    let mut name = String::new();
    let mut kind = String::new();
    // COMMON blocks stand before the names; blank COMMON is not listed.
    let mut blocks: BTreeMap<(String, String), String> = BTreeMap::new();
    for line in text.lines() {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("procedure name = ") {
            // `master.0.name` where the unit has ENTRY statements.
            unit = rest.rsplit('.').next().unwrap_or_default().to_string();
        } else if let Some((_, rest)) = line.split_once("symtree: '") {
            name = rest.split('\'').next().unwrap_or_default().trim().to_string();
        } else if let Some(rest) = line.strip_prefix("type spec : ") {
            kind = rest.trim_start_matches('(').trim_end_matches(')').to_string();
        } else if let Some(rest) = line.strip_prefix("attributes: ") {
            let words: Vec<&str> = rest.trim_matches(['(', ')']).split([' ', '(', ')']).collect();
            let set: BTreeSet<&'static str> = match words[0] {
                "VARIABLE" | "PARAMETER" => {
                    let set = ATTRIBUTES.iter().filter(|(theirs, ..)| words.contains(theirs));
                    set.map(|(_, ours, _)| *ours).collect()
                }
                "PROCEDURE" => BTreeSet::from([PROCEDURE]),
                _ => continue,
            };
            let symbol = (type_name(&kind), 0, set, None);
            // What the compiler makes for itself, what comes from elsewhere, and what nothing declares.
            let is_elsewhere = words.contains(&"USE-ASSOC") || words.contains(&"IMPLICIT-TYPE");
            let is_data = symbol.2.contains("dummy") || symbol.2.contains("common");
            let may_be_lost = words[0] == "PROCEDURE" || name.starts_with('_') || is_elsewhere && !is_data;
            units.entry(unit.clone()).or_default().insert(name.clone(), (symbol, may_be_lost));
        } else if let Some(rest) = line.strip_prefix("Array spec:(") {
            let rank = rest.split([' ', '[']).next().and_then(|rank| rank.parse().ok()).unwrap_or(0);
            if let Some((symbol, _)) = units.get_mut(&unit).and_then(|symbols| symbols.get_mut(&name)) {
                symbol.1 = rank;
            }
        } else if let Some(rest) = line.strip_prefix("common: /") {
            let (block, members) = rest.split_once('/').unwrap_or_default();
            for member in members.split(',').map(str::trim) {
                blocks.insert((unit.clone(), member.to_string()), block.to_string());
            }
        }
    }
    for (unit, symbols) in &mut units {
        for (name, (symbol, _)) in symbols.iter_mut().filter(|(_, (symbol, _))| symbol.2.contains("common")) {
            symbol.3 = Some(blocks.remove(&(unit.clone(), name.clone())).unwrap_or_default());
        }
    }
    units
}

/// `REAL 8`, `CHARACTER 10 1`, `DERIVED point` in a form of their own.
fn type_name(dumped: &str) -> String {
    let mut words = dumped.split_whitespace();
    let base = words.next().unwrap_or_default().to_lowercase();
    match base.as_str() {
        "character" => base,
        "derived" => format!("derived {}", words.next().unwrap_or_default().to_lowercase()),
        // `__class_module_Name_t`, of an array `__class_module_Name_1_0t`.
        "class" => {
            let name = words.next().unwrap_or_default();
            let (name, last) = name.rsplit_once('_').unwrap_or((name, ""));
            let is_array = last.starts_with(|first: char| first.is_ascii_digit());
            let name = name.rsplit_once('_').filter(|_| is_array).map_or(name, |(name, _)| name);
            let start = name.find(char::is_uppercase).unwrap_or(0);
            format!("derived {}", name[start..].to_lowercase())
        }
        _ => format!("{base} {}", words.next().unwrap_or_default()),
    }
}

/// The names of the linter's model, by unit, and how many statements were not understood.
fn modelled(path: &std::path::Path) -> (BTreeMap<String, Symbols>, usize) {
    let bytes = std::fs::read(path).expect("the fixture can be read");
    let files = std::sync::Arc::new(OnDisk);
    let reading = Reading { files, ..Reading::default() };
    let (tree, _) = parse_file(&path.display().to_string(), &bytes, &reading);
    let model = Model::new(&tree);
    let mut units = BTreeMap::new();
    let mut shared = BTreeSet::new();
    for (id, unit) in model.iter() {
        let name = unit.name.map_or("MAIN__", |name| tree.symbols.name(name.symbol)).to_string();
        let mut symbols = Symbols::new();
        for (&symbol, variable) in &unit.variables {
            let own = unit.name.is_some_and(|name| name.symbol == symbol);
            let is_procedure = variable.attributes.has(Attributes::EXTERNAL);
            if own || is_procedure || !(variable.is_owned || variable.is_dummy) || symbol.0 == u32::MAX {
                continue;
            }
            let name = tree.symbols.name(symbol).to_string();
            let Some(kind) = our_type(&tree, &model, id, symbol) else { continue };
            let rank = variable.shape.map_or(0, |shape| tree.list(shape).len());
            let has =
                |attribute: Attributes| attribute != Attributes::NONE && variable.attributes.has(attribute);
            let set = ATTRIBUTES.iter().filter(|(_, name, attribute)| match *name {
                "dummy" => variable.is_dummy,
                "common" => variable.common_place.is_some(),
                _ => has(*attribute),
            });
            let set = set.map(|(_, name, _)| *name).collect();
            let block = variable
                .common_place
                .map(|place| place.block.map_or(String::new(), |block| tree.symbols.name(block).to_string()));
            symbols.insert(name, (kind, rank, set, block));
        }
        // Dummy arguments that nothing else declares.
        for &dummy in &unit.dummies {
            assert!(unit.variables.contains_key(&dummy), "a dummy argument is a name of its unit");
        }
        if unit.kind != UnitKind::BlockData && units.insert(name.clone(), symbols).is_some() {
            shared.insert(name);
        }
    }
    // Internal procedures may share a name, and the dump does not say whose they are.
    units.retain(|name, _| !shared.contains(name));
    (units, tree.n_unknown())
}

fn our_type(tree: &Tree, model: &Model, unit: UnitId, name: fortran_lint::parse::Symbol) -> Option<String> {
    let spec = model.type_of(tree, unit, name)?;
    let bytes = |default: u64| match spec.kind {
        Kind::Default => default.to_string(),
        Kind::Bytes(bytes) => bytes.to_string(),
        Kind::Value(value) => tree.int(value).map_or("?".to_string(), |bytes| bytes.to_string()),
    };
    Some(match spec.base {
        BaseType::Integer => format!("integer {}", bytes(4)),
        BaseType::Real => format!("real {}", bytes(4)),
        BaseType::DoublePrecision => "real 8".to_string(),
        BaseType::Logical => format!("logical {}", bytes(4)),
        BaseType::Complex => match spec.kind {
            // COMPLEX*16 has two parts of eight bytes.
            Kind::Bytes(bytes) => format!("complex {}", bytes / 2),
            _ => format!("complex {}", bytes(4)),
        },
        BaseType::DoubleComplex => "complex 8".to_string(),
        BaseType::Byte => "integer 1".to_string(),
        BaseType::Character => "character".to_string(),
        BaseType::Derived(name) => format!("derived {}", name.map_or("*", |name| tree.symbols.name(name))),
        BaseType::Procedure | BaseType::Macro => return None,
    })
}

/// Files beside the fixtures.
#[derive(Debug)]
struct OnDisk;

impl fortran_lint::source::Files for OnDisk {
    fn read(&self, path: &str) -> Option<std::sync::Arc<[u8]>> {
        std::fs::read(path).ok().map(std::sync::Arc::from)
    }

    fn named(&self, _: &str) -> Vec<String> {
        Vec::new()
    }
}
