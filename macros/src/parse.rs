//! Attribute and body → model. Never judges legality: that is `check.rs`; it refuses only what has no meaning.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, FnArg, ItemFn, Pat, ReturnType, Stmt, Token, Type};

use crate::messages::{self as say, Errors};
use crate::model::{
    Access, Act, Body, Destination, Function, Info, Kind, Layer, Operation, Origin, Place, Remote, Section,
    Step,
};

/// The macro that stands for a hole until `expand.rs` fills it.
pub(crate) const HOLE: &str = "__rma_hole";

/// Reads attribute and function. Errors go into the bag; `None` means that there is nothing to go on with.
pub(crate) fn function(attribute: TokenStream, item: TokenStream, errors: &mut Errors) -> Option<Function> {
    let layers = attribute_layers(attribute, errors);
    let mut item = match syn::parse2::<ItemFn>(item.clone()) {
        Ok(item) => item,
        Err(_) => {
            errors.push(&first_token(item), &say::NOT_A_FUNCTION, &[]);
            return None;
        }
    };
    signature(&item, errors);
    let layers: Vec<Layer> = layers.into_iter().filter_map(|layer| layer.finish(&item, errors)).collect();
    let mut cutter = Cutter {
        layers: &layers,
        strangers: other_windows(&item, &layers),
        errors,
        accesses: Vec::new(),
        steps: vec![Vec::new()],
        closures: 0,
        position: Position::Returned,
    };
    if !layers.is_empty() {
        cutter.visit_block_mut(&mut item.block);
    }
    let (accesses, steps) = (cutter.accesses, cutter.steps.pop().unwrap_or_default());
    let borrowed = parameters(&item)
        .filter(|(_, ty)| matches!(ty, Type::Reference(_)))
        .map(|(name, _)| name.clone())
        .collect();
    let body = Body { accesses, steps, borrowed };
    Some(Function { layers, item, body })
}

fn first_token(tokens: TokenStream) -> TokenStream {
    tokens.into_iter().take(1).collect()
}

// The attribute.

/// `name`, `name = value` inside the parentheses of a kind.
struct Argument {
    name: Ident,
    value: Option<Expr>,
}

impl Parse for Argument {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = input.call(Ident::parse_any)?;
        let value = if input.parse::<Option<Token![=]>>()?.is_some() { Some(input.parse()?) } else { None };
        Ok(Argument { name, value })
    }
}

/// `kind(argument, …)`.
struct KindArguments {
    kind: Ident,
    arguments: Vec<Argument>,
    span: Span,
}

impl Parse for KindArguments {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let kind = input.call(Ident::parse_any)?;
        if !input.peek(syn::token::Paren) {
            return Ok(KindArguments { span: kind.span(), kind, arguments: Vec::new() });
        }
        let inside;
        syn::parenthesized!(inside in input);
        let arguments = Punctuated::<Argument, Token![,]>::parse_terminated(&inside)?;
        Ok(KindArguments { span: kind.span(), kind, arguments: arguments.into_iter().collect() })
    }
}

/// A layer whose window has not been looked up yet.
struct Draft {
    kind: Kind,
    window: Ident,
    value: Option<Expr>,
    targets: Option<Expr>,
    origins: Option<Expr>,
    count: Option<Expr>,
    info: Info,
}

fn attribute_layers(attribute: TokenStream, errors: &mut Errors) -> Vec<Draft> {
    if attribute.is_empty() {
        errors.push_at(Span::call_site(), &say::KIND_MISSING, &[]);
        return Vec::new();
    }
    let parser = Punctuated::<KindArguments, Token![,]>::parse_terminated;
    match syn::parse::Parser::parse2(parser, attribute) {
        Ok(kinds) => kinds.into_iter().flat_map(|kind| kind_layers(kind, errors)).collect(),
        Err(error) => {
            errors.push_at(error.span(), &say::ATTRIBUTE_SYNTAX, &[&error]);
            Vec::new()
        }
    }
}

