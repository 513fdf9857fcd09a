//! The body of an annotated function → accesses and steps: cuts out what reaches a window. Never judges legality: that is
//! `check.rs`; it refuses only what has no meaning.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, Pat, Stmt, Token};

use crate::messages::{self as say, Errors};
use crate::model::{
    Access, Act, Body, Destination, HOLE, Kind, Layer, Operation, Origin, Remote, Section, Step, bare,
    is_word, tracked, variable,
};

/// Cuts everything that reaches a window of `layers` out of a block, and notes what it was and in which order.
///
/// `strangers` are windows that the epoch does not open.
pub(crate) fn cut(
    block: &mut syn::Block,
    layers: &[Layer],
    strangers: Vec<Ident>,
    errors: &mut Errors,
) -> Body {
    let mut cutter = Cutter {
        layers,
        strangers,
        errors,
        accesses: Vec::new(),
        steps: vec![Vec::new()],
        closures: 0,
        position: Position::Returned,
    };
    if !layers.is_empty() {
        cutter.visit_block_mut(block);
    }
    Body { accesses: cutter.accesses, steps: cutter.steps.pop().unwrap_or_default(), borrowed: Vec::new() }
}

/// Walks a body, cuts out what reaches a window, and notes the order of what matters.
struct Cutter<'a> {
    layers: &'a [Layer],
    strangers: Vec<Ident>,
    errors: &'a mut Errors,
    accesses: Vec<Access>,
    /// The sequences that are open, innermost last.
    steps: Vec<Vec<Step>>,
    /// How many closures enclose the current expression.
    closures: usize,
    position: Position,
}

/// What becomes of the value of an expression.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    /// Nobody takes it.
    Statement,
    /// It leaves the body, as it is or as a member of a tuple.
    Returned,
    /// Something in the body takes it.
    Operand,
}

/// How much a place names, as far as its text tells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Element,
    Range,
}

/// A place in a window, as written.
enum Written {
    Remote { layer: usize, rank: Box<Expr>, index: Expr, goes_on: bool },
    Local { layer: usize, index: Expr },
}

impl Written {
    fn layer(&self) -> usize {
        match self {
            Written::Remote { layer, .. } | Written::Local { layer, .. } => *layer,
        }
    }

    fn index(&self) -> &Expr {
        match self {
            Written::Remote { index, .. } | Written::Local { index, .. } => index,
        }
    }

    fn shape(&self) -> Shape {
        match bare(self.index()) {
            Expr::Range(_) => Shape::Range,
            _ => Shape::Element,
        }
    }
}

