//! Remedies that fail: each way to protect a buffer in vain, in every program of the catalogue, with the reason that the
//! finding then carries. Their repaired twins are the versions of the same programs that are protected.

use fortran_lint::options::{Options, Standard};

use super::{
    BINDINGS, Expectation, FENCE, FREE, HAZARDS, Hazard, PUT_OTHER, Runs, SEND_OTHER, STORE_MOVED, Version,
    WAIT, catalogue, verdicts,
};

type Finding = (&'static str, &'static str, &'static str);

/// Procedures that the versions of all reasons call, the first of which holds them: in the same file, so that the compiler
/// can look into them.
fn helpers(request: &str, window: &str) -> Vec<String> {
    let mut lines: Vec<String> = [
        "subroutine inside(buf)",
        "double precision :: buf(*)",
        "end subroutine",
        "subroutine opaque_inside(buf)",
        "double precision :: buf(*)",
        "call DD(buf)",
        "end subroutine",
        "subroutine written_inside(buf)",
        "double precision :: buf(*)",
        "buf(1) = 1",
        "end subroutine",
        "subroutine inside_state(state)",
        "integer(kind=MPI_ADDRESS_KIND) :: state",
        "end subroutine",
    ]
    .map(str::to_string)
    .to_vec();
    for (name, attribute) in [("plain", ""), ("asynchronous", ", asynchronous"), ("volatile", ", volatile")] {
        lines.extend([
            format!("subroutine begin_{name}(buf, req)"),
            format!("double precision{attribute} :: buf(8)"),
            format!("{request} :: req"),
            "integer :: ierr".to_string(),
            "call MPI_IRECV(buf, 1, MPI_DOUBLE_PRECISION, 0, 7, MPI_COMM_WORLD, req, ierr)".to_string(),
            "end subroutine".to_string(),
            format!("subroutine open_{name}(buf, win)"),
            format!("double precision{attribute} :: buf(8)"),
            format!("{window} :: win"),
            "integer :: ierr".to_string(),
            "call MPI_WIN_CREATE(buf, 64_MPI_ADDRESS_KIND, 8, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)"
                .to_string(),
            "end subroutine".to_string(),
        ]);
    }
    lines
}

pub(super) fn versions(binding: usize) -> Vec<Version> {
    let mut all = Vec::new();
    for hazard in HAZARDS.iter().chain([&STORE_MOVED]) {
        let reported = |code: &'static str, filter: fn(&Hazard, &Finding) -> bool| {
            because(hazard.findings, code).into_iter().filter(|finding| filter(hazard, finding)).collect()
        };
        all.push(synced(hazard, "inside", "?", "call inside(buf)", reported("FR13", |_, _| true)));
        all.push(synced(
            hazard,
            "branch",
            "?",
            "if (res == 1) call DD(buf)",
            reported("FR14", is_read_or_stored),
        ));
        all.push(synced(hazard, "side", "!", "call DD(buf)", reported("FR14", is_own)));
        // The interface of one binding may be INTENT(IN): a store stands before it, and nothing is loaded behind it.
        let taken = match BINDINGS[binding].0 {
            "mpi" if !OF_STORES.contains(&hazard.name) => reported("FR19", is_own),
            _ => Vec::new(),
        };
        all.push(synced(hazard, "address", "?", "call MPI_GET_ADDRESS(buf, seen, ierr)", taken));
        all.extend(WEAK.iter().map(|(word, ..)| weak(hazard, word)));
    }
    let [request, window, _] = BINDINGS[binding].3;
    all[0].procedures = helpers(request, window);
    all.extend(lost(binding));
    all.extend(called_back());
    all.extend(polled());
    all
}

/// The programs in which a store comes too late.
const OF_STORES: [&str; 4] = ["fr04send", "fr05", "fr07", "fr08"];

