//! # FR12: remedy-outside-standard
//!
//! A buffer is protected by something that the language standard asked for (`--std`) does not promise: VOLATILE and
//! ASYNCHRONOUS came with Fortran 2003, ASYNCHRONOUS meant input and output only before Fortran 2018, and of module variables
//! no standard says anything. Never reported for COMMON or opaque calls, and never more than a note.
//!
//! ## What happens
//!
//! ```fortran
//! REAL BUF(100)
//! VOLATILE BUF                             ! no Fortran 77, 90 or 95
//! ```
//!
//! Most compilers took VOLATILE as an extension long before, and those that do not refuse the program, so that no wrong
//! value can come of it: a note. VOLATILE also costs: every access goes to memory, which made stencil loops two to four
//! times slower.
//!
//! ASYNCHRONOUS protects the buffers of MPI with compilers that are much older than Fortran 2018. A module variable can be
//! reached by every procedure that the compiler does not see, as COMMON can, and no compiler was seen to think otherwise. It
//! might, for a PRIVATE variable of a module that it sees all users of: then it is no safer than COMMON is with FR11.
//!
//! ## What to do
//!
//! - With `mpif.h`: COMMON, which every standard has:
//!
//!   ```fortran
//!   REAL BUF(100)
//!   COMMON /EXCHANGE/ BUF
//!   ```
//!
//! - With `use mpi` and `use mpi_f08`: a later standard, and ASYNCHRONOUS, also on a module variable.
//! - An opaque call with the buffer.
//! - Nothing: a note says what the program relies on, and `--min-level warning` leaves it out.

use super::support::finding;
use crate::dataflow::{Analysis, Phase};
use crate::finding::{Finding, Level};
use crate::model::{Resolved, Storage};
use crate::options::Standard;
use crate::parse::Attributes;

pub(super) fn check(a: &Analysis<'_>, out: &mut Vec<Finding>) {
    let operations =
        a.operations.iter().filter(|operation| operation.phase != Phase::Call || operation.place.is_none());
    let buffers = operations
        .map(|operation| (operation.variable, operation.call))
        .chain(a.windows.iter().map(|window| (window.variable, window.call)));
    for (variable, call) in buffers {
        let name = a.name(variable);
        let resolved = a.resolve(variable);
        let Some((what, remedies)) = limit(&resolved, a.file.options.standard, name) else { continue };
        if out.iter().any(|other| other.rule == "FR12" && other.variable == name) {
            continue;
        }
        // A variable of a module that is elsewhere: the call.
        let span = resolved.declared.unwrap_or(a.calls[call as usize].span);
        let mut found =
            finding(a, "FR12", Level::Note, variable, span, format!("`{name}` is protected {what}"));
        found.remedies = remedies;
        out.push(found);
    }
}

/// What is not promised of the only thing that protects a variable, and what is better.
fn limit(resolved: &Resolved, standard: Standard, name: &str) -> Option<(&'static str, Vec<String>)> {
    let common = || format!("put `{name}` in a COMMON block");
    let has = |attribute: Attributes| resolved.attributes.has(attribute);
    if resolved.storage == Storage::Common {
        return None;
    }
    if has(Attributes::VOLATILE) {
        let is_young = standard < Standard::F2003 && resolved.declared.is_some();
        return is_young.then(|| {
            let later = "ask for a later standard: --std f2003".to_string();
            ("by VOLATILE, which the standard asked for does not have", vec![common(), later])
        });
    }
    if has(Attributes::ASYNCHRONOUS) {
        // Before that it is no remedy at all.
        let is_narrow =
            Standard::F2003 <= standard && standard < Standard::F2018 && resolved.declared.is_some();
        return is_narrow.then(|| {
            let what = "by ASYNCHRONOUS, which the standard asked for promises for input and output only";
            (what, vec![common(), "ask for a later standard: --std f2018".to_string()])
        });
    }
    (resolved.storage == Storage::Module).then(|| {
        let what = "as a module variable, as it would be in COMMON: compilers hold to it, and no standard promises it";
        (what, vec![format!("declare `{name}` ASYNCHRONOUS in its module")])
    })
}
