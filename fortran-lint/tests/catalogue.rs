//! A program for each rule that a program can break: unsafe, and repaired in every way, in both source forms and with the three
//! bindings. The linter finds exactly the unsafe ones; those that can run are built at -O0 to -O3 and run, and what prints a
//! wrong value has an error-level finding, and nothing that is clean ever prints one.
//!
//! Running is skipped, with a reason, where there is no MPI with gfortran; a failure there when RMA_REQUIRE_PEERS=1.

mod common;
#[path = "catalogue/reasons.rs"]
mod reasons;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use common::{Expectation, compiler, skip};
use fortran_lint::check::{Input, check_one};
use fortran_lint::fix::mend;
use fortran_lint::options::Options;

/// What is run when it has a verdict, and what would never end, crash or need several processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Runs {
    /// It prints a value, 777 where nothing went wrong.
    Yes,
    /// It is wrong without an optimiser.
    YesAndBreaksAnyway,
    No,
}

/// One version of a program.
struct Version {
    name: String,
    /// Variables of a module.
    shared: Vec<String>,
    /// Procedures that it calls; those whose names end in `_inner` have its findings.
    procedures: Vec<String>,
    declarations: Vec<String>,
    body: Vec<String>,
    /// Level, rule and variable, with ` because ` and the reasons behind it where there are any.
    findings: Vec<(&'static str, &'static str, &'static str)>,
    runs: Runs,
}

impl Version {
    /// The name of the variable that a module holds for it.
    fn shared_name(&self) -> String {
        format!("{}_buf", self.name.trim_end_matches("_module"))
    }
}

/// A program whose buffer `buf` has nothing that protects it. `?` marks the places for a dummy call, `!` those where it is
/// of no use.
struct Hazard {
    name: &'static str,
    body: &'static [&'static str],
    findings: &'static [(&'static str, &'static str, &'static str)],
    runs: Runs,
}

const WINDOW: &str = "call MPI_WIN_CREATE(mem, size, 8, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)";
const OWN_WINDOW: &str = "call MPI_WIN_CREATE(buf, size, 8, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)";
const FENCE: &str = "call MPI_WIN_FENCE(0, win, ierr)";
const FREE: &str = "call MPI_WIN_FREE(win, ierr)";
const WAIT: &str = "call MPI_WAIT(req, MPI_STATUS_IGNORE, ierr)";
const RECEIVE: &str = "call MPI_IRECV(buf, 1, MPI_DOUBLE_PRECISION, 0, 7, MPI_COMM_WORLD, req, ierr)";
const RECEIVE_OTHER: &str = "call MPI_IRECV(other, 2, MPI_DOUBLE_PRECISION, 0, 7, MPI_COMM_WORLD, req, ierr)";
const SEND_OTHER: &str = "call MPI_SEND(other, 1, MPI_DOUBLE_PRECISION, 0, 7, MPI_COMM_WORLD, ierr)";
const ISEND_OTHER: &str = "call MPI_ISEND(other, 2, MPI_DOUBLE_PRECISION, 0, 7, MPI_COMM_WORLD, req, ierr)";
const ISEND_ONE: &str = "call MPI_ISEND(other, 1, MPI_DOUBLE_PRECISION, 0, 7, MPI_COMM_WORLD, req, ierr)";
const PUT: &str = "call MPI_PUT(buf, 1, MPI_DOUBLE_PRECISION, 0, zero, 1, MPI_DOUBLE_PRECISION, win, ierr)";
const PUT_OTHER: &str =
    "call MPI_PUT(other, 1, MPI_DOUBLE_PRECISION, 0, zero, 1, MPI_DOUBLE_PRECISION, win, ierr)";
const GET: &str = "call MPI_GET(buf, 1, MPI_DOUBLE_PRECISION, 0, zero, 1, MPI_DOUBLE_PRECISION, win, ierr)";
const GET_OTHER: &str =
    "call MPI_GET(other, 1, MPI_DOUBLE_PRECISION, 0, zero, 1, MPI_DOUBLE_PRECISION, win, ierr)";
const ADDRESS: &str = "call MPI_GET_ADDRESS(buf, at(1), ierr)";
const ABSOLUTE: &str = "call MPI_TYPE_CREATE_STRUCT(1, lengths, at, types, newtype, ierr)";
const ANCHOR: &str = "call MPI_GET_ADDRESS(anchor, at(2), ierr)";
const DISTANCE: &str = "by(2) = at(1) - at(2)";
const RELATIVE: &str = "call MPI_TYPE_CREATE_STRUCT(2, lengths, by, types, newtype, ierr)";
const COMMIT: &str = "call MPI_TYPE_COMMIT(newtype, ierr)";
const OFFER: &str = "call PGO_OFFER(other, size, 8, i, 1, 7, MPI_COMM_WORLD, ierr)";
const IOFFER: &str = "call PGO_IOFFER(buf, size, 8, i, 1, 7, MPI_COMM_WORLD, req, ierr)";
const PGO_GET: &str =
    "call PGO_GET(buf, 1, MPI_DOUBLE_PRECISION, 0, zero, 1, MPI_DOUBLE_PRECISION, 7, MPI_COMM_WORLD, ierr)";

