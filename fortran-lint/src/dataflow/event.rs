//! Statements become accesses to variables and calls, in the order in which they happen. Never follows control flow.

use std::collections::HashMap;

use rma_source::Span;

use super::FileContext;
use crate::model::{Flow, Resolved, UnitId};
use crate::mpi::{Binding, Part, Procedure};
use crate::parse::{BlockKind, DoKind, ExprId, ExprKind, IoKind, List, StatementKind, Symbol, Tree};
use crate::program::{Actual, ProcedureId, Summary};

/// How a variable is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// By an assignment: the value may stay in a register.
    Statement,
    /// By an input statement, through its address.
    Reference,
}

/// Whom a variable is passed to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PassedTo {
    /// A procedure of the program or of an unknown library.
    User(u32),
    /// A procedure of the table, in this part.
    Library(u32, Part),
}

/// What happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// The variable is read.
    Read {
        /// Its name.
        variable: Symbol,
        /// The designator.
        place: ExprId,
    },
    /// The variable is written.
    Write {
        /// Its name.
        variable: Symbol,
        /// The designator.
        place: ExprId,
        /// In which way.
        by: By,
    },
    /// The variable is an actual argument.
    Pass {
        /// Its name.
        variable: Symbol,
        /// The designator.
        place: ExprId,
        /// Whose argument.
        to: PassedTo,
    },
    /// The variable's memory is given back.
    Release {
        /// Its name.
        variable: Symbol,
        /// The designator.
        place: ExprId,
    },
    /// The call itself, behind its arguments.
    Call(u32),
}

/// One event.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The node of the flow.
    pub node: u32,
    /// The place in the file.
    pub span: Span,
    /// What happens.
    pub kind: EventKind,
}

impl Event {
    /// The variable, unless the event is a call.
    pub fn variable(&self) -> Option<Symbol> {
        match self.kind {
            EventKind::Read { variable, .. }
            | EventKind::Write { variable, .. }
            | EventKind::Release { variable, .. }
            | EventKind::Pass { variable, .. } => Some(variable),
            EventKind::Call(_) => None,
        }
    }

    /// The designator, unless the event is a call.
    pub fn place(&self) -> Option<ExprId> {
        match self.kind {
            EventKind::Read { place, .. }
            | EventKind::Write { place, .. }
            | EventKind::Release { place, .. }
            | EventKind::Pass { place, .. } => Some(place),
            EventKind::Call(_) => None,
        }
    }
}

/// One call.
#[derive(Clone, Debug)]
pub struct Call {
    /// The procedure's name.
    pub name: Symbol,
    /// What is known about it.
    pub procedure: Option<&'static Procedure>,
    /// The arguments, in the procedure's order where it is known.
    pub args: Vec<Option<ExprId>>,
    /// The place of the name.
    pub span: Span,
    /// Its event.
    pub event: u32,
    /// The procedure of the program that is called, where it was summed up.
    pub callee: Option<ProcedureId>,
    /// By which door it reaches the library, if it does.
    pub binding: Binding,
    /// For a library call that a procedure of the program makes: the call of that procedure, and which effect it is.
    pub within: Option<(u32, u32)>,
}

impl Call {
    /// The arguments with their parts.
    pub fn parts(&self) -> impl Iterator<Item = (Part, ExprId)> {
        let arguments = self.procedure.map_or(&[][..], |procedure| procedure.arguments.as_slice());
        let parts = arguments.iter().map(|argument| argument.part_in(self.binding));
        parts.zip(&self.args).filter_map(|(part, arg)| arg.map(|arg| (part, arg)))
    }

    /// The first argument that plays a part.
    pub fn part(&self, part: Part) -> Option<ExprId> {
        self.parts().find(|(own, _)| *own == part).map(|(_, arg)| arg)
    }

    /// The argument with that keyword.
    pub fn named(&self, keyword: &str) -> Option<ExprId> {
        let i = self.procedure?.arguments.iter().position(|argument| argument.keyword == keyword)?;
        self.args.get(i).copied().flatten()
    }
}

/// All events of a unit, and where those of each node stand.
#[derive(Debug, Default)]
pub(super) struct Events {
    pub(super) events: Vec<Event>,
    /// First event of each node; one more entry at the end.
    pub(super) starts: Vec<u32>,
    pub(super) calls: Vec<Call>,
    /// Names of ASSOCIATE and what they stand for.
    pub(super) aliases: HashMap<Symbol, Symbol>,
}

