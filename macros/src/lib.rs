//! `#[rma_epoch]`: epochs that the Rust compiler checks. Never reads files or the environment.
#![forbid(unsafe_code)]