fn kind_layers(written: KindArguments, errors: &mut Errors) -> Vec<Draft> {
    let word = written.kind.to_string();
    let allowed: &[&str] = match word.as_str() {
        "fence" => &[],
        "access" => &["targets", "info", "because"],
        "exposure" => &["origins", "count"],
        "exchange" => &["targets", "origins", "count", "info", "because"],
        "lock" => &["rank", "exclusive", "shared", "info", "because"],
        "local" => &["read"],
        "offer" => {
            errors.push(&written.kind, &say::OFFER_NOT_BUILT, &[]);
            return Vec::new();
        }
        _ => {
            errors.push(&written.kind, &say::KIND_UNKNOWN, &[&word]);
            return Vec::new();
        }
    };
    let mut options = Options { kind: word.clone(), given: Vec::new() };
    let mut windows = Vec::new();
    for argument in written.arguments {
        let name = argument.name.to_string();
        let known = OPTIONS.contains(&name.as_str());
        // `exclusive`, `shared`, `read` and `any` are words; the other options carry a value, so a bare name that is
        // spelled like one of those can still be a window.
        let is_option = known && (argument.value.is_some() == TAKES_VALUE.contains(&name.as_str()));
        match is_option {
            true if !allowed.contains(&name.as_str()) => {
                errors.push(&argument.name, &say::OPTION_UNKNOWN, &[&word, &name]);
            }
            true => options.add(argument, errors),
            false => windows.push((argument.name, argument.value)),
        }
    }
    if windows.is_empty() {
        errors.push_at(written.span, &say::WINDOW_MISSING, &[&word]);
    }
    let span = written.span;
    let kind = match word.as_str() {
        "fence" => Some(Kind::Fence),
        "access" => Some(Kind::Access),
        "exposure" => Some(Kind::Exposure),
        "exchange" => Some(Kind::Exchange),
        "local" => Some(if options.has("read") { Kind::LocalRead } else { Kind::Local }),
        _ => match (options.has("exclusive"), options.has("shared")) {
            (true, false) => Some(Kind::LockExclusive),
            (false, true) => Some(Kind::LockShared),
            _ => {
                errors.push_at(span, &say::LOCK_KIND_MISSING, &[]);
                None
            }
        },
    };
    let mut targets = options.take("targets");
    if word == "lock" {
        targets = options.take("rank");
    }
    let origins = options.take("origins");
    let count = options.take("count");
    let needs: &[(&str, bool)] = match word.as_str() {
        "lock" => &[("rank", targets.is_none())],
        "access" => &[("targets", targets.is_none())],
        "exposure" => &[("origins", origins.is_none())],
        "exchange" => &[("targets", targets.is_none()), ("origins", origins.is_none())],
        _ => &[],
    };
    for (option, _) in needs.iter().filter(|(_, missing)| *missing) {
        errors.push_at(span, &say::OPTION_MISSING, &[&word, option]);
    }
    let any = origins.as_ref().is_some_and(|origins| is_word(origins, "any"));
    match (any, &count) {
        (true, None) => errors.push_at(span, &say::COUNT_MISSING, &[]),
        (false, Some(count)) if origins.is_some() => errors.push(count, &say::COUNT_WITH_GROUP, &[]),
        _ => {}
    }
    let info = options.info(errors);
    let Some(kind) = kind else { return Vec::new() };
    windows
        .into_iter()
        .map(|(window, value)| Draft {
            kind,
            window,
            value,
            targets: targets.clone(),
            origins: origins.clone().filter(|_| !any),
            count: count.clone(),
            info: info.clone(),
        })
        .collect()
}

const OPTIONS: [&str; 9] =
    ["targets", "origins", "count", "info", "because", "rank", "exclusive", "shared", "read"];
const TAKES_VALUE: [&str; 6] = ["targets", "origins", "count", "info", "because", "rank"];

/// The options of one kind, each at most once.
struct Options {
    kind: String,
    given: Vec<Argument>,
}

impl Options {
    fn add(&mut self, argument: Argument, errors: &mut Errors) {
        if self.has(&argument.name.to_string()) {
            errors.push(&argument.name, &say::OPTION_TWICE, &[&argument.name]);
        } else {
            self.given.push(argument);
        }
    }

    fn has(&self, name: &str) -> bool {
        self.given.iter().any(|argument| argument.name == name)
    }

    fn take(&mut self, name: &str) -> Option<Expr> {
        let at = self.given.iter().position(|argument| argument.name == name)?;
        self.given.swap_remove(at).value
    }

