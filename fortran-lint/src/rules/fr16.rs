//! # FR16: temporary-as-buffer
//!
//! A nonblocking, persistent, split-collective or window call is given something that the compiler must copy into a
//! temporary: the library then works on memory that is gone. Never reported for contiguous sections, for first elements,
//! for constants of the library such as MPI_BOTTOM and MPI_IN_PLACE, and for sections with `use mpi_f08`, whose
//! interfaces take them as they are.
//!
//! ## What happens
//!
//! ```fortran
//! call MPI_IRECV(a(3,:), n, MPI_REAL, 0, 7, comm, request, ierror)   ! a row: its elements lie apart
//! ```
//!
//! The row is packed into a temporary, MPI_IRECV returns, the temporary is copied back and freed, and then the message
//! arrives in it. This is wrong at -O0 too, with every compiler. The same happens to `(x)`, to expressions, function
//! results and constants, to vector subscripts with every binding, and to an assumed-shape dummy argument whose actual
//! argument has gaps.
//!
//! ## What to do
//!
//! - A derived datatype that describes the row, and the first element as the buffer.
//! - `use mpi_f08`, where MPI_SUBARRAYS_SUPPORTED is true.
//! - CONTIGUOUS for an assumed-shape dummy argument: then the caller packs before the call and not around it, so check
//!   the callers.
//! - A copy by hand that lives until the operation has finished.

use rma_source::FileId;

use super::support::{relate, shown};
use crate::dataflow::{Analysis, is_intrinsic};
use crate::finding::{Finding, Level};
use crate::mpi::{Binding, Class, Part, is_library_name};
use crate::parse::{Attributes, ExprId, ExprKind, List, Symbol};

/// What the compiler copies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Temporary {
    Section,
    Vector,
    Expression,
    Parenthesis,
    Function,
    Constant,
    AssumedShape,
}

pub(super) fn check(a: &Analysis<'_>, out: &mut Vec<Finding>) {
    for id in 0..a.calls.len() as u32 {
        let outlives = matches!(
            a.class_of(id),
            Some(
                Class::Nonblocking
                    | Class::Persistent
                    | Class::Partitioned
                    | Class::Split
                    | Class::Transfer
                    | Class::WinCreate
                    | Class::Attach
            )
        );
        if !outlives {
            continue;
        }
        for (part, arg) in a.calls[id as usize].parts() {
            if !matches!(part, Part::Buffer(_) | Part::Window | Part::Attached)
                || a.has_no_elements(&a.calls[id as usize], arg)
            {
                continue;
            }
            if let Some(temporary) = temporary(a, id, arg)
                && !out.iter().any(|other| other.rule == "FR16" && other.span == a.calls[id as usize].span)
            {
                out.push(report(a, id, arg, temporary));
            }
        }
    }
}

fn temporary(a: &Analysis<'_>, call: u32, arg: ExprId) -> Option<Temporary> {
    let tree = a.file.tree;
    match tree.expr(arg).kind {
        ExprKind::Literal(_) | ExprKind::Complex(..) => Some(Temporary::Constant),
        ExprKind::Operation { .. } | ExprKind::Array(_) => Some(Temporary::Expression),
        ExprKind::Paren(_) => Some(Temporary::Parenthesis),
        ExprKind::Name(name) => {
            let resolved = a.resolve(name);
            if is_library_name(a.name(name)) {
                None
            } else if resolved.attributes.has(Attributes::PARAMETER) {
                Some(Temporary::Constant)
            } else {
                is_spread(a, call, arg, name).then_some(Temporary::AssumedShape)
            }
        }
        ExprKind::Reference { base, args } => {
            if let ExprKind::Name(name) = tree.expr(base).kind {
                let resolved = a.resolve(name);
                let is_function = match &resolved.variable {
                    Some(variable) => {
                        variable.shape.is_none() && !variable.is_character && !variable.is_dummy
                    }
                    None => is_intrinsic(a.name(name)) || a.file.program.procedures.has(a.name(name)),
                };
                if is_function {
                    return Some(Temporary::Function);
                }
            }
            if has_vector(a, args) {
                return Some(Temporary::Vector);
            }
            if let ExprKind::Name(name) = tree.expr(base).kind
                && is_spread(a, call, arg, name)
                && tree.list(args).iter().any(|&arg| matches!(tree.expr(arg).kind, ExprKind::Section { .. }))
            {
                return Some(Temporary::AssumedShape);
            }
            let is_section = has_gaps(a, base, args) || inner_section(a, base);
            (is_section && copies_sections(a, call, arg)).then_some(Temporary::Section)
        }
        // A component of a section: its elements lie apart.
        ExprKind::Component { base, .. } => {
            (inner_section(a, base) && copies_sections(a, call, arg)).then_some(Temporary::Section)
        }
        _ => None,
    }
}

/// Whether the variable is a dummy array whose elements may lie apart, and the binding packs it.
fn is_spread(a: &Analysis<'_>, call: u32, arg: ExprId, name: Symbol) -> bool {
    let resolved = a.resolve(name);
    copies_sections(a, call, arg)
        && resolved.is_assumed_shape(a.file.tree)
        && !resolved.attributes.has(Attributes::CONTIGUOUS)
}

