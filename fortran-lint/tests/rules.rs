//! The rules, one situation each: a few statements, and what is said about them.

mod common;

use common::{said, unit};
use fortran_lint::check::{Input, check, check_one};
use fortran_lint::options::{Options, Standard};
use fortran_lint::report;

/// Checks a body in a unit that includes `mpif.h`.
#[track_caller]
fn check_body(declarations: &str, body: &str, expected: &[&str]) {
    check_text(&unit("mpif.h", declarations, body), expected);
}

#[track_caller]
fn check_text(text: &str, expected: &[&str]) {
    assert_eq!(said(text, &Options::default()), expected, "in:\n{text}");
}

const CREATE: &str = "call MPI_WIN_CREATE(buf, size, 8, MPI_INFO_NULL, comm, win, ierr)";
const RECEIVE: &str = "call MPI_IRECV(buf, 1, MPI_INTEGER, 0, 7, comm, req, ierr)";
const FENCE: &str = "call MPI_WIN_FENCE(0, win, ierr)";
const WAIT: &str = "call MPI_WAIT(req, status, ierr)";

/// A datatype of the absolute address of `buf`.
const HIDE: &str = "call MPI_GET_ADDRESS(buf, address, ierr)\ncall MPI_TYPE_CREATE_HINDEXED(1, 1, address, MPI_INTEGER, type, ierr)\n\
                    call MPI_TYPE_COMMIT(type, ierr)";

// covers: REG-HAZ-10
#[test]
fn blocking_transfers_that_name_their_buffer_are_fine() {
    check_body(
        "integer :: buf, other(5)",
        "buf = 1\ncall MPI_SEND(buf, 1, MPI_INTEGER, 1, 7, comm, ierr)\ncall MPI_RECV(other, 5, MPI_INTEGER, 1, 7, comm, status, ierr)\n\
         x = other(2)\ncall MPI_SENDRECV(other(1), 1, MPI_INTEGER, 1, 1, other(2), 1, MPI_INTEGER, 1, 1, comm, status, ierr)\n\
         call MPI_BCAST(buf, 1, MPI_INTEGER, 0, comm, ierr)\nx = buf",
        &[],
    );
}

// covers: REG-LINT-01
#[test]
fn window_memory_read_after_each_synchronization() {
    let styles = [
        ("barrier", "call MPI_BARRIER(comm, ierr)"),
        ("fence", FENCE),
        ("post and wait", "call MPI_WIN_POST(group, 0, win, ierr)\ncall MPI_WIN_WAIT(win, ierr)"),
        (
            "lock and unlock",
            "call MPI_WIN_LOCK(MPI_LOCK_SHARED, 0, 0, win, ierr)\ncall MPI_WIN_UNLOCK(0, win, ierr)",
        ),
    ];
    for (_, sync) in styles {
        check_body(
            "integer :: buf(4)",
            &format!("{CREATE}\n{sync}\nx = buf(1)"),
            &["error FR01 buf: integer :: buf(4)"],
        );
    }
    check_body("integer :: buf(4)", &format!("{CREATE}\n{FENCE}"), &["warning FR01 buf: integer :: buf(4)"]);
    // The creating call and the first access are named, and each way out.
    let text = unit("mpi", "integer :: buf(4)", &format!("{CREATE}\n{FENCE}\nx = buf(1)\ny = buf(2)"));
    let report = check_one("work.f90", text.as_bytes(), &Options::default());
    let related: Vec<&str> =
        report.findings[0].related.iter().map(|related| &report.text[related.span.range()]).collect();
    assert_eq!(related, ["MPI_WIN_CREATE", "MPI_WIN_FENCE", "buf(1)"]);
    for word in ["ASYNCHRONOUS", "COMMON", "module", "VOLATILE", "call"] {
        assert!(report.findings[0].remedies.iter().any(|remedy| remedy.contains(word)), "{word}");
    }
    // Another variable is no access.
    check_body(
        "integer :: buf(4), other(4)",
        &format!("{CREATE}\n{FENCE}\nx = other(1)"),
        &["warning FR01 buf: integer :: buf(4), other(4)"],
    );
    // Not declared at all: the creating call.
    check_text(
        "subroutine s\ninclude 'mpif.h'\ncall MPI_WIN_CREATE(buf, n, 8, MPI_INFO_NULL, m, iwin, ierr)\ncall MPI_WIN_FENCE(0, iwin, ierr)\nx = buf\nend\n",
        &["error FR01 buf: call MPI_WIN_CREATE(buf, n, 8, MPI_INFO_NULL, m, iwin, ierr)"],
    );
}

// covers: REG-LINT-02
#[test]
fn receive_buffers_used_after_each_finishing_call() {
    let warning = ["warning FR02 buf: x = buf"];
    for finish in [
        WAIT,
        "call MPI_WAITALL(1, req, status, ierr)",
        "call MPI_WAITANY(1, req, n, status, ierr)",
        "call MPI_WAITSOME(1, req, n, x, status, ierr)",
        "call MPI_TEST(req, flag, status, ierr)\nif (.not. flag) return",
        "call MPI_TESTALL(1, req, flag, status, ierr)\nif (.not. flag) return",
    ] {
        check_body("integer :: buf", &format!("{RECEIVE}\n{finish}\nx = buf"), &warning);
    }
    // Written after the wait.
    check_body("integer :: buf", &format!("{RECEIVE}\n{WAIT}\nbuf = 1"), &["warning FR02 buf: buf = 1"]);
    // The request in an array.
    check_body(
        "integer :: buf",
        "call MPI_IRECV(buf, 1, MPI_INTEGER, 0, 7, comm, reqs(2), ierr)\ncall MPI_WAITALL(2, reqs, status, ierr)\nx = buf",
        &warning,
    );
    // The request passed through a copy.
    check_body(
        "integer :: buf",
        &format!("{RECEIVE}\nreq2 = req\ncall MPI_WAIT(req2, status, ierr)\nx = buf"),
        &warning,
    );
    // Two requests, only one waited for: the other buffer is still open.
    check_body(
        "integer :: buf, late",
        &format!(
            "{RECEIVE}\ncall MPI_IRECV(late, 1, MPI_INTEGER, 0, 8, comm, req2, ierr)\n{WAIT}\nx = buf\ny = late"
        ),
        &["warning FR02 buf: x = buf", "error FR15 late: y = late"],
    );
    let elements = "call MPI_IRECV(buf, 1, MPI_INTEGER, 0, 7, comm, reqs(1), ierr)\ncall MPI_WAIT(reqs(2), status, ierr)\nx = buf";
    check_body("integer :: buf", elements, &["error FR15 buf: x = buf"]);
    // One finding per buffer and unit, with the number of places.
    let report = check_one(
        "w.f90",
        unit("mpi", "integer :: buf", &format!("{RECEIVE}\n{WAIT}\nx = buf\ny = buf + 1\nn = buf"))
            .as_bytes(),
        &Options::default(),
    );
    assert_eq!(report.findings.len(), 1);
    assert!(
        report.findings[0].message.ends_with("may be moved before the wait, and in 2 other places"),
        "{}",
        report.findings[0].message
    );
}

/// A variable that holds one request after the other: a call ends the operation that it stands for at that time, and no
/// earlier one.
#[test]
fn a_request_that_is_used_again_is_another_operation() {
    let other = RECEIVE.replace("buf", "other");
    for again in [format!("{other}\n{WAIT}"), format!("do i = 1, n\n{other}\n{WAIT}\nend do")] {
        // Touched behind its own wait, and not behind those of the other one.
        check_body(
            "integer :: buf\ninteger, volatile :: other",
            &format!("{RECEIVE}\n{WAIT}\ncall opaque(buf)\nx = buf\n{again}\ny = buf"),
            &[],
        );
        check_body(
            "integer :: buf\ninteger, volatile :: other",
            &format!("{RECEIVE}\n{WAIT}\n{again}\ny = buf"),
            &["warning FR02 buf: y = buf"],
        );
    }
    // One of several requests may have been another one.
    let some = "call MPI_WAIT(reqs(n), status, ierr)\ncall opaque(buf)\ncall MPI_WAITALL(2, reqs, status, ierr)\ny = buf";
    check_body(
        "integer :: buf",
        &format!("{}\n{some}", RECEIVE.replace("req,", "reqs(1),")),
        &["warning FR02 buf: y = buf because FR14"],
    );
    // A persistent request is started again, and is the same operation.
    let init = RECEIVE.replace("MPI_IRECV", "MPI_RECV_INIT");
    let start = "call MPI_START(req, ierr)";
    check_body(
        "integer :: buf",
        &format!("{init}\n{start}\n{WAIT}\ncall opaque(buf)\nx = buf\n{start}\n{WAIT}\ny = buf"),
        &["error FR02 buf: y = buf because FR14"],
    );
    // The windows alike, and an unlock of another target ends nothing.
    let get = "call MPI_GET(buf, 1, MPI_INTEGER, 1, zero, 1, MPI_INTEGER, win, ierr)";
    check_body(
        "integer :: buf",
        &format!("{FENCE}\n{get}\n{FENCE}\ncall opaque(buf)\nx = buf\n{FENCE}\ny = buf"),
        &[],
    );
    let lock = |rank: &str| format!("call MPI_WIN_LOCK(MPI_LOCK_SHARED, {rank}, 0, win, ierr)");
    let unlock = |rank: &str| format!("call MPI_WIN_UNLOCK({rank}, win, ierr)");
    let (one, two) = ((lock("1"), unlock("1")), (lock("2"), unlock("2")));
    check_body(
        "integer :: buf",
        &format!("{}\n{}\n{get}\n{}\ncall opaque(buf)\n{}\nx = buf", one.0, two.0, two.1, one.1),
        &["warning FR06 buf: x = buf because FR14"],
    );
}

