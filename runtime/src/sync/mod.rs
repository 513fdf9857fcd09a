//! Synchronization words that live in shared memory. Never reaches beyond `primitive`, so that the files can be
//! checked by loom: `tests/loom.rs` includes them beside its own `primitive`.

pub(crate) mod barrier;
pub(crate) mod event;
pub(crate) mod exposure;
pub(crate) mod phases;
pub(crate) mod primitive;
pub(crate) mod registers;
pub(crate) mod state_word;
