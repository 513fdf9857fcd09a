//! The stencil language compiler. Never links the runtime: it knows `rma` only through the text it emits.
#![forbid(unsafe_code)]

pub mod back;
