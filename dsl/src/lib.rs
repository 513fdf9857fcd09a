//! The stencil language compiler.
//!
//! `syntax` (text to tree) → `resolve` (names) → `types` (typed IR, functions inlined) → `shape` (footprints, halos,
//! boundary coverage) → `schedule` (plan) → [`ir`], with [`ir::verify`] after each pass in debug builds.
//! [`interp`] runs the IR on one rank and is the reference for every back end.
//!
//! Passes never read files, never look at the environment and never print. Never links the runtime: it knows `rma`
//! only through the text it emits.
#![forbid(unsafe_code)]

pub mod back;
pub mod ir;
pub mod messages;
pub mod picture;
