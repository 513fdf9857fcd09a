//! What the rules about the end of an operation share: the accesses to its buffer behind the calls that end it. Never
//! decides which operations or accesses are meant.

use crate::dataflow::{Analysis, Event, Operation, Step};
use crate::parse::Symbol;

/// An access to a buffer behind the end of an operation on it.
#[derive(Clone, Copy)]
pub(super) struct Access {
    /// Its event.
    pub(super) event: u32,
    /// The operation.
    pub(super) operation: Operation,
    /// The call that ends it.
    pub(super) end: u32,
}

/// The accesses that are wanted, by buffer, in the order in which the buffers are first used. A way ends where `stops` says
/// so. Each access stands there once, for the first operation that leads to it.
pub(super) fn by_buffer(
    a: &Analysis<'_>,
    is_meant: impl Fn(&Operation) -> bool,
    is_wanted: impl Fn(&Operation, &Event) -> bool,
    stops: impl Fn(&Operation, &Event) -> bool,
) -> Vec<(Symbol, Vec<Access>)> {
    let mut buffers: Vec<(Symbol, Vec<Access>)> = Vec::new();
    for operation in a.operations.iter().filter(|operation| is_meant(operation)) {
        let at = match buffers.iter().position(|(variable, _)| *variable == operation.variable) {
            Some(at) => at,
            None => {
                buffers.push((operation.variable, Vec::new()));
                buffers.len() - 1
            }
        };
        let known = &mut buffers[at].1;
        for end in a.ends(operation) {
            for event in behind(a, end, |event| is_wanted(operation, event), |event| stops(operation, event))
            {
                if known.iter().all(|access| access.event != event) {
                    known.push(Access { event, operation: *operation, end });
                }
            }
        }
    }
    buffers
}

/// The wanted events behind a call, nearest first.
pub(super) fn behind(
    a: &Analysis<'_>,
    call: u32,
    is_wanted: impl Fn(&Event) -> bool,
    stops: impl Fn(&Event) -> bool,
) -> Vec<u32> {
    let mut found = Vec::new();
    a.walk(a.calls[call as usize].event, |i, event| {
        if stops(event) {
            return Step::Stop;
        }
        if is_wanted(event) {
            found.push(i);
        }
        Step::On
    });
    found
}
