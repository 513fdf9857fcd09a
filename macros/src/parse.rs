//! Attribute and signature → model; the body is `body.rs`'s part. Never judges legality: that is `check.rs`; it refuses only
//! what has no meaning.

use proc_macro2::{Ident, Span, TokenStream};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Expr, FnArg, ItemFn, Pat, ReturnType, Token, Type};

use crate::body;
use crate::messages::{self as say, Errors};
use crate::model::{Body, Events, Function, Info, Kind, Layer, Offer, Place, is_word};

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
    let strangers = other_windows(&item, &layers);
    let body = body::cut(&mut item.block, &layers, strangers, errors);
    let borrowed = parameters(&item)
        .filter(|(_, ty)| matches!(ty, Type::Reference(_)))
        .map(|(name, _)| name.clone())
        .collect();
    Some(Function { layers, item, body: Body { borrowed, ..body } })
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
    offer: Option<Offer>,
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
        "offer" => &["tag", "count", "over", "events"],
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
        "offer" => Some(Kind::Offer),
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
        "offer" => &[("tag", !options.has("tag")), ("count", count.is_none())],
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
    let offer = options.offer(errors);
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
            offer: offer.clone(),
        })
        .collect()
}

const OPTIONS: [&str; 12] = [
    "targets",
    "origins",
    "count",
    "info",
    "because",
    "rank",
    "exclusive",
    "shared",
    "read",
    "tag",
    "over",
    "events",
];
const TAKES_VALUE: [&str; 9] =
    ["targets", "origins", "count", "info", "because", "rank", "tag", "over", "events"];

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

    /// What ends a body of kind `offer`.
    fn offer(&mut self, errors: &mut Errors) -> Option<Offer> {
        let events = match self.take("events") {
            None => Events::Puts,
            Some(word) if is_word(&word, "puts") => Events::Puts,
            Some(word) if is_word(&word, "gets") => Events::Gets,
            Some(word) if is_word(&word, "both") => Events::Both,
            Some(other) => {
                let written = quote::quote!(#other).to_string();
                errors.push(&other, &say::OFFER_EVENTS, &[&written]);
                Events::Puts
            }
        };
        let over = self.take("over");
        self.take("tag").map(|tag| Offer { tag, over, events })
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
            offer: self.offer,
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
