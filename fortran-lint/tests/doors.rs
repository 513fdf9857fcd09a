//! The doors of a procedure other than its name: ENTRY, a generic name, what is bound to a type, and a function reference. What
//! the procedure does for its caller is found through each of them.

mod common;

use common::{check_files, said_of};

/// A unit with the usual names that uses the module `halo`.
fn user(declarations: &str, body: &str) -> String {
    format!(
        "subroutine work(x)\nuse halo\nimplicit none\ninteger :: x, r, s, ierr\n{declarations}\n{body}\nend subroutine\n"
    )
}

/// Checks a body against the module: the buffer without protection is reported, and protected it is not.
#[track_caller]
fn check_body(module: &str, body: &str) {
    let with = |declaration: &str| user(declaration, body);
    check_files(
        &[("halo.f90", module), ("work.f90", &with("integer :: buf(4)"))],
        &["work.f90: warning FR02 buf: x = buf(1)"],
    );
    for safe in ["integer, asynchronous :: buf(4)", "integer, volatile :: buf(4)"] {
        check_files(&[("halo.f90", module), ("work.f90", &with(safe))], &[]);
    }
}

const RECEIVE: &str = "call MPI_IRECV(buf, 4, MPI_INTEGER, 0, 7, MPI_COMM_WORLD, req, ierr)";
const WAIT: &str = "call MPI_WAIT(req, MPI_STATUS_IGNORE, ierr)";

fn module(text: &str) -> String {
    format!("module halo\nuse mpi\nimplicit none\n{text}end module\n")
}

#[test]
fn an_entry_does_what_stands_behind_it() {
    let text = format!(
        "contains\nsubroutine exchange(n)\ninteger :: n, req, ierr, buf(*)\nn = 0\nreturn\n\
         entry begin(buf, req)\n{RECEIVE}\nreturn\nentry finish(req)\n{WAIT}\nend subroutine\n"
    );
    check_body(&module(&text), "call begin(buf, r)\ncall finish(r)\nx = buf(1)");
    // The header leads past both.
    let harmless = user("integer :: buf(4)", "call exchange(r)\nx = buf(1)");
    check_files(&[("halo.f90", &module(&text)), ("work.f90", &harmless)], &[]);
    // An external subroutine, with the arguments in another order.
    let external = format!(
        "subroutine exchange(n)\nuse mpi\ninteger :: n, req, ierr, buf(*)\nn = 0\nreturn\n\
         entry begin(req, buf)\n{RECEIVE}\nreturn\nentry finish(req)\n{WAIT}\nend subroutine\n"
    );
    let work =
        user("integer :: buf(4)", "call begin(r, buf)\ncall finish(r)\nx = buf(1)").replace("use halo\n", "");
    check_files(
        &[("entry.f90", &external), ("work.f90", &work)],
        &["work.f90: warning FR02 buf: x = buf(1)"],
    );
}

/// Two procedures that receive, for two types, and one that waits.
fn pair() -> String {
    let begin = |name: &str, kind: &str| {
        format!(
            "subroutine {name}(buf, req)\n{kind} :: buf(:)\ninteger :: req, ierr\n{RECEIVE}\nend subroutine\n"
        )
    };
    format!(
        "contains\n{}{}subroutine finish_one(req)\ninteger :: req, ierr\n{WAIT}\nend subroutine\n",
        begin("begin_i", "integer, contiguous"),
        begin("begin_r", "real, contiguous")
    )
}