/// Whether sections are handed over as copies: by the binding, or by a procedure of the program whose dummy argument has
/// no room for gaps.
fn copies_sections(a: &Analysis<'_>, call: u32, arg: ExprId) -> bool {
    match a.dummy_at(call, arg) {
        Some(dummy) => !dummy.is_spread,
        None => a.binding != Binding::F08,
    }
}

fn has_vector(a: &Analysis<'_>, args: List) -> bool {
    let tree = a.file.tree;
    tree.list(args).iter().any(|&arg| match tree.expr(arg).kind {
        ExprKind::Name(name) => a.resolve(name).is_array(),
        ExprKind::Array(_) => true,
        _ => false,
    })
}

/// Whether a parent object is a section already.
fn inner_section(a: &Analysis<'_>, base: ExprId) -> bool {
    let tree = a.file.tree;
    match tree.expr(base).kind {
        ExprKind::Reference { base, args } => {
            tree.list(args).iter().any(|&arg| matches!(tree.expr(arg).kind, ExprKind::Section { .. }))
                || inner_section(a, base)
        }
        ExprKind::Component { base, .. } => inner_section(a, base),
        _ => false,
    }
}

/// Whether the elements of a section certainly lie apart: a step, or a range behind which another one follows that the
/// range does not fill.
fn has_gaps(a: &Analysis<'_>, base: ExprId, args: List) -> bool {
    let tree = a.file.tree;
    let bounds = match tree.expr(base).kind {
        ExprKind::Name(name) => a.resolve(name).variable.as_ref().and_then(|variable| variable.shape),
        _ => None,
    };
    let mut is_partial = false;
    for (k, &arg) in tree.list(args).iter().enumerate() {
        match tree.expr(arg).kind {
            ExprKind::Section { low, high, stride } => {
                if stride.is_some_and(|stride| tree.int(stride) != Some(1)) || is_partial {
                    return true;
                }
                let declared = bounds.and_then(|bounds| tree.list(bounds).get(k).copied());
                is_partial = match fills(a, low, high, declared) {
                    Some(fills) => !fills,
                    // Not known, so that nothing is said.
                    None => return false,
                };
            }
            // One element of this dimension: ranges behind it jump.
            _ => is_partial = true,
        }
    }
    false
}

/// Whether a range covers its dimension; `None` when the bounds are not written down.
fn fills(
    a: &Analysis<'_>,
    low: Option<ExprId>,
    high: Option<ExprId>,
    declared: Option<ExprId>,
) -> Option<bool> {
    let tree = a.file.tree;
    if low.is_none() && high.is_none() {
        return Some(true);
    }
    let (first, last) = match tree.expr(declared?).kind {
        ExprKind::Section { low, high, .. } => (low, high?),
        ExprKind::Star | ExprKind::Missing => return None,
        _ => (None, declared?),
    };
    let same = |one: Option<ExprId>, other: Option<ExprId>| match (one, other) {
        (None, _) => true,
        (Some(one), Some(other)) => tree.same(one, other),
        (Some(one), None) => tree.int(one) == Some(1),
    };
    Some(same(low, first) && high.is_none_or(|high| tree.same(high, last)))
}

fn report(a: &Analysis<'_>, call: u32, arg: ExprId, temporary: Temporary) -> Finding {
    let tree = a.file.tree;
    let what = match temporary {
        Temporary::Section => "a section whose elements lie apart",
        Temporary::Vector => "an array with a vector subscript",
        Temporary::Expression => "an expression",
        Temporary::Parenthesis => "a variable in parentheses, which is an expression,",
        Temporary::Function => "a function result",
        Temporary::Constant => "a constant",
        Temporary::AssumedShape => "an assumed-shape dummy argument, whose elements may lie apart,",
    };
    let name = tree.root(arg).map(|root| a.name(root).to_string()).unwrap_or_default();
    let message = format!(
        "{what} is given to {}: the library works on a temporary that is gone when the call returns",
        shown(a, call)
    );
    let span = a.calls[call as usize].span;
    let mut found = Finding {
        rule: "FR16",
        level: Level::Error,
        span,
        file: FileId(0),
        label: "",
        message,
        variable: name,
        because: Vec::new(),
        related: Vec::new(),
        remedies: Vec::new(),
        repairs: Vec::new(),
    };
    relate(&mut found, tree.span(arg), "this is copied".to_string());
    if let Some(declared) = tree.root(arg).and_then(|root| a.resolve(root).declared) {
        relate(&mut found, declared, "declared here".to_string());
    }
    match temporary {
        Temporary::Section => {
            found
                .remedies
                .push("describe the section by a derived datatype and pass its first element".to_string());
            found.remedies.push(
                "copy it by hand into a contiguous array that lives until the operation has finished"
                    .to_string(),
            );
            found.remedies.push("use mpi_f08, where MPI_SUBARRAYS_SUPPORTED is true".to_string());
        }
        Temporary::AssumedShape => {
            found.remedies.push(
                "declare the dummy argument CONTIGUOUS and check that the callers pass contiguous arrays"
                    .to_string(),
            );
            found
                .remedies
                .push("declare the dummy argument with assumed size, and check the callers".to_string());
        }
        _ => found
            .remedies
            .push("pass a named variable that lives until the operation has finished".to_string()),
    }
    found
}