/// Programs that COMMON, VOLATILE, ASYNCHRONOUS, a module and a dummy call repair.
const HAZARDS: [Hazard; 11] = [
    Hazard {
        name: "fr01",
        body: &[
            OWN_WINDOW,
            "buf(1) = 999",
            "?",
            FENCE,
            PUT_OTHER,
            "!",
            FENCE,
            "?",
            "res = int(buf(1))",
            FREE,
        ],
        findings: &[("error", "FR01", "buf"), ("error", "FR08", "buf")],
        runs: Runs::Yes,
    },
    Hazard {
        name: "fr02",
        body: &[
            "call MPI_RECV_INIT(buf, 1, MPI_DOUBLE_PRECISION, 0, 7, MPI_COMM_WORLD, req, ierr)",
            "buf(1) = 999",
            "do i = 1, 2",
            "old = buf(1)",
            "other(1) = 775 + i",
            "call MPI_START(req, ierr)",
            SEND_OTHER,
            "!",
            WAIT,
            "?",
            "old = buf(1)",
            "end do",
            "res = int(old)",
            "call MPI_REQUEST_FREE(req, ierr)",
        ],
        findings: &[("error", "FR02", "buf")],
        runs: Runs::Yes,
    },
    Hazard {
        name: "fr02plain",
        body: &["buf(1) = 999", RECEIVE, SEND_OTHER, "!", WAIT, "?", "res = int(buf(1))"],
        findings: &[("warning", "FR02", "buf")],
        runs: Runs::Yes,
    },
    Hazard {
        name: "fr03",
        body: &[
            ADDRESS,
            ABSOLUTE,
            COMMIT,
            "buf(1) = 999",
            ISEND_ONE,
            "old = buf(1)",
            "!",
            "call MPI_RECV(MPI_BOTTOM, 1, newtype, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)",
            "?",
            "res = int(buf(1))",
            WAIT,
            "if (old /= 999) res = -1",
        ],
        findings: &[("error", "FR03", "buf")],
        runs: Runs::Yes,
    },
    Hazard {
        name: "fr04receive",
        body: &[
            ADDRESS,
            ANCHOR,
            DISTANCE,
            RELATIVE,
            COMMIT,
            "buf(1) = 999",
            ISEND_OTHER,
            "old = buf(1)",
            "!",
            "call MPI_RECV(anchor, 1, newtype, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)",
            "?",
            "res = int(buf(1))",
            WAIT,
            "if (old /= 999) res = -1",
        ],
        findings: &[("error", "FR04", "buf")],
        runs: Runs::Yes,
    },
    Hazard {
        name: "fr04send",
        body: &[
            "buf(1) = 999",
            ADDRESS,
            ANCHOR,
            DISTANCE,
            RELATIVE,
            COMMIT,
            RECEIVE_OTHER,
            "buf(1) = 777",
            "?",
            "call MPI_SEND(anchor, 1, newtype, 0, 7, MPI_COMM_WORLD, ierr)",
            "!",
            WAIT,
            "res = int(other(2))",
        ],
        findings: &[("error", "FR04", "buf")],
        runs: Runs::Yes,
    },
    Hazard {
        name: "fr05",
        body: &[
            "buf(1) = 999",
            ADDRESS,
            ABSOLUTE,
            COMMIT,
            RECEIVE_OTHER,
            "buf(1) = 777",
            "?",
            "call MPI_SEND(MPI_BOTTOM, 1, newtype, 0, 7, MPI_COMM_WORLD, ierr)",
            "!",
            WAIT,
            "res = int(other(1))",
        ],
        findings: &[("error", "FR05", "buf")],
        runs: Runs::Yes,
    },
    Hazard {
        name: "fr06",
        body: &[
            WINDOW,
            "mem(1) = 777",
            "buf(1) = 999",
            FENCE,
            GET,
            "!",
            FENCE,
            "?",
            "res = int(buf(1))",
            FREE,
        ],
        findings: &[("warning", "FR06", "buf")],
        runs: Runs::Yes,
    },
    Hazard {
        name: "fr06events",
        body: &["buf(1) = 999", PGO_GET, "!", OFFER, "?", "res = int(buf(1))"],
        findings: &[("warning", "FR06", "buf")],
        runs: Runs::Yes,
    },
    Hazard {
        name: "fr08",
        body: &[
            OWN_WINDOW,
            "buf(1) = 999",
            "buf(1) = 777",
            "?",
            FENCE,
            "!",
            GET_OTHER,
            FENCE,
            "res = int(other(1))",
            FREE,
        ],
        findings: &[("warning", "FR01", "buf"), ("error", "FR08", "buf")],
        runs: Runs::Yes,
    },
    Hazard {
        name: "fr10",
        body: &["buf(1) = 999", IOFFER, "!", "call PGO_WAIT(req, ierr)", "?", "res = int(buf(1))"],
        findings: &[("warning", "FR10", "buf")],
        runs: Runs::Yes,
    },
];