#[test]
fn a_generic_name_means_its_procedures() {
    for interface in [
        "interface begin\nmodule procedure begin_i, begin_r\nend interface\ninterface finish\nmodule procedure finish_one\nend interface\n",
        "interface begin\nmodule procedure begin_i\nmodule procedure :: begin_r\nend interface\ninterface finish\nprocedure finish_one\nend interface\n",
    ] {
        let text = module(&format!("{interface}{}", pair()));
        check_body(&text, "call begin(buf, r)\ncall finish(r)\nx = buf(1)");
        check_body(&text, "call begin(req=r, buf=buf)\ncall finish(r)\nx = buf(1)");
        // Handed on by another module, under another name: a generic name and that of a procedure.
        let middle = "module middle\nuse halo, only: start => begin, finish\nend module\n";
        let work = user("integer :: buf(4)", "call start(buf, r)\ncall finish(r)\nx = buf(1)")
            .replace("use halo", "use middle");
        check_files(
            &[("halo.f90", &text), ("middle.f90", middle), ("work.f90", &work)],
            &["work.f90: warning FR02 buf: x = buf(1)"],
        );
    }
    // Procedures that do different things: the one that takes so many arguments.
    let several = format!(
        "interface begin\nmodule procedure begin_i, begin_all\nend interface\n{}subroutine begin_all(buf, req, n)\n\
         integer :: buf(:), req, n\nn = 0\nend subroutine\n",
        pair()
    );
    check_body(&module(&several), "call begin(buf, r)\ncall finish_one(r)\nx = buf(1)");
    // Nothing tells which: nothing is said, and the call is no barrier for the compiler either.
    let unclear = several.replace(
        "req, n)\ninteger :: buf(:), req, n\nn = 0",
        "req)\nreal :: buf(:)\ninteger :: req\nreq = 0",
    );
    let work = user("integer :: buf(4)", "call begin(buf, r)\ncall finish_one(r)\nx = buf(1)");
    check_files(&[("halo.f90", &module(&unclear)), ("work.f90", &work)], &[]);
    // A generic name of the program is no opaque routine.
    let touch = "interface touch\nmodule procedure touch_i\nend interface\ncontains\nsubroutine touch_i(b)\ninteger :: b(4)\nend subroutine\n";
    let work = user(
        "integer :: buf(4)",
        &format!(
            "{}\n{}\ncall touch(buf)\nx = buf(1)",
            RECEIVE.replace("req", "r"),
            WAIT.replace("req", "r")
        ),
    );
    check_files(
        &[("halo.f90", &module(touch)), ("work.f90", &work)],
        &["work.f90: warning FR02 buf: x = buf(1) because FR13"],
    );
}

#[test]
fn what_is_bound_to_a_type_gets_its_object() {
    let text = |bindings: &str| {
        module(&format!(
            "type exchange\ninteger :: req\ncontains\n{bindings}end type\ncontains\n\
             subroutine begin_it(self, buf)\nclass(exchange) :: self\ninteger :: buf(*), ierr\n{}\nend subroutine\n\
             subroutine finish(self)\nclass(exchange) :: self\ninteger :: ierr\n{}\nend subroutine\n",
            RECEIVE.replace("req", "self%req"),
            WAIT.replace("req", "self%req")
        ))
    };
    let plain = text("procedure :: begin => begin_it\nprocedure :: finish\n");
    let body = "call e%begin(buf)\ncall e%finish\nx = buf(1)";
    for (safe, expected) in [
        ("integer :: buf(4)", &["work.f90: warning FR02 buf: x = buf(1)"][..]),
        ("integer, asynchronous :: buf(4)", &[]),
    ] {
        let work = user(&format!("type(exchange) :: e, f\n{safe}"), body);
        check_files(&[("halo.f90", &plain), ("work.f90", &work)], expected);
    }
    // Another object has another request, which is still open.
    let work =
        user("type(exchange) :: e, f\ninteger :: buf(4)", "call e%begin(buf)\ncall f%finish\nx = buf(1)");
    check_files(&[("halo.f90", &plain), ("work.f90", &work)], &["work.f90: error FR15 buf: x = buf(1)"]);
    // A generic binding, NOPASS, and an object in an array.
    let generic = text("procedure, private :: begin_it\ngeneric :: begin => begin_it\nprocedure :: finish\n");
    let work = user(
        "type(exchange) :: e(3)\ninteger :: buf(4)",
        "call e(2)%begin(buf)\ncall e(2)%finish()\nx = buf(1)",
    );
    check_files(&[("halo.f90", &generic), ("work.f90", &work)], &["work.f90: warning FR02 buf: x = buf(1)"]);
    let nopass = text("procedure, nopass :: begin => begin_it\nprocedure :: finish\n");
    let work =
        user("type(exchange) :: e\ninteger :: buf(4)", "call e%begin(e, buf)\ncall e%finish\nx = buf(1)");
    check_files(&[("halo.f90", &nopass), ("work.f90", &work)], &["work.f90: warning FR02 buf: x = buf(1)"]);
    // Two types bind the name: the type of the object decides.
    let two = plain
        .replace(
            "type exchange\n",
            "type other\ncontains\nprocedure, nopass :: begin => nothing\nend type\ntype exchange\n",
        )
        .replace("end module", "subroutine nothing(b)\ninteger :: b(*)\nend subroutine\nend module");
    let work = user("type(exchange) :: e\ntype(other) :: o\ninteger :: buf(4)", body);
    check_files(&[("halo.f90", &two), ("work.f90", &work)], &["work.f90: warning FR02 buf: x = buf(1)"]);
    let work =
        user("type(exchange) :: e\ntype(other) :: o\ninteger :: buf(4)", &body.replace("e%begin", "o%begin"));
    check_files(&[("halo.f90", &two), ("work.f90", &work)], &[]);
}