    fn info(&mut self, errors: &mut Errors) -> Info {
        debug_assert!(!self.kind.is_empty());
        let because = self.take("because");
        let reason = match &because {
            None => None,
            Some(Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }))
                if !text.value().trim().is_empty() =>
            {
                Some(text.value())
            }
            Some(other) => {
                errors.push(other, &say::BECAUSE_NOT_TEXT, &[]);
                Some(String::new())
            }
        };
        let info = self.take("info");
        match (&info, reason) {
            (Some(info), Some(reason)) if is_word(info, "nocheck") => Info::NoCheck(reason),
            (Some(info), None) if is_word(info, "nocheck") => {
                errors.push(info, &say::NOCHECK_WITHOUT_BECAUSE, &[]);
                Info::Strong
            }
            (_, Some(_)) => {
                errors.push(&because, &say::BECAUSE_WITHOUT_NOCHECK, &[]);
                Info::Strong
            }
            (None, None) => Info::Strong,
            (Some(info), None) if is_word(info, "strong") => Info::Strong,
            (Some(info), None) if is_word(info, "weak") => Info::Weak,
            (Some(info), None) => {
                let written = quote::quote!(#info).to_string();
                errors.push(info, &say::INFO_UNKNOWN, &[&written]);
                Info::Strong
            }
        }
    }
}

impl Draft {
    /// Looks the window up among the function's parameters.
    fn finish(self, item: &ItemFn, errors: &mut Errors) -> Option<Layer> {
        let place = match self.value {
            Some(value) => Place::Expression(Box::new(value)),
            None => match parameter(item, &self.window) {
                Some(Type::Reference(_)) => Place::Reference,
                Some(_) => Place::Owned,
                None => {
                    errors.push(&self.window, &say::WINDOW_UNKNOWN, &[&self.window]);
                    return None;
                }
            },
        };
        Some(Layer {
            kind: self.kind,
            window: self.window,
            place,
            targets: self.targets,
            origins: self.origins,
            count: self.count,
            info: self.info,
        })
    }
}

fn parameters(item: &ItemFn) -> impl Iterator<Item = (&Ident, &Type)> {
    item.sig.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(typed) => match &*typed.pat {
            Pat::Ident(pat) => Some((&pat.ident, &*typed.ty)),
            _ => None,
        },
        FnArg::Receiver(_) => None,
    })
}

fn parameter<'a>(item: &'a ItemFn, name: &Ident) -> Option<&'a Type> {
    parameters(item).find(|(parameter, _)| *parameter == name).map(|(_, ty)| ty)
}

/// Parameters whose type names `Window` and that the attribute does not open.
fn other_windows(item: &ItemFn, layers: &[Layer]) -> Vec<Ident> {
    parameters(item)
        .filter(|(_, ty)| {
            let ty = match ty {
                Type::Reference(reference) => &*reference.elem,
                other => other,
            };
            matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|s| s.ident == "Window"))
        })
        .map(|(name, _)| name)
        .filter(|name| layers.iter().all(|layer| layer.window != **name))
        .cloned()
        .collect()
}

fn signature(item: &ItemFn, errors: &mut Errors) {
    if let Some(asyncness) = &item.sig.asyncness {
        errors.push(asyncness, &say::SUSPENDS, &[&"async"]);
    }
    if let Some(constness) = &item.sig.constness {
        errors.push(constness, &say::CONST_FUNCTION, &[]);
    }
    match &item.sig.output {
        ReturnType::Default => errors.push(&item.sig.ident, &say::NO_RESULT, &[]),
        ReturnType::Type(_, ty) => match &**ty {
            Type::Path(_) | Type::Paren(_) | Type::Group(_) | Type::Macro(_) => {}
            other => errors.push(other, &say::NO_RESULT, &[]),
        },
    }
}

