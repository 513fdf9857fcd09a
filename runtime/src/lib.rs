//! One-sided communication: windows, epochs and transfers between the ranks of a job.

mod element;

pub use element::{And, BasicType, Element, Max, Min, OpCode, Operation, Or, Prod, Replace, Sum, Xor};
