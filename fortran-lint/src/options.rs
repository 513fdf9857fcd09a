//! What a run was asked for. Never read from the command line here.

use crate::dataflow::Binding;
use crate::finding::Level;
use crate::mpi::Wrappers;
use crate::source::Reading;

/// The language standard that remedies are judged by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Standard {
    /// Fortran 66.
    F66,
    /// Fortran 77.
    F77,
    /// Fortran 90.
    F90,
    /// Fortran 95.
    F95,
    /// Fortran 2003.
    F2003,
    /// Fortran 2008.
    F2008,
    /// Fortran 2018.
    #[default]
    F2018,
    /// Fortran 2023.
    F2023,
}

/// What a run was asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// Codes of the rules wanted; empty means all. Reasons select the findings that carry them.
    pub select: Vec<String>,
    /// Codes of the rules that are not wanted.
    pub ignore: Vec<String>,
    /// The lowest level wanted.
    pub min_level: Level,
    /// The language standard.
    pub standard: Standard,
    /// Procedures that count as opaque although they are in the sources.
    pub dummies: Vec<String>,
    /// The binding of units that do not show by which door they reach MPI.
    pub binding: Binding,
    /// Wrappers and macros of the code, described as rows of the table.
    pub wrappers: Wrappers,
    /// The empty external routine of the code, whose call keeps a variable in memory.
    pub sync_routine: Option<String>,
    /// How files are read.
    pub reading: Reading,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            select: Vec::new(),
            ignore: Vec::new(),
            min_level: Level::Note,
            standard: Standard::default(),
            dummies: Vec::new(),
            binding: Binding::Unknown,
            wrappers: Wrappers::default(),
            sync_routine: None,
            reading: Reading::default(),
        }
    }
}
