//! One unit, ready for the rules: events, operations, windows and walks over its control flow. Never reports.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::address::{HiddenBuffers, follow};
use super::event::{Call, Collector, Event, EventKind, Events, PassedTo, is_intrinsic};
use super::handle::{Copies, overlap};
use super::inline::Inlined;
use super::operation::{Memory, Operation, Window};
use crate::model::{Flow, IsArgument, Model, Reach, Resolved, Storage, Unit, UnitId, may_be_changed_by_call};
use crate::mpi::{Binding, Class, Promise};
use crate::options::Options;
use crate::parse::{Attributes, ExprId, ExprKind, StatementKind, Symbol, Tree};
use crate::program::{Actual, Certainty, Dummy, Effect, Program, Use};

/// What a file's units share.
#[derive(Clone, Copy)]
pub struct FileContext<'a> {
    /// Its place in the input.
    pub index: u32,
    /// The tree.
    pub tree: &'a Tree,
    /// The units.
    pub model: &'a Model,
    /// What the files of the run know about each other.
    pub program: &'a Program,
    /// What its calls of summed-up procedures bring.
    pub inlined: &'a Inlined,
    /// What was asked for.
    pub options: &'a Options,
}

/// Whether the optimiser leaves a variable in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protection {
    /// It does.
    Safe,
    /// It may keep it in a register.
    Unsafe,
    /// Where it lives is not known.
    Unknown,
}

/// What a walk does behind an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// It goes on.
    On,
    /// This way ends here.
    Stop,
}

/// One unit with everything that rules look at.
pub struct Analysis<'a> {
    /// What the file's units share.
    pub file: FileContext<'a>,
    /// The unit's index.
    pub id: UnitId,
    /// The unit.
    pub unit: &'a Unit,
    /// Its control flow.
    pub flow: Flow,
    /// What happens, node by node.
    pub events: Vec<Event>,
    starts: Vec<u32>,
    /// All calls.
    pub calls: Vec<Call>,
    /// Variables behind MPI_BOTTOM.
    pub hidden: HiddenBuffers,
    /// Operations started here.
    pub operations: Vec<Operation>,
    /// Windows made here.
    pub windows: Vec<Window>,
    /// By which door the unit reaches MPI.
    pub binding: Binding,
    pub(super) copies: Copies,
    aliases: HashMap<Symbol, Symbol>,
    resolved: RefCell<HashMap<Symbol, Rc<Resolved>>>,
}

