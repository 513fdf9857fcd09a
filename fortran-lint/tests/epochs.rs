//! Epochs, lifetimes and visibility of windows: each wrong edge of the automaton beside its right twin, and the examples of
//! the correction of the visibility rules.

mod common;

use common::{said, unit};
use fortran_lint::options::Options;

const CREATE: &str = "call MPI_WIN_CREATE(mem, size, 8, MPI_INFO_NULL, comm, win, ierr)";
const FREE: &str = "call MPI_WIN_FREE(win, ierr)";
const FENCE: &str = "call MPI_WIN_FENCE(0, win, ierr)";
const START: &str = "call MPI_WIN_START(group, 0, win, ierr)";
const COMPLETE: &str = "call MPI_WIN_COMPLETE(win, ierr)";
const POST: &str = "call MPI_WIN_POST(group, 0, win, ierr)";
const WAIT: &str = "call MPI_WIN_WAIT(win, ierr)";
const PUT: &str = "call MPI_PUT(out, 1, MPI_INTEGER, 1, zero, 1, MPI_INTEGER, win, ierr)";
const GET: &str = "call MPI_GET(in, 1, MPI_INTEGER, 1, zero, 1, MPI_INTEGER, win, ierr)";
const LOCK: &str = "call MPI_WIN_LOCK(MPI_LOCK_EXCLUSIVE, 1, 0, win, ierr)";
const UNLOCK: &str = "call MPI_WIN_UNLOCK(1, win, ierr)";
const LOCK_ALL: &str = "call MPI_WIN_LOCK_ALL(0, win, ierr)";
const UNLOCK_ALL: &str = "call MPI_WIN_UNLOCK_ALL(win, ierr)";
const LAST_FENCE: &str = "call MPI_WIN_FENCE(MPI_MODE_NOSUCCEED, win, ierr)";
const BARRIER: &str = "call MPI_BARRIER(comm, ierr)";

/// Memory that the optimiser leaves alone, so that only order matters.
const NAMES: &str = "integer, volatile :: mem(8), out, in";

#[track_caller]
fn check_lines(lines: &[&str], expected: &[&str]) {
    let text = unit("mpi", NAMES, &lines.join("\n"));
    assert_eq!(said(&text, &Options::default()), expected, "in:\n{text}");
}

/// The wrong call stands last in `wrong`, and behind it the program is put in order, so that it is the only one.
#[track_caller]
fn check_edge(wrong: &[&str], right: &[&str]) {
    let offending = wrong.last().expect("there is a wrong call");
    let text = unit("mpi", NAMES, &[&[CREATE], wrong].concat().join("\n"));
    let found = said(&text, &Options::default());
    assert_eq!(found, [format!("error FR21 win: {offending}")], "in:\n{text}");
    check_lines(&[&[CREATE], right].concat(), &[]);
}

// covers: REG-LINT-30
#[test]
fn each_wrong_edge_is_named_at_the_offending_call() {
    check_edge(&[PUT], &[FENCE, PUT, FENCE]);
    check_edge(&[FENCE, PUT, LAST_FENCE, PUT], &[FENCE, PUT, FENCE, PUT, LAST_FENCE]);
    check_edge(&[COMPLETE], &[START, COMPLETE]);
    check_edge(&[START, COMPLETE, COMPLETE], &[START, COMPLETE, START, COMPLETE]);
    check_edge(&[START, START], &[START, COMPLETE, START, COMPLETE]);
    check_edge(&[START, COMPLETE, GET], &[START, GET, COMPLETE]);
    check_edge(&[WAIT], &[POST, WAIT]);
    check_edge(&[POST, WAIT, WAIT], &[POST, WAIT, POST, WAIT]);
    check_edge(&[POST, POST], &[POST, START, PUT, COMPLETE, WAIT]);
    check_edge(&[UNLOCK], &[LOCK, UNLOCK]);
    check_edge(&[LOCK, LOCK], &[LOCK, UNLOCK, LOCK, UNLOCK]);
    check_edge(&[LOCK, UNLOCK, PUT], &[LOCK, PUT, UNLOCK]);
    check_edge(
        &[LOCK, UNLOCK, "call MPI_WIN_FLUSH(1, win, ierr)"],
        &[LOCK, PUT, "call MPI_WIN_FLUSH(1, win, ierr)", UNLOCK],
    );
    check_edge(&[UNLOCK_ALL], &[LOCK_ALL, PUT, "call MPI_WIN_FLUSH_ALL(win, ierr)", GET, UNLOCK_ALL]);
    check_edge(&[LOCK_ALL, LOCK], &[LOCK_ALL, UNLOCK_ALL, LOCK, UNLOCK]);
    // Styles that overlap.
    check_edge(&[LOCK, FENCE], &[LOCK, UNLOCK, FENCE]);
    check_edge(&[START, LOCK], &[START, COMPLETE, LOCK, UNLOCK]);
    check_edge(&[FENCE, PUT, LOCK], &[FENCE, PUT, LAST_FENCE, LOCK, UNLOCK]);
    check_edge(&[POST, FENCE], &[POST, WAIT, FENCE]);
    // Windows that are freed too early, and used too late.
    check_edge(&[START, FREE], &[START, COMPLETE, FREE]);
    check_edge(&[LOCK, FREE], &[LOCK, UNLOCK, FREE]);
    check_edge(&[FENCE, PUT, FREE], &[FENCE, PUT, FENCE, FREE]);
    check_edge(&[FREE, FENCE], &[FENCE, FREE]);
    // Another rank is another lock.
    let other = "call MPI_WIN_UNLOCK(2, win, ierr)";
    check_edge(&[LOCK, other], &[LOCK, "call MPI_WIN_LOCK(MPI_LOCK_SHARED, 2, 0, win, ierr)", other, UNLOCK]);
}