/// What has no elements is neither moved nor opened.
#[test]
fn nothing_happens_to_buffers_without_elements() {
    check_body("integer :: buf", &format!("{}\n{WAIT}\nx = buf", RECEIVE.replace("buf, 1", "buf, 0")), &[]);
    check_body(
        "integer :: buf",
        &format!("n = 0\n{}\n{WAIT}\nx = buf", RECEIVE.replace("buf, 1", "buf, n")),
        &[],
    );
    for (size, n) in [("0_MPI_ADDRESS_KIND", 0), ("size", 1)] {
        let create = CREATE.replace("size", size);
        let text = unit("mpif.h", "integer :: buf(4)", &format!("{create}\n{FENCE}\nx = buf(1)"));
        assert_eq!(said(&text, &Options::default()).len(), n, "{text}");
    }
    // A window without memory, by the size in a variable, wherever that is declared.
    for (size, n) in [
        ("size = 0", 0),
        ("size = 8", 1),
        ("size = 0\ncall ask(size)", 1),
        ("size = 0\nif (n > 1) size = 8", 1),
    ] {
        let create = CREATE.replace("buf", "0");
        let text = unit("mpif.h", "", &format!("{size}\n{create}"));
        assert_eq!(said(&text, &Options::default()).len(), n, "{text}");
    }
}

// covers: REG-LINT-03
#[test]
fn hidden_receives_read_afterwards() {
    let receive = "call MPI_RECV(MPI_BOTTOM, 1, type, 0, 7, comm, status, ierr)";
    check_body(
        "integer :: buf",
        &format!("{HIDE}\nx = buf\n{receive}\ny = buf"),
        &["error FR03 buf: y = buf"],
    );
    let two = "call MPI_GET_ADDRESS(a, displs(1), ierr)\ncall MPI_GET_ADDRESS(b, displs(2), ierr)\n\
               call MPI_TYPE_CREATE_STRUCT(2, lengths, displs, types, type, ierr)\ncall MPI_TYPE_COMMIT(type, ierr)";
    let names = "integer :: a, b, c, lengths(2), types(2)\ninteger(kind=MPI_ADDRESS_KIND) :: displs(2)";
    check_body(
        names,
        &format!("{two}\n{receive}\nx = a\ny = b\nn = c"),
        &["error FR03 a: x = a", "error FR03 b: y = b"],
    );
    // Nonblocking: behind the wait.
    let start = "call MPI_IRECV(MPI_BOTTOM, 1, type, 0, 7, comm, req, ierr)";
    check_body("integer :: buf", &format!("{HIDE}\n{start}\n{WAIT}\ny = buf"), &["error FR03 buf: y = buf"]);
    // The old names.
    check_body(
        "integer :: buf, a",
        &format!(
            "call MPI_ADDRESS(buf, a, ierr)\ncall MPI_TYPE_STRUCT(1, 1, a, MPI_INTEGER, type, ierr)\n{receive}\ny = buf"
        ),
        &["error FR03 buf: y = buf"],
    );
    // A distance between two addresses is no address.
    check_body(
        "integer :: buf, base\ninteger(kind=MPI_ADDRESS_KIND) :: a, b, d",
        &format!(
            "call MPI_GET_ADDRESS(buf, a, ierr)\ncall MPI_GET_ADDRESS(base, b, ierr)\nd = a - b\ncall MPI_TYPE_CREATE_HINDEXED(1, 1, d, MPI_INTEGER, type, ierr)\n{receive}\ny = buf"
        ),
        &[],
    );
}

// covers: REG-LINT-05, REG-HAZ-07
#[test]
fn stores_hidden_from_a_send() {
    let send = "call MPI_SEND(MPI_BOTTOM, 1, type, 0, 7, comm, ierr)";
    check_body("integer :: buf", &format!("{HIDE}\nbuf = 1\n{send}"), &["error FR05 buf: buf = 1"]);
    check_body("integer :: buf", &format!("{HIDE}\nbuf = 1\ncall opaque(buf)\n{send}"), &[]);
    // The address routine behind the store makes it happen.
    check_body("integer :: buf", &format!("buf = 1\n{HIDE}\n{send}"), &[]);
}

#[test]
fn window_stores_before_each_opening_call() {
    let store = ["warning FR01 buf: integer :: buf(4)", "error FR08 buf: buf(1) = 5"];
    for open in [
        FENCE,
        "call MPI_WIN_POST(group, 0, win, ierr)",
        "call MPI_WIN_LOCK(MPI_LOCK_SHARED, 0, 0, win, ierr)\ncall MPI_WIN_UNLOCK(0, win, ierr)",
        "call MPI_BARRIER(comm, ierr)",
        "call MPI_WIN_SYNC(win, ierr)",
    ] {
        check_body("integer :: buf(4)", &format!("{CREATE}\nbuf(1) = 5\n{open}"), &store);
    }
    // In a loop: once.
    check_body(
        "integer :: buf(4)",
        &format!("{CREATE}\ndo i = 1, 10\nbuf(1) = i\n{FENCE}\n{FENCE}\nend do"),
        &["warning FR01 buf: integer :: buf(4)", "error FR08 buf: buf(1) = i"],
    );
}

// covers: REG-SAFE-07
#[test]
fn outgoing_data_needs_the_dummy_before_the_opening_call() {
    check_body(
        "integer :: buf(4)",
        &format!("{CREATE}\nbuf(1) = 5\ncall opaque(buf)\ncall MPI_BARRIER(comm, ierr)"),
        &[],
    );
    check_body(
        "integer :: buf(4)",
        &format!("{CREATE}\nbuf(1) = 5\ncall MPI_BARRIER(comm, ierr)\ncall opaque(buf)"),
        &["error FR08 buf: buf(1) = 5 because FR14"],
    );
}

// covers: REG-HAZ-09, REG-LINT-09
#[test]
fn handlers_and_the_rest_of_the_program() {
    // The handler writes, the main loop reads, by host association.
    check_text(
        "program main\nuse mpi\ninteger :: hits, ierr, handler, n\nhits = 0\n\
         call MPI_COMM_CREATE_ERRHANDLER(on_error, handler, ierr)\ncall MPI_COMM_SET_ERRHANDLER(MPI_COMM_WORLD, handler, ierr)\n\
         do n = 1, 10\ncall MPI_BARRIER(MPI_COMM_WORLD, ierr)\nif (hits > 3) stop\nend do\ncontains\n\
         subroutine on_error(comm, code)\ninteger :: comm, code\nhits = hits + 1\nend subroutine\nend program\n",
        &["error FR09 hits: if (hits > 3) stop"],
    );
    // In a module it is visible to everybody.
    check_text(
        "module m\ninteger :: hits\nend module\nprogram main\nuse mpi\nuse m\ninteger :: ierr, handler\n\
         call MPI_COMM_CREATE_ERRHANDLER(on_error, handler, ierr)\ncall MPI_BARRIER(MPI_COMM_WORLD, ierr)\nif (hits > 3) stop\ncontains\n\
         subroutine on_error(comm, code)\ninteger :: comm, code\nhits = hits + 1\nend subroutine\nend program\n",
        &[],
    );
}

