//! Program units, what their names mean, and the order in which their statements run. Never judges.

mod flow;
mod scope;
mod storage;

#[cfg(test)]
mod test;

pub use flow::{Flow, Loop, Node};
pub use scope::{Model, Step, Unit, UnitId, Use, Variable};
pub use storage::{IsArgument, Resolved, Storage, may_be_changed_by_call};