#[test]
fn only_what_is_wrong_on_every_way_is_accused() {
    // On one way only.
    check_lines(&[CREATE, "if (n > 0) then", LOCK, "end if", PUT, "if (n > 0) then", UNLOCK, "end if"], &[]);
    check_lines(
        &[CREATE, "if (n > 0) then", LAST_FENCE, "end if", PUT],
        &["error FR21 win: ".to_string() + PUT].map(|line| Box::leak(line.into_boxed_str()) as &str),
    );
    // Round a loop.
    check_lines(&[CREATE, FENCE, "do i = 1, n", PUT, FENCE, "end do", FREE], &[]);
    check_lines(
        &[
            CREATE,
            "do i = 0, n",
            "call MPI_WIN_LOCK(MPI_LOCK_SHARED, i, 0, win, ierr)",
            "end do",
            "do i = 0, n",
            "call MPI_WIN_UNLOCK(i, win, ierr)",
            "end do",
        ],
        &[],
    );
    // A rank that changes names another one.
    let at_i = "call MPI_WIN_LOCK(MPI_LOCK_SHARED, i, 0, win, ierr)";
    check_lines(&[CREATE, "i = 0", at_i, "i = 1", at_i], &[]);
    // Assertions that are not written down.
    check_lines(&[CREATE, "call MPI_WIN_FENCE(n, win, ierr)", PUT, FENCE], &[]);
    check_lines(
        &[CREATE, "call MPI_WIN_FENCE(ior(MPI_MODE_NOPRECEDE, MPI_MODE_NOSTORE), win, ierr)", PUT, FENCE],
        &[],
    );
    // Early exits.
    check_lines(&[CREATE, LOCK, "if (ierr /= 0) return", PUT, UNLOCK], &[]);
}

// covers: REG-LINT-35
#[test]
fn a_window_from_elsewhere_is_not_accused() {
    for body in [PUT, COMPLETE, WAIT, UNLOCK, FREE, "mem(1) = 2"] {
        check_lines(&[body], &[]);
    }
    // Once it has been seen to be locked, the state is known again.
    check_lines(&[LOCK, UNLOCK, UNLOCK], &["error FR21 win: call MPI_WIN_UNLOCK(1, win, ierr)"]);
    // A procedure that is not seen may do anything to a window that it gets.
    check_lines(&[CREATE, "call open(win)", PUT, "call close(win)"], &[]);
    check_lines(
        &[CREATE, "call somewhere(n)", PUT],
        &["error FR21 win: call MPI_PUT(out, 1, MPI_INTEGER, 1, zero, 1, MPI_INTEGER, win, ierr)"],
    );
    // One of several windows.
    let text = unit("mpi", NAMES, &[PUT].join("\n"))
        .replace(" win,", " wins(i),")
        .replace("reqs(2), wins(i)", "reqs(2), wins(3), win");
    assert!(said(&text, &Options::default()).is_empty(), "in:\n{text}");
    // Between fences a store is none of FR15's until a transfer of that phase.
    check_lines(&[CREATE, FENCE, "mem(1) = 2", FENCE], &[]);
    check_lines(&[CREATE, FENCE, PUT, "mem(1) = 2", FENCE], &["error FR15 mem: mem(1) = 2"]);
}

