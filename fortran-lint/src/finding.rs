//! What a rule has to say. Never rendered here.

use rma_source::{FileId, Span};

pub use rma_source::Level;

/// One finding of a rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Code of the rule.
    pub rule: &'static str,
    /// How bad it is.
    pub level: Level,
    /// The primary place.
    pub span: Span,
    /// The file of that place, among those of the report. Rules leave it at the first one and give places in the
    /// expanded text; [`crate::check`] turns them into places in files.
    pub file: FileId,
    /// What is at the primary place, if the sentence does not tell.
    pub label: &'static str,
    /// One sentence.
    pub message: String,
    /// The variable, as it is declared or used.
    pub variable: String,
    /// Codes of the reasons why a remedy that was tried fails.
    pub because: Vec<&'static str>,
    /// Other places.
    pub related: Vec<Related>,
    /// Ways out, the best first.
    pub remedies: Vec<String>,
    /// Edits that follow such a way, the best first; none where a person has to look.
    pub repairs: Vec<Repair>,
}

/// An edit that removes a finding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Repair {
    /// What it adds.
    pub action: Action,
    /// The statements beside which it goes, all of them: a name may be declared in each branch of an `#if`. Files are
    /// as in [`Finding::file`].
    pub places: Vec<(FileId, Span)>,
    /// The program unit that the finding is about, by its place in the file.
    pub unit: u32,
}

/// What an edit adds.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Action {
    /// An attribute statement for the variable, behind the statement.
    Declare(&'static str),
    /// A COMMON block of that name for the variable, behind the statement.
    Common(String),
    /// A call of that routine with the variable, before the statement.
    CallBefore(String),
    /// A call of that routine with the variable, behind the statement.
    CallBehind(String),
}

/// Another place that belongs to a finding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Related {
    /// The place.
    pub span: Span,
    /// The file of that place, as in [`Finding::file`].
    pub file: FileId,
    /// What is there.
    pub message: String,
}
