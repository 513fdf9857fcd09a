//! Clean programs, and what is said about each when one of its remedies is taken away: exactly the finding of the hazard that
//! the remedy removed, at its place. Each in both source forms and with the three bindings.

mod common;

use common::{said, unit};
use fortran_lint::check::check_one;
use fortran_lint::options::Options;

/// A clean program; lines that begin with `?` are its remedies, and each has the findings that its absence brings.
struct Program {
    lines: &'static [&'static str],
    without: &'static [&'static [&'static str]],
}

const CREATE: &str = "call MPI_WIN_CREATE(buf, size, 8, MPI_INFO_NULL, comm, win, ierr)";
const RECEIVE: &str = "call MPI_IRECV(buf, 1, MPI_INTEGER, 0, 7, comm, req, ierr)";
const FENCE: &str = "call MPI_WIN_FENCE(0, win, ierr)";
const WAIT: &str = "call MPI_WAIT(req, status, ierr)";
const ADDRESS: &str = "call MPI_GET_ADDRESS(buf, address, ierr)";
const HIDE: &str = "call MPI_TYPE_CREATE_HINDEXED(1, 1, address, MPI_INTEGER, type, ierr)";
const PUT: &str = "call MPI_PUT(buf, 1, MPI_INTEGER, 1, zero, 1, MPI_INTEGER, win, ierr)";
const GET: &str = "call MPI_GET(buf, 1, MPI_INTEGER, 1, zero, 1, MPI_INTEGER, win, ierr)";
const LOCK: &str = "call MPI_WIN_LOCK(MPI_LOCK_SHARED, 1, 0, win, ierr)";
const UNLOCK: &str = "call MPI_WIN_UNLOCK(1, win, ierr)";
const LOCAL: &str = "integer buf";

/// Ways to declare the buffer so that nothing else is needed.
const DECLARED: [&str; 3] = ["?volatile buf", "?asynchronous buf", "?common /block/ buf"];

/// Programs that need a declaration, and what is said without it.
const BY_DECLARATION: [(&[&str], &[&str]); 10] = [
    (&[RECEIVE, WAIT, "x = buf"], &["warning FR02 buf: x = buf"]),
    (&[RECEIVE, WAIT, "buf = 1"], &["warning FR02 buf: buf = 1"]),
    (&[CREATE, FENCE, FENCE, "x = buf"], &["error FR01 buf: integer buf"]),
    (
        &[CREATE, "buf = 1", FENCE, FENCE, "x = buf"],
        &["error FR01 buf: integer buf", "error FR08 buf: buf = 1"],
    ),
    (&[CREATE, "buf = 1", FENCE], &["warning FR01 buf: integer buf", "error FR08 buf: buf = 1"]),
    (
        &[
            ADDRESS,
            HIDE,
            "x = buf",
            "call MPI_RECV(MPI_BOTTOM, 1, type, 0, 7, comm, status, ierr)",
            "y = buf",
        ],
        &["error FR03 buf: y = buf"],
    ),
    (
        &[ADDRESS, HIDE, "buf = 1", "call MPI_SEND(MPI_BOTTOM, 1, type, 0, 7, comm, ierr)"],
        &["error FR05 buf: buf = 1"],
    ),
    (&[FENCE, GET, FENCE, "x = buf"], &["warning FR06 buf: x = buf"]),
    (&[FENCE, PUT, FENCE, "buf = 2"], &["warning FR07 buf: buf = 2"]),
    (
        &[
            "call MPI_COMM_CREATE_KEYVAL(copy, delete, n, buf, ierr)",
            "buf = 0",
            "call MPI_COMM_FREE(comm, ierr)",
            "x = buf",
        ],
        &["error FR09 buf: x = buf"],
    ),
];

