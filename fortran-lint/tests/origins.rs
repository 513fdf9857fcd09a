//! Origin buffers, anchors, COMMON and VOLATILE at their limits: the rules FR04, FR06, FR07, FR11, FR12 and the reason FR18.

mod common;

use common::{said, unit};
use fortran_lint::check::{Input, check};
use fortran_lint::options::{Options, Standard};

#[track_caller]
fn check_body(declarations: &str, body: &str, expected: &[&str]) {
    for binding in ["mpif.h", "mpi", "mpi_f08"] {
        let text = unit(binding, declarations, body);
        assert_eq!(said(&text, &Options::default()), expected, "in:\n{text}");
    }
}

const GET: &str = "call MPI_GET(buf, 1, MPI_INTEGER, 1, zero, 1, MPI_INTEGER, win, ierr)";
const PUT: &str = "call MPI_PUT(buf, 1, MPI_INTEGER, 1, zero, 1, MPI_INTEGER, win, ierr)";
const FENCE: &str = "call MPI_WIN_FENCE(0, win, ierr)";

/// What opens an epoch and what completes its transfers.
const STYLES: [(&str, &str); 5] = [
    (FENCE, FENCE),
    ("call MPI_WIN_START(group, 0, win, ierr)", "call MPI_WIN_COMPLETE(win, ierr)"),
    ("call MPI_WIN_LOCK(MPI_LOCK_SHARED, 1, 0, win, ierr)", "call MPI_WIN_UNLOCK(1, win, ierr)"),
    ("call MPI_WIN_LOCK(MPI_LOCK_SHARED, 1, 0, win, ierr)", "call MPI_WIN_FLUSH(1, win, ierr)"),
    ("call MPI_WIN_LOCK_ALL(0, win, ierr)", "call MPI_WIN_FLUSH_LOCAL_ALL(win, ierr)"),
];

/// Remedies of a variable that is called `buf`.
const SAFE: [&str; 4] = [
    "integer, volatile :: buf",
    "integer, asynchronous :: buf",
    "integer :: buf\ncommon /block/ buf",
    "integer :: buf, twin\ncommon /block/ twin\nequivalence (buf, twin)",
];

#[test]
fn what_a_get_brings_is_read_after_each_completing_call() {
    for (open, complete) in STYLES {
        let body = format!("{open}\n{GET}\n{complete}\nx = buf");
        check_body("integer :: buf", &body, &["warning FR06 buf: x = buf"]);
        for safe in SAFE {
            check_body(safe, &body, &[]);
        }
        check_body("integer :: buf", &format!("{open}\n{GET}\n{complete}\ncall opaque(buf)\nx = buf"), &[]);
        check_body(
            "integer :: buf",
            &format!("{open}\n{GET}\ncall opaque(buf)\n{complete}\nx = buf"),
            &["warning FR06 buf: x = buf because FR14"],
        );
    }
    // By a request, and by a barrier that is one for windows, too.
    let request = "call MPI_RGET(buf, 1, MPI_INTEGER, 1, zero, 1, MPI_INTEGER, win, req, ierr)\ncall MPI_WAIT(req, status, ierr)\nx = buf";
    check_body("integer :: buf", request, &["warning FR06 buf: x = buf"]);
    check_body(
        "integer :: buf",
        &format!("{GET}\ncall RMA_BARRIER(comm, ierr)\nx = buf"),
        &["warning FR06 buf: x = buf"],
    );
    check_body("integer :: buf", &format!("{GET}\ncall MPI_BARRIER(comm, ierr)\nx = y"), &[]);
    // What a fetch brings.
    check_body(
        "integer :: buf, one",
        "call MPI_FETCH_AND_OP(one, buf, MPI_INTEGER, 1, zero, MPI_SUM, win, ierr)\ncall MPI_WIN_FLUSH(1, win, ierr)\nx = buf",
        &["warning FR06 buf: x = buf"],
    );
}

const OFFER: &str = "call PGO_OFFER(other, size, 8, n, 1, 7, comm, ierr)";
const IOFFER: &str = "call PGO_IOFFER(other, size, 8, n, 1, 7, comm, req, ierr)";