#[test]
fn a_function_starts_what_its_result_stands_for() {
    let text = |result: &str, inside: &str| {
        module(&format!(
            "contains\ninteger function begin(buf){result}\ninteger :: buf(*), req, ierr\n{RECEIVE}\n{inside} = req\nend function\n\
             subroutine finish(req)\ninteger :: req, ierr\n{WAIT}\nend subroutine\n"
        ))
        .replace("integer function begin(buf) result(handle)", "function begin(buf) result(handle)\ninteger :: handle")
    };
    for (result, inside) in [("", "begin"), (" result(handle)", "handle")] {
        let text = text(result, inside);
        check_body(&text, "r = begin(buf)\ncall finish(r)\nx = buf(1)");
        let two = |body: &str| user("integer :: buf(4), other(4)", body);
        // The request of the other one is another operation.
        let found = said_of(&[
            ("halo.f90", &text),
            (
                "work.f90",
                &two("r = begin(buf)\ns = begin(other)\ncall finish(r)\nx = buf(1)\ncall finish(s)"),
            ),
        ]);
        assert_eq!(found, ["work.f90: warning FR02 buf: x = buf(1)"]);
        let early = two("r = begin(buf)\ns = begin(other)\ncall finish(r)\nx = other(1)\ncall finish(s)");
        check_files(
            &[("halo.f90", &text), ("work.f90", &early)],
            &["work.f90: error FR15 other: x = other(1)"],
        );
    }
    // In fixed form, neither declared nor used by a module.
    let external = "      INTEGER FUNCTION IRECV(BUF)\n      INCLUDE 'mpif.h'\n      INTEGER BUF(*)\n\
        \x20     CALL MPI_IRECV(BUF, 4, MPI_INTEGER, 0, 7, MPI_COMM_WORLD, IREQ, IERR)\n      IRECV = IREQ\n      END\n\
        \x20     SUBROUTINE MSGWAIT(IREQ)\n      INCLUDE 'mpif.h'\n      CALL MPI_WAIT(IREQ, MPI_STATUS_IGNORE, IERR)\n      END\n";
    let work = "      SUBROUTINE WORK(X)\n      INTEGER BUF(4), X\n      MSG = IRECV(BUF)\n      CALL MSGWAIT(MSG)\n      X = BUF(1)\n      END\n";
    check_files(&[("comm.f", external), ("work.f", work)], &["work.f: warning FR02 buf: X = BUF(1)"]);
}

/// Many ways lead through USE to one module: each module is looked at once for a name, or this would not end.
#[test]
fn many_ways_through_modules_are_one() {
    const LEVELS: usize = 40;
    let interface = "interface begin\nmodule procedure begin_i, begin_r\nend interface\n";
    let mut text = module(&format!("{interface}{}", pair()));
    for level in 0..LEVELS {
        for side in ["left", "right", "middle"] {
            let uses = match level {
                0 => "use halo\n".to_string(),
                _ => ["left", "right", "middle"].map(|below| format!("use {below}_{}\n", level - 1)).concat(),
            };
            text.push_str(&format!("module {side}_{level}\n{uses}end module\n"));
        }
    }
    let top = format!("use left_{0}\nuse right_{0}\nuse other, start => begin", LEVELS - 1);
    let body = "call begin(buf, r)\ncall finish_one(r)\nx = buf(1)\ncall nobody\ncall start";
    let work = user("integer :: buf(4)", body).replace("use halo", &top);
    check_files(&[("halo.f90", &text), ("work.f90", &work)], &["work.f90: warning FR02 buf: x = buf(1)"]);
}
