//! Back ends: from the one typed representation to text. Never run a compiler and never touch files.

pub mod rust;
