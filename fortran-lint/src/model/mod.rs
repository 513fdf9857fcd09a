//! Program units, what their names mean, and the order in which their statements run. Never judges.

mod flow;
mod modules;
mod scope;
mod storage;

#[cfg(test)]
mod test;

pub use flow::{Flow, Loop, Node};
pub use modules::{Found, Memo, Module, Modules, Outer, OuterUse, Reach, Through};
pub use scope::{CommonPlace, Model, Step, Unit, UnitId, Use, Variable};
pub use storage::{IsArgument, Resolved, Storage, is_shared_name, may_be_changed_by_call};
