//! The table of MPI procedures against the MPI libraries that are installed: C prototypes and Fortran modules.
//!
//! Skipped, with a reason, where there is no MPI with gfortran; a failure there when RMA_REQUIRE_PEERS=1.

mod common;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;

use common::skip;
use fortran_lint::check::check_one;
use fortran_lint::mpi::{Binding, Class, Direction, Part, Promise, all, find};

/// Folders that a compiler wrapper searches.
fn folders(wrapper: &str) -> Vec<PathBuf> {
    let Ok(output) = Command::new(wrapper).arg("-show").output() else { return Vec::new() };
    String::from_utf8_lossy(&output.stdout)
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("-I"))
        .map(PathBuf::from)
        .collect()
}

/// The named files that the wrappers of all installed libraries lead to.
fn installed(names: &[&str]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = ["mpif90.mpich", "mpif90.openmpi", "mpif90", "mpifort"]
        .into_iter()
        .flat_map(folders)
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)))
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    found.sort();
    found.dedup();
    found
}

// ---- C prototypes --------------------------------------------------------------------------------------------------

/// Procedures and their arguments, as `mpi.h` declares them.
fn prototypes(header: &str) -> BTreeMap<String, Vec<String>> {
    let mut text = String::new();
    let mut rest = header;
    while let Some(start) = rest.find("/*") {
        text.push_str(&rest[..start]);
        rest = rest[start..].find("*/").map_or("", |end| &rest[start + end + 2..]);
    }
    text.push_str(rest);
    let mut found = BTreeMap::new();
    for declaration in text.split(';') {
        let flat = declaration.split_whitespace().collect::<Vec<_>>().join(" ");
        let Some(at) =
            flat.rfind("int MPI_").filter(|&at| !flat[..at].ends_with(|c: char| c.is_alphanumeric()))
        else {
            continue;
        };
        let flat = &flat[at + 4..];
        let Some((name, rest)) = flat.split_once('(') else { continue };
        let foreign =
            ["MPI_T_", "_f2c", "_c2f", "2f08", "f082", "_DUP_FN"].iter().any(|part| name.contains(part));
        if foreign || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            continue;
        }
        let (mut depth, mut arguments) = (1, vec![String::new()]);
        for c in rest.chars() {
            depth += i32::from(c == '(') - i32::from(c == ')');
            match c {
                _ if depth == 0 => break,
                ',' if depth == 1 => arguments.push(String::new()),
                _ => arguments.last_mut().expect("there is one").push(c),
            }
        }
        let arguments = arguments.iter().map(|argument| argument.trim().to_string()).collect();
        found.insert(name.to_ascii_lowercase(), arguments);
    }
    found
}

/// What an argument in C is, as far as the table cares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Memory,
    ConstantMemory,
    Request,
    Win,
    Datatype,
    Address,
    Other,
}

fn kind(argument: &str) -> Kind {
    let has = |word: &str| argument.contains(word);
    if has("_function") || has("_fn ") || has("attribute_val") || has("attr_val") || has("baseptr") {
        Kind::Other
    } else if has("void *") && has("const") {
        Kind::ConstantMemory
    } else if has("void *") {
        Kind::Memory
    } else if has("MPI_Request") {
        Kind::Request
    } else if has("MPI_Win") {
        Kind::Win
    } else if has("MPI_Datatype") {
        Kind::Datatype
    } else if has("MPI_Aint") {
        Kind::Address
    } else {
        Kind::Other
    }
}

fn agrees(kind: Kind, part: Part) -> bool {
    match kind {
        Kind::Memory => matches!(
            part,
            Part::Buffer(Direction::Out | Direction::InOut)
                | Part::Window
                | Part::Attached
                | Part::Released
                | Part::State
                | Part::Location
        ),
        Kind::ConstantMemory => {
            matches!(part, Part::Buffer(Direction::In) | Part::Location | Part::Released | Part::Attached)
        }
        Kind::Request => matches!(part, Part::Request | Part::Requests),
        Kind::Win => part == Part::Win,
        Kind::Datatype => matches!(part, Part::Type | Part::Types | Part::NewType | Part::Other),
        Kind::Address => matches!(part, Part::Address | Part::Displacements | Part::Other),
        // A handle that arrives with the request is a buffer as well.
        Kind::Other => {
            matches!(
                part,
                Part::Other
                    | Part::Flag
                    | Part::Callback
                    | Part::Displacements
                    | Part::Buffer(Direction::Out)
            )
        }
    }
}

