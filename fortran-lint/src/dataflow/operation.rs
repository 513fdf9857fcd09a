//! The operations that a unit starts on its variables, and the windows that it makes. Never decides what is safe.

use super::Analysis;
use super::event::{By, Call, Event, EventKind, PassedTo};
use super::handle::may_concern;
use crate::mpi::{Class, Direction, Part};
use crate::parse::{ExprId, ExprKind, StatementKind, Symbol};

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

/// Memory that a call was given, or that a datatype hides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    /// The variable.
    pub variable: Symbol,
    /// The part of it that the call names; `None` stands for all of it.
    pub place: Option<ExprId>,
}

impl Memory {
    /// All of a variable.
    pub fn whole(variable: Symbol) -> Memory {
        Memory { variable, place: None }
    }
}

impl Operation {
    /// What it works on.
    pub fn memory(&self) -> Memory {
        Memory { variable: self.variable, place: self.place }
    }
}

impl Window {
    /// What it opens.
    pub fn memory(&self) -> Memory {
        Memory { variable: self.variable, place: Some(self.place) }
    }
}

impl Analysis<'_> {
    /// Whether an event touches memory, perhaps: elements of one array go together, other components of an object are
    /// other memory.
    pub fn concerns(&self, event: &Event, memory: Memory) -> bool {
        event.variable() == Some(memory.variable)
            && match (event.place(), memory.place) {
                (Some(one), Some(other)) => may_concern(self.file.tree, one, other),
                _ => true,
            }
    }

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
                        && !self.has_no_elements(call, place)
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
                if self.has_no_elements(call, arg) {
                    continue;
                }
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

    /// Whether a buffer, or the memory of a window, certainly has no elements: the count or the size behind it is zero.
    pub fn has_no_elements(&self, call: &Call, buffer: ExprId) -> bool {
        let Some(procedure) = call.procedure else { return false };
        let Some(at) = call.args.iter().position(|arg| *arg == Some(buffer)) else { return false };
        let is_count = procedure
            .arguments
            .get(at + 1)
            .is_some_and(|next| next.keyword.ends_with("count") || next.keyword == "size");
        is_count && call.args.get(at + 1).copied().flatten().is_some_and(|count| self.is_zero(count))
    }

    /// Whether a number is zero wherever it is used: a literal, or a variable that is given nothing else.
    fn is_zero(&self, number: ExprId) -> bool {
        let tree = self.file.tree;
        let ExprKind::Name(name) = tree.expr(number).kind else { return tree.int(number) == Some(0) };
        let mut is_assigned = false;
        for node in &self.flow.nodes {
            let Some(statement) = node.statement else { continue };
            if let StatementKind::Assignment { target, value } = tree.statements[statement as usize].kind
                && tree.root(target) == Some(name)
            {
                if tree.int(value) != Some(0) {
                    return false;
                }
                is_assigned = true;
            }
        }
        // Nobody else writes it: it is handed to calls that look at a count or a size, and to no others.
        is_assigned
            && self.events.iter().filter(|event| event.variable() == Some(name)).all(|event| {
                match event.kind {
                    EventKind::Write { by, .. } => by == By::Statement,
                    EventKind::Pass { to: PassedTo::Library(call, Part::Other), .. } => matches!(
                        self.class_of(call),
                        Some(
                            Class::Blocking
                                | Class::Nonblocking
                                | Class::Persistent
                                | Class::Transfer
                                | Class::WinCreate
                        )
                    ),
                    EventKind::Pass { .. } => false,
                    _ => true,
                }
            })
    }

    /// The variable that an actual argument names, unless it is a constant of the library.
    fn variable_of(&self, arg: ExprId) -> Option<Symbol> {
        let root = self.file.tree.root(arg)?;
        let name = self.file.tree.symbols.name(root);
        (!crate::mpi::is_library_name(name)).then(|| self.alias_of(root))
    }
}