impl Cutter<'_> {
    fn layer_of(&self, expr: &Expr) -> Option<usize> {
        let name = variable(expr)?;
        self.layers.iter().position(|layer| layer.window == *name)
    }

    fn private(&self, layer: usize) -> bool {
        self.layers[layer].kind.is_private()
    }

    /// Recognises `u[…]` and `u.at(…)[…]`; a place in a private epoch is an ordinary slice and is no place here.
    fn place(&mut self, expr: &Expr) -> Option<Written> {
        let Expr::Index(index) = bare(expr) else { return None };
        if let Some(layer) = self.layer_of(&index.expr) {
            if self.private(layer) {
                return None;
            }
            return Some(Written::Local { layer, index: (*index.index).clone() });
        }
        let Expr::MethodCall(call) = bare(&index.expr) else { return None };
        let goes_on = call.method == "combine";
        let layer = self
            .layer_of(&call.receiver)
            .filter(|&layer| call.method == "at" || (goes_on && self.layers[layer].kind == Kind::Offer))?;
        if call.args.len() != 1 {
            return None;
        }
        let rank = Box::new(call.args[0].clone());
        Some(Written::Remote { layer, rank, index: (*index.index).clone(), goes_on })
    }

    /// As `place`, seen through the `&` of an argument.
    fn borrowed_place(&mut self, expr: &Expr) -> Option<Written> {
        match bare(expr) {
            Expr::Reference(reference) => self.place(&reference.expr),
            other => self.place(other),
        }
    }

    fn step(&mut self, step: Step) {
        if let Some(steps) = self.steps.last_mut() {
            steps.push(step);
        }
    }

    /// Runs `walk` with a sequence of its own and returns what it noted.
    fn apart(&mut self, walk: impl FnOnce(&mut Self)) -> Vec<Step> {
        self.steps.push(Vec::new());
        walk(self);
        self.steps.pop().unwrap_or_default()
    }

    fn section(&mut self, mut index: Expr, layer: usize) -> Section {
        if let Expr::Tuple(tuple) = bare(&index) {
            self.errors.push(tuple, &say::TWO_DIMENSIONAL, &[&self.layers[layer].window]);
        }
        if let Expr::Range(range) = bare(&index)
            && range.end.is_none()
        {
            self.errors.push(range, &say::OPEN_RANGE, &[&self.layers[layer].window]);
        }
        self.operand(&mut index);
        Section { index: Box::new(index) }
    }

    fn remote(&mut self, mut rank: Box<Expr>, index: Expr, layer: usize, goes_on: bool) -> Remote {
        self.operand(&mut rank);
        Remote { rank, section: self.section(index, layer), goes_on }
    }

    /// Runs `walk` where values become what `position` says.
    fn at_position(&mut self, position: Position, walk: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.position, position);
        walk(self);
        self.position = before;
    }

    /// Walks an expression whose value is taken.
    fn operand(&mut self, expr: &mut Expr) {
        self.at_position(Position::Operand, |cutter| cutter.visit_expr_mut(expr));
    }

    /// Notes a get into one's own memory, of the same window or another one.
    fn get_into_own(
        &mut self,
        from: Remote,
        far: usize,
        layer: usize,
        section: Section,
        written: &dyn ToTokens,
    ) -> Expr {
        self.cut(far, Act::Get { from, into: Destination::Own { layer, section } }, written)
    }

    /// Notes an access and returns the hole that stands for it.
    fn cut(&mut self, layer: usize, act: Act, written: &dyn ToTokens) -> Expr {
        let remote = act.remote().is_some();
        if self.closures > 0 && remote {
            self.errors.push(written, &say::IN_CLOSURE, &[&act.noun()]);
        }
        let number = self.accesses.len();
        let written = written.to_token_stream();
        let span = written.span();
        self.accesses.push(Access { layer, act, written });
        self.step(Step::Access(number));
        let hole = Ident::new(HOLE, span);
        let literal = proc_macro2::Literal::usize_unsuffixed(number);
        syn::parse_quote_spanned!(span=> #hole!(#literal))
    }

    /// The origin of `place.copy_from_slice(argument)`.
    fn origin(&mut self, argument: &Expr) -> Option<Origin> {
        match self.borrowed_place(argument) {
            Some(Written::Local { layer, index }) => {
                Some(Origin::Own { layer, section: self.section(index, layer) })
            }
            Some(Written::Remote { .. }) => {
                self.errors.push(argument, &say::REMOTE_TO_REMOTE, &[]);
                None
            }
            None => {
                let mut argument = argument.clone();
                self.buffer(&mut argument);
                Some(Origin::Buffer(Box::new(argument)))
            }
        }
    }

    /// Walks an origin or destination buffer; mentioning the buffer itself is not a use of it.
    fn buffer(&mut self, expr: &mut Expr) {
        if tracked(expr).is_none() {
            self.operand(expr);
        }
    }

    /// What a value on the right of `=` or `+=` is an origin of.
    fn value_origin(&mut self, right: &Expr) -> Option<Origin> {
        match self.place(right) {
            Some(Written::Local { layer, index }) if !matches!(bare(&index), Expr::Range(_)) => {
                Some(Origin::Own { layer, section: self.section(index, layer) })
            }
            Some(Written::Remote { .. }) => {
                self.errors.push(right, &say::REMOTE_TO_REMOTE, &[]);
                None
            }
            _ => {
                let mut value = right.clone();
                self.operand(&mut value);
                Some(Origin::Value(Box::new(value)))
            }
        }
    }

    fn assign(&mut self, assign: &syn::ExprAssign) -> Option<Expr> {
        let span = assign.span();
        match self.place(&assign.left)? {
            Written::Remote { layer, rank, index, goes_on } => {
                if matches!(bare(&index), Expr::Range(_)) {
                    self.errors.push(assign, &say::RANGE_ASSIGNED, &[]);
                    return Some(unit(span));
                }
                let Some(from) = self.value_origin(&assign.right) else { return Some(unit(span)) };
                let to = self.remote(rank, index, layer, goes_on);
                Some(self.cut(layer, Act::Put { to, from }, assign))
            }
            Written::Local { layer, index } => match self.place(&assign.right) {
                Some(Written::Remote { layer: far, rank, index: there, goes_on }) => {
                    let from = self.remote(rank, there, far, goes_on);
                    let section = self.section(index, layer);
                    Some(self.get_into_own(from, far, layer, section, assign))
                }
                _ => {
                    let mut value = (*assign.right).clone();
                    self.operand(&mut value);
                    let section = self.section(index, layer);
                    Some(self.cut(layer, Act::Store { section, value: Box::new(value) }, assign))
                }
            },
        }
    }

    fn assign_op(&mut self, binary: &syn::ExprBinary) -> Option<Expr> {
        let (operator, operation) = assigning(&binary.op)?;
        let span = binary.span();
        match self.place(&binary.left)? {
            Written::Remote { layer, rank, index, goes_on } => {
                // After the message the walk goes on as if it were a sum, to find what else is wrong.
                let operation = operation.unwrap_or_else(|| {
                    let written = &binary.op;
                    let written = quote::quote!(#written).to_string();
                    self.errors.push(&binary.op, &say::NO_SUCH_ACCUMULATE, &[&written]);
                    Operation::Sum
                });
                let from = match bare(&index) {
                    Expr::Range(_) => self.origin(&binary.right),
                    _ => self.value_origin(&binary.right),
                };
                let Some(from) = from else { return Some(unit(span)) };
                let to = self.remote(rank, index, layer, goes_on);
                Some(self.cut(layer, Act::Accumulate { to, operation, from }, binary))
            }
            Written::Local { layer, index } => {
                let mut value = (*binary.right).clone();
                self.operand(&mut value);
                let section = self.section(index, layer);
                let act = Act::Update { section, operator: Box::new(operator), value: Box::new(value) };
                Some(self.cut(layer, act, binary))
            }
        }
    }

    fn method(&mut self, call: &syn::ExprMethodCall) -> Option<Expr> {
        if let Some(layer) = self.layer_of(&call.receiver) {
            return self.window_method(call, layer);
        }
        let span = call.span();
        let name = call.method.to_string();
        if let Some(place) = self.place(&call.receiver) {
            return match place {
                Written::Remote { .. } => Some(self.remote_method(call, place)),
                Written::Local { layer, index } if name == "copy_from_slice" && call.args.len() == 1 => {
                    let argument = &call.args[0];
                    match self.borrowed_place(argument) {
                        Some(Written::Remote { layer: far, rank, index: there, goes_on }) => {
                            let from = self.remote(rank, there, far, goes_on);
                            let section = self.section(index, layer);
                            Some(self.get_into_own(from, far, layer, section, call))
                        }
                        _ => {
                            let mut buffer = argument.clone();
                            self.operand(&mut buffer);
                            let section = self.section(index, layer);
                            Some(self.cut(layer, Act::Write { section, buffer: Box::new(buffer) }, call))
                        }
                    }
                }
                Written::Local { .. } if place.shape() == Shape::Range => {
                    let window = &self.layers[place.layer()].window;
                    self.errors.push(&call.receiver, &say::REFERENCE_TO_EXPOSED, &[window]);
                    Some(unit(span))
                }
                // A method of the loaded value, such as `u[i].sqrt()`.
                Written::Local { .. } => None,
            };
        }
        if name != "copy_from_slice" || call.args.len() != 1 {
            return None;
        }
        // `buffer.copy_from_slice(&place)`
        match self.borrowed_place(&call.args[0])? {
            Written::Remote { layer, rank, index, goes_on } => {
                let from = self.remote(rank, index, layer, goes_on);
                let mut buffer = (*call.receiver).clone();
                self.buffer(&mut buffer);
                let into = Destination::Buffer(Box::new(buffer));
                Some(self.cut(layer, Act::Get { from, into }, call))
            }
            Written::Local { layer, index } => {
                let mut buffer = (*call.receiver).clone();
                self.operand(&mut buffer);
                let section = self.section(index, layer);
                Some(self.cut(layer, Act::Read { section, buffer: Box::new(buffer) }, call))
            }
        }
    }

    /// `u.method(…)` on the handle itself.
    fn window_method(&mut self, call: &syn::ExprMethodCall, layer: usize) -> Option<Expr> {
        let span = call.span();
        let window = self.layers[layer].window.clone();
        let kind = self.layers[layer].kind;
        let opens = ["lock", "access", "exposure", "exchange", "local", "local_mut", "post", "start"];
        match call.method.to_string().as_str() {
            "fence" if call.args.is_empty() && kind == Kind::Fence => {
                let hole = self.cut(layer, Act::Fence, call);
                self.step(Step::Fence(layer));
                Some(hole)
            }
            name if name == "fence" || opens.contains(&name) => {
                self.errors.push(call, &say::NESTED_EPOCH, &[&window, &kind.word()]);
                Some(unit(span))
            }
            // What the handle knows about its window; asking is no way to get a pending value.
            "rank" | "size" | "len" | "is_empty" | "len_at" => {
                let mut call = call.clone();
                call.args.iter_mut().for_each(|argument| self.operand(argument));
                Some(Expr::MethodCall(call))
            }
            // The handle's own stores are judged as `u[i] = x` is.
            "store" | "write" if !kind.is_private() => {
                let mut inner = call.clone();
                inner.args.iter_mut().for_each(|argument| self.operand(argument));
                Some(self.cut(layer, Act::Called(Box::new(inner)), call))
            }
            "at" if call.args.len() == 1 => {
                self.errors.push(call, &say::PLACE_WITHOUT_INDEX, &[&window]);
                Some(unit(span))
            }
            "at" => {
                self.errors.push(call, &say::AT_TAKES_A_RANK, &[&window]);
                Some(unit(span))
            }
            _ => None,
        }
    }

    /// `u.at(rank)[…].method(…)`.
    fn remote_method(&mut self, call: &syn::ExprMethodCall, place: Written) -> Expr {
        let span = call.span();
        let shape = place.shape();
        let Written::Remote { layer, rank, index, goes_on } = place else { return unit(span) };
        let name = call.method.to_string();
        let fetch = match name.as_str() {
            "fetch_add" => Some(Operation::Sum),
            "fetch_mul" => Some(Operation::Prod),
            "fetch_min" => Some(Operation::Min),
            "fetch_max" => Some(Operation::Max),
            "fetch_and" => Some(Operation::And),
            "fetch_or" => Some(Operation::Or),
            "fetch_xor" => Some(Operation::Xor),
            "swap" => Some(Operation::Replace),
            _ => None,
        };
        let (wanted, element) = match name.as_str() {
            "copy_from_slice" => (1, Shape::Range),
            "to_vec" => (0, Shape::Range),
            "min" | "max" => (1, shape),
            "compare_swap" => (2, Shape::Element),
            _ if fetch.is_some() => (1, Shape::Element),
            _ => {
                self.errors.push(&call.method, &say::UNKNOWN_METHOD, &[&name]);
                return unit(span);
            }
        };
        if call.args.len() != wanted {
            let arguments = ["no argument", "one argument", "two arguments"][wanted];
            self.errors.push(call, &say::WRONG_ARGUMENTS, &[&name, &arguments]);
            return unit(span);
        }
        match (element, shape) {
            (Shape::Range, Shape::Element) => {
                self.errors.push(&call.receiver, &say::ELEMENT_AS_RANGE, &[&name]);
                return unit(span);
            }
            (Shape::Element, Shape::Range) => {
                self.errors.push(&call.method, &say::UNKNOWN_METHOD, &[&name]);
                return unit(span);
            }
            _ => {}
        }
        let act = match name.as_str() {
            "copy_from_slice" => {
                let Some(from) = self.origin(&call.args[0]) else { return unit(span) };
                Act::Put { to: self.remote(rank, index, layer, goes_on), from }
            }
            "to_vec" => {
                Act::Get { from: self.remote(rank, index, layer, goes_on), into: Destination::PendingVec }
            }
            "min" | "max" => {
                if self.position != Position::Statement {
                    self.errors.push(call, &say::ACCUMULATE_AS_VALUE, &[&name]);
                    return unit(span);
                }
                let from = match shape {
                    Shape::Range => self.origin(&call.args[0]),
                    Shape::Element => self.value_origin(&call.args[0]),
                };
                let Some(from) = from else { return unit(span) };
                let operation = if name == "min" { Operation::Min } else { Operation::Max };
                Act::Accumulate { to: self.remote(rank, index, layer, goes_on), operation, from }
            }
            "compare_swap" => {
                let (mut expected, mut new) = (call.args[0].clone(), call.args[1].clone());
                self.operand(&mut expected);
                self.operand(&mut new);
                let at = self.remote(rank, index, layer, goes_on);
                Act::CompareSwap { at, expected: Box::new(expected), new: Box::new(new) }
            }
            _ => {
                let mut value = call.args[0].clone();
                self.operand(&mut value);
                let at = self.remote(rank, index, layer, goes_on);
                Act::FetchOp { at, operation: fetch.unwrap_or(Operation::Replace), value: Box::new(value) }
            }
        };
        self.cut(layer, act, call)
    }

    /// A place that stands where a value is taken.
    fn value(&mut self, expr: &Expr) -> Option<Expr> {
        let span = expr.span();
        let shape = self.place(expr)?;
        let is_range = shape.shape() == Shape::Range;
        match shape {
            Written::Remote { .. } if is_range => {
                self.errors.push(expr, &say::RANGE_AS_VALUE, &[]);
                Some(unit(span))
            }
            Written::Remote { layer, rank, index, goes_on } => {
                let from = self.remote(rank, index, layer, goes_on);
                Some(self.cut(layer, Act::Get { from, into: Destination::Pending }, expr))
            }
            Written::Local { layer, .. } if is_range => {
                let window = &self.layers[layer].window;
                self.errors.push(expr, &say::REFERENCE_TO_EXPOSED, &[window]);
                Some(unit(span))
            }
            Written::Local { layer, index } => {
                let section = self.section(index, layer);
                let returned = self.position == Position::Returned;
                Some(self.cut(layer, Act::Load { section, returned }, expr))
            }
        }
    }

    /// The layer of a transfer whose value arrives with the end of the epoch.
    fn promise(&mut self, expr: &Expr) -> Option<usize> {
        let place = match bare(expr) {
            Expr::MethodCall(call) if BRING.contains(&call.method.to_string().as_str()) => &*call.receiver,
            _ => expr,
        };
        match self.place(place)? {
            Written::Remote { layer, .. } => Some(layer),
            Written::Local { .. } => None,
        }
    }

    /// Reports a promise that stands where its value would be needed at once.
    fn needed_now(&mut self, expr: &Expr) -> bool {
        let Some(layer) = self.promise(expr) else { return false };
        self.errors.push(expr, &say::USED_TOO_EARLY, &[&self.layers[layer].kind.closing()]);
        true
    }

    /// Reports a window that the attribute does not open, where `window.at(…)` or `window[…]` is written.
    fn stranger(&mut self, window: &Expr) -> bool {
        let Some(name) = variable(window).filter(|name| self.strangers.contains(name)) else { return false };
        self.errors.push(window, &say::WINDOW_NOT_OPENED, &[name]);
        true
    }

    /// Walks into `name!(expr, …)`; a macro that is not such a list and mentions a window is refused.
    fn walk_macro(&mut self, mac: &mut syn::Macro) {
        let exposed = self.layers.iter().filter(|layer| !layer.kind.is_private());
        let Some(window) =
            exposed.map(|layer| layer.window.clone()).find(|name| mentions(mac.tokens.clone(), name))
        else {
            for name in names(mac.tokens.clone()) {
                self.step(Step::Use(name));
            }
            return;
        };
        let list = Punctuated::<Expr, Token![,]>::parse_terminated;
        let name = mac.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
        match mac.parse_body_with(list) {
            Ok(mut list) if TRANSPARENT.contains(&name.as_str()) => {
                for expr in &mut list {
                    let value = match expr {
                        Expr::Assign(named) => &mut *named.right,
                        other => other,
                    };
                    if !self.needed_now(value) {
                        self.operand(value);
                    }
                }
                mac.tokens = quote::quote!(#list);
            }
            _ => self.errors.push(&mac.path, &say::OPAQUE_MACRO, &[&window, &name]),
        }
    }
}

/// Methods of a remote place that bring a value.
const BRING: [&str; 10] = [
    "to_vec",
    "fetch_add",
    "fetch_mul",
    "fetch_min",
    "fetch_max",
    "fetch_and",
    "fetch_or",
    "fetch_xor",
    "swap",
    "compare_swap",
];

/// Macros of the standard library whose arguments are expressions and are evaluated where they stand.
const TRANSPARENT: [&str; 19] = [
    "assert",
    "assert_eq",
    "assert_ne",
    "dbg",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "eprint",
    "eprintln",
    "format",
    "panic",
    "print",
    "println",
    "todo",
    "unimplemented",
    "unreachable",
    "vec",
    "write",
    "writeln",
];

/// Every identifier in some tokens.
fn names(tokens: TokenStream) -> Vec<Ident> {
    let inside = |token| match token {
        TokenTree::Ident(ident) => vec![ident],
        TokenTree::Group(group) => names(group.stream()),
        TokenTree::Punct(_) | TokenTree::Literal(_) => Vec::new(),
    };
    tokens.into_iter().flat_map(inside).collect()
}

fn mentions(tokens: TokenStream, name: &Ident) -> bool {
    names(tokens).contains(name)
}

impl VisitMut for Cutter<'_> {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        let replaced = match expr {
            Expr::Assign(assign) => self.assign(assign),
            Expr::Binary(binary) => self.assign_op(binary),
            Expr::MethodCall(call) => self.method(call),
            Expr::Index(_) => self.value(expr),
            Expr::Reference(reference) => match self.place(&reference.expr) {
                Some(place) => {
                    let window = &self.layers[place.layer()].window;
                    self.errors.push(reference, &say::REFERENCE_TO_EXPOSED, &[window]);
                    Some(unit(reference.span()))
                }
                None => None,
            },
            _ => None,
        };
        if let Some(hole) = replaced {
            *expr = hole;
            return;
        }
        // The last expression of a block stands where the block stands; of everything else the value is taken.
        let position = match expr {
            Expr::If(_) | Expr::Match(_) | Expr::Block(_) | Expr::Unsafe(_) => self.position,
            Expr::ForLoop(_) | Expr::While(_) | Expr::Loop(_) => Position::Statement,
            Expr::Return(_) => Position::Returned,
            Expr::Tuple(_) | Expr::Paren(_) if self.position == Position::Returned => Position::Returned,
            Expr::Call(call) if self.position == Position::Returned && is_word(&call.func, "Ok") => {
                Position::Returned
            }
            _ => Position::Operand,
        };
        self.at_position(position, |cutter| cutter.walk(expr));
    }

    fn visit_block_mut(&mut self, block: &mut syn::Block) {
        let inherited = self.position;
        let last = block.stmts.len().saturating_sub(1);
        for (number, stmt) in block.stmts.iter_mut().enumerate() {
            let is_value = number == last && matches!(stmt, Stmt::Expr(_, None));
            let position = if is_value { inherited } else { Position::Statement };
            self.at_position(position, |cutter| cutter.visit_stmt_mut(stmt));
        }
    }

    fn visit_stmt_mut(&mut self, stmt: &mut Stmt) {
        match stmt {
            Stmt::Macro(stmt) => self.walk_macro(&mut stmt.mac),
            other => visit_mut::visit_stmt_mut(self, other),
        }
    }

    fn visit_local_mut(&mut self, local: &mut syn::Local) {
        if let Some(init) = &mut local.init {
            if let Pat::Type(typed) = &local.pat
                && !names(typed.ty.to_token_stream()).iter().any(|name| name == "Pending")
                && let Some(layer) = self.promise(&init.expr)
            {
                let written = typed.ty.to_token_stream();
                let closing = self.layers[layer].kind.closing();
                self.errors.push(&typed.ty, &say::PENDING_TYPED, &[&written, &closing]);
            }
            self.operand(&mut init.expr);
            if let Some((_, diverge)) = &mut init.diverge {
                let otherwise = self.apart(|cutter| cutter.operand(diverge));
                self.step(Step::Branch(vec![otherwise, Vec::new()]));
            }
        }
        self.visit_pat_mut(&mut local.pat);
    }

    fn visit_pat_ident_mut(&mut self, pat: &mut syn::PatIdent) {
        if self.layers.iter().any(|layer| layer.window == pat.ident) {
            self.errors.push(pat, &say::WINDOW_REBOUND, &[&pat.ident]);
        }
        self.step(Step::Bind(pat.ident.clone()));
        visit_mut::visit_pat_ident_mut(self, pat);
    }

    fn visit_expr_path_mut(&mut self, path: &mut syn::ExprPath) {
        if let Some(name) = path.path.get_ident() {
            self.step(Step::Use(name.clone()));
        }
    }

    fn visit_macro_mut(&mut self, mac: &mut syn::Macro) {
        self.walk_macro(mac);
    }

    // An item inside the body sees none of its names.
    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
}