// covers: REG-SAFE-01
#[test]
fn common_is_accepted() {
    let bodies = [
        format!("{CREATE}\n{FENCE}\nx = buf"),
        format!("{CREATE}\nbuf = 1\n{FENCE}"),
        format!("{RECEIVE}\n{WAIT}\nx = buf"),
        format!("{HIDE}\ncall MPI_RECV(MPI_BOTTOM, 1, type, 0, 7, comm, status, ierr)\nx = buf"),
        format!("{HIDE}\nbuf = 1\ncall MPI_SEND(MPI_BOTTOM, 1, type, 0, 7, comm, ierr)"),
        format!(
            "call MPI_RECV_INIT(buf, 1, MPI_INTEGER, 0, 7, comm, req, ierr)\ncall MPI_START(req, ierr)\n{WAIT}\nx = buf"
        ),
    ];
    for body in &bodies {
        check_body("integer :: buf\ncommon /block/ buf", body, &[]);
        check_body("integer :: buf\ncommon buf", body, &[]);
        check_body(
            "integer :: buf, member, z(3)\nequivalence (buf, member), (member, z(1))\ncommon // z",
            body,
            &[],
        );
        let unsafe_findings = said(&unit("mpif.h", "integer :: buf", body), &Options::default());
        assert!(!unsafe_findings.is_empty(), "the local twin is reported:\n{body}");
    }
}

// covers: REG-SAFE-03
#[test]
fn volatile_is_accepted_in_every_spelling() {
    for declaration in [
        "integer, volatile :: buf",
        "volatile :: buf\ninteger :: buf",
        "integer :: buf\nvolatile buf",
        "integer :: buf\nVOLATILE :: buf",
    ] {
        check_body(declaration, &format!("{RECEIVE}\n{WAIT}\nx = buf"), &[]);
        check_body(declaration, &format!("{CREATE}\nbuf = 1\n{FENCE}\nx = buf"), &[]);
    }
}

#[test]
fn asynchronous_is_accepted_from_2003_on() {
    let text = unit("mpi", "integer, asynchronous :: buf", &format!("{RECEIVE}\n{WAIT}\nx = buf"));
    assert!(said(&text, &Options::default()).is_empty());
    let old = Options { standard: Standard::F95, ..Options::default() };
    assert_eq!(said(&text, &old), ["warning FR02 buf: x = buf because FR19"]);
}

// covers: REG-SAFE-05
#[test]
fn an_opaque_call_between_makes_the_access_safe() {
    for dummy in [
        "call opaque(buf)",
        "call MPI_F_SYNC_REG(buf)",
        "call RMA_Sync_reg(buf)",
        "call MPI_GET_ADDRESS(buf, address, ierr)",
    ] {
        check_body("integer :: buf", &format!("{RECEIVE}\n{WAIT}\n{dummy}\nx = buf"), &[]);
    }
    // The address routine of module mpi may be INTENT(IN).
    let address = format!("{RECEIVE}\n{WAIT}\ncall MPI_GET_ADDRESS(buf, address, ierr)\nx = buf");
    check_text(&unit("mpi", "integer :: buf", &address), &["warning FR02 buf: x = buf because FR19"]);
    check_text(&unit("mpi_f08", "integer :: buf", &address), &[]);
    // One that the user knows to be opaque.
    let own = unit("mpif.h", "integer :: buf", &format!("{RECEIVE}\n{WAIT}\ncall dd(buf)\nx = buf"))
        + "subroutine dd(b)\ninteger :: b\nend subroutine\n";
    check_text(&own, &["warning FR02 buf: x = buf because FR13"]);
    let known = Options { dummies: vec!["DD".to_string()], ..Options::default() };
    assert!(said(&own, &known).is_empty());
}

// covers: REG-SAFE-06, REG-LINT-13, REG-LINT-14
#[test]
fn a_dummy_in_the_program_or_in_the_wrong_place_is_named() {
    // In another file of the sources given.
    let one = unit("mpif.h", "integer :: buf", &format!("{RECEIVE}\n{WAIT}\ncall dd(buf)\nx = buf"));
    let other = "subroutine dd(b)\ninteger :: b\nend subroutine\n";
    let input = |path: &str, text: &str| Input { path: path.to_string(), bytes: text.as_bytes().to_vec() };
    let reports = check(&[input("one.f90", &one), input("other.f90", other)], &Options::default());
    assert_eq!(reports[0].findings.len(), 1);
    assert_eq!(reports[0].findings[0].because, ["FR13"]);
    assert!(
        reports[0].findings[0].related.iter().any(|related| related.message.contains("part of the program"))
    );
    // Before the wait, and in one branch only.
    check_body(
        "integer :: buf",
        &format!("{RECEIVE}\ncall opaque(buf)\n{WAIT}\nx = buf"),
        &["warning FR02 buf: x = buf because FR14"],
    );
    check_body(
        "integer :: buf",
        &format!("{RECEIVE}\n{WAIT}\nif (n > 1) then\ncall opaque(buf)\nend if\nx = buf"),
        &["warning FR02 buf: x = buf because FR14"],
    );
    check_body(
        "integer :: buf",
        &format!(
            "{RECEIVE}\n{WAIT}\nif (n > 1) then\ncall opaque(buf)\nelse\ncall opaque(buf)\nend if\nx = buf"
        ),
        &[],
    );
    // The loop waits at its end and reads at its start: found on the way back.
    check_body(
        "integer :: buf",
        &format!("do i = 1, n\nx = buf\n{RECEIVE}\n{WAIT}\nend do"),
        &["warning FR02 buf: x = buf"],
    );
    // Selecting a reason selects what carries it.
    let text = unit("mpif.h", "integer :: buf", &format!("{RECEIVE}\ncall opaque(buf)\n{WAIT}\nx = buf"));
    let only = |code: &str| Options { select: vec![code.to_string()], ..Options::default() };
    assert_eq!(said(&text, &only("FR14")).len(), 1);
    assert_eq!(said(&text, &only("FR13")).len(), 0);
}

// covers: REG-SAFE-10
#[test]
fn a_dummy_argument_counts_as_local() {
    let text = |attribute: &str| {
        format!(
            "subroutine work(buf)\nuse mpi\ninteger{attribute} :: buf\ninteger :: req, ierr, status(10), x, comm\n{RECEIVE}\n{WAIT}\nx = buf\nend subroutine\n"
        )
    };
    check_text(&text(""), &["warning FR02 buf: x = buf"]);
    check_text(&text(", volatile"), &[]);
    // Windows on a dummy argument are warnings.
    check_text(
        &format!(
            "subroutine work(buf)\nuse mpi\ninteger :: buf, win, ierr, x, comm\ninteger(kind=MPI_ADDRESS_KIND) :: size\n{CREATE}\nbuf = 1\n{FENCE}\nx = buf\nend subroutine\n"
        ),
        &["warning FR01 buf: integer :: buf, win, ierr, x, comm", "warning FR08 buf: buf = 1"],
    );
}

// covers: REG-LINT-08
#[test]
fn window_stores_before_each_call_that_lets_others_in() {
    let store = ["warning FR01 buf: integer :: buf(4)", "error FR08 buf: buf(1) = 1"];
    for open in [
        FENCE,
        "call MPI_BARRIER(comm, ierr)",
        "call MPI_WIN_POST(group, 0, win, ierr)",
        "call MPI_WIN_UNLOCK(0, win, ierr)",
    ] {
        let lock = if open.contains("UNLOCK") {
            "call MPI_WIN_LOCK(MPI_LOCK_SHARED, 0, 0, win, ierr)"
        } else {
            "x = 1"
        };
        check_body("integer :: buf(4)", &format!("{CREATE}\n{lock}\nbuf(1) = 1\n{open}"), &store);
        // A dummy call between the two, and VOLATILE.
        check_body(
            "integer :: buf(4)",
            &format!("{CREATE}\n{lock}\nbuf(1) = 1\ncall opaque(buf)\n{open}"),
            &[],
        );
        check_body("integer, volatile :: buf(4)", &format!("{CREATE}\n{lock}\nbuf(1) = 1\n{open}"), &[]);
    }
    // A store that each round of a loop makes is one finding.
    let get = "call MPI_GET(x, 1, MPI_INTEGER, 1, zero, 1, MPI_INTEGER, win, ierr)";
    check_body(
        "integer :: buf(4)",
        &format!("{CREATE}\ndo i = 1, n\nbuf(1) = 1\n{FENCE}\n{get}\n{FENCE}\nend do"),
        &store,
    );
    // An offer names memory that has another name here: of what a Cray pointer leads to the compiler knows nothing.
    let offer = "call PGO_OFFER(other, size, 8, n, 1, 7, comm, ierr)";
    let memory = "integer :: buf(4), other(4)\npointer (p, other)\ninteger(kind=MPI_ADDRESS_KIND) :: p";
    let pointed = |body: &str| format!("p = loc(buf)\n{body}");
    check_body(memory, &pointed(&format!("buf(1) = 1\n{offer}")), &["error FR08 buf: buf(1) = 1"]);
    check_body(
        memory,
        &pointed(&format!(
            "buf(1) = 1\n{}\ncall PGO_WAIT(req, ierr)",
            offer.replace("OFFER", "IOFFER").replace("ierr)", "req, ierr)")
        )),
        &["error FR08 buf: buf(1) = 1"],
    );
    check_body(memory, &pointed(&format!("buf(1) = 1\ncall opaque(buf)\n{offer}")), &[]);
    check_body(memory, &pointed(&format!("{offer}\nbuf(1) = 1")), &[]);
    check_body(memory, &format!("buf(1) = 1\n{offer}"), &[]);
    check_body(&format!("{memory}\nvolatile buf"), &pointed(&format!("buf(1) = 1\n{offer}")), &[]);
    // The offered memory itself is an argument, and names that EQUIVALENCE joins are known to be one place.
    check_body("integer :: other(4)", &format!("other(1) = 1\n{offer}"), &[]);
    check_body("integer :: buf(4), other(4)\nequivalence (buf, other)", &format!("buf(1) = 1\n{offer}"), &[]);
}