impl<'a> Analysis<'a> {
    /// Prepares a unit; `None` when it calls nothing of interest.
    pub fn new(file: FileContext<'a>, id: UnitId) -> Option<Analysis<'a>> {
        let unit = file.model.unit(id);
        (calls_library(file.tree, unit, file.options) || file.inlined.has_effects(id))
            .then(|| Analysis::whole(file, id))
    }

    /// Prepares a unit, whatever it calls.
    pub fn whole(file: FileContext<'a>, id: UnitId) -> Analysis<'a> {
        let unit = file.model.unit(id);
        let flow = Flow::new(file.tree, unit);
        let binding = binding(file, id);
        let Events { events, starts, calls, aliases } = Collector::new(file, id, binding).collect(&flow);
        let copies = Copies::new(file, id, &flow);
        let mut analysis = Analysis {
            file,
            id,
            unit,
            flow,
            events,
            starts,
            calls,
            hidden: HiddenBuffers::default(),
            operations: Vec::new(),
            windows: Vec::new(),
            binding,
            copies,
            aliases,
            resolved: RefCell::new(HashMap::new()),
        };
        analysis.hidden = follow(&analysis);
        (analysis.operations, analysis.windows) = analysis.find_operations();
        analysis
    }

    /// What a name means here.
    pub fn resolve(&self, name: Symbol) -> Rc<Resolved> {
        let mut cache = self.resolved.borrow_mut();
        let entry = cache.entry(name).or_insert_with(|| {
            Rc::new(self.file.model.resolve(self.file.tree, &self.file.program.modules, self.id, name))
        });
        Rc::clone(entry)
    }

    /// The name as it is written, in lower case.
    pub fn name(&self, symbol: Symbol) -> &'a str {
        self.file.tree.symbols.name(symbol)
    }

    pub(super) fn alias_of(&self, name: Symbol) -> Symbol {
        self.aliases.get(&name).copied().unwrap_or(name)
    }

    /// Whether the optimiser leaves the variable in memory.
    pub fn protection(&self, name: Symbol) -> Protection {
        let resolved = self.resolve(name);
        let is_volatile = resolved.attributes.has(Attributes::VOLATILE);
        // A constant has no register to be kept in that matters.
        let is_constant = resolved.attributes.has(Attributes::PARAMETER);
        if (resolved.storage == Storage::Imported && !is_volatile) || is_constant {
            return Protection::Unknown;
        }
        match may_be_changed_by_call(&resolved, IsArgument::No, self.file.options.standard) {
            true => Protection::Safe,
            false => Protection::Unsafe,
        }
    }

    /// Whether the optimiser may keep the variable in a register, for all that is seen.
    pub fn is_unsafe(&self, name: Symbol) -> bool {
        self.protection(name) == Protection::Unsafe
    }

    /// The events of a node.
    pub fn events_of(&self, node: u32) -> &[Event] {
        &self.events[self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize]
    }

    /// Index of the first event of a node.
    pub fn first_event(&self, node: u32) -> u32 {
        self.starts[node as usize]
    }

    /// Visits every event that can happen behind `from`, nearest first. Returns whether the end of the unit is reached
    /// on a way that was not stopped.
    pub fn walk(&self, from: u32, mut visit: impl FnMut(u32, &Event) -> Step) -> bool {
        let node = self.events[from as usize].node;
        let mut seen = vec![false; self.flow.nodes.len()];
        let mut queue = std::collections::VecDeque::new();
        let mut reaches_end = false;
        if self.scan(from + 1, node, &mut visit) == Step::On {
            reaches_end |= self.flow.nodes[node as usize].next.is_empty();
            queue.extend(&self.flow.nodes[node as usize].next);
        }
        while let Some(node) = queue.pop_front() {
            if std::mem::replace(&mut seen[node as usize], true) {
                continue;
            }
            if self.scan(self.starts[node as usize], node, &mut visit) == Step::On {
                let next = &self.flow.nodes[node as usize].next;
                reaches_end |= next.is_empty();
                queue.extend(next);
            }
        }
        reaches_end
    }

    /// Whether the end of the unit can be reached without an event that stops the way.
    pub fn can_bypass(&self, mut stops: impl FnMut(u32, &Event) -> bool) -> bool {
        let mut seen = vec![false; self.flow.nodes.len()];
        let mut queue = self.flow.entries.clone();
        while let Some(node) = queue.pop() {
            if std::mem::replace(&mut seen[node as usize], true) {
                continue;
            }
            let range = self.starts[node as usize]..self.starts[node as usize + 1];
            if range.into_iter().any(|i| stops(i, &self.events[i as usize])) {
                continue;
            }
            let next = &self.flow.nodes[node as usize].next;
            if next.is_empty() {
                return true;
            }
            // A counted loop is taken to run.
            let zero_trip = self.flow.nodes[node as usize].zero_trip;
            queue.extend(next.iter().filter(|&&next| zero_trip != Some(next)));
        }
        false
    }

    fn scan(&self, from: u32, node: u32, visit: &mut impl FnMut(u32, &Event) -> Step) -> Step {
        for i in from..self.starts[node as usize + 1] {
            if visit(i, &self.events[i as usize]) == Step::Stop {
                return Step::Stop;
            }
        }
        Step::On
    }

    /// Whether behind this event every register copy of the variable is stale to the compiler, too.
    pub fn shields_load(&self, event: &Event, memory: Memory) -> bool {
        let EventKind::Pass { to, .. } = event.kind else { return false };
        if !self.concerns(event, memory) {
            return false;
        }
        match to {
            PassedTo::User(call) => self.reloads_behind(call, event),
            PassedTo::Library(call, _) if self.is_read_only(call, event) => false,
            PassedTo::Library(call, _) => !self.is_unchanged(call, event),
        }
    }

    /// Whether the interface by which a call reaches the library promises not to change an argument.
    fn is_unchanged(&self, call: u32, event: &Event) -> bool {
        let record = &self.calls[call as usize];
        let at = event.place().and_then(|place| record.args.iter().position(|arg| *arg == Some(place)));
        let (Some(procedure), Some(at)) = (record.procedure, at) else { return false };
        procedure.promise(at, self.binding_of(call)) == Promise::Unchanged
    }

    /// Whether before this event the variable's newest value must be in memory.
    pub fn shields_store(&self, event: &Event, memory: Memory) -> bool {
        let EventKind::Pass { to, .. } = event.kind else { return false };
        self.concerns(event, memory)
            && match to {
                PassedTo::User(call) => {
                    self.is_opaque(&self.calls[call as usize])
                        || self.dummy_of(call, event).is_some_and(|dummy| dummy.usage.is_shielded)
                }
                PassedTo::Library(..) => true,
            }
    }

    /// Whether the compiler cannot look into the procedure.
    pub fn is_opaque(&self, call: &Call) -> bool {
        let name = self.name(call.name);
        let program = self.file.program;
        let Options { dummies, sync_routine, .. } = self.file.options;
        if dummies.iter().chain(sync_routine).any(|dummy| dummy.eq_ignore_ascii_case(name)) {
            return true;
        }
        let is_seen = call.callee.is_some() || program.procedures.has(name) || program.generics.has(name);
        !is_seen && !is_intrinsic(name)
    }

    /// Whether the compiler must load a variable again behind a call of a procedure of the program or of an unknown
    /// library.
    fn reloads_behind(&self, call: u32, event: &Event) -> bool {
        self.is_opaque(&self.calls[call as usize])
            || self
                .dummy_of(call, event)
                .is_some_and(|dummy| dummy.usage.is_shielded && !dummy.attributes.has(Attributes::INTENT_IN))
    }

    /// The effect that a library call of another procedure is.
    pub fn effect(&self, call: u32) -> Option<&'a Effect> {
        let (caller, effect) = self.calls[call as usize].within?;
        let callee = self.calls[caller as usize].callee?;
        self.file.program.summaries.get(&callee)?.effects.get(effect as usize)
    }