/// The one whose dummy call stands before the store that it holds back.
const STORE_MOVED: Hazard = Hazard {
    name: "fr07",
    body: &[
        WINDOW,
        "buf(1) = 777",
        FENCE,
        PUT,
        "!",
        FENCE,
        "?",
        "buf(1) = 1",
        "other(1) = buf(1)",
        "res = int(mem(1))",
        FREE,
    ],
    findings: &[("warning", "FR07", "buf")],
    runs: Runs::Yes,
};

/// How the buffer is protected.
const TWINS: [&str; 6] = ["local", "common", "volatile", "asynchronous", "module", "dummy"];

fn versions() -> Vec<Version> {
    let mut all = Vec::new();
    for hazard in HAZARDS.iter().chain([&STORE_MOVED]) {
        all.extend(TWINS.iter().map(|twin| protected(hazard, twin)));
    }
    let lines = |lines: &[&str]| -> Vec<String> { lines.iter().map(|line| line.to_string()).collect() };
    let mut add = |name: &str,
                   declarations: &[&str],
                   body: &[&str],
                   findings: &[(&'static str, &'static str, &'static str)],
                   runs: Runs| {
        all.push(Version {
            name: name.to_string(),
            shared: Vec::new(),
            procedures: Vec::new(),
            declarations: lines(declarations),
            body: lines(body),
            findings: findings.to_vec(),
            runs,
        });
    };
    let plain = "double precision :: buf(8)";
    let volatile = "double precision, volatile :: buf(8)";
    let heap = "double precision, allocatable, volatile :: buf(:)";

    // A callback: its state is changed inside a call that does not name it.
    let start = "call MPI_GREQUEST_START(ask, done, cancel, state, req, ierr)";
    for (twin, attribute, dummy, findings) in [
        ("local", "", "", &[("error", "FR09", "state")][..]),
        ("volatile", ", volatile", "", &[]),
        ("asynchronous", ", asynchronous", "", &[]),
        ("common", "", "", &[]),
        ("dummy", "", "call DD(state)", &[]),
    ] {
        let mut declarations = vec![
            format!("integer(kind=MPI_ADDRESS_KIND){attribute} :: state"),
            "external ask, done, cancel".to_string(),
        ];
        if twin == "common" {
            declarations.push("common /fr09_block/ state".to_string());
        }
        let declarations: Vec<&str> = declarations.iter().map(String::as_str).collect();
        let body = [
            "state = 0",
            start,
            "state = 999",
            "call MPI_GREQUEST_COMPLETE(req, ierr)",
            WAIT,
            dummy,
            "res = int(state)",
        ];
        let body: Vec<&str> = body.into_iter().filter(|line| !line.is_empty()).collect();
        add(&format!("fr09_{twin}"), &declarations, &body, findings, Runs::Yes);
    }

    // COMMON with a wrapper that does not declare the block.
    let wrapped = |wrapper: &str| {
        [
            "buf(1) = 999".to_string(),
            RECEIVE.to_string(),
            SEND_OTHER.to_string(),
            format!("call {wrapper}(req)"),
            "res = int(buf(1))".to_string(),
        ]
    };
    let block = "common /fr11_block/ buf";
    for (twin, wrapper, declarations, findings) in [
        ("common", "wait_without", [plain, block], &[("warning", "FR11", "buf")][..]),
        ("declared", "wait_with", [plain, block], &[]),
        ("volatile", "wait_without", [volatile, block], &[]),
    ] {
        let body = wrapped(wrapper);
        let body: Vec<&str> = body.iter().map(String::as_str).collect();
        add(&format!("fr11_{twin}"), &declarations, &body, findings, Runs::Yes);
    }

    // An access while the operation is open.
    add(
        "fr15_early",
        &[volatile],
        &["buf(1) = 999", RECEIVE, "res = int(buf(1))", SEND_OTHER, WAIT],
        &[("error", "FR15", "buf")],
        Runs::YesAndBreaksAnyway,
    );
    add(
        "fr15_late",
        &[volatile],
        &["buf(1) = 999", RECEIVE, SEND_OTHER, WAIT, "res = int(buf(1))"],
        &[],
        Runs::Yes,
    );

    // A loop that polls: never run, for it does not end.
    let lock = "call MPI_WIN_LOCK_ALL(0, win, ierr)";
    let sync = "call MPI_WIN_SYNC(win, ierr)";
    let unlock = "call MPI_WIN_UNLOCK_ALL(win, ierr)";
    let polling = [OWN_WINDOW, lock, "do while (buf(1) == 0)", sync, "end do", unlock, FREE];
    add("fr17_local", &[plain], &polling, &[("error", "FR01", "buf"), ("error", "FR17", "buf")], Runs::No);
    add("fr17_volatile", &[volatile], &polling, &[], Runs::No);
    add("fr17_common", &[plain, "common /fr17_block/ buf"], &polling, &[], Runs::No);
    add(
        "fr17_dummy",
        &[plain],
        &[
            OWN_WINDOW,
            "call DD(buf)",
            lock,
            "do",
            sync,
            "call DD(buf)",
            "if (buf(1) /= 0) exit",
            "end do",
            unlock,
            FREE,
        ],
        &[],
        Runs::No,
    );

    // A buffer that ends too early: never run, for anything may happen.
    add(
        "fr20_early",
        &[heap],
        &["allocate(buf(8))", RECEIVE, "deallocate(buf)", WAIT],
        &[("error", "FR20", "buf")],
        Runs::No,
    );
    add("fr20_late", &[heap], &["allocate(buf(8))", RECEIVE, WAIT, "deallocate(buf)"], &[], Runs::No);

    // Epochs in a wrong order: the library ends the program.
    let lock = "call MPI_WIN_LOCK(MPI_LOCK_SHARED, 0, 0, win, ierr)";
    let unlock = "call MPI_WIN_UNLOCK(0, win, ierr)";
    add(
        "fr21_order",
        &[volatile],
        &[OWN_WINDOW, unlock, lock, FREE],
        &[("error", "FR21", "win"), ("error", "FR21", "win")],
        Runs::No,
    );
    add("fr21_right", &[volatile], &[OWN_WINDOW, lock, unlock, FREE], &[], Runs::No);

    // An update that nothing makes visible: it takes two processes.
    let update = [
        OWN_WINDOW,
        "if (res == 1) then",
        lock,
        PUT_OTHER,
        unlock,
        "end if",
        "call MPI_BARRIER(MPI_COMM_WORLD, ierr)",
    ];
    let read = "res = int(buf(1))";
    add(
        "fr22_unseen",
        &[volatile],
        &[&update[..], &[read, FREE]].concat(),
        &[("error", "FR22", "buf")],
        Runs::No,
    );
    add("fr22_locked", &[volatile], &[&update[..], &[lock, read, unlock, FREE]].concat(), &[], Runs::No);
    all
}

/// A version of a hazard.
fn protected(hazard: &Hazard, twin: &str) -> Version {
    let name = format!("{}_{twin}", hazard.name);
    let (mut shared, mut declarations) = (Vec::new(), Vec::new());
    let buffer = if twin == "module" { format!("{}_buf", hazard.name) } else { "buf".to_string() };
    let declaration = format!("double precision :: {buffer}(8)");
    match twin {
        "module" => shared.push(declaration),
        "volatile" | "asynchronous" => declarations.push(format!("double precision, {twin} :: buf(8)")),
        "common" => declarations.extend([declaration, format!("common /{}_block/ buf", hazard.name)]),
        _ => declarations.push(declaration),
    }
    let mut body = Vec::new();
    for line in hazard.body {
        match *line {
            "?" if twin == "dummy" => body.push("call DD(buf)".to_string()),
            "?" | "!" => {}
            line if twin == "module" => body.push(renamed(line, &buffer)),
            line => body.push(line.to_string()),
        }
    }
    let findings = match twin {
        "local" => hazard.findings.to_vec(),
        // Accepted, with a note.
        "module" => vec![("note", "FR12", "")],
        _ => Vec::new(),
    };
    Version { name, shared, procedures: Vec::new(), declarations, body, findings, runs: hazard.runs }
}

/// The line with another name for the buffer.
fn renamed(line: &str, buffer: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let pieces = line.split_inclusive(|c| !is_word(c));
    let rename = |piece: &str| match piece.strip_prefix("buf") {
        Some(rest) if !rest.starts_with(is_word) => format!("{buffer}{rest}"),
        _ => piece.to_string(),
    };
    pieces.map(rename).collect()
}

/// A section whose elements lie apart, which two of the bindings copy.
fn sections(binding: &str) -> Vec<Version> {
    let declarations =
        ["double precision, asynchronous :: a(4,4), row(4)", "double precision, asynchronous :: four(4)"];
    let version = |name: &str, before: &str, buffer: &str, behind: &str, is_lost: bool| {
        let receive =
            format!("call MPI_IRECV({buffer}, 4, MPI_DOUBLE_PRECISION, 0, 7, MPI_COMM_WORLD, req, ierr)");
        let send = "call MPI_SEND(four, 4, MPI_DOUBLE_PRECISION, 0, 7, MPI_COMM_WORLD, ierr)";
        let body = ["four = 777", "a = 999", before, &receive, send, WAIT, behind, "res = int(a(2,3))"];
        Version {
            name: format!("fr16_{name}"),
            shared: Vec::new(),
            procedures: Vec::new(),
            declarations: declarations.map(str::to_string).to_vec(),
            body: body.into_iter().filter(|line| !line.is_empty()).map(str::to_string).collect(),
            findings: if is_lost { vec![("error", "FR16", "a")] } else { Vec::new() },
            runs: if is_lost { Runs::YesAndBreaksAnyway } else { Runs::Yes },
        }
    };
    vec![
        version("row", "", "a(2,:)", "", binding != "mpi_f08"),
        version("column", "", "a(:,3)", "", false),
        version("copied", "row = 0", "row", "a(2,:) = row", false),
    ]
}

/// The doors to the library, and how a unit declares its handles.
const BINDINGS: [(&str, &str, &str, [&str; 3]); 3] = [
    ("mpif.h", "", "include 'mpif.h'", ["integer", "integer", "integer"]),
    ("mpi", "use mpi", "", ["integer", "integer", "integer"]),
    ("mpi_f08", "use mpi_f08", "", ["type(MPI_Request)", "type(MPI_Win)", "type(MPI_Datatype)"]),
];

/// One file: a module with all versions, for one binding, in free form.
fn module(name: &str, binding: usize, versions: &[Version]) -> String {
    let (_, uses, includes, [request, window, datatype]) = BINDINGS[binding];
    let mut lines =
        vec![format!("module {name}"), uses.to_string(), "implicit none".to_string(), includes.to_string()];
    let shared: BTreeSet<&String> = versions.iter().flat_map(|version| &version.shared).collect();
    lines.extend(shared.into_iter().cloned());
    lines.push("contains".to_string());
    for wrapper in ["wait_without", "wait_with"] {
        lines.push(format!("subroutine {wrapper}(req)"));
        lines.push(format!("{request} :: req"));
        lines.push("integer :: ierr".to_string());
        if wrapper == "wait_with" {
            lines.push("double precision :: kept(8)".to_string());
            lines.push("common /fr11_block/ kept".to_string());
        }
        lines.push(WAIT.to_string());
        lines.push("end subroutine".to_string());
    }
    for version in versions {
        lines.extend(version.procedures.iter().cloned());
        lines.push(format!("subroutine {}(res)", version.name));
        lines.push("integer :: res, ierr, i, lengths(2)".to_string());
        lines.push(format!("{request} :: req"));
        lines.push(format!("{window} :: win"));
        lines.push(format!("{datatype} :: newtype, types(2)"));
        lines.push("integer(kind=MPI_ADDRESS_KIND) :: size, zero, at(2), by(2)".to_string());
        // What is not under test is protected.
        lines.push("double precision, volatile :: other(8), mem(8)".to_string());
        lines.push("double precision :: anchor(8), old".to_string());
        lines.extend(version.declarations.iter().cloned());
        lines.extend(["size = 64", "zero = 0", "i = 0", "by(1) = 0", "lengths = 1"].map(str::to_string));
        lines.extend(["types = MPI_DOUBLE_PRECISION", "other = 777"].map(str::to_string));
        lines.extend(version.body.iter().cloned());
        lines.push("end subroutine".to_string());
    }
    lines.push("end module".to_string());
    lines.retain(|line| !line.is_empty());
    lines.join("\n") + "\n"
}

/// The same text in fixed form.
fn fixed(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let chars: Vec<char> = line.chars().collect();
        for (i, part) in chars.chunks(66).enumerate() {
            out.push_str(if i == 0 { "      " } else { "     &" });
            out.extend(part);
            out.push('\n');
        }
    }
    out
}

/// A file of the catalogue.
struct File {
    name: String,
    binding: usize,
    text: String,
    versions: Vec<Version>,
}

fn catalogue() -> Vec<File> {
    let mut files = Vec::new();
    for (binding, (door, ..)) in BINDINGS.iter().enumerate() {
        for extension in ["f90", "f"] {
            let programs = versions().into_iter().chain(sections(door)).collect();
            for (name, versions) in [("programs", programs), ("reasons", reasons::versions(binding))] {
                let text = module("programs", binding, &versions);
                let text = if extension == "f" { fixed(&text) } else { text };
                files.push(File { name: format!("{name}_{binding}.{extension}"), binding, text, versions });
            }
        }
    }
    files
}

/// What is said about each subroutine of a file.
fn verdicts(file: &File, options: &Options) -> BTreeMap<String, Vec<Expectation>> {
    let report = check_one(&file.name, file.text.as_bytes(), options);
    assert!(report.skipped.is_empty(), "{:?} of {}", report.skipped, file.name);
    let mut found: BTreeMap<String, Vec<Expectation>> = BTreeMap::new();
    for finding in &report.findings {
        // Blanks tell nothing in fixed form, and a name may be cut there.
        let before: String = report.text[..finding.span.start as usize].replace("\n     &", "");
        let name = match before.rfind("subroutine ") {
            Some(at) => before[at..]
                .trim_start_matches("subroutine ")
                .split('(')
                .next()
                .unwrap_or_default()
                .trim_end_matches("_inner")
                .to_string(),
            // The declaration of a variable of the module.
            None => format!("{}_module", finding.variable.trim_end_matches("_buf")),
        };
        found.entry(name).or_default().push(Expectation::new(
            finding.level.name(),
            finding.rule,
            &finding.variable,
            &finding.because,
        ));
    }
    for list in found.values_mut() {
        list.sort();
    }
    found
}

// covers: PGO-REG-01, RMA-REG-04
#[test]
fn exactly_the_unsafe_programs_are_reported() {
    let mut n_programs = 0;
    for file in catalogue() {
        let mut found = verdicts(&file, &Options::default());
        for version in &file.versions {
            let mut expected: Vec<Expectation> = version
                .findings
                .iter()
                .map(|(level, rule, variable)| match *rule {
                    "FR12" => Expectation::new(level, rule, &version.shared_name(), &[]),
                    _ => Expectation::new(level, rule, variable, &[]),
                })
                .collect();
            expected.sort();
            let own = found.remove(&version.name).unwrap_or_default();
            assert_eq!(own, expected, "{} of {} in:\n{}", version.name, file.name, version.body.join("\n"));
            n_programs += 1;
        }
        assert!(found.is_empty(), "what they call has findings in {}: {found:?}", file.name);
    }
    println!("{n_programs} programs");
    assert!(n_programs > 1300, "{n_programs} programs");
}

const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];