// covers: REG-LINT-15
#[test]
fn buffers_touched_while_open() {
    check_body("integer :: buf", &format!("{RECEIVE}\nx = buf\n{WAIT}"), &["error FR15 buf: x = buf"]);
    check_body("integer :: buf", &format!("{RECEIVE}\nbuf = 2\n{WAIT}"), &["error FR15 buf: buf = 2"]);
    check_body("integer :: buf, other", &format!("{RECEIVE}\nother = 2\n{WAIT}"), &[]);
    // A send may be read meanwhile, not written.
    let send = "call MPI_ISEND(buf, 1, MPI_INTEGER, 1, 7, comm, req, ierr)";
    check_body("integer :: buf", &format!("{send}\nx = buf\n{WAIT}"), &[]);
    check_body("integer :: buf", &format!("{send}\nbuf = 2\n{WAIT}"), &["error FR15 buf: buf = 2"]);
    // Between put and complete.
    let put = "call MPI_WIN_START(group, 0, win, ierr)\ncall MPI_PUT(buf, 1, MPI_INTEGER, 1, zero, 1, MPI_INTEGER, win, ierr)";
    let complete = "call MPI_WIN_COMPLETE(win, ierr)";
    check_body("integer :: buf", &format!("{put}\nbuf = 2\n{complete}"), &["error FR15 buf: buf = 2"]);
    check_body("integer :: buf, other", &format!("{put}\nother = 2\n{complete}\nx = buf"), &[]);
    // Between post and wait.
    let post = "call MPI_WIN_POST(group, 0, win, ierr)";
    check_body(
        "integer, volatile :: buf(4)",
        &format!("{CREATE}\n{post}\nbuf(1) = 2\ncall MPI_WIN_WAIT(win, ierr)\nbuf(1) = 3"),
        &["error FR15 buf: buf(1) = 2"],
    );
}

#[test]
fn what_is_not_known_is_not_accused() {
    // A store in a fence phase without transfers, and one behind a transfer.
    let put = "call MPI_PUT(other, 1, MPI_INTEGER, 1, zero, 1, MPI_INTEGER, win, ierr)";
    check_body(
        "integer, volatile :: buf\ninteger :: other",
        &format!("{CREATE}\n{FENCE}\nbuf = 1\n{FENCE}"),
        &[],
    );
    check_body(
        "integer, volatile :: buf\ninteger :: other",
        &format!("{CREATE}\n{FENCE}\n{put}\nbuf = 1\n{FENCE}"),
        &["error FR15 buf: buf = 1"],
    );
    // The request may have been finished by a procedure that gets it.
    check_body("integer :: buf", &format!("{RECEIVE}\ncall finish(req)\nx = buf"), &[]);
    // Another branch.
    check_body(
        "integer :: buf",
        &format!("if (n > 1) then\n{RECEIVE}\nend if\nbuf = 1\nif (n > 1) then\n{WAIT}\nend if"),
        &[],
    );
    // Parts of one array for several messages.
    check_body(
        "integer :: buf(10)",
        "call MPI_ISEND(buf(1), 5, MPI_INTEGER, 1, 7, comm, reqs(1), ierr)\nbuf(6) = 1\ncall MPI_ISEND(buf(6), 5, MPI_INTEGER, 1, 7, comm, reqs(2), ierr)\ncall MPI_WAITALL(2, reqs, status, ierr)",
        &[],
    );
    // A buffer from a module that is not seen.
    check_text(
        &unit("mpi", "", &format!("{RECEIVE}\n{WAIT}\nx = buf"))
            .replace("use mpi\n", "use mpi\nuse storage\n"),
        &[],
    );
    check_text(
        &unit("mpi", "", &format!("{RECEIVE}\n{WAIT}\nx = buf"))
            .replace("implicit none", "implicit none\ninclude 'storage.h'"),
        &[],
    );
}

// covers: REG-LINT-19
#[test]
fn names_are_resolved_unit_by_unit() {
    let one = unit("mpif.h", "integer :: buf", &format!("{RECEIVE}\n{WAIT}\nx = buf"));
    let other = unit(
        "mpif.h",
        "dimension buf(3)\ncommon /block/ buf, more(2:5)\ninteger :: buf, more",
        &format!("{RECEIVE}\n{WAIT}\ny = buf(1)"),
    )
    .replace("work", "other");
    check_text(&format!("{one}{other}"), &["warning FR02 buf: x = buf"]);
    // Implicit typing: not declared, so local.
    check_text(
        &format!("subroutine s\ninclude 'mpif.h'\ninteger status(10)\n{RECEIVE}\n{WAIT}\nx = buf\nend\n"),
        &["warning FR02 buf: x = buf"],
    );
    // Host association: a local of the host is no better; a module variable is.
    let inner = format!(
        "subroutine inner\ninteger :: x, comm, req, ierr, status(10)\n{RECEIVE}\n{WAIT}\nx = buf\nend subroutine\n"
    );
    check_text(
        &format!("program p\nuse mpi\ninteger :: buf\ncontains\n{inner}end program\n"),
        &["warning FR02 buf: x = buf"],
    );
    check_text(
        &format!("module p\nuse mpi\ninteger :: buf\ncontains\n{inner}end module\n"),
        &["note FR12 buf: integer :: buf"],
    );
    // VOLATILE given to a host's variable in the inner scope.
    let inner = inner.replace("integer ::", "volatile buf\ninteger ::");
    check_text(&format!("program p\nuse mpi\ninteger :: buf\ncontains\n{inner}end program\n"), &[]);
    // Use association, renamed.
    let user = format!(
        "subroutine s\nuse mpi\nuse m, only: buf => store\ninteger :: x, comm, req, ierr, status(10)\n{RECEIVE}\n{WAIT}\nx = buf\nend subroutine\n"
    );
    check_text(
        &format!("module m\ninteger :: store\nend module\n{user}"),
        &["note FR12 buf: integer :: store"],
    );
    // BLOCK DATA only initialises.
    check_text(
        &format!("block data\ncommon /block/ buf\ndata buf /1/\nend block data\n{one}"),
        &["warning FR02 buf: x = buf"],
    );
}

// covers: REG-LINT-20
#[test]
fn an_element_concerns_its_array() {
    let receive = "call MPI_IRECV(buf(5), 3, MPI_INTEGER, 0, 7, comm, req, ierr)";
    check_body(
        "integer :: buf(10), other(10)",
        &format!("{receive}\n{WAIT}\nx = buf(7)"),
        &["warning FR02 buf: x = buf(7)"],
    );
    check_body("integer :: buf(10), other(10)", &format!("{receive}\n{WAIT}\nx = other(7)"), &[]);
}

/// A type with buffers and requests, and objects of it.
const OBJECTS: &str = "type exchange\ninteger :: send(4), recv(4), count, one, many(2)\nend type\ntype(exchange) :: e, f, all(3)";

