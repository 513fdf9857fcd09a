//! What a process has sent and received over its connections, in numbers. Never looks at what it counts.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of one process. Each is exact; read together while others count, they may be of slightly different times.
#[derive(Default)]
pub(crate) struct Tally {
    /// Frames that were staged on the own links.
    pub(crate) frames_sent: Count,
    /// Replies to frames of others.
    pub(crate) replies_sent: Count,
    /// Frames of others, each counted once however often it is given again.
    pub(crate) frames_received: Count,
    pub(crate) replies_received: Count,
    pub(crate) bytes_sent: Count,
    pub(crate) bytes_received: Count,
    /// Calls of the system that have sent something.
    pub(crate) writes: Count,
}

/// A number that goes up.
#[derive(Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed); // Relaxed: nothing is published by it.
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Tally {
    /// Counts what one call of the system has sent.
    pub(crate) fn wrote(&self, bytes: usize) {
        self.bytes_sent.add(bytes as u64);
        self.writes.add(1);
    }
}