    /// Whether a call happens whenever its statement is reached.
    pub fn certainty(&self, call: u32) -> Certainty {
        self.effect(call).map_or(Certainty::Always, |effect| effect.certainty)
    }

    /// By which door a call reaches the library.
    pub fn binding_of(&self, call: u32) -> Binding {
        self.calls[call as usize].binding
    }

    /// The dummy argument that stands for the actual argument of an event, where the procedure is summed up.
    pub fn dummy_of(&self, call: u32, event: &Event) -> Option<&'a Dummy> {
        self.dummy_at(call, event.place()?)
    }

    /// The dummy argument that stands for an actual argument, where the procedure is summed up.
    pub fn dummy_at(&self, call: u32, place: ExprId) -> Option<&'a Dummy> {
        let record = &self.calls[call as usize];
        let (call, at) = match record.within {
            None => (call, record.args.iter().position(|arg| *arg == Some(place))?),
            Some((caller, _)) => {
                let at = record.args.iter().position(|arg| *arg == Some(place))?;
                match self.effect(call)?.args.get(at)? {
                    Actual::Dummy(at, _) => (caller, *at as usize),
                    _ => return None,
                }
            }
        };
        let summary = self.file.program.summaries.get(&self.calls[call as usize].callee?)?;
        summary.dummies.get(at)
    }

    /// Whether a call leads to procedures that are seen only, so that its effects are all there is to it.
    pub fn reaches_known_only(&self, call: u32) -> bool {
        let callee = self.calls[call as usize].callee;
        let summary = callee.and_then(|callee| self.file.program.summaries.get(&callee));
        summary.is_some_and(|summary| !summary.calls_unknown)
    }

    /// How the procedure behind a call uses an argument; anything may happen to it where the procedure is not known.
    pub fn usage(&self, call: u32, event: &Event) -> Use {
        let unknown = Use { is_read: true, is_written: true, is_shielded: false, is_given_away: true };
        self.dummy_of(call, event).map_or(unknown, |dummy| dummy.usage)
    }

    /// Whether the procedure that hands the variable on promises its caller not to change it.
    fn is_read_only(&self, call: u32, event: &Event) -> bool {
        self.calls[call as usize].within.is_some()
            && self.dummy_of(call, event).is_some_and(|dummy| dummy.attributes.has(Attributes::INTENT_IN))
    }

    /// The class of a call.
    pub fn class_of(&self, call: u32) -> Option<Class> {
        self.calls[call as usize].procedure.map(|procedure| procedure.class)
    }

    /// Whether two designators of one variable can name the same place.
    pub fn overlap(&self, one: ExprId, other: ExprId) -> bool {
        overlap(self.file.tree, one, other)
    }

    fn has_subscripts(&self, place: ExprId) -> bool {
        match self.file.tree.expr(place).kind {
            ExprKind::Reference { .. } => true,
            ExprKind::Component { base, .. } => self.has_subscripts(base),
            _ => false,
        }
    }

    /// Whether the designator is the whole variable, or its first element, which by custom stands for it.
    pub fn is_whole(&self, place: ExprId) -> bool {
        let tree = self.file.tree;
        match tree.expr(place).kind {
            ExprKind::Name(_) => true,
            ExprKind::Reference { base, args } => {
                let is_start = |arg: &ExprId| match tree.expr(*arg).kind {
                    ExprKind::Section { low: None, high: None, stride: None } => true,
                    _ => tree.int(*arg) == Some(1),
                };
                !matches!(tree.expr(base).kind, ExprKind::Reference { .. })
                    && self.is_whole(base)
                    && tree.list(args).iter().all(is_start)
            }
            // A component of one object.
            ExprKind::Component { base, .. } => !self.has_subscripts(base),
            _ => false,
        }
    }
}