/// Inquiry procedures, which look at a variable's shape or address and not at its value.
const INQUIRIES: &[&str] = &[
    "allocated",
    "associated",
    "bit_size",
    "c_funloc",
    "c_loc",
    "c_sizeof",
    "digits",
    "epsilon",
    "extends_type_of",
    "huge",
    "is_contiguous",
    "kind",
    "lbound",
    "len",
    "loc",
    "maxexponent",
    "minexponent",
    "precision",
    "present",
    "radix",
    "range",
    "rank",
    "same_type_as",
    "shape",
    "size",
    "sizeof",
    "storage_size",
    "tiny",
    "ubound",
];

/// Intrinsic functions and subroutines that real codes call with arrays. The list need not be complete: what is not on
/// it is an unknown function.
const INTRINSICS: &[&str] = &[
    "abs",
    "achar",
    "acos",
    "adjustl",
    "adjustr",
    "aimag",
    "aint",
    "all",
    "alog",
    "alog10",
    "amax0",
    "amax1",
    "amin0",
    "amin1",
    "amod",
    "anint",
    "any",
    "asin",
    "atan",
    "atan2",
    "atomic_define",
    "atomic_ref",
    "btest",
    "cabs",
    "ceiling",
    "char",
    "cmplx",
    "conjg",
    "cos",
    "cosh",
    "count",
    "cpu_time",
    "cshift",
    "dabs",
    "datan",
    "datan2",
    "date_and_time",
    "dble",
    "dcmplx",
    "dcos",
    "dexp",
    "dfloat",
    "dim",
    "dlog",
    "dlog10",
    "dmax1",
    "dmin1",
    "dmod",
    "dot_product",
    "dprod",
    "dreal",
    "dsign",
    "dsin",
    "dsqrt",
    "dtan",
    "eoshift",
    "erf",
    "erfc",
    "exp",
    "exponent",
    "float",
    "floor",
    "fraction",
    "gamma",
    "get_command_argument",
    "iabs",
    "iachar",
    "iand",
    "ibclr",
    "ibits",
    "ibset",
    "ichar",
    "idint",
    "ieor",
    "ifix",
    "index",
    "int",
    "ior",
    "ishft",
    "ishftc",
    "isign",
    "len_trim",
    "lge",
    "lgt",
    "lle",
    "llt",
    "log",
    "log10",
    "log_gamma",
    "logical",
    "matmul",
    "max",
    "max0",
    "max1",
    "maxloc",
    "maxval",
    "merge",
    "min",
    "min0",
    "min1",
    "minloc",
    "minval",
    "mod",
    "modulo",
    "mvbits",
    "nearest",
    "nint",
    "not",
    "pack",
    "product",
    "random_number",
    "real",
    "repeat",
    "reshape",
    "scale",
    "scan",
    "set_exponent",
    "sign",
    "sin",
    "sinh",
    "sngl",
    "spacing",
    "spread",
    "sqrt",
    "sum",
    "system_clock",
    "tan",
    "tanh",
    "transfer",
    "transpose",
    "trim",
    "unpack",
    "verify",
];

/// Whether the name is that of an intrinsic procedure.
pub fn is_intrinsic(name: &str) -> bool {
    INTRINSICS.binary_search(&name).is_ok() || INQUIRIES.binary_search(&name).is_ok()
}

pub(super) struct Collector<'a> {
    file: FileContext<'a>,
    tree: &'a Tree,
    unit: UnitId,
    binding: Binding,
    resolved: HashMap<Symbol, Resolved>,
    out: Events,
    node: u32,
}