/// Whether it is the finding that the program is made for. A call between the fences of a window that is only put to does
/// not help the read behind them, and is where the store before them has happened at the latest.
fn is_own(hazard: &Hazard, finding: &Finding) -> bool {
    hazard.name[..4].eq_ignore_ascii_case(finding.1)
}

/// Of a window that is never read, any call with it in the unit is enough for FR01.
fn is_read_or_stored(_: &Hazard, (level, rule, _): &Finding) -> bool {
    (*level, *rule) != ("warning", "FR01")
}

/// The findings, each with a reason.
fn because(findings: &[Finding], code: &str) -> Vec<Finding> {
    let explained = |&(level, rule, variable): &Finding| (level, rule, with(variable, code));
    findings.iter().map(explained).collect()
}

fn with(variable: &str, code: &str) -> &'static str {
    let known = [
        "buf because FR13",
        "buf because FR14",
        "buf because FR18",
        "buf because FR19",
        "state because FR13",
        "state because FR14",
        "state because FR19",
    ];
    let text = format!("{variable} because {code}");
    known.into_iter().find(|known| *known == text).expect("the reason is in the list")
}

/// A version with a call at the marked places.
fn synced(hazard: &Hazard, twin: &str, mark: &str, call: &str, findings: Vec<Finding>) -> Version {
    let lines = hazard.body.iter().filter_map(|&line| match line {
        line if line == mark => Some(call.to_string()),
        "?" | "!" => None,
        line => Some(line.to_string()),
    });
    Version {
        name: format!("{}_{twin}", hazard.name),
        shared: Vec::new(),
        procedures: Vec::new(),
        declarations: vec![
            "double precision :: buf(8)".to_string(),
            "integer(kind=MPI_ADDRESS_KIND) :: seen".to_string(),
        ],
        body: lines.collect(),
        findings,
        runs: hazard.runs,
    }
}

/// Attributes that do not keep a variable in memory: its declarations, and what makes it.
const WEAK: [(&str, &[&str], &[&str]); 5] = [
    ("target", &["double precision, target :: buf(8)"], &[]),
    ("save", &["double precision, save :: buf(8)"], &[]),
    ("allocatable", &["double precision, allocatable :: buf(:)"], &["allocate(buf(8))"]),
    ("pointer", &["double precision, pointer :: buf(:)"], &["allocate(buf(8))"]),
    ("equivalence", &["double precision :: buf(8), also(8)", "equivalence (buf, also)"], &[]),
];

fn weak(hazard: &Hazard, word: &str) -> Version {
    let (_, declarations, before) = WEAK.iter().find(|(known, ..)| *known == word).expect("it is known");
    let plain = synced(hazard, word, "", "", because(hazard.findings, "FR19"));
    let mut findings = plain.findings;
    // What every compiler tried keeps in memory, and no standard promises.
    if word == "save" {
        findings.iter_mut().for_each(|(level, ..)| *level = "warning");
    }
    Version {
        declarations: declarations.iter().map(|line| line.to_string()).collect(),
        body: before.iter().map(|line| line.to_string()).chain(plain.body).collect(),
        findings,
        ..plain
    }
}