/// How a file is run: remedies that fail are many programs, and a short check takes one form and the ends of the scale.
fn levels(file: &File) -> &'static [&'static str] {
    let is_full = std::env::var_os("RMA_FULL").is_some_and(|value| value == "1");
    match file.name.starts_with("programs") || is_full {
        true => &LEVELS,
        false if file.name.ends_with("f90") => &["-O0", "-O3"],
        false => &[],
    }
}

/// Routines that nobody can look into: the empty one, callbacks, and Put/Get/Offer of one process with itself, whose answer
/// changes memory that was named before.
const OUTSIDE: &str = "module kept
use, intrinsic :: iso_c_binding
type(c_ptr) :: place
contains
subroutine arrive
double precision, pointer :: there
call c_f_pointer(place, there)
there = 777
end subroutine
end module
subroutine DD(buf)
double precision :: buf(*)
end subroutine
subroutine show(buf)
double precision :: buf(*)
end subroutine
subroutine PGO_IOFFER(buf)
use kept
double precision, target :: buf(*)
place = c_loc(buf)
end subroutine
subroutine PGO_GET(buf)
use kept
double precision, target :: buf(*)
place = c_loc(buf)
end subroutine
subroutine PGO_WAIT
use kept
call arrive
end subroutine
subroutine PGO_OFFER
use kept
call arrive
end subroutine
subroutine ask(state, status, ierr)
include 'mpif.h'
integer(kind=MPI_ADDRESS_KIND) :: state
integer :: status(MPI_STATUS_SIZE), ierr
call MPI_STATUS_SET_CANCELLED(status, .false., ierr)
call MPI_STATUS_SET_ELEMENTS(status, MPI_BYTE, 0, ierr)
end subroutine
subroutine done(state, ierr)
include 'mpif.h'
integer(kind=MPI_ADDRESS_KIND) :: state
integer :: ierr
state = 777
ierr = MPI_SUCCESS
end subroutine
subroutine cancel(state, complete, ierr)
include 'mpif.h'
integer(kind=MPI_ADDRESS_KIND) :: state
logical :: complete
integer :: ierr
ierr = MPI_SUCCESS
end subroutine
";

