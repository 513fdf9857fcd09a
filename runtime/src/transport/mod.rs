//! Ways to reach the memory of another rank. Never knows windows or epochs.
//!
//! There are two: mapped memory and connections. Ranks that are threads of one process and ranks that are processes of one
//! machine differ only in who made the mapping.

pub(crate) mod shm;
pub(crate) mod tcp;
