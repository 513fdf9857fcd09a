//! `#[rma_epoch]`: epochs that the Rust compiler checks. Never reads files or the environment.
#![forbid(unsafe_code)]

mod check;
mod engine;
mod expand;
mod messages;
mod model;
mod parse;
mod test_case;

use proc_macro::TokenStream;

/// Makes the body of a function an epoch.
#[proc_macro_attribute]
pub fn rma_epoch(attribute: TokenStream, item: TokenStream) -> TokenStream {
    engine::epoch(attribute.into(), item.into()).into()
}

/// Makes a function a test that runs as a job.
#[proc_macro_attribute]
pub fn rma_test(attribute: TokenStream, item: TokenStream) -> TokenStream {
    engine::test(attribute.into(), item.into()).into()
}
