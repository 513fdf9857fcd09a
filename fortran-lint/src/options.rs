//! What a run was asked for. Never read from the command line here.

use crate::finding::Level;
use crate::form::Form;
use crate::mpi::Binding;
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

/// The words for standards.
pub const STANDARDS: &[(&str, Standard)] = &[
    ("f66", Standard::F66),
    ("f77", Standard::F77),
    ("f90", Standard::F90),
    ("f95", Standard::F95),
    ("f2003", Standard::F2003),
    ("f2008", Standard::F2008),
    ("f2018", Standard::F2018),
    ("f2023", Standard::F2023),
];

/// The words for levels.
pub const LEVELS: &[(&str, Level)] =
    &[("note", Level::Note), ("warning", Level::Warning), ("error", Level::Error)];

/// The words for bindings, as a program writes them.
pub const BINDINGS: &[(&str, Binding)] =
    &[("mpif.h", Binding::Mpif), ("mpi", Binding::UseMpi), ("mpi_f08", Binding::F08)];

/// The words for source forms.
pub const FORMS: &[(&str, Form)] = &[("fixed", Form::Fixed), ("free", Form::Free)];

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

impl Options {
    /// Whether findings of the rule with this code are wanted.
    pub fn runs(&self, code: &str) -> bool {
        let is_in = |codes: &[String]| codes.iter().any(|own| own.eq_ignore_ascii_case(code));
        (self.select.is_empty() || is_in(&self.select)) && !is_in(&self.ignore)
    }
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