/// Programs whose remedies are calls and the order of statements.
const BY_CALL: [Program; 13] = [
    Program {
        lines: &[RECEIVE, WAIT, "?call sync(buf)", "x = buf"],
        without: &[&["warning FR02 buf: x = buf"]],
    },
    Program {
        lines: &[CREATE, "buf = 1", "?call sync(buf)", FENCE, FENCE, "?call sync(buf)", "x = buf"],
        without: &[&["error FR08 buf: buf = 1 because FR14"], &["error FR01 buf: integer buf because FR14"]],
    },
    Program {
        lines: &[
            "call MPI_RECV_INIT(buf, 1, MPI_INTEGER, 0, 7, comm, req, ierr)",
            "do i = 1, n",
            "call MPI_START(req, ierr)",
            WAIT,
            "?call sync(buf)",
            "x = x + buf",
            "end do",
        ],
        without: &[&["error FR02 buf: x = x + buf"]],
    },
    Program {
        lines: &[
            ADDRESS,
            HIDE,
            "buf = 1",
            "?call sync(buf)",
            "call MPI_SEND(MPI_BOTTOM, 1, type, 0, 7, comm, ierr)",
        ],
        without: &[&["error FR05 buf: buf = 1"]],
    },
    Program {
        lines: &[FENCE, GET, FENCE, "?call sync(buf)", "x = buf"],
        without: &[&["warning FR06 buf: x = buf"]],
    },
    Program {
        lines: &[FENCE, PUT, FENCE, "?call sync(buf)", "buf = 2"],
        without: &[&["warning FR07 buf: buf = 2"]],
    },
    // Each of two branches needs its own.
    Program {
        lines: &[
            RECEIVE,
            WAIT,
            "if (n > 1) then",
            "?call sync(buf)",
            "x = buf",
            "else",
            "?call sync(buf)",
            "y = buf",
            "end if",
        ],
        without: &[&["warning FR02 buf: x = buf because FR14"], &["warning FR02 buf: y = buf because FR14"]],
    },
    // A loop that polls.
    Program {
        lines: &[
            CREATE,
            "call MPI_WIN_LOCK_ALL(0, win, ierr)",
            "do",
            "call MPI_WIN_SYNC(win, ierr)",
            "?call sync(buf)",
            "if (buf /= 0) exit",
            "end do",
            "call MPI_WIN_UNLOCK_ALL(win, ierr)",
        ],
        without: &[&["error FR01 buf: integer buf", "error FR17 buf: if (buf /= 0) exit"]],
    },
    // Order, which no declaration mends.
    Program {
        lines: &[
            "volatile buf",
            RECEIVE,
            "?call MPI_WAIT(req, status, ierr)",
            "x = buf",
            "call MPI_WAIT(req, status, ierr)",
        ],
        without: &[&["error FR15 buf: x = buf"]],
    },
    Program {
        lines: &["volatile buf", LOCK, PUT, "?call MPI_WIN_FLUSH_ALL(win, ierr)", "buf = 2", UNLOCK],
        without: &[&["error FR15 buf: buf = 2"]],
    },
    Program {
        lines: &[
            "volatile buf",
            CREATE,
            "?call MPI_WIN_LOCK(MPI_LOCK_SHARED, 1, 0, win, ierr)",
            UNLOCK,
            LOCK,
            "?call MPI_WIN_UNLOCK(1, win, ierr)",
            "call MPI_WIN_FREE(win, ierr)",
        ],
        without: &[
            &["error FR21 win: call MPI_WIN_UNLOCK(1, win, ierr)"],
            &["error FR21 win: call MPI_WIN_FREE(win, ierr)"],
        ],
    },
    Program {
        lines: &[
            "volatile buf",
            CREATE,
            "if (n == 1) then",
            LOCK,
            "call MPI_PUT(x, 1, MPI_INTEGER, 1, zero, 1, MPI_INTEGER, win, ierr)",
            UNLOCK,
            "end if",
            "call MPI_BARRIER(comm, ierr)",
            "?call MPI_WIN_SYNC(win, ierr)",
            "y = buf",
        ],
        without: &[&["error FR22 buf: y = buf"]],
    },
    Program {
        lines: &[
            "volatile buf",
            "integer, allocatable, volatile :: heap(:)",
            "allocate(heap(4))",
            "call MPI_IRECV(heap, 4, MPI_INTEGER, 0, 7, comm, req, ierr)",
            "?call MPI_WAIT(req, status, ierr)",
            "deallocate(heap)",
            "call MPI_WAIT(req, status, ierr)",
        ],
        without: &[&["error FR20 heap: deallocate(heap)"]],
    },
];

/// The same text in fixed form: no statement of it is longer than three lines.
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

/// Each finding without its line.
fn short(found: &[String]) -> Vec<String> {
    let cut = |line: &String| {
        let because =
            line.split_once(" because ").map_or(String::new(), |(_, codes)| format!(" because {codes}"));
        format!("{}{because}", line.split_once(':').map_or(line.as_str(), |(head, _)| head))
    };
    found.iter().map(cut).collect()
}

fn check_text(lines: &[&str], expected: &[&str]) {
    for binding in ["mpif.h", "mpi", "mpi_f08"] {
        let text = unit(binding, LOCAL, &lines.join("\n"));
        let found = said(&text, &Options::default());
        assert_eq!(found, expected, "in:\n{text}");
        let report = check_one("work.f", fixed(&text).as_bytes(), &Options::default());
        let in_fixed: Vec<String> =
            report.findings.iter().map(|finding| common::line_of(&report.text, finding)).collect();
        assert!(report.skipped.is_empty(), "a statement was skipped in:\n{}", fixed(&text));
        assert_eq!(short(&in_fixed), short(&found), "in:\n{}", fixed(&text));
    }
}

fn check_program(lines: &[&str], without: &[&[&str]]) {
    let plain: Vec<&str> = lines.iter().map(|line| line.trim_start_matches('?')).collect();
    check_text(&plain, &[]);
    let remedies: Vec<usize> = (0..lines.len()).filter(|&i| lines[i].starts_with('?')).collect();
    assert_eq!(remedies.len(), without.len(), "each remedy has its findings: {lines:?}");
    for (&remedy, expected) in remedies.iter().zip(without) {
        let mut left = plain.clone();
        left.remove(remedy);
        check_text(&left, expected);
    }
}

#[test]
fn each_remedy_that_goes_brings_back_its_finding() {
    let mut n_mutants = 0;
    for (body, expected) in BY_DECLARATION {
        for remedy in DECLARED {
            let mut lines = vec![remedy];
            lines.extend(body);
            check_program(&lines, &[expected]);
            n_mutants += 1;
        }
    }
    for program in BY_CALL {
        check_program(program.lines, program.without);
        n_mutants += program.without.len();
    }
    assert_eq!(n_mutants, 46);
}
