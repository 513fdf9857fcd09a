//! The Rust back end.
pub mod prelude;
