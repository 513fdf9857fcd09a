//! Symbols: what gfortran's tree says about the names of fixtures, and what the linter's model says about them.
//!
//! Skipped, with a reason, where there is no gfortran; a failure there when RMA_REQUIRE_PEERS=1.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use common::{package, skip};
use fortran_lint::model::{Model, UnitId};
use fortran_lint::parse::{Attributes, BaseType, Kind, Tree, UnitKind, parse_file};
use fortran_lint::source::Reading;

/// What is compared of one name: type, number of dimensions, attributes, COMMON block.
type Symbol = (String, usize, BTreeSet<&'static str>, Option<String>);

/// Names of one unit.
type Symbols = BTreeMap<String, Symbol>;

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
        let output = Command::new("gfortran")
            .args(["-fdump-parse-tree", "-fsyntax-only", "-cpp", "-fcray-pointer", "-std=gnu", "-w", "-J"])
            .arg(scratch.path())
            .arg(&path)
            .output()
            .expect("gfortran starts");
        assert!(output.status.success(), "{}:\n{}", path.display(), String::from_utf8_lossy(&output.stderr));
        let theirs = dumped(&String::from_utf8_lossy(&output.stdout));
        let (ours, n_unknown) = modelled(&path);
        assert_eq!(n_unknown, 0, "{} is understood", path.display());
        let mut n_compared = 0;
        for (unit, symbols) in &ours {
            let known = theirs.get(unit).unwrap_or_else(|| {
                panic!("{}: gfortran has no unit {unit}, only {:?}", path.display(), theirs.keys())
            });
            for (name, symbol) in symbols {
                let known = known
                    .get(name)
                    .unwrap_or_else(|| panic!("{}: gfortran has no {name} in {unit}", path.display()));
                assert_eq!(symbol, known, "{}: {name} in {unit} (left ours)", path.display());
                n_compared += 1;
            }
            // What gfortran declares and nobody here knows would be lost.
            for (name, symbol) in known {
                let is_data = symbol.2.contains("common") || symbol.2.contains("dummy");
                assert!(
                    !is_data || symbols.contains_key(name),
                    "{}: {name} of {unit} is lost",
                    path.display()
                );
            }
        }
        assert!(n_compared >= 10, "{}: only {n_compared} names compared", path.display());
    }
}

/// The names that gfortran dumps, by unit.
fn dumped(text: &str) -> BTreeMap<String, Symbols> {
    let mut units: BTreeMap<String, Symbols> = BTreeMap::new();
    let mut unit = String::new();
    let mut name = String::new();
    let mut kind = String::new();
    // COMMON blocks stand before the names; blank COMMON is not listed.
    let mut blocks: BTreeMap<(String, String), String> = BTreeMap::new();
    for line in text.lines() {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("procedure name = ") {
            unit = rest.to_string();
        } else if let Some((_, rest)) = line.split_once("symtree: '") {
            name = rest.split('\'').next().unwrap_or_default().trim().to_string();
        } else if let Some(rest) = line.strip_prefix("type spec : ") {
            kind = rest.trim_start_matches('(').trim_end_matches(')').to_string();
        } else if let Some(rest) = line.strip_prefix("attributes: ") {
            let words: Vec<&str> = rest.trim_matches(['(', ')']).split([' ', '(', ')']).collect();
            if !words.iter().any(|word| word.starts_with("VARIABLE") || word.starts_with("PARAMETER")) {
                continue;
            }
            let set = ATTRIBUTES.iter().filter(|(theirs, ..)| words.contains(theirs));
            let set: BTreeSet<&'static str> = set.map(|(_, ours, _)| *ours).collect();
            let symbol = (type_name(&kind), 0, set, None);
            units.entry(unit.clone()).or_default().insert(name.clone(), symbol);
        } else if let Some(rest) = line.strip_prefix("Array spec:(") {
            let rank = rest.split([' ', '[']).next().and_then(|rank| rank.parse().ok()).unwrap_or(0);
            if let Some(symbol) = units.get_mut(&unit).and_then(|symbols| symbols.get_mut(&name)) {
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
        for (name, symbol) in symbols.iter_mut().filter(|(_, symbol)| symbol.2.contains("common")) {
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
        "derived" | "class" => format!("derived {}", words.next().unwrap_or_default().to_lowercase()),
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
        if unit.kind != UnitKind::BlockData {
            units.insert(name, symbols);
        }
    }
    (units, tree.n_unknown())
}

fn our_type(tree: &Tree, model: &Model, unit: UnitId, name: fortran_lint::parse::Symbol) -> Option<String> {
    let spec = model.type_of(tree, unit, name)?;
    let bytes = |default: u64| match spec.kind {
        Kind::Default => default,
        Kind::Bytes(bytes) => u64::from(bytes),
        Kind::Value(value) => tree.int(value).unwrap_or(default),
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
