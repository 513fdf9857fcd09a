//! # FR11: common-hidden-from-wrapper
//!
//! A buffer is protected by COMMON only because a library procedure could use the block. The call that finishes its
//! operation is that of a procedure of the sources, which does not declare the block and calls nobody who does: a compiler
//! that looks into it may conclude that the buffer does not change. Never reported where the procedure declares the block,
//! or is not in the sources.
//!
//! ## What happens
//!
//! ```fortran
//! common /exchange/ buf
//! call MPI_IRECV(buf, n, MPI_REAL, 0, 7, comm, request, ierror)
//! call my_wait(request)                    ! in the sources, without COMMON /exchange/
//! x = buf(1)                               ! may be a register from before
//! ```
//!
//! No compiler tried did so, since MPI_WAIT inside `my_wait` could use the block: a warning. Code that is right by luck of
//! one compiler is not portable.
//!
//! ## What to do
//!
//! - With `mpif.h`: declare the block in the procedure, too, or keep the procedure out of the optimiser's sight:
//!
//!   ```fortran
//!   subroutine my_wait(request)
//!   common /exchange/ buf
//!   ```
//!
//! - With `use mpi` and `use mpi_f08`: ASYNCHRONOUS for the buffer.
//! - An opaque call with the buffer behind the wrapper.

use super::repair;
use super::support::{finding, is_load, relate, relate_declaration, shown};
use crate::dataflow::{Analysis, Memory, Phase, Step};
use crate::finding::{Finding, Level};
use crate::model::Storage;
use crate::mpi::Class;
use crate::parse::{Attributes, Symbol};

pub(super) fn check(a: &Analysis<'_>, out: &mut Vec<Finding>) {
    for operation in &a.operations {
        if operation.phase == Phase::Call || !operation.direction.writes() {
            continue;
        }
        let ends = a.ends(operation);
        check_ends(a, operation.memory(), &ends, out);
    }
    for window in &a.windows {
        let created = a.calls[window.call as usize].event;
        let ends = a.calls_behind(created, |call| {
            call.procedure.is_some_and(|procedure| procedure.class != Class::Barrier)
                && a.synchronizes(call, window)
        });
        check_ends(a, window.memory(), &ends, out);
    }
}

fn check_ends(a: &Analysis<'_>, memory: Memory, ends: &[u32], out: &mut Vec<Finding>) {
    let variable = memory.variable;
    let Some(block) = block_of(a, variable) else { return };
    for &end in ends {
        let Some((caller, _)) = a.calls[end as usize].within else { continue };
        let callee = a.calls[caller as usize].callee;
        let Some(summary) = callee.and_then(|callee| a.file.program.summaries.get(&callee)) else { continue };
        if summary.blocks.iter().any(|own| **own == *block) {
            continue;
        }
        let mut read = None;
        a.walk(a.calls[end as usize].event, |i, event| {
            if a.shields_load(event, memory) {
                return Step::Stop;
            }
            if is_load(a, event, memory) {
                read.get_or_insert(i);
            }
            Step::On
        });
        let Some(read) = read else { continue };
        let span = a.calls[end as usize].span;
        let name = a.name(variable);
        let message = format!(
            "{} does not declare COMMON /{block}/, so that a compiler that looks into it may take `{name}` for unchanged",
            shown(a, end)
        );
        let mut found = finding(a, "FR11", Level::Warning, variable, span, message);
        relate(
            &mut found,
            a.events[read as usize].span,
            "this read may give the value from before".to_string(),
        );
        relate_declaration(a, &mut found, variable);
        found.remedies.push(format!("declare COMMON /{block}/ in {} as well", shown(a, end)));
        if repair::has_attributes(a) {
            found.remedies.push(format!("declare `{name}` VOLATILE"));
        }
        if !out
            .iter()
            .any(|other| other.rule == "FR11" && other.span == span && other.variable == found.variable)
        {
            out.push(found);
        }
    }
}

/// The block that is all that protects the variable.
fn block_of<'a>(a: &Analysis<'a>, variable: Symbol) -> Option<&'a str> {
    let resolved = a.resolve(variable);
    let is_protected_otherwise =
        resolved.attributes.has(Attributes::VOLATILE) || resolved.attributes.has(Attributes::ASYNCHRONOUS);
    if resolved.storage != Storage::Common || is_protected_otherwise {
        return None;
    }
    let place = resolved.variable.as_ref()?.common_place?;
    Some(place.block.map_or("", |block| a.name(block)))
}
