//! Spans, line index, diagnostics and their renderer. Never reads a file and never exits.
#![forbid(unsafe_code)]