/// Attributes on one side of a call only.
fn lost(binding: usize) -> Vec<Version> {
    let mut all = Vec::new();
    let receive = |begin: &str, sync: &str| -> Vec<String> {
        let begin = format!("call begin_{begin}(buf, req)");
        ["buf(1) = 999", &begin, SEND_OTHER, WAIT, sync, "res = int(buf(1))"].map(str::to_string).to_vec()
    };
    let open = |open: &str, sync: &str| -> Vec<String> {
        let open = format!("call open_{open}(buf, win)");
        [&open, "buf(1) = 999", sync, FENCE, PUT_OTHER, FENCE, sync, "res = int(buf(1))", FREE]
            .map(str::to_string)
            .to_vec()
    };
    let mut add = |name: String, attribute: &str, mut body: Vec<String>, findings: &[Finding]| {
        body.retain(|line| !line.is_empty());
        all.push(Version {
            name,
            shared: Vec::new(),
            procedures: Vec::new(),
            declarations: vec![format!("double precision{attribute} :: buf(8)")],
            body,
            findings: findings.to_vec(),
            runs: Runs::Yes,
        });
    };
    let received = [("warning", "FR02", "buf")];
    let opened = [("error", "FR01", "buf"), ("error", "FR08", "buf")];
    add("fr18_receive_neither".to_string(), "", receive("plain", ""), &received);
    add("fr18_receive_dummy".to_string(), "", receive("plain", "call DD(buf)"), &[]);
    add("fr18_open_neither".to_string(), "", open("plain", ""), &opened);
    add("fr18_open_dummy".to_string(), "", open("plain", "call DD(buf)"), &[]);
    for word in ["asynchronous", "volatile"] {
        let attribute = format!(", {word}");
        add(format!("fr18_receive_{word}"), "", receive(word, ""), &because(&received, "FR18"));
        add(format!("fr18_receive_{word}_both"), &attribute, receive(word, ""), &[]);
        add(format!("fr18_open_{word}"), "", open(word, ""), &because(&opened, "FR18"));
        add(format!("fr18_open_{word}_both"), &attribute, open(word, ""), &[]);
    }
    // The other way: the procedure that is called receives, waits and reads.
    for (name, outside, inside, sync) in [
        ("asynchronous", ", asynchronous", "", ""),
        ("asynchronous_both", ", asynchronous", ", asynchronous", ""),
        ("volatile", ", volatile", "", ""),
        ("volatile_both", ", volatile", ", volatile", ""),
        ("common", "", "", ""),
        ("dummy", ", asynchronous", "", "call DD(buf)"),
    ] {
        let name = format!("fr18_inner_{name}");
        let is_safe = name.ends_with("_both") || !sync.is_empty();
        let mut inner = vec![
            format!("subroutine {name}_inner(buf, res)"),
            format!("double precision{inside} :: buf(8)"),
            "double precision, volatile :: other(8)".to_string(),
            format!("{} :: req", BINDINGS[binding].3[0]),
            "integer :: res, ierr".to_string(),
            "other = 777".to_string(),
        ];
        inner.extend(
            ["buf(1) = 999", super::RECEIVE, SEND_OTHER, WAIT, sync, "res = int(buf(1))", "end subroutine"]
                .iter()
                .filter(|line| !line.is_empty())
                .map(|line| line.to_string()),
        );
        let mut declarations = vec![format!("double precision{outside} :: buf(8)")];
        if name.ends_with("common") {
            declarations.push("common /fr18_block/ buf".to_string());
        }
        all.push(Version {
            body: vec![format!("call {name}_inner(buf, res)")],
            name,
            shared: Vec::new(),
            procedures: inner,
            declarations,
            findings: if is_safe { Vec::new() } else { because(&received, "FR18") },
            runs: Runs::Yes,
        });
    }
    all
}

/// A callback that changes its state inside a call that does not name it.
fn called_back() -> Vec<Version> {
    let mut all = Vec::new();
    let mut add =
        |twin: &str, attribute: &str, before: &str, behind: &str, level: &'static str, code: &str| {
            let body = [
                "state = 0",
                "call MPI_GREQUEST_START(ask, done, cancel, state, req, ierr)",
                "state = 999",
                before,
                "call MPI_GREQUEST_COMPLETE(req, ierr)",
                WAIT,
                behind,
                "res = int(state)",
            ];
            all.push(Version {
                name: format!("fr09_{twin}"),
                shared: Vec::new(),
                procedures: Vec::new(),
                declarations: vec![
                    format!("integer(kind=MPI_ADDRESS_KIND){attribute} :: state"),
                    "external ask, done, cancel".to_string(),
                ],
                body: body.into_iter().filter(|line| !line.is_empty()).map(str::to_string).collect(),
                findings: because(&[(level, "FR09", "state")], code),
                runs: Runs::Yes,
            });
        };
    add("inside", "", "", "call inside_state(state)", "error", "FR13");
    add("branch", "", "", "if (res == 1) call DD(state)", "error", "FR14");
    add("side", "", "call DD(state)", "", "error", "FR14");
    add("target", ", target", "", "", "error", "FR19");
    add("save", ", save", "", "", "warning", "FR19");
    all
}