// covers: REG-LINT-06
#[test]
fn events_of_put_get_offer_end_with_the_offer() {
    let get = "call PGO_GET(buf, 1, MPI_INTEGER, 1, zero, 1, MPI_INTEGER, 7, comm, ierr)";
    for offer in [OFFER.to_string(), format!("{IOFFER}\ncall PGO_WAIT(req, ierr)")] {
        let declaration = "integer :: buf\ninteger, volatile :: other(4)";
        check_body(declaration, &format!("{get}\n{offer}\nx = buf"), &["warning FR06 buf: x = buf"]);
        for safe in SAFE {
            let declaration = format!("{safe}\ninteger, volatile :: other(4)");
            check_body(&declaration, &format!("{get}\n{offer}\nx = buf"), &[]);
        }
    }
    // In the forms with a window.
    for (open, complete) in STYLES {
        check_body(
            "integer :: buf",
            &format!("{open}\n{GET}\n{complete}\nx = buf"),
            &["warning FR06 buf: x = buf"],
        );
    }
    check_body(
        "integer :: buf",
        &format!("{GET}\ncall RMA_BARRIER(comm, ierr)\nx = buf"),
        &["warning FR06 buf: x = buf"],
    );
}

// covers: REG-LINT-10, PGO-REG-01
#[test]
fn offered_memory_is_used_after_the_wait() {
    for name in ["PGO_IOFFER", "PGO_IOFFERP", "PGO_IOFFERC"] {
        let offer = IOFFER.replace("PGO_IOFFER", name).replace("other", "buf");
        for wait in ["call PGO_WAIT(req, ierr)", "call MPI_WAIT(req, status, ierr)"] {
            check_body(
                "integer :: buf",
                &format!("{offer}\n{wait}\nx = buf"),
                &["warning FR10 buf: x = buf"],
            );
            for safe in SAFE {
                check_body(safe, &format!("{offer}\n{wait}\nx = buf"), &[]);
            }
        }
    }
    // The blocking call has its memory as an argument.
    check_body("integer :: buf", &format!("{}\nx = buf", OFFER.replace("other", "buf")), &[]);
}

// covers: REG-LINT-07
#[test]
fn an_origin_buffer_is_stored_to_after_each_completing_call() {
    for (open, complete) in STYLES {
        let body = format!("{open}\n{PUT}\n{complete}\nbuf = 1");
        check_body("integer :: buf", &body, &["warning FR07 buf: buf = 1"]);
        for safe in SAFE {
            check_body(safe, &body, &[]);
        }
        check_body("integer :: buf", &format!("{open}\n{PUT}\n{complete}\ncall opaque(buf)\nbuf = 1"), &[]);
    }
    let send = "call MPI_ISEND(buf, 1, MPI_INTEGER, 1, 7, comm, req, ierr)\ncall MPI_WAIT(req, status, ierr)";
    check_body("integer :: buf", &format!("{send}\nbuf = 1"), &["warning FR07 buf: buf = 1"]);
    check_body("integer :: buf", &format!("{send}\nx = buf"), &[]);
    check_body(
        "integer :: buf",
        "call MPI_ACCUMULATE(buf, 1, MPI_INTEGER, 1, zero, 1, MPI_INTEGER, MPI_SUM, win, ierr)\ncall MPI_WIN_FLUSH(1, win, ierr)\nbuf = 1",
        &["warning FR07 buf: buf = 1"],
    );
    // A blocking send has read its buffer when it returns.
    check_body("integer :: buf", "call MPI_SEND(buf, 1, MPI_INTEGER, 1, 7, comm, ierr)\nbuf = 1", &[]);
}

/// Three variables, reached from the first.
fn anchored(difference: &str) -> String {
    format!(
        "call MPI_GET_ADDRESS(a, at(1), ierr)\ncall MPI_GET_ADDRESS(b, at(2), ierr)\ncall MPI_GET_ADDRESS(c, at(3), ierr)\n{difference}\n\
         call MPI_TYPE_CREATE_STRUCT(3, lengths, by, types, type, ierr)\ncall MPI_TYPE_COMMIT(type, ierr)"
    )
}

