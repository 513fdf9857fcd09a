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

use crate::model::{Memo, Model, Modules};
use crate::mpi::Binding;
use crate::parse::Tree;

/// What the files of a run know about each other.
#[derive(Default, Debug)]
pub struct Program {
    /// All modules.
    pub modules: Modules,
    /// All procedures.
    pub procedures: Procedures,
    /// By which door a module hands the library on.
    pub doors: Memo<Binding>,
    /// How many procedures are summed up before a procedure at least. Of those that call each other in a circle none is
    /// before the others.
    pub levels: HashMap<ProcedureId, u32>,
    /// Names that stand for several of them.
    pub generics: Generics,
    /// What procedures do for their callers, where that was found out.
    pub summaries: HashMap<ProcedureId, Summary>,
    /// Protected variables that callers hand to dummy arguments, by procedure and position.
    pub protected_actuals: HashMap<(ProcedureId, u32), Vec<ProtectedActual>>,
}

impl Program {
    /// Adds what the file with that place in the input defines; files come in any order.
    pub fn add(&mut self, file: u32, path: &str, tree: &Tree, model: &Model) {
        self.modules.add(file, tree, model);
        self.procedures.add(file, path, tree, model);
        self.generics.add(file, tree, model);
    }

    /// Makes the order in which files came of no account, once all are here.
    pub fn settle(&mut self) {
        self.modules.settle();
        self.procedures.settle(&mut self.modules);
        self.generics.settle();
    }

    /// Whether a procedure is summed up before another one.
    pub fn is_before(&self, one: ProcedureId, other: ProcedureId) -> bool {
        match (self.levels.get(&one), self.levels.get(&other)) {
            (Some(one), Some(other)) => one < other,
            _ => false,
        }
    }
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
