//! Which calls end an operation, and which synchronize a window. Never says in what state anything is.

use super::event::{Call, EventKind};
use super::handle::may_concern;
use super::operation::{Handle, Operation, Phase, Window};
use super::{Analysis, Step};
use crate::mpi::{Class, Part};
use crate::parse::{ExprId, ExprKind};
use crate::program::Certainty;

impl Analysis<'_> {
    /// All calls of a class that can happen behind an event.
    pub fn calls_behind(&self, from: u32, wanted: impl Fn(&Call) -> bool) -> Vec<u32> {
        let mut found = Vec::new();
        self.walk(from, |_, event| {
            if let EventKind::Call(call) = event.kind
                && wanted(&self.calls[call as usize])
            {
                found.push(call);
            }
            Step::On
        });
        found
    }

    /// Whether two handles can be the same.
    pub fn may_be_same(&self, one: ExprId, other: ExprId) -> bool {
        self.copies.may_be_same(self.file.tree, one, other)
    }

    /// Whether a call ends an operation, perhaps.
    pub fn finishes(&self, call: &Call, operation: &Operation) -> bool {
        let Some(procedure) = call.procedure else { return false };
        match operation.handle {
            Handle::Request(request) => {
                matches!(procedure.class, Class::Finish | Class::FinishSome | Class::Test)
                    && call
                        .parts()
                        .filter(|(part, _)| matches!(part, Part::Request | Part::Requests))
                        .any(|(_, own)| self.may_be_same(own, request))
            }
            Handle::Window(window) => {
                let ends = matches!(
                    procedure.class,
                    Class::Fence | Class::Complete | Class::Unlock | Class::Flush | Class::WinFree
                );
                let names_window = call.part(Part::Win).is_some_and(|own| self.may_be_same(own, window));
                // The barrier of the proposal is one for all windows.
                let is_window_barrier =
                    procedure.class == Class::Barrier && self.name(call.name).starts_with("rma_");
                (ends && names_window) || is_window_barrier
            }
            Handle::None => operation.is_transfer && self.ends_events(call, procedure.class),
        }
    }

    /// Whether a call completes the caller's own events of Put/Get/Offer: an offer, or the wait for one.
    fn ends_events(&self, call: &Call, class: Class) -> bool {
        let requests = || call.parts().filter(|(part, _)| matches!(part, Part::Request | Part::Requests));
        let is_of_offer = |request: ExprId| {
            self.operations.iter().any(|other| {
                other.is_offer
                    && matches!(other.handle, Handle::Request(own) if self.may_be_same(own, request))
            })
        };
        match class {
            Class::Offer => true,
            Class::Finish | Class::FinishSome | Class::Test => {
                requests().any(|(_, request)| is_of_offer(request))
            }
            _ => false,
        }
    }

    /// Whether a call synchronizes a window.
    pub fn synchronizes(&self, call: &Call, window: &Window) -> bool {
        let Some(procedure) = call.procedure else { return false };
        match procedure.class {
            Class::Barrier => true,
            Class::Fence
            | Class::Post
            | Class::Access
            | Class::Complete
            | Class::Wait
            | Class::WaitTest
            | Class::Lock
            | Class::Unlock
            | Class::Flush
            | Class::WinSync => call.part(Part::Win).is_some_and(|own| self.may_be_same(own, window.handle)),
            _ => false,
        }
    }

    /// Whether a call takes memory out of its window: it frees the window, or detaches the memory.
    pub fn closes(&self, call: u32, window: &Window) -> bool {
        let record = &self.calls[call as usize];
        let names_window = || record.part(Part::Win).is_some_and(|own| self.may_be_same(own, window.handle));
        match self.class_of(call) {
            Some(Class::WinFree) => names_window(),
            Some(Class::WinDetach) => {
                let concerns = |released: ExprId| {
                    self.file.tree.root(released).map(|root| self.alias_of(root)) == Some(window.variable)
                        && may_concern(self.file.tree, released, window.place)
                };
                names_window() && record.part(Part::Released).is_some_and(concerns)
            }
            _ => false,
        }
    }

    /// Whether a synchronization lets others see the window.
    pub fn opens(&self, call: &Call, window: &Window) -> bool {
        let class = call.procedure.map(|procedure| procedure.class);
        matches!(class, Some(Class::Fence | Class::Post | Class::Unlock | Class::WinSync | Class::Barrier))
            && self.synchronizes(call, window)
    }

    /// The calls at which an operation can end: those that are reached from its start before another one that certainly
    /// ends it. Behind that one the handle stands for something else.
    pub fn ends(&self, operation: &Operation) -> Vec<u32> {
        let mut found = Vec::new();
        for start in self.starts(operation) {
            self.walk(self.calls[start as usize].event, |_, event| {
                let EventKind::Call(call) = event.kind else { return Step::On };
                if !self.finishes(&self.calls[call as usize], operation) {
                    return Step::On;
                }
                if !found.contains(&call) {
                    found.push(call);
                }
                match self.certainly_finishes(call, operation) {
                    true => Step::Stop,
                    false => Step::On,
                }
            });
        }
        found
    }

    /// The calls from which on the library works on the buffer.
    fn starts(&self, operation: &Operation) -> Vec<u32> {
        if let (Phase::FromStart, Handle::Request(request)) = (operation.phase, operation.handle) {
            let starts: Vec<u32> = (0..self.calls.len() as u32)
                .filter(|&call| {
                    self.class_of(call) == Some(Class::Start) && self.names_request(call, request)
                })
                .collect();
            if !starts.is_empty() {
                return starts;
            }
        }
        vec![operation.call]
    }

    /// Whether a request is among the arguments of a call, perhaps.
    pub fn names_request(&self, call: u32, request: ExprId) -> bool {
        self.calls[call as usize]
            .parts()
            .filter(|(part, _)| matches!(part, Part::Request | Part::Requests))
            .any(|(_, own)| self.may_be_same(own, request))
    }

    /// Whether a call ends an operation whenever it is reached: it names the very handle, or all of its array.
    fn certainly_finishes(&self, call: u32, operation: &Operation) -> bool {
        let record = &self.calls[call as usize];
        let Some(procedure) = record.procedure else { return false };
        if self.certainty(call) == Certainty::Perhaps {
            return false;
        }
        let tree = self.file.tree;
        let is_it = |own: ExprId, handle: ExprId| {
            let is_whole = matches!(tree.expr(own).kind, ExprKind::Name(_));
            tree.same(own, handle) || (is_whole && tree.root(own) == tree.root(handle))
        };
        match (procedure.class, operation.handle) {
            (Class::Finish, Handle::Request(request)) => record
                .parts()
                .filter(|(part, _)| matches!(part, Part::Request | Part::Requests))
                .any(|(_, own)| is_it(own, request)),
            (Class::Fence | Class::Complete | Class::Unlock | Class::WinFree, Handle::Window(window)) => {
                record.part(Part::Win).is_some_and(|own| is_it(own, window))
                    && self.flushes(record, operation)
            }
            _ => false,
        }
    }
}