/// Whether a unit calls the library itself, or makes a pointer from an address.
pub fn calls_library(tree: &Tree, unit: &Unit, options: &Options) -> bool {
    called(tree, unit).any(|name| options.wrappers.concerns(name) || name == "c_f_pointer")
}

fn called<'a>(tree: &'a Tree, unit: &'a Unit) -> impl Iterator<Item = &'a str> {
    unit.body.iter().filter_map(|step| {
        let crate::model::Step::Statement(i) = step else { return None };
        let StatementKind::Call { procedure, .. } = tree.statements[*i as usize].kind else { return None };
        let ExprKind::Name(name) = tree.expr(procedure).kind else { return None };
        Some(tree.symbols.name(name))
    })
}

/// The binding of a unit: its own, its hosts', or that of the rest of the file where none is seen.
fn binding(file: FileContext<'_>, id: UnitId) -> Binding {
    let of_unit = |unit: &Unit| {
        let uses = |name: &str| unit.uses.iter().any(|used| file.tree.symbols.name(used.module) == name);
        if uses("mpi_f08") {
            return Some(Binding::F08);
        }
        if uses("mpi") {
            return Some(Binding::UseMpi);
        }
        unit.includes_header().then_some(Binding::Mpif)
    };
    let mut next = Some(id);
    while let Some(id) = next {
        let unit = file.model.unit(id);
        if let Some(binding) = of_unit(unit) {
            return binding;
        }
        let handed_on =
            unit.uses.iter().find_map(|used| handed_on(file.program, file.tree.symbols.name(used.module)));
        if let Some(binding) = handed_on {
            return binding;
        }
        next = unit.parent;
    }
    file.model.units.iter().find_map(of_unit).unwrap_or(file.options.binding)
}

/// The binding that a module hands on to its users.
fn handed_on(program: &Program, module: &str) -> Option<Binding> {
    let at_home = |module: &str, _: &str| match module {
        "mpi_f08" => Some(Binding::F08),
        "mpi" => Some(Binding::UseMpi),
        _ => {
            let modules = program.modules.named(module);
            let uses =
                |name: &str| modules.iter().flat_map(|module| &module.uses).any(|used| &*used.module == name);
            let has_header = modules.iter().any(|module| module.includes_header);
            (has_header && !uses("mpi") && !uses("mpi_f08")).then_some(Binding::Mpif)
        }
    };
    // Names do not matter: whatever a module takes from the library, it is by that door.
    match program.modules.reach(module, "", &program.doors, &|_, name| Some(name), &at_home) {
        Reach::Found(binding) => Some(binding),
        Reach::Absent | Reach::Unknown => None,
    }
}
