//! One-sided communication: windows, epochs and transfers between the ranks of a job.
