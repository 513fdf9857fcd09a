//! Plans: an input and its exchanges.