impl<'a> Collector<'a> {
    pub(super) fn new(file: FileContext<'a>, unit: UnitId, binding: Binding) -> Collector<'a> {
        let tree = file.tree;
        Collector { file, tree, unit, binding, resolved: HashMap::new(), out: Events::default(), node: 0 }
    }

    pub(super) fn collect(mut self, flow: &Flow) -> Events {
        let tree = self.tree;
        for (i, node) in flow.nodes.iter().enumerate() {
            self.node = i as u32;
            self.out.starts.push(self.out.events.len() as u32);
            if let Some(statement) = node.statement {
                self.statement(&tree.statements[statement as usize].kind);
            }
        }
        self.out.starts.push(self.out.events.len() as u32);
        self.out
    }

    fn push(&mut self, span: Span, kind: EventKind) {
        self.out.events.push(Event { node: self.node, span, kind });
    }

    fn resolve(&mut self, name: Symbol) -> &Resolved {
        let (file, unit) = (self.file, self.unit);
        self.resolved
            .entry(name)
            .or_insert_with(|| file.model.resolve(file.tree, &file.program.modules, unit, name))
    }

    fn statement(&mut self, kind: &StatementKind) {
        use StatementKind as S;
        match kind {
            S::Assignment { target, value } => {
                self.read(*value);
                self.write(*target, By::Statement);
            }
            S::PointerAssignment { target, .. } => self.subscripts(*target),
            S::Call { procedure, args } => self.call(*procedure, *args),
            S::IfStatement(condition) | S::IfThen(condition) | S::ElseIf(condition) => self.read(*condition),
            S::ArithmeticIf { value, .. } => self.read(*value),
            S::Do { kind, variable, control, .. } => {
                self.read_list(*control);
                if let (DoKind::Counted, Some(variable)) = (kind, variable) {
                    self.write(*variable, By::Statement);
                }
            }
            S::Goto { selector: Some(selector), .. } => self.read(*selector),
            S::Select(Some(value)) => self.read(*value),
            S::BlockStart { kind: BlockKind::Associate, args } => {
                for &arg in self.tree.list(*args) {
                    if let ExprKind::Alias { name, value } = self.tree.expr(arg).kind
                        && let Some(root) = self.tree.root(value)
                    {
                        let root = self.out.aliases.get(&root).copied().unwrap_or(root);
                        self.out.aliases.insert(name, root);
                    }
                }
            }
            S::BlockStart { args, .. } | S::ElseWhere(args) | S::Masked(args) => self.read_list(*args),
            S::Io { kind, control, items } => {
                for &id in self.tree.list(*control) {
                    match self.tree.expr(id).kind {
                        ExprKind::Keyword { name, value } => match self.tree.symbols.name(name) {
                            "iostat" | "iomsg" | "size" | "exist" | "opened" | "number" | "newunit" => {
                                self.write(value, By::Reference)
                            }
                            _ => self.read(value),
                        },
                        _ => self.read(id),
                    }
                }
                for &id in self.tree.list(*items) {
                    match kind {
                        IoKind::Read => self.input(id),
                        IoKind::Write | IoKind::Control => self.read(id),
                    }
                }
            }
            S::Allocate(list) | S::Nullify(list) => {
                for &id in self.tree.list(*list) {
                    self.subscripts(id);
                }
            }
            S::Deallocate(list) => {
                for &id in self.tree.list(*list) {
                    self.subscripts(id);
                    if let Some(root) = self.tree.root(id) {
                        let variable = self.name_of(root);
                        self.push(self.tree.span(id), EventKind::Release { variable, place: id });
                    }
                }
            }
            _ => {}
        }
    }

    /// Items of READ are written, also inside implied loops.
    fn input(&mut self, id: ExprId) {
        match self.tree.expr(id).kind {
            ExprKind::ImpliedDo { items, bounds, .. } => {
                self.read_list(bounds);
                for &item in self.tree.list(items) {
                    self.input(item);
                }
            }
            _ => self.write(id, By::Reference),
        }
    }

    fn read_list(&mut self, list: List) {
        for &id in self.tree.list(list) {
            self.read(id);
        }
    }

    fn name_of(&self, name: Symbol) -> Symbol {
        self.out.aliases.get(&name).copied().unwrap_or(name)
    }

    /// Reads of the subscripts of a designator, not of the object.
    fn subscripts(&mut self, id: ExprId) {
        match self.tree.expr(id).kind {
            ExprKind::Reference { base, args } => {
                self.subscripts(base);
                self.read_list(args);
            }
            ExprKind::Component { base, .. } => self.subscripts(base),
            ExprKind::Keyword { value, .. } => self.read(value),
            _ => {}
        }
    }

    fn read(&mut self, id: ExprId) {
        let tree = self.tree;
        let span = tree.span(id);
        match tree.expr(id).kind {
            ExprKind::Name(name) => {
                let variable = self.name_of(name);
                self.push(span, EventKind::Read { variable, place: id });
            }
            ExprKind::Component { .. } => {
                self.subscripts(id);
                if let Some(root) = tree.root(id) {
                    let variable = self.name_of(root);
                    self.push(span, EventKind::Read { variable, place: id });
                }
            }
            ExprKind::Reference { base, args } => self.reference(id, base, args),
            ExprKind::Operation { operands, .. } => self.read_list(operands),
            ExprKind::Paren(inner) => self.read(inner),
            ExprKind::Complex(re, im) => {
                self.read(re);
                self.read(im);
            }
            ExprKind::Section { low, high, stride } => {
                for part in [low, high, stride].into_iter().flatten() {
                    self.read(part);
                }
            }
            ExprKind::Keyword { value, .. }
            | ExprKind::Percent { value, .. }
            | ExprKind::Alias { value, .. } => self.read(value),
            ExprKind::Array(items) => self.read_list(items),
            ExprKind::ImpliedDo { items, bounds, .. } => {
                self.read_list(bounds);
                self.read_list(items);
            }
            ExprKind::Literal(_) | ExprKind::AlternateReturn(_) | ExprKind::Star | ExprKind::Missing => {}
        }
    }

    /// An array element or a function reference.
    fn reference(&mut self, id: ExprId, base: ExprId, args: List) {
        let tree = self.tree;
        let span = tree.span(id);
        let ExprKind::Name(name) = tree.expr(base).kind else {
            self.subscripts(id);
            if let Some(root) = tree.root(id) {
                let variable = self.name_of(root);
                self.push(span, EventKind::Read { variable, place: id });
            }
            return;
        };
        if self.is_subscripted(name) {
            self.read_list(args);
            let variable = self.name_of(name);
            self.push(span, EventKind::Read { variable, place: id });
            return;
        }
        let text = tree.symbols.name(name);
        if INQUIRIES.binary_search(&text).is_ok() {
            return;
        }
        // A formula with a name: the compiler sees what it does to its arguments.
        if self.file.model.unit(self.unit).statement_functions.contains(&name) {
            self.read_list(args);
            return;
        }
        let is_known_function = self.file.inlined.of(base).is_some()
            || (self.resolve(name).variable.is_some() && !is_intrinsic(text));
        if is_known_function {
            self.user_call(name, base, args);
        } else {
            self.read_list(args);
            // It may as well be an array that comes from elsewhere.
            if !is_intrinsic(text) {
                self.push(span, EventKind::Read { variable: name, place: id });
            }
        }
    }

    /// Whether a parenthesis behind the name is a subscript.
    fn is_subscripted(&mut self, name: Symbol) -> bool {
        if self.out.aliases.contains_key(&name) {
            return true;
        }
        let resolved = self.resolve(name);
        resolved.variable.as_ref().is_some_and(|variable| variable.shape.is_some() || variable.is_character)
    }

    fn write(&mut self, id: ExprId, by: By) {
        let tree = self.tree;
        let (root, is_function) = match tree.expr(id).kind {
            ExprKind::Reference { base, .. } => match tree.expr(base).kind {
                // A statement function, or an array that comes from elsewhere.
                ExprKind::Name(name) => {
                    (Some(name), !self.is_subscripted(name) && self.resolve(name).variable.is_some())
                }
                _ => (tree.root(id), false),
            },
            _ => (tree.root(id), false),
        };
        if is_function {
            return;
        }
        self.subscripts(id);
        if let Some(root) = root {
            let variable = self.name_of(root);
            self.push(tree.span(id), EventKind::Write { variable, place: id, by });
        }
    }

    fn call(&mut self, procedure: ExprId, args: List) {
        let tree = self.tree;
        let (name, is_plain) = match tree.expr(procedure).kind {
            // What is bound to a type, or a procedure pointer of an object.
            ExprKind::Component { name, .. } => (Some(name), false),
            _ => (tree.root(procedure), matches!(tree.expr(procedure).kind, ExprKind::Name(_))),
        };
        let Some(name) = name else { return };
        match self.file.options.wrappers.find(tree.symbols.name(name)).filter(|_| is_plain) {
            Some(known) => self.library_call(name, tree.span(procedure), known, args),
            None => self.user_call(name, procedure, args),
        }
    }

    fn library_call(&mut self, name: Symbol, span: Span, known: &'static Procedure, args: List) {
        let tree = self.tree;
        let mut ordered: Vec<Option<ExprId>> = Vec::with_capacity(known.arguments.len());
        for (i, &arg) in tree.list(args).iter().enumerate() {
            let (at, value) = match tree.expr(arg).kind {
                ExprKind::Keyword { name, value } => {
                    let keyword = tree.symbols.name(name);
                    match known.arguments.iter().position(|argument| argument.keyword == keyword) {
                        Some(at) => (at, value),
                        None => continue,
                    }
                }
                ExprKind::Missing => continue,
                _ => (i, arg),
            };
            if ordered.len() <= at {
                ordered.resize(at + 1, None);
            }
            ordered[at] = Some(value);
        }
        let call = self.begin_call(name, Some(known), span);
        for (i, arg) in ordered.iter().enumerate() {
            let part = known.arguments.get(i).map_or(Part::Other, |argument| argument.part_in(self.binding));
            if let Some(arg) = arg {
                self.argument(*arg, PassedTo::Library(call, part));
            }
        }
        self.end_call(call, ordered);
    }

    fn user_call(&mut self, name: Symbol, procedure: ExprId, args: List) {
        let tree = self.tree;
        let span = tree.span(procedure);
        let call = self.begin_call(name, None, span);
        let file = self.file;
        let inlined = file.inlined.of(procedure);
        let summary = inlined.and_then(|inlined| file.program.summaries.get(&inlined.callee));
        let (Some(inlined), Some(summary)) = (inlined, summary) else {
            let mut ordered: Vec<Option<ExprId>> = Vec::with_capacity(tree.list(args).len());
            for &arg in tree.list(args) {
                let value = match tree.expr(arg).kind {
                    ExprKind::Keyword { value, .. } => value,
                    _ => arg,
                };
                self.argument(value, PassedTo::User(call));
                ordered.push(Some(value));
            }
            self.end_call(call, ordered);
            return;
        };
        self.out.calls[call as usize].callee = Some(inlined.callee);
        for (at, &arg) in inlined.args.iter().enumerate() {
            let Some(arg) = arg else { continue };
            match only_serves_effects(summary, at) {
                // The library calls behind tell what becomes of it.
                true if self.tree.root(arg).is_some() => self.subscripts(arg),
                _ => self.argument(arg, PassedTo::User(call)),
            }
        }
        self.end_call(call, inlined.args.clone());
        for (i, (effect, args)) in summary.effects.iter().zip(&inlined.effects).enumerate() {
            let made = self.begin_call(name, Some(effect.procedure), span);
            self.out.calls[made as usize].within = Some((call, i as u32));
            self.out.calls[made as usize].binding = effect.binding;
            for (at, &arg) in args.iter().enumerate() {
                let argument = effect.procedure.arguments.get(at);
                let part = argument.map_or(Part::Other, |argument| argument.part_in(effect.binding));
                if let (Some(arg), Some(root)) = (arg, arg.and_then(|arg| tree.root(arg))) {
                    let variable = self.name_of(root);
                    let to = PassedTo::Library(made, part);
                    self.push(tree.span(arg), EventKind::Pass { variable, place: arg, to });
                }
            }
            self.end_call(made, args.clone());
        }
    }

    /// Takes a number for a call; calls among its arguments take later ones and happen earlier.
    fn begin_call(&mut self, name: Symbol, procedure: Option<&'static Procedure>, span: Span) -> u32 {
        self.out.calls.push(Call {
            name,
            procedure,
            args: Vec::new(),
            span,
            event: 0,
            callee: None,
            binding: self.binding,
            within: None,
        });
        (self.out.calls.len() - 1) as u32
    }

    fn end_call(&mut self, call: u32, args: Vec<Option<ExprId>>) {
        let event = self.out.events.len() as u32;
        let record = &mut self.out.calls[call as usize];
        record.args = args;
        record.event = event;
        let span = record.span;
        self.push(span, EventKind::Call(call));
    }

    fn argument(&mut self, arg: ExprId, to: PassedTo) {
        let tree = self.tree;
        let is_variable = match tree.expr(arg).kind {
            ExprKind::Name(_) | ExprKind::Component { .. } => true,
            ExprKind::Reference { base, .. } => match tree.expr(base).kind {
                ExprKind::Name(name) => {
                    // An unknown name with a parenthesis is an array more often than not when it is a buffer.
                    self.is_subscripted(name)
                        || (self.resolve(name).variable.is_none() && !is_intrinsic(tree.symbols.name(name)))
                }
                _ => true,
            },
            ExprKind::Percent { value, .. } => return self.argument(value, to),
            _ => false,
        };
        match (is_variable, tree.root(arg)) {
            (true, Some(root)) => {
                self.subscripts(arg);
                let variable = self.name_of(root);
                self.push(tree.span(arg), EventKind::Pass { variable, place: arg, to });
            }
            _ => self.read(arg),
        }
    }
}

/// Whether a procedure does nothing with a dummy argument but hand it to the library in its effects.
fn only_serves_effects(summary: &Summary, at: usize) -> bool {
    let Some(dummy) = summary.dummies.get(at) else { return false };
    let usage = dummy.usage;
    let serves = |actual: &Actual| matches!(actual, Actual::Dummy(own, _) if *own as usize == at);
    !(usage.is_read || usage.is_written || usage.is_given_away)
        && summary.effects.iter().any(|effect| effect.args.iter().any(serves))
}

#[cfg(test)]
mod test {
    use super::{INQUIRIES, INTRINSICS};

    #[test]
    fn the_lists_are_sorted() {
        assert!(INTRINSICS.is_sorted() && INQUIRIES.is_sorted());
    }
}
