//! Names: an input and what is said about it.