/// What one file printed at one level, by program.
fn run(compiler: &str, folder: &Path, file: &File, level: &str) -> BTreeMap<String, i64> {
    let title = format!("{}{level}", file.name.replace('.', "_"));
    let place = folder.join(&title);
    std::fs::create_dir(&place).expect("a folder can be made");
    let mut main =
        String::from("program p\nuse programs\nimplicit none\ninteger :: r, error\ncall MPI_INIT(error)\n");
    for version in file.versions.iter().filter(|version| version.runs != Runs::No) {
        main.push_str(&format!("r = 0\ncall {}(r)\nprint '(a,1x,i0)', '{0}', r\nflush(6)\n", version.name));
    }
    main.push_str("call MPI_FINALIZE(error)\nend program\n");
    for (name, text) in
        [(file.name.as_str(), file.text.as_str()), ("main.f90", &main), ("outside.f90", OUTSIDE)]
    {
        std::fs::write(place.join(name), text).expect("a program can be written");
    }
    let output = Command::new(compiler)
        .current_dir(&place)
        .args([
            "-w",
            "-fallow-argument-mismatch",
            level,
            &file.name,
            "main.f90",
            "outside.f90",
            "-o",
            "program",
        ])
        .output()
        .expect("the compiler starts");
    assert!(output.status.success(), "{title}:\n{}", String::from_utf8_lossy(&output.stderr));
    let output = Command::new(place.join("program")).output().expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let values: BTreeMap<String, i64> = text
        .lines()
        .filter_map(|line| line.trim().split_once(' '))
        .filter_map(|(name, value)| Some((name.to_string(), value.trim().parse().ok()?)))
        .collect();
    for version in file.versions.iter().filter(|version| version.runs != Runs::No) {
        assert!(
            values.contains_key(&version.name),
            "{} at {title} printed nothing; the run said:\n{text}{}",
            version.name,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    values
}

// covers: REG-LINT-22
#[test]
fn only_reported_programs_print_wrong_values() {
    let Some(compiler) = compiler() else {
        skip("no MPI compiler for Fortran that is gfortran");
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let files = catalogue();
    let jobs: Vec<(&File, &str)> =
        files.iter().flat_map(|file| levels(file).iter().map(move |level| (file, *level))).collect();
    let results = common::in_parallel(&jobs, |(file, level)| run(compiler, folder.path(), file, level));
    let mut wrong = Vec::new();
    let mut stale: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for ((file, level), values) in jobs.iter().zip(&results) {
        for version in file.versions.iter().filter(|version| version.runs != Runs::No) {
            let (door, ..) = BINDINGS[file.binding];
            let is_wrong = values[&version.name] != 777;
            let place = format!("{} with {door} in {} at {level}", version.name, file.name);
            let is_error = version.findings.iter().any(|(level, ..)| *level == "error");
            if is_wrong && !is_error {
                wrong.push(format!("{place} prints {} and has no error", values[&version.name]));
            }
            match (version.runs, *level) {
                (Runs::YesAndBreaksAnyway, _) if !is_wrong => {
                    wrong.push(format!("{place} is right after all"))
                }
                (Runs::Yes, "-O0") if is_wrong => {
                    wrong
                        .push(format!("{place} prints {}: the run cannot be trusted", values[&version.name]));
                }
                _ => {}
            }
            if is_wrong {
                stale.entry(version.name.clone()).or_default().push(format!("{}{level}", file.binding));
            }
        }
    }
    for (name, places) in &stale {
        println!("{name}: wrong at {}", places.join(" "));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // The runs do show something: the patterns that are errors, with each binding.
    for name in [
        "fr01_local",
        "fr03_local",
        "fr08_local",
        "fr16_row",
        "fr03_inside",
        "fr03_branch",
        "fr03_target",
        "fr18_open_volatile",
    ] {
        assert!(stale.contains_key(name), "{name} is right everywhere; wrong were {:?}", stale.keys());
    }
}

/// Which version of the program a proposed remedy leads to.
fn twin_of(remedy: &str) -> Option<&'static str> {
    let words = [
        ("ASYNCHRONOUS", "asynchronous"),
        ("COMMON", "common"),
        ("module variable", "module"),
        ("VOLATILE", "volatile"),
        ("call", "dummy"),
    ];
    words.iter().find(|(word, _)| remedy.contains(word)).map(|(_, twin)| *twin)
}

/// Each remedy that is proposed for a program leads to a version in which the finding is gone; those versions are built with
/// the binding for which they are proposed, by the test above, and by the compiler of LLVM where there is one.
// covers: REG-LINT-32
#[test]
fn every_proposed_remedy_works_in_its_binding() {
    let files = catalogue();
    let mut proposed: BTreeSet<(usize, String)> = BTreeSet::new();
    for file in files.iter().filter(|file| file.name.starts_with("programs") && file.name.ends_with("f90")) {
        let report = check_one(&file.name, file.text.as_bytes(), &Options::default());
        for hazard in HAZARDS.iter().chain([&STORE_MOVED]) {
            let local = format!("subroutine {}_local(", hazard.name);
            let start = report.text.find(&local).expect("the program is there");
            let end = start + report.text[start..].find("end subroutine").expect("it ends");
            let own = report.findings.iter().filter(|finding| {
                let at = finding.span.start as usize;
                start <= at && at < end
            });
            for finding in own {
                assert!(finding.remedies.len() >= 3, "{:?}", finding.remedies);
                for remedy in &finding.remedies {
                    let twin = twin_of(remedy).unwrap_or_else(|| panic!("{remedy} leads nowhere"));
                    // With implicit interfaces some compilers refuse such actual arguments.
                    let has_interface = BINDINGS[file.binding].0 != "mpif.h";
                    assert!(has_interface || !matches!(twin, "asynchronous" | "volatile"), "{remedy}");
                    let version = format!("{}_{twin}", hazard.name);
                    let version = file.versions.iter().find(|own| own.name == version).expect("it is there");
                    assert!(version.findings.iter().all(|(level, ..)| *level == "note"), "{}", version.name);
                    proposed.insert((file.binding, twin.to_string()));
                }
            }
        }
    }
    assert_eq!(proposed.len(), 3 + 5 + 5, "{proposed:?}");
    let versioned = (16..=24).rev().flat_map(|n| [format!("flang-{n}"), format!("flang-new-{n}")]);
    let mut names = ["flang", "flang-new"].map(str::to_string).into_iter().chain(versioned);
    let llvm = names.find(|name| Command::new(name).arg("--version").output().is_ok());
    let Some((llvm, compiler)) = llvm.zip(compiler()) else { return };
    // Its own modules of MPI are seldom there; the header is any compiler's.
    let kept: Vec<Version> = versions()
        .into_iter()
        .filter(|version| ["_common", "_module", "_dummy"].iter().any(|twin| version.name.ends_with(twin)))
        .collect();
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    // Nor what is not under test may have an attribute that asks for an interface.
    let beside = "double precision :: other(8), mem(8)\ncommon /beside/ other, mem";
    let text = module("programs", 0, &kept).replace("double precision, volatile :: other(8), mem(8)", beside);
    std::fs::write(folder.path().join("programs.f90"), text).expect("it can be written");
    let shown = Command::new(compiler).arg("-show").output().expect("the compiler starts");
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let output = Command::new(&llvm)
        .current_dir(folder.path())
        .args(shown.split_whitespace().filter(|word| word.starts_with("-I")))
        .args(["-fsyntax-only", "programs.f90"])
        .output()
        .expect("the compiler starts");
    assert!(output.status.success(), "{llvm}:\n{}", String::from_utf8_lossy(&output.stderr));
}

/// What an edit can mend is mended, in one go over the whole file: the new text is clean, and compiles.
#[test]
fn the_catalogue_is_mended() {
    // An order of statements, a temporary, COMMON of a wrapper: nothing that a line more puts right.
    let by_hand = ["FR11", "FR12", "FR15", "FR16", "FR20", "FR21", "FR22"];
    let options = Options { sync_routine: Some("DD".to_string()), ..Options::default() };
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    for file in catalogue() {
        let inputs = [Input { path: file.name.clone(), bytes: file.text.clone().into_bytes() }];
        let outcome = mend(&inputs, &options, |_| {});
        let left: Vec<String> = outcome.reports[0]
            .findings
            .iter()
            .filter(|finding| !by_hand.contains(&finding.rule))
            .map(|finding| format!("{} {}: {}", finding.rule, finding.variable, finding.message))
            .collect();
        assert!(left.is_empty(), "{}: {left:#?}", file.name);
        let text = outcome.patches[&0].new_text();
        let again = mend(&[Input { path: file.name.clone(), bytes: text.clone() }], &options, |_| {});
        assert!(again.patches.is_empty(), "{} is mended twice", file.name);
        let Some(compiler) = compiler() else { continue };
        std::fs::write(folder.path().join(&file.name), &text).expect("the program can be written");
        let output = Command::new(compiler)
            .current_dir(folder.path())
            .args(["-w", "-fallow-argument-mismatch", "-fsyntax-only", &file.name])
            .output()
            .expect("the compiler starts");
        assert!(output.status.success(), "{}:\n{}", file.name, String::from_utf8_lossy(&output.stderr));
    }
    if compiler().is_none() {
        skip("no MPI compiler for Fortran that is gfortran");
    }
}
