//! Whether operations are open at each event, on some way or on every way. Never reports.

use super::event::{Call, Event, EventKind, PassedTo};
use super::{Analysis, Handle, Memory, Operation, Phase};
use crate::model::Storage;
use crate::mpi::Class;
use crate::parse::Symbol;
use crate::program::Certainty;

/// States in which an operation can be, as a set.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct States(u8);

/// What an event does to an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Nothing.
    None,
    /// It is open now.
    Opens,
    /// It may be open now.
    MayOpen,
    /// It is closed now.
    Closes,
    /// It may be closed now.
    MayClose,
}

/// The states of one operation over a unit.
#[derive(Clone, Debug)]
pub struct Track {
    /// Before each event.
    pub before: Vec<States>,
    /// At each node from which control leaves the unit.
    pub ends: Vec<(u32, States)>,
}

impl States {
    const CLOSED: u8 = 1;
    const OPEN: u8 = 2;

    fn apply(self, change: Change) -> States {
        match change {
            Change::None => self,
            Change::Opens => States(States::OPEN),
            Change::Closes => States(States::CLOSED),
            Change::MayOpen => States(self.0 | States::OPEN),
            Change::MayClose if self.0 & States::OPEN != 0 => States(self.0 | States::CLOSED),
            Change::MayClose => self,
        }
    }

    /// Whether it is open on every way.
    pub fn is_open(self) -> bool {
        self.0 == States::OPEN
    }

    /// Whether it is open on some way.
    pub fn may_be_open(self) -> bool {
        self.0 & States::OPEN != 0
    }
}

impl Analysis<'_> {
    /// Follows one operation, closed at first, over the unit. Counted loops are taken to run at least once.
    pub fn track(&self, change: impl Fn(&Event) -> Change) -> Track {
        let n_nodes = self.flow.nodes.len();
        let mut entry = vec![States::default(); n_nodes];
        let mut queue: Vec<u32> = self.flow.entries.clone();
        for &node in &queue {
            entry[node as usize].0 |= States::CLOSED;
        }
        let leave = |node: u32, state: States| {
            self.events_of(node).iter().fold(state, |state, event| state.apply(change(event)))
        };
        while let Some(node) = queue.pop() {
            let state = leave(node, entry[node as usize]);
            let here = &self.flow.nodes[node as usize];
            for &next in &here.next {
                if here.zero_trip == Some(next) {
                    continue;
                }
                let merged = entry[next as usize].0 | state.0;
                if merged != entry[next as usize].0 {
                    entry[next as usize].0 = merged;
                    queue.push(next);
                }
            }
        }
        let mut track = Track { before: Vec::with_capacity(self.events.len()), ends: Vec::new() };
        for node in 0..n_nodes as u32 {
            let mut state = entry[node as usize];
            for event in self.events_of(node) {
                track.before.push(state);
                state = state.apply(change(event));
            }
            if self.flow.nodes[node as usize].next.is_empty() && state != States::default() {
                track.ends.push((node, state));
            }
        }
        track
    }

    /// What an event does to an operation of this unit.
    pub fn change(&self, operation: &Operation, event: &Event) -> Change {
        match event.kind {
            EventKind::Call(call) => match (self.change_by_call(operation, call), self.certainty(call)) {
                (Change::Opens, Certainty::Perhaps) => Change::MayOpen,
                (Change::Closes, Certainty::Perhaps) => Change::MayClose,
                (change, _) => change,
            },
            EventKind::Pass { to: PassedTo::User(call), .. } => {
                let usage = self.usage(call, event);
                match self.concerns_handle(event, operation.handle)
                    && (usage.is_written || usage.is_given_away)
                {
                    true => Change::MayClose,
                    false => Change::None,
                }
            }
            // The handle is overwritten, so that later calls say nothing about this operation.
            EventKind::Write { place, .. } if self.concerns_handle(event, operation.handle) => {
                // A function result that is the handle itself.
                let is_given = self.calls[operation.call as usize].within.is_some()
                    && matches!(operation.handle, Handle::Request(own) | Handle::Window(own) if own == place);
                if is_given { Change::None } else { Change::MayClose }
            }
            _ => Change::None,
        }
    }

    /// Whether an event touches the request or the window of an operation.
    pub fn concerns_handle(&self, event: &Event, handle: Handle) -> bool {
        let (Handle::Request(place) | Handle::Window(place)) = handle else { return false };
        let root = self.file.tree.root(place);
        root.is_some_and(|variable| self.concerns(event, Memory { variable, place: Some(place) }))
    }

    /// The variable that holds the request or the window of an operation.
    pub fn handle_root(&self, handle: Handle) -> Option<Symbol> {
        match handle {
            Handle::Request(expr) | Handle::Window(expr) => self.file.tree.root(expr),
            Handle::None => None,
        }
    }

    fn change_by_call(&self, operation: &Operation, id: u32) -> Change {
        let call = &self.calls[id as usize];
        match operation.phase {
            Phase::FromCall if id == operation.call => return Change::Opens,
            Phase::FromStart => {
                if let Handle::Request(request) = operation.handle
                    && self.class_of(id) == Some(Class::Start)
                    && self.names_request(id, request)
                {
                    return Change::Opens;
                }
            }
            _ => {}
        }
        let Some(procedure) = call.procedure else {
            // An unknown procedure may finish what it can reach.
            return match self.handle_root(operation.handle).map(|root| self.resolve(root).storage) {
                Some(Storage::Local | Storage::Dummy) => Change::None,
                _ if self.reaches_known_only(id) => Change::None,
                _ => Change::MayClose,
            };
        };
        if self.finishes(call, operation) {
            let is_certain = match procedure.class {
                Class::Finish | Class::Fence | Class::Complete | Class::Unlock | Class::WinFree => true,
                Class::Flush => self.flushes(call, operation),
                _ => false,
            };
            return if is_certain { Change::Closes } else { Change::MayClose };
        }
        match operation.handle {
            Handle::Request(request) if self.names_request(id, request) => Change::MayClose,
            _ => Change::None,
        }
    }

    /// Whether a flush or an unlock certainly concerns the target of a transfer.
    pub(super) fn flushes(&self, flush: &Call, operation: &Operation) -> bool {
        let target = self.calls[operation.call as usize].named("target_rank");
        match (flush.named("rank"), target) {
            (None, _) => true,
            (Some(rank), Some(target)) => self.file.tree.same(rank, target),
            (Some(_), None) => false,
        }
    }
}
