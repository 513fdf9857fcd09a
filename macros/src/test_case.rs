//! `#[rma_test(ranks = 4, transports = [local, shm])]` → model. Never decides whether a transport can run: that is the
//! runtime's to say, when the test runs.

use proc_macro2::{Ident, Span, TokenStream};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Expr, FnArg, ItemFn, Token};

use crate::messages::{self as say, Errors};
use crate::model::variable;

/// The largest job that a test may start: one machine runs it, with all other tests beside it.
const RANKS_MAX: u32 = 64;

/// The transports that have a name; which of them work is known at run time.
const TRANSPORTS: [&str; 4] = ["local", "shm", "tcp", "mpi"];

/// A function that runs as a job, once per transport.
pub(crate) struct TestCase {
    pub(crate) item: ItemFn,
    pub(crate) ranks: u32,
    pub(crate) transports: Vec<Ident>,
}

struct Setting {
    name: Ident,
    value: Expr,
}

impl Parse for Setting {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = input.parse()?;
        input.parse::<Token![=]>()?;
        Ok(Setting { name, value: input.parse()? })
    }
}

/// Reads attribute and function; errors go into the bag.
pub(crate) fn read(attribute: TokenStream, item: TokenStream, errors: &mut Errors) -> Option<TestCase> {
    let parser = Punctuated::<Setting, Token![,]>::parse_terminated;
    let settings = match syn::parse::Parser::parse2(parser, attribute) {
        Ok(settings) => settings,
        Err(error) => {
            errors.push_at(error.span(), &say::TEST_SYNTAX, &[&error]);
            return None;
        }
    };
    let item: ItemFn = match syn::parse2(item) {
        Ok(item) => item,
        Err(error) => {
            errors.push_at(error.span(), &say::TEST_SIGNATURE, &[]);
            return None;
        }
    };
    let takes_team = item.sig.inputs.len() == 1 && matches!(item.sig.inputs[0], FnArg::Typed(_));
    if !takes_team || !item.sig.generics.params.is_empty() || item.sig.asyncness.is_some() {
        errors.push(&item.sig, &say::TEST_SIGNATURE, &[]);
    }
    let mut ranks = None;
    let mut transports = Vec::new();
    for setting in settings {
        match setting.name.to_string().as_str() {
            "ranks" => ranks = Some(setting.value),
            "transports" => transports = transport_list(setting.value, errors),
            name => errors.push(&setting.name, &say::TEST_OPTION, &[&name]),
        }
    }
    if transports.is_empty() {
        transports.push(Ident::new(TRANSPORTS[0], Span::call_site()));
    }
    let number = match &ranks {
        Some(Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(number), .. })) => {
            number.base10_parse().unwrap_or(0)
        }
        _ => 0,
    };
    if number == 0 || RANKS_MAX < number {
        match ranks {
            Some(value) => errors.push(&value, &say::TEST_RANKS, &[]),
            None => errors.push_at(Span::call_site(), &say::TEST_RANKS, &[]),
        }
    }
    Some(TestCase { item, ranks: number, transports })
}

fn transport_list(value: Expr, errors: &mut Errors) -> Vec<Ident> {
    let Expr::Array(list) = value else {
        errors.push(&value, &say::TEST_TRANSPORT, &[&quote::quote!(#value)]);
        return Vec::new();
    };
    let known = |element: &Expr| {
        variable(element).filter(|name| TRANSPORTS.iter().any(|known| *name == known)).cloned()
    };
    let mut transports = Vec::new();
    for element in &list.elems {
        match known(element) {
            Some(name) => transports.push(name),
            None => errors.push(element, &say::TEST_TRANSPORT, &[&quote::quote!(#element)]),
        }
    }
    transports
}
