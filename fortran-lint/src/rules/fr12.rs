//! # FR12: volatile-outside-standard
//!
//! A buffer is protected by VOLATILE, and the language standard that was asked for (`--std`) has no VOLATILE: it came with
//! Fortran 2003. Never reported for other remedies, or from `--std f2003` on.
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
//! ## What to do
//!
//! - With `mpif.h`: COMMON, which every standard has:
//!
//!   ```fortran
//!   REAL BUF(100)
//!   COMMON /EXCHANGE/ BUF
//!   ```
//!
//! - With `use mpi`: a module variable; with `use mpi_f08`: a later standard, and ASYNCHRONOUS.
//! - An opaque call with the buffer.

use super::support::finding;
use crate::dataflow::{Analysis, Phase};
use crate::finding::{Finding, Level};
use crate::options::Standard;
use crate::parse::{Attributes, Symbol};

pub(super) fn check(a: &Analysis<'_>, out: &mut Vec<Finding>) {
    if a.file.options.standard >= Standard::F2003 {
        return;
    }
    let open =
        a.operations.iter().filter(|operation| operation.phase != Phase::Call || operation.place.is_none());
    let buffers =
        open.map(|operation| operation.variable).chain(a.windows.iter().map(|window| window.variable));
    let mut done: Vec<Symbol> = Vec::new();
    for variable in buffers {
        let resolved = a.resolve(variable);
        let Some(declared) = resolved.declared else { continue };
        if done.contains(&variable) || !resolved.attributes.has(Attributes::VOLATILE) {
            continue;
        }
        done.push(variable);
        let message = format!(
            "`{}` is protected by VOLATILE, which the standard asked for does not have",
            a.name(variable)
        );
        let mut found = finding(a, "FR12", Level::Note, variable, declared, message);
        found.remedies.push(format!("put `{}` in a COMMON block", a.name(variable)));
        found.remedies.push("ask for a later standard: --std f2003".to_string());
        out.push(found);
    }
}
