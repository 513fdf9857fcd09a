//! The whole way from attribute and item to code: parse, check, expand. Never stops at the first error.

use proc_macro2::TokenStream;
use quote::quote;

use crate::messages::Errors;
use crate::{check, element, expand, parse, test_case};

/// What `#[rma_epoch(attribute)]` on an item becomes: the function inside its epochs, or all messages and the original
/// item, so that completion keeps working and callers still find the function.
pub(crate) fn epoch(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let function = parse::function(attribute, item.clone(), &mut errors);
    if let Some(function) = &function {
        check::function(function, &mut errors);
    }
    match function {
        Some(function) if errors.is_empty() => expand::function(function),
        _ => refused(errors, item),
    }
}

/// What `#[rma_test(attribute)]` on an item becomes.
pub(crate) fn test(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    match test_case::read(attribute, item.clone(), &mut errors) {
        Some(case) if errors.is_empty() => expand::test(case),
        _ => refused(errors, item),
    }
}

/// What `#[derive(Element)]` on an item adds.
pub(crate) fn derive_element(item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let item = match syn::parse2(item) {
        Ok(item) => item,
        // Not an item: rustc has its own words for that.
        Err(error) => return error.to_compile_error(),
    };
    match element::read(&item, &mut errors) {
        Some(plain) if errors.is_empty() => element::expand(plain),
        _ => errors.into_tokens(),
    }
}

/// The messages, and the original item for whoever goes on in spite of them.
///
/// Its body is there for the tools that complete and navigate. The compiler gets a body that does nothing in its place:
/// the original means nothing outside an epoch, and what rustc has to say about that would bury the messages.
fn refused(errors: Errors, item: TokenStream) -> TokenStream {
    let messages = errors.into_tokens();
    let Ok(mut item) = syn::parse2::<syn::ItemFn>(item.clone()) else { return quote!(#messages #item) };
    let body = &item.block;
    item.block = syn::parse_quote!({
        #[cfg(rust_analyzer)]
        #body
        #[cfg(not(rust_analyzer))]
        {
            ::core::unreachable!()
        }
    });
    quote! {
        #messages
        #[allow(unexpected_cfgs, unused)]
        #item
    }
}
