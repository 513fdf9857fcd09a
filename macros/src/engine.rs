//! The whole way from attribute and item to code: parse, check, expand. Never stops at the first error.

use proc_macro2::TokenStream;
use quote::quote;

use crate::messages::Errors;
use crate::{check, expand, parse};

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
        _ => {
            let messages = errors.into_tokens();
            quote!(#messages #item)
        }
    }
}