#[test]
fn components_are_memory_of_their_own() {
    let receive = |buffer: &str, request: &str| {
        format!("call MPI_IRECV({buffer}, 4, MPI_INTEGER, 0, 7, comm, {request}, ierr)")
    };
    let wait = |request: &str| format!("call MPI_WAIT({request}, status, ierr)");
    let warning = |variable: &str, line: &str| format!("warning FR02 {variable}: {line}");
    // The component that was received into, in an object and in one of an array.
    for (buffer, request, finish, variable, line) in [
        ("e%recv", "e%one", wait("e%one"), "e", "x = e%recv(2)"),
        (
            "e%recv(1)",
            "e%many(2)",
            "call MPI_WAITALL(2, e%many, status, ierr)".to_string(),
            "e",
            "x = e%recv(2)",
        ),
        ("all(2)%recv", "all(2)%one", wait("all(2)%one"), "all", "x = all(2)%recv(1)"),
        ("all(i)%recv", "all(i)%one", wait("all(n)%one"), "all", "x = all(n)%recv(1)"),
        (
            "all(i)%recv",
            "reqs(i)",
            "call MPI_WAITALL(2, reqs, status, ierr)".to_string(),
            "all",
            "x = all(n)%recv(1)",
        ),
    ] {
        check_body(
            OBJECTS,
            &format!("{}\n{finish}\n{line}", receive(buffer, request)),
            &[&warning(variable, line)],
        );
    }
    // Another component, another object, another element are not touched by the transfer.
    for line in ["x = e%count", "x = e%send(1)", "e%count = 1", "x = f%recv(1)", "x = all(1)%recv(1)"] {
        check_body(
            OBJECTS,
            &format!("{}\n{line}\n{}\n{line}", receive("e%recv", "e%one"), wait("e%one")),
            &[],
        );
    }
    check_body(
        OBJECTS,
        &format!(
            "{}\nx = all(1)%recv(1)\n{}\nx = all(3)%recv(1)",
            receive("all(2)%recv", "req"),
            wait("req")
        ),
        &[],
    );
    // Nor does a sync call with another component help; one with the object does.
    let synced = |argument: &str| {
        format!("{}\n{}\ncall opaque({argument})\nx = e%recv(1)", receive("e%recv", "e%one"), wait("e%one"))
    };
    check_body(OBJECTS, &synced("e%send"), &["warning FR02 e: x = e%recv(1) because FR14"]);
    check_body(OBJECTS, &synced("e%recv"), &[]);
    check_body(OBJECTS, &synced("e"), &[]);
    // The request of another object, and a component beside the request that is written meanwhile.
    let open = format!("{}\ne%count = 3\n{}\nx = e%recv(1)", receive("e%recv", "e%one"), wait("f%one"));
    check_body(OBJECTS, &open, &["error FR15 e: x = e%recv(1)"]);
    let open = format!("{}\ne%recv(2) = 3\n{}", receive("e%recv", "e%one"), wait("e%one"));
    check_body(OBJECTS, &open, &["error FR15 e: e%recv(2) = 3"]);
    // The attribute of the object protects what is in it.
    for attribute in ["volatile", "asynchronous"] {
        let declared = OBJECTS.replace("type(exchange) ::", &format!("type(exchange), {attribute} ::"));
        check_body(
            &declared,
            &format!("{}\n{}\nx = e%recv(1)", receive("e%recv", "e%one"), wait("e%one")),
            &[],
        );
    }
    // A window over a component.
    let window = format!(
        "{}\ne%count = 1\n{FENCE}\nx = e%count\n{FENCE}\nx = e%recv(1)",
        CREATE.replace("buf", "e%recv")
    );
    check_body(OBJECTS, &window, &["error FR01 e: type(exchange) :: e, f, all(3)"]);
    // Requests that the object of a caller keeps.
    let kept = "subroutine begin(e)\nuse store\ntype(exchange) :: e\ninteger :: ierr\n".to_string()
        + &receive("e%recv", "e%one").replace("comm", "MPI_COMM_WORLD")
        + "\nend subroutine\nsubroutine finish(e)\nuse store\ntype(exchange) :: e\ninteger :: ierr\ncall MPI_WAIT(e%one, MPI_STATUS_IGNORE, ierr)\nend subroutine\n";
    let store = "module store\nuse mpi\ntype exchange\ninteger :: recv(4), one\nend type\nend module\n";
    for (line, expected) in
        [("x = e%recv(1)", &["work.f90: warning FR02 e: x = e%recv(1)"][..]), ("x = e%one", &[])]
    {
        let work = format!(
            "subroutine work(x)\nuse store\ntype(exchange) :: e\ninteger :: x\ncall begin(e)\ncall finish(e)\n{line}\nend subroutine\n"
        );
        common::check_files(&[("store.f90", store), ("kept.f90", &kept), ("work.f90", &work)], expected);
    }
}

// covers: REG-LINT-25
#[test]
fn temporaries_as_buffers() {
    let receive = |buffer: &str| format!("call MPI_IRECV({buffer}, 3, MPI_INTEGER, 0, 7, comm, req, ierr)");
    let declarations = "integer, volatile :: a(10,20), v(10), index(3)\ninteger, parameter :: constant = 5\ninteger, external :: f\ntype point\ninteger :: x, y\nend type\ntype(point), volatile :: p(9)";
    let lies_apart = ["a(3,:)", "a(1:5,:)", "a(1:10:2,1)", "v(1:10:3)", "p(:)%x", "a(2:9,1:3)"];
    let contiguous = [
        "a",
        "a(:,3)",
        "a(1,3)",
        "a(2:5,3)",
        "a(:,2:4)",
        "a(1:10,2:4)",
        "v(2:n)",
        "v(3)",
        "p(2)%x",
        "p(3:4)",
        "MPI_BOTTOM",
        "MPI_IN_PLACE",
    ];
    let always = ["v(index)", "(v)", "v + 1", "f(1)", "5", "constant", "[1, 2, 3]"];
    for binding in ["mpif.h", "mpi", "mpi_f08"] {
        let count = |buffer: &str| {
            let text = unit(binding, declarations, &receive(buffer));
            let found = said(&text, &Options::default());
            assert!(found.iter().all(|line| line.starts_with("error FR16")), "{found:?}");
            found.len()
        };
        for buffer in lies_apart {
            let expected = usize::from(binding != "mpi_f08");
            assert_eq!(count(buffer), expected, "{buffer} with {binding}");
        }
        for buffer in contiguous {
            assert_eq!(count(buffer), 0, "{buffer} with {binding}");
        }
        for buffer in always {
            assert_eq!(count(buffer), 1, "{buffer} with {binding}");
        }
    }
    // An assumed-shape dummy argument: the program h05.
    let h05 = std::fs::read_to_string(common::package().join("tests/hazard/h05_assumed_shape_wrapper.f90"))
        .expect("the program is there");
    check_text(
        &h05,
        &["error FR16 x: call MPI_IRECV(x, size(x), MPI_INTEGER, 0, 1, MPI_COMM_WORLD, req, ierr)"],
    );
    // Then the caller packs the row around the call of the wrapper, and that is too short as well.
    check_text(
        &h05.replace("intent(inout) :: x", "intent(inout), contiguous :: x"),
        &["error FR16 a: call post(a(5,:), req)"],
    );
    check_text(
        &h05.replace("x(:)", "x(*)").replace("size(x)", "10"),
        &["error FR16 a: call post(a(5,:), req)"],
    );
    let section = h05.replace("call MPI_IRECV(x,", "call MPI_IRECV(x(2:),");
    check_text(
        &section,
        &["error FR16 x: call MPI_IRECV(x(2:), size(x), MPI_INTEGER, 0, 1, MPI_COMM_WORLD, req, ierr)"],
    );
    check_text(&h05.replace("call MPI_IRECV(x,", "call MPI_IRECV(x(1),"), &[]);
    check_text(
        &h05.replace("include 'mpif.h'\n    integer, intent(inout)", "integer, intent(inout)")
            .replace("subroutine post(x, req)", "subroutine post(x, req)\nuse mpi_f08"),
        &[],
    );
    // The whole call is blocking: the temporary lives as long as it must.
    check_body(declarations, "call MPI_SEND(a(3,:), 3, MPI_INTEGER, 0, 7, comm, ierr)", &[]);
}