#[test]
fn the_table_agrees_with_the_c_prototypes() {
    let headers = installed(&["mpi.h", "mpi_proto.h"]);
    if headers.is_empty() {
        return skip("no mpi.h of an installed MPI");
    }
    let mut wrong = Vec::new();
    let mut n_compared = 0;
    for header in headers {
        let text =
            String::from_utf8_lossy(&std::fs::read(&header).expect("the header can be read")).into_owned();
        for (name, arguments) in prototypes(&text) {
            let kinds: Vec<Kind> = arguments.iter().map(|argument| kind(argument)).collect();
            if kinds.iter().all(|&kind| kind == Kind::Other) {
                continue;
            }
            n_compared += 1;
            let Some(row) = find(&name) else {
                wrong.push(format!("{name} of {} is not in the table", header.display()));
                continue;
            };
            // Fortran has an argument for the error code; only MPI_F_SYNC_REG and functions have none.
            if row.arguments.len() != kinds.len() + 1 {
                wrong.push(format!("{name}: {} arguments in C, {} here", kinds.len(), row.arguments.len()));
                continue;
            }
            for (i, (&kind, own)) in kinds.iter().zip(&row.arguments).enumerate() {
                if !agrees(kind, own.part) {
                    wrong.push(format!(
                        "{name}, argument {i} `{}`: {kind:?} in C, {:?} here",
                        arguments[i], own
                    ));
                }
            }
        }
    }
    println!("{n_compared} prototypes compared");
    assert!(n_compared > 150, "the headers were not understood: {n_compared} prototypes");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

// ---- Fortran modules -----------------------------------------------------------------------------------------------

/// An argument of an interface of `mpi_f08`.
#[derive(Clone, Debug)]
struct Dummy {
    keyword: String,
    is_asynchronous: bool,
    is_intent_in: bool,
}

/// A node of the text of a module file, which is nested lists of words.
enum Node {
    Word(String),
    List(Vec<Node>),
}

fn parse(text: &str) -> Vec<Node> {
    let mut stack: Vec<Vec<Node>> = vec![Vec::new()];
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else { break };
        let length = match first {
            '(' => {
                stack.push(Vec::new());
                1
            }
            ')' => {
                let list = stack.pop().expect("lists nest");
                stack.last_mut().expect("lists nest").push(Node::List(list));
                1
            }
            '\'' => {
                let length = rest[1..].find('\'').map_or(rest.len(), |end| end + 2);
                let word = rest[..length].trim_matches('\'').to_string();
                stack.last_mut().expect("lists nest").push(Node::Word(word));
                length
            }
            _ => {
                let length = rest.find([' ', '\n', '(', ')', '\'']).unwrap_or(rest.len());
                stack.last_mut().expect("lists nest").push(Node::Word(rest[..length].to_string()));
                length
            }
        };
        rest = &rest[length..];
    }
    stack.pop().expect("the outermost list is left")
}

