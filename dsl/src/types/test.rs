//! Types: an input and what becomes of it.