// covers: REG-LINT-26
#[test]
fn polling_loops() {
    let h06 = std::fs::read_to_string(common::package().join("tests/hazard/h06_poll.f90"))
        .expect("the program is there");
    let plain = common::preprocess(&h06, &[]);
    let found = said(&plain, &Options::default());
    assert!(found.contains(&"error FR17 flag: do while (flag == 0)".to_string()), "{found:?}");
    assert!(found.contains(&"error FR17 f: do while (f == 0) because FR19".to_string()), "{found:?}");
    let volatile = said(&common::preprocess(&h06, &[("VOL", 1)]), &Options::default());
    assert!(volatile.iter().all(|line| line.starts_with("error FR20")), "{volatile:?}");
    let synced = plain
        .replace("call MPI_WIN_SYNC(win, ierr)", "call MPI_WIN_SYNC(win, ierr)\n    call opaque(flag)")
        .replace("do while (f == 0)", "do while (f == 0)\n    call opaque(f)");
    assert!(!said(&synced, &Options::default()).iter().any(|line| line.contains("FR17")));
    // Other shapes of the same loop.
    let window = format!("{CREATE}\nx = 0");
    for body in [
        "do\ncall MPI_WIN_SYNC(win, ierr)\nif (buf /= 0) exit\nend do",
        "10 call MPI_WIN_SYNC(win, ierr)\nif (buf == 0) goto 10",
        "10 continue\nif (buf == 0) then\ncall MPI_WIN_SYNC(win, ierr)\ngoto 10\nend if",
    ] {
        let found =
            said(&unit("mpif.h", "integer :: buf", &format!("{window}\n{body}")), &Options::default());
        assert!(
            found.iter().any(|line| line.starts_with("error FR17 buf: if (buf")),
            "{found:?} in:\n{body}"
        );
    }
    // A loop over the characters of a C string looks at another one each time; one that counts its tries does not.
    let pointer = |body: &str| {
        format!(
            "subroutine name(place, res)\nuse iso_c_binding\ntype(c_ptr), value :: place\n\
             character(kind=c_char), pointer :: text(:)\ncharacter(len=80) :: res\ninteger :: i\n\
             call c_f_pointer(place, text, [80])\n{body}\nend subroutine\n"
        )
    };
    for walk in [
        "do i = 1, 80\nif (text(i) == c_null_char) exit\nres(i:i) = text(i)\nend do",
        "i = 1\ndo while (text(i + 1) /= c_null_char)\ni = i + 1\nend do",
        "i = 1\ndo\nif (any(text(i:i+1) == c_null_char)) exit\ni = i + 2\nend do",
    ] {
        let found = said(&pointer(walk), &Options::default());
        assert!(!found.iter().any(|line| line.contains("FR17")), "{found:?} in:\n{walk}");
    }
    for wait in ["do i = 1, 80\nif (text(1) == 'x') exit\nend do", "i = 1\ndo while (text(i) /= 'x')\nend do"]
    {
        let found = said(&pointer(wait), &Options::default());
        assert!(found.iter().any(|line| line.starts_with("error FR17 text")), "{found:?} in:\n{wait}");
    }
}

// covers: REG-LINT-36
#[test]
fn locals_of_the_main_program_and_reads_by_reference() {
    check_text(
        &format!(
            "program main\nuse mpi\ninteger :: buf, req, ierr, status(10), comm\n{RECEIVE}\n{WAIT}\nprint *, buf\nend program\n"
        ),
        &["warning FR02 buf: print *, buf"],
    );
    check_text(
        &format!(
            "program main\nuse mpi\ninteger :: buf, req, ierr, status(10), comm\n{RECEIVE}\n{WAIT}\ncall show(buf)\ncontains\nsubroutine show(b)\ninteger :: b\nend subroutine\nend program\n"
        ),
        &["warning FR02 buf: call show(buf) because FR13"],
    );
}

const ATTACH: &str = "call MPI_WIN_ATTACH(win, buf, size, ierr)";
const DETACH: &str = "call MPI_WIN_DETACH(win, buf, ierr)";
const DYNAMIC: &str = "call MPI_WIN_CREATE_DYNAMIC(MPI_INFO_NULL, comm, win, ierr)";
const FREE: &str = "call MPI_WIN_FREE(win, ierr)";

// covers: REG-LINT-29
#[test]
fn buffers_that_end_before_their_operation() {
    // The request goes back to the caller, and the buffer does not.
    let begin = |declaration: &str, body: &str| {
        format!("subroutine begin(r)\nuse mpi\ninteger :: r, ierr\n{declaration}\n{body}\nend subroutine\n")
    };
    let receive = RECEIVE.replace("comm", "MPI_COMM_WORLD").replace("req,", "r,");
    check_text(&begin("integer :: buf", &receive), &["error FR20 buf: end subroutine"]);
    check_text(&begin("integer, save :: buf", &receive), &[]);
    check_text(&begin("integer :: buf\ncommon /block/ buf", &receive), &[]);
    let finished = format!("{receive}\ncall MPI_WAIT(r, MPI_STATUS_IGNORE, ierr)");
    check_text(&begin("integer :: buf", &finished), &[]);
    // On one way only: a note.
    check_text(
        &begin("integer :: buf", &format!("if (r > 0) then\n{receive}\nend if")),
        &["note FR20 buf: end subroutine"],
    );
    // Deallocated too early, and in time.
    let heap = "integer, allocatable, volatile :: buf(:)";
    check_body(
        heap,
        &format!("allocate(buf(4))\n{RECEIVE}\ndeallocate(buf)\n{WAIT}"),
        &["error FR20 buf: deallocate(buf)"],
    );
    check_body(heap, &format!("allocate(buf(4))\n{RECEIVE}\n{WAIT}\ndeallocate(buf)"), &[]);
    // The memory of a window, made at once or attached.
    check_body(heap, &format!("{CREATE}\ndeallocate(buf)\n{FREE}"), &["error FR20 buf: deallocate(buf)"]);
    check_body(heap, &format!("{CREATE}\n{FREE}\ndeallocate(buf)"), &[]);
    check_body(
        heap,
        &format!("{DYNAMIC}\n{ATTACH}\ndeallocate(buf)\n{DETACH}\n{FREE}"),
        &["error FR20 buf: deallocate(buf)"],
    );
    check_body(heap, &format!("{DYNAMIC}\n{ATTACH}\n{DETACH}\ndeallocate(buf)\n{FREE}"), &[]);
    check_body(heap, &format!("{DYNAMIC}\n{ATTACH}\n{FREE}\ndeallocate(buf)"), &[]);
    // Of two attached arrays each has its own end.
    let two = "integer, allocatable, volatile :: buf(:), other(:)";
    check_body(
        two,
        &format!(
            "{DYNAMIC}\n{ATTACH}\n{}\n{DETACH}\ndeallocate(buf, other)\n{FREE}",
            ATTACH.replace("buf", "other")
        ),
        &["error FR20 other: deallocate(buf, other)"],
    );
    // A window that outlives the procedure.
    let open = |declaration: &str, body: &str| {
        format!(
            "subroutine open(w)\nuse mpi\ninteger :: w, ierr\ninteger(kind=MPI_ADDRESS_KIND) :: size\n{declaration}\n{body}\nend subroutine\n"
        )
    };
    let attach = ATTACH.replace("win,", "w,");
    check_text(&open("integer, volatile :: buf", &attach), &["error FR20 buf: end subroutine"]);
    check_text(
        &open("integer, volatile :: buf", &format!("{attach}\n{}", DETACH.replace("win,", "w,"))),
        &[],
    );
    // A buffer that the library sends from until it is detached.
    let attached =
        |body: &str| open("integer :: buf(100)", &format!("call MPI_BUFFER_ATTACH(buf, 400, ierr)\n{body}"));
    check_text(&attached(""), &["error FR20 buf: end subroutine"]);
    check_text(&attached("call MPI_BUFFER_DETACH(buf, w, ierr)"), &[]);
    check_text(&attached("").replace("integer :: buf", "integer, save :: buf"), &[]);
}

/// Memory that has been taken out of its window belongs to this process alone.
#[test]
fn detached_memory_is_no_window() {
    let body = |end: &str| format!("{DYNAMIC}\n{ATTACH}\n{FENCE}\n{end}\nbuf = 1\n{FENCE}\nx = buf");
    check_body("integer, volatile :: buf", &body(DETACH), &[]);
    check_body("integer :: buf", &body(""), &["error FR01 buf: integer :: buf", "error FR08 buf: buf = 1"]);
    // Without protection as well: the call that takes it out names it, so that nothing is kept over it.
    check_body("integer :: buf", &body(DETACH), &[]);
}

// covers: REG-LINT-28
#[test]
fn weak_remedies_are_named_and_lower_nothing() {
    let receive = "call MPI_RECV(MPI_BOTTOM, 1, type, 0, 7, comm, status, ierr)";
    let hidden = format!("{HIDE}\n{receive}\nx = buf");
    let sent = format!("{HIDE}\nbuf = 1\ncall MPI_SEND(MPI_BOTTOM, 1, type, 1, 7, comm, ierr)");
    let window = format!("{CREATE}\n{FENCE}\nx = buf");
    let stored = format!("{CREATE}\nbuf = 1\n{FENCE}");
    for (declaration, level) in [
        ("integer, target :: buf", "error"),
        ("integer, allocatable :: buf", "error"),
        ("integer, pointer :: buf", "error"),
        ("integer :: buf, other\nequivalence (buf, other)", "error"),
        ("integer, save :: buf", "warning"),
        ("integer :: buf = 1", "warning"),
        ("save\ninteger :: buf", "warning"),
    ] {
        for (rule, body) in [("FR01", &window), ("FR03", &hidden), ("FR05", &sent), ("FR08", &stored)] {
            let text = unit("mpi", declaration, body);
            let found = said(&text, &Options::default());
            let own: Vec<&String> = found.iter().filter(|line| line.contains(rule)).collect();
            assert_eq!(own.len(), 1, "{found:?} for {declaration}");
            assert!(
                own[0].starts_with(&format!("{level} {rule} buf")) && own[0].ends_with("because FR19"),
                "{found:?} for {declaration}"
            );
        }
    }
    // The address routine, where its interface may be INTENT(IN).
    let taken = "call MPI_GET_ADDRESS(buf, address, ierr)";
    let synced = format!("{CREATE}\n{FENCE}\n{taken}\nx = buf");
    for (binding, expected) in
        [("mpi", &["error FR01 buf: integer :: buf because FR19"][..]), ("mpif.h", &[]), ("mpi_f08", &[])]
    {
        check_text(&unit(binding, "integer :: buf", &synced), expected);
    }
}

