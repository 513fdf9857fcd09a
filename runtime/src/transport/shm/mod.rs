//! Mapped memory: one segment per job, and everything that touches its bytes. Never waits.

pub(crate) mod arena;
pub(crate) mod bytes;
pub(crate) mod layout;
pub(crate) mod segment;