/// The two examples of the correction of the visibility rules, with the window in memory that is left alone.
// covers: REG-LINT-31
#[test]
fn an_update_under_a_lock_needs_a_call_of_ones_own() {
    let put = "if (n == 1) then\ncall MPI_WIN_LOCK(MPI_LOCK_EXCLUSIVE, 0, 0, win, ierr)\ncall MPI_PUT(out, 1, MPI_INTEGER, 0, zero, 1, MPI_INTEGER, win, ierr)\ncall MPI_WIN_UNLOCK(0, win, ierr)\nend if";
    let load = "if (n == 0) y = mem(2)";
    let reported = ["error FR22 mem: if (n == 0) y = mem(2)"];
    // The second example: barrier, update under a lock, barrier, load.
    check_lines(&[CREATE, BARRIER, put, BARRIER, load], &reported);
    // Its three remedies, and MPI's own.
    let own_lock = "call MPI_WIN_LOCK(MPI_LOCK_SHARED, n, 0, win, ierr)";
    let own_unlock = "call MPI_WIN_UNLOCK(n, win, ierr)";
    check_lines(&[CREATE, BARRIER, put, BARRIER, own_lock, load, own_unlock], &[]);
    check_lines(
        &[CREATE, BARRIER, put, BARRIER, "call MPI_WIN_POST(MPI_GROUP_EMPTY, 0, win, ierr)", load, WAIT],
        &[],
    );
    check_lines(&[CREATE, BARRIER, put, FENCE, load], &[]);
    check_lines(
        &[
            CREATE,
            LOCK_ALL,
            "if (n == 1) then",
            PUT,
            "call MPI_WIN_FLUSH(1, win, ierr)",
            "end if",
            BARRIER,
            "call MPI_WIN_SYNC(win, ierr)",
            load,
            UNLOCK_ALL,
        ],
        &[],
    );
    check_lines(
        &[
            CREATE,
            LOCK_ALL,
            "if (n == 1) then",
            PUT,
            "call MPI_WIN_FLUSH(1, win, ierr)",
            "end if",
            BARRIER,
            load,
            UNLOCK_ALL,
        ],
        &reported,
    );
    // The first example: post and wait, then a lock, then a post or the own lock before the load.
    let first = [
        CREATE,
        "if (n == 0) then",
        POST,
        "end if",
        START,
        "if (n == 0) mem(1) = 11",
        "if (n == 1) then",
        PUT,
        "end if",
        COMPLETE,
        "if (n == 0) then",
        WAIT,
        "y = mem(2)",
        "end if",
        BARRIER,
        put,
        BARRIER,
    ];
    for (open, close) in [("call MPI_WIN_POST(MPI_GROUP_EMPTY, 0, win, ierr)", WAIT), (own_lock, own_unlock)]
    {
        check_lines(&[&first[..], &["if (n == 0) then", open, "y = mem(2)", close, "end if"]].concat(), &[]);
    }
    // A get changes nothing at its target; another variable is no window.
    check_lines(&[CREATE, BARRIER, LOCK, GET, UNLOCK, BARRIER, load], &[]);
    check_lines(&[CREATE, BARRIER, put, BARRIER, "y = out"], &[]);
    // An update of the first element does not concern the second.
    check_lines(&[CREATE, BARRIER, &put.replace("zero", "0_8"), BARRIER, load], &[]);
}

#[test]
fn buffers_that_end_too_early() {
    let receive = "call MPI_IRECV(buf, 4, MPI_INTEGER, 0, 7, comm, request, ierr)";
    let text = |declaration: &str, body: &str| {
        format!(
            "subroutine begin(comm, request)\nuse mpi\nimplicit none\ninteger :: comm, request, ierr, n\n{declaration}\n{body}\nend subroutine begin\n"
        )
    };
    let check = |declaration: &str, body: &str, expected: &[&str]| {
        let text = text(declaration, body);
        assert_eq!(said(&text, &Options::default()), expected, "in:\n{text}");
    };
    let wait = "call MPI_WAIT(request, MPI_STATUS_IGNORE, ierr)";
    check("integer :: buf(4)", receive, &["error FR20 buf: end subroutine begin"]);
    check("integer, asynchronous :: buf(4)", receive, &["error FR20 buf: end subroutine begin"]);
    check("integer, save, asynchronous :: buf(4)", receive, &[]);
    check("integer :: buf(4)", &format!("{receive}\n{wait}"), &[]);
    check(
        "integer :: buf(4)",
        &format!("{receive}\nif (n > 1) then\n{wait}\nend if"),
        &["note FR20 buf: end subroutine begin"],
    );
    check(
        "integer :: buf(4)",
        &format!("{receive}\ncall finish(request)"),
        &["note FR20 buf: end subroutine begin"],
    );
    let dynamic = "integer, allocatable, asynchronous :: buf(:)";
    let allocate = "allocate(buf(4))";
    check(
        dynamic,
        &format!("{allocate}\n{receive}\ndeallocate(buf)\n{wait}"),
        &["error FR20 buf: deallocate(buf)"],
    );
    check(dynamic, &format!("{allocate}\n{receive}\n{wait}\ndeallocate(buf)"), &[]);
    // A window over it.
    let create = "call MPI_WIN_CREATE(buf, int(16, MPI_ADDRESS_KIND), 4, MPI_INFO_NULL, comm, request, ierr)";
    check(dynamic, &format!("{allocate}\n{create}\ndeallocate(buf)"), &["error FR20 buf: deallocate(buf)"]);
    check(dynamic, &format!("{allocate}\n{create}\ncall MPI_WIN_FREE(request, ierr)\ndeallocate(buf)"), &[]);
    check("integer, volatile :: buf(4)", create, &["error FR20 buf: end subroutine begin"]);
    // The main program has nowhere to return to.
    let main = text("integer, volatile :: buf(4)", receive)
        .replace("subroutine begin(comm, request)", "program begin")
        .replace("subroutine", "program");
    assert!(said(&main, &Options::default()).is_empty());
}