/// A remedy that fails is the reason of the finding that it does not remove, at the finding's usual place and level, and its own
/// place stands among the related ones.
// covers: REG-LINT-33
#[test]
fn remedies_that_fail_ride_on_the_finding() {
    let check = |binding: &str, declaration: &str, body: &str, code: &str, place: &str| {
        let inside = "subroutine inside(b)\ninteger :: b\nend subroutine\n";
        let plain = unit(binding, "integer :: buf", &format!("{CREATE}\n{FENCE}\nx = buf"));
        let text = unit(binding, declaration, body);
        let of_rule = |text: &str| -> (String, String) {
            let found = said(&format!("{text}{inside}"), &Options::default());
            let line = found.iter().find(|line| line.contains(" FR01 ")).expect("it is found").clone();
            let (base, because) = line.split_once(" because ").unwrap_or((line.as_str(), ""));
            (base.split(':').next().unwrap_or_default().to_string(), because.to_string())
        };
        assert_eq!(of_rule(&text), (of_rule(&plain).0, code.to_string()), "in:\n{text}");
        let report = check_one("work.f90", format!("{text}{inside}").as_bytes(), &Options::default());
        let finding = report.findings.iter().find(|finding| finding.rule == "FR01").expect("it is found");
        let places: Vec<&str> =
            finding.related.iter().map(|related| &report.text[related.span.range()]).collect();
        assert!(places.contains(&place), "{code}: {places:?}");
        // By its own code it is selected, by that of another reason it is not.
        let only = |code: &str| Options { select: vec![code.to_string()], ..Options::default() };
        let text = format!("{text}{inside}");
        assert!(!said(&text, &only(code)).is_empty(), "{code}");
        for other in ["FR13", "FR14", "FR18", "FR19"].iter().filter(|other| **other != code) {
            assert!(said(&text, &only(other)).is_empty(), "{other}");
        }
    };
    let before = format!("{CREATE}\ncall opaque(buf)\n{FENCE}\nx = buf");
    let inside = format!("{CREATE}\n{FENCE}\ncall inside(buf)\nx = buf");
    let plain = format!("{CREATE}\n{FENCE}\nx = buf");
    let taken = format!("{CREATE}\n{FENCE}\ncall MPI_GET_ADDRESS(buf, address, ierr)\nx = buf");
    for binding in ["mpif.h", "mpi", "mpi_f08"] {
        check(binding, "integer :: buf", &inside, "FR13", "buf");
        check(binding, "integer :: buf", &before, "FR14", "buf");
        check(binding, "integer, target :: buf", &plain, "FR19", "buf");
    }
    check("mpi", "integer :: buf", &taken, "FR19", "buf");
    // FR18, across a call: the attribute of the other side, whose place is that of the argument.
    let wrapper = "subroutine open_it(b, w, c)\nuse mpi\ninteger, volatile :: b\ninteger :: w, c, ierr\n\
                   call MPI_WIN_CREATE(b, 4_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, c, w, ierr)\nend subroutine\n";
    let work = unit("mpi", "integer :: buf", &format!("call open_it(buf, win, comm)\n{FENCE}\nx = buf"));
    let report = check_one("work.f90", format!("{work}{wrapper}").as_bytes(), &Options::default());
    let finding = report.findings.iter().find(|finding| finding.rule == "FR01").expect("it is found");
    assert_eq!((finding.level.name(), finding.because.as_slice()), ("error", &["FR18"][..]));
    assert!(
        finding.related.iter().any(|related| related.message.contains("is VOLATILE, and `buf` here is not"))
    );
}

/// Where each rule puts its finding: in a statement of several lines on the line of the token.
// covers: REG-LINT-34
#[test]
fn primary_places() {
    let send = "call MPI_ISEND(buf, 1, MPI_INTEGER, 1, 7, comm, req, ierr)";
    let get = "call MPI_GET(buf, 1, MPI_INTEGER, 1, zero, 1, MPI_INTEGER, win, ierr)";
    let put = get.replace("MPI_GET", "MPI_PUT");
    let anchored = "call MPI_GET_ADDRESS(x, at(1), ierr)\ncall MPI_GET_ADDRESS(buf, at(2), ierr)\nat(2) = at(2) - at(1)\n\
                    call MPI_TYPE_CREATE_STRUCT(2, reqs, at, reqs, type, ierr)\ncall MPI_RECV(x, 1, type, 0, 7, comm, status, ierr)";
    let update = "call MPI_PUT(x, 1, MPI_INTEGER, 1, zero, 1, MPI_INTEGER, win, ierr)";
    let lock = "call MPI_WIN_LOCK(MPI_LOCK_SHARED, 1, 0, win, ierr)";
    let unlock = "call MPI_WIN_UNLOCK(1, win, ierr)";
    let plain = "integer :: buf";
    let volatile = "integer, volatile :: buf";
    // The statement at which the finding stands is `>` and has the token on a line of its own.
    let read = "x = &\n  n + &\n>buf";
    let store = "i = 0; &\n>buf = 1";
    for (rule, declaration, body) in [
        ("FR01", "integer :: &\n  other, &\n>buf", format!("{CREATE}\n{FENCE}\nx = buf")),
        ("FR02", plain, format!("{RECEIVE}\n{WAIT}\n{read}")),
        (
            "FR03",
            plain,
            format!("{HIDE}\ncall MPI_RECV(MPI_BOTTOM, 1, type, 0, 7, comm, status, ierr)\n{read}"),
        ),
        ("FR04", "integer :: buf\ninteger(kind=MPI_ADDRESS_KIND) :: at(2)", format!("{anchored}\n{read}")),
        ("FR05", plain, format!("{HIDE}\n{store}\ncall MPI_SEND(MPI_BOTTOM, 1, type, 1, 7, comm, ierr)")),
        ("FR06", plain, format!("{FENCE}\n{get}\n{FENCE}\n{read}")),
        ("FR07", plain, format!("{FENCE}\n{put}\n{FENCE}\n{store}")),
        ("FR07", plain, format!("{send}\n{WAIT}\n{store}")),
        ("FR08", plain, format!("{CREATE}\n{store}\n{FENCE}")),
        (
            "FR09",
            "integer(kind=MPI_ADDRESS_KIND) :: buf",
            format!("call MPI_GREQUEST_START(q, f, c, buf, req, ierr)\n{WAIT}\n{read}"),
        ),
        (
            "FR10",
            plain,
            format!(
                "call PGO_IOFFER(buf, size, 8, n, 1, 7, comm, req, ierr)\ncall PGO_WAIT(req, ierr)\n{read}"
            ),
        ),
        ("FR15", volatile, format!("{RECEIVE}\n{read}\n{WAIT}")),
        (
            "FR16",
            "integer, volatile :: buf(4,4)",
            format!("call &\n>{}", RECEIVE.replace("buf", "&\nbuf(2,:)").replace("call ", "")),
        ),
        ("FR17", plain, format!("{CREATE}\ndo while (&\n>buf == 0)\ncall MPI_WIN_SYNC(win, ierr)\nend do")),
        (
            "FR20",
            "integer, allocatable, volatile :: buf(:)",
            format!("allocate(buf(4))\n{RECEIVE}\ndeallocate( &\n>buf)\n{WAIT}"),
        ),
        ("FR21", volatile, format!("{CREATE}\ncall &\n>{}", unlock.replace("call ", ""))),
        (
            "FR22",
            volatile,
            format!(
                "{CREATE}\nif (n == 1) then\n{lock}\n{update}\n{unlock}\nend if\ncall MPI_BARRIER(comm, ierr)\n{read}"
            ),
        ),
    ] {
        let marked = unit("mpif.h", declaration, &body);
        let line = marked.lines().position(|line| line.starts_with('>')).expect("a line is marked") + 1;
        let text = marked.replace(['>'], "");
        let token = marked.lines().nth(line - 1).expect("it is there").trim_start_matches('>');
        let report = check_one("work.f90", text.as_bytes(), &Options::default());
        let finding = report.findings.iter().find(|finding| finding.rule == rule);
        let span = finding.unwrap_or_else(|| panic!("{rule} in:\n{text}")).span;
        let found = text[..span.start as usize].lines().count();
        let starts = text[..span.start as usize].ends_with('\n');
        assert_eq!(found + usize::from(starts), line, "{rule} in:\n{text}");
        assert!(token.starts_with(&text[span.range()]), "{rule}: `{}` of `{token}`", &text[span.range()]);
    }
    // An undeclared name: the creating call. FR11 at the call of the wrapper and FR12 at the declaration are in `origins.rs`.
    let create = CREATE.replace("size", "n").replace("comm", "m");
    check_text(
        &format!("subroutine s\ninclude 'mpif.h'\n{create}\n{FENCE}\nx = buf\nend\n"),
        &[&format!("error FR01 buf: {create}")],
    );
}

