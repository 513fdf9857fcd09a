//! Mapped memory: one segment per job, and everything that touches its bytes. Never waits.

pub(crate) mod arena;
pub(crate) mod atomic;
pub(crate) mod bytes;
pub(crate) mod copier;
pub(crate) mod copy;
pub(crate) mod layout;
pub(crate) mod offers;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod pairs;
pub(crate) mod segment;
