//! # FR06: got-value-read-from-register
//!
//! The origin buffer of a get is read after the call that completes the get, and that call does not name the buffer. Never
//! reported for variables in COMMON or in a module, for VOLATILE and ASYNCHRONOUS variables, or where an opaque call with
//! the buffer as its argument stands between the two.
//!
//! ## What happens
//!
//! ```fortran
//! call MPI_GET(buf, 1, MPI_REAL, 1, disp, 1, MPI_REAL, win, ierror)
//! call MPI_WIN_COMPLETE(win, ierror)       ! names the window, not buf
//! x = buf                                  ! may be moved before the completion, or use a register from before it
//! ```
//!
//! It is the hazard of a nonblocking receive (FR02) with another call at its end: MPI_WIN_COMPLETE, a fence, MPI_WIN_UNLOCK,
//! a flush, or MPI_WAIT for MPI_RGET. The standard allows it to break and no compiler tried did so in the plain shape: a
//! warning. Code that is right by luck of one compiler is not portable.
//!
//! There is one finding per buffer and program unit, at the first read, with the number of places.
//!
//! ## What to do
//!
//! - With `mpif.h`: COMMON, a module variable, or an opaque call with `buf` after the completing call (FR13):
//!
//!   ```fortran
//!   call MPI_WIN_COMPLETE(win, ierror)
//!   call sync(buf)
//!   x = buf
//!   ```
//!
//! - With `use mpi`: ASYNCHRONOUS, on the dummy argument and in the caller where it is one.
//! - With `use mpi_f08`: ASYNCHRONOUS, or MPI_F_SYNC_REG(buf) after the completing call.
//! - VOLATILE, at the price of every access.

use super::behind::{self, Access};
use super::repair::{self, Place};
use super::support::{
    OnDummy, Side, explain, finding, is_load, level, others, propose, relate, relate_declaration, shown,
    without_attempts,
};
use crate::dataflow::Analysis;
use crate::finding::{Finding, Level};
use crate::parse::Symbol;

pub(super) fn check(a: &Analysis<'_>, out: &mut Vec<Finding>) {
    let reads = behind::by_buffer(
        a,
        |operation| operation.is_transfer && operation.direction.writes() && a.is_unsafe(operation.variable),
        |operation, event| is_load(a, event, operation.memory()),
        |operation, event| a.shields_load(event, operation.memory()),
    );
    for (variable, reads) in reads {
        out.extend(report(a, variable, &reads));
    }
}

fn report(a: &Analysis<'_>, variable: Symbol, reads: &[Access]) -> Option<Finding> {
    let reads = without_attempts(a, reads, |read| read.event);
    let &Access { event: first, operation, end } = reads.first()?;
    let message = format!(
        "`{}` is read after {}, which does not name it: the read may be moved before the completion of the get{}",
        a.name(variable),
        shown(a, end),
        others(reads.len() - 1),
    );
    let span = a.events[first as usize].span;
    let mut found =
        finding(a, "FR06", level(a, variable, Level::Warning, OnDummy::Keep), variable, span, message);
    let got = &a.calls[operation.call as usize];
    relate(&mut found, got.span, format!("{} names the buffer for the last time", shown(a, operation.call)));
    relate(&mut found, a.calls[end as usize].span, "the value has come when this returns".to_string());
    relate_declaration(a, &mut found, variable);
    explain(a, &mut found, variable, Side::Load, got.event);
    propose(a, &mut found, variable, "between the completing call and the read");
    repair::call(a, &mut found, Place::Behind(a.calls[end as usize].span));
    Some(found)
}