// The body.

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
    Remote { layer: usize, rank: Box<Expr>, index: Expr },
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
        let layer = self.layer_of(&call.receiver).filter(|_| call.method == "at")?;
        if call.args.len() != 1 {
            return None;
        }
        Some(Written::Remote { layer, rank: Box::new(call.args[0].clone()), index: (*index.index).clone() })
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

    fn remote(&mut self, mut rank: Box<Expr>, index: Expr, layer: usize) -> Remote {
        self.operand(&mut rank);
        Remote { rank, section: self.section(index, layer) }
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

    /// Notes a get into one's own memory, which must be that of the same window.
    fn get_into_own(
        &mut self,
        from: Remote,
        far: usize,
        layer: usize,
        section: Section,
        written: &dyn ToTokens,
    ) -> Expr {
        if far != layer {
            let (far, near) = (&self.layers[far].window, &self.layers[layer].window);
            self.errors.push(written, &say::GET_INTO_OTHER_WINDOW, &[far, near]);
        }
        self.cut(far, Act::Get { from, into: Destination::Own { section } }, written)
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
            Written::Remote { layer, rank, index } => {
                if matches!(bare(&index), Expr::Range(_)) {
                    self.errors.push(assign, &say::RANGE_ASSIGNED, &[]);
                    return Some(unit(span));
                }
                let Some(from) = self.value_origin(&assign.right) else { return Some(unit(span)) };
                let to = self.remote(rank, index, layer);
                Some(self.cut(layer, Act::Put { to, from }, assign))
            }
            Written::Local { layer, index } => match self.place(&assign.right) {
                Some(Written::Remote { layer: far, rank, index: there }) => {
                    let from = self.remote(rank, there, far);
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
            Written::Remote { layer, rank, index } => {
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
                let to = self.remote(rank, index, layer);
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
                        Some(Written::Remote { layer: far, rank, index: there }) => {
                            let from = self.remote(rank, there, far);
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
            Written::Remote { layer, rank, index } => {
                let from = self.remote(rank, index, layer);
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
        let Written::Remote { layer, rank, index } = place else { return unit(span) };
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
                Act::Put { to: self.remote(rank, index, layer), from }
            }
            "to_vec" => Act::Get { from: self.remote(rank, index, layer), into: Destination::PendingVec },
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
                Act::Accumulate { to: self.remote(rank, index, layer), operation, from }
            }
            "compare_swap" => {
                let (mut expected, mut new) = (call.args[0].clone(), call.args[1].clone());
                self.operand(&mut expected);
                self.operand(&mut new);
                let at = self.remote(rank, index, layer);
                Act::CompareSwap { at, expected: Box::new(expected), new: Box::new(new) }
            }
            _ => {
                let mut value = call.args[0].clone();
                self.operand(&mut value);
                let at = self.remote(rank, index, layer);
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
            Written::Remote { layer, rank, index } => {
                let from = self.remote(rank, index, layer);
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

    /// Reports a get that stands where its value would be needed at once.
    fn needed_now(&mut self, expr: &Expr) -> bool {
        let Some(Written::Remote { layer, .. }) = self.place(expr) else { return false };
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
                self.operand(&mut repeat.expr);
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

    /// A condition or scrutinee, whose value is needed at once.
    fn condition(&mut self, expr: &mut Expr) {
        if !self.needed_now(expr) {
            self.operand(expr);
        }
    }
}

// Small readings of syntax.

/// The expression inside parentheses and invisible groups.
pub(crate) fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Paren(paren) => bare(&paren.expr),
        Expr::Group(group) => bare(&group.expr),
        other => other,
    }
}

/// The name, if the expression is nothing but a name.
pub(crate) fn variable(expr: &Expr) -> Option<&Ident> {
    match bare(expr) {
        Expr::Path(path) => path.path.get_ident(),
        _ => None,
    }
}

/// The variable whose memory a buffer expression hands over as a whole: `buffer`, `&buffer`, `&mut buffer`,
/// `&buffer[..]`. A part of a buffer is left to the borrow checker, which knows which parts are apart.
pub(crate) fn tracked(expr: &Expr) -> Option<&Ident> {
    match bare(expr) {
        Expr::Reference(reference) => tracked(&reference.expr),
        Expr::Index(index) => match bare(&index.index) {
            Expr::Range(range) if range.start.is_none() && range.end.is_none() => tracked(&index.expr),
            _ => None,
        },
        other => variable(other),
    }
}

fn is_word(expr: &Expr, word: &str) -> bool {
    variable(expr).is_some_and(|name| name == word)
}

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
