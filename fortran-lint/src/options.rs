//! What a run was asked for. Never read from the command line here.

use crate::finding::Level;
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
    /// The lowest level wanted.
    pub min_level: Level,
    /// The language standard.
    pub standard: Standard,
    /// Procedures that count as opaque although they are in the sources.
    pub dummies: Vec<String>,
    /// How files are read.
    pub reading: Reading,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            select: Vec::new(),
            min_level: Level::Note,
            standard: Standard::default(),
            dummies: Vec::new(),
            reading: Reading::default(),
        }
    }
}