/// The three families of names.
// covers: REG-LINT-37
#[test]
fn names_of_three_families_are_known_and_comments_stand_on_the_line_or_above() {
    let body = format!("{RECEIVE}\n{WAIT}\nx = buf");
    let finding = "warning FR02 buf: x = buf";
    check_body("integer :: buf", &body, &[finding]);
    check_body("integer :: buf", &body.replace("call MPI_", "call RMA_"), &[finding]);
    let window = format!("{CREATE}\n{FENCE}\nx = buf").replace("call MPI_", "call RMA_");
    check_body("integer :: buf", &window, &["error FR01 buf: integer :: buf"]);
    let offer = "call PGO_IOFFER(buf, size, 8, n, 1, 7, comm, req, ierr)\ncall PGO_WAIT(req, ierr)\nx = buf";
    check_body("integer :: buf", offer, &["warning FR10 buf: x = buf"]);
    // Other prefixes are other routines.
    check_body("integer :: buf", &body.replace("call MPI_", "call MY_"), &[]);
    let allowed = |line: &str| format!("{RECEIVE}\n{WAIT}\n{line}");
    for silent in [
        "x = buf !rma-lint: allow FR02 nobody sends here",
        "!rma-lint: allow FR02 nobody sends here\nx = buf",
        "! rma-lint: allow FR02(buf) nobody sends here\nx = buf",
    ] {
        check_body("integer :: buf", &allowed(silent), &[]);
    }
    let reasonless = said(
        &unit("mpif.h", "integer :: buf", &allowed("!rma-lint: allow FR02\nx = buf")),
        &Options::default(),
    );
    assert!(reasonless.iter().any(|line| line.starts_with("warning FR90")), "{reasonless:?}");
    // Two lines above is too far, and so is another rule.
    for idle in ["!rma-lint: allow FR02 too far\ny = 1\nx = buf", "!rma-lint: allow FR01 another\nx = buf"] {
        let found = said(&unit("mpif.h", "integer :: buf", &allowed(idle)), &Options::default());
        assert!(found.contains(&finding.to_string()), "{found:?}");
        assert!(found.iter().any(|line| line.starts_with("warning FR91")), "{found:?}");
    }
}

/// What the seed documents do not name: module variables, ASYNCHRONOUS by the standard, and what keeps nothing in memory.
// covers: REG-SAFE-09
#[test]
fn other_kinds_of_variables_are_classified() {
    let body = format!("{RECEIVE}\n{WAIT}\nx = buf");
    let text = |declaration: &str| unit("mpi", declaration, &body);
    // A module variable is accepted, with a note; ASYNCHRONOUS on it leaves nothing to note.
    let module = |attribute: &str| {
        let user = unit("mpi", "", &body).replace("use mpi\n", "use mpi\nuse store\n");
        format!("module store\ninteger{attribute} :: buf\nend module\n{user}")
    };
    check_text(&module(""), &["note FR12 buf: integer :: buf"]);
    check_text(&module(", asynchronous"), &[]);
    let loud = Options { min_level: fortran_lint::finding::Level::Warning, ..Options::default() };
    assert!(said(&module(""), &loud).is_empty());
    // ASYNCHRONOUS: nothing before it was there, a note while it meant input and output, and then the remedy.
    for (standard, expected) in [
        (Standard::F95, &["warning FR02 buf: x = buf because FR19"][..]),
        (Standard::F2003, &["note FR12 buf: integer, asynchronous :: buf"]),
        (Standard::F2008, &["note FR12 buf: integer, asynchronous :: buf"]),
        (Standard::F2018, &[]),
        (Standard::F2023, &[]),
    ] {
        let found = said(&text("integer, asynchronous :: buf"), &Options { standard, ..Options::default() });
        assert_eq!(found, expected, "{standard:?}");
    }
    for weak in ["save", "target", "pointer", "allocatable"] {
        check_text(&text(&format!("integer, {weak} :: buf")), &["warning FR02 buf: x = buf because FR19"]);
    }
}

/// What the manual pages promise of every hazard: that luck is not portable, and what VOLATILE costs and where it is missing.
// covers: REG-SAFE-04, REG-SAFE-08
#[test]
fn manual_pages_tell_what_is_not_portable() {
    let page = |code: &str| {
        let page = fortran_lint::rules::find(code).expect("the rule is there").page();
        page.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for number in 1..=10 {
        let code = format!("FR{number:02}");
        assert!(page(&code).contains("not portable"), "{code} does not say that such code is not portable");
    }
    assert!(page("FR12").contains("VOLATILE also costs: every access goes to memory"), "{}", page("FR12"));
    assert!(page("FR12").contains("came with Fortran 2003"), "{}", page("FR12"));
    // The levels with which such code is reported, whatever a good compiler makes of it.
    let text = unit("mpi", "integer :: buf", &format!("{RECEIVE}\n{WAIT}\nx = buf"));
    let found = &check_one("work.f90", text.as_bytes(), &Options::default()).findings[0];
    assert!(found.remedies.contains(&"declare `buf` VOLATILE, which slows down every access".to_string()));
    // And nobody is told to use what the standard asked for does not have.
    for (standard, n) in [(Standard::F95, 0), (Standard::F2003, 2)] {
        let options = Options { standard, ..Options::default() };
        let found = &check_one("work.f90", text.as_bytes(), &options).findings[0];
        let is_young = |remedy: &&String| remedy.contains("VOLATILE") || remedy.contains("ASYNCHRONOUS");
        assert_eq!(found.remedies.iter().filter(is_young).count(), n, "{:?}", found.remedies);
    }
    // A note for each VOLATILE that is a remedy, in the standards without it.
    let volatile = unit("mpif.h", "integer, volatile :: buf", &format!("{RECEIVE}\n{WAIT}\nx = buf"));
    for (standard, n) in [
        (Standard::F77, 1),
        (Standard::F90, 1),
        (Standard::F95, 1),
        (Standard::F2003, 0),
        (Standard::F2018, 0),
    ] {
        let found = said(&volatile, &Options { standard, ..Options::default() });
        assert_eq!(found, vec!["note FR12 buf: integer, volatile :: buf"; n], "{standard:?}");
    }
}

#[test]
fn both_branches_of_a_preprocessor_condition_are_seen() {
    check_text(
        &unit(
            "mpif.h",
            "integer :: buf",
            &format!(
                "#ifdef ONE\n{RECEIVE}\n#else\ncall MPI_IRECV(buf, 2, MPI_INTEGER, 1, 7, comm, req, ierr)\n#endif\n{WAIT}\nx = buf"
            ),
        ),
        &["warning FR02 buf: x = buf"],
    );
    check_text(
        &unit(
            "mpif.h",
            "integer :: buf",
            &format!(
                "{RECEIVE}\n{WAIT}\n#if 0\nthis is no Fortran, isn't it\n#endif\n#ifdef SYNC\ncall opaque(buf)\n#endif\nx = buf"
            ),
        ),
        &["warning FR02 buf: x = buf because FR14"],
    );
}

#[test]
fn one_bad_statement_costs_one_statement() {
    let text = unit(
        "mpif.h",
        "integer :: buf",
        &format!("{RECEIVE}\nthis is ?? no Fortran\n{WAIT}\nx = = 3\nx = buf"),
    );
    let report = check_one("w.f90", text.as_bytes(), &Options::default());
    assert_eq!(report.skipped.len(), 2);
    assert_eq!(report.findings.len(), 1);
}

// covers: REG-LINT-16
#[test]
fn json_and_text_are_as_documented() {
    let text = unit("mpi", "integer, target :: buf", &format!("{RECEIVE}\n{WAIT}\nx = buf"));
    let reports = [check_one("w.f90", text.as_bytes(), &Options::default())];
    expect_test::expect_file!["golden/finding.json"].assert_eq(&report::json::document(
        &reports,
        &report::Summary::new(&reports),
        report::json::Skipped::Counted,
    ));
    expect_test::expect_file!["golden/finding.txt"]
        .assert_eq(&report::text::findings(&reports, rma_source::render::Colour::Never));
}