// covers: REG-HAZ-05, REG-LINT-04
#[test]
fn neighbours_of_an_anchor() {
    let receive = "call MPI_RECV(a, 1, type, 0, 7, comm, status, ierr)\nx = a\ny = b\nn = c";
    let send = "a = 1\nb = 2\nc = 3\ncall MPI_SEND(a, 1, type, 0, 7, comm, ierr)";
    let names = |attribute: &str| {
        format!(
            "integer{attribute} :: a, b, c\ninteger :: lengths(3), types(3)\ninteger(kind=MPI_ADDRESS_KIND) :: at(3), by(3)"
        )
    };
    for difference in [
        "by(1) = 0\nby(2) = at(2) - at(1)\nby(3) = at(3) - at(1)",
        "by(1) = 0\nby(2) = MPI_AINT_DIFF(at(2), at(1))\nby(3) = MPI_AINT_DIFF(at(3), at(1))",
        "do i = 1, 3\nby(i) = at(i) - at(1)\nend do",
    ] {
        let make = anchored(difference);
        check_body(
            &names(""),
            &format!("{make}\n{receive}"),
            &["error FR04 b: y = b", "error FR04 c: n = c"],
        );
        check_body(&names(""), &format!("{make}\n{send}"), &["error FR04 b: b = 2", "error FR04 c: c = 3"]);
        check_body(&names(", asynchronous"), &format!("{make}\n{receive}\n{send}"), &[]);
        check_body(
            &format!("{}\ncommon /all/ a, b, c", names("")),
            &format!("{make}\n{receive}\n{send}"),
            &[],
        );
        let synced = receive.replace("x = a", "call opaque(b)\ncall opaque(c)\nx = a");
        check_body(&names(""), &format!("{make}\n{synced}"), &[]);
    }
    // Nonblocking: behind the wait.
    let make = anchored("by(1) = 0\nby(2) = at(2) - at(1)\nby(3) = at(3) - at(1)");
    check_body(
        &names(""),
        &format!(
            "{make}\ncall MPI_IRECV(a, 1, type, 0, 7, comm, req, ierr)\ncall MPI_WAIT(req, status, ierr)\ny = b"
        ),
        &["error FR04 b: y = b"],
    );
}

fn files(texts: &[(&str, String)]) -> Vec<String> {
    let inputs: Vec<Input> = texts
        .iter()
        .map(|(path, text)| Input { path: path.to_string(), bytes: text.as_bytes().to_vec() })
        .collect();
    let reports = check(&inputs, &Options::default());
    reports
        .iter()
        .flat_map(|report| report.findings.iter().map(|finding| common::line_of(&report.text, finding)))
        .collect()
}

// covers: REG-SAFE-02, REG-LINT-11
#[test]
fn common_is_defeated_by_a_wrapper_without_it() {
    let wrapper = |declarations: &str| {
        format!(
            "subroutine my_wait(r)\ninclude 'mpif.h'\ninteger :: r, ierr\n{declarations}\ncall MPI_WAIT(r, MPI_STATUS_IGNORE, ierr)\nend subroutine\n"
        )
    };
    let work = unit(
        "mpif.h",
        "integer :: buf\ncommon /block/ buf",
        "call MPI_IRECV(buf, 1, MPI_INTEGER, 0, 7, comm, req, ierr)\ncall my_wait(req)\nx = buf",
    );
    let ask = |wrapper: Option<String>| {
        let mut texts = vec![("work.f90", work.clone())];
        texts.extend(wrapper.map(|wrapper| ("wait.f90", wrapper)));
        files(&texts)
    };
    assert_eq!(ask(Some(wrapper(""))), ["warning FR11 buf: call my_wait(req)"]);
    assert!(ask(Some(wrapper("integer :: other\ncommon /block/ other"))).is_empty());
    assert!(ask(None).is_empty());
    // A block of another name is another block; a procedure further in may declare the right one.
    assert_eq!(ask(Some(wrapper("common /other/ z"))), ["warning FR11 buf: call my_wait(req)"]);
    let deeper = wrapper("call touch")
        .replace("end subroutine\n", "end subroutine\nsubroutine touch\ncommon /block/ z\nend subroutine\n");
    assert!(ask(Some(deeper)).is_empty());
    // The same for a window.
    let window = unit(
        "mpif.h",
        "integer :: buf\ncommon /block/ buf",
        "call MPI_WIN_CREATE(buf, size, 8, MPI_INFO_NULL, comm, win, ierr)\ncall my_fence(win)\nx = buf",
    );
    let fence = "subroutine my_fence(w)\ninclude 'mpif.h'\ninteger :: w, ierr\ncall MPI_WIN_FENCE(0, w, ierr)\nend subroutine\n";
    assert_eq!(
        files(&[("work.f90", window), ("fence.f90", fence.to_string())]),
        ["warning FR11 buf: call my_fence(win)"]
    );
}