/// The procedures of a module file of gfortran, which is compressed text.
fn interfaces(path: &Path) -> BTreeMap<String, Vec<Dummy>> {
    let output = Command::new("gzip").arg("-dc").arg(path).output().expect("gzip starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (_, body) = text.split_once('\n').expect("a module file has a head");
    let sections = parse(body);
    // The list of symbols is by far the longest: number, name, module, label, parent, properties.
    let symbols = sections
        .iter()
        .filter_map(|node| if let Node::List(list) = node { Some(list) } else { None })
        .max_by_key(|list| list.len())
        .expect("a module has symbols");
    let word = |node: &Node| if let Node::Word(word) = node { word.clone() } else { String::new() };
    let list = |node: &Node| -> Vec<String> {
        if let Node::List(list) = node { list.iter().map(word).collect() } else { Vec::new() }
    };
    let mut by_number: HashMap<String, Dummy> = HashMap::new();
    let mut procedures: Vec<(String, Vec<String>)> = Vec::new();
    for symbol in symbols.chunks_exact(6) {
        let [number, name, _, _, _, Node::List(properties)] = symbol else { continue };
        let attributes = properties.first().map(list).unwrap_or_default();
        let has = |word: &str| attributes.iter().any(|own| own == word);
        let name = word(name);
        if has("PROCEDURE") && name.starts_with("mpi_") && name.contains("_f08") {
            let is_number =
                |word: &String| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
            let formals = properties
                .iter()
                .skip(3)
                .map(list)
                .find(|formals| !formals.is_empty() && formals.iter().all(is_number));
            procedures.push((name.clone(), formals.unwrap_or_default()));
        }
        let dummy = Dummy {
            keyword: name,
            is_asynchronous: has("ASYNCHRONOUS"),
            is_intent_in: attributes.get(1).is_some_and(|intent| intent == "IN"),
        };
        by_number.insert(word(number), dummy);
    }
    procedures
        .into_iter()
        .map(|(name, formals)| {
            (name, formals.iter().filter_map(|number| by_number.get(number).cloned()).collect())
        })
        .collect()
}

/// The name that a program calls, with `_c` for the forms with large counts.
fn called(specific: &str) -> Option<String> {
    let at = specific.find("_f08")?;
    let (name, suffix) = specific.split_at(at);
    match suffix {
        "_f08" | "_f08ts" => Some(name.to_string()),
        "_f08_large" | "_f08ts_large" => Some(format!("{name}_c")),
        // Comparison of handles and their like.
        _ => None,
    }
}

/// Keywords that tell that a procedure belongs into the table.
const TELLING: &[&str] = &[
    "buf",
    "buffer",
    "sendbuf",
    "recvbuf",
    "inbuf",
    "outbuf",
    "base",
    "origin_addr",
    "result_addr",
    "request",
    "array_of_requests",
    "win",
    "datatype",
    "oldtype",
    "newtype",
    "location",
];

/// Where MPICH 4.0.2 and Open MPI 4.1.4 depart from the standard.
fn is_known_departure(name: &str, dummies: &[Dummy]) -> bool {
    match name.trim_end_matches("_c") {
        // The keyword of the source is `dest`, and neither buffer is ASYNCHRONOUS.
        "mpi_precv_init" | "mpi_psend_init" => dummies.iter().any(|dummy| dummy.keyword == "partitions"),
        // An address, not a buffer: ASYNCHRONOUS keeps the memory until it is freed.
        "mpi_free_mem" | "mpi_win_attach" | "mpi_win_detach" | "mpi_get_address" => true,
        // Other keywords than `disp` and `info_used`.
        "mpi_aint_add" | "mpi_win_get_info" => dummies[1].keyword == "diff" || dummies[1].keyword == "info",
        _ => false,
    }
}

#[test]
fn the_table_agrees_with_the_fortran_modules() {
    let modules = installed(&["mpi_f08.mod", "mpi_f08_interfaces.mod"]);
    if modules.is_empty() {
        return skip("no module mpi_f08 of an installed MPI");
    }
    let mut wrong = Vec::new();
    let mut n_compared = 0;
    for module in modules {
        let interfaces = interfaces(&module);
        // Open MPI leaves ASYNCHRONOUS out with gfortran, but for a few, and some INTENT with it.
        let n_asynchronous = interfaces.values().flatten().filter(|dummy| dummy.is_asynchronous).count();
        let has_attributes = n_asynchronous > 100;
        for (specific, dummies) in &interfaces {
            let Some(name) = called(specific) else { continue };
            let is_telling = dummies
                .iter()
                .any(|dummy| TELLING.contains(&dummy.keyword.as_str()) || dummy.is_asynchronous);
            let Some(row) = find(&name) else {
                if is_telling {
                    wrong.push(format!("{name} of {} is not in the table", module.display()));
                }
                continue;
            };
            n_compared += 1;
            if name == "mpi_f_sync_reg" || is_known_departure(&name, dummies) {
                continue;
            }
            // The standard renamed this one.
            let keywords: Vec<&str> = dummies
                .iter()
                .map(|dummy| if dummy.keyword == "indx" { "index" } else { dummy.keyword.as_str() })
                .collect();
            let own: Vec<&str> = row.arguments.iter().map(|argument| argument.keyword).collect();
            if keywords != own {
                wrong.push(format!("{name}: {keywords:?} in the module, {own:?} here"));
                continue;
            }
            if !row.bindings.has(Binding::F08) {
                wrong.push(format!("{name} is in the module, and not in mpi_f08 by the table"));
            }
            for (at, (dummy, argument)) in dummies.iter().zip(&row.arguments).enumerate() {
                let is_buffer = matches!(argument.part, Part::Buffer(_) | Part::Window | Part::Attached);
                let keyword = argument.keyword;
                let promise = row.promise(at, Binding::F08);
                if has_attributes && is_buffer && (promise == Promise::Unchanged) != dummy.is_intent_in {
                    wrong.push(format!("{name}: `{keyword}` is {promise:?} by the table"));
                }
                if has_attributes && is_buffer && dummy.is_asynchronous != row.is_asynchronous(at) {
                    wrong.push(format!(
                        "{name}: `{keyword}` is {}ASYNCHRONOUS in the module, class {:?} here",
                        if dummy.is_asynchronous { "" } else { "not " },
                        row.class
                    ));
                }
                if let Part::Buffer(direction) = argument.part
                    && has_attributes
                    && dummy.is_intent_in != (direction == Direction::In)
                {
                    wrong.push(format!(
                        "{name}: `{keyword}` goes another way in the module than {direction:?}"
                    ));
                }
            }
        }
    }
    println!("{n_compared} interfaces compared");
    assert!(n_compared > 200, "the modules were not understood: {n_compared} interfaces");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

// ---- what no installed library has -------------------------------------------------------------------------------

/// Counted in the standard's own index: MPI-4.1 is newer than the libraries, MPI-1 older.
#[test]
fn the_oldest_and_the_newest_are_there() {
    for name in [
        "mpi_address",
        "mpi_type_hindexed",
        "mpi_type_hvector",
        "mpi_type_struct",
        "mpi_type_extent",
        "mpi_type_lb",
        "mpi_type_ub",
        "mpi_keyval_create",
        "mpi_buffer_iflush",
        "mpi_comm_attach_buffer",
        "mpi_comm_detach_buffer",
        "mpi_comm_iflush_buffer",
        "mpi_session_attach_buffer",
        "mpi_session_detach_buffer",
        "mpi_session_iflush_buffer",
        "mpi_request_get_status_all",
        "mpi_request_get_status_any",
        "mpi_request_get_status_some",
        "mpi_type_get_value_index",
        "mpi_isendrecv",
        "mpi_isendrecv_replace",
        "mpi_psend_init",
        "mpi_precv_init",
        "mpi_parrived",
        "mpi_pready_list",
    ] {
        assert!(find(name).is_some(), "{name}");
    }
    // Every operation with a life of its own names what ends it.
    for row in all() {
        let has = |part: Part| row.arguments.iter().any(|argument| argument.part == part);
        match row.class {
            Class::Nonblocking | Class::Persistent | Class::Partitioned => {
                assert!(has(Part::Request), "{} has no request", row.name);
            }
            // Put/Get/Offer knows no windows.
            Class::Transfer if row.name.starts_with("pgo_") => {}
            Class::Transfer | Class::WinCreate => assert!(has(Part::Win), "{} has no window", row.name),
            Class::Split => {
                let end = row.name.replace("_begin", "_end");
                assert_eq!(find(&end).map(|row| row.class), Some(Class::SplitEnd), "{end}");
            }
            _ => {}
        }
    }
}

/// What the bindings say differently: in MPI-1 there is no interface, in MPI-3 some names and one choice buffer are gone.
#[test]
fn bindings_differ_where_the_standard_lets_them() {
    let promise = |name: &str, at: usize, binding: Binding| {
        find(name).expect("it is in the table").promise(at, binding)
    };
    for (binding, expected) in [
        (Binding::Mpif, Promise::Nothing),
        (Binding::Unknown, Promise::Nothing),
        (Binding::UseMpi, Promise::Unchanged),
        (Binding::F08, Promise::Unchanged),
    ] {
        assert_eq!(promise("mpi_send", 0, binding), expected, "{binding:?}");
        assert_eq!(promise("mpi_isend", 0, binding), expected, "{binding:?}");
        assert_eq!(promise("mpi_recv", 0, binding), Promise::Nothing, "{binding:?}");
        assert_eq!(promise("mpi_f_sync_reg", 0, binding), Promise::Nothing, "{binding:?}");
    }
    // Open MPI declares this one INTENT(IN) in the module `mpi`, and nowhere else.
    assert_eq!(promise("mpi_get_address", 0, Binding::UseMpi), Promise::Unchanged);
    assert_eq!(promise("mpi_get_address", 0, Binding::F08), Promise::Nothing);
    for name in
        ["mpi_address", "mpi_type_struct", "mpi_type_hindexed", "mpi_type_extent", "mpi_keyval_create"]
    {
        let row = find(name).expect("it is in the table");
        assert!(row.bindings.has(Binding::Mpif) && row.bindings.has(Binding::UseMpi), "{name}");
        assert!(!row.bindings.has(Binding::F08), "{name}");
    }
    // A C address in mpi_f08, which names no variable.
    let detach = find("mpi_buffer_detach").expect("it is in the table");
    assert_eq!(detach.arguments[0].part_in(Binding::UseMpi), Part::Released);
    assert_eq!(detach.arguments[0].part_in(Binding::F08), Part::Other);
    let receive = find("mpi_irecv").expect("it is in the table");
    assert!(receive.is_asynchronous(0) && !receive.is_asynchronous(1));
    assert!(!find("mpi_recv").expect("it is in the table").is_asynchronous(0));
}

/// A partitioned send leaves each part to the program until it is handed over, and a part that has arrived may be read.
#[test]
fn partitioned_transfers_are_understood() {
    let rules = |body: &str| -> Vec<&'static str> {
        let text = format!(
            "subroutine work(comm)\n  use mpi_f08\n  type(MPI_Comm) :: comm\n  type(MPI_Request) :: req\n\
             \x20 real :: buf(8), x\n  logical :: flag\n{body}\nend subroutine\n"
        );
        let report = check_one("w.f90", text.as_bytes(), &Default::default());
        report.findings.iter().map(|finding| finding.rule).collect()
    };
    let send = "  call MPI_Psend_init(buf, 2, 4_MPI_COUNT_KIND, MPI_REAL, 1, 0, comm, MPI_INFO_NULL, req)\n\
        \x20 call MPI_Start(req)\n  buf(1:4) = 1\n  call MPI_Pready(0, req)\n  call MPI_Wait(req, MPI_STATUS_IGNORE)";
    assert!(!rules(send).contains(&"FR15"), "{:?}", rules(send));
    let receive = "  call MPI_Precv_init(buf, 2, 4_MPI_COUNT_KIND, MPI_REAL, 1, 0, comm, MPI_INFO_NULL, req)\n\
        \x20 call MPI_Start(req)";
    let arrived = format!("{receive}\n  call MPI_Parrived(req, 0, flag)\n  if (flag) x = buf(1)");
    assert_eq!(rules(&arrived), ["FR02"], "read from memory or from a register, but not too early");
    assert!(
        rules(&format!("{receive}\n  x = buf(1)\n  call MPI_Wait(req, MPI_STATUS_IGNORE)")).contains(&"FR15")
    );
}