impl Cutter<'_> {
    /// The parts of an expression that is no access itself.
    fn walk(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Binary(binary) => {
                for side in [&mut binary.left, &mut binary.right] {
                    if !self.needed_now(side) {
                        self.visit_expr_mut(side);
                    }
                }
            }
            Expr::Unary(syn::ExprUnary { expr: inner, .. })
            | Expr::Cast(syn::ExprCast { expr: inner, .. }) => {
                if !self.needed_now(inner) {
                    self.visit_expr_mut(inner);
                }
            }
            Expr::MethodCall(call) if call.method == "at" => {
                if !self.stranger(&call.receiver) {
                    visit_mut::visit_expr_method_call_mut(self, call);
                }
            }
            Expr::MethodCall(call) if call.method != "into" => {
                if !self.needed_now(&call.receiver) {
                    visit_mut::visit_expr_method_call_mut(self, call);
                }
            }
            Expr::Index(index) => {
                if !self.stranger(&index.expr) {
                    visit_mut::visit_expr_index_mut(self, index);
                }
            }
            Expr::If(branch) => {
                self.condition(&mut branch.cond);
                let then = self.apart(|cutter| cutter.visit_block_mut(&mut branch.then_branch));
                let otherwise = self.apart(|cutter| {
                    if let Some((_, otherwise)) = &mut branch.else_branch {
                        cutter.visit_expr_mut(otherwise);
                    }
                });
                self.step(Step::Branch(vec![then, otherwise]));
            }
            Expr::Match(branch) => {
                self.condition(&mut branch.expr);
                let arms = branch
                    .arms
                    .iter_mut()
                    .map(|arm| {
                        self.apart(|cutter| {
                            cutter.visit_pat_mut(&mut arm.pat);
                            cutter.visit_expr_mut(&mut arm.body);
                        })
                    })
                    .collect();
                self.step(Step::Branch(arms));
            }
            Expr::ForLoop(repeat) => {
                self.condition(&mut repeat.expr);
                let round = self.apart(|cutter| {
                    cutter.visit_pat_mut(&mut repeat.pat);
                    cutter.visit_block_mut(&mut repeat.body);
                });
                self.step(Step::Loop(round));
            }
            Expr::While(repeat) => {
                let round = self.apart(|cutter| {
                    cutter.condition(&mut repeat.cond);
                    cutter.visit_block_mut(&mut repeat.body);
                });
                self.step(Step::Loop(round));
            }
            Expr::Loop(repeat) => {
                let round = self.apart(|cutter| cutter.visit_block_mut(&mut repeat.body));
                self.step(Step::Loop(round));
            }
            Expr::Closure(closure) => {
                self.closures += 1;
                let inside = self.apart(|cutter| visit_mut::visit_expr_closure_mut(cutter, closure));
                self.closures -= 1;
                self.step(Step::Branch(vec![inside, Vec::new()]));
            }
            Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) => {
                visit_mut::visit_expr_mut(self, expr);
                self.step(Step::Leave);
            }
            Expr::Async(block) => {
                self.errors.push(&block.async_token, &say::SUSPENDS, &[&"async"]);
            }
            Expr::Await(wait) => {
                self.errors.push(&wait.await_token, &say::SUSPENDS, &[&"await"]);
            }
            Expr::Yield(give) => {
                self.errors.push(&give.yield_token, &say::SUSPENDS, &[&"yield"]);
            }
            other => visit_mut::visit_expr_mut(self, other),
        }
    }

    /// A condition, scrutinee or range of a loop, whose value is needed at once.
    fn condition(&mut self, expr: &mut Expr) {
        if !self.needed_now(expr) {
            self.operand(expr);
        }
    }
}

// Small readings of syntax.

fn unit(span: Span) -> Expr {
    syn::parse_quote_spanned!(span=> ())
}

/// The operator without its `=`, and the accumulate that it means on another rank's memory.
fn assigning(op: &syn::BinOp) -> Option<(syn::BinOp, Option<Operation>)> {
    use syn::BinOp::{self, *};
    let plain = |text: &str| syn::parse_str::<BinOp>(text).ok();
    let (text, operation) = match op {
        AddAssign(_) => ("+", Some(Operation::Sum)),
        MulAssign(_) => ("*", Some(Operation::Prod)),
        BitAndAssign(_) => ("&", Some(Operation::And)),
        BitOrAssign(_) => ("|", Some(Operation::Or)),
        BitXorAssign(_) => ("^", Some(Operation::Xor)),
        SubAssign(_) => ("-", None),
        DivAssign(_) => ("/", None),
        RemAssign(_) => ("%", None),
        ShlAssign(_) => ("<<", None),
        ShrAssign(_) => (">>", None),
        _ => return None,
    };
    Some((plain(text)?, operation))
}
