//! Spans, line index, diagnostics and their renderers, for any source language.
//!
//! A [`SourceMap`] owns the texts, a [`Span`] is a byte range of one of them, a [`Diagnostic`] says what is wrong
//! there and how to put it right, and [`render`] shows it as text or JSON.
//!
//! Never reads a file, never prints and never exits. A caller whose bytes are not UTF-8 converts them lossily first;
//! spans then count bytes of the converted text. A span that is out of range or splits a character is clamped, so
//! that rendering cannot panic.
#![forbid(unsafe_code)]

mod diagnostic;
mod file;
pub mod render;
mod span;

pub use diagnostic::{Applicability, Diagnostic, Edit, Help, Label, Level};
pub use file::{FileId, LineColumn, SourceFile, SourceMap};
pub use span::Span;
