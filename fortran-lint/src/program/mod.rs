//! What the files of a run know about each other: modules, procedures, and what procedures do for their callers. Filled
//! before the rules run and the same for every number of threads. Never holds a tree.

mod generics;
mod levels;
mod procedures;
mod summary;

pub use generics::{Bound, Generics};
pub use levels::levels;
pub use procedures::{Home, ProcedureId, Procedures, Seen};
pub use summary::{Actual, Certainty, Dummy, Effect, Summary, Use};

use std::collections::HashMap;

use crate::model::Modules;

/// What the files of a run know about each other.
#[derive(Default, Debug)]
pub struct Program {
    /// All modules.
    pub modules: Modules,
    /// All procedures.
    pub procedures: Procedures,
    /// Names that stand for several of them.
    pub generics: Generics,
    /// What procedures do for their callers, where that was found out.
    pub summaries: HashMap<ProcedureId, Summary>,
    /// Protected variables that callers hand to dummy arguments, by procedure and position.
    pub protected_actuals: HashMap<(ProcedureId, u32), Vec<ProtectedActual>>,
}

/// A variable that is protected in a caller.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ProtectedActual {
    /// File and line of the call.
    pub place: String,
    /// The variable.
    pub name: Box<str>,
    /// What protects it there.
    pub remedy: &'static str,
}