// covers: REG-LINT-12
#[test]
fn volatile_is_told_to_be_younger_than_the_standard() {
    let text = unit(
        "mpif.h",
        "integer, volatile :: buf",
        "call MPI_IRECV(buf, 1, MPI_INTEGER, 0, 7, comm, req, ierr)\ncall MPI_WAIT(req, status, ierr)\nx = buf",
    );
    for (standard, n) in [
        (Standard::F77, 1),
        (Standard::F90, 1),
        (Standard::F95, 1),
        (Standard::F2003, 0),
        (Standard::F2018, 0),
    ] {
        let found = said(&text, &Options { standard, ..Options::default() });
        let expected = vec!["note FR12 buf: integer, volatile :: buf".to_string(); n];
        assert_eq!(found, expected, "{standard:?}");
    }
    // What needs no remedy has none to tell of.
    let unused = unit("mpif.h", "integer, volatile :: buf", "buf = 1");
    assert!(said(&unused, &Options { standard: Standard::F77, ..Options::default() }).is_empty());
}

// covers: REG-LINT-27
#[test]
fn a_remedy_on_one_side_of_a_call_is_lost_on_the_other() {
    let wrapper = |attribute: &str| {
        format!(
            "subroutine begin(buf, r)\nuse mpi\ninteger{attribute} :: buf(4)\ninteger :: r, ierr\ncall MPI_IRECV(buf, 4, MPI_INTEGER, 0, 7, MPI_COMM_WORLD, r, ierr)\nend subroutine\n"
        )
    };
    let caller = |attribute: &str| {
        unit(
            "mpi",
            &format!("integer{attribute} :: field(4)"),
            "call begin(field, req)\ncall MPI_WAIT(req, status, ierr)\nx = field(1)",
        )
    };
    let ask = |wrapper: String, caller: String| files(&[("wrapper.f90", wrapper), ("caller.f90", caller)]);
    assert_eq!(ask(wrapper(""), caller("")), ["warning FR02 field: x = field(1)"]);
    assert_eq!(ask(wrapper(", asynchronous"), caller("")), ["warning FR02 field: x = field(1) because FR18"]);
    assert!(ask(wrapper(", asynchronous"), caller(", asynchronous")).is_empty());
    // The finding names the wrapper, by file and line.
    let inputs = [("wrapper.f90", wrapper("")), ("caller.f90", caller(""))]
        .map(|(path, text)| Input { path: path.to_string(), bytes: text.into_bytes() });
    let reports = check(&inputs, &Options::default());
    let related = &reports[1].findings[0].related;
    assert!(
        related.iter().any(|related| related.message == "BEGIN (wrapper.f90:1) calls MPI_IRECV"),
        "{related:?}"
    );
    // The other way: the procedure receives, waits and reads, and only its caller has the attribute.
    let whole = |attribute: &str| {
        wrapper(attribute).replace(
            "end subroutine",
            "call MPI_WAIT(r, MPI_STATUS_IGNORE, ierr)\ni = buf(1)\nend subroutine",
        )
    };
    assert_eq!(ask(whole(""), caller(", asynchronous")), ["warning FR02 buf: i = buf(1) because FR18"]);
    assert_eq!(ask(whole(""), caller(", volatile")), ["warning FR02 buf: i = buf(1) because FR18"]);
    assert!(ask(whole(", asynchronous"), caller(", asynchronous")).is_empty());
}
