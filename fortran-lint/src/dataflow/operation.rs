//! The operations that a unit starts on its variables, and the windows that it makes. Never decides what is safe.

use super::Analysis;
use crate::mpi::{Class, Direction, Part};
use crate::parse::{ExprId, Symbol};

/// What ends an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Handle {
    /// A finishing call on this request.
    Request(ExprId),
    /// A synchronization of this window.
    Window(ExprId),
    /// It has ended when the call returns.
    None,
}

/// When the library works on the buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// During the call only.
    Call,
    /// From the call on, until its handle is waited for.
    FromCall,
    /// From each start of its request on.
    FromStart,
}

/// One operation on one variable.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// The call.
    pub call: u32,
    /// The variable.
    pub variable: Symbol,
    /// The actual argument; `None` when a datatype hides it.
    pub place: Option<ExprId>,
    /// Which way data goes.
    pub direction: Direction,
    /// When.
    pub phase: Phase,
    /// What ends it.
    pub handle: Handle,
    /// It moves data to or from a window.
    pub is_transfer: bool,
    /// It offers memory to others.
    pub is_offer: bool,
    /// What the call names instead, when a datatype reaches the variable from there.
    pub anchor: Option<ExprId>,
}

/// Memory opened to others by this unit.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// The creating call.
    pub call: u32,
    /// The variable.
    pub variable: Symbol,
    /// The actual argument.
    pub place: ExprId,
    /// The window.
    pub handle: ExprId,
}

impl Analysis<'_> {
    pub(super) fn find_operations(&self) -> (Vec<Operation>, Vec<Window>) {
        let mut operations = Vec::new();
        let mut windows = Vec::new();
        for (id, call) in self.calls.iter().enumerate() {
            let Some(procedure) = call.procedure else { continue };
            let request = call.part(Part::Request);
            let window = call.part(Part::Win);
            let phase = match procedure.class {
                Class::Blocking | Class::Offer => Phase::Call,
                Class::Nonblocking | Class::Transfer => Phase::FromCall,
                Class::Persistent | Class::Partitioned => Phase::FromStart,
                Class::WinCreate => {
                    if let (Some(place), Some(handle)) = (call.part(Part::Window), window)
                        && let Some(variable) = self.variable_of(place)
                    {
                        windows.push(Window { call: id as u32, variable, place, handle });
                    }
                    continue;
                }
                _ => continue,
            };
            let handle = match (procedure.class, request, window) {
                (Class::Transfer, None, Some(window)) => Handle::Window(window),
                (_, Some(request), _) => Handle::Request(request),
                _ => Handle::None,
            };
            let make = |variable, place, direction| Operation {
                call: id as u32,
                variable,
                place,
                direction,
                phase,
                handle,
                is_transfer: procedure.class == Class::Transfer,
                is_offer: procedure.name.starts_with("pgo_ioffer"),
                anchor: None,
            };
            for (position, (part, arg)) in call.parts().enumerate() {
                let Part::Buffer(direction) = part else { continue };
                // A started partitioned send leaves each part to the program until that part is handed over.
                if procedure.class == Class::Partitioned && direction == Direction::In {
                    continue;
                }
                for &hidden in self.hidden.of(id as u32, position) {
                    operations.push(make(hidden, None, direction));
                }
                for &hidden in self.hidden.anchored(id as u32, position) {
                    operations.push(Operation { anchor: Some(arg), ..make(hidden, None, direction) });
                }
                if let Some(variable) = self.variable_of(arg) {
                    operations.push(make(variable, Some(arg), direction));
                }
            }
        }
        (operations, windows)
    }

    /// The variable that an actual argument names, unless it is a constant of the library.
    fn variable_of(&self, arg: ExprId) -> Option<Symbol> {
        let root = self.file.tree.root(arg)?;
        let name = self.file.tree.symbols.name(root);
        (!crate::mpi::is_library_name(name)).then(|| self.alias_of(root))
    }
}
