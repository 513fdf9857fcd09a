//! What a rank has done so far that costs time, in numbers: for tests, tools and `rma-run --stats`. Never on the path of mapped
//! memory, where there is nothing to count.
#![forbid(unsafe_code)]

use std::fmt;
use std::time::Duration;

/// What a rank has sent and received over connections since it joined the job, and how often its calls have slept. See
/// [`Team::traffic`](crate::Team::traffic).
///
/// A *frame* is what one request, or several puts that travel together, take on a connection. Transfers of mapped memory are no
/// traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traffic {
    /// Frames that this rank's calls have sent: requests, data, what collective calls and synchronization need.
    pub frames_sent: u64,
    /// Replies to frames of other ranks.
    pub replies_sent: u64,
    /// Frames of other ranks that this one has done what they ask for.
    pub frames_received: u64,
    /// Replies to this rank's frames.
    pub replies_received: u64,
    /// Bytes of all that was sent.
    pub bytes_sent: u64,
    /// Bytes of all that was received.
    pub bytes_received: u64,
    /// Calls of the operating system that have sent something: frames that are sent together need one.
    pub writes: u64,
    /// Calls of this rank that have slept, because looking for a short time was not enough.
    pub waits: u64,
    /// How long those calls have slept in all.
    pub waited: Duration,
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Traffic { frames_sent, replies_sent, bytes_sent, writes, .. } = self;
        let Traffic { frames_received, replies_received, bytes_received, waits, waited, .. } = self;
        write!(
            f,
            "sent {frames_sent} frames and {replies_sent} replies ({bytes_sent} bytes in {writes} writes), received \
             {frames_received} frames and {replies_received} replies ({bytes_received} bytes), slept in {waits} calls \
             ({:.3} s)",
            waited.as_secs_f64()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_in_the_line() {
        let traffic = Traffic {
            frames_sent: 11,
            replies_sent: 12,
            frames_received: 13,
            replies_received: 14,
            bytes_sent: 15,
            bytes_received: 16,
            writes: 17,
            waits: 18,
            waited: Duration::from_millis(19),
        };
        assert_eq!(
            traffic.to_string(),
            "sent 11 frames and 12 replies (15 bytes in 17 writes), received 13 frames and 14 replies (16 bytes), slept in \
             18 calls (0.019 s)"
        );
    }
}