/// A loop that polls: never run, for it does not end.
fn polled() -> Vec<Version> {
    let mut all = Vec::new();
    let mut add = |twin: &str, attribute: &str, before: &str, within: &str, findings: Vec<Finding>| {
        let body = [
            super::OWN_WINDOW,
            "call MPI_WIN_LOCK_ALL(0, win, ierr)",
            before,
            "do while (buf(1) == 0)",
            "call MPI_WIN_SYNC(win, ierr)",
            within,
            "end do",
            "call MPI_WIN_UNLOCK_ALL(win, ierr)",
            FREE,
        ];
        all.push(Version {
            name: format!("fr17_{twin}"),
            shared: Vec::new(),
            procedures: Vec::new(),
            declarations: vec![format!("double precision{attribute} :: buf(8)")],
            body: body.into_iter().filter(|line| !line.is_empty()).map(str::to_string).collect(),
            findings,
            runs: Runs::No,
        });
    };
    let both = [("error", "FR01", "buf"), ("error", "FR17", "buf")];
    let saved = [("warning", "FR01", "buf"), ("warning", "FR17", "buf")];
    add("inside", "", "", "call inside(buf)", because(&both, "FR13"));
    add("opaque_inside", "", "", "call opaque_inside(buf)", because(&both[..1], "FR14"));
    add("written_inside", "", "", "call written_inside(buf)", because(&both[..1], "FR13"));
    // Not in every round, and yet the loop may end.
    add("branch", "", "", "if (ierr == 1) call DD(buf)", because(&both[..1], "FR14"));
    add("side", "", "call DD(buf)", "", because(&both, "FR14"));
    add("target", ", target", "", "", because(&both, "FR19"));
    add("save", ", save", "", "", because(&saved, "FR19"));
    all
}

/// What a standard does not promise, in each form and binding: VOLATILE and ASYNCHRONOUS before their time.
#[test]
fn a_remedy_is_noted_where_the_standard_does_not_have_it() {
    let standards =
        [Standard::F77, Standard::F90, Standard::F95, Standard::F2003, Standard::F2008, Standard::F2018];
    for file in catalogue().iter().filter(|file| file.name.starts_with("programs")) {
        for standard in standards {
            let options = Options { standard, ..Options::default() };
            let found = verdicts(file, &options);
            for hazard in HAZARDS.iter().chain([&STORE_MOVED]) {
                let noted = vec![("note", "FR12", "buf")];
                for (twin, expected) in [
                    ("local", hazard.findings.to_vec()),
                    ("common", Vec::new()),
                    ("dummy", Vec::new()),
                    ("volatile", if standard < Standard::F2003 { noted.clone() } else { Vec::new() }),
                    (
                        "asynchronous",
                        match standard {
                            // No remedy at all.
                            _ if standard < Standard::F2003 => because(hazard.findings, "FR19"),
                            _ if standard < Standard::F2018 => noted.clone(),
                            _ => Vec::new(),
                        },
                    ),
                ] {
                    let name = format!("{}_{twin}", hazard.name);
                    let mut expected: Vec<Expectation> = expected
                        .iter()
                        .map(|(level, rule, variable)| Expectation::new(level, rule, variable, &[]))
                        .collect();
                    expected.sort();
                    // What is not under test is VOLATILE everywhere.
                    let is_tested = |own: &&Expectation| own.0.split(' ').nth(2) == Some("buf");
                    let own: Vec<Expectation> =
                        found.get(&name).into_iter().flatten().filter(is_tested).cloned().collect();
                    assert_eq!(own, expected, "{name} of {} with {standard:?}", file.name);
                }
            }
        }
    }
}
