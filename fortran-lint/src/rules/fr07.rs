//! # FR07: store-moved-before-completion
//!
//! The origin buffer of a put, of an accumulate or of a nonblocking send is assigned after the call that completes the
//! operation, and that call does not name the buffer: the compiler may move the store before it, and the operation sends
//! the new value. Never reported for variables in COMMON or in a module, for VOLATILE and ASYNCHRONOUS variables, or where
//! a call with the buffer as its argument stands between the two.
//!
//! ## What happens
//!
//! ```fortran
//! call MPI_PUT(buf, 1, MPI_REAL, 1, disp, 1, MPI_REAL, win, ierror)
//! call MPI_WIN_COMPLETE(win, ierror)       ! names the window, not buf
//! buf = 0.0                                ! may be moved before the completion, while the put still reads buf
//! ```
//!
//! The standard allows it to break and no compiler tried did so: a warning. Code that is right by luck of one compiler is
//! not portable. A persistent send, which reads its buffer at each start, is FR05.
//!
//! There is one finding per buffer and program unit, at the first store, with the number of places.
//!
//! ## What to do
//!
//! - With `mpif.h`: COMMON, a module variable, or an opaque call with `buf` before it is used again (FR13):
//!
//!   ```fortran
//!   call MPI_WIN_COMPLETE(win, ierror)
//!   call sync(buf)
//!   buf = 0.0
//!   ```
//!
//! - With `use mpi`: ASYNCHRONOUS, on the dummy argument and in the caller where it is one.
//! - With `use mpi_f08`: ASYNCHRONOUS, or MPI_F_SYNC_REG(buf) before the store.
//! - VOLATILE, at the price of every access.

use super::behind::{self, Access};
use super::repair::{self, Place};
use super::support::{
    OnDummy, Side, explain, finding, is_store, level, others, propose, relate, relate_declaration, shown,
};
use crate::dataflow::{Analysis, Phase};
use crate::finding::{Finding, Level};
use crate::parse::Symbol;

pub(super) fn check(a: &Analysis<'_>, out: &mut Vec<Finding>) {
    let stores = behind::by_buffer(
        a,
        |operation| {
            let only_reads = operation.direction.reads() && !operation.direction.writes();
            let is_named = operation.place.is_some() && operation.phase == Phase::FromCall;
            only_reads && is_named && a.is_unsafe(operation.variable)
        },
        |operation, event| is_store(a, event, operation.memory()),
        |operation, event| a.shields_store(event, operation.memory()),
    );
    for (variable, stores) in stores {
        out.extend(report(a, variable, stores));
    }
}

fn report(a: &Analysis<'_>, variable: Symbol, mut stores: Vec<Access>) -> Option<Finding> {
    stores.sort_by_key(|store| store.event);
    let &Access { event: first, operation, end } = stores.first()?;
    let starter = shown(a, operation.call);
    let message = format!(
        "`{}` is assigned after {}, which does not name it: the store may be moved before it, while {starter} still reads{}",
        a.name(variable),
        shown(a, end),
        others(stores.len() - 1),
    );
    let span = a.events[first as usize].span;
    let mut found =
        finding(a, "FR07", level(a, variable, Level::Warning, OnDummy::Keep), variable, span, message);
    let started = &a.calls[operation.call as usize];
    relate(&mut found, started.span, format!("{starter} names the buffer for the last time"));
    relate(&mut found, a.calls[end as usize].span, "the buffer is free again when this returns".to_string());
    relate_declaration(a, &mut found, variable);
    explain(a, &mut found, variable, Side::Load, started.event);
    propose(a, &mut found, variable, "between the completing call and the store");
    repair::call(a, &mut found, Place::Behind(a.calls[end as usize].span));
    Some(found)
}
